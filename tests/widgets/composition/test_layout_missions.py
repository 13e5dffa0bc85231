"""layout_missions: no preset gives an answer away, and what is said of a layout fits it."""

import numpy as np
import pytest

from engine.exam import missions
from tests.cases import in_one_test
from tests.said import lacks
from widgets.kit.widget import all_widgets

WIDGET = all_widgets()["layout_missions"]


def regimes(**state) -> dict:
    widget = WIDGET()
    widget.set_state({name: str(value) for name, value in state.items()})
    return {name: regime["text"] for name, regime in widget.shown()["regimes"].items() if regime["met"]}


@pytest.mark.parametrize("preset", WIDGET.presets)
def test_no_preset_wins(preset):
    assert "won" not in regimes(**WIDGET.presets[preset])


def test_what_cannot_be_built_is_said_with_its_numbers():
    said = regimes(mission="gpt3")["cannot_be_built"]
    assert not lacks(said, "1 of 1,024 GPUs", "1,024 data ranks", "1,536 sequences", "96 layers", "96 heads")


def test_no_higher_stage_than_three_is_advised():
    assert not lacks(regimes()["does_not_fit"], "ZeRO")
    at_three = regimes(mission="fit-13b", zero=3)["does_not_fit"]
    assert lacks(at_three, "ZeRO") and not lacks(at_three, "model ranks")


def shown(**state) -> dict:
    widget = WIDGET()
    widget.set_state({name: str(value) for name, value in state.items()})
    return widget.shown()["parts"]


STATES = [
    *WIDGET.presets.values(),
    {"mission": "deepseek-v3"},
    {"pp": 128},
    *({"mission": key} for key in missions.missions()),
]


@in_one_test("state", STATES, ids=str)
def test_each_goal_is_to_its_own_scale_and_no_bar_leaves_it(state):
    """A value above its limit is drawn longer than the limit, and by just that factor."""
    widget = WIDGET()
    widget.set_state({name: str(value) for name, value in state.items()})
    parts = widget.shown()["parts"]
    goals, limit, memory = parts["goals"], parts["limit"], parts["memory"]
    there = limit["y"] > -50
    assert there[0] and limit["x"][there].min() > 0 and limit["x"][there].max() <= 1
    if widget.broken():
        assert (memory["right"] < -1).all() and (goals["right"] < -1).all() and not parts["over"]["red"].any()
        return
    ends = np.append(np.max(memory["right"]), goals["right"])
    assert ends.max() <= 1
    ratio = widget.values()[there] / widget.limits()[there]
    np.testing.assert_allclose(ends[there] / limit["x"][there], ratio)
    lengths = (memory["right"] - memory["left"])[memory["bytes"] > 0]
    np.testing.assert_allclose(
        lengths / lengths[0], (memory["bytes"] / memory["bytes"][0])[memory["bytes"] > 0]
    )
    past = (ratio > 1) & (np.flatnonzero(there) != 1)
    assert list(parts["over"]["red"][there]) == list(np.where(past, 1.0, 0.0))


def test_a_goal_that_a_mission_does_not_have_is_not_drawn():
    first, third = shown(mission="fit-7b"), shown(mission="classic-70b")
    asked = missions.missions()["fit-7b"]
    assert asked.most_days == missions.NO_CEILING and (first["limit"]["y"][2:] < -50).all()
    rows = third["limit"]["y"][third["limit"]["y"] > -50]
    assert list(rows) == [-1.0 - i for i in range(len(rows))] and third["length"]["y"] == rows[-1] - 1
    assert not any(value in third["named"]["value"] for value in ("–", "no limit"))


def test_the_mfu_must_be_above_its_tick_and_the_rest_below():
    limit = shown(mission="classic-70b")["limit"]
    assert limit["from"][1] == limit["x"][1] and limit["to"][1] == 1
    assert limit["from"][0] == 0 and limit["to"][0] == limit["x"][0]


def test_neither_the_default_nor_a_preset_is_what_break_it_asks_for():
    for state in ({}, *WIDGET.presets.values()):
        assert "cannot_be_built" not in regimes(**state)
    for key in missions.missions():
        assert "cannot_be_built" in regimes(mission=key, pp=127)
