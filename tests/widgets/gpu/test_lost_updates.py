"""lost_updates by hand: where a weight stalls, what it takes to move it, and what is said of it."""

import numpy as np
import pytest

from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.gpu.lost_updates import LostUpdates

READER = Reader(LostUpdates)
shown, met = READER.shown, READER.met


def test_the_default_stalls_where_the_limit_is_drawn():
    parts = shown()["parts"]
    assert parts["limit"]["y"] == pytest.approx(2 - 0.390625)  # 2^-8 / 0.01 short of 2
    assert abs(parts["curves"]["plain"][-1] - parts["limit"]["y"]) <= 2**-7 and met() == {"stalled"}
    assert parts["curves"]["master"][-1] == 2


@in_one_test(
    "format_, rate, arrives",
    [
        ("bf16", 0.0039, False),
        ("bf16", 0.004, True),
        ("fp16", 4.8e-4, False),
        ("fp16", 5e-4, True),
        ("e4m3", 0.0626, False),
        ("e4m3", 0.067, True),
        ("e5m2", 0.13, False),
        ("e5m2", 0.145, True),
        ("tf32", 4.8e-4, False),
    ],
)
def test_the_first_update_arrives_past_half_a_gap(format_, rate, arrives):
    """0.0626 becomes 1/16 in E4M3 before it is added: exactly half a gap, and the tie goes to 1, whose last
    bit is 0."""
    assert ("nothing_arrives" in met(format=format_, rate=rate)) != arrives


def test_a_run_too_short_to_stall_is_not_said_to():
    """After 10 steps exact arithmetic is at 2 - 0.99^10 = 1.096, the line at 1.609: all ten moved it."""
    assert met(steps=10) == set() and shown(steps=10)["readouts"]["landed"]["text"] == "10 of 10"


def test_e4m3_ends_a_gap_above_its_line_by_a_tie():
    """Half a gap is 1/16, at a rate of 0.1 the line 2 - 0.625 = 1.375. There 1.375 + 1/16 is the middle, and
    1.5 is even."""
    parts = shown(format="e4m3", rate=0.1, steps=100)["parts"]
    assert parts["limit"]["y"] == pytest.approx(1.375) and parts["curves"]["plain"][-1] == 1.5


def test_the_words_begin_where_the_weight_stops():
    """78 updates moved it; in fp32 all of 4,000 did, and there is no such place."""
    limit = shown()["parts"]["limit"]
    assert limit["at"] == 78 and limit["align"] == "left" and limit["text"].startswith("from step 78 on")
    assert shown(format="fp32", rate=1e-3, steps=4000)["parts"]["limit"]["text"] == ""


def test_curves_begin_at_one_and_are_as_long_as_the_run():
    curves = shown(steps=50)["parts"]["curves"]
    assert curves["step"][-1] == 50 and all(
        curves[name][0] == 1 for name in ("exact", "plain", "stochastic", "compensated", "master")
    )
    assert np.all(np.diff(curves["exact"]) >= 0)


def test_words_agree_with_the_run():
    out = shown(rate=1e-4)
    assert out["readouts"]["landed"] == {"text": "0 of 1,000", "alarm": True}
    assert not lacks(out["summary"], "is 1", "1.095", "0 %")
    assert not lacks(out["parts"]["limit"]["text"], "every update", "half a gap")
