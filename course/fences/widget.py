"""The Markdown fence that puts a widget into a lesson.

    ``` widget
    name: memory_stack
    size: 13e9                                  any control, as written in a link
    predict: One H100 holds the state of about …     what a reader answers before the figure is
    asks: h100.hbm_bytes / 16 | params          uncovered: fences/prediction.py says what may stand here
    why: The state takes `#!n 16 * 5e9 | GB` …
    ```

An unknown widget, control or value stops the build with file and line.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from course import lessons, numbers, strict_yaml, widget_html
from course.fences import base, prediction
from widgets.kit.controls import BadValue
from widgets.kit.page import module
from widgets.kit.widget import all_widgets


def _require_controls(widget, options: dict, source: str) -> None:
    """Refused at the first key that belongs neither to a control nor to the prediction."""
    controls = widget.controls()
    if unknown := [key for key in options if key not in controls and key not in prediction.KEYS]:
        raise base.Refused(
            f"{widget.slug()} has no control {unknown[0]!r}; it has {', '.join(controls)}, and a prediction "
            f"has {', '.join(prediction.KEYS)}",
            strict_yaml.line_of(source, unknown[0]),
        )


def render(source: str) -> str:
    """The HTML for one fence; BadValue says what is wrong with it."""
    options = base.options(source, needed=["name"])
    name = options.pop("name")
    if not isinstance(name, str) or name not in all_widgets():
        raise BadValue(f"there is no widget {name!r}; there are {', '.join(sorted(all_widgets()))}")
    widget = all_widgets()[name]()
    _require_controls(widget, options, source)
    widget.set_state({key: value for key, value in options.items() if key not in prediction.KEYS})
    predict = prediction.asked(options, widget, source)
    return widget_html.figure(widget, f"w-{name}", predict, _level(source))


def _level(source: str) -> int:
    """The level of the figure's title as a heading: one below the page's where no part of the page has begun."""
    lesson = lessons.current()
    return 2 if lesson and source.strip() in lesson.text.partition("\n## ")[0] else 3


def depends_on(source: str) -> tuple[str, ...]:
    """The modules behind a fence's HTML: the widget's, and those that its texts and the fence use to
    compute."""
    name = re.search(r"^name:\s*(\w+)\s*$", source, re.MULTILINE)
    if not name or name[1] not in all_widgets():
        return (__name__,)  # render reports what is wrong with it
    cls = all_widgets()[name[1]]
    written = Path(inspect.getfile(cls)).read_text(encoding="utf-8")
    return tuple(
        sorted({__name__, prediction.__name__, *module.depends_on(cls), *numbers.named_in(source + written)})
    )


format = base.formatter(lambda source: numbers.kept("fence", source, render, depends_on(source)))
