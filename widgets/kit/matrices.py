"""Where the numbers of small matrices stand that are cut over ranks: unit cells, pieces that part, lanes of ranks.

Everything works on symbols too.
"""

from __future__ import annotations

import numpy as np

from widgets.kit import figure as fig
from widgets.kit.text import show

INSET = 0.04        # that a cell keeps from the border of its unit


def piece(index, count, ranks):
    """Which rank has a row or column out of so many."""
    return np.floor(index * ranks / count)


def across(start, index, count, ranks, gap):
    """Where a column begins when the ranks' pieces stand a gap apart."""
    return start + index + gap * piece(index, count, ranks)


def down(start, index, count=1, ranks=1, gap=0.0):
    """Where a row has its top."""
    return start - index - gap * piece(index, count, ranks)


def beside_piece(start, rank, count, ranks, gap, by_rows):
    """x and y of a rank's number over its columns, or before its rows, of a matrix whose corner is at (start, 0)."""
    along = (rank + 0.5) * count / ranks + gap * rank
    return np.where(by_rows, start - 0.27, start + along), np.where(by_rows, -along, 0.42)


def step(moment):
    """The step that is being done at a moment of a run, 0 before the first."""
    return np.ceil(moment)


def lane(number, first, pitch):
    """The place that has a height in the first lane, in another."""
    return first - pitch * number


def shade(rank, ranks, way=1.0):
    """How dark a rank's cells are, each darker than the one's before; light and all alike before they are cut."""
    return fig.between(0.14, 0.08 + 0.4 * (rank + 1) / ranks, way)


def cells(left, top, values, seen) -> dict:
    """Columns of cells with these corners, as far as each is seen; the number in it with one decimal, and whole."""
    return {"left": left + INSET, "right": left + 1 - INSET, "bottom": top - 1 + INSET, "top": top - INSET,
            "x": left + 0.5, "y": top - 0.5, "seen": seen, "tint": 0.3 * seen,
            "text": show(np.rint(10 * values) / 10, "count"), "narrow": show(np.rint(values), "count")}
