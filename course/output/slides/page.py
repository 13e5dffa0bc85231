"""The page of a deck of slides, made from the lesson's page."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path
from urllib.parse import urljoin

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from course import html_tree, lessons, settings
from course.html_tree import Element
from course.lessons import Lesson
from course.output import book
from course.output.slides.chosen import Slide, of_lesson
from widgets.kit.page import module
from widgets.kit.page.cache import digest, kept
from widgets.kit.widget import all_widgets

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
SHEETS = ("tokens.css", "type.css", "looks.css", "diagram.css", "slides.css")


def prepared(article: Element, lesson: Lesson) -> Element:
    """A page's article without the marks that work only on the page itself. Its links are changed to lead to
    the same places from one folder further down."""
    html_tree.remove(article, lambda one: html_tree.classes(one) & {"headerlink", "given"})
    for element in article.iter():
        if html_tree.classes(element) & book.SENTENCES:
            element.tag, element.attrib = "span", {}
        elif "href" in element.attrib:
            element.set("href", _address(urljoin(f"{book.HERE}{lesson.address}", element.get("href"))))
        for key in ("data-expr", "data-says"):
            element.attrib.pop(key, None)
        if element.get("role") == "note":
            del element.attrib["role"], element.attrib["tabindex"]
    return article


def _address(where: str) -> str:
    return f"../../{where.removeprefix(book.HERE)}" if where.startswith(book.HERE) else where


@cache
def _template():
    loader = FileSystemLoader([TEMPLATES, TEMPLATES.parents[2] / "site" / "theme"])
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(
        "slides.html"
    )


def page(html: str, lesson: Lesson) -> str:
    """The page of a lesson's slides, made from the lesson's built page; it is cached until that page or its
    widgets change."""
    article, description = book.article_of(html, lesson.name)
    shown = sorted(set(re.findall(r'data-widget="(\w+)"', article)))
    widgets = chain(*(module.depends_on(all_widgets()[slug]) for slug in shown))
    part = next(title for title, names in book.parts() if lesson.name in names)
    template = (TEMPLATES / "slides.html").read_text(encoding="utf-8")
    name = f"slides.{digest(article, description, part, settings.public_home(), template)}"

    def made() -> bytes:
        slides = of_lesson(lesson, prepared(html_tree.parse(article), lesson), part.split(" · ")[0])
        return _written(lesson, slides, str(Markup(description).unescape())).encode()

    return kept(name, made, (__name__, *widgets)).decode()


def _written(lesson: Lesson, slides: list[Slide], description: str) -> str:
    home = settings.public_home()
    return _template().render(
        title=f"Slides: {lesson.title}",
        description=f"Slides for a class. {description}",
        home=home,
        address=f"{home}{lesson.slides}" if home else "",
        picture=lesson.name,
        lesson=lesson,
        slides=slides,
        sheets=SHEETS,
    )


def pages(site: Path) -> dict[str, str]:
    """File -> contents of every lesson's deck, from the built site."""
    return {
        f"{lesson.slides}index.html": page(
            (site / lesson.name / "index.html").read_text(encoding="utf-8"), lesson
        )
        for lesson in lessons.numbered()
    }
