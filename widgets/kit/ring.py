"""Places on a ring of ranks: the first at the top, then clockwise; a rank's chunks on tracks from the rim inwards.
For many ranks the same as a grid, the ring cut open: a row for each rank, the first on top, a column for each chunk.

Everything works on symbols too. Angles are Bokeh's: radians, anticlockwise from three o'clock.
"""

from __future__ import annotations

import numpy as np

CELL_SHARE = 0.66   # of the angle between two ranks that a cell takes; the rest is the link


def angle(place, count):
    """Where a place stands, which may be between two ranks; ``count`` of them go round."""
    return np.pi / 2 - place * (2 * np.pi / count)


def on_circle(radius, at, middle=(0.0, 0.0)):
    """x and y at a radius and an angle around the middle."""
    return middle[0] + radius * np.cos(at), middle[1] + radius * np.sin(at)


def side(x):
    """0 on the left of the ring, 2 on the right, 1 right above or below it: which way a label turns outwards."""
    return 1 + np.sign(np.rint(4 * x))


def heading(at):
    """How far a triangle is turned that points clockwise along the circle."""
    return at + np.pi


def arc(place, count, share=CELL_SHARE):
    """(start, end) of an arc around a place that takes this share of the angle between two ranks."""
    half = share * np.pi / count
    return angle(place, count) - half, angle(place, count) + half


def filled_link(rank, count, filled):
    """(start, end) of what is filled of the arc from the rank before to this one, outside their cells' middles."""
    gap = 0.5 * CELL_SHARE
    return angle(rank - 1 + gap + (1 - CELL_SHARE) * filled, count), angle(rank - 1 + gap, count)


def track(chunk, chunks, inner, outer, share=0.86):
    """(inner, outer) radius of a chunk's track; the first is the outermost."""
    width = (outer - inner) / chunks
    rim = outer - chunk * width
    return rim - share * width, rim


def column(chunk, chunks, left, right, share=0.88):
    """(left, right) of a chunk's column in a grid."""
    width = (right - left) / chunks
    start = left + chunk * width
    return start, start + share * width


def row(place, ranks, bottom, top, share=0.88):
    """(bottom, top) of what stands in a rank's row, or between two, with this share of its height."""
    height = (top - bottom) / ranks
    middle = top - (place + 0.5) * height
    return middle - 0.5 * share * height, middle + 0.5 * share * height


def gauge(share, left, right):
    """Where a bar ends that is so full."""
    return left + share * (right - left)


def before(rank, ranks):
    """The rank before this one on the ring."""
    return np.where(rank > 0, rank - 1, ranks - 1)


def hops(row, ranks, way, edge):
    """(place, 1 to 0 how plainly it is seen) of what goes down a grid from row to row, for each twice: from the last
    row it leaves by ``edge`` of a row below, and its double comes in on top."""
    last = row >= ranks - 1
    down = row + np.where(last, edge, 1.0) * way
    in_on_top = np.where(last, (way - 1) * edge, 0.0)
    return (np.concatenate([down, in_on_top]),
            np.concatenate([np.where(last, 1 - way, 1.0), np.where(last, way, 0.0)]))


def at_most_last(index, count):
    """The index, or the last there is."""
    return np.minimum(index, count - 1)


def eased(way):
    """A way from 0 to 1 that sets off and arrives gently."""
    return way * way * (3 - 2 * way)


def shade(share):
    """How dark a cell is that sums a share of the ranks; light enough for the number on it in both themes."""
    return 0.08 + 0.42 * share
