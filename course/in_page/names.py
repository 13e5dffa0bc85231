"""The names that a page knows: Python's own, those that JavaScript reserves, and those that a body of code
assigns."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course.strict_yaml import Refused

RESERVED = frozenset(
    [
        "arguments",
        "await",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "debugger",
        "default",
        "delete",
        "do",
        "else",
        "enum",
        "eval",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "function",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "interface",
        "let",
        "new",
        "null",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "static",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "undefined",
        "var",
        "void",
        "while",
        "with",
        "yield",
        "of",
        "get",
        "set",
        "Infinity",
        "NaN",
    ]
)
BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "dict",
        "enumerate",
        "float",
        "frozenset",
        "getattr",
        "hasattr",
        "int",
        "isinstance",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "object",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "setattr",
        "sorted",
        "str",
        "sum",
        "tuple",
        "type",
        "vars",
        "zip",
        "ArithmeticError",
        "AttributeError",
        "Exception",
        "IndexError",
        "KeyError",
        "OSError",
        "OverflowError",
        "RecursionError",
        "StopIteration",
        "TypeError",
        "UnicodeDecodeError",
        "ValueError",
        "ZeroDivisionError",
    ]
)
BUILT_IN_METHODS = frozenset(
    [
        "add",
        "append",
        "clear",
        "copy",
        "count",
        "endswith",
        "extend",
        "find",
        "format",
        "get",
        "index",
        "insert",
        "items",
        "join",
        "keys",
        "lower",
        "lstrip",
        "pop",
        "remove",
        "replace",
        "rfind",
        "rstrip",
        "setdefault",
        "sort",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "update",
        "upper",
        "values",
    ]
)


def own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes of a body, except those inside functions and classes that it defines."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def assigned(body: list[ast.stmt]) -> Iterator[str]:
    """The names that a body assigns or defines."""
    inside: set[int] = set()
    for node in own_nodes(body):
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for each in node.generators:
                inside |= {id(n) for n in ast.walk(each.target)}
    checking = {
        id(inner)
        for node in body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in own_nodes(body):
        if id(node) in inside or id(node) in checking:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.asname or each.name).split(".")[0] for each in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, (ast.Nonlocal, ast.Global)):
            raise Refused("a page has neither nonlocal nor global")


def method_names(tree: ast.Module) -> Iterator[str]:
    """The names of all methods of a module's classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and "property" not in [
                    ast.unparse(d) for d in each.decorator_list
                ]:
                    yield each.name


def yields(node: ast.FunctionDef) -> bool:
    """Whether a function is a generator."""
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in own_nodes(node.body))
