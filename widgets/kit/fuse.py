"""Put steps over columns of one length into one loop, and leave out what hangs on no control that was moved.

Written one by one, each step of a widget's graph over a column would be a loop and an array of its own, most of them read by
the next step alone. Here steps are ranked, so that no two of a rank need each other's whole column; those of one rank and
length share a loop, and only what is read outside of it is laid out as an array.

A column is written over at each move, so that a drag leaves no garbage: what is shown of it is a copy.

What a step gives stays until one of its controls has another value: a drag moves a single one. Steps of a rank that hang on
the same controls stand under one condition; those that hang on fewer come first, since others may read them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

MOST = 400  # steps of a loop: browsers leave a function unoptimized that is too long


class Step(NamedTuple):
    """A line of the program: what it reads, the controls that it hangs on, and of a step that is taken row by row how many rows
    and where it finds each."""

    id: int
    code: str
    reads: frozenset[int]
    controls: frozenset[str]
    rows: int = 0                            # 0: not row by row
    aligned: frozenset[int] = frozenset()    # of the reads those whose own row is needed alone


class Block(NamedTuple):
    """Steps that are taken together, once one of these controls was moved."""

    rank: int
    rows: int
    controls: frozenset[str]
    steps: list[Step]


def ranks(steps: list[Step]) -> dict[int, int]:
    """Of each step: higher than that of every column which must be there in full before."""
    rank, rows = {}, {step.id: step.rows for step in steps}
    for step in steps:
        whole = (read for read in step.reads if rows[read] and not (read in step.aligned and rows[read] == step.rows))
        rank[step.id] = max((*(rank[read] for read in step.reads), *(rank[read] + 1 for read in whole)), default=0)
    return rank


def blocks(steps: list[Step]) -> list[Block]:
    """In an order in which each finds what it reads."""
    rank, alike = ranks(steps), defaultdict(list)
    for step in steps:
        alike[rank[step.id], step.rows, step.controls].append(step)
    found = [Block(*key, members[i:i + MOST]) for key, members in alike.items() for i in range(0, len(members), MOST)]
    return sorted(found, key=lambda block: (block.rank, block.rows > 0, len(block.controls), sorted(block.controls)))


def fused(steps: list[Step], element, asked: set[int]) -> tuple[list[str], list[tuple[frozenset[str], list[str]]]]:
    """The names that steps keep, each column's with its array, and the lines of the program as (controls, lines).
    ``element(id, inside)`` is a step's value in a row, where those ``inside`` the loop are at hand; ``asked`` are the steps
    that the result names."""
    ordered = blocks(steps)
    block_of = {step.id: number for number, block in enumerate(ordered) for step in block.steps}
    kept = asked | {read for step in steps for read in step.reads if block_of.get(read) != block_of.get(step.id)}
    lines, named = [], []
    for block in ordered:
        if block.rows:
            columns = [step.id for step in block.steps if step.id in kept]
            text = loop(block, columns, element)
            named += [f"v{id}=new Float64Array({block.rows})" for id in columns]
        else:
            text = [f"v{step.id}={step.code};" for step in block.steps]
            named += [f"v{step.id}" for step in block.steps]
        lines.append((block.controls, text))
    return named, lines


def loop(block: Block, columns: list[int], element) -> list[str]:
    inside = {step.id for step in block.steps}
    return [f"rowwise({block.rows},i=>{{",
            *(f"const e{step.id}={element(step.id, inside)};" for step in block.steps),
            *(f"v{id}[i]=e{id};" for id in columns), "});"]
