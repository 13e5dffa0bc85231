"""Guidance through a figure: names for what can be highlighted in it, and a tour of a few steps.

A **light** is what a sentence highlights while everything else fades. Each part is one, by its name. Where
several parts belong together, or one part is drawn by several glyphs, the widget says so:

    lights = {"idle": Light("the stretches in which a stage waits", ("idle", "gaps"))}

Its marks are parts, or the names that glyphs were given: ``p.quad(…, name="waits")``.

A **tour** is three to six steps, each a sentence and the state in which it is true. Numbers in a sentence
come from the widget: ``{bubble}`` is a readout in that state, ``{stages}`` a control's value, and any other
name a method of the widget that returns a text.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from engine.base import check, units
from widgets.kit.controls import BadValue, Control
from widgets.kit.widget import Widget

FEWEST, MOST = 3, 6  # steps in a tour


class Light(NamedTuple):
    """Something that can be highlighted: what it is, in words for someone who cannot see it, and its parts or
    glyphs."""

    words: str
    marks: tuple[str, ...]


class Step(NamedTuple):
    """A sentence of a tour, the controls that differ from the widget's initial state, and a light."""

    words: str
    state: Mapping[str, Any]
    light: str = ""


class Told(NamedTuple):
    """A step in the form that the page uses: its numbers filled in, its controls as in a link."""

    sentence: str
    state: dict[str, str]
    light: str


# -- lights --------------------------------------------------------------------------------------------------
def lights(cls: type[Widget]) -> dict[str, Light]:
    """Name -> light, for everything that can be highlighted: the widget's own names and each of its parts."""
    parts = {name: Light(name.replace("_", " "), (name,)) for name in cls.methods("part_of")}
    return parts | cls.lights


def require_light(cls: type[Widget], name: str) -> Light:
    """The light of that name; BadValue lists the existing ones."""
    known = lights(cls)
    if name not in known:
        raise BadValue(f"{cls.slug()} has no part {name!r} to light; it has {', '.join(known)}")
    return known[name]


def require_marks(cls: type[Widget], drawn: set[str]) -> None:
    """BadValue unless each light of the widget highlights something that it draws."""
    for name, light in cls.lights.items():
        if missing := [mark for mark in light.marks if mark not in drawn]:
            raise BadValue(
                f"{cls.slug()}: the light {name!r} names {missing[0]!r}, and nothing of that name is drawn; "
                f"there are {', '.join(sorted(drawn))}"
            )


def require_words(cls: type[Widget]) -> None:
    """BadValue unless the widget has all that stands around its picture, and one target."""
    for name in ("question", "assumptions", "formula", "break_it", "presets"):
        if not getattr(cls, name):
            raise BadValue(f"a widget needs a line '{name} = …'")
    targets = [name for name, method in cls.methods("regime_target").items() if method.regime_target]
    if len(targets) != 1:
        found = f"it has {', '.join(targets)}" if targets else "it has none"
        raise BadValue(f"a widget needs one @regime(target=True); {found}")


# -- tours ---------------------------------------------------------------------------------------------------
def setting(control: Control, raw: Any) -> str:
    """A control's value as the page displays it, from what the page stores."""
    about: Any = control
    if control.kind == "choice":
        return about.labels[int(raw)]
    if control.kind == "switch":
        return "on" if raw else "off"
    return str(int(raw)) if control.kind == "bits" else units.human(float(raw), about.family)


def settings(widget: Widget, names: Mapping[str, Any]) -> str:
    """Some controls and their values in words: 'Stages to 16, Micro-batches to 16'."""
    raw, controls = widget.raw_state(), widget.controls()
    return ", ".join(f"{_short(controls[name])} to {_told_of(controls[name], raw[name])}" for name in names)


def _short(control: Control) -> str:
    """A label without the advice behind its colon: 'Bits of the pattern: press one to flip it'."""
    return control.label.partition(":")[0]


def _told_of(control: Control, raw: Any) -> str:
    """A value within a sentence: what was chosen in several words is quoted, and bits are numbered from 0."""
    if control.kind == "bits":
        flipped = [str(bit) for bit in range(int(raw).bit_length()) if int(raw) >> bit & 1]
        return f"bit {', '.join(flipped)} flipped" if flipped else "none flipped"
    words = setting(control, raw)
    return f"“{words}”" if control.kind == "choice" and " " in words else words


def written(widget: Widget, names: Mapping[str, Any]) -> dict[str, str]:
    """Some controls in the form of a link."""
    return {name: widget.controls()[name].write(getattr(widget, name)) for name in names}


class Says(dict):
    """The values that a sentence may name, in the widget's current state."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget, self.shown = widget, widget.shown()

    def __missing__(self, name: str) -> str:
        widget = self.widget
        if name in self.shown["readouts"]:
            return self.shown["readouts"][name]["text"]
        if name in widget.controls():
            return setting(widget.controls()[name], widget.raw_state()[name])
        method = getattr(widget, name, None)
        text = None
        if inspect.ismethod(method) and not inspect.signature(method).parameters:
            with check.trusted():
                text = method()
        if not isinstance(text, str):
            raise BadValue(
                f"a step of {widget.slug()}'s tour says {{{name}}}, which is no readout, control or text of "
                f"it; its readouts are {', '.join(self.shown['readouts'])}"
            )
        return text


@cache
def tour(cls: type[Widget]) -> tuple[Told, ...]:
    """The widget's tour, each sentence in its state; empty if it has none. BadValue says what is wrong."""
    if cls.tour and not FEWEST <= len(cls.tour) <= MOST:
        raise BadValue(f"{cls.slug()}: a tour has {FEWEST} to {MOST} steps, this one {len(cls.tour)}")
    return tuple(_told(cls, step) for step in cls.tour)


def _told(cls: type[Widget], step: Step) -> Told:
    widget = cls()
    widget.set_state(dict(step.state))
    if step.light:
        require_light(cls, step.light)
    return Told(step.words.format_map(Says(widget)), written(widget, step.state), step.light)
