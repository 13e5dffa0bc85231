"""Writes an ``engine.base.sweep`` as nested loops: one for the rows, one for each dimension.

The measure was run once on symbols for the loops' values. Each step of that graph is placed in the outermost
loop that knows all its inputs, and the dimension on which the fewest steps depend becomes the innermost, so
that a search costs little more than the steps that change there.

A loop with many steps has them in functions of their own: browsers do not optimize a function that is too
long, and a search then takes ten times as long. They are made once, not at each call: browsers optimize a
function that stays, and forget what they knew of one that is gone.
"""

from __future__ import annotations

import itertools
from typing import Any, Protocol

from engine.base.sweep import Grouped, Least
from widgets.kit.compiler.fusion import MOST
from widgets.kit.compiler.graph import Graph, Sweep
from widgets.kit.compiler.inlined import inlined
from widgets.kit.compiler.steps import Steps

FEW = 128  # steps that stand in their loop; V8 optimizes up to 60 kB of bytecode, some 20 bytes a step


class Outside(Protocol):
    """What is needed of the writer of everything outside the loops."""

    graph: Graph
    programs: dict[str, str]

    def name(self, node_id: int, /) -> str: ...

    def value(self, value: Any, /) -> str: ...


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
        """The steps that must be written here before this one; the outside sees to its own."""
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
        """New ones for each iteration of a loop, because another may still be in use."""
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
        taken = [f"b{place}" for place in range(len(given))]
        lines += [f"return (found,{','.join(['rows', *columns.values(), *taken])})=>{{"]
        lines += [f"{a}={b};" for a, b in zip(given, taken)]
        lines += [contest.columns() for contest in contests]
        lines += [f"for(let i0=0;i0<rows&&{first}[i0]==={first}[i0];i0++){{"]
        lines += [f"const x_{column}={outer}[i0];" for column, outer in columns.items()]
        lines += [contest.before_row() for contest in contests]
        lines += [
            "do{",
            *self.loops(contests, bodies),
            "}while(false);",
        ]  # a row that is left early is recorded all the same
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


class InRows:
    """The lines of a contest that is held in each row."""

    kind: Any = Least

    def __init__(self, name: str, values: list[str], groups: int) -> None:
        self.name, self.values, self.groups = name, values, groups

    def outputs(self) -> list[str]:
        return [f"{self.name}_{what}" for what in self.kind._fields]

    def columns(self) -> str:
        """Its results, before the first row."""
        return "".join(f"const {output}=own(found,'{output}',rows).fill(NaN);" for output in self.outputs())

    def before_row(self) -> str:
        return f"let {self.name}_low=Infinity,{self.name}_at=-1,{self.name}_n=0;"

    def entered(self) -> str:
        """A combination takes part."""
        (cost, part), c = self.values, self.name
        return (
            f"if({part}){{{c}_n++;"
            f"if({cost}<{c}_low||({cost}==={c}_low&&cell<{c}_at)){{{c}_low={cost};{c}_at=cell;}}}}"
        )

    def after_row(self) -> str:
        c = self.name
        return f"if({c}_at>=0){{{c}_cost[i0]={c}_low;{c}_cell[i0]={c}_at;}}{c}_count[i0]={c}_n;"


class InGroups(InRows):
    """The lines of one that is held in groups, which cut across the rows."""

    kind = Grouped

    def columns(self) -> str:
        *best, count = self.outputs()
        filled = [f"const {output}=own(found,'{output}',{self.groups}).fill(NaN);" for output in best]
        return "".join([*filled, f"const {count}=own(found,'{count}',{self.groups}).fill(0);"])

    def before_row(self) -> str:
        return ""

    def entered(self) -> str:
        (cost, part, group), c = self.values, self.name
        first = f"({cost}==={c}_cost[g]&&{c}_row[g]===i0&&cell<{c}_cell[g])"
        return (
            f"if({part}){{const g={group};{c}_count[g]++;"
            f"if(!({cost}>={c}_cost[g])||{first}){{{c}_cost[g]={cost};{c}_row[g]=i0;{c}_cell[g]=cell;}}}}"
        )

    def after_row(self) -> str:
        return ""


class Parts:
    """The steps of a sweep's loops, divided into functions. A step that is read in another function than its
    own leaves its value in ``kept``."""

    def __init__(self, loops: Loops) -> None:
        self.loops, self.graph = loops, loops.graph
        self.home: dict[int, str] = {}  # of each step, the function that it stands in; "" for the loops
        self.bodies = [self.divided(depth, body) for depth, body in enumerate(loops.body)]
        self.readers: dict[int, set[int]] = {}  # of each step, the steps that read it
        for step in self.home:
            for read in self.reads(step):
                self.readers.setdefault(read, set()).add(step)
        sweep = loops.sweep
        self.asked = {*sweep.conditions, *(step for contest in sweep.contests for step in contest.steps)}
        self.by_loops = {step for step in self.asked if self.home.get(step)}  # read there, computed elsewhere
        crossing = set(self.by_loops)
        for step, home in self.home.items():
            elsewhere = {read for read in self.reads(step) if self.home[read] != home}
            crossing |= elsewhere
            if not home:
                self.by_loops |= elsewhere
        self.places = {step: place for place, step in enumerate(sorted(crossing))}

    def divided(self, depth: int, body: list[int | str]) -> list[list[int] | str]:
        """The steps of one loop in groups, each with its home noted, and the conditions between them."""
        steps = [step for step in body if isinstance(step, int)]
        numbers = all(not (node := self.graph.nodes[step]).shape and node.op != "program" for step in steps)
        many = numbers and len(steps) > FEW
        groups: list[list[int] | str] = []
        group: list[int] = []
        for step in body:
            if isinstance(step, str):
                groups.append(step)
                group = []
                continue
            if not group or len(group) == MOST:
                group = []
                groups.append(group)
            group.append(step)
            self.home[step] = f"part{depth}_{len(groups)}" if many else ""
        return groups

    def reads(self, step: int) -> list[int]:
        """The steps inside that a step reads."""
        return [read for read in self.graph.nodes[step].args if read in self.home]

    def written(self) -> tuple[list[str], list[list[str]]]:
        """The functions, and what stands in each loop."""
        functions = [f"const kept=new Float64Array({len(self.places)});"] if self.places else []
        bodies = []
        for groups in self.bodies:
            lines = []
            for group in groups:
                if isinstance(group, str):
                    lines.append(group)
                elif name := self.home[group[0]]:
                    given = self.given(group)
                    functions += self.function(name, given, group)
                    lines.append(f"{name}({given});")
                    lines += [
                        f"const s{step}=kept[{self.places[step]}];" for step in group if step in self.by_loops
                    ]
                else:
                    lines += self.lines(group) + self.left(group)
            bodies.append(lines)
        return functions, bodies

    def lines(self, group: list[int]) -> list[str]:
        """These steps; what others read, or the loops, keeps its name."""
        others = {step for step in group if self.readers.get(step, set()) - set(group)}
        kept = {f"s{step}" for step in others | self.asked | self.places.keys()}
        steps = ((f"s{step}", self.loops.code[step]) for step in group)
        return [f"const {name}={code};" for name, code in inlined(steps, kept)]

    def given(self, group: list[int]) -> str:
        """The values of the loops that these steps read."""
        read = {a for step in group for a in self.graph.nodes[step].args}
        return ",".join(self.loops.names[a] for a in sorted(read) if self.graph.nodes[a].op == "loop")

    def left(self, group: list[int]) -> list[str]:
        """What these steps leave for others."""
        return [f"kept[{self.places[step]}]=s{step};" for step in group if step in self.places]

    def function(self, name: str, given: str, group: list[int]) -> list[str]:
        taken = {read for step in group for read in self.reads(step)} - set(group)
        return [
            f"const {name}=({given})=>{{",
            *(f"const s{step}=kept[{self.places[step]}];" for step in sorted(taken)),
            *self.lines(group),
            *self.left(group),
            "};",
        ]
