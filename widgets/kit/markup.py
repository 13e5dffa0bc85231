"""The HTML of a widget, whole and readable before any script has run."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markdown import Markdown
from markupsafe import Markup

from engine import units
from widgets.kit import export, prose


@cache
def _templates() -> Environment:
    return Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)


def rich(text: str) -> Markup:
    """Markdown with formulas and computed numbers, for a widget's caption, formula or answers."""
    converter = Markdown(
        extensions=["pymdownx.inlinehilite", "widgets.kit.mathml"],
        extension_configs={"pymdownx.inlinehilite": {"custom_inline": [{"name": "n", "class": "n", "format": prose.number}]}},
    )
    return Markup(converter.convert(text))


def rich_line(text: str) -> Markup:
    """The same for one line, without its paragraph."""
    return Markup(rich(text).removeprefix("<p>").removesuffix("</p>"))


def _control(id: str, control, raw) -> Markup:
    fields = {"id": id, "control": control, "value": raw}
    if control.kind in ("number", "player"):
        fields["at"] = int(np.argmin(abs(control.grid - raw)))
        fields["text"] = units.human(raw, control.family)
    return Markup(_templates().get_template("control.html").render(**fields))


def _folds(cls) -> dict[str, list]:
    """Title -> the controls that are folded away under it."""
    folds = {}
    for control in cls.controls().values():
        if control.kind != "player" and control.more:
            folds.setdefault("more" if control.more is True else control.more, []).append(control)
    return dict(sorted(folds.items(), key=lambda fold: fold[0] != "more"))


def figure(widget, id: str, predict: dict | None = None, level: int = 3) -> Markup:
    """The widget's ``<figure>`` in its present state; its title is a heading of this level."""
    cls, shown, raw = type(widget), widget.shown(), widget.raw_state()
    home = {name: control.describe()["default"] for name, control in cls.controls().items()}
    said = cls.methods("readout_label")
    readouts = [(key, said[key].readout_label, value["text"], bool(value["alarm"])) for key, value in shown["readouts"].items()]
    return Markup(_templates().get_template("widget.html").render(
        id=id, level=level, slug=cls.slug(), widget=widget, version=export.version(cls),
        initial=json.dumps({name: value for name, value in raw.items() if value != home[name]}),
        predict=predict, presets=list(cls.presets), controls=list(cls.controls().values()), folds=_folds(cls),
        element=lambda control: _control(id, control, raw[control.name]),
        height=export.height(cls),
        readouts=[each for each in readouts if not said[each[0]].readout_given],
        given=[each for each in readouts if said[each[0]].readout_given],
        actions=[(name, method.action_label) for name, method in cls.methods("action_label").items()],
        documents=[(key, method.document_label, method.document_file, shown["documents"][key])
                   for key, method in cls.methods("document_label").items()],
        summary=shown["summary"],
        regimes=[(key, value["text"]) for key, value in shown["regimes"].items() if value["met"]],
        assumptions=rich_line(widget.assumptions), formula=rich(widget.formula) if widget.formula else "",
    ))
