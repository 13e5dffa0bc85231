"""Boxes quoted from the lessons on a page that collects them: found in the source, formatted as in the
lesson."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from markdown import Markdown
from markupsafe import Markup

from course import lessons, settings
from course.lessons import LESSONS, Lesson

LINK = re.compile(r"\]\(([\w-]+)\.md(#[\w-]*)?\)")
# extensions for a box's address, a word's first use, links that only mkdocs resolves, names given on the page
OF_A_LESSON = ("course.links.boxes", "course.links.glossary", "course.links.crossrefs", "course.given")


@cache
def _converter() -> Markdown:
    """A converter like that of a lesson, without what only works within it."""
    names, options = settings.extensions()
    return Markdown(extensions=[name for name in names if name not in OF_A_LESSON], extension_configs=options)


def html(source: str, of: Lesson | None) -> Markup:
    """A piece of a lesson's Markdown on another page: names given by the lesson keep their meaning, and links
    to lessons are relative to this page."""
    with lessons.on(of):
        linked = LINK.sub(lambda link: f"](../{link[1]}/{link[2] or ''})", source)
        return Markup(_converter().reset().convert(linked))


def line(source: str, of: Lesson | None) -> Markup:
    """The HTML of a paragraph of a lesson on another page, without the ``p`` element around it."""
    return Markup(html(source, of).removeprefix("<p>").removesuffix("</p>"))


def lessons_with(kind: str, folder: Path = LESSONS) -> list[Lesson]:
    """Every lesson that has boxes of this kind, by number."""
    return [lesson for lesson in lessons.numbered(folder) if lesson.boxes(kind)]
