"""A cube on the page: points that are turned and tilted, the order in which they hide each other, and labels
that avoid overlapping.

The origin is the corner on the left, where the third axis points up; the second axis runs from there to the
corner nearest to the viewer, the first away from the viewer to the right. So points for which all three grow
together run from the lower left to the upper right, and floor and back walls are behind them at every angle.
Everything also works on symbols.
"""

from __future__ import annotations

import numpy as np

from engine.base.types import Real
from widgets.kit.compiler.symbols import lookup
from widgets.kit.drawing import ranking


def project(points: Real, turn_degrees: Real, tilt_degrees: Real) -> tuple[Real, Real, Real]:
    """(right, up, toward the viewer) of points in the unit cube, its middle at (0, 0): an orthographic view.

    At a turn of 0 the second axis points right and the first straight away from the viewer; at 90 the first
    points right and the second straight at the viewer. At a tilt of 90 the view is from right above.
    """
    turn, tilt = turn_degrees * (np.pi / 180), tilt_degrees * (np.pi / 180)
    x, y, z = 0.5 - points[..., 0], points[..., 1] - 0.5, points[..., 2] - 0.5
    near = x * np.cos(turn) + y * np.sin(turn)
    return (
        y * np.cos(turn) - x * np.sin(turn),
        z * np.cos(tilt) - near * np.sin(tilt),
        near * np.cos(tilt) + z * np.sin(tilt),
    )


def quarter_turn(step: Real, steps: int) -> Real:
    """Degrees after this many of the steps that make up a quarter turn."""
    return step * (90 / steps)


def segments(ends: Real, turn_degrees: Real, tilt_degrees: Real) -> dict:
    """Columns of line segments for ends of shape (lines, 2, 3)."""
    x, y, _ = project(ends, turn_degrees, tilt_degrees)
    return {"x0": x[:, 0], "y0": y[:, 0], "x1": x[:, 1], "y1": y[:, 1]}


def log_share(value: Real, low: float, high: float) -> Real:
    """The position of a value between two others on a logarithmic scale, 0 to 1, clipped at the ends."""
    return np.minimum(np.log10(np.maximum(value, low) / low) / np.log10(high / low), 1.0)


def back_to_front(toward: Real) -> Real:
    """The order in which points are drawn: the farthest first, the nearest last."""
    return ranking.in_order(toward)


def in_order(columns: dict, order: Real) -> dict:
    """The columns with their rows in another order."""
    return {name: lookup(column, order) for name, column in columns.items()}


def apart(x: Real, y: Real, width: float, height: float, rounds: int = 24) -> Real:
    """Heights for labels of this size at x and y: each overlapping pair is pushed apart a bit in each
    round."""
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


def apart_on_logs(x: Real, y: Real, width: float, height: float) -> Real:
    """``apart`` where both axes are logarithmic; width and height are in doublings."""
    return 2 ** apart(np.log2(x), np.log2(y), width, height)


# -- the cube itself -----------------------------------------------------------------------------------------
def walls(ticks: Real) -> np.ndarray:
    """The grid lines at these ticks on the floor and the two back walls, as ends of shape (lines, 2, 3)."""
    lines = []
    for t in ticks:
        lines += [
            [(t, 0, 0), (t, 1, 0)],
            [(0, t, 0), (1, t, 0)],  # floor
            [(t, 0, 0), (t, 0, 1)],
            [(0, 0, t), (1, 0, t)],  # the wall on the left
            [(1, t, 0), (1, t, 1)],
            [(1, 0, t), (1, 1, t)],
        ]  # the wall on the right
    return np.array(lines, dtype=float)


def box(size: float) -> np.ndarray:
    """The twelve edges of a smaller cube at the origin."""
    corners = [np.array([a, b, c], dtype=float) for a in (0, size) for b in (0, size) for c in (0, size)]
    return np.array([[a, b] for i, a in enumerate(corners) for b in corners[i + 1 :] if (a != b).sum() == 1])


# The positions of the axes' names: outside their scales and past the middle, the third above its own.
TITLES = np.array([(0.62, 1.2, -0.2), (-0.2, 0.62, -0.2), (0.0, 0.0, 1.12)])


# Where the three scales end, and where the third begins.
ENDS = np.array([(1.0, 1.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)])


def readings(point: Real) -> Real:
    """Where one point is read off on the three scales."""
    return np.stack(
        [np.stack([point[0], 1.0, 0.0]), np.stack([0.0, point[1], 0.0]), np.stack([0.0, 0.0, point[2]])]
    )


def drop_lines(point: Real) -> Real:
    """Lines from one point down to the floor and on to the first two scales, and across the left wall to the
    third."""
    first, second, third = readings(point)
    foot, wall = np.stack([point[0], point[1], 0.0]), np.stack([point[0], 0.0, point[2]])
    lines = ((point, foot), (foot, first), (foot, second), (point, wall), (wall, third))
    return np.stack([np.stack(line) for line in lines])


def stems(points: Real) -> Real:
    """A line from each point down to the floor."""
    floor = np.stack([points[:, 0], points[:, 1], np.zeros(len(points))], axis=1)
    return np.stack([points, floor], axis=1)
