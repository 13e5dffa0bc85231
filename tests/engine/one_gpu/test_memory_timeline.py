"""The timeline of a recorded step, against sums done by hand and the allocator's replay of the same step."""

import numpy as np
import pytest

from engine.one_gpu import allocator_replay, memory_timeline
from engine.one_gpu.memory_timeline import (
    ACTIVATIONS,
    GRADIENTS,
    STATE,
    TEMPORARIES,
    WEIGHTS,
    of_steps,
    on_gpu,
)

RUN = of_steps(3, 8192)
PARAMETERS = 2 * 50257 * 4096 + 6 * (12 * 4096**2 + 4 * 4096) + 2 * 4096


def test_weights_gradients_and_temporaries_are_one_value_a_weight_and_state_is_two():
    most = RUN.held_bytes.max(axis=1)
    assert most[WEIGHTS] == pytest.approx(2 * PARAMETERS, rel=1e-4)  # rounded to blocks of 512 bytes
    assert most[STATE] == pytest.approx(2 * most[WEIGHTS], rel=1e-4)
    assert most[GRADIENTS] == most[TEMPORARIES] == most[WEIGHTS]


def test_nothing_is_freed_twice_and_a_step_leaves_weights_and_state():
    assert (RUN.held_bytes >= 0).all()
    for end in RUN.ends[1:]:
        left = RUN.held_bytes[:, end - 1]
        assert left[[ACTIVATIONS, GRADIENTS, TEMPORARIES]].tolist() == [0, 0, 0]
        assert left[WEIGHTS] + left[STATE] == RUN.allocated_bytes[end - 1]


def test_its_peaks_are_those_of_the_allocator():
    for steps in (1, 2):
        run = allocator_replay.of_steps(
            steps, 8192, 0, seed=8, capacity_bytes=180e9, expandable=0, moment=steps
        )
        beside = run["peak_allocated_bytes"] - RUN.allocated_bytes[: RUN.ends[steps]].max()
        assert 0 <= beside < 4e6  # rests too small to be split off stay with their block
        assert RUN.of_step(steps)[-1] == run["allocated_bytes"]


def test_a_step_that_keeps_its_scores_leaves_them():
    """Four sequences of 8,192 tokens, two bytes for each of 50,257 words."""
    kept = of_steps(3, 8192, keeps_scores=True)
    left = np.array([kept.of_step(step)[-1] - RUN.of_step(step)[-1] for step in (1, 2, 3)])
    assert left / (4 * 8192 * 50257 * 2) == pytest.approx([1, 2, 3], rel=1e-4)
    assert (
        memory_timeline.scores("first") != memory_timeline.scores("steady")
        and (kept.allocated_bytes >= RUN.allocated_bytes).all()
    )


# -- on a GPU ------------------------------------------------------------------------------------------------
WORKSPACES = 2 * 2**25  # of cuBLAS, which the meta device lacks


def test_a_gpu_holds_what_the_meta_device_says_and_two_workspaces():
    seen, made = on_gpu(), of_steps(2, 8192)
    for step, beside in ((0, 0), (1, 2**25), (2, WORKSPACES)):
        assert seen.of_step(step)[-1] - made.of_step(step)[-1] == pytest.approx(
            WORKSPACES if step else 0, abs=50e3
        )
        assert seen.of_step(step).max() - made.of_step(step).max() == pytest.approx(beside, abs=100e3)
    apart = seen.held_bytes.max(axis=1) - made.held_bytes.max(axis=1)
    assert apart == pytest.approx([0, 0, WORKSPACES, 0, 0], abs=100e3)


def test_a_gpu_reserves_what_its_allocator_hands_out_and_more():
    seen = on_gpu()
    assert (seen.reserved_bytes >= seen.allocated_bytes).all()
    assert (np.diff(seen.reserved_bytes) >= 0).all() and (seen.held_bytes >= 0).all()
    assert seen.reserved_bytes[-1] == sum(size for _, size in memory_timeline.history()["segments"])


def test_the_peak_holds_three_tensors_as_large_as_the_scores():
    """Of the cross-entropy: its logarithms, asked for by name, and two that the backward pass makes."""
    large = [each for each in memory_timeline.history()["at_peak"] if each["bytes"] > 3e9]
    assert [each["bytes"] // 10**6 for each in large] == [2 * 4 * 8192 * 50257 // 10**6] * 3
    assert "cross_entropy" in large[0]["asked_by"][0] and not large[1]["asked_by"]
