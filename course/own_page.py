"""A widget's own page, which is cached until something that it is made from changes."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from course import lessons, widget_html
from course.fences import widget as fence
from widgets.kit.page.cache import digest, kept
from widgets.kit.widget import all_widgets

THEME = Path(__file__).resolve().parents[1] / "site" / "theme"
SHEETS = ("tokens.css", "type.css", "widget.css", "alone.css")


@cache
def _places() -> dict[str, list[tuple[str, str]]]:
    """Widget -> (address, title) of every page of the course that shows it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for page in lessons.pages():
        for slug in dict.fromkeys(page.widgets):
            found.setdefault(slug, []).append((f"../{page.address}#w-{slug}", page.title))
    return found


def lessons_with(slug: str) -> list[tuple[str, str]]:
    """(address, title) of every lesson that shows a widget."""
    return _places().get(slug, [])


@cache
def _template():
    folders = [Path(__file__).parent / "templates", THEME]
    return Environment(loader=FileSystemLoader(folders), autoescape=True).get_template("alone.html")


def own_page(slug: str, home: str) -> str:
    """The page of a widget; ``home`` is where the course is published, if that is known."""
    partials = [path.read_text(encoding="utf-8") for path in sorted((THEME / "partials").glob("*.html"))]
    name = f"{slug}.page.{digest(json.dumps(lessons_with(slug)), home, *partials)}"
    modules = __name__, *fence.depends_on(f"name: {slug}\n")
    return kept(name, lambda: _written(slug, home).encode(), modules).decode()


def _written(slug: str, home: str) -> str:
    widget, shown_in = all_widgets()[slug](), lessons_with(slug)
    of_a_lesson = re.match(r"\.\./(\d\d[a-z]?-[\w-]+)/", shown_in[0][0]) if shown_in else None
    return _template().render(
        title=widget.question,
        description=widget.shown()["summary"],
        lessons=shown_in,
        sheets=SHEETS,
        home=home,
        address=f"{home}{slug}/" if home else "",
        picture=of_a_lesson[1] if of_a_lesson else "course",
        figure=widget_html.figure(widget, f"w-{slug}", level=2),
    )
