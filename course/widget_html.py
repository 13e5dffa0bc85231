"""The HTML of a widget, complete and readable before any script has run."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markdown import Markdown
from markupsafe import Markup

from course import numbers
from engine import puzzles
from engine.base import units
from widgets.kit import guide
from widgets.kit.page import module
from widgets.kit.widget import Widget


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, trim_blocks=True
    )
    templates.filters["unbroken"] = units.unbroken
    return templates


def rich(text: str) -> Markup:
    """Markdown with formulas and computed numbers, for a widget's caption, formula or answers."""
    converter = Markdown(
        extensions=["pymdownx.inlinehilite", "course.mathml"],
        extension_configs={
            "pymdownx.inlinehilite": {
                "custom_inline": [{"name": "n", "class": "n", "format": numbers.number}]
            }
        },
    )
    return Markup(converter.convert(text))


def rich_line(text: str) -> Markup:
    """The HTML of one line of Markdown as in ``rich``, without the paragraph around it."""
    return Markup(rich(text).removeprefix("<p>").removesuffix("</p>"))


SHORT = 230  # characters of a caption, three lines of a wide figure
SENTENCE_ENDS = re.compile(r"(?<=[.?!])\s+(?=[A-Z○])")


def caption(assumptions: str) -> tuple[str, str]:
    """(what stands under a figure, what is folded): the first sentences of its assumptions, as many as are
    read at a glance, and the others."""
    first, *others = SENTENCE_ENDS.split(assumptions)
    while others and len(first) + len(others[0]) < SHORT:
        first = f"{first} {others.pop(0)}"
    return first, " ".join(others)


def _control(name: str, control, raw, main: bool) -> Markup:
    fields = {"id": name, "control": control, "value": raw, "main": main}
    if control.kind in ("number", "player"):
        fields["at"] = int(np.argmin(abs(control.grid - raw)))
        fields["text"] = units.human(raw, control.family)
    return Markup(_templates().get_template("control.html").render(**fields))


def _folds(cls) -> dict[str, list]:
    """Title -> the controls that are folded away under it."""
    folds = {}
    for control in cls.controls().values():
        if control.kind != "player" and control.more and not control.under_plot:
            folds.setdefault("more" if control.more is True else control.more, []).append(control)
    return dict(sorted(folds.items(), key=lambda fold: fold[0] != "more"))


def main_control(cls: type[Widget]) -> str:
    """The control that a phone shows without unfolding: the widget's own choice, or else the first visible
    slider, or else the first control."""
    if cls.on_phone:
        return cls.on_phone
    in_sight = [each for each in cls.controls().values() if each.kind != "player" and not each.more]
    return next((each.name for each in in_sight if each.kind == "number"), in_sight[0].name)


def _on_a_phone(cls: type[Widget]) -> set[str]:
    """The controls that a phone shows without unfolding: the main one, and a pattern of bits, which is the
    figure's subject."""
    return {main_control(cls)} | {each.name for each in cls.controls().values() if each.kind == "bits"}


def _folded_on_a_phone(cls: type[Widget]) -> int:
    """How many controls a phone folds behind one button; 0 for a form, whose parts stay open."""
    if cls.sections:
        return 0
    controls = [each for each in cls.controls().values() if each.kind != "player" and not each.under_plot]
    return sum(each.name not in _on_a_phone(cls) for each in controls)


def _opens(cls: type[Widget]) -> dict[str, str] | None:
    """What the page needs to open a part of the widget as code in a puzzle."""
    if cls.opens is None:
        return None
    name, part = cls.opens
    puzzle = puzzles.puzzle(name)
    about = {"title": puzzle.TITLE, "lesson": puzzle.LESSON, "code": puzzle.PLACED}
    return {"puzzle": name, "part": part, **about}


def figure(widget: Any, name: str, predict: dict | None = None, level: int = 3) -> Markup:
    """The widget's ``<figure>`` in its current state; its title is a heading of this level."""
    cls, shown, raw = type(widget), widget.shown(), widget.raw_state()
    home = {name: control.describe()["default"] for name, control in cls.controls().items()}
    said, on_phone = cls.methods("readout_label"), _on_a_phone(cls)
    targets = cls.methods("regime_target")
    readouts = [
        (key, said[key].readout_label, said[key].readout_help, value["text"], bool(value["alarm"]))
        for key, value in shown["readouts"].items()
    ]
    seen, folded = caption(widget.assumptions)
    return Markup(
        _templates()
        .get_template("widget.html")
        .render(
            id=name,
            level=level,
            slug=cls.slug(),
            widget=widget,
            version=module.version(cls),
            initial=json.dumps({name: value for name, value in raw.items() if value != home[name]}),
            predict=predict,
            presets=list(cls.presets),
            controls=list(cls.controls().values()),
            folds=_folds(cls),
            element=lambda control: _control(name, control, raw[control.name], control.name in on_phone),
            others=_folded_on_a_phone(cls),
            height=module.height(cls),
            tour=guide.tour(cls),
            opens=_opens(cls),
            readouts=[
                each for each in readouts if not (said[each[0]].readout_given or said[each[0]].readout_rest)
            ],
            rest=[each for each in readouts if said[each[0]].readout_rest],
            given=[each for each in readouts if said[each[0]].readout_given],
            actions=[(name, method.action_label) for name, method in cls.methods("action_label").items()],
            documents=[
                (key, method, shown["documents"][key])
                for key, method in cls.methods("document_label").items()
            ],
            summary=shown["summary"],
            measured=shown.get("measured", ""),
            unmeasured=bool(shown.get("unmeasured", False)),
            regimes=[
                (key, value["text"], targets[key].regime_target)
                for key, value in shown["regimes"].items()
                if value["met"]
            ],
            assumptions=rich_line(seen),
            left_out=rich_line(folded) if folded else "",
            formula=rich(widget.formula) if widget.formula else "",
        )
    )
