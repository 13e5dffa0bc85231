"""loss_scaling by hand: what is lost at which scale, when the largest gradient is too large, and the scaler's
loop."""

import numpy as np
import pytest

from engine.executed import rounded_training as run
from tests.widgets.reading import Reader
from widgets.gpu.loss_scaling import LossScaling

READER = Reader(LossScaling)
shown, text, met = READER.shown, READER.text, READER.met


def percent(name, **texts):
    return float(text(name, **texts).removesuffix(" %")) / 100


def test_the_default_loses_what_nvidia_reports():
    assert percent("lost") == pytest.approx(31 / 36.3, abs=0.02) and met() == {"underflow"}
    assert percent("lost", scale=2**15) < 0.005


def test_bars_stack_to_what_an_octave_holds():
    bars = shown(scale=1024)["parts"]["histogram"]
    assert (
        np.all(bars["lost"] <= bars["small"])
        and np.all(bars["small"] <= bars["whole"])
        and np.all(bars["whole"] <= bars["over"])
    )
    assert np.sum(bars["over"]) == pytest.approx(1)
    assert bars["lost"][run.OCTAVE_STARTS >= -24].sum() == 0, "2^-24 is a number of fp16"


def test_a_scale_moves_the_histogram_by_its_octaves():
    at = [np.argmax(shown(scale=scale)["parts"]["histogram"]["over"]) for scale in (1, 2**10)]
    assert at[1] - at[0] == 10


def test_the_largest_overflows_one_octave_above_the_best_scale():
    best = run.scaled(-28.8, 3.6, 1.0, 5, 10, 65504.0, 1)["best_scale"]
    assert "overflow" not in met(scale=best) and "overflow" in met(scale=2 * best)


def test_the_window_is_drawn_where_the_format_ends():
    assert shown()["parts"]["window"]["x"].tolist() == pytest.approx([-25, -14, np.log2(65504)])
    assert shown()["parts"]["window"]["seen"].tolist() == [1, 1, 1] and shown()["parts"]["beyond"][
        "text"
    ] == ["", ""]


def test_a_window_that_goes_on_past_the_picture_says_so_instead():
    """bf16 reaches from 2^-133, 9.18e-41, to nearly 2^128, 3.39e38; the picture from 2^-60 to 2^50."""
    parts = shown(format="bf16")["parts"]
    assert parts["window"]["seen"].tolist() == [0, 0, 0]
    assert parts["beyond"]["text"] == ["← down to 9.18·10⁻⁴¹", "up to 3.39·10³⁸ →"]


def test_the_largest_scale_is_a_number_of_fp32():
    assert text("best", format="bf16") == "1.7·10³⁸"


def test_zeros_are_not_said_to_cost_what_they_did_not():
    """At a scale of 8 NVIDIA's network trained as in fp32, with half of these gradients at zero."""
    assert percent("lost", scale=8) == pytest.approx(0.55, abs=0.06)
    assert "matched fp32 at 8" in shown(scale=8)["regimes"]["underflow"]["text"]


def test_no_scale_serves_a_spread_of_seven_octaves():
    assert "no_scale_serves" in met(spread=7) and "no_scale_serves" not in met(spread=4)
    assert "no_scale_serves" not in met(spread=7, format="bf16")
    assert all("no_scale_serves" not in met(**texts) for texts in LossScaling.presets.values())


def test_the_scaler_skips_more_often_with_a_short_interval():
    skipped = [int(text("skipped", interval=interval).replace(",", "")) for interval in (4000, 100)]
    assert skipped[0] < 10 < skipped[1]
