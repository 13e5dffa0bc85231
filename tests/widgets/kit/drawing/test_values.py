"""The value of a bar stays on the bar's side of its limit."""

import numpy as np
import pytest

from tests import states
from tests.cases import in_one_test
from widgets.composition.layout_exam import LayoutExam
from widgets.composition.layout_missions import LayoutMissions
from widgets.foundations.memory_wall import MemoryWall
from widgets.foundations.three_walls import ThreeWalls
from widgets.kit.drawing import figure as fig

ENDS = np.linspace(0.0, 2.0, 401)


@in_one_test("limit", [0.3, 1.0, 1.9])
@in_one_test("room", [0.05, 0.14])
def test_a_value_never_crosses_nor_passes_a_limit_that_its_bar_does_not(limit, room):
    places = fig.value_places(ENDS, limit, room)
    behind, inside = places["behind"], places["inside"]
    assert ((behind > fig.FAR_LEFT) ^ (inside > fig.FAR_LEFT)).all()
    within, beside = limit > ENDS, behind > fig.FAR_LEFT
    assert (behind[within & beside] + room <= limit + 1e-9).all()
    assert (inside[~beside] - room >= -1e-9).all() and (inside[~beside] < limit).all()
    assert (behind[~within] == ENDS[~within]).all()


def test_beside_a_limit_that_leaves_no_side_the_value_goes_past_it():
    places = fig.value_places(np.array([0.02]), 0.03, 0.1)
    assert places["behind"] == [0.03] and places["inside"] == [fig.FAR_LEFT]


@pytest.mark.parametrize("widget", [ThreeWalls, MemoryWall, LayoutMissions, LayoutExam])
def test_each_bar_has_its_value_once(widget):
    for state in states.presets(widget) or [states.default(widget)]:
        shown = widget()
        shown.set_raw(state)
        for columns in shown.shown()["parts"].values():
            for side in [name for name in columns if name.endswith("behind")]:
                behind, inside = (np.atleast_1d(columns[side[:-6] + end]) for end in ("behind", "inside"))
                assert ((behind > fig.FAR_LEFT) != (inside > fig.FAR_LEFT)).all()
