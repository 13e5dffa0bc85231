"""Pipeline schedules in closed form against the papers' formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.mechanism import memory
from engine.mechanism.pipeline import (
    SCHEDULES,
    against_1f1b,
    bubble_s,
    bubble_share,
    first_stage_bytes,
    imbalance,
    in_flight,
    least_micro_batches,
    micro_batches_for,
    passes,
    schedule,
    stage_layers,
    step_s,
)
from tests.said import refused

stages = st.integers(1, 128).map(float)


def bubble(key, p, v=1.0, forward=1.0, backward=2.0, weight=1.0):
    return bubble_s(float(p), float(v), forward, backward, weight, SCHEDULES[key])


def test_bubbles_of_the_papers():
    assert bubble("gpipe", 8) == bubble("1f1b", 8) == 7 * 3
    assert bubble("interleaved", 8, 4) == 7 * 3 / 4
    assert bubble("zb-h1", 8) == 7 * (3 - 2) and bubble("zb-h2", 8) == 0  # arXiv:2401.10241 with F = B = W
    assert bubble("dualpipe", 8) == 3 * (3 + 2 - 3)  # (p/2−1)(F&B+B−3W), F&B = F + B
    assert bubble("dualpipe", 8, backward=2.5, weight=0.5) == pytest.approx(3 * (3.5 + 2.5 - 1.5))
    assert bubble("zb-v", 8, 2) == 0 and bubble("zb-v", 8, 2, backward=2.5, weight=1) == 7 * 0.5  # F ≤ I
    assert bubble("dualpipe-v", 8, 2) == bubble("dualpipe", 16) / 2  # on half the GPUs, with half the layers
    assert bubble_share(16, 16) == pytest.approx(15 / 31)  # "p = m = 16 idles 48 %"
    assert bubble_share(8, 32, 4, key="interleaved") == pytest.approx(7 / (4 * 32 + 7))


@given(stages, st.integers(1, 512).map(float), st.integers(1, 16).map(float))
def test_no_bubble_alone_and_never_a_negative_one(p, m, v):
    for plan in SCHEDULES.values():
        chunks = v if plan.interleaved else 1.0 + plan.folded
        idle = bubble_s(p, chunks, 1.0, 2.0, 1.0, plan)
        assert idle >= 0 and (p > 1 or idle == 0)
        assert 1 <= in_flight(p, m, chunks, plan) <= m or m < 1


def test_activations_in_flight():
    flight = {
        key: in_flight(8.0, 100.0, 1.0 + plan.folded, plan)
        for key, plan in SCHEDULES.items()
        if key != "interleaved"
    }
    assert flight == {
        "gpipe": 100,
        "1f1b": 8,
        "zb-h1": 8,
        "zb-h2": 15,
        "dualpipe": 9,
        "zb-v": 8,
        "dualpipe-v": 8.5,
    }
    assert in_flight(8.0, 96.0, 4.0, SCHEDULES["interleaved"]) == pytest.approx(8 * (1 + 7 / (8 * 4)))
    assert in_flight(8.0, 96.0, 4.0, SCHEDULES["interleaved"]) == pytest.approx(
        memory.in_flight_micro_batches(8, 96, 0, 4)
    )  # the same formula as memory's


def test_1f1b_holds_one_micro_batch_of_the_whole_model_whatever_p():
    held = {
        key: first_stage_bytes(16, 64, 4 if plan.interleaved else 1, 1e9, plan)
        for key, plan in SCHEDULES.items()
    }
    assert held["1f1b"] == held["zb-h1"] == first_stage_bytes(4, 64, 1, 1e9, SCHEDULES["1f1b"]) == 1e9
    assert held["gpipe"] == 4e9 and held["zb-h2"] == 1e9 * 31 / 16 and held["dualpipe"] == 1e9 * 17 / 16
    assert held["interleaved"] == 1e9 * (1 + 15 / 64)
    assert first_stage_bytes(16, 4, 1, 1e9, SCHEDULES["1f1b"]) == 1e9 / 4  # fewer micro-batches than stages


def test_the_least_micro_batches():
    assert {key: least_micro_batches(8, plan) for key, plan in SCHEDULES.items()} == {
        "gpipe": 1,
        "1f1b": 1,
        "interleaved": 8,
        "zb-h1": 8,
        "zb-h2": 15,
        "dualpipe": 16,
        "zb-v": 15,
        "dualpipe-v": 16,
    }


def test_micro_batches_for_a_bubble():
    """1F1B: (p−1)/(m+p−1) ≤ 5 % from m = 19 (p−1) on; four for each stage leave less than a fifth."""
    assert micro_batches_for(0.05, 16, 1, 1.0, 2.0, 1.0, SCHEDULES["1f1b"]) == 19 * 15
    assert (
        micro_batches_for(0.05, 16, 1, 1.0, 2.0, 1.0, SCHEDULES["zb-h2"]) == 31
    )  # its warm-up, no bubble at all
    assert bubble_share(16, 64) < 0.2


def test_passes_and_what_is_said_of_them():
    assert passes(0.02, 2.0, 0.25) == pytest.approx((0.02, 0.04, 0.03, 0.01))
    assert step_s(4.0, 8.0, 1.0, 1.0, 2.0, 1.0, SCHEDULES["1f1b"]) == 11 * 3
    assert imbalance(3.0, 8.0, 4) == 1.5 and against_1f1b(20.0, 4, 8) == 5


def test_layers_that_do_not_divide_come_off_the_ends():
    assert stage_layers(126.0, 16.0, 4.0) == (8, 7, 7)  # Llama 3: one fewer on the first and the last stage
    assert stage_layers(70.0, 12.0, 1.0) == (6, 5, 5)  # BLOOM
    assert stage_layers(96.0, 8.0, 3.0) == (12, 12, 12)
    assert stage_layers(61.0, 2.0, 1.0) == (31, 31, 30)


@given(st.integers(1, 200), st.integers(1, 64), st.integers(1, 8))
def test_stages_hold_all_layers(layers, p, v):
    full, first, last = stage_layers(float(layers), float(p), float(v))
    assert 0 <= last <= first <= full
    assert full * p >= layers and (full - v) * p < layers
    array = stage_layers(np.array([float(layers)]), float(p), float(v))
    assert [part[0] for part in array] == [full, first, last]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: schedule("pipedream"),
            ("schedule", "gpipe, 1f1b, interleaved, zb-h1, zb-h2, dualpipe, zb-v, dualpipe-v"),
        ),
        (lambda: bubble_share(0, 4), ("stages", "1", "0")),
        (lambda: bubble_share(4, 4, backward_over_forward=-1), ("backward_over_forward", "0")),
        (lambda: stage_layers(4, 2.5, 1), ("stages",)),
        (lambda: in_flight(4, 0, 1, SCHEDULES["1f1b"]), ("micro_batches", "1")),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()
