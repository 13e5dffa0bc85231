"""decode_latency: figures worked by hand, and where its regimes begin."""

import numpy as np
import pytest

from engine import catalog
from engine.serving import inference
from engine.step.layout import machine
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.serving.decode_latency import DEGREES, PARTS, DecodeLatency

READER = Reader(DecodeLatency)
shown, met = READER.shown, READER.met


def test_the_default_by_hand():
    """70B on 8 H100s: 139 GB of matrices and output layer over 8 · 2.81 TB/s is 6.19 ms; 8 · 4096 · 40,960 B
    over 3.21 TB/s 0.418 ms; the whole is inference's step."""
    page = shown()
    whole = inference.decode_step(
        catalog.model("llama3-70b"), machine(catalog.gpu("h100-sxm")), 8, 8, 4096
    ).total_s
    assert page["readouts"]["time"]["text"] == "11.2 ms" and whole == pytest.approx(11.2e-3, abs=0.05e-3)
    assert not lacks(page["summary"], "11.2 ms", "6.19 ms", "weights", "991 µs", "AllReduces")
    assert not met()


def test_the_bars_end_where_the_steps_do_and_are_empty_where_nothing_fits():
    bars = shown()["parts"]["bars"]
    ends = np.asarray(bars["right"]).reshape(5, 6).max(axis=0)
    steps = [
        inference.decode_step(
            catalog.model("llama3-70b"), machine(catalog.gpu("h100-sxm")), int(d), 8, 4096
        ).total_s
        for d in DEGREES
    ]
    assert ends[0] == 0 and ends[1:] == pytest.approx(steps[1:])
    assert bars["part"][24:] == [PARTS[4]] * 4 + [PARTS[5]] * 2  # a node holds eight


def test_eight_are_slower_than_four_over_a_ring():
    assert met(model="llama3.2-1b", batch=1, context=1024, all_reduce="ring") == {"too_many"}
    assert "too_many" not in met(model="llama3.2-1b", batch=1, context=1024, all_reduce="one_shot")


def test_beyond_the_node_is_a_note_and_no_target():
    """The default draws that 16 GPUs take longer than 8, so nobody is asked to find it."""
    assert met(tp="16") == met(tp="32") == {"beyond_the_node"}
    assert met(gpu="a100-80", batch=1) == set()


def test_the_target_is_met_whichever_bar_is_chosen():
    ring = {"model": "llama3.2-1b", "batch": 1, "context": 1024, "all_reduce": "ring"}
    assert all("too_many" in met(**ring, tp=tp) for tp in ("1", "2", "4", "8"))


def test_a_cache_that_is_full_and_a_batch_that_computes():
    assert met(context=131072, batch=12) == {"full_cache"}  # eleven fit
    assert not met(context=131072, batch=11)
    assert "computing" in met(batch=1024, context=256)


def test_the_hints_say_what_a_piece_is():
    assert not lacks(DecodeLatency().hints()["bars"][3], "weights", "6.19 ms", "GPUs: 8")
