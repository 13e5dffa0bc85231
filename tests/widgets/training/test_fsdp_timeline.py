"""fsdp_timeline: the picture is the engine's run, what is exposed is shaded and summed, and two ways of
breaking it."""

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.executed import fully_sharded
from engine.mechanism import start_ups
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.training.fsdp_timeline import LANES, FsdpTimeline

READER = Reader(FsdpTimeline)
shown, part, text, met = READER.shown, READER.part, READER.text, READER.met


def hints(**texts):
    widget = FsdpTimeline()
    widget.set_state(texts)
    return widget.hints()


def test_the_default_by_hand():
    """A layer's forward pass: 2 · P · 4,096 over 644 TFLOP/s; a gather: 2 · P · 63/64 bytes over 400 GB/s, 63
    hops."""
    params = models.layer_parameters(catalog.model("llama3-8b"))
    gather_s = 2 * params * 63 / 64 / 400e9 + 63 * start_ups.mean_hop_s(catalog.node("dgx-h100"))
    compute_s = 8 * 6 * params * 4096 / 643.867e12
    tasks = part("tasks")
    assert len(tasks["left"]) == 5 * 8 and tasks["right"][0] == pytest.approx(gather_s)
    assert np.nanmax(tasks["right"]) == pytest.approx(compute_s + 2 * gather_s)
    assert text("exposed") == "2.27 ms, 3.3 %" and text("step") == "68.9 ms" and text("alone") == "93.9 ms"


def test_the_picture_is_the_engines_run():
    step = FsdpTimeline().run()
    tasks, waits, memory = part("tasks"), part("waits"), part("memory")
    assert tasks["left"].tolist() == step["start_s"][:40].tolist()
    for kind, (low, _, high) in zip(fully_sharded.KINDS, LANES):
        of = np.array(tasks["what"]) == kind
        assert set(tasks["bottom"][of]) == {low} and set(tasks["top"][of]) == {high}
    assert np.sum(waits["right"] - waits["left"]) == pytest.approx(step["exposed_s"])
    assert memory["top"].max() == pytest.approx(step["peak_bytes"] + FsdpTimeline().state_bytes())
    assert (memory["right"][:-1] == memory["left"][1:]).all() and memory["right"][-1] == pytest.approx(
        step["total_s"]
    )
    assert (
        np.diff([memory[name] for name in ("bottom", "state", "gathered", "gradients", "top")], axis=0) >= -1
    ).all()


def test_weights_are_dropped_at_the_end_of_each_use():
    frees = part("frees")
    assert frees["seen"].sum() == 16 and set(frees["layer"][frees["seen"] == 1]) == set(range(1, 9))


@pytest.mark.parametrize("layers", [2, 32])
def test_every_layer_has_its_five_tasks(layers):
    assert len(part("tasks", layers=layers)["left"]) == 5 * layers


def test_nothing_ahead_exposes_every_gather():
    """Nothing overlaps: 16 gathers and 8 scatters of 1.14 ms in a row with the arithmetic, 27.3 ms."""
    step = FsdpTimeline()
    step.set_state({"prefetch": 0})
    run = step.run()
    assert run["exposed_s"] == pytest.approx(run["network_s"]) and "nothing_ahead" in met(prefetch=0)
    assert text("exposed", prefetch=0).startswith("27.3 ms")


def test_the_target_is_reached_by_the_wire_or_by_the_tokens():
    """The traffic is a ring's: so many tokens make the arithmetic as long, and one stop on either side
    tells."""
    assert met() == set()
    needed = FsdpTimeline().needed_tokens()
    assert "wire_sets_the_pace" in met(tokens=int(needed)) and "wire_sets_the_pace" not in met(
        tokens=int(needed) + 1
    )
    assert "wire_sets_the_pace" in met(wire_bytes_per_s=50e9)
    slow, slower = (FsdpTimeline(wire_bytes_per_s=5e9, prefetch=depth).run()["total_s"] for depth in (1, 4))
    assert slower == pytest.approx(slow, rel=0.05), "a deeper prefetch wins nothing on a slow wire"


def test_recomputation_trades_a_third_of_time_for_most_of_the_memory():
    kept, again = FsdpTimeline(tokens=4096), FsdpTimeline(tokens=4096, recompute=True)
    assert again.run()["compute_s"] / kept.run()["compute_s"] == pytest.approx(8 / 6)
    assert again.peak_bytes() < kept.peak_bytes() / 2
    full = dict(tokens=32768, layers=32)
    assert "activations_fill_it" in met(**full) and "activations_fill_it" not in met(**full, recompute="on")


def test_each_block_says_what_it_is_how_long_and_what_it_waited_for():
    said = hints()["tasks"]
    assert not lacks(said[0], "Gather", "layer 1", "1.14 ms") and lacks(said[0], "waited")
    assert not lacks(said[2], "Forward pass", "layer 1", "2.78 ms", "waited", "gather of layer 1")
    assert not lacks(said[39], "Reduce-scatter", "1.14 ms", "waited", "backward pass of layer 1")
    assert not lacks(hints()["waits"][0], "Exposed", "1.14 ms", "gather of layer 1")
    held = ("872 MB of gathered weights", "0 B of gradients", "570 MB of activations")
    assert not lacks(hints()["memory"][1], "1.14 ms", *held)
