"""Boxes taken out of the lessons for a page that gathers them: found in the source, set as the lesson sets them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown import Markdown
from markupsafe import Markup
from mkdocs.config import load_config

from widgets.kit import boxes
from widgets.kit.locate import LESSONS

BOX = re.compile(r'^!!! (?P<kind>\w+) "(?P<title>.+)"\n(?P<body>(?:\n|    .*\n)+)', re.MULTILINE)
LINK = re.compile(r"\]\(((?:\d\d-)?[\w-]+)\.md(#[\w-]*)?\)")
# a box's own address, a word's first use, links that only mkdocs resolves
OF_A_LESSON = ("widgets.kit.boxes", "widgets.kit.glossary", "widgets.kit.crossrefs")


@dataclass(frozen=True)
class Box:
    """One box: its title without its kind, its anchor in the lesson, its text as Markdown."""

    title: str
    anchor: str
    source: str

    @property
    def html(self) -> Markup:
        """The box's text as its lesson shows it."""
        return html(self.source)


@dataclass(frozen=True)
class Lesson:
    """A lesson's file name without its ending, its title with its number, and its boxes of one kind."""

    name: str
    title: str
    boxes: tuple[Box, ...]


@cache
def _converter() -> Markdown:
    """As mkdocs converts a lesson, but for what belongs to the lesson alone."""
    config = load_config(str(LESSONS.parent / "mkdocs.yml"))
    return Markdown(extensions=[name for name in config.markdown_extensions if name not in OF_A_LESSON], extension_configs=config.mdx_configs)


def html(source: str) -> Markup:
    """A piece of a lesson's Markdown on another page: links to lessons lead there from it."""
    return Markup(_converter().reset().convert(LINK.sub(lambda link: f"](../{link[1]}/{link[2] or ''})", source)))


def line(source: str) -> Markup:
    """The same for one paragraph, without its element."""
    return Markup(html(source).removeprefix("<p>").removesuffix("</p>"))


def boxes_in(text: str, kind: str) -> tuple[Box, ...]:
    """The boxes of a kind in a lesson's source, in their order."""
    return tuple(Box(found["title"].removeprefix("Rule: "), boxes.address(kind, found["title"]),
                     re.sub(r"^    ", "", found["body"], flags=re.MULTILINE).strip() + "\n")
                 for found in BOX.finditer(text) if found["kind"] == kind)


def lessons_with(kind: str, folder: Path = LESSONS) -> list[Lesson]:
    """Every lesson that has such boxes, by number."""
    found = []
    for path in sorted(folder.glob("[0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        if has := boxes_in(text, kind):
            found.append(Lesson(path.stem, f"{path.stem[:2]} {re.search(r'^# (.+)$', text, re.MULTILINE)[1]}", has))
    return found
