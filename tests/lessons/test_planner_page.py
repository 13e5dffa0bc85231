"""The planner's page: what its rule says of a faster chip is what the figure and the engine say."""

import pytest

from tests.lessons.reading import Lesson
from widgets.composition.layout_planner import LayoutPlanner

PAGE = Lesson("planner.md")


def test_the_opening_state_of_the_rule_is_the_figure_s():
    assert PAGE.value("planned(h100).step_s") == pytest.approx(float(LayoutPlanner().outcome().step_s[0]))


def test_a_layout_planned_for_the_faster_chip_gains_what_the_old_one_cannot():
    """The old one would need more than eight times the arithmetic for a tenth; planned again, twice the
    arithmetic gains a third."""
    assert float(LayoutPlanner().outcome().needed[0]) > 8
    assert PAGE.value("planned(twice_as_fast).step_s / planned(h100).step_s") < 0.67
    assert PAGE.value("planned(twice_as_fast).layout != planned(h100).layout")
