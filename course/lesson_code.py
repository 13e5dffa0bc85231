"""The Python file beside a page of lessons/: the page's numbers, as constants and small functions.

    llama = model("llama3-70b")  # Llama 3 70B


    def reading_s(users: float) -> float:
        \"\"\"Seconds of a step that reads the weights and the caches of so many users.\"\"\"
        return ...

``definitions`` reads what such a file defines, with the words of its comments and docstrings, which are shown
to readers; ``loaded`` runs it. Its name begins with a digit, so no import statement can name it:
``load("04-data-parallel")`` gives the module.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

IN_WHEEL = Path(__file__).resolve().parent / "of_lessons"  # only a wheel has it
FOLDER = IN_WHEEL if IN_WHEEL.is_dir() else IN_WHEEL.parents[1] / "lessons"
RULE = "# --"  # begins the heading of a part of the file


class CodeFault(Exception):
    """What is wrong with such a file, and on which of its lines."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Definition(NamedTuple):
    """A name that such a file defines."""

    name: str
    call: str  # the name, a function's with its arguments, as a reader may write it
    says: str  # in words, for the reader
    expression: str  # what it is, or what the function returns, on one line
    source: str  # the whole statement
    line: int


@dataclass(frozen=True)
class Contents:
    """What stands in such a file: its public names in order, and where the names that it imports are from."""

    definitions: tuple[Definition, ...]
    imports: dict[str, str]


@cache
def contents(code: str) -> Contents:
    """What stands in such a file, read without running it."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise CodeFault(error.lineno or 1, f"this is not Python: {error.msg}") from error
    comments = _comments(code)
    found: list[Definition] = []
    imports: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _imported(node)
        elif isinstance(node, ast.FunctionDef):
            found.append(_function(code, node))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, said = node.targets[0].id, _said(comments, node)
            value = _on_one_line(ast.get_source_segment(code, node.value) or "")
            found.append(Definition(name, name, said, value, _segment(code, node), node.lineno))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise CodeFault(
                node.lineno, "a lesson's file holds imports, functions, and lines 'name = value'; got another"
            )
    return Contents(tuple(each for each in found if not each.name.startswith("_")), imports)


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Name -> what it stands for, written with its module."""
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names}
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}


def _function(code: str, node: ast.FunctionDef) -> Definition:
    said = (ast.get_docstring(node) or "").strip()
    body = node.body[1:] if said else node.body
    last = body[-1] if body else None
    shown = last.value if len(body) == 1 and isinstance(last, ast.Return) and last.value else None
    pieces = [shown] if shown else body
    expression = "; ".join(_on_one_line(ast.get_source_segment(code, piece) or "") for piece in pieces)
    for argument in [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if argument:
            argument.annotation = None
    call = f"{node.name}({ast.unparse(node.args)})".replace("'", '"')
    return Definition(
        node.name, call, " ".join(said.rstrip(".").split()), expression, _segment(code, node), node.lineno
    )


def _segment(code: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return "\n".join(code.split("\n")[first - 1 : node.end_lineno])


def _comments(code: str) -> dict[tuple[int, bool], str]:
    """(line, whether the comment is alone on it) -> the comment."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {
        (token.start[0], not token.start[1]): token.string
        for token in tokens
        if token.type == tokenize.COMMENT and not token.string.startswith(RULE)
    }


def _said(comments: dict[tuple[int, bool], str], node: ast.Assign) -> str:
    """The comment behind a constant, or on the lines directly above it, as a sentence begins."""
    above, line = [], node.lineno - 1
    while (line, True) in comments:
        above.insert(0, comments[line, True])
        line -= 1
    behind = comments.get((node.end_lineno or node.lineno, False))
    words = " ".join(each.lstrip("# ").rstrip() for each in ([behind] if behind else above))
    first = words.split(" ")[0]
    return words[:1].upper() + words[1:] if first.isalpha() and first.islower() else words


def _on_one_line(expression: str) -> str:
    """The expression without the breaks of a formatter."""
    joined = re.sub(r"([(\[{]) ", r"\1", " ".join(expression.split()))
    return re.sub(r",? ([)\]}])", r"\1", joined)


# -- running it ----------------------------------------------------------------------------------------------
@cache
def loaded(code: str, path: Path) -> ModuleType:
    """The module with this code, whose file this is."""
    module = ModuleType(
        f"{path.parent.name}.n{path.stem.replace('-', '_')}", ast.get_docstring(ast.parse(code))
    )
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where a dataclass or a pickle looks for what it defines
    try:
        exec(compile(code, str(path), "exec"), vars(module))  # this repository's own code
    except Exception as error:
        raise CodeFault(line_in(path, error), f"{type(error).__name__}: {error}") from error
    return module


def line_in(path: Path, error: BaseException) -> int:
    """The last line of this file that an exception went through; 0 if none."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return (lines[-1] or 0) if lines else 0


def load(page: str) -> ModuleType:
    """The numbers of a page of the course: ``load("04-data-parallel").tokens_to_hide(…)``."""
    path = FOLDER / f"{page}.py"
    if not path.is_file():
        there = ", ".join(sorted(each.stem for each in FOLDER.glob("*.py")))
        raise ValueError(f"page must be one of {there}; got {page!r}")
    return loaded(path.read_text(encoding="utf-8"), path)
