"""A cube on the page: turned and tilted points, what lies before what, and labels that keep out of each other's way.

The origin is the corner on the left, where the third axis stands upright; the second runs from there to the corner
nearest to the eye, the first away from the eye to the right. So points on which all three grow together run from the
lower left to the upper right, and floor and back walls lie behind them from every turn. All of it works on symbols too.
"""

from __future__ import annotations

import numpy as np

from widgets.kit.symbolic import lookup


def project(points, turn_degrees, tilt_degrees):
    """(right, up, toward the eye) of points in the unit cube, its middle at (0, 0): an orthographic view.

    At a turn of 0 the second axis runs to the right and the first straight away from the eye; at 90 the first runs to
    the right and the second straight at the eye. At a tilt of 90 the eye is right above.
    """
    turn, tilt = turn_degrees * (np.pi / 180), tilt_degrees * (np.pi / 180)
    x, y, z = 0.5 - points[..., 0], points[..., 1] - 0.5, points[..., 2] - 0.5
    near = x * np.cos(turn) + y * np.sin(turn)
    return (y * np.cos(turn) - x * np.sin(turn), z * np.cos(tilt) - near * np.sin(tilt),
            near * np.cos(tilt) + z * np.sin(tilt))


def quarter_turn(step, steps):
    """Degrees after so many of the steps that make up a quarter of a turn."""
    return step * (90 / steps)


def segments(ends, turn_degrees, tilt_degrees) -> dict:
    """Columns of line segments for ends of shape (lines, 2, 3)."""
    x, y, _ = project(ends, turn_degrees, tilt_degrees)
    return {"x0": x[:, 0], "y0": y[:, 0], "x1": x[:, 1], "y1": y[:, 1]}


def log_share(value, low, high):
    """Where a value stands between two others on a logarithmic scale, 0 to 1; what lies outside stands at the end."""
    return np.minimum(np.log10(np.maximum(value, low) / low) / np.log10(high / low), 1.0)


def back_to_front(toward):
    """The order in which points are drawn: the farthest first, the nearest last."""
    count = len(toward)
    later = np.arange(count)[:, None] > np.arange(count)[None, :]  # settles ties
    ahead = (toward[:, None] > toward[None, :]) | ((toward[:, None] == toward[None, :]) & later)
    rank = np.sum(np.where(ahead, 1, 0), axis=1)
    return np.stack([np.argmax(np.where(rank == place, 1, 0)) for place in range(count)])


def in_order(columns: dict, order) -> dict:
    """Columns of numbers with their rows in another order."""
    return {name: lookup(column, order) for name, column in columns.items()}


def beside(x, sides, distance):
    """Places at a distance on the left (−1) or the right (1) of others."""
    return x + distance * np.asarray(sides, dtype=float)


def apart(x, y, width, height, rounds=24):
    """Heights for labels of that size at x and y: each pair that overlaps is pushed apart, a bit in each round."""
    count = len(y)
    earlier = np.arange(count)[:, None] > np.arange(count)[None, :]
    others = ~np.eye(count, dtype=bool)
    meeting = (np.abs(x[:, None] - x[None, :]) < width) & others
    for _ in range(rounds):
        gap = y[:, None] - y[None, :]
        upward = np.where((gap > 0) | ((gap == 0) & earlier), 1.0, -1.0)
        missing = np.maximum(height - np.abs(gap), 0.0)
        y = y + 0.4 * np.sum(np.where(meeting, upward * missing, 0.0), axis=1)
    return y


# -- the cube itself ---------------------------------------------------------------------------------------------------
def walls(ticks) -> np.ndarray:
    """The lines at those ticks on the floor and the two back walls, as ends of shape (lines, 2, 3)."""
    lines = []
    for t in ticks:
        lines += [[(t, 0, 0), (t, 1, 0)], [(0, t, 0), (1, t, 0)],   # floor
                  [(t, 0, 0), (t, 0, 1)], [(0, 0, t), (1, 0, t)],   # the wall on the left
                  [(1, t, 0), (1, t, 1)], [(1, 0, t), (1, 1, t)]]   # the wall on the right
    return np.array(lines, dtype=float)


def box(size: float) -> np.ndarray:
    """The twelve edges of a smaller cube at the origin."""
    corners = [np.array([a, b, c], dtype=float) for a in (0, size) for b in (0, size) for c in (0, size)]
    return np.array([[a, b] for i, a in enumerate(corners) for b in corners[i + 1:] if (a != b).sum() == 1])


def scales(ticks) -> np.ndarray:
    """Where the three axes are read: along the floor's two front edges and upright at the origin; (3, ticks, 3)."""
    return np.array([[(t, 1, 0) for t in ticks], [(0, t, 0) for t in ticks], [(0, 0, t) for t in ticks]], dtype=float)


# Where the names of the three axes stand: outside their scales and past the middle, the third above its own.
TITLES = np.array([(0.62, 1.2, -0.12), (-0.2, 0.62, -0.12), (0.0, 0.0, 1.12)])


def readings(point):
    """Where one point is read on the three scales."""
    return np.stack([np.stack([point[0], 1.0, 0.0]), np.stack([0.0, point[1], 0.0]), np.stack([0.0, 0.0, point[2]])])


def drop_lines(point):
    """From one point down to the floor and on to the first two scales, and over the wall on the left to the third."""
    first, second, third = readings(point)
    foot, wall = np.stack([point[0], point[1], 0.0]), np.stack([point[0], 0.0, point[2]])
    lines = ((point, foot), (foot, first), (foot, second), (point, wall), (wall, third))
    return np.stack([np.stack(line) for line in lines])


def stems(points):
    """From each point down to the floor."""
    floor = np.stack([points[:, 0], points[:, 1], np.zeros(len(points))], axis=1)
    return np.stack([points, floor], axis=1)


def near(places, place, reach):
    """Which places of an axis are so close to another that their labels would meet."""
    return np.abs(places - place) < reach
