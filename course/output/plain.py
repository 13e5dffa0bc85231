"""Each page as Markdown beside it, build/static/05-fsdp-and-zero/index.md, and llms.txt, which lists them:
for programs that read, and for whoever copies a page into a conversation.

Made of the built page, so its numbers are filled in. A figure is named by its question, with the words that
it shows at first and the address at which one can push it; what answers a prediction or an exercise is
folded.
"""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from course import html_tree, lessons, settings
from course.html_tree import Element, classes
from course.output import book
from course.output.notebooks import markdown
from course.output.notebooks.markdown import Cell, Writer
from engine import puzzles
from widgets.kit.page.cache import digest, kept
from widgets.kit.widget import all_widgets

FILE = "index.md"
ABOUT = """\
# System ML

> {description}

Each page below is Markdown with its numbers filled in. They are computed by one engine, which can also be
asked: `system-ml mcp` answers over the Model Context Protocol (tools for estimates, layouts, deployments,
launch files, costs and collectives), `system-ml --help` at a shell. Numbers hold within the domain that a
page names; *Validation* says how far off they are. Text and figures: CC BY 4.0. Code: BSD-3-Clause.
"""


class Source(NamedTuple):
    """A page of the navigation: the folder of its address ("" for the home page), its title, and what it
    is about."""

    folder: str
    title: str
    description: str

    @property
    def file(self) -> str:
        """Its Markdown, in the built site."""
        return f"{self.folder}/{FILE}" if self.folder else FILE


def sections() -> list[tuple[str, list[Source]]]:
    """(title, pages) of each section of the navigation; the home page has none."""
    known = {page.name: page for page in lessons.pages()}
    found: list[tuple[str, list[Source]]] = []
    for entry in settings.of("nav"):
        [(title, names)] = entry.items()
        several = [names] if isinstance(names, str) else names
        pages = [known[name.removesuffix(".md")] for name in several]
        found.append(
            (
                title,
                [
                    Source(_folder(page.name), page.heading, page.front.get("description", "").strip())
                    for page in pages
                ],
            )
        )
    return found


def _folder(name: str) -> str:
    return "" if name == "index" else name


def files(site: Path) -> dict[str, str]:
    """File -> contents: every page of the navigation, and llms.txt."""
    listed = sections()
    made = {page.file: _kept(site, page) for _, pages in listed for page in pages}
    return made | {"llms.txt": llms(listed)}


def llms(listed: list[tuple[str, list[Source]]]) -> str:
    """The list of pages, in the form that https://llmstxt.org describes."""
    home = settings.public_home()
    parts = [ABOUT.format(description=" ".join(settings.of("site_description").split()))]
    for title, pages in listed:
        lines = [f"- [{page.title}]({home}{page.file}): {page.description}" for page in pages]
        parts.append("\n".join([f"## {title}", "", *lines, ""]))
    return "\n".join(parts)


def _kept(site: Path, page: Source) -> str:
    html = (site / page.folder / "index.html").read_text(encoding="utf-8")
    article, _ = book.article_of(html, page.folder)
    made_of = digest(article, page.folder, page.title, settings.public_home())
    make = lambda: written(article, page).encode()
    return kept(f"plain.{made_of}", make, (__name__, markdown.__name__)).decode()


def written(article: str, page: Source) -> str:
    """A page's Markdown, made of its built article."""
    root = html_tree.parse(article)
    answered = {
        inside
        for one in root.iter()
        if "data-widget" in one.attrib or "exercise" in classes(one)
        for inside in one.iter()
    }
    html_tree.remove(root, lambda one: _is_pressed(one) and one not in answered)
    for beside in html_tree.find(root, "map__sum", "map__minutes"):
        beside.text = f" · {beside.text or ''}"
    reader = _Reader(page.folder)
    pieces = [piece for piece in Writer(reader.link, reader.special).blocks(root) if isinstance(piece, str)]
    return "\n\n".join([*pieces, reader.source()]) + "\n"


def _is_pressed(element: Element) -> bool:
    """Whether an element is only for a screen: a control, or what a script fills in."""
    is_empty = element.tag in ("table", "ul", "ol", "dl") and not {each.tag for each in element.iter()} & {
        "tr",
        "li",
        "dt",
    }
    return (
        is_empty
        or "headerlink" in classes(element)
        or "hidden" in element.attrib
        or element.tag in book.TO_PRESS
    )


class _Reader:
    """What a page has that is more than text, in words, and where its links lead."""

    def __init__(self, folder: str) -> None:
        self.folder, self.home = folder, settings.public_home()

    def link(self, href: str) -> str:
        """A link's address: whole where the course's own is known, and as the page has it otherwise."""
        if not href or urlsplit(href).scheme or not self.home:
            return href
        return urljoin(f"{book.HERE}{self.folder}/" if self.folder else book.HERE, href).replace(
            book.HERE, self.home
        )

    def source(self) -> str:
        """The last line: where the text is from."""
        licence = "CC BY 4.0"
        where = f"{self.home}{self.folder}/" if self.home else ""
        return f"---\n\nFrom *System ML*{f', {where}' if where else ''} ({licence})."

    def special(self, element: Element, writer: Writer) -> list[str | Cell] | None:
        """The pieces of a figure, a picture, an exercise or a puzzle; None for anything else."""
        kinds = classes(element)
        if "data-widget" in element.attrib:
            return self.figure(element, writer)
        if element.tag == "figure":
            return picture(element, writer)
        if "exercise" in kinds:
            return exercise(element, writer)
        if "puzzle" in kinds and "data-puzzle" in element.attrib:
            return puzzle(element, writer)
        if element.tag == "template" or "hidden" in element.attrib:
            return []
        return None

    def figure(self, element: Element, writer: Writer) -> list[str | Cell]:
        """A figure that one pushes: its question, what it says at first, and its address."""
        slug = element.attrib["data-widget"]
        address = self.link(f"{'../' if self.folder else ''}{slug}/")
        found: list[str | Cell] = [f"**Figure:** [{all_widgets()[slug].question}]({address})"]
        for box in html_tree.find(element, "widget-predict"):
            found.append(f"Predict first: {writer.line(html_tree.first(box, 'widget-predict-question'))}")
            choices = [writer.line(one) for one in box.iter("button") if "data-answer" in one.attrib]
            found += ["\n".join(f"- {words}" for words in choices)] if choices else []
            shown = f"**{box.attrib['data-shown']}.** " if "data-shown" in box.attrib else ""
            found += markdown.folded("The answer", [shown + writer.line(html_tree.first(box, "widget-why"))])
        rows = [
            f"- {html_tree.text(row[0])}: {html_tree.text(row[1])}"
            for box in html_tree.find(element, "widget-readouts")
            for row in box
        ]
        said = [html_tree.text(one) for one in element.iter() if "data-summary" in one.attrib]
        found += ["\n".join(rows)] if rows else []
        found += [f"At first: {words}" for words in said if words]
        for kind in ("widget-break-it", "widget-caption", "widget-left-out"):
            found += [line for each in html_tree.find(element, kind) if (line := writer.line(each))]
        return markdown.quoted(found)


def picture(element: Element, writer: Writer) -> list[str | Cell]:
    """A drawn picture: its caption, and what it shows in words."""
    titles = [title.text or "" for title in element.iter("title")]
    told = [f"- {writer.line(each)}" for words in html_tree.find(element, "diagram-words") for each in words]
    captions = [writer.line(each) for each in element.iter("figcaption")]
    name = f"**Picture:** {unescape(titles[0])}" if titles else "**Picture**"
    return markdown.quoted([name, *captions, *(["\n".join(told)] if told else [])])


def exercise(element: Element, writer: Writer) -> list[str | Cell]:
    """An exercise: what it asks, and its solution, folded."""
    title = writer.line(html_tree.first(element, "admonition-title"))
    others = [each for each in element if "admonition-title" not in classes(each)]
    told = writer.pieces([each for each in others if each.tag != "details"], before=f"**{title}**")
    asked = [
        f"- {html_tree.text(html_tree.first(form, 'answer-asked'))} ({field.get('placeholder')})"
        for form in html_tree.find(element, "answer")
        for field in form.iter("input")
    ]
    solution = writer.pieces([each for each in others if each.tag == "details"])
    return markdown.quoted([*told, *(["\n".join(asked)] if asked else []), *solution])


def puzzle(element: Element, writer: Writer) -> list[str | Cell]:
    """A puzzle: its task, and the code to start from."""
    about = puzzles.puzzle(element.attrib["data-puzzle"])
    title = writer.line(html_tree.first(element, "puzzle-title"))
    task = writer.blocks(html_tree.first(element, "puzzle-task"))
    return [f"### {title}", *task, markdown.fenced(about.START.strip(), "python")]
