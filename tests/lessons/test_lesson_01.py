"""Lesson 01 has the parts of a lesson, its numbers are those worked by hand, and its words agree with them."""

import re

import pytest

from engine import budget, catalog, flops, layout, matmul, memory, models, units, walls
from tests.lessons.reading import Lesson
from widgets.kit import prose

LESSON = Lesson("01-why-distributed.md")
H100, DGX = catalog.gpu("h100-sxm"), catalog.node("dgx-h100")
CARDS_64 = catalog.cluster("dgx-h100", 8)
PEAK = H100.bf16_flops_per_s
LLAMA_405B = models.parameters(catalog.model("llama3.1-405b"))

# worked by hand from 80 GB, 989 TFLOP/s, 450 and 50 GB/s: a part of the expression -> what the reader must see
BY_HAND = {
    'catalog.cluster("dgx-h100", 8).hbm_bytes': "5.12 TB",                       # 64 · 80 GB
    "memory.state_bytes(70e9) | TB": "1.12 TB",                                  # 16 · 70e9
    "64 * memory.state_bytes(70e9)": "71.7 TB",
    "2**28 * 20 | GB": "5.37 GB",                                                # 2.684e8 · (16 + 4)
    "memory.against_hbm(memory.state_bytes(70e9)": "14×",                        # 1120 / 80
    "minimum_gpus(memory.state_bytes(70e9)": "14",
    "memory.sharded_state_bytes(70e9, ranks=64, stage=3)": "17.5 GB",            # 1120 / 64
    "memory.weight_bytes(70e9) | GB": "140 GB",
    "12 * 16 / 34 | count": "5.6",                                               # 192 / 34
    "flops.training_flops(70e9, 15e12)": "6.3e24 FLOP",
    "1, gpu(\"h100-sxm\").bf16_flops_per_s, mfu=0.4) | years": "505 years",      # 6.3e24 / 3.956e14 / 3.156e7
    "1024, gpu(\"h100-sxm\").bf16_flops_per_s, mfu=0.4) | days": "180 days",
    "0.4 * 8 / 6": "53 %",
    "cost.waste_share(0.35, 0.5)": "30 %",
    "cost.wasted_dollars(10e6, 0.35, 0.5) | dollars": "$3M",
    "walls.allreduce_bytes_sent(70e9, 1e6)": "280 GB",                           # 2 · 140 GB
    'walls.allreduce_s(70e9, 1e6, 2 * link("ib-ndr")': "2.8 s",
    "flops.training_flops(70e9, 8192) | FLOP": "3.44e15 FLOP",
    "flops.training_flops(70e9, 8192), 1, 1e15, mfu=0.4) | s": "8.6 s",
    'link("nvlink4").bytes_per_s / link("ib-ndr")': "9×",
    "flops.backward_flops(70e9, 8192), 1, 1e15, mfu=0.65) | s": "3.5 s",         # 4 · 70e9 · 8192 / 6.5e14
    "walls.ring_wire_bytes_per_s": "400 GB/s",                                   # min(450, 8 · 50)
    'walls.allreduce_s(70e9, 1e6, node("dgx-h100")': "0.7 s",                    # 280 / 400
    'walls.break_even_tokens_per_gpu(64, node("dgx-h100")': "1,582",             # 63/64 · 0.65 · 989e12 / 400e9
    'walls.break_even_tokens_per_gpu(64, 2 * link("ib-ndr")': "6,328",           # 63/64 · 0.65 · 989e12 / 100e9
    'walls.break_even_tokens_per_gpu(1e6, node("dgx-h100").outgoing_bytes_per_s, gpu("h100-sxm").bf16_flops_per_s, mfu=0.4)':
        "659",                                                                   # 2/3 · 0.4 · 2,472.5
    'walls.break_even_tokens_per_gpu(1e6, node("dgx-h100").outgoing_bytes_per_s, gpu("h100-sxm").bf16_flops_per_s, mfu=1)':
        "1,648",                                                                 # 2/3 · 2,472.5
    "memory.FULL) + max(": "40.9 GB",                                            # 17.64 + 10.74 + 10.51 + 2
    "roofline.held_sequences": "7",                                              # (160 − 141.1) / 2.68 = 7.04
    "causal=0) / memory.kv_bytes": "60",                                         # 160.5 GFLOP / 2.68 GB
    "1024 * 8192 / 512": "16,384",
    "collectives.ring_all_reduce_s(64e3, 1024": "2.56 µs",                       # 2 · 64 kB / 50 GB/s
    'flops_per_weight=4) / 4096 | times': "11.8×",                               # 15/16 · 0.65 · 989e12 / 12.5e9 / 4096
    "memory.state_bytes(13e9) | GB": "208 GB",
    'memory.minimum_gpus(memory.state_bytes(13e9)': "3",
    'flops.training_flops(7e9, 2e12), 1, gpu("h100-sxm").bf16_flops_per_s, mfu=0.5) | days': "1,966 days",
    'memory.state_bytes(7e9, recipe("fp32-adam")) | GB': "112 GB",
    "memory.weight_bytes(7e9) | GB": "14 GB",
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_widgets_stand_in_this_order():
    assert LESSON.widgets() == ["memory_stack", "memory_wall", "three_walls", "roofline", "regime_cube"]


def test_each_wall_sends_you_somewhere_today_and_to_a_lesson():
    rows = re.findall(r"^\| (.+) \|$", LESSON.section("Where each wall sends you"), re.MULTILINE)[1:]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert len(rows) >= 8
    assert all(len(row) == 5 and all(row) and re.search(r"\b(0[2-9]|1\d)\b", row[4]) for row in cells)


# -- what the words claim --------------------------------------------------------------------------------------------
def test_the_state_is_a_fifth_of_the_cluster_and_its_weights_do_not_fit_one_gpu():
    assert memory.state_bytes(70e9) / CARDS_64.hbm_bytes == pytest.approx(0.2, abs=0.03)
    assert memory.weight_bytes(70e9) > H100.hbm_bytes


def test_half_a_million_parameters_fit_the_cache():
    assert memory.state_bytes(0.5e6) < H100.l2_bytes


def test_activations_pass_the_state_at_5_6_tokens_for_each_unit_of_width():
    gpt = catalog.model("gpt3-175b")
    crossing = memory.state_bytes(models.parameters(gpt)) / memory.activation_bytes(gpt, 1, 1)
    assert crossing / gpt.hidden == pytest.approx(5.6, abs=0.1)


def test_the_opening_case_fails_a_second_time_and_then_runs():
    model = catalog.model("llama3-70b")
    state = memory.sharded_state_bytes(models.parameters(model), ranks=64, stage=3)
    rest = memory.logits_peak_bytes(model, 8192, 1) + memory.FRAMEWORK_BYTES
    assert state + memory.activation_bytes(model, 8192, 1) > H100.hbm_bytes
    assert state + memory.peak_activation_bytes(model, 8192, 1, recompute=memory.FULL) + rest < H100.hbm_bytes


def test_its_sum_for_the_opening_case_is_that_of_the_memory_wall():
    model = catalog.model("llama3-70b")
    total = budget.total_bytes(models.parameters(model), model, catalog.recipe("bf16-adam"), 8192, 1, memory.FULL)
    whole = memory.state_bytes(models.parameters(model))
    shown = prose.evaluate(next(number for number in LESSON.computed if "memory.FULL) + max(" in number))
    assert shown == units.in_unit(total - whole + whole / 64, "GB")


def test_the_kernels_reach_the_share_of_the_peak_that_the_rule_takes():
    assert matmul.chip(H100).matmul_flops_per_s / PEAK == pytest.approx(0.65, abs=0.01)


def test_the_allreduce_is_a_third_of_the_step_over_two_cards_and_hides_behind_the_backward_pass():
    step_s = flops.run_time_s(flops.training_flops(70e9, 8192), 1, 1e15, 0.4)
    backward_s = flops.run_time_s(flops.backward_flops(70e9, 8192), 1, 1e15, 0.65)
    assert walls.allreduce_s(70e9, 64, 100e9) / step_s == pytest.approx(1 / 3, abs=0.03)
    assert walls.allreduce_s(70e9, 64, 100e9) < backward_s
    assert walls.allreduce_s(70e9, 64, DGX.outgoing_bytes_per_s) / step_s < 0.1


def test_the_rule_and_the_roofline_cross_close_together():
    def crossing(mfu, flops_per_weight):
        return walls.break_even_tokens_per_gpu(1e6, DGX.outgoing_bytes_per_s, PEAK, mfu, flops_per_weight=flops_per_weight)
    assert crossing(0.65, 4) == pytest.approx(crossing(1, 6), rel=0.03)
    assert crossing(0.65, 4) == pytest.approx(crossing(0.4, 6) * (6 / 4) * (0.65 / 0.4))


def test_sharding_leaves_the_crossing_where_it_is():
    """At the rule's tokens a layer's gather takes as long as its forward pass, gather and scatter as its backward pass."""
    tokens = walls.break_even_tokens_per_gpu(64, DGX.outgoing_bytes_per_s, PEAK, 0.65, flops_per_weight=4)
    gather_s = walls.allreduce_s(70e9, 64, DGX.outgoing_bytes_per_s) / 2
    assert gather_s == pytest.approx(flops.run_time_s(flops.forward_flops(70e9, tokens), 1, PEAK, 0.65))
    assert 2 * gather_s == pytest.approx(flops.run_time_s(flops.backward_flops(70e9, tokens), 1, PEAK, 0.65))


def test_no_batch_makes_writing_at_8192_tokens_a_matter_of_arithmetic():
    model = catalog.model("llama3-70b")
    most = flops.forward_flops_per_token(model, 8192, causal=0) / memory.kv_bytes(model, 8192)
    assert most < PEAK / H100.hbm_bytes_per_s


def test_405b_was_too_much_for_plain_data_parallel_and_not_for_the_split():
    plain = walls.break_even_tokens_per_gpu(16384, DGX.outgoing_bytes_per_s, PEAK, 0.65, flops_per_weight=4)
    split = walls.break_even_tokens_per_gpu(128, 50e9, PEAK, 0.65, gradient_bytes=4, flops_per_weight=4)
    assert 2**24 / 16384 < plain and split < 2**24 / 128


def test_the_split_of_512_gpus_is_the_fastest_of_those_shown_that_fit():
    def at(**axes):
        return layout.estimate(catalog.model("llama3-70b"), layout.machine(H100), layout.Job(1024, 8192),
                               layout.Layout(512, zero=3, **axes))
    plain, chosen = at(), at(tp=4)
    others = [at(recompute="full"), at(tp=8)]
    assert not plain.fits and chosen.fits and all(other.fits for other in others)
    assert chosen.step_s < min(other.step_s for other in others)
    assert chosen.time_s["compute"] > chosen.time_s["tensor"] > chosen.time_s["data_exposed"]
    assert others[1].time_s["data_exposed"] > others[1].time_s["tensor"]
    assert walls.break_even_tokens_per_gpu(64, 50e9, PEAK, 0.65, flops_per_weight=4) > 8192


def test_405b_takes_eleven_nodes_for_its_state_and_a_sixth_longer_than_the_estimate():
    assert -(-memory.minimum_gpus(memory.state_bytes(LLAMA_405B), H100) // 8) == 11
    hours = flops.gpu_hours(flops.training_flops(LLAMA_405B, 15.6e12), PEAK, 0.41)
    assert 1 - hours / 30.84e6 == pytest.approx(0.16, abs=0.01)
