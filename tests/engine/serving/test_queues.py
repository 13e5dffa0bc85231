"""Queues in closed form, by hand."""

import pytest

from engine.serving import queues


def test_the_queue_by_hand():
    """Half load on a 50 ms server: 0.5 · 50 / (2 · 0.5) = 25 ms of waiting."""
    assert queues.m_d_1_wait_s(10, 0.05) == pytest.approx(0.025)
    with pytest.raises(ValueError, match="load must be"):
        queues.m_d_1_wait_s(20, 0.05)


def test_a_prefilling_replica_by_hand():
    """S = 0.2 s, T = 0.5 s: ρ = 0.6/0.8 = 0.75, 3.75 requests a second; the wait is 0.75·0.2/(2·0.25) = 0.3
    s."""
    assert queues.prefill_rate(0.2, 0.5) == pytest.approx(3.75)
    assert queues.m_d_1_wait_s(3.75, 0.2) == pytest.approx(0.3)
    assert queues.prefill_rate(0.6, 0.5) == 0
