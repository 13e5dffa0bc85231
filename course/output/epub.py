"""The course as an e-book, EPUB 3: the chapters of the printed book (book.py) as XHTML, with MathML, static
pictures as SVG, and each figure as a PNG with a link to the live one where the course is published.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as etree
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from course import html_tree
from course.drawing import alone
from course.html_tree import Element, classes
from course.output import book
from course.output.book import Printed
from engine.base import edition
from widgets.kit.drawing import lettering, tokens

TEMPLATES = Path(__file__).parent / "templates"
TITLE, SUBTITLE = "System ML", "Parallel training and inference, from first principles"
AUTHORS = "The System ML authors"
TYPES = {".xhtml": "application/xhtml+xml", ".svg": "image/svg+xml", ".png": "image/png", ".css": "text/css"}
CONTAINER = """<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="EPUB/package.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
PHONE_EM, READER_EM = (26.0, 38.0)  # width of a phone and of a small e-reader, in a table's font size
GAP_EM = 0.7  # space between two columns, in the same unit
BARS = (("compute", 2), ("hbm", 6), ("link", 3), ("network", 1))  # on the cover, as on the book's title page


def written(site: Path, pictures: dict[str, bytes], public: str, now: datetime | None = None) -> bytes:
    """The e-book, made from the built site. ``pictures`` are the figures by their ids in the book; ``public``
    is where the course is published, '' if that is unknown."""
    files = contents(book.all_printed(site), pictures, public)
    package = _page("epub-package.opf", files=_listed(files), modified=_stamp(now), **_about())
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)  # first, and not compressed
        packed.writestr("META-INF/container.xml", CONTAINER)
        packed.writestr("EPUB/package.opf", package)
        for name, content in files.items():
            packed.writestr(f"EPUB/{name}", content)
    return into.getvalue()


def _stamp(now: datetime | None) -> str:
    return (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _about() -> dict[str, str]:
    uuid = uuid5(NAMESPACE_URL, f"system-ml {edition.version()}")
    return {
        "title": TITLE,
        "subtitle": SUBTITLE,
        "authors": AUTHORS,
        "licence": book.LICENCE,
        "id": f"{uuid}",
    }


def contents(
    volumes: list[tuple[str, list[Printed]]], pictures: dict[str, bytes], public: str
) -> dict[str, str | bytes]:
    """File -> contents, in reading order, of all files except those that describe the package."""
    about = _about() | {"version": edition.version(), "public": public}
    files: dict[str, str | bytes] = {
        "cover.xhtml": _page("epub-cover.xhtml", **about),
        "title.xhtml": _page("epub-title.xhtml", **about),
        "nav.xhtml": _contents(volumes),
    }
    drawn: dict[str, bytes] = {}
    for at, (title, chapters) in enumerate(volumes, 1):
        files[part_file(at)] = _page("epub-part.xhtml", part=title, chapters=chapters)
        for chapter in chapters:
            body = _Chapter(chapter, pictures, public).body()
            files[f"{chapter.name}.xhtml"] = _page(
                "epub-chapter.xhtml", title=chapter.title, body=body.markup
            )
            drawn |= body.drawn
    files["style.css"] = _sheet()
    files["cover.svg"] = _cover()
    return files | drawn


def _contents(volumes: list[tuple[str, list[Printed]]]) -> str:
    """The table of contents."""
    told = [
        (title, [(each, [(at, _xhtml_line(words)) for at, words in each.headings]) for each in chapters])
        for title, chapters in volumes
    ]
    return _page("epub-nav.xhtml", volumes=told, part_file=part_file, valid=valid, **_about())


def part_file(number: int) -> str:
    """The file of a part's page in the book."""
    return f"part-{number}.xhtml"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def _page(template: str, **given: object) -> str:
    return _environment().get_template(template).render(**given)


def _sheet() -> str:
    """The style sheet, with the colours of paper."""
    colours = tokens.palette("light")
    text = (TEMPLATES / "epub.css").read_text(encoding="utf-8")
    return re.sub(r"var\(--c-([\w-]+)\)", lambda found: colours[found[1]], text)


def _cover() -> str:
    """The cover: the bars of the title page, and the name."""
    colours, whole, left, bars = tokens.palette("light"), sum(share for _, share in BARS), 100.0, []
    for name, share in BARS:
        wide = 1000 * share / whole
        bars.append((f"{left:.1f}", f"{wide - 12:.1f}", colours[name]))
        left += wide
    return _page("epub-cover.svg", bars=bars, colours=colours, title=TITLE, subtitle=SUBTITLE.split(", "))


def _listed(files: dict[str, str | bytes]) -> list[dict[str, str]]:
    """The package's entry for each file: an id, a type, properties, and whether the file is part of the
    reading order."""
    found = []
    for name, content in files.items():
        kind = Path(name).suffix
        marks = {
            "nav": name == "nav.xhtml",
            "cover-image": name == "cover.svg",
            "mathml": kind == ".xhtml" and "<math " in str(content),
        }
        found.append(
            {
                "name": name,
                "id": "f-" + re.sub(r"[^\w-]", "-", name),
                "type": TYPES[kind],
                "properties": " ".join(mark for mark, has in marks.items() if has),
                "read": "yes" if kind == ".xhtml" else "",
            }
        )
    return found


# -- a chapter -----------------------------------------------------------------------------------------------
class _Chapter:
    """A chapter of the printed book while it is turned into a file of the e-book."""

    def __init__(self, chapter: Printed, pictures: dict[str, bytes], public: str) -> None:
        self.chapter, self.public, self.taken = chapter, public, pictures
        self.drawn: dict[str, bytes] = {}
        self.markup = Markup()

    def body(self) -> _Chapter:
        """The chapter's markup; its pictures are collected on the way."""
        html = _environment().get_template("epub-body.html").render(chapter=self.chapter)
        root = html_tree.parse(html)
        html_tree.remove(root, lambda one: one.tag == "svg" and "narrow-form" in classes(one))
        for element in root.iter():
            if "href" in element.attrib:
                self.lead(element)
        above = html_tree.parents(root)
        for element in list(root.iter()):
            if element.tag == "table":
                as_cards(element)
            if element.tag == "svg":
                html_tree.replace(above[element], element, [self.static(element, above)])
            elif "data-still" in element.attrib:
                self.figure(element, above)
        self.markup = Markup(_xhtml(root))
        return self

    def lead(self, link: Element) -> None:
        """Change a link: inside the book it names the chapter's file, to the rest of the course it needs the
        public address."""
        where = link.attrib["href"]
        if where.startswith("#"):
            link.set("href", self.inside(where[1:]))
        elif where.startswith("../") and self.public:
            link.set("href", self.public + where.removeprefix("../"))
        elif where.startswith("../"):
            link.tag, link.attrib = "span", {}

    def inside(self, address: str) -> str:
        """The file that contains an id of the book; ids begin with the name of their chapter."""
        name, _, rest = address.partition("--")
        return f"{name}.xhtml#{address}" if rest else f"{name}.xhtml"

    def static(self, svg: Element, above: dict[Element, Element]) -> Element:
        """A static picture as a file of its own."""
        figure = above[svg]
        while figure.tag != "figure":
            figure = above[figure]
        name = f"pictures/{figure.attrib['id']}.svg"
        self.drawn[name] = alone.svg(svg)
        return Element("img", {"src": name, "alt": html_tree.text(next(svg.iter("title")))})

    def figure(self, still: Element, above: dict[Element, Element]) -> None:
        """A figure's picture, as drawn on the book's page, directly under its title. Little has to stay
        together this way, so little of a page is left empty before a figure."""
        place, title = html_tree.first(still, "still-picture"), html_tree.first(still, "still-title")
        card, settings = above[place], html_tree.first(still, "still-settings")
        card.remove(settings)
        card.insert(list(card).index(place) + 1, settings)
        place.attrib.pop("style", None)
        name = f"pictures/{still.attrib['id']}.png"
        self.drawn[name] = self.taken[still.attrib["id"]]
        place.append(Element("img", {"src": name, "alt": html_tree.text(title)}))
        for caption in still.iter("figcaption"):  # XHTML wants a caption as the child of a figure
            caption.tag = "div"
            caption.set("class", "caption")


def as_cards(table: Element) -> None:
    """Marks a table that is too wide for a narrow page. On such a page each row becomes a card, in which a
    column's heading comes before its value (epub.css)."""
    head = next(table.iter("thead"), None)
    rows = [list(row) for row in table.iter("tr")]
    needs = sum(max(map(_least_em, column)) for column in zip(*rows))
    if head is None or len({len(row) for row in rows}) > 1 or needs < PHONE_EM:
        return
    table.set("class", "cards" if needs < READER_EM else "cards early")
    names = [html_tree.text(cell) for cell in rows[0]]
    for row in rows[1:]:
        for name, cell in list(zip(names, row))[1:]:
            cell.insert(0, Element("span", {"class": "of-column"}))
            cell[0].text, cell[0].tail, cell.text = f"{name}: ", cell.text, None


def _least_em(cell: Element) -> float:
    """The least width of a cell, which is that of its longest word, in the table's font size."""
    words = html_tree.text(cell).split() or [""]
    return GAP_EM + max(lettering.width(word, 1.0, bold=cell.tag == "th") for word in words)


def _xhtml(root: Element) -> str:
    """The contents of an element as XML."""
    for element in root.iter():
        for name in [name for name in element.attrib if name.startswith("data-")]:
            del element.attrib[name]
    _require_ids(root.iter())
    opened = etree.tostring(root, encoding="unicode")
    return opened[opened.index(">") + 1 : opened.rindex("<")]


def _require_ids(elements: Iterable[Element]) -> None:
    """Makes all ids valid: ours begin with a lesson's number, and older readers ignore an id that begins with
    a digit."""
    for element in elements:
        for key in ("id", *book.NAMES_AN_ID):
            if key in element.attrib:
                element.set(key, " ".join(valid(each) for each in element.attrib[key].split()))
        if "href" in element.attrib and "#" in element.attrib["href"]:
            file, _, place = element.attrib["href"].partition("#")
            if file.endswith(".xhtml") and "/" not in file:
                element.set("href", f"{file}#{valid(place)}")


def valid(name: str) -> str:
    """An id in a form that XML allows."""
    return f"c{name}" if name[:1].isdigit() else name


def _xhtml_line(words: Markup) -> Markup:
    return Markup(_xhtml(html_tree.parse(f"<span>{words}</span>")))
