"""Lesson 05: its numbers are those worked by hand, its words agree with the engine, and its program runs as
it is printed."""

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.executed import executed_training as executed
from engine.executed import fully_sharded, zero
from engine.mechanism import memory, start_ups
from engine.one_gpu import recordings
from engine.step import layout
from tests import machine
from tests.cases import in_one_test
from tests.lessons import programs
from tests.lessons.programs import alike, all_forked, ran
from tests.lessons.reading import Lesson
from tests.states import ALL_OF_THEM

LESSON = Lesson("05-fsdp-and-zero.md")
ADAM, H100, A100 = catalog.recipe("bf16-adam"), catalog.gpu("h100-sxm"), catalog.gpu("a100-40")
LLAMA_8B, LLAMA_70B, LLAMA_13B = (catalog.model(key) for key in ("llama3-8b", "llama3-70b", "llama2-13b"))

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "memory.state_bytes(models.parameters(llama_13b))": "208 GB",  # 16 · 13.0e9
    "memory.cluster_bytes(a100, gpus=16)": "640 GB",
    "against_hbm": "5.2×",  # 208.3 / 40
    "zero.largest_params(h100.hbm_bytes, recipe=adam, ranks=10**9, stage=1)": "20B",  # 80 / 4
    "zero.largest_params(h100.hbm_bytes, recipe=adam, ranks=10**9, stage=2)": "40B",  # 80 / 2
    "fully_sharded.traffic_bytes(params=7.5e9, ranks=64, stage=3, recipe=adam)": "44.3 GB",  # 3 · 15 · 63/64
    "fully_sharded.traffic_bytes(params=7.5e9, ranks=64, stage=2, recipe=adam)": "29.5 GB",
    "tokens_to_hide(cards)": "1,585",  # 643.9e12 / 400e9 · 63/64
    'tokens_to_hide(link("eth-100").bytes_per_s)': "50,705",  # / 12.5e9
    "memory.sharded_state_bytes(params=7.5e9, ranks=8, stage=3)": "15 GB",
    "replica_elements(params=7.5e9, shard_ranks=8, replicas=8)": "3.28 GB",  # 2 · 2 · 7/8 · 7.5/8
    "memory.activation_bytes(llama_8b, seq=8192, micro_batch=1)": "36.5 GB",
    'memory.weight_bytes(13e9) / link("pcie4")': "1.65 s",  # 52 / 31.5
    "collectives_70b * 63": "15.1 ms",  # 247 · (56 · 0.757 + 7 · 2.7 µs)
    "by_hand_70b | GB": "50 GB",  # 17.64 + 6.85 + 12.99 + 10.51 + 2
    "envelope_arithmetic_s": "5.39 s",  # 6 · 70.6e9 · 8,192 / 643.9e12
    "envelope_traffic.total_s": "1.04 s",  # 3 · 141 · 63/64 / 400
    "zero.whole_bytes(params=13e9, recipe=adam, stage=1)": "52 GB",
    "least_ranks(adam)": "6",  # 156 / 28 = 5.6
    'least_ranks(recipe("adam-8bit"))': "3",  # 78 / 28 = 2.8
    "arithmetic_s() | s": "2.29 s",  # 8 · 6 · 7.5e9 · 4,096 / 643.9e12
    "arithmetic_s() + exposed_s(group=64, stage=3)": "28.4 s",  # 24 · 15 · 63/64 / 12.5
    "traffic(group=64, stage=1).total_s": "2.36 s",
    # 24 · 15 · 7/8 / 450 + 2 · 7/8 · 15/8 / 1.5625
    "traffic(group=8, stage=3).total_s": "2.8 s",
    "muon_overhead": "0.5 %",  # 5 · 4,096 / 4e6
    "exposed_s(group=64, stage=1)": "2.08 s",  # 2 · 1.18125 - 0.0954 - 0.1908
    "arithmetic_s() / 12": "0.191 s",  # 2.29 · 2/3 / 8
    'two_layers(prefetch=1)["total_s"]': "14 ms",
    'two_layers(prefetch=0)["total_s"]': "18 ms",
    "models.parameters(llama_13b), ranks=16, stage=2)": "37.4 GB",  # 26.0 + 14/16 · 13.0
    "models.parameters(llama_13b), ranks=16, stage=3)": "13 GB",
    "a100_tokens_to_hide": "1,124",  # 239.8e12 / 200e9 · 15/16
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_the_right_answers():
    """2P behind two thirds of the work are as long as 3P behind all of it; 24 collectives, none hidden."""
    assert LESSON.right("zero_stages") == 1
    assert LESSON.value("pressure(stage=3) / pressure(stage=0)") == pytest.approx(1)
    layer = LESSON.value("layer()")
    alone_s = 8 * (layer.forward_s + layer.backward_s) + 24 * layer.gather_s
    assert LESSON.truth("fsdp_timeline") == pytest.approx(alone_s, rel=0.005)  # as the readout rounds it


def test_under_a_pipeline_the_rule_is_the_formula_for_each_micro_batch():
    """Stage 1 sends once; stage 2 scatters and stage 3 gathers and scatters for each of 16."""
    params = LESSON.value("params_of_a_stage")
    once = [2 * fully_sharded.traffic_elements(params, 8, stage) for stage in (1, 3)]
    sent = [LESSON.value(f"pipeline_sent_bytes(stage={stage})") for stage in (1, 2, 3)]
    assert sent[0] == pytest.approx(once[0]) and sent[2] == pytest.approx(16 * once[1])
    assert sent[1] == pytest.approx(17 / 2 * once[0])


def test_adapters_free_fourteen_of_sixteen_bytes_and_leave_the_activations():
    full, lora, qlora = (LESSON.value(f"tuned({name})") for name in ("None", "lora", "qlora"))
    assert not full.fits and lora.fits and qlora.fits
    frozen = models.parameters(LLAMA_8B)
    state = sum(lora.memory_bytes[part] for part in ("weights", "gradients", "optimizer"))
    assert state == pytest.approx(2 * frozen + 16 * lora.trained_params, rel=0.01)
    assert qlora.memory_bytes["weights"] < 0.4 * lora.memory_bytes["weights"]
    assert lora.memory_bytes["activations"] > 0.75 * full.memory_bytes["activations"]
    assert 1.1 < full.step_s / lora.step_s < 1.5 and qlora.step_s > lora.step_s


# -- what the words claim ------------------------------------------------------------------------------------
def test_executed_stages_end_in_the_same_weights_and_send_what_the_table_says():
    task = executed.problem()
    alone = executed.train_alone(task, 5)
    for stage in executed.STAGES:
        run = executed.train(task, 4, stage, 5)
        assert np.max(np.abs(run.weights - alone)) < 1e-15
        assert run.sent_elements == pytest.approx(5 * fully_sharded.traffic_elements(80, 4, stage))
    assert run.peak_gathered == max(task.sizes) < task.parameters


def test_a_ring_of_some_thousand_gpus_outlasts_the_arithmetic():
    alpha_s = start_ups.mean_hop_s(catalog.node("dgx-h100"))

    def layer(ranks):
        return fully_sharded.transformer_layer(LLAMA_8B, 4096, ranks, 0.4 * 989e12, 400e9, alpha_s)

    assert layer(512).gather_s < layer(512).forward_s < layer(4096).gather_s


def test_hybrid_groups_win_on_a_narrow_border_alone():
    def busy_s(group, nic, micro_batches):
        return zero.step_traffic(7.5e9, 64, group, 3, ADAM, H100, nic, micro_batches).total_s

    assert busy_s(64, 50e9, 1) < busy_s(8, 50e9, 1) < 2 * busy_s(64, 50e9, 1)
    arithmetic_s = zero.arithmetic_s(7.5e9, 4096, 643.9e12, 8)
    assert arithmetic_s < busy_s(8, 12.5e9 / 8, 8) < 1.25 * arithmetic_s < busy_s(64, 12.5e9 / 8, 8) / 9


def test_llama_70b_on_64_fits_in_half_of_an_h100_beside_logits_and_framework():
    params = models.parameters(LLAMA_70B)
    gathered_and_gradients = 4 * memory.weight_bytes(models.layer_parameters(LLAMA_70B))
    held = (
        memory.sharded_state_bytes(params, None, 64, 3)
        + gathered_and_gradients
        + memory.peak_activation_bytes(LLAMA_70B, 8192, 1, recompute=memory.FULL)
    )
    assert held < H100.hbm_bytes / 2
    found = layout.estimate(
        LLAMA_70B, layout.machine(H100), layout.Job(64, 8192), layout.Layout(64, zero=3, recompute="full")
    )
    assert held < found.terms.total_bytes < H100.hbm_bytes and found.mfu() > 0.4


def estimate(**choices):
    return layout.estimate(
        LLAMA_13B, layout.machine(A100), layout.Job(256, 4096), layout.Layout(16, **choices)
    )


def test_the_design_fits_13b_on_sixteen_a100_40gb_above_30_percent():
    """Neither half of it fits alone, and splitting layers makes the recomputation unnecessary."""
    answer = estimate(zero=3, recompute="full")
    assert answer.fits and answer.mfu() > 0.49 and answer.terms.total_bytes < A100.hbm_bytes / 2
    assert not estimate(zero=3).fits and not estimate(zero=2, recompute="full").fits
    assert estimate(zero=3, tp=2).fits and estimate(zero=3, tp=2).mfu() > answer.mfu() + 0.1
    assert estimate(zero=3, recompute="full", micro_batch=4).mfu() == pytest.approx(answer.mfu(), abs=0.01)


# -- the program ---------------------------------------------------------------------------------------------
def step_of(seq: int):
    """A step of 70B on 64 H100s with one sequence of this length on each."""
    return layout.estimate(
        LLAMA_70B, layout.machine(H100), layout.Job(64, seq), layout.Layout(64, zero=3, recompute="full")
    )


def test_shorter_sequences_stop_to_pay_below_2048_tokens():
    """What the log is said to show: first the throughput stays, in the end the step does."""
    per_s = {seq: step_of(seq).tokens_per_s for seq in (8192, 2048, 1024)}
    assert per_s[2048] == pytest.approx(per_s[8192], rel=0.05) and per_s[1024] < 0.85 * per_s[2048]
    assert step_of(512).step_s == pytest.approx(step_of(1024).step_s, rel=0.01)


def test_what_pytorch_counts_of_the_70b_is_what_the_engine_says():
    """State and traffic exactly, except that the output layer is gathered once; the peak within a tenth."""
    counted, params = recordings.load("fsdp_70b"), models.parameters(LLAMA_70B)
    assert counted["parameters"] == params
    assert counted["on_each"] == pytest.approx(params / 64, rel=1e-4)
    assert counted["state_bytes"] == pytest.approx(memory.sharded_state_bytes(params, ADAM, 64, 3), rel=1e-4)
    head = 2 * LLAMA_70B.vocab * LLAMA_70B.hidden
    assert counted["scatters_bytes"] == 2 * params
    assert counted["gathers_bytes"] == pytest.approx(4 * params - head, rel=1e-4)
    assert counted["gathers"] == 2 * LLAMA_70B.depth + 4 and counted["scatters"] == LLAMA_70B.depth + 3
    engine_says = step_of(8192).terms.total_bytes - memory.FRAMEWORK_BYTES
    assert counted["peak_bytes"] < engine_says < 1.1 * counted["peak_bytes"]


def test_the_program_prints_what_the_lesson_shows_and_resumes_on_half_the_ranks(tmp_path):
    """A loss may differ in its last digit, since processors round bf16 products in their own order. The last
    three are those of a run that nobody interrupted. With EVERY=1 torchrun starts the two that resume; lesson
    04's it starts each time."""
    machine.torch()
    commands = programs.commands(LESSON)
    (four, printed_by_four), (two, printed_by_two) = commands
    resumed, other = tmp_path / "resumed", tmp_path / "other"
    for place in (resumed, other):
        place.mkdir()
        programs.written(LESSON, place)
    first, uninterrupted, *then = all_forked(
        [
            (resumed, four),
            (other, four.replace("train.py 3", "train.py 6")),
            *([] if ALL_OF_THEM else [(resumed, two)]),
        ]
    )
    alike(first, printed_by_four)
    alike(*then or [ran(resumed, two)], printed_by_two)
    steps = [line for _, printed in commands for line in printed if line.startswith("step")]
    alike(uninterrupted[1:], steps)
