"""Markdown extension: "lesson 05" and "lessons 05, 07 and 10" lead to those lessons, wherever they stand in running text.

A number leads to the file of lessons/ that begins with it; one that has no file yet stays text.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from functools import cache

from markdown import Extension
from markdown.treeprocessors import Treeprocessor

from widgets.kit import running_text
from widgets.kit.locate import LESSONS

NAMED = re.compile(r"\b[Ll]essons?\s+\d\d(?:(?:,|\s+and|\s+or|\s+to|,\s+and)\s+\d\d)*\b(?!\s*[%.]?\d)")
NUMBER = re.compile(r"(?:[Ll]essons?\s+)?\d\d")


@cache
def _files() -> dict[str, str]:
    return {path.name[:2]: path.name for path in sorted(LESSONS.glob("[0-9][0-9]-*.md"))}


def addresses() -> dict[str, str]:
    """Number -> the lesson's folder on the site."""
    return {number: name.removesuffix(".md") for number, name in _files().items()}


@cache
def _title(name: str) -> str:
    return re.search(r"^# (.+)$", (LESSONS / name).read_text(encoding="utf-8"), re.MULTILINE)[1]


def named(text: str):
    """(start, end, link) of each lesson that a text names."""
    for several in NAMED.finditer(text):
        for one in NUMBER.finditer(text, *several.span()):
            if name := _files().get(one[0][-2:]):
                yield *one.span(), etree.Element("a", {"class": "term", "href": name, "title": _title(name)})


class Links(Treeprocessor):
    """Turns what names a lesson into a link to it."""

    def run(self, root: etree.Element) -> None:
        """Everywhere on the page."""
        running_text.link(root, named)


class CrossReferences(Extension):
    """Registers the links behind the inline patterns and before mkdocs turns links to files into addresses."""

    def extendMarkdown(self, md) -> None:
        """Hook of Python-Markdown."""
        md.treeprocessors.register(Links(md), "crossrefs", 17)


def makeExtension(**options) -> CrossReferences:
    """Entry point of Python-Markdown."""
    return CrossReferences(**options)
