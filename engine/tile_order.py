"""The order in which a matrix product's programs run, and what of their blocks is still in L2: counted by executing it.

Programs start in the order of their numbers, so many at a time (a wave), and walk along k together. Each reads a block
of A and a block of B a step. L2 is a stack of blocks: what was read last lies on top, and the bottom one makes room.

The functions keep to the part of Python that ``engine.program`` writes out for the page.
"""

from __future__ import annotations

import numpy as np

from engine import check, ops
from engine.program import full, program

MOST = 18 * 18                      # tiles of C, blocks of A, and of B
# Of a block, in the last wave: not in L2, used and put out again, in L2, found there, read from HBM.
AWAY, PUT_OUT, RESTING, FOUND, READ = 0, 1, 2, 3, 4


def tile_row(number, tiles_m, tiles_n, group):
    """The row of tiles of a program: groups of rows, in each of them column by column. A group of 1 is row-major."""
    first, height = _group(number, tiles_m, tiles_n, group)
    return first + _mod(_mod(number, group * tiles_n), height)


def tile_column(number, tiles_m, tiles_n, group):
    """Its column of tiles."""
    _, height = _group(number, tiles_m, tiles_n, group)
    return ops.floor(_mod(number, group * tiles_n) / height)


def _group(number, tiles_m, tiles_n, group):
    """First row of a program's group, and its height: the last one may be lower."""
    first = ops.floor(number / (group * tiles_n)) * group
    return first, ops.minimum(tiles_m - first, group)


def _mod(a, b):
    return a - ops.floor(a / b) * b


def take_out(newer, older, block):
    """A block leaves the stack. ``older`` and ``newer`` are its neighbours; number 0 is both ends."""
    newer[older[block]] = newer[block]
    older[newer[block]] = older[block]


def put_on_top(newer, older, block):
    """A block is the newest one."""
    top = older[0]
    older[block] = top
    newer[block] = 0
    newer[top] = block
    older[0] = block


def read(block, room, newer, older, state, counts):
    """One block is asked for. counts: how many lie in L2, were asked for, came from HBM."""
    counts[1] = counts[1] + 1
    if state[block] <= PUT_OUT:
        counts[2] = counts[2] + 1
        if counts[0] >= room:
            oldest = newer[0]
            take_out(newer, older, oldest)
            state[oldest] = PUT_OUT if state[oldest] > RESTING else AWAY
            counts[0] = counts[0] - 1
        counts[0] = counts[0] + 1
        state[block] = READ
    else:
        take_out(newer, older, block)
        if state[block] == RESTING:
            state[block] = FOUND
    put_on_top(newer, older, block)


@program(a_state=MOST, b_state=MOST, c_state=MOST, asked=(), read=(), wave_asked=(), wave_read=())
def run(tiles_m, tiles_n, tiles_k, group, at_a_time, room, until):
    """All waves up to that of the program before ``until``: blocks asked for and read from HBM, so far and in the last.

    a_state[row of tiles · tiles_k + step] and b_state[step · tiles_n + column] say where each block is at its end,
    c_state[number of the program] whether it is waiting (0), done (1), or in that wave (2).
    """
    tiles_m, tiles_n, tiles_k, group = int(tiles_m), int(tiles_n), int(tiles_k), int(group)
    all_a = tiles_m * tiles_k
    blocks = all_a + tiles_k * tiles_n
    newer, older, state = full(blocks + 1, 0), full(blocks + 1, 0), full(blocks + 1, 0)
    counts, before, start, end = full(3, 0), full(3, 0), 0, 0
    while start < until:
        for i in range(3):
            before[i] = counts[i]
        for block in range(1, blocks + 1):
            if state[block] > RESTING:
                state[block] = RESTING
            elif state[block] == PUT_OUT:
                state[block] = AWAY
        end = min(start + int(at_a_time), tiles_m * tiles_n)
        for step in range(tiles_k):
            for number in range(start, end):
                first = number // (group * tiles_n) * group
                height = min(tiles_m - first, group)
                place = number % (group * tiles_n)
                row, column = first + place % height, place // height
                read(1 + row * tiles_k + step, room, newer, older, state, counts)
                read(1 + all_a + step * tiles_n + column, room, newer, older, state, counts)
        start = start + int(at_a_time)
    a_state, b_state, c_state = full(all_a, 0), full(tiles_k * tiles_n, 0), full(tiles_m * tiles_n, 0)
    for number in range(end):
        c_state[number] = 1 if number < start - int(at_a_time) else 2
    for block in range(all_a):
        a_state[block] = state[1 + block]
    for block in range(tiles_k * tiles_n):
        b_state[block] = state[1 + all_a + block]
    return {"a_state": a_state, "b_state": b_state, "c_state": c_state, "asked": counts[1], "read": counts[2],
            "wave_asked": counts[1] - before[1], "wave_read": counts[2] - before[2]}


def from_hbm(tiles_m, tiles_n, tiles_k, group, at_a_time, room):
    """Blocks that the whole product reads from HBM."""
    return run(tiles_m, tiles_n, tiles_k, group, at_a_time, room, tiles_m * tiles_n)["read"]


def started(position, count):
    """Programs that have been started when an animation stands there: whole ones, and at least the first."""
    return np.minimum(np.maximum(ops.floor(position), 1.0), count)


def needed_blocks(tiles_m, tiles_n, tiles_k):
    """What must be read at the least: each block of A and of B once."""
    check.positive(tiles_m=tiles_m, tiles_n=tiles_n, tiles_k=tiles_k)
    return (tiles_m + tiles_n) * tiles_k


def found_share(found):
    """Of all reads, those that L2 answers."""
    return 1.0 - found["read"] / found["asked"]


def over_best(read, best):
    """How many times the best order's reads another one's are."""
    return read / best


def wave_found(found):
    """Blocks that the last wave found in L2."""
    return found["wave_asked"] - found["wave_read"]


def cell(index, columns):
    """(row, column) of a place in a matrix that is counted row by row."""
    row = ops.floor(index / columns)
    return row, index - row * columns


def filled_share(size, blocks, block):
    """What of a matrix and its padding is matrix."""
    return size / (blocks * block)


def first_element(number, block):
    """Where a block begins, in rows or columns."""
    return number * block


def last_element(number, block, size):
    """Its last row or column inside the matrix."""
    return np.minimum((number + 1) * block, size) - 1


def lanes_off(row, column, m, n, block_m, block_n):
    """The part of one program's lanes that its mask switches off."""
    inside_m = last_element(row, block_m, m) + 1 - first_element(row, block_m)
    inside_n = last_element(column, block_n, n) + 1 - first_element(column, block_n)
    return 1.0 - inside_m * inside_n / (block_m * block_n)
