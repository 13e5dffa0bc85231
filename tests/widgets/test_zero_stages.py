"""zero_stages: the paper's example on the picture, what is past a wall, and the state in which stage 3 breaks."""

import numpy as np
import pytest

from engine import catalog, zero
from tests.widgets.reading import Reader
from widgets.zero_stages import DEEPEST, ROOT, TOP, WALL, ZeroStages


READER = Reader(ZeroStages)
shown, part, met = READER.shown, READER.part, READER.met


def ratio(place):
    """What a place below stands for, in units of the arithmetic."""
    return (np.asarray(place) - ROOT) / (WALL - ROOT)


def test_the_papers_example_by_hand():
    """ZeRO Figure 1: 7.5B on 64. Traffic: 15 GB · 63/64 a pass over 400 GB/s; arithmetic 6 · 7.5e9 · 2,048 / 396e12."""
    parts = shown()["parts"]
    assert list(parts["stacks"]["amount"]) == ["120 GB", "31.4 GB", "16.6 GB", "1.88 GB"]
    assert parts["stacks"]["top"] == pytest.approx(np.array([120, 31.40625, 16.640625, 1.875]) / 80)
    arithmetic_s = 6 * 7.5e9 * 2048 / (0.4 * 989e12)
    wires_s = np.array([2, 2, 2, 3]) * 15e9 * 63 / 64 / 400e9
    assert parts["columns"]["seconds"] == pytest.approx(wires_s)
    assert ratio(parts["columns"]["end"]) == pytest.approx(wires_s / arithmetic_s)
    assert list(parts["columns"]["passes"]) == ["2Ψ", "2Ψ", "2Ψ", "3Ψ"] and met() == set()


@pytest.mark.parametrize("texts", [{}, dict(size=13e9, ranks=16, gpu="a100-40", network=25e9), dict(group="8"),
                                   dict(recipe="fp32-adam", micro_batches=4, group="16")])
def test_what_is_stacked_adds_up(texts):
    parts = shown(**texts)["parts"]
    for name, whole in (("slabs", "stacks"), ("roots", "columns")):
        near, far = ("bottom", "top") if name == "slabs" else ("top", "bottom")
        piece, total = parts[name], parts[whole]["top" if name == "slabs" else "end"]
        for stage in range(4):
            rows = slice(3 * stage, 3 * stage + 3)
            assert piece[near][rows][1:] == pytest.approx(piece[far][rows][:-1]), "end to end"
            assert piece[far][rows][-1] == pytest.approx(total[stage])


def test_past_a_wall_it_is_red_and_past_the_edge_it_says_so():
    stacks = part("stacks", size=70e9)
    assert stacks["past"].tolist() == [1, 1, 1, 0] and stacks["top"].max() == TOP
    assert list(stacks["amount"]) == ["↑ 1.12 TB", "↑ 293 GB", "↑ 155 GB", "17.5 GB"]
    columns = part("columns", tokens=512)
    assert columns["past"].tolist() == [1, 1, 1, 1] and ratio(columns["end"]).max() == pytest.approx(DEEPEST)
    assert list(columns["time"])[3] == "↓ 111 ms"


def test_marks_say_what_they_are():
    hints = ZeroStages().hints()
    assert hints["slabs"][5] == "stage 1: 1.41 GB of optimizer on each GPU"
    assert hints["roots"][9] == "stage 3, gather weights: 29.5 GB sent by each GPU in 73.8 ms"


def test_the_chosen_stage_is_lit_and_spoken_of():
    lit = part("slabs", stage="1")["alpha"].reshape(4, 3)
    assert (lit[1] > lit[[0, 2, 3]]).all() and len(set(lit[[0, 2, 3]].ravel())) == 1
    assert shown(stage="1")["readouts"]["state"]["text"] == "31.4 GB"
    assert "stage 1 keeps the wires busy for 73.8 ms" in shown(stage="1")["summary"]


def test_the_target_is_reached_by_dragging_the_tokens_below_the_formula():
    """400 GB/s behind 0.4 · 989 TFLOP/s, times 63/64: 974 tokens."""
    assert shown()["readouts"]["hides_from"]["text"] == "974 tokens"
    assert "little_work" in met(tokens=973) and "little_work" not in met(tokens=975)
    assert "little_work" not in met(tokens=100, stage="2"), "it is about stage 3"


@pytest.mark.parametrize("stage", ["0", "1", "2", "3"])
def test_every_stage_hides_from_the_same_tokens_and_its_line_says_so(stage):
    """Lesson 04's 974: the bar reaches its own line at the tokens of the readout, accumulated or not."""
    for more in ({}, {"micro_batches": 8}):
        assert shown(stage=stage, **more)["readouts"]["hides_from"]["text"] == "974 tokens"
        for tokens, past in ((973, 1), (975, 0)):
            columns, at = part("columns", tokens=tokens, **more), int(stage)
            assert columns["past"][at] == past == (columns["end"][at] < columns["limit"][at])


def test_more_micro_batches_do_not_help_stage_three_and_help_stage_one():
    assert "little_work" in met(tokens=512, micro_batches=32)
    assert "do not help" in shown(tokens=512)["regimes"]["little_work"]["text"]
    assert "spread only" in shown(tokens=512, group="8")["regimes"]["little_work"]["text"]
    one, many = (ratio(part("columns", tokens=512, micro_batches=m)["end"][1]) for m in (1, 32))
    assert many < one / 20


def test_hybrid_sharding_turns_most_of_the_traffic_to_the_node():
    roots = part("roots", group="8")
    assert list(roots["wire"][9:]) == ["link", "link", "network"] and list(roots["wire"][:2]) == ["network"] * 2
    assert list(part("roots")["wire"][9:11]) == ["network"] * 2


@pytest.mark.parametrize("texts, words", [
    (dict(size=13e9, gpu="a100-40", stage="1"), "would not fit on any number of GPUs"),
    (dict(size=13e9, gpu="a100-40", ranks=8, stage="2"), "at least 13 GPUs")])
def test_a_state_that_does_not_fit_says_what_would(texts, words):
    found = shown(**texts)["regimes"]["too_large"]
    assert found["met"] and words in found["text"]


def test_the_largest_model_is_the_engines():
    largest = zero.largest_params(80e9, catalog.recipe("bf16-adam"), 64, 2)
    assert shown(stage="2")["readouts"]["largest"]["text"] == f"{largest / 1e9:.1f}B"
