"""The names that a translated module knows: Python's own, and those that a body of code assigns."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

FUNCTIONS = (
    "abs all any bool dict enumerate float frozenset getattr hasattr int isinstance iter len list map max "
    "min next object range repr reversed round set setattr sorted str sum tuple type vars zip "
    "ArithmeticError AttributeError Exception IndexError KeyError OSError OverflowError RecursionError "
    "StopIteration TypeError UnicodeDecodeError ValueError ZeroDivisionError"
)
BUILTINS = frozenset(FUNCTIONS.split())
# of texts, lists, dictionaries and sets; an attribute of such a name may be one of these, bound to its value
METHODS = (
    "add append clear copy count endswith extend find format get index insert items join keys lower lstrip "
    "pop remove replace rfind rstrip setdefault sort split splitlines startswith strip update upper values"
)
BUILT_IN_METHODS = frozenset(METHODS.split())


def running(nodes: Iterable[ast.AST], inside: bool = True) -> Iterator[ast.AST]:
    """All nodes below these that are executed, so none under ``if TYPE_CHECKING``; unless ``inside``, also
    none inside functions and classes."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and only_checks(node):
            continue
        yield node
        if inside or not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def only_checks(node: ast.If) -> bool:
    """Whether this is ``if TYPE_CHECKING``, which nothing executes."""
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def assigned(body: list[ast.stmt]) -> Iterator[str]:
    """The names that a body assigns or defines."""
    of_comprehensions: set[int] = set()
    for node in running(body, inside=False):
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for each in node.generators:
                of_comprehensions |= {id(n) for n in ast.walk(each.target)}
    for node in running(body, inside=False):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if id(node) not in of_comprehensions:
                yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.asname or each.name).split(".")[0] for each in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def method_names(tree: ast.Module) -> Iterator[str]:
    """The names of all methods of a module's classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                marks = [ast.unparse(mark) for mark in getattr(each, "decorator_list", [])]
                if isinstance(each, ast.FunctionDef) and "property" not in marks:
                    yield each.name


def yields(node: ast.FunctionDef) -> bool:
    """Whether a function is a generator."""
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in running(node.body, inside=False))
