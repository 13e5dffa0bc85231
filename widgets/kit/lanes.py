"""Places on a chart of lanes: one row for each stage, from the top, in a square whose sides are 0 and 1.

Time is drawn as a share of a whole, so that the chart fills its place at any length of the step and any number of stages.
"""

from __future__ import annotations

import numpy as np

FILLED = 0.84                   # of a row's height
BARS, BARS_END = 1.035, 1.2     # where bars stand beside the chart


def from_one(index):
    """A place in a list as people count: from 1."""
    return index + 1


def middle(lane, lanes):
    """The height at which a lane's middle stands; lane 0 is on top."""
    return 1 - (lane + 0.5) / lanes


def edges(lane, lanes, half=0):
    """(bottom, top) of a lane's marks; of the upper half alone for 1, of the lower for 2."""
    centre, reach = middle(lane, lanes), FILLED / 2 / lanes
    return np.where(half == 1, centre, centre - reach), np.where(half == 2, centre, centre + reach)


def within(lane, lanes, half=0):
    """The height of a text in a lane, or in one half of it."""
    bottom, top = edges(lane, lanes, half)
    return (bottom + top) / 2


def share(value, whole):
    """A length as a share of the chart's."""
    return value / whole


def lasting(start, end):
    """How long something lasts."""
    return end - start


def bar_end(value, longest):
    """Where a bar beside the chart ends."""
    return BARS + (BARS_END - BARS) * value / longest
