"""Write an ``engine.sweep`` out as nested loops: one for the rows, one for each dimension.

What is measured was run once on symbols that stand for the loops' values. Each step of that graph is placed in the
outermost loop that knows all it needs, and the dimension on which the fewest steps depend is the innermost, so that a
search costs little more than what changes there.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from engine.sweep import Least
from widgets.kit.javascript import Writer
from widgets.kit.symbolic import Graph, Node, Symbol



class Sweep(NamedTuple):
    """What a node needs to be written out."""

    rows: dict[str, Symbol]
    dimensions: list[dict]
    conditions: list[Symbol]
    contests: dict[str, tuple[Symbol, Symbol]]      # name -> (cost, takes part)


class Held:
    """A sweep in a node: each is like itself alone."""

    def __init__(self, sweep: Sweep):
        self.sweep = sweep


def traced(graph: Graph, rows: dict, dimensions: list[dict], measure) -> dict[str, Least]:
    """The contests of ``engine.sweep.sweep`` as symbols."""
    serial = len(graph.nodes)
    point = {name: graph.symbol("loop", data=(serial, axis, name))
             for axis, columns in enumerate((rows, *dimensions)) for name in columns}
    conditions, contests = measure(point)
    sweep = Sweep({name: graph.lift(column) for name, column in rows.items()}, dimensions,
                  [graph.lift(condition) for condition in conditions],
                  {name: (graph.lift(cost), graph.lift(part)) for name, (cost, part) in contests.items()})
    node = graph.add("sweep", [column.id for column in sweep.rows.values()], Held(sweep))
    shape = next(iter(sweep.rows.values())).shape
    return {name: Least(*(graph.symbol("output", [node], f"{name}_{what}", shape) for what in Least._fields))
            for name in contests}


class Loops(Writer):
    """The function of one sweep; its arguments are what the widget computes outside of it."""

    def __init__(self, outside: Writer, sweep: Sweep):
        super().__init__(outside.graph)
        self.outside, self.sweep, self.arguments, self.axes = outside, sweep, {}, {}
        self.wanted = [*sweep.conditions, *(symbol for contest in sweep.contests.values() for symbol in contest)]
        for symbol in self.wanted:
            self.axes_of(symbol.id)
        dependents = [sum(axis in axes for axes in self.axes.values()) for axis in range(len(sweep.dimensions) + 1)]
        inner = sorted(range(1, len(dependents)), key=lambda axis: -dependents[axis])
        self.order = [0, *inner]                                # axes from the outermost loop to the innermost
        self.body: list[list[str]] = [[] for _ in self.order]

    def axes_of(self, node_id: int) -> frozenset:
        """The loops that a step's value changes with."""
        if node_id not in self.axes:
            node = self.graph.nodes[node_id]
            own = {node.data[1]} if node.op == "loop" else ()
            self.axes[node_id] = frozenset(own).union(*map(self.axes_of, node.args))
        return self.axes[node_id]

    def depth(self, node_id: int) -> int:
        """The outermost loop that knows all that a step needs; −1 outside of all."""
        return max((self.order.index(axis) for axis in self.axes_of(node_id)), default=-1)

    def argument(self, outer: str) -> str:
        return self.arguments.setdefault(outer, f"a{len(self.arguments)}")

    def name(self, node_id: int) -> str:
        if node_id not in self.names:
            node, depth = self.graph.nodes[node_id], self.depth(node_id)
            if node.op == "loop":
                self.names[node_id] = f"x_{node.data[2]}"
            elif depth < 0:
                outer = self.outside.name(node_id)
                self.names[node_id] = outer if node.op == "number" else self.argument(outer)
            else:
                code = getattr(self, f"_{node.op}")(node)
                self.names[node_id] = f"s{node_id}"
                self.body[depth].append(f"const s{node_id}={code};")
        return self.names[node_id]

    def function(self, name: str) -> str:
        """The text of the function, which gives each contest's columns."""
        sweep, length = self.sweep, next(iter(self.sweep.rows.values())).shape[0]
        columns = {column: self.argument(self.outside.name(symbol.id)) for column, symbol in sweep.rows.items()}
        first = next(iter(columns.values()))
        for condition in sorted(sweep.conditions, key=lambda symbol: self.depth(symbol.id)):
            name_of_it = self.name(condition.id)
            self.body[max(0, self.depth(condition.id))].append(f"if(!{name_of_it})continue;")
        contests = {contest: (self.name(cost.id), self.name(part.id)) for contest, (cost, part) in sweep.contests.items()}
        outputs = [f"{contest}_{what}" for contest in contests for what in Least._fields]
        lines = [f"const {name}=remembered(({','.join(self.arguments.values())})=>{{"]
        lines += [f"const {output}=new Float64Array({length}).fill(NaN);" for output in outputs]
        lines += [f"const d_{column}={self.outside.value(list(map(float, values)))};"
                  for dimension in sweep.dimensions for column, values in dimension.items()]
        lines += [f"for(let i0=0;i0<{length}&&{first}[i0]==={first}[i0];i0++){{"]
        lines += [f"const x_{column}={outer}[i0];" for column, outer in columns.items()]
        lines += [f"let {c}_low=Infinity,{c}_at=NaN,{c}_n=0;" for c in contests]
        lines += ["do{", *self.loops(contests), "}while(false);"]   # a row that is left early is noted all the same
        lines += [f"{c}_cost[i0]={c}_at==={c}_at?{c}_low:NaN;{c}_cell[i0]={c}_at;{c}_count[i0]={c}_n;" for c in contests]
        return "\n".join([*lines, "}", f"return {{{','.join(outputs)}}};", "});"])

    def loops(self, contests: dict) -> list[str]:
        """The body of the loop over the rows."""
        sizes = [len(next(iter(dimension.values()))) for dimension in self.sweep.dimensions]
        strides = [*itertools.accumulate(sizes[:0:-1], lambda a, b: a * b, initial=1)][::-1]
        text = [*self.body[0]]
        for depth, axis in enumerate(self.order[1:], 1):
            text.append(f"for(let i{axis}=0;i{axis}<{sizes[axis - 1]};i{axis}++){{")
            text += [f"const x_{column}=d_{column}[i{axis}];" for column in self.sweep.dimensions[axis - 1]]
            text += self.body[depth]
        text.append(f"const cell={'+'.join(f'i{axis}*{stride}' for axis, stride in enumerate(strides, 1))};")
        for c, (cost, part) in contests.items():
            text.append(f"if({part}){{{c}_n++;if({cost}<{c}_low||({cost}==={c}_low&&cell<{c}_at)){{{c}_low={cost};{c}_at=cell;}}}}")
        return [*text, "}" * len(sizes)]
