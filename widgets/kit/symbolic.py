"""Symbols that stand for numbers not known yet, so that Python code can be run once and kept as a graph.

A widget's methods call the engine. Run on ordinary numbers they give values; run on symbols they give a graph of what
they would compute, which ``javascript.py`` writes out for the page without a server. So no formula is written twice.

A symbol behaves like a numpy array of a known shape: arithmetic, ufuncs and the array functions below extend the graph.
What cannot be kept (a Python ``if`` on a symbol, ``float(symbol)``, ``np.asarray(symbol)``) raises and says what to use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

UNARY = {
    np.negative: "(-{})", np.absolute: "Math.abs({})", np.sqrt: "Math.sqrt({})", np.exp: "Math.exp({})",
    np.log: "Math.log({})", np.log2: "Math.log2({})", np.log10: "Math.log10({})", np.log1p: "Math.log1p({})",
    np.expm1: "Math.expm1({})", np.ceil: "Math.ceil({})", np.floor: "Math.floor({})", np.rint: "rint({})",
    np.sin: "Math.sin({})", np.cos: "Math.cos({})", np.tanh: "Math.tanh({})", np.sign: "Math.sign({})",
    np.square: "square({})", np.reciprocal: "(1/{})", np.positive: "{}",
}
BINARY = {
    np.add: "({}+{})", np.subtract: "({}-{})", np.multiply: "({}*{})", np.divide: "({}/{})",
    np.power: "Math.pow({},{})", np.float_power: "Math.pow({},{})", np.floor_divide: "Math.floor({}/{})",
    np.remainder: "mod({},{})", np.minimum: "Math.min({},{})", np.maximum: "Math.max({},{})",
    np.hypot: "Math.hypot({},{})", np.arctan2: "Math.atan2({},{})",
}
BOOLEAN = {
    np.less: "({}<{})", np.less_equal: "({}<={})", np.greater: "({}>{})", np.greater_equal: "({}>={})",
    np.equal: "({}=={})", np.not_equal: "({}!={})", np.logical_and: "({}&&{})", np.bitwise_and: "({}&&{})",
    np.logical_or: "({}||{})", np.bitwise_or: "({}||{})", np.logical_not: "(!{})", np.invert: "(!{})",
    np.isfinite: "Number.isFinite({})",
}
WHERE = "({}?{}:{})"
REDUCTIONS = {np.sum: "sum", np.prod: "prod", np.max: "max", np.min: "min", np.any: "max", np.all: "min",
              np.argmax: "argmax", np.argmin: "argmin"}
# functions that only move numbers about: run on index arrays, they say where each number of the result comes from
STRUCTURAL = {np.stack, np.concatenate, np.reshape, np.ravel, np.transpose, np.broadcast_to, np.repeat, np.tile, np.roll,
              np.flip, np.expand_dims, np.squeeze, np.atleast_1d, np.hstack, np.vstack, np.column_stack, np.moveaxis,
              np.swapaxes, np.atleast_2d, np.append}
MARK = re.compile("\ue000(\\d+)\ue001")


class NotTraceable(TypeError):
    """A widget or an engine function did something with a symbol that cannot be written out for the page."""


@dataclass(frozen=True)
class Node:
    """One step of the graph: an operation on earlier nodes, and the shape of what it gives."""

    op: str
    args: tuple[int, ...] = ()
    data: object = None
    shape: tuple[int, ...] = ()


def place_in(shape: tuple[int, ...], whole: tuple[int, ...]) -> str:
    """Where number ``i`` of a result finds its own in an operand of a smaller shape, written out; "" where that is no plain
    sum (the operand must be laid out in full)."""
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


@dataclass
class Graph:
    """Every step once: two equal steps are the same node."""

    nodes: list[Node] = field(default_factory=list)
    known: dict = field(default_factory=dict)
    tables: list[np.ndarray] = field(default_factory=list)  # laid end to end in one file beside the module
    results: dict = field(default_factory=dict)             # what a widget's methods gave, by name

    def add(self, op, args=(), data=None, shape=()) -> int:
        fingerprint = data.tobytes() if isinstance(data, np.ndarray) else data
        key = (op, tuple(args), fingerprint, shape)
        if key not in self.known:
            self.known[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(args), data, shape))
        return self.known[key]

    def symbol(self, op, args=(), data=None, shape=()) -> Symbol:
        return Symbol(self, self.add(op, args, data, tuple(shape)), tuple(shape))

    def control(self, name: str) -> Symbol:
        return self.symbol("control", data=name)

    def lift(self, value) -> Symbol:
        """A symbol for any number or array (a list of symbols is stacked)."""
        if isinstance(value, Symbol):
            return value
        if isinstance(value, (list, tuple)) and any(isinstance(v, (Symbol, list, tuple)) for v in value):
            return np.stack([self.lift(v) for v in value])
        array = np.asarray(value, dtype=float)
        if array.ndim == 0:
            return self.symbol("number", data=float(array))
        return self.symbol("array", data=np.ascontiguousarray(array), shape=array.shape)

    def elementwise(self, template: str, values) -> Symbol:
        symbols = [self.lift(v) for v in values]
        shape = np.broadcast_shapes(*(s.shape for s in symbols))
        places = [place_in(s.shape, shape) for s in symbols]
        aligned = [np.broadcast_to(s, shape) if place == "" else s for s, place in zip(symbols, places)]
        return self.symbol("map", [s.id for s in aligned], (template, tuple(place or "i" for place in places)), shape)

    def gather(self, sources, index: np.ndarray) -> Symbol:
        """Numbers picked from the sources laid end to end."""
        if len(sources) == 1 and sources[0].shape == index.shape and (index.ravel() == np.arange(index.size)).all():
            return sources[0]
        return self.symbol("gather", [s.id for s in sources], np.array(index, dtype=np.int64), index.shape)

    def reduce(self, how: str, value: Symbol, axis, keepdims=False) -> Symbol:
        if axis is None:
            value, axis = np.ravel(value), 0
        axis = axis % value.ndim
        rows = np.moveaxis(value, axis, -1)
        kept = rows.shape[:-1]
        out = self.symbol("reduce", [rows.id], (how, rows.shape[-1]), kept)
        return np.expand_dims(out, axis) if keepdims else out

    def cumsum(self, value: Symbol, axis) -> Symbol:
        axis = (0 if axis is None else axis) % value.ndim
        rows = np.moveaxis(value, axis, -1)
        return np.moveaxis(self.symbol("scan", [rows.id], rows.shape[-1], rows.shape), -1, axis)

    def table(self, row: Symbol, values: np.ndarray) -> Symbol:
        """The row of a table that a symbol picks; equal tables are kept once."""
        start = 0
        for kept in self.tables:
            if kept.shape == values.shape and np.array_equal(kept, values, equal_nan=True):
                break
            start += kept.size
        else:
            self.tables.append(values)
        return self.symbol("table", [row.id], (start, values.shape[1]), (values.shape[1],))

    def program(self, run, args) -> dict:
        """Each output of a whole algorithm as a symbol; arrays are as long as the algorithm says at most."""
        called = self.add("program", [self.lift(arg).id for arg in args], run)
        return {name: self.symbol("output", [called], name, () if length == () else (length,))
                for name, length in run.outputs.items()}

    # -- text -------------------------------------------------------------------------------------------------------
    def text(self, value) -> Text:
        """A text node for a string, in which texts that stood in an f-string are found again by their marks."""
        if isinstance(value, Text):
            return value
        pieces = MARK.split(str(value))
        if len(pieces) == 1:
            return Text(self, self.add("words", data=pieces[0]))
        ids = [int(p) if i % 2 else self.add("words", data=p) for i, p in enumerate(pieces) if p != ""]
        return Text(self, self.add("join", ids))

    def shown(self, value: Symbol, how: str, unit: str, digits: int) -> Text | Texts:
        shown = self.add("show", [value.id], (how, unit, digits), value.shape)
        return Texts(self, shown, value.shape) if value.shape else Text(self, shown)

    def picked(self, index: Symbol, texts) -> Text | Texts:
        picked = self.add("pick_text", [index.id, *(self.text(t).id for t in texts)], None, index.shape)
        return Texts(self, picked, index.shape) if index.shape else Text(self, picked)

    def texts(self, known: list[str]) -> Texts:
        """A column of texts that are the same in every state."""
        return Texts(self, self.add("texts", data=tuple(known), shape=(len(known),)), (len(known),))

    def phrased(self, pieces) -> Texts:
        """Texts row by row, from pieces that are texts for each row or one for all."""
        pieces = [piece if isinstance(piece, Texts) else self.texts(piece) if isinstance(piece, list) else self.text(piece)
                  for piece in pieces]
        shape = next(piece.shape for piece in pieces if isinstance(piece, Texts))
        return Texts(self, self.add("phrase", [piece.id for piece in pieces], None, shape), shape)


class Symbol:
    """A number or an array of numbers that is not known yet."""

    __slots__ = ("graph", "id", "shape")
    __array_priority__ = 1000

    def __init__(self, graph: Graph, node_id: int, shape=()):
        self.graph, self.id, self.shape = graph, node_id, shape

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    T = property(lambda self: np.transpose(self))

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        template = UNARY.get(ufunc) or BINARY.get(ufunc) or BOOLEAN.get(ufunc)
        if method == "reduce" and ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and):
            how = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min",
                   np.logical_or: "max", np.logical_and: "min"}[ufunc]
            return self.graph.reduce(how, inputs[0], kwargs.get("axis", 0), kwargs.get("keepdims", False))
        if method != "__call__" or template is None:
            raise NotTraceable(f"np.{ufunc.__name__} ({method}) cannot be written out for the page; "
                               "add it to widgets/kit/symbolic.py")
        return self.graph.elementwise(template, inputs)

    def __run_sweep__(self, rows, dimensions, measure):
        from widgets.kit import sweep
        return sweep.traced(self.graph, rows, dimensions, measure)

    def __pick__(self, things):
        return Picked(self.graph, self, list(things))

    def __run_program__(self, run, args):
        return self.graph.program(run, args)

    def __array_function__(self, func, types, args, kwargs):
        graph = self.graph
        if func is np.where and len(args) == 3:
            return graph.elementwise(WHERE, args)
        if func is np.clip:
            low, high = (*args[1:], *(kwargs.get(k) for k in ("a_min", "a_max") if k in kwargs))[:2]
            return np.minimum(np.maximum(args[0], low), high)
        if func in REDUCTIONS:
            axis = args[1] if len(args) > 1 else kwargs.get("axis")
            return graph.reduce(REDUCTIONS[func], graph.lift(args[0]), axis, kwargs.get("keepdims", False))
        if func is np.mean:
            axis = args[1] if len(args) > 1 else kwargs.get("axis")
            return np.sum(args[0], axis=axis) / (args[0].size if axis is None else args[0].shape[axis])
        if func is np.cumsum:
            return graph.cumsum(graph.lift(args[0]), args[1] if len(args) > 1 else kwargs.get("axis"))
        if func in (np.zeros_like, np.ones_like, np.full_like):
            fill = {np.zeros_like: 0.0, np.ones_like: 1.0}.get(func, args[1] if len(args) > 1 else None)
            return np.broadcast_to(graph.lift(fill), args[0].shape) if isinstance(fill, Symbol) else np.full(args[0].shape, fill)
        if func is np.broadcast_arrays:
            shape = np.broadcast_shapes(*(np.shape(a) for a in args))
            return [np.broadcast_to(graph.lift(a), shape) for a in args]
        if func is np.shape:
            return args[0].shape
        if func is np.ndim:
            return args[0].ndim
        if func is np.size:
            return args[0].size
        if func is np.linspace:
            start, stop, count = (*args, *(() if len(args) > 2 else (kwargs.get("num", 50),)))[:3]
            return start + (stop - start) * (np.arange(count) / (count - 1))
        if func is np.take:
            return lookup(args[0], args[1])
        if func in STRUCTURAL:
            return self._restructure(func, args, kwargs)
        raise NotTraceable(f"np.{func.__name__} cannot be written out for the page; add it to widgets/kit/symbolic.py")

    def _restructure(self, func, args, kwargs):
        sources: list[Symbol] = []

        def place(value):
            source = self.graph.lift(value)
            offset = sum(s.size for s in sources)
            sources.append(source)
            return (offset + np.arange(source.size)).reshape(source.shape)

        first, *rest = args
        moved = [place(v) for v in first] if isinstance(first, (list, tuple)) else place(first)
        if func is np.append:
            rest[0] = place(rest[0])
        return self.graph.gather(sources, np.asarray(func(moved, *rest, **kwargs)))

    def __getitem__(self, key):
        if isinstance(key, Symbol):
            return lookup(self, key)
        index = np.arange(self.size).reshape(self.shape)[key]
        return self.graph.gather([self], np.asarray(index))

    def __iter__(self):
        if not self.shape:
            raise NotTraceable("a single symbol cannot be iterated")
        return (self[i] for i in range(self.shape[0]))

    def __len__(self):
        return self.shape[0]

    def sum(self, axis=None, keepdims=False): return self.graph.reduce("sum", self, axis, keepdims)
    def max(self, axis=None, keepdims=False): return self.graph.reduce("max", self, axis, keepdims)
    def min(self, axis=None, keepdims=False): return self.graph.reduce("min", self, axis, keepdims)
    def any(self, axis=None): return self.graph.reduce("max", self, axis)
    def all(self, axis=None): return self.graph.reduce("min", self, axis)
    def reshape(self, *shape): return np.reshape(self, shape[0] if len(shape) == 1 else shape)
    def ravel(self): return np.ravel(self)
    def astype(self, _dtype): return self

    def __add__(self, other): return np.add(self, other)
    def __radd__(self, other): return np.add(other, self)
    def __sub__(self, other): return np.subtract(self, other)
    def __rsub__(self, other): return np.subtract(other, self)
    def __mul__(self, other): return np.multiply(self, other)
    def __rmul__(self, other): return np.multiply(other, self)
    def __truediv__(self, other): return np.divide(self, other)
    def __rtruediv__(self, other): return np.divide(other, self)
    def __floordiv__(self, other): return np.floor_divide(self, other)
    def __rfloordiv__(self, other): return np.floor_divide(other, self)
    def __mod__(self, other): return np.remainder(self, other)
    def __rmod__(self, other): return np.remainder(other, self)
    def __pow__(self, other): return np.square(self) if isinstance(other, int) and other == 2 else np.power(self, other)
    def __rpow__(self, other): return np.power(other, self)
    def __neg__(self): return np.negative(self)
    def __abs__(self): return np.absolute(self)
    def __lt__(self, other): return np.less(self, other)
    def __le__(self, other): return np.less_equal(self, other)
    def __gt__(self, other): return np.greater(self, other)
    def __ge__(self, other): return np.greater_equal(self, other)
    def __eq__(self, other): return np.equal(self, other)
    def __ne__(self, other): return np.not_equal(self, other)
    def __and__(self, other): return np.logical_and(self, other)
    def __rand__(self, other): return np.logical_and(other, self)
    def __or__(self, other): return np.logical_or(self, other)
    def __ror__(self, other): return np.logical_or(other, self)
    def __invert__(self): return np.logical_not(self)
    __hash__ = None

    def _refuse(self, what: str, instead: str):
        raise NotTraceable(f"{what} on a control's value cannot be written out for the page; use {instead}")

    def __bool__(self): self._refuse("a Python if, and, or, not, min or max", "np.where, &, |, ~, np.minimum or np.maximum")
    def __float__(self): self._refuse("float() or math.*", "numpy's functions")
    def __int__(self): self._refuse("int()", "np.floor")
    def __index__(self): self._refuse("an index or range()", "lookup(table, index)")
    def __round__(self, *_): self._refuse("round()", "np.rint")
    def __format__(self, _spec): self._refuse("number formatting in an f-string", "show(value, family)")
    __str__ = lambda self: self._refuse("str()", "show(value, family)")  # noqa: E731
    __repr__ = lambda self: f"<Symbol {self.id} of shape {self.shape}>"  # noqa: E731

    def __array__(self, *_, **__): self._refuse("np.asarray or np.array", "np.stack, or leave the value as it is")


def lookup(table, index):
    """The entry of a table of numbers at an index that may be a symbol (np.take asks its table alone, not its index)."""
    known = next((v for v in (table, index) if isinstance(v, Symbol)), None)
    if known is None:
        return np.asarray(table)[np.asarray(index, dtype=int)]
    table, index = known.graph.lift(table), known.graph.lift(index)
    return known.graph.symbol("take", [table.id, index.id], None, index.shape)


class Text:
    """A piece of text that is not known yet; in an f-string it leaves a mark by which it is found again."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: Graph, node_id: int):
        self.graph, self.id = graph, node_id

    def __str__(self): return f"\ue000{self.id}\ue001"
    def __format__(self, _spec): return str(self)
    def __add__(self, other): return f"{self}{other}"
    def __radd__(self, other): return f"{other}{self}"

    def __eq__(self, other):
        raise NotTraceable("texts cannot be compared on the page; compare numbers or flags instead")

    __hash__ = None


@dataclass(frozen=True)
class Texts:
    """A text for each row of a column, not known yet."""

    graph: Graph
    id: int
    shape: tuple[int, ...]

    def __str__(self):
        raise NotTraceable("a column of texts stands in no f-string; join it with phrase(…), or show one element")

    def __format__(self, _spec):
        return str(self)


class Picked:
    """One of several things (a GPU, a recipe), not known yet which: reading an attribute gives a symbol over them all."""

    __slots__ = ("_graph", "_index", "_options")

    def __init__(self, graph: Graph, index: Symbol, options: list):
        self._graph, self._index, self._options = graph, index, options

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        values = [getattr(option, name) for option in self._options]
        if callable(values[0]):
            return lambda *args, **kwargs: self._call(name, args, kwargs)
        return merge(self._graph, self._index, values)

    def _call(self, name, args, kwargs):
        return over(lambda option, *rest: getattr(option, name)(*rest, **kwargs), self, *args)

    def __eq__(self, other):
        raise NotTraceable("a choice cannot be compared on the page; read a numeric attribute of it")

    __hash__ = None
    __bool__ = lambda self: True  # noqa: E731


def merge(graph: Graph, index: Symbol, values: list):
    """One value for each option, joined into what the chosen option has."""
    if all(isinstance(v, (str, Text)) for v in values):
        return graph.picked(index, values)
    if all(isinstance(v, (int, float, bool, np.number, np.ndarray)) for v in values):
        table = graph.lift(np.stack([np.asarray(v, dtype=float) for v in values]))
        if table.ndim == 1:
            return lookup(table, index)
        row = table.size // table.shape[0]
        return graph.symbol("row", [table.id, index.id], row, table.shape[1:])
    if any(isinstance(v, Symbol) for v in values):
        symbols = np.stack([graph.lift(v) for v in values])
        row = symbols.size // symbols.shape[0]
        if symbols.ndim == 1:
            return lookup(symbols, index)
        return graph.symbol("row", [symbols.id, index.id], row, symbols.shape[1:])
    if all(v is None for v in values):
        return None
    return Picked(graph, index, values)


def over(function, *args):
    """Call a function for every option of each argument that is a choice, and join what it gives."""
    for position, arg in enumerate(args):
        if isinstance(arg, Picked):
            results = [over(function, *args[:position], option, *args[position + 1:]) for option in arg._options]
            return merge(arg._graph, arg._index, results)
    return function(*args)
