"""The verdict on a typed answer, for notebooks, in which the page's scripts (site/theme/assets/js/verdict.js
and widget/guess.js) do not run. A fuzz test checks that Python and JavaScript say the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.base import typed, units
from engine.base.typed import Reading

EXACT = 1e-6
CLOSE, CLOSE_TO_EXACT = 0.25, 0.05  # the largest relative error that counts as close, whatever the tolerance
TRAPPED = 0.03  # how near to the result of a known wrong approach an answer counts as that mistake
SPOT_ON, NEAR, TIMES = 1.005, 1.1, 2  # factors between guess and truth at which the reply changes its words


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


# -- an exercise ---------------------------------------------------------------------------------------------
def judge(text: str, asked: Asked) -> Verdict:
    """The verdict on an answer to an exercise. It never contains the right number before the reader has found
    it."""
    found = _fitting(text, asked, lambda way: _is_right(way, asked))
    value = found.value
    if value is None:
        return Verdict(False, False, found.refused)
    if _is_right(found, asked):
        return Verdict(True, True, f"Right: {asked.shown}.{_apart(value, asked)}")
    off = abs(value - asked.expected)
    if asked.within and not asked.side and found.digits == 1 and off <= found.half:
        allowed = units.number(100 * asked.within)
        return Verdict(
            False,
            False,
            f"Right as far as it goes, but the answer must be within {allowed} %, so give one digit more.",
        )
    meant = units.human(value, "percent") if asked.family == "percent" else f"{text.strip()} {asked.unit}"
    read_as = f"Read as {meant}. " if found.bare and asked.unit else ""
    trapped = asked.trap is not None and asked.hint and _near(value, asked.trap, TRAPPED)
    return Verdict(
        False, True, read_as + (asked.hint if trapped else _slip(value, asked) or _distance(value, asked))
    )


def _near(value: float, other: float, within: float) -> bool:
    return other != 0 and abs(value / other - 1) <= within


def _is_beyond(value: float, asked: Asked) -> bool:
    """True if the value is off on the side that the exercise forbids, where one more does not fit."""
    beyond = {"below": value > asked.expected, "above": value < asked.expected}
    return beyond.get(asked.side, False)


def _is_right(found: Reading, asked: Asked) -> bool:
    """True if the answer is within the tolerance, or right to the digits that were typed, if these are at
    least two (0.73 for 0.7316)."""
    if found.value is None:
        return False
    off = abs(found.value - asked.expected)
    allowed = EXACT if _is_beyond(found.value, asked) else asked.within or EXACT
    by_digits = asked.within > 0 and not asked.side and found.digits > 1 and off <= found.half
    return off <= allowed * abs(asked.expected) or by_digits


def _points(apart: float) -> str:
    return f"{units.number(100 * abs(apart), 2)} percentage points"


def _apart(value: float, asked: Asked) -> str:
    off = abs(value / asked.expected - 1) if asked.expected else 0.0
    if off <= 0.0005:
        return ""
    far = _points(value - asked.expected) if asked.family == "percent" else f"{units.number(100 * off, 2)} %"
    return f" Yours is {far} {'above' if value > asked.expected else 'below'}."


def _slip(value: float, asked: Asked) -> str:
    """The known slip by which this answer may be off, or ''."""
    ratio = value / asked.expected if asked.expected else math.copysign(math.inf, value)
    if ratio < 0:
        return "Look at the sign."
    for factors, words, within in asked.slips:
        by = next(
            (one for one in factors if _near(ratio, one, within) or _near(ratio, 1 / one, within)), None
        )
        if by is not None:
            return words.replace("{by}", units.number(by))
    return ""


def _distance(value: float, asked: Asked) -> str:
    expected, within = asked.expected, asked.within
    side, ratio = ("high" if value > expected else "low"), abs(value / expected) if expected else math.inf
    whole = expected == round(expected) and expected in (-(-value // 1), value // 1)
    if (not within or asked.side) and whole:
        return "Nearly, but the answer is a whole number. Which way must this one be rounded?"
    if abs(ratio - 1) <= (min(2 * within, CLOSE) if within else CLOSE_TO_EXACT):
        if not within:
            return f"Close, a little too {side}; but this one must be exact."
        if _is_beyond(value, asked):
            why = "so many no longer fit" if asked.side == "below" else "so few are not enough"
            return f"Close, a little too {side}: {why}."
        return (
            f"Close, a little too {side}: the answer must be within {units.number(100 * within)} %. "
            "Something rounded early, or a small term left out?"
        )
    if ratio > 10 or ratio < 0.1:
        return f"Too {side}, by more than a factor of ten."
    return f"Too {side}, by more than rounding explains." if within else f"Too {side}."


# -- a prediction --------------------------------------------------------------------------------------------
def off_by(value: float, truth: float, family: str) -> str:
    """How far off a guess is, in words such as '4× too low'."""
    ratio = value / truth
    far, side = max(ratio, 1 / ratio), "high" if ratio > 1 else "low"
    if far < SPOT_ON:
        return "Spot on."
    if far < TIMES and family == "percent":
        return f"{_points(value - truth)} too {side}."
    if far <= NEAR:
        return "Within 10 %."
    if far < TIMES:
        return f"{units.number(100 * abs(ratio - 1), 2)} % too {side}."
    return f"{units.number(far, 2)}× too {side}."


def guessed(text: str, truth: float, family: str, scale: float, shown: str, digits: int) -> Verdict:
    """The verdict on a number that a reader has predicted."""
    found = read_answer(text, family, scale)
    if found.value is None:
        return Verdict(False, False, found.refused)
    if not found.value > 0:
        return Verdict(False, False, "It is more than zero.")
    off = off_by(found.value, truth, family)
    said = f"{off} You said {units.human(found.value, family, digits)}; it is {shown}."
    return Verdict(off == "Spot on.", True, said)
