"""The controls of a widget: param parameters with a label, a unit, bounds and the stops of a drag.

A control also tells the compiler which symbol represents its value while a widget is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import param

from engine.base import units
from engine.base.types import Real
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.symbols import Picked, control, merge


class BadValue(ValueError):
    """A value that a control does not accept; the message says what it would accept."""


def is_reference(value: Any) -> bool:
    """Whether something is not a value but a source of values that Panel knows, which may change: a
    component, a parameter, a bound function."""
    return bool(param.parameterized.resolve_ref(value))


class Control:
    """What all controls share. ``more`` folds a control away under *more*, or under the title that it gives;
    ``kind`` names its element on the page."""

    kind = ""
    more: bool | str = False
    under_plot = False  # the page places it under the plot, as the legend of what it switches
    if TYPE_CHECKING:  # what the param class that a control also inherits from provides
        name: Any
        label = property()

    def declared(self) -> Any:
        """The control as the widget's class declares it. A widget's own copy has only the attributes that
        param knows."""
        owner: Any = getattr(self, "owner", None)
        return self if owner is None or isinstance(owner, type) else type(owner).controls()[self.name]

    def read(self, raw: Any) -> Any:
        """A value for this control from text or YAML; BadValue otherwise."""
        raise NotImplementedError

    def write(self, value: Any) -> str:
        """The value as written in a link; ``read`` is the inverse."""
        raise NotImplementedError

    def called(self) -> str:
        """The control's name in a message; while its class is being made it has no name yet."""
        return self.name or "the default"

    def symbol(self, graph: Graph) -> Real:
        """The symbol that represents the value."""
        return control(graph, self.name)

    def describe(self) -> dict:
        """What the page's script needs to know."""
        return {"name": self.name, "kind": self.kind, "label": self.label}

    def raw(self, value: Any) -> float:
        """The value as the page stores it: a number, or the index of a choice."""
        return float(value)


class Number(Control, param.Number):
    """A quantity on a slider, with log-spaced stops where it spans decades; typed values may lie between the
    stops."""

    kind = "number"

    def __init__(
        self,
        label: str,
        default: float,
        low: float,
        high: float,
        family: str = "count",
        stops: int | Sequence[float] = 64,
        log: bool = True,
        whole: bool = False,
        marks: Sequence[float] = (),
        more: bool | str = False,
        help: str = "",
        slider: bool = True,
        only: str = "",
        until: str = "",
    ) -> None:
        self.until = until  # a control that puts this one back to its default when it is moved on the page
        self.family, self.log, self.whole, self.more, self.help = family, log, whole, more, help
        self.slider = slider  # without a slider the number is only typed: it is a name, not a quantity
        self.only = only  # what the stops are ("a power of two"), if nothing between them may be typed
        self._marks = (default, *marks)
        self._stops = stops
        self.limits = low, high
        super().__init__(
            default=float(default),  # as what the page sets
            bounds=self.limits,
            label=label,
            step=1 if whole else None,
            allow_refs=True,
        )

    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        """The number itself. param's own ``__get__`` would check each time whether the value is a function of
        time."""
        return param.Parameter.__get__(self, obj, objtype)

    def _validate(self, val: Any) -> None:
        """Refuses a value that is set in Python with the same words as one from a link."""
        self.declared().read(val)

    @cached_property
    def grid(self) -> np.ndarray:
        """The stops of a drag, rounded to figures that a person would choose; they always include the default
        and the marks. The array must not be written to."""
        stops = self._rounded()
        stops.flags.writeable = False
        return stops

    def _rounded(self) -> np.ndarray:
        if not isinstance(self._stops, int):
            return np.array(self._stops, dtype=float)
        low, high = self.limits
        space = np.geomspace if self.log else np.linspace
        values = [units.round_significant(v, 2 if self.log else 6) for v in space(low, high, self._stops)]
        if self.whole:
            values = [round(v) for v in values]
        near = 0.02 if self.log else 1e-9  # a stop too close to a mark would make two steps look like one
        kept = [v for v in values if all(abs(v - m) > near * abs(m) for m in self._marks)]
        return np.array(sorted({float(v) for v in (*kept, *self._marks, low, high) if low <= v <= high}))

    def read(self, raw: Any) -> float:
        low, high = self.limits
        kind = self.only or f"a {'whole ' if self.whole else ''}number"
        allowed = f"{kind} from {low:g} to {high:g}"
        try:
            value = float(raw)
        except (TypeError, ValueError):
            raise BadValue(f"{self.called()} must be {allowed}, got {raw!r}") from None
        fits = low <= value <= high and (not self.whole or value == int(value))
        if not fits or (self.only and value not in self.grid):
            raise BadValue(f"{self.called()} must be {allowed}, got {raw!r}")
        return value

    def write(self, value: float) -> str:
        short = f"{value:.12g}"
        kept = self.limits[0] <= float(short) <= self.limits[1]  # rounding must not lead out of bounds
        return (short if kept else repr(float(value)).removesuffix(".0")).replace(
            "e+", "e"
        )  # a plus means a space in a link

    def describe(self) -> dict:
        low, high = self.limits
        return super().describe() | {
            "family": self.family,
            "low": low,
            "high": high,
            "whole": self.whole,
            **({"only": self.only} if self.only else {}),
            **({"until": self.until} if self.until else {}),
            "grid": self.grid.tolist(),
            "default": float(self.default),
        }


class Player(Number):
    """A position in an animation: it has a play button, a step button and a scrubber, and plays only on
    request.

    The widget's own parts draw the figure for every position; ``frames`` whole steps make up the run.
    """

    kind = "player"

    def __init__(
        self,
        label: str,
        frames: int,
        seconds_per_frame: float = 0.7,
        default: float | None = None,
        tween: int = 20,
        help: str = "",
    ) -> None:
        self.frames, self.seconds = frames, seconds_per_frame
        super().__init__(
            label,
            frames if default is None else default,
            0,
            frames,
            stops=frames * tween + 1,
            log=False,
            help=help,
        )

    def describe(self) -> dict:
        return super().describe() | {"frames": self.frames, "seconds": self.seconds}


class Bits(Control, param.Number):
    """A row of bits, each a button: the value has a 1 for each bit that is flipped, starting from the last
    bit.

    The widget decides what a button shows: ``faces`` names the part whose columns give, from the first bit
    on, its ``bit``, its purpose (``role``, an index into ``roles``) and whether it is flipped (``turned``).
    If the part has fewer rows, the remaining bits are hidden. The bits belong to one pattern, so on the page
    moving any other control resets them.
    """

    kind = "bits"

    def __init__(
        self,
        label: str,
        bits: int,
        faces: str,
        roles: tuple[str, str, str],
        more: bool = False,
        help: str = "",
    ) -> None:
        self.bits, self.faces, self.roles, self.more, self.help = bits, faces, roles, more, help
        self.limits = 0, 2**bits - 1
        super().__init__(default=0, bounds=self.limits, label=label, allow_refs=True)

    @property
    def grid(self) -> np.ndarray:
        """No bit flipped, or one: what a single click can reach."""
        return np.array([0.0, *(2.0**i for i in range(self.bits))])

    def read(self, raw: Any) -> float:
        _, high = self.limits
        text = str(raw).removesuffix(".0")
        if not text.isdecimal() or int(text) > high:
            raise BadValue(f"{self.called()} must be a whole number from 0 to {high}, got {raw!r}")
        return float(text)

    def write(self, value: float) -> str:
        return f"{value:.0f}"

    def describe(self) -> dict:
        return super().describe() | {
            "low": 0,
            "high": self.limits[1],
            "whole": True,
            "default": 0,
            "faces": self.faces,
            "roles": list(self.roles),
        }


class Choice(Control, param.Selector):
    """One of several things. Options are catalogue entries (with ``key`` and ``name``) or a dict of key ->
    (label, value)."""

    kind = "choice"

    def __init__(
        self,
        label: str,
        options: Sequence[Any] | dict[Any, tuple[str, Any]],
        default: str,
        more: bool | str = False,
        help: str = "",
    ) -> None:
        if not isinstance(options, dict):
            options = {o.key: (o.name, o) for o in options}
        self.keys, self.labels = list(options), [label for label, _ in options.values()]
        if default not in self.keys:
            raise BadValue(f"the default must be one of {', '.join(self.keys)}; got {default!r}")
        self.options, self.more, self.help = [value for _, value in options.values()], more, help
        super().__init__(
            objects=dict(zip(self.labels, self.options)),
            default=self.options[self.keys.index(default)],
            label=label,
            allow_refs=True,
        )

    def __set__(self, obj: Any, val: Any) -> None:
        """Sets the option for a key, even if the key comes from another component's parameter."""
        own = self.declared()
        super().__set__(obj, param.bind(own.taken, val) if is_reference(val) else own.taken(val))

    def taken(self, value: Any) -> Any:
        """The option, if it is given by its key."""
        return self.read(value) if isinstance(value, str) and value in self.keys else value

    def _validate(self, val: Any) -> None:
        own = self.declared()
        if val not in own.options:
            raise BadValue(f"{self.called()} must be one of {', '.join(own.keys)}; got {val!r}")

    def index(self, value: Any) -> int:
        return next(i for i, option in enumerate(self.options) if option is value or _same(option, value))

    def read(self, raw: Any) -> Any:
        if str(raw) not in self.keys:
            raise BadValue(f"{self.called()} must be one of {', '.join(self.keys)}; got {raw!r}")
        return self.options[self.keys.index(str(raw))]

    def at(self, index: int) -> Any:
        """The option at an index, which is what the page stores."""
        if index not in range(len(self.options)):
            raise BadValue(
                f"{self.called()} must be the place of one of {len(self.options)} options, got {index!r}"
            )
        return self.options[int(index)]

    def write(self, value: Any) -> str:
        return self.keys[self.index(value)]

    def symbol(self, graph: Graph) -> Real:
        index = control(graph, self.name)
        if isinstance(self.options[0], (int, float, str)):
            return merge(graph, index, self.options)
        return Picked(graph, index, self.options)

    def raw(self, value: Any) -> int:
        return self.index(value)

    def describe(self) -> dict:
        return super().describe() | {
            "keys": self.keys,
            "labels": self.labels,
            "default": self.index(self.default),
        }


def degrees(*values: int) -> dict:
    """Options of a choice among numbers."""
    return {str(value): (str(value), float(value)) for value in values}


class Switch(Control, param.Boolean):
    """On or off. ``until`` names a control that turns it off when it is moved on the page."""

    kind = "switch"

    def __init__(
        self, label: str, default: bool = False, more: bool | str = False, help: str = "", until: str = ""
    ) -> None:
        self.more, self.help, self.until = more, help, until
        super().__init__(default=default, label=label, allow_refs=True)

    def read(self, raw: Any) -> bool:
        text = str(raw).lower()
        if text not in ("0", "1", "true", "false", "on", "off"):
            raise BadValue(f"{self.called()} must be on or off, got {raw!r}")
        return text in ("1", "true", "on")

    def write(self, value: bool) -> str:
        return "on" if value else "off"

    def symbol(self, graph: Graph) -> Real:
        return control(graph, self.name) == 1

    def raw(self, value: bool) -> int:
        return int(value)

    def describe(self) -> dict:
        return super().describe() | {"default": int(self.default), "until": self.until}


def _same(a, b) -> bool:
    return type(a) is type(b) and isinstance(a, (int, float, str)) and a == b
