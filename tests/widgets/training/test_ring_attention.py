"""The ring's picture: numbers of the executed run, work and waiting by the closed forms, two ways to break
it."""

import numpy as np
import pytest

from engine.executed import ring_attention
from engine.mechanism import context_parallel, online_softmax
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.training.ring_attention import BLOCK, KEYS, MOST, ORDERS, QUERIES, RingAttention

GAP = 1e-9


shown = Reader(RingAttention).shown


def texts(column):
    return [str(text) for text in column if str(text)]


def executed(ranks, order):
    return ring_attention.ring(*ring_attention.example(1, ranks * BLOCK), ranks, ORDERS[order][1])


def test_the_default_by_hand():
    """4 ranks, contiguous: 10, 16, 16 and 16 of 16 pairs, so 4·58 = 232 waited for and 136 computed; 4/7 if
    long. Llama 405B at 131,072: 4 · 32,768² · 128 · 128 FLOP at 989 · 0.672 · 0.859 = 571 TFLOP/s
    are 123 ms a block."""
    found = shown()
    assert found["readouts"]["computing"] == {"text": "57.1 %", "alarm": True}
    assert found["readouts"]["busiest"]["text"] == "123 ms"
    assert found["readouts"]["takes"]["text"] == "430 ms"  # 3.5 blocks
    assert found["readouts"]["message"]["text"] == "2.69 ms"  # 2 · 32,768 · 8 · 128 · 2 bytes at 50 GB/s
    assert found["ends"]["play"] == 4
    assert found["regimes"]["idle"]["met"] and not found["regimes"]["bare_messages"]["met"]


@pytest.mark.parametrize("order", ORDERS)
def test_the_running_softmax_is_that_of_the_executed_ring(order):
    run = executed(4, order)
    for state in range(5):
        part = shown(order=order, play=state, follow="third")["parts"]["accumulators"]
        for rank in range(4):
            held = run.states[state][rank]
            if held.total[0, 2] == 0:
                assert str(part["m"][rank]) == "–"
                continue
            assert float(str(part["out"][rank])) == pytest.approx(
                online_softmax.output(held)[0, 2, 0], abs=0.005
            )
            assert float(str(part["l"][rank])) == pytest.approx(held.total[0, 2], abs=0.005)
            assert float(str(part["m"][rank]).replace("−", "-")) == held.maximum[0, 2]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_in_the_end_every_output_is_that_of_full_attention(ranks, order):
    found = shown(ranks=ranks, order=order, play=ranks)
    part = found["parts"]["accumulators"]
    assert texts(part["out"]) == texts(part["full"]) and len(texts(part["out"])) == ranks
    assert found["readouts"]["off"]["text"] == "under 10⁻¹⁴"
    assert shown(ranks=ranks, order="full", play=1)["readouts"]["off"]["text"] != "under 10⁻¹⁴"


def areas(pairs, left, right):
    """How many pairs lie between two edges of each box: four ranks' 256 take the whole matrix without its
    gaps."""
    whole = shown(order="full")["parts"]["pairs"]
    unit = ((whole["seen_to"] - whole["left"]) * (whole["top"] - whole["bottom"])).sum() / 256
    return (pairs[right] - pairs[left]) * (pairs["top"] - pairs["bottom"]) / unit


@pytest.mark.parametrize("order", ["contiguous", "zigzag"])
def test_pairs_are_those_of_the_run_and_darken_block_by_block(order):
    run = executed(4, order)
    for state in range(5):
        pairs = shown(order=order, play=state)["parts"]["pairs"]
        seen = areas(pairs, "left", "seen_to")
        assert seen.sum() == pytest.approx(run.pairs.sum())
        assert areas(pairs, "seen_to", "right").sum() == pytest.approx(256 - run.pairs.sum()), (
            "the mask hides the others"
        )
        assert seen[pairs["tint"] > 0].sum() == pytest.approx(run.pairs[:state].sum())
    halfway = shown(order=order, play=1.5)["parts"]["pairs"]
    active = (context_parallel.step_of(QUERIES, KEYS, 4) == 1) & (QUERIES < 4) & (KEYS < 4)
    assert halfway["tint"][active] == pytest.approx(0.5 * halfway["tint"].max())


def test_blocks_go_down_from_row_to_row_and_come_in_again_on_top():
    found = shown(play=1.5)["parts"]
    held, moving = found["held"], found["moving"]
    assert (held["seen"] > 0).sum() == 4 and (
        moving["seen"] > 0
    ).sum() == 5  # one is seen leaving and coming in
    assert moving["bottom"][:2] == pytest.approx((held["bottom"][:2] + held["bottom"][1:3]) / 2, abs=0.13)
    assert moving["bottom"][0] < held["bottom"][0] and moving["bottom"][MOST + 2] > held["bottom"][3]
    assert not shown(play=2)["parts"]["moving"]["seen"].any(), "between two steps nothing travels"
    assert not shown(play=3.5)["parts"]["moving"]["seen"].any(), "the last step passes nothing on"
    assert not shown(play=4)["parts"]["held"]["seen"].any()


def test_lanes_add_up_to_the_work_of_each_rank():
    lanes = shown(order="contiguous")["parts"]["lanes"]
    work = np.bincount(lanes["rank"], lanes["work_s"])[:4]
    assert work / work[0] == pytest.approx([1, 3, 5, 7], rel=1e-3)  # half a block, and whole ones
    zigzag = shown(order="zigzag")["parts"]["lanes"]
    assert np.bincount(zigzag["rank"], zigzag["work_s"])[:4] == pytest.approx([work.mean()] * 4)
    assert (zigzag["waited"] - zigzag["worked"]).max() < GAP < (lanes["waited"] - lanes["worked"]).max()


def test_zigzag_takes_four_sevenths_of_the_time():
    ends = [shown(order=order)["parts"]["finish"]["x"] for order in ("contiguous", "zigzag", "full")]
    start = shown()["parts"]["lanes"]["left"][0]
    assert (ends[1] - start) / (ends[0] - start) == pytest.approx(4 / 7, rel=1e-3)
    assert (ends[1] - start) / (ends[2] - start) == pytest.approx(1 / 2, rel=1e-3)


def test_the_line_for_now_reaches_the_end_with_the_run():
    for ranks in (2, 8):
        parts = shown(ranks=ranks, play=ranks)["parts"]
        assert parts["now"]["x"] == pytest.approx(parts["finish"]["x"])


def test_a_short_sequence_leaves_messages_bare():
    """GPT-3 has a key head for each query head: 2 · 570.8e12 / 50e9 = 22,831 tokens a rank under zig-zag, and
    start-up."""
    state = {"model": "gpt3-175b", "order": "zigzag"}
    assert shown(**state)["readouts"]["hidden"]["text"] == "22,899 tokens"
    assert not shown(**state, seq=131072)["regimes"]["bare_messages"]["met"]
    found = shown(**state, seq=65536)
    assert found["regimes"]["bare_messages"]["met"] and found["readouts"]["message"]["alarm"]
    lanes = found["parts"]["lanes"]
    assert (lanes["right"] - lanes["waited"]).max() > GAP


def test_the_hints_say_what_a_step_and_a_block_are():
    widget = RingAttention()
    steps, blocks = widget.hints()["lanes"], widget.hints()["grid"]
    assert not lacks(steps[0], "rank 0", "step 1", "keys of rank 0", "61.5 ms") and lacks(steps[0], "waits")
    assert not lacks(steps[1], "rank 0", "step 2", "keys of rank 3", "0 s", "mask", "busiest rank")
    assert not lacks(blocks[MOST], "queries of rank 1", "keys of rank 0", "16 of 16 pairs", "step 2")
    widget.set_state({"model": "gpt3-175b", "order": "zigzag", "seq": 65536})
    assert not lacks(widget.hints()["lanes"][1], "next block")


def test_the_names_say_whose_tokens_stand_where():
    assert texts(shown()["parts"]["names"]["tokens"]) == ["0 to 3", "4 to 7", "8 to 11", "12 to 15"]
    assert texts(shown(order="zigzag")["parts"]["names"]["tokens"])[1] == "2, 3, 12, 13"
