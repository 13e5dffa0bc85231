"""The whole course as one page for paper, /book/, made from the pages that mkdocs has built.

Every lesson is a chapter: its ids are prefixed with its name, links between chapters stay inside the book,
widgets become pictures (assets/js/book.js draws them), and answers and solutions follow at the end of the
chapter. ``paper.py`` makes a PDF of it.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from itertools import chain
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from course import html_tree, lessons, settings
from course.html_tree import Element
from course.matches import there
from engine.base import edition, units
from widgets.kit.page import module
from widgets.kit.page.cache import digest, kept
from widgets.kit.widget import all_widgets

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ("symptoms", "numbers", "validation", "formulas", "glossary")  # the appendices: A, B, C …
SCREEN_ONLY = (
    "headerlink",
    "lesson-end",
    "page-foot",
    "notebook-links",
    "symptoms-find",
    "formulas-contents",
    "answer-open",
    "given",
    "puzzle-lines",
    "puzzle-keys",
    "puzzle-doing",
    "puzzle-said",
    "puzzle-hint",
)
TO_PRESS = {"script", "noscript", "button", "input", "textarea", "select", "form", "label"}
NAMES_AN_ID = ("aria-labelledby", "aria-describedby", "aria-controls", "headers", "for")
SENTENCES = {"drives", "lights"}  # they move a figure or highlight a part of it; on paper they are plain text
LICENCE = "Text and figures: CC BY 4.0. Code: BSD-3-Clause."
HERE = "http://book.invalid/"  # represents the site's root while links are resolved
WORTHLESS_ON_PAPER = ("data-expr", "tabindex", "role", "aria-level")


@dataclass
class Chapter:
    """One page of the course while it is turned into a chapter."""

    name: str  # of the page's folder; also the prefix of each of its ids
    mark: str  # 03 for a lesson, B for an appendix
    article: Element
    description: str
    answers: list[dict] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The chapter's heading, in the book as on its page."""
        return html_tree.text(next(element for element in self.article.iter() if element.tag in ("h1", "h2")))

    def id(self, anchor: str) -> str:
        """The id in the book for an anchor of the page."""
        return f"{self.name}--{anchor}" if anchor else self.name


# -- reading -------------------------------------------------------------------------------------------------
def parts() -> list[tuple[str, list[str]]]:
    """(title, names of its pages) of every part with lessons, as in the navigation; the appendices come
    last."""
    nav = settings.of("nav")
    sections = [(title, pages) for entry in nav for title, pages in entry.items() if isinstance(pages, list)]
    of_lessons = [
        (title, [page.removesuffix(".md") for page in pages])
        for title, pages in sections
        if all(lessons.number_of(page) for page in pages if isinstance(page, str))
    ]
    appendices = [name for name in REFERENCE if any(f"{name}.md" in pages for _, pages in sections)]
    return [(title, pages) for title, pages in (*of_lessons, ("Reference", appendices)) if pages]


def article_of(html: str, name: str) -> tuple[str, str]:
    """(the article of a built page, its description), as HTML."""
    whole = re.search(
        r"<article.*</article>", html, re.DOTALL
    )  # to the last: a symptom is an article of its own
    found = there(whole, f"the article of {name}")[0]
    about = there(
        re.search(r'<meta name="description" content="([^"]*)"', html), f"the description of {name}"
    )
    return found, about[1]


def read(name: str, article: str, description: str) -> Chapter:
    """A chapter with the contents of its page, not yet changed for the book."""
    root = html_tree.parse(article)
    html_tree.remove(root, lambda one: "headerlink" in html_tree.classes(one))
    mark = lessons.number_of(name) or chr(ord("A") + REFERENCE.index(name))
    return Chapter(name, mark, root, Markup(description).unescape())


# -- turning a page into a chapter ---------------------------------------------------------------------------
def lead_inside(chapter: Chapter, names: set[str]) -> None:
    """Make ids unique in the book. Links to pages in the book become links inside it; links to other pages of
    the site are marked."""
    page = f"{HERE}{chapter.name}/"
    for element in chapter.article.iter():
        if "id" in element.attrib:
            element.set("id", chapter.id(element.attrib["id"]))
        for key in NAMES_AN_ID:
            if key in element.attrib:
                element.set(key, " ".join(chapter.id(one) for one in element.attrib[key].split()))
        for key, value in element.attrib.items():
            if "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{chapter.id('')}--"))
        if "href" in element.attrib:
            element.set("href", _address(urljoin(page, element.get("href")), names))


def _address(where: str, names: set[str]) -> str:
    """The address in the book for the resolved address of a link."""
    if not where.startswith(HERE):
        return where
    parts = urlsplit(where)
    name = parts.path.strip("/")
    if name in names and not parts.query:
        return f"#{name}--{parts.fragment}" if parts.fragment else f"#{name}"
    return "../" + where.removeprefix(HERE)


def take_off_the_screen(article: Element) -> None:
    """Remove what can only be pressed, typed into or hovered, and open whatever is folded."""
    for form in html_tree.find(article, "answer"):
        _line_to_write_on(form)
    for editor in html_tree.find(article, "puzzle-editor"):
        _code_to_start_from(editor)
    html_tree.remove(
        article,
        lambda one: (
            one.tag in TO_PRESS or "hidden" in one.attrib or html_tree.classes(one) & set(SCREEN_ONLY)
        ),
    )
    for element in article.iter():
        if html_tree.classes(element) & SENTENCES:
            element.tag, element.attrib = "span", {}
        for key in WORTHLESS_ON_PAPER:
            if key in element.attrib and not (key == "role" and element.tag == "svg"):
                del element.attrib[key]
        if element.tag == "details":
            element.tag = "div"
            element.set("class", f"unfolded {element.get('class', '')}".strip())
        elif element.tag == "summary":
            element.tag = "p"
            element.set("class", "unfolded-title")


def _line_to_write_on(form: Element) -> None:
    """Replace a field for a number by its question, with room for a pencil."""
    asked, unit = (
        html_tree.text(html_tree.first(form, "answer-asked")),
        next(form.iter("input")).get("placeholder", ""),
    )
    form.clear()
    form.tag, form.text = "p", f"{asked} ({unit}): "
    form.set("class", "to-write")


def _code_to_start_from(editor: Element) -> None:
    """Replace a puzzle's editor by the code in it."""
    code = Element("code")
    code.text = (next(editor.iter("textarea")).text or "").lstrip("\n")
    editor.clear()
    editor.tag = "pre"
    editor.append(code)


def number_headings(chapter: Chapter) -> None:
    """Lower headings by one level, below the book's parts; the first one gets the chapter's number."""
    headings = [element for element in chapter.article.iter() if re.fullmatch(r"h[1-5]", element.tag)]
    for element in headings:
        element.tag = f"h{int(element.tag[1]) + 1}"
    heading = headings[0]
    heading.set("class", "chapter-title")
    heading.set("id", chapter.name)
    number = Element("span", {"class": "chapter-number"})
    number.text, number.tail, heading.text = chapter.mark, f" {heading.text}", None
    heading.insert(0, number)


def draw_stills(chapter: Chapter, still: Callable[[dict], str]) -> None:
    """Number every figure, and replace a widget by a place for its picture, and its words."""
    above, count = html_tree.parents(chapter.article), 0
    for figure in list(chapter.article.iter("figure")):
        widget, captions = "data-widget" in figure.attrib, list(figure.iter("figcaption"))
        if not widget and not captions:
            continue
        count += 1
        label = f"Figure {chapter.mark.lstrip('0')}.{count}"
        if widget:
            shown = _still(chapter, figure, label)
            html_tree.replace(above[figure], figure, [html_tree.parse(still(shown))])
            if shown["predict"]:
                chapter.answers.append(shown["predict"] | {"of": label, "to": shown["id"]})
        else:
            number = Element("strong")
            number.text, number.tail, captions[0].text = f"{label}.", f" {captions[0].text or ''}", None
            captions[0].insert(0, number)


def _still(chapter: Chapter, figure: Element, label: str) -> dict:
    """The contents of a widget's figure in its first state."""
    slug, initial = figure.attrib["data-widget"], json.loads(figure.get("data-initial", "{}"))
    widget = all_widgets()[slug]()
    widget.set_raw(initial)
    query = urlencode(
        {f"{slug}.{name}": widget.controls()[name].write(getattr(widget, name)) for name in initial}
    )

    def said(mark):
        return next(
            (
                Markup(html_tree.inner(one))
                for one in figure.iter()
                if mark in one.attrib or mark in html_tree.classes(one)
            ),
            "",
        )

    return {
        "id": chapter.id(f"w-{slug}"),
        "slug": slug,
        "label": label,
        "title": widget.question,
        "address": f"{slug}/" + (f"?{query}" if query else ""),
        "settings": [
            (control.label, _setting(control, raw))
            for control, raw in zip(widget.controls().values(), widget.raw_state().values())
            if control.kind in ("number", "choice", "switch") and not control.more
        ],
        "height": html_tree.first(figure, "widget-plot").get("style"),
        "readouts": [
            (html_tree.text(row[0]), html_tree.text(row[1]), "over" in html_tree.classes(row[1]))
            for row in html_tree.first(figure, "widget-readouts")
        ],
        "summary": said("data-summary"),
        "regimes": [html_tree.text(one) for one in html_tree.find(figure, "widget-regime")],
        "break_it": said("data-break-it"),
        "assumptions": Markup(" ").join(filter(None, [said("widget-caption"), said("widget-left-out")])),
        "predict": _prediction(chapter, slug, figure),
    }


def _setting(control, raw) -> str:
    """A control's value in words."""
    if control.kind == "choice":
        return control.labels[raw]
    return ("on" if raw else "off") if control.kind == "switch" else units.human(raw, control.family)


def _prediction(chapter: Chapter, slug: str, figure: Element) -> dict | None:
    """The question before a widget, its lettered answers if it has any, and the engine's answer."""
    if not (box := html_tree.find(figure, "widget-predict")):
        return None
    answers = [button for button in box[0].iter("button") if "data-answer" in button.attrib]
    why = html_tree.first(box[0], "widget-why")
    return {
        "id": chapter.id(f"answer-{slug}"),
        "answers": [Markup(html_tree.inner(answer)) for answer in answers],
        "question": Markup(html_tree.inner(html_tree.first(box[0], "widget-predict-question"))),
        "right": box[0].get("data-shown")
        or "abcd"[[answer.get("data-answer") for answer in answers].index("right")],
        "why": Markup(html_tree.inner(why).split("</span>", 1)[1].strip()),
    }


def gather_solutions(chapter: Chapter) -> None:
    """Number the exercises and move their solutions to the end of the chapter."""
    for number, exercise in enumerate(html_tree.find(chapter.article, "exercise"), 1):
        title = html_tree.first(exercise, "admonition-title")
        title.text = f"{number}. {title.text or ''}"
        for solution in html_tree.find(exercise, "solution"):
            anchor = f"{exercise.get('id')}-solution"
            solution_title = html_tree.text(solution[0])
            solution.remove(solution[0])
            chapter.answers.append(
                {
                    "of": f"Exercise {number}",
                    "to": exercise.get("id"),
                    "id": anchor,
                    "why": Markup(html_tree.inner(solution)),
                    "title": "" if solution_title == "Solution" else solution_title,
                }
            )
            html_tree.remove(exercise, partial(operator.is_, solution))
            exercise.append(
                html_tree.parse(
                    f'<p class="to-answer"><a href="#{anchor}">Solution</a> at the end of the chapter</p>'
                )
            )


# -- the page ------------------------------------------------------------------------------------------------
def sheets(site: Path) -> list[str]:
    """The style sheets of the course's pages, in order, addressed from a page one folder down."""
    found = re.findall(
        r'<link rel="stylesheet" href="([^"]+)"', (site / "index.html").read_text(encoding="utf-8")
    )
    return [f"../{sheet}" for sheet in found if not sheet.endswith("/home.css")]


@dataclass(frozen=True)
class Printed:
    """A chapter, ready for the book. For each answer: its place, the figure or exercise it belongs to, and
    its text."""

    name: str
    mark: str
    title: str
    description: str
    headings: list[tuple[str, Markup]]  # anchor and words of each section
    html: Markup
    answers_at: str
    answers: list[dict]


def printed(site: Path, name: str, names: list[str]) -> Printed:
    """The chapter made from a built page; it is cached until that page or its widgets change. ``names`` are
    the names of all chapters."""
    html, description = article_of((site / name / "index.html").read_text(encoding="utf-8"), name)
    shown = set(re.findall(r'data-widget="(\w+)"', html))
    widgets = (module.depends_on(all_widgets()[slug]) for slug in sorted(shown))
    name_of_it, modules = f"chapter.{digest(html, description, *names)}", (__name__, *chain(*widgets))
    make = lambda: json.dumps(asdict(_printed(read(name, html, description), set(names)))).encode()
    found = json.loads(kept(name_of_it, make, modules))
    found["html"] = Markup(found["html"])
    found["headings"] = [(anchor, Markup(words)) for anchor, words in found["headings"]]
    found["answers"] = [answer | {"why": Markup(answer["why"])} for answer in found["answers"]]
    return Printed(**found)


def _printed(chapter: Chapter, names: set[str]) -> Printed:
    still = _templates().get_template("still.html")
    lead_inside(chapter, names)
    draw_stills(chapter, lambda shown: still.render(it=shown))
    take_off_the_screen(chapter.article)
    gather_solutions(chapter)
    number_headings(chapter)
    sections = [one for one in chapter.article.iter("h3") if one.get("id")]
    return Printed(
        chapter.name,
        chapter.mark,
        chapter.title,
        chapter.description,
        [(one.attrib["id"], Markup(html_tree.inner(one))) for one in sections],
        Markup(html_tree.inner(chapter.article)),
        chapter.id("answers"),
        [
            {name: answer.get(name, "") for name in ("id", "to", "of", "right", "title")}
            | {"why": _on_paper(answer["why"])}
            for answer in chapter.answers
        ],
    )


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader([Path(__file__).parent / "templates", ROOT / "site" / "theme"]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def running_heads(volumes: list[tuple[str, list[Printed]]]) -> str:
    """CSS that puts each part's title above its pages. A chapter's title cannot be used, because a new
    running head needs a new page, and each chapter would leave half a page empty."""
    return "".join(
        f"@page {page_name(at)} {{ @top-right {{ content: {json.dumps(title, ensure_ascii=False)}; }} }}\n"
        for at, (title, _) in enumerate(volumes, 1)
    )


def page_name(part: int) -> str:
    """The name of a part's page."""
    return f"part-{part}"


def all_printed(site: Path) -> list[tuple[str, list[Printed]]]:
    """(title, chapters) of every part."""
    names = [name for _, several in parts() for name in several]
    return [(title, [printed(site, name, names) for name in several]) for title, several in parts()]


def pages(site: Path) -> dict[str, str]:
    """File -> contents of the book's page, and of the style sheet with the running heads."""
    volumes = all_printed(site)
    page = _templates().get_template("book.html")
    html = page.render(
        title="The course on paper",
        picture="course",
        home=settings.public_home(),
        address=f"{settings.public_home()}book/" if settings.public_home() else "",
        description="All lessons with their figures, answers and solutions, and the reference pages, on one "
        "page to print.",
        volumes=volumes,
        sheets=sheets(site),
        page_name=page_name,
        version=edition.version(),
        licence=LICENCE,
    )
    return {"book/index.html": html, "book/running-heads.css": running_heads(volumes)}


def _on_paper(why: str) -> Markup:
    """An answer's text, prepared for paper separately, because it was removed from the page before the page
    was."""
    box = html_tree.parse(f"<div>{why}</div>")
    take_off_the_screen(box)
    return Markup(html_tree.inner(box))
