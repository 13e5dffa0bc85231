"""Where a source can be broken, and how: one small change each, like a slip of the hand.

Left alone are words (docstrings, messages, annotations, decorators) and numbers so small that they only guard
against rounding, because no test should notice those.
"""

from __future__ import annotations

import ast
import copy
import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITES = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
RENAMED = {
    "max": "min",
    "min": "max",
    "maximum": "minimum",
    "minimum": "maximum",
    "ceil": "floor",
    "floor": "ceil",
    "any": "all",
    "all": "any",
}
SAME_EITHER_WAY = {
    *RENAMED,
    "zip",
    "isclose",
    "isinstance",
    "getattr",
    "setattr",
    "hasattr",
    "range",
    "sub",
    "join",
}
SMALLEST_PHYSICS = 1e-7
WORDS = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the text before, the text after, and the whole changed file."""

    path: str
    line: int
    function: int  # the first line of the innermost function around it; 0 outside of any
    kind: str
    before: str
    after: str
    source: str

    @property
    def change(self) -> str:
        """The line before and after, in one line."""
        return f"{self.before.strip()}  ->  {self.after.strip()}"


# -- Python --------------------------------------------------------------------------------------------------
def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(kind, replacement node) for each possible slip at this node."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield "arithmetic", _with(node, op=ARITHMETIC[type(node.op)]())
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield "term dropped", node.left
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for kind, table in (("comparison", OPPOSITES), ("boundary", BOUNDARIES)):
            if type(node.ops[0]) in table:
                yield kind, _with(node, ops=[table[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        yield "logic", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield "sign", node.operand
    elif isinstance(node, ast.IfExp):
        yield "branches swapped", _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Constant):
        yield from _numbers(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "statement dropped", ast.Pass()


def _numbers(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
    elif isinstance(value, float) and (value == 0 or abs(value) > SMALLEST_PHYSICS):
        yield "constant", ast.Constant(2 * value or 1.0)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in RENAMED and node.args:
        func = copy.deepcopy(node.func)
        setattr(func, "attr" if isinstance(func, ast.Attribute) else "id", RENAMED[name])
        yield "function", _with(node, func=func)
        if len(node.args) == 2:
            yield "bound dropped", node.args[0]
    if name == "range" and node.args:
        last = len(node.args) > 1
        args = list(node.args)
        args[last] = ast.BinOp(args[last], ast.Sub(), ast.Constant(1))
        yield "range", _with(node, args=args)
    if name == "where" and len(node.args) == 3:
        yield "branches swapped", _with(node, args=[node.args[0], node.args[2], node.args[1]])
    elif name not in SAME_EITHER_WAY and len(node.args) >= 2 and not _alike(*node.args[:2]):
        yield "arguments swapped", _with(node, args=[node.args[1], node.args[0], *node.args[2:]])


def _with(node: ast.AST, **fields) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _alike(a: ast.AST, b: ast.AST) -> bool:
    return ast.dump(a) == ast.dump(b) or any(isinstance(x, (ast.Starred, ast.JoinedStr)) for x in (a, b))


def _nodes(node: ast.AST, function: int = 0) -> Iterator[tuple[ast.AST, int]]:
    """(node, first line of the function around it), without nodes that are only words."""
    if isinstance(node, WORDS) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
        return
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return
    yield node, function
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        function = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes(child, function)


def python(path: str, source: str) -> list[Mutant]:
    """Every mutant of a module. Only a node's own text is replaced, so that the rest of the file stays as
    written."""
    lines, found = source.splitlines(keepends=True), []
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()
    for node, function in _nodes(ast.parse(source)):
        if not hasattr(node, "lineno"):
            continue
        begin, end = (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )
        before = raw[begin:end].decode()
        for kind, other in changes(node):
            text = ast.unparse(ast.fix_missing_locations(other))
            if isinstance(other, (ast.BinOp, ast.BoolOp, ast.IfExp, ast.Compare, ast.UnaryOp)):
                text = f"({text})"
            found.append(
                Mutant(
                    path,
                    node.lineno,
                    function,
                    kind,
                    _around(raw, begin, end, before),
                    _around(raw, begin, end, text),
                    (raw[:begin] + text.encode() + raw[end:]).decode(),
                )
            )
    return found


def _around(raw: bytes, begin: int, end: int, text: str) -> str:
    """The lines around a change, joined, with ``text`` in its place. A comment at their end is left out:
    it may be reworded."""
    head = raw[raw.rfind(b"\n", 0, begin) + 1 : begin].decode()
    newline = raw.find(b"\n", end)
    tail = raw[end : newline if newline >= 0 else len(raw)].decode().split("  # ")[0]
    return re.sub(r"\s+", " ", head + text + tail)


# -- catalogue -----------------------------------------------------------------------------------------------
FIGURE = re.compile(r"(?<![\w.-])(-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?|true|false)(?=[\s,\]]|$)")

FIGURES = re.compile(r"(\w+ = )?[\s\[\],\d.e_+-]*(true|false)?\s*")  # a line of them, and of nothing else


def data(path: str, source: str) -> list[Mutant]:
    """Wrong figures in a TOML table: a number increased by half (whole ones stay whole), a truth value
    inverted."""
    found, entry, begin = [], "", 0
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        entry = line.strip() if line.startswith("[") else entry
        for figure in FIGURE.finditer(line) if FIGURES.fullmatch(line) else ():
            changed = line[: figure.start()] + _wrong(figure[0]) + line[figure.end() :]
            found.append(
                Mutant(
                    path,
                    number,
                    0,
                    "datum",
                    f"{entry} {line}",
                    f"{entry} {changed}",
                    source[:begin] + changed + source[begin + len(line) :],
                )
            )
        begin += len(line)
    return found


def _wrong(figure: str) -> str:
    value = tomllib.loads(f"value = {figure}")["value"]
    if isinstance(value, bool):
        return str(not value).lower()
    return str(value + max(1, value // 2) if isinstance(value, int) else 1.5 * value or 1.0)


# -- choice --------------------------------------------------------------------------------------------------
def of(path: str, source: str) -> list[Mutant]:
    """All mutants of a module or of a table."""
    return data(path, source) if path.endswith(".toml") else python(path, source)


def chosen(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """A random choice of this many, with different kinds and functions before repeating one."""
    left = sorted(mutants, key=lambda m: (m.line, m.kind, m.after))
    random.Random(f"{seed} {left[0].path if left else ''}").shuffle(left)
    taken: list[Mutant] = []
    while left and len(taken) < count:
        best = min(
            left,
            key=lambda m: sum(
                (m.kind == t.kind) + (m.function == t.function) + 3 * (m.line == t.line) for t in taken
            ),
        )
        left.remove(best)
        taken.append(best)
    return sorted(taken, key=lambda m: (m.line, m.kind))
