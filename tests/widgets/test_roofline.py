"""The roofline: readouts worked by hand, which ceiling binds, and the machine that measures itself."""

import re

import numpy as np
import pytest

from engine import measure
from widgets.roofline import Roofline


def shown(**texts):
    widget = Roofline()
    widget.set_state(texts)
    return widget.shown()


def text(shown, name):
    return shown["readouts"][name]["text"]


def test_h100_in_bf16_by_hand():
    """Ridge 989e12 / 3.35e12 = 295.2. Decode at 32: 32 · 3.35e12 = 107 TFLOP/s; attention, groups of 8: 26.8."""
    state = shown()
    assert text(state, "decode") == "memory, 10.8 %"        # 107.2 / 989
    assert text(state, "attention") == "memory, 2.71 %"     # 26.8 / 989
    assert text(state, "prefill") == "compute, 100 %"       # 2048 · 8192 / (8192 + 4096) = 1365 FLOP/B
    assert text(state, "filling_batch") == "296"
    assert np.allclose(state["parts"]["work"]["y"][:2], [26.8e12, 107.2e12])


def test_the_step_over_a_network_by_hand():
    """3 · 8192 · 64 / (2 · 63) = 12,483 FLOPs a byte sent; at 50 GB/s 624 of 989 TFLOP/s. Without it: compute."""
    state = shown()
    assert state["parts"]["work"]["x"][3] == pytest.approx(12483.05, rel=1e-6)
    assert text(state, "training") == "network, 63.1 %"
    assert state["regimes"]["network_binds"]["met"]
    assert text(shown(network="off"), "training") == "compute, 100 %"
    assert not shown(network="off")["regimes"]["network_binds"]["met"]


def test_ridges_stand_where_the_roofs_meet():
    ridges = shown()["parts"]["ridges"]
    assert np.allclose(ridges["x"], [295.22388, 19780])
    assert list(ridges["name"]) == ["ridge 295 FLOP/B", "ridge 19,780 FLOP/B"]


def test_enough_tokens_hide_the_allreduce():
    """(63/64) · 2 · 989e12 / (3 · 50e9) = 12,981 tokens."""
    assert shown(tokens=12980)["regimes"]["network_binds"]["met"]
    assert not shown(tokens=12981)["regimes"]["network_binds"]["met"]
    assert "12,981" in shown()["regimes"]["network_binds"]["text"]


def test_the_nodes_own_link_carries_what_the_nic_does_not():
    state = shown(wire="link")
    assert text(state, "training") == "compute, 100 %"      # ridge 989e12 / 450e9 = 2,198, below 12,483
    assert state["parts"]["network_roof"]["kind"] == "link"
    assert shown(wire="link", tokens=128)["parts"]["work"]["bound"][3] == "link"


def test_decode_becomes_compute_bound_at_the_ridge_and_attention_never():
    assert not shown(batch=295)["regimes"]["decode_computes"]["met"]
    broken = shown(batch=296)
    assert broken["regimes"]["decode_computes"]["met"]
    assert text(broken, "decode") == "compute, 100 %"
    assert text(broken, "attention") == "memory, 2.71 %"


def test_break_it_is_on_the_slider_of_every_gpu_and_precision():
    largest = Roofline.controls()["batch"].grid.max()
    for gpu in Roofline.controls()["gpu"].keys:
        for precision in Roofline.controls()["precision"].keys:
            state = shown(gpu=gpu, precision=precision, batch=largest)
            assert state["regimes"]["decode_computes"]["met"], (gpu, precision)
            assert not shown(gpu=gpu, precision=precision, batch=1)["regimes"]["decode_computes"]["met"]


def test_a_missing_precision_is_said_and_replaced():
    """An A100 has no fp8 units: it computes in bf16 at 312 TFLOP/s but reads half the bytes: 2 · 32 · 2.039 = 130."""
    state = shown(gpu="a100-80", precision="fp8")
    assert state["parts"]["names"]["name"][0] == "compute 312 TFLOP/s: no fp8, so bf16"
    assert "it has no fp8 units" in state["summary"]
    assert state["parts"]["work"]["y"][1] == pytest.approx(130.496e12)
    assert "no fp8" not in shown(precision="fp8")["summary"]


def test_presets_do_what_they_say():
    presets = {name: shown(**texts) for name, texts in Roofline.presets.items()}
    assert "batch 1 " in presets["H100, one reader"]["summary"]
    assert presets["H100, 512 readers"]["regimes"]["decode_computes"]["met"]
    assert "no fp8" in presets["A100 asked for fp8"]["summary"]
    assert "B200" in presets["B200 in fp4"]["summary"] and "9 PFLOP/s in fp4" in presets["B200 in fp4"]["summary"]
    assert text(presets["10 Gb/s Ethernet"], "training") == "network, 1.58 %"  # 12,483 · 1.25e9 = 15.6 TFLOP/s


def test_the_measured_roof_is_drawn_where_the_measurement_says(monkeypatch):
    monkeypatch.setattr(measure, "machine_apart", lambda longest_s: measure.Machine(200e9, 50e9, 2))
    found = Roofline().this_machine(5.0)
    assert np.allclose(found["columns"]["x"], [0.3, 4, 2e6])
    assert np.allclose(found["columns"]["y"], [15e9, 200e9, 200e9])
    assert re.search(r"200 GFLOP/s and 50 GB/s .* 4 FLOP/B", found["words"])
    assert found["ranges"]["y"][0] < 15e9
