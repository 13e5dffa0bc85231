"""Places on a picture of code: two listings beside each other, on a phone one under the other.

A row is one high, and they count downwards from 0; across, the picture is 100 wide.
"""

from __future__ import annotations

import numpy as np

FIRST_LINE = 2.7            # after the heading and the strip of calls
HALVES = ((0.0, 48.6), (51.4, 100.0))
GAP = 0.9                   # between what stands under one another
NEXT = 1.3                  # from the second heading to its first line
LEAST = 22.0                # rows of the whole picture, at least
LINE = 0.92                 # of a row: what a line's mark fills


def heights(row) -> dict:
    """Where a mark in a row lies; y is its middle, for a text."""
    return {"bottom": -row - LINE, "top": -row, "y": -row - LINE / 2}


def beside(count: int, row) -> dict:
    """Rows of the left half, then those of the right half, each beginning at ``row``."""
    index = np.tile(np.arange(float(count)), 2)
    left, right = (np.repeat([half[side] for half in HALVES], count) for side in (0, 1))
    return {"left": left, "right": right, **heights(row + index)}


def below(count: int, length, notes: int) -> dict:
    """Rows of the first listing, then those of the second, which stands under the first one's lines and notes."""
    rows = np.arange(float(count))
    second = second_heading(length, notes) + NEXT
    return {"left": np.zeros(2 * count), "right": np.full(2 * count, 100.0),
            **heights(np.concatenate([FIRST_LINE + rows, second + rows]))}


def second_heading(length, notes: int):
    """The row of the second heading, on a phone."""
    return under(length, 0) + notes + GAP


def under(length, row):
    """The row so many rows under the end of a listing."""
    return FIRST_LINE + length + GAP / 2 + row


def after(rows):
    """The row after so many and a heading."""
    return rows + 1


def line(number):
    """The row of a line of the first listing; the first is 0."""
    return FIRST_LINE + number


def height(first, second, notes: int):
    """Rows that the picture needs on a phone, where it is longest."""
    return np.maximum(LEAST, second_heading(first, notes) + NEXT + second)


def strip(count: int, halves=HALVES) -> dict:
    """A box for each call, in the row under the heading; one strip for each half."""
    index = np.tile(np.arange(float(count)), len(halves))
    start = np.repeat([half[0] for half in halves], count)
    width = np.repeat([(half[1] - half[0]) / count for half in halves], count)
    left = start + index * width
    return {"left": left, "right": left + 0.93 * width, "x": left + 0.465 * width, **heights(np.full(len(left), 1.15))}


def shade(state):
    """How dark a graph's lines are: neighbours differ."""
    return np.where(state > 0, np.where(np.remainder(state, 2) == 1, 0.15, 0.4), 0.0)


def one_if(condition):
    """1 where it holds, else 0: for what is drawn or not."""
    return np.where(condition, 1.0, 0.0)


def or_none(number):
    """A number, and 0 where there is none: a figure takes no column with gaps."""
    return np.where(number >= -1, number, 0.0)


def places(state):
    """From a line's state (-1 eager, 0 Python, 1 … the graph's place) to an index, which begins at 0."""
    return state + 1


def at_call(call, count: int, halves=HALVES) -> dict:
    """The boxes of one call, one in each strip."""
    boxes = strip(count, halves)
    left = np.stack([start + (call - 1) * (end - start) / count for start, end in halves])
    return {"left": left, "right": left + boxes["right"][0] - boxes["left"][0], "bottom": boxes["bottom"][:len(halves)],
            "top": boxes["top"][:len(halves)]}
