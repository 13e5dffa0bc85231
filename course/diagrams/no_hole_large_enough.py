"""A GPU's memory at the moment of an out-of-memory error, as a replay left it: many gigabytes free, and no
hole for the block that was asked for."""

from __future__ import annotations

import numpy as np

from course.drawing.picture import Picture
from engine.base import units
from engine.one_gpu import allocator_replay

LENGTH, SPREAD, SEED, STEPS, CAPACITY = 10240, 0.5, 8, 12, 80e9  # the opening case
HIGH, GAP = 13.0, 3.0


def replayed() -> dict:
    """The run up to the request that failed."""
    return allocator_replay.of_steps(
        STEPS, LENGTH, SPREAD, seed=SEED, capacity_bytes=CAPACITY, expandable=0, moment=STEPS
    )


def draw(width: float) -> Picture:
    run = replayed()
    row_bytes = float(allocator_replay.row_bytes(CAPACITY))
    wanted, largest = float(run["wanted_bytes"]), float(run["largest_bytes"])
    allocated, reserved = float(run["allocated_bytes"]), float(run["reserved_bytes"])
    asked = f"asked for: {units.in_unit(wanted, 'GiB')}"
    hole = f"the largest free piece: {units.in_unit(largest, 'GiB')}"
    free = f"reserved and free: {units.in_unit(reserved - allocated, 'GiB')}"
    rest = f"not reserved: {units.in_unit(CAPACITY - reserved, 'GiB')}"
    picture = Picture(
        "The memory of a GPU that is out of memory: much of it is free, nowhere enough of it in one piece.",
        "Rows of memory, wrapped like lines of text. What holds a tensor is filled, what is white is free, "
        "what is dashed was never reserved. Below, to one scale, the block that was asked for and the "
        "largest free piece.",
        width,
    )
    y = picture.key(1, [("hbm", "tensors"), ("idle", free), ("elsewhere", rest)]) + 2
    seen = np.isfinite(run["left"]) & (run["held"] != allocator_replay.CACHED)
    for row in range(allocator_replay.ROWS):
        share = min(max(reserved / row_bytes - row, 0.0), 1.0)
        for look, start, end in (("idle", 0.0, share), ("elsewhere", share, 1.0)):
            if end > start:
                picture.box(start * width, y + row * (HIGH + GAP), (end - start) * width, HIGH, look, row=row)
    for left, right, row, size in zip(*(run[name][seen] for name in ("left", "right", "row", "bytes"))):
        if right > left:
            at = y + float(row) * (HIGH + GAP)
            picture.box(
                left * width, at, (right - left) * width, HIGH, "hbm", row=float(row), bytes=float(size)
            )
    y += allocator_replay.ROWS * (HIGH + GAP) + 14
    for words, size, look in ((asked, wanted, "past"), (hole, largest, "idle")):
        picture.text(0, y + 7, words)
        y += 17
        left = size / row_bytes * width
        while left > 0.5:  # wrapped like the memory above
            picture.box(0, y, min(left, width), HIGH, look, size=min(left, width) / width * row_bytes)
            left, y = left - width, y + HIGH + GAP
        y += 5
    picture.tell("tensors", free, rest, asked, hole)
    return picture
