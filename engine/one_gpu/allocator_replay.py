"""A recorded training step, replayed through the caching allocator at any length, memory size and setting.

The recording (record/training_steps.py) lists the storages that PyTorch made and freed, in order, at two
lengths. Their sizes are linear in the length, so each step can be replayed at a length of its own.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from engine.base.program import full, program
from engine.base.types import Real, Truth
from engine.one_gpu import recordings
from engine.one_gpu.allocator import (
    AFTER,
    ALIVE,
    ALLOCATED,
    CAPACITY,
    EXPANDABLE,
    FIRST,
    FREE,
    FREES,
    KIND,
    MALLOCS,
    RESERVED,
    RETRIES,
    SIZE,
    STATE,
    UNMAPPED,
    USED,
    largest_free,
    release,
    rounded_bytes,
    stuck_bytes,
    take,
)

STEPS = 12  # at most, in one replay
SEEDS = 40  # draws of lengths that are compared
SAMPLES = 24  # points per step on the timeline
ROWS = 16  # rows in the picture of the GPU's memory
PIECES, FRAMES = 1000, 600  # the most blocks and segments in that picture
THIN = 0.003  # share of a row: shorter pieces are drawn together with others of their kind
WEIGHTS, OPTIMIZER, STEP, CACHED = range(4)  # what a block holds
LEFT, RIGHT, ROW, HELD, BYTES, COUNT = range(6)  # columns of a piece of the picture
LEHMER, PRIME = 48271, 2**31 - 1


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


def lay(
    pieces: list[list[Any]], start: float, end: float, whole: float, kind: float, size: float, count: int
) -> None:
    """Append the pieces of a stretch of memory, one for each row that it lies in."""
    row = math.floor(start / whole)
    while start < end:
        stop = min(end, (row + 1) * whole)
        pieces[LEFT].append((start - row * whole) / whole)
        pieces[RIGHT].append((stop - row * whole) / whole)
        pieces[ROW].append(row)
        pieces[HELD].append(kind)
        pieces[BYTES].append(size)
        pieces[COUNT].append(count)
        start = stop
        row += 1


def held(blocks: list[list[Any]], block: int) -> float:
    """What a block holds; CACHED if it is free."""
    return CACHED if blocks[block][STATE] == FREE else blocks[block][KIND]


def draw(
    segments: list[list[Any]],
    blocks: list[list[Any]],
    whole: float,
    pieces: list[list[Any]],
    frames: list[list[Any]],
) -> None:
    """Draw everything that is reserved, segment by segment in the order of creation, wrapped into rows."""
    thin, place = THIN * whole, 0
    for segment in range(len(segments[FIRST])):
        block, began, start, size, count, kind = segments[FIRST][segment], place, place, 0, 0, -1
        while segments[ALIVE][segment] > 0 and block >= 0:
            if blocks[block][STATE] != UNMAPPED:
                alike = held(blocks, block) == kind and (size < thin or blocks[block][SIZE] < thin)
                if not alike:
                    lay(pieces, start, place, whole, kind, size, count)
                    start, size, count, kind = place, 0, 0, held(blocks, block)
                size += blocks[block][SIZE]
                count += 1
                place += blocks[block][SIZE]
            block = blocks[block][AFTER]
        lay(pieces, start, place, whole, kind, size, count)
        if place - began >= thin:
            lay(frames, began, place, whole, 0, place - began, 1)


def free_beside(segments: list[list[Any]], blocks: list[list[Any]], kind: int) -> float:
    """Free bytes in the segments where a block of this kind is in use."""
    beside = 0
    for segment in range(len(segments[FIRST])):
        block, free, tenants = segments[FIRST][segment], 0, 0
        while segments[ALIVE][segment] > 0 and block >= 0:
            if blocks[block][STATE] == FREE:
                free += blocks[block][SIZE]
            elif blocks[block][STATE] == USED and blocks[block][KIND] == kind:
                tenants += 1
            block = blocks[block][AFTER]
        beside += free if tenants > 0 else 0
    return beside


def cached_alone(pieces: list[list[Any]]) -> list[list[Any]]:
    """The pieces that hold nothing. Only these are hatched, because hatching is slow to paint."""
    found = [[], [], []]
    for piece in range(len(pieces[HELD])):
        if pieces[HELD][piece] == CACHED:
            found[LEFT].append(pieces[LEFT][piece])
            found[RIGHT].append(pieces[RIGHT][piece])
            found[ROW].append(pieces[ROW][piece])
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
    state = full(7, 0)
    state[CAPACITY], state[EXPANDABLE] = capacity_bytes, expandable
    segments, blocks, caches = [[], [], []], [], [[[], []], [[], []]]
    pieces, frames = [[], [], [], [], [], []], [[], [], [], [], [], []]
    at, allocated_at, reserved_at, held_by = [], [], [], full(len(kinds), -1)
    most, peak, peak_reserved, failed, wanted, reached, shown = 0, 0, 0, 0, 0, 0, 0
    allocated, reserved, largest, mallocs, frees, retries, now, tokens, drawn, stuck = (
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    )
    line_of = [int(lines[i]) for i in range(len(lines))]
    phases = [setup, first, steady]
    tensors = [tensors_of(setup), tensors_of(first), tensors_of(steady)]
    for step in range(int(steps) + 1):
        events, tensor_of = phases[min(step, 2)], tensors[min(step, 2)]
        tokens = length_of_step(step, length, spread, seed)
        sizes = sizes_at(tokens, fixed_bytes, bytes_per_length)
        due = len(events) / SAMPLES if step > 0 else len(events)  # events until its next point
        to_show = shown == 0 and (moment <= step or step == steps)
        look = 0 if to_show else due  # the number of events before the next check
        for number in range(len(events)):
            tensor = tensor_of[number]
            if events[number] < 0:
                release(state, segments, blocks, caches, held_by[tensor])
            else:
                line = line_of[tensor]
                block = take(state, segments, blocks, caches, sizes[line], kinds[tensor])
                held_by[tensor] = block
                if block < 0:
                    failed, look, wanted = 1, 0, fixed_bytes[line] + bytes_per_length[line] * tokens
                if state[ALLOCATED] > most:
                    most = state[ALLOCATED]
                if state[RESERVED] > peak_reserved:
                    peak_reserved = state[RESERVED]
            if number + 1 < look:
                continue
            share = (number + 1) / len(events)
            reached = step - 1 + share if step > 0 else 0
            if number + 1 >= due or failed > 0:
                at.append(reached)
                allocated_at.append(most)
                reserved_at.append(state[RESERVED])
                peak = max(peak, most)
                most = state[ALLOCATED]
                due = (math.floor(share * SAMPLES) + 1) * len(events) / SAMPLES
            if shown == 0 and (
                failed > 0
                or (share >= 1 and step == steps)
                or (reached >= moment and (step > 0 or share >= 1))
            ):
                shown, now, drawn, to_show = 1, reached, tokens, False
                allocated, reserved, largest = state[ALLOCATED], state[RESERVED], largest_free(caches)
                stuck = stuck_bytes(state, segments, blocks, caches)
                mallocs, frees, retries = state[MALLOCS], state[FREES], state[RETRIES]
                draw(segments, blocks, row_bytes(capacity_bytes), pieces, frames)
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
        "left": pieces[LEFT],
        "right": pieces[RIGHT],
        "row": pieces[ROW],
        "held": pieces[HELD],
        "free_left": free[LEFT],
        "free_right": free[RIGHT],
        "free_row": free[ROW],
        "bytes": pieces[BYTES],
        "count": pieces[COUNT],
        "frame_left": frames[LEFT],
        "frame_right": frames[RIGHT],
        "frame_row": frames[ROW],
        "frame_bytes": frames[BYTES],
        "at": at,
        "allocated_at_bytes": allocated_at,
        "reserved_at_bytes": reserved_at,
        "allocated_bytes": allocated,
        "reserved_bytes": reserved,
        "largest_bytes": largest,
        "mallocs": mallocs,
        "frees": frees,
        "retries": retries,
        "now": now,
        "length": drawn,
        "peak_allocated_bytes": peak,
        "peak_reserved_bytes": peak_reserved,
        "all_frees": state[FREES],
        "all_retries": state[RETRIES],
        "reached": reached,
        "failed": failed,
        "wanted_bytes": wanted,
        "last_allocated_bytes": state[ALLOCATED],
        "last_reserved_bytes": state[RESERVED],
        "last_largest_bytes": largest_free(caches),
        "needed_bytes": needed,
        "stuck_bytes": stuck,
        "last_stuck_bytes": stuck_bytes(state, segments, blocks, caches),
        "last_beside_state_bytes": free_beside(segments, blocks, OPTIMIZER),
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
