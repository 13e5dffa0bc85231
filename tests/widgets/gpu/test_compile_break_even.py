"""The break-even figure: what it shows is what the engine says, and the wall is where it was worked out by
hand."""

from tests import states
from tests.widgets.reading import Reader
from widgets.gpu.compile_break_even import CompileBreakEven

shown = Reader(CompileBreakEven).shown


def test_at_rest_six_graphs_for_six_shapes():
    """6 · 22 s / 40.1 ms = 3,291.8; 6 · 22 s = 132 s."""
    found = shown()
    assert found["readouts"]["ahead"]["text"] == "ahead from step 3,292"
    assert found["readouts"]["compiling"]["text"] == "2.2 min"
    assert found["parts"]["ways"]["graphs"].tolist() == [6, 2, 1]
    assert not any(regime["met"] for regime in found["regimes"].values())


def test_the_wall_begins_at_thirty_seven_shapes():
    """37 · 22 / 0.0401 = 20,299 steps, more than 20,000; with 36 it is 19,751."""
    assert not shown(shapes=36)["regimes"]["never_pays_back"]["met"]
    assert shown(shapes=37)["regimes"]["never_pays_back"]["met"]
    assert not shown(shapes=37, dynamic="automatic")["regimes"]["never_pays_back"]["met"]


def test_labels_stand_clear_of_the_eager_line():
    """The run's label stands below its dot, right of it; above eager's line but near it, below that line. The
    dashed line's own label is on its far side."""
    parts = shown(**CompileBreakEven.presets["8B, 8,192 tokens on a B200"])["parts"]
    assert parts["run"]["label"] == parts["run"]["y"] < 1 and parts["run"]["down"] > 0
    assert parts["run"]["side"] == "left" and parts["ceiling"]["shift"] > 0
    parts = shown()["parts"]
    assert parts["run"]["label"] == parts["run"]["y"] > 1 and parts["ceiling"]["shift"] < 0
    near = next(
        found
        for steps in range(1000, 20000, 500)
        if 1 < (found := shown(steps=steps)["parts"]["run"])["y"] < 1.05
    )
    assert near["label"] == 1 and near["down"] > 0


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
