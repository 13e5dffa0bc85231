"""Markdown extension: a lesson's first use of a glossary word links to its entry.

The words are the `###` headings of lessons/glossary.md; `data-also="a|b"` lists other forms, and
`data-in="15|17"` the only lessons in which a word has this meaning. Capitals within a word (AllReduce, MFU)
must match, others need not; plurals count. Headings, links, code, formulas and boxes' titles are left alone,
and so is a page with the line `<!-- glossary: not linked here -->`.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markdown import Extension
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from course import lessons
from course.lessons import LESSONS
from course.links import running_text
from course.matches import there

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from markdown.core import Markdown

PAGE = LESSONS / "glossary.md"
NOT_HERE = "<!-- glossary: not linked here -->"
ENTRY = re.compile(
    r'^### (?P<word>[^{\n]+?)(?: \{:(?: data-also="(?P<also>[^"]*)")?(?: data-in="(?P<only>[^"]*)")? '
    r"\})?\n\n(?P<text>(?:.+\n)+)",
    re.MULTILINE,
)
FIRST = re.compile(r"[\[\\]?(.)")  # finds the first letter of a form's pattern, which may be of either case


@dataclass(frozen=True)
class Entry:
    """One word, its other forms, the lessons that use it in this sense (all if none are listed), its anchor,
    and its text without formatting."""

    word: str
    also: tuple[str, ...]
    only: tuple[str, ...]
    anchor: str
    text: str

    @property
    def pattern(self) -> str:
        """The pattern to search for in a text, longest form first."""
        forms = sorted(
            {form for name in (self.word, *self.also) for form in (name, name + "s")}, key=len, reverse=True
        )
        return "|".join(_either_case(form) for form in forms)


def _either_case(form: str) -> str:
    """The form as written; if only its first letter, or none, is a capital, the beginning may be of either
    case."""
    first, rest = form[0], r"\s+".join(re.escape(word) for word in form[1:].split(" "))
    if first.isalpha() and form[1:] == form[1:].lower():
        return f"[{first.lower()}{first.upper()}]{rest}"
    return re.escape(first) + rest


def slug(word: str) -> str:
    """The anchor that the table of contents gives a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", word).strip().lower())


def plain(markdown: str) -> str:
    """An entry's text without links to lessons and without formatting."""
    without_links = re.sub(r",?\s*\[[^\]]*\]\([^)]*\)", "", " ".join(markdown.split()))
    return re.sub(r"[$*`]|\\(?=[a-z])", "", without_links).strip()


@cache
def entries() -> tuple[Entry, ...]:
    """All entries of the glossary, in its order; none where there is no such page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return tuple(
        Entry(
            found["word"],
            _several(found["also"]),
            _several(found["only"]),
            slug(found["word"]),
            plain(found["text"]),
        )
        for found in ENTRY.finditer(text)
    )


def _several(text: str | None) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()


def meant_in(lesson: str) -> set[int]:
    """The indices of the entries that a lesson's words may link to; all of them for an unknown page."""
    return {
        number
        for number, entry in enumerate(entries())
        if not (entry.only and lesson) or lesson in entry.only
    }


@cache
def _any_word() -> re.Pattern:
    """One pattern for all words: the longest form wins where several begin at the same place. Words with the
    same first letter are grouped after a lookahead for that letter, because most of a text is other words."""
    named = sorted(
        ((form, number) for number, entry in enumerate(entries()) for form in entry.pattern.split("|")),
        key=lambda f: -len(f[0]),
    )
    alike: dict[str, list[str]] = {}
    for i, (form, number) in enumerate(named):
        first = there(FIRST.match(form), f"the first letter of {form!r}")[1]
        alike.setdefault(first.lower(), []).append(f"(?P<e{i}_{number}>{form})")
    groups = "|".join(f"(?=(?i:{re.escape(first)}))(?:{'|'.join(forms)})" for first, forms in alike.items())
    return re.compile(rf"(?<![\w-])(?:{groups})(?![\w-])")


class Mark(Preprocessor):
    """Checks whether the page wants no links."""

    def run(self, lines: list[str]) -> list[str]:
        """The lines, unchanged."""
        page: Any = self.md
        page.glossary_wanted = NOT_HERE not in (line.strip() for line in lines)
        return lines


class Links(Treeprocessor):
    """Turns the first use of each word into a link."""

    def run(self, root: etree.Element) -> None:
        """Words are ticked off in reading order."""
        if entries() and getattr(self.md, "glossary_wanted", True):
            lesson = lessons.current()
            self.left = meant_in(lesson.number if lesson else "")
            running_text.link(root, self.first_uses)

    def first_uses(self, text: str) -> Iterator[tuple[int, int, Element]]:
        """(start, end, link) of each word that has not occurred on this page yet."""
        for found in _any_word().finditer(text):
            number = int(found.lastgroup.split("_")[1])
            if number in self.left:
                self.left.discard(number)
                entry = entries()[number]
                yield (
                    *found.span(),
                    etree.Element(
                        "a", {"class": "term", "href": f"glossary.md#{entry.anchor}", "title": entry.text}
                    ),
                )


class Glossary(Extension):
    """Registers the links behind the inline patterns and before mkdocs turns links to files into
    addresses."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Hook of Python-Markdown."""
        md.preprocessors.register(Mark(md), "glossary", 100)
        md.treeprocessors.register(Links(md), "glossary", 16)


def makeExtension(**options: dict) -> Glossary:
    """Entry point of Python-Markdown."""
    return Glossary(**options)
