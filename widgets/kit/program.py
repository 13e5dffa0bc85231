"""Write an ``engine.program`` out as a JavaScript function, statement by statement.

Both languages count in doubles and loop alike, so that one text serves both. What has no counterpart here raises
NotTraceable with file and line.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from bisect import bisect_left

import numpy as np

from engine import program as engine_program
from widgets.kit.literal import literal
from widgets.kit.symbolic import NotTraceable

RESERVED = {"in", "new", "var", "let", "const", "function", "default", "delete", "switch", "case", "this", "typeof", "void", "with", "do",
            "catch", "throw", "mod", "rint", "padded", "bisect_left", "export", "super", "enum", "static", "package", "interface", "null", "true", "false", "arguments", "eval"}
BINARY = {ast.Add: "({}+{})", ast.Sub: "({}-{})", ast.Mult: "({}*{})", ast.Div: "({}/{})", ast.Pow: "Math.pow({},{})",
          ast.FloorDiv: "Math.floor({}/{})", ast.Mod: "mod({},{})"}
COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
UNARY = {ast.USub: "(-{})", ast.UAdd: "(+{})", ast.Not: "(!{})"}
CALLS = {abs: "Math.abs({})", int: "Math.trunc({})", float: "(+{})", round: "rint({})", len: "{}.length", bool: "(!!{})",
         engine_program.zeros: "new Array(Math.trunc({})).fill(0)", engine_program.full: "new Array(Math.trunc({})).fill({})",
         bisect_left: "bisect_left({},{})", math.sqrt: "Math.sqrt({})", math.exp: "Math.exp({})", math.log: "Math.log({})",
         math.log2: "Math.log2({})", math.log10: "Math.log10({})", math.floor: "Math.floor({})", math.ceil: "Math.ceil({})", math.cos: "Math.cos({})",
         math.sin: "Math.sin({})", math.fabs: "Math.abs({})", math.isnan: "Number.isNaN({})"}
METHODS = {("append", 1): "{}.push({})", ("pop", 0): "{}.pop()", ("pop", 1): "{}.splice({},1)[0]",
           ("insert", 2): "{}.splice({},0,{})", ("remove", 1): "{0}.splice({0}.indexOf({1}),1)"}
EXTREMES = {min: "Math.min", max: "Math.max"}


class Program:
    """The JavaScript of one program and of every function it calls: ``name`` is what to call, ``functions`` the texts."""

    def __init__(self, program):
        self.functions: dict[str, str] = {}
        self.name = self.add(program.algorithm, program.outputs)

    def add(self, function, outputs=None) -> str:
        """The name of a function, which is written out with all that it calls when it is first met."""
        name = f"{function.__module__.rsplit('.', 1)[-1]}_{function.__name__}"
        if name not in self.functions:
            self.functions[name] = ""       # known from here on: a function may call itself
            self.functions[name] = Function(self, function, outputs).text(name)
        return name


class Function:
    """One function on its way to JavaScript."""

    def __init__(self, program: Program, function, outputs):
        self.program, self.function, self.outputs = program, function, outputs
        lines, self.first = inspect.getsourcelines(function)
        self.tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        self.arguments = [a.arg for a in self.tree.args.args]
        stored = [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.locals = list(dict.fromkeys(n for n in stored if n not in self.arguments))
        self.loops = 0

    def text(self, name: str) -> str:
        """The whole function."""
        declared = f"let {','.join(map(safe, self.locals))};" if self.locals else ""
        # a program's own lists are its caller's no longer: elsewhere they are written to on purpose
        own = "".join(f"{safe(a)}={safe(a)}.slice();" for a in self.written_arguments()) if self.outputs else ""
        arguments = [*map(safe, self.arguments), *(["columns$={}"] if self.outputs else [])]
        return f"function {name}({','.join(arguments)}){{{declared}{own}\n{self.block(self.tree.body)}}}"

    def written_arguments(self) -> list[str]:
        """Arguments of which an element is assigned."""
        stored = {node.value.id for node in ast.walk(self.tree) if isinstance(node, ast.Subscript)
                  and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)}
        return [argument for argument in self.arguments if argument in stored]

    def refuse(self, node, what: str):
        path = inspect.getsourcefile(self.function)
        line = self.first + getattr(node, "lineno", 1) - 1
        raise NotTraceable(f"{path}:{line}: {what} cannot be written out for the page; engine/program.py says what can")

    # -- statements -------------------------------------------------------------------------------------------------
    def block(self, statements) -> str:
        return "\n".join(filter(None, map(self.statement, statements))) + "\n"

    def statement(self, node) -> str:
        write = getattr(self, f"_{type(node).__name__}", None)
        if write is None:
            self.refuse(node, type(node).__name__)
        return write(node)

    def _Pass(self, _node): return ""
    def _Break(self, _node): return "break;"
    def _Continue(self, _node): return "continue;"

    def _Expr(self, node):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return ""
        return f"{self.value(node.value)};"

    def _Assign(self, node):
        targets = "=".join(self.target(t) for t in node.targets)
        return f"{targets}={self.value(node.value)};"

    def _AugAssign(self, node):
        target = self.target(node.target)
        return f"{target}={self.binary(node, target, self.value(node.value))};"

    def _If(self, node):
        otherwise = f"else{{{self.block(node.orelse)}}}" if node.orelse else ""
        return f"if({self.value(node.test)}){{{self.block(node.body)}}}{otherwise}"

    def _While(self, node):
        if node.orelse:
            self.refuse(node, "while … else")
        return f"while({self.value(node.test)}){{{self.block(node.body)}}}"

    def _For(self, node):
        if node.orelse or not isinstance(node.target, ast.Name):
            self.refuse(node, "this kind of for")
        if not self.is_range(node.iter):
            return f"for({safe(node.target.id)} of {self.value(node.iter)}){{{self.block(node.body)}}}"
        self.loops += 1
        count, end = f"i${self.loops}", f"n${self.loops}"
        start, stop, step, sign = self.bounds(node.iter)
        return (f"for(let {count}={start},{end}={stop};{count}{sign}{end};{count}+={step})"
                f"{{{safe(node.target.id)}={count};\n{self.block(node.body)}}}")

    def _Return(self, node):
        if self.outputs is None:
            return f"return {self.value(node.value)};"
        if not isinstance(node.value, ast.Dict):
            self.refuse(node, "a program's return of anything but a dict")
        found = {k.value: self.value(v) for k, v in zip(node.value.keys, node.value.values)}
        fields = (f"{k}:+{v}" if self.outputs[k] == () else f"{k}:padded({v},{self.outputs[k]},columns$,'{k}')"
                  for k, v in found.items())
        return f"return {{{','.join(fields)}}};"

    # -- expressions ------------------------------------------------------------------------------------------------
    def target(self, node) -> str:
        if isinstance(node, ast.Tuple):
            return f"[{','.join(self.target(t) for t in node.elts)}]"
        return safe(node.id) if isinstance(node, ast.Name) else self.value(node)

    def value(self, node) -> str:
        write = getattr(self, f"v_{type(node).__name__}", None)
        if write is None:
            self.refuse(node, type(node).__name__)
        return write(node)

    def binary(self, node, left: str, right: str) -> str:
        if type(node.op) not in BINARY:
            self.refuse(node, type(node.op).__name__)
        return BINARY[type(node.op)].format(left, right)

    def v_Constant(self, node):
        if isinstance(node.value, bool):
            return "true" if node.value else "false"
        if isinstance(node.value, str):
            return f'"{node.value}"'
        if not isinstance(node.value, (int, float)):
            self.refuse(node, repr(node.value))
        return literal(node.value)

    def v_Name(self, node):
        if node.id in self.locals or node.id in self.arguments:
            return safe(node.id)
        return self.constant(node, self.known(node))

    def v_Attribute(self, node):
        return self.constant(node, self.known(node))

    def v_BinOp(self, node):
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            return f"new Array({self.value(node.right)}).fill({self.value(node.left.elts[0])})"
        return self.binary(node, self.value(node.left), self.value(node.right))

    def v_UnaryOp(self, node):
        if type(node.op) not in UNARY:
            self.refuse(node, type(node.op).__name__)
        return UNARY[type(node.op)].format(self.value(node.operand))

    def v_BoolOp(self, node):
        sign = "&&" if isinstance(node.op, ast.And) else "||"
        return f"({sign.join(map(self.value, node.values))})"

    def v_Compare(self, node):
        sides = [self.value(s) for s in (node.left, *node.comparators)]
        if any(type(op) not in COMPARE for op in node.ops):
            self.refuse(node, "in or is")
        pairs = [f"{a}{COMPARE[type(op)]}{b}" for a, op, b in zip(sides, node.ops, sides[1:])]
        return f"({'&&'.join(pairs)})"

    def v_IfExp(self, node):
        return f"({self.value(node.test)}?{self.value(node.body)}:{self.value(node.orelse)})"

    def v_Subscript(self, node):
        index = node.slice
        negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
        if isinstance(index, (ast.Slice, ast.Tuple)) or negative:
            self.refuse(node, "a slice, an index in two directions or one from the end")
        return f"{self.value(node.value)}[{self.value(index)}]"

    def v_List(self, node):
        return f"[{','.join(map(self.value, node.elts))}]"

    v_Tuple = v_List

    def v_Dict(self, node):
        return "{" + ",".join(f"{k.value}:{self.value(v)}" for k, v in zip(node.keys, node.values)) + "}"

    def v_ListComp(self, node):
        one = node.generators[0]
        if len(node.generators) > 1 or one.ifs or not self.is_range(one.iter) or len(one.iter.args) > 1:
            self.refuse(node, "a list comprehension over anything but range(n)")
        name = one.target.id
        return f"Array.from({{length:{self.value(one.iter.args[0])}}},(unused$,{safe(name)})=>{self.value(node.elt)})"

    def v_Call(self, node):
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self.refuse(node, "an argument by name or with a star")
        args = [self.value(a) for a in node.args]
        method = getattr(node.func, "attr", ""), len(args)
        if method in METHODS and self.is_local(node.func.value):
            return METHODS[method].format(self.value(node.func.value), *args)
        called = self.known(node.func)
        if called in EXTREMES:
            return f"{EXTREMES[called]}({','.join(args) if len(args) > 1 else f'...{args[0]}'})"
        if called in CALLS:
            return CALLS[called].format(*args)
        if not inspect.isfunction(called) or called.__module__.split(".")[0] != self.function.__module__.split(".")[0]:
            self.refuse(node, f"{ast.unparse(node.func)}()")
        if hasattr(called, "algorithm"):
            return f"{self.program.add(called.algorithm, called.outputs)}({','.join(args)})"
        return f"{self.program.add(called)}({','.join(args)})"

    # -- what a name means ------------------------------------------------------------------------------------------
    def is_local(self, node) -> bool:
        root = node
        while isinstance(root, ast.Subscript):
            root = root.value
        return isinstance(root, ast.Name) and (root.id in self.locals or root.id in self.arguments)

    def known(self, node):
        """The Python thing that a name outside the function stands for."""
        if isinstance(node, ast.Attribute):
            return getattr(self.known(node.value), node.attr)
        if isinstance(node, ast.Name):
            if node.id in self.function.__globals__:
                return self.function.__globals__[node.id]
            builtins = self.function.__globals__["__builtins__"]
            builtins = builtins if isinstance(builtins, dict) else vars(builtins)
            if node.id in builtins:
                return builtins[node.id]
        self.refuse(node, ast.unparse(node))

    def constant(self, node, value) -> str:
        """A number, or numbers, that a module names."""
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, (int, float, np.number)):
            if math.isfinite(value):
                return literal(value) if value >= 0 else f"({literal(value)})"     # a - -1 must not become a--1
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if isinstance(value, (tuple, list, np.ndarray)):
            return f"[{','.join(self.constant(node, v) for v in value)}]"
        self.refuse(node, ast.unparse(node))

    def is_range(self, node) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"

    def bounds(self, node):
        """Start, stop, step of a range and the comparison that keeps it going."""
        step = node.args[2] if len(node.args) > 2 else ast.Constant(1)
        down = isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub)
        if not isinstance(step, ast.Constant) and not down:
            self.refuse(node, "a range with a step that is not written down")
        ends = [self.value(a) for a in node.args[:2]]
        start, stop = ends if len(ends) > 1 else ("0", ends[0])
        return start, stop, self.value(step), ">" if down else "<"


def safe(name: str) -> str:
    """A Python name that is a word of JavaScript gets a sign behind it."""
    return f"{name}$" if name in RESERVED else name
