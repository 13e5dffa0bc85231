"""Pipeline schedules, executed: when each pass starts, what each stage waits for, and how many activations it
holds.

One scheduler executes all schedules. It is given each stage's order of work (pipeline_orders) and the
dependencies of each block; a block starts once both its stage and its input are ready. The closed forms of
pipeline.py are checked against it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import check
from engine.base.program import full, program, zeros
from engine.mechanism import pipeline
from engine.mechanism.pipeline import KEPT_FOR_WEIGHTS, TURNS
from engine.mechanism.pipeline_orders import (
    BACKWARD,
    BESIDE,
    DUALPIPE,
    DUALPIPE_V,
    FORWARD,
    GATHER,
    INPUT,
    INTERLEAVED,
    WEIGHT,
    ZB_V,
    Stuck,
    batch_of,
    is_own,
    kind_of,
    order,
    own_order,
    place_of,
)
from engine.mechanism.timeline import schedule as run_tasks

if TYPE_CHECKING:
    import numpy as np

STAGES, MICRO_BATCHES, CHUNKS = 16, 64, 4
BLOCKS = 2 * STAGES * MICRO_BATCHES * CHUNKS
NOTHING = -1  # no block
NOT_OWN = [0.0]
STEP_END = 4  # instead of a kind: the stage is done and waits for the end of the step


class Blocks(NamedTuple):
    """All blocks of a step, as columns, stage by stage."""

    stage: list[int]
    kind: list[int]
    batch: list[int]
    needs: list[list[int]]  # the block that each depends on
    start_s: list[float]
    end_s: list[float]
    begins: list[int]  # for each stage, its first block


class Idle(NamedTuple):
    """The stretches in which a stage waits, as columns."""

    stage: list[int]
    start_s: list[float]
    end_s: list[float]
    kind: list[float]  # of the block that it waits for …
    batch: list[float]
    source: list[float]  # … and the stage from which that block's input comes
    wire_s: list[float]  # how much of the wait is for the message


class Others(NamedTuple):
    """The stretches in which another step uses a stage, as columns."""

    stage: list[int]
    start_s: list[float]
    end_s: list[float]
    next: list[int]  # 0: the step before, 1: the step after


@program(
    stage=BLOCKS,
    kind=BLOCKS,
    batch=BLOCKS,
    place=BLOCKS,
    beside=BLOCKS,
    start_s=BLOCKS,
    end_s=BLOCKS,
    idle_stage=BLOCKS,
    idle_start_s=BLOCKS,
    idle_end_s=BLOCKS,
    idle_kind=BLOCKS,
    idle_batch=BLOCKS,
    idle_from=BLOCKS,
    idle_wire_s=BLOCKS,
    other_stage=2 * STAGES,
    other_start_s=2 * STAGES,
    other_end_s=2 * STAGES,
    other_next=2 * STAGES,
    stuck_stage=STAGES,
    stuck_kind=STAGES,
    stuck_batch=STAGES,
    stuck_from=STAGES,
    stuck_s=STAGES,
    busy_s=STAGES,
    held=STAGES,
    total_s=(),
    step_s=(),
    bubble=(),
    stages=(),
    micro_batches=(),
    own=(),
)
def run(
    schedule: float,
    stages: float,
    micro_batches: float,
    chunks: float,
    forward_s: float,
    input_s: float,
    weight_s: float,
    together: float,
    message_s: float,
    first_extra: float,
    last_extra: float,
    in_step: float,
    own: list[float],
) -> dict[str, Any]:
    """One training step with a schedule of pipeline_orders, or with somebody's ``own`` (own_order). Times are
    for one micro-batch on a whole stage.

    ``together``: the time of a forward and a backward that overlap (DualPipe), relative to running one after
    the other. ``first_extra``, ``last_extra``: the work added by the embedding and the output layer, in
    stages. ``in_step``: all stages end a step together (1), as a global gradient norm requires, or each by
    itself (0). DualPipe runs with the next larger numbers of stages and micro-batches that it supports.

    Returns one row per block: its stage, kind, micro-batch and place, whether another overlaps it (1: the
    forward, 2: the backward of the pair), its start and end. One row per idle stretch of a stage: kind,
    micro-batch and stage of the block that the stage waits for, and how much of the wait is for the message;
    if the stage has finished, only the kind STEP_END. ``other_…``: the stretches in which the step before
    still uses a stage (0), or the step after already does (1). Per stage: its working time, and the most
    micro-batches whose activations it holds at once. ``total_s`` is the time from the first start to the last
    end, ``step_s`` the time per step in a sequence of them, ``bubble`` the idle share of that. ``stuck_…``:
    if an own schedule cannot go on, the pass that each stage waits for without end, the stage from which it
    should come, and since when. ``own`` is 2 for an own schedule that cannot go on, 1 for one that can, and 0
    without an own schedule. Leaves out messages that delay each other.
    """
    schedule, stages, batches = int(schedule), int(stages), int(micro_batches)
    chunks = int(chunks) if schedule == INTERLEAVED else 1
    if schedule == ZB_V or schedule == DUALPIPE_V:  # noqa: SIM109 (programs know no tuple)
        chunks = TURNS
    if schedule == DUALPIPE:
        stages = even(stages)
        batches = max(2 * stages, even(batches))
    if schedule == DUALPIPE_V:
        batches = max(2 * stages, batches)
    work, begins = [], [0]
    stuck = Stuck([], [], [], [], [])
    for stage in range(stages):
        if is_own(own):
            own_order(work, own, stage, stages, stuck)
        else:
            order(work, schedule, stage, stages, batches, chunks)
        begins.append(len(work))
    kind, place = [kind_of(work[i]) for i in range(len(work))], [place_of(work[i]) for i in range(len(work))]
    batch, beside = [batch_of(work[i]) for i in range(len(work))], zeros(len(work))
    stage_of, needs = zeros(len(work)), [[] for _ in range(len(work))]
    find_needs(kind, place, batch, begins, stages * chunks, batches, stage_of, needs)
    lasts_s = zeros(len(work))
    for number in range(len(work)):
        extra = (first_extra if place[number] == 0 else 0) + (
            last_extra if place[number] == stages * chunks - 1 else 0
        )
        lasts_s[number] = (1 / chunks + extra) * pass_s(kind[number], forward_s, input_s, weight_s)
    join_pairs(kind, together, lasts_s, beside)
    start_s, end_s, _ = run_tasks(stages, stage_of, lasts_s, full(len(work), message_s), needs)

    total_s, step_s, busy_s, held = max(end_s), 0.0, zeros(stages), zeros(stages)
    for stage in range(stages):
        first, last = begins[stage], begins[stage + 1] - 1
        if last < first:  # the stage of an own schedule is stuck at its first pass
            continue
        step_s = total_s if in_step else max(step_s, end_s[last] - start_s[first])
        for number in range(first, last + 1):
            busy_s[stage] += lasts_s[number]
        held[stage] = most_held(kind, first, last, chunks)
    if len(stuck.stage) > 0:
        step_s = total_s  # there is no next step
    for number in range(len(stuck.stage)):
        first, last = begins[stuck.stage[number]], begins[stuck.stage[number] + 1] - 1
        stuck.since_s.append(end_s[last] if last >= first else 0)
    blocks = Blocks(stage_of, kind, batch, needs, start_s, end_s, begins)
    idle, others = Idle([], [], [], [], [], [], []), Others([], [], [], [])
    for stage in range(stages):
        find_gaps(stage, blocks, message_s, total_s, step_s, stuck, idle, others)
    for number in range(len(work)):
        if beside[number] == 1:
            start_s[number], end_s[number] = start_s[number + 1], end_s[number + 1]
    share = 1 - sum_of(busy_s) / (stages * step_s)
    return {
        "stage": stage_of,
        "kind": [plain(kind[i]) for i in range(len(work))],
        "batch": batch,
        "place": place,
        "beside": beside,
        "start_s": start_s,
        "end_s": end_s,
        "idle_stage": idle.stage,
        "idle_start_s": idle.start_s,
        "idle_end_s": idle.end_s,
        "idle_kind": idle.kind,
        "idle_batch": idle.batch,
        "idle_from": idle.source,
        "idle_wire_s": idle.wire_s,
        "other_stage": others.stage,
        "other_start_s": others.start_s,
        "other_end_s": others.end_s,
        "other_next": others.next,
        "stuck_stage": stuck.stage,
        "stuck_kind": stuck.kind,
        "stuck_batch": stuck.batch,
        "stuck_from": stuck.source,
        "stuck_s": stuck.since_s,
        "busy_s": busy_s,
        "held": held,
        "total_s": total_s,
        "step_s": step_s,
        "bubble": share if share > 1e-9 else 0,
        "stages": stages,
        "micro_batches": batches,
        "own": 2 if len(stuck.stage) > 0 else 1 if is_own(own) else 0,
    }


def even(count: int) -> int:
    """The next even number."""
    return count + count % 2


def plain(kind: int) -> int:
    """The kind, without the mark for overlap."""
    return FORWARD if kind == BESIDE else kind


def sum_of(values: list[float]) -> float:
    """The sum of a list."""
    total = 0
    for value in values:
        total += value
    return total


def find_needs(
    kind: list[int],
    place: list[int],
    batch: list[int],
    begins: list[int],
    places: int,
    batches: int,
    stage_of: list[Any],
    needs: list[list[int]],
) -> None:
    """Record the stage of each block and the block that it depends on. A forward needs the forward at the
    place before; a backward needs the backward at the place after or, at the last place, the forward there; a
    weight gradient needs its input gradient; a gather needs nothing."""
    forward_of, backward_of = full(places * batches, NOTHING), full(places * batches, NOTHING)
    for stage in range(len(begins) - 1):
        for number in range(begins[stage], begins[stage + 1]):
            stage_of[number] = stage
            at = place[number] * batches + batch[number]
            if kind[number] == FORWARD:
                forward_of[at] = number
            elif kind[number] == BESIDE:
                forward_of[at] = number + 1  # a pair is done when its second block is done
            elif kind[number] == BACKWARD or kind[number] == INPUT:
                backward_of[at] = number
    for number in range(len(kind)):
        here = place[number] * batches + batch[number]
        if kind[number] == GATHER:
            continue
        if kind[number] == WEIGHT:
            needs[number] = [backward_of[here]]
        elif kind[number] == BACKWARD or kind[number] == INPUT:
            last = place[number] == places - 1
            needs[number] = [forward_of[here] if last else backward_of[here + batches]]
        elif place[number] > 0:
            needs[number] = [forward_of[here - batches]]


def pass_s(kind: int, forward_s: float, input_s: float, weight_s: float) -> float:
    """The time of a pass of this kind; a backward that is not split takes the time of both halves."""
    if kind == BACKWARD:
        return input_s + weight_s
    return forward_s if kind == FORWARD or kind == BESIDE else input_s if kind == INPUT else weight_s  # noqa: SIM109


def join_pairs(kind: list[int], together: float, lasts_s: list[float], beside: list[float]) -> None:
    """Make each pair start and end together: its forward becomes a zero-length gate before the backward."""
    for number in range(len(kind) - 1):  # the very last block is never the first of a pair
        if kind[number] == BESIDE:
            lasts_s[number + 1] = together * (lasts_s[number] + lasts_s[number + 1])
            lasts_s[number] = 0
            beside[number], beside[number + 1] = 1, 2


def most_held(kind: list[int], first: int, last: int, chunks: int) -> float:
    """The most micro-batches whose activations a stage holds at once: from the start of a forward to the end
    of its backward; if the backward is split, KEPT_FOR_WEIGHTS of them until the end of the weight
    gradient."""
    whole, kept, most = 0, 0, 0
    for number in range(first, last + 1):
        if kind[number] == GATHER:
            continue
        if kind[number] == WEIGHT:
            kept -= 1
        elif kind[number] == FORWARD or kind[number] == BESIDE:
            whole += 1
        else:
            whole -= 1
            kept += 1 if kind[number] == INPUT else 0
        most = max(most, (whole + KEPT_FOR_WEIGHTS * kept) / chunks)
    return most


def find_gaps(
    stage: int,
    blocks: Blocks,
    message_s: float,
    total_s: float,
    step_s: float,
    stuck: Stuck,
    idle: Idle,
    others: Others,
) -> None:
    """Record the stretches in which a stage is idle, including the endless one of a stage that is stuck. If
    stages do not wait for each other between steps, the step before still uses some stages when this one
    begins, and the step after uses some before this one ends: both are recorded in ``others``."""
    first, last, least_s = blocks.begins[stage], blocks.begins[stage + 1] - 1, 1e-9 * total_s
    for i in range(len(stuck.stage)):
        if stuck.stage[i] == stage and total_s - stuck.since_s[i] > least_s:
            since_s = stuck.since_s[i]
            wait(idle, stage, since_s, total_s, stuck.kind[i], stuck.batch[i], stuck.source[i], math.nan)
            total_s = since_s
    if last < first:
        return
    free_s = max(0, blocks.end_s[last] - step_s)
    ends_s = min(total_s, blocks.start_s[first] + step_s)
    if free_s > least_s:
        use(others, stage, 0, free_s, 0)
    if total_s - ends_s > least_s:
        use(others, stage, ends_s, total_s, 1)
    for number in range(first, last + 1):
        start_s = blocks.start_s[number]
        if start_s - free_s > least_s:
            kind, source = plain(blocks.kind[number]), blocks.stage[blocks.needs[number][0]]
            wire_s = min(message_s, start_s - free_s) if message_s > 0 else math.nan
            wait(idle, stage, free_s, start_s, kind, blocks.batch[number], source, wire_s)
        free_s = blocks.end_s[number]
    if ends_s - free_s > least_s:
        wait(idle, stage, free_s, ends_s, STEP_END, math.nan, math.nan, math.nan)


def wait(
    idle: Idle,
    stage: int,
    start_s: float,
    end_s: float,
    kind: float,
    batch: float,
    source: float,
    wire_s: float,
) -> None:
    """Record a stretch in which a stage waits."""
    idle.stage.append(stage)
    idle.start_s.append(start_s)
    idle.end_s.append(end_s)
    idle.kind.append(kind)
    idle.batch.append(batch)
    idle.source.append(source)
    idle.wire_s.append(wire_s)


def use(others: Others, stage: int, start_s: float, end_s: float, following: int) -> None:
    """Record a stretch in which the step before, or the one that is ``following`` (1), uses a stage."""
    others.stage.append(stage)
    others.start_s.append(start_s)
    others.end_s.append(end_s)
    others.next.append(following)


def by_key(
    key: str,
    stages: int,
    micro_batches: int,
    chunks: int = 1,
    forward_s: float = 1.0,
    input_s: float = 1.0,
    weight_s: float = 1.0,
    together: float = 1.0,
    message_s: float = 0.0,
    first_extra: float = 0.0,
    last_extra: float = 0.0,
    in_step: int = 0,
) -> dict[str, np.ndarray]:
    """``run`` for a schedule by key; each pass takes one second unless given."""
    check.one_of(pipeline.SCHEDULES, key=key)
    check.whole(stages=stages, micro_batches=micro_batches, chunks=chunks)
    check.between(1, STAGES, stages=stages)
    check.between(1, MICRO_BATCHES, micro_batches=micro_batches)
    check.between(1, CHUNKS, chunks=chunks)
    check.positive(forward_s=forward_s, input_s=input_s, weight_s=weight_s, together=together)
    check.non_negative(message_s=message_s, first_extra=first_extra, last_extra=last_extra)
    return run(
        pipeline.SCHEDULES[key].order,
        stages,
        micro_batches,
        chunks,
        forward_s,
        input_s,
        weight_s,
        together,
        message_s,
        first_extra,
        last_extra,
        in_step,
        NOT_OWN,
    )
