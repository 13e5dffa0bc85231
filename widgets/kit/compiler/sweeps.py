"""Writes an ``engine.base.sweep`` as nested loops: one for the rows, one for each dimension.

The measure was run once on symbols for the loops' values. Each step of that graph is placed in the outermost
loop that knows all its inputs, and the dimension on which the fewest steps depend becomes the innermost, so
that a search costs little more than the steps that change there.

The steps of a loop with many of them are put into functions of their own: browsers do not optimize a function
that is too long, and a search then takes ten times as long. These functions are made once, not at each call,
because browsers drop their optimizations with a function that goes.
"""

from __future__ import annotations

import itertools
from typing import Any, Protocol

from widgets.kit.compiler.contests import InGroups, InRows
from widgets.kit.compiler.fusion import MOST
from widgets.kit.compiler.graph import Graph, Sweep
from widgets.kit.compiler.inlined import inlined
from widgets.kit.compiler.steps import Steps

FEW = 128  # most steps written into a loop itself; V8 optimizes up to 60 kB of bytecode, some 20 bytes a step


class Outside(Protocol):
    """The part of ``writer.Writer``, which writes everything outside the loops, that this module needs."""

    graph: Graph
    programs: dict[str, str]

    def name(self, node_id: int, /) -> str:
        """The name of a node's value."""
        ...

    def value(self, value: Any, /) -> str:
        """The JavaScript of an output."""
        ...


class Loops(Steps):
    """The function of one sweep. Its arguments are the number of rows, the rows' columns, and the values that
    the widget computes outside it."""

    def __init__(self, outside: Outside, sweep: Sweep) -> None:
        super().__init__(outside.graph, outside.programs)
        self.outside, self.sweep = outside, sweep
        self.names: dict[int, str] = {}
        self.arguments: dict[int, str] = {}  # step computed outside -> its name inside
        self.axes: dict[int, frozenset[int]] = {}  # for each step, the loops that its value changes with
        for step in (*sweep.conditions, *(step for contest in sweep.contests for step in contest.steps)):
            self.axes_of(step)
        dependents = [
            sum(axis in axes for axes in self.axes.values()) for axis in range(len(sweep.dimensions) + 1)
        ]
        inner = sorted(range(1, len(dependents)), key=lambda axis: -dependents[axis])
        self.order = [0, *inner]  # axes from the outermost loop to the innermost
        self.code: dict[int, str] = {}  # of each step inside
        self.body: list[list[int | str]] = [[] for _ in self.order]  # steps, and conditions between them

    def axes_of(self, step: int) -> frozenset[int]:
        """The loops that a step's value changes with."""
        for each in self.graph.due(step, self.axes):
            node = self.graph.nodes[each]
            own = {node.data[0]} if node.op == "loop" else ()
            self.axes[each] = frozenset(own).union(*(self.axes[read] for read in node.args))
        return self.axes[step]

    def depth(self, step: int) -> int:
        """The outermost loop that knows everything a step needs; −1 outside of all loops."""
        return max((self.order.index(axis) for axis in self.axes_of(step)), default=-1)

    def name(self, step: int) -> str:
        """The name of a step's value, which is written into its loop on first use, after what it reads."""
        for each in self.graph.due(step, self.names, self.read_inside):
            self.names[each] = self.named(each)
        return self.names[step]

    def read_inside(self, step: int) -> tuple[int, ...]:
        """The steps inside the loops that a step reads, and that must be written before it. The writer
        outside looks after the others."""
        return self.graph.nodes[step].args if self.depth(step) >= 0 else ()

    def named(self, step: int) -> str:
        """The name of a step's value, which is written into its loop."""
        node, depth = self.graph.nodes[step], self.depth(step)
        if node.op == "loop":
            return f"x_{node.data[1]}"
        if depth < 0:
            outer = self.outside.name(step)
            if node.op == "number":
                return outer
            return self.arguments.setdefault(step, f"a{len(self.arguments)}")
        self.code[step] = getattr(self, f"_{node.op}")(node)
        self.body[depth].append(step)
        return f"s{step}"

    def own_columns(self) -> str:
        """The expression for where a call of a program stores its columns: new ones in each iteration of a
        loop, because the last ones may still be in use."""
        return "{}"

    def function(self, name: str) -> str:
        """The text of the function, which returns each contest's columns."""
        sweep = self.sweep
        columns = {column: f"r_{column}" for column, _ in sweep.rows}
        first = next(iter(columns.values()))
        for condition in sorted(sweep.conditions, key=self.depth):
            met = self.name(condition)
            self.body[max(0, self.depth(condition))].append(f"if(!{met})continue;")
        contests = [
            (InGroups if contest.groups else InRows)(
                contest.name, [self.name(step) for step in contest.steps], contest.groups
            )
            for contest in sweep.contests
        ]
        functions, bodies = Parts(self).written()
        given = list(self.arguments.values())
        lines = [f"const {name}=(()=>{{"]
        lines += [f"var {','.join(given)};"] if given else []
        lines += [
            f"const d_{column}={self.outside.value(values)};"
            for dimension in sweep.dimensions
            for column, values in dimension
        ]
        lines += functions
        lines += [f"const take=given=>{{[{','.join(given)}]=given;}};"]
        lines += [f"return (found,{','.join(['rows', *columns.values(), '...given'])})=>{{", "take(given);"]
        lines += [contest.columns() for contest in contests]
        lines += [f"for(let i0=0;i0<rows&&{first}[i0]==={first}[i0];i0++){{"]
        lines += [f"const x_{column}={outer}[i0];" for column, outer in columns.items()]
        lines += [contest.before_row() for contest in contests]
        lines += [
            "do{",
            *self.loops(contests, bodies),
            "}while(false);",
        ]  # a row that is left early still has its results recorded
        lines += [contest.after_row() for contest in contests]
        return "\n".join([*lines, "}", "return found;", "};", "})();"])

    def loops(self, contests: list[InRows | InGroups], bodies: list[list[str]]) -> list[str]:
        """The body of the loop over the rows."""
        sizes = self.sweep.sizes()
        strides = [*itertools.accumulate(sizes[:0:-1], lambda a, b: a * b, initial=1)][::-1]
        text = [*bodies[0]]
        for depth, axis in enumerate(self.order[1:], 1):
            text.append(f"for(let i{axis}=0;i{axis}<{sizes[axis - 1]};i{axis}++){{")
            text += [
                f"const x_{column}=d_{column}[i{axis}];" for column, _ in self.sweep.dimensions[axis - 1]
            ]
            text += bodies[depth]
        text.append(f"const cell={'+'.join(f'i{axis}*{stride}' for axis, stride in enumerate(strides, 1))};")
        text += [contest.entered() for contest in contests]
        return [*text, "}" * len(sizes)]


class Parts:
    """The steps of a sweep's loops, divided into functions. A step that is read by another function leaves
    its value in ``kept``.

    Steps of a loop that depend on none of the loops between the rows and this loop are in functions that
    compute once for each row and each entry of this loop. When the entry comes again, the values that they
    found are put back.
    """

    def __init__(self, loops: Loops) -> None:
        self.loops, self.graph = loops, loops.graph
        self.home: dict[int, str] = {}  # step -> the function that it stands in; "" for the loops themselves
        self.once: dict[int, int] = {}  # step that is computed once for an entry of a loop -> the loop's axis
        self.bodies = [self.divided(depth, body) for depth, body in enumerate(loops.body)]
        self.readers: dict[int, set[int]] = {}  # step -> the steps that read it
        for step in self.home:
            for read in self.reads(step):
                self.readers.setdefault(read, set()).add(step)
        sweep = loops.sweep
        self.asked = {*sweep.conditions, *(step for contest in sweep.contests for step in contest.steps)}
        self.by_loops = {step for step in self.asked if self.home.get(step)}  # read there, not computed there
        crossing = set(self.by_loops)
        for step, home in self.home.items():
            elsewhere = {read for read in self.reads(step) if self.home[read] != home}
            crossing |= elsewhere
            if not home:
                self.by_loops |= elsewhere
        by_function = sorted(crossing, key=lambda step: (self.home[step], step))
        self.places = {step: place for place, step in enumerate(by_function)}

    def divided(self, depth: int, body: list[int | str]) -> list[list[int] | str]:
        """The steps of one loop in groups, each with its home noted, and the conditions between them."""
        steps = [step for step in body if isinstance(step, int)]
        numbers = all(not (node := self.graph.nodes[step]).shape and node.op != "program" for step in steps)
        many = numbers and len(steps) > FEW
        if many and depth > 1:
            body = self.once_first(depth, body)
        groups: list[list[int] | str] = []
        group: list[int] = []
        for step in body:
            if isinstance(step, str):
                groups.append(step)
                group = []
                continue
            if not group or len(group) == MOST or (group[0] in self.once) != (step in self.once):
                group = []
                groups.append(group)
            group.append(step)
            self.home[step] = f"part{depth}_{len(groups)}" if many else ""
        return groups

    def once_first(self, depth: int, body: list[int | str]) -> list[int | str]:
        """The steps of one loop; after its conditions, first those that are computed once for an entry."""
        start = max((place + 1 for place, step in enumerate(body) if isinstance(step, str)), default=0)
        axis, between = self.loops.order[depth], set(self.loops.order[1:depth])
        once = [
            step for step in body[start:] if isinstance(step, int) and not between & self.loops.axes[step]
        ]
        self.once |= dict.fromkeys(once, axis)
        return [*body[:start], *once, *(step for step in body[start:] if step not in self.once)]

    def reads(self, step: int) -> list[int]:
        """The steps inside the loops that a step reads."""
        return [read for read in self.graph.nodes[step].args if read in self.home]

    def written(self) -> tuple[list[str], list[list[str]]]:
        """(the functions, the lines that stand in each loop)."""
        functions = [f"const kept=new Float64Array({len(self.places)});"] if self.places else []
        functions += ["var row=0;"] if self.once else []  # counts rows over all searches
        bodies = []
        for depth, groups in enumerate(self.bodies):
            lines = ["row++;"] if self.once and not depth else []
            for group in groups:
                if isinstance(group, str):
                    lines.append(group)
                elif name := self.home[group[0]]:
                    functions += self.function(name, group)
                    lines.append(self.call(name, group))
                    lines += [
                        f"const s{step}=kept[{self.places[step]}];" for step in group if step in self.by_loops
                    ]
                else:
                    lines += self.lines(group) + self.left(group)
            bodies.append(lines)
        return functions, bodies

    def lines(self, group: list[int]) -> list[str]:
        """The lines of these steps. A step that other groups or the loops read keeps its name."""
        others = {step for step in group if self.readers.get(step, set()) - set(group)}
        kept = {f"s{step}" for step in others | self.asked | self.places.keys()}
        steps = ((f"s{step}", self.loops.code[step]) for step in group)
        return [f"const {name}={code};" for name, code in inlined(steps, kept)]

    def given(self, group: list[int]) -> str:
        """The values of the loops that these steps read."""
        read = {a for step in group for a in self.graph.nodes[step].args}
        return ",".join(self.loops.names[a] for a in sorted(read) if self.graph.nodes[a].op == "loop")

    def left(self, group: list[int]) -> list[str]:
        """The lines in which these steps leave values for others."""
        return [f"kept[{self.places[step]}]=s{step};" for step in group if step in self.places]

    def function(self, name: str, group: list[int]) -> list[str]:
        """The lines of the function that computes a group of steps."""
        taken = {read for step in group for read in self.reads(step)} - set(group)
        return [
            f"const {name}=({self.given(group)})=>{{",
            *(f"const s{step}=kept[{self.places[step]}];" for step in sorted(taken)),
            *self.lines(group),
            *self.left(group),
            "};",
            *self.share(name, group),
        ]

    def share(self, name: str, group: list[int]) -> list[str]:
        """The places, next to each other, where a function that computes once for an entry leaves the values
        that it found."""
        if group[0] not in self.once:
            return []
        places = [self.places[step] for step in group if step in self.places]
        entries = self.loops.sweep.sizes()[self.once[group[0]] - 1]
        return [f"const {name}_once=once(kept.subarray({min(places)},{max(places) + 1}),{entries});"]

    def call(self, name: str, group: list[int]) -> str:
        """The line of a loop that calls a function, or puts back the values that this function found
        before."""
        called = f"{name}({self.given(group)})"
        if group[0] not in self.once:
            return f"{called};"
        at = f"row,i{self.once[group[0]]}"
        return f"if(!{name}_once.putBack({at})){{{called};{name}_once.keep({at});}}"
