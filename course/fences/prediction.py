"""The question that a widget's fence asks before it shows the figure: a choice, a number or a point on the
figure's axis.

    predict: One H100 holds the training state of a model of about …
    asks: h100.hbm_bytes / 16 | params       what is right: an expression and its unit, as in prose
    slider: [100M, 1T]                       a logarithmic slider between these; without it, a field to type in
    mark: x                                  shows guess and truth on this axis of the figure
    seen: readout("fits", size=70e9)         the readout that says it, and the state in which it does
    why: At 16 bytes a parameter …

Once it is answered, the figure goes to the state of ``seen`` and shows the reader's number beside that
readout; where ``asks`` is itself a readout, that is the one. ``point: x`` instead of ``slider`` asks for a
place on the figure's own axis. If a unit of the axis is not one of the engine's (gigabytes, say), ``per`` is
its size: 1e9. A choice has ``answers`` and ``right``, the index of the right one or an expression for it; its
``seen`` may be a readout of words as well ("infinity"). In each expression ``readout("name", control=value, …)`` is the value of the widget's readout, and ``part("name",
…)`` the columns of one of its parts, in the fence's state with these controls changed.

No text above may give the answer away (``course/spoilers.py``). The answer is the value of ``asks``, however
it is written, the right choice in its own words if these are three or more, and the phrases in ``told_by``,
where {} is replaced by that value; ``not_by`` lists phrases of the text in which the same means something else.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from course import exercises, numbers, widget_html
from course.lessons import LessonFault
from course.strict_yaml import Refused, line_of
from engine.base import typed, units
from widgets.kit import guide
from widgets.kit.controls import BadValue
from widgets.kit.drawing import figure as fig
from widgets.kit.widget import Widget

KEYS = (
    "predict",
    "answers",
    "right",
    "asks",
    "slider",
    "point",
    "mark",
    "per",
    "seen",
    "told_by",
    "not_by",
    "why",
)
OF_A_CHOICE = ("answers", "right")
OF_A_NUMBER = ("slider", "point", "mark", "per")
LISTS = ("answers", "slider", "told_by", "not_by")
AXES = ("x", "y")
AS_SHOWN = 0.006  # a readout is rounded to three digits
LEAST_WORDS = 3  # an answer of fewer words occurs in every text and means something else there
SMALL = 100  # a smaller count without a unit occurs in every text, so only phrases can reveal it


def key(question: str) -> str:
    """The key under which a prediction is remembered."""
    return re.sub(r"\W+", "-", question.lower())[:40].strip("-")


def asked(options: dict, widget: Widget, source: str) -> dict | None:
    """What the fence's template needs for its prediction, or None if there is none; Refused says what is
    wrong with it and on which line."""
    given = [name for name in KEYS if name in options]
    if not given:
        return None
    for name in given:
        _require_texts(source, name, options[name])
    is_choice = any(name in options for name in OF_A_CHOICE)
    needed = ("predict", *(OF_A_CHOICE if is_choice else ("asks",)), "why")
    if missing := [name for name in needed if name not in options]:
        raise _refused(
            source, f"a prediction needs {', '.join(needed)}; missing: {', '.join(missing)}", given[0]
        )
    if is_choice and (strange := [name for name in OF_A_NUMBER if name in options]):
        raise _refused(source, "a prediction with answers has no slider, point, mark or per", strange[0])
    truth = _truth(options, widget, source)
    choice = _choice(options, truth, widget, source) if is_choice else {}
    phrases = _phrases(options, "told_by", truth, source) + _own_words(options, choice)
    if truth is None and not phrases:
        raise _refused(
            source,
            "the text above must not answer this: name what would, by asks: EXPRESSION | UNIT or told_by: [phrase, …]",
            "predict",
        )
    told = {
        "source": source,
        "phrases": phrases,
        "not_by": _phrases(options, "not_by", truth, source),
        **({"value": truth["value"], "family": truth["family"]} if truth else {}),
    }
    about = {
        "key": key(options["predict"]),
        "question": widget_html.rich_line(options["predict"]),
        "why": widget_html.rich_line(options["why"]),
        "told": json.dumps(told, ensure_ascii=False),
    }
    return about | (choice or _number(options, truth, widget, phrases, source))


def _require_texts(source: str, name: str, value: Any) -> None:
    """Refused unless an option is a text or, where it may be several, a list of texts."""
    several = value if name in LISTS and isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in several):
        raise _refused(source, f"{name} must be a {'list of texts' if name in LISTS else 'text'}", name)


def _refused(source: str, message: str, *keys: str) -> Refused:
    return Refused(message, line_of(source, *keys))


# -- the three kinds -----------------------------------------------------------------------------------------
def _choice(options: dict, truth: dict | None, widget: Widget, source: str) -> dict:
    answers = options["answers"]
    if not isinstance(answers, list) or not 2 <= len(answers) <= 4:
        raise _refused(source, "answers must be a list of two to four", "answers")
    right = int(_right("right", "an index", options["right"], widget, source))
    if not 0 <= right < len(answers):
        raise _refused(source, f"right must be from 0 to {len(answers) - 1}, got {right}", "right")
    return {
        "kind": "choice",
        "right": right,
        "answers": [widget_html.rich_line(each) for each in answers],
        "seen": _seen(options, truth, widget, source) if "seen" in options else "",
    }


def _own_words(options: dict, choice: dict) -> list[str]:
    """The words of the right choice, if they are so many that they mean the same in the text above: "half as
    long again", but not "fits"."""
    right = str(options["answers"][choice["right"]]) if choice else ""
    return [right] if len(right.split()) >= LEAST_WORDS else []


def _number(options: dict, truth: Any, widget: Widget, phrases: list[str], source: str) -> dict:
    """A number that is typed, set on a slider or pointed at."""
    value, family = truth["value"], truth["family"]
    if not value > 0:
        raise _refused(
            source,
            f"what is asked must be above 0, since a guess is judged by a factor; got {value:g}",
            "asks",
        )
    if family in ("count", "real", "times") and value < SMALL and not phrases:
        raise _refused(
            source,
            f'{truth["shown"]} stands in every text: name what would tell it, told_by: ["{truth["shown"]} …"]',
            "asks",
        )
    if "slider" in options and "point" in options:
        raise _refused(source, "a prediction has a slider or a point, not both", "point")
    kind = next((name for name in ("slider", "point") if name in options), "number")
    axis = options.get("point", options.get("mark"))
    if "point" in options and "mark" in options:
        raise _refused(source, "a point is marked on its own axis: leave mark away", "mark")
    if "per" in options and axis is None:
        raise _refused(source, "per is of an axis: name it with point or mark", "per")
    per = _evaluated("per", "a number", options["per"], widget, source) if "per" in options else 1.0
    if axis is not None:
        _require_on_axis(widget, axis, value / per, "point" if "point" in options else "mark", source)
    return truth | {
        "kind": kind,
        "axis": axis or "",
        "per": per,
        "ends": _ends(options["slider"], truth, source) if kind == "slider" else None,
        "seen": _seen(options, truth, widget, source),
    }


def _truth(options: dict, widget: Widget, source: str) -> dict | None:
    """The right value, its family, and how it is shown."""
    if "asks" not in options:
        return None
    if not isinstance(options["asks"], str):
        raise _refused(
            source, "asks must be an expression and its unit: h100.hbm_bytes / 16 | params", "asks"
        )
    form = numbers.FORM.match(options["asks"])
    if form is None or form["asked"]:
        raise _refused(
            source, "asks must be an expression and its unit: h100.hbm_bytes / 16 | params", "asks"
        )
    value = _right("asks", "a number", form["expression"], widget, source)
    if not math.isfinite(value):
        raise _refused(source, f"asks must come to a finite number, got {value}", "asks")
    try:
        digits = int(form["digits"] or 3)
        shown = numbers.show(value, form["unit"], digits)
    except ValueError as error:
        raise _refused(source, f"asks: {error}", "asks") from None
    _, family, scale, hint = exercises.unit_asked(form["unit"], shown)
    return {"value": value, "shown": shown, "family": family, "scale": scale, "hint": hint, "digits": digits}


def _ends(given: Any, truth: dict, source: str) -> tuple[float, float]:
    """The two ends of a logarithmic slider, between which the right value lies."""
    found = (
        [typed.parse(str(each), truth["family"]).value for each in given] if isinstance(given, list) else []
    )
    if (
        len(found) != 2
        or None in found
        or not 0 < (low := float(found[0] or 0)) < (high := float(found[1] or 0))
    ):
        raise _refused(
            source,
            "slider must be [lowest, highest], two quantities above 0 of the kind that is asked",
            "slider",
        )
    if not low < truth["value"] < high:
        raise _refused(source, f"the slider does not reach what is right, {truth['shown']}", "slider")
    return low, high


def _phrases(options: dict, name: str, truth: dict | None, source: str) -> list[str]:
    """Phrases of the text; {} is replaced by the right value as it is shown."""
    given = options.get(name, [])
    if not isinstance(given, list) or not all(isinstance(each, str) and each.strip() for each in given):
        raise _refused(source, f"{name} must be a list of phrases", name)
    if truth is None and any("{}" in phrase for phrase in given):
        raise _refused(
            source, f"{name}: {{}} stands for what asks comes to, and this prediction has no asks", name
        )
    return [phrase.replace("{}", truth["shown"] if truth else "") for phrase in given]


# -- where the answer is seen --------------------------------------------------------------------------------
def _seen(options: dict, truth: dict | None, widget: Widget, source: str) -> str:
    """For the page: the readout that shows the answer, and the state in which it does; '' if there is none.
    With a mark on an axis the figure keeps the fence's own state, because the mark is right only there."""
    said = options["seen"] if "seen" in options else numbers.form(options["asks"])["expression"]
    on_axis, given = "point" in options or "mark" in options, "seen" in options
    if not _is_readout(said):
        if given:
            raise _refused(source, 'seen must be a readout: readout("name", control=value, …)', "seen")
        return ""
    caught: list[tuple[str, dict]] = []
    name, wanted = ("seen", "a readout") if given else ("asks", "a number")
    reads = quantity if truth else _words
    value = _evaluated(name, wanted, said, widget, source, caught, reads)
    [(readout, controls)] = caught
    if on_axis and controls:
        if given:
            raise _refused(source, "beside a mark on an axis, seen is in the fence's own state", "seen")
        return ""
    if truth and not math.isclose(value, truth["value"], rel_tol=AS_SHOWN):
        raise _refused(source, f"seen says {value:g}, and asks comes to {truth['value']:g}", "seen")
    there = _changed(widget, controls)
    state, words = guide.written(there, controls), guide.settings(there, controls)
    return json.dumps({"readout": readout, "state": state, "words": words}, ensure_ascii=False)


def _is_readout(expression: Any) -> bool:
    try:
        call = ast.parse(str(expression).strip(), mode="eval").body
    except SyntaxError:
        return False
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "readout"


# -- the right answer ----------------------------------------------------------------------------------------
NUMERAL = re.compile(r"\d[\d_.]*(?:e[+-]?\d+)?")


def _right(name: str, wanted: str, expression: str, widget: Widget, source: str) -> float:
    """The right answer, always computed, because a number written by hand goes stale."""
    if not re.search(r"[A-Za-z_]", NUMERAL.sub("", expression)):
        raise _refused(
            source, f"{name} must ask the engine or the widget, not be written down: {expression}", name
        )
    return _evaluated(name, wanted, expression, widget, source)


def _evaluated(
    name: str,
    wanted: str,
    expression: str,
    widget: Widget,
    source: str,
    caught: list | None = None,
    reads: Callable[[str], float] | None = None,
) -> float:
    """The value of an expression of the lesson, which may query the widget; each readout that it queries is
    added to ``caught``, with its controls. ``reads`` turns a readout's text into a number; by default
    it is ``quantity``."""

    def readout(key: str, **controls: Any) -> float:
        if caught is not None:
            caught.append((key, controls))
        return (reads or quantity)(_changed(widget, controls).shown()["readouts"][key]["text"])

    asks = {
        "readout": readout,
        "part": lambda part, **controls: _changed(widget, controls).shown()["parts"][part],
    }
    try:
        # a lesson is this repository's own code
        return float(eval(expression, numbers.names(expression) | asks))
    except LessonFault:  # a fault in a given name, which already names its place
        raise
    except KeyError as error:
        said = (
            f"{widget.slug()} has no {error}"
            if str(error).strip("'") not in expression.split("(")[0]
            else error
        )
        raise _refused(source, f"{name} must be an expression that gives {wanted}: {said}", name) from None
    except Exception as error:
        raise _refused(source, f"{name} must be an expression that gives {wanted}: {error}", name) from None


def _changed(widget: Widget, controls: dict) -> Widget:
    """The widget with these controls changed."""
    there = type(widget)()
    there.set_raw(widget.raw_state())
    there.set_state({name: str(value) for name, value in controls.items()})
    return there


AMOUNT = re.compile(r"(?P<dollar>\$?)(?P<amount>[−-]?\d[\d,]*(?:\.\d+)?)(?P<gap>[\s\u00a0]?)(?P<unit>.*)")


def _words(_: str) -> float:
    """NaN, because a readout in words has no value to compare."""
    return math.nan


def quantity(text: str) -> float:
    """The value of a readout's text, in SI: '1.12 TB', '48.4 %', '16', '5.31B', '$3.2M'."""
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise BadValue(f"the readout says {text!r}, which is no number")
    amount, unit = float(found["amount"].replace(",", "").replace("−", "-")), found["unit"]
    if not unit and not found["dollar"]:
        return amount
    counted = not found["gap"] and unit in typed.words("params")  # 5.31B, where 5 B are bytes
    families = ["dollars"] if found["dollar"] else ["params"] if counted else list(units.FAMILIES)
    scale = next((scale for family in families if (scale := typed.words(family).get(unit)) is not None), None)
    return amount * (1.0 if scale is None else scale)  # "81 GPUs": a count of something


# -- the axis ------------------------------------------------------------------------------------------------
def _require_on_axis(widget: Widget, axis: Any, place: float, name: str, source: str) -> None:
    """Refused unless this axis of the figure is drawn, and the place is on it in the fence's state."""
    if axis not in AXES:
        raise _refused(source, f"{name} must be x or y, got {axis!r}", name)
    drawn = widget.figure(fig.sources(widget))
    shown = getattr(drawn, f"{axis}_range")
    start, end = (float(each) for each in widget.ranges().get(shown.name, (shown.start, shown.end)))
    if not any(each.visible for each in getattr(drawn, f"{axis}axis")):
        raise _refused(source, f"{widget.slug()} shows no {axis} axis to find a place on", name)
    if not np.isfinite(place) or not min(start, end) <= place <= max(start, end):
        raise _refused(
            source,
            f"what is right, {place:g}, is not on the {axis} axis, which goes from {start:g} to {end:g}",
            name,
        )
