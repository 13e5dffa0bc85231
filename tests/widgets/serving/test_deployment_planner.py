"""deployment_planner: what it says is the engine's choice, and the lesson's tables say the same."""

import numpy as np
import pytest

from tests.lessons.reading import Lesson
from tests.said import lacks
from widgets.serving.deployment_planner import ANY_S, KEPT, DeploymentPlanner


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


def test_the_answer_is_the_first_row_and_its_hint_says_the_same():
    """At 20 ms a token two and two replicas of 4 GPUs write 8 · 239 tokens a second with 16 GPUs."""
    widget = at(tpot=0.02)
    named = widget.shown()["parts"]["named"]
    assert named["name"][0] == said(widget, "split") == "2 that read + 2 × TP 4"
    assert named["style"][0] == "bold" and "bold" not in named["style"][1:]
    assert named["cost"][0] == said(widget, "cost")
    assert said(widget, "binds") == said(at(tpot=0.015), "binds") == "the time of a token"
    assert not lacks(widget.hints()["kinds"][0], "16 GPUs", "2 × TP 4 that read", "2 × TP 4 that write")


@pytest.mark.parametrize("state", [*DeploymentPlanner.presets.values(), {"tpot": 0.005}, {"pause": 0.03}])
def test_rows_are_sorted_by_cost_and_what_does_not_exist_comes_last(state):
    widget = DeploymentPlanner()
    widget.set_state(state)
    named, bars, found = widget.shown()["parts"]["named"], widget.shown()["parts"]["kinds"], widget.found()
    costs = [float(each[1:].replace(",", "")) for each in named["cost"] if each]
    assert costs == sorted(costs) and len(costs) == np.sum(found.gpus > 0)
    assert all(named["cost"][: len(costs)]) and all(named["why"][len(costs) :])
    assert not any(named["why"][: len(costs)])
    lengths = bars["right"][: len(costs)]
    np.testing.assert_allclose(lengths / max([*lengths, 1e-9]), np.array(costs) / max([*costs, 1e-9]), 0.01)


def test_a_bar_is_made_of_the_gpus_of_its_two_pools():
    """At 20 ms 8 GPUs read and 8 write, in replicas of 4: 15 gaps, 3 of them wide."""
    parts = at(tpot=0.02).shown()["parts"]
    read, write = parts["readers"], parts["kinds"]
    assert read["right"][0] == write["left"][0] == pytest.approx(write["right"][0] / 2)
    first = parts["boxes"]["top"] == parts["boxes"]["top"][0]
    seen = first & (parts["boxes"]["x"] > 0)
    assert np.sum(seen) == 15 and np.sum(parts["boxes"]["width"][seen] > 1) == 3


@pytest.mark.parametrize("state", [{}, {"tpot": 0.02}, {"pause": 0.03}, {"rate": 32}, {"ttft": 0.3}])
def test_each_mark_keeps_its_promise_and_the_large_one_is_what_binds(state):
    widget = at(**state)
    parts, found, order = widget.shown()["parts"], widget.found(), widget.order()
    marks = {name: np.reshape(parts["marks"][name], (3, 8)) for name in ("x", "binds")}
    free = widget.pause >= ANY_S
    for row, kind in enumerate(np.asarray(order, dtype=int)):
        if found.gpus[kind] == 0:
            assert (marks["x"][:, row] < 0).all() and not marks["binds"][:, row].any()
            continue
        assert (marks["x"][:, row] > 0).all()
        assert (marks["x"][: 2 if free else 3, row] <= KEPT).all()
        assert [i for i in range(3) if marks["binds"][i, row]] == [
            b for b in (0, 1, 2) if b == found.bound[kind]
        ]


def test_a_mark_is_the_tightest_limit_that_its_deployment_would_keep():
    """A promise of what the mark says costs no more of that kind; a hundredth of the limit less does, or
    takes another deployment of it."""
    widget = at(tpot=0.02)
    found = widget.found()
    kind = int(found.best)
    for name, column in (("ttft", found.first_s), ("tpot", found.token_s)):
        tight = at(**({"tpot": 0.02} | {name: float(column[kind]) * (1 + 1e-9)})).found()
        assert tight.gpus[kind] == found.gpus[kind]
        limit = getattr(widget, name)
        less = at(**({"tpot": 0.02} | {name: float(column[kind]) - limit / 100})).found()
        same = [
            getattr(less, x)[kind] == getattr(found, x)[kind] for x in ("gpus", "prefill", "chunk", "front")
        ]
        assert not all(same)


def test_what_cannot_be_kept_is_hatched():
    """At 5 ms no replica writes fast enough, even an idle one; the model has no room on one GPU."""
    parts = at(tpot=0.005).shown()["parts"]
    hatched = np.reshape(parts["broken"]["right"] > 0, (3, 8)).sum(axis=1)
    assert list(hatched) == [0, parts["named"]["why"].count("tokens slow, even idle"), 0]
    assert hatched[1] == 6 and parts["named"]["why"].count("no room for the model") == 2


def test_the_line_is_above_all_that_keep_the_limits():
    widget = at()
    line, dots = widget.shown()["parts"]["frontier"], widget.found()
    for x, y, within in zip(dots.user, dots.per_gpu, dots.within):
        if within > 0:
            assert y <= max(line["y"][line["x"] < x]) + 1e-9
