"""The rule on a typed number: which sentence it chooses, worked out by hand."""

import math

import pytest

from engine.base import answers
from engine.base.answers import SAID

NO_SLIPS = ([], [])


def chosen(
    value, expected, within=0.05, *, side="", half=0.0, digits=3, share=0, trap=math.nan, slips=NO_SLIPS
):
    return answers.judged(
        value, half, digits, expected, within, answers.BEYOND[side], share, trap, *slips
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"value": 100, "expected": 100}, answers.RIGHT),
        ({"value": 104, "expected": 100}, answers.RIGHT_PERCENT),
        ({"value": 0.31, "expected": 0.3, "share": 1}, answers.RIGHT_POINTS),
        ({"value": 73, "expected": 73.16, "within": 0.001, "half": 0.5, "digits": 2}, answers.RIGHT_PERCENT),
        ({"value": 1e12, "expected": 1.12e12, "half": 5e11, "digits": 1}, answers.DIGIT),
        ({"value": 4.9, "expected": 7.5, "trap": 4.83}, answers.TRAP),
        ({"value": -100, "expected": 100}, answers.SIGN),
        ({"value": 2.6, "expected": 3, "within": 0}, answers.WHOLE),
        ({"value": 104, "expected": 100, "within": 0}, answers.MUST_BE_EXACT),
        ({"value": 56.5, "expected": 55, "side": "below"}, answers.NO_ROOM),
        ({"value": 57.5, "expected": 59, "side": "above"}, answers.TOO_FEW),
        ({"value": 109, "expected": 100}, answers.CLOSELY),
        ({"value": 1001, "expected": 100}, answers.BY_TEN),
        ({"value": 111, "expected": 100}, answers.FAR),
        ({"value": 110, "expected": 100, "within": 0}, answers.WRONG),
        ({"value": 5, "expected": 0, "within": 0}, answers.BY_TEN),
        ({"value": 0, "expected": 0, "within": 0}, answers.RIGHT),
    ],
)  # fmt: skip
def test_the_sentence_on_an_answer(asked, said):
    assert SAID[int(chosen(**asked)["said"])] == SAID[said]


def test_the_first_factor_that_fits_is_the_slip_up_or_down():
    slips = ([1000.0, 8.0, 2.0], [0.05, 0.02, 0.02])
    for value, slip in ((8e5, 0), (0.8, 0), (6400, 1), (100, 1), (1600, 2), (395, 2)):
        found = chosen(value, 800, slips=slips)
        assert (int(found["said"]), int(found["slip"])) == (answers.SLIP, slip)
    assert int(chosen(8.2 * 800, 800, slips=slips)["slip"]) == answers.NONE


def test_only_a_digit_too_few_is_no_try():
    assert not chosen(1e12, 1.12e12, half=5e11, digits=1)["counts"]
    assert chosen(5, 100)["counts"] and chosen(100, 100)["counts"]


@pytest.mark.parametrize(
    ("value", "truth", "share", "said"),
    [
        (100.4, 100, 0, "Spot on."),
        (0.24, 0.2, 1, "4 percentage points too high."),
        (92, 100, 0, "Within 10 %."),
        (150, 100, 0, "50 % too high."),
        (25, 100, 0, "4× too low."),
        (0.05, 0.2, 1, "4× too low."),
    ],
)
def test_how_far_off_a_prediction_is(value, truth, share, said):
    assert answers.sentence(answers.off_by(value, truth, share)) == said


def test_every_sentence_can_be_chosen_and_filled_in():
    assert sorted(SAID) == list(range(len(SAID)))
    fill = dict(shown="3", within="5", hint="Why?", slip="Bits?")
    for said, words in SAID.items():
        filled = answers.sentence({"said": said, "above": 1, "far": 2.5}, **fill)
        assert "{" not in filled and (filled == words) == ("{" not in words)
