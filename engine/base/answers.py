"""What is said about a number that somebody typed: as an answer to an exercise, or as a prediction.

``judged`` and ``off_by`` are programs over numbers, which choose one of the sentences in SAID. Notebooks call
them, and a page runs the same two (widgets/kit/page/module.py), so that what is right, what is close and what
looks like a known slip is written once. No sentence has the right number in it before it was found.
"""

from __future__ import annotations

import math
from typing import Any

from engine.base import units
from engine.base.program import program

EXACT = 1e-6
CLOSE, CLOSE_TO_EXACT = 0.25, 0.05  # the largest relative error that counts as close, whatever the tolerance
TRAPPED = 0.03  # how near to the result of a known wrong way an answer counts as that mistake
SAME = 0.0005  # a right answer this near is not told how far off it is
SPOT_ON, NEAR, TIMES = 1.005, 1.1, 2.0  # factors between guess and truth at which the reply changes its words
NONE = -1

SIDE, PLACE = ("low", "high"), ("below", "above")
BEYOND = {"": 0, "below": -1, "above": 1}  # the side on which an exercise takes no answer, as a sign
RIGHT, RIGHT_POINTS, RIGHT_PERCENT, DIGIT, TRAP, SLIP, SIGN, WHOLE, MUST_BE_EXACT = range(9)
NO_ROOM, TOO_FEW, CLOSELY, BY_TEN, FAR, WRONG = range(9, 15)
EQUAL, BY_POINTS, NEARLY, BY_PERCENT, BY_TIMES = range(15, 20)
SAID = {
    RIGHT: "Right: {shown}.",
    RIGHT_POINTS: "Right: {shown}. Yours is {far} percentage points {place}.",
    RIGHT_PERCENT: "Right: {shown}. Yours is {far} % {place}.",
    DIGIT: "Right as far as it goes, but the answer must be within {within} %, so give one digit more.",
    TRAP: "{hint}",
    SLIP: "{slip}",
    SIGN: "Look at the sign.",
    WHOLE: "Nearly, but the answer is a whole number. Which way must this one be rounded?",
    MUST_BE_EXACT: "Close, a little too {side}; but this one must be exact.",
    NO_ROOM: "Close, a little too {side}: so many no longer fit.",
    TOO_FEW: "Close, a little too {side}: so few are not enough.",
    CLOSELY: "Close, a little too {side}: the answer must be within {within} %. "
    "Something rounded early, or a small term left out?",
    BY_TEN: "Too {side}, by more than a factor of ten.",
    FAR: "Too {side}, by more than rounding explains.",
    WRONG: "Too {side}.",
    EQUAL: "Spot on.",
    BY_POINTS: "{far} percentage points too {side}.",
    NEARLY: "Within 10 %.",
    BY_PERCENT: "{far} % too {side}.",
    BY_TIMES: "{far}× too {side}.",
}


@program(right=(), counts=(), said=(), above=(), far=(), slip=())
def judged(
    value: float,
    half: float,
    digits: float,
    expected: float,
    within: float,
    beyond: float,
    is_share: float,
    trap: float,
    factors: list[float],
    nears: list[float],
) -> dict[str, Any]:
    """The sentence on an answer to an exercise, whether it is right, and whether it was a try at all.

    ``half`` is half a unit of the last of the ``digits`` that were typed, ``within`` the tolerance (0 for
    exactly), ``beyond`` the sign of the side that is not allowed, ``trap`` the result of a known wrong way
    (NaN where there is none). A slip is off by one of ``factors``, up or down, to within ``nears``. ``far``
    is the number that a sentence on a right answer names; ``slip`` the place of the factor.
    """
    right, share = is_right(value, half, digits, expected, within, beyond), is_share > 0
    slip = slip_of(value, expected, factors, nears)
    said = mistake(value, half, digits, expected, within, beyond, trap, slip)
    far = 0.0
    if right:
        far = abs(value / expected - 1) if expected != 0 else 0.0
        said = RIGHT if far <= SAME else RIGHT_POINTS if share else RIGHT_PERCENT
    if said == RIGHT_POINTS:
        far = abs(value - expected)
    return {
        "right": right,
        "counts": said != DIGIT,
        "said": said,
        "above": value > expected,
        "far": 100 * far,
        "slip": slip,
    }


def ratio_to(value: float, expected: float) -> float:
    """The value over the expected one; infinite with the value's sign where 0 is expected."""
    return value / expected if expected != 0 else value * math.inf


def is_near(value: float, other: float, within: float) -> bool:
    """Whether a value is as near to another as this share of it."""
    return other != 0 and abs(value / other - 1) <= within


def is_beyond(value: float, expected: float, beyond: float) -> bool:
    """Whether the value is off on the side that the exercise forbids, where one more does not fit."""
    return (value - expected) * beyond < 0


def is_right(value: float, half: float, digits: float, expected: float, within: float, beyond: float) -> bool:
    """Whether the answer is within the tolerance, or right to the digits that were typed, if these are at
    least two (0.73 for 0.7316)."""
    off = abs(value - expected)
    allowed = EXACT if is_beyond(value, expected, beyond) or within == 0 else within
    return off <= allowed * abs(expected) or (within > 0 and beyond == 0 and digits > 1 and off <= half)


def slip_of(value: float, expected: float, factors: list[float], nears: list[float]) -> int:
    """The place of the factor by which the value may be off; -1 if there is none."""
    ratio, found = ratio_to(value, expected), NONE
    for number in range(len(factors)):
        factor, near = factors[number], nears[number]
        if found == NONE and (is_near(ratio, factor, near) or is_near(ratio, 1 / factor, near)):
            found = number
    return found


def mistake(
    value: float,
    half: float,
    digits: float,
    expected: float,
    within: float,
    beyond: float,
    trap: float,
    slip: int,
) -> int:
    """The sentence on an answer that is not right."""
    off, ratio = abs(value - expected), ratio_to(value, expected)
    if within > 0 and beyond == 0 and digits == 1 and off <= half:
        return DIGIT
    if is_near(value, trap, TRAPPED):
        return TRAP
    if ratio < 0:
        return SIGN
    if slip != NONE:
        return SLIP
    if (within == 0 or beyond != 0) and expected == expected // 1 and off < 1:
        return WHOLE
    if abs(ratio - 1) <= (min(2 * within, CLOSE) if within > 0 else CLOSE_TO_EXACT):
        if within == 0:
            return MUST_BE_EXACT
        if is_beyond(value, expected, beyond):
            return NO_ROOM if beyond < 0 else TOO_FEW
        return CLOSELY
    if ratio > 10 or ratio < 0.1:
        return BY_TEN
    return FAR if within > 0 else WRONG


@program(said=(), above=(), far=())
def off_by(value: float, truth: float, is_share: float) -> dict[str, Any]:
    """The sentence on how far off a prediction is, both above 0: '4× too low'."""
    ratio = value / truth
    far = max(ratio, 1 / ratio)
    said, named = BY_TIMES, far
    if far < SPOT_ON:
        said = EQUAL
    elif far < TIMES and is_share > 0:
        said, named = BY_POINTS, 100 * abs(value - truth)
    elif far <= NEAR:
        said = NEARLY
    elif far < TIMES:
        said, named = BY_PERCENT, 100 * abs(ratio - 1)
    return {"said": said, "above": ratio > 1, "far": named}


def sentence(found: dict[str, Any], **fill: str) -> str:
    """The sentence that ``judged`` or ``off_by`` chose, with what these texts and the number say."""
    above, far = bool(found["above"]), units.number(float(found["far"]), 2)
    return SAID[int(found["said"])].format(side=SIDE[above], place=PLACE[above], far=far, **fill)


def tables() -> dict[str, Any]:
    """The words that a page needs to say the same."""
    return {"SAID": list(SAID.values()), "SIDE": SIDE, "PLACE": PLACE, "BEYOND": BEYOND}
