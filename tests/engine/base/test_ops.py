"""One float and an array of one give the same bits through every operation of ops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base import ops

numbers = st.floats(-1e12, 1e12, allow_subnormal=False)


@given(numbers, numbers)
def test_a_float_goes_the_same_way_as_an_array(a, b):
    for function in (ops.minimum, ops.maximum):
        assert function(a, b) == function(np.array([a]), np.array([b]))[0]
    for function in (ops.ceil, ops.floor):
        assert function(a) == function(np.array([a]))[0]
        assert type(function(a)) is float
    assert ops.sqrt(abs(a)) == ops.sqrt(np.array([abs(a)]))[0]
    assert ops.where(a < b, a, b) == ops.where(np.array([a]) < b, a, b)[0]
    assert ops.choose(a < b, lambda: a, lambda: b) == ops.choose(np.array([a]) < b, lambda: a, lambda: b)[0]


def test_values_of_a_grid_one_by_one_and_all_others_at_once():
    def once(value):
        asked.append(value)
        return value * other

    for values, other, alone in (
        (2.0, 3.0, False),
        (np.arange(3.0), np.arange(3.0), False),  # a column beside a column
        (np.arange(3.0)[:, None], np.ones((3, 2)), False),
        (np.arange(3.0)[:, None], np.arange(2.0), True),
        (np.arange(3.0)[None, :, None], np.ones((2, 1, 4)), True),
        (np.arange(3.0)[:, None], 5.0, True),
    ):
        asked = []
        found = ops.for_each(values, once, [other])
        assert np.array_equal(found, values * other) and np.shape(found) == np.shape(values * other)
        assert len(asked) == (3 if alone else 1) and (type(asked[0]) is float) == (
            alone or isinstance(values, float)
        )


@given(st.integers(1, 2**40))
def test_doublings_that_reach_a_number(n):
    k = ops.log2_ceil(float(n))
    assert 2.0**k >= n and (k == 0 or 2.0 ** (k - 1) < n)
    if n < 2**24:
        assert ops.log2_ceil(np.array([float(n)]))[0] == k


def test_choose_leaves_the_other_branch_alone():
    assert ops.choose(True, lambda: 1.0, lambda: math.sqrt(-1)) == 1.0
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        ops.choose(False, lambda: 1.0, lambda: math.sqrt(-1))


def test_arrays_are_computed_each_time_and_numbers_once():
    @ops.remembered
    def double(value):
        asked.append(value)
        return value * 2.0

    asked = []
    assert [double(3.0), double(3.0)] == [6.0, 6.0] and asked == [3.0]
    for _ in range(2):
        assert list(double(np.array([1.0, 2.0]))) == [2.0, 4.0]
    assert len(asked) == 3


def test_what_is_remembered_of_numpy_s_numbers_is_not_given_for_floats():
    doubled = ops.remembered(lambda value: value * 2)
    assert type(doubled(np.float64(3.0))) is np.float64
    assert type(doubled(3.0)) is float and type(doubled(3)) is int
