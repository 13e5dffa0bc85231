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
from widgets.kit.symbolic import Graph


class Sweep(NamedTuple):
    """What a node needs to be written out. Steps of the graph by their numbers, so that equal sweeps are one node."""

    length: int                                                 # rows at most
    rows: tuple[tuple[str, int], ...]                           # (column, step)
    dimensions: tuple[tuple[tuple[str, tuple[float, ...]], ...], ...]   # of each: (column, values)
    conditions: tuple[int, ...]
    contests: tuple[tuple[str, int, int], ...]                  # (name, cost, takes part)

    def sizes(self) -> list[int]:
        """Entries of each dimension."""
        return [len(dimension[0][1]) for dimension in self.dimensions]


def traced(graph: Graph, rows: dict, dimensions: list[dict], measure) -> dict[str, Least]:
    """The contests of ``engine.sweep.sweep`` as symbols."""
    point = {name: graph.symbol("loop", data=(axis, name))
             for axis, columns in enumerate((rows, *dimensions)) for name in columns}
    conditions, contests = measure(point)
    columns = {name: graph.lift(column) for name, column in rows.items()}
    shape = next(iter(columns.values())).shape
    node = graph.add("sweep", [column.id for column in columns.values()], Sweep(
        shape[0], tuple((name, column.id) for name, column in columns.items()),
        tuple(tuple((name, tuple(map(float, values))) for name, values in dimension.items()) for dimension in dimensions),
        tuple(graph.lift(condition).id for condition in conditions),
        tuple((name, graph.lift(cost).id, graph.lift(part).id) for name, (cost, part) in contests.items())))
    return {name: Least(*(graph.symbol("output", [node], f"{name}_{what}", shape) for what in Least._fields))
            for name in contests}


class Loops(Writer):
    """The function of one sweep; its arguments are what the widget computes outside of it."""

    def __init__(self, outside: Writer, sweep: Sweep):
        super().__init__(outside.graph)
        self.outside, self.sweep, self.arguments, self.axes = outside, sweep, {}, {}
        for step in (*sweep.conditions, *(step for _, *steps in sweep.contests for step in steps)):
            self.axes_of(step)
        dependents = [sum(axis in axes for axes in self.axes.values()) for axis in range(len(sweep.dimensions) + 1)]
        inner = sorted(range(1, len(dependents)), key=lambda axis: -dependents[axis])
        self.order = [0, *inner]                                # axes from the outermost loop to the innermost
        self.body: list[list[str]] = [[] for _ in self.order]

    def axes_of(self, step: int) -> frozenset:
        """The loops that a step's value changes with."""
        if step not in self.axes:
            node = self.graph.nodes[step]
            own = {node.data[0]} if node.op == "loop" else ()
            self.axes[step] = frozenset(own).union(*map(self.axes_of, node.args))
        return self.axes[step]

    def depth(self, step: int) -> int:
        """The outermost loop that knows all that a step needs; −1 outside of all."""
        return max((self.order.index(axis) for axis in self.axes_of(step)), default=-1)

    def argument(self, outer: str) -> str:
        """The name in here of what is computed outside."""
        return self.arguments.setdefault(outer, f"a{len(self.arguments)}")

    def name(self, step: int) -> str:
        """The name of a step's value, which is written into its loop when it is first asked for."""
        if step not in self.names:
            node, depth = self.graph.nodes[step], self.depth(step)
            if node.op == "loop":
                self.names[step] = f"x_{node.data[1]}"
            elif depth < 0:
                outer = self.outside.name(step)
                self.names[step] = outer if node.op == "number" else self.argument(outer)
            else:
                code = getattr(self, f"_{node.op}")(node)
                self.names[step] = f"s{step}"
                self.body[depth].append(f"const s{step}={code};")
        return self.names[step]

    def own_columns(self) -> str:
        """New ones for each round of a loop: another may still be read."""
        return "{}"

    def function(self, name: str) -> str:
        """The text of the function, which gives each contest's columns."""
        sweep = self.sweep
        columns = {column: self.argument(self.outside.name(step)) for column, step in sweep.rows}
        first = next(iter(columns.values()))
        for condition in sorted(sweep.conditions, key=self.depth):
            met = self.name(condition)
            self.body[max(0, self.depth(condition))].append(f"if(!{met})continue;")
        contests = {contest: (self.name(cost), self.name(part)) for contest, cost, part in sweep.contests}
        outputs = [f"{contest}_{what}" for contest in contests for what in Least._fields]
        lines = [f"const {name}=remembered(({','.join(self.arguments.values())})=>{{"]
        lines += [f"const {output}=new Float64Array({sweep.length}).fill(NaN);" for output in outputs]
        lines += [f"const d_{column}={self.outside.value(values)};" for dimension in sweep.dimensions for column, values in dimension]
        lines += [f"for(let i0=0;i0<{sweep.length}&&{first}[i0]==={first}[i0];i0++){{"]
        lines += [f"const x_{column}={outer}[i0];" for column, outer in columns.items()]
        lines += [f"let {c}_low=Infinity,{c}_at=-1,{c}_n=0;" for c in contests]
        lines += ["do{", *self.loops(contests), "}while(false);"]   # a row that is left early is noted all the same
        lines += [f"if({c}_at>=0){{{c}_cost[i0]={c}_low;{c}_cell[i0]={c}_at;}}{c}_count[i0]={c}_n;" for c in contests]
        return "\n".join([*lines, "}", f"return {{{','.join(outputs)}}};", "});"])

    def loops(self, contests: dict) -> list[str]:
        """The body of the loop over the rows."""
        sizes = self.sweep.sizes()
        strides = [*itertools.accumulate(sizes[:0:-1], lambda a, b: a * b, initial=1)][::-1]
        text = [*self.body[0]]
        for depth, axis in enumerate(self.order[1:], 1):
            text.append(f"for(let i{axis}=0;i{axis}<{sizes[axis - 1]};i{axis}++){{")
            text += [f"const x_{column}=d_{column}[i{axis}];" for column, _ in self.sweep.dimensions[axis - 1]]
            text += self.body[depth]
        text.append(f"const cell={'+'.join(f'i{axis}*{stride}' for axis, stride in enumerate(strides, 1))};")
        for c, (cost, part) in contests.items():
            text.append(f"if({part}){{{c}_n++;if({cost}<{c}_low||({cost}==={c}_low&&cell<{c}_at)){{{c}_low={cost};{c}_at=cell;}}}}")
        return [*text, "}" * len(sizes)]
