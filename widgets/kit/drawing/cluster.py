"""The positions of the boxes and wires of a cluster: slots nested in slots, and wires that fill like tubes.

The whole cluster is one unit wide. Arrays have room for the largest cluster; what does not exist is placed
far to the left, out of sight, so that a change of size only changes numbers. Everything also works on
symbols.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base.types import Real
from widgets.kit.text import select

OUT_OF_SIGHT = -9.0
MOST_BOXES = 48  # the most that are drawn of a mesh's axis
WIRES = {"in the node": "link", "across nodes": "network", "one": "idle"}
ACROSS, CELLS = 8, 4  # nodes in a row of a grid, GPUs in a row of a node


def middle_of(index: Real, count: Real, margin: float = 0.08) -> Real:
    """The middle of one of ``count`` slots side by side, as in ``slots(1.0, count, …)``."""
    return margin / 2 + (1 - margin) * (index + 0.5) / count


def behind(index: Real, count: float, side: int = 1, margin: float = 0.08) -> Real:
    """The border between a slot and the next one, or for side -1 the one before."""
    return middle_of(index + 0.5 * side, count, margin)


class Slots(NamedTuple):
    """The middle and the half width of each slot."""

    middle: Real
    half: Real

    def narrowed(self, share: Real) -> Slots:
        """The same slots, each narrowed to a share of its width."""
        return Slots(self.middle, self.half * share)

    def sides(self) -> dict:
        """Columns of boxes."""
        return {"left": self.middle - self.half, "right": self.middle + self.half}

    def filled(self, first: Real, second: Real) -> dict:
        """Columns of tubes from left to end, filled from the left by a first share and a second one, limited
        to a full tube; and whether there is any of the first and of the second."""
        width, nothing = 2 * self.half, 0 * self.middle
        left = self.middle - self.half
        middle = left + width * np.minimum(first, 1.0)
        return {
            "left": left,
            "middle": middle,
            "right": left + width * np.minimum(first + second, 1.0),
            "end": left + width,
            "first": nothing + np.where(first > 0, 1.0, 0.0),
            "second": nothing + np.where(second > 0, 1.0, 0.0),
        }


def slots(parents: Real, children: Real, most: int, margin: float = 0.08) -> Slots:
    """``children`` equal slots in each of ``parents`` equal parts of the unit, with a margin between the
    parts."""
    index = np.arange(most, dtype=float)
    parent = np.floor(index / children)
    inner = (1 - margin) / parents
    middle = (parent + margin / 2) / parents + inner * (index - parent * children + 0.5) / children
    there = index < parents * children
    return Slots(np.where(there, middle, OUT_OF_SIGHT), np.where(there, inner / children / 2, 0.0))


class Cells(NamedTuple):
    """The middle and half the size of each box of a grid, measured from the upper left corner of a unit
    square."""

    x: Real
    y: Real
    half_width: Real
    half_height: Real

    def sides(self) -> dict:
        """Columns of boxes, with the middle as the target for a pointer."""
        return {
            "x": self.x,
            "y": self.y,
            "left": self.x - self.half_width,
            "right": self.x + self.half_width,
            "bottom": self.y - self.half_height,
            "top": self.y + self.half_height,
        }


def grid(
    count: Real, in_each: Real, most: int, most_gpus: int, gpus_per_node: Real, margin: float = 0.14
) -> Cells:
    """Nodes in rows of ACROSS, each with ``in_each`` boxes in rows of CELLS; ``count`` boxes in total.

    The picture has room for ``most_gpus`` GPUs, so a GPU has the same size however many there are.
    """
    index = np.arange(most, dtype=float)
    node, across = np.floor(index / in_each), np.minimum(in_each, CELLS)
    own = index - node * in_each
    rows, down = np.ceil(in_each / across), np.ceil(most_gpus / (ACROSS * gpus_per_node))
    node_row, own_row = np.floor(node / ACROSS), np.floor(own / across)
    inner = 1 - margin
    x = (node - node_row * ACROSS + margin / 2 + inner * (own - own_row * across + 0.5) / across) / ACROSS
    y = 1 - (node_row + margin / 2 + inner * (own_row + 0.5) / rows) / down
    there = index < count
    return Cells(
        np.where(there, x, OUT_OF_SIGHT),
        y,
        np.where(there, inner / across / ACROSS / 2, 0.0),
        inner / rows / down / 2 + 0 * index,
    )


def mesh_row(count: Real, wire: Real) -> dict:
    """Columns of the boxes of one axis of a mesh, up to MOST_BOXES; ``wire`` is an index into WIRES."""
    there = np.where(count > 0, count, 1.0)
    return slots(1.0, np.minimum(there, float(MOST_BOXES)), MOST_BOXES, margin=0.0).sides() | {
        "wire": [select(wire, list(WIRES))] * MOST_BOXES
    }
