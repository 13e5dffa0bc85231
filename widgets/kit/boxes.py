"""Markdown extension: each box of a lesson (rule, property, where it breaks, exercise) has an address of its own.

`!!! rule "Rule: sixteen bytes a parameter"` is found at #rule-sixteen-bytes-a-parameter.
"""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as etree

from markdown import Extension
from markdown.treeprocessors import Treeprocessor

KINDS = ("rule", "property", "breaks", "exercise", "case")


def address(kind: str, title: str) -> str:
    """The anchor of a box, made of its kind and its title."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKD", title.removeprefix("Rule:").lower()))
    return "-".join([kind, *(word.encode("ascii", "ignore").decode() for word in words)]).strip("-")


class Addresses(Treeprocessor):
    """Gives every box its id."""

    def run(self, root: etree.Element) -> None:
        """Walk the page once; a title met again gets a number, as headings do."""
        seen: dict[str, int] = {}
        for box in root.iter("div"):
            kind = next((kind for kind in KINDS if kind in box.get("class", "").split()), None)
            if kind and "admonition" in box.get("class").split() and len(box):
                id = address(kind, "".join(box[0].itertext()))
                seen[id] = seen.get(id, 0) + 1
                box.set("id", id if seen[id] == 1 else f"{id}-{seen[id]}")


class Boxes(Extension):
    """Registers the walk behind the inline patterns, so that titles are whole."""

    def extendMarkdown(self, md) -> None:
        """Hook of Python-Markdown."""
        md.treeprocessors.register(Addresses(md), "boxes", 15)


def makeExtension(**options) -> Boxes:
    """Entry point of Python-Markdown."""
    return Boxes(**options)
