"""Markdown extension: above an exercise's solution, a field for each number of it that is asked for.

    !!! exercise "The least number of H100s"

        How many H100s hold the training state of a 13B model?

        ??? solution "Solution"

            It is `#!n memory.state_bytes(13e9) | GB ? State of 13B`, so … GPUs.

The field asks "State of 13B", and what is right is the solution's own number: nothing is written twice. A count of what
fits is `… ? Users that fit, within 5 % below`, for one more does not fit; a count of what is needed is "above". A wrong way
that many take may have its own words: `… ? Step, unless memory.weight_bytes(8e9) / 3.35e12: Are the launches in it?`. An exercise
that no number answers is marked, `!!! exercise open "Design: …"`, and has a button instead; it may ask for numbers as
well. One that has neither stops the build. The page's script (site/theme/assets/js/answers.js) checks what is typed.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as etree
from dataclasses import dataclass

from markdown import Extension
from markdown.treeprocessors import Treeprocessor

from engine import typed, units
from widgets.kit import prose
from widgets.kit.locate import fault

WITHIN = 0.05               # what is near enough on the back of an envelope, where a lesson says nothing else
LONGEST = str(typed.LONGEST)
# of these a number alone is clear; the others name a unit
HINTS = {"count": "a number", "real": "a number", "params": "such as 7B", "tokens": "tokens", "times": "a factor",
         "percent": "in %", "dollars": "in $", "flops_per_byte": "FLOP/B"}


@dataclass(frozen=True)
class Asked:
    """A number that a reader is asked for: what it is called, its value in SI, its unit, and how near is right."""

    label: str
    expected: float
    family: str
    scale: float            # what a number typed without a unit is in
    hint: str
    within: float           # 0 is exactly
    side: str               # "below" or "above": only on this side; "" is either
    shown: str              # as the solution shows it
    trap: float | None      # where a known wrong way leads
    hint_of_trap: str       # and what is said to it


def _family(unit: str) -> str:
    """The family that a unit belongs to: 'TB' -> 'bytes'."""
    if "$" in unit:
        return "dollars"
    found = (family for family, steps in units.FAMILIES.items() for _, text in steps if text.strip() == unit)
    return next(found, {"GPU-hours": "seconds"}.get(unit, "count"))


def _unit(unit: str | None, shown: str) -> tuple[str, float, str]:
    """(family, scale of a number alone, hint) of what stands behind an expression's bar."""
    family = unit or "count"
    if family in HINTS:
        return family, typed.words(family)[""], HINTS[family]
    if family in units.FAMILIES:                    # a family that picks its own unit: the one that it picked
        unit = shown.split(" ")[-1]
    family = _family(unit) if unit in units.UNITS else family
    return family, typed.scale_of(unit, family), HINTS["percent"] if unit == "%" else f"in {unit}"


def asked(source: str) -> Asked:
    """'memory.state_bytes(13e9) | GB ? State of 13B' -> what is asked for."""
    form = prose.FORM.match(source)
    value, shown = float(prose.computed(form["expression"])), prose.evaluate(source)
    family, scale, hint = _unit(form["unit"], shown)
    exactly = form["within"] == "exactly"
    within = 0.0 if exactly else float(form["within"].split()[1]) / 100 if form["within"] else WITHIN
    if not math.isfinite(value) or (value == 0 and not exactly):
        raise fault(source, f"nobody can type {value} to within a share of it; ask for it exactly, or for another number")
    side = form["side"] or ""
    whole = (exactly or side) and value == round(value) and family == "count"
    return Asked(form["asked"], value, family, scale, "a whole number" if whole else hint, within, side, shown,
                 _trap(source, form["trap"], value, within), form["hint"] or "")


def _trap(source: str, expression: str | None, expected: float, within: float) -> float | None:
    """The value of a known wrong way, which must not be a right one."""
    if expression is None:
        return None
    trap = float(prose.computed(expression))
    if abs(trap - expected) <= 2 * within * abs(expected):
        raise fault(source, f"the wrong way comes to {trap:g}, too near to the {expected:g} that is right")
    return trap


def field(source: str) -> etree.Element:
    """The form that asks for one number."""
    about = asked(source)
    form = etree.Element("form", {
        "class": "answer", "data-expected": repr(about.expected), "data-within": repr(about.within),
        "data-family": about.family, "data-scale": repr(about.scale), "data-shown": about.shown, "data-side": about.side})
    if about.trap is not None:
        form.attrib |= {"data-trap": repr(about.trap), "data-hint": about.hint_of_trap}
    label = etree.SubElement(form, "label")
    etree.SubElement(label, "span", {"class": "answer-asked"}).text = about.label
    etree.SubElement(label, "input", {
        "type": "text", "placeholder": about.hint, "maxlength": LONGEST,
        "autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"})
    etree.SubElement(form, "button", {"type": "submit"}).text = "Check"
    etree.SubElement(form, "p", {"class": "answer-said", "role": "status"})
    return form


def opener() -> etree.Element:
    """The button of an exercise that no number answers."""
    line = etree.Element("p", {"class": "answer-open"})
    button = etree.SubElement(line, "button", {"type": "button", "aria-pressed": "false", "data-worked": ""})
    button.text = "I have worked this out"
    return line


def answers(solution: etree.Element, is_open: bool) -> etree.Element:
    """The fields of an exercise, in the order of its solution."""
    group = etree.Element("div", {"class": "answers", "data-search-exclude": ""})
    for span in solution.iter("span"):
        if prose.ASKED in span.attrib:
            group.append(field(span.attrib.pop(prose.ASKED)))
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
            group = [] if at is None else answers(box[at], "open" in kinds)
            if not len(group):
                title = "".join(box[0].itertext())
                raise fault(f'"{title}"', "an exercise asks for a number of its solution, or is marked open; "
                                          "this one does neither")
            box.insert(at, group)
        if lost := next((span.get(prose.ASKED) for span in root.iter("span") if prose.ASKED in span.attrib), None):
            raise fault(lost, "only a number in an exercise's solution can be asked for")


class Answers(Extension):
    """Registers the walk right behind the inline patterns."""

    def extendMarkdown(self, md) -> None:
        """Hook of Python-Markdown."""
        md.treeprocessors.register(Fields(md), "answers", 19)


def makeExtension(**options) -> Answers:
    """Entry point of Python-Markdown."""
    return Answers(**options)
