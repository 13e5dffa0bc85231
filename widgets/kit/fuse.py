"""Put steps over columns of one length into one loop.

Written one by one, each step of a widget's graph over a column would be a loop and an array of its own, most of them read by
the next step alone. Here steps are ranked, so that no two of a rank need each other's whole column; those of one rank and
length share a loop, and only what is read outside of it is laid out as an array.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

MOST = 400  # steps of a loop: browsers leave a function unoptimized that is too long


class Step(NamedTuple):
    """A line of the program: what it reads, and of a step that is taken row by row how many rows and where it finds each."""

    id: int
    code: str
    reads: frozenset[int]
    rows: int = 0                            # 0: not row by row
    aligned: frozenset[int] = frozenset()    # of the reads those whose own row is needed alone


def ranks(steps: list[Step]) -> dict[int, int]:
    """Of each step: higher than that of every column which must be there in full before."""
    rank, rows = {}, {step.id: step.rows for step in steps}
    for step in steps:
        whole = (read for read in step.reads if rows[read] and not (read in step.aligned and rows[read] == step.rows))
        rank[step.id] = max((*(rank[read] for read in step.reads), *(rank[read] + 1 for read in whole)), default=0)
    return rank


def fused(steps: list[Step], element, asked: set[int]) -> list[str]:
    """The lines of a program whose steps come after what they read. ``element(id, inside)`` is a step's value in a row, where
    those ``inside`` the loop are at hand; ``asked`` are the steps that the result names."""
    rank, plain, loops = ranks(steps), defaultdict(list), defaultdict(list)
    for step in steps:
        (loops[rank[step.id], step.rows] if step.rows else plain[rank[step.id]]).append(step)
    parts = [(at, rows, members[i:i + MOST]) for (at, rows), members in loops.items() for i in range(0, len(members), MOST)]
    loop_of = {step.id: number for number, (_, _, members) in enumerate(parts) for step in members}
    kept = asked | {read for step in steps for read in step.reads if loop_of.get(read) != loop_of.get(step.id)}
    lines = []
    for at in sorted({*plain, *(at for at, _ in loops)}):
        lines += [f"const v{step.id}={step.code};" for step in plain[at]]
        for own, rows, members in parts:
            if own == at:
                lines += loop(rows, members, element, kept)
    return lines


def loop(rows: int, members: list[Step], element, kept: set[int]) -> list[str]:
    inside = {step.id for step in members}
    columns = [step.id for step in members if step.id in kept]
    return [f"const {','.join(f'v{id}=new Float64Array({rows})' for id in columns)};", f"rowwise({rows},i=>{{",
            *(f"const e{step.id}={element(step.id, inside)};" for step in members),
            *(f"v{id}[i]=e{id};" for id in columns), "});"]
