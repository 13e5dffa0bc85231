"""Lesson 11's numbers are those worked by hand, and its words agree with the engine."""

import re

import numpy as np
import pytest

from engine import catalog, decoding, inference, layout, serving, validation
from tests.lessons.reading import Lesson
from widgets.kit import prose, tables

LESSON = Lesson("11-inference.md")
H100, LLAMA, SMALL = layout.machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b"), catalog.model("llama3-8b")

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    '2 * models.parameters(model("llama3-70b")) | GFLOP': "141 GFLOP",                       # 2 · 70.55e9
    'gpu("h100-sxm").bf16_flops_per_s / gpu("h100-sxm").hbm_bytes_per_s | count': "295",     # 989.5 / 3.35
    "64 * 8192 * 2 | MB": "1.05 MB",
    "2 * 7 / 8 * 8 * 8192 * 2 / link": "0.51 µs",                                            # 229,376 B / 450 GB/s
    'decoding.token_bytes(model("llama3-70b")) | kB': "328 kB",                              # 2 · 80 · 8 · 128 · 2
    'decoding.user_bytes(model("llama3-70b"), 8192) | GB': "2.68 GB",
    'decoding.user_bytes(model("llama3-70b"), 131072) | GB': "42.9 GB",
    'decoding.room(model("llama3-70b"), gpu("h100-sxm"), 8, 8192).users': "179",             # (78 − 17.64) / 0.3355
    'decoding.room(model("llama3-70b"), gpu("h100-sxm"), 8, 131072).users': "11",
    'decoding.token_bytes(model("llama3-70b")) / 8 | kB': "41 kB",
    'decoding.token_bytes(model("deepseek-v3")) | kB': "70.3 kB",                            # (512 + 64) · 61 · 2
    'models.parameters(model("llama3-70b")) / decoding.token_bytes': "431k tokens",          # 141.1e9 / 327,680
    "roofline.decode_attention_flops_per_byte(8)": "8 FLOP/B",
    "1 / np.sum(1 / np.arange(1, 33))": "24.6 %",                                            # H(32) = 4.0585
    "15 * decoding.token_bytes": "4.92 MB",
    "serving.tokens_per_verification(0.8, 4)": "3.36",                                       # 1 + 0.8 + 0.64 + 0.512 + 0.4096
    "serving.speculative_speed_up(0.75, 7, 0.02)": "3.16×",                                  # 3.5995 / 1.14
    "/ 8 / gpu(\"h100-sxm\").hbm_bytes_per_s | ms": "5.27 ms",
    "2048 / (8 * gpu(\"h100-sxm\").bf16_flops_per_s * 0.4)": "91.3 ms",                      # 289e12 / 3.166e15
    'decoding.room(model("llama3-8b"), gpu("l40s"), 1, 4096).users': "55",                   # (46 − 16.06) / 0.537
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_figures_in_order_and_their_predictions():
    assert LESSON.widgets() == ["decode_latency", "kv_cache", "serving_frontier"]
    assert [eval(right, prose.namespace()) for right in LESSON.right_answers()] == [1, 1, 2]


# -- what the words claim --------------------------------------------------------------------------------------------
def token_s(tp, users, prompt=2048.0, output=256.0):
    return float(decoding.steady(LLAMA, H100, tp, users, prompt, output).token_s)


def test_a_slower_card_decodes_faster_up_to_its_critical_batch():
    h20 = layout.machine(catalog.gpu("h20"))
    for users in (1.0, 16.0, 37.0):
        assert decoding.split(SMALL, h20, 1, users, 1024.0).total_s < decoding.split(SMALL, H100, 1, users, 1024.0).total_s


def test_the_h100_has_room_for_two_fifths_of_its_critical_batch_and_the_h200_for_all():
    users = {key: decoding.room(SMALL, catalog.gpu(key), 1, 4096).users for key in ("h100-sxm", "h200")}
    assert users["h100-sxm"] / 295 == pytest.approx(0.4, abs=0.03) and users["h200"] > 207


def test_where_doubling_stops():
    """Never for 70B inside a node; for 1B over a ring; past the node for 32B, and for 70B with 64 users."""
    for users in (1.0, 64.0, 256.0):
        assert (np.diff(decoding.split(LLAMA, H100, np.array([2, 4, 8]), users, 4096.0).total_s) < 0).all()
    tiny = catalog.model("llama3.2-1b")
    assert np.diff(decoding.split(tiny, H100, np.array([4, 8]), 1.0, 1024.0, all_reduce=1).total_s) > 0
    assert np.diff(decoding.split(catalog.model("qwen3-32b"), H100, np.array([8, 16]), 1.0, 1024.0).total_s) > 0
    assert np.diff(decoding.split(LLAMA, H100, np.array([8, 16]), 64.0, 4096.0).total_s) > 0


def test_no_layout_brings_more_per_gpu_than_the_rule_allows():
    for tp in (1, 2, 4, 8):
        for users in (1.0, 16.0, 179.0):
            step_s = decoding.split(LLAMA, H100, tp, users, 8192.0).total_s
            bound = 3.35e12 / (2 * 69.5e9 / users + 327_680 * 8192)        # without the embedding, of which a row is read
            assert users / (step_s * tp) < bound


def test_few_users_are_served_sooner_by_one_replica_and_many_by_two():
    """They meet at about 50; with 512 in and 512 out later, beyond 200."""
    for users, large_wins in ((8, True), (32, True), (48, True), (64, False), (128, False)):
        assert (token_s(8, users) < token_s(4, users / 2)) == large_wins
    assert token_s(8, 200, 512.0, 512.0) < token_s(4, 100, 512.0, 512.0)


def test_fp8_moves_the_best_replica_one_step_to_the_left():
    def best(prompt, output, width):
        brings = [np.max(decoding.steady(LLAMA, H100, tp, np.geomspace(1, 2048, 60), prompt, output, width, width).tokens_per_s_per_gpu)
                  for tp in (1, 2, 4, 8, 16)]
        return int(np.argmax(brings))
    for prompt, output, width, place in ((2048.0, 256.0, 2.0, 2), (2048.0, 256.0, 1.0, 1), (8192.0, 1024.0, 2.0, 3),
                                         (8192.0, 1024.0, 1.0, 1), (32768.0, 1024.0, 2.0, 3), (32768.0, 1024.0, 1.0, 2)):
        assert best(prompt, output, width) == place


def test_the_users_of_the_experts_table_fit():
    assert decoding.room(catalog.model("deepseek-v3"), catalog.gpu("h200"), 16, 4096, 2.0, 1.0).users > 256
    assert inference.experts_touched(256.0, 8.0, 100) > 0.95 * 256


def test_what_is_kept_and_what_is_drawn_again_add_up_to_the_target():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(50)), rng.dirichlet(np.ones(50))
    kept, rest = np.minimum(p, q), np.maximum(0, p - q)
    np.testing.assert_allclose(kept + (1 - kept.sum()) * rest / rest.sum(), p)


def test_static_batches_wait_for_the_longest_as_the_harmonic_number_says():
    longest = np.random.default_rng(1).exponential(size=(20_000, 32)).max(axis=1).mean()
    assert longest == pytest.approx(np.sum(1 / np.arange(1, 33)), rel=0.02)     # 20,000 batches of 32


def test_the_measured_rows_are_not_fitted_and_counted_right():
    rows = [row for case in validation.load() if case["kind"] == "serving" for row in validation.rows_of(case)]
    groups = [row.group for row in rows]
    assert not any(row.fitted for row in rows)
    assert groups.count("latency of decode and prefill") == 44 and groups.count("saturated throughput") == 55
    errors = [validation.row(f"ft_20b_in80_out200_b1_tp{tp}").error for tp in (1, 2, 4, 8)]
    assert errors == sorted(errors, reverse=True) and (round(errors[0], 2), round(errors[-1], 2)) == (0.02, -0.25)


def test_older_software_paid_about_twice_our_price_for_an_all_reduce():
    case = next(case for case in validation.load() if case["id"] == "ft_20b_in80_out200_b1_tp8")
    step = inference.decode_step(validation.model_of(case), layout.machine(catalog.gpu("a100-80"), "fp16"), 8, 1, 180, all_reduce="ring")
    missing_s = (validation.row(case["id"]).measured - validation.row(case["id"]).predicted) / 200
    assert 1 + missing_s / step.communication_s == pytest.approx(2, abs=0.35)


def test_the_540b_lies_between_with_and_without_its_all_reduces():
    at, palm = layout.machine(catalog.gpu("tpu-v4")), catalog.model("palm-540b")
    step = inference.decode_step(palm, at, 64, 64, 2048 / 64, weight_precision="int8")
    assert step.total_s - step.communication_s < 1.82 / 64 < step.total_s


def test_the_designs_fleets():
    """15 replicas of TP 4 in bf16; 22 of TP 2 or 11 of TP 4 in fp8: 60 and 44 GPUs."""
    def users(tp, width, prompt=2048.0):
        counts = np.arange(1.0, 300)
        return np.max(np.where(decoding.steady(LLAMA, H100, tp, counts, prompt, 512.0, width, width).token_s <= 0.05, counts, 0))
    assert [tp * np.ceil(1000 / users(tp, width)) for tp, width in ((4, 2.0), (2, 1.0), (4, 1.0))] == [60, 44, 44]
    assert serving.m_d_1_wait_s(0.8, 1.0) == pytest.approx(2)
    assert users(4, 1.0, 8192.0) < decoding.room(LLAMA, H100.gpu, 4, 8704, 1.0, 1.0).users / 4      # prefills, not caches


def test_every_table_renders():
    for source in re.findall(r"^``` table\n(.*?)^```$", LESSON.text, re.MULTILINE | re.DOTALL):
        assert "<table>" in tables.render(source)
