"""What measured runs of one's own make of the next estimate: by hand, and against published runs."""

import math

import pytest

from engine.calibration import bands, own_runs

BAND = (0.9, 1.25)


def test_without_runs_an_estimate_and_its_band_stay_as_they_are():
    found = own_runs.carried("step", BAND, [])
    assert found.times == 1.0
    assert (found.low, found.high) == pytest.approx(BAND)


def test_one_run_by_hand():
    # a band of ±0.2 in logarithms is a standard deviation of 0.156, a variance of 0.0244, half of it between
    # clusters: one run that took e^0.3 of its estimate moves the middle by half of that, half of 0.0122 stays
    # between, and 0.0061 + 0.0122 is left
    at, half = own_runs.posterior(0.0, 0.2, 0.5, [0.3])
    assert at == pytest.approx(0.15)
    assert half == pytest.approx(1.2816 * math.sqrt(0.0061 + 0.0122), rel=0.01)


def test_many_runs_decide_the_middle_and_leave_what_belongs_to_a_run():
    at, half = own_runs.posterior(0.0, 0.2, 0.5, [0.3] * 1000)
    assert at == pytest.approx(0.3, abs=0.001)
    assert half == pytest.approx(0.2 * math.sqrt(0.5), rel=0.001)


@pytest.mark.parametrize("runs", [1, 2, 10])
def test_a_band_narrows_with_each_run_and_never_below_that(runs):
    wide = [math.log(found.high / found.low) for n in (runs - 1, runs) for found in [_of(n)]]
    assert wide[1] < wide[0]
    entry = bands.runs()["own"]["step"]
    within = entry["within"] / math.hypot(entry["within"], entry["between"])
    assert wide[1] > math.log(BAND[1] / BAND[0]) * within


def _of(runs: int) -> own_runs.Carried:
    return own_runs.carried("step", BAND, [1.2] * runs)


def test_published_runs_bear_it_out_for_steps():
    """With each number of runs by which an estimate is corrected, a tenth of the error goes."""
    assert own_runs.carries_from("step") == 1
    found = bands.runs()["own"]["step"]
    for count in (1, 2, 3, 5):
        entry = found[f"with {count}"]
        assert entry["error"] < 0.9 * entry["without"], count
        assert 0.75 <= entry["covers"] <= 0.92, count
    assert 1.0 < _of(1).times < _of(2).times


@pytest.mark.parametrize("what", ["memory", "latency", "throughput"])
def test_what_they_do_not_bear_out_is_not_carried_over(what):
    assert own_runs.carries_from(what) == 0
    assert own_runs.carried(what, BAND, [1.2] * 5) == own_runs.Carried(1.0, *BAND)
