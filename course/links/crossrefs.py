"""Markdown extension: "lesson 05" and "lessons 05, 07 and 10" become links to those lessons, anywhere in
running text.

A number links to the file of lessons/ that begins with it; without such a file it stays text.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from typing import TYPE_CHECKING

from markdown import Extension
from markdown.treeprocessors import Treeprocessor

from course import lessons
from course.lessons import Lesson
from course.links import running_text

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from markdown.core import Markdown

ONE = r"\d\d[a-z]?"
NAMED = re.compile(rf"\b[Ll]essons?\s+{ONE}(?:(?:,|\s+and|\s+or|\s+to|,\s+and)\s+{ONE})*\b(?!\s*[%.]?\d)")
NUMBER = re.compile(rf"(?:[Ll]essons?\s+)?(?P<number>{ONE})\b")


def named(text: str, known: dict[str, Lesson]) -> Iterator[tuple[int, int, Element]]:
    """(start, end, link) of each lesson that a text names; ``known`` are the lessons by number."""
    for several in NAMED.finditer(text):
        for one in NUMBER.finditer(text, *several.span()):
            if lesson := known.get(one["number"]):
                about = {"class": "term", "href": f"{lesson.name}.md", "title": lesson.title}
                yield *one.span(), etree.Element("a", about)


class Links(Treeprocessor):
    """Turns mentions of lessons into links."""

    def run(self, root: etree.Element) -> None:
        """Everywhere on the page."""
        known = {lesson.number: lesson for lesson in lessons.numbered()}
        running_text.link(root, lambda text: named(text, known))


class CrossReferences(Extension):
    """Registers the links after the inline patterns and before mkdocs turns links to files into addresses."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Hook of Python-Markdown."""
        md.treeprocessors.register(Links(md), "crossrefs", 17)


def makeExtension(**options: dict) -> CrossReferences:
    """Entry point of Python-Markdown."""
    return CrossReferences(**options)
