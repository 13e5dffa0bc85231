"""A recorded training step, replayed through the caching allocator at any length, memory size and setting.

The recording (record/training_steps.py) lists the storages that PyTorch made and freed, in order, at two
lengths. Their sizes are linear in the length, so each step can be replayed at a length of its own.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from engine.base.program import full, program
from engine.base.types import Real, Truth
from engine.one_gpu import recordings
from engine.one_gpu.allocator import (
    FREE,
    UNMAPPED,
    USED,
    Memory,
    largest_free,
    release,
    rounded_bytes,
    stuck_bytes,
    take,
    unused,
)

STEPS = 12  # at most, in one replay
SEEDS = 40  # draws of lengths that are compared
SAMPLES = 24  # points per step on the timeline
ROWS = 16  # rows in the picture of the GPU's memory
PIECES, FRAMES = 1000, 600  # the most blocks and segments in that picture
THIN = 0.003  # share of a row: shorter pieces are drawn together with others of their kind
WEIGHTS, OPTIMIZER, STEP, CACHED = range(4)  # what a block holds
LEHMER, PRIME = 48271, 2**31 - 1


class Pieces(NamedTuple):
    """Pieces of the picture of the GPU's memory, as columns."""

    left: list[float]  # as shares of a row
    right: list[float]
    row: list[int]
    held: list[float]  # what is in it
    size: list[float]
    blocks: list[int]  # how many are drawn together


class Moment(NamedTuple):
    """The memory at one moment of a run."""

    reached: float  # steps
    tokens: int  # of each sequence of the step
    allocated: float  # bytes
    reserved: float
    largest: float  # the largest free block
    stuck: float
    mallocs: int
    frees: int
    retries: int


@cache
def trace() -> dict:
    """The recording as columns: the events of three phases, the purpose of each storage, and its size as a
    linear function of the length. There are only a few such functions, and each storage has the number of its
    function."""
    found = recordings.load("training_steps")
    events = {phase: np.array(column, dtype=float) for phase, column in found["events"].items()}
    made, gone = (set(sign * events["first"][sign * events["first"] > 0]) for sign in (1, -1))
    kinds = np.full(len(found["fixed_bytes"]), float(STEP))
    kinds[events["setup"].astype(int) - 1] = WEIGHTS
    kinds[[int(n) - 1 for n in made - gone]] = OPTIMIZER
    fixed, per_length = (np.array(found[name], dtype=float) for name in ("fixed_bytes", "bytes_per_length"))
    several, lines = np.unique([fixed, per_length], axis=1, return_inverse=True)
    return events | {
        "fixed_bytes": fixed,
        "bytes_per_length": per_length,
        "kinds": kinds,
        "lines": lines.ravel() * 1.0,
        "line_fixed_bytes": several[0],
        "line_bytes_per_length": several[1],
    }


def length_of_step(step: int, length: float, spread: float, seed: float) -> int:
    """Tokens per sequence in a step: drawn uniformly from length · (1 ± spread), always the same for the same
    seed."""
    drawn = (seed + 1) * 7919
    for _ in range(step + 4):
        drawn = drawn * LEHMER % PRIME
    return max(1, math.floor(length * (1 + spread * (2 * drawn / PRIME - 1)) + 0.5))


def lay(pieces: Pieces, start: float, end: float, whole: float, kind: float, size: float, count: int) -> None:
    """Append the pieces of a stretch of memory, one for each row that it lies in."""
    row = math.floor(start / whole)
    while start < end:
        stop = min(end, (row + 1) * whole)
        pieces.left.append((start - row * whole) / whole)
        pieces.right.append((stop - row * whole) / whole)
        pieces.row.append(row)
        pieces.held.append(kind)
        pieces.size.append(size)
        pieces.blocks.append(count)
        start = stop
        row += 1


def draw(memory: Memory, whole: float, pieces: Pieces, frames: Pieces) -> None:
    """Draw everything that is reserved, segment by segment in the order of creation, wrapped into rows."""
    thin, place = THIN * whole, 0
    for segment in memory.segments:
        number, began, start, size, count, kind = segment.first, place, place, 0, 0, -1
        while segment.alive > 0 and number >= 0:
            block = memory.blocks[number]
            if block.state != UNMAPPED:
                held = CACHED if block.state == FREE else block.kind
                alike = held == kind and (size < thin or block.size < thin)
                if not alike:
                    lay(pieces, start, place, whole, kind, size, count)
                    start, size, count, kind = place, 0, 0, held
                size += block.size
                count += 1
                place += block.size
            number = block.after
        lay(pieces, start, place, whole, kind, size, count)
        if place - began >= thin:
            lay(frames, began, place, whole, 0, place - began, 1)


def free_beside(memory: Memory, kind: int) -> float:
    """Free bytes in the segments where a block of this kind is in use."""
    beside = 0
    for segment in memory.segments:
        number, free, tenants = segment.first, 0, 0
        while segment.alive > 0 and number >= 0:
            block = memory.blocks[number]
            if block.state == FREE:
                free += block.size
            elif block.state == USED and block.kind == kind:
                tenants += 1
            number = block.after
        beside += free if tenants > 0 else 0
    return beside


def cached_alone(pieces: Pieces) -> Pieces:
    """The pieces that hold nothing. Only these are hatched, because hatching is slow to paint."""
    found = Pieces([], [], [], [], [], [])
    for piece in range(len(pieces.held)):
        if pieces.held[piece] == CACHED:
            found.left.append(pieces.left[piece])
            found.right.append(pieces.right[piece])
            found.row.append(pieces.row[piece])
    return found


def tensors_of(events: list[float]) -> list[int]:
    """The tensor that each event allocates or frees, counted from 0."""
    return [int(abs(events[i])) - 1 for i in range(len(events))]


def sizes_at(tokens: int, fixed_bytes: list[float], bytes_per_length: list[float]) -> list[int]:
    """The block size of a tensor for each size function, at this length."""
    return [
        rounded_bytes(fixed_bytes[line] + bytes_per_length[line] * tokens) for line in range(len(fixed_bytes))
    ]


def live_bytes(
    events: list[float], tensor_of: list[int], line_of: list[int], sizes: list[int], live: int
) -> tuple[int, int]:
    """The peak of the live bytes during these events, and the live bytes at their end."""
    most = live
    for number in range(len(events)):
        size = sizes[line_of[tensor_of[number]]]
        if events[number] > 0:
            live += size
            most = max(most, live)
        else:
            live -= size
    return most, live


def needed_bytes(
    phases: list[list[Any]],
    tensors: list[list[Any]],
    line_of: list[int],
    fixed_bytes: list[float],
    bytes_per_length: list[float],
    steps: float,
    length: float,
    spread: float,
    seed: float,
) -> int:
    """The peak of the live bytes over all steps. Of several steps that begin in the same state, the one with
    the longest sequences needs the most, since no tensor shrinks with the length."""
    needed, live, longest = 0, 0, 0
    for step in range(int(steps) + 1):
        tokens = length_of_step(step, length, spread, seed)
        if step < 2:
            most, live = live_bytes(
                phases[step], tensors[step], line_of, sizes_at(tokens, fixed_bytes, bytes_per_length), live
            )
            needed = max(needed, most)
        else:
            longest = max(longest, tokens)
    if longest > 0:
        most, live = live_bytes(
            phases[2], tensors[2], line_of, sizes_at(longest, fixed_bytes, bytes_per_length), live
        )
        needed = max(needed, most)
    return needed


def moment_of(memory: Memory, reached: float, tokens: int) -> Moment:
    """The memory as it is now."""
    return Moment(
        reached,
        tokens,
        memory.allocated,
        memory.reserved,
        largest_free(memory),
        stuck_bytes(memory),
        memory.mallocs,
        memory.frees,
        memory.retries,
    )


@program(
    left=PIECES,
    right=PIECES,
    row=PIECES,
    held=PIECES,
    bytes=PIECES,
    count=PIECES,
    free_left=PIECES,
    free_right=PIECES,
    free_row=PIECES,
    frame_left=FRAMES,
    frame_right=FRAMES,
    frame_row=FRAMES,
    frame_bytes=FRAMES,
    at=STEPS * SAMPLES + 1,
    allocated_at_bytes=STEPS * SAMPLES + 1,
    reserved_at_bytes=STEPS * SAMPLES + 1,
    allocated_bytes=(),
    reserved_bytes=(),
    largest_bytes=(),
    mallocs=(),
    frees=(),
    retries=(),
    now=(),
    length=(),
    peak_allocated_bytes=(),
    peak_reserved_bytes=(),
    all_frees=(),
    all_retries=(),
    reached=(),
    failed=(),
    wanted_bytes=(),
    last_allocated_bytes=(),
    last_reserved_bytes=(),
    last_largest_bytes=(),
    needed_bytes=(),
    stuck_bytes=(),
    last_stuck_bytes=(),
    last_beside_state_bytes=(),
)
def replay(
    setup: list[float],
    first: list[float],
    steady: list[float],
    kinds: list[float],
    lines: list[float],
    fixed_bytes: list[float],
    bytes_per_length: list[float],
    steps: float,
    length: float,
    spread: float,
    seed: float,
    capacity_bytes: float,
    expandable: float,
    moment: float,
) -> dict[str, Any]:
    """The allocator after each event of the steps, and all its blocks at one moment (in steps). A tensor's
    size follows one of a few ``lines``: fixed bytes plus bytes per token of the length.

    ``failed``: the run ends before its last step, at ``reached`` steps, because ``wanted_bytes`` were not
    available; a later moment shows how it ended. Peaks, retries and last values are those of the run up to
    that point. ``needed_bytes`` is what all its steps would need at once if the tensors were packed without
    gaps, however the run ends. ``stuck_bytes`` are free but cannot be returned to the driver;
    ``last_beside_state_bytes`` are free in a segment that holds Adam's state.
    """
    memory = unused(capacity_bytes, expandable)
    pieces, frames = Pieces([], [], [], [], [], []), Pieces([], [], [], [], [], [])
    at, allocated_at, reserved_at, held_by = [], [], [], full(len(kinds), -1)
    most, peak, peak_reserved, failed, wanted, reached = 0, 0, 0, 0, 0, 0
    shown = []  # the one moment that is drawn
    line_of = [int(lines[i]) for i in range(len(lines))]
    phases = [setup, first, steady]
    tensors = [tensors_of(setup), tensors_of(first), tensors_of(steady)]
    for step in range(int(steps) + 1):
        events, tensor_of = phases[min(step, 2)], tensors[min(step, 2)]
        tokens = length_of_step(step, length, spread, seed)
        sizes = sizes_at(tokens, fixed_bytes, bytes_per_length)
        due = len(events) / SAMPLES if step > 0 else len(events)  # events until its next point
        to_show = len(shown) == 0 and (moment <= step or step == steps)
        look = 0 if to_show else due  # the number of events before the next check
        for number in range(len(events)):
            tensor = tensor_of[number]
            if events[number] < 0:
                release(memory, held_by[tensor])
            else:
                line = line_of[tensor]
                block = take(memory, sizes[line], kinds[tensor])
                held_by[tensor] = block
                if block < 0:
                    failed, look, wanted = 1, 0, fixed_bytes[line] + bytes_per_length[line] * tokens
                if memory.allocated > most:
                    most = memory.allocated
                if memory.reserved > peak_reserved:
                    peak_reserved = memory.reserved
            if number + 1 < look:
                continue
            share = (number + 1) / len(events)
            reached = step - 1 + share if step > 0 else 0
            if number + 1 >= due or failed > 0:
                at.append(reached)
                allocated_at.append(most)
                reserved_at.append(memory.reserved)
                peak = max(peak, most)
                most = memory.allocated
                due = (math.floor(share * SAMPLES) + 1) * len(events) / SAMPLES
            if len(shown) == 0 and (
                failed > 0
                or (share >= 1 and step == steps)
                or (reached >= moment and (step > 0 or share >= 1))
            ):
                to_show = False
                shown.append(moment_of(memory, reached, tokens))
                draw(memory, row_bytes(capacity_bytes), pieces, frames)
            look = 0 if to_show else due
            if failed > 0:
                break
        if failed > 0:
            break
    needed = needed_bytes(
        phases, tensors, line_of, fixed_bytes, bytes_per_length, steps, length, spread, seed
    )
    free = cached_alone(pieces)
    return {
        "left": pieces.left,
        "right": pieces.right,
        "row": pieces.row,
        "held": pieces.held,
        "free_left": free.left,
        "free_right": free.right,
        "free_row": free.row,
        "bytes": pieces.size,
        "count": pieces.blocks,
        "frame_left": frames.left,
        "frame_right": frames.right,
        "frame_row": frames.row,
        "frame_bytes": frames.size,
        "at": at,
        "allocated_at_bytes": allocated_at,
        "reserved_at_bytes": reserved_at,
        "allocated_bytes": shown[0].allocated,
        "reserved_bytes": shown[0].reserved,
        "largest_bytes": shown[0].largest,
        "mallocs": shown[0].mallocs,
        "frees": shown[0].frees,
        "retries": shown[0].retries,
        "now": shown[0].reached,
        "length": shown[0].tokens,
        "peak_allocated_bytes": peak,
        "peak_reserved_bytes": peak_reserved,
        "all_frees": memory.frees,
        "all_retries": memory.retries,
        "reached": reached,
        "failed": failed,
        "wanted_bytes": wanted,
        "last_allocated_bytes": memory.allocated,
        "last_reserved_bytes": memory.reserved,
        "last_largest_bytes": largest_free(memory),
        "needed_bytes": needed,
        "stuck_bytes": shown[0].stuck,
        "last_stuck_bytes": stuck_bytes(memory),
        "last_beside_state_bytes": free_beside(memory, OPTIMIZER),
    }


def of_steps(
    steps: Real, length: Real, spread: Real, seed: Real, capacity_bytes: Real, expandable: Real, moment: Real
) -> dict:
    """The recorded step, repeated."""
    of = trace()
    return replay(
        of["setup"],
        of["first"],
        of["steady"],
        of["kinds"],
        of["lines"],
        of["line_fixed_bytes"],
        of["line_bytes_per_length"],
        steps,
        length,
        spread,
        seed,
        capacity_bytes,
        expandable,
        moment,
    )


def longer_than_before(steps: int, length: Real, spread: float, seed: float) -> Real:
    """In how many steps the batch is longer than in all steps before. The first step counts as one of
    them."""
    lengths = [length_of_step(step, length, spread, seed) for step in range(1, steps + 1)]
    return sum(longer > max(lengths[:step], default=0) for step, longer in enumerate(lengths))


@cache
def over_seeds(length: Real, spread: float, capacity_bytes: Real) -> dict:
    """The effect of the random lengths: for each seed, peak reserved over peak allocated, and how often a
    step was longer than all steps before it."""
    seeds = range(1, SEEDS + 1)
    runs = [of_steps(STEPS, length, spread, seed, capacity_bytes, 0, STEPS) for seed in seeds]
    return {
        "ratio": np.array([peak_ratio(run) for run in runs]),
        "longer": np.array([longer_than_before(STEPS, length, spread, seed) for seed in seeds]),
    }


def row_bytes(capacity_bytes: Real) -> Real:
    """The bytes that one row of the picture represents."""
    return capacity_bytes / ROWS


def fits_in_sum(run: dict[str, Real], capacity_bytes: Real) -> Truth:
    """Whether a run that failed would have had room for all its tensors at any time, packed without gaps."""
    return (run["failed"] > 0) & (run["needed_bytes"] <= capacity_bytes)


def had_room(run: dict[str, Real], capacity_bytes: Real) -> Truth:
    """Whether the request that failed would have fitted into the free memory of the cache and of the driver
    together."""
    return (run["failed"] > 0) & (run["last_allocated_bytes"] + run["wanted_bytes"] <= capacity_bytes)


def too_much_later(run: dict[str, Real], capacity_bytes: Real) -> Truth:
    """Whether the request that failed had enough room in total, while a later one could not fit however
    memory is packed."""
    return had_room(run, capacity_bytes) & (run["needed_bytes"] > capacity_bytes)


def too_much(run: dict[str, Real], capacity_bytes: Real) -> Truth:
    """Whether the request that failed exceeds all free memory."""
    return (run["failed"] > 0) & (run["needed_bytes"] > capacity_bytes) & (had_room(run, capacity_bytes) == 0)


def peak_ratio(run: dict[str, Real]) -> Real:
    """Peak reserved over peak allocated."""
    return run["peak_reserved_bytes"] / run["peak_allocated_bytes"]


def excess(run: dict[str, Real]) -> Real:
    """How much more was reserved than allocated at the peaks, as a share of the allocated."""
    return peak_ratio(run) - 1
