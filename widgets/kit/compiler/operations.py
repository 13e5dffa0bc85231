"""Every operation that is translated, in one place: its name, its arguments, and its JavaScript.

The compiler reads these tables, and ``grammar.py`` writes them into GRAMMAR.md, so the document cannot
differ. An operation is either exact to the last bit, or one of those that C and JavaScript libraries round
differently.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from engine.base import program

EXACT = "exact"
CLOSE = "within 4 units in the last place"
IN_ANOTHER_ORDER = "added in another order: within n·2⁻⁵³ of the sum of the n magnitudes"

# how an operation treats truth values
LIKE_NUMBERS = "counts them as 0 and 1"
ONLY_TRUTHS = "takes nothing else"
NO_TRUTHS = "refused, unless a number stands beside them"


class Operation(NamedTuple):
    """One line of a table."""

    function: Callable[..., Any]
    written: str  # in JavaScript, with {} for each argument
    precision: str = EXACT
    truths: str = NO_TRUTHS
    gives_truth: bool = False

    @property
    def arity(self) -> int:
        """The exact number of arguments."""
        return 1 + max((int(n) for n in _numbered(self.written)), default=-1)

    @property
    def name(self) -> str:
        """The name as a program writes it."""
        return name_of(self.function)


def _numbered(written: str) -> list[str]:
    """The positions of the arguments in a template: its {0}, {1} …, or its {} in order."""
    fields = [piece.split("}")[0] for piece in written.split("{")[1:]]
    return [field or str(place) for place, field in enumerate(fields)]


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function as a program writes it: np.sqrt, math.floor, abs, zeros."""
    if isinstance(function, np.ufunc):
        return f"np.{function.__name__}"
    module = {"builtins": "", "_bisect": "", "engine.base.program": ""}.get(function.__module__)
    return f"{function.__module__ if module is None else module}.{function.__name__}".removeprefix(
        "."
    ).replace("numpy.", "np.")


# -- array expressions ---------------------------------------------------------------------------------------
_ELEMENTWISE = [
    Operation(np.add, "({}+{})"),
    Operation(np.subtract, "({}-{})"),
    Operation(np.multiply, "({}*{})", truths=LIKE_NUMBERS),
    Operation(np.divide, "({}/{})", truths=LIKE_NUMBERS),
    Operation(np.floor_divide, "floordiv({},{})"),
    Operation(np.remainder, "mod({},{})"),
    Operation(np.negative, "(-{})"),
    Operation(np.positive, "{}"),
    Operation(np.absolute, "Math.abs({})", truths=LIKE_NUMBERS),
    Operation(np.sign, "sign({})"),
    Operation(np.square, "square({})"),
    Operation(np.reciprocal, "(1/{})"),
    Operation(np.sqrt, "Math.sqrt({})"),
    Operation(np.minimum, "Math.min({},{})", truths=LIKE_NUMBERS),
    Operation(np.maximum, "Math.max({},{})", truths=LIKE_NUMBERS),
    Operation(np.ceil, "Math.ceil({})"),
    Operation(np.floor, "Math.floor({})"),
    Operation(np.rint, "rint({})"),
    Operation(np.power, "power({},{})", CLOSE),
    Operation(np.float_power, "power({},{})", CLOSE),
    Operation(np.exp, "Math.exp({})", CLOSE),
    Operation(np.expm1, "Math.expm1({})", CLOSE),
    Operation(np.log, "Math.log({})", CLOSE),
    Operation(np.log2, "Math.log2({})", CLOSE),
    Operation(np.log10, "Math.log10({})", CLOSE),
    Operation(np.log1p, "Math.log1p({})", CLOSE),
    Operation(np.sin, "Math.sin({})", CLOSE),
    Operation(np.cos, "Math.cos({})", CLOSE),
    Operation(np.tanh, "Math.tanh({})", CLOSE),
    Operation(np.hypot, "Math.hypot({},{})", CLOSE),
    Operation(np.arctan2, "Math.atan2({},{})", CLOSE),
    Operation(np.less, "({}<{})", truths=LIKE_NUMBERS, gives_truth=True),
    Operation(np.less_equal, "({}<={})", truths=LIKE_NUMBERS, gives_truth=True),
    Operation(np.greater, "({}>{})", truths=LIKE_NUMBERS, gives_truth=True),
    Operation(np.greater_equal, "({}>={})", truths=LIKE_NUMBERS, gives_truth=True),
    Operation(np.equal, "({}=={})", truths=LIKE_NUMBERS, gives_truth=True),
    Operation(np.not_equal, "({}!={})", truths=LIKE_NUMBERS, gives_truth=True),
    Operation(np.isfinite, "Number.isFinite({})", gives_truth=True),
    Operation(np.logical_and, "({}&&{})", truths=ONLY_TRUTHS, gives_truth=True),
    Operation(np.bitwise_and, "({}&&{})", truths=ONLY_TRUTHS, gives_truth=True),
    Operation(np.logical_or, "({}||{})", truths=ONLY_TRUTHS, gives_truth=True),
    Operation(np.bitwise_or, "({}||{})", truths=ONLY_TRUTHS, gives_truth=True),
    Operation(np.logical_not, "(!{})", truths=ONLY_TRUTHS, gives_truth=True),
    Operation(np.invert, "(!{})", truths=ONLY_TRUTHS, gives_truth=True),
]
ELEMENTWISE = {operation.function: operation for operation in _ELEMENTWISE}
WHERE, WHERE_NOT_ZERO = "({}?{}:{})", "({}!=0?{}:{})"  # of truth values; of numbers, where NaN counts as true

# the fold in runtime.js, and how the reduction treats truth values
_REDUCTIONS = [
    Operation(np.sum, "sum", IN_ANOTHER_ORDER, LIKE_NUMBERS),
    Operation(np.prod, "prod", EXACT, LIKE_NUMBERS),
    Operation(np.max, "max", EXACT, LIKE_NUMBERS),
    Operation(np.min, "min", EXACT, LIKE_NUMBERS),
    Operation(np.any, "max", EXACT, ONLY_TRUTHS, gives_truth=True),
    Operation(np.all, "min", EXACT, ONLY_TRUTHS, gives_truth=True),
    Operation(np.argmax, "argmax", EXACT, LIKE_NUMBERS),
    Operation(np.argmin, "argmin", EXACT, LIKE_NUMBERS),
]
REDUCTIONS = {operation.function: operation for operation in _REDUCTIONS}
# reductions of whole numbers (np.argmax, counts of truth values) that numpy computes without floats
OTHERWISE_OF_WHOLE = {np.floor_divide, np.remainder, np.power, np.reciprocal}
STAYS_WHOLE = {np.add, np.subtract, np.multiply, np.minimum, np.maximum, np.absolute, np.square, np.negative}
STAYS_TRUTH = {
    np.multiply,
    np.minimum,
    np.maximum,
    np.absolute,
    np.max,
    np.min,
}  # if all arguments are truths
REDUCING_UFUNCS = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_or: np.any,
    np.logical_and: np.all,
}

# functions that only move numbers: run on index arrays, they tell where each number of the result comes from.
# Each with the arguments that may be given by name.
STRUCTURAL = {
    np.stack: ("axis",),
    np.concatenate: ("axis",),
    np.hstack: (),
    np.vstack: (),
    np.column_stack: (),
    np.append: ("values", "axis"),
    np.reshape: ("shape",),
    np.ravel: (),
    np.expand_dims: ("axis",),
    np.squeeze: ("axis",),
    np.atleast_1d: (),
    np.atleast_2d: (),
    np.broadcast_to: ("shape",),
    np.transpose: ("axes",),
    np.moveaxis: ("source", "destination"),
    np.swapaxes: ("axis1", "axis2"),
    np.repeat: ("repeats", "axis"),
    np.tile: ("reps",),
    np.roll: ("shift", "axis"),
    np.flip: ("axis",),
}
# the other numpy functions that are known: what may be given after the array by position, and what by name
OTHER_FUNCTIONS = {
    np.where: (("x", "y"), ()),
    np.clip: (("a_min", "a_max"), ("a_min", "a_max", "min", "max")),
    np.mean: (("axis",), ("axis", "keepdims")),
    np.cumsum: (("axis",), ("axis",)),
    np.linspace: (("stop", "num"), ("stop", "num")),
    np.take: (("indices",), ("indices",)),
    np.zeros_like: ((), ()),
    np.ones_like: ((), ()),
    np.full_like: (("fill_value",), ("fill_value",)),
    np.shape: ((), ()),
    np.ndim: ((), ()),
    np.size: ((), ()),
}

# -- programs ------------------------------------------------------------------------------------------------
WHOLE, FLOAT, TRUTH, LIST = "whole", "float", "truth", "list"


class Call(NamedTuple):
    """A function that a program may call: the kinds of its arguments, how it is written, and its result."""

    function: Callable[..., Any]
    takes: tuple[str, ...]  # "number", "whole" or "list" for each argument
    written: str
    gives: str  # WHOLE, FLOAT, TRUTH, LIST, or "same" (sort as the argument)
    precision: str = EXACT

    @property
    def name(self) -> str:
        """The name as a program writes it."""
        return name_of(self.function)


_CALLS = [
    Call(abs, ("number",), "Math.abs({})", "same"),
    Call(int, ("number",), "py_int({})", WHOLE),
    Call(float, ("number",), "(+{})", FLOAT),
    Call(bool, ("number",), "({}!=0)", TRUTH),
    Call(round, ("number",), "py_round({})", WHOLE),
    Call(len, ("list",), "{}.length", WHOLE),
    Call(program.zeros, ("number",), "new Array(py_count({})).fill(0)", LIST),
    Call(program.full, ("number", "any"), "new Array(py_count({})).fill({})", LIST),
    Call(bisect_left, ("list", "number"), "bisect_left({},{})", WHOLE),
    Call(np.searchsorted, ("list", "number"), "bisect_left({},{})", WHOLE),
    Call(program.mean, ("list",), "mean_of({})", FLOAT, IN_ANOTHER_ORDER),
    Call(math.floor, ("number",), "py_floor({})", WHOLE),
    Call(math.ceil, ("number",), "py_ceil({})", WHOLE),
    Call(math.fabs, ("number",), "Math.abs({})", FLOAT),
    Call(math.isnan, ("number",), "Number.isNaN({})", TRUTH),
    Call(math.sqrt, ("number",), "py_sqrt({})", FLOAT),
    Call(math.exp, ("number",), "py_exp({})", FLOAT, CLOSE),
    Call(math.log, ("number",), "py_log(Math.log,{})", FLOAT, CLOSE),
    Call(math.log2, ("number",), "py_log(Math.log2,{})", FLOAT, CLOSE),
    Call(math.log10, ("number",), "py_log(Math.log10,{})", FLOAT, CLOSE),
    Call(math.cos, ("number",), "py_wave(Math.cos,{})", FLOAT, CLOSE),
    Call(math.sin, ("number",), "py_wave(Math.sin,{})", FLOAT, CLOSE),
]
CALLS = {call.function: call for call in _CALLS}
EXTREMES = {min: ("py_least", "py_least_of"), max: ("py_most", "py_most_of")}


class Method(NamedTuple):
    """A method of lists in programs."""

    name: str
    arguments: int
    written: str
    statement: bool  # it has no result, so it must be a statement of its own
    exception: str = ""


_METHODS = [
    Method("append", 1, "{}.push({})", True),
    Method("insert", 2, "py_insert({},{},{})", True),
    Method("remove", 1, "py_remove({},{})", True, "ValueError where the list does not hold the number"),
    Method("pop", 0, "py_pop({})", False, "IndexError where the list is empty"),
    Method("pop", 1, "py_pop_at({},{})", False, "IndexError out of range"),
]
METHODS = {(method.name, method.arguments): method for method in _METHODS}

# what generated code may call; all of it is exported by numbers.js
HELPERS = (
    "vec",
    "gather",
    "join",
    "reduce",
    "cumsum",
    "entry",
    "word",
    "of_row",
    "mod",
    "floordiv",
    "rint",
    "sign",
    "power",
    "square",
    "stop",
    "rows",
    "each",
    "remembered",
    "once",
    "own",
    "human",
    "in_unit",
    "plain",
    "padded",
    "bisect_left",
    "py_item",
    "py_place",
    "py_unpacked",
    "py_insert",
    "py_remove",
    "py_pop",
    "py_pop_at",
    "py_count",
    "py_least",
    "py_least_of",
    "py_most",
    "py_most_of",
    "py_int",
    "py_round",
    "py_floor",
    "py_ceil",
    "py_sqrt",
    "py_exp",
    "py_log",
    "py_wave",
    "py_power",
    "py_whole_power",
    "py_divided",
    "py_remainder",
    "py_floordivided",
    "py_whole",
    "mean_of",
    "for_each",
)
