"""The few operations that numpy does slowly on a single float, with a short way for floats.

numpy spends about a microsecond on each call, whatever the size. The cost model of one step makes some two
hundred such calls, so a single estimate would exceed its time budget. Every function here computes plain
Python floats directly and hands everything else (arrays, symbolic values of the widget compiler) to numpy.
Both ways give the same bits, because each operation is exact or correctly rounded by IEEE 754.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeVar

import numpy as np

from engine.base.types import Real, Truth

Result = TypeVar("Result")


def remembered(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, with its latest results remembered. For results that depend on a model and a machine
    alone, or that many of the compared layouts have in common.

    It takes its arguments by position. With arguments that cannot be hashed, such as arrays and symbols, it
    is computed each time. Arguments of different types are told apart: a float's result is never the numpy
    number that an equal numpy argument gave.
    """
    known = lru_cache(256, typed=True)(function)

    @wraps(function)
    def found(*args):
        try:
            return known(*args)
        except TypeError:
            return function(*args)

    return found


def as_float(value: Real) -> Real:
    """A plain number as a float; an array or a symbol unchanged."""
    return float(value) if isinstance(value, (int, float, np.number)) else value


def is_zero(value: Real) -> bool:
    """Whether a value is known to be zero; a symbol never is."""
    return value.__class__ is float and value == 0.0


def where(condition: Truth, yes: Real, no: Real) -> Real:
    """``yes`` where the condition holds, else ``no``."""
    if condition is True:
        return yes
    if condition is False:
        return no
    return np.where(condition, yes, no)


def choose(condition: Truth, yes: Callable[[], Real], no: Callable[[], Real]) -> Real:
    """Like ``where``, but with two functions instead of two values: for a single float only the branch that
    is needed gets called."""
    if condition is True:
        return yes()
    if condition is False:
        return no()
    return np.where(condition, yes(), no())


def for_each(values: Real, of: Callable[[Real], Real], *others: Sequence[Real]) -> Real:
    """``of(values)``. If the values lie along a dimension of their own, along which none of the ``others``
    that the result depends on varies, ``of`` is called for one value after the other, so that work which only
    one of the values needs is not done for all of them."""
    if not isinstance(values, np.ndarray) or not 1 < max(values.shape, default=0) == values.size:
        return of(values)
    axis = int(np.argmax(values.shape)) - values.ndim
    if any(np.ndim(other) >= -axis and np.shape(other)[axis] > 1 for some in others for other in some):
        return of(values)
    found = np.broadcast_arrays(np.zeros([1] * values.ndim), *(of(float(value)) for value in values.flat))
    return np.concatenate(found[1:], axis)


def minimum(a: Real, b: Real) -> Real:
    """The smaller of two."""
    if a.__class__ is float and b.__class__ is float:
        return a if a < b else b
    return np.minimum(a, b)


def maximum(a: Real, b: Real) -> Real:
    """The larger of two."""
    if a.__class__ is float and b.__class__ is float:
        return a if a > b else b
    return np.maximum(a, b)


def ceil(a: Real) -> Real:
    """The value rounded up to a whole number."""
    if a.__class__ is float:
        return float(math.ceil(a))
    return np.ceil(a)


def floor(a: Real) -> Real:
    """The value rounded down to a whole number."""
    if a.__class__ is float:
        return float(math.floor(a))
    return np.floor(a)


def sqrt(a: Real) -> Real:
    """The square root."""
    if a.__class__ is float:
        return math.sqrt(a)
    return np.sqrt(a)


def log2_ceil(n: Real) -> Real:
    """The least k with 2**k >= n, for n >= 1: how many doublings reach n.

    It is read from the exponent bits, because the last digit of a logarithm differs between libraries.
    """
    if n.__class__ is float:
        mantissa, exponent = math.frexp(n)
        return float(exponent - 1 if mantissa == 0.5 else exponent)
    return np.ceil(np.log2(n) - 1e-9)


def select(index: Real, things: Sequence[Any]) -> Any:
    """The thing at this index; a symbolic index gives a symbol that stands for the chosen thing."""
    if hasattr(type(index), "__pick__"):
        return index.__pick__(things)
    return things[int(index)]


def each(thing: Any, function: Callable[[Any], Any]) -> Any:
    """The function's result for a thing; for a symbolic choice among several, the results for all of them,
    joined into one choice."""
    if hasattr(type(thing), "__each__"):
        return thing.__each__(function)
    return function(thing)
