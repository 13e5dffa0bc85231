"""Writes a graph of symbols as a JavaScript function of the controls' values."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from widgets.kit.compiler import texts
from widgets.kit.compiler.fusion import Line, fused
from widgets.kit.compiler.graph import Graph, Node
from widgets.kit.compiler.inlined import numbered
from widgets.kit.compiler.literal import literal
from widgets.kit.compiler.steps import Steps, array
from widgets.kit.compiler.sweeps import Loops
from widgets.kit.compiler.symbols import Symbol
from widgets.kit.compiler.texts import Text, Texts

WRITTEN_OVER = ("map", "output")  # their columns are overwritten, so the page is given copies
INLINE = ("number", "words", "control", "given")  # operations that are written where their value is needed
CONSTANT = "array"  # operations whose value is the same in every state


class Rows(dict):
    """Columns that end before the first row without a number, because an algorithm returned fewer rows than
    its maximum."""


class Writer(Steps):
    """Gives each node a name, in an order in which they can be computed.

    A node is written after the nodes that it reads. While the node of a search is written, the nodes that its
    loops read are written too, so several nodes may be under way, one inside the other. For each of them, the
    innermost last, ``reads`` has a set of the nodes that it has read so far, and ``controls`` a set of the
    controls that its value depends on. The first sets belong to the result, which is not a node.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, {})
        self.constants: list[str] = []
        self.lines: list[Line] = []
        self.names: dict[int, str] = {}
        self.reads: list[set[int]] = [set()]
        self.controls: list[set[str]] = [set()]
        self.controls_of: dict[int, frozenset[str]] = {}
        self.searches: dict[
            Any, tuple[str, list[int]]
        ] = {}  # the loops of each, and the steps they are given

    def name(self, node_id: int) -> str:
        """The name of a node's value, which is written first if need be."""
        for each in self.graph.due(node_id, self.names):
            self.write(each)
        node = self.graph.nodes[node_id]
        self.controls[-1].update(self.controls_of[node_id])
        if node.op not in (*INLINE, CONSTANT):
            self.reads[-1].add(node_id)
        return self.names[node_id]

    def write(self, node_id: int) -> None:
        """Write a node, and note its name and what it depends on."""
        node = self.graph.nodes[node_id]
        self.reads.append(set())
        self.controls.append(self._asks_of_the_page(node))
        code = getattr(self, f"_{node.op}")(node)
        reads, self.controls_of[node_id] = frozenset(self.reads.pop()), frozenset(self.controls.pop())
        self.names[node_id] = code if node.op in INLINE else f"v{node_id}"
        if node.op == CONSTANT:
            self.constants.append(f"const v{node_id}={code};")
        elif node.op not in INLINE:
            self.lines.append(Line(node_id, code, reads, self.controls_of[node_id], *self.rows(node)))

    @staticmethod
    def _asks_of_the_page(node: Node) -> set[str]:
        return {node.data} if node.op == "control" else {node.data[0]} if node.op == "given" else set()

    def rows(self, node: Node) -> tuple[int, frozenset[int]]:
        """How many rows a step over columns has, and which columns it reads only in its own row."""
        if node.op != "map" or not node.shape:
            return 0, frozenset()
        _, places = node.data
        own = [a for a, place in zip(node.args, places) if place == "i"]
        elsewhere = {a for a, place in zip(node.args, places) if place != "i"}
        return int(np.prod(node.shape)), frozenset(own) - elsewhere

    def own_columns(self) -> str:
        """A constant of the module: the next call overwrites the columns of this one."""
        kept = f"columns{len(self.constants)}"
        self.constants.append(f"const {kept}={{}};")
        return kept

    def _sweep(self, node: Node) -> str:
        """The call of a sweep's loops. Sweeps that measure the same over other rows call the same loops."""
        sweep = node.data
        loops = sweep._replace(length=0, rows=tuple(column for column, _ in sweep.rows))
        if loops not in self.searches:
            found, name = Loops(self, sweep), f"search{len(self.searches)}"
            self.programs[name] = found.function(name)
            self.searches[loops] = name, list(found.arguments)
        name, given = self.searches[loops]
        arguments = [str(sweep.length), *(self.name(step) for step in (*dict(sweep.rows).values(), *given))]
        asked = f"sweep{len(self.programs)}"
        self.programs[asked] = f"const {asked}=remembered({name});"
        return f"{asked}({','.join(arguments)})"

    def value(self, value: Any) -> str:
        """The JavaScript of any output: a number, an array, a text, a truth value, or lists and dicts of
        these."""
        if isinstance(value, Rows):
            columns = (
                (
                    name,
                    self.name(column.id) if isinstance(column, Symbol) else self.value(column),
                )  # rows copies
                for name, column in value.items()
            )
            return f"rows({{{','.join(f'{json.dumps(name)}:{column}' for name, column in columns)}}})"
        if isinstance(value, Symbol) and self.graph.nodes[value.id].op in WRITTEN_OVER and value.shape:
            return f"{self.name(value.id)}.slice()"
        if isinstance(value, dict):
            return "{" + ",".join(f"{json.dumps(k)}:{self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, (Symbol, Text, Texts)):
            return self.name(value.id)
        if isinstance(value, (list, tuple)):
            return "[" + ",".join(self.value(v) for v in value) + "]"
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, str):
            return self.name(texts.text(self.graph, value).id)
        if isinstance(value, np.ndarray) and value.dtype.kind in "US":
            return json.dumps(value.tolist(), ensure_ascii=False)
        if isinstance(value, np.ndarray):
            return array(value) if value.shape else literal(float(value))
        return literal(float(value))


class Stage(NamedTuple):
    """One of the questions that a page asks, with the steps that it needs beyond those of the question
    before."""

    lines: list[Line]
    asked: set[int]  # steps that its result names
    result: str


def stage(writer: Writer, outputs: dict) -> Stage:
    """The steps that these outputs need and that no earlier output needed."""
    writer.lines, writer.reads = [], [set()]
    result = writer.value(outputs)
    return Stage(writer.lines, writer.reads[0], result)


def _settling(name: str, lines: list[Line], asked: set[int], writer: Writer) -> list[str]:
    """The text of a function that computes these steps for the values of the controls. It computes a block of
    steps only when one of the block's controls has moved."""
    names, blocks = fused(
        lines, lambda step, at_hand: writer.element(writer.graph.nodes[step], at_hand), asked
    )
    moved = sorted(set().union(*(controls for controls, _ in blocks)))
    fixed = [line for controls, lines in blocks if not controls for line in lines]
    sets = dict.fromkeys(controls for controls, _ in blocks if controls)
    one_of = {
        controls: f"moved_{min(controls)}" if len(controls) == 1 else f"any{place}"
        for place, controls in enumerate(sets)
    }
    was = f"{name}_was"
    return [
        f"var {','.join([f'{was}={{}}', *names])};",
        *fixed,
        f"const {name}=c=>{{",
        *(f"const moved_{control}=c.{control}!=={was}.{control};" for control in moved),
        *(
            f"const {named}={'||'.join(f'moved_{control}' for control in sorted(these))};"
            for these, named in one_of.items()
            if len(these) > 1
        ),
        f"{was}={{}};",  # so that nothing counts as known if a step throws
        *(
            line
            for controls, lines in blocks
            if controls
            for line in (f"if({one_of[controls]}){{", *lines, "}")
        ),
        f"{was}={{...c}};",
        "};",
    ]


def function(graph: Graph, outputs: dict, later: dict | None = None) -> str:
    """A JavaScript function that takes the tables and returns a function from the controls' values ``c`` to
    the outputs.

    Outputs that are wanted less often (the hints under a pointer) come from a second function of ``c``, the
    property ``later`` of the first. A step that both need is written once, and is already computed when the
    second one is called.
    """
    writer = Writer(graph)
    first, second = stage(writer, outputs), stage(writer, later or {})
    asked = first.asked.union(second.asked, *(line.reads for line in second.lines))
    code = "\n".join(
        [
            "(table=>{",
            *writer.programs.values(),
            *writer.constants,
            *_settling("settle", first.lines, asked, writer),
            *_settling("settle_later", second.lines, second.asked, writer),
            f"const compute=c=>{{settle(c);return {first.result};}};",
            f"compute.later=c=>{{settle(c);settle_later(c);return {second.result};}};",
            "return compute;",
            "})",
        ]
    )
    return numbered(code)
