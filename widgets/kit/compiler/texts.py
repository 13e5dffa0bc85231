"""Pieces of text that contain unknown values.

A text that is put into an f-string leaves a mark there, by which it is found again. The string itself is an
ordinary ``str``, so any operation on it acts on the mark. A mark that was cut or changed is detected, and a
text refuses every string operation except concatenation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias

from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.refusal import refuse

SIGNS = "\ue000\ue001"  # private use: they occur in no ordinary text
MARK = re.compile(f"{SIGNS[0]}aZ(\\d+)-(\\d+)zA{SIGNS[1]}")
CHECK = 7919  # a mark contains its number twice, the second time multiplied by this
INSTEAD = (
    "join texts in an f-string, pick them by choose(…) or select(…), and compare the numbers behind them"
)


def _refused(what: str) -> Callable[..., NoReturn]:
    def method(self: Any, *_args: Any, **_named: Any) -> NoReturn:
        refuse(f"{what} on a text that is made on the page", INSTEAD)

    return method


class Number(Protocol):
    """The part of a symbol, of a number or a column of numbers, that this module needs."""

    graph: Graph
    id: int
    shape: tuple[int, ...]


class Marked(str):
    """The mark of one text: a string that refuses to be inspected."""

    __slots__ = ()
    __bool__ = _refused("the truth")

    def __format__(self, spec: str) -> str:
        if spec:
            refuse(f"the format {spec!r} of a text that is made on the page", INSTEAD)
        return self

    def __str__(self) -> str:
        return self


class Text:
    """A piece of text that is not yet known."""

    __slots__ = ("graph", "id")
    __eq__ = __ne__ = _refused("a comparison")  # so it has no hash either

    def __init__(self, graph: Graph, node_id: int) -> None:
        self.graph, self.id = graph, node_id

    def __str__(self) -> str:
        return Marked(f"{SIGNS[0]}aZ{self.id}-{self.id * CHECK}zA{SIGNS[1]}")

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __add__(self, other: str | Text) -> str:
        return f"{self}{other}"

    def __radd__(self, other: str) -> str:
        return f"{other}{self}"


ALLOWED = {"__str__", "__format__", "__add__", "__new__", "__init__", "__hash__", "__class__", "__slots__"}
QUESTIONS = {name for name, method in vars(str).items() if callable(method)} - ALLOWED - set(dir(object))
for _name in (*QUESTIONS, "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Marked, _name, _refused(f"{_name}()"))
for _name in (*QUESTIONS, "__lt__", "__le__", "__gt__", "__ge__", "__bool__"):
    setattr(Text, _name, _refused(f"{_name}()"))
Marked.__hash__ = str.__hash__


@dataclass(frozen=True)
class Texts:
    """A text for each row of a column, not yet known."""

    graph: Graph
    id: int
    shape: tuple[int, ...]

    def __str__(self) -> str:
        refuse("a column of texts in an f-string", "join it with phrase(…), or show one element")

    def __format__(self, _spec: str) -> str:
        return str(self)


Piece: TypeAlias = "str | Text | list[str] | Texts"  # of a phrase or a choice: one, or one for each row


def text(graph: Graph, value: object) -> Text:
    """A text for a string; texts that were inserted by an f-string are found by their marks."""
    if isinstance(value, Text):
        return value
    pieces = MARK.split(str.__str__(value) if isinstance(value, Marked) else str(value))
    words, ids, checks = pieces[::3], pieces[1::3], pieces[2::3]
    if any(sign in word for word in words for sign in SIGNS) or any(
        int(each) * CHECK != int(check) for each, check in zip(ids, checks)
    ):
        refuse("a string operation on a text that is made on the page (cut, replaced, upper case)", INSTEAD)
    if len(words) == 1:
        return Text(graph, graph.add("words", data=words[0]))
    joined = []
    for place, word in enumerate(words):
        if word:
            joined.append(graph.add("words", data=word))
        if place < len(ids):
            joined.append(int(ids[place]))
    return Text(graph, graph.add("join", joined))


def of_node(graph: Graph, node_id: int, shape: tuple[int, ...]) -> Text | Texts:
    """One text, or a column of them."""
    return Texts(graph, node_id, shape) if shape else Text(graph, node_id)


def shown(value: Number, how: str, unit: str, digits: int) -> Text | Texts:
    """A number as a text; ``value`` is its symbol, ``how`` the formatter in numbers.js."""
    node = value.graph.add("show", [value.id], (how, unit, digits), value.shape)
    return of_node(value.graph, node, value.shape)


def picked(index: Number, texts: Iterable[Piece], checked: bool = False) -> Text | Texts:
    """The text at a symbolic index; ``checked``: the index may be out of range, or not a whole number. For a
    column of indices a text may be a column, too, which has one for each row."""
    graph, made = index.graph, [piece(index.graph, each) for each in texts]
    if wrong := [each.shape for each in made if isinstance(each, Texts) and each.shape != index.shape]:
        refuse(f"a choice among {wrong[0]} texts by {index.shape or 'one'} index", "give each row its index")
    return of_node(
        graph,
        graph.add("pick_text", [index.id, *(each.id for each in made)], checked, index.shape),
        index.shape,
    )


def known(graph: Graph, rows: list[str]) -> Texts:
    """A column of texts that are the same in every state."""
    return Texts(graph, graph.add("texts", data=tuple(rows), shape=(len(rows),)), (len(rows),))


def piece(graph: Graph, given: Piece) -> Text | Texts:
    """One text for all rows, or one for each of them."""
    if isinstance(given, Texts):
        return given
    return known(graph, given) if isinstance(given, list) else text(graph, given)


def phrased(pieces: Sequence[Piece]) -> Texts:
    """Texts row by row, from pieces that are either one text per row or one for all."""
    graph, shape = next((each.graph, each.shape) for each in pieces if isinstance(each, Texts))
    made = [piece(graph, each).id for each in pieces]
    return Texts(graph, graph.add("phrase", made, None, shape), shape)


def lined(texts: Texts) -> Text:
    """One text of a column of them, a line for each that is not empty."""
    return Text(texts.graph, texts.graph.add("lines", [texts.id]))
