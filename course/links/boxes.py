"""Markdown extension: each box of a lesson (rule, property, where it breaks, exercise) gets its own address,
and a rule that the engine holds against its models ends with how far off it is.

`!!! rule "Rule: sixteen bytes a parameter"` gets the address #rule-sixteen-bytes-a-parameter.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from typing import TYPE_CHECKING

from markdown import Extension
from markdown.treeprocessors import Treeprocessor

from course import lessons
from course.lessons import box_address
from engine import rules
from engine.base import units

if TYPE_CHECKING:
    from markdown.core import Markdown

HELD = "held"  # the class of a rule's small print
KINDS = ("rule", "property", "breaks", "exercise", "case")


def small_print(lesson: lessons.Lesson | None, anchor: str) -> str:
    """The sentence about how far off this rule of a lesson is, and in which domain; "" for a rule without a
    model to compare it with."""
    said = rules.sentences(lesson.name, anchor) if lesson else ""
    return units.unbroken(said).replace("'", "’")


class Addresses(Treeprocessor):
    """Gives every box its id, and a rule its small print."""

    def run(self, root: etree.Element) -> None:
        """Walk the page once; a repeated title gets a number, as headings do."""
        seen: dict[str, int] = {}
        for box in root.iter("div"):
            classes = box.get("class", "").split()
            kind = next((kind for kind in KINDS if kind in classes), None)
            if kind and "admonition" in classes and len(box):
                address = box_address(kind, "".join(box[0].itertext()))
                seen[address] = seen.get(address, 0) + 1
                box.set("id", address if seen[address] == 1 else f"{address}-{seen[address]}")
                if kind == "rule" and (said := small_print(lessons.current(), address)):
                    etree.SubElement(box, "p", {"class": HELD, "data-search-exclude": ""}).text = said


class Boxes(Extension):
    """Registers the walk after the inline patterns, when titles are complete."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Hook of Python-Markdown."""
        md.treeprocessors.register(Addresses(md), "boxes", 15)


def makeExtension(**options: dict) -> Boxes:
    """Entry point of Python-Markdown."""
    return Boxes(**options)
