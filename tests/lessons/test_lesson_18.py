"""Lesson 18's numbers are those worked by hand, its snippets run, and its words agree with the recording."""

import pytest

from engine import compilation, graph_trace
from tests.lessons.reading import Lesson
from widgets.kit import prose

LESSON = Lesson("18-torch-compile.md")

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "compilation.pace(0.0588, 0.0187)": "3.14×",
    "4096 * 8192 * 2 | MB": "67.1 MB",
    '2 * 4096 * 8192 * 2 / gpu("h100-sxm").hbm_bytes_per_s | µs': "40.1 µs",                # 134.2 MB / 3.35 TB/s
    "2 * 4096 * 8192 * 8192 /": "556 µs",                                                   # 549.8 G / 989 T
    "compilation.break_s(4096 * 8192 * 2": "75.1 µs",                                       # 40.1 + 5 + 30
    "14336 * 2 * 32 * 8192 | GB": "7.52 GB",
    "compilation.break_even_steps(1, 1, 60, 0.0588, 0.0187)": "1,497",                      # 60 / 0.0401
    "compilation.break_even_steps(6, 0, 60, 0.0588, 0.0187, 1.05)": "3,052",                 # 120 / 0.03932
    "2 * 8192 / 5762 - 2 * 8192 / 6667": "386 ms",                                          # 2.8435 − 2.4575
    "6667 / 5762 - 1": "15.7 %",
    "compilation.break_even_steps(1, 1, 120,": "311",                                       # 120 / 0.386
    "1e12 / (8 * 5762) | days": "251 days",
    "400 * 120 | h": "13.3 h",
    "compilation.break_even_steps(1, 1, 90, 0.0081": "19,149",                              # 90 / 0.0047
    "compilation.eager_share(40, 1)": "80 %",
    "compilation.break_even_steps(40, 1, 90, 0.0081, 0.0034)`": "765,958",                  # 40 · 90 / 0.0047
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part.rstrip("`")) == seen


def test_its_figures_in_order():
    assert LESSON.widgets() == ["graph_breaks", "compile_break_even"]


def test_predictions_are_right_where_the_engine_says_so():
    found = dict(zip(LESSON.widgets(), LESSON.right_answers()))
    assert {name: eval(right, prose.namespace()) for name, right in found.items()} == {
        "graph_breaks": 2, "compile_break_even": 1}


@pytest.mark.parametrize("code", LESSON.code("python"), ids=lambda code: code.split("\n")[-2][:40])
def test_a_snippet_runs_and_holds(code):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make recorder")
    torch._dynamo.reset()
    assert "assert" in code
    exec(compile(code, "<lesson 18>", "exec"), {"__name__": "lesson_18"})


def test_what_it_says_of_the_recorded_functions():
    """One graph for what looks hard, two for what looks harmless, none for the loop; compiled in every call up to eight."""
    graphs = {each["key"]: compilation.recorded(each["key"], "ran") for each in graph_trace.EXAMPLES}
    assert graphs["tolerated"] == 1 and graphs["loops"] == 0
    assert graphs["prints"] == graphs["branch"] == graphs["reads_value"] == 2
    for key in ("remembers", "counter"):
        assert compilation.recorded(key, "breaks") == 0 and compilation.recorded(key, "graphs", call=12) == 8
        assert compilation.recorded(key, "in_graphs", call=9) == 0


def test_the_limit_cancels_in_break_even():
    few, many = (compilation.break_even_steps(32, 1, 60, 0.0588, 0.0187, 1.0, limit) for limit in (8, 32))
    assert few == pytest.approx(many, rel=1e-4)


def test_a_break_in_each_layer_matters_where_steps_are_short():
    per_layer_s = compilation.break_s(0, 3.35e12, 1, 5e-6, 30e-6)
    assert 80 * per_layer_s / 0.02 == pytest.approx(0.14)
    assert compilation.break_s(8192 * 4096 * 2, 3.35e12, 1, 5e-6, 30e-6) * 32 / 0.133 < 0.03
