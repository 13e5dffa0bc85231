"""The Markdown fence that puts a widget into a lesson:

    ``` widget
    name: memory_stack
    size: 13e9                                  any control, as it stands in a link
    predict: One H100 holds the state of about …
    answers: [5B, 13B, 40B]
    right: 0                                    an index, or an expression of the engine that gives one
    why: The state takes `#!n 16 * 5e9 | GB` …
    ```

An unknown widget, control or value stops the build and names file and line.
"""

from __future__ import annotations

import re

import yaml

from widgets.kit import markup, prose
from widgets.kit.controls import BadValue
from widgets.kit.kept import kept_text
from widgets.kit.locate import fault
from widgets.kit.widget import all_widgets

PREDICTION = ("predict", "answers", "right", "why")


def _read(source: str) -> dict:
    try:
        options = yaml.load(source, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise BadValue(f"this widget's fence is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(options, dict) or "name" not in options:
        raise BadValue("a widget's fence needs a line 'name: …'")
    return options


def key(question: str) -> str:
    """What a prediction is remembered by."""
    return re.sub(r"\W+", "-", question.lower())[:40].strip("-")


def _prediction(options: dict) -> dict | None:
    given = [key for key in PREDICTION if key in options]
    if not given:
        return None
    if missing := [key for key in PREDICTION if key not in options]:
        raise BadValue(f"a prediction needs {', '.join(PREDICTION)}; missing: {', '.join(missing)}")
    answers = options["answers"]
    if not isinstance(answers, list) or not 2 <= len(answers) <= 4:
        raise BadValue("answers must be a list of two to four")
    try:
        right = int(eval(options["right"], prose.namespace()))  # a lesson is this repository's own code
    except Exception as error:
        raise BadValue(f"right must be an index or an expression that gives one: {error}") from None
    if not 0 <= right < len(answers):
        raise BadValue(f"right must be from 0 to {len(answers) - 1}, got {right}")
    return {"key": key(options["predict"]), "right": right,
            "question": markup.rich_line(options["predict"]), "answers": [markup.rich_line(a) for a in answers],
            "why": markup.rich_line(options["why"])}


def render(source: str) -> str:
    """The HTML for one fence; BadValue says what is wrong with it."""
    options = _read(source)
    name = options.pop("name")
    if name not in all_widgets():
        raise BadValue(f"there is no widget {name!r}; there are {', '.join(sorted(all_widgets()))}")
    predict = _prediction(options)
    widget = all_widgets()[name]()
    widget.set_state({key: value for key, value in options.items() if key not in PREDICTION})
    return markup.figure(widget, f"w-{name}", predict)


def format(source, language, css_class, options, md, **kwargs) -> str:
    """The pymdownx superfences formatter."""
    try:
        return kept_text("fence", source, render)
    except BadValue as error:
        raise fault(source, str(error)) from error
