"""How long a page takes to read, counted on its built page and put where the pages' templates ask for it.

A template cannot count it, because it sees the text of its own page alone. It writes ``<!-- minutes A/
B/ -->`` for what these pages take together, or ``hours``, and ``filled`` puts the number there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

A_MINUTE = 200  # words
OF_A_FIGURE, OF_A_FORMULA = 1.5, 1 / 3  # minutes
EXERCISES = '<h2 id="exercises"'
FIGURE, FORMULA = 'data-widget="', '<div class="math"'
# Not read in order, or not at all: folds, puzzles, which are exercises, and the small print under a rule.
APART = (
    ("<script", "</script>"),
    ('<figure class="widget"', "</figure>"),
    ("<details", "</details>"),
    ("<math", "</math>"),
    ("<svg", "</svg>"),
    ('<ul class="diagram-words"', "</ul>"),
    ('<section class="puzzle"', "</section>"),
    ('<p class="held"', "</p>"),
    ('<p class="kicker"', "</p>"),
)
ARTICLE = re.compile(r"<article[^>]*>(.*)</article>", re.DOTALL)
ASKED = re.compile(r"<!-- (minutes|hours) ([^>]*?) *-->")
TAG = re.compile(r"<[^>]*>")


def minutes(page: str) -> int:
    """Minutes up to the exercises of a built page: its words, displayed formulas and figures."""
    found = ARTICLE.search(page)
    read = (found[1] if found else page).partition(EXERCISES)[0]
    left = read
    for opening, closing in APART:
        left = _without(left, opening, closing)
    words = len(unescape(TAG.sub("", left)).split())
    figures, formulas = read.count(FIGURE), left.count(FORMULA)
    return max(1, round(words / A_MINUTE + OF_A_FIGURE * figures + OF_A_FORMULA * formulas))


def _without(text: str, opening: str, closing: str) -> str:
    """A text without each element of one kind; of nested ones the innermost end counts."""
    first, *others = text.split(opening)
    return " ".join([first, *(closing.join(each.split(closing)[1:]) for each in others)])


def filled(page: str, read: Callable[[str], int]) -> str:
    """A page with its reading times; ``read`` gives the minutes of the page at an address."""

    def counted(asked: re.Match[str]) -> str:
        whole = sum(read(address) for address in asked[2].split())
        return str(whole if asked[1] == "minutes" else round(whole / 60))

    return ASKED.sub(counted, page)


class Times:
    """The minutes of a site's pages, each counted when it is first asked for. ``sites`` are folders, and a
    page is taken from the first that has it."""

    def __init__(self, *sites: Path) -> None:
        self.sites, self.known = sites, {}

    def __call__(self, address: str) -> int:
        """The minutes of the page at this address."""
        if address not in self.known:
            pages = [site / address / "index.html" for site in self.sites]
            page = next(page for page in pages if page.is_file())
            self.known[address] = minutes(page.read_text(encoding="utf-8"))
        return self.known[address]

    def fill(self, page: Path) -> None:
        """Write its reading times into a page, if it asks for any."""
        text = page.read_text(encoding="utf-8")
        if ASKED.search(text):
            page.write_text(filled(text, self), encoding="utf-8")
