"""The recording as numbers says what the recording says."""

import numpy as np
import pytest

from engine.one_gpu import graph_trace
from engine.one_gpu.graph_trace import EAGER, EXAMPLES, TEXTS, view
from tests.cases import in_one_test


def number(key):
    return [each["key"] for each in EXAMPLES].index(key)


def test_a_value_read_splits_the_function_in_two():
    found = view(number("reads_value"), 0, 1)
    lines = [TEXTS[int(i)] for i in found["written_line"] if i == i]
    assert lines[2].strip() == "largest = h.abs().max().item()"
    assert list(found["written_state"][:5]) == [0, 1, 1, 2, 2]
    assert list(found["mended_state"][:5]) == [0, 1, 1, 1, 1]
    assert "item()" in TEXTS[int(found["written_notes"][0])] and found["written_break_row"][0] == 2
    assert TEXTS[int(found["written_ops"][1])] == "matmul, relu"


def test_a_loop_with_a_break_runs_eagerly_all_of_it():
    found = view(number("loops"), 0, 1)
    assert (
        set(found["written_state"][:6]) == {0, EAGER}
        and found["written_ran"] == 0 == found["written_in_graphs"]
    )


def test_the_strip_of_calls_is_that_of_the_recording():
    """Automatic: two compilations, then reuse; off: eight, two without, a known length, one without."""
    assert list(view(number("lengths"), 0, 1)["written_strip"]) == [1, 1] + [0] * 10
    assert list(view(number("lengths"), 1, 1)["written_strip"]) == [1] * 8 + [2, 2, 0, 2]
    assert list(view(number("lengths"), 2, 1)["written_strip"]) == [1] + [0] * 11


def test_a_recompilation_names_its_guard():
    found = view(number("lengths"), 0, 2)
    assert (
        TEXTS[int(found["written_notes"][0])]
        == "guard failed: tensor 'x' size mismatch at index 0. expected 100, actual 37"
    )
    assert view(number("lengths"), 0, 3)["written_anew"] == 0


def test_compilations_add_up_over_calls():
    assert [view(number("counter"), 0, call)["written_compiled"] for call in (1, 2, 8, 9, 12)] == [
        1,
        2,
        8,
        8,
        8,
    ]


@in_one_test("example", range(len(EXAMPLES)))
def test_every_text_can_be_shown(example):
    for version in graph_trace.VERSIONS:
        found = view(example, 0, 3)
        for name in ("line", "ops", "notes", "guards"):
            shown = found[f"{version}_{name}"]
            assert np.all(np.isnan(shown) | (shown < len(TEXTS)))
        assert (found["mended_length"] == 0) == ("mended" not in EXAMPLES[example])


def test_lines_fit_a_phone():
    for each in EXAMPLES:
        for version in graph_trace.VERSIONS:
            assert all(
                len(graph_trace.narrow(line)) <= 42 for line in each.get(version, {}).get("source", [])
            )


@pytest.mark.parametrize("wrong", [dict(example=99), dict(call=0), dict(call=13)])
def test_bad_input_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        view(**dict(example=0, dynamic=0, call=1) | wrong)
