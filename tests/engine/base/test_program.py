"""Algorithms as plain loops: run on numbers they cache their last results, and these results cannot be
changed."""

import numpy as np
import pytest

from engine.base.program import full, program, zeros
from tests.said import refused

RUNS = []


@program(doubled=4, total=())
def double(values, times):
    RUNS.append(times)
    found = zeros(0)
    for i in range(len(values)):
        found.append(times * values[i])
    values[0] = 99.0
    return {"doubled": found, "total": sum(found)}


def test_short_columns_end_in_nan_and_single_numbers_are_floats():
    given = np.array([1.0, 2.0])
    found = double(given, 2.0)
    np.testing.assert_array_equal(found["doubled"], [2, 4, np.nan, np.nan])
    assert found["total"] == 6.0 and isinstance(found["total"], float)
    assert given[0] == 1.0, "an algorithm writes to a copy"


def test_a_run_is_remembered_and_not_to_be_written_to():
    first, count = double([1.0, 2.0, 3.0], 3.0), len(RUNS)
    assert double(np.array([1.0, 2.0, 3.0]), 3.0)["doubled"] is first["doubled"] and len(RUNS) == count
    with pytest.raises(ValueError, match="read-only"):
        first["doubled"][0] = 0.0


def test_what_does_not_fit_or_is_not_declared_is_said():
    with refused("doubled of double", "4", "5"):
        double([1.0] * 5, 1.0)
    with pytest.raises(ValueError, match="other must give a; got b"):
        program(a=())(_other)()


def _other():
    return {"b": 1.0}


_other.__name__ = "other"


def test_what_runs_here_may_be_another_form_of_the_same():
    @program(lambda values: {"squares": np.square(values)}, squares=3)
    def squares(values):
        return {"squares": [value * value for value in values]}

    np.testing.assert_array_equal(squares([2.0, 3.0])["squares"], [4, 9, np.nan])
    assert squares.algorithm([2.0, 3.0]) == {"squares": [4.0, 9.0]}


def test_lists_of_one_number():
    assert zeros(2.0) == [0.0, 0.0] and full(3, 7) == [7, 7, 7]


def test_an_argument_that_only_stands_for_a_number_is_asked_instead():
    class Symbol:
        def __run_program__(self, program, given):
            return program, given

    symbol = Symbol()
    assert double([1.0], symbol) == (double, ([1.0], symbol))
