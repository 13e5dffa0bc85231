"""The overlapped step: the default and the regimes by hand, lanes that keep order, and what a pointer is
told."""

import numpy as np
import pytest

from engine.base.units import MIB
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.training.ddp_overlap import DdpOverlap

shown = Reader(DdpOverlap).shown


def readouts(found):
    return {key: readout["text"] for key, readout in found["readouts"].items()}


def test_the_default_by_hand():
    """8.03B, 16,384 tokens, 644 TFLOP/s: 1.23 s. 162 buckets of 510 · 2.7 µs; 2 · 255/256 · 16.06 GB / 50
    GB/s."""
    said = readouts(shown())
    assert (
        said["start_ups"] == "223 ms" and "162 buckets" in shown()["summary"]
    )  # 5 a layer, and one at each end
    wire_s = 162 * 510 * 2.7e-6 + 2 * 255 / 256 * 16.06e9 / 50e9
    communication = shown()["parts"]["buckets"]
    assert communication["duration_s"].sum() == pytest.approx(wire_s, rel=1e-3)
    assert shown()["parts"]["layers"]["right"][-1] == pytest.approx(6 * 8.03e9 * 16384 / 643.9e12, rel=1e-3)
    # 643.9e12 / 50e9 · 255/256, and 863 ms · 643.9e12 / (4 · 8.03e9)
    assert not lacks(said["needed"], "17.3k tokens", "12.8k tokens")


def test_the_last_to_come_is_exposed_in_full():
    """A wire fast enough for all else: what sticks out are the embedding and the query matrix before it, 1.05
    and 0.03 GB times 2 · 63/64 / 400 GB/s, and their starts."""
    found = shown(wire_bytes_per_s="400e9", alpha_s="1e-6", tokens="32768", ranks="64")
    exposed = (1.0507e9 + 33.6e6) * 126 / 64 / 400e9 + 2 * 126e-6
    idle = found["parts"]["idle"]
    assert idle["right"] - idle["left"] == pytest.approx(
        exposed, rel=2e-2
    )  # a key and a value matrix may be late too


@pytest.mark.parametrize("bucket", [25 * MIB, 96 * MIB])
def test_at_its_tokens_all_but_the_last_bucket_hides_and_at_the_picture_s_default_not(bucket):
    """What the readout promises, the picture shows: with these tokens little more than the last bucket."""
    widget = DdpOverlap(bucket=bucket)
    widget.tokens = float(widget.needed_with_start_ups())
    found = widget.run()
    assert found["last_s"] <= found["exposed_s"] < 1.6 * found["last_s"]
    fewer = DdpOverlap(bucket=bucket, tokens=0.9 * widget.tokens).run()
    assert fewer["exposed_s"] > found["exposed_s"] + 0.05


def test_a_pass_longer_than_the_bytes_is_not_the_wires_fault():
    default, ethernet = shown(), shown(tokens="1024", wire_bytes_per_s="12.5e9")
    assert not default["regimes"]["wire_bound"]["met"] and default["regimes"]["too_many"]["met"]
    bound = ethernet["regimes"]["wire_bound"]
    assert bound["met"] and "51.3k tokens" in bound["text"]


@pytest.mark.parametrize("bucket", [25 * MIB, 640 * MIB, 8192 * MIB])
def test_no_bucket_saves_a_small_batch_on_ethernet(bucket):
    found = shown(tokens="1024", wire_bytes_per_s="12.5e9", bucket=str(bucket))
    assert found["readouts"]["exposed"]["alarm"]


STOPS = DdpOverlap.controls()["bucket"].grid


def step_s(**values):
    return shown(**values)["parts"]["idle"]["right"]


@pytest.mark.parametrize(
    "values", [{}, {"wire_bytes_per_s": "25e9"}, {"wire_bytes_per_s": "100e9"}, {"tokens": "4096"}]
)
def test_the_rules_bucket_is_near_the_best_of_all_stops(values):
    """The step at the stop next to the rule's is within 2 % of the shortest of all."""
    widget = DdpOverlap()
    widget.set_raw(values)
    stop = min(STOPS, key=lambda size: abs(size - widget.best_bucket()))
    best = min(step_s(bucket=str(size), **values) for size in STOPS)
    assert step_s(bucket=str(stop), **values) <= 1.02 * best


def exposed_s(**values):
    idle = shown(**values)["parts"]["idle"]
    return idle["right"] - idle["left"]


def test_the_default_bucket_exposes_nearly_twice_what_the_best_does():
    assert exposed_s() >= 1.9 * min(exposed_s(bucket=str(size)) for size in STOPS)


def test_whoever_follows_the_advice_has_less_exposed():
    """In every state that gives it: the stop next to the size that it names exposes less than before."""
    advised = 0
    for wire in ("12.5e9", "50e9", "100e9", "400e9"):
        for tokens in ("1024", "4096", "8192", "32768"):
            for ranks in ("8", "64", "1024", "4096"):
                values = dict(wire_bytes_per_s=wire, tokens=tokens, ranks=ranks)
                widget = DdpOverlap()
                widget.set_raw(values)
                if not widget.has_too_many():
                    continue
                advised += 1
                stop = min(STOPS, key=lambda size: abs(size - widget.best_bucket()))
                assert step_s(bucket=str(stop), **values) < step_s(**values), values
    assert advised > 10


def test_a_wire_too_slow_for_any_bucket_and_too_many_of_them_are_one_note():
    """A B200, and a few tokens on an H100: larger buckets would save start-ups, and hide nothing."""
    for values in ({"gpu": "b200"}, {"tokens": "128"}):
        regimes = shown(**values)["regimes"]
        assert regimes["wire_bound"]["met"] and not regimes["too_many"]["met"]
        said = regimes["wire_bound"]["text"]
        assert "No bucket hides them" in said and "save start-ups, now 26" in said
    alone = shown(wire_bytes_per_s="1.25e9")["regimes"]["wire_bound"]
    assert alone["met"] and "save start-ups" not in alone["text"]


def test_no_larger_bucket_is_advised_where_the_wire_hides():
    """Eight full nodes: the wire needs 100 ms of a pass of 824, so that only the last bucket is exposed."""
    full = DdpOverlap.presets["Eight full nodes"]
    found = shown(**full)
    assert found["readouts"]["exposed"]["text"] == "5.67 ms" and not found["regimes"]["too_many"]["met"]
    assert step_s(**full | {"bucket": str(2048 * MIB)}) > step_s(**full)


def test_each_lane_keeps_order_and_no_block_starts_before_it_may():
    parts = shown()["parts"]
    for lane in (parts["layers"], parts["buckets"]):
        assert (lane["left"][1:] >= lane["right"][:-1] - 1e-12).all()
    assert (parts["buckets"]["left"] >= parts["buckets"]["full_s"] - 1e-12).all()
    assert np.allclose(parts["buckets"]["right"] - parts["buckets"]["left"], parts["buckets"]["duration_s"])


def test_the_pointer_is_told_what_how_long_and_for_what_it_waits():
    hints = DdpOverlap().hints()
    assert not lacks(hints["layers"][0], "Forward pass", "409 ms", "nothing")
    assert not lacks(hints["layers"][1], "output layer", "57.2 ms", "loss")
    assert not lacks(hints["layers"][2], "Backward pass", "layer 32", "23.8 ms", "layer above")
    assert not lacks(hints["buckets"][0], "1.05 GB", "43.2 ms", "output layer", "466 ms", "0 s")
    assert not lacks(hints["buckets"][1], "layer 32", "after the one before")
    assert "the embedding" in hints["buckets"][161]
