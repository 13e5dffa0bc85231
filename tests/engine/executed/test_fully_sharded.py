"""ZeRO and FSDP: traffic against the executed runs, the step by hand and in its limits, memory on the same
axis."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.executed import executed_training as executed
from engine.executed import fully_sharded as fs
from engine.mechanism import hiding
from engine.mechanism.timeline import Task, levels, simulate
from tests.cases import in_one_test

RECIPE = catalog.recipe("bf16-adam")
UNIT = fs.ShardedLayer(
    forward_s=2.0,
    backward_s=4.0,
    gather_s=1.0,
    scatter_s=1.0,
    weight_bytes=10.0,
    gradient_bytes=10.0,
    activation_bytes=3.0,
)
TASK = executed.problem()


# -- traffic -------------------------------------------------------------------------------------------------
@in_one_test("stage", executed.STAGES)
@in_one_test("ranks", [1, 2, 4, 8])
def test_the_formula_is_what_executed_ranks_send(ranks, stage):
    sent = executed.train(TASK, ranks, stage, steps=1).sent_elements
    assert sent == pytest.approx(np.full(ranks, fs.traffic_elements(TASK.parameters, ranks, stage)))
    assert fs.traffic_bytes(TASK.parameters, ranks, stage, RECIPE) == pytest.approx(2 * sent[0])


def test_traffic_by_hand():
    """7.5B on 64: 2·7.5e9·63/64 = 14.77e9 elements; stage 3 half as many again; HSDP 8 × 8: 2·7/8·7.5e9/8."""
    assert fs.traffic_elements(7.5e9, 64, 2) == pytest.approx(14.766e9, rel=1e-4)
    assert fs.traffic_elements(7.5e9, 64, 3) / fs.traffic_elements(7.5e9, 64, 1) == 1.5
    assert fs.replica_elements(7.5e9, 8, 8) == pytest.approx(1.640625e9)
    assert fs.replica_elements(7.5e9, 8, 1) == 0


def test_at_the_rules_tokens_gather_and_arithmetic_are_equal():
    """The tokens that hide data parallelism's AllReduce hide the traffic of stage 3 in either pass."""
    tokens = hiding.tokens_to_hide(64, 50e9, 0.4 * 989e12)
    at = fs.layer(1e9, tokens, 64, 0.4 * 989e12, 50e9, 0.0, 0.0)
    assert at.gather_s == pytest.approx(at.forward_s) and at.gather_s + at.scatter_s == pytest.approx(
        at.backward_s
    )


# -- the step ------------------------------------------------------------------------------------------------
def by_names(at, layers, prefetch):
    """The same step, written independently: tasks by name, times by ``timeline.simulate``, memory by
    ``timeline.levels``."""
    uses = [f"forward {n}" for n in range(1, layers + 1)] + [f"backward {n}" for n in range(layers, 0, -1)]
    tasks, issued = [], 0
    for place, use in enumerate(uses):
        for ahead in range(issued, min(place + prefetch + 1, len(uses))):
            room = ahead - prefetch - 1
            tasks.append(
                Task(f"gather, {uses[ahead]}", "network", at.gather_s, (uses[room],) if room >= 0 else ())
            )
            issued = ahead + 1
        back = use.startswith("backward")
        tasks.append(Task(use, "compute", at.backward_s if back else at.forward_s, (f"gather, {use}",)))
        if back:
            tasks.append(Task(f"scatter, {use}", "network", at.scatter_s, (use,)))
    line = simulate(tasks)
    back = uses[layers:]
    changes = (
        [(line.starts(f"gather, {use}"), at.weight_bytes) for use in uses],
        [(line.ends(use), -at.weight_bytes) for use in uses],
        [(line.starts(use), at.gradient_bytes + at.rebuilt_bytes) for use in back],
        [(line.ends(f"scatter, {use}"), -at.gradient_bytes) for use in back],
        [(line.starts(use), at.activation_bytes) for use in uses[:layers]],
        [(line.ends(use), -at.activation_bytes - at.rebuilt_bytes) for use in back],
    )
    return line, levels([*itertools.chain(*changes)])


def known(column):
    """A column without its unused entries."""
    return column[~np.isnan(column)]


def spans(step, *kinds):
    """Start and end of the tasks of these kinds."""
    return [
        (start, end)
        for kind, start, end in zip(step["kind"], step["start_s"], step["end_s"])
        if kind in kinds
    ]


def test_a_step_of_two_layers_by_hand():
    """Prefetch 1. Gathers at 0 and 1; forward 1 to 3 to 5. Backward 2's gather waits for forward 1: 3 to 4;
    that of backward 1 for forward 2: 5 to 6. Backward 5 to 9 to 13, scatters 9 to 10 and 13 to 14. In view:
    0 to 1 and 13 to 14."""
    step = fs.run(UNIT, layers=2, prefetch=1)
    assert spans(step, fs.FORWARD, fs.BACKWARD) == [(1, 3), (3, 5), (5, 9), (9, 13)]
    assert spans(step, fs.GATHER, fs.SCATTER) == [(0, 1), (1, 2), (3, 4), (5, 6), (9, 10), (13, 14)]
    assert (
        step["total_s"] == 14
        and step["exposed_s"] == 2
        and step["compute_s"] == 12
        and step["network_s"] == 6
    )
    assert known(step["idle_from_s"]).tolist() == [0, 13] and known(step["idle_to_s"]).tolist() == [1, 14]
    assert known(step["idle_kind"]).tolist() == [fs.GATHER, fs.SCATTER]
    assert known(step["kind"]).tolist() == [0, 0, 1, 0, 1, 0, 2, 3, 2, 3]
    assert known(step["layer"]).tolist() == [1, 2, 1, 2, 2, 1, 2, 2, 1, 1]
    third_gather = 3
    assert (step["waits_kind"][third_gather], step["waits_layer"][third_gather]) == (fs.FORWARD, 1)
    assert step["waits_kind"][0] == -1
    assert [len(known(step[name])) for name in ("waits_kind", "waits_layer")] == [10, 10]


def test_gradients_of_4_bytes_take_twice_as_long_to_scatter_as_weights_of_2_to_gather():
    made = fs.layer(1e9, 4096, 8, 4e14, 5e10, 0.0, 0.0, weight_bytes=2.0, gradient_bytes=4.0)
    assert (made.weight_bytes, made.gradient_bytes) == (2e9, 4e9)
    assert made.scatter_s == pytest.approx(2 * made.gather_s) == pytest.approx(7 / 8 * 4e9 / 5e10)


def test_its_memory_by_hand():
    """Gathered: 10 from 0, 20 from 1, 10 + 10 from 3 (one gone, one come); gradients 10 from 5, 20 at 9, 10
    at 10."""
    step = fs.run(UNIT, layers=2, prefetch=1)
    at = dict(
        zip(step["level_s"], zip(step["gathered_bytes"], step["gradients_bytes"], step["activations_bytes"]))
    )
    assert at[0.0] == (10, 0, 0) and at[1.0] == (20, 0, 3) and at[3.0] == (20, 0, 6)
    assert (
        at[5.0] == (20, 10, 6)
        and at[9.0] == (10, 20, 3)
        and at[10.0] == (10, 10, 3)
        and at[14.0] == (0, 0, 0)
    )
    assert step["peak_bytes"] == 36


def test_without_prefetch_everything_is_in_a_row():
    """4 gathers, 2 + 2 forward, 4 + 4 backward, 2 scatters: 4 + 12 + 2 = 18 s."""
    step = fs.run(UNIT, layers=2, prefetch=0)
    assert step["total_s"] == 18 and step["exposed_s"] == 6 and np.nanmax(step["gathered_bytes"]) == 10


def test_the_slow_wire_sets_the_pace():
    """Where each gather takes longer than any arithmetic, the step is the wire's work and the last layer's
    ends."""
    slow = fs.ShardedLayer(0.01, 0.02, 1.0, 1.0, 10.0, 10.0, 0.0)
    assert fs.run(slow, 8, prefetch=2)["network_s"] == pytest.approx(24)
    assert fs.run(slow, 8, prefetch=2)["total_s"] == pytest.approx(24, rel=0.01)


def test_the_fast_wire_shows_its_first_and_last_piece_alone():
    step = fs.run(UNIT, layers=16, prefetch=1)
    assert step["exposed_s"] == UNIT.gather_s + UNIT.scatter_s
    assert step["total_s"] == 16 * 6 + 2


times = st.floats(0.01, 10)


@settings(max_examples=60, deadline=None)
@given(
    forward=times,
    backward=times,
    gather=times,
    scatter=times,
    rebuilt=st.floats(0, 5),
    layers=st.integers(1, 12),
    depth=st.integers(0, 4),
)
def test_the_step_is_that_of_named_tasks_within_its_bounds(
    forward, backward, gather, scatter, rebuilt, layers, depth
):
    at = fs.ShardedLayer(forward, backward, gather, scatter, 10.0, 7.0, 3.0, rebuilt)
    step = fs.run(at, layers, depth)
    line, (times_s, total_bytes) = by_names(at, layers, depth)
    found = known(step["gathered_bytes"]) + known(step["gradients_bytes"]) + known(step["activations_bytes"])
    assert known(step["start_s"]).tolist() == list(line.start_s) and known(step["end_s"]).tolist() == list(
        line.end_s
    )
    assert known(step["level_s"]).tolist() == times_s.tolist() and found == pytest.approx(total_bytes)
    assert step["exposed_s"] == pytest.approx(line.exposed_s("network", "compute"))
    assert np.sum(known(step["idle_to_s"]) - known(step["idle_from_s"])) == pytest.approx(step["exposed_s"])
    assert np.nanmax(step["gathered_bytes"]) <= 10 * (depth + 1) + 1e-9
    assert abs(found[-1]) < 1e-9 and found.min() > -1e-9 and step["peak_bytes"] == pytest.approx(found.max())
    assert step["network_s"] == pytest.approx(line.busy_s("network"))
    assert step["total_s"] >= max(line.busy_s("network"), line.busy_s("compute")) - 1e-9
    assert depth == 0 or step["total_s"] <= fs.run(at, layers, 0)["total_s"] + 1e-9


def test_recomputation_by_hand():
    """A third more arithmetic: 2 + (4 + 2) shares for 2 + 4; what is kept falls from 10 + 24 to 2 units of
    width."""
    model = catalog.model("gpt3-175b")
    kept, again = (fs.transformer_layer(model, 1024, 8, 4e14, 400e9, 0.0, recompute) for recompute in (0, 1))
    assert (again.forward_s + again.backward_s) / (kept.forward_s + kept.backward_s) == pytest.approx(8 / 6)
    assert kept.activation_bytes == 34 * 12288 * 1024 and again.activation_bytes == 2 * 12288 * 1024
    assert again.rebuilt_bytes == kept.activation_bytes and kept.rebuilt_bytes == 0
    # biases and norms are the rest
    assert kept.gather_s == pytest.approx(2 * 12 * 12288**2 * 7 / 8 / 400e9, rel=1e-3)


# -- bad input -----------------------------------------------------------------------------------------------
GOOD = dict(
    params=1e9,
    tokens=4096,
    ranks=8,
    flops_per_s=4e14,
    wire_bytes_per_s=50e9,
    alpha_s=1e-5,
    activation_bytes=1e9,
    weight_bytes=2.0,
    gradient_bytes=2.0,
)


@in_one_test("bad", [float("nan"), float("inf"), -1, "seven"], ids=str)
@in_one_test("name", GOOD)
def test_bad_numbers_are_refused(name, bad):
    with pytest.raises(ValueError, match="must be"):
        fs.layer(**{**GOOD, name: bad})


@pytest.mark.parametrize("bad", [dict(layers=0), dict(prefetch=-1), dict(prefetch=0.5)], ids=str)
def test_bad_steps_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        fs.run(UNIT, **{**dict(layers=2), **bad})


@pytest.mark.parametrize("bad", [dict(stage=4), dict(ranks=0), dict(params=-1)], ids=str)
def test_bad_traffic_is_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        fs.traffic_elements(**{**dict(params=1e9, ranks=8, stage=1), **bad})


@given(st.integers(1, 8), st.integers(0, 4))
def test_an_own_order_that_is_the_engines_is_its_step(layers, prefetch):
    kind, layer, after = fs.issued(layers, prefetch)
    assert fs.needed(kind, layer) == after
    own = [1.0, *(4.0 * number + what for what, number in zip(kind, layer))]
    assert fs.own_order(own) == (kind, layer)
    times = (1.0, 2.0, 1.5, 0.5, 3.0, 2.0, 1.0, 0.0)
    mine, engines = (
        fs.simulate_step(layers, ahead, *times, order) for ahead, order in ((0, own), (prefetch, fs.NOT_OWN))
    )
    assert mine.pop("own") == 1 and engines.pop("own") == 0
    assert all(np.array_equal(mine[name], engines[name], equal_nan=True) for name in engines)
