"""pool_ratio: the best split is where prompts and answers bind alike, and sharing wins where the engine says
so."""

import numpy as np
import pytest

from engine import catalog
from engine.serving import inference
from engine.step.layout import machine
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.serving.pool_ratio import PREFILLERS, PoolRatio

READER = Reader(PoolRatio)
widget, met = READER.widget, READER.met


def test_the_default_by_hand():
    """A prefill S of 137 ms and a second of patience: ρ = 2·0.863/(2·0.863 + 0.137) = 0.926, 6.76 requests/s
    each; the caches are 2,000 · 327,680 B. Twelve replicas prefill 81.1, more than the other four write."""
    made = widget()
    prefill_s = inference.prefill(
        catalog.model("llama3-70b"), machine(catalog.gpu("h100-sxm")), 4, 1, 2000
    ).total_s
    spare = 2 * (1 - prefill_s)
    assert made.rates().prefill_per_s == pytest.approx(spare / (spare + prefill_s) / prefill_s)
    texts = {name: readout["text"] for name, readout in made.shown()["readouts"].items()}
    assert (
        texts["cache"] == "655 MB"
        and texts["best_split"] == "12 : 4"
        and texts["best_serves"] == "76.3 requests/s"
    )


def test_the_best_split_is_the_best_of_all():
    made = widget(prompt=16_000, ttft=5)
    split, inside = made.split(), made.replicas > PREFILLERS
    by_hand = np.minimum.reduce([split.prefill_per_s, split.wire_per_s, split.decode_per_s])[inside]
    assert made.best_goodput() == by_hand.max() and (split.goodput_per_s[~inside] == 0).all()


def test_long_answers_want_sharing_and_long_prompts_do_not():
    assert "sharing_wins" in met(prompt=1000, answer=4000) and "sharing_wins" not in met()


def test_a_narrow_wire_binds():
    assert "wire_binds" in met(prompt=16_000, ttft=5, prefillers=12, wire=1.25e9)
    assert "wire_binds" not in met(prompt=16_000, ttft=5, prefillers=12)


def test_a_split_far_from_the_best_says_who_waits():
    page = widget(prefillers=2).shown()
    assert page["regimes"]["idle_pool"]["met"] and "prompts wait" in page["regimes"]["idle_pool"]["text"]
    page = widget(prefillers=15).shown()
    assert page["regimes"]["idle_pool"]["met"] and "answers wait" in page["regimes"]["idle_pool"]["text"]


def test_a_prompt_longer_than_the_target_is_served_by_no_one():
    page = widget(prompt=32_000, ttft=0.5).shown()
    assert page["readouts"]["best_serves"]["text"] == "0 requests/s" and page["readouts"]["prefill"]["alarm"]


def test_a_split_says_what_bounds_it():
    assert not lacks(widget().hints()["splits"][10], "11", "prefill", "74.3 requests/s")


def test_more_that_prefill_than_there_are_is_said():
    """Once a typed 20 of 16 stayed 20, and the figure drew 15 without a word."""
    page = Reader(PoolRatio).shown(prefillers="20", replicas="16")
    said = page["regimes"]["cut"]
    assert said["met"] and "15 prefill, not 20" in said["text"]
    assert not Reader(PoolRatio).shown(prefillers="15", replicas="16")["regimes"]["cut"]["met"]
