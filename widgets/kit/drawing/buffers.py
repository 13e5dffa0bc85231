"""Buffers of ranks as rows of cells: the position of each cell.

A row of cells is one unit wide, and all rows together are one unit high, the first on top. Everything also
works on symbols.
"""

from __future__ import annotations

import numpy as np

from engine.base.types import Real

ROWS_AT_LEAST = 4  # fewer rows are not stretched


def cell(piece: Real, count: Real, start: float = 0.0) -> tuple[Real, Real]:
    """(left, right) of a piece in a buffer of ``count`` pieces that begins at ``start``."""
    return start + piece / count, start + (piece + 0.92) / count


def row(rank: Real, count: Real, share: float = 0.6) -> tuple[Real, Real]:
    """(bottom, top) of a rank's buffer; the rest of the row below is for text."""
    height = 1 / np.maximum(count, ROWS_AT_LEAST)
    top = 1 - rank * height
    return top - share * height, top
