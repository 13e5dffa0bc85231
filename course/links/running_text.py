"""Inserts links into running text after Markdown has parsed it, but not into headings, links, code, formulas
or boxes' titles."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections.abc import Callable, Iterable

from markdown.util import AtomicString

LEFT_ALONE = {"a", "code", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "math", "summary", "button", "figure"}

# A function from a text to (start, end, link) for each piece that becomes a link, in order. The words of a
# link are those of its piece.
Finder = Callable[[str], Iterable[tuple[int, int, etree.Element]]]


def link(root: etree.Element, find: Finder) -> None:
    """Walk the page in reading order and put the links in."""
    if root.tag in LEFT_ALONE or "admonition-title" in root.get("class", ""):
        return
    children = list(root)
    before, links = _linked(root.text, find)
    if links:
        root.text = before
        for at, each in enumerate(links):
            root.insert(at, each)
    for child in children:
        link(child, find)
        before, links = _linked(child.tail, find)
        if links:
            child.tail = before
            at = list(root).index(child)
            for offset, each in enumerate(links, 1):
                root.insert(at + offset, each)


def _linked(text: str | None, find: Finder) -> tuple[str, list[etree.Element]]:
    """The text before the first link, and the links, each with the text after it as its tail."""
    if not text or isinstance(text, AtomicString) or not text.strip():
        return text or "", []
    links, before, at = [], text, 0
    for start, end, made in find(text):
        if links:
            links[-1].tail = text[at:start]
        else:
            before = text[:start]
        made.text = text[start:end]
        links.append(made)
        at = end
    if links:
        links[-1].tail = text[at:]
    return before, links
