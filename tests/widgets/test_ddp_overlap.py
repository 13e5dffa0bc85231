"""The overlapped step: the default and the regimes by hand, lanes that keep order, and what a pointer is told."""

import numpy as np
import pytest

from engine.units import MIB
from tests.widgets.reading import Reader
from widgets.ddp_overlap import DdpOverlap


shown = Reader(DdpOverlap).shown


def readouts(found):
    return {key: readout["text"] for key, readout in found["readouts"].items()}


def test_the_default_by_hand():
    """8.03B, 8,192 tokens, 0.4 · 989 TFLOP/s: 998 ms. 162 buckets of 126 · 9.6 µs; 2 · 63/64 · 16.06 GB / 50 GB/s."""
    said = readouts(shown())
    assert said["start_ups"] == "196 ms" and "162 buckets" in shown()["summary"]    # 5 a layer, and one at each end
    wire_s = 162 * 126 * 9.6e-6 + 2 * 63 / 64 * 16.06e9 / 50e9
    communication = shown()["parts"]["buckets"]
    assert communication["duration_s"].sum() == pytest.approx(wire_s, rel=1e-3)
    assert shown()["parts"]["layers"]["right"][-1] == pytest.approx(6 * 8.03e9 * 8192 / (0.4 * 989e12), rel=1e-3)
    assert said["needed"] == "7.79k tokens"                                     # 0.4 · 989e12 / 50e9 · 63/64


def test_the_last_to_come_is_exposed_in_full():
    """A wire fast enough for all else: what sticks out are the embedding and the query matrix before it, 1.05 and 0.03
    GB times 2 · 63/64 / 400 GB/s, and their starts."""
    found = shown(wire_bytes_per_s="400e9", alpha_s="1e-6", tokens="32768")
    exposed = (1.0507e9 + 33.6e6) * 126 / 64 / 400e9 + 2 * 126e-6
    idle = found["parts"]["idle"]
    assert idle["right"] - idle["left"] == pytest.approx(exposed, rel=2e-2)   # a key and a value matrix may be late too


def test_a_pass_longer_than_the_bytes_is_not_the_wires_fault():
    default, ethernet = shown(), shown(tokens="1024", wire_bytes_per_s="12.5e9")
    assert not default["regimes"]["wire_bound"]["met"] and default["regimes"]["too_many"]["met"]
    assert ethernet["regimes"]["wire_bound"]["met"] and "31.2k tokens" in ethernet["regimes"]["wire_bound"]["text"]


@pytest.mark.parametrize("bucket", [25 * MIB, 640 * MIB, 8192 * MIB])
def test_no_bucket_saves_a_small_batch_on_ethernet(bucket):
    found = shown(tokens="1024", wire_bytes_per_s="12.5e9", bucket=str(bucket))
    assert found["readouts"]["exposed"]["alarm"]


def test_the_rules_bucket_is_near_the_best_of_all_stops():
    """By the rule 665 MiB; the step at its stop is within 2 % of the shortest of all, at 25 MiB a tenth longer."""
    def step_s(size):
        return shown(bucket=str(size))["parts"]["idle"]["right"]
    best = min(step_s(size) for size in DdpOverlap.controls()["bucket"].grid)
    assert step_s(640 * MIB) <= 1.02 * best and step_s(25 * MIB) >= 1.1 * best


def test_each_lane_keeps_order_and_no_block_starts_before_it_may():
    parts = shown()["parts"]
    for lane in (parts["layers"], parts["buckets"]):
        assert (lane["left"][1:] >= lane["right"][:-1] - 1e-12).all()
    assert (parts["buckets"]["left"] >= parts["buckets"]["full_s"] - 1e-12).all()
    assert np.allclose(parts["buckets"]["right"] - parts["buckets"]["left"], parts["buckets"]["duration_s"])


def test_the_pointer_is_told_what_how_long_and_for_what_it_waits():
    hints = DdpOverlap().hints()
    assert hints["layers"][0] == "Forward pass, all layers: 333 ms. Waits for nothing."
    assert hints["layers"][1].endswith("the output layer: 46.6 ms. Waits for the loss.")
    assert hints["layers"][2] == "Backward pass, layer 32: 19.3 ms. Waits for the layer above."
    assert hints["buckets"][0] == ("AllReduce of 1.05 GB: 42.6 ms. Full with the output layer at 379 ms; starts 0 s "
                                   "later.")
    assert "layer 32" in hints["buckets"][1] and hints["buckets"][1].endswith("later, after the one before it.")
    assert "the embedding" in hints["buckets"][161]
