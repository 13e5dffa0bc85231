"""Puts a step that is read once into the line that reads it.

A page loads every step of a widget's graph. A value with a name of its own costs this name twice, and in a
packed module most of the bytes are names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

NAME = re.compile(r"\b[a-z]+\d+\b")
LONGEST = 600  # characters; browsers do not optimize expressions that are nested too deeply
CALL = re.compile(r"[\w.$]+(?=\()")
OF_A_STEP = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.$])([ves])(\d+)\b')  # outside of texts
STAYS = re.compile(r"stop\(|=>|^\[|^\{")  # may end the computation, or makes a new object each time


def inlined(steps: Iterable[tuple[str, str]], kept: Collection[str]) -> list[tuple[str, str]]:
    """The steps (name, code) of a run of lines, where each step that another one reads exactly once is
    written into that one. Steps come after what they read. Only the ``kept`` ones may be read from
    elsewhere."""
    steps = list(steps)
    uses = Counter(name for _, code in steps for name in NAME.findall(code))
    waiting: dict[str, str] = {}
    left = []
    for name, code in steps:
        code = NAME.sub(lambda found: waiting.pop(found[0], found[0]), code)
        once = uses[name] == 1 and name not in kept
        if once and len(code) < LONGEST and not STAYS.search(code):
            waiting[name] = code if is_whole(code) else f"({code})"
        else:
            left.append((name, code))
    return left


def is_whole(code: str) -> bool:
    """Whether an expression needs no parentheses: it has its own, or is a name, a number, a call or an
    entry."""
    call = CALL.match(code)
    start = call.end() if call else 0
    if not start and not code.startswith("("):
        return re.fullmatch(r"[\w.$]+(\[\w+\])?", code) is not None
    depth = 0
    for place, letter in enumerate(code):
        depth += (letter in "([") - (letter in ")]")
        if not depth and place >= start:
            return place == len(code) - 1
    return False


def numbered(code: str) -> str:
    """The code with its steps numbered in the order in which they appear: neighbours then have similar names,
    which pack better than the numbers of the graph."""
    order: dict[str, int] = {}

    def renamed(found: re.Match) -> str:
        kind, number = found.groups()
        return f"{kind}{order.setdefault(number, len(order))}" if kind else found[0]

    return OF_A_STEP.sub(renamed, code)
