"""Scaling by data parallelism: the default and a slow wire by hand, the areas' sum, and the wall that
stays."""

import numpy as np
import pytest

from engine.base import units
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.training.ddp_scaling import FLOOR, MEMORY_TOP, RANKS, DdpScaling

shown = Reader(DdpScaling).shown


def readouts(found):
    return {key: readout["text"] for key, readout in found["readouts"].items()}


def test_the_default_by_hand():
    """512 · 8,192 = 4.19M tokens against 4M: 1/2.05 = 48.8 % is useful; 3.05 deviations of 1 % make 3 % of
    waiting."""
    said = readouts(shown())
    assert said["batch"] == "4,194,304 tokens" and said["tokens_speed_up"] == "497×"
    assert not lacks(shown()["parts"]["state"]["narrow"], "each GPU", "48 GB", "60 %")
    assert "passes 489×" in shown()["regimes"]["past_critical"]["text"]  # 1 + 4e6 / 8,192
    useful = 0.97 * 4e6 / (4e6 + 512 * 8192)
    assert float(said["loss_speed_up"][:-1]) == pytest.approx(512 * useful * (1 + 8192 / 4e6), rel=2e-3)


def test_a_slow_wire_by_hand():
    """3B at 1,024 tokens on 12.5 GB/s: 12 GB · 63/64 take 0.945 s, the backward pass 19 ms and the forward
    9.6 ms."""
    found = shown(
        ranks="64", step_tokens="1024", wire_bytes_per_s="12.5e9", deviation="0", critical_batch="1e8"
    )
    backward = 4 * 3e9 * 1024 / 643.9e12
    sends = 2 * 63 / 64 * 6e9 / 12.5e9
    exposed = (sends - backward) / (sends + backward / 2)
    areas, at = found["parts"]["areas"], list(RANKS).index(64)
    assert areas["sending"][at] - areas["computing"][at] == pytest.approx(
        exposed, rel=0.05
    )  # and 230 start-ups
    assert found["regimes"]["on_the_wire"]["met"] and not found["regimes"]["not_freed"]["met"]


@pytest.mark.parametrize(
    "state",
    [{}, {"size": "70e9", "step_tokens": "1024", "wire_bytes_per_s": "1.25e9"}, {"algorithm": "ring"}],
)
def test_the_areas_stand_on_one_another_and_fill_the_whole(state):
    areas = shown(**state)["parts"]["areas"]
    stack = np.stack([areas[name] for name in ("zero", "useful", "computing", "sending", "whole")])
    assert (np.diff(stack, axis=0) >= -1e-12).all() and stack[-1] == pytest.approx(1)


def test_inside_the_node_the_link_counts():
    """70B, 2,048 tokens: inside, 7/4 · 140 GB / 450 GB/s = 0.544 s hide behind 0.9 s; on 10 Gb/s they
    cannot."""
    at = {"size": "70e9", "step_tokens": "2048", "wire_bytes_per_s": "1.25e9"}
    inside, across = shown(ranks="8", **at), shown(ranks="16", **at)
    assert not inside["regimes"]["on_the_wire"]["met"] and across["regimes"]["on_the_wire"]["met"]


def test_a_ring_is_dear_where_there_are_many():
    """16,384 ranks: 2 · 16,383 · 1.0 µs a bucket, 33 ms, against 14 · 2 · 2.7 µs of a tree."""
    tree, ring = shown(ranks="16384"), shown(ranks="16384", algorithm="ring")
    assert not tree["regimes"]["on_the_wire"]["met"] and ring["regimes"]["on_the_wire"]["met"]


@pytest.mark.parametrize("ranks", ["1", "512", "16384"])
def test_no_number_of_gpus_moves_the_memory(ranks):
    """5B is the largest that 80 GB hold; 6B has 96 GB of state."""
    few, many = shown(size="5e9", ranks=ranks), shown(size="6e9", ranks=ranks)
    walls = ("memory_wall", "not_freed")
    assert not any(few["regimes"][wall]["met"] for wall in walls)
    assert sum(many["regimes"][wall]["met"] for wall in walls) == 1
    state = many["parts"]["state"]
    assert f": {units.human(96e9, 'bytes')}, 1.2× the HBM" in state["text"]
    assert state["top"] > state["wall"] == state["inside"] and few["parts"]["state"]["left"] < 1


@pytest.mark.parametrize(("size", "cards"), [("3e9", 0.6), ("8e9", 1.6), ("70e9", 14.0), ("1e12", 200.0)])
def test_memory_is_as_deep_as_there_are_cards(size, cards):
    """One scale from the floor: no part of it is shorter than its number says."""
    state = shown(size=size)["parts"]["state"]
    depth = max(state["inside"], state["top"] if cards > 1 else state["inside"]) - FLOOR
    assert depth / (state["wall"] - FLOOR) == pytest.approx(cards)
    assert state["top"] <= MEMORY_TOP


def test_only_who_has_added_thousands_of_gpus_has_found_that_they_do_not_help():
    assert shown(size="6e9", ranks="4096")["regimes"]["not_freed"]["met"]
    presets = DdpScaling.presets.values()
    assert not any(shown(**texts)["regimes"]["not_freed"]["met"] for texts in presets)


def test_the_critical_line_stands_where_the_batch_is_critical():
    found = shown(step_tokens="4096")
    assert found["parts"]["critical"]["ranks"] == pytest.approx(4e6 / 4096)
    assert shown(step_tokens="256", critical_batch="1e8")["parts"]["critical"]["text"] == ""
