"""Write a graph of symbols out as a JavaScript function of the controls' values.

Single numbers become plain expressions, arrays become Float64Array loops; the few helpers it names (vec, gather, reduce,
show, ...) stand in site/theme/assets/widget/numbers.js. Numbers are doubles on both sides, so both give the same result.
"""

from __future__ import annotations

import json

import numpy as np

from widgets.kit.fuse import Step, fused
from widgets.kit.literal import literal
from widgets.kit.program import Program
from widgets.kit.symbolic import Graph, Node, Symbol, Text, Texts


def _array(values) -> str:
    return "[" + ",".join(literal(v) for v in np.ravel(values)) + "]"


WRITTEN_OVER = ("map", "output")            # as columns: what is shown is a copy
INLINE = ("number", "words", "control")     # written where they are needed
CONSTANT = "array"                          # the same in every state


class Rows(dict):
    """Columns that end before the first row that has no number: an algorithm gave fewer rows than it may."""


class Writer:
    """Gives each node a name, in the order in which they can be computed."""

    def __init__(self, graph: Graph):
        self.graph, self.constants, self.steps, self.names, self.programs = graph, [], [], {}, {}
        self.reading: list[set[int]] = [set()]      # of each step that is being written what it names; first, what the result does
        self.hanging: list[set[str]] = [set()]      # the same for the controls behind that
        self.controls: dict[int, frozenset[str]] = {}

    def name(self, node_id: int) -> str:
        node = self.graph.nodes[node_id]
        if node_id not in self.names:
            self.reading.append(set())
            self.hanging.append({node.data} if node.op == "control" else set())
            code = getattr(self, f"_{node.op}")(node)
            reads, self.controls[node_id] = frozenset(self.reading.pop()), frozenset(self.hanging.pop())
            self.names[node_id] = code if node.op in INLINE else f"v{node_id}"
            if node.op == CONSTANT:
                self.constants.append(f"const v{node_id}={code};")
            elif node.op not in INLINE:
                self.steps.append(Step(node_id, code, reads, self.controls[node_id], *self.rows(node)))
        self.hanging[-1].update(self.controls[node_id])
        if node.op not in (*INLINE, CONSTANT):
            self.reading[-1].add(node_id)
        return self.names[node_id]

    def rows(self, node: Node) -> tuple:
        """How many rows a step over columns has, and which of its columns it reads in its own row alone."""
        if node.op != "map" or not node.shape:
            return ()
        _, places = node.data
        own = [a for a, place in zip(node.args, places) if place == "i"]
        elsewhere = {a for a, place in zip(node.args, places) if place != "i"}
        return int(np.prod(node.shape)), frozenset(own) - elsewhere

    def _number(self, node: Node) -> str:
        text = literal(node.data)
        return f"({text})" if node.data < 0 else text

    def _array(self, node: Node) -> str:
        return f"Float64Array.from({_array(node.data)})"

    def _control(self, node: Node) -> str:
        return f"c.{node.data}"

    def _map(self, node: Node) -> str:
        return f"vec({int(np.prod(node.shape))},i=>{self.element(node)})" if node.shape else self.element(node)

    def element(self, node: Node, at_hand=()) -> str:
        """The value of a step in row ``i``, where the loop holds that of some others in ``e…``."""
        template, places = node.data
        return template.format(*(f"e{a}" if a in at_hand else self.name(a) + (f"[{place}]" if self.graph.nodes[a].shape else "")
                                 for a, place in zip(node.args, places)))

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
        if node.shape == ():
            return f"{table}[{index}]"
        return f"vec({int(np.prod(node.shape))},i=>{table}[{index}[i]])"

    def _row(self, node: Node) -> str:
        table, index = (self.name(a) for a in node.args)
        return f"{table}.slice({index}*{node.data},({index}+1)*{node.data})"

    def _stop(self, node: Node) -> str:
        return f"stop({self.name(node.args[0])},{_array(node.data)})"

    def _table(self, node: Node) -> str:
        start, width = node.data
        row = self.name(node.args[0])
        return f"table.subarray({start}+{row}*{width},{start}+({row}+1)*{width})"

    def _program(self, node: Node) -> str:
        program = Program(node.data)
        self.programs |= program.functions
        return f"{program.name}({','.join([*(self.name(a) for a in node.args), self.own_columns()])})"

    def own_columns(self) -> str:
        """Where one call of a program keeps its columns, to write over them the next time."""
        kept = f"columns{len(self.constants)}"
        self.constants.append(f"const {kept}={{}};")
        return kept

    def _sweep(self, node: Node) -> str:
        from widgets.kit.sweep import Loops     # it writes as this class does
        name, loops = f"sweep{len(self.programs)}", Loops(self, node.data)
        self.programs[name] = loops.function(name)
        return f"{name}({','.join(loops.arguments)})"

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
        return f"each({index},(texts=>i=>texts[i])([{','.join(texts)}]))" if node.shape else f"[{','.join(texts)}][+({index})]"

    def _texts(self, node: Node) -> str:
        return json.dumps(node.data, ensure_ascii=False)

    def _phrase(self, node: Node) -> str:
        pieces = [self.name(a) + ("[i]" if self.graph.nodes[a].shape else "") for a in node.args]
        rows = next(self.name(a) for a in node.args if self.graph.nodes[a].shape)
        return f"{rows}.map((_,i)=>{'+'.join(pieces)})"

    def value(self, value) -> str:
        """Any output: a number, an array, a text, a truth, or lists and dicts of them."""
        if isinstance(value, Rows):
            columns = ((name, self.name(column.id) if isinstance(column, Symbol) else self.value(column))    # rows copies
                       for name, column in value.items())
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
            return self.name(self.graph.text(value).id)
        if isinstance(value, np.ndarray) and value.dtype.kind in "US":
            return json.dumps(value.tolist(), ensure_ascii=False)
        if isinstance(value, np.ndarray):
            return _array(value) if value.shape else literal(float(value))
        return literal(float(value))


def _when_moved(controls: frozenset[str], lines: list[str]) -> list[str]:
    """Lines that are run when one of the controls has another value than before."""
    return [f"if({'||'.join(f'moved_{name}' for name in sorted(controls))}){{", *lines, "}"]


def function(graph: Graph, outputs: dict) -> str:
    """A JavaScript function that, given the tables, gives a function from the controls' values ``c`` to the outputs."""
    writer = Writer(graph)
    result = writer.value(outputs)
    names, steps = fused(writer.steps, lambda id, at_hand: writer.element(graph.nodes[id], at_hand), writer.reading[0])
    moved = sorted(set().union(*(controls for controls, _ in steps)))
    fixed = [line for controls, lines in steps if not controls for line in lines]
    return "\n".join([
        "(table=>{", *writer.programs.values(), *writer.constants, f"var {','.join(['was={}', *names])};", *fixed,
        "return c=>{", *(f"const moved_{name}=c.{name}!==was.{name};" for name in moved),
        "was={};",                              # should a step throw, nothing counts as known
        *(line for controls, lines in steps if controls for line in _when_moved(controls, lines)),
        "was={...c};", f"return {result};", "};", "})"])
