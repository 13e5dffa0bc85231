"""Algorithms as plain loops: ordinary Python, in a subset so small that a page can run them too.

``@program(start_s=512, total_s=())`` marks a function that returns a dict of exactly these names: lists of at
most that many numbers, or ``()`` for a single number. Called with numbers and arrays it returns arrays, the
short ones padded with NaN. An argument that is a symbol (it has ``__run_program__``) takes over the call
instead, which is how the widgets' compiler carries the whole algorithm into the page.

``@elementwise`` marks a function of numbers or arrays, which a program may call for numbers.

widgets/kit/compiler/GRAMMAR.md says which subset of Python that is, and what each operation means to the last
bit. Every argument is a float or a list of floats, so write ``int(n)`` to use one as a count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Protocol

import numpy as np


class Program(Protocol):
    """A marked algorithm: it can be called with numbers and arrays, and a compiler can translate it."""

    __name__: str
    algorithm: Callable[..., dict[str, Any]]
    outputs: dict[str, Any]

    def __call__(self, *args: Any) -> dict[str, Any]:
        """The algorithm's outputs by name, for these arguments."""
        ...


def program(
    twin: Callable[..., dict[str, Any]] | None = None, /, **outputs: int | tuple[Any, ...]
) -> Callable[[Callable[..., dict[str, Any]]], Program]:
    """Mark a function as an algorithm with these outputs; see the module's docstring.

    ``twin`` is the same algorithm over numpy arrays, for the few algorithms whose loops are too slow in
    Python: Python runs the twin, the page runs the loops, and a test compares the two. The last few results
    are remembered, since every part and readout of a widget asks for the same one, so the returned arrays
    must not be written to.
    """

    def mark(algorithm: Callable[..., dict[str, Any]]) -> Program:
        @lru_cache(maxsize=8)
        def remembered(*keys):
            return _filled(algorithm.__name__, outputs, (twin or algorithm)(*map(_restored, keys)))

        @wraps(algorithm)
        def run(*args):
            for arg in args:
                if hasattr(type(arg), "__run_program__"):
                    return arg.__run_program__(run, args)
            return dict(remembered(*map(_key, args)))

        marked: Any = run
        marked.algorithm, marked.outputs = algorithm, outputs
        return marked

    return mark


def in_page(loops: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function over arrays that a page replaces by the given loops, which take and return the same
    numbers as lists."""

    def mark(arrays: Callable[..., Any]) -> Callable[..., Any]:
        arrays.in_page = loops  # type: ignore[attr-defined]
        return arrays

    return mark


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of numbers or arrays that computes element by element, with numpy's operators and
    functions. A program calls it for numbers; it then computes as numpy does, where nothing raises."""
    function.elementwise = True  # type: ignore[attr-defined]
    return function


def for_each(function: Callable[..., Any], columns: tuple[Any, ...], *others: Any) -> Any:
    """An elementwise function of the members of some columns, each with the same ``others``. A column of a
    program is a list; in Python it is an array whose first dimension belongs to the column alone."""
    return function(*columns, *others)


def mean(column: Any) -> Any:
    """The mean of a column, as of ``for_each``."""
    return np.mean(np.ascontiguousarray(np.moveaxis(column, 0, -1)), axis=-1)


def zeros(count: float) -> list[Any]:
    """A list of this many zeros."""
    return [0.0] * int(count)


def full(count: float, value: float) -> list[Any]:
    """A list of this many copies of a number."""
    return [value] * int(count)


def _key(arg) -> tuple:
    """An argument as bytes, the key under which a result is remembered. Whole numbers become floats, as they
    are in the page."""
    array = np.asarray(arg, dtype=float)
    return array.dtype.str, array.shape, array.tobytes()


def _restored(key: tuple):
    """The argument restored from its key, as Python's own numbers: loops run over these several times faster
    than over numpy's. A list is a new one, so the algorithm may write to it."""
    kind, shape, data = key
    return np.frombuffer(data, kind).reshape(shape).tolist()


def _filled(name: str, outputs: dict, values: dict) -> dict:
    if values.keys() != outputs.keys():
        raise ValueError(f"{name} must give {', '.join(outputs)}; got {', '.join(values)}")
    found = {}
    for output, length in outputs.items():
        if length == ():
            found[output] = float(values[output])
            continue
        if len(values[output]) > length:
            raise ValueError(
                f"{output} of {name} must have at most {length} numbers, got {len(values[output])}"
            )
        found[output] = np.full(length, np.nan)
        found[output][: len(values[output])] = values[output]
        found[output].setflags(write=False)
    return found
