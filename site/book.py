"""The whole course as one page for paper, /book/, made of the pages that mkdocs has built.

Every lesson is a chapter: its ids are prefixed with its name, links between chapters stay inside the book, widgets stand
as pictures (assets/js/book.js draws them), answers and solutions follow at the chapter's end. ``paper.py`` makes a PDF of it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from mkdocs.config import load_config

import elements
from elements import Element
from engine import units
from widgets.kit.widget import all_widgets

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ("symptoms", "numbers", "validation", "formulas", "glossary")  # the appendices: A, B, C …
SCREEN_ONLY = ("headerlink", "lesson-end", "symptoms-find", "formulas-contents", "answer-open")
TO_PRESS = {"script", "noscript", "button", "input", "textarea", "select", "form", "label"}
NAMES_AN_ID = ("aria-labelledby", "aria-describedby", "aria-controls", "headers", "for")
LICENCE = "Text and figures: CC BY 4.0. Code: BSD-3-Clause."
HERE = "http://book.invalid/"  # stands for the site's root while links are resolved
WORTHLESS_ON_PAPER = ("data-expr", "tabindex", "role")


@dataclass
class Chapter:
    """One page of the course on its way into the book."""

    name: str  # of its folder, and before each of its ids
    mark: str  # 03 for a lesson, B for an appendix
    article: Element
    description: str
    answers: list[dict] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The chapter's heading, in the book and before."""
        return elements.text(next(element for element in self.article.iter() if element.tag in ("h1", "h2")))

    def id(self, anchor: str) -> str:
        """An anchor of the page as the book has it."""
        return f"{self.name}--{anchor}" if anchor else self.name


@cache
def settings():
    """What mkdocs.yml says."""
    return load_config(str(ROOT / "mkdocs.yml"))


def public_home() -> str:
    """Where the course is published, if the build was told (SITE_URL)."""
    address = settings()["site_url"]
    return "" if address.startswith("http://localhost") else address


# -- reading -----------------------------------------------------------------------------------------------------------
def parts() -> list[tuple[str, list[str]]]:
    """(title, names of its pages) of every part with lessons, as the navigation has them; the appendices come last."""
    nav = settings()["nav"]
    sections = [(title, pages) for entry in nav for title, pages in entry.items() if isinstance(pages, list)]
    of_lessons = [(title, [page.removesuffix(".md") for page in pages]) for title, pages in sections
                  if all(re.match(r"\d\d-", page) for page in pages if isinstance(page, str))]
    appendices = [name for name in REFERENCE if any(f"{name}.md" in pages for _, pages in sections)]
    return [(title, pages) for title, pages in (*of_lessons, ("Reference", appendices)) if pages]


def read(site: Path, name: str) -> Chapter:
    """A built page's article."""
    html = (site / name / "index.html").read_text(encoding="utf-8")
    article = elements.parse(re.search(r"<article.*?</article>", html, re.DOTALL)[0])
    elements.remove(article, lambda one: "headerlink" in elements.classes(one))
    mark = name[:2] if name[:2].isdigit() else chr(ord("A") + REFERENCE.index(name))
    about = re.search(r'<meta name="description" content="([^"]*)"', html)
    return Chapter(name, mark, article, Markup(about[1]).unescape())


# -- making a chapter of a page ------------------------------------------------------------------------------------------
def lead_inside(chapter: Chapter, names: set[str]) -> None:
    """Ids that are unique in the book; links to its pages stay in it, those to other pages of the site are marked."""
    page = f"{HERE}{chapter.name}/"
    for element in chapter.article.iter():
        if "id" in element.attrib:
            element.set("id", chapter.id(element.get("id")))
        for key in NAMES_AN_ID:
            if key in element.attrib:
                element.set(key, " ".join(chapter.id(one) for one in element.get(key).split()))
        for key, value in element.attrib.items():
            if "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{chapter.id('')}--"))
        if "href" in element.attrib:
            element.set("href", _address(urljoin(page, element.get("href")), names))


def _address(where: str, names: set[str]) -> str:
    """A link's address, resolved, as it stands in the book."""
    if not where.startswith(HERE):
        return where
    parts = urlsplit(where)
    name = parts.path.strip("/")
    if name in names and not parts.query:
        return f"#{name}--{parts.fragment}" if parts.fragment else f"#{name}"
    return "../" + where.removeprefix(HERE)


def take_off_the_screen(article: Element) -> None:
    """What can only be pressed, typed into or hovered has no use on paper; what is folded stands open."""
    for form in elements.find(article, "answer"):
        _line_to_write_on(form)
    elements.remove(article, lambda one: one.tag in TO_PRESS or "hidden" in one.attrib or elements.classes(one) & set(SCREEN_ONLY))
    for element in article.iter():
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
    """A field for a number becomes what is asked for, with room for a pencil."""
    asked, unit = elements.text(elements.first(form, "answer-asked")), next(form.iter("input")).get("placeholder", "")
    form.clear()
    form.tag, form.text = "p", f"{asked} ({unit}): "
    form.set("class", "to-write")


def number_headings(chapter: Chapter) -> None:
    """One level down, since a part stands above; the first bears the chapter's number."""
    headings = [element for element in chapter.article.iter() if re.fullmatch(r"h[1-5]", element.tag)]
    for element in headings:
        element.tag = f"h{int(element.tag[1]) + 1}"
    heading = headings[0]
    heading.set("class", "chapter-title")
    heading.set("id", chapter.name)
    number = Element("span", {"class": "chapter-number"})
    number.text, number.tail, heading.text = chapter.mark, f" {heading.text}", None
    heading.insert(0, number)


def draw_stills(chapter: Chapter, still) -> None:
    """Every figure gets its number; a widget is replaced by its picture's place and its words."""
    above, count = elements.parents(chapter.article), 0
    for figure in list(chapter.article.iter("figure")):
        widget, captions = "data-widget" in figure.attrib, list(figure.iter("figcaption"))
        if not widget and not captions:
            continue
        count += 1
        label = f"Figure {chapter.mark.lstrip('0')}.{count}"
        if widget:
            shown = _still(chapter, figure, label)
            elements.replace(above[figure], figure, [elements.parse(still(shown))])
            if shown["predict"]:
                chapter.answers.append(shown["predict"] | {"of": label, "to": shown["id"]})
        else:
            number = Element("strong")
            number.text, number.tail, captions[0].text = f"{label}.", f" {captions[0].text or ''}", None
            captions[0].insert(0, number)


def _still(chapter: Chapter, figure: Element, label: str) -> dict:
    """What a widget's figure says in its first state."""
    slug, initial = figure.get("data-widget"), json.loads(figure.get("data-initial", "{}"))
    widget = all_widgets()[slug]()
    widget.set_raw(initial)
    query = urlencode({f"{slug}.{name}": widget.controls()[name].write(getattr(widget, name)) for name in initial})
    def said(mark):
        return next((Markup(elements.inner(one)) for one in figure.iter() if mark in one.attrib or mark in elements.classes(one)), "")
    return {
        "id": chapter.id(f"w-{slug}"), "slug": slug, "label": label, "title": widget.question, "address": f"{slug}/" + (f"?{query}" if query else ""),
        "settings": [(control.label, _setting(control, raw)) for control, raw in zip(widget.controls().values(), widget.raw_state().values())
                     if control.kind in ("number", "choice", "switch") and not control.more],
        "height": elements.first(figure, "widget-plot").get("style"),
        "readouts": [(elements.text(row[0]), elements.text(row[1]), "over" in elements.classes(row[1]))
                     for row in elements.first(figure, "widget-readouts")],
        "summary": said("data-summary"), "regimes": [elements.text(one) for one in elements.find(figure, "widget-regime")],
        "break_it": said("data-break-it"), "assumptions": said("widget-caption"), "predict": _prediction(chapter, slug, figure),
    }


def _setting(control, raw) -> str:
    """A control's value in words."""
    if control.kind == "choice":
        return control.labels[raw]
    return ("on" if raw else "off") if control.kind == "switch" else units.human(raw, control.family)


def _prediction(chapter: Chapter, slug: str, figure: Element) -> dict | None:
    """The question before a widget, its lettered answers and what the engine says."""
    if not (box := elements.find(figure, "widget-predict")):
        return None
    answers = [button for button in box[0].iter("button") if "data-answer" in button.attrib]
    why = elements.first(box[0], "widget-why")
    return {
        "id": chapter.id(f"answer-{slug}"), "answers": [Markup(elements.inner(answer)) for answer in answers],
        "question": Markup(elements.inner(elements.first(box[0], "widget-predict-question"))),
        "right": "abcd"[[answer.get("data-answer") for answer in answers].index("right")],
        "why": Markup(elements.inner(why).split("</strong>", 1)[1].strip()),
    }


def gather_solutions(chapter: Chapter) -> None:
    """Exercises are numbered; their solutions move to the chapter's end."""
    for number, exercise in enumerate(elements.find(chapter.article, "exercise"), 1):
        title = elements.first(exercise, "admonition-title")
        title.text = f"{number}. {title.text or ''}"
        for solution in elements.find(exercise, "solution"):
            anchor = f"{exercise.get('id')}-solution"
            solution_title = elements.text(solution[0])
            solution.remove(solution[0])
            chapter.answers.append({"of": f"Exercise {number}", "to": exercise.get("id"), "id": anchor, "why": Markup(elements.inner(solution)),
                                    "title": "" if solution_title == "Solution" else solution_title})
            elements.remove(exercise, lambda one: one is solution)
            exercise.append(elements.parse(f'<p class="to-answer"><a href="#{anchor}">Solution</a> at the end of the chapter</p>'))


# -- the page ------------------------------------------------------------------------------------------------------------
def sheets(site: Path) -> list[str]:
    """The style sheets of the course's pages, in their order, as a page one folder down names them."""
    found = re.findall(r'<link rel="stylesheet" href="([^"]+)"', (site / "index.html").read_text(encoding="utf-8"))
    return [f"../{sheet}" for sheet in found if not sheet.endswith("/home.css")]


def running_heads(chapters: list[Chapter]) -> str:
    """CSS that puts each chapter's title above its pages."""
    return "".join(f"@page {page_name(chapter)} {{ @top-right {{ content: {json.dumps(chapter.title, ensure_ascii=False)}; }} }}\n"
                   for chapter in chapters)


def page_name(chapter: Chapter) -> str:
    return f"chapter-{chapter.mark}"


def pages(site: Path) -> dict[str, str]:
    """File -> contents of the book's page and the running heads of its sheets."""
    templates = Environment(loader=FileSystemLoader([Path(__file__).parent, ROOT / "site" / "theme"]), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    still = templates.get_template("still.html")
    volumes = [(title, [read(site, name) for name in names]) for title, names in parts()]
    chapters = [chapter for _, several in volumes for chapter in several]
    names = {chapter.name for chapter in chapters}
    for chapter in chapters:
        lead_inside(chapter, names)
        draw_stills(chapter, lambda shown: still.render(it=shown))
        take_off_the_screen(chapter.article)
        gather_solutions(chapter)
        for answer in chapter.answers:
            answer["why"] = _on_paper(answer["why"])
        number_headings(chapter)
    page = templates.get_template("book.html").render(
        title="The course on paper", picture="course", home=public_home(), address=f"{public_home()}book/" if public_home() else "",
        description="All lessons with their figures, answers and solutions, and the reference pages, on one page to print.",
        volumes=volumes, sheets=sheets(site), page_name=page_name, version=version("system-ml"),
        licence=LICENCE, inner=lambda one: Markup(elements.inner(one)))
    return {"book/index.html": page, "book/running-heads.css": running_heads(chapters)}


def _on_paper(why: str) -> Markup:
    """An answer's text, which was taken out of the page before it was made ready for paper."""
    box = elements.parse(f"<div>{why}</div>")
    take_off_the_screen(box)
    return Markup(elements.inner(box))
