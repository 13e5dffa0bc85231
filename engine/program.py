"""Algorithms as plain loops: ordinary Python here, and written in so small a part of it that a page can run them too.

``@program(start_s=512, total_s=())`` marks a function that gives a dict of just these names: lists of at most so many
numbers, or ``()`` for a single one. Called with numbers and arrays it gives arrays, short ones filled up with NaN.
An argument that only stands for a number (it has ``__run_program__``) is asked what to do instead: that is how the
widgets' compiler takes the whole algorithm along.

The part of Python: assignments, if, while, for over range() or a list, arithmetic, comparisons, and, or, not,
conditional expressions, min, max, abs, int, float, round, len, math.*, bisect_left, ``zeros(n)``, ``full(n, value)``,
lists with ``append``, ``pop``, ``insert`` and ``remove``, and calls of other functions like that. Whole numbers from a
slider are floats: take ``int(n)``.
"""

from __future__ import annotations

from functools import lru_cache, wraps

import numpy as np


def program(here=None, /, **outputs):
    """Mark a function as an algorithm with these outputs; see above.

    ``here`` is the same over numpy's arrays, for the few algorithms whose loops are too long for Python: it runs here, and
    the loops in the page. A test holds one against the other. The last few runs are remembered, since every part and readout of a widget asks for the same one: the arrays that
    come out are not to be written to.
    """
    def mark(algorithm):
        @lru_cache(maxsize=8)
        def remembered(*written):
            return _filled(algorithm.__name__, outputs, (here or algorithm)(*map(_read, written)))

        @wraps(algorithm)
        def run(*args):
            for arg in args:
                if hasattr(type(arg), "__run_program__"):
                    return arg.__run_program__(run, args)
            return dict(remembered(*map(_written, args)))
        run.algorithm, run.outputs = algorithm, outputs
        return run
    return mark


def zeros(count) -> list[float]:
    """So many zeros."""
    return [0.0] * int(count)


def full(count, value) -> list[float]:
    """So many times the same number."""
    return [value] * int(count)


def _written(arg) -> tuple:
    """An argument as bytes, which are hashed at once: a run is found again by them."""
    array = np.asarray(arg)
    return array.dtype.str, array.shape, array.tobytes()


def _read(written: tuple):
    """It again, as Python's own numbers, over which loops are several times faster than over numpy's; a list is a new one,
    which the algorithm may write to."""
    kind, shape, data = written
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
            raise ValueError(f"{output} of {name} must have at most {length} numbers, got {len(values[output])}")
        found[output] = np.full(length, np.nan)
        found[output][:len(values[output])] = values[output]
        found[output].setflags(write=False)
    return found
