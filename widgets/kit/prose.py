"""Numbers in prose, computed by the engine while the site is built.

    `#!n memory.state_bytes(70e9, recipe("bf16-adam")) | TB`        -> 1.12 TB

Before the bar: a Python expression over the engine's modules, its catalogue (gpu, model, recipe, price, link, node),
numpy as np and a few plain functions. Behind it: a unit (TB, ms, %) or a family that picks its own unit (bytes,
seconds), then perhaps the number of significant digits: `| TB, 2`. With nothing behind it the value is shown as a plain
number; text is shown as it is. The page shows the value, and the expression on hover, focus or touch.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import xml.etree.ElementTree as etree
from functools import cache

import numpy as np
from markdown.util import AtomicString

import engine
from engine import units

from .kept import kept_text
from .locate import fault

PLAIN = {"__import__": __import__,  # numpy itself imports lazily, with the builtins of whoever calls it
         "min": min, "max": max, "abs": abs, "sum": sum, "len": len, "round": round, "range": range, "dict": dict}
FORM = re.compile(r"^(?P<expression>.+?)(?:\s\|\s*(?P<unit>[^|,()?]+?)(?:\s*,\s*(?P<digits>[1-9]\d?))?)?"
                  r"(?:\s\?\s(?P<asked>.+?)(?:,\s(?P<within>exactly|within\s[\d.]+\s%)(?:\s(?P<side>below|above))?)?"
                  r"(?:,\sunless\s(?P<trap>.+?):\s(?P<hint>.+?))?)?\s*$", re.DOTALL)

ASKED = "data-asked"     # on a number that a reader is asked for: its source


@cache
def namespace() -> dict:
    """What an expression may name: every engine module, the catalogue's loaders, numpy, and a few plain functions."""
    names = {"np": np, "__builtins__": PLAIN}
    for module in pkgutil.iter_modules(engine.__path__):
        if not module.name.startswith("_"):
            names[module.name] = importlib.import_module(f"engine.{module.name}")
    catalogue = names.get("catalog")
    for loader in ("gpu", "model", "recipe", "price", "link", "node"):
        if hasattr(catalogue, loader):
            names[loader] = getattr(catalogue, loader)
    return names


def show(value, unit: str | None, digits: int = 3) -> str:
    """The value as the engine's formatter writes it in this unit or family."""
    if isinstance(value, str) and unit is None:
        return value
    value = float(value)
    if unit is None:
        return units.number(value, digits)
    return units.human(value, unit, digits) if unit in units.FAMILIES else units.in_unit(value, unit, digits)


@cache
def computed(expression: str) -> float | str:
    """The value of an expression; raises whatever it raises."""
    return json.loads(kept_text("value", expression, _value))


def _value(expression: str) -> str:
    """The same, as it is kept."""
    value = eval(expression, namespace())  # a lesson is this repository's own code
    return json.dumps(value if isinstance(value, str) else float(value))


def evaluate(source: str) -> str:
    """'memory.state_bytes(70e9) | TB' -> '1.12 TB'; raises whatever the expression or the unit raises."""
    form = FORM.match(source)
    return show(computed(form["expression"]), form["unit"], int(form["digits"] or 3))


def number(source: str, language: str, css_class: str, md) -> str | etree.Element:
    """The pymdownx inlinehilite formatter of `#!n …`: the shown value, carrying its expression."""
    try:
        shown = evaluate(source)
    except Exception as error:
        raise fault(source, f"cannot compute `{source}`: {type(error).__name__}: {error}") from error
    form = FORM.match(source)
    number = etree.Element("span", {"class": "n", "tabindex": "0", "role": "note", "data-expr": form["expression"]})
    number.text = AtomicString(shown.replace(" ", "\u00a0"))
    if form["asked"]:
        number.set(ASKED, source)
        return number                       # an element: widgets/kit/answer.py looks for it
    return md.htmlStash.store(etree.tostring(number, encoding="unicode"))


def bar(source: str, language: str, css_class: str, md) -> str:
    """The formatter of `#!bar …`: a bar whose length is a computed share of its row, beside the number that says it."""
    try:
        share = float(eval(source, namespace()))
    except Exception as error:
        raise fault(source, f"cannot compute `{source}`: {type(error).__name__}: {error}") from error
    if not 0 <= share <= 1:
        raise fault(source, f"a bar must be between 0 and 1 long, `{source}` is {share:g}")
    return md.htmlStash.store(f'<span class="bar" style="width: {share:.2%}" aria-hidden="true"></span>')
