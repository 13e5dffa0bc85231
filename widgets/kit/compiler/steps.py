"""How each operation of the graph is written, in whichever loop or line it is needed.

Single numbers become plain expressions, arrays become Float64Array loops; the helpers that they call (vec,
gather, reduce, …) are in numbers.js. Numbers are doubles in both languages, so both give the same result.
"""

from __future__ import annotations

import json
from collections.abc import Set
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from engine.base import program as base
from widgets.kit.compiler.graph import Graph, Node
from widgets.kit.compiler.literal import literal
from widgets.kit.compiler.programs import Program


@cache
def written(program: base.Program, shapes: tuple[tuple[int, ...], ...]) -> Program:
    """The functions of a program, for arguments of these shapes."""
    return Program(program, shapes)


def array(values: ArrayLike) -> str:
    """A list of numbers."""
    return "[" + ",".join(literal(v) for v in np.ravel(values)) + "]"


class Steps:
    """One method for each operation. ``name(node)`` gives the name of a node's value, and makes sure that it
    is computed first."""

    def __init__(self, graph: Graph, programs: dict[str, str]) -> None:
        self.graph, self.programs = graph, programs

    def name(self, node_id: int, /) -> str:
        """The name of a node's value, which is computed first if need be."""
        raise NotImplementedError

    def own_columns(self) -> str:
        """The expression for where a call of a program stores its columns."""
        raise NotImplementedError

    def _number(self, node: Node) -> str:
        text = literal(node.data)
        return f"({text})" if text.startswith("-") else text

    def _array(self, node: Node) -> str:
        return f"Float64Array.from({array(node.data)})"

    def _control(self, node: Node) -> str:
        return f"c.{node.data}"

    def _given(self, node: Node) -> str:
        name, rest = node.data
        return f"(c.{name}??{array(np.array(rest))})"

    def _map(self, node: Node) -> str:
        return (
            f"vec({int(np.prod(node.shape))},i=>{self.element(node)})" if node.shape else self.element(node)
        )

    def element(self, node: Node, at_hand: Set[int] = frozenset()) -> str:
        """The expression for a step's value in row ``i``, in a loop that holds the values of the steps
        ``at_hand`` in ``e…``."""
        template, places = node.data
        return template.format(
            *(
                f"e{a}"
                if a in at_hand
                else self.name(a) + (f"[{place}]" if self.graph.nodes[a].shape else "")
                for a, place in zip(node.args, places)
            )
        )

    def _gather(self, node: Node) -> str:
        names = [self.name(a) for a in node.args]
        single = [self.graph.nodes[a].shape == () for a in node.args]
        if node.shape == () and len(names) == 1:
            return f"{names[0]}[{int(node.data)}]"
        if all(single):
            picked = ",".join(names[i] for i in node.data.ravel())
            return f"Float64Array.of({picked})" if node.shape else picked
        source = names[0] if len(names) == 1 else f"join([{','.join(names)}])"
        if node.shape == ():
            return f"{source}[{int(node.data)}]"
        index = node.data.ravel()
        if index.size and (np.diff(index) == 1).all():
            return f"{source}.slice({index[0]},{index[-1] + 1})"
        return f"gather({source},{json.dumps(index.tolist(), separators=(',', ':'))})"

    def _reduce(self, node: Node) -> str:
        how, width = node.data
        call = f"reduce('{how}',{self.name(node.args[0])},{width})"
        return call if node.shape else f"{call}[0]"

    def _scan(self, node: Node) -> str:
        return f"cumsum({self.name(node.args[0])},{node.data})"

    def _take(self, node: Node) -> str:
        table, index = (self.name(a) for a in node.args)
        row = "[i]" if node.shape else ""
        found = f"entry({table},{index}{row})" if node.data == "any index" else f"{table}[{index}{row}]"
        return f"vec({int(np.prod(node.shape))},i=>{found})" if node.shape else found

    def _row(self, node: Node) -> str:
        table, index = (self.name(a) for a in node.args)
        return f"{table}.slice({index}*{node.data},({index}+1)*{node.data})"

    def _stop(self, node: Node) -> str:
        return f"stop({self.name(node.args[0])},{array(node.data)})"

    def _table(self, node: Node) -> str:
        start, width = node.data
        row = self.name(node.args[0])
        return f"table.subarray({start}+{row}*{width},{start}+({row}+1)*{width})"

    def _program(self, node: Node) -> str:
        program = written(node.data, tuple(self.graph.nodes[a].shape for a in node.args))
        self.programs |= program.functions
        return f"{program.name}({','.join([*(self.name(a) for a in node.args), self.own_columns()])})"

    def _output(self, node: Node) -> str:
        return f"{self.name(node.args[0])}.{node.data}"

    def _words(self, node: Node) -> str:
        return json.dumps(node.data, ensure_ascii=False)

    def _join(self, node: Node) -> str:
        return "+".join(['""', *(self.name(a) for a in node.args)])

    def _show(self, node: Node) -> str:
        how, unit, digits = node.data
        value, rest = self.name(node.args[0]), f"{json.dumps(unit, ensure_ascii=False)},{digits}"
        return f"each({value},v=>{how}(v,{rest}))" if node.shape else f"{how}({value},{rest})"

    def _pick_text(self, node: Node) -> str:
        index, *texts = (self.name(a) for a in node.args)
        words = f"[{','.join(texts)}]"
        if node.shape:
            found = "word(texts,i)" if node.data else "texts[i]"
            if any(self.graph.nodes[a].shape for a in node.args[1:]):
                return f"each({index},(texts=>(i,row)=>of_row({found},row))({words}))"
            return f"each({index},(texts=>i=>{found})({words}))"
        return f"word({words},{index})" if node.data else f"{words}[+({index})]"

    def _texts(self, node: Node) -> str:
        return json.dumps(node.data, ensure_ascii=False)

    def _phrase(self, node: Node) -> str:
        pieces = [self.name(a) + ("[i]" if self.graph.nodes[a].shape else "") for a in node.args]
        rows = next(self.name(a) for a in node.args if self.graph.nodes[a].shape)
        return f"{rows}.map((_,i)=>{'+'.join(pieces)})"

    def _lines(self, node: Node) -> str:
        return f'{self.name(node.args[0])}.filter(Boolean).join("\\n")'
