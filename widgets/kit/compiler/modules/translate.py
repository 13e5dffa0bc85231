"""Writes a module of plain Python out as JavaScript.

How Python's values are represented: a float is a number, an int a BigInt (so that the two stay distinct, as
in Python), a list an Array, None null. Tuples, dictionaries and sets are classes of python.js. An attribute
``x.name`` is the property ``$name``, which keeps it apart from JavaScript's own; the methods of Python's
types are added to JavaScript's types under such names. Operators are functions (``$add``) that handle two
floats in their first line. Anything that this module cannot translate exactly is refused.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from widgets.kit.compiler.literal import RESERVED
from widgets.kit.compiler.modules.names import BUILTINS, assigned, only_checks, yields
from widgets.kit.compiler.refusal import refuse

LAZY = ("any", "all", "next", "iter")  # functions that may stop before the end of a generator
OPERATORS = {
    ast.Add: "$add",
    ast.Sub: "$sub",
    ast.Mult: "$mul",
    ast.Div: "$div",
    ast.FloorDiv: "$floordiv",
    ast.Mod: "$mod",
    ast.Pow: "$pow",
    ast.BitAnd: "$and",
    ast.BitOr: "$or",
    ast.MatMult: "$matmul",
}
COMPARISONS = {
    ast.Lt: "$lt",
    ast.LtE: "$le",
    ast.Gt: "$gt",
    ast.GtE: "$ge",
    ast.Eq: "$eq",
    ast.NotEq: "$ne",
    ast.In: "$in",
    ast.NotIn: "$notin",
}
TYPED = ("NamedTuple", "TypedDict", "Protocol")
# what is refused, and what to write instead: GRAMMAR.md shows it
REFUSED = {
    "async def": "a plain function",
    "await": "a plain call",
    "del": "a new list or dict without it, or pop",
    "global": "a value that the function returns",
    "nonlocal": "a value that the function returns, or an attribute",
    "match": "if and elif",
    "yield inside an expression": "yield on a line of its own",
    "yield from": "a loop that yields",
    "^": "& and |",
    "<<": "a product with a power of 2",
    ">>": "// by a power of 2",
    "the else of a loop": "a name that the loop sets",
    "else and finally of one try": "one try inside the other",
    "several contexts in one with": "one with inside the other",
    "an assignment that calls for its target": "a name for what is called",
    "a default that can change": "None, and make it in the function",
    "a keyword behind *arguments": "a plain argument before them",
    "a lambda with starred arguments": "a function",
    "a class with a decorator or several bases": "@dataclass, or one base",
    "a method with a decorator": "property, staticmethod or classmethod",
    "a class with something else in it": "fields, constants and methods",
    "a dataclass without its base's fields above it": "the base first, without __post_init__",
    "a sign that does nothing": "the number without it",
    "!a": "!r",
    "a name that no module here defines": "a function that GRAMMAR.md lists",
    "a module that a page does not have": "one that GRAMMAR.md lists",
    "a name that a page's module does not have": "one that GRAMMAR.md lists",
    "a module without a name for it": "import a.b as c",
    "a constant of another kind": "a number, a text, True, False or None",
    "an assignment to something else": "one to names, attributes and elements",
}
NAMED: dict[type[ast.AST], str] = {
    ast.AsyncFunctionDef: "async def",
    ast.Await: "await",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Match: "match",
    ast.Yield: "yield inside an expression",
    ast.YieldFrom: "yield from",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
MARKS = (("dataclasses", "dataclass"), ("dataclasses", "field"))  # this module writes out what they mean
FIELDLESS = ("printing.Printed",)  # bases of dataclasses that hold nothing themselves


class Module:
    """A module that is being translated; ``body`` is its JavaScript. ``known`` are all modules that it may
    import, with the names that they offer (None for any name); ``methods`` are the names of all methods."""

    def __init__(
        self, name: str, path: Path, known: Mapping[str, Collection[str] | None], methods: Collection[str]
    ) -> None:
        self.name, self.path, self.known, self.methods = name, path, known, methods
        self.scopes: list[set[str]] = []
        self.temporary: list[list[str]] = []
        self.counted = 0
        self.annotating: frozenset[str] = frozenset()
        self.dataclasses: dict[str, list[ast.AnnAssign]] = {}  # the fields of those so far

    # -- the module ------------------------------------------------------------------------------------------
    def body(self) -> str:
        """The module as a JavaScript expression: an object with the module's names."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        self.annotating = frozenset(self.dropped(tree.body))
        names = set(assigned(tree.body)) - self.annotating
        self.scopes, self.temporary = [names | {"__file__"}], [[]]
        lines = self.block(tree.body)
        declared = [self.local(name) for name in sorted(names)] + self.temporary.pop()
        given = ", ".join(f"${name}: {self.local(name)}" for name in sorted(names))
        head = f"let {', '.join(declared)};\n" if declared else ""
        at = f"const __file__ = {json.dumps('/' + self.name.replace('.', '/') + '.py')};\n"
        return f"(() => {{\n{at}{head}{lines}return $module({json.dumps(self.name)}, {{{given}}});\n}})()"

    def dropped(self, body: list[ast.stmt]) -> Iterator[str]:
        """Names that only annotations use."""
        for node in body:
            if isinstance(node, ast.ImportFrom) and node.module in (
                "__future__",
                "typing",
                "collections.abc",
            ):
                yield from (each.asname or each.name for each in node.names if each.name != "Mapping")

    def refuse(self, node: ast.AST, what: str, which: str = "") -> NoReturn:
        """Stop at a node with something of REFUSED; ``which`` says what it is called here."""
        named, instead = f"{what}, {which}," if which else what, REFUSED.get(what, "")
        refuse(named, instead and f"write {instead}", f"{self.path}:{getattr(node, 'lineno', 1)}")

    # -- names ----------------------------------------------------------------------------------------------
    @staticmethod
    def local(name: str) -> str:
        return f"{name}_$" if name in RESERVED else name

    def named(self, node: ast.AST, name: str) -> str:
        if any(name in scope for scope in self.scopes):
            return self.local(name)
        if name in BUILTINS:
            return f"$py_{name}"
        self.refuse(node, "a name that no module here defines", name)

    def fresh(self) -> str:
        self.counted += 1
        name = f"t${self.counted}"
        self.temporary[-1].append(name)
        return name

    # -- statements -----------------------------------------------------------------------------------------
    def block(self, body: list[ast.stmt]) -> str:
        return "".join(self.statement(node) for node in body)

    def statement(self, node: ast.stmt) -> str:
        return self.way("do", node)(node)

    def way(self, kind: str, node: ast.AST) -> Callable[..., str]:
        """The method that writes a node out."""
        return getattr(self, f"{kind}_{type(node).__name__}", None) or self.refuse_kind(node, node)

    def refuse_kind(self, at: ast.AST, node: ast.AST) -> NoReturn:
        """Stop at a kind of statement, expression or operator that is not translated."""
        self.refuse(at, NAMED.get(type(node), type(node).__name__))

    def do_Expr(self, node: ast.Expr) -> str:
        if isinstance(node.value, ast.Constant):
            return ""
        if isinstance(node.value, ast.Yield):
            value = self.of(node.value.value) if node.value.value else "null"
            return f"yield {value};\n"
        return f"{self.of(node.value)};\n"

    def do_Pass(self, node: ast.Pass) -> str:
        return ""

    def do_Assert(self, node: ast.Assert) -> str:
        return ""

    def do_Break(self, node: ast.Break) -> str:
        return "break;\n"

    def do_Continue(self, node: ast.Continue) -> str:
        return "continue;\n"

    def do_Import(self, node: ast.Import) -> str:
        lines = []
        for each in node.names:
            if "." in each.name and not each.asname:
                self.refuse(node, "a module without a name for it", each.name)
            if each.name not in self.known:
                self.refuse(node, "a module that a page does not have", each.name)
            to = each.asname or each.name
            lines.append(f"{self.local(to)} = $modules[{json.dumps(each.name)}];\n")
        return "".join(lines)

    def do_ImportFrom(self, node: ast.ImportFrom) -> str:
        lines, unused, module = [], set(self.dropped([node])), node.module or ""
        for each in node.names:
            to, whole = each.asname or each.name, f"{module}.{each.name}"
            if to in unused:
                continue
            if whole in self.known:
                found = f"$modules[{json.dumps(whole)}]"
            else:
                self.require(node, module, each.name)
                found = f"$modules[{json.dumps(module)}].${each.name}"
            lines.append(f"{self.local(to)} = {found};\n")
        return "".join(lines)

    def require(self, node: ast.AST, module: str, name: str) -> None:
        """Stop if a module does not have this name in a page."""
        there = self.known.get(module, ())
        if there is not None and name not in there and (module, name) not in MARKS:
            self.refuse(node, "a name that a page's module does not have", f"{module}.{name}")

    def do_Return(self, node: ast.Return) -> str:
        return f"return {self.of(node.value) if node.value else 'null'};\n"

    def do_Raise(self, node: ast.Raise) -> str:
        if node.exc is None:
            return "throw $e;\n"
        value = self.of(node.exc)
        return f"throw {value if isinstance(node.exc, ast.Call) else f'{value}()'};\n"

    def annotates(self, node: ast.expr | None) -> bool:
        """Whether an assignment only serves annotations, such as Texts = str | Iterable[str]."""
        if len(self.scopes) > 1 or node is None:
            return False
        return any(isinstance(each, ast.Name) and each.id in self.annotating for each in ast.walk(node))

    def do_Assign(self, node: ast.Assign) -> str:
        if self.annotates(node.value):
            return ""
        value = self.of(node.value)
        if len(node.targets) == 1:
            return self.put(node.targets[0], value)
        name = self.fresh()
        return f"{name} = {value};\n" + "".join(self.put(target, name) for target in node.targets)

    def do_AnnAssign(self, node: ast.AnnAssign) -> str:
        if node.value is None or self.annotates(node.value):
            return ""
        return self.put(node.target, self.of(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> str:
        how = {ast.Add: "$iadd", ast.BitOr: "$ior"}.get(type(node.op)) or self.operator(node)
        if isinstance(node.target, ast.Subscript):
            of, key = self.fresh(), self.fresh()
            value = f"{how}($item({of}, {key}), {self.of(node.value)})"
            first = f"{of} = {self.of(node.target.value)};\n{key} = {self.of(node.target.slice)};\n"
            return f"{first}$setitem({of}, {key}, {value});\n"
        if any(isinstance(each, ast.Call) for each in ast.walk(node.target)):
            self.refuse(node, "an assignment that calls for its target")
        to = self.target(node.target)
        return f"{to} = {how}({to}, {self.of(node.value)});\n"

    def operator(self, node: ast.BinOp | ast.AugAssign) -> str:
        """The function of an operator."""
        return OPERATORS.get(type(node.op)) or self.refuse_kind(node, node.op)

    def put(self, target: ast.expr, value: str) -> str:
        """The statement that assigns a value to a target."""
        if isinstance(target, ast.Subscript):
            return f"$setitem({self.of(target.value)}, {self.of(target.slice)}, {value});\n"
        if isinstance(target, ast.Tuple) and any(isinstance(each, ast.Subscript) for each in target.elts):
            names = [self.fresh() for _ in target.elts]
            each = "".join(self.put(one, name) for one, name in zip(target.elts, names))
            return f";[{', '.join(names)}] = {value};\n{each}"
        pattern = self.target(target)
        return f"{';' if pattern[0] == '[' else ''}{pattern} = {value};\n"

    def target(self, target: ast.expr) -> str:
        """The left side of an assignment."""
        if isinstance(target, ast.Name):
            return self.named(target, target.id)
        if isinstance(target, ast.Attribute):
            return f"{self.of(target.value)}.${target.attr}"
        if isinstance(target, (ast.Tuple, ast.List)):
            return f"[{', '.join(self.target(each) for each in target.elts)}]"
        if isinstance(target, ast.Starred):
            return f"...{self.target(target.value)}"
        self.refuse(target, "an assignment to something else", ast.unparse(target))

    def do_If(self, node: ast.If) -> str:
        if only_checks(node):
            return ""
        other = f" else {{\n{self.block(node.orelse)}}}" if node.orelse else ""
        return f"if ({self.truth(node.test)}) {{\n{self.block(node.body)}}}{other}\n"

    def do_While(self, node: ast.While) -> str:
        if node.orelse:
            self.refuse(node, "the else of a loop")
        return f"while ({self.truth(node.test)}) {{\n{self.block(node.body)}}}\n"

    def do_For(self, node: ast.For) -> str:
        if node.orelse:
            self.refuse(node, "the else of a loop")
        return f"for ({self.target(node.target)} of {self.of(node.iter)}) {{\n{self.block(node.body)}}}\n"

    def do_With(self, node: ast.With) -> str:
        if len(node.items) > 1:
            self.refuse(node, "several contexts in one with")
        [item] = node.items
        room = self.fresh()
        to = (
            self.put(item.optional_vars, f"{room}.$__enter__()")
            if item.optional_vars
            else f"{room}.$__enter__();\n"
        )
        return (
            f"{room} = {self.of(item.context_expr)};\n{to}try {{\n{self.block(node.body)}}} finally {{\n"
            f"{room}.$__exit__(null, null, null);\n}}\n"
        )

    def do_Try(self, node: ast.Try) -> str:
        if node.orelse and node.finalbody:
            self.refuse(node, "else and finally of one try")
        ran = self.fresh() if node.orelse else ""
        text = f"{ran} = false;\n" if ran else ""
        text += f"try {{\n{self.block(node.body)}{f'{ran} = true;' if ran else ''}}}"
        if node.handlers:
            text += " catch ($given) {\nconst $e = $caught($given);\n"
            for handler in node.handlers:
                kinds = self.of(handler.type) if handler.type else "$py_Exception"
                name = f"{self.local(handler.name)} = $e;\n" if handler.name else ""
                text += f"if ($py_isinstance($e, {kinds})) {{\n{name}{self.block(handler.body)}}} else "
            text += "throw $e;\n}"
        if node.finalbody:
            text += f" finally {{\n{self.block(node.finalbody)}}}"
        return f"{text}\n" + (f"if ({ran}) {{\n{self.block(node.orelse)}}}\n" if ran else "")

    # -- functions ------------------------------------------------------------------------------------------
    def do_FunctionDef(self, node: ast.FunctionDef) -> str:
        value = self.function(node, f"function{'*' if yields(node) else ''} {self.local(node.name)}")
        for decorator in reversed(node.decorator_list):
            value = f"{self.of(decorator)}({value})"
        return f"{self.local(node.name)} = {value};\n"

    def function(self, node: ast.FunctionDef, head: str, method: bool = False, of: str = "this") -> str:
        """A function, with the names of its parameters for calls with keywords; a method's first argument is
        ``this``."""
        arguments = [*node.args.posonlyargs, *node.args.args]
        me, arguments = (arguments[0].arg, arguments[1:]) if method else ("", arguments)
        text = self.routine(node.args, arguments, node.body, head, me, of)
        return f"$f({text}, {self.signature(node.args, arguments)})" if not method else text

    def signature(self, a: ast.arguments, arguments: list[ast.arg]) -> str:
        names = [each.arg for each in (*arguments, *a.kwonlyargs)]
        if a.vararg and (a.kwonlyargs or a.kwarg):
            self.refuse(a.vararg, "a keyword behind *arguments")
        return f"{json.dumps(names)}{', true' if a.kwarg else ''}"

    def parameters(self, a: ast.arguments, arguments: list[ast.arg]) -> str:
        """The parameters with their defaults. JavaScript evaluates a default at each call, Python once, so
        only defaults for which this makes no difference are allowed."""
        defaults = [None] * (len(arguments) - len(a.defaults)) + list(a.defaults)
        each = []
        for argument, default in (*zip(arguments, defaults), *zip(a.kwonlyargs, a.kw_defaults)):
            if isinstance(default, (ast.List, ast.Dict, ast.Set)):
                self.refuse(default, "a default that can change")
            each.append(self.local(argument.arg) + (f" = {self.of(default)}" if default is not None else ""))
        if a.vararg:
            each.append(f"...{self.local(a.vararg.arg)}")
        if a.kwarg:
            each.append(f"{self.local(a.kwarg.arg)} = $dict()")
        return ", ".join(each)

    def routine(
        self, a: ast.arguments, arguments: list[ast.arg], body: list[ast.stmt], head: str, me: str, of: str
    ) -> str:
        given = {each.arg for each in (*arguments, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))}
        parameters = self.parameters(a, arguments)
        own = set(assigned(body)) - given
        self.scopes.append(own | given | ({me} if me else set()))
        self.temporary.append([])
        lines = self.block(body)
        declared = [self.local(name) for name in sorted(own)] + self.temporary.pop()
        self.scopes.pop()
        first = f"const {self.local(me)} = {of};\n" if me else ""
        if a.vararg:
            name = self.local(a.vararg.arg)
            first += f"{name} = $tuple({name});\n"
        if declared:
            first += f"let {', '.join(declared)};\n"
        ends = "" if body and isinstance(body[-1], ast.Return) else "return null;\n"
        return f"{head}({parameters}) {{\n{first}{lines}{ends}}}"

    # -- classes --------------------------------------------------------------------------------------------
    def do_ClassDef(self, node: ast.ClassDef) -> str:
        bases = [ast.unparse(base) for base in node.bases]
        marks = [ast.unparse(mark).partition("(")[0] for mark in node.decorator_list]
        if set(marks) - {"dataclass"} or len(bases) > 1:
            self.refuse(node, "a class with a decorator or several bases")
        if bases == ["TypedDict"]:
            return f"{self.local(node.name)} = null;\n"
        if bases == ["Protocol"]:  # with what is so unless a class says otherwise
            bases = []
        body = [each for each in node.body if not isinstance(each, (ast.Expr, ast.Pass, ast.If))]
        holds = bases == ["NamedTuple"] or bool(marks)
        fields = [each for each in body if isinstance(each, ast.AnnAssign) and (holds or not each.value)]
        rest = [each for each in body if each not in fields]
        if marks:
            fields = [*self.inherited(node, bases), *fields]
            if not any(isinstance(each, ast.FunctionDef) and each.name == "__post_init__" for each in rest):
                self.dataclasses[node.name] = fields
        elif not bases and not fields:
            self.dataclasses[node.name] = []  # a base that holds nothing
        if bases == ["NamedTuple"]:
            base, kind = "$Named", "$named"
        else:
            base, kind = (self.of(node.bases[0]) + ".$class" if bases else "$Thing"), "$class"
        before, given, kept, written = "", [], [], []
        if holds:
            for field in fields:
                line, name, init = self.field(field)
                before += line
                written.append(name[0])
                if init:
                    given.append(f"{self.local(name[0])}{f' = {name[1]}' if name[1] else ''}")
                    kept.append(f"this.${name[0]} = {self.local(name[0])};")
        parts = []
        if written:
            after = (
                "this.$__post_init__();"
                if any(isinstance(e, ast.FunctionDef) and e.name == "__post_init__" for e in rest)
                else ""
            )
            parts.append(f"constructor({', '.join(given)}) {{ super(); {' '.join(kept)} {after} }}\n")
        after, signatures = "", {}
        for each in rest:
            if isinstance(each, ast.FunctionDef):
                parts.append(self.method(each, signatures))
            elif isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value:
                target = each.targets[0] if isinstance(each, ast.Assign) else each.target
                after += (
                    f"$attribute({self.local(node.name)}, '${ast.unparse(target)}', {self.of(each.value)});\n"
                )
            else:
                self.refuse(each, "a class with something else in it")
        annotations = {
            f.target.id: ast.unparse(f.annotation) for f in fields if isinstance(f.target, ast.Name)
        }
        names = [name.split(" = ")[0] for name in given]
        init = next((e for e in rest if isinstance(e, ast.FunctionDef) and e.name == "__init__"), None)
        called = (
            self.signature(init.args, init.args.args[1:])
            if init
            else json.dumps([n.removesuffix("_$") for n in names])
        )
        made = (
            f"{kind}(class extends {base} {{\n{''.join(parts)}}}, "
            f"{json.dumps(node.name)}, {json.dumps(written)}, {json.dumps(annotations)}, [{called}], "
            f"{json.dumps(signatures)})"
        )
        return f"{before}{self.local(node.name)} = {made};\n{after}"

    def inherited(self, node: ast.ClassDef, bases: list[str]) -> list[ast.AnnAssign]:
        """The fields that a dataclass has of another, which must stand above it and do nothing once made."""
        if not bases or bases[0] in FIELDLESS:
            return []
        if bases[0] not in self.dataclasses:
            self.refuse(node, "a dataclass without its base's fields above it", bases[0])
        return self.dataclasses[bases[0]]

    def field(self, node: ast.AnnAssign) -> tuple[str, tuple[str, str], bool]:
        """A field of a class: (code to put before the class, (name, default), whether it has a default)."""
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        value = node.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "field":
            options = {each.arg: each.value for each in value.keywords}
            if "init" in options:
                return "", (name, ""), False
            if "default_factory" in options:
                return "", (name, f"{self.of(options['default_factory'])}()"), True
            value = options.get("default")
        if value is None:
            return "", (name, ""), True
        kept = self.fresh()
        return f"{kept} = {self.of(value)};\n", (name, kept), True

    def method(self, node: ast.FunctionDef, signatures: dict[str, list]) -> str:
        marks = [ast.unparse(mark) for mark in node.decorator_list]
        star = "*" if yields(node) else ""
        if marks == ["property"]:
            return self.function(node, f"get ${node.name}", True) + "\n"
        if marks == ["staticmethod"]:
            text = self.routine(node.args, node.args.args, node.body, f"static ${node.name}", "", "")
            return text + "\n"
        if marks and marks != ["classmethod"]:
            self.refuse(node, "a method with a decorator", f"@{marks[0]}")
        arguments = [*node.args.posonlyargs, *node.args.args][1:]
        signatures[node.name] = [
            [each.arg for each in (*arguments, *node.args.kwonlyargs)],
            bool(node.args.kwarg),
        ]
        if marks:
            return self.function(node, f"static {star}${node.name}", True, "this.$made ?? this") + "\n"
        return self.function(node, f"{star}${node.name}", True) + "\n"

    # -- expressions ----------------------------------------------------------------------------------------
    def of(self, node: ast.expr) -> str:
        return self.way("of", node)(node)

    def truth(self, node: ast.expr) -> str:
        """An expression as a condition."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.truth(node.operand)}"
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return f"({sign.join(self.truth(each) for each in node.values)})"
        return f"$true({self.of(node)})"

    def of_Constant(self, node: ast.Constant) -> str:
        value = node.value
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return f"{value}n"
        if isinstance(value, float):
            return repr(value)
        if isinstance(value, str):
            return json.dumps(value)
        self.refuse(node, "a constant of another kind", repr(value))

    def of_Name(self, node: ast.Name) -> str:
        return self.named(node, node.id)

    def of_NamedExpr(self, node: ast.NamedExpr) -> str:
        return f"({self.named(node, node.target.id)} = {self.of(node.value)})"

    def of_Attribute(self, node: ast.Attribute) -> str:
        of = self.of(node.value)
        if node.attr == "__class__":
            return f"$py_type({of})"
        if node.attr == "__dict__":
            return f"$py_vars({of})"
        if node.attr in self.methods:
            return f"$bound({of}, '${node.attr}')"
        return f"{of}.${node.attr}"

    def of_Tuple(self, node: ast.Tuple) -> str:
        return f"$tuple([{self.several(node.elts)}])"

    def of_List(self, node: ast.List) -> str:
        return f"[{self.several(node.elts)}]"

    def of_Set(self, node: ast.Set) -> str:
        return f"$py_set([{self.several(node.elts)}])"

    def several(self, nodes: list[ast.expr]) -> str:
        return ", ".join(
            f"...{self.of(each.value)}" if isinstance(each, ast.Starred) else self.of(each) for each in nodes
        )

    def of_Dict(self, node: ast.Dict) -> str:
        pairs = [
            f"[{self.of(key)}, {self.of(value)}]" if key is not None else f"...{self.of(value)}.$items()"
            for key, value in zip(node.keys, node.values)
        ]
        return f"$dict([{', '.join(pairs)}])"

    def of_BinOp(self, node: ast.BinOp) -> str:
        return f"{self.operator(node)}({self.of(node.left)}, {self.of(node.right)})"

    def of_UnaryOp(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Not):
            return f"!{self.truth(node.operand)}"
        if isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                return f"(-{self.of(node.operand)})"
            return f"$neg({self.of(node.operand)})"
        if isinstance(node.op, ast.Invert):
            return f"$invert({self.of(node.operand)})"
        self.refuse(node, "a sign that does nothing")

    def of_BoolOp(self, node: ast.BoolOp) -> str:
        text = self.of(node.values[-1])
        for value in reversed(node.values[:-1]):
            name = self.fresh()
            first = f"$true({name} = {self.of(value)})"
            text = (
                f"({first} ? {text} : {name})"
                if isinstance(node.op, ast.And)
                else f"({first} ? {name} : {text})"
            )
        return text

    def of_IfExp(self, node: ast.IfExp) -> str:
        return f"({self.truth(node.test)} ? {self.of(node.body)} : {self.of(node.orelse)})"

    def of_Compare(self, node: ast.Compare) -> str:
        if len(node.ops) == 1:
            return self.compared(self.of(node.left), node.ops[0], self.of(node.comparators[0]))
        left, found = self.of(node.left), []
        for op, right in zip(node.ops, node.comparators):
            name = self.fresh()
            found.append(self.compared(left, op, f"({name} = {self.of(right)})"))
            left = name
        return "(" + " && ".join(f"$true({each})" for each in found) + ")"

    def compared(self, left: str, op: ast.cmpop, right: str) -> str:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return f"({left} {'===' if isinstance(op, ast.Is) else '!=='} {right})"
        return f"{COMPARISONS[type(op)]}({left}, {right})"

    def of_Subscript(self, node: ast.Subscript) -> str:
        if isinstance(node.slice, ast.Slice):
            low, high, step = (
                self.of(each) if each else "null"
                for each in (node.slice.lower, node.slice.upper, node.slice.step)
            )
            return f"$slice({self.of(node.value)}, {low}, {high}, {step})"
        return f"$item({self.of(node.value)}, {self.of(node.slice)})"

    def of_Slice(self, node: ast.Slice) -> str:
        low, high, step = (self.of(each) if each else "null" for each in (node.lower, node.upper, node.step))
        return f"$cut({low}, {high}, {step})"

    def of_JoinedStr(self, node: ast.JoinedStr) -> str:
        parts = []
        for each in node.values:
            if isinstance(each, ast.Constant):
                parts.append(json.dumps(each.value))
            elif isinstance(each, ast.FormattedValue):
                value = self.of(each.value)
                if each.conversion == ord("a"):
                    self.refuse(node, "!a")
                value = f"$py_repr({value})" if each.conversion == ord("r") else value
                spec = self.of(each.format_spec) if each.format_spec else '""'
                parts.append(f"$format({value}, {spec})")
        return f"({' + '.join(parts) or json.dumps('')})"

    def of_Lambda(self, node: ast.Lambda) -> str:
        given = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
        if node.args.vararg or node.args.kwarg:
            self.refuse(node, "a lambda with starred arguments")
        parameters = self.parameters(node.args, node.args.args)
        self.scopes.append(given)
        self.temporary.append([])
        value = self.of(node.body)
        temporary = self.temporary.pop()
        self.scopes.pop()
        declared = f"let {', '.join(temporary)}; " if temporary else ""
        return f"(({parameters}) => {{ {declared}return {value}; }})"

    # -- comprehensions -------------------------------------------------------------------------------------
    def of_ListComp(self, node: ast.ListComp) -> str:
        return self.comprehension(node.generators, lambda: f"$r.push({self.of(node.elt)});", "[]")

    def of_GeneratorExp(self, node: ast.GeneratorExp, lazy: bool = False) -> str:
        if lazy:
            return self.comprehension(node.generators, lambda: f"yield {self.of(node.elt)};", "")
        return self.comprehension(node.generators, lambda: f"$r.push({self.of(node.elt)});", "[]")

    def of_SetComp(self, node: ast.SetComp) -> str:
        return self.comprehension(node.generators, lambda: f"$r.$add({self.of(node.elt)});", "$py_set([])")

    def of_DictComp(self, node: ast.DictComp) -> str:
        return self.comprehension(
            node.generators, lambda: f"$r.set({self.of(node.key)}, {self.of(node.value)});", "$dict([])"
        )

    def comprehension(
        self, generators: list[ast.comprehension], element: Callable[[], str], start: str
    ) -> str:
        first = self.of(generators[0].iter)
        self.temporary.append([])
        opened, closed, depth = "", "", 0
        for number, each in enumerate(generators):
            over = "$i" if number == 0 else self.of(each.iter)
            self.scopes.append({n.id for n in ast.walk(each.target) if isinstance(n, ast.Name)})
            depth += 1
            opened += f"for (const {self.target(each.target)} of {over}) {{ "
            closed += "}"
            for test in each.ifs:
                opened += f"if ({self.truth(test)}) "
        inner = element()
        temporary = self.temporary.pop()
        del self.scopes[-depth:]
        declared = f"let {', '.join(temporary)}; " if temporary else ""
        if not start:
            return f"(function* ($i) {{ {declared}{opened}{inner}{closed} }})({first})"
        return f"(($i) => {{ const $r = {start}; {declared}{opened}{inner}{closed} return $r; }})({first})"

    # -- calls ----------------------------------------------------------------------------------------------
    def of_Call(self, node: ast.Call) -> str:
        function = node.func
        if isinstance(function, ast.Name) and function.id in BUILTINS and function.id in LAZY:
            args = [
                self.of_GeneratorExp(each, True) if isinstance(each, ast.GeneratorExp) else self.of(each)
                for each in node.args
            ]
            return f"{self.named(function, function.id)}({', '.join(args)})"
        arguments = self.several(node.args)
        if isinstance(function, ast.Attribute):
            whose = self.of(function.value)
            if whose == "$py_object" and function.attr == "__setattr__":
                return f"$setattr({arguments})"
            if not node.keywords:
                return f"{whose}.${function.attr}({arguments})"
            return f"$kwm({whose}, '${function.attr}', [{arguments}], {self.keywords(node)})"
        called = self.of(function)
        if not node.keywords:
            return f"{called}({arguments})"
        return f"$kw({called}, [{arguments}], {self.keywords(node)})"

    def keywords(self, node: ast.Call) -> str:
        pairs = [
            f"{json.dumps(each.arg)}: {self.of(each.value)}"
            if each.arg
            else f"...$names({self.of(each.value)})"
            for each in node.keywords
        ]
        return f"{{{', '.join(pairs)}}}"
