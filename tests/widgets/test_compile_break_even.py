"""The break-even figure: what it shows is what the engine says, and the wall is where it was worked out by hand."""

from tests import states
from widgets.compile_break_even import CompileBreakEven


def shown(**texts):
    widget = CompileBreakEven()
    widget.set_state(texts)
    return widget.shown()


def test_at_rest_six_graphs_for_six_shapes():
    """6 · 60 s / 40.1 ms = 8,977.6."""
    found = shown()
    assert found["readouts"]["ahead"]["text"] == "ahead from step 8,978"
    assert found["readouts"]["compiling"]["text"] == "6 min"
    assert found["parts"]["ways"]["graphs"].tolist() == [6, 2, 1]
    assert not any(regime["met"] for regime in found["regimes"].values())


def test_the_wall_begins_at_fourteen_shapes():
    """14 · 60 / 0.0401 = 20,948 steps, more than 20,000; with 13 it is 19,452."""
    assert not shown(shapes=13)["regimes"]["never_pays_back"]["met"]
    assert shown(shapes=14)["regimes"]["never_pays_back"]["met"]
    assert not shown(shapes=14, dynamic="automatic")["regimes"]["never_pays_back"]["met"]


def test_no_preset_meets_the_wall():
    for preset in CompileBreakEven.presets.values():
        assert not shown(**preset)["regimes"]["never_pays_back"]["met"]


def test_slower_code_is_never_ahead():
    found = shown(**CompileBreakEven.presets["8B, 8,192 tokens on a B200"])
    assert found["readouts"]["ahead"]["text"] == "never ahead" and found["regimes"]["slower"]["met"]


def test_the_run_s_mark_lies_on_the_chosen_curve():
    for state in states.scattered(CompileBreakEven, 10):
        widget = CompileBreakEven()
        widget.set_raw(state)
        parts = widget.shown()["parts"]
        near = abs(parts["chosen"]["step"] - parts["run"]["x"]).argmin()
        low, high = (parts["chosen"]["y"][max(0, min(140, near + d))] for d in (-2, 2))
        assert min(low, high) * 0.5 <= parts["run"]["y"] <= max(low, high) * 1.5
