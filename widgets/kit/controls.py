"""The controls of a widget: param parameters that know their label, unit, bounds and the stops of a drag.

A control also says how it is seen by the compiler: as the symbol that stands for its value while a widget is traced.
"""

from __future__ import annotations

import numpy as np
import param

from engine import units
from widgets.kit.symbolic import Graph, Picked, merge


class BadValue(ValueError):
    """A value that a control does not take; the message says what it would take."""


class Control:
    """What all controls share. ``more`` folds a control away under *more*, or under the title that it gives; ``kind`` names
    its element on the page."""

    kind = ""

    def read(self, raw):
        """A value for this control from text or YAML, or BadValue."""
        raise NotImplementedError

    def write(self, value) -> str:
        """The value as it stands in a link; ``read`` takes it back."""
        raise NotImplementedError

    def symbol(self, graph: Graph):
        """The symbol that stands for the value."""
        return graph.control(self.name)

    def describe(self) -> dict:
        """What the page's script needs to know."""
        return {"name": self.name, "kind": self.kind, "label": self.label}

    def raw(self, value):
        """The value as the page holds it: a number, or the index of a choice."""
        return float(value)


class Number(Control, param.Number):
    """A quantity on a slider: log-spaced stops where it spans decades; typed values may stand between the stops."""

    kind = "number"

    def __init__(self, label, default, low, high, family="count", stops=64, log=True, whole=False, marks=(), more=False,
                 help=""):
        self.family, self.log, self.whole, self.more, self.help = family, log, whole, more, help
        self._marks = (default, *marks)
        self._stops = stops
        super().__init__(default=default, bounds=(low, high), label=label)

    @property
    def grid(self) -> np.ndarray:
        """The stops of a drag, rounded to figures a person would choose; default and marks are always among them."""
        if not isinstance(self._stops, int):
            return np.array(self._stops, dtype=float)
        low, high = self.bounds
        space = np.geomspace if self.log else np.linspace
        values = [units.round_significant(v, 2 if self.log else 6) for v in space(low, high, self._stops)]
        if self.whole:
            values = [round(v) for v in values]
        near = 0.02 if self.log else 1e-9  # a stop too close to a mark would make two steps look like one
        kept = [v for v in values if all(abs(v - m) > near * abs(m) for m in self._marks)]
        return np.array(sorted({float(v) for v in (*kept, *self._marks, low, high) if low <= v <= high}))

    def read(self, raw):
        low, high = self.bounds
        allowed = f"a {'whole ' if self.whole else ''}number from {low:g} to {high:g}"
        try:
            value = float(raw)
        except (TypeError, ValueError):
            raise BadValue(f"{self.name} must be {allowed}, got {raw!r}") from None
        if not (low <= value <= high) or (self.whole and value != int(value)):
            raise BadValue(f"{self.name} must be {allowed}, got {raw!r}")
        return value

    def write(self, value) -> str:
        short = f"{value:.12g}"
        kept = self.bounds[0] <= float(short) <= self.bounds[1]       # rounding must not lead out of bounds
        return (short if kept else repr(float(value)).removesuffix(".0")).replace("e+", "e")    # a plus means a space in a link

    def describe(self) -> dict:
        low, high = self.bounds
        return super().describe() | {"family": self.family, "low": low, "high": high, "whole": self.whole,
                                     "grid": self.grid.tolist(), "default": float(self.default)}


class Player(Number):
    """A position in an animation: it has a play button, a step button and a scrubber, and runs only when asked.

    The figure is drawn for every position by the widget's own parts; ``frames`` whole steps make up the run.
    """

    kind = "player"

    def __init__(self, label, frames, seconds_per_frame=0.7, default=None, tween=20, help=""):
        self.frames, self.seconds = frames, seconds_per_frame
        super().__init__(label, frames if default is None else default, 0, frames, stops=frames * tween + 1, log=False, help=help)

    def describe(self) -> dict:
        return super().describe() | {"frames": self.frames, "seconds": self.seconds}


class Bits(Control, param.Number):
    """A row of bits, each a button: the value holds a 1 for each that is turned, the last bit as 1.

    What a button shows is the widget's: ``faces`` names the part whose columns say, from the first bit on, its ``bit``, what it
    is for (``role``, an index into ``roles``) and whether it is ``turned``. Bits of a part that has fewer rows are hidden. They
    belong to one pattern: on the page a move of any other control turns them back.
    """

    kind = "bits"

    def __init__(self, label, bits, faces, roles, more=False, help=""):
        self.bits, self.faces, self.roles, self.more, self.help = bits, faces, roles, more, help
        super().__init__(default=0, bounds=(0, 2**bits - 1), label=label)

    @property
    def grid(self) -> np.ndarray:
        """None turned, or one: what a single touch can reach."""
        return np.array([0.0, *(2.0**i for i in range(self.bits))])

    def read(self, raw):
        _, high = self.bounds
        text = str(raw).removesuffix(".0")
        if not text.isdecimal() or int(text) > high:
            raise BadValue(f"{self.name} must be a whole number from 0 to {high}, got {raw!r}")
        return float(text)

    def write(self, value) -> str:
        return f"{value:.0f}"

    def describe(self) -> dict:
        return super().describe() | {"low": 0, "high": self.bounds[1], "whole": True, "default": 0, "faces": self.faces,
                                     "roles": list(self.roles)}


class Choice(Control, param.Selector):
    """One of several things. Options are catalogue entries (with ``key`` and ``name``) or a dict of key -> (label, value)."""

    kind = "choice"

    def __init__(self, label, options, default, more=False, help=""):
        if not isinstance(options, dict):
            options = {o.key: (o.name, o) for o in options}
        self.keys, self.labels = list(options), [label for label, _ in options.values()]
        self.options, self.more, self.help = [value for _, value in options.values()], more, help
        super().__init__(objects=dict(zip(self.labels, self.options)), default=self.options[self.keys.index(default)],
                         label=label)

    def index(self, value) -> int:
        return next(i for i, option in enumerate(self.options) if option is value or _same(option, value))

    def read(self, raw):
        if str(raw) not in self.keys:
            raise BadValue(f"{self.name} must be one of {', '.join(self.keys)}; got {raw!r}")
        return self.options[self.keys.index(str(raw))]

    def at(self, index):
        """The option at a place in the list, which is what the page holds."""
        if index not in range(len(self.options)):
            raise BadValue(f"{self.name} must be the place of one of {len(self.options)} options, got {index!r}")
        return self.options[int(index)]

    def write(self, value) -> str:
        return self.keys[self.index(value)]

    def symbol(self, graph: Graph):
        index = graph.control(self.name)
        if isinstance(self.options[0], (int, float, str)):
            return merge(graph, index, self.options)
        return Picked(graph, index, self.options)

    def raw(self, value):
        return self.index(value)

    def describe(self) -> dict:
        return super().describe() | {"keys": self.keys, "labels": self.labels, "default": self.index(self.default)}


def degrees(*values) -> dict:
    """Options of a choice among numbers."""
    return {str(value): (str(value), float(value)) for value in values}


class Switch(Control, param.Boolean):
    """On or off. ``until`` names a control of which a move on the page turns it off."""

    kind = "switch"

    def __init__(self, label, default=False, more=False, help="", until=""):
        self.more, self.help, self.until = more, help, until
        super().__init__(default=default, label=label)

    def read(self, raw):
        text = str(raw).lower()
        if text not in ("0", "1", "true", "false", "on", "off"):
            raise BadValue(f"{self.name} must be on or off, got {raw!r}")
        return text in ("1", "true", "on")

    def write(self, value) -> str:
        return "on" if value else "off"

    def symbol(self, graph: Graph):
        return graph.control(self.name) == 1

    def raw(self, value):
        return int(value)

    def describe(self) -> dict:
        return super().describe() | {"default": int(self.default), "until": self.until}


def _same(a, b) -> bool:
    return type(a) is type(b) and isinstance(a, (int, float, str)) and a == b
