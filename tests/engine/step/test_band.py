"""An estimate knows how good it is: its band, what it extrapolates, which layouts it cannot tell apart."""

import dataclasses
import math

import pytest

import engine
from engine.calibration import bands
from engine.step import search

JOB = engine.Job(global_batch=512, seq=8192)


def step(gpu="h100-sxm", precision="bf16", model="llama3-70b", job=JOB, **layout):
    at = engine.Machine.of(gpu, precision)
    return engine.estimate(model, at, job, engine.Layout(**{"gpus": 256, "tp": 8, "pp": 4} | layout))


def test_the_band_is_the_estimate_times_what_was_found_on_runs_of_its_generation():
    said = step()
    entry = bands.runs()["band"]["step"]["hopper dense"]
    assert said.band_s == (said.step_s * entry["low"], said.step_s * entry["high"])
    assert entry["low"] < 1.0 < entry["high"]
    moe = step(model="mixtral-8x7b", ep=8)
    kind = (
        bands.runs()["band"]["step"]["hopper moe"]["low"],
        bands.runs()["band"]["step"]["hopper moe"]["high"],
    )
    assert moe.extrapolates == ("tp",) and moe.band_s[1] / moe.step_s > kind[1]  # of which no run had eight


def test_the_memory_has_a_band_of_its_own():
    said = step()
    entry = bands.runs()["band"]["memory"]["all"]
    total = said.memory_bytes["total"]
    assert said.memory_band_bytes == (total * entry["low"], total * entry["high"])
    assert entry["low"] < 1.0 < entry["high"]
    assert said.as_dict()["memory_band_bytes"] == list(said.memory_band_bytes)


def test_where_nothing_fits_nothing_is_tied_and_no_time_is_compared():
    at = engine.Machine.of("rtx4090")
    plan = engine.plan("llama3-70b", at, engine.Job(64, 4096), 8)
    assert not plan.best.fits and plan.tied == 0 and plan.simplest == plan.best
    held = [plan.best.memory_bytes["total"], *(other.memory_bytes["total"] for other in plan.runners_up)]
    assert held == sorted(held)
    for other in plan.as_dict()["runners_up"]:
        assert (other["slower_by"], other["lost_by"], other["lost_s"]) == (None, "memory", 0.0)
    above, closest = search.headings(plan.best.fits, plan.tied)
    assert "Nothing fits" in above and "cannot tell" not in closest


def test_one_split_is_not_told_apart_from_itself():
    assert "cannot tell" not in search.headings(True, 1)[1]
    assert "cannot tell 7 splits" in search.headings(True, 7)[1]


def test_a_generation_with_too_few_runs_has_the_band_of_all():
    said = step(gpu="mi300x")
    everything, wider = bands.runs()["band"]["step"]["all"], bands.runs()["beyond"]["step"]
    low, high = (math.log(each / said.step_s) for each in said.band_s)
    ends = math.log(everything["low"]), math.log(everything["high"])
    assert low + high == pytest.approx(sum(ends)) and wider > 1.1  # the middle stays …
    assert high - low == pytest.approx(wider * (ends[1] - ends[0]))  # … and the ends move apart
    assert said.extrapolates == ("gpu",)
    assert said.as_dict()["rates_from"] == "medians of the others" and "rates_from" in str(said)
    assert step(gpu="h200").as_dict()["rates_from"] == "as the H100 SXM"


def test_what_was_seen_is_not_extrapolated():
    assert step().extrapolates == ()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (dict(tp=16), "tp"),
        (dict(gpus=64 * 1024, tp=8, pp=4), "gpus"),
        (dict(schedule="zb-h1"), "schedule"),
        (dict(schedule="dualpipe", zero=1), "schedule"),
        (dict(pp=20, gpus=320), "pp"),
    ],
)
def test_what_no_run_had_is_named(change, name):
    job = dataclasses.replace(JOB, global_batch=64 * 1024)
    assert name in step(job=job, **change).extrapolates


def test_an_mfu_that_nobody_measured_is_named():
    """Two thirds of the peak for GPT-3 on 1,536 A100, where papers report half."""
    job = engine.Job(global_batch=1536, seq=2048)
    layout = engine.Layout(gpus=1536, tp=2, pp=6, zero=2, schedule="interleaved", interleave=16)
    assert "mfu" in engine.estimate("gpt3-175b", "a100-80", job, layout).extrapolates


def test_the_command_line_has_both():
    said = step().as_dict()
    assert said["band_s"] == list(step().band_s) and said["extrapolates"] == []


# -- the search ----------------------------------------------------------------------------------------------
def planned():
    return engine.plan("llama3-70b", "h100-sxm", engine.Job(global_batch=1024, seq=8192), gpus=512)


def test_of_layouts_that_cannot_be_told_apart_the_simplest_is_named():
    found = planned()
    simple = found.simplest
    assert simple.fits and simple.step_s <= found.best.step_s * bands.tie()
    for other in (found.best, *found.runners_up):
        assert search.effort(simple) <= search.effort(other)
    assert found.tied > 5


def test_a_winner_that_nothing_comes_near_is_its_own_simplest():
    found = engine.plan("llama3.2-1b", "h100-sxm", engine.Job(global_batch=8, seq=2048), gpus=1)
    assert found.simplest.layout.gpus == 1 and found.tied == 1


def test_two_layouts_tie_while_their_bands_overlap():
    entry = bands.runs()["apart"]["layouts"]
    assert bands.tie() == entry["p90"] / entry["p10"] > 1.0
    slower = bands.tie() * 0.999
    assert slower * entry["p10"] < 1.0 * entry["p90"]


def test_a_tie_is_shown_as_one_and_the_simplest_comes_first():
    """No difference is asked for that the estimate cannot see: rows within its band of the fastest say tie,
    and the one to take stands above them."""
    plan = engine.plan("llama3-70b", "h100-sxm", engine.Job(1024, 8192), 512)
    shown = [search.with_ties(row, plan.tied) for row in plan.rows()]
    ties = [row["lost_by"] == "tie" for row in shown]
    assert plan.tied > 1 and ties == [row["slower_by"] <= bands.tie() - 1.0 for row in plan.rows()]
    assert all(row["lost_by"] != "tie" for row in (search.with_ties(row, 1) for row in plan.rows()))
    text = " ".join(str(plan).split())
    assert text.index("The simplest of their layouts") < text.index("no order is meant")
