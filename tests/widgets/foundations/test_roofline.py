"""The roofline: readouts worked by hand, which ceiling binds, and the machine that measures itself."""

import numpy as np
import pytest

from engine.one_gpu import measure
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.foundations.roofline import Roofline

shown = Reader(Roofline).shown


def text(shown, name):
    return shown["readouts"][name]["text"]


def test_h100_in_bf16_by_hand():
    """Ridge 989e12 / 3.35e12 = 295.2. Decode at 32: 32 · 3.35e12 = 107 TFLOP/s; attention, groups of 8:
    26.8."""
    state = shown()
    assert text(state, "decode") == "memory, 10.8 %"  # 107.2 / 989
    assert text(state, "attention") == "memory, 2.71 %"  # 26.8 / 989
    assert text(state, "prefill") == "compute, 100 %"  # 2048 · 8192 / (8192 + 4096) = 1365 FLOP/B
    assert text(state, "filling_batch") == "296"
    assert np.allclose(state["parts"]["work"]["y"][:2], [26.8e12, 107.2e12])


def test_the_step_over_a_network_by_hand():
    """3 · 8192 · 64 / (2 · 63) = 12,483 FLOPs a byte sent. One NIC of 50 GB/s allows 624 of 989 TFLOP/s,
    eight all."""
    assert shown(network="on")["parts"]["work"]["x"][3] == pytest.approx(12483.05, rel=1e-6)
    assert (
        text(shown(network="on"), "training") == "compute, 100 %"
        and not shown(network="on")["regimes"]["network_binds"]["met"]
    )
    one = shown(network="on", wire="nic")
    assert text(one, "training") == "network, 63.1 %" and one["regimes"]["network_binds"]["met"]
    assert text(shown(wire="nic"), "training") == "compute, 100 %"
    assert not shown(wire="nic")["regimes"]["network_binds"]["met"]


@in_one_test(
    "texts, rate, kind",
    [
        ({}, 400e9, "network"),
        ({"wire": "nic"}, 50e9, "network"),
        ({"wire": "two"}, 100e9, "network"),
        ({"ranks": 8}, 450e9, "link"),
        ({"ranks": 9}, 400e9, "network"),
        ({"wire": "link"}, 450e9, "link"),
        ({"wire": "eth-10"}, 1.25e9, "network"),
        ({"gpu": "b300"}, 800e9, "network"),
    ],
)
def test_the_wire_of_the_allreduce(texts, rate, kind):
    """NVLink inside a node of eight H100s, min(450, 8 · 50) GB/s across nodes."""
    roof = shown(**texts)["parts"]["network_roof"]
    assert roof["y"] == pytest.approx(0.3 * rate) and roof["kind"] == kind


def test_ridges_stand_where_the_roofs_meet():
    ridges = shown(network="on")["parts"]["ridges"]
    assert np.allclose(ridges["x"], [295.22388, 2472.5])
    assert list(ridges["name"]) == ["ridge 295 FLOP/B", "ridge 2,473 FLOP/B"]


def test_enough_tokens_hide_the_allreduce():
    """(63/64) · 2 · 989e12 / (3 · 400e9) = 1,622.6 tokens."""
    assert shown(network="on", tokens=1622)["regimes"]["network_binds"]["met"]
    assert not shown(network="on", tokens=1623)["regimes"]["network_binds"]["met"]
    assert "1,623" in shown(network="on", tokens=1024)["regimes"]["network_binds"]["text"]


def test_a_step_bound_by_the_nodes_own_link_is_named_so():
    assert shown(network="on", wire="link", tokens=128)["parts"]["work"]["bound"][3] == "link"
    assert shown(network="on", ranks=8, tokens=128)["parts"]["work"]["bound"][3] == "link"
    assert shown(network="on", tokens=128)["parts"]["work"]["bound"][3] == "network"


def test_the_users_that_fit_by_hand():
    """Two H100s: 2 · 78 GB less 141.1 of weights, 2.68 a user: 5, against 296 that would fill the chip."""
    state = shown()
    assert state["readouts"]["fitting_batch"] == {"text": "5", "alarm": True}
    words = state["regimes"]["batch_does_not_fit"]["text"]
    assert state["regimes"]["batch_does_not_fit"]["met"] and "room for 5 users" in words and "296" in words
    assert not shown(batch=5)["regimes"]["batch_does_not_fit"]["met"]
    assert text(shown(holders=8), "fitting_batch") == "179"
    assert text(shown(holders=1), "fitting_batch") == "0"
    assert not lacks(shown(holders=1)["regimes"]["batch_does_not_fit"]["text"], "one H100 SXM", "0 users")


def test_the_models_heads_set_the_attentions_intensity():
    """GPT-3 shares no keys: 1 FLOP a byte in bf16, whatever the batch and the context."""
    assert shown(model="gpt3-175b")["parts"]["work"]["x"][0] == 1
    assert shown(model="gpt3-175b", batch=4096, context=131072)["parts"]["work"]["x"][0] == 1


def test_decode_becomes_compute_bound_at_the_ridge_and_attention_never():
    assert not shown(batch=295)["regimes"]["decode_computes"]["met"]
    broken = shown(batch=296)
    assert broken["regimes"]["decode_computes"]["met"]
    assert text(broken, "decode") == "compute, 100 %"
    assert text(broken, "attention") == "memory, 2.71 %"
    assert "does not hold that many" in broken["regimes"]["decode_computes"]["text"]
    short = shown(batch=296, context=512, holders=8)["regimes"]
    assert (
        "the HBM holds that many" in short["decode_computes"]["text"]
        and not short["batch_does_not_fit"]["met"]
    )


def test_break_it_is_on_the_slider_of_every_gpu_and_precision():
    largest = Roofline.controls()["batch"].grid.max()
    for gpu in Roofline.controls()["gpu"].keys:
        for precision in Roofline.controls()["precision"].keys:
            state = shown(gpu=gpu, precision=precision, batch=largest)
            assert state["regimes"]["decode_computes"]["met"], (gpu, precision)
            assert not shown(gpu=gpu, precision=precision, batch=1)["regimes"]["decode_computes"]["met"]


def test_a_missing_precision_is_said_and_replaced():
    """An A100 has no fp8 units: it computes in bf16 at 312 TFLOP/s but reads half the bytes: 2 · 32 · 2.039 =
    130."""
    state = shown(gpu="a100-80", precision="fp8")
    assert not lacks(state["parts"]["names"]["name"][0], "312 TFLOP/s", "fp8", "bf16")
    assert not lacks(state["summary"], "Without fp8", "batch 32", "41.8 %", "memory")
    assert state["parts"]["work"]["y"][1] == pytest.approx(130.496e12)
    assert lacks(shown(precision="fp8")["summary"], "Without fp8")


def test_presets_do_what_they_say():
    presets = {name: shown(**texts) for name, texts in Roofline.presets.items()}
    assert "batch 1," in presets["H100, one reader"]["summary"]
    assert text(presets["H100, 256 readers"], "decode") == "memory, 86.7 %"  # 296 would fill the chip
    chats = presets["Short chats on 8 H100s"]["regimes"]
    assert not chats["decode_computes"]["met"] and not chats["batch_does_not_fit"]["met"]
    assert (
        text(presets["1,024 tokens a step over a network"], "training") == "network, 63.1 %"
    )  # 1,560 FLOP/B · 400 GB/s
    assert not lacks(presets["A100 asked for fp8"]["summary"], "Without fp8")
    assert presets["B200 in fp4"]["parts"]["names"]["name"][0] == "compute 9 PFLOP/s in fp4"
    assert (
        text(presets["10 Gb/s Ethernet"], "training") == "network, 1.58 %"
    )  # 12,483 · 1.25e9 = 15.6 TFLOP/s


def test_the_measured_roof_is_drawn_where_the_measurement_says(monkeypatch):
    monkeypatch.setattr(measure, "machine_apart", lambda longest_s: measure.MeasuredCpu(200e9, 50e9, 2))
    found = Roofline().this_machine(5.0)
    assert np.allclose(found["columns"]["x"], [0.3, 4, 2e6])
    assert np.allclose(found["columns"]["y"], [15e9, 200e9, 200e9])
    assert not lacks(found["words"], "200 GFLOP/s", "50 GB/s", "4 FLOP/B")
    assert found["ranges"]["y"][0] < 15e9
