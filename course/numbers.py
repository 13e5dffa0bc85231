"""Numbers in prose, computed by the engine while the site is built.

    `#!n memory.state_bytes(70e9, recipe("bf16-adam")) | TB`        -> 1.12 TB

Before the bar: a Python expression over the engine's modules, its catalogue (gpu, model, recipe, price, link,
node), the names defined by the lesson's front matter (course/given.py), numpy as np and a few plain
functions. After it: a unit (TB, ms, %) or a family that picks its own unit (bytes, seconds), then optionally
the number of significant digits: `| TB, 2`. Without a unit the value is shown as a plain number; text is
shown as it is. The page shows the value, and the expression on hover, focus or touch.
"""

from __future__ import annotations

import builtins
import importlib
import json
import keyword
import pkgutil
import re
import xml.etree.ElementTree as etree
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from markdown.util import AtomicString

from course import faults, lessons
from course.lessons import Given, Lesson, LessonFault, fault
from course.matches import there
from engine import calibration, catalog
from engine.base import units
from engine.one_gpu import measurements, recordings
from widgets.kit.page.cache import kept_text

if TYPE_CHECKING:
    from markdown.core import Markdown

PLAIN = {
    "__import__": __import__,  # numpy itself imports lazily, with its caller's builtins
    "min": min,
    "max": max,
    "abs": abs,
    "sum": sum,
    "len": len,
    "round": round,
    "range": range,
    "dict": dict,
}
FORM = re.compile(
    r"""
    ^(?P<expression>.+?)
    (?:\s\|\s*(?P<unit>[^|,()?]+?)                           #  | TB
       (?:\s*,\s*(?P<digits>[1-9]\d?))?                      #  , 2
    )?
    (?:\s\?\s(?P<asked>.+?)                                  #  ? What is asked
       (?:,\s(?P<within>exactly|within\s[\d.]+\s%)           #  , within 2 %
          (?:\s(?P<side>below|above))?)?
       (?:,\sunless\s(?P<trap>.+?):\s(?P<hint>.+?))?          #  , unless EXPRESSION: what went wrong
    )?\s*$
    """,
    re.DOTALL | re.VERBOSE,
)

ASKED = "data-asked"  # on a number that a reader is asked for: its source
ROW = "it"  # the object of a table's row
# what reads launch files and fits is for no formula; of frameworks and deployments a formula knows what their
# room gives, not its modules
NOT_IN_FORMULAS = (
    "engine.launch.",
    "engine.frameworks.",
    "engine.calibration.fit.",
    "engine.serving.deployment.",
)
ROOMS = (
    "engine.frameworks",
    "engine.serving.deployment",
    "engine.validation",
)  # that give something themselves


@cache
def namespace() -> dict:
    """What an expression may use: every engine module, the catalogue's loaders, numpy, and a few plain
    functions."""
    names = {"np": np, "__builtins__": PLAIN}
    engine = importlib.import_module("engine")  # by name, so that a number depends only on what it uses
    modules = pkgutil.walk_packages(engine.__path__, "engine.")
    for short, name in short_names(module.name for module in modules if not module.ispkg).items():
        names[short] = importlib.import_module(name)
    for room in ROOMS:
        names[room.rpartition(".")[2]] = importlib.import_module(room)
    for holder in (calibration, catalog, recordings, measurements):
        names[holder.__name__.rpartition(".")[2]] = holder
    for loader in ("gpu", "model", "recipe", "price", "link", "node"):
        names[loader] = getattr(catalog, loader)
    return names


def short_names(modules: Iterable[str]) -> dict[str, str]:
    """By its last name each module that a formula may use; two of one name are refused."""
    found: dict[str, str] = {}
    for module in modules:
        short = module.rpartition(".")[2]
        if short == "__main__" or module.startswith(NOT_IN_FORMULAS):
            continue
        if short in found:
            raise ValueError(f"{found[short]} and {module}: a formula could not tell them apart")
        found[short] = module
    return found


# -- the names that a lesson defines -------------------------------------------------------------------------
@cache
def definitions(lesson: Lesson) -> tuple[Given, ...]:
    """The names that a lesson defines; a fault if one is not a valid name, or is never used."""
    taken = {*namespace(), *PLAIN, *dir(builtins), ROW}
    for at, given in enumerate(lesson.given):
        if not given.name.isidentifier() or keyword.iskeyword(given.name):
            raise LessonFault(
                f"{given.place}: given {given.name}: a name is a word that Python takes for one"
            )
        if given.name in taken:
            raise LessonFault(
                f"{given.place}: given {given.name}: this name has a meaning in the engine or in Python"
            )
        if not _mentions(_expressions(lesson, at + 1), given.name):
            raise LessonFault(f"{given.place}: given {given.name}: nothing on the page uses this name")
    return lesson.given


def _expressions(lesson: Lesson, after: int) -> str:
    """Everything that a page computes, and the definitions from this one on."""
    ours = [fence.source for fence in lesson.fences if fence.kind in lessons.kinds_of_fence()]
    later = [given.expression for given in lesson.given[after:]]
    return "\n".join([*lesson.inline("n"), *lesson.inline("bar"), *ours, *later])


def _mentions(source: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", source) is not None


def used(source: str) -> tuple[Given, ...]:
    """The names of the current lesson that an expression uses, directly or through others."""
    lesson = lessons.current()
    needed: list[Given] = []
    for given in reversed(definitions(lesson) if lesson else ()):
        if _mentions("\n".join([source, *(other.expression for other in needed)]), given.name):
            needed.insert(0, given)
    return tuple(needed)


def in_words(source: str) -> str:
    """What the lesson's own names in an expression mean, for readers who know no Python."""
    told = (given for given in used(source) if given.says and _mentions(source, given.name))
    return "; ".join(f"{given.name} is {given.says}" for given in told)


@cache
def _values(needed: tuple[Given, ...]) -> dict:
    found: dict = {}
    for given in needed:
        try:
            # a lesson is this repository's own code
            found[given.name] = eval(given.expression, {**namespace(), **found})
        except Exception as error:
            raise LessonFault(
                f"{given.place}: given {given.name}: cannot compute `{given.expression}`: "
                f"{type(error).__name__}: {error}"
            ) from error
    return found


def names(source: str) -> dict:
    """What this piece of the current lesson may use."""
    return {**namespace(), **_values(used(source))}


def kept(kind: str, source: str, make: Callable[[str], str], modules: Iterable[str] = ()) -> str:
    """The result of ``make`` for a piece of the current lesson, or the stored one if the piece, the names
    that it uses and the modules behind both are unchanged."""
    whole = source + "".join(f"\n{given.name} = {given.expression}" for given in used(source))
    behind = sorted({__name__, *modules, *named_in(whole)})
    return kept_text(kind, whole, lambda _: make(source), tuple(behind))


# -- what a value depends on --------------------------------------------------------------------------------
def named_in(source: str) -> tuple[str, ...]:
    """The modules behind the names in a source, on which its values depend."""
    words = set(re.findall(r"[A-Za-z_]\w*", source)) & set(namespace()) - {"np", "__builtins__"}
    found = [namespace()[word] for word in words]
    return tuple(sorted({getattr(thing, "__module__", None) or thing.__name__ for thing in found}))


# -- what is shown -------------------------------------------------------------------------------------------
def show(value: float | str, unit: str | None, digits: int = 3) -> str:
    """The value as the engine's formatter writes it in this unit or family."""
    if isinstance(value, str) and unit is None:
        return value
    value = float(value)
    if unit is None:
        return units.number(value, digits)
    return units.human(value, unit, digits) if unit in units.FAMILIES else units.in_unit(value, unit, digits)


def computed(expression: str) -> float | str:
    """The value of an expression of the current lesson; raises whatever it raises."""
    return _computed(expression, used(expression))


@cache
def _computed(expression: str, needed: tuple[Given, ...]) -> float | str:
    return json.loads(kept("value", expression, _value))


def _value(expression: str) -> str:
    """The same, in the form that is stored."""
    value = eval(expression, names(expression))  # a lesson is this repository's own code
    return json.dumps(value if isinstance(value, str) else float(value))


def form(source: str) -> re.Match[str]:
    """The parts of a source, named as in ``FORM``."""
    return there(FORM.match(source), f"an expression in {source!r}")


def evaluate(source: str) -> str:
    """'memory.state_bytes(70e9) | TB' -> '1.12 TB'; raises whatever the expression or the unit raises."""
    parts = form(source)
    return show(computed(parts["expression"]), parts["unit"], int(parts["digits"] or 3))


def number(source: str, language: str, css_class: str, md: Markdown) -> str | etree.Element:
    """The pymdownx inlinehilite formatter of `#!n …`: the shown value, carrying its expression."""
    try:
        shown = evaluate(source)
    except LessonFault:  # of a given name, already with its place
        raise
    except Exception as error:
        raise _not_computed(source, error) from error
    parts = form(source)
    number = etree.Element(
        "span", {"class": "n", "tabindex": "0", "role": "note", "data-expr": parts["expression"]}
    )
    if words := in_words(parts["expression"]):
        number.set("data-says", words)
    number.text = AtomicString(shown.replace(" ", "\u00a0"))
    if parts["asked"]:
        number.set(ASKED, source)
        return number  # an element: course/exercises.py looks for it
    return md.htmlStash.store(etree.tostring(number, encoding="unicode"))


def _not_computed(source: str, error: Exception) -> LessonFault:
    """The fault of a lesson's expression, or of a module that it uses."""
    if line_of_code := faults.of_code(error):
        return LessonFault(line_of_code)
    return fault(source, f"cannot compute `{source}`: {type(error).__name__}: {error}")


def bar(source: str, language: str, css_class: str, md: Markdown) -> str:
    """The formatter of `#!bar …`: a bar whose length is a computed share of its row, beside its number."""
    try:
        share = float(eval(source, names(source)))
    except LessonFault:
        raise
    except Exception as error:
        raise _not_computed(source, error) from error
    if not 0 <= share <= 1:
        raise fault(source, f"a bar must be between 0 and 1 long, `{source}` is {share:g}")
    return md.htmlStash.store(f'<span class="bar" style="width: {share:.2%}" aria-hidden="true"></span>')
