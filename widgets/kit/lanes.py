"""Places on a chart of lanes: one row for each stage, from the top, in a square whose sides are 0 and 1.

Time is drawn as a share of a whole, so that the chart fills its place however long a step and however many the stages.
"""

from __future__ import annotations

import numpy as np
from bokeh.core.properties import value

from widgets.kit import figure as fig

FILLED = 0.84                   # of a row's height
BARS, BARS_END = 1.035, 1.2     # where bars stand beside the chart


def from_one(index):
    """A place in a list as people count: from 1."""
    return index + 1


def middle(lane, lanes):
    """The height at which a lane's middle stands; lane 0 is on top."""
    return 1 - (lane + 0.5) / lanes


def edges(lane, lanes, half=0, filled=FILLED):
    """(bottom, top) of a lane's marks; of the upper half alone for 1, of the lower for 2."""
    centre, reach = middle(lane, lanes), filled / 2 / lanes
    return np.where(half == 1, centre, centre - reach), np.where(half == 2, centre, centre + reach)


def within(lane, lanes, half=0):
    """The height of a text in a lane, or in one half of it."""
    bottom, top = edges(lane, lanes, half)
    return (bottom + top) / 2


def share(value, whole):
    """A length as a share of the chart's."""
    return value / whole


def doublings(value):
    """A place on an axis on which each doubling is as long as any other."""
    return np.log2(value)


def apart(start, end, gap):
    """Where a mark ends that leaves a gap to the next one, unless it is too short for that."""
    return np.where(end - start > 4 * gap, end - gap, end)


def raised(place, by):
    """A place on the upper one of two pictures."""
    return place + by


def around(centre, reach):
    """(start, end) of a mark about its centre."""
    return centre - reach, centre + reach


def lasting(start, end):
    """How long something lasts."""
    return end - start


def bar_end(value, longest):
    """Where a bar beside the chart ends."""
    return BARS + (BARS_END - BARS) * value / longest


def key(p, entries, bottom=1.045, top=1.095) -> None:
    """Above the chart, or at another height, how each kind of block looks: (where it begins, its name, a short one for phones, its looks)."""
    for left, name, short, looks in entries:
        for look in looks:
            p.quad(left=left, right=left + 0.025, bottom=bottom, top=top, **look)
        for width, words in (("wide", name), ("narrow", short)):
            fig.only(width, p.text(left + 0.033, (bottom + top) / 2, text=value(words), **fig.LABEL))
