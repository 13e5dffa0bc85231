"""How code that cannot be translated exactly is refused: with where it is, what it is, and what to write
instead."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

GRAMMAR = "widgets/kit/compiler/GRAMMAR.md"
HERE = Path(__file__).parent
BETWEEN = (str(HERE), "numpy", "engine/base/program.py", "engine/base/sweep.py", "engine/base/ops.py")


class NotTranslatable(TypeError):
    """Something in a widget, a formula or a program has no exact counterpart in JavaScript."""


def place() -> str:
    """File and line of the code that is being traced: the innermost call outside this package, the widgets'
    kit, numpy and the protocols between them."""
    frame = sys._getframe(1)
    while frame and between(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "somewhere"


def begins(function: Callable) -> str:
    """File and line at which a function begins, its decorators included."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def between(file: str) -> bool:
    """Whether a file is not the author's own: it only calls code that was written elsewhere."""
    return Path(file).parent == HERE.parent or any(part in file for part in BETWEEN)


def refuse(what: str, instead: str = "", at: str = "") -> NoReturn:
    """Stop, with a line that says where, what, and what to write instead."""
    advice = f"; {instead}" if instead else ""
    raise NotTranslatable(f"{at or place()}: {what} cannot be written out for the page{advice} ({GRAMMAR})")
