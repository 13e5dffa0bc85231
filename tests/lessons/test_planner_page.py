"""The planner's page: what its rule says of a faster chip is what the figure and the engine say."""

import pytest

from engine.step import layout
from tests.lessons.reading import Lesson
from widgets.composition.layout_planner import LayoutPlanner

PAGE = Lesson("planner.md")


def test_a_layout_planned_for_the_faster_chip_gains_what_the_old_one_cannot():
    """The figure's opening state: twice the arithmetic shortens the old layout's step by about a
    tenth; planned again, by more than a third."""
    opening = LayoutPlanner().outcome()
    now, faster = PAGE.value("best_on(h100)"), PAGE.value("best_on(twice_as_fast)")
    assert now.step_s == pytest.approx(float(opening.step_s[0])) and 1.1 < float(opening.needed[0]) < 2
    old = layout.estimate(now.model, PAGE.value("twice_as_fast"), now.job, now.layout)
    assert 0.85 * now.step_s < old.step_s < 0.92 * now.step_s and faster.step_s < 0.67 * now.step_s
