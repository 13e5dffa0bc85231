"""Puzzles: a function that a reader writes, and what judges it.

A module here is a puzzle; its name is the file's. It has ``TITLE``, ``LESSON``, ``STATEMENT`` (Markdown), ``FUNCTION``
(the name of the function to write), ``START``, three ``HINTS``, ``SOLUTION``, ``OPEN`` (what to try next), and ``WRONG``:
answers that people give, each with some of the words that they get. ``run`` and ``check`` judge a function
(``judging.py``). These two and all that they call are plain Python, without numpy, because the pages run them too:
``course/puzzle_page.py`` takes them out of this room and of the engine's, and the lines of both are the same.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from engine.base import check

SHARED = ("judging", "pipelines")


def names() -> list[str]:
    """The names of all puzzles, in the order of their lessons."""
    found = [module.name for module in pkgutil.iter_modules(__path__) if module.name not in SHARED]
    return sorted(found, key=lambda name: (puzzle(name).LESSON, name))


def puzzle(name: str) -> ModuleType:
    """The puzzle of this name; ValueError otherwise."""
    known = {module.name for module in pkgutil.iter_modules(__path__)} - set(SHARED)
    check.one_of(known, puzzle=name)
    return importlib.import_module(f"{__name__}.{name}")
