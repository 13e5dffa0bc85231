"""Bars made of cells of equal area, so that a bar shows a length and its things can be counted.

A bar's cells are stacked in columns, as high as it takes to make the cells nearly square. The bar itself is a
plain box; the gaps between its cells are lines over it, in the colour of the ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.base.types import Real
from widgets.kit.drawing import figure as fig

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

SHAPE = 22.0  # the frame's width over a bar's height, between a phone's and a wide picture's
MOST_HIGH, MOST_COLUMNS = 7, 160
MOST_CELLS = SHAPE * MOST_HIGH**2  # over the whole frame; beyond that one cell stands for several things


def worth(unit: Real, length: Real) -> Real:
    """How many things one cell stands for, the same number for all bars: 1, 10, 100 and so on.

    ``unit`` is the length of one thing in each bar, ``length`` that of the axis.
    """
    crowd = length / (MOST_CELLS * np.min(unit))
    return 10.0 ** np.maximum(0.0, np.ceil(np.log10(crowd)))


def gaps(start: Real, unit: Real, count: Real, length: Real, bottom: Real, top: Real) -> dict[str, Real]:
    """The lines between the cells of bars that begin at ``start`` and hold ``count`` cells of ``unit``."""
    high = np.clip(np.rint(np.sqrt(length / (unit * SHAPE))), 1.0, MOST_HIGH)
    columns = np.floor(count / high)
    left_over = count - columns * high
    upright = _upright(start, high * unit, columns - np.where(left_over > 0, 0.0, 1.0), bottom, top)
    whole_end, end = start + columns * high * unit, start + count * unit
    level = [*_level(start, whole_end, high, bottom, top), *_level(whole_end, end, left_over, bottom, top)]
    pieces = [upright, *level]
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in ("x0", "y0", "x1", "y1")}


def _upright(start: Real, step: Real, columns: Real, bottom: Real, top: Real) -> dict[str, Real]:
    """A line after each column of each bar but the last."""
    number = np.arange(1.0, MOST_COLUMNS + 1)[None, :]
    seen = number <= np.expand_dims(columns, 1)
    x = np.where(seen, np.expand_dims(start, 1) + number * np.expand_dims(step, 1), fig.FAR_LEFT)
    low, high = (np.repeat(side, MOST_COLUMNS) for side in (bottom, top))
    return {"x0": np.ravel(x), "y0": low, "x1": np.ravel(x), "y1": high}


def _level(start: Real, end: Real, cells: Real, bottom: Real, top: Real) -> list[dict[str, Real]]:
    """The lines between the cells of a column, over all columns from ``start`` to ``end``."""
    found = []
    for number in range(1, MOST_HIGH):
        seen = number < cells
        y = fig.between(bottom, top, number / np.maximum(cells, 1.0))
        left, right = (np.where(seen, place, fig.FAR_LEFT) for place in (start, end))
        found.append({"x0": left, "y0": y, "x1": right, "y1": y})
    return found


def in_pools(count: Real, first: Real, front: Real, back: Real, most: int) -> tuple[Real, Real, Real]:
    """The gaps in several bars of fewer than ``most`` cells: (how many cells lie before each, whether a group
    ends there, whether it is inside its bar). The ``first`` cells form groups of ``front``, the others of
    ``back``."""
    number = np.arange(1.0, most)[None, :]
    behind = number - np.expand_dims(first, 1)
    ends = np.where(
        behind <= 0,
        np.remainder(number, np.expand_dims(front, 1)),
        np.remainder(behind, np.expand_dims(back, 1)),
    )
    return number, ends == 0, number < np.expand_dims(count, 1)


def draw_gaps(p: figure, source: ColumnDataSource, width: float = 1.0) -> None:
    """Draw the lines between cells over the bars."""
    p.segment("x0", "y0", "x1", "y1", source=source, line_color=fig.COLOR["panel"], line_width=width)
