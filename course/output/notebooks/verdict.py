"""The verdict on a typed answer, for notebooks, in which the page's scripts (site/theme/assets/js/verdict.js
and widget/guess.js) do not run. Both ask the same rule (engine/base/answers.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.base import answers, typed, units
from engine.base.typed import Reading


@dataclass(frozen=True)
class Asked:
    """A number that a reader is asked for, with the same attributes as the page's field."""

    expected: float
    within: float
    family: str
    scale: float
    shown: str
    side: str = ""
    unit: str = ""
    slips: Sequence[tuple[Sequence[float], str, float]] = ()
    label: str = ""
    trap: float | None = None
    hint: str = ""


class Verdict(NamedTuple):
    """Whether an answer is right, whether it was a try at all, and the words."""

    right: bool
    counts: bool
    said: str


# -- reading -------------------------------------------------------------------------------------------------
def read_answer(text: str, family: str, scale: float, label: str = "") -> Reading:
    """The value of a text in SI. If a percentage is asked for, a plain number below 1 is a share: 0.1 is 10
    %."""
    found = typed.read(text, family, scale, label)
    is_share = family == "percent" and found.bare and abs(found.value or 0.0) < scale
    return typed.read(text, family, 1.0, label) if is_share else found


def _fitting(text: str, asked: Asked, accepts: Callable[[Reading], bool]) -> Reading:
    """The first accepted meaning of a text, or its first meaning if none is accepted. A plain number may also
    be in SI or, if a percentage is asked for, a share."""
    first = read_answer(text, asked.family, asked.scale, asked.label)
    if not first.bare or accepts(first):
        return first
    scales = [1.0, asked.scale, 1.0] if asked.family == "percent" else [1.0]
    ways = (typed.read(text, asked.family, scale, asked.label) for scale in scales)
    return next((way for way in ways if accepts(way)), first)


# -- what is said --------------------------------------------------------------------------------------------
def judge(text: str, asked: Asked) -> Verdict:
    """The verdict on an answer to an exercise. It never contains the right number before the reader has found
    it."""
    found = _fitting(text, asked, lambda way: way.value is not None and bool(_ruled(way, asked)["right"]))
    if found.value is None:
        return Verdict(False, False, found.refused)
    ruled = _ruled(found, asked)
    words, by = _slips(asked)[int(ruled["slip"])] if ruled["slip"] >= 0 else ("", 0.0)
    said = answers.sentence(
        ruled,
        shown=asked.shown,
        within=units.number(100 * asked.within),
        hint=asked.hint,
        slip=words.replace("{by}", units.number(by)),
    )
    meant = (
        units.human(found.value, "percent") if asked.family == "percent" else f"{text.strip()} {asked.unit}"
    )
    wrong = ruled["counts"] and not ruled["right"]
    read_as = f"Read as {meant}. " if wrong and found.bare and asked.unit else ""
    return Verdict(bool(ruled["right"]), bool(ruled["counts"]), read_as + said)


def _slips(asked: Asked) -> list[tuple[str, float]]:
    """The words and the factor of each known slip."""
    return [(words, by) for factors, words, _ in asked.slips for by in factors]


def _ruled(found: Reading, asked: Asked) -> dict[str, Any]:
    """What the rule says of a reading."""
    trap = asked.trap if asked.trap is not None and asked.hint else math.nan
    share, nears = asked.family == "percent", [near for factors, _, near in asked.slips for _ in factors]
    return answers.judged(
        found.value,
        found.half,
        found.digits,
        asked.expected,
        asked.within,
        answers.BEYOND[asked.side],
        share,
        trap,
        [by for _, by in _slips(asked)],
        nears,
    )


def guessed(text: str, truth: float, family: str, scale: float, shown: str, digits: int) -> Verdict:
    """The verdict on a number that a reader has predicted."""
    found = read_answer(text, family, scale)
    if found.value is None:
        return Verdict(False, False, found.refused)
    if not found.value > 0:
        return Verdict(False, False, "It is more than zero.")
    ruled = answers.off_by(found.value, truth, family == "percent")
    said = f"{answers.sentence(ruled)} You said {units.human(found.value, family, digits)}; it is {shown}."
    return Verdict(ruled["said"] == answers.EQUAL, True, said)
