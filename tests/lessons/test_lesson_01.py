"""Lesson 01 has the parts of a lesson, its numbers are those worked by hand, and its words agree with them."""

import re
from pathlib import Path

import pytest

from engine import catalog, flops, memory, models, walls
from widgets.kit import prose

TEXT = (Path(__file__).resolve().parents[2] / "lessons" / "01-why-distributed.md").read_text(encoding="utf-8")
COMPUTED = re.findall(r"`#!n (.+?)`", TEXT)
H100, DGX = catalog.gpu("h100-sxm"), catalog.node("dgx-h100")
CARDS_64 = catalog.cluster("dgx-h100", 8)
PEAK = H100.bf16_flops_per_s
LLAMA_405B = models.parameters(catalog.model("llama3.1-405b"))

# worked by hand from 80 GB, 989 TFLOP/s, 450 and 50 GB/s: a part of the expression -> what the reader must see
BY_HAND = {
    'catalog.cluster("dgx-h100", 8).hbm_bytes': "5.12 TB",                       # 64 · 80 GB
    "memory.state_bytes(70e9) | TB": "1.12 TB",                                  # 16 · 70e9
    "64 * memory.state_bytes(70e9)": "71.7 TB",
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
    'walls.break_even_tokens_per_gpu(64, 2 * link("ib-ndr")': "2,625",           # 2/3 · 63/64 · 4e14 / 1e11
    "memory.state_bytes(13e9) | GB": "208 GB",
    'memory.minimum_gpus(memory.state_bytes(13e9)': "3",
    'flops.training_flops(7e9, 2e12), 1, gpu("h100-sxm").bf16_flops_per_s, mfu=0.5) | days': "1,966 days",
    'memory.state_bytes(7e9, recipe("fp32-adam")) | GB': "112 GB",
    "memory.weight_bytes(7e9) | GB": "14 GB",
}


def section(title: str) -> str:
    """The text under one heading of the second level."""
    return re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    found = [expression for expression in COMPUTED if part in expression]
    assert found, f"the lesson no longer computes {part}"
    assert prose.evaluate(found[0]) == seen


def test_it_has_the_parts_of_a_lesson_in_order():
    places = [TEXT.index(mark) for mark in (
        "lesson: 1", "{ .question }", '!!! case "Opening case"', "Distributed is a tax", "!!! rule", "``` widget",
        '!!! breaks "Where it breaks"', "## On the back of an envelope", "!!! exercise", "## Takeaway", "## Sources")]
    assert places == sorted(places)
    assert TEXT.count("!!! rule") >= 7


def test_each_of_its_widgets_asks_first():
    fences = re.findall(r"^``` widget\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    names = [re.search(r"^name: (\w+)$", fence, re.MULTILINE)[1] for fence in fences]
    assert names == ["memory_stack", "memory_wall", "three_walls", "roofline", "regime_cube"]
    assert all(f"\n{key}:" in fence for fence in fences for key in ("predict", "answers", "right", "why"))


def test_every_exercise_has_a_computed_solution_and_one_is_open():
    exercises = section("Exercises").split("!!! exercise")[1:]
    assert len(exercises) >= 6
    assert all("??? solution" in exercise and "`#!n " in exercise.split("??? solution")[1] for exercise in exercises)
    assert "Design" in exercises[-1]


def test_the_takeaway_is_two_sentences():
    assert len(re.findall(r"[.?!](?:\s|$)", section("Takeaway").strip())) == 2


def test_each_wall_sends_you_to_a_lesson():
    rows = re.findall(r"^\| .+ \|$", section("Where each wall sends you"), re.MULTILINE)[1:]
    assert len(rows) >= 8
    assert all(re.search(r"\b(0[2-9]|1\d)\b", row.split("|")[4]) for row in rows)


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


def test_the_allreduce_is_a_third_of_the_step_over_two_cards_and_short_over_eight():
    step_s = flops.run_time_s(flops.training_flops(70e9, 8192), 1, 1e15, 0.4)
    assert walls.allreduce_s(70e9, 64, 100e9) / step_s == pytest.approx(1 / 3, abs=0.03)
    assert walls.allreduce_s(70e9, 64, DGX.outgoing_bytes_per_s) / step_s < 0.1


def test_405b_was_too_much_for_plain_data_parallel():
    needed = [walls.break_even_tokens_per_gpu(16384, DGX.outgoing_bytes_per_s, PEAK, 0.41, width) for width in (2, 4)]
    assert needed[0] < 2**24 / 16384 < needed[1]


def test_405b_takes_eleven_nodes_for_its_state_and_a_sixth_longer_than_the_estimate():
    assert -(-memory.minimum_gpus(memory.state_bytes(LLAMA_405B), H100) // 8) == 11
    hours = flops.gpu_hours(flops.training_flops(LLAMA_405B, 15.6e12), PEAK, 0.41)
    assert 1 - hours / 30.84e6 == pytest.approx(0.16, abs=0.01)
