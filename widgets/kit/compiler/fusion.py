"""Puts steps over columns of the same length into one loop, and skips those whose controls did not change.

Written one by one, each step of a widget's graph over a column would be a loop and an array of its own, most
of them read only by the next step. Here steps are ranked, so that no step needs the whole column of another
step of the same rank. Steps of the same rank and length share a loop, and only columns that are read outside
of it become arrays.

A column is overwritten at each move, so that a drag produces no garbage; what is shown is a copy of it. A
loop is a function that is made once, because browsers optimize a function that stays, and drop their
optimizations with a function that goes.

A step's result is kept until one of its controls changes, and a drag changes only one. Steps of a rank that
depend on the same controls share one condition. Steps that depend on fewer controls come first, because
others may read them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Set
from typing import NamedTuple

from widgets.kit.compiler.inlined import inlined

MOST = 400  # steps per loop: browsers do not optimize functions that are too long
Element = Callable[[int, Set[int]], str]


class Line(NamedTuple):
    """The code of one step, the steps that it reads, and the controls that its value depends on. A step over
    columns also has its number of rows, and which of the columns it reads only in its own row."""

    id: int
    code: str
    reads: frozenset[int]
    controls: frozenset[str]
    rows: int = 0  # 0: not a step over rows
    aligned: frozenset[int] = frozenset()  # columns of ``reads`` of which only its own row is needed


class Block(NamedTuple):
    """Steps that run together when one of these controls has changed."""

    rank: int
    rows: int
    controls: frozenset[str]
    steps: list[Line]


def ranks(steps: list[Line]) -> dict[int, int]:
    """The rank of each step: higher than that of every column that it needs in full."""
    rank, rows = {}, {step.id: step.rows for step in steps}
    for step in steps:
        reads = [read for read in step.reads if read in rows]  # columns; other values exist already
        whole = (
            read for read in reads if rows[read] and not (read in step.aligned and rows[read] == step.rows)
        )
        rank[step.id] = max((*(rank[read] for read in reads), *(rank[read] + 1 for read in whole)), default=0)
    return rank


def blocks(steps: list[Line]) -> list[Block]:
    """The blocks, in an order in which each finds what it reads."""
    rank = ranks(steps)
    alike: defaultdict[tuple[int, int, frozenset[str]], list[Line]] = defaultdict(list)
    for step in steps:
        alike[rank[step.id], step.rows, step.controls].append(step)
    found = [
        Block(*key, members[i : i + MOST])
        for key, members in alike.items()
        for i in range(0, len(members), MOST)
    ]
    return sorted(
        found, key=lambda block: (block.rank, block.rows > 0, len(block.controls), sorted(block.controls))
    )


def fused(
    steps: list[Line], element: Element, asked: set[int]
) -> tuple[list[str], list[tuple[frozenset[str], list[str]]]]:
    """(declarations, the program as (controls, lines)). A declaration keeps a name: of a column with its
    array, or of a loop with its function. ``element(id, inside)`` writes a step's value in a row, where the
    steps ``inside`` the same loop are available. ``asked`` are the steps that are read elsewhere: by the
    result, or by a later question."""
    ordered = blocks(steps)
    block_of = {step.id: number for number, block in enumerate(ordered) for step in block.steps}
    kept = asked | {
        read for step in steps for read in step.reads if block_of.get(read) != block_of.get(step.id)
    }
    lines, named = [], []
    for block in ordered:
        if block.rows:
            columns = [step.id for step in block.steps if step.id in kept]
            text = loop(block, columns, element)
            named += [f"v{column}=new Float64Array({block.rows})" for column in columns]
            if block.controls:
                call = f"loop{block.steps[0].id}"
                named += ["\n".join([f"{call}=c=>{{", *text, "}"])]
                text = [f"{call}(c);"]
        else:
            known = {f"v{step.id}" for step in block.steps if step.id in kept}
            left = inlined(((f"v{step.id}", step.code) for step in block.steps), known)
            text = [f"{name}={code};" for name, code in left]
            named += [name for name, _ in left]
        lines.append((block.controls, text))
    return named, lines


def loop(block: Block, columns: list[int], element: Element) -> list[str]:
    """The lines of a block's loop over its rows; ``columns`` are the steps that are read outside of it."""
    inside = {step.id for step in block.steps}
    steps = ((f"e{step.id}", element(step.id, inside)) for step in block.steps)
    return [
        f"for(let i=0;i<{block.rows};i++){{",
        *(f"const {name}={code};" for name, code in inlined(steps, {f"e{column}" for column in columns})),
        *(f"v{column}[i]=e{column};" for column in columns),
        "}",
    ]
