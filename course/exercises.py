"""Markdown extension: above an exercise's solution, a field for each number that the exercise asks for.

    !!! exercise "The least number of H100s"

        How many H100s hold the training state of a 13B model?

        ??? solution "Solution"

            It is `#!n memory.state_bytes(13e9) | GB ? State of 13B`, so … GPUs.

The field asks "State of 13B", and the right answer is the solution's own number, so nothing is written twice.
For the largest count that fits, write `… ? Users that fit, within 5 % below`, because one more does not fit;
for a count that is needed, "above". A common wrong approach may get its own hint: `… ? Step, unless
memory.weight_bytes(8e9) / 3.35e12: Are the launches in it?`. An exercise without a numeric answer is marked,
`!!! exercise open "Design: …"`, and gets a button instead; it may ask for numbers as well. An exercise with
neither stops the build. The page's script (site/theme/assets/js/answers.js) checks what is typed.
"""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as etree
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from markdown import Extension
from markdown.treeprocessors import Treeprocessor

from course import numbers, slips
from course.lessons import LessonFault, fault
from engine.base import typed, units

if TYPE_CHECKING:
    from markdown.core import Markdown

WITHIN = 0.05  # tolerance of a back-of-the-envelope answer, unless the lesson gives another
# families for which a number without a unit is clear; for the others, the hint names a unit
HINTS = {
    "count": "a number",
    "real": "a number",
    "params": "such as 7B",
    "tokens": "tokens",
    "times": "a factor",
    "percent": "in %, or as 0.12",
    "dollars": "in $",
    "flops_per_byte": "FLOP/B",
}


@dataclass(frozen=True)
class Asked:
    """A number that a reader is asked for: its name, its value in SI, its unit, and the tolerance."""

    label: str
    expected: float
    unit: str  # of a number typed without a unit; "" for none
    family: str
    scale: float  # SI value of one ``unit``
    hint: str
    within: float  # 0 means exactly
    side: str  # "below" or "above": only on this side; "" for both
    shown: str  # as the solution shows it
    trap: float | None  # the result of a known wrong approach
    hint_of_trap: str  # the hint for ``trap``


def unit_asked(unit: str | None, shown: str) -> tuple[str, str, float, str]:
    """(unit, family, scale of a number without a unit, hint) for the unit after an expression's bar."""
    if (unit or "count") in HINTS:
        family = unit or "count"
        return "%" if family == "percent" else "", family, typed.alone(family), HINTS[family]
    if unit in units.FAMILIES:  # a family that picks its own unit: use the one that it picked
        unit = shown.split(" ")[-1]
    unit = unit or ""
    return unit, typed.FAMILY[unit], typed.alone(unit), HINTS["percent"] if unit == "%" else f"in {unit}"


def asked(source: str) -> Asked:
    """'memory.state_bytes(13e9) | GB ? State of 13B' -> the number asked for."""
    form = numbers.form(source)
    value, shown = float(numbers.computed(form["expression"])), numbers.evaluate(source)
    unit, family, scale, hint = unit_asked(form["unit"], shown)
    exactly = form["within"] == "exactly"
    within = 0.0 if exactly else float(form["within"].split()[1]) / 100 if form["within"] else WITHIN
    if not math.isfinite(value) or (value == 0 and not exactly):
        raise fault(
            source,
            f"nobody can type {value} to within a share of it; ask for it exactly, or for another number",
        )
    side = form["side"] or ""
    whole = (exactly or side) and value == round(value) and family == "count"
    return Asked(
        form["asked"],
        value,
        unit,
        family,
        scale,
        "a whole number" if whole else hint,
        within,
        side,
        shown,
        _trap(source, form["trap"], value, within),
        form["hint"] or "",
    )


def _trap(source: str, expression: str | None, expected: float, within: float) -> float | None:
    """The value of a known wrong approach, which must not count as right."""
    if expression is None:
        return None
    trap = float(numbers.computed(expression))
    if abs(trap - expected) <= 2 * within * abs(expected):
        raise fault(source, f"the wrong way comes to {trap:g}, too near to the {expected:g} that is right")
    return trap


def field(source: str, speaks: str = "") -> etree.Element:
    """The form that asks for one number; the words of its question decide which slips it may mention."""
    about = asked(source)
    form = etree.Element(
        "form",
        {
            "class": "answer",
            "data-expected": repr(about.expected),
            "data-within": repr(about.within),
            "data-family": about.family,
            "data-scale": repr(about.scale),
            "data-shown": about.shown,
            "data-side": about.side,
            "data-unit": about.unit,
            "data-slips": json.dumps(told(about, speaks)),
        },
    )
    if about.trap is not None:
        form.attrib |= {"data-trap": repr(about.trap), "data-hint": about.hint_of_trap}
    label = etree.SubElement(form, "label")
    etree.SubElement(label, "span", {"class": "answer-asked"}).text = about.label
    etree.SubElement(
        label,
        "input",
        {
            "type": "text",
            "placeholder": about.hint,
            "autocomplete": "off",
            "autocapitalize": "off",
            "spellcheck": "false",
        },
    )
    etree.SubElement(form, "button", {"type": "submit"}).text = "Check"
    etree.SubElement(form, "p", {"class": "answer-said", "role": "status"})
    return form


def told(about: Asked, speaks: str) -> list[tuple]:
    """The slips that may be mentioned for a wrong answer, in the form that the page's script takes."""
    found = slips.offered(about.family, about.scale, about.within, f"{speaks} {about.label}", about.label)
    return [astuple(slip) for slip in found]


def _field_or_fault(source: str, speaks: str) -> etree.Element:
    """The form; any error is reported with its place."""
    try:
        return field(source, speaks)
    except LessonFault:
        raise
    except Exception as error:
        raise fault(source, f"cannot ask for `{source}`: {type(error).__name__}: {error}") from error


def opener() -> etree.Element:
    """The button of an exercise without a numeric answer."""
    line = etree.Element("p", {"class": "answer-open"})
    button = etree.SubElement(line, "button", {"type": "button", "aria-pressed": "false", "data-worked": ""})
    button.text = "I have worked this out"
    return line


def answers(solution: etree.Element, is_open: bool, speaks: str = "") -> etree.Element:
    """The fields of an exercise, in the order of its solution."""
    group = etree.Element("div", {"class": "answers", "data-search-exclude": ""})
    for span in solution.iter("span"):
        if numbers.ASKED in span.attrib:
            group.append(_field_or_fault(span.attrib.pop(numbers.ASKED), speaks))
    if is_open:
        group.append(opener())
    return group


class Fields(Treeprocessor):
    """Puts the fields of each exercise above its solution."""

    def run(self, root: etree.Element) -> None:
        """Walk the page once."""
        for box in list(root.iter("div")):
            kinds = box.get("class", "").split()
            if "admonition" not in kinds or "exercise" not in kinds:
                continue
            at = next((at for at, part in enumerate(box) if part.tag == "details"), None)
            question = " ".join(text for part in box[:at] for text in part.itertext())
            group: Any = [] if at is None else answers(box[at], "open" in kinds, question)
            if at is None or not len(group):
                title = "".join(box[0].itertext())
                raise fault(
                    f'"{title}"',
                    "an exercise asks for a number of its solution, or is marked open; this one does neither",
                )
            box[at].set("data-search-exclude", "")  # nobody should find an answer who looks for a word
            box.insert(at, group)
        if lost := next(
            (span.get(numbers.ASKED) for span in root.iter("span") if numbers.ASKED in span.attrib), None
        ):
            raise fault(lost, "only a number in an exercise's solution can be asked for")


class Answers(Extension):
    """Registers the walk after the inline patterns."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Hook of Python-Markdown."""
        md.treeprocessors.register(Fields(md), "answers", 19)


def makeExtension(**options: dict) -> Answers:
    """Entry point of Python-Markdown."""
    return Answers(**options)
