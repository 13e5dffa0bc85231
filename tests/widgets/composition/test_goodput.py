"""goodput by hand: Llama 3's default state, the wall, the advice, and what is drawn."""

import numpy as np
import pytest

from engine.mechanism import reliability
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.composition.goodput import INTERVALS, RUNS, Goodput

READER = Reader(Goodput)
shown, met, readouts = READER.shown, READER.met, READER.readouts


def test_the_default_is_llama_3_writing_too_seldom():
    """M = 11,135 s, so √(2 · 60 · M) = 19.3 min; Daly's series takes some 40 s off (δ/M is half a per
    cent)."""
    found = readouts()
    assert found["every"] == "3.09 h" and found["best_interval"] == "18.6 min" and met() == {"seldom"}
    young = shown()["parts"]["young"]["x"]
    assert young == pytest.approx(1156, rel=1e-3)


def test_the_bands_are_the_engines_and_end_at_one():
    bands = shown()["parts"]["bands"]
    mtbf_s = reliability.mean_time_between_failures_s(16384)
    expected = np.cumsum(reliability.shares(bands["interval_s"], 60.0, mtbf_s, 600.0), axis=-1)
    assert np.stack([bands[name] for name in ("useful", "writing", "again")], axis=-1) == pytest.approx(
        expected[:, :3]
    )
    assert expected[:, 3] == pytest.approx(1)


def test_the_peak_drawn_is_the_highest_point_of_the_curve():
    for gpus in (512, 16384, 131072):
        parts = shown(gpus=gpus)["parts"]
        assert parts["best"]["y"] >= parts["bands"]["useful"].max() - 1e-9


def test_more_gpus_lead_to_the_wall_and_fast_recovery_away_from_it():
    """M = 2 R at 16,384 · 11,135 s / 1,200 s = 152,000 GPUs."""
    assert "wall" not in met(gpus=151_000) and "wall" in met(gpus=153_000)
    assert "wall" not in met(**Goodput.presets["… and with fast recovery"])
    assert shown(gpus=400_000)["parts"]["pile"]["seen"] == 1 and shown()["parts"]["pile"]["seen"] == 0


def test_the_largest_loss_is_named_first():
    """131,072 GPUs: M = 23.2 min against ten to come back, 1 − e^(−600/1,392) = 35 % of the time."""
    found = shown(**Goodput.presets["131,072 GPUs, as they are"])["regimes"]
    assert [name for name, regime in found.items() if regime["met"]] == ["recovery"]
    assert "35" in found["recovery"]["text"]


def test_at_two_days_a_failure_throws_away_no_more_than_the_time_between_failures():
    text = shown(interval_s=172800)["regimes"]["seldom"]["text"]
    assert not lacks(text, "3.09 h")


def test_too_often_and_just_right():
    assert met(interval_s=60) == {"often"} and met(interval_s=1100) == set()
    assert met(gpus=1_000_000, checkpoint_s=3600) == {"wall"}


def test_a_name_stands_in_its_band_or_nowhere():
    names = shown()["parts"]["names"]
    assert [str(name) for name in names["wide"]] == ["useful", "writing", "done again", ""]
    assert [str(name) for name in shown(gpus=400_000)["parts"]["names"]["wide"]][3] == "coming back"
    for texts in ({}, {"gpus": 400_000}, {"gpus": 8}):
        parts = shown(**texts)["parts"]
        bands = [parts["bands"][name] for name in ("useful", "writing", "again")]
        tops = np.stack([np.zeros(121), *bands, np.ones(121)])
        for band, (at, y) in enumerate(zip(parts["names"]["x"], parts["names"]["y"])):
            low, high = (np.interp(np.log(at), np.log(INTERVALS), tops[edge]) for edge in (band, band + 1))
            assert low - 1e-3 <= y <= high + 1e-3, parts["names"]["wide"][band]


def test_a_name_makes_room_for_the_words_beside_a_line():
    """With four hours to come back the bands are low, and on a phone the best interval's words reach into the
    one that is spent writing."""
    names = shown(restart_s=4 * 3600)["parts"]["names"]
    assert str(names["wide"][1]) == "writing" and str(names["narrow"][1]) == ""


def test_the_dots_are_the_published_runs():
    assert [(run.name, run.gpus) for run in RUNS] == [
        ("Llama 3", 16384),
        ("Meta's RSC-1", 1024),
        ("OPT-175B", 992),
    ]
