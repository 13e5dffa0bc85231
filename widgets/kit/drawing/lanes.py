"""Positions on a chart of lanes: one row per stage, from the top, in a unit square.

Time is drawn as a share of the whole, so that the chart fills its area however long a step is and however
many stages there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.base.types import Real
from widgets.kit.drawing import figure as fig

if TYPE_CHECKING:
    from bokeh.plotting import figure

FILLED = 0.84  # of a row's height
BARS, BARS_END = 1.035, 1.2  # position of the bars beside the chart


def middle(lane: Real, lanes: Real) -> Real:
    """The height of a lane's middle; lane 0 is on top."""
    return 1 - (lane + 0.5) / lanes


def edges(lane: Real, lanes: Real, half: Real = 0, filled: float = FILLED) -> tuple[Real, Real]:
    """(bottom, top) of a lane's marks; only the upper half for 1, the lower for 2."""
    centre, reach = middle(lane, lanes), filled / 2 / lanes
    return np.where(half == 1, centre, centre - reach), np.where(half == 2, centre, centre + reach)


def within(lane: Real, lanes: Real, half: Real = 0) -> Real:
    """The height of a text in a lane, or in one half of it."""
    bottom, top = edges(lane, lanes, half)
    return (bottom + top) / 2


def apart(start: Real, end: Real, gap: Real) -> Real:
    """The end of a mark that leaves a gap to the next one, unless it is too short for that."""
    return np.where(end - start > 4 * gap, end - gap, end)


def around(centre: Real, reach: float) -> tuple[Real, Real]:
    """(start, end) of a mark about its centre."""
    return centre - reach, centre + reach


def bar_end(value: Real, longest: Real) -> Real:
    """The end of a bar beside the chart."""
    return BARS + (BARS_END - BARS) * value / longest


def key(
    p: figure,
    entries: list[tuple[str, str, dict[str, Any]]],
    height: float = 1.07,
    left: float = 0.0,
    phone_px: float = fig.LEAST_PX["narrow"],
    places: fig.KeyPlaces | None = None,
) -> None:
    """A key above the chart, or at another height, that shows each kind of block: (its name, a short one for
    phones, its look). ``phone_px``: the frame's width on a phone without an axis; ``places``: see
    ``fig.packed_key``."""
    wide, narrow, looks = zip(*entries)
    fig.packed_key(
        p,
        {"wide": list(wide), "narrow": list(narrow)},
        list(looks),
        {"wide": height, "narrow": height},
        left=left,
        phone_px=phone_px,
        places=places,
    )
