"""The kind of each expression of a program: a number (whole, float or truth), a list, a tuple or a dict.

JavaScript has only one type of number, concatenates lists as texts and treats an empty list as true, so the
same operator on another kind of operand may silently give something else. Here the kinds are inferred before
a program is written, over all functions that it calls: each name has one kind in its function, and an element
of a list has one kind wherever the list is used. The statements are traversed until nothing new is learnt.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

WHOLE, FLOAT, TRUTH = "whole", "float", "truth"
COUNTS = frozenset({WHOLE, TRUTH})  # Python counts truth values as 0 and 1


def fields_of(value: Any) -> tuple[str, ...]:
    """The fields of a record: a NamedTuple, or a class that only keeps what it is made of. Empty for anything
    else."""
    init = vars(value).get("__init__") if isinstance(value, type) else None
    if not inspect.isfunction(init):
        return getattr(value, "_fields", ())
    names = tuple(inspect.signature(init).parameters)[1:]
    return names if set(init.__code__.co_names) == set(names) else ()


class Clash(TypeError):
    """One name, or the elements of one list, would need two different kinds."""


class Kind:
    """The kind of an expression, a name or an element. Two that turn out to be the same are linked."""

    __slots__ = ("fields", "grown", "link", "parts", "sorts", "stored", "tag")

    def __init__(self, tag: str = "", parts: Iterable[Kind] = (), sorts: Iterable[str] = ()) -> None:
        self.link: Kind | None = None
        self.tag = tag  # "": not known yet; "number", "list", "tuple", "dict" or "nothing"
        self.parts: list[Kind] = list(parts)  # of a list: its element; of a tuple or dict: each member
        self.fields: tuple[str, ...] = ()  # of a dict or a record: the names of its members
        self.sorts: set[str] = set(sorts)  # of a number: what it may be
        self.stored = self.grown = False  # of a list: an element is assigned; its length changes

    @classmethod
    def record(cls, names: tuple[str, ...]) -> Kind:
        """A dict, or a record, with members of these names."""
        kind = cls("dict", [cls() for _ in names])
        kind.fields = names
        return kind

    def member(self, name: str) -> Kind | None:
        """The member of this name; None if there is none, or not known yet."""
        found = self.found()
        return dict(zip(found.fields, found.parts)).get(name)

    def found(self) -> Kind:
        """The kind that this one and its equals are linked to."""
        kind = self
        while kind.link:
            kind = kind.link
        return kind

    def says(self) -> str:
        """The kind in words."""
        kind = self.found()
        return {"": "something unknown", "number": "a number", "nothing": "nothing"}.get(
            kind.tag, f"a {kind.tag}"
        )


def whole(kind: Kind) -> bool:
    """Whether a number is always a whole number (or a truth value) in Python."""
    found = kind.found()
    return found.tag == "number" and bool(found.sorts) and found.sorts <= COUNTS


def truth(kind: Kind) -> bool:
    """Whether a number is always a truth value."""
    found = kind.found()
    return found.tag == "number" and found.sorts == {TRUTH}


def of_constant(value: Any) -> Kind:
    """The kind of a number, or of numbers, that a module defines."""
    if isinstance(value, (bool, np.bool_)):
        return Kind("number", sorts=[TRUTH])
    if isinstance(value, (int, np.integer)):
        return Kind("number", sorts=[WHOLE])
    if isinstance(value, (float, np.floating)):
        return Kind("number", sorts=[FLOAT])
    if isinstance(value, (tuple, list, np.ndarray)):
        members = [of_constant(v) for v in value]
        try:
            return _list(members)
        except Clash:
            return Kind("tuple", members)
    return Kind()


def _list(members: list[Kind]) -> Kind:
    element, learnt = Kind(), Learnt()
    for member in members:
        learnt.unify(member, element)
    return Kind("list", [element])


class Learnt:
    """The two ways in which kinds are combined, and whether that taught anything new. With ``guess``, an
    unknown kind where a list is needed becomes a list."""

    def __init__(self, guess: bool = False) -> None:
        self.news, self.guess = False, guess

    def unify(self, one: Kind, other: Kind) -> None:
        """Make both the same kind from now on, like two names of one list."""
        one, other = one.found(), other.found()
        if one is other:
            return
        if not one.tag or not other.tag:
            one, other = (one, other) if not one.tag else (other, one)
        elif {one.tag, other.tag} == {"list", "tuple"} or (
            one.tag == other.tag == "tuple" and len(one.parts) != len(other.parts)
        ):
            self.as_list(one)
            self.as_list(other)
            self.unify(one, other)
            return
        elif one.tag != other.tag or one.fields != other.fields:
            raise Clash(f"{one.says()} and {other.says()}")
        self.news = True
        one.link = other
        other.sorts |= one.sorts
        other.stored, other.grown = other.stored or one.stored, other.grown or one.grown
        if not other.tag:
            other.parts = other.parts or one.parts
        if one.tag or other.tag not in ("tuple", "dict"):
            for mine, theirs in zip(one.parts, other.parts):
                self.unify(mine, theirs)

    def as_list(self, kind: Kind) -> None:
        """Make a tuple a list, because it is iterated over, or indexed by something other than a constant:
        all of its members then have one kind."""
        kind = kind.found()
        if kind.tag == "tuple":
            element = Kind()
            for part in kind.parts:
                self.unify(part, element)
            kind.tag, kind.parts, self.news = "list", [element], True

    def flow(self, source: Kind, target: Kind) -> None:
        """Assign the source's value to the target: a number is copied, a list remains one object with two
        names."""
        source, target = source.found(), target.found()
        if source is target:
            return
        if not source.tag:
            if self.guess and target.tag in ("list", "tuple", "dict"):
                self.unify(source, target)
            return
        if source.tag != "number":
            self.unify(source, target)
            return
        self.number(target, source.sorts)

    def number(self, kind: Kind, sorts: Iterable[str]) -> None:
        """Record that something is a number, and that it may be one of these sorts."""
        kind = kind.found()
        if kind.tag not in ("", "number"):
            raise Clash(f"{kind.says()} and a number")
        if not kind.tag or not set(sorts) <= kind.sorts:
            kind.tag, self.news = "number", True
            kind.sorts |= set(sorts)

    def element(self, kind: Kind) -> Kind:
        """The element of a list."""
        kind = kind.found()
        if not kind.tag:
            kind.parts = kind.parts or [Kind()]
            if self.guess:
                kind.tag, self.news = "list", True
            return kind.parts[0]
        self.as_list(kind)
        if kind.tag != "list":
            raise Clash(f"{kind.says()} where a list is needed")
        return kind.parts[0]


class Scope:
    """The kinds in one function: of each name, of each expression, and of its result."""

    def __init__(self, tree: ast.FunctionDef, names: Iterable[str]) -> None:
        self.tree = tree
        self.first = {name: Kind() for name in names}  # at the beginning of the function
        self.names = dict(self.first)  # at the current statement
        self.nodes: dict[ast.AST, Kind] = {}
        gives = any(isinstance(node, ast.Return) and node.value for node in ast.walk(tree))
        self.result = Kind("" if gives else "nothing")

    def has(self, node: ast.expr) -> bool:
        """Whether an expression begins with a name of this function, or with what a call gives."""
        while isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        return isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in self.first)

    def anew(self, target: ast.Name) -> None:
        """Give a name a new kind, because it is assigned outside of all loops and conditions and its previous
        value is no longer read."""
        self.names[target.id] = self.nodes.setdefault(target, Kind())

    def of(self, node: ast.AST) -> Kind:
        """The kind of an expression, unknown at first."""
        return self.nodes.setdefault(node, Kind())


class Inference:
    """Goes through one function once. ``meaning(node)`` is the Python object that an outside name refers to,
    ``called(node)`` the scope of a function of the same package that is called, or None;
    ``made(node)`` the fields of a record that is made; ``refuse(node, what, instead)`` stops."""

    def __init__(
        self,
        scope: Scope,
        learnt: Learnt,
        meaning: Callable[[ast.expr], Any],
        called: Callable[[ast.Call], Scope | None],
        made: Callable[[ast.Call], tuple[str, ...]],
        gives: Callable[[ast.Call, Kind, list[Kind], Inference], None],
        refuse: Callable[..., NoReturn],
    ) -> None:
        self.scope, self.learnt, self.meaning, self.called = scope, learnt, meaning, called
        self.made, self.gives, self.refuse = made, gives, refuse
        self.scope.names = dict(self.scope.first)
        self.depth = 0  # 1: outside of all loops and conditions

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Infer kinds from some statements."""
        self.depth += 1
        for node in body:
            self.stated(node)
        self.depth -= 1

    def stated(self, node: ast.stmt) -> None:
        """Infer kinds from a statement, and refuse it if a name or an element would need two kinds."""
        try:
            self.statement(node)
        except Clash as clash:
            self.refuse(
                node,
                f"a name or an element that is of two kinds ({clash})",
                "give each kind a name of its own",
            )

    def statement(self, node: ast.stmt) -> None:
        """Infer kinds from a statement; a Clash if two do not agree."""
        match node:
            case ast.Assign():
                value = self.kind(node.value)
                for target in node.targets:
                    self.assign(target, value, anew=self.depth == 1)
            case ast.AugAssign():
                self.learnt.number(
                    self.scope.of(node),
                    self.arithmetic(node.op, self.kind(node.target), self.kind(node.value)),
                )
                self.assign(node.target, self.scope.of(node))
            case ast.If() | ast.While():
                self.kind(node.test)
                self.statements(node.body)
                self.statements(node.orelse)
            case ast.For():
                self.assign(node.target, self.member(node.iter))
                self.statements(node.body)
            case ast.Return():
                self.returned(node)
            case ast.Expr():
                self.kind(node.value)

    def returned(self, node: ast.Return) -> None:
        """Infer the kind of the function's result."""
        if node.value is not None:
            self.learnt.flow(self.kind(node.value), self.scope.result)

    def assign(self, target: ast.expr, value: Kind, anew: bool = False) -> None:
        """Infer kinds from the assignment of a value to a target; ``anew`` if its previous value is no longer
        read."""
        if isinstance(target, ast.Tuple):
            found = value.found()
            if found.tag == "tuple" and len(found.parts) != len(target.elts):
                self.refuse(target, f"{len(found.parts)} values for {len(target.elts)} names")
            if not found.tag and not self.learnt.guess:
                return
            parts = found.parts if found.tag == "tuple" else [self.learnt.element(value)] * len(target.elts)
            for part, each in zip(parts, target.elts):
                self.assign(each, part, anew)
        elif isinstance(target, ast.Attribute) or (
            isinstance(target, ast.Subscript) and self.kind(target.value).found().fields
        ):
            self.learnt.flow(value, self.kind(target))
        elif isinstance(target, ast.Subscript):
            collection = self.kind(target.value)
            self.kind(target.slice)
            self.learnt.flow(value, self.learnt.element(collection))
            collection.found().stored = True
        else:
            if anew and isinstance(target, ast.Name):
                self.scope.anew(target)
            self.learnt.flow(value, self.kind(target))

    def member(self, node: ast.expr) -> Kind:
        """The kind of the members of something over which a loop iterates."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            for argument in node.args:
                self.kind(argument)
            self.learnt.number(self.scope.of(node), {WHOLE})
            return self.scope.of(node)
        return self.learnt.element(self.kind(node))

    # -- expressions -----------------------------------------------------------------------------------------
    def kind(self, node: ast.expr) -> Kind:
        """The kind of an expression, after all its parts have been inspected."""
        found = getattr(self, f"_{type(node).__name__}", self._unknown)(node)
        self.scope.nodes[node] = found
        return found

    def _unknown(self, node: ast.expr) -> Kind:
        return self.scope.of(node)  # anything outside the grammar is refused when it is written

    def is_number(self, node: ast.expr, sorts: Iterable[str]) -> Kind:
        """Record that an expression is a number of these sorts; returns its kind."""
        kind = self.scope.of(node)
        self.learnt.number(kind, sorts)
        return kind

    def _Name(self, node: ast.Name) -> Kind:
        if node.id in self.scope.names:
            return self.scope.names[node.id]
        return self.constant(node)

    def _Attribute(self, node: ast.Attribute) -> Kind:
        if not self.scope.has(node):
            return self.constant(node)
        return self.kind(node.value).member(node.attr) or self.scope.of(node)

    def constant(self, node: ast.expr) -> Kind:
        """The kind of a number, or of numbers, that the source or a module defines."""
        if node not in self.scope.nodes:
            self.scope.nodes[node] = of_constant(self.meaning(node))
        return self.scope.nodes[node]

    def _Constant(self, node: ast.Constant) -> Kind:
        if node not in self.scope.nodes:
            self.scope.nodes[node] = of_constant(node.value)
        return self.scope.nodes[node]

    def _List(self, node: ast.List) -> Kind:
        kind = self.list_of(node)
        for each in node.elts:
            self.learnt.flow(self.kind(each), self.learnt.element(kind))
        return kind

    def list_of(self, node: ast.expr) -> Kind:
        """The kind of a new list with elements of this kind."""
        kind = self.scope.of(node).found()
        if not kind.tag:
            kind.tag, kind.parts = "list", [Kind()]
        return kind

    def _Tuple(self, node: ast.Tuple) -> Kind:
        kind = self.scope.of(node)
        if not kind.found().tag:
            kind.found().tag, kind.found().parts = "tuple", [Kind() for _ in node.elts]
        found = kind.found()
        parts = found.parts if found.tag == "tuple" else found.parts * len(node.elts)
        for each, part in zip(node.elts, parts):
            self.learnt.flow(self.kind(each), part)
        return kind

    def _Dict(self, node: ast.Dict) -> Kind:
        kind = self.record(node, tuple(getattr(key, "value", "**") for key in node.keys))
        for each, part in zip(node.values, kind.found().parts):
            self.learnt.flow(self.kind(each), part)
        return kind

    def record(self, node: ast.expr, names: tuple[str, ...]) -> Kind:
        """The kind of a new dict or record with members of these names."""
        kind = self.scope.of(node)
        if not kind.found().tag:
            self.learnt.unify(kind, Kind.record(names))
        return kind

    def _ListComp(self, node: ast.ListComp) -> Kind:
        one, kind = node.generators[0], self.list_of(node)
        outside = self.scope.names.pop(getattr(one.target, "id", ""), None)
        member = self.member(one.iter)
        if isinstance(one.target, ast.Name):
            self.scope.names[one.target.id] = member
        self.learnt.flow(self.kind(node.elt), self.learnt.element(kind))
        if isinstance(one.target, ast.Name):
            del self.scope.names[one.target.id]
            if outside:
                self.scope.names[one.target.id] = outside
        return kind

    def _BinOp(self, node: ast.BinOp) -> Kind:
        left, right = self.kind(node.left), self.kind(node.right)
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List) and len(node.left.elts) == 1:
            return left
        if not {left.found().tag, right.found().tag} <= {"", "number"}:
            return self.scope.of(node)  # refused when it is written
        return self.is_number(node, self.arithmetic(node.op, left, right))

    def arithmetic(self, operator: ast.operator, left: Kind, right: Kind) -> set[str]:
        """The sorts of number that an operator may produce."""
        left, right = left.found(), right.found()
        if not left.sorts or not right.sorts:
            return set()
        if isinstance(operator, (ast.BitAnd, ast.BitOr)):
            return {TRUTH}
        sorts = set()
        if isinstance(operator, ast.Div) or FLOAT in left.sorts | right.sorts:
            sorts.add(FLOAT)
        if not isinstance(operator, ast.Div) and left.sorts & COUNTS and right.sorts & COUNTS:
            sorts.add(WHOLE)
        return sorts

    def _UnaryOp(self, node: ast.UnaryOp) -> Kind:
        sorts = self.kind(node.operand).found().sorts
        if isinstance(node.op, (ast.Not, ast.Invert)):
            return self.is_number(node, {TRUTH})
        return self.is_number(node, {WHOLE if sort == TRUTH else sort for sort in sorts})

    def _Compare(self, node: ast.Compare) -> Kind:
        for side in (node.left, *node.comparators):
            self.kind(side)
        return self.is_number(node, {TRUTH})

    def _BoolOp(self, node: ast.BoolOp) -> Kind:
        return self.one_of(node, node.values)

    def _IfExp(self, node: ast.IfExp) -> Kind:
        self.kind(node.test)
        return self.one_of(node, (node.body, node.orelse))

    def one_of(self, node: ast.expr, choices: Iterable[ast.expr]) -> Kind:
        """The kind of an expression whose value is that of one of several others."""
        kind = self.scope.of(node)
        for choice in choices:
            self.learnt.flow(self.kind(choice), kind)
        return kind

    def _Subscript(self, node: ast.Subscript) -> Kind:
        collection, index = self.kind(node.value), node.slice
        self.kind(index)
        found = collection.found()
        if isinstance(index, ast.Constant) and isinstance(index.value, str):
            return found.member(index.value) or self.scope.of(node)
        if (
            found.tag == "tuple"
            and isinstance(index, ast.Constant)
            and isinstance(index.value, int)
            and index.value < len(found.parts)
        ):
            return found.parts[index.value]
        return self.learnt.element(collection)

    def _Call(self, node: ast.Call) -> Kind:
        arguments = [self.kind(argument) for argument in node.args]
        if names := self.made(node):
            kind = self.record(node, names)
            named = [(each.arg or "", self.kind(each.value)) for each in node.keywords]
            for name, argument in (*zip(names, arguments), *named):
                if member := kind.member(name):
                    self.learnt.flow(argument, member)
            return kind
        if scope := self.called(node):
            for name, argument in zip((a.arg for a in scope.tree.args.args), arguments):
                self.learnt.flow(argument, scope.first[name])
            return scope.result
        kind = self.scope.of(node)
        self.gives(node, kind, arguments, self)
        return kind
