"""Decides which of a lesson's programs can be cells of a notebook, and what such a cell needs.

A cell can be run by itself after the cells above it. A program that uses names which neither it nor an
earlier one defines is an excerpt, and stays text.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
INSTALLED = {"numpy", "panel", "system_ml"}  # installed together with the course
QUOTED = re.compile(r'--8<-- "([^":]+)')
OF_THE_MACHINE = {
    "torchrun": re.compile(r"\bRANK\b|LOCAL_RANK|init_device_mesh\(|init_process_group\(|__main__"),
    "gpu": re.compile(r"'cuda'|\.cuda\(\)|torch\.cuda\."),
}


class Snippet(NamedTuple):
    """A program as a cell: its text, and what it needs beyond the course."""

    code: str
    needs: tuple[str, ...]

    @property
    def cell(self) -> str:
        """The text of the notebook's cell; its first line names the packages that it needs, if any."""
        return f"%%needs {' '.join(self.needs)}\n{self.code}" if self.needs else self.code


def as_cell(code: str, source: str, known: dict[str, tuple[str, ...]]) -> Snippet | None:
    """The program as a cell, or None if it is an excerpt. ``source`` is what its fence says, which may quote
    a file of the repository, whose imports then come with it. ``known`` are the names of the cells above,
    each with what its cell needs; those of this one are added."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return None
    wanted = _used(tree) - _bound(tree) - known.keys() - set(dir(builtins)) - {"__name__"}
    if wanted and (quoted := QUOTED.search(source)):
        lines = _imports((ROOT / quoted[1]).read_text(encoding="utf-8"), wanted)
        code = "\n".join([*lines, "", "", code])
        tree = ast.parse(code)
        wanted -= _bound(tree)
    if wanted:
        return None
    from_above = [need for name in _used(tree) - _bound(tree) for need in known.get(name, ())]
    needed = tuple(sorted({*_needs(tree), *from_above}, key=_at_last))
    known |= dict.fromkeys(_bound(tree), needed)
    return Snippet(code, needed)


def _at_last(need: str) -> tuple[bool, str]:
    """A sort key that puts libraries before hardware."""
    return need in OF_THE_MACHINE, need


def _imports(text: str, wanted: set[str]) -> list[str]:
    """The lines of a file that import any of these names."""
    found = [each for each in ast.parse(text).body if isinstance(each, (ast.Import, ast.ImportFrom))]
    return [ast.unparse(each) for each in found if _bound(each) & wanted]


def _at_once(tree: ast.AST) -> list[ast.AST]:
    """The nodes that are evaluated when the cell is run, which excludes the bodies of functions."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if isinstance(node, ast.Lambda):
            continue
        inside = set(node.body) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else set()
        waiting += [child for child in ast.iter_child_nodes(node) if child not in inside]
    return found


def _used(tree: ast.AST) -> set[str]:
    loads = (node for node in _at_once(tree) if isinstance(node, ast.Name))
    return {node.id for node in loads if isinstance(node.ctx, ast.Load)}


def _bound(tree: ast.AST) -> set[str]:
    found = set()
    for node in _at_once(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def _needs(tree: ast.Module) -> set[str]:
    imported = {
        ((node.module or "") if isinstance(node, ast.ImportFrom) else alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    definitions = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    run = "\n".join(ast.unparse(each) for each in tree.body if not isinstance(each, definitions))
    machine = {need for need, sign in OF_THE_MACHINE.items() if sign.search(run)}
    if "is_available" in run:
        machine.discard("gpu")
    return imported - INSTALLED - set(sys.stdlib_module_names) | machine
