"""The Markdown fence for a static picture, drawn by a module of course/diagrams.

    ``` diagram
    name: schedule
    schedule: 1f1b                       an argument of its function `draw`, if it has any
    caption: >-
      What to see in it, as Markdown, with computed numbers where there are any.
    ```

An unknown module, argument or value stops the build with file and line.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from functools import partial

from course import diagrams, numbers, strict_yaml, widget_html
from course.drawing import page
from course.fences import base
from widgets.kit.controls import BadValue

FIELDS = ("name", "caption")
KINDS: dict[str, Callable] = {"str": str, "int": int, "float": float}


def names() -> list[str]:
    """The names of all pictures."""
    return sorted(module.name for module in pkgutil.iter_modules(diagrams.__path__))


def drawing(name: str) -> Callable:
    """The function that draws a picture, given a width and its arguments."""
    if name not in names():
        raise BadValue(f"there is no diagram {name!r}; there are {', '.join(names())}")
    return importlib.import_module(f"course.diagrams.{name}").draw


def arguments(name: str, draw: Callable, options: dict, source: str) -> dict:
    """The options of a fence as arguments of a picture; Refused at the line of one that is unknown."""
    parameters = list(inspect.signature(draw).parameters.values())[1:]  # without the width
    known = {parameter.name: parameter for parameter in parameters}
    given = {key: value for key, value in options.items() if key not in FIELDS}
    for key in given:
        if key not in known:
            raise base.Refused(
                f"{name} has no argument {key!r}; it has {', '.join(known) or 'none'}",
                strict_yaml.line_of(source, key),
            )
    for key, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and key not in given:
            raise base.Refused(f"{name} needs a line '{key}: …'")
    return {key: _value(key, known[key].annotation, value, source) for key, value in given.items()}


def _value(key: str, kind: str, value: str, source: str):
    try:
        return KINDS[kind](value)
    except ValueError:
        what = {"int": "a whole number", "float": "a number"}[kind]
        raise base.Refused(f"{key} must be {what}, got {value!r}", strict_yaml.line_of(source, key)) from None


def render(source: str) -> str:
    """The HTML of one fence."""
    options = base.options(source, needed=FIELDS)
    draw = drawing(options["name"])
    given = arguments(options["name"], draw, options, source)
    address = "-".join(["d", options["name"], *(re.sub(r"\W+", "-", str(value)) for value in given.values())])
    try:
        return page.figure(address, partial(draw, **given), widget_html.rich_line(options["caption"]))
    except ValueError as error:
        if isinstance(error, BadValue):
            raise
        raise base.Refused(f"{options['name']}: {error}") from error


def depends_on(source: str) -> tuple[str, ...]:
    """The modules behind a fence's HTML."""
    name = re.search(r"^name:\s*(\w+)\s*$", source, re.MULTILINE)
    drawn = (f"course.diagrams.{name[1]}",) if name and name[1] in names() else ()
    return (__name__, *drawn)


format = base.formatter(lambda source: numbers.kept("diagram", source, render, depends_on(source)))
