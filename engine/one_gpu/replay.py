"""A captured graph, replayed cell by cell in a memory of a few cells. A graph knows addresses, not tensors.

The graph is y = 2·x + 1 as two kernels, one element per row of the batch: scratch[i] = 2·input[i], then
output[i] = scratch[i] + 1. Capture recorded the three addresses and the number of rows; a replay uses them,
whatever has happened since.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.base.program import full, program
from engine.base.types import Real

ROWS = 8  # the largest batch
INPUT, SCRATCH, OUTPUT, NEW, ELSEWHERE = (ROWS * k for k in range(5))  # addresses
CELLS = 5 * ROWS
FIRST, STEP = 10, 5  # of the new batch: what comes of it has two digits
OTHERS = 7  # the value in another tensor of the program, wherever it is
CAPTURED, ARRIVED, COPIED, DOUBLED, ADDED = range(5)  # what has happened


def run_first(memory: list[float], rows: int) -> None:
    """The first kernel, as captured."""
    for i in range(rows):
        memory[SCRATCH + i] = 2.0 * memory[INPUT + i]


def run_second(memory: list[float], rows: int) -> None:
    """The second kernel, as captured."""
    for i in range(rows):
        memory[OUTPUT + i] = memory[SCRATCH + i] + 1


@program(
    memory=CELLS,
    held_at=CELLS,
    held=CELLS,
    expected=ROWS,
    wrong_at=ROWS,
    spoilt_at=ROWS,
    wrong=(),
    spoilt=(),
    refused=(),
)
def replay(stage: float, rows: float, captured: float, copied: float, pooled: float) -> dict[str, Any]:
    """The memory after this many stages, for a batch of ``rows`` and a graph captured with ``captured`` rows;
    NaN where a cell is empty. ``held_at`` and ``held`` are the addresses and values of the cells that are not
    empty.

    The graph was captured on 1, 2, 3 …; the new batch is 10, 15, 20 …, in a tensor of its own. ``copied``:
    the new batch is copied into the captured input; a batch that is too long is refused. ``pooled``: the
    graph's scratch memory is private; if not, the allocator gives it to another tensor in the meantime.
    ``wrong_at`` are the addresses of results that are wrong for the batch, ``spoilt_at`` those of the other
    tensor whose values were overwritten.
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
            memory[NEW + i] = FIRST + STEP * i
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
        expected.append(2 * (FIRST + STEP * i) + 1)
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
    return {
        "memory": memory,
        "held_at": held_at,
        "held": held,
        "expected": expected,
        "wrong_at": wrong_at,
        "spoilt_at": spoilt_at,
        "wrong": len(wrong_at),
        "spoilt": len(spoilt_at),
        "refused": refused,
    }


def place(address: Real) -> tuple[Real, Real]:
    """(which of the five regions, which cell in it)."""
    stretch = np.floor(address / ROWS)
    return stretch, address - stretch * ROWS
