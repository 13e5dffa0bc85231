"""Lesson 08 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the engine."""

import numpy as np
import pytest

from engine import catalog, context_parallel, flops, layout, memory, online_softmax, ring_attention
from tests.lessons.reading import Lesson
from widgets.kit import prose

LESSON = Lesson("08-sequence-and-context.md")
H100, LLAMA, GPT3 = catalog.gpu("h100-sxm"), catalog.model("llama3.1-405b"), catalog.model("gpt3-175b")
FLASH = 989e12 * 0.85 * 128 / 168           # 640 TFLOP/s, the engine's calibration for heads of 128

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    'layer_activation_bytes(model("llama3.1-405b"), 8192, 1, 8, 1, 1)': "533 MB",       # 8,192 · 65,024 bytes
    'memory.activation_bytes(model("llama3.1-405b"), 131072, 1, 8, 1, 1)': "1.07 TB",   # 126 layers, 16 times that
    "10 / (10 + 24 / 8)": "77 %",
    '1 - memory.activation_bytes(model("gpt3-175b")': "67 %",                           # 1 − 4.25/13
    "context_parallel.flash_flops_per_s": "640 TFLOP/s",
    "ring_busy_share(4, 32768": "57 %",
    "kv_block_bytes(8192, 1, 128)": "4.19 MB",                                          # 2 · 8,192 · 128 · 2
    "ring_sent_bytes(131072, 16, 1, 128) / link": "1.26 ms",                            # 15 · 4.19 MB at 50 GB/s
    "attention_s(context_parallel.mean_pairs(16, 8192": "6.87 ms",                      # 8,192 · 65,536 · 4 · 16 · 128
    "hidden_from_tokens(128, 8": "1,601",                                               # 2/16 · 640.5e12 / 50e9
    'activation_bytes(model("llama3-8b"), 2**20, 1) | TB': "4.67 TB",                   # 34 · 4,096 · 32 a token
    'activation_bytes(model("llama3-8b"), 2**20, 1), gpu': "59",
    'activation_bytes(model("llama3-8b"), 2**20, 1, recompute': "275 GB",               # 2 · 4,096 · 32 a token
    'minimum_gpus(memory.peak_activation_bytes(model("llama3-8b")': "6",
    "block_pairs(0, 0, 3, 4": "10",
    "block_pairs(0, 1, 3, 4": "8",
    "3 * (context_parallel.block_pairs": "78",
    "ring_busy_share(3, 4": "61.9 %",                                                   # 78 / 126
    "attention_s(context_parallel.block_pairs(0, 1, 8, 4096": "0.644 ms",               # 4,096²/2 · 4 · 96 · 128
    "kv_block_bytes(4096, 96, 128), link": "4.04 ms",                                   # 201 MB at 50 GB/s, 14 µs
    "hidden_from_tokens(96, 96": "25,620",
    "ring_sent_bytes(131072, 8, 8, 128)": "470 MB",                                     # 7 · 16,384 · 4,096 bytes
    "ulysses_sent_bytes(131072, 8, 64, 8, 128) | MB": "528 MB",                         # 7/8 · 16,384 · 36,864 bytes
    'memory.state_bytes(models.parameters(model("llama3-70b"))) / 64': "17.6 GB",
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_widgets_stand_in_this_order():
    assert LESSON.widgets() == ["activation_sharding", "ring_attention"]


def test_a_prediction_is_right_where_the_engine_says_so():
    assert [eval(right, prose.namespace()) for right in LESSON.right_answers()] == [2, 1]


# -- what the words claim --------------------------------------------------------------------------------------------
def estimate(**job_and_layout):
    job = {key: job_and_layout.pop(key) for key in ("seq", "global_batch", "gather_context") if key in job_and_layout}
    return layout.estimate(LLAMA, layout.machine(H100), layout.Job(**job), layout.Layout(
        16384, tp=8, pp=16, zero=2, schedule="interleaved", interleave=4, **job_and_layout))


def test_the_two_rows_of_llamas_table_4_are_within_three_per_cent():
    """400 and 380 TFLOP/s a GPU (arXiv:2407.21783, Table 4); neither row fitted a constant."""
    short = estimate(seq=8192, global_batch=2048, gather_context=True)
    long = estimate(seq=131072, global_batch=128, cp=16, gather_context=True)
    assert short.model_flops_per_gpu_per_s() == pytest.approx(400e12, rel=0.03)
    assert long.model_flops_per_gpu_per_s() == pytest.approx(380e12, rel=0.03)
    assert short.fits and long.memory_bytes["total"] == pytest.approx(short.memory_bytes["total"], rel=0.01)
    assert long.time_s["context"] > 0 == estimate(seq=131072, global_batch=128, cp=16).time_s["context"]


def test_the_query_by_hand_is_seven():
    q, seen = np.ones((1, 1)), np.ones((1, 1), dtype=bool)
    parts = [online_softmax.of_keys(q, np.array([[score]]), np.array([[value]]), seen)
             for score, value in ((0.0, 4.0), (np.log(3), 8.0))]
    both = online_softmax.joined(*parts)
    assert (both.total.item(), both.weighted.item()) == pytest.approx((4 / 3, 28 / 3))
    assert online_softmax.output(both).item() == pytest.approx(7)


def test_fourteen_bytes_are_less_than_half_of_a_gpts_and_three_times_what_one_of_eight_keeps():
    whole, cut = (memory.layer_activation_bytes(GPT3, 2048, 1, tensor, sequence_parallel=1) / (2048 * 12288)
                  for tensor in (1, 8))
    assert (whole, cut) == (34, 4.25)
    assert 14 < whole / 2 and 14 / cut == pytest.approx(3.3, abs=0.05)


def test_the_published_first_stages_are_met():
    """Figure 1 of arXiv:2205.05198, digitised: 66.84 and 12.35 GiB for GPT-3."""
    in_flight = memory.in_flight_micro_batches(8, 64, 0, 3) / 8
    for options, published in ((dict(), 66.84), (dict(sequence_parallel=1, recompute=memory.SELECTIVE), 12.35)):
        ours = in_flight * memory.activation_bytes(GPT3, 2048, 1, 8, flash=0, **options) / 2**30
        assert ours == pytest.approx(published, rel=0.001)


def test_zigzag_with_three_ranks_deals_out_pairs_of_chunks_that_add_up_to_five():
    run = ring_attention.ring(*ring_attention.example(1, 12), 3, context_parallel.ZIGZAG)
    chunks = run.positions[:, ::2] // 2
    assert chunks.tolist() == [[0, 5], [1, 4], [2, 3]]
    contiguous = ring_attention.ring(*ring_attention.example(1, 12), 3, context_parallel.CONTIGUOUS)
    assert contiguous.pairs.tolist() == [[10, 10, 10], [0, 16, 16], [0, 0, 16]]
    assert run.pairs.sum() == contiguous.pairs.sum() == 78


def test_context_ranks_wait_less_than_tensor_ranks_at_half_a_million_tokens():
    llama70 = catalog.model("llama3-70b")
    at, job = layout.machine(H100), layout.Job(8, 524288)
    found = [layout.estimate(llama70, at, job, layout.Layout(64, recompute="full", **cut))
             for cut in (dict(tp=8, cp=8, zero=3), dict(tp=4, cp=16, zero=3), dict(tp=8, pp=2, cp=4, zero=1))]
    assert all(each.fits for each in found)
    assert min(found, key=lambda each: each.step_s) is found[1]
    assert not any(each.time_s["context"] for each in found)
    assert memory.activation_bytes(llama70, 524288, 1, 8, 8, 1) > H100.hbm_bytes


def test_a_longer_sequence_makes_attention_forty_per_cent_of_the_work():
    share = flops.attention_flops_per_token(LLAMA, 131072) / flops.forward_flops_per_token(LLAMA, 131072)
    assert share == pytest.approx(0.40, abs=0.005)
    assert context_parallel.flash_flops_per_s(H100.bf16_flops_per_s, 128) == pytest.approx(FLASH, rel=0.001)
