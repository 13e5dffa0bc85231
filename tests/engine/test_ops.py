"""One float and an array of one give the same bits through every operation of ops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import ops

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


@given(st.integers(1, 2**40))
def test_doublings_that_reach_a_number(n):
    k = ops.log2_ceil(float(n))
    assert 2.0**k >= n and (k == 0 or 2.0 ** (k - 1) < n)
    if n < 2**24:
        assert ops.log2_ceil(np.array([float(n)]))[0] == k


def test_choose_leaves_the_other_branch_alone():
    assert ops.choose(True, lambda: 1.0, lambda: math.sqrt(-1)) == 1.0
    with pytest.raises(ValueError):
        ops.choose(False, lambda: 1.0, lambda: math.sqrt(-1))
