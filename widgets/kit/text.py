"""Words made of numbers: the same calls on real values and on symbols, so that texts need to be written once.

On a column they give a text for each row, as what is said of a mark under the pointer needs it; "" where there is no number.
"""

from __future__ import annotations

import math
import re

import numpy as np

from engine import units
from widgets.kit.symbolic import Symbol, Text, Texts


def show(value, family: str, digits: int = 3):
    """The value with its best scale: show(1.12e12, 'bytes') -> '1.12 TB'."""
    return _shown(value, "human", units.human, family, digits)


def show_in(value, unit: str, digits: int = 3):
    """The value in the unit asked for: show_in(1.12e12, 'GB') -> '1,120 GB'."""
    return _shown(value, "in_unit", units.in_unit, unit, digits)


def plain(value):
    """A whole number in digits alone, as other programs read it."""
    return _shown(value, "plain", units.plain, "", 0)


def _shown(value, how: str, write, unit: str, digits: int):
    if isinstance(value, Symbol):
        return value.graph.shown(value, how, unit, digits)
    if np.ndim(value):
        return ["" if math.isnan(v) else write(v, unit, digits) for v in np.asarray(value, dtype=float).tolist()]
    return write(float(value), unit, digits)


def choose(condition, yes, no):
    """``yes`` where the condition holds, else ``no``; both texts are made either way."""
    return select(condition, [no, yes])


def select(index, texts):
    """The text at an index."""
    if isinstance(index, Symbol):
        return index.graph.picked(index, texts)
    if np.ndim(index):
        named = [str(text) for text in texts]
        return ["" if math.isnan(i) else named[int(i)] for i in np.asarray(index, dtype=float).tolist()]
    chosen = texts[int(index)]
    return chosen if isinstance(chosen, Text) else str(chosen)


def phrase(template: str, **texts):
    """A text for each row: phrase("{kind} of micro-batch {n}", kind=select(…), n=show(column, "count"))."""
    parts = re.split(r"{(\w+)}", template)
    pieces = [texts[part] if place % 2 else part for place, part in enumerate(parts) if part]
    traced = next((piece for piece in pieces if isinstance(piece, Texts)), None)
    if traced is not None:
        return traced.graph.phrased(pieces)
    rows = next(len(piece) for piece in pieces if not isinstance(piece, str))
    return ["".join(piece if isinstance(piece, str) else piece[row] for piece in pieces) for row in range(rows)]
