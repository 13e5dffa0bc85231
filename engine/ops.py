"""The few operations that numpy does slowly on a single float, made fast for one without a second formula.

numpy spends about a microsecond on each call, whatever the size. A cost model of a step makes some two hundred such
calls, so one estimate would take longer than its budget. Every function here takes plain Python floats the short way
and hands everything else (arrays, symbolic values of the widget compiler) to numpy. Both ways give the same bits: each
operation is exact or correctly rounded by IEEE 754.
"""

from __future__ import annotations

import math

import numpy as np


def number(value):
    """A plain number as a float; what only stands for one, as it is."""
    return float(value) if isinstance(value, (int, float, np.number)) else value


def is_zero(value) -> bool:
    """Whether a value is known to be zero: what only stands for a number is not."""
    return value.__class__ is float and value == 0.0


def where(condition, yes, no):
    """``yes`` where the condition holds, else ``no``."""
    if condition is True:
        return yes
    if condition is False:
        return no
    return np.where(condition, yes, no)


def choose(condition, yes, no):
    """As ``where``, for two functions without arguments: on a single float only the one that is needed is called."""
    if condition is True:
        return yes()
    if condition is False:
        return no()
    return np.where(condition, yes(), no())


def minimum(a, b):
    """The smaller of two."""
    if a.__class__ is float and b.__class__ is float:
        return a if a < b else b
    return np.minimum(a, b)


def maximum(a, b):
    """The larger of two."""
    if a.__class__ is float and b.__class__ is float:
        return a if a > b else b
    return np.maximum(a, b)


def ceil(a):
    """Rounded up to a whole number."""
    if a.__class__ is float:
        return float(math.ceil(a))
    return np.ceil(a)


def floor(a):
    """Rounded down to a whole number."""
    if a.__class__ is float:
        return float(math.floor(a))
    return np.floor(a)


def sqrt(a):
    """The square root."""
    if a.__class__ is float:
        return math.sqrt(a)
    return np.sqrt(a)


def log2_ceil(n):
    """The least k with 2**k >= n, for n >= 1: how many doublings reach n.

    Counted from the exponent bits, since the last digit of a logarithm differs between libraries.
    """
    if n.__class__ is float:
        mantissa, exponent = math.frexp(n)
        return float(exponent - 1 if mantissa == 0.5 else exponent)
    return np.ceil(np.log2(n) - 1e-9)


def pick(index, things):
    """One of several things, by its place; by what only stands for a place, what stands for the thing."""
    if hasattr(type(index), "__pick__"):
        return index.__pick__(things)
    return things[int(index)]
