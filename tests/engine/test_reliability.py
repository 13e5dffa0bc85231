"""Failures and checkpoints: the published rate, the best interval, and limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import reliability
from engine.reliability import (LLAMA3_FAILURES_PER_GPU_S, daly_interval_s, failures_per_gpu_s, goodput,
                                mean_time_between_failures_s, run, wasted_share, young_interval_s)
from engine.units import DAY, HOUR, YEAR

times = st.floats(1e-3, 1e7)


def test_llama_3_failed_every_three_hours():
    """419 in 54 days on 16,384 GPUs: 3.09 h (arXiv:2407.21783 section 3.3.4), 3.79 per 1000 node-days."""
    assert mean_time_between_failures_s(16384) / HOUR == pytest.approx(3.09, rel=0.005)
    assert failures_per_gpu_s(16384, 419, 54 * DAY) == LLAMA3_FAILURES_PER_GPU_S
    assert LLAMA3_FAILURES_PER_GPU_S * DAY * 8 * 1000 == pytest.approx(3.79, rel=0.005)


def test_projection_of_the_research_clusters():
    """6.5 failures per 1000 node-days of 8 GPUs: 0.23 h at 131,072 GPUs (arXiv:2410.21680)."""
    rate = 6.5e-3 / DAY / 8
    assert mean_time_between_failures_s(131072, rate) / HOUR == pytest.approx(0.225, rel=0.01)


@given(times, times, st.floats(0, 1e6))
def test_young_is_the_least_of_the_first_order(checkpoint_s, mtbf_s, restart_s):
    best = young_interval_s(checkpoint_s, mtbf_s)
    waste = wasted_share(best, checkpoint_s, mtbf_s, restart_s)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert wasted_share(best * factor, checkpoint_s, mtbf_s, restart_s) >= waste * (1 - 1e-9)
    assert 0 <= waste <= 1 and goodput(best, checkpoint_s, mtbf_s, restart_s) == 1 - waste


@given(times, times)
def test_daly_corrects_young_a_little(checkpoint_s, mtbf_s):
    daly = daly_interval_s(checkpoint_s, mtbf_s)
    assert np.isfinite(daly) and daly > 0
    if checkpoint_s < mtbf_s / 1000:
        assert daly == pytest.approx(young_interval_s(checkpoint_s, mtbf_s), rel=0.05)
    if checkpoint_s >= 2 * mtbf_s:
        assert daly == mtbf_s


@given(st.integers(1, 10**6), times, times, st.floats(1e-3, 100))
def test_more_gpus_leave_less(gpus, checkpoint_s, restart_s, per_year):
    one, two = (run(n, checkpoint_s, restart_s, per_year) for n in (gpus, 2 * gpus))
    assert two.mtbf_s == pytest.approx(one.mtbf_s / 2) and two.goodput <= one.goodput
    assert 0 <= one.goodput <= 1 and one.failures_per_day == pytest.approx(gpus * per_year * DAY / YEAR)


def test_arrays_broadcast():
    assert wasted_share(np.array([100.0, 200.0]), 10.0, 1000.0, 0.0) == pytest.approx([0.15, 0.15])


@pytest.mark.parametrize("call, words", [
    (lambda: run(0, 1, 1), "gpus must be a whole number of at least 1, got 0"),
    (lambda: run(8, -1, 1), "checkpoint_s must be greater than 0"),
    (lambda: run(8, 1, -1), "restart_s must be at least 0"),
    (lambda: run(8, 1, 1, 0), "failures_per_gpu_year must be greater than 0"),
    (lambda: run(8, 1, 1, interval_s=0), "interval_s must be greater than 0"),
    (lambda: young_interval_s(1, float("inf")), "mtbf_s must be finite"),
    (lambda: reliability.failures_per_gpu_s(8, 0, 1), "failures must be greater than 0"),
])
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
