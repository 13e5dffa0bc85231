"""ZeRO and FSDP: traffic against the executed runs, the step by hand and in its limits, memory on the same axis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog, data_parallel, executed_training as executed, fully_sharded as fs

RECIPE = catalog.recipe("bf16-adam")
UNIT = fs.Layer(forward_s=2.0, backward_s=4.0, gather_s=1.0, scatter_s=1.0, weight_bytes=10.0, gradient_bytes=10.0,
                activation_bytes=3.0)
TASK = executed.problem()


# -- traffic ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stage", executed.STAGES)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
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


def test_stage_three_hides_from_as_many_tokens_as_data_parallelism():
    assert fs.tokens_to_hide(64, 50e9, 989e12) == data_parallel.tokens_to_hide(64, 50e9, 989e12)


def test_at_that_many_tokens_gather_and_arithmetic_are_equal():
    tokens = fs.tokens_to_hide(64, 50e9, 989e12, 0.4)
    at = fs.layer(1e9, tokens, 64, 0.4 * 989e12, 50e9, 0.0, 0.0)
    assert at.gather_s == pytest.approx(at.forward_s) and at.gather_s + at.scatter_s == pytest.approx(at.backward_s)


# -- the step --------------------------------------------------------------------------------------------------------
def test_a_step_of_two_layers_by_hand():
    """Prefetch 1. Gathers at 0 and 1; forward 1 to 3 to 5. Backward 2's gather waits for forward 1: 3 to 4; that
    of backward 1 for forward 2: 5 to 6. Backward 5 to 9 to 13, scatters 9 to 10 and 13 to 14. In view:
    0 to 1 and 13 to 14."""
    step = fs.simulate_step(UNIT, layers=2, prefetch=1)
    line = step.timeline
    assert [(s.start_s, s.end_s) for s in line.spans(fs.COMPUTE)] == [(1, 3), (3, 5), (5, 9), (9, 13)]
    assert [(s.start_s, s.end_s) for s in line.spans(fs.NETWORK)] == [(0, 1), (1, 2), (3, 4), (5, 6), (9, 10), (13, 14)]
    assert line.total_s == 14 and step.exposed_s == 2
    assert step.frees[0] == ("forward 1", 3.0)
    assert line.waits_for[line.place["gather, backward 2"]] == "forward 1"


def test_its_memory_by_hand():
    """Gathered: 10 from 0, 20 from 1, 10 + 10 from 3 (one gone, one come); gradients 10 from 5, 20 at 9, 10 at 10."""
    step = fs.simulate_step(UNIT, layers=2, prefetch=1)
    at = dict(zip(step.times_s, zip(step.gathered_bytes, step.gradients_bytes, step.activations_bytes)))
    assert at[0.0] == (10, 0, 0) and at[1.0] == (20, 0, 3) and at[3.0] == (20, 0, 6)
    assert at[5.0] == (20, 10, 6) and at[9.0] == (10, 20, 3) and at[10.0] == (10, 10, 3) and at[14.0] == (0, 0, 0)


def test_without_prefetch_everything_is_in_a_row():
    """4 gathers, 2 + 2 forward, 4 + 4 backward, 2 scatters: 4 + 12 + 2 = 18 s."""
    step = fs.simulate_step(UNIT, layers=2, prefetch=0)
    assert step.timeline.total_s == 18 and step.exposed_s == 6 and step.gathered_bytes.max() == 10


def test_the_slow_wire_sets_the_pace():
    """Where each gather takes longer than any arithmetic, the step is the wire's work and the last layer's ends."""
    slow = fs.Layer(0.01, 0.02, 1.0, 1.0, 10.0, 10.0, 0.0)
    assert fs.simulate_step(slow, 8, prefetch=2).timeline.busy_s(fs.NETWORK) == pytest.approx(24)
    assert fs.simulate_step(slow, 8, prefetch=2).timeline.total_s == pytest.approx(24, rel=0.01)


def test_the_fast_wire_shows_its_first_and_last_piece_alone():
    step = fs.simulate_step(UNIT, layers=16, prefetch=1)
    assert step.exposed_s == UNIT.gather_s + UNIT.scatter_s
    assert step.timeline.total_s == 16 * 6 + 2


times = st.floats(0.01, 10)


@settings(max_examples=60, deadline=None)
@given(forward=times, backward=times, gather=times, scatter=times, layers=st.integers(1, 12), depth=st.integers(0, 4))
def test_prefetch_bounds_memory_and_never_beats_either_stream(forward, backward, gather, scatter, layers, depth):
    at = fs.Layer(forward, backward, gather, scatter, 10.0, 7.0, 3.0)
    step = fs.simulate_step(at, layers, depth)
    line = step.timeline
    assert step.gathered_bytes.max() <= 10 * (depth + 1) + 1e-9
    assert abs(step.total_bytes[-1]) < 1e-9 and step.total_bytes.min() > -1e-9
    assert step.activations_bytes.max() == pytest.approx(3 * layers)
    assert line.busy_s(fs.NETWORK) == pytest.approx(layers * (2 * gather + scatter))
    assert line.total_s >= max(line.busy_s(fs.NETWORK), line.busy_s(fs.COMPUTE)) - 1e-9
    assert line.total_s == pytest.approx(line.busy_s(fs.COMPUTE) + step.exposed_s)
    assert depth == 0 or line.total_s <= fs.simulate_step(at, layers, 0).timeline.total_s + 1e-9


# -- bad input -------------------------------------------------------------------------------------------------------
GOOD = dict(params=1e9, tokens=4096, ranks=8, flops_per_s=4e14, wire_bytes_per_s=50e9, alpha_s=1e-5,
            activation_bytes=1e9, weight_bytes=2.0, gradient_bytes=2.0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, "seven"], ids=str)
@pytest.mark.parametrize("name", GOOD)
def test_bad_numbers_are_refused(name, bad):
    with pytest.raises(ValueError, match="must be"):
        fs.layer(**{**GOOD, name: bad})


@pytest.mark.parametrize("bad", [dict(layers=0), dict(prefetch=-1), dict(prefetch=0.5)], ids=str)
def test_bad_steps_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        fs.simulate_step(UNIT, **{**dict(layers=2), **bad})


@pytest.mark.parametrize("bad", [dict(stage=4), dict(ranks=0), dict(params=-1)], ids=str)
def test_bad_traffic_is_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        fs.traffic_elements(**{**dict(params=1e9, ranks=8, stage=1), **bad})
