"""Lesson 11's numbers are those worked by hand, and its words agree with the engine."""

import numpy as np
import pytest

from engine import catalog, validation
from engine.calibration import launch_costs
from engine.one_gpu import capture
from engine.serving import decoding, inference
from engine.step import layout
from engine.validation import agreement, explanations
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("11-inference.md")
H100, LLAMA, SMALL = (
    layout.machine(catalog.gpu("h100-sxm")),
    catalog.model("llama3-70b"),
    catalog.model("llama3-8b"),
)

SERVED = [  # the judged cases of a program that is known to do something beside the steps
    case for case in validation.load() if case.get("software") and not case["fitted"]
]

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "2 * params | GFLOP": "141 GFLOP",  # 2 · 70.55e9
    'gpu("h100-sxm").bf16_flops_per_s / gpu("h100-sxm").hbm_bytes_per_s | count': "295",  # 989.5 / 3.35
    "64 * 8192 * 2 | MB": "1.05 MB",
    "decoding.token_bytes(llama) | kB": "328 kB",  # 2 · 80 · 8 · 128 · 2
    "cache_8k | GB": "2.68 GB",
    "decoding.user_bytes(llama, context=131072) | GB": "42.9 GB",
    "room_for(context=8192).users": "179",  # (78 − 17.64) / 0.3355
    "room_for(context=131072).users": "11",
    "decoding.token_bytes(llama) / 8 | kB": "41 kB",
    "decoding.token_bytes(deepseek) | kB": "70.3 kB",  # (512 + 64) · 61 · 2
    "2 * params / decoding.token_bytes": "431k tokens",  # 141.1e9 / 327,680
    "roofline.decode_attention_flops_per_byte(8)": "8 FLOP/B",
    '/ 8 / gpu("h100-sxm").hbm_bytes_per_s | ms': "5.27 ms",
    "2048 / (peak * 0.4)": "91.3 ms",  # 289e12 / 3.166e15
    "h20_ahead_users | count": "44",  # 148 TFLOP/s over 3.35 TB/s
    "critical_users * NVFP4_BYTES / 2 | count": "83",  # 295 · 0.5625 / 2
    "latent_intensity | FLOP/B": "242 FLOP/B",  # 2 · 128 · (576 + 512) over 2 · 576 bytes
    "l40s_users()": "55",  # (46 − 16.06) / 0.537
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.right("decode_latency") == 1
    assert LESSON.right("kv_cache") == 1
    assert LESSON.right("attention_kinds") == 2


# -- what the words claim ------------------------------------------------------------------------------------
def machine_of(width):
    """An H100 whose products are in fp8 if values have one byte."""
    return layout.machine(catalog.gpu("h100-sxm"), "fp8" if width == 1 else "bf16")


def test_a_slower_card_decodes_faster_for_up_to_a_dozen_users():
    h20 = layout.machine(catalog.gpu("h20"))
    for users in (1.0, 4.0, 12.0):
        assert (
            decoding.split(SMALL, h20, 1, users, 1024.0).total_s
            < decoding.split(SMALL, H100, 1, users, 1024.0).total_s
        )
    # not for the 44 of the peaks, because the reading hides only a part of the arithmetic
    assert (
        decoding.split(SMALL, h20, 1, 24.0, 1024.0).total_s
        > decoding.split(SMALL, H100, 1, 24.0, 1024.0).total_s
    )
    assert decoding.split(SMALL, h20, 1, 24.0, 1024.0).beyond_s > 0.1 * LESSON.value("small_bytes_s")


def test_the_h100_has_room_for_two_fifths_of_its_critical_batch_and_the_h200_for_all():
    users = {key: decoding.room(SMALL, catalog.gpu(key), 1, 4096).users for key in ("h100-sxm", "h200")}
    assert users["h100-sxm"] / 295 == pytest.approx(0.4, abs=0.03) and users["h200"] > 207


def test_the_envelope_s_parts_add_up():
    for step in (LESSON.value("a_token(users=1, context=8192)"), LESSON.value("full_step")):
        parts = ("weights_s", "cache_s", "beyond_s", "launch_s", "communication_s")
        assert sum(getattr(step, part) for part in parts) == pytest.approx(step.total_s)
        for part in parts:
            assert f".{part} " in LESSON.text.split("## On the back of an envelope")[1]


def test_a_cache_in_fp8_saves_one_user_no_time_and_a_full_replica_some():
    """Less than the cache's reading is halved by, because the kernels read a narrow cache more slowly."""

    def step(users, width):
        return LESSON.value(f"a_token(users={users}, context=8192, kv_value_bytes={width})")

    assert step(1, 1.0).total_s > 0.98 * step(1, 2.0).total_s
    plain, narrow = step(179, 2.0), step(179, 1.0)
    assert narrow.total_s < 0.85 * plain.total_s
    assert LESSON.value("read_share(1.0)") < 0.8 * LESSON.value("read_share(2.0)")
    assert narrow.beyond_s > 1.5 * plain.beyond_s and narrow.total_s - plain.total_s > -plain.cache_s / 2


def test_a_step_is_a_captured_one_and_far_from_an_eager_one():
    """Lesson 19 runs the same kernels one after another: its captured steps, compiled and not, lie around
    ours, and Python's launches take several times as long."""
    for key, tp in (("llama3-70b", 8), ("llama3-8b", 1), ("llama3.2-1b", 1)):
        model, gpu = catalog.model(key), catalog.gpu("h100-sxm")
        ours = decoding.split(model, H100, tp, 1.0, 1024.0).total_s
        compiled, plain = (capture.token_s(way, model, gpu, tp, captured=1) for way in ("compiled", "eager"))
        assert 0.98 * compiled < ours < plain and ours < capture.token_s("eager", model, gpu, tp) / 2


def test_a_doubling_saves_what_the_rule_says_caches_included():
    """Weights and caches halve, AllReduces grow, and the sign of the sum is that of the step's change."""
    for key, tp, how, users, context in (
        ("llama3.2-1b", 4, 1, 1.0, 1024.0),
        ("llama3.2-1b", 4, 1, 1.0, 131072.0),
        ("llama3-8b", 4, 1, 64.0, 8192.0),
        ("llama3-70b", 4, 1, 1.0, 1024.0),
        ("qwen3-32b", 8, 0, 1.0, 1024.0),
    ):
        one, two = (
            decoding.split(catalog.model(key), H100, degree, users, context, all_reduce=how)
            for degree in (tp, 2 * tp)
        )
        saved = one.weights_s - two.weights_s + one.cache_s - two.cache_s
        assert (saved > two.communication_s - one.communication_s) == (two.total_s < one.total_s)
        assert one.weights_s == pytest.approx(2 * two.weights_s, rel=0.01)


def test_a_step_of_experts_over_two_nodes_is_more_than_weights_and_caches():
    for users in (1, 256):
        step = LESSON.value(f"a_deepseek_token(users={users})")
        rest_s = step.beyond_s + step.launch_s + step.communication_s
        assert rest_s > max(step.weights_s, step.cache_s)
        assert users > 1 or rest_s > 0.9 * step.total_s
    assert step.cache_s > step.weights_s


def test_more_gpus_for_the_same_users_on_each_shorten_the_step_of_few_alone():
    few, many = (
        [float(LESSON.value(f"a_spread_token(gpus={gpus}, users={users})")) for gpus in (16, 64)]
        for users in (16, 128)
    )
    assert few[1] < 0.8 * few[0] and many[1] == pytest.approx(many[0], rel=0.02)


def test_products_in_fp8_speed_up_prompts_and_widened_weights_do_not():
    fp8 = layout.machine(catalog.gpu("h100-sxm"), "fp8")
    for tp in (2, 4):
        plain, widened, both = (
            inference.prefill(LLAMA, at, tp, 1, 2048, weight_precision=width).total_s
            for at, width in ((H100, None), (H100, 1.0), (fp8, None))
        )
        assert widened == pytest.approx(plain, rel=0.02) and both < 0.8 * plain


def test_where_doubling_stops():
    """Never for 8B and 70B inside a node; for 1B over a ring, but not with long caches; past the node for
    32B, and for 70B with 64 users."""
    for users in (1.0, 64.0, 256.0):
        assert (np.diff(decoding.split(LLAMA, H100, np.array([2, 4, 8]), users, 4096.0).total_s) < 0).all()
    tiny = catalog.model("llama3.2-1b")
    assert np.diff(decoding.split(tiny, H100, np.array([4, 8]), 1.0, 1024.0, all_reduce=1).total_s) > 0
    assert np.diff(decoding.split(tiny, H100, np.array([4, 8]), 64.0, 8192.0, all_reduce=1).total_s) < 0
    assert np.diff(decoding.split(SMALL, H100, np.array([4, 8]), 1.0, 1024.0, all_reduce=1).total_s) < 0
    assert (
        np.diff(decoding.split(catalog.model("qwen3-32b"), H100, np.array([8, 16]), 1.0, 1024.0).total_s) > 0
    )
    for users, context in ((1.0, 1024.0), (64.0, 4096.0)):
        assert np.diff(decoding.split(LLAMA, H100, np.array([8, 16]), users, context).total_s) > 0


def test_no_layout_brings_more_per_gpu_than_the_rule_allows():
    for tp in (1, 2, 4, 8):
        for users in (1.0, 16.0, 179.0):
            step_s = decoding.split(LLAMA, H100, tp, users, 8192.0).total_s
            bound = 3.35e12 / (
                2 * 69.5e9 / users + 327_680 * 8192
            )  # without the embedding, of which a row is read
            assert users / (step_s * tp) < bound


def test_fp8_moves_the_best_replica_to_the_left():
    def best(prompt, output, width):
        brings = [
            np.max(
                decoding.steady(
                    LLAMA, machine_of(width), tp, np.geomspace(1, 2048, 60), prompt, output, width, width
                ).tokens_per_s_per_gpu
            )
            for tp in (1, 2, 4, 8, 16)
        ]
        return int(np.argmax(brings))

    for prompt, output, width, place in (
        (2048.0, 256.0, 2.0, 2),
        (2048.0, 256.0, 1.0, 1),
        (8192.0, 1024.0, 2.0, 2),
        (8192.0, 1024.0, 1.0, 1),
        (32768.0, 1024.0, 2.0, 3),
        (32768.0, 1024.0, 1.0, 1),
    ):
        assert best(prompt, output, width) == place


def test_the_users_of_the_experts_table_fit():
    assert decoding.room(catalog.model("deepseek-v3"), catalog.gpu("h200"), 16, 4096, 2.0, 1.0).users > 256
    assert inference.experts_touched(256.0, 8.0, 100) > 0.95 * 256


def test_the_measured_rows_are_not_fitted_and_counted_right():
    said = {row.group: row.unfitted for row in agreement.summaries("throughput")}
    assert said == {
        "throughput, TensorRT-LLM 1.0": 55,
        "throughput, TensorRT-LLM 0.6": 15,
        "experts over many GPUs": 6,
    }
    assert len(agreement.among("latency")) == 207 and agreement.mean_error("latency") < 0.12
    assert explanations.served_error(software=None) == pytest.approx(0.165, abs=0.005)
    plain = [row.error for case in SERVED for row in validation.rows_of(case | {"software": None})]
    assert np.mean(np.array(plain) < 0.0) > 0.75  # mostly too fast


def test_what_programs_do_beside_the_steps_is_as_long_as_the_lesson_says():
    between_s = catalog.serving_software("vllm-0").between_s
    assert between_s == catalog.serving_software("faster-transformer").between_s
    step = inference.decode_step(
        catalog.model("llama3-70b"), layout.machine(catalog.gpu("h100-sxm")), 8, 1, 2048
    )
    assert between_s / step.total_s == pytest.approx(0.09, abs=0.01)
    case = next(case for case in SERVED if case["id"] == "ft_20b_in80_out200_b1_tp8")
    at = layout.machine(catalog.gpu("a100-80"), "fp16")
    reduce_s = inference.reduce_s(2.0 * validation.model_of(case).hidden, 8, "ring", at.wires)
    assert 1.3 < 8 * launch_costs.LAUNCH_FOR_ANOTHER_S / reduce_s < 1.8


def test_the_540b_is_a_tenth_too_fast():
    at, palm = layout.machine(catalog.gpu("tpu-v4")), catalog.model("palm-540b")
    step = inference.decode_step(palm, at, 64, 64, 2048 / 64, weight_precision="int8")
    assert step.total_s / (1.82 / 64) == pytest.approx(0.89, abs=0.03)


def test_every_table_renders():
    assert LESSON.tables() and all("<table>" in table for table in LESSON.tables())


def test_what_kernels_take_beyond_their_reading_is_no_arithmetic_of_one_user():
    """By 2P/C eight GPUs need a fiftieth of a millisecond for it, a twentieth of what is left."""
    arithmetic_s = 2 * LESSON.value("params") / LESSON.value("peak")
    assert arithmetic_s == pytest.approx(0.018e-3, rel=0.02)
    assert LESSON.value("a_token(users=1, context=8192)").beyond_s > 20 * arithmetic_s


def test_twenty_long_documents_fit_a_node_with_a_narrow_cache_alone():
    narrow, plain = (
        LESSON.value(f"room_for(context=131072, kv_value_bytes={width})").users for width in (1.0, 2.0)
    )
    assert plain < 20 <= narrow and LESSON.value("lawyers_step").total_s < 0.05
    assert LESSON.value("room_for(context=131072, tp=4, kv_value_bytes=1.0)").users < 20


def test_four_bits_help_one_user_most():
    one = [LESSON.value(f"one_user_s(weights={w}, cache=1.0)") for w in (2.0, 1.0, 0.5625)]
    assert one == sorted(one, reverse=True) and one[2] < 0.7 * one[0]
