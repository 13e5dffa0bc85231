"""A captured graph at work in a memory of a few cells: it knows addresses, not tensors. Executed, cell by cell.

The graph is y = 2·x + 1 as two kernels, one element a row of the batch: scratch[i] = 2·input[i], then output[i] =
scratch[i] + 1. Capture wrote down the three addresses and the number of rows; a replay uses them, whatever has happened
since.
"""

from __future__ import annotations

import math

import numpy as np

from engine.program import full, program

ROWS = 8                        # at most, of a batch
INPUT, SCRATCH, OUTPUT, NEW, ELSEWHERE = (ROWS * k for k in range(5))       # addresses
CELLS = 5 * ROWS
OTHERS = 7                      # what another tensor of the program holds, wherever it was put
CAPTURED, ARRIVED, COPIED, DOUBLED, ADDED = range(5)    # what has happened


def run_first(memory, rows):
    """The first kernel, as captured."""
    for i in range(rows):
        memory[SCRATCH + i] = 2 * memory[INPUT + i]


def run_second(memory, rows):
    """The second kernel, as captured."""
    for i in range(rows):
        memory[OUTPUT + i] = memory[SCRATCH + i] + 1


@program(memory=CELLS, held_at=CELLS, held=CELLS, expected=ROWS, wrong_at=ROWS, spoilt_at=ROWS, wrong=(), spoilt=(), refused=())
def replay(stage, rows, captured, copied, pooled):
    """The memory after so many stages, for a batch of ``rows`` and a graph of ``captured``; NaN where nothing stands,
    and the same without those: ``held_at`` which address, ``held`` what.

    The graph was captured on 1, 2, 3 …; the new batch is 10, 20, 30 …, a tensor of its own. ``copied``: it is copied
    into the captured input, which is refused if it is longer. ``pooled``: the graph's scratch memory is its own; if
    not, the allocator gives it to another tensor in the meantime. ``wrong_at`` are the addresses of answers that are
    not what the batch asks for, ``spoilt_at`` those of the other tensor that no longer hold what was put there.
    """
    rows, captured = int(rows), int(captured)
    memory = full(CELLS, math.nan)
    for i in range(captured):
        memory[INPUT + i] = i + 1
    run_first(memory, captured)
    run_second(memory, captured)
    other = ELSEWHERE if pooled > 0 else SCRATCH
    refused = 1 if copied > 0 and rows > captured else 0
    if stage >= ARRIVED:
        for i in range(rows):
            memory[NEW + i] = 10 * (i + 1)
        for i in range(captured):
            memory[other + i] = OTHERS
    if refused == 0:
        if stage >= COPIED and copied > 0:
            for i in range(rows):
                memory[INPUT + i] = memory[NEW + i]
        if stage >= DOUBLED:
            run_first(memory, captured)
        if stage >= ADDED:
            run_second(memory, captured)
    expected, wrong_at, spoilt_at = [], [], []
    for i in range(rows):
        expected.append(20 * (i + 1) + 1)
        if stage >= ADDED and (i >= captured or memory[OUTPUT + i] != expected[i]):
            wrong_at.append(OUTPUT + i)
    if stage >= ARRIVED:
        for i in range(captured):
            if memory[other + i] != OTHERS:
                spoilt_at.append(other + i)
    held_at, held = [], []
    for i in range(CELLS):
        if not math.isnan(memory[i]):
            held_at.append(i)
            held.append(memory[i])
    return {"memory": memory, "held_at": held_at, "held": held, "expected": expected,
            "wrong_at": wrong_at, "spoilt_at": spoilt_at, "wrong": len(wrong_at), "spoilt": len(spoilt_at),
            "refused": refused}


def place(address):
    """(which of the five stretches, which cell of it)."""
    stretch = np.floor(address / ROWS)
    return stretch, address - stretch * ROWS


def right_share(found, rows):
    """The part of the batch that gets its answer."""
    return 1.0 - found["wrong"] / rows


def stage_number(stage):
    """The stage that has been reached."""
    return np.floor(stage)
