"""Failures and checkpoints: the published rate, the best interval, and limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.base.units import DAY, HOUR, YEAR
from engine.mechanism import reliability
from engine.mechanism.reliability import (
    LLAMA3_FAILURES_PER_GPU_S,
    best_interval_s,
    failures_per_gpu_s,
    lost_per_failure_s,
    mean_time_between_failures_s,
    run,
    shares,
    useful_share,
    wasted_share,
    young_interval_s,
)
from tests.cases import in_one_test
from tests.said import refused

times = st.floats(1e-3, 1e7)


def test_llama_3_failed_every_three_hours():
    """419 in 54 days on 16,384 GPUs: 3.09 h (arXiv:2407.21783 section 3.3.4), 3.79 per 1000 node-days."""
    assert mean_time_between_failures_s(16384) / HOUR == pytest.approx(3.09, rel=0.005)
    assert failures_per_gpu_s(16384, 419, 54 * DAY) == LLAMA3_FAILURES_PER_GPU_S
    assert pytest.approx(3.79, rel=0.005) == LLAMA3_FAILURES_PER_GPU_S * DAY * 8 * 1000


@pytest.mark.parametrize(
    ("checkpoint_s", "interval_s", "waste"),
    [(10, 472, 0.0963), (30, 817, 0.1273), (60, 1156, 0.1577), (120, 1635, 0.2007)],
)
def test_llama_3s_interval_and_waste_by_hand(checkpoint_s, interval_s, waste):
    """√(2 · δ · 11,135 s), and 2·√(δ/2M) + 600/M; as printed, to half of the last digit."""
    mtbf_s = mean_time_between_failures_s(16384)
    assert young_interval_s(checkpoint_s, mtbf_s) == pytest.approx(interval_s, abs=0.5)
    best_s = young_interval_s(checkpoint_s, mtbf_s)
    assert wasted_share(best_s, checkpoint_s, mtbf_s, 600) == pytest.approx(waste, abs=5e-5)


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
    assert 0 <= waste <= 1


@given(st.integers(1, 10**6), times, times, st.floats(1e-3, 100))
def test_more_gpus_leave_less(gpus, checkpoint_s, restart_s, per_year):
    one, two = (run(n, checkpoint_s, restart_s, per_year) for n in (gpus, 2 * gpus))
    assert two.mtbf_s == pytest.approx(one.mtbf_s / 2) and two.goodput <= one.goodput
    assert 0 <= one.goodput <= 1 and one.failures_per_day == pytest.approx(gpus * per_year * DAY / YEAR)


# -- at any rate ---------------------------------------------------------------------------------------------
def test_shares_by_hand():
    """M = 100, τ = 90, δ = 10, so x = 1 and 1/(e − 1) = 58.2 % is kept; of it nine tenths are useful."""
    useful, writing, again, back = shares(90.0, 10.0, 100.0, 0.0)
    assert (useful, writing, again, back) == pytest.approx((0.52378, 0.05820, 0.41802, 0.0), abs=1e-5)
    assert useful_share(90.0, 10.0, 100.0, 100.0) == pytest.approx(0.52378 / np.e, abs=1e-5)


def test_what_a_failure_throws_away_by_hand_and_at_its_limits():
    """x = 1: 100 − 100/(e − 1) = 41.8; half a short interval, to the series' x/12; all of M for a long
    one."""
    assert lost_per_failure_s(90.0, 10.0, 100.0) == pytest.approx(41.802, abs=1e-3)
    assert lost_per_failure_s(9.0, 1.0, 1e5) == pytest.approx(5.0, rel=1e-4)
    assert lost_per_failure_s(1e6, 1.0, 100.0) == pytest.approx(100.0)


@given(st.floats(0.01, 20), st.floats(0.001, 5), st.floats(0, 5))
def test_failures_times_what_each_throws_away_is_the_share_done_again(interval, checkpoint, restart):
    _, _, again, back = shares(interval, checkpoint, 1.0, restart)
    assert (1.0 - back) * lost_per_failure_s(interval, checkpoint, 1.0) == pytest.approx(again, abs=1e-12)


@given(times, times, times, st.floats(0, 1e6))
def test_shares_are_the_whole_time(interval_s, checkpoint_s, mtbf_s, restart_s):
    found = shares(interval_s, checkpoint_s, mtbf_s, restart_s)
    assert found.sum() == pytest.approx(1) and (found >= -1e-12).all()
    assert (
        found[0] / (found[0] + found[1] + 1e-300)
        == pytest.approx(interval_s / (interval_s + checkpoint_s), abs=1e-9)
        or found[0] + found[1] < 1e-290
    )


@given(st.floats(1, 100), st.floats(0, 100))
def test_rare_failures_leave_the_textbook_sum(checkpoint_s, restart_s):
    """With M at least 1,000 times each of them; what is left out is of second order, here under 0.5 %."""
    mtbf_s = 1e6
    interval_s = young_interval_s(checkpoint_s, mtbf_s)
    assert useful_share(interval_s, checkpoint_s, mtbf_s, restart_s) == pytest.approx(
        1.0 - wasted_share(interval_s, checkpoint_s, mtbf_s, restart_s), abs=0.005
    )


def simulated_share(interval_s, checkpoint_s, mtbf_s, restart_s, intervals, seed):
    """The useful share of a simulated run: failures are drawn at random, and the work since the last
    checkpoint is repeated."""
    random = np.random.default_rng(seed)
    clock = 0.0
    failure = random.exponential(mtbf_s)
    for _ in range(intervals):
        needed = interval_s + checkpoint_s
        while clock + needed > failure:
            clock = failure
            failure = clock + random.exponential(mtbf_s)
            needed = restart_s + interval_s + checkpoint_s
        clock += needed
    return intervals * interval_s / clock


@pytest.mark.parametrize(
    ("interval_s", "checkpoint_s", "mtbf_s", "restart_s"),
    [(600, 60, 11135, 600), (3600, 300, 11135, 600), (1000, 60, 2000, 1500), (100, 100, 300, 200)],
)
def test_the_formula_is_what_a_played_run_has(interval_s, checkpoint_s, mtbf_s, restart_s):
    """20,000 intervals: the played share scatters by under 0.5 % of itself in each of these cases; three
    times that."""
    played = simulated_share(interval_s, checkpoint_s, mtbf_s, restart_s, 20_000, seed=1)
    assert useful_share(interval_s, checkpoint_s, mtbf_s, restart_s) == pytest.approx(played, rel=0.015)


@given(st.floats(1e-7, 100), times)
def test_no_interval_is_better_than_the_best(ratio, mtbf_s):
    checkpoint_s = ratio * mtbf_s
    best = best_interval_s(checkpoint_s, mtbf_s)
    assert 0 < best <= mtbf_s
    peak = useful_share(best, checkpoint_s, mtbf_s, 0.0)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert useful_share(best * factor, checkpoint_s, mtbf_s, 0.0) <= peak * (1 + 1e-9)


def daly_interval_s(checkpoint_s, mtbf_s):
    """√(2·δ·M)·(1 + ⅓·√(δ/2M) + δ/18M) − δ, for δ under 2M (Daly 2006, FGCS 22(3), eq. 37)."""
    half = checkpoint_s / (2.0 * mtbf_s)
    return np.sqrt(2.0 * checkpoint_s * mtbf_s) * (1.0 + np.sqrt(half) / 3.0 + half / 9.0) - checkpoint_s


def test_the_best_interval_is_the_root_and_daly_its_series():
    """(1 − u)·e^(u + δ/M) = 1, to 1e-9 from δ a millionth of M to ten times M; Daly within 2 % to δ = M,
    Young not."""
    for ratio in (1e-6, 1e-3, 0.1, 0.5, 1.0, 10.0):
        u = best_interval_s(ratio, 1.0)
        assert (1 - u) * np.exp(u + ratio) == pytest.approx(1, rel=1e-9)
    for ratio in (1e-3, 0.1, 0.5, 1.0):
        assert daly_interval_s(ratio, 1.0) == pytest.approx(best_interval_s(ratio, 1.0), rel=0.02)
    assert young_interval_s(0.5, 1.0) > 1.4 * best_interval_s(0.5, 1.0)


def test_llama_3_is_the_catalogues_first_run_and_an_interval_exists_that_gives_its_share():
    """Over 90 % effective training time (section 3.3.4): out of reach at a minute a checkpoint and ten a
    restart (85 %), in reach at ten seconds and three minutes."""
    llama = catalog.all_interruptions()["llama3"]
    assert mean_time_between_failures_s(llama.gpus) == pytest.approx(llama.mtbf_s, rel=1e-4)
    slow, fast = (
        useful_share(best_interval_s(c, llama.mtbf_s), c, llama.mtbf_s, r) for c, r in ((60, 600), (10, 180))
    )
    assert slow == pytest.approx(0.853, abs=0.005) and fast > 0.94


def test_arrays_broadcast():
    assert shares(np.array([[100.0], [200.0]]), 10.0, np.array([1e3, 1e4, 1e5]), 0.0).shape == (2, 3, 4)
    assert wasted_share(np.array([100.0, 200.0]), 10.0, 1000.0, 0.0) == pytest.approx([0.15, 0.15])


@in_one_test(
    "call, words",
    [
        (lambda: run(0, 1, 1), ("gpus", "1", "0")),
        (lambda: run(8, -1, 1), ("checkpoint_s", "0")),
        (lambda: run(8, 1, -1), ("restart_s", "0")),
        (lambda: run(8, 1, 1, 0), ("failures_per_gpu_year", "0")),
        (lambda: run(8, 1, 1, interval_s=0), ("interval_s", "0")),
        (lambda: young_interval_s(1, float("inf")), ("mtbf_s", "finite")),
        (lambda: shares(1, 1, 1, -1), ("restart_s", "0")),
        (lambda: best_interval_s(0, 1), ("checkpoint_s", "0")),
        (lambda: reliability.failures_per_gpu_s(8, 0, 1), ("failures", "0")),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()
