"""The Markdown fence for one name of the public API: its signature, its docstring, and its example, which
is run while the site is built.

    ``` api
    estimate
    ```

Nothing is written twice: signature, text and example come from the engine. The example is the docstring's
lines after ``>>>``; their output comes from running them. Names are those that whoever installs the package
writes (in_wheel.py).
"""

from __future__ import annotations

import contextlib
import inspect
import io
import typing
from dataclasses import fields, is_dataclass
from doctest import DocTestParser
from typing import Any

import engine
from course import excerpts, in_wheel, numbers
from course.fences import base

WIDTH = 70  # characters of code that fit the column


def find(name: str) -> Any:
    """The object that a fence names, `estimate` or `Machine.of`."""
    first, *rest = name.split(".")
    if first not in engine.__all__:
        raise ValueError(f"{first!r} is not one of {', '.join(engine.__all__)}")
    thing = getattr(engine, first)
    for part in rest:
        thing = getattr(thing, part)
    return thing


def argument(parameter: inspect.Parameter) -> str:
    """One argument with its type and its default; ``...`` for one that is made when it is asked for."""
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    stars = "**" if parameter.kind == parameter.VAR_KEYWORD else ""
    return f"{stars}{parameter.name}: {parameter.annotation}{default.replace('<factory>', '...')}"


def signature(name: str, thing: Any) -> str:
    """The signature: on one line, or with one line per argument if that would be long."""
    called = inspect.signature(thing)
    result = "" if inspect.isclass(thing) else f" -> {called.return_annotation}"
    arguments = [argument(parameter) for parameter in called.parameters.values()]
    first_by_name = next(
        (i for i, p in enumerate(called.parameters.values()) if p.kind == p.KEYWORD_ONLY), None
    )
    if first_by_name is not None:
        arguments.insert(first_by_name, "*")
    line = f"{in_wheel.PACKAGE}.{name}({', '.join(arguments)}){result}"
    if len(line) <= WIDTH:
        return line
    return f"{in_wheel.PACKAGE}.{name}(\n" + "".join(f"    {each},\n" for each in arguments) + f"){result}"


def prose(text: str) -> str:
    """A docstring's paragraphs, without its example."""
    return in_wheel.of_words(text.partition(">>>")[0].strip().replace("``", "`"))


def example(text: str) -> tuple[str, str]:
    """(the docstring's example as a program, the output of its lines)."""
    steps, known, printed = DocTestParser().get_examples(text), {"engine": engine}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for step in steps:
            exec(compile(step.source, "example", "single"), known)
    return in_wheel.of_words("".join(step.source for step in steps).strip()), printed.getvalue().strip()


def answer(thing: Any) -> str:
    """What a function returns: its class and its contents."""
    kind: Any = None if inspect.isclass(thing) else typing.get_type_hints(thing).get("return")
    if not (inspect.isclass(kind) and is_dataclass(kind)) or thing.__module__ != "engine.api":
        return ""
    names = [field.name for field in fields(kind)]
    names += [
        name
        for name, member in vars(kind).items()
        if not name.startswith("_") and (isinstance(member, property) or inspect.isfunction(member))
    ]
    held = [f"`{name}()`" if inspect.isfunction(getattr(kind, name, None)) else f"`{name}`" for name in names]
    first = prose(inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
    return f"`{kind.__name__}`: {first[0].lower()}{first[1:]} It has {', '.join(held[:-1])} and {held[-1]}."


def block(language: str, text: str) -> str:
    """A block of code in Markdown."""
    return f"``` {language}\n{text}\n```\n"


def render(name: str) -> str:
    """The HTML for one name."""
    thing = find(name.strip())
    text = inspect.getdoc(thing) or ""
    program, printed = example(text)
    parts = [block("python", signature(name, thing)), prose(text), answer(thing)]
    if program:
        parts += [block("python", program), block("text", printed)]
    shown = excerpts.html("\n\n".join(part for part in parts if part), of=None)
    return f'<div class="api">{shown}</div>'


format = base.formatter(lambda source: numbers.kept("api", source, render, (__name__,)))
