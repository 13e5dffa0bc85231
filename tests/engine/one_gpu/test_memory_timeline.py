"""The timeline of a recorded step, against sums done by hand and the allocator's replay of the same step."""

import numpy as np
import pytest

from engine.one_gpu import allocator_replay, memory_timeline
from engine.one_gpu.memory_timeline import ACTIVATIONS, GRADIENTS, STATE, TEMPORARIES, WEIGHTS, of_steps

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
