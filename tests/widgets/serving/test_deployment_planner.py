"""deployment_planner: what it says is the engine's choice, and the lesson's tables say the same."""

import pytest

from tests.lessons.reading import Lesson
from tests.said import lacks
from widgets.serving.deployment_planner import DeploymentPlanner


def at(**state):
    widget = DeploymentPlanner()
    for name, value in state.items():
        setattr(widget, name, value)
    return widget


def said(widget, name):
    return widget.shown()["readouts"][name]["text"]


def test_the_dollars_are_the_gpus_over_the_tokens():
    """12 H100s at the price of one, over eight requests of 240 tokens a second: 200 · e^(0.6² / 2) = 239."""
    widget = at()
    each = 8 * 239.4 / 12
    assert said(widget, "gpus") == "12 GPUs"
    assert float(said(widget, "each").split()[0]) == pytest.approx(each, rel=0.01)
    assert float(said(widget, "cost")[1:]) == pytest.approx(widget.price / 3600 / each * 1e6, rel=0.01)


@pytest.mark.parametrize("target", [0.1, 0.05, 0.03, 0.025, 0.02, 0.015])
def test_the_lesson_s_table_needs_at_most_a_unit_more_or_less(target):
    """The table is simulated, the figure is closed forms."""
    best = Lesson("12-disaggregated-serving.md").value(f"by_target({target})")
    gpus = int(said(at(tpot=target), "gpus").split()[0])
    one = best.replica.gpus + best.reads.gpus * bool(best.prefill_replicas)
    assert abs(gpus - best.gpus) <= one


def test_a_mark_lies_where_its_words_say():
    widget = at(tpot=0.02)
    kinds, found = widget.shown()["parts"]["kinds"], widget.found()
    best = int(found.best)
    assert kinds["y"][best] == pytest.approx(8 * 239.4 / 16, rel=0.01)
    assert kinds["x"][best] > 1 / 0.02 and kinds["two"][best] == 1
    assert said(widget, "binds") == said(at(tpot=0.015), "binds") == "the time of a token"
    assert not lacks(widget.hints()["kinds"][best], "16 GPUs", "2 × TP 4 that read", "2 × TP 4 that write")


def test_the_line_is_above_all_that_keep_the_limits():
    widget = at()
    line, dots = widget.shown()["parts"]["frontier"], widget.found()
    for x, y, within in zip(dots.user, dots.per_gpu, dots.within):
        if within > 0:
            assert y <= max(line["y"][line["x"] < x]) + 1e-9
