"""Finds the ends of sentences in a paragraph that contains links, numbers and formulas, and splits the
paragraph at one of them."""

from __future__ import annotations

import re

from course import html_tree
from course.html_tree import Element

END = re.compile(r"[.?!:][”’)]?(?=\s+[“‘(]?[A-Z0-9]|\s*$)")


def words(element: Element) -> int:
    """The number of words in an element; a formula counts as one."""
    return len(re.sub(r"\s+", " ", _spoken(element)).split())


def _spoken(element: Element) -> str:
    if element.tag == "math":
        return " x "
    return (element.text or "") + "".join(_spoken(child) + (child.tail or "") for child in element)


def ends(element: Element) -> list[tuple[int, int, int]]:
    """(child, offset, words up to there) for each end of a sentence that lies outside its children: in its
    own text (child 0) or in what follows its first, second, … child."""
    found, count, before = [], 0, ""
    texts = [element.text or "", *(child.tail or "" for child in element)]
    for at, text in enumerate(texts):
        if at:
            count += max(1, words(element[at - 1]))
            before += html_tree.text(element[at - 1])
        following = element[at] if at < len(element) else Element("br")
        for end in END.finditer(text):
            runs_on = at < len(element) and not text[end.end() :].strip()
            said = before + text[: end.end()]
            if said.count("(") > said.count(")") or (
                runs_on and not (text[end.end() :] and _begins(following))
            ):
                continue
            found.append((at, end.end(), count + len(text[: end.end()].split())))
        count += len(text.split())
        before += text
    return found


def _begins(element: Element) -> bool:
    """Whether a sentence can begin with this text."""
    said = html_tree.text(element)
    return element.tag == "math" or not said or not said[0].islower()


def parted(element: Element, most: int) -> tuple[Element, Element | None]:
    """A paragraph split in two: the first sentences, at least one and at most ``most`` words in all, and the
    others, if there are any."""
    places = ends(element)
    fitting = [place for place in places if place[2] <= most]
    if not places or (fitting and fitting[-1] == places[-1]) or words(element) <= most:
        return element, None
    at, offset, _ = (fitting or places)[-1 if fitting else 0]
    lead, rest = (html_tree.parse(html_tree.html(element)) for _ in range(2))
    _cut(lead, at, offset, after=True)
    _cut(rest, at, offset, after=False)
    return (lead, rest) if html_tree.text(rest) else (element, None)


def _cut(element: Element, at: int, offset: int, *, after: bool) -> None:
    """Remove what comes after a place in an element, or else what comes before it."""
    holder = element if at == 0 else element[at - 1]
    text = (element.text if at == 0 else holder.tail) or ""
    kept = text[:offset] if after else text[offset:].lstrip()
    if after:
        if at:
            holder.tail = kept
        else:
            element.text = kept
        for child in list(element)[at:]:
            element.remove(child)
    else:
        for child in list(element)[:at]:
            element.remove(child)
        element.text = kept
