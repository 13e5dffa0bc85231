"""All layouts of a search as a cloud over memory and time: how many layouts lie at each place, the fastest of
them, and the front, the layouts that no leaner one outruns.

Memory is measured in shares of the HBM and time in multiples of the step that the arithmetic alone would
take, both in fixed fractions of a doubling. So the places are known before the search, and each layout is
counted as soon as it has been measured. Everything except the plain search's bookkeeping works on numbers and
on symbols.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base.program import program
from engine.base.sweep import better, in_groups, no_group
from engine.base.types import Real

if TYPE_CHECKING:
    from engine.step.search import Degrees, Grid

ACROSS, UP = 6, 16  # places to a doubling of memory, and of time
LEAST_DOUBLINGS = -6  # of memory against the HBM
COLUMNS, ROWS = 17 * ACROSS, 9 * UP  # places in all: memory up to 2,048 HBMs, time up to 512 ideal steps
PLACES = COLUMNS * ROWS
HEIGHT = 2.0  # doublings of time above the fastest layout that a picture shows
SHOWN_ROWS = int(HEIGHT * UP)
MOST_SHOWN = 2048  # places that a picture has room for
FRONT = 12  # layouts of the front
WORTH = 1.04  # a layout of the front must be this many times as fast as the next leaner one


def place(total_bytes: Real, hbm_bytes: Real, step_s: Real, ideal_s: Real) -> Real:
    """The index of the place of a layout; a layout outside the cloud counts at its border."""
    column = np.floor(ACROSS * (np.log2(total_bytes / hbm_bytes) - LEAST_DOUBLINGS))
    row = np.floor(UP * np.log2(step_s / ideal_s))
    column = np.minimum(np.maximum(column, 0.0), COLUMNS - 1.0)
    return column * ROWS + np.minimum(np.maximum(row, 0.0), ROWS - 1.0)


class Counted:
    """The cloud of a plain search, which hands over its layouts in blocks."""

    def __init__(self, splits: list[Degrees], hbm_bytes: float, ideal_s: float) -> None:
        self.order = {split: float(row) for row, split in enumerate(splits)}
        self.hbm_bytes, self.ideal_s = hbm_bytes, ideal_s
        self.found = no_group(PLACES)

    def add(self, block: Grid, seconds: np.ndarray, total_bytes: np.ndarray, legal: np.ndarray) -> None:
        """Count the legal layouts of a block."""
        cell, row = np.nonzero(legal.reshape(-1, len(block.rows)))
        seconds = np.broadcast_to(seconds, legal.shape)[legal]
        group = place(total_bytes[legal], self.hbm_bytes, seconds, self.ideal_s)
        order = np.array([self.order[block.split(row)] for row in range(len(block.rows))])
        some = in_groups(seconds, order[row], block.numbers()[cell, row], group, PLACES)
        for column, values in zip(self.found, better(self.found, some)):
            column[:] = values


def _shown(count: list[Real]) -> dict[str, Any]:
    """``shown`` over arrays."""
    counts = np.reshape(count, (COLUMNS, ROWS))
    there = counts > 0
    low = int(np.argmax(there.any(axis=0))) if there.any() else ROWS
    column, row = np.nonzero(there & (np.arange(ROWS) < low + SHOWN_ROWS))
    column, row = column[:MOST_SHOWN], row[:MOST_SHOWN]
    drawn = counts[column, row]
    return {
        "column": column,
        "row": row,
        "count": drawn,
        "place": column * ROWS + row,
        "first": min(column, default=COLUMNS),
        "last": max(column, default=0),
        "low": low,
        "high": max(row, default=0) + 1,
        "above": np.sum(counts) - np.sum(drawn),
    }


@program(
    _shown,
    column=MOST_SHOWN,
    row=MOST_SHOWN,
    count=MOST_SHOWN,
    place=MOST_SHOWN,
    first=(),
    last=(),
    low=(),
    high=(),
    above=(),
)
def shown(count: list[Real]) -> dict[str, Any]:
    """What a picture of the cloud shows: the places with layouts, up to HEIGHT above the lowest, and how many
    layouts each has; the first and the last column, the lowest row and the end of the highest; and how many
    layouts the picture leaves out."""
    columns, rows, counts, places = [], [], [], []
    first, last, low, high, above = COLUMNS, 0, ROWS, 1, 0.0
    for column in range(COLUMNS):
        for row in range(low):
            if count[column * ROWS + row] > 0:
                low = row
                break
    for column in range(COLUMNS):
        for row in range(low, ROWS):
            here = count[column * ROWS + row]
            if here > 0 and row < low + SHOWN_ROWS and len(columns) < MOST_SHOWN:
                columns.append(column)
                rows.append(row)
                counts.append(here)
                places.append(column * ROWS + row)
                first = min(first, column)
                last = column
                high = max(high, row + 1)
            elif here > 0:
                above += here
    return {
        "column": columns,
        "row": rows,
        "count": counts,
        "place": places,
        "first": first,
        "last": last,
        "low": low,
        "high": high,
        "above": above,
    }


def _front(cost: list[Real]) -> dict[str, Any]:
    """``front`` over arrays."""
    costs = np.reshape(cost, (COLUMNS, ROWS))
    there = ~np.isnan(costs)
    rows, found, fastest = np.argmax(there, axis=1), [], math.inf
    for column in np.flatnonzero(there.any(axis=1)).tolist():
        here = float(costs[column, rows[column]])
        if here * WORTH < fastest:
            fastest = here
            found.append(column * ROWS + int(rows[column]))
    return {"place": found[-FRONT:]}


@program(_front, place=FRONT)
def front(cost: list[Real]) -> dict[str, Any]:
    """The places of the front, the leanest first: in each column the fastest layout, if it is WORTH its
    memory. Of more than FRONT places the leanest are left out."""
    found = []
    fastest = math.inf
    for column in range(COLUMNS):
        for row in range(ROWS):
            here = cost[column * ROWS + row]
            if not math.isnan(here):
                if here * WORTH < fastest:
                    fastest = here
                    found.append(column * ROWS + row)
                break
    more = max(0, len(found) - FRONT)
    return {"place": [found[more + i] for i in range(len(found) - more)]}


class Sides(NamedTuple):
    """The sides of places: shares of the HBM, and multiples of the ideal step."""

    left: Real
    right: Real
    bottom: Real
    top: Real


def sides(column: Real, row: Real) -> Sides:
    """The sides of places in some columns and rows."""
    left, bottom = 2.0 ** (column / ACROSS + LEAST_DOUBLINGS), 2.0 ** (row / UP)
    return Sides(left, left * 2.0 ** (1 / ACROSS), bottom, bottom * 2.0 ** (1 / UP))
