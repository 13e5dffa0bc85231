"""A triangle of three shares: where a mark stands whose cost divides among its corners, and an arrow between two marks."""

from __future__ import annotations

import numpy as np

from widgets.kit.cluster import OUT_OF_SIGHT

TOP, LEFT, RIGHT = (0.0, 0.8), (-1.0, -0.932), (1.0, -0.932)     # equal sides, with room above for a corner full of marks
CORNERS = np.array([TOP, LEFT, RIGHT])
EDGES = [(CORNERS[i], CORNERS[(i + 1) % 3]) for i in range(3)]
BORDERS = [(CORNERS.mean(axis=0), (CORNERS[i] + CORNERS[(i + 1) % 3]) / 2) for i in range(3)]      # where two are equal


def lines(ends) -> dict:
    """Columns of segments from pairs of ends."""
    ends = np.array(ends)
    return {"x0": ends[:, 0, 0], "y0": ends[:, 0, 1], "x1": ends[:, 1, 0], "y1": ends[:, 1, 1]}


def place(shares):
    """x and y of marks whose shares (top, left, right) add up to 1, a row each; out of sight where there are none."""
    there = np.sum(shares, axis=1) > 0
    return tuple(np.where(there, sum(shares[:, i] * CORNERS[i, axis] for i in range(3)), OUT_OF_SIGHT) for axis in range(2))


def arrow(start, end, gap) -> dict:
    """A line from one place to another, short of both by so much, and its head's angle; out of sight where they are close."""
    across, up = end[0] - start[0], end[1] - start[1]
    length = np.hypot(across, up)
    right, high = (gap * way / np.maximum(length, gap) for way in (across, up))
    away = np.where((length > 3 * gap) & (length < 3.0), 0.0, OUT_OF_SIGHT)
    return {"x0": start[0] + right + away, "y0": start[1] + high, "x1": end[0] - right + away, "y1": end[1] - high,
            "angle": np.arctan2(up, across) - np.pi / 2}


def sides(shares):
    """Whether each mark is named on its right (1) or its left (−1): the side of the triangle that it is nearer to."""
    return np.where(shares[:, 1] > shares[:, 2], -1.0, 1.0)


def narrow_sides(side, y):
    """The same on a phone, where there is room outside the slopes above alone: below, names stand inside."""
    return np.where(y > 0.05, side, -side)


def beside(x, side, distance):
    """Places at a distance from marks, on their side."""
    return x + side * distance


def dot_size(total):
    """A dot whose area grows with what is paid in all, within what can be seen and told apart, in pixels."""
    return np.minimum(26.0, np.maximum(9.0, 13.0 * np.sqrt(total)))
