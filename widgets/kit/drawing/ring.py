"""Positions on a ring of ranks: the first at the top, then clockwise, with a rank's chunks on tracks from the
rim inwards. For many ranks the ring is cut open into a grid: one row per rank, the first on top, and one
column per chunk.

Everything also works on symbols. Angles are Bokeh's: radians, anticlockwise from three o'clock.
"""

from __future__ import annotations

import numpy as np

from engine.base.types import Real

CELL_SHARE = 0.66  # share of the angle between two ranks that a cell takes; the rest is the link


def angle(place: Real, count: Real) -> Real:
    """The angle of a place, which may be between two ranks, on a ring of ``count``."""
    return np.pi / 2 - place * (2 * np.pi / count)


def on_circle(radius: Real, at: Real, middle: tuple[float, float] = (0.0, 0.0)) -> tuple[Real, Real]:
    """x and y at a radius and an angle around the middle."""
    return middle[0] + radius * np.cos(at), middle[1] + radius * np.sin(at)


def side(x: Real) -> Real:
    """0 on the left of the ring, 2 on the right, 1 directly above or below it: the alignment of a label
    outside."""
    return 1 + np.sign(np.rint(4 * x))


def heading(at: Real) -> Real:
    """The rotation of a triangle that points clockwise along the circle."""
    return at + np.pi


def arc(place: Real, count: Real, share: float = CELL_SHARE) -> tuple[Real, Real]:
    """(start, end) of an arc around a place that takes this share of the angle between two ranks."""
    half = share * np.pi / count
    return angle(place, count) - half, angle(place, count) + half


def filled_link(rank: Real, count: Real, filled: Real) -> tuple[Real, Real]:
    """(start, end) of the filled part of the arc from the rank before to this one, outside the middles of
    their cells."""
    gap = 0.5 * CELL_SHARE
    return angle(rank - 1 + gap + (1 - CELL_SHARE) * filled, count), angle(rank - 1 + gap, count)


def track(chunk: Real, chunks: Real, inner: float, outer: float, share: float = 0.86) -> tuple[Real, Real]:
    """(inner, outer) radius of a chunk's track; the first is the outermost."""
    width = (outer - inner) / chunks
    rim = outer - chunk * width
    return rim - share * width, rim


def column(chunk: Real, chunks: Real, left: Real, right: Real, share: float = 0.88) -> tuple[Real, Real]:
    """(left, right) of a chunk's column in a grid."""
    width = (right - left) / chunks
    start = left + chunk * width
    return start, start + share * width


def row(place: Real, ranks: Real, bottom: Real, top: Real, share: float = 0.88) -> tuple[Real, Real]:
    """(bottom, top) of an item in a rank's row, or between two, with this share of its height."""
    height = (top - bottom) / ranks
    middle = top - (place + 0.5) * height
    return middle - 0.5 * share * height, middle + 0.5 * share * height


def before(rank: Real, ranks: Real) -> Real:
    """The rank before this one on the ring."""
    return np.where(rank > 0, rank - 1, ranks - 1)


def hops(row: Real, ranks: Real, way: Real, edge: float) -> tuple[Real, Real]:
    """(position, visibility from 1 to 0) of items that move down a grid from row to row, twice for each: from
    the last row an item leaves by ``edge`` of a row at the bottom, and its double comes in at the top."""
    last = row >= ranks - 1
    down = row + np.where(last, edge, 1.0) * way
    in_on_top = np.where(last, (way - 1) * edge, 0.0)
    return (
        np.concatenate([down, in_on_top]),
        np.concatenate([np.where(last, 1 - way, 1.0), np.where(last, way, 0.0)]),
    )


def eased(way: Real) -> Real:
    """A motion from 0 to 1 with a gentle start and end."""
    return way * way * (3 - 2 * way)


def shade(share: Real) -> Real:
    """How dark a cell is that sums a share of the ranks; light enough for the number on it in both themes."""
    return 0.08 + 0.42 * share
