"""Positions on a picture of code: two listings side by side, or on a phone one below the other.

A row is one unit high, and rows are counted downwards from 0; the picture is 100 units wide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.base.types import Real

STRIP, TOLD = 1.15, 2.15  # rows of the strip of calls, and of the text about them
FIRST_LINE = 3.5  # the first row after strip and text
HALVES = ((0.0, 48.6), (51.4, 100.0))
GAP = 0.9  # rows between items below one another
NEXT = 1.3  # rows from the second heading to its first line
LEAST = 22.0  # minimum number of rows in the picture
LINE = 0.92  # share of a row that a line's mark fills


def heights(row: Real) -> dict:
    """The vertical extent of a mark in a row; y is its middle, for a text."""
    return {"bottom": -row - LINE, "top": -row, "y": -row - LINE / 2}


def beside(count: int, row: Real) -> dict:
    """Rows of the left half, then those of the right half, both beginning at ``row``."""
    index = np.tile(np.arange(float(count)), 2)
    left, right = (np.repeat([half[side] for half in HALVES], count) for side in (0, 1))
    return {"left": left, "right": right, **heights(row + index)}


def below(count: int, length: Real, notes: int) -> dict:
    """Rows of the first listing, then those of the second, which is placed below the first one's lines and
    notes."""
    rows = np.arange(float(count))
    second = second_heading(length, notes) + NEXT
    return {
        "left": np.zeros(2 * count),
        "right": np.full(2 * count, 100.0),
        **heights(np.concatenate([FIRST_LINE + rows, second + rows])),
    }


def second_heading(length: Real, notes: int) -> Real:
    """The row of the second heading, on a phone."""
    return under(length, 0) + notes + GAP


def under(length: Real, row: Real) -> Real:
    """The row this many rows below the end of a listing."""
    return FIRST_LINE + length + GAP / 2 + row


def height(first: Real, second: Real, notes: int) -> Real:
    """The number of rows that the picture needs on a phone, where it is longest."""
    return np.maximum(LEAST, second_heading(first, notes) + NEXT + second)


def strip(count: int, halves: Sequence[tuple[float, float]] = HALVES) -> dict:
    """A box for each call, in the row below the heading; one strip for each half."""
    index = np.tile(np.arange(float(count)), len(halves))
    start = np.repeat([half[0] for half in halves], count)
    width = np.repeat([(half[1] - half[0]) / count for half in halves], count)
    left = start + index * width
    return {
        "left": left,
        "right": left + 0.93 * width,
        "x": left + 0.465 * width,
        **heights(np.full(len(left), STRIP)),
    }


def shade(state: Real) -> Real:
    """How dark a graph's lines are shaded, so that neighbours differ."""
    return np.where(state > 0, np.where(np.remainder(state, 2) == 1, 0.15, 0.4), 0.0)


def or_none(number: Real) -> Real:
    """The number, or 0 where there is none, because a figure's columns must not have gaps."""
    return np.where(number >= -1, number, 0.0)


def at_call(call: Real, count: int, halves: Sequence[tuple[float, float]] = HALVES) -> dict:
    """The boxes of one call, one in each strip."""
    boxes = strip(count, halves)
    left = np.stack([start + (call - 1) * (end - start) / count for start, end in halves])
    return {
        "left": left,
        "right": left + boxes["right"][0] - boxes["left"][0],
        "bottom": boxes["bottom"][: len(halves)],
        "top": boxes["top"][: len(halves)],
    }
