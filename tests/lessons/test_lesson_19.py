"""Lesson 19: its figures, numbers worked by hand, snippets that run, and words that agree with the engine."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from course import numbers
from engine import catalog
from engine.calibration import launch_costs
from engine.catalog import models
from engine.one_gpu import capture
from engine.serving import shape_buckets
from tests import machine
from tests.cases import in_one_test
from tests.lessons.reading import Lesson
from widgets.gpu.launch_timeline import LaunchTimeline

LESSON = Lesson("19-cuda-graphs.md")
H100, B200, LLAMA = catalog.gpu("h100-sxm"), catalog.gpu("b200"), catalog.model("llama3-8b")

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "b200.hbm_bytes_per_s / h100.hbm_bytes_per_s": "2.39×",  # 8 / 3.35
    'capture.kernels_per_layer("eager")': "40",
    'kernels_per_step("eager", layers=80, tp=8) * launch_costs.ISSUE_S': "40.5 ms",
    "launch_costs.GRAPH_LAUNCH_S + launch_costs.NODE_LAUNCH_S *": "3.8 µs",  # 2.5 + 1.298
    "launch_costs.ISSUE_S * launches": "15.6 ms",
    "81 * launch_costs.GRAPH_LAUNCH_S + 80 * launch_costs.ISSUE_S": "1.16 ms",  # 0.2025 + 0.96
    "capture.waiting_share(": "66.3 %",
    "larger_graphs.memory_bytes": "63.8 GB",
    "larger_graphs.capture_s": "2.03 min",
    "graphs(lengths=64).graphs": "1,216",
    "graphs(lengths=64).memory_bytes": "7.78 GB",
    "graphs(lengths=64).capture_s": "8.11 min",
    "graphs(lengths=128).graphs": "2,432",
    "16 * 32 * launch_costs.ISSUE_S": "6.14 ms",
    "graph_saves_s": "1.28 ms",  # 512 · 2.5 µs
    "small_in_graph_s": "2.5 µs",
    "graph_gaps_s": "0.519 ms",  # 1,298 · 0.4 µs
    "weights_s": "0.738 ms",  # 2.47 GB / 3.35 TB/s
    'kernels_per_step("eager", layers=16) * launch_costs.ISSUE_S | ms': "7.9 ms",  # 658 · 12 µs
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.truth("launch_timeline") == 20  # an eighth of 130, and a few more
    assert LESSON.right("captured_addresses") == 2
    assert LESSON.truth("graph_buckets") == pytest.approx(0.0343, rel=0.01)


def test_the_trap_s_snippet_runs_and_says_what_its_comments_say():
    code = next(code for code in LESSON.code("python") if "class Recorded" in code)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {})
    assert said.getvalue().split("\n")[:2] == ["[2, 4]", "[20, 40]"]


def test_the_counting_snippet_runs():
    machine.torch()
    code = next(code for code in LESSON.code("python") if "class Kernels" in code)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {})
    assert said.getvalue() == "8\n"


def test_tensor_parallelism_buys_nothing_eagerly():
    four, eight = (capture.token_s("eager", catalog.model("llama3-70b"), H100, tp) for tp in (4, 8))
    assert eight == pytest.approx(four, rel=0.01)


def test_a_third_of_the_rows_and_hardly_any_time():
    powers = shape_buckets.fit(24, 0.8, 1, shape_buckets.POWERS, 8)
    assert powers["padded"] / powers["rows"] == pytest.approx(1 / 3, abs=0.08)
    assert shape_buckets.lost("llama3-8b", "h100-sxm", powers) < 0.02


def test_a_padded_row_gets_dearer_before_the_limit_of_arithmetic_but_not_by_much():
    """What the rule leans on: from 1 to 32 rows a step without caches grows by less than a tenth, to 128 by
    less than a third."""
    step_s = shape_buckets.step_times_s(LLAMA, numbers.namespace()["layout"].machine(H100))
    assert step_s[32] / step_s[1] < 1.1 and step_s[128] / step_s[1] < 1.3


def test_the_design_s_answer_meets_its_target():
    target_s = 0.009
    assert (
        max(capture.token_s("compiled", LLAMA, H100, batch=32, captured=captured) for captured in (0, 1))
        < target_s
    )
    assert capture.token_s("eager", LLAMA, H100) > target_s
    assert capture.token_s("compiled", LLAMA, H100, issue_s=30e-6) > target_s
    shipped = shape_buckets.captured_sizes(shape_buckets.SHIPPED)
    assert [size for size in shipped if size <= 32] == [1, 2, 4, 8, 16, 24, 32]


def test_the_slower_worker_sets_the_pace_as_the_rule_says():
    """Within a tenth, for the cases of the lesson's table."""
    for key, gpu, tp in (("llama3-70b", H100, 8), ("llama3-70b", B200, 8), ("llama3-8b", H100, 1)):
        model = catalog.model(key)
        step = capture.trial("eager", model, gpu, tp)
        found = capture.kernels(
            "eager", model, numbers.namespace()["layout"].machine(gpu), float(tp), 1.0, 1024.0
        )
        rule_s = max(
            step["kernels"] * launch_costs.ISSUE_S,
            capture.gpu_s(found, model.depth, launch_costs.STREAM_GAP_S),
        )
        assert rule_s == pytest.approx(step["total_s"], rel=0.1)


OVERWRITTEN = (
    "accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run.",
    "torch.compiler.cudagraph_mark_step_begin() before each model invocation.",
)


@pytest.mark.parametrize("words", OVERWRITTEN)
def test_the_error_of_an_overwritten_output_is_printed_for_who_searches_for_it(words):
    assert words in " ".join(LESSON.text.replace("> ", "").split())


def test_the_error_of_an_overwritten_output_is_pytorchs_own():
    torch = machine.torch()
    source = (Path(torch.__file__).parent / "_inductor" / "cudagraph_trees.py").read_text(encoding="utf-8")
    assert all(words in source for words in OVERWRITTEN)
    assert callable(torch.compiler.cudagraph_mark_step_begin)


def test_no_row_s_weights_are_more_than_the_gpus_hold():
    rows = re.findall(r'\(model\("([^"]+)"\), (\d+)\)', LESSON.section("A thousand launches for a token"))
    assert rows
    for key, gpus in rows:
        assert 2 * models.parameters(catalog.model(key)) / int(gpus) < 0.9 * H100.hbm_bytes


def test_the_readings_of_a_small_product_are_lesson_13_s():
    table = next(each for each in LESSON.tables() if "a small product in eager PyTorch" in each)
    issue = Lesson("13-pytorch-internals.md")
    for words, part in (("in eager PyTorch, least", "np.min"), ("the same, most", "np.max")):
        row = re.search(rf"{words}</th>\s*<td[^>]*>(.*?)</td>", table)
        assert row and f"{row[1]} µs" == issue.shows(f"{part}(measured_s) | µs")


def test_the_batch_that_is_enough_is_the_figure_s():
    figure = LaunchTimeline()
    figure.set_state({"model": "llama3-8b", "gpu": "h100-sxm", "tp": "1", "context": 1024})
    assert float(figure.enough_batch()) == LESSON.value('capture.enough_batch("eager", llama, h100)')
