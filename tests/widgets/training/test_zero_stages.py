"""zero_stages: the paper's example on the picture, what is past a wall, and the state in which stage 3
breaks."""

import numpy as np
import pytest

from engine import catalog
from engine.executed import zero
from engine.mechanism import matmul
from tests import states
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.training.zero_stages import ZeroStages

READER = Reader(ZeroStages)
shown, part, met = READER.shown, READER.part, READER.met


def test_the_papers_example_by_hand():
    """ZeRO Figure 1: 7.5B on 64. Traffic: 15 GB · 63/64 a pass over 400 GB/s; arithmetic 6 · 7.5e9 · 2,048 /
    396e12, of which a backward pass is two thirds."""
    parts = shown()["parts"]
    assert list(parts["stacks"]["amount"]) == ["120 GB", "31.4 GB", "16.6 GB", "1.88 GB"]
    assert parts["stacks"]["bytes"] == pytest.approx(np.array([120, 31.40625, 16.640625, 1.875]) * 1e9)
    arithmetic_s = 6 * 7.5e9 * 2048 / matmul.product_flops_per_s(catalog.gpu("h100-sxm"))
    wires_s = np.array([2, 2, 2, 3]) * 15e9 * 63 / 64 / 400e9
    columns = parts["columns"]
    assert columns["seconds"] == pytest.approx(wires_s)
    assert columns["limit"] == pytest.approx(arithmetic_s * np.array([2 / 3, 2 / 3, 2 / 3, 1]))
    assert list(columns["passes"]) == [f"sends {n}P" for n in (2, 2, 2, 3)] and met() == set()


@pytest.mark.parametrize(
    "texts",
    [
        {},
        dict(size=13e9, ranks=16, gpu="a100-40", network=25e9),
        dict(group="8"),
        dict(recipe="fp32-adam", micro_batches=4, group="16"),
    ],
)
def test_pieces_end_to_end_are_as_long_as_what_they_stand_for(texts):
    parts = shown(**texts)["parts"]
    for name, whole in (("slabs", parts["stacks"]["bytes"]), ("roots", parts["columns"]["seconds"])):
        left, right = (np.reshape(parts[name][side], (4, 3)) for side in ("left", "right"))
        assert left[:, 0] == pytest.approx(0) and left[:, 1:] == pytest.approx(right[:, :-1])
        assert right[:, -1] == pytest.approx(whole)


@pytest.mark.parametrize("state", [*states.presets(ZeroStages), *states.scattered(ZeroStages, 40)])
def test_all_of_every_bar_is_in_view_with_its_value(state):
    """1.12 TB, 293 GB and 155 GB are three lengths; nothing is cut off."""
    widget = ZeroStages()
    widget.set_raw(state)
    page = widget.shown()
    for name, axis, value in (("stacks", "x", "bytes"), ("columns", "time", "seconds")):
        assert (page["parts"][name][value] * 1.15 <= page["ranges"][axis][1]).all()


@pytest.mark.parametrize("state", [*states.presets(ZeroStages), *states.scattered(ZeroStages, 40)])
def test_a_value_is_behind_its_bar_or_follows_the_rows_name(state):
    """73.8 ms behind the mark of 96.1 ms would read as the mark's."""
    widget = ZeroStages()
    widget.set_raw(state)
    parts = widget.shown()["parts"]
    for columns, value, named in (
        (parts["stacks"], "amount", "shared"),
        (parts["columns"], "label", "sends"),
    ):
        for i in range(4):
            crossed, text = columns["crossed"][i] > 0, str(columns[value][i])
            assert str(columns[named][i]).endswith(f", {text}") == crossed
            assert (columns["x"][i] >= 0) == (not crossed)


def test_at_first_three_values_follow_their_names_since_a_mark_is_near():
    assert [str(text) for text in part("columns")["sends"]] == ["sends 2P, 73.8 ms"] * 3 + ["sends 3P"]


def test_past_a_limit_it_is_marked():
    stacks = part("stacks", size=70e9)
    assert (stacks["left"] > 0).tolist() == [True, True, True, False]
    assert stacks["right"][:3] == pytest.approx(stacks["bytes"][:3]) and stacks["left"][0] == 80e9
    assert list(stacks["amount"]) == ["1.12 TB", "293 GB", "155 GB", "17.5 GB"]
    columns = part("columns", tokens=512)
    assert columns["past"].tolist() == [1, 1, 1, 1] and (columns["left"] == columns["limit"]).all()
    assert list(columns["label"])[3] == "111 ms"


def test_marks_say_what_they_are():
    hints = ZeroStages().hints()
    assert not lacks(hints["slabs"][5], "stage 1", "1.41 GB", "optimizer")
    assert not lacks(hints["roots"][9], "stage 3", "gather weights", "29.5 GB", "73.8 ms")


def test_the_chosen_stage_is_lit_and_spoken_of():
    rows, chosen = part("rows"), part("chosen", stage="1")
    assert abs(rows["y"] - chosen["held"]).argmin() == 1
    assert shown(stage="1")["readouts"]["sent"]["text"] == "29.5 GB"
    assert shown(stage="3")["readouts"]["sent"]["text"] == "44.3 GB"


def test_the_target_is_reached_by_dragging_the_tokens_below_the_formula():
    """400 GB/s behind 643.9 TFLOP/s, times 63/64: 1,585 tokens."""
    assert shown()["readouts"]["hides_from"]["text"] == "1.58k tokens"
    assert "little_work" in met(tokens=1584) and "little_work" not in met(tokens=1585)
    assert "little_work" not in met(tokens=100, stage="2"), "it is about stage 3"


@pytest.mark.parametrize("stage", ["0", "1", "2", "3"])
def test_every_stage_hides_from_the_same_tokens_and_its_line_says_so(stage):
    """Lesson 04's 1,585: the bar reaches its own line at the tokens of the readout, accumulated or not."""
    for more in ({}, {"micro_batches": 8}):
        assert shown(stage=stage, **more)["readouts"]["hides_from"]["text"] == "1.58k tokens"
        for tokens, past in ((1584, 1), (1585, 0)):
            columns, at = part("columns", tokens=tokens, **more), int(stage)
            assert columns["past"][at] == past == (columns["seconds"][at] > columns["limit"][at])


def test_more_micro_batches_do_not_help_stage_three_and_help_stage_one():
    assert "little_work" in met(tokens=512, micro_batches=32)
    assert "do not help" in shown(tokens=512)["regimes"]["little_work"]["text"]
    assert "spread only" in shown(tokens=512, group="8")["regimes"]["little_work"]["text"]
    one, many = (
        part("columns", tokens=512, micro_batches=m)["seconds"][1] / m for m in (1, 32)
    )  # for each micro-batch's arithmetic
    assert many < one / 20


def test_hybrid_sharding_turns_most_of_the_traffic_to_the_node():
    roots = part("roots", group="8")
    assert (
        list(roots["wire"][9:]) == ["link", "link", "network"] and list(roots["wire"][:2]) == ["network"] * 2
    )
    assert list(part("roots")["wire"][9:11]) == ["network"] * 2


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (dict(size=13e9, gpu="a100-40", stage="1"), "any number of GPUs"),
        (dict(size=13e9, gpu="a100-40", ranks=8, stage="2"), "at least 13 GPUs"),
    ],
)
def test_a_state_that_does_not_fit_says_what_would(texts, words):
    found = shown(**texts)["regimes"]["too_large"]
    assert found["met"] and not lacks(found["text"], words)


def test_the_largest_model_is_the_engines():
    largest = zero.largest_params(80e9, catalog.recipe("bf16-adam"), 64, 2)
    assert shown(stage="2")["readouts"]["largest"]["text"] == f"{largest / 1e9:.1f}B"
