"""HTML as a tree and back, for pages that this site has written itself: every element is closed there."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from html.parser import HTMLParser

Element = etree.Element
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class _Builder(HTMLParser):
    """Feeds a tree, and is lenient towards a stray end tag only."""

    def __init__(self):
        super().__init__()
        self.tree, self.open = etree.TreeBuilder(), []

    def handle_starttag(self, tag, attrs):
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.tree.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        self.tree.end(tag)

    def handle_endtag(self, tag):
        if tag not in self.open:
            return
        while self.open:
            last = self.open.pop()
            self.tree.end(last)
            if last == tag:
                break

    def handle_data(self, data):
        if self.open:
            self.tree.data(data)


def parse(html: str) -> Element:
    """The tree of one element's HTML."""
    builder = _Builder()
    builder.feed(html)
    return builder.tree.close()


def html(element: Element) -> str:
    """The element as HTML, without what stands behind it."""
    tail, element.tail = element.tail, None
    written = etree.tostring(element, encoding="unicode", method="html")
    element.tail = tail
    return written


def inner(element: Element) -> str:
    """What stands inside the element, as HTML."""
    opened = html(element)
    return opened[opened.index(">") + 1:opened.rindex("<")]


def text(element: Element) -> str:
    """The element's words."""
    return " ".join("".join(element.itertext()).split())


def classes(element: Element) -> set[str]:
    return set(element.get("class", "").split())


def find(root: Element, *names: str) -> list[Element]:
    """All elements in the tree, root included, that have any of these classes."""
    return [element for element in root.iter() if classes(element) & set(names)]


def first(root: Element, name: str) -> Element:
    """The first element that has this class."""
    return next(element for element in root.iter() if name in classes(element))


def remove(root: Element, unwanted) -> None:
    """Takes every element for which ``unwanted`` is true out of the tree; the text behind it stays."""
    for parent in list(root.iter()):
        for child in list(parent):
            if unwanted(child):
                replace(parent, child, [])


def replace(parent: Element, child: Element, others: list[Element]) -> None:
    """Puts other elements where a child stood; the text behind it stays behind them."""
    at, tail = list(parent).index(child), child.tail or ""
    child.tail = None
    parent[at:at + 1] = others
    if others:
        others[-1].tail = tail
    elif at:
        parent[at - 1].tail = (parent[at - 1].tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail


def parents(root: Element) -> dict[Element, Element]:
    """Child -> parent, for the whole tree."""
    return {child: parent for parent in root.iter() for child in parent}
