"""Lesson 01 has the parts of a lesson, its numbers are those worked by hand, and its words agree with
them."""

import re

import pytest

from engine import catalog
from engine.base import units
from engine.catalog import models
from engine.mechanism import budget, flops, memory
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("01-why-distributed.md")
H100, DGX = catalog.gpu("h100-sxm"), catalog.node("dgx-h100")
CARDS_64 = catalog.cluster("dgx-h100", 8)
PEAK = H100.bf16_flops_per_s
LLAMA_405B = models.parameters(catalog.model("llama3.1-405b"))

# worked by hand from 80 GB, 989 TFLOP/s, 450 and 50 GB/s: a part of the expression -> what the reader must
# see
BY_HAND = {
    "cluster.hbm_bytes": "5.12 TB",  # 64 · 80 GB
    "memory.state_bytes(70e9) | TB": "1.12 TB",  # 16 · 70e9
    "64 * memory.state_bytes(70e9)": "71.7 TB",
    "2**28 * 20 | GB": "5.37 GB",  # 2.684e8 · (16 + 4)
    "memory.against_hbm(memory.state_bytes(70e9)": "14",  # 1120 / 80
    "minimum_gpus(memory.state_bytes(70e9)": "14",
    "memory.sharded_state_bytes(params=70e9, ranks=64, stage=3)": "17.5 GB",  # 1120 / 64
    "memory.weight_bytes(70e9) | GB": "140 GB",
    "12 * 16 / 34 | count": "5.6",  # 192 / 34
    "run_70b | FLOP": "6.3·10²⁴ FLOP",
    "run_s(run_70b) | years": "505 years",  # 6.3e24 / 3.956e14 / 3.156e7
    "run_s(run_70b, gpus=1024) | days": "180 days",
    "0.4 * 8 / 6": "53 %",
    "cost.waste_share(mfu=0.35, achievable_mfu=0.5)": "30 %",
    "cost.wasted_dollars(dollars=10e6, mfu=0.35, achievable_mfu=0.5) | dollars": "$3M",
    "walls.allreduce_bytes_sent(params=70e9, ranks=1e6)": "280 GB",  # 2 · 140 GB
    "walls.allreduce_s(params=70e9, ranks=1e6": "0.7 s",  # 280 / 400
    "enough_tokens": "1,585",  # 63/64 · 643.9e12 / 400e9
    "at_work.matmul_flops_per_s | TFLOP/s": "644 TFLOP/s",
    "at_work.matmul_flops_per_s / peak": "65 %",
    "dgx.nics * wires_at_work.nic_bytes_per_s": "368 GB/s",  # 8 · 46
    "stored_inputs + max(": "40.9 GB",  # 17.64 + 10.74 + 10.51 + 2
    "roofline.held_sequences": "5",  # (2 · 78 − 141.1) / 2.68 = 5.55
    "causal=0) / a_cache": "60",  # 160.5 GFLOP / 2.68 GB
    "memory.state_bytes(13e9) | GB": "208 GB",
    "memory.minimum_gpus(memory.state_bytes(13e9)": "3",
    "run_s(run_7b, mfu=0.5) | days": "1,966 days",
    "fp32_state | GB": "112 GB",
    "memory.weight_bytes(7e9) | GB": "14 GB",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_each_wall_sends_you_somewhere_today_and_to_a_lesson():
    rows = re.findall(r"^\| (.+) \|$", LESSON.section("Where each wall sends you"), re.MULTILINE)[1:]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert len(rows) >= 8
    assert all(len(row) == 5 and all(row) and re.search(r"\b(0[2-9]|1\d)b?\b", row[4]) for row in cells)


# -- what the words claim ------------------------------------------------------------------------------------
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
    total = budget.total_bytes(
        models.parameters(model), model, catalog.recipe("bf16-adam"), 8192, 1, memory.FULL
    )
    whole = memory.state_bytes(models.parameters(model))
    assert LESSON.shows("stored_inputs + max(") == units.in_unit(total - whole + whole / 64, "GB")


def test_the_machine_reaches_less_than_its_data_sheet_says():
    """In the first table: of each pair the second is smaller, and none is below 0.6 of the first. Memory
    alone is more than promised, since a card "of 80 GB" has 80 GiB."""
    rows = LESSON.section("The machine, and the letters").split("\n")
    pairs = [
        re.findall(r"`#!n (.*?) \| [A-Z]", row)
        for row in map(str.strip, rows)
        if row[:1] == "|" and row.count("`#!n") == 2
    ]
    pairs = [pair for pair in pairs if len(pair) == 2]
    assert len(pairs) == 6
    for promised, reached in pairs:
        more = promised.rpartition(".")[2] == "hbm_bytes"
        low, high = (1, 1.08) if more else (0.6, 1)
        assert low < LESSON.value(reached) / LESSON.value(promised) < high


def test_no_batch_makes_writing_at_8192_tokens_a_matter_of_arithmetic():
    model = catalog.model("llama3-70b")
    most = flops.forward_flops_per_token(model, 8192, causal=0) / memory.kv_bytes(model, 8192)
    assert most < PEAK / H100.hbm_bytes_per_s


def test_405b_takes_eleven_nodes_for_its_state_and_a_sixth_longer_than_the_estimate():
    assert -(-memory.minimum_gpus(memory.state_bytes(LLAMA_405B), H100) // 8) == 11
    hours = flops.gpu_hours(flops.training_flops(LLAMA_405B, 15.6e12), PEAK, 0.41)
    assert 1 - hours / 30.84e6 == pytest.approx(0.16, abs=0.01)
