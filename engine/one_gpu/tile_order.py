"""The order in which a matrix product's programs run, and which of their blocks are still in L2, counted by
executing it.

Programs start in the order of their numbers, a fixed number at a time (a wave), and move along k together. In
each step, each reads a block of A and a block of B. L2 is modelled as a stack of blocks, least recently used
at the bottom: a block that is read goes on top, and the bottom one is evicted.

The functions stay within the subset of Python that ``engine.base.program`` translates for the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.base import ops
from engine.base.program import full, program
from engine.base.types import Real

NOT_OWN = [0.0]  # stands for: no order of somebody's own (is_own)
MOST = 18 * 18  # tiles of C, blocks of A, and of B
# A block's state in the last wave: not in L2, used and evicted again, in L2, found there, read from HBM.
AWAY, PUT_OUT, RESTING, FOUND, READ = 0, 1, 2, 3, 4


def tile_row(number: Real, tiles_m: Real, tiles_n: Real, group: Real) -> Real:
    """The row of tiles of a program: groups of rows, each traversed column by column. A group of 1 is
    row-major order."""
    first, height = _group(number, tiles_m, tiles_n, group)
    return first + _mod(_mod(number, group * tiles_n), height)


def tile_column(number: Real, tiles_m: Real, tiles_n: Real, group: Real) -> Real:
    """The column of tiles of a program."""
    _, height = _group(number, tiles_m, tiles_n, group)
    return ops.floor(_mod(number, group * tiles_n) / height)


def _group(number, tiles_m, tiles_n, group):
    """First row of a program's group, and its height, which may be smaller for the last group."""
    first = ops.floor(number / (group * tiles_n)) * group
    return first, ops.minimum(tiles_m - first, group)


def _mod(a, b):
    return a - ops.floor(a / b) * b


class L2:
    """The L2 cache as a stack of blocks, the last one used on top. ``older`` and ``newer`` are a block's
    neighbours; number 0 is both ends."""

    def __init__(
        self, newer: list[int], older: list[int], state: list[int], held: int, asked: int, read: int
    ) -> None:
        self.newer = newer
        self.older = older
        self.state = state
        self.held = held  # how many blocks are in it
        self.asked = asked  # how many were read so far,
        self.read = read  # and how many of these came from HBM


def take_out(l2: L2, block: int) -> None:
    """Remove a block from the stack."""
    l2.newer[l2.older[block]] = l2.newer[block]
    l2.older[l2.newer[block]] = l2.older[block]


def put_on_top(l2: L2, block: int) -> None:
    """Put a block on top of the stack."""
    top = l2.older[0]
    l2.older[block] = top
    l2.newer[block] = 0
    l2.newer[top] = block
    l2.older[0] = block


def read(l2: L2, block: int, room: float) -> None:
    """Read one block through a cache with room for so many."""
    l2.asked += 1
    if l2.state[block] <= PUT_OUT:
        l2.read += 1
        if l2.held >= room:
            oldest = l2.newer[0]
            take_out(l2, oldest)
            l2.state[oldest] = PUT_OUT if l2.state[oldest] > RESTING else AWAY
            l2.held -= 1
        l2.held += 1
        l2.state[block] = READ
    else:
        take_out(l2, block)
        if l2.state[block] == RESTING:
            l2.state[block] = FOUND
    put_on_top(l2, block)


def read_wave(
    l2: L2,
    start: int,
    end: int,
    row: list[int],
    column: list[int],
    tiles_m: int,
    tiles_n: int,
    tiles_k: int,
    room: float,
) -> None:
    """Read the blocks that the programs from ``start`` up to ``end`` need for their tiles. The programs move
    along k together; within a step they read one after the other."""
    for step in range(tiles_k):
        for number in range(start, end):
            read(l2, 1 + row[number] * tiles_k + step, room)
            read(l2, 1 + tiles_m * tiles_k + step * tiles_n + column[number], room)


def is_own(own: list[float], tiles: int) -> bool:
    """Whether this column is an order of this many tiles: a 1, and then the tiles' numbers, row by row."""
    return own[0] > 0 and len(own) == tiles + 1


def run(
    tiles_m: Real, tiles_n: Real, tiles_k: Real, group: Real, at_a_time: Real, room: Real, until: Real
) -> dict[str, Any]:
    """``run_in`` with programs in groups of rows."""
    return run_in(tiles_m, tiles_n, tiles_k, group, at_a_time, room, until, NOT_OWN)


@program(row=MOST, column=MOST, own=())
def places(tiles_m: float, tiles_n: float, group: float, own: list[float]) -> dict[str, Any]:
    """The row and the column of each program's tile: in groups of rows, or in somebody's ``own`` order
    (is_own)."""
    tiles_m, tiles_n, group = int(tiles_m), int(tiles_n), int(group)
    row, column = placed(tiles_m, tiles_n, group, own)
    return {"row": row, "column": column, "own": 1 if is_own(own, tiles_m * tiles_n) else 0}


def placed(tiles_m: int, tiles_n: int, group: int, own: list[float]) -> tuple[list[int], list[int]]:
    """(row, column) of each program's tile."""
    count = tiles_m * tiles_n
    row, column = full(count, 0), full(count, 0)
    for number in range(count):
        if is_own(own, count):
            tile = int(own[number + 1])
            row[number], column[number] = tile // tiles_n, tile % tiles_n
        else:
            first, place = number // (group * tiles_n) * group, number % (group * tiles_n)
            height = min(tiles_m - first, group)
            row[number], column[number] = first + place % height, place // height
    return row, column


@program(a_state=MOST, b_state=MOST, c_state=MOST, asked=(), read=(), wave_asked=(), wave_read=())
def run_in(
    tiles_m: float,
    tiles_n: float,
    tiles_k: float,
    group: float,
    at_a_time: float,
    room: float,
    until: float,
    own: list[float],
) -> dict[str, Any]:
    """Run all waves up to the one with the program before ``until``, in groups of rows or in somebody's
    ``own`` order (is_own). Returns how many blocks were read, and how many of these came from HBM, so far and
    in the last wave.

    a_state[row of tiles · tiles_k + step] and b_state[step · tiles_n + column] give each block's state at the
    end, c_state[number of the program] whether that program is waiting (0), done (1), or in the last wave
    (2).
    """
    tiles_m, tiles_n, tiles_k, group = int(tiles_m), int(tiles_n), int(tiles_k), int(group)
    all_a = tiles_m * tiles_k
    blocks = all_a + tiles_k * tiles_n
    l2 = L2(full(blocks + 1, 0), full(blocks + 1, 0), full(blocks + 1, 0), 0, 0, 0)
    asked_before, read_before, start, end = 0, 0, 0, 0
    row, column = placed(tiles_m, tiles_n, group, own)
    while start < until:
        asked_before, read_before = l2.asked, l2.read
        for block in range(1, blocks + 1):
            if l2.state[block] > RESTING:
                l2.state[block] = RESTING
            elif l2.state[block] == PUT_OUT:
                l2.state[block] = AWAY
        end = min(start + int(at_a_time), tiles_m * tiles_n)
        read_wave(l2, start, end, row, column, tiles_m, tiles_n, tiles_k, room)
        start = start + int(at_a_time)
    a_state, b_state, c_state = full(all_a, 0), full(tiles_k * tiles_n, 0), full(tiles_m * tiles_n, 0)
    for number in range(end):
        c_state[number] = 1 if number < start - int(at_a_time) else 2
    for block in range(all_a):
        a_state[block] = l2.state[1 + block]
    for block in range(tiles_k * tiles_n):
        b_state[block] = l2.state[1 + all_a + block]
    return {
        "a_state": a_state,
        "b_state": b_state,
        "c_state": c_state,
        "asked": l2.asked,
        "read": l2.read,
        "wave_asked": l2.asked - asked_before,
        "wave_read": l2.read - read_before,
    }


def from_hbm(tiles_m: Real, tiles_n: Real, tiles_k: Real, group: Real, at_a_time: Real, room: Real) -> Real:
    """Blocks that the whole product reads from HBM."""
    return run(tiles_m, tiles_n, tiles_k, group, at_a_time, room, tiles_m * tiles_n)["read"]


def started(position: Real, count: Real) -> Real:
    """Programs that have started at this position of an animation: a whole number, at least one."""
    return np.minimum(np.maximum(ops.floor(position), 1.0), count)


def cell(index: Real, columns: Real) -> tuple[Real, Real]:
    """(row, column) of an index into a matrix in row-major order."""
    row = ops.floor(index / columns)
    return row, index - row * columns


def filled_share(size: Real, blocks: Real, block: Real) -> Real:
    """The share of a padded matrix that is not padding."""
    return size / (blocks * block)


def last_element(number: Real, block: Real, size: Real) -> Real:
    """The last row or column of a block inside the matrix."""
    return np.minimum((number + 1) * block, size) - 1
