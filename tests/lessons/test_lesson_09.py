"""Lesson 09 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the
engine."""

from dataclasses import replace

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.executed import executed_experts, routing
from engine.mechanism import compute, experts
from engine.mechanism.shape import shape
from engine.step.layout import Job, Layout, require_legal
from engine.step.step import COPYING_SLOWS
from tests import machine
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("09-expert-parallel.md")
V3 = catalog.model("deepseek-v3")
H100, H800 = (experts.ExpertNode.of(catalog.node(key)) for key in ("dgx-h100", "h800-8"))

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "memory.state_bytes(models.parameters(deepseek)) | TB": "10.7 TB",  # 671B · 16
    "memory.minimum_gpus(memory.state_bytes(models.parameters(deepseek)), h100)": "135",  # 10.74 TB / 80 GB
    "experts.held_bytes(deepseek, ep=8)": "163 GB",  # 58 · 32 · 44.04M · 2
    "experts.mean_rows(tokens=512, top_k=2, experts=8)": "128",
    "room(tokens=512, top_k=2, of=8)": "160",
    "hiding_width(nvlink)": "1,282",
    "hiding_width(card)": "11,538",
    "all_experts": "14,848",
    "models.expert_parameters(deepseek) | params": "44M",  # 3 · 7,168 · 2,048
    "experts_on_each": "639M",
    "memory.state_bytes(experts_on_each)": "10.2 GB",
    "4096 * 7168 * copies(ep=64, node_limit=4": "1.41 ms",  # 29.4 MB · 6.44 / 134 GB/s
    "180e3 * units.HOUR": "35.2 %",  # 6 · 37.6e21 / (180e3 · 3,600 · 989e12)
    "3 * 4096 * 14336 | params": "176M",
    "models.parameters(mixtral) - 8": "1.61B",
    "room(tokens=8192, top_k=1, of=64)": "160",
    "16 * 4096 * 2 | kB": "131 kB",
    "14336 / hiding_width(nvlink)": "11.2×",
    "1792 / hiding_width(nvlink)": "1.4×",
    "3 * 32 * 9 * 7000 / 50e9 | µs": "120.96 µs",  # as printed in arXiv:2505.09343
    "61 * 2 * 3 * 32 * 9 * 7000 / 50e9 | ms": "14.8 ms",  # 14.76 there
    "1 / (61 * 2 * 3 * 32 * 9 * 7000 / 50e9)": "67.8",  # 67 there
    "48 * 64 * 3 * 4096 * 2048 | params": "77.3B",
    "4 * 48 * 8 * 3 * 4096 * 2048 | GB": "38.7 GB",
    "12 * 48 * 8 * 3 * 4096 * 2048 / 8 | GB": "14.5 GB",
    "experts.mean_rows(tokens=8 * 8192, top_k=4, experts=64)": "4,096",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.truth("moe_routing") == pytest.approx(5.79e-3 * 2.17, rel=0.02)
    on_four = LESSON.value("experts.wires_s(expert_layer(ep=32))")
    leaves = (1 - 8 / 256) / (1 - 8 / 32)  # of the choices, on 32 nodes over on four
    assert LESSON.truth("alltoall_cost") == pytest.approx(on_four * leaves, rel=0.1)


# -- what the words claim ------------------------------------------------------------------------------------
def test_mixtrals_parameters_follow_from_what_the_exercise_gives():
    """Expert and hidden width, 32 layers, 32 query and 8 key-value heads, two embeddings of 32,000 words."""
    attention = 2 * 4096 * 4096 + 2 * 4096 * (8 * 4096 // 32)
    rest = 32 * (attention + 8 * 4096 + 2 * 4096) + 2 * 32_000 * 4096 + 4096
    whole = 32 * 8 * 3 * 4096 * 14336 + rest
    assert models.parameters(catalog.model("mixtral-8x7b")) == pytest.approx(whole, rel=1e-5)


def balanced(way, steps, seed=1):
    return routing.imbalance(routing.route(8, 2, 0.8, seed, way, steps)["load"], 8)


def test_chance_alone_puts_the_fullest_about_a_tenth_above_the_mean():
    even = [
        routing.imbalance(routing.route(8, 2, 0.0, seed, routing.OFF, 0)["load"], 8) for seed in range(1, 21)
    ]
    assert np.mean(even) == pytest.approx(1.1, abs=0.04)


def test_both_ways_of_balancing_end_near_chance():
    for way in (routing.AUXILIARY, routing.BIAS):
        assert balanced(way, 60) < balanced(way, 10) < balanced(routing.OFF, 0) and balanced(way, 60) < 1.25


def test_the_average_gpu_idles_for_more_than_half():
    assert 1 / balanced(routing.OFF, 0) < 0.5


def test_up_to_64_rows_the_time_is_that_of_reading_weights():
    few, some, many = (experts.experts_s(rows, 32, 7168, 2048, 1, H100.wide) for rows in (16, 64, 1024))
    weights_s = 32 * 3 * 7168 * 2048 * 2 / H100.wide.experts.memory_bytes_per_s
    assert some < 1.35 * weights_s and some < 1.2 * few and many > 3 * some


def test_a_larger_group_gives_an_expert_as_many_times_the_rows():
    assert experts.mean_rows(4096, 8, 256 / 8) == 8 * experts.mean_rows(4096, 8, 256)


def test_the_opening_case_doubles_nothing_but_the_wires():
    inside, outside = (experts.layer(V3, 4096, ep, H100, 32, False, False) for ep in (8, 32))
    # the same arithmetic; eight experts with four times the rows each are padded less than 32
    assert (
        inside.experts_s == pytest.approx(outside.experts_s, rel=0.06)
        and inside.experts_s > outside.experts_s
    )
    assert experts.wires_s(inside) < inside.experts_s < experts.wires_s(outside)


def test_once_saves_a_third_and_both_half_and_a_limit_alone_nothing():
    plain, limit, once, both = (
        experts.copies(8, 256, 64, 8, nodes, at_once).nic
        for nodes, at_once in ((8, False), (4, False), (8, True), (4, True))
    )
    assert (
        limit == plain
        and once / plain == pytest.approx(2 / 3, abs=0.02)
        and both / plain == pytest.approx(1 / 2)
    )


def test_the_table_of_executed_rows_is_the_closed_form():
    choices = [[(5 * t + 8 * c) % 16 for c in range(2)] for t in range(64)]
    square = executed_experts.Experts(np.ones((16, 4, 4)), np.ones((16, 4, 4)))
    for ranks in (1, 2, 4, 8):
        run = executed_experts.execute(
            np.ones((64, 4)), np.ones((64, 4)), choices, np.ones((64, 2)), square, ranks
        )
        assert run.moved_bytes(1).sum() / ranks == 4 * 64 / ranks * 2 * (1 - 1 / ranks)


def test_measured_and_ours_differ_as_the_words_say():
    for ep, there, back, most in (
        (8, 153e9, 158e9, 0.04),
        (16, 43e9, 43e9, 0.08),
        (32, 58e9, 57e9, 0.08),
        (64, 51e9, 50e9, 0.08),
    ):
        found, rows = (
            experts.layer(V3, 4096, ep, H800, 4, True, True),
            experts.visited(8, 256, ep, 8, 4) * 4096 * 7168,
        )
        faster = [
            1 - found.dispatch_s / (rows * (1 + 4 / 128) / there),
            1 - found.combine_s / (rows * 2 / back),
        ]
        assert max(map(abs, faster)) <= most and (max(faster) < 0 if ep == 8 else min(faster) > 0.02)


def test_computing_and_communicating_stand_near_one_to_one():
    """arXiv:2412.19437, section 3.2.1: about 1:1. A quarter either way is what "about" is taken to mean.

    The engine's casts find one scale a tensor, and read the values twice for it; DeepSeek scales each 128 of
    them (section 3.3.2), in one pass.
    """
    at = H800.narrow
    one_pass = replace(at, quantise=replace(at.quantise, moved_bytes=at.quantise.moved_bytes - 2.0))
    layer_s = compute.layer(
        shape(V3), 4096.0, 4096.0, 1.0, 1.0, 64.0, 1.0, 1.0, True, True, one_pass
    ).forward_s
    assert experts.wires_s(experts.layer(V3, 4096, 64, H800, 4, True, True)) / layer_s == pytest.approx(
        1, abs=0.25
    )


def test_nvlink_keeps_up_with_the_card():
    at = experts.copies(8, 256, 64, 8, 4, True)
    assert at.link / H800.net.link_bytes_per_s < at.nic / H800.net.nic_bytes_per_s


def test_at_two_nodes_once_is_the_whole_answer_and_at_eight_not():
    two, eight = (experts.layer(V3, 4096, ep, H100, 8, True, False) for ep in (16, 64))
    assert experts.wires_s(two) < two.experts_s and experts.wires_s(eight) > eight.experts_s


def test_the_design_has_about_eighty_billion_parameters_and_ten_for_a_token():
    attention, expert = 48 * 4 * 4096**2, 48 * 3 * 4096 * 2048
    assert attention + 65 * expert == pytest.approx(80e9, rel=0.05)
    assert attention + 5 * expert == pytest.approx(10e9, rel=0.1)
    assert models.parameters(V3) / models.active_parameters(V3) == pytest.approx(18, abs=0.5)


# -- mixtures as they are run --------------------------------------------------------------------------------
def test_the_router_runs_as_printed_and_its_bias_evens_the_load():
    """A router whose first expert everybody prefers: the bias brings the fullest near the mean, and the
    weights of a token add up to one."""
    torch = machine.torch()
    [code] = [block for block in LESSON.code("python") if "def rebalance" in block]
    names: dict = {}
    exec(code, names)
    torch.manual_seed(0)
    router, bias = torch.randn(16, 8) * 0.3, torch.zeros(8)
    router[:, 0] += 0.5
    first = None
    for _ in range(600):
        x = torch.randn(512, 16) + 0.3
        chosen, weight = names["route"](x, router, bias, 2)
        load = torch.bincount(chosen.flatten(), minlength=8).float()
        first = first if first is not None else float(load.max() / load.mean())
        names["rebalance"](bias, chosen, step=0.002)
    assert torch.allclose(weight.sum(-1), torch.ones(512)) and (weight >= 0).all()
    assert first > 2 and float(load.max() / load.mean()) < 1.25


def test_all_that_1f1b_hides_is_the_alltoalls():
    shown, hidden = (LESSON.value("v3_step")(overlap=overlap) for overlap in (False, True))
    assert shown.fits and hidden.time_s["expert"] == pytest.approx(COPYING_SLOWS * shown.time_s["expert"])
    a = shown.layout  # what Megatron-LM asks of who turns it on (transformer_config.py)
    assert a.interleave > 1 and a.recompute != "full"
    saved_s = shown.step_s - hidden.step_s
    assert saved_s >= (1 - COPYING_SLOWS) * shown.time_s["expert"] > 0


def test_cut_experts_save_memory_and_cost_time():
    whole, cut = (LESSON.value("cut_experts")(ways=ways) for ways in (1, 4))
    assert cut.terms.total_bytes < 0.7 * whole.terms.total_bytes and whole.fits
    assert cut.time_s["expert"] > 5 * whole.time_s["expert"] and cut.step_s > 1.2 * whole.step_s


def test_expert_ranks_need_not_be_multiplied_by_tensor_ranks():
    """Four tensor ranks and 64 expert ranks on 64 GPUs can be built."""
    folded = Layout(64, tp=4, ep=64)
    require_legal(V3, Job(64, 4096), folded)
    with pytest.raises(ValueError, match="expert_tp"):
        require_legal(V3, Job(64, 4096), replace(folded, expert_tp=4))


def test_four_nodes_hold_the_weights_of_all_experts_but_not_their_training_state():
    weights = [LESSON.value(f"experts.held_bytes(deepseek, ep={ranks})") for ranks in (8, 16, 32)]
    capacity, state = (
        LESSON.value("memory.capacity_bytes(h100)"),
        LESSON.value("memory.state_bytes(models.parameters(deepseek))"),
    )
    assert weights[0] > capacity and weights[2] < capacity < 8 * weights[2] < state / 32
    assert weights[1] > 0.9 * capacity  # "still too much", with anything beside them
