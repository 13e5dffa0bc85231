"""Words beside a mark: which of several spots they take."""

import numpy as np
import pytest

from widgets.kit.drawing import beside

FRAME = beside.Frame(0.0, 200.0)
SPOTS = beside.around(10.0, 15.0)


def taken_by(x, y, taken=None, of="wide", px=60.0):
    columns, box = beside.spot(x, y, px, SPOTS, FRAME, taken, of=of)
    return columns[f"{of}_align"], columns[f"{of}_across"], columns[f"{of}_down_0"], box


def test_words_stand_at_the_first_spot_where_nothing_is_in_the_way():
    assert taken_by(0.5, 0.5)[:3] == ("left", 10, 15)


@pytest.mark.parametrize(
    ("x", "y", "where"),
    [
        (0.5, 0.02, ("left", 10, -15)),  # the frame ends below it
        (0.99, 0.5, ("right", -10, 15)),  # … right of it
        (0.99, 0.02, ("right", -10, -15)),
    ],
)
def test_words_are_not_cut(x, y, where):
    assert taken_by(x, y)[:3] == where


def test_words_keep_off_others():
    right_below = beside.words(0.5, 0.5, 60.0, beside.LEFT, 10.0, 15.0)
    assert taken_by(0.5, 0.5, right_below)[:3] == ("right", -10, 15)
    both = beside.together(right_below, beside.words(0.5, 0.5, 60.0, beside.RIGHT, -10.0, 15.0))
    assert taken_by(0.5, 0.5, both)[:3] == ("left", 10, -15)


def test_a_spot_is_free_in_a_lesson_and_on_a_page_of_its_own():
    """A mark that lies on the words in a lesson, and clear of them where the picture is wider."""
    lesson, own = FRAME.widths("wide")
    other = beside.marks(0.5 + 75.0 / lesson, 0.5 - 15.0 / FRAME.height, 16.0)
    assert beside.shared(beside.words(0.5, 0.5, 60.0, 0, 10.0, 15.0), other, lesson, 200.0)[0] > 0
    assert beside.shared(beside.words(0.5, 0.5, 60.0, 0, 10.0, 15.0), other, own, 200.0)[0] == 0
    assert taken_by(0.5, 0.5, other)[:3] != ("left", 10, 15)


def test_where_no_spot_is_free_least_is_lost():
    everywhere = beside.Boxes(0.5, 0.5, -500.0, 500.0, -20.0, 500.0)
    assert taken_by(0.5, 0.5, everywhere)[2] == 15  # a part of it is below what is taken
    assert not beside.free(taken_by(0.5, 0.5, everywhere)[3], everywhere, FRAME, "wide")[0]


def test_the_ranks_of_spots_decide_among_free_ones():
    columns, _ = beside.spot(0.5, 0.5, 60.0, SPOTS, FRAME, order=np.array([3.0, 1.0, 0.0, 2.0]))
    assert (columns["wide_align"], columns["wide_down_0"]) == ("left", -15)


def test_a_second_line_is_below_the_first_and_is_not_cut_either():
    columns, box = beside.spot(0.5, 0.15, 60.0, SPOTS, FRAME, lines=2)
    assert columns["wide_down_1"] - columns["wide_down_0"] == beside.LINE_PX
    assert columns["wide_down_0"] == -15
    assert not beside.missing(box, 700.0, 200.0)[0]
