"""The planner's page: what its rule says of a faster chip is what the figure and the engine say."""

import pytest

from tests.lessons.reading import Lesson
from widgets.composition.layout_planner import LayoutPlanner

PAGE = Lesson("planner.md")
PLANNED = [one.split(" | ")[0] for one in PAGE.computed if one.startswith("best_on(")]


def test_a_layout_planned_for_the_faster_chip_gains_what_the_old_one_cannot():
    """The figure's opening state: the old layout would need more than eight times the arithmetic for a
    tenth; planned again, twice the arithmetic gains a third."""
    opening = LayoutPlanner().outcome()
    now, faster = (PAGE.value(one) for one in PLANNED)
    assert now == pytest.approx(float(opening.step_s[0])) and float(opening.needed[0]) > 8
    assert "twice_as_fast" in PLANNED[1] and faster < 0.67 * now
