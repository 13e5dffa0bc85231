"""Numbers in prose, computed by the engine while the site is built.

    `#!n memory.state_bytes(70e9, recipe("bf16-adam")) | TB`        -> 1.12 TB

Before the bar: a name of the Python file beside the lesson (course/lesson_code.py), or of the engine, with at
most one call; anything longer gets a name there. The engine's names are its modules, its catalogue (gpu,
model, recipe, price, link, node), numpy as np and a few plain functions. After it: a unit (TB, ms, %) or a
family that picks its own unit (bytes, seconds), then optionally the number of significant digits: `| TB, 2`.
Without a unit the value is shown as a plain number; text is shown as it is. The page shows the value, and the
expression on hover, focus or touch.
"""

from __future__ import annotations

import builtins
import difflib
import importlib
import json
import pkgutil
import re
import xml.etree.ElementTree as etree
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from markdown.util import AtomicString

from course import faults, lessons
from course.lesson_code import Definition, line_in
from course.lessons import Lesson, LessonFault, fault
from course.matches import there
from engine import calibration, catalog
from engine.base import units
from engine.one_gpu import measurements, recordings
from widgets.kit.page import dependencies
from widgets.kit.page.cache import kept_text

if TYPE_CHECKING:
    from markdown.core import Markdown


def nearest(choices: Sequence[float], value: float) -> int:
    """Which of these a value is nearest to: the place of a prediction's right answer."""
    return int(np.argmin(np.abs(np.array(choices) - value)))


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
    "nearest": nearest,
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
def definitions(lesson: Lesson) -> tuple[Definition, ...]:
    """The names that the file beside a lesson defines; a fault if one has another meaning already, has no
    words, or is never used."""
    taken = {*namespace(), *PLAIN, *dir(builtins), ROW}
    found = lesson.code_contents.definitions
    on_page = _words(_expressions(lesson))
    for each in found:
        if each.name in taken:
            wrong = "this name has a meaning in the engine or in Python"
        elif not any(
            each.name in words
            for words in (on_page, *(_words(other.source) for other in found if other is not each))
        ):
            wrong = "nothing on the page uses this name"
        else:
            continue
        raise lesson.code_fault(each.line, f"{each.name}: {wrong}")
    return found


def _expressions(lesson: Lesson) -> str:
    """Everything that a page computes."""
    ours = [fence.source for fence in lesson.fences if fence.kind in lessons.kinds_of_fence()]
    return "\n".join([*lesson.inline("n"), *lesson.inline("bar"), *ours])


@cache
def _words(source: str) -> frozenset[str]:
    """The names in a source, but for those of attributes."""
    return frozenset(re.findall(r"(?<![\w.])[A-Za-z_]\w*", source))


def used(source: str) -> tuple[Definition, ...]:
    """The names of the current lesson that an expression uses, directly or through others."""
    lesson = lessons.current()
    of = {each.name: each for each in (definitions(lesson) if lesson else ())}
    needed: dict[str, Definition] = {}
    ahead = [source]
    while ahead:
        new = (_words(ahead.pop()) & of.keys()) - needed.keys()
        needed |= {name: of[name] for name in new}
        ahead += [of[name].source for name in new]
    return tuple(sorted(needed.values(), key=lambda each: each.line))


def in_words(source: str) -> str:
    """What the lesson's own names in an expression mean, for readers who know no Python."""
    told = (each for each in used(source) if each.says and each.name in _words(source))
    return "; ".join(f"{each.name}: {each.says}" for each in told)


def names(source: str) -> dict:
    """What this piece of the current lesson may use."""
    own = used(source)
    lesson = lessons.current()
    module = vars(lesson.module) if lesson and own else {}
    return {**namespace(), **{each.name: module[each.name] for each in own}}


def unknown(error: NameError) -> str:
    """What an unknown name could have been."""
    lesson = lessons.current()
    own = [each.name for each in definitions(lesson)] if lesson else []
    close = difflib.get_close_matches(str(error.name), [*own, *namespace()], n=3)
    where = f"{lesson.file.removesuffix('.md')}.py and the engine define" if lesson else "the engine defines"
    return f"{where} no {error.name!r}" + (f"; the closest: {', '.join(close)}" if close else "")


def kept(kind: str, source: str, make: Callable[[str], str], modules: Iterable[str] = ()) -> str:
    """The result of ``make`` for a piece of the current lesson, or the stored one if the piece, the names
    that it uses and the modules behind both are unchanged."""
    whole = "\n".join([source, *(each.source for each in used(source))])
    behind = sorted({__name__, *modules, *named_in(whole)})
    return kept_text(kind, whole, lambda _: make(source), tuple(behind))


# -- what a value depends on --------------------------------------------------------------------------------
def named_in(source: str) -> tuple[str, ...]:
    """The modules behind the names in a source, on which its values depend."""
    words = set(re.findall(r"[A-Za-z_]\w*", source))
    found = [namespace()[word] for word in words & set(namespace()) - {"np", "__builtins__"}]
    lesson = lessons.current()
    imports = lesson.code_contents.imports if lesson else {}
    brought = {imports[word] for word in words & imports.keys()}
    brought = {name if dependencies.source(name) else name.rpartition(".")[0] for name in brought}
    return tuple(sorted({getattr(thing, "__module__", None) or thing.__name__ for thing in found} | brought))


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
def _computed(expression: str, needed: tuple[Definition, ...]) -> float | str:
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
    except LessonFault:  # of the file beside the lesson, already with its place
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
    """The fault of a lesson's expression, of the file beside it, with the line there, or of a module that it
    uses."""
    lesson = lessons.current()
    line = line_in(lesson.path.with_suffix(".py"), error) if lesson else 0
    if lesson and line:
        return lesson.code_fault(line, f"cannot compute `{source}`: {type(error).__name__}: {error}")
    if line_of_code := faults.of_code(error):
        return LessonFault(line_of_code)
    why = unknown(error) if isinstance(error, NameError) else f"{type(error).__name__}: {error}"
    return fault(source, f"cannot compute `{source}`: {why}")


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
