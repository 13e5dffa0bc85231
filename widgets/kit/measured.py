"""Published points on a figure: a part marked ``@measured`` shows the points that were measured in exactly
the figure's current state.

A widget says which of its points belong to the current state and where they are drawn. The text under the
pointer, the number of points, the engine's error on them, and the switch that hides them are the same in
every figure and are made here. The numbers come from ``engine.validation.points``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from engine.base import units
from engine.base.types import Real, Truth
from engine.validation import points
from widgets.kit.compiler.symbols import Symbol, over
from widgets.kit.controls import Switch
from widgets.kit.drawing.cluster import OUT_OF_SIGHT
from widgets.kit.text import Words, choose, phrase, select, show
from widgets.kit.widget import once, part

EXACT = 1e-9  # numbers that differ by less count as the same condition
NONE = "No published run has these settings"


class Dots(Switch):
    """The switch of a figure's measured points. The page draws it below the plot, as their legend, remembers
    a reader's choice for all figures, and shows no switch where a state has no points."""

    under_plot = True

    def __init__(self, on: bool = True) -> None:
        super().__init__("Measured points", on, more=True)


class Seen(NamedTuple):
    """Points in a state: which belong to it, where they are, where the engine's predictions are, and how else
    they differ from the state (a text for each, "" if they do not)."""

    fits: Truth
    x: Real
    y: Real
    ours_x: Real
    ours_y: Real
    differs: Words | None = None


class Points:
    """The points of a figure as columns, ordered by the engine's error."""

    def __init__(self, *files: str) -> None:
        found = [point for file in files for point in points.points(file)]
        self.all = sorted(found, key=lambda point: abs(point.error))
        self.measured = np.array([point.measured for point in self.all])
        self.ours = np.array([point.ours for point in self.all])
        self.longer = self.measured / self.ours  # by which factor a measured time is longer than ours
        self.off = np.array([abs(point.error) for point in self.all])

    def column(self, name: str) -> np.ndarray:
        """A condition of each point, as a number; 0 for those that do not name it."""
        return np.array([float(point.at.get(name, 0.0)) for point in self.all])

    def of(self, **chosen: Any) -> Truth:
        """Which points were measured under exactly these conditions: things of the catalogue, of which a
        point names one or several by key, or numbers. A condition that a point does not name is not
        checked."""
        fits: Truth = np.full(len(self.all), True)
        for name, thing in chosen.items():
            is_number = isinstance(thing, (Symbol, int, float, np.ndarray))
            fits = fits & (self.near(name, thing) if is_number else over(self._naming(name), thing) > 0)
        return fits

    def _naming(self, name: str) -> Callable[[Any], np.ndarray]:
        return lambda thing: np.array(
            [float(name not in point.at or thing.key in _several(point.at[name])) for point in self.all]
        )

    def near(self, name: str, value: Real, within: float = EXACT) -> Truth:
        """Which points were measured at a number within this relative distance of the current one."""
        at, free = self.column(name), np.array([name not in point.at for point in self.all])
        return (np.abs(value - at) <= within * np.abs(at)) | free

    def apart(self, name: str, value: Real, family: str, words: str = "It was measured at {}.") -> Words:
        """For each point, the number at which it was measured; "" for those at exactly the current one."""
        at = self.column(name)
        said = [f" {words.format(units.human(float(each), family))}" for each in at]
        return select(np.where(self.near(name, value), 0.0, np.arange(1.0, len(at) + 1)), ["", *said])


def _several(value: Any) -> tuple:
    return tuple(value) if isinstance(value, list) else (value,)


@cache
def of_files(*files: str) -> Points:
    """The points of these files; computed on first use."""
    return Points(*files)


@cache
def _preset(cls: Any, name: str) -> Any:
    """A figure in the state of a preset."""
    widget = cls()
    widget.set_state(cls.presets[name])
    return widget


class Measured:
    """What all parts of measured points have in common; a part's own method says which points are visible,
    and where."""

    def __init__(self, files: tuple[str, ...], method: Callable[[Any, Points], Seen]) -> None:
        def finding(view: Any) -> Seen:
            return method(view, of_files(*files))

        finding.__name__ = f"{method.__name__} found"  # under which ``once`` keeps it
        self.files, self.found = files, once(finding)

    @property
    def points(self) -> Points:
        """The points of the part's files."""
        return of_files(*self.files)

    def columns(self, view: Any) -> dict:
        """The data source: points that do not belong to the state are moved out of sight."""
        found, at = self.found(view), self.points
        seen = found.fits & view.dots
        place = lambda value: np.where(seen, value, OUT_OF_SIGHT)
        return {
            "x": place(found.x),
            "y": place(found.y),
            "ours_x": place(found.ours_x),
            "ours_y": place(found.ours_y),
            "seen": np.where(seen, 1.0, 0.0),
            "measured": at.measured,
            "ours": at.ours,
            "off": at.off,
            "what": [point.what for point in at.all],
            "source": [point.source.name for point in at.all],
        }

    def hints(self, view: Any) -> Words:
        """The text of each point under the pointer."""
        at, differs = self.points, self.found(view).differs
        rows = np.arange(float(len(at.all)))
        told, cited = [point.told for point in at.all], [f" Source: {point.cited}." for point in at.all]
        return phrase(
            "{told}{differs}{cited}",
            told=select(rows, told),
            differs=select(rows, [""] * len(told)) if differs is None else differs,
            cited=select(rows, cited),
        )

    def count(self, view: Any) -> Real:
        """How many points belong to the state, visible or not."""
        return np.sum(np.where(self.found(view).fits, 1.0, 0.0))

    def median(self, view: Any) -> Real:
        """The median of the engine's absolute errors on the visible points, which are ordered by it."""
        fits, off = self.found(view).fits, self.points.off
        place = np.cumsum(np.where(fits, 1.0, 0.0))
        middle = (place[-1] + 1) / 2
        lower, upper = (
            np.sum(np.where(fits & (place == end), off, 0.0)) for end in (np.floor(middle), np.ceil(middle))
        )
        return (lower + upper) / 2

    def elsewhere(self, cls: Any) -> str:
        """That a state has no points, and the first preset that has some."""
        for name in cls.presets:
            if self.count(_preset(cls, name)) > 0:
                return f"{NONE}: try “{name}”"
        return NONE

    def words(self, view: Any, cls: Any) -> Words:
        """The text beside the switch: what the switch shows, or that there is nothing to show here."""
        count = self.count(view)
        number = f"{show(count, 'count')} published point{choose(count == 1, '', 's')}"
        off = f"{number}; the engine is {self.off(view)}"
        return choose(count > 0, choose(view.dots, off, f"{number} hidden"), self.elsewhere(cls))

    def named(self, view: Any, words: str) -> Words:
        """What the hollow marks are, for a label in the picture; "" where there are none."""
        return choose((self.count(view) > 0) & view.dots, words, "")

    def off(self, view: Any) -> Words:
        """The error in words; for several points, the median."""
        among = choose(self.count(view) == 1, "", " in the median")
        return f"{show(self.median(view), 'percent', 2)} off{among}"


def measured(files: str | tuple[str, ...], *controls: str) -> Callable[[Callable[[Any, Points], Seen]], Any]:
    """A part whose rows are published points: those of ``engine/validation/published/figures/FILE.toml``.

    The method gets the points as columns and returns which of them fit the current state, and where they are
    (``Seen``). It names the controls that it reads; the widget needs a switch ``dots = Dots()``.
    """

    def mark(method: Callable[[Any, Points], Seen]) -> Any:
        shared = Measured((files,) if isinstance(files, str) else files, method)

        def columns(self: Any) -> dict:
            return shared.columns(self)

        columns.__name__, columns.__doc__ = method.__name__, method.__doc__
        marked: Any = part(*controls, "dots")(columns)
        marked.measured_by = shared
        return marked

    return mark
