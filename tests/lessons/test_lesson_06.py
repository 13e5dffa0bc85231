"""Lesson 06: its numbers are those worked by hand, and its words agree with the engine."""

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.executed import tensor
from engine.mechanism import interconnect, memory
from engine.step import layout
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("06-tensor-parallel.md")
H100, LLAMA = catalog.gpu("h100-sxm"), catalog.model("llama3-70b")
NET, REACHED = interconnect.wires(H100), 0.6 * 989e12

# worked by hand from 8,192 tokens, h = 8,192, F = 28,672, 450 GB/s: a part of the expression -> what the
# reader must see
BY_HAND = {
    "16384 * 8192 | tokens": "134M tokens",
    "memory.weight_bytes(70e9) / h100.hbm_bytes_per_s": "41.8 ms",  # 140 / 3,350
    "wrongly_cut_gpt3": "4.5×",  # (2·4 + 1) / 2
    "llama.vocab * 4": "4.2 GB",  # 8,192 · 128,256 · 4
    "3 * 8192 * 4": "98.3 kB",
    "1 + 1.125 * 8192 * nvlink": "5",  # 1 + 4.19, rounded
    "llama.ffn / 16": "1,792",
    "parameters / 8 | params": "8.82B",
    "memory.state_bytes(parameters / 8)": "141 GB",  # 16 · 8.82
    "memory.sharded_state_bytes": "48.5 GB",  # (4 + 12/8) · 8.82
    "activations_bytes(sharded=1)": "22.5 GB",  # 80 · 33.5 / 8 of 8,192²; 34 less what grouped keys save
    "layer_flops": "45.4 TFLOP",
    "8192 * 8192 * 2 | MB": "134 MB",
    "sent_bytes | MB": "235 MB",  # 7/4 · 134
    "4 * sent_bytes / nvlink": "2.09 ms",  # 4 · 235 / 450
    "compute_s(ranks=8)": "9.55 ms",  # 45.35 / 8 / 593.4
    "80 * 4 * 8 * sent_bytes": "601 GB",
    "fsdp_bytes | GB": "359 GB",  # 2.625 · 80 layers of 856M, two bytes each
    "fsdp_bytes / (80 * 4 * tensor.column_row_bytes(tokens=1": "39.2k tokens",  # 359 / (320 · 28,672 bytes)
    "wrongly_cut_bytes": "1.76 GB",  # 7/8 · 8,192 · (4F + h) · 2
    "wrongly_cut_bytes / nvlink.bytes_per_s": "3.91 ms",  # 1.76 / 450
    "2 * 8192 * 3 * 8192 * 28672 / 8": "1.46 ms",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.right("tensor_split") == 2
    assert LESSON.truth("tp_scaling") == pytest.approx(layer_s(16.0), rel=0.01)


def layer_s(ranks, wires=NET):
    return float(tensor.layer_s(8192.0, 8192.0, 28672.0, 8192.0, ranks, REACHED, wires, 3, 1 / 8))


def test_sixteen_gpus_of_two_nodes_take_about_sixty_per_cent():
    assert layer_s(16.0) / layer_s(8.0) == pytest.approx(0.6, abs=0.03)


def test_the_limit_fell_by_half_from_a100_to_h100_and_stays_under_four_on_pcie():
    a100, h100, pcie, alone = (
        tensor.largest_useful_ranks(
            LLAMA.ffn, catalog.link(wire).bytes_per_s, catalog.gpu(gpu).bf16_flops_per_s
        )
        for gpu, wire in (
            ("a100-80", "nvlink3"),
            ("h100-sxm", "nvlink4"),
            ("h100-pcie", "pcie5"),
            ("h100-sxm", "ib-ndr"),
        )
    )
    assert (h100 - 1) / (a100 - 1) == pytest.approx(0.5, abs=0.05)
    assert h100 > 8 and 3 < pcie < 4 and 2 < alone < 3


@pytest.mark.parametrize(("gpu", "wire", "below"), [("h100-pcie", "pcie5", 5), ("h100-sxm", "ib-ndr", 4)])
def test_gated_as_llama_is_the_limit_lies_below_five_ranks_on_pcie_and_four_across_nodes(gpu, wire, below):
    most = tensor.largest_useful_ranks(
        LLAMA.ffn, catalog.link(wire).bytes_per_s, catalog.gpu(gpu).bf16_flops_per_s, matrices_of_mlp=3
    )
    assert below - 1 < most < below


def test_at_the_limit_half_of_the_time_is_lost_and_with_fewer_ranks_what_the_box_says():
    """Forward, one MLP of two matrices: 4·n·h·F/(t·C) of arithmetic against 4·n·h·(t−1)/(t·W)."""
    limit = 28672 * 450e9 / 989e12  # F·W/C
    for ranks in (1 + limit, 8, 2):
        compute_s, sent_s = 28672 / 989e12, (ranks - 1) / 450e9
        assert sent_s / (compute_s + sent_s) == pytest.approx((ranks - 1) / (ranks - 1 + limit))
    assert LESSON.shows("kempner_rule_share") == "23 %"  # 3 / (3 + 1.5 · 14,336 · 450 / 989,000)


def test_one_card_a_node_makes_sixteen_ranks_slower_than_eight_and_a_thin_layer_sends_half_of_its_time():
    one_card = interconnect.wires(H100, 8, 6.25e9)
    assert layer_s(16.0, one_card) > layer_s(8.0) > layer_s(16.0)
    thin = 2048.0, 3.5 * 2048.0
    sent = float(tensor.layer_all_reduces_s(8192.0, thin[0], 8.0, NET))
    whole = float(tensor.layer_s(8192.0, *thin, 8192.0, 8.0, REACHED, NET, 3, 1 / 8))
    assert sent / whole == pytest.approx(0.5, abs=0.05)


def test_sharing_tokens_in_pieces_saves_more_in_fp8():
    assert LESSON.shows('async_gain(precision="bf16")') == "8.4 %"  # 1 - 25.113 / 27.43
    assert LESSON.shows('async_gain(precision="fp8")') == "14 %"  # 1 - 17.385 / 20.232


def test_in_a_rack_of_72_sixteen_ranks_pay_hardly_more_than_eight():
    rack = interconnect.wires(catalog.gpu("gb200"), 72)
    eight, sixteen = (float(tensor.layer_all_reduces_s(8192.0, 8192.0, t, rack)) for t in (8.0, 16.0))
    assert eight < sixteen < 1.06 * eight


def test_relu_of_a_sum_is_not_the_sum_of_relus():
    """The lesson's parts are 3 and -2: 1 against 3."""
    assert tensor.relu(3.0 - 2.0) == 1 and tensor.relu(3.0) + tensor.relu(-2.0) == 3


def test_the_backward_pass_of_the_pieces_is_that_of_the_whole():
    """dA and dB stay on their rank, and dX is the sum over ranks, as the lesson derives it."""
    draw = np.random.default_rng(6).standard_normal
    x, a, b, dy = draw((3, 4)), draw((4, 8)), draw((8, 4)), draw((3, 4))
    mask = (x @ a > 0).astype(float)  # f = ReLU
    whole_dx, whole_da = ((dy @ b.T) * mask) @ a.T, x.T @ ((dy @ b.T) * mask)
    dx = np.zeros_like(x)
    for a_r, b_r, da_r in zip(np.split(a, 2, axis=1), np.split(b, 2), np.split(whole_da, 2, axis=1)):
        inner = (dy @ b_r.T) * (x @ a_r > 0)
        assert np.allclose(x.T @ inner, da_r)
        dx += inner @ a_r.T
    assert np.allclose(dx, whole_dx)


def test_three_numbers_a_token_give_the_cross_entropy_of_a_cut_vocabulary():
    """The largest logit, the sum of the exponentials, and the right logit, each joined over four ranks."""
    logits, right = np.random.default_rng(6).normal(size=16) * 5, 11
    cut = np.split(logits, 4)
    largest = max(part.max() for part in cut)
    total = sum(np.exp(part - largest).sum() for part in cut)
    mine = sum(part[right - 4 * r] if 0 <= right - 4 * r < 4 else 0.0 for r, part in enumerate(cut))
    assert np.log(total) + largest - mine == pytest.approx(
        -np.log(np.exp(logits)[right] / np.exp(logits).sum())
    )


def estimate(tp, zero, recompute="none"):
    return layout.estimate(
        LLAMA,
        layout.machine(H100),
        layout.Job(32, 8192),
        layout.Layout(64, tp=tp, zero=zero, recompute=recompute),
    )


def test_the_design_exercise_is_met_and_its_words_hold():
    best = estimate(4, 3)
    assert best.fits and best.mfu() >= 0.4
    assert not estimate(2, 3).fits and estimate(2, 3, "full").fits
    assert estimate(8, 1).fits and 0.4 <= estimate(8, 1).mfu() < best.mfu()
    assert estimate(16, 1).mfu() < 0.4
    assert estimate(2, 3, "full").mfu() < best.mfu() < estimate(2, 3).mfu()


def test_the_state_of_tp_8_alone_does_not_fit_and_zero_1_over_eight_nodes_does():
    share = models.parameters(LLAMA) / 8
    assert memory.state_bytes(share) > H100.hbm_bytes > memory.sharded_state_bytes(share, ranks=8, stage=1)
