"""Puzzles: a function that a reader writes, and what judges it.

Every module here, except for those in ``BESIDE``, is a puzzle, named after its file. It has ``TITLE``,
``LESSON``, ``STATEMENT`` (Markdown), ``FUNCTION`` (the name of the function to write), ``START``, three
``HINTS``, ``SOLUTION`` and ``OPEN`` (what to try next), and may have ``NAMES`` that the code may use without an import. ``run`` and ``check`` judge a function
(``judging.py``). These two and all that they call are plain Python, without numpy, because the pages run them
too: ``course/puzzle_page.py`` takes them out of this room and of the engine's, and the lines of both are the
same.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from engine.base import check
from engine.puzzles import judging

BESIDE = (
    "block_language",
    "judging",
    "kernel_judging",
    "pipelines",
    "puzzle_files",
)  # modules of this package that are not puzzles


def modules() -> list[str]:
    """The full names of all modules of this package, puzzles and others."""
    return [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]


def names() -> list[str]:
    """The names of all puzzles, in the order of their lessons."""
    return sorted(_names(), key=lambda name: (puzzle(name).LESSON, name))


def puzzle(name: str) -> ModuleType:
    """The puzzle of this name; ValueError otherwise."""
    check.one_of(_names(), puzzle=name)
    return importlib.import_module(f"{__name__}.{name}")


def tried(name: str, code: str, task: str = "check") -> dict:
    """The judge's result for a puzzle and a reader's code (``judging.tried``); ``task`` is check or run."""
    of = puzzle(name)
    return judging.tried(code, of.FUNCTION, getattr(of, task), getattr(of, "NAMES", None))


def _names() -> set[str]:
    return {name.rpartition(".")[2] for name in modules()} - set(BESIDE)
