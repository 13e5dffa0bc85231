"""Positions of the numbers of small matrices that are split over ranks: unit cells, pieces that move apart,
lanes of ranks.

Everything also works on symbols.
"""

from __future__ import annotations

import numpy as np

from engine.base.types import Real, Truth
from widgets.kit.drawing import figure as fig
from widgets.kit.text import show

INSET = 0.04  # distance of a cell from the border of its unit


def piece(index: Real, count: int, ranks: Real) -> Real:
    """The rank that has this row or column, out of ``count``."""
    return np.floor(index * ranks / count)


def across(start: float, index: Real, count: int, ranks: Real, gap: Real) -> Real:
    """Where a column begins if the ranks' pieces are separated by a gap."""
    return start + index + gap * piece(index, count, ranks)


def down(start: Real, index: Real, count: int = 1, ranks: Real = 1, gap: Real = 0.0) -> Real:
    """The top of a row."""
    return start - index - gap * piece(index, count, ranks)


def beside_piece(
    start: float, rank: Real, count: int, ranks: Real, gap: Real, by_rows: Truth
) -> tuple[Real, Real]:
    """x and y of a rank's number, above its columns or before its rows, for a matrix whose corner is at
    (start, 0)."""
    along = (rank + 0.5) * count / ranks + gap * rank
    return np.where(by_rows, start - 0.27, start + along), np.where(by_rows, -along, 0.42)


def lane(number: Real, first: float, pitch: float) -> Real:
    """A height in the first lane, moved to another lane."""
    return first - pitch * number


def shade(rank: Real, ranks: Real, way: Real = 1.0) -> Real:
    """How dark a rank's cells are, each rank's darker than the one's before; all equally light before the
    matrix is split."""
    return fig.between(0.14, 0.08 + 0.4 * (rank + 1) / ranks, way)


def cells(left: Real, top: Real, values: Real, seen: Real) -> dict:
    """Columns of cells with these corners, as far as each is visible; the number in it with one decimal, and
    as a whole number."""
    return {
        "left": left + INSET,
        "right": left + 1 - INSET,
        "bottom": top - 1 + INSET,
        "top": top - INSET,
        "x": left + 0.5,
        "y": top - 0.5,
        "seen": seen,
        "tint": 0.3 * seen,
        "text": show(np.rint(10 * values) / 10, "count"),
        "narrow": show(np.rint(values), "count"),
    }
