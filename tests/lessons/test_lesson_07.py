"""Lesson 07 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the
engine."""

import pytest

from engine import catalog
from engine.executed.pipeline_schedules import by_key
from engine.mechanism import pipeline
from engine.step import layout
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("07-pipeline-parallel.md")
LLAMA, H100 = catalog.model("llama3.1-405b"), catalog.gpu("h100-sxm")

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "memory.state_bytes(parameters_405b) | TB": "6.49 TB",  # 16 · 405.85e9
    "memory.weight_bytes(parameters_405b) | GB": "812 GB",
    "pipeline.bubble_share(stages=16, micro_batches=1) | %": "93.8 %",  # 15/16
    "stage_bytes": "33.6 MB",  # 8,192 · 16,384 · 2 / 8
    'stage_bytes / link("ib-ndr").bytes_per_s': "0.671 ms",
    'played("gpipe", stages=16, micro_batches=32)["bubble"] | %': "31.9 %",  # 15/47
    "1 - 400 / 430": "7 %",
    "1 - rate(16384) / rate(8192)": "9.8 %",
    "1 - busy(16) / busy(32)": "9.5 %",  # 1 - (64/79) / (128/143)
    'micro_batches_for("1f1b", stages=32)': "589",  # 19 · 31
    'unit_step_s("gpipe", message_s=0.001) - unit_step_s("gpipe")': "30 ms",  # 2 · 15 messages
    "24 * 16384 / (48 * 16384 + 8 * 8192)": "46.2 %",
    'played("zb-h2", stages=8, micro_batches=32, in_step=1)["bubble"]': "6.8 %",  # 7/(96 + 7)
    "F / 4 | ms": "5 ms",
    'pipeline.bubble_share(stages=16, micro_batches=16, chunks=4, key="interleaved")': "19 %",  # 15/79
    "15 / (4 * 16) | %": "23.4 %",
    'pipeline.bubble_share(stages=16, micro_batches=32, chunks=4, key="interleaved")': "10.5 %",  # 15/143
    'micro_batches_for("1f1b")': "133",  # 19 · 7
    "8 * np.ceil(34 / 8)": "40",
    'micro_batches_for("zb-h1")': "45",  # 19 · 7/3, rounded up
    "1 - 8 / (7 + output_layers(qwen))": "14.3 %",  # 8 / (7 + 545M / 233M)
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_a_prediction_is_right_where_the_engine_says_so():
    assert LESSON.truth("pipeline_timeline") == pytest.approx(15 / 47)
    assert LESSON.truth("bubble_map") == 39.8  # 32 + 31 / 4 = 39.75, as the readout says it
    assert LESSON.shows('micro_batches_for("interleaved", stages=32, chunks=4)') == "148"  # 19 · 31 / 4


# -- the snippets --------------------------------------------------------------------------------------------
def test_every_snippet_is_python():
    assert len(LESSON.code("python")) == 2
    for code in LESSON.code("python"):
        compile(code, "lesson 07", "exec")


@pytest.mark.parametrize(("p", "m"), [(4, 8), (4, 3), (16, 16), (1, 5)])
def test_the_printed_schedule_is_the_engines(p, m):
    printed: dict = {}
    exec(LESSON.code("python")[0], printed)
    orders = [printed["one_forward_one_backward"](stage, p, m) for stage in range(p)]
    assert printed["step_time"](orders, 1.0, 2.0) == by_key("1f1b", p, m)["step_s"] == (m + p - 1) * 3
    assert printed["step_time"](orders) == (m + p - 1) * 60  # milliseconds


# -- what the words claim ------------------------------------------------------------------------------------
def test_1f1b_saves_memory_and_no_time():
    gpipe, ours = by_key("gpipe", 4, 8), by_key("1f1b", 4, 8)
    assert gpipe["bubble"] == ours["bubble"] and gpipe["held"][0] == 2 * ours["held"][0]
    assert pipeline.bubble_share(16, 64) < 0.2  # "with m = 4p less than a fifth"


def test_under_1f1b_a_micro_batch_pays_for_nearly_two_messages():
    """2 (p − 1)/p of them, in the steady state; those that run further ahead pay for filling and draining
    alone."""

    def each(key, v=1):
        long, short = (by_key(key, 16, m, v, message_s=0.1)["step_s"] for m in (64, 48))
        return (long - short) / 16 - 3

    assert each("1f1b") == pytest.approx(0.1 * 2 * 15 / 16)
    for key, v in (("gpipe", 1), ("interleaved", 2), ("zb-h1", 1), ("zb-h2", 1)):
        assert each(key, v) == pytest.approx(0.0, abs=1e-9), key


def test_long_messages_turn_interleaving_round():
    steps = [
        by_key("interleaved" if v > 1 else "1f1b", 16, 64, v, 0.02, 0.02, 0.02, message_s=0.01)["step_s"]
        for v in (1, 2, 4)
    ]
    assert steps[1] < steps[0] and steps[2] > steps[1]


def test_a_slow_stage_costs_in_proportion():
    """T ≈ (m + p − 1) · slowest."""
    for extra in (0.1, 0.3, 0.5):
        assert by_key("1f1b", 4, 64, last_extra=extra)["step_s"] == pytest.approx(
            67 * 3 * (1 + extra), rel=0.03
        )


def estimate(gpus, **how):
    return layout.estimate(
        LLAMA,
        layout.machine(H100),
        layout.Job(2048, 8192, software=catalog.modern(context="gather")),
        layout.Layout(gpus, tp=8, pp=16, zero=2, **how),
    )


def test_llamas_pipeline_is_near_what_was_published():
    """arXiv:2407.21783 Table 4: 400 TFLOP/s on 16,384 GPUs, 430 on 8,192; v = 4 is our guess."""
    for gpus, published in ((16384, 400e12), (8192, 430e12)):
        assert estimate(
            gpus, schedule="interleaved", interleave=4
        ).model_flops_per_gpu_per_s() == pytest.approx(published, rel=0.075)
    ours = estimate(16384, schedule="interleaved", interleave=4)
    assert ours.fits and estimate(16384, schedule="zb-h1").step_s > ours.step_s


def test_zb_h1_idles_in_the_estimate_as_long_as_it_does_when_played_with_the_same_weight_gradients():
    """One run, one answer: 0.30 of the step, however it is asked, and ZB-H2 no less."""
    asked = estimate(16384, schedule="zb-h1")
    share = asked.time_s["pipeline_bubble"] / asked.step_s
    assert LESSON.value('zb_idle("zb-h1")') == pytest.approx(share, abs=0.01)
    assert LESSON.value('zb_idle("zb-h2") - zb_idle("zb-h1")') > -1e-9
    # with messages that nothing hides, the interleaved run idles somewhat longer than the estimate says
    assert 0 < LESSON.value('with_messages["bubble"] - bubble_405b') < 0.02


def test_the_design_is_checked_by_the_engine():
    def step_s(pp, **how):
        return layout.estimate(
            catalog.model("llama3-70b"),
            layout.machine(H100, nic_bytes_per_s=12.5e9 / 8),
            layout.Job(256, 4096),
            layout.Layout(128, tp=8, pp=pp, zero=1, **how),
        ).step_s

    assert step_s(8, schedule="interleaved", interleave=2) < 0.4 * step_s(1)
