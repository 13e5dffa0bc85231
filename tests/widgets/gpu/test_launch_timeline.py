"""launch_timeline: the lanes are the run, the four ways stand in order, and the CPU can be made to matter no
more."""

import numpy as np
import pytest

from engine.one_gpu import capture
from tests.widgets.reading import Reader
from widgets.gpu.launch_timeline import KINDS, LaunchTimeline

READER = Reader(LaunchTimeline)
widget, met = READER.widget, READER.met


def test_the_names_of_kernels_are_in_the_engine_s_order():
    assert KINDS[1:] == list(capture.KINDS[1:])


def test_the_blocks_are_the_kernels_of_the_first_two_layers():
    blocks = widget().shown()["parts"]["gpu_blocks"]
    per_way = [7 + 2 * 40, 2 * 13, 7 + 2 * 40, 2 * 13]
    assert len(blocks["start_s"]) == sum(per_way) and np.isfinite(blocks["start_s"]).all()
    assert list(blocks["what"]).count("attention") == 8


def test_a_graph_is_one_launch():
    lanes = widget().runs()["cpu_lane"]
    assert [(lanes == lane).sum() for lane in range(4)] == [87, 26, 1, 1]


def test_the_four_ways_are_those_of_the_engine_one_by_one():
    made = widget(model="llama3-70b", tp="8", batch=16)
    runs = made.runs()
    for lane, (way, captured) in enumerate((("eager", 0), ("compiled", 0), ("eager", 1), ("compiled", 1))):
        alone = capture.trial(way, made.model, made.gpu, 8, 16, captured=captured)
        assert (
            runs["total_s"][lane] == pytest.approx(alone["total_s"])
            and runs["busy_s"][lane] == alone["busy_s"]
        )


def test_each_cure_helps_and_both_help_most():
    for model, tp in (("llama3-8b", "1"), ("llama3-70b", "8")):
        eager, compiled, captured, both = widget(model=model, tp=tp).totals()
        assert both < compiled < eager and both < captured < eager


def test_the_first_response_is_the_faster_of_the_two_cures():
    """One H100: compiled 6.28 ms, the eager kernels captured 8.24. A slow host, whose issue no fusion mends:
    the graph."""
    for texts, first in (({}, "compile the step"), ({"issue": 40e-6}, "capture the step")):
        made = widget(**texts)
        _, compiled, captured, _ = made.totals()
        assert (compiled < captured) == (first == "compile the step")
        assert f"First response: {first}" in made.shown()["regimes"]["cpu_bound"]["text"]


def test_a_faster_gpu_changes_nothing_until_the_step_is_captured():
    h100, b200 = (widget(model="llama3-70b", tp="8", gpu=gpu).totals() for gpu in ("h100-sxm", "b200"))
    assert b200[0] == pytest.approx(h100[0], rel=0.01) and b200[3] < 0.8 * h100[3]
    assert "cpu_bound" in met(model="llama3-70b", tp="8", gpu="b200")


def test_the_cpu_stops_mattering():
    assert "nothing_gained" not in met()
    assert met(batch=400) == {"nothing_gained"} and met(batch=1024) == {"too_big"}
    made = widget()
    assert made.enough_batch() == capture.enough_batch("eager", made.model, made.gpu) == 130


def test_weights_that_do_not_fit_are_said():
    assert "too_big" in met(model="llama3-70b") and "too_big" not in met(model="llama3-70b", tp="8")


def test_a_kernel_says_what_it_is():
    said = [text for text in widget().hints()["gpu_blocks"] if text]
    assert any(text.startswith("product, layer 1: ") and "issued at" in text for text in said)
