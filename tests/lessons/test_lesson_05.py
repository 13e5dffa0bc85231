"""Lesson 05: its numbers are those worked by hand, and its words agree with the engine."""

import numpy as np
import pytest

from engine import catalog, executed_training as executed, fully_sharded, layout, memory, models, zero
from tests.lessons.reading import Lesson
from widgets.kit import prose

LESSON = Lesson("05-fsdp-and-zero.md")
ADAM, H100, A100 = catalog.recipe("bf16-adam"), catalog.gpu("h100-sxm"), catalog.gpu("a100-40")
LLAMA_8B, LLAMA_70B, LLAMA_13B = (catalog.model(key) for key in ("llama3-8b", "llama3-70b", "llama2-13b"))

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    'memory.state_bytes(models.parameters(model("llama2-13b")))': "208 GB",         # 16 · 13.0e9
    'memory.cluster_bytes(gpu("a100-40"), 16)': "640 GB",
    "against_hbm": "5.21×",                                                         # 208.3 / 40
    'recipe("bf16-adam"), 10**9, 1)': "20B",                                        # 80 / 4
    'recipe("bf16-adam"), 10**9, 2)': "40B",                                        # 80 / 2
    "traffic_bytes(7.5e9, 64, 3": "44.3 GB",                                        # 3 · 15 · 63/64
    "traffic_bytes(7.5e9, 64, 2": "29.5 GB",
    'tokens_to_hide(64, node("dgx-h100")': "970 tokens",                            # 0.4 · 989e12 / 400e9 · 63/64
    'tokens_to_hide(64, link("eth-100")': "31k tokens",                             # / 12.5e9
    "memory.sharded_state_bytes(7.5e9, None, 8, 3)": "15 GB",
    "2 * fully_sharded.replica_elements(7.5e9, 8, 8)": "3.28 GB",                   # 2 · 2 · 7/8 · 7.5/8
    'model("llama3-8b"), 8192, 1) | GB': "36.5 GB",
    'memory.weight_bytes(13e9) / link("pcie4")': "1.65 s",                          # 52 / 31.5
    "240 * 63": "0.145 s",                                                          # 240 · 63 · 9.6 µs
    'parameters(model("llama3-70b")), 8192, gpu("h100-sxm")': "8.77 s",             # 6 · 70.6e9 · 8,192 / 395.6e12
    'parameters(model("llama3-70b")), 64, 64, 3': "1.04 s",                         # 3 · 141 · 63/64 / 400
    "zero.whole_bytes(13e9": "52 GB",
    'ranks_to_fit(13e9, gpu("h100-sxm").hbm_bytes, recipe("bf16-adam"), 1)': "6",   # 156 / 28 = 5.6
    'ranks_to_fit(13e9, gpu("h100-sxm").hbm_bytes, recipe("adam-8bit"), 1)': "3",   # 78 / 28 = 2.8
    'arithmetic_s(7.5e9, 4096, gpu("h100-sxm").bf16_flops_per_s, 0.4, 8) | s': "3.73 s",
    "7.5e9, 64, 64, 3": "28.3 s",                                                   # 24 · 15 · 63/64 / 12.5
    "7.5e9, 64, 64, 1": "2.36 s",
    '7.5e9, 64, 8, 3, recipe("bf16-adam"), gpu("h100-sxm"), 12.5e9 / 8, 8).total_s':
        "2.8 s",                                                    # 24 · 15 · 7/8 / 450 + 2 · 7/8 · 15/8 / 1.5625
    ".replicas_s": "2.1 s",                                         # 2 · 7/8 · 15/8 / 1.5625
    'zero.exposed_s(zero.step_traffic(7.5e9, 64, 64, 1': "1.9 s",  # 2 · 1.18125 - 0.1553 - 0.3106
    "0.4, 8) / 12": "0.311 s",                                      # 3.73 · 2/3 / 8
    '2, 1)["total_s"]': "14 ms",
    '2, 0)["total_s"]': "18 ms",
    'model("llama2-13b")), None, 16, 2)': "37.4 GB",                                # 26.0 + 14/16 · 13.0
    'model("llama2-13b")), None, 16, 3)': "13 GB",
    'tokens_to_hide(16, 8 * gpu("a100-40")': "731",                                 # 0.5 · 312e12 / 200e9 · 15/16
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_widgets_stand_in_this_order():
    assert LESSON.widgets() == ["zero_stages", "fsdp_timeline"]


def test_the_right_answers():
    """Half as much again; the first gather and the last scatter."""
    assert [eval(source, prose.namespace()) for source in LESSON.right_answers()] == [1, 1]


# -- what the words claim --------------------------------------------------------------------------------------------
def test_executed_stages_end_in_the_same_weights_and_send_what_the_table_says():
    task = executed.problem()
    alone = executed.train_alone(task, 5)
    for stage in executed.STAGES:
        run = executed.train(task, 4, stage, 5)
        assert np.max(np.abs(run.weights - alone)) < 1e-15
        assert run.sent_elements == pytest.approx(5 * fully_sharded.traffic_elements(80, 4, stage))
    assert run.peak_gathered == max(task.sizes) < task.parameters


def test_a_flat_ring_of_some_hundred_gpus_outlasts_the_arithmetic():
    alpha_s = catalog.link("ib-ndr").latency_s

    def layer(ranks):
        return fully_sharded.transformer_layer(LLAMA_8B, 4096, ranks, 0.4 * 989e12, 400e9, alpha_s)

    assert layer(64).gather_s < layer(64).forward_s < layer(512).gather_s


def test_hybrid_groups_win_on_a_narrow_border_alone():
    def busy_s(group, nic, micro_batches):
        return zero.step_traffic(7.5e9, 64, group, 3, ADAM, H100, nic, micro_batches).total_s

    assert busy_s(64, 50e9, 1) < busy_s(8, 50e9, 1) < 2 * busy_s(64, 50e9, 1)
    assert busy_s(8, 12.5e9 / 8, 8) < zero.arithmetic_s(7.5e9, 4096, 989e12, 0.4, 8) < busy_s(64, 12.5e9 / 8, 8) / 7


def test_llama_70b_on_64_fits_in_half_of_an_h100_beside_logits_and_framework():
    params = models.parameters(LLAMA_70B)
    gathered_and_gradients = 4 * memory.weight_bytes(models.layer_parameters(LLAMA_70B))
    held = (memory.sharded_state_bytes(params, None, 64, 3) + gathered_and_gradients
            + memory.peak_activation_bytes(LLAMA_70B, 8192, 1, recompute=memory.FULL))
    assert held < H100.hbm_bytes / 2
    found = layout.estimate(LLAMA_70B, layout.machine(H100), layout.Job(64, 8192),
                            layout.Layout(64, zero=3, recompute="full"))
    assert held < found.terms.total_bytes < H100.hbm_bytes and found.mfu() > 0.4


def estimate(**choices):
    return layout.estimate(LLAMA_13B, layout.machine(A100), layout.Job(256, 4096), layout.Layout(16, **choices))


def test_the_design_fits_13b_on_sixteen_a100_40gb_above_30_percent():
    """Neither half of it fits alone, and splitting layers makes the recomputation unnecessary."""
    answer = estimate(zero=3, recompute="full")
    assert answer.fits and answer.mfu() > 0.5 and answer.terms.total_bytes < A100.hbm_bytes / 2
    assert not estimate(zero=3).fits and not estimate(zero=2, recompute="full").fits
    assert estimate(zero=3, tp=2).fits and estimate(zero=3, tp=2).mfu() > answer.mfu() + 0.1
    assert estimate(zero=3, recompute="full", micro_batch=4).mfu() == pytest.approx(answer.mfu(), abs=0.01)
