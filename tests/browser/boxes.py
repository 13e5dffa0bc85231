"""The boxes of a picture's texts: which lie on one another, which are cut, which a line goes through, and how an
account of them is kept and compared."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import NamedTuple

TOUCHING = 1.5  # pixels that two texts may share, and that a text's ink may reach past an edge
STRUCK = 3.0  # pixels of a line within the middle of a text that its words can bear
SAME = 6.0  # pixels by which a text may stand elsewhere on another machine: fonts are hinted differently
BOX = re.compile(r"^ *(-?\d+) +(-?\d+) +(-?\d+) +(-?\d+)  (.*)$")

Point = tuple[float, float]


class Seen(NamedTuple):
    """The part of a picture in which a text may be painted."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Text:
    """Words, the corners of their ink, and the frame that cuts them."""

    words: str
    corners: tuple[Point, ...]
    seen: Seen
    through: tuple[
        tuple[str, float], ...
    ] = ()  # lines and marks' edges seen in its middle: colour and pixels

    @cached_property
    def box(self) -> tuple[float, float, float, float]:
        xs, ys = zip(*self.corners)
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def hidden(self) -> bool:
        """Kept outside the picture on purpose, where a widget has no use for it."""
        left, top, right, bottom = self.box
        return (
            right <= self.seen.left + 1
            or left >= self.seen.right - 1
            or bottom <= self.seen.top + 1
            or top >= self.seen.bottom - 1
        )

    @property
    def cut(self) -> float:
        """How many pixels of it are missing at one side."""
        left, top, right, bottom = self.box
        return max(
            self.seen.left - left, self.seen.top - top, right - self.seen.right, bottom - self.seen.bottom
        )

    def __str__(self) -> str:
        left, top, right, bottom = self.box
        return f"“{self.words}” ({left:.0f}–{right:.0f}, {top:.0f}–{bottom:.0f})"


def read(noted: list[dict]) -> list[Text]:
    """The texts that can be seen, each once, from what the page noted (texts.js)."""
    texts = [
        Text(
            each["text"],
            tuple((x, y) for x, y in each["corners"]),
            Seen(*each["seen"]),
            tuple((line["style"], line["length"]) for line in each.get("through", ())),
        )
        for each in noted
    ]
    return list(dict.fromkeys(text for text in texts if not text.hidden))


def shared(one: Text, other: Text) -> float:
    """How deep two boxes, turned ones too, lie in one another: the least way on which they would part."""
    (left, top, right, bottom), (other_left, other_top, other_right, other_bottom) = one.box, other.box
    if left >= other_right or other_left >= right or top >= other_bottom or other_top >= bottom:
        return 0.0
    least = float("inf")
    for corners in (one.corners, other.corners):
        for (x0, y0), (x1, y1) in pairwise(corners[:3]):
            length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
            if not length:
                return 0.0
            across = ((x1 - x0) / length, (y1 - y0) / length)
            ends = [[x * across[0] + y * across[1] for x, y in each] for each in (one.corners, other.corners)]
            least = min(least, min(max(ends[0]), max(ends[1])) - max(min(ends[0]), min(ends[1])))
    return max(0.0, least)


def faults(texts: list[Text]) -> list[str]:
    """In words: what is cut and what lies on something else."""
    cut = [f"{text} is cut by {text.cut:.0f} px of {text.seen}" for text in texts if text.cut > TOUCHING]
    over = [
        f"{one} lies on {other}" for one, other in combinations(texts, 2) if shared(one, other) > TOUCHING
    ]
    return cut + over


def struck(texts: list[Text], unseen: Container[str] = ()) -> list[str]:
    """In words: through what a line goes, unless it is of a colour that does not disturb, such as the grid's."""
    return [
        f"{text} is struck through by {pixels:.0f} px of {colour}"
        for text in texts
        for colour, pixels in text.through
        if pixels > STRUCK and colour not in unseen
    ]


# -- an account that is kept ---------------------------------------------------------------------------------
Account = list[tuple[str, list[int]]]  # words and the sides of their box, from top to bottom


def account(texts: list[Text]) -> Account:
    found = [(text.words, [round(side) for side in text.box]) for text in texts]
    return sorted(found, key=lambda each: (each[1][1], each[1][0]))


def differences(kept: Account, now: Account) -> list[str]:
    """In words, what is said elsewhere than it was, or said no longer, or said anew."""
    found = []
    for words in dict.fromkeys(words for words, _ in (*kept, *now)):
        before, after = ([box for said, box in each if said == words] for each in (kept, now))
        for old in list(before):
            near = min(after, key=lambda box: distance(old, box), default=None)
            if near and distance(old, near) <= SAME:
                before.remove(old)
                after.remove(near)
        found += [f"- {line(words, box)}" for box in before] + [f"+ {line(words, box)}" for box in after]
    return found


def distance(one: list[int], other: list[int]) -> float:
    return max(abs(a - b) for a, b in zip(one, other))


def line(words: str, box: list[int]) -> str:
    return "{:4} {:4} {:4} {:4}  {}".format(*box, words)


def written(accounts: dict[str, Account]) -> str:
    """The file of a widget: under the name of each picture its texts; left, top, right and bottom of each."""
    return "\n".join(
        f"{name}\n" + "".join(f"{line(*each)}\n" for each in found) for name, found in accounts.items()
    )


def parsed(text: str) -> dict[str, Account]:
    found: dict[str, Account] = {}
    name = ""
    for row in text.splitlines():
        if match := BOX.match(row):
            found[name].append((match[5], [int(side) for side in match.groups()[:4]]))
        elif row:
            name = row
            found[name] = []
    return found


# what of a page lies under the list of its contents
UNDER_THE_CONTENTS = """async () => {
  const list = document.querySelector(".md-sidebar--secondary"), edge = list?.querySelector(".md-nav")?.getBoundingClientRect();
  if (!edge?.width) return [];
  for (const fold of document.querySelectorAll("article details")) fold.open = !fold.closest("figure");
  const settled = () => new Promise(done => setTimeout(done, 250));
  await settled();
  // what of an element can be seen: boxes that scroll or clip it end it
  const right = element => {
    let end = element.getBoundingClientRect().right;
    for (let box = element.parentElement; box; box = box.parentElement) {
      if (getComputedStyle(box).overflowX !== "visible") end = Math.min(end, box.getBoundingClientRect().right);
    }
    return end;
  };
  const parts = [...document.querySelectorAll("article :is(table, .math, figure, pre, svg, img)")]
    .filter(part => !part.parentElement.closest("figure"));  // a figure is one thing
  const found = [];
  for (const part of parts) {
    if (!part.checkVisibility() || right(part) <= edge.left + 1) continue;
    scrollTo(0, part.getBoundingClientRect().top + scrollY - 120);
    for (let tries = 0; tries < 20 && getComputedStyle(list).visibility !== "hidden"; tries++) await settled();
    if (getComputedStyle(list).visibility !== "hidden") {
      found.push(`${part.tagName} ${part.textContent.trim().slice(0, 50)}`);
    }
  }
  return found;
}"""
