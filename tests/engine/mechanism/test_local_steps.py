"""DiLoCo and its successors, worked by hand for 10B parameters."""

import pytest

from engine.mechanism import local_steps
from tests.said import refused

P = 10e9


def test_what_is_sent():
    """500 steps between exchanges: 40 GB of changes in fp32, 80 MB a step, a 500th of fp32 gradients; in 4
    bits 5 GB and 10 MB, a 2,000th of 16-bit gradients."""
    assert local_steps.sent_bytes(P, 500) == 80e6
    assert local_steps.sent_bytes(P, 500, local_steps.NARROW_BYTES) == 10e6 == P * 2 / 2000
    assert local_steps.sent_bytes(P, 1, 2.0) == 2 * P  # data parallelism


def test_the_outer_optimizer_keeps_eight_bytes():
    assert local_steps.outer_state_bytes(P) == 80e9


def test_the_rate_that_a_wire_must_carry():
    """Steps of a second, 4 bits: 10 MB/s on average. All at once behind one step 5 GB/s; in 20 fragments,
    each behind 5 steps, 50 MB/s; behind 25, without a gap, the average."""
    assert local_steps.average_bytes_per_s(P, 500, 1.0) == 10e6
    assert local_steps.peak_bytes_per_s(P, 1, 1, 1.0) == 5e9
    assert local_steps.peak_bytes_per_s(P, 20, 5, 1.0) == 50e6
    assert local_steps.peak_bytes_per_s(P, 20, 25, 1.0) == 10e6


def test_what_shows_of_an_exchange():
    """100 s for the whole model, steps of 1 s, once in 500: 0.2 s a step. In 20 fragments of 5 s each behind
    3 steps 2 s show 20 times, 0.08 s a step; behind 5 nothing does, nor behind a whole round."""
    assert local_steps.mean_step_s(1.0, 100.0, 500) == 1.2
    assert local_steps.mean_step_s(1.0, 100.0, 500, 20, 3) == pytest.approx(1.08)
    assert local_steps.mean_step_s(1.0, 100.0, 500, 20, 5) == 1.0
    assert local_steps.mean_step_s(1.0, 100.0, 500, hidden_steps=500) == 1.0
    assert local_steps.mean_step_s(2.0, 100.0, 500, 20, 2) == pytest.approx(2 + 20 * (5 - 2 * 2) / 500)


def test_bad_input_is_refused():
    with refused("inner_steps", "0"):
        local_steps.sent_bytes(P, 0)
    with refused("exchange_s", "-1.0"):
        local_steps.mean_step_s(1.0, -1.0, 500)
