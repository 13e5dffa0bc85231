"""The fences that a lesson may use, each in a module that defines ``format``; and the Markdown extension that
handles them, and programs in a language that Pygments knows.

A fence of any other kind, or one with a faulty head or end, stops the build with file and line, because
pymdownx would show it as text.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from markdown import Markdown
from markdown.preprocessors import Preprocessor
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from pymdownx.superfences import SuperFencesCodeExtension, highlight_validator

from course import lessons

BEHIND_FENCES = 24  # priority of our preprocessor: just after pymdownx, which handles fences at 25
HEAD = re.compile(r"[ >]*(?:`{3,}|~{3,})")


def _format_of(name: str) -> Callable:
    def format(source: str, *about, **more) -> str:
        try:  # imported here, so that a page pays for the fences that it has
            made = importlib.import_module(f"{__name__}.{name}").format
        except Exception as error:
            what = f"course/fences/{name}.py does not work: {type(error).__name__}: {error}"
            raise lessons.fault(_written(name, source), what) from error
        return made(source, *about, **more)

    return format


def _program(source: str, language: str, css_class: str, options: dict, md: Markdown, **more) -> str:
    """The HTML of a fence that is a program, in the colours of its language."""
    if language:
        try:
            get_lexer_by_name(language)
        except ClassNotFound:
            ours = ", ".join(lessons.kinds_of_fence())
            message = f"there is no fence {language!r}; there are {ours}, and the languages of Pygments"
            raise lessons.fault(_written(language, source), message) from None
    pymdownx: Any = md.preprocessors["fenced_code_block"]
    return pymdownx.highlight(source, language, options, md, **more)


def _written(language: str, source: str) -> str:
    """A fence with its head, as written in the lesson."""
    heads = (f"``` {language}\n{source}", f"```{language}\n{source}", f"``` {language}")
    return next((head for head in heads if lessons.places(head)), source)


class _Left(Preprocessor):
    """Raises a fault for a line that begins a fence and is left over after all fences have been replaced."""

    def run(self, lines: list[str]) -> list[str]:
        for at, line in enumerate(lines):
            if HEAD.match(line):
                message = (
                    "this begins no fence: it needs an end that is indented as much, and behind its name "
                    "there is nothing"
                )
                raise lessons.fault("\n".join(lines[at : at + 2]), message)
        return lines


class Fences(SuperFencesCodeExtension):
    """pymdownx's fences extension with the course's own fences, so that mkdocs' settings need not list
    them."""

    def extendMarkdown(self, md: Markdown) -> None:
        super().extendMarkdown(md)
        md.preprocessors.register(_Left(md), "left_of_fences", BEHIND_FENCES)


def makeExtension(**settings: dict) -> Fences:
    ours = [{"name": name, "class": name, "format": _format_of(name)} for name in lessons.kinds_of_fence()]
    others = {"name": "*", "class": "highlight", "format": _program, "validator": highlight_validator}
    return Fences(custom_fences=[others, *ours], **settings)
