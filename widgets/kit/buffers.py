"""Buffers of ranks as rows of cells: where each cell stands, and inside it a slot for each rank whose data it may hold.

A row of cells is one unit wide, all rows together one unit high, the first on top. Everything works on symbols too.
"""

from __future__ import annotations

import numpy as np

ROWS_AT_LEAST = 4   # fewer rows are not stretched


def cell(piece, count, start=0.0):
    """(left, right) of a piece in a buffer of so many that begins at ``start``."""
    return start + piece / count, start + (piece + 0.92) / count


def slot(piece, owner, count, start=0.0):
    """(left, right) of a rank's slot within it."""
    left, right = cell(piece, count, start)
    return left + (right - left) * owner / count, left + (right - left) * (owner + 1) / count


def row(rank, count, share=0.53):
    """(bottom, top) of a rank's buffer; what a row has left below is for words."""
    height = 1 / np.maximum(count, ROWS_AT_LEAST)
    top = 1 - rank * height
    return top - share * height, top
