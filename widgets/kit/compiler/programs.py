"""Writes an ``engine.base.program`` as a JavaScript function, statement by statement.

Both languages compute in doubles and have the same loops, so one text serves both once the kind of each
expression is known (``kinds.py``). Where an operator means something else in JavaScript, a helper of
numbers.js takes its place, or the program is refused with file and line. GRAMMAR.md says what is accepted.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeGuard

import numpy as np

from engine.base import program as base
from widgets.kit.compiler.assigned import Assigned, always_returns
from widgets.kit.compiler.kinds import (
    COUNTS,
    FLOAT,
    TRUTH,
    WHOLE,
    Inference,
    Kind,
    Learnt,
    Scope,
    fields_of,
    truth,
    whole,
)
from widgets.kit.compiler.literal import MOST_WHOLE, RESERVED, literal
from widgets.kit.compiler.operations import (
    CALLS,
    ELEMENTWISE,
    EXTREMES,
    HELPERS,
    LIST,
    METHODS,
    ONLY_TRUTHS,
    STAYS_WHOLE,
    WHERE,
    Call,
    Method,
    name_of,
)
from widgets.kit.compiler.refusal import refuse

TAKEN = {*RESERVED, "Math", "Number", "Array", "Float64Array", *HELPERS}  # names that mean something there
COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
NUMPY = {  # the operators of elementwise functions
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
    ast.Pow: np.power,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
}
SMALL = 1024  # adding no more than this each time cannot reach 2**53 in a run that ends


class Program:
    """The JavaScript of one program and of every function it calls: ``name`` is the function to call,
    ``functions`` are the texts. ``shapes`` are those of the arguments, if they are known."""

    def __init__(self, program: base.Program, shapes: Sequence[tuple[int, ...]] | None = None) -> None:
        self.functions: dict[str, str] = {}
        self.known: dict[Callable[..., Any], Function] = {}
        self.names: dict[Callable[..., Any], str] = {}
        algorithm = self.function(program.algorithm, program.outputs)
        self.infer(algorithm, shapes)
        self.name = self.add(program.algorithm)

    def function(self, function: Callable[..., Any], outputs: dict[str, Any] | None = None) -> Function:
        """The translation of a function; its source is read on first use."""
        if function not in self.known:
            self.known[function] = Function(self, function, outputs)
        return self.known[function]

    def infer(self, algorithm: Function, shapes: Sequence[tuple[int, ...]] | None) -> None:
        """Infer the kinds of all expressions. An argument is a number or a column of numbers, as floats."""
        for argument, shape in zip(algorithm.arguments, shapes or ()):
            number = Kind("number", sorts=[FLOAT])
            Learnt().unify(algorithm.scope.first[argument], Kind("list", [number]) if shape else number)
        self.until_nothing_is_learnt()
        self.until_nothing_is_learnt(guess=True)
        for argument in algorithm.arguments:
            for leaf in leaves(algorithm.scope.first[argument]):
                Learnt().number(leaf, {FLOAT})
        self.until_nothing_is_learnt()

    def until_nothing_is_learnt(self, guess: bool = False) -> None:
        """Go through all functions again and again until no kind changes."""
        learnt = Learnt(guess)
        learnt.news = True
        while learnt.news:
            learnt.news, count = False, len(self.known)
            for function in list(self.known.values()):
                function.infer(learnt)
            learnt.news = learnt.news or len(self.known) > count

    def add(self, function: Callable[..., Any]) -> str:
        """The name of a function; on first use it is written out with all that it calls."""
        if function not in self.names:
            name = f"{function.__module__.rsplit('.', 1)[-1]}_{function.__name__}"
            while name in self.functions:  # another module has a function of this name
                name += "$"
            self.names[function], self.functions[name] = name, ""  # known from now on: it may call itself
            self.functions[name] = self.known[function].text(name)
        return self.names[function]


def leaves(kind: Kind) -> Iterator[Kind]:
    """All that an argument is made of in the end."""
    found = kind.found()
    for part in found.parts:
        yield from leaves(part)
    if not found.parts:
        yield found


MADE = "made$"  # no name of a program's own


class Spelt(ast.NodeTransformer):
    """A program may return the dict that another function made; this writes that dict out, output by
    output."""

    def __init__(self, outputs: Iterable[str]) -> None:
        self.members = ",".join(f"'{name}':made['{name}']" for name in outputs)

    def visit_Return(self, node: ast.Return) -> ast.Return | list[ast.stmt]:
        if node.value is None or isinstance(node.value, ast.Dict):
            return node
        made, given = ast.parse(f"made=made\nreturn {{{self.members}}}").body
        made.value = node.value  # type: ignore[attr-defined]
        for part in (*made.targets, *ast.walk(given)):  # type: ignore[attr-defined]
            ast.copy_location(part, node)
            if isinstance(part, ast.Name):
                part.id = MADE
        return [ast.copy_location(made, node), given]


class Function:
    """One function that is being translated."""

    def __init__(
        self, program: Program, function: Callable[..., Any], outputs: dict[str, Any] | None
    ) -> None:
        self.program, self.function, self.outputs = program, function, outputs
        lines, self.first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            self.refuse(tree, "a function that is not written with def")
        self.tree = Spelt(outputs).visit(tree) if outputs else tree
        self.arguments = [a.arg for a in self.tree.args.args]
        self.elementwise = hasattr(function, "elementwise")
        self.check_signature()
        stored = [
            n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        self.locals = list(dict.fromkeys(n for n in stored if n not in self.arguments))
        self.loops = 0
        self.scope = Scope(self.tree, (*self.arguments, *self.locals))
        for argument in self.tree.args.args:
            annotated = self.function.__globals__.get(getattr(argument.annotation, "id", ""))
            if fields := fields_of(annotated):
                Learnt().unify(self.scope.first[argument.arg], Kind.record(fields))

    def check_signature(self) -> None:
        """Only plain arguments are allowed: a call that omits one would give ``undefined``."""
        given = self.tree.args
        if given.defaults or given.kw_defaults:
            self.refuse(self.tree, "a default argument", "pass every argument")
        if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg:
            self.refuse(self.tree, "an argument with a star, a slash or a name of its own")
        if self.outputs is None and not self.elementwise and self.tree.decorator_list:
            self.refuse(self.tree, "a decorator", "call a plain function")

    def text(self, name: str) -> str:
        """The text of the whole function."""
        Assigned(self).check()
        gives = self.outputs is None and self.scope.result.found().tag not in ("nothing", "")
        if gives and not always_returns(self.tree.body):
            self.refuse(self.tree, "a function that returns on some ways only", "end it with a return")
        declared = f"let {','.join(map(safe, self.locals))};" if self.locals else ""
        arguments = [*map(safe, self.arguments), *(["columns$={}"] if self.outputs else [])]
        return (
            f"function {name}({','.join(arguments)}){{{declared}{self.own_lists()}\n"
            f"{self.block(self.tree.body)}}}"
        )

    def own_lists(self) -> str:
        """Copies of the program's list arguments, if it or a function it calls writes to them. Functions
        other than programs write to their caller's lists on purpose."""
        if not self.outputs:
            return ""
        kinds = {argument: self.scope.first[argument].found() for argument in self.arguments}
        return "".join(
            f"{safe(a)}=Array.from({safe(a)});" if kind.grown else f"{safe(a)}={safe(a)}.slice();"
            for a, kind in kinds.items()
            if kind.grown or kind.stored
        )

    def refuse(self, node: ast.AST, what: str, instead: str = "") -> NoReturn:
        """Stop, because ``what`` at this node cannot be translated; ``instead`` says what to write."""
        path = inspect.getsourcefile(self.function)
        refuse(what, instead, f"{path}:{self.first + getattr(node, 'lineno', 1) - 1}")

    # -- kinds -----------------------------------------------------------------------------------------------
    def infer(self, learnt: Learnt) -> None:
        """Infer kinds from the statements, going through them once."""
        of = self.scope, learnt, self.known, self.scope_called, self.made, self.gives, self.refuse
        Inference(*of).statements(self.tree.body)

    def scope_called(self, node: ast.Call) -> Scope | None:
        """The scope of the function of this package that is called."""
        if self.method(node):
            return None
        called = self.known(node.func)
        if called in CALLS or called in EXTREMES or called is base.for_each or not self.is_own(called):
            return None
        return self.program.function(called).scope

    def made(self, node: ast.Call) -> tuple[str, ...]:
        """The fields of the record that a call makes; empty if it makes none."""
        return () if self.method(node) else fields_of(self.known(node.func))

    def is_own(self, called: Any) -> bool:
        """Whether a function belongs to the same package, so that it can be translated, too."""
        return (
            inspect.isfunction(called)
            and called.__module__.split(".")[0] == self.function.__module__.split(".")[0]
            and not hasattr(called, "algorithm")
        )

    def gives(self, node: ast.Call, kind: Kind, arguments: list[Kind], inference: Inference) -> None:
        """Infer the result of a call from the table, or of a list's method."""
        learnt = inference.learnt
        if isinstance(node.func, ast.Attribute) and (method := self.method(node)):
            lists = inference.kind(node.func.value)
            element = learnt.element(lists)
            lists.found().grown = True
            if method.name in ("append", "insert"):
                learnt.flow(arguments[-1], element)
            if method.name == "pop":
                learnt.flow(element, kind)
            return
        called = self.known(node.func)
        if called is base.for_each:
            scope, columns = self.of_each(node).scope, arguments[1].found().parts
            given = *map(learnt.element, columns), *arguments[2:]
            for argument, value in zip(scope.tree.args.args, given):
                learnt.flow(value, scope.first[argument.arg])
            learnt.flow(scope.result, learnt.element(inference.list_of(node)))
        elif called is np.where and len(arguments) == 3:
            learnt.number(kind, arguments[1].found().sorts | arguments[2].found().sorts)
        elif called in ELEMENTWISE:
            sorts = set().union(*(argument.found().sorts for argument in arguments))
            if ELEMENTWISE[called].gives_truth:
                sorts = {TRUTH}
            learnt.number(kind, sorts if called in STAYS_WHOLE or sorts == {TRUTH} else {FLOAT})
        elif called in EXTREMES:
            each = arguments if len(arguments) > 1 else [learnt.element(a) for a in arguments]
            for argument in each:
                learnt.number(kind, argument.found().sorts)
        elif called in CALLS and len(arguments) == len(CALLS[called].takes):
            call = CALLS[called]
            for argument, takes in zip(arguments, call.takes):
                if takes == "list":
                    learnt.element(argument)
            if call.gives == LIST:
                value = arguments[1] if len(arguments) > 1 else Kind("number", sorts=[FLOAT])
                learnt.flow(value, learnt.element(inference.list_of(node)))
            elif call.gives == "same":
                learnt.number(kind, {WHOLE if s == TRUTH else s for s in arguments[0].found().sorts})
            else:
                learnt.number(kind, {call.gives})

    def of_each(self, node: ast.Call) -> Function:
        """The function that for_each() applies."""
        if len(node.args) < 2 or not isinstance(node.args[1], ast.Tuple):
            self.refuse(node, "for_each() without columns", "for_each(function, (column, …), …)")
        return self.program.function(self.known(node.args[0]))

    def of(self, node: ast.AST) -> Kind:
        """The kind of an expression."""
        return self.scope.nodes.get(node, Kind()).found()

    # -- statements ------------------------------------------------------------------------------------------
    def block(self, statements: Iterable[ast.stmt]) -> str:
        """The JavaScript of some statements."""
        return "\n".join(filter(None, map(self.statement, statements))) + "\n"

    def statement(self, node: ast.stmt) -> str:
        """The JavaScript of a statement."""
        write = getattr(self, f"_{type(node).__name__}", None)
        if write is None:
            self.refuse(node, type(node).__name__)
        return write(node)

    def _Pass(self, _node: ast.Pass) -> str:
        return ""

    def _Break(self, _node: ast.Break) -> str:
        return "break;"

    def _Continue(self, _node: ast.Continue) -> str:
        return "continue;"

    def _Expr(self, node: ast.Expr) -> str:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return ""
        if not isinstance(node.value, ast.Call):
            self.refuse(node, "an expression that nothing is done with")
        return f"{self.call(node.value, statement=True)};"

    def _Assign(self, node: ast.Assign) -> str:
        if len(node.targets) > 1 and not all(isinstance(t, ast.Name) for t in node.targets):
            self.refuse(node, "several targets that are not all names", "assign one after the other")
        value, target = self.value(node.value), node.targets[0]
        if isinstance(target, ast.Tuple):
            if self.of(node.value).tag != "tuple":
                value = f"py_unpacked({value},{len(target.elts)})"
        elif isinstance(target, ast.Subscript) and not self.is_plain(node.value):
            return f"{{const r$={value};{self.target(target)}=r$;}}"  # Python looks up the index later
        return f"{'='.join(self.target(t) for t in node.targets)}={value};"

    def _AugAssign(self, node: ast.AugAssign) -> str:
        value = self.number(node.value)
        if isinstance(node.target, ast.Name):
            name = safe(node.target.id)
            return f"{name}={self.binary(node, name, value)};"
        if isinstance(node.target, ast.Attribute) or self.of(node.target.value).fields:
            place = self.target(node.target)
            if not self.is_plain(node.value):
                self.refuse(node, "a call whose result is added to a member", "give what it returns a name")
            return f"{place}={self.binary(node, place, value)};"
        if not self.is_plain(node.target) or not self.is_plain(node.value):
            collection, place = self.collection(node.target.value), self.index(node.target.slice)
            return (
                f"{{const l$={collection},p$=py_place({place},l$.length),e$=l$[p$];"
                f"l$[p$]={self.binary(node, 'e$', value)};}}"
            )
        place = self.target(node.target)
        return f"{place}={self.binary(node, self.number(node.target), value)};"

    def _If(self, node: ast.If) -> str:
        self.by_branch(node)
        otherwise = f"else{{{self.block(node.orelse)}}}" if node.orelse else ""
        return f"if({self.condition(node.test)}){{{self.block(node.body)}}}{otherwise}"

    def _While(self, node: ast.While) -> str:
        self.by_branch(node)
        if node.orelse:
            self.refuse(node, "while … else")
        return f"while({self.condition(node.test)}){{{self.block(node.body)}}}"

    def _For(self, node: ast.For) -> str:
        if node.orelse or not isinstance(node.target, ast.Name):
            self.refuse(node, "this kind of for", "loop with one name, without else")
        if not self.is_range(node.iter):
            return f"for({safe(node.target.id)} of {self.collection(node.iter)}){{{self.block(node.body)}}}"
        self.loops += 1
        count, end = f"i${self.loops}", f"n${self.loops}"
        start, stop, step, sign = self.bounds(node.iter)
        return (
            f"for(let {count}={start},{end}={stop};{count}{sign}{end};{count}+={step})"
            f"{{{safe(node.target.id)}={count};\n{self.block(node.body)}}}"
        )

    def _Return(self, node: ast.Return) -> str:
        if self.outputs is None:
            return f"return {self.value(node.value)};" if node.value else "return;"
        if not isinstance(node.value, ast.Dict):
            self.refuse(node, "a program's return of nothing")
        made = [read for read in ast.walk(node.value) if isinstance(read, ast.Name) and read.id == MADE]
        if made and self.of(made[0]).tag != "dict":
            self.refuse(node, "a program's return of anything but a dict")
        found: dict[Any, ast.expr] = {
            k.value if isinstance(k, ast.Constant) else "**": v
            for k, v in zip(node.value.keys, node.value.values)
        }
        if found.keys() != self.outputs.keys():
            self.refuse(
                node, f"a return of {', '.join(map(str, found))} where {', '.join(self.outputs)} are declared"
            )
        fields = (
            f"{k}:+{self.number(v)}"
            if self.outputs[k] == ()
            else f"{k}:padded({self.collection(v)},{self.outputs[k]},columns$,'{k}')"
            for k, v in found.items()
        )
        return f"return {{{','.join(fields)}}};"

    # -- expressions -----------------------------------------------------------------------------------------
    def target(self, node: ast.expr) -> str:
        """The JavaScript of what is assigned to."""
        if isinstance(node, ast.Tuple):
            return f"[{','.join(self.target(t) for t in node.elts)}]"
        if isinstance(node, ast.Name):
            return safe(node.id)
        if not isinstance(node, ast.Subscript) and not (
            isinstance(node, ast.Attribute) and self.scope.has(node)
        ):
            self.refuse(node, f"an assignment to {ast.unparse(node)}")
        if not self.is_plain(node):
            self.refuse(node, "a call in the place that is assigned", "give what it returns a name")
        if isinstance(node, ast.Attribute) or self.of(node.value).fields:
            return self.member(node)
        collection = self.collection(node.value)
        return f"{collection}[py_place({self.index(node.slice)},{collection}.length)]"

    def value(self, node: ast.expr) -> str:
        """The JavaScript of an expression."""
        write = getattr(self, f"v_{type(node).__name__}", None)
        if write is None:
            self.refuse(node, type(node).__name__)
        return write(node)

    def number(self, node: ast.expr) -> str:
        """The JavaScript of an expression that must be a number."""
        if self.of(node).tag in ("list", "tuple", "dict", "nothing"):
            self.refuse(
                node,
                f"{self.of(node).says()} where a number is needed ({ast.unparse(node)})",
                "an operator of Python's on lists means another thing in JavaScript: write a loop, "
                "compare len(…), append",
            )
        return self.value(node)

    def collection(self, node: ast.expr) -> str:
        """The JavaScript of an expression that must be a list."""
        if self.of(node).tag in ("number", "dict", "nothing"):
            self.refuse(node, f"{self.of(node).says()} where a list is needed ({ast.unparse(node)})")
        return self.value(node)

    def index(self, node: ast.expr) -> str:
        """The JavaScript of an expression that must be a whole number."""
        text, sorts = self.number(node), self.of(node).sorts
        if sorts and not sorts & COUNTS:
            self.refuse(node, f"a float for a place or a count ({ast.unparse(node)})", "take int(…) of it")
        return f"+{text}" if TRUTH in sorts else text

    def condition(self, node: ast.expr) -> str:
        """The JavaScript of whether an expression is true in Python's sense; NaN is true."""
        if isinstance(node, ast.BoolOp):
            return self.joined(node, self.condition)
        text = self.number(node)
        return text if truth(self.of(node)) else f"({text}!=0)"

    def binary(self, node: ast.BinOp | ast.AugAssign, left: str, right: str) -> str:
        """The JavaScript of an operator between two numbers (also for an augmented assignment)."""
        if self.elementwise:
            return self.of_numpy(node, left, right)
        first = node.left if isinstance(node, ast.BinOp) else node.target
        second = node.right if isinstance(node, ast.BinOp) else node.value
        both_whole = whole(self.of(first)) and whole(self.of(second))
        constant = second.value if isinstance(second, ast.Constant) else 0
        may_be_whole = self.of(first).sorts & COUNTS and self.of(second).sorts & COUNTS
        if isinstance(node.op, (ast.Mult, ast.Pow)) and may_be_whole and not both_whole:
            self.refuse(
                node,
                f"{ast.unparse(node)} of numbers that are sometimes whole and sometimes floats",
                "take int(…) or float(…), or write the constant as a float",
            )
        match node.op:
            case ast.Add() | ast.Sub():
                text = f"({left}{'+' if isinstance(node.op, ast.Add) else '-'}{right})"
                return f"py_whole{text}" if both_whole and not small(first) and not small(second) else text
            case ast.Mult():
                return f"py_whole({left}*{right})" if both_whole else f"({left}*{right})"
            case ast.Div():
                return f"({left}/{right})" if constant else f"py_divided({left},{right})"
            case ast.FloorDiv():
                exact = constant and both_whole
                return f"Math.floor({left}/{right})" if exact else f"py_floordivided({left},{right})"
            case ast.Mod():
                return f"mod({left},{right})" if constant else f"py_remainder({left},{right})"
            case ast.Pow():
                return f"{'py_whole_power' if both_whole else 'py_power'}({left},{right})"
        self.refuse(node, type(node.op).__name__, "write + - * / // % or **")

    def of_numpy(self, node: ast.BinOp | ast.AugAssign, left: str, right: str) -> str:
        """The JavaScript of an operator of numpy's, between two numbers."""
        if type(node.op) not in NUMPY:
            self.refuse(node, type(node.op).__name__, "write + - * / // % ** & or |")
        second = node.right if isinstance(node, ast.BinOp) else node.value
        if isinstance(node.op, ast.Pow) and isinstance(second, ast.Constant) and second.value == 2:
            return ELEMENTWISE[np.square].written.format(left)
        operation = ELEMENTWISE[NUMPY[type(node.op)]]
        first = node.left if isinstance(node, ast.BinOp) else node.target
        if operation.truths == ONLY_TRUTHS and not (truth(self.of(first)) and truth(self.of(second))):
            self.refuse(node, f"{ast.unparse(node)} of numbers", "compare them first")
        return operation.written.format(left, right)

    def by_branch(self, node: ast.AST) -> None:
        """Refuse what an elementwise function cannot ask of an array."""
        if self.elementwise:
            self.refuse(node, "a condition that an elementwise function branches on", "np.where, &, | and ~")

    def v_Constant(self, node: ast.Constant) -> str:
        if isinstance(node.value, str):
            self.refuse(node, "a text", "programs count with numbers: give each case one")
        return self.constant(node, node.value)

    def v_Name(self, node: ast.Name) -> str:
        if node.id in self.scope.names:
            return safe(node.id)
        return self.of_module(node)

    def v_Attribute(self, node: ast.Attribute) -> str:
        return self.member(node) if self.scope.has(node) else self.of_module(node)

    def of_module(self, node: ast.expr) -> str:
        """The JavaScript of a number, or of numbers, that a module defines. No program may write to them."""
        kind = self.of(node)
        if kind.stored or kind.grown:
            self.refuse(
                node, f"{ast.unparse(node)} of a module, which is written to", "make a list in the program"
            )
        return self.constant(node, self.known(node))

    def v_BinOp(self, node: ast.BinOp) -> str:
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List) and len(node.left.elts) == 1:
            return f"new Array(py_count({self.index(node.right)})).fill({self.value(node.left.elts[0])})"
        return self.binary(node, self.number(node.left), self.number(node.right))

    def v_UnaryOp(self, node: ast.UnaryOp) -> str:
        match node.op:
            case ast.Not():
                self.by_branch(node)
                return f"(!{self.condition(node.operand)})"
            case ast.USub():
                return f"(-{self.number(node.operand)})"
            case ast.UAdd():
                return f"(+{self.number(node.operand)})"
            case ast.Invert() if truth(self.of(node.operand)):
                return f"(!{self.number(node.operand)})"
        self.refuse(node, type(node.op).__name__)

    def joined(self, node: ast.BoolOp, write: Callable[[ast.expr], str]) -> str:
        """The JavaScript of expressions joined by and, or by or; ``write`` gives that of each."""
        sign = "&&" if isinstance(node.op, ast.And) else "||"
        return f"({sign.join(map(write, node.values))})"

    def v_BoolOp(self, node: ast.BoolOp) -> str:
        self.by_branch(node)
        for value in node.values[:-1]:
            self.number(value)
            if FLOAT in self.of(value).sorts:
                self.refuse(
                    node,
                    f"the value of {ast.unparse(node)}",
                    "write a conditional expression: NaN is true in Python",
                )
        return self.joined(node, self.number)

    def v_Compare(self, node: ast.Compare) -> str:
        if any(type(op) not in COMPARE for op in node.ops):
            self.refuse(node, "in or is", "compare numbers with <, <=, >, >=, == or !=")
        if not all(map(self.is_plain, node.comparators[:-1])):
            self.refuse(node, "a call in the middle of a chain of comparisons", "give what it returns a name")
        sides = [self.number(s) for s in (node.left, *node.comparators)]
        pairs = [f"{a}{COMPARE[type(op)]}{b}" for a, op, b in zip(sides, node.ops, sides[1:])]
        return f"({'&&'.join(pairs)})"

    def v_IfExp(self, node: ast.IfExp) -> str:
        self.by_branch(node)
        return f"({self.condition(node.test)}?{self.value(node.body)}:{self.value(node.orelse)})"

    def v_Subscript(self, node: ast.Subscript) -> str:
        index = node.slice
        negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
        if isinstance(index, (ast.Slice, ast.Tuple)) or negative:
            self.refuse(
                node,
                "a slice, an index in two directions or one from the end",
                "loop over range(…), write q[i][j], q[len(q) - 1]",
            )
        if self.of(node.value).tag == "dict":
            return self.member(node)
        collection, place = self.collection(node.value), self.index(index)
        if self.of(node.value).tag == "tuple":
            return f"{collection}[{place}]"
        if not self.is_plain(node):
            return f"py_item({collection},{place})"
        return f"({collection}[{place}]??py_item({collection},{place}))"

    def member(self, node: ast.Subscript | ast.Attribute) -> str:
        """A member of a dict or a record, by name."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
        if name not in self.of(node.value).fields:
            has = ", ".join(self.of(node.value).fields)
            self.refuse(node, ast.unparse(node), f"the {self.of(node.value).tag} has {has}" if has else "")
        return f'{self.value(node.value)}["{name}"]'

    def v_Dict(self, node: ast.Dict) -> str:
        names = [getattr(key, "value", None) for key in node.keys]
        if not all(isinstance(name, str) and name.isidentifier() for name in names):
            self.refuse(node, "a dict whose keys are not names", "use a list")
        return "{" + ",".join(f"{name}:{self.value(v)}" for name, v in zip(names, node.values)) + "}"

    def v_List(self, node: ast.List | ast.Tuple) -> str:
        return f"[{','.join(map(self.value, node.elts))}]"

    v_Tuple = v_List

    def v_ListComp(self, node: ast.ListComp) -> str:
        one = node.generators[0]
        if len(node.generators) > 1 or one.ifs or not self.is_range(one.iter) or len(one.iter.args) > 1:
            self.refuse(node, "a list comprehension over anything but range(n)", "append in a loop")
        if not isinstance(one.target, ast.Name):
            self.refuse(node, "several names for the numbers of a range")
        name, count = one.target.id, self.index(one.iter.args[0])
        return f"Array.from({{length:{count}}},(unused$,{safe(name)})=>{self.value(node.elt)})"

    def v_Call(self, node: ast.Call) -> str:
        return self.call(node, statement=False)

    def call(self, node: ast.Call, statement: bool) -> str:
        """The JavaScript of a call, as a statement of its own or as a value."""
        if names := self.made(node):
            return self.new(node, names)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self.refuse(node, "an argument by name or with a star", "pass arguments by their place")
        if isinstance(node.func, ast.Attribute) and (method := self.method(node)):
            if method.statement and not statement:
                self.refuse(node, f"the value of {method.name}(), which is None")
            if method.name == "remove" and self.of(node.func.value).parts[0].found().tag == "list":
                self.refuse(node, "remove() of a list from a list of lists")
            return method.written.format(self.collection(node.func.value), *map(self.value, node.args))
        called = self.known(node.func)
        if called is base.for_each:
            return self.column(node)
        if self.elementwise and (called is np.where or called in ELEMENTWISE):
            return self.numpy_call(node, called)
        if called in EXTREMES:
            self.by_branch(node)
            return self.extreme(node, *EXTREMES[called])
        if called in CALLS:
            return self.known_call(node, CALLS[called])
        if not self.is_own(called):
            self.refuse(node, f"{ast.unparse(node.func)}()", "the table of operations says what there is")
        function = self.program.function(called)
        if len(node.args) != len(function.arguments):
            self.refuse(
                node, f"{len(node.args)} arguments for the {len(function.arguments)} of {called.__name__}()"
            )
        if not statement and function.scope.result.found().tag == "nothing":
            self.refuse(node, f"the value of {called.__name__}(), which returns nothing")
        return f"{self.program.add(called)}({','.join(map(self.value, node.args))})"

    def new(self, node: ast.Call, names: tuple[str, ...]) -> str:
        """The JavaScript of a new record."""
        given = [*zip(names, node.args), *((each.arg, each.value) for each in node.keywords)]
        if len(node.args) > len(names) or sorted(str(name) for name, _ in given) != sorted(names):
            self.refuse(node, f"{ast.unparse(node.func)}() without all its fields", "give each of them")
        return "{" + ",".join(f"{name}:{self.value(value)}" for name, value in given) + "}"

    def column(self, node: ast.Call) -> str:
        """The JavaScript of an elementwise function of the members of some columns."""
        function, columns = self.of_each(node), [self.collection(each) for each in node.args[1].elts]  # type: ignore[attr-defined]
        if not function.elementwise or len(columns) + len(node.args) - 2 != len(function.arguments):
            self.refuse(node, ast.unparse(node), "give an elementwise function all its arguments")
        given = *(f"c$[{place}][i$]" for place in range(len(columns))), *map(self.value, node.args[2:])
        called = f"{self.program.add(function.function)}({','.join(given)})"
        return f"for_each([{','.join(columns)}],(i$,c$)=>{called})"

    def numpy_call(self, node: ast.Call, called: Any) -> str:
        """The JavaScript of one of numpy's functions of numbers."""
        truths = called is np.where or ELEMENTWISE[called].truths == ONLY_TRUTHS
        asked = node.args[: 1 if called is np.where else len(node.args)]
        if len(node.args) != (3 if called is np.where else ELEMENTWISE[called].arity):
            self.refuse(node, f"{name_of(called)} with {len(node.args)} arguments")
        if truths and not all(truth(self.of(each)) for each in asked):
            self.refuse(node, f"{name_of(called)} of numbers", "compare them first")
        written = WHERE if called is np.where else ELEMENTWISE[called].written
        return written.format(*map(self.number, node.args))

    def extreme(self, node: ast.Call, of_two: str, of_list: str) -> str:
        """The JavaScript of min or max, of a list or of several numbers."""
        if len(node.args) == 1:
            return f"{of_list}({self.collection(node.args[0])})"
        text, *rest = map(self.number, node.args)
        for each in rest:
            text = f"{of_two}({text},{each})"
        return text

    def known_call(self, node: ast.Call, call: Call) -> str:
        """The JavaScript of a call of one of the functions in the table."""
        if len(node.args) != len(call.takes):
            self.refuse(
                node, f"{call.name}() with {len(node.args)} arguments", f"it takes {len(call.takes)} here"
            )
        if any(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in node.args):
            self.refuse(node, ast.unparse(node), "write math.inf or math.nan, or a number")
        write = {"number": self.number, "list": self.collection, "any": self.value}
        return call.written.format(*(write[takes](a) for takes, a in zip(call.takes, node.args)))

    # -- what a name means -----------------------------------------------------------------------------------
    def method(self, node: ast.Call) -> Method | None:
        """The method of a list that is called, if it is one."""
        called = node.func
        if not isinstance(called, ast.Attribute):
            return None
        root = called.value
        if not self.scope.has(root):
            return None
        found = METHODS.get((called.attr, len(node.args)))
        if not found:
            self.refuse(
                node,
                f"{called.attr}() with {len(node.args)} arguments",
                "lists can append, insert, remove and pop",
            )
        return found

    def is_plain(self, node: ast.AST) -> bool:
        """Whether an expression may be written twice, because it has no side effects."""
        return not any(
            isinstance(each, ast.Call) and (self.method(each) or self.is_own(self.known(each.func)))
            for each in ast.walk(node)
        )

    def known(self, node: ast.expr) -> Any:
        """The Python object that a name outside the function refers to."""
        if isinstance(node, ast.Attribute):
            return getattr(self.known(node.value), node.attr)
        if isinstance(node, ast.Name) and node.id not in self.function.__code__.co_freevars:
            if node.id in self.function.__globals__:
                return self.function.__globals__[node.id]
            builtins = self.function.__globals__["__builtins__"]
            builtins = builtins if isinstance(builtins, dict) else vars(builtins)
            if node.id in builtins:
                return builtins[node.id]
        self.refuse(node, ast.unparse(node))

    def constant(self, node: ast.expr, value: Any) -> str:
        """The JavaScript of a number, or of numbers, that the source or a module defines."""
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, (int, np.integer)) and abs(int(value)) > MOST_WHOLE:
            self.refuse(node, f"the whole number {value}, past 2**53", "write it as a float")
        if isinstance(value, (int, float, np.number)) and not isinstance(value, complex):
            if math.isfinite(value):
                text = literal(float(value))
                return f"({text})" if text.startswith("-") else text  # a - -1 must not become a--1
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if isinstance(value, (tuple, list, np.ndarray)):
            return f"[{','.join(self.constant(node, v) for v in value)}]"
        self.refuse(node, ast.unparse(node))

    def is_range(self, node: ast.expr) -> TypeGuard[ast.Call]:
        """Whether an expression is a call of range."""
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"

    def bounds(self, node: ast.Call) -> tuple[str, str, str, str]:
        """Start, stop and step of a range, and the comparison that continues the loop."""
        if node.keywords or not 1 <= len(node.args) <= 3:
            self.refuse(node, "this range()")
        step = node.args[2] if len(node.args) > 2 else ast.Constant(1)
        size = step.operand if isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub) else step
        down = size is not step
        if not isinstance(size, ast.Constant) or type(size.value) is not int or size.value == 0:
            self.refuse(
                node, "a range with a step that is not written down", "write a whole number that is not 0"
            )
        ends = [self.index(a) for a in node.args[:2]]
        start, stop = ends if len(ends) > 1 else ("0", ends[0])
        return (
            start,
            stop,
            f"({'-' if down else ''}{size.value})" if down else str(size.value),
            ">" if down else "<",
        )


def small(node: ast.expr) -> bool:
    """Whether an expression is a constant that is so small that no sum of it grows past 2**53."""
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and abs(node.value) <= SMALL
    )


def safe(name: str) -> str:
    """A Python name; one that is reserved in JavaScript or numbers.js gets a suffix."""
    return f"{name}$" if name in TAKEN else name
