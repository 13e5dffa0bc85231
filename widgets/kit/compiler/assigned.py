"""Whether each name of a program has a value on every path to where it is read.

Otherwise Python raises UnboundLocalError, while JavaScript would go on with ``undefined``.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NoReturn, Protocol

from widgets.kit.compiler.kinds import Scope


def always_returns(body: list[ast.stmt]) -> bool:
    """Whether no path leads past the end of these statements."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and always_returns(last.body) and always_returns(last.orelse)
    return isinstance(last, ast.Return) or (
        isinstance(last, ast.While)
        and forever(last)
        and not any(isinstance(n, ast.Break) for n in ast.walk(last))
    )


def forever(loop: ast.While) -> bool:
    """Whether a loop can end only by break or return."""
    return isinstance(loop.test, ast.Constant) and bool(loop.test.value)


class Function(Protocol):
    """The part of ``programs.Function`` that this module needs."""

    tree: ast.FunctionDef
    arguments: list[str]
    scope: Scope

    def refuse(self, node: ast.AST, what: str, instead: str = "") -> NoReturn:
        """Stop, because ``what`` at this node cannot be translated; ``instead`` says what to write."""
        ...


class Assigned:
    """Goes through a function and keeps the names that have a value so far: a set, or None behind a break,
    continue or return, where no path leads."""

    def __init__(self, function: Function) -> None:
        self.function, self.names = function, set(function.scope.names)
        self.breaks: list[list[set[str]]] = []  # for each loop, the names known at its breaks

    def check(self) -> None:
        """Refuse the function if it reads a name that may have no value."""
        self.block(self.function.tree.body, set(self.function.arguments))

    def block(self, body: Sequence[ast.stmt], known: set[str] | None) -> set[str] | None:
        """The names that have a value behind some statements; None if no path leads there."""
        for node in body:
            known = self.statement(node, set(self.names) if known is None else known)
        return known

    def statement(self, node: ast.stmt, known: set[str]) -> set[str] | None:
        """The names that have a value behind one statement; None if no path leads there."""
        match node:
            case ast.Assign():
                self.read(node.value, known)
                return known.union(*(self.written(target, known) for target in node.targets))
            case ast.AugAssign():
                self.read(node.target, known)
                self.read(node.value, known)
            case ast.If():
                self.read(node.test, known)
                return both(self.block(node.body, known), self.block(node.orelse, known))
            case ast.While():
                self.read(node.test, known)
                inside = self.loop(node.body, known)
                return both(None if forever(node) else known, inside)
            case ast.For():
                self.read(node.iter, known)
                return both(known, self.loop(node.body, known | self.written(node.target, known)))
            case ast.Break():
                self.breaks[-1].append(known)
                return None
            case ast.Continue():
                return None
            case ast.Return():
                self.read(node, known)
                return None
            case _:
                self.read(node, known)
        return known

    def loop(self, body: Sequence[ast.stmt], known: set[str]) -> set[str] | None:
        """The names that have a value wherever the loop is left by a break."""
        self.breaks.append([])
        self.block(body, known)
        found = None
        for names in self.breaks.pop():
            found = both(found, names)
        return found

    def written(self, target: ast.expr, known: set[str]) -> set[str]:
        """The names to which an assignment gives a value."""
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            self.read(target, known)
            return set()
        return {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def read(self, node: ast.AST | None, known: set[str]) -> None:
        """Refuse an expression that reads a name without a value."""
        if node is None:
            return
        if isinstance(node, ast.ListComp):
            for one in node.generators:
                self.read(one.iter, known)
                known = known | self.written(one.target, known)
            self.read(node.elt, known)
            return
        if isinstance(node, ast.Name) and node.id in self.names and node.id not in known:
            self.function.refuse(
                node, f"{node.id}, which may have no value yet,", "give it one before the loop or the if"
            )
        for child in ast.iter_child_nodes(node):
            self.read(child, known)


def both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    """The names that have a value where two paths meet. None stands for a path that does not get there, which
    does not count."""
    if one is None or other is None:
        return one if other is None else other
    return one & other
