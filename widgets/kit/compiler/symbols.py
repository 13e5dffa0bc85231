"""Symbols for unknown numbers, so that Python code can be run once and recorded as a graph.

A widget's methods call the engine. Run on ordinary numbers they give values; run on symbols they give a graph
of what they would compute, which ``writer.py`` translates for the page without a server. So no formula is
written twice.

A symbol behaves like a numpy array of a known shape: arithmetic, ufuncs and the array functions of
``operations.py`` extend the graph. Anything that cannot be recorded (a Python ``if`` on a symbol,
``float(symbol)``, ``np.asarray(symbol)``), or that means something else in JavaScript, raises an error that
says what to use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from engine.base.program import Program
from engine.base.sweep import Grouped, Least
from engine.base.types import Real, Truth
from widgets.kit.compiler import texts
from widgets.kit.compiler.graph import Contest, Graph, Sweep
from widgets.kit.compiler.literal import MOST_WHOLE
from widgets.kit.compiler.operations import (
    ELEMENTWISE,
    NO_TRUTHS,
    ONLY_TRUTHS,
    OTHER_FUNCTIONS,
    OTHERWISE_OF_WHOLE,
    REDUCING_UFUNCS,
    REDUCTIONS,
    STAYS_TRUTH,
    STAYS_WHOLE,
    STRUCTURAL,
    WHERE,
    WHERE_NOT_ZERO,
    Operation,
    name_of,
)
from widgets.kit.compiler.refusal import NotTranslatable, place, refuse
from widgets.kit.compiler.texts import Text, Texts

AS_NUMBERS = "write np.where(condition, 1.0, 0.0)"
numpy: Any = np  # its functions return symbols for symbols, which their annotations do not say

TO_ADD = "what there is stands in widgets/kit/compiler/operations.py"


class Symbol:
    """An unknown number, or an array of unknown numbers."""

    __slots__ = ("graph", "id", "shape")
    __array_priority__ = 1000

    def __init__(self, graph: Graph, node_id: int, shape: tuple[int, ...] = ()) -> None:
        self.graph, self.id, self.shape = graph, node_id, shape

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    T = property(lambda self: np.transpose(self))
    sort = property(lambda self: self.graph.nodes[self.id].sort)
    truth = property(lambda self: self.sort == "truth", doc="Whether it is True or False.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Real, **named: Any) -> Symbol:
        if method == "reduce" and ufunc in REDUCING_UFUNCS:
            named.setdefault("axis", 0)
            return reduced(REDUCING_UFUNCS[ufunc], inputs[0], named)
        if method != "__call__" or ufunc not in ELEMENTWISE:
            refuse(f"np.{ufunc.__name__} ({method})", TO_ADD)
        if named:
            refuse(f"{', '.join(named)}= of np.{ufunc.__name__}", "give arrays alone; np.where picks")
        return elementwise(self.graph, ELEMENTWISE[ufunc], inputs)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        if function is np.broadcast_arrays and not named:
            shape = np.broadcast_shapes(*(np.shape(a) for a in args))
            return [np.broadcast_to(lift(self.graph, a), shape) for a in args]
        if not args or function not in (*REDUCTIONS, *OTHER_FUNCTIONS, *STRUCTURAL):
            refuse(f"{name_of(function)}", TO_ADD)
        if function in STRUCTURAL:
            return restructured(self.graph, function, args, named)
        if function in REDUCTIONS:
            return reduced(
                function,
                lift(self.graph, args[0]),
                given(function, args, named, ("axis",), ("axis", "keepdims")),
            )
        options = given(function, args, named, *OTHER_FUNCTIONS[function])
        return getattr(Functions, function.__name__)(self.graph, args[0], **options)

    def __run_program__(self, run: Program, args: Sequence[Real]) -> dict[str, Symbol]:
        return outputs_of(self.graph, run, args)

    def __run_sweep__(
        self, rows: dict[str, Real], dimensions: list[dict[str, Iterable[float]]], measure: Callable[..., Any]
    ) -> dict[str, Any]:
        return searched(self.graph, rows, dimensions, measure)

    def __pick__(self, things: Iterable[Any]) -> Picked:
        return Picked(self.graph, self, list(things))

    def __getitem__(self, key: Any) -> Symbol:
        if isinstance(key, Symbol):
            return lookup(self, key)
        index = np.arange(self.size).reshape(self.shape)[key]
        return gathered(self.graph, [self], np.asarray(index))

    def __iter__(self) -> Iterator[Symbol]:
        if not self.shape:
            raise NotTranslatable("a single symbol cannot be iterated")
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        return self.shape[0]

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Symbol:
        return numpy.sum(self, axis=axis, keepdims=keepdims)

    def max(self, axis: int | None = None, keepdims: bool = False) -> Symbol:
        return numpy.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: int | None = None, keepdims: bool = False) -> Symbol:
        return numpy.min(self, axis=axis, keepdims=keepdims)

    def any(self, axis: int | None = None) -> Symbol:
        return numpy.any(self, axis=axis)

    def all(self, axis: int | None = None) -> Symbol:
        return numpy.all(self, axis=axis)

    def reshape(self, *shape: Any) -> Symbol:
        return numpy.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Symbol:
        return numpy.ravel(self)

    def astype(self, dtype: DTypeLike) -> Symbol:
        if np.dtype(dtype) != np.float64:
            refuse(
                f".astype({np.dtype(dtype).name})",
                "take np.floor or np.rint, or compare: every number is a float",
            )
        return numpy.where(self, 1.0, 0.0) if self.truth else self * 1.0 if self.sort else self

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f".{name} of an array", TO_ADD)

    def __add__(self, other: Real) -> Symbol:
        return numpy.add(self, other)

    def __radd__(self, other: Real) -> Symbol:
        return numpy.add(other, self)

    def __sub__(self, other: Real) -> Symbol:
        return numpy.subtract(self, other)

    def __rsub__(self, other: Real) -> Symbol:
        return numpy.subtract(other, self)

    def __mul__(self, other: Real) -> Symbol:
        return numpy.multiply(self, other)

    def __rmul__(self, other: Real) -> Symbol:
        return numpy.multiply(other, self)

    def __truediv__(self, other: Real) -> Symbol:
        return numpy.divide(self, other)

    def __rtruediv__(self, other: Real) -> Symbol:
        return numpy.divide(other, self)

    def __floordiv__(self, other: Real) -> Symbol:
        return numpy.floor_divide(self, other)

    def __rfloordiv__(self, other: Real) -> Symbol:
        return numpy.floor_divide(other, self)

    def __mod__(self, other: Real) -> Symbol:
        return numpy.remainder(self, other)

    def __rmod__(self, other: Real) -> Symbol:
        return numpy.remainder(other, self)

    def __pow__(self, other: Real) -> Symbol:
        return numpy.square(self) if type(other) is int and other == 2 else numpy.power(self, other)

    def __rpow__(self, other: Real) -> Symbol:
        return numpy.power(other, self)

    def __neg__(self) -> Symbol:
        return numpy.negative(self)

    def __abs__(self) -> Symbol:
        return numpy.absolute(self)

    def __lt__(self, other: Real) -> Truth:
        return numpy.less(self, other)

    def __le__(self, other: Real) -> Truth:
        return numpy.less_equal(self, other)

    def __gt__(self, other: Real) -> Truth:
        return numpy.greater(self, other)

    def __ge__(self, other: Real) -> Truth:
        return numpy.greater_equal(self, other)

    def __eq__(self, other: Real) -> Truth:
        return numpy.equal(self, other)

    def __ne__(self, other: Real) -> Truth:
        return numpy.not_equal(self, other)

    def __and__(self, other: Real) -> Symbol:
        return numpy.bitwise_and(self, other)

    def __rand__(self, other: Real) -> Symbol:
        return numpy.bitwise_and(other, self)

    def __or__(self, other: Real) -> Symbol:
        return numpy.bitwise_or(self, other)

    def __ror__(self, other: Real) -> Symbol:
        return numpy.bitwise_or(other, self)

    def __invert__(self) -> Symbol:
        return numpy.invert(self)

    def _refuse(self, what: str, instead: str) -> NoReturn:
        refuse(f"{what} on a control's value", f"use {instead}")

    def __bool__(self) -> NoReturn:
        self._refuse("a Python if, and, or, not, min or max", "np.where, &, |, ~, np.minimum or np.maximum")

    def __float__(self) -> NoReturn:
        self._refuse("float() or math.*", "numpy's functions")

    def __int__(self) -> NoReturn:
        self._refuse("int()", "np.floor")

    def __index__(self) -> NoReturn:
        self._refuse("an index or range()", "lookup(table, index)")

    def __round__(self, *_: Any) -> NoReturn:
        self._refuse("round()", "np.rint")

    def __format__(self, _spec: str) -> NoReturn:
        self._refuse("number formatting in an f-string", "show(value, family)")

    def __str__(self) -> NoReturn:
        self._refuse("str()", "show(value, family)")

    def __repr__(self) -> str:
        return f"<Symbol {self.id} of shape {self.shape}>"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("np.asarray or np.array", "np.stack, or leave the value as it is")


# -- steps of the graph --------------------------------------------------------------------------------------
def step(
    graph: Graph,
    op: str,
    args: Iterable[int] = (),
    data: Any = None,
    shape: Sequence[int] = (),
    sort: str = "",
) -> Symbol:
    """Add a step to the graph; returns its symbol."""
    return Symbol(graph, graph.add(op, args, data, tuple(shape), sort), tuple(shape))


def sort_of(values: Iterable[Real], symbols: Iterable[Symbol]) -> str:
    """The sort of several values combined, as in numpy: floats, unless all are whole numbers or truth
    values."""
    sorts = {
        "whole" if not isinstance(value, Symbol) and np.asarray(value).dtype.kind in "iu" else symbol.sort
        for value, symbol in zip(values, symbols)
    }
    return "" if "" in sorts else "whole" if "whole" in sorts else "truth"


def control(graph: Graph, name: str) -> Symbol:
    """The value of a control, which the page provides."""
    return step(graph, "control", data=name)


def given_column(graph: Graph, name: str, rest: tuple[float, ...]) -> Symbol:
    """A column that the page may hand over beside the controls; ``rest`` if it hands over none. Its length
    may change, so only a program can read it."""
    return step(graph, "given", data=(name, rest), shape=(len(rest),))


def lift(graph: Graph, value: Any) -> Symbol:
    """A symbol for any number or array (a list of symbols is stacked)."""
    if isinstance(value, Symbol):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Symbol, list, tuple)) for v in value):
        return numpy.stack([lift(graph, v) for v in value])
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or (array.dtype.kind == "f" and array.dtype != np.float64):
        refuse(f"{value!r} as a number", "numbers are floats of 64 bits")
    if (
        array.dtype.kind in "iu"
        and array.size
        and max(abs(int(array.min())), abs(int(array.max()))) > MOST_WHOLE
    ):
        refuse(f"the whole number {value}, past 2**53,", "write it as a float")
    sort, array = "truth" if array.dtype.kind == "b" else "", array.astype(float)
    if not np.isfinite(array).all():
        raise ValueError(
            f"{place()}: a constant of the widget is {value}: it would show as nonsense on the page"
        )
    if array.ndim == 0:
        return step(graph, "number", data=float(array), sort=sort)
    return step(graph, "array", data=np.ascontiguousarray(array), shape=array.shape, sort=sort)


def row_of(shape: tuple[int, ...], whole: tuple[int, ...]) -> str:
    """The JavaScript index of the operand's number for number ``i`` of a result, if the operand's shape is
    smaller; "" where that is not a plain sum (the operand must then be expanded)."""
    if shape in ((), whole):
        return "i"
    shape = (1,) * (len(whole) - len(shape)) + shape
    wide = [axis for axis, length in enumerate(shape) if length > 1]
    first, last = (wide[0], wide[-1] + 1) if wide else (0, 0)
    if shape[first:last] != whole[first:last]:
        return ""
    after, size = int(np.prod(whole[last:])), int(np.prod(shape))
    row = f"(i/{after}|0)" if after > 1 else "i"
    return "0" if size == 1 else row if size * after == int(np.prod(whole)) else f"{row}%{size}"


def elementwise(graph: Graph, operation: Operation, values: Sequence[Real]) -> Symbol:
    """An operation on each number of some arrays, which are broadcast."""
    symbols = [lift(graph, v) for v in values]
    sort, function = sort_of(values, symbols), operation.function
    if operation.truths == ONLY_TRUTHS and sort != "truth":
        refuse(f"{operation.name} (&, |, ~) on numbers", "compare them first: (x > 0) & (y > 0), x != 0")
    if operation.truths == NO_TRUTHS and sort == "truth":
        refuse(f"{operation.name} on truths alone, which numpy does not count as 0 and 1,", AS_NUMBERS)
    if sort and function in OTHERWISE_OF_WHOLE:
        refuse(f"{operation.name} of whole numbers alone", "multiply one by 1.0")
    if operation.gives_truth:
        sort = "truth"
    elif function not in (STAYS_TRUTH if sort == "truth" else STAYS_WHOLE):
        sort = ""
    return mapped(graph, operation.written, symbols, sort)


def mapped(graph: Graph, template: str, symbols: list[Symbol], sort: str) -> Symbol:
    """A JavaScript expression applied to each number of some arrays."""
    shape = np.broadcast_shapes(*(s.shape for s in symbols))
    rows = [row_of(s.shape, shape) for s in symbols]
    aligned = [numpy.broadcast_to(s, shape) if row == "" else s for s, row in zip(symbols, rows)]
    data = template, tuple(row or "i" for row in rows)
    return step(graph, "map", [s.id for s in aligned], data, shape, sort)


def gathered(graph: Graph, sources: list[Symbol], index: np.ndarray) -> Symbol:
    """Numbers picked from the concatenated sources."""
    only = sources[0] if len(sources) == 1 else None
    if only is not None and only.shape == index.shape and (index.ravel() == np.arange(index.size)).all():
        return only
    sort = sort_of(sources, sources)
    return step(graph, "gather", [s.id for s in sources], np.array(index, dtype=np.int64), index.shape, sort)


def restructured(
    graph: Graph, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Symbol:
    """Numbers moved around: the function is run on their indices."""
    sources: list[Symbol] = []
    begins = [0]  # of each source in the concatenation

    def places(value: Real) -> np.ndarray:
        source = lift(graph, value)
        sources.append(source)
        begins.append(begins[-1] + source.size)
        return np.arange(begins[-2], begins[-1]).reshape(source.shape)

    named = given(function, args, named, STRUCTURAL[function], STRUCTURAL[function])
    moved = [places(v) for v in args[0]] if isinstance(args[0], (list, tuple)) else places(args[0])
    if "values" in named:
        named["values"] = places(named["values"])
    ordered = [named[name] for name in STRUCTURAL[function] if name in named]  # np.reshape's had other names
    return gathered(graph, sources, np.asarray(function(moved, *ordered)))


def given(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    named: dict[str, Any],
    by_place: Sequence[str],
    by_name: Sequence[str],
) -> dict[str, Any]:
    """The arguments of a numpy function after its array, by name; those that are not translated are
    refused."""
    unknown = [name for name in named if name not in by_name]
    if unknown:
        refuse(
            f"{', '.join(unknown)}= of {name_of(function)}",
            f"it takes {', '.join(by_name) or 'no name'} here",
        )
    if len(args) > 1 + len(by_place):
        refuse(f"{name_of(function)} with {len(args)} arguments", f"it takes {1 + len(by_place)} here")
    return dict(zip(by_place, args[1:])) | named


def axis_of(axis: Any, ndim: int) -> int:
    """The index of an axis, counted from the first."""
    if not isinstance(axis, (int, np.integer)):
        refuse(f"axis={axis!r}", "reduce along one axis after the other")
    return normalize_axis_index(int(axis), ndim)


def reduced(function: Callable[..., Any], value: Symbol, options: dict[str, Any]) -> Symbol:
    """One number for each row along an axis, or one for all."""
    operation, unknown = REDUCTIONS[function], set(options) - {"axis", "keepdims"}
    if unknown:
        refuse(f"{', '.join(unknown)}= of {operation.name}", "it takes axis, keepdims here")
    if operation.truths == ONLY_TRUTHS and not value.truth:
        refuse(f"{operation.name} of numbers", f"compare them first: {operation.name}(x != 0)")
    axis, keepdims = options.get("axis"), bool(options.get("keepdims"))
    whole = value
    if axis is None:
        value, axis = numpy.ravel(value), 0
    axis = axis_of(axis, value.ndim)
    rows = numpy.moveaxis(value, axis, -1)
    if not rows.shape[-1]:
        refuse(f"{operation.name} of no numbers")
    stays = operation.gives_truth or function in STAYS_TRUTH
    counts = value.sort or function in (np.argmax, np.argmin)
    sort = value.sort if stays else "whole" if counts else ""
    out = step(value.graph, "reduce", [rows.id], (operation.written, rows.shape[-1]), rows.shape[:-1], sort)
    if keepdims:
        return (
            numpy.reshape(out, (1,) * whole.ndim)
            if options.get("axis") is None
            else numpy.expand_dims(out, axis)
        )
    return out


class Functions:
    """The numpy functions that are neither elementwise, nor reductions, nor move numbers; each gets the graph
    and the array."""

    @staticmethod
    def where(graph: Graph, condition: Real, x: Real = None, y: Real = None) -> Symbol:
        if x is None or y is None:
            refuse("np.where with a condition alone", "give both values")
        symbols = [lift(graph, value) for value in (condition, x, y)]
        sort = sort_of((x, y), symbols[1:])
        return mapped(graph, WHERE if symbols[0].truth else WHERE_NOT_ZERO, symbols, sort)

    @staticmethod
    def clip(
        _graph: Graph,
        value: Symbol,
        a_min: Real = None,
        a_max: Real = None,
        min: Real = None,
        max: Real = None,
    ) -> Symbol:
        low, high = a_min if min is None else min, a_max if max is None else max
        value = value if low is None else numpy.maximum(value, low)
        return value if high is None else numpy.minimum(value, high)

    @staticmethod
    def mean(graph: Graph, value: Real, axis: int | None = None, keepdims: bool = False) -> Symbol:
        value = lift(graph, value)
        count = value.size if axis is None else value.shape[axis_of(axis, value.ndim)]
        return numpy.sum(value, axis=axis, keepdims=keepdims) / count

    @staticmethod
    def cumsum(graph: Graph, value: Real, axis: int | None = None) -> Symbol:
        value = lift(graph, value)
        if axis is None:
            value, axis = numpy.ravel(value), 0
        axis = axis_of(axis, value.ndim)
        rows = numpy.moveaxis(value, axis, -1)
        sort = "whole" if value.sort else ""
        return numpy.moveaxis(step(graph, "scan", [rows.id], rows.shape[-1], rows.shape, sort), -1, axis)

    @staticmethod
    def linspace(graph: Graph, start: Real, stop: Real, num: Any = 50) -> Symbol:
        if not isinstance(num, int) or num < 1 or np.shape(start) or np.shape(stop):
            refuse(
                "np.linspace between arrays, or with a number of steps that is not known", "give two numbers"
            )
        if num == 1:
            return numpy.stack([start])
        rising = np.arange(num - 1) * ((stop - start) / (num - 1)) + start
        return numpy.append(rising, stop)

    @staticmethod
    def take(_graph: Graph, table: Real, indices: Real) -> Real:
        return lookup(table, indices)

    @staticmethod
    def full_like(graph: Graph, like: Symbol, fill_value: Real) -> Real:
        if like.truth:
            refuse("a column like one of truths", AS_NUMBERS)
        if isinstance(fill_value, Symbol):
            return np.broadcast_to(fill_value, like.shape)
        return np.full(like.shape, float(fill_value))

    @staticmethod
    def zeros_like(graph: Graph, like: Symbol) -> Real:
        return Functions.full_like(graph, like, 0.0)

    @staticmethod
    def ones_like(graph: Graph, like: Symbol) -> Real:
        return Functions.full_like(graph, like, 1.0)

    @staticmethod
    def shape(graph: Graph, value: Real) -> tuple[int, ...]:
        return lift(graph, value).shape

    @staticmethod
    def ndim(graph: Graph, value: Real) -> int:
        return lift(graph, value).ndim

    @staticmethod
    def size(graph: Graph, value: Real) -> int:
        return lift(graph, value).size


def table(row: Symbol, values: np.ndarray) -> Symbol:
    """The row of a table that a symbol selects; equal tables are stored once."""
    start = row.graph.start_of_table(values)
    return step(row.graph, "table", [row.id], (start, values.shape[1]), (values.shape[1],))


def outputs_of(graph: Graph, run: Program, args: Iterable[Real]) -> dict[str, Symbol]:
    """Each output of a whole algorithm as a symbol; arrays have the algorithm's maximum length."""
    symbols = [lift(graph, arg) for arg in args]
    if any(symbol.ndim > 1 for symbol in symbols):
        refuse(f"a table given to {run.__name__}()", "give each of its rows as an argument")
    called = graph.add("program", [symbol.id for symbol in symbols], run)
    return {
        name: step(graph, "output", [called], name, () if length == () else (length,))
        for name, length in run.outputs.items()
    }


def searched(
    graph: Graph,
    rows: dict[str, Real],
    dimensions: list[dict[str, Iterable[float]]],
    measure: Callable[..., Any],
) -> dict[str, Any]:
    """The contests of ``engine.base.sweep.sweep`` as symbols: the measure is run once, on symbols for the
    loops' values."""
    point = {
        name: step(graph, "loop", data=(axis, name))
        for axis, columns in enumerate((rows, *dimensions))
        for name in columns
    }
    conditions, contests = measure(point)
    for condition in (*conditions, *(part for _, part, *_ in contests.values())):
        if not lift(graph, condition).truth:
            refuse("a condition of a search that is a number", "compare it: x != 0")
    columns = {name: lift(graph, column) for name, column in rows.items()}
    shape = next(iter(columns.values())).shape
    sweep = Sweep(
        shape[0],
        tuple((name, column.id) for name, column in columns.items()),
        tuple(
            tuple((name, tuple(map(float, values))) for name, values in dimension.items())
            for dimension in dimensions
        ),
        tuple(lift(graph, condition).id for condition in conditions),
        tuple(
            Contest(
                name, tuple(lift(graph, value).id for value in (cost, part, *grouping[:1])), *grouping[1:]
            )
            for name, (cost, part, *grouping) in contests.items()
        ),
    )
    node = graph.add("sweep", [column.id for column in columns.values()], sweep)

    def result(contest: Contest) -> Least | Grouped:
        kind, length = (Grouped, (contest.groups,)) if contest.groups else (Least, shape)
        return kind(
            *(step(graph, "output", [node], f"{contest.name}_{what}", length) for what in kind._fields)
        )

    return {contest.name: result(contest) for contest in sweep.contests}


def lookup(table: Real, index: Real) -> Real:
    """The entry of a table of numbers at an index that may be a symbol (np.take dispatches on its table only,
    not on its index)."""
    symbol = next((v for v in (table, index) if isinstance(v, Symbol)), None)
    if symbol is None:
        return np.asarray(table)[np.asarray(index, dtype=int)]
    table, index = lift(symbol.graph, table), lift(symbol.graph, index)
    if table.ndim != 1:
        refuse(f"an entry of a table of shape {table.shape}", "look a number up in a single row")
    if index.truth:
        refuse("an index of truths", "np.where picks")
    return step(symbol.graph, "take", [table.id, index.id], "any index", index.shape, table.sort)


# -- one of several things -----------------------------------------------------------------------------------
class Picked:
    """One of several things (a GPU, a recipe), still unknown which: reading an attribute gives a symbol over
    all of them."""

    __slots__ = ("_graph", "_index", "_options")

    def __init__(self, graph: Graph, index: Symbol, options: list[Any]) -> None:
        self._graph, self._index, self._options = graph, index, options

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        values = [getattr(option, name) for option in self._options]
        if callable(values[0]):
            return lambda *args, **named: self._call(name, args, named)
        return merge(self._graph, self._index, values)

    def _call(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return over(lambda option, *rest: getattr(option, name)(*rest, **named), self, *args)

    def __each__(self, function: Callable[[Any], Any]) -> Any:
        return over(function, self)

    def __eq__(self, other: object) -> NoReturn:
        raise NotTranslatable(
            f"{place()}: a choice cannot be compared on the page; read a numeric attribute of it"
        )

    __bool__ = lambda self: True


def merge(
    graph: Graph, index: Symbol, values: list[Any]
) -> Symbol | Picked | Text | Texts | tuple[Any, ...] | None:
    """One value for each option, joined into what the chosen option has. The index is always that of an
    option, so the page need not check it."""
    if all(isinstance(v, (str, Text)) for v in values):
        return texts.picked(index, values)
    if all(v is None for v in values):
        return None
    if all(type(v) is tuple for v in values) and len({len(v) for v in values}) == 1:
        return tuple(merge(graph, index, list(column)) for column in zip(*values))
    if not any(isinstance(v, Symbol) for v in values):
        if not all(isinstance(v, (int, float, bool, np.number, np.ndarray)) for v in values):
            return Picked(graph, index, values)
        rows = lift(graph, np.stack([np.asarray(v) for v in values]))
    elif sum(isinstance(v, Symbol) for v in values) == 1 and len(values) > 2:  # one of one's own, say
        place = next(i for i, v in enumerate(values) if isinstance(v, Symbol))
        known = merge(graph, index, [values[place - 1] if i == place else v for i, v in enumerate(values)])
        return numpy.where(index == place, values[place], known)
    else:
        rows = numpy.stack([lift(graph, v) for v in values])
    if rows.ndim == 1:
        return step(graph, "take", [rows.id, index.id], None, index.shape, rows.sort)
    width = rows.size // rows.shape[0]
    return step(graph, "row", [rows.id, index.id], width, rows.shape[1:], rows.sort)


def over(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function for every option of each argument that is a choice, and join the results."""
    for position, arg in enumerate(args):
        if isinstance(arg, Picked):
            results = [
                over(function, *args[:position], option, *args[position + 1 :]) for option in arg._options
            ]
            return merge(arg._graph, arg._index, results)
    return function(*args)
