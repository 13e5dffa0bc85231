"""Puts a step that is read once into the line that reads it.

A page loads every step of a widget's graph. A value that has a name of its own costs its name twice, and
names are most of what is left once a module is packed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

NAME = re.compile(r"\b[a-z]+\d+\b")
LONGEST = 600  # characters; a browser does not optimize what is too deep
CALL = re.compile(r"[\w.$]+(?=\()")
OF_A_STEP = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.$])([ves])(\d+)\b')  # outside of texts
STAYS = re.compile(r"stop\(|=>|^\[|^\{")  # may end the computation, or makes something new at each reading


def inlined(steps: Iterable[tuple[str, str]], kept: Collection[str]) -> list[tuple[str, str]]:
    """The steps (name, code) of a run of lines, each after what it reads, without those that only one of the
    others reads, and reads once. Nobody else may read what is not ``kept``."""
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
    """The code with its steps numbered as they come: neighbours have similar names, which packs better than
    their numbers in the graph."""
    order: dict[str, int] = {}

    def renamed(found: re.Match) -> str:
        kind, number = found.groups()
        return f"{kind}{order.setdefault(number, len(order))}" if kind else found[0]

    return OF_A_STEP.sub(renamed, code)
