"""The figure of recorded functions: lines, marks and words are those of the recording."""

import numpy as np
import pytest

from engine.one_gpu import graph_trace
from engine.one_gpu.graph_trace import EXAMPLES
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.gpu.graph_breaks import GraphBreaks
from widgets.kit.drawing import listing

shown = Reader(GraphBreaks).shown


def test_at_rest_one_function_in_four_graphs():
    found = shown()
    assert found["readouts"]["ran"]["text"] == "4" and found["regimes"]["in_pieces"]["met"]
    assert "def helper(x, w):" in found["parts"]["code"]["text"]
    assert set(found["parts"]["code"]["gutter"]) == {"", "1", "2", "3", "4"}


@in_one_test(
    "example, dynamic, call, met",
    [
        ("counter", "automatic", 8, False),
        ("counter", "automatic", 9, True),
        ("remembers", "on", 12, True),
        ("lengths", "automatic", 12, False),
        ("lengths", "off", 9, True),
        ("lengths", "off", 11, False),
        ("loops", "automatic", 9, False),
    ],
)
def test_the_target_is_met_past_the_limit_and_nowhere_else(example, dynamic, call, met):
    assert shown(example=example, dynamic=dynamic, call=call)["regimes"]["limit_hit"]["met"] == met


def test_a_loop_is_named_as_skipped_and_drawn_as_eager():
    found = shown(example="loops")
    assert found["regimes"]["skipped"]["met"] and np.sum(found["parts"]["code"]["eager"] > 0) == 5
    assert found["readouts"]["captured"]["text"] == "0 %"


def test_a_failed_guard_is_quoted():
    texts = shown(example="lengths", call=2)["parts"]["notes"]["text"]
    assert any(not lacks(text, "guard", "'x'", "index 0", "expected 100", "actual 37") for text in texts)


def test_a_loop_over_layers_is_eager_around_them_only():
    """3 of 5 operations of each turn are the layer's."""
    found = shown(example="layers")
    assert found["readouts"]["captured"]["text"] == "60 %" and not found["regimes"]["skipped"]["met"]


@pytest.mark.parametrize("call", [9, 10, 12])
def test_a_call_past_the_limit_says_why_it_is_eager(call):
    texts = shown(example="counter", call=call)["parts"]["notes"]["text"]
    assert any(not lacks(text, "guards", "8 graphs", "failed") for text in texts)


def test_a_line_says_its_operations_under_the_pointer():
    widget = GraphBreaks()
    widget.set_state({"example": "reads_value"})
    assert "Graph 1: matmul, relu" in widget.hints()["code"]


@in_one_test("each", EXAMPLES, ids=lambda each: each["key"])
def test_nothing_lies_below_the_picture(each):
    found = shown(example=each["key"], call=2)
    bottom = found["ranges"]["y"][0]
    for part in ("code", "code_narrow"):
        there = np.array([bool(text) for text in found["parts"][part]["text"]])
        assert found["parts"][part]["bottom"][there].min() >= bottom
    guards = np.array([bool(text) for text in found["parts"]["guards"]["text"]])
    assert not guards.any() or found["parts"]["guards"]["bottom"][guards].min() >= bottom


def test_halves_do_not_meet():
    (_, left_end), (right_start, _) = listing.HALVES
    assert left_end < right_start and graph_trace.CALLS == 12


def test_the_headings_count_the_graphs_and_the_strip_says_only_what_is_in_it():
    headings = shown()["parts"]["headings"]
    assert headings["text"] == ["as written: 4 graphs", "mended: 1 graph"]
    assert len(headings["told"]) == 2
    assert not any(lacks(told, "12 calls", "1 compiles", "11 reuse") for told in headings["told"])
    late = shown(example="counter", call=9)["parts"]["headings"]
    assert late["text"][0] == "as written: no graph: eager"
    assert not lacks(late["told_short"][0], "8 compile", "4 run eagerly")
