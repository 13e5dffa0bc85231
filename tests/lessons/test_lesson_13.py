"""Lesson 13 has the parts of a lesson, its numbers are those worked by hand, and its code runs under
PyTorch."""

import pytest

from engine import catalog
from engine.calibration import launch_costs
from engine.catalog import models
from engine.one_gpu import dispatch, recordings, traces
from tests import machine
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("13-pytorch-internals.md")
ISSUE_S = launch_costs.ISSUE_S

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "512 / b200.bf16_flops_per_s": "0.562 ms",  # 2 · 1.236e9 · 512 / 2.25e15
    "kept_bytes(written_out=True) | GB": "2.87 GB",  # 2048 · 12288 · 34 + 5 · 96 · 2048²
    "2 * 4096 * 14336": "117 MB",
    "all_operators": "608",  # 16 · 38
    "all_operators * issue_s | ms": "7.3 ms",  # 608 · 12 µs
    "all_operators * np.min": "6.87 ms",  # 608 · 11.3 µs
    "all_operators * np.max": "10.8 ms",  # 608 · 17.75 µs
    '32 * traces.layer_operators("update") * issue_s | ms': "27.6 ms",  # 32 · 9 · 8 kernels
    "80 * 8.03e9 / 8 /": "32.4 ms",  # 80.3e9 bytes at 2.48e12 a second
    "80 * 8.03e9 / 64 /": "4.05 ms",
    "28 * 8.03e9 / 64 /": "1.42 ms",
    'traces.kept_bytes("attention", True, "grad", 8192': "13.1 GB",  # 6 · (8192 · 4096 + 32 · 8192²)
    'traces.kept_bytes("attention", False, "grad", 8192': "8.99 GB",  # 4 · (3 · 8192 · 4096 + 32 · 8192²)
    "/ cache_bytes": "318",  # (7.296 ms · 6.187e12 − 2.47e9) / 134.2e6
    "60 * 512 * 512 | params": "15.7M",
    "checked_s(gpu_s=20e-6) | ms": "40 ms",  # 2000 · 20 µs, and 10 µs
    "checked_s(gpu_s=20e-6, sync_every=10) | ms": "42 ms",  # and 200 · 10 µs
    "checked_s(gpu_s=5e-6, sync_every=10) | ms": "21 ms",
    "step_s(ops=300, gpu_s=launch_costs.SHORTEST_S)": "3.6 ms",
}


def test_it_has_its_parts_in_order():
    assert LESSON.places_in_order()
    assert LESSON.every_widget_asks_first()


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.truth("dispatcher_trace") == 10
    assert LESSON.right("eager_overhead") == 2


def test_few_tokens_under_autocast_keep_more_than_in_fp32():
    llama = catalog.model("llama3-8b")
    assert traces.kept_bytes("linear_gelu", True, "grad", 512, llama) > traces.kept_bytes(
        "linear_gelu", False, "grad", 512, llama
    )
    assert traces.kept_bytes("linear_gelu", True, "grad", 8192, llama) < traces.kept_bytes(
        "linear_gelu", False, "grad", 8192, llama
    )


def test_what_was_measured_lies_in_the_envelope():
    """ml-engineering, Llama 3.2 1B on a B200: 8.1 ms eager, between the readings' ends."""
    ends = [
        16 * traces.layer_operators("inference") * end(dispatch.cited()["dgxc"]["seconds"])
        for end in (min, max)
    ]
    assert ends[0] < 8.1e-3 < ends[1]
    issue_s = 32 * traces.layer_operators("inference") * ISSUE_S  # Llama 3.1 8B, 8,192 tokens: 152.4 ms
    assert (
        issue_s
        < 0.2
        * 2
        * models.parameters(catalog.model("llama3-8b"))
        * 8192
        / catalog.gpu("b200").bf16_flops_per_s
        / 0.5
    )


def test_the_readings_are_not_ordered_by_size():
    seconds = dispatch.cited()["dgxc"]["seconds"]
    assert (
        sum(s < 13e-6 for s in seconds) == 5
        and sum(17e-6 < s < 18e-6 for s in seconds) == 3
        and seconds[-1] > 17e-6
    )


def test_what_a_layer_starts():
    """Two norms of pow, mean, add, rsqrt, two products and two casts; two rotations of two products, a sum, a
    sign and a concatenation; seven matrices, attention, SiLU, its product, two sums."""
    assert recordings.load("layer_ops")["inference"]["kernels"] == 2 * 8 + 2 * 5 + 7 + 1 + 1 + 1 + 2


def test_no_gpu_helps_the_designs_recommender():
    steps = [
        dispatch.step_s(300, ISSUE_S, dispatch.matmul_s(512, gpu.bf16_flops_per_s, gpu.hbm_bytes_per_s))
        for gpu in (catalog.gpu("a100-80"), catalog.gpu("h100-sxm"))
    ]
    assert steps[0] == pytest.approx(steps[1], rel=1e-3)


@pytest.mark.parametrize("code", LESSON.code("python"))
def test_its_code_runs(code):
    machine.torch()
    exec(compile(code, "lesson 13", "exec"), {})


def test_its_keys_are_what_pytorch_prints(capsys):
    """The comments under the first block's prints are their output."""
    machine.torch()
    code = LESSON.code("python")[0]
    exec(compile(code, "lesson 13", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        line[2:] for line in code.splitlines() if line.startswith("# ")
    ]
