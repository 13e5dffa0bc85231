"""HTML as a tree and back, for pages that this site has generated itself, in which every element is
closed."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

Element = etree.Element
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class _Builder(HTMLParser):
    """Builds a tree; of all errors it tolerates only a stray end tag."""

    def __init__(self) -> None:
        super().__init__()
        self.tree, self.open = etree.TreeBuilder(), []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.tree.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        self.tree.end(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.open:
            return
        while self.open:
            last = self.open.pop()
            self.tree.end(last)
            if last == tag:
                break

    def handle_data(self, data: str) -> None:
        if self.open:
            self.tree.data(data)


def parse(html: str) -> Element:
    """The tree of one element's HTML."""
    builder = _Builder()
    builder.feed(html)
    return builder.tree.close()


def html(element: Element) -> str:
    """The element as HTML, without the text after it."""
    tail, element.tail = element.tail, None
    written = etree.tostring(element, encoding="unicode", method="html")
    element.tail = tail
    return written


def inner(element: Element) -> str:
    """The contents of the element, as HTML."""
    opened = html(element)
    return opened[opened.index(">") + 1 : opened.rindex("<")]


def text(element: Element) -> str:
    """The element's words."""
    return " ".join("".join(element.itertext()).split())


def classes(element: Element) -> set[str]:
    """The classes of an element."""
    return set(element.get("class", "").split())


def find(root: Element, *names: str) -> list[Element]:
    """All elements in the tree, root included, that have any of these classes."""
    return [element for element in root.iter() if classes(element) & set(names)]


def first(root: Element, name: str) -> Element:
    """The first element that has this class."""
    return next(element for element in root.iter() if name in classes(element))


def remove(root: Element, unwanted: Callable[[Element], Any]) -> None:
    """Removes every element for which ``unwanted`` is true from the tree; the text after it stays."""
    for parent in list(root.iter()):
        for child in list(parent):
            if unwanted(child):
                replace(parent, child, [])


def replace(parent: Element, child: Element, others: list[Element]) -> None:
    """Replaces a child by other elements; the text after it stays after them."""
    at, tail = list(parent).index(child), child.tail or ""
    child.tail = None
    parent[at : at + 1] = others
    if others:
        others[-1].tail = tail
    elif at:
        parent[at - 1].tail = (parent[at - 1].tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail


def parents(root: Element) -> dict[Element, Element]:
    """Child -> parent, for the whole tree."""
    return {child: parent for parent in root.iter() for child in parent}
