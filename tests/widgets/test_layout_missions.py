"""layout_missions: no preset gives an answer away, and what is said of a layout fits it."""

import pytest

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
    assert "take 1 of 1,024 GPUs and leave 1,024 data ranks for 1,536 sequences" in said and "96 layers and 96 heads" in said


def test_no_higher_stage_than_three_is_advised():
    assert "First response: a higher ZeRO stage" in regimes()["does_not_fit"]
    assert "First response: model ranks" in regimes(mission="fit-13b", zero=3)["does_not_fit"]
