"""Parts of a figure's frame with scales of their own, placed differently on a wide picture and on a phone.

The panels of a wide picture lie side by side; on a phone the same glyphs lie below one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from bokeh.models import LogScale, Range1d

from engine.base import units
from engine.base.types import Real, Truth
from engine.base.units import DAY, HOUR
from widgets.kit.text import Words, choose, select

if TYPE_CHECKING:
    from bokeh.plotting import figure

Ends = tuple[Real, Real]


class Place(NamedTuple):
    """Where a panel lies, in shares of the frame's width and height."""

    across: tuple[float, float]
    up: tuple[float, float]


class Panel(NamedTuple):
    """A part of the frame, on a wide picture and on a phone."""

    name: str
    wide: Place
    narrow: Place

    def scales(
        self, p: figure, x: Ends = (0.0, 1.0), y: Ends = (0.0, 1.0), log_x: bool = False, log_y: bool = False
    ) -> dict[str, Any]:
        """Arguments for glyphs in the panel, whose scales have these ends. ``Widget.ranges`` can move them,
        by the names ``NAME_x`` and ``NAME_y``; the page gives the whole frame the ranges that follow
        (layout.js)."""
        across, up = f"{self.name}_x", f"{self.name}_y"
        p.extra_x_ranges = {
            **p.extra_x_ranges,
            across: _range(across, x, log_x, self.wide[0], self.narrow[0]),
        }
        p.extra_y_ranges = {**p.extra_y_ranges, up: _range(up, y, log_y, self.wide[1], self.narrow[1])}
        if log_x:
            p.extra_x_scales = {**p.extra_x_scales, across: LogScale()}
        if log_y:
            p.extra_y_scales = {**p.extra_y_scales, up: LogScale()}
        return {"x_range_name": across, "y_range_name": up}


def _range(name: str, ends: Ends, log: bool, wide: tuple, narrow: tuple) -> Range1d:
    panel = {"wide": list(wide), "narrow": list(narrow), "ends": list(ends), "log": log}
    start, end = of_frame(wide, ends, log)
    return Range1d(start=start, end=end, name=name, tags=[{"panel": panel}])


def of_frame(place: tuple[float, float], ends: Ends, log: bool) -> tuple[float, float]:
    """The ends of the frame, if a panel's ends are at two places of it."""
    if not log:
        return range_of(*ends, place)
    (first, last), (low, high) = place, ends
    ratio = high / low
    return low / ratio ** (first / (last - first)), high * ratio ** ((1.0 - last) / (last - first))


def range_of(low: Real, high: Real, part: tuple[float, float]) -> tuple[Real, Real]:
    """The range of a whole axis on which the values from ``low`` to ``high`` take up this part of the frame,
    from 0 to 1."""
    first, last = part
    length = (high - low) / (last - first)
    start = low - first * length
    return start, start + length


LEAST_SPAN = 0.01  # least span of a diverging scale, so that tiny differences are not blown up
# ticks in seconds from ten on, as a clock divides time
CLOCK = np.array(
    [10, 15, 20, 30, 40]
    + [60 * minutes for minutes in (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 40)]
    + [HOUR * hours for hours in (1, 1.5, 2, 3, 5, 7, 10, 15, 20)]
    + [DAY * days for days in (1, 2, 3, 5, 10, 20, 30, 50, 100)]
)
AWAY = 1e-9  # a place on a logarithmic scale that no picture shows


def density(count: Real) -> Real:
    """How dark a place is at which ``count`` things lie: a single one can be seen, and thousands are not
    black."""
    return 0.2 + 0.5 * np.minimum(np.log10(np.maximum(count, 1.0)) / 2.5, 1.0)


def is_before(place: Real, low: Real, high: Real, share: float) -> Truth:
    """Whether a place is in the first part of a logarithmic scale."""
    return np.log2(place / low) < share * np.log2(high / low)


HALF_WAY = 0.48  # share of a phone's picture that a label of twenty letters takes


def side(place: Real, low: Real, high: Real) -> Words:
    """The alignment of a label on a logarithmic scale: to the left of its place, if there is room."""
    return choose(is_before(place, low, high, HALF_WAY), "left", "right")


def diverging(values: Real) -> tuple[Real, Real, Real]:
    """Rows of pieces on a diverging scale: positive pieces lie end to end to the right of zero, negative ones
    to the left, and together they fill the scale from 0 to 1. Returns (left, right, where zero is)."""
    gains, losses = np.minimum(values, 0.0), np.maximum(values, 0.0)
    last, first = np.cumsum(losses, axis=-1), np.cumsum(gains, axis=-1)
    low, high = np.min(first), np.maximum(np.max(last), LEAST_SPAN)
    left = np.where(values > 0, last - losses, first)
    right = np.where(values > 0, last, first - gains)
    span = high - low
    return (left - low) / span, (right - low) / span, -low / span


def ticks(low: float, high: float, steps: tuple[float, ...]) -> Real:
    """Ticks at these steps of each decade between two powers of ten, for a scale that moves over them."""
    decades = 10.0 ** np.arange(round(np.log10(low)), round(np.log10(high)))
    return np.outer(decades, steps).ravel()


def labels(values: Real, family: str, every: int = 1) -> list[str]:
    """The labels of ticks: of all ticks or of every other one; the rest are blank."""
    return [units.human(float(value), family) if i % every == 0 else "" for i, value in enumerate(values)]


def only(seen: Truth, texts: list[str]) -> Words:
    """The texts that are visible; the others are emptied, because a browser spends time on texts outside the
    picture, too."""
    return select(np.where(seen, np.arange(len(texts)), float(len(texts))), [*texts, ""])
