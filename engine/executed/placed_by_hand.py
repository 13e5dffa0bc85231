"""A pipeline's schedule placed by hand, pass by pass: what each stage may run next, which input a refused
pass lacks, and the timetable, the memory and the critical path of what stands so far.

A stage's order is one number. Its digits, behind a leading 1, are the *slots* that were placed one after the
other: for 1F1B, 0 is the next forward and 1 the next backward. Micro-batches come in order, so a slot names a
pass. A pass starts as soon as its stage is free and its input has arrived. With room for all micro-batches a
schedule that is legal move by move never comes to a standstill: gathers that a stage still needs are kept for
it. With less it can, where forwards through a first chunk take the room that those through the second need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import check
from engine.base.program import full, program, zeros
from engine.executed.one_machine import least_end_s
from engine.executed.pipeline_schedules import find_needs, most_held, pass_s
from engine.mechanism.pipeline import KEPT_FOR_WEIGHTS, SCHEDULES
from engine.mechanism.pipeline_orders import (
    BACKWARD,
    FORWARD,
    GATHER,
    INPUT,
    WEIGHT,
    batch_of,
    block,
    kind_of,
    order,
    place_of,
)
from engine.mechanism.timeline import schedule as timetable

if TYPE_CHECKING:
    import numpy as np

PLAIN, CHUNKED, SPLIT, SHARDED = 0, 1, 2, 3  # what a stage can place
SLOTS = [2, 4, 3, 3]  # forward, backward · the same for two chunks · forward and two halves · … and a gather
MOST_SLOTS, MOST_STAGES, MOST_PLACED = 4, 4, 100
ROWS = MOST_STAGES * MOST_SLOTS
MOST_GATHERS = 8  # of a stage in a step; an optimum needs three
ROOM = (
    4.0  # micro-batches whose activations a stage can hold: what the fullest of each published schedule holds
)
FORWARD_S, BACKWARD_S, GATHER_S = 0.02, 0.04, 0.01
EMPTY = 1.0  # the order of a stage that has placed nothing
MOST_CODE = 999_999_999_999.0  # twelve digits, all of which an address keeps

# why a pass cannot be placed
(
    MAY,
    NONE_LEFT,
    NO_FORWARD,
    NO_BACKWARD,
    NO_OWN_FORWARD,
    NO_INPUT_GRADIENT,
    NO_ROOM,
    NO_WEIGHTS,
    NO_GATHERS,
) = (0, 1, 2, 3, 4, 5, 6, 7, 8)
NOWHERE = -1


class ByHand(NamedTuple):
    """One task: a pipeline, and the published schedule that sets its par."""

    key: str
    name: str
    schedule: float  # of pipeline_orders
    mode: float
    stages: float
    micro_batches: float
    chunks: float


LEVELS = [
    ByHand("1f1b", "1F1B", float(SCHEDULES["1f1b"].order), PLAIN, 4.0, 8.0, 1.0),
    ByHand("interleaved", "Interleaved 1F1B", float(SCHEDULES["interleaved"].order), CHUNKED, 4.0, 4.0, 2.0),
    ByHand("zb-h1", "ZB-H1", float(SCHEDULES["zb-h1"].order), SPLIT, 4.0, 8.0, 1.0),
    ByHand("fsdp", "FSDP × PP", float(SCHEDULES["interleaved"].order), SHARDED, 4.0, 4.0, 2.0),
]


class Placing(NamedTuple):
    """A pipeline and what its stages have placed."""

    mode: int
    stages: int
    batches: int
    chunks: int
    room: float  # micro-batches whose activations a stage can hold
    forwards: list[int]  # of each place
    backwards: list[int]
    weights: list[int]
    gathered: list[int]  # the chunk whose weights a stage has, NOWHERE before the first gather
    gathers: list[int]


class NextPass(NamedTuple):
    """What a slot of a stage would place now, and why it cannot."""

    kind: int
    chunk: int
    batch: int
    why: int
    missing: int  # the row of the hand, stage and slot, that would have to come first; NOWHERE if none


class GathersLeft(NamedTuple):
    """Gathers that have to come, as columns: the number of each in a list of blocks, the block that it comes
    behind (NOWHERE if none), and the one that it comes before."""

    number: list[int]
    behind: list[int]
    before: list[int]


class Strips(NamedTuple):
    """Stretches of time in which a stage holds the same activations, as columns."""

    stage: list[int]
    from_s: list[float]
    to_s: list[float]
    batches: list[float]


class Played(NamedTuple):
    """The timetable of orders, with all passes stage by stage."""

    work: list[int]
    begins: list[int]
    start_s: list[float]
    end_s: list[float]
    waits_for: list[int]
    total_s: float
    held: list[float]


@program(
    stage=MOST_PLACED,
    kind=MOST_PLACED,
    batch=MOST_PLACED,
    chunk=MOST_PLACED,
    start_s=MOST_PLACED,
    end_s=MOST_PLACED,
    critical=MOST_PLACED,
    before=MOST_PLACED,
    hand_stage=ROWS,
    hand_there=ROWS,
    hand_kind=ROWS,
    hand_batch=ROWS,
    hand_chunk=ROWS,
    hand_why=ROWS,
    hand_missing=ROWS,
    input_stage=ROWS,
    input_kind=ROWS,
    input_chunk=ROWS,
    hand_code=ROWS,
    hand_start_s=ROWS,
    hand_end_s=ROWS,
    hand_published=ROWS,
    held_stage=2 * MOST_PLACED,
    held_from_s=2 * MOST_PLACED,
    held_to_s=2 * MOST_PLACED,
    held_batches=2 * MOST_PLACED,
    held=MOST_STAGES,
    code=MOST_STAGES,
    placed=(),
    passes=(),
    total_s=(),
    least_s=(),
    par_s=(),
    idle=(),
    par_idle=(),
)
def placed_by_hand(
    schedule: float,
    mode: float,
    stages: float,
    micro_batches: float,
    chunks: float,
    room: float,
    codes: list[float],
) -> dict[str, Any]:
    """What stands of a schedule, and what each stage could place next.

    ``codes``: the order of each stage, as above; ``room``: the micro-batches whose activations a stage can
    hold. Whatever in an order cannot be placed, because its input is never made or the stage has no room, is
    left out with all that follows it.

    Returns one row per placed pass: its stage, kind, micro-batch, chunk, start and end, whether it is on the
    critical path (the chain of passes, each of which waited for the one before, that ends last), and the
    stage's order ``before`` it. ``hand_…``: one row for each slot of each stage: whether there is one, the
    pass that it would place, why it cannot (MAY if it can), the row of what is missing, the stage's order
    with it, its start and end, and whether the published schedule has it next; ``input_…``: the pass of the
    same micro-batch that a refused one needs first. ``held_…``: how many
    micro-batches' activations a stage holds, over time; ``held``: the most. ``par_s`` is the step of the
    published schedule, and ``least_s`` what a step takes at least after what stands (``least_total_s``);
    ``idle`` the share of the time up to the last end in which a stage does not compute.
    A gather of weights takes its stage's time, and nothing has to arrive for it. Leaves out messages, and the
    ReduceScatter of gradients.
    """
    mode, stages, batches, chunks = int(mode), int(stages), int(micro_batches), int(chunks)
    par_orders = [published(int(schedule), mode, s, stages, batches, chunks) for s in range(stages)]
    par = played(par_orders, stages, batches, chunks)
    line = empty_line(mode, stages, batches, chunks, room)
    orders, slots = [[] for _ in range(stages)], [digits(codes[s], SLOTS[mode]) for s in range(stages)]
    code, befores = full(MOST_STAGES, EMPTY), [[] for _ in range(stages)]
    moving = True
    while moving:
        moving = False
        for s in range(stages):
            going = True
            while going and len(orders[s]) < len(slots[s]):
                slot = slots[s][len(orders[s])]
                found = judged(line, s, slot)
                going = found.why == MAY
                if going:
                    orders[s].append(block(found.kind, found.chunk * stages + s, found.batch))
                    befores[s].append(code[s])
                    code[s] = code[s] * SLOTS[mode] + slot
                    take(line, s, found)
                    moving = True
    now = played(orders, stages, batches, chunks)
    count = len(now.work)
    places = stages * chunks
    forward_end_s, backward_end_s = zeros(places * batches), zeros(places * batches)
    stage_of, before, critical, compute_s = zeros(count), zeros(count), zeros(count), 0.0
    for s in range(stages):
        for number in range(now.begins[s], now.begins[s + 1]):
            stage_of[number], before[number] = s, befores[s][number - now.begins[s]]
            kind, at = (
                kind_of(now.work[number]),
                place_of(now.work[number]) * batches + batch_of(now.work[number]),
            )
            if kind == FORWARD:
                forward_end_s[at] = now.end_s[number]
            elif kind == BACKWARD or kind == INPUT:  # noqa: SIM109 (programs know no tuple)
                backward_end_s[at] = now.end_s[number]
            compute_s += 0.0 if kind == GATHER else now.end_s[number] - now.start_s[number]
    mark_critical(now, critical)

    hand_stage, hand_there, hand_kind, hand_batch, hand_chunk = (
        zeros(ROWS),
        zeros(ROWS),
        zeros(ROWS),
        zeros(ROWS),
        zeros(ROWS),
    )
    hand_why, hand_missing, hand_code = full(ROWS, NONE_LEFT), full(ROWS, NOWHERE), full(ROWS, EMPTY)
    hand_start_s, hand_end_s, hand_published = zeros(ROWS), zeros(ROWS), zeros(ROWS)
    input_stage, input_kind, input_chunk = zeros(ROWS), zeros(ROWS), zeros(ROWS)
    for s in range(stages):
        last = now.begins[s + 1] - 1
        free_s = now.end_s[last] if last >= now.begins[s] else 0.0
        next_slot = published_slot(par_orders[s], orders[s], mode, stages)
        for slot in range(SLOTS[mode]):
            row, found = s * MOST_SLOTS + slot, judged(line, s, slot)
            hand_stage[row], hand_there[row] = s, 1
            hand_kind[row], hand_batch[row], hand_chunk[row] = found.kind, found.batch, found.chunk
            hand_why[row], hand_missing[row] = found.why, found.missing
            hand_code[row] = code[s] * SLOTS[mode] + slot
            input_kind[row], source = input_of(found, s, stages)
            input_stage[row], input_chunk[row] = source % stages, source // stages
            place = found.chunk * stages + s
            ready_s = 0.0
            if found.why == MAY and found.kind == FORWARD and place > 0:
                ready_s = forward_end_s[(place - 1) * batches + found.batch]
            if found.why == MAY and (found.kind == BACKWARD or found.kind == INPUT):
                at = place * batches + found.batch
                ready_s = forward_end_s[at] if place == places - 1 else backward_end_s[at + batches]
            hand_start_s[row] = max(free_s, ready_s)
            hand_end_s[row] = hand_start_s[row] + takes_s(found.kind, chunks)
            hand_published[row] = 1 if slot == next_slot and found.why == MAY else 0

    strips = Strips([], [], [], [])
    for s in range(stages):
        add_strips(now, s, chunks, strips)
    each_s = batches * (FORWARD_S + BACKWARD_S)
    return {
        "stage": stage_of,
        "kind": [kind_of(now.work[i]) for i in range(count)],
        "batch": [batch_of(now.work[i]) for i in range(count)],
        "chunk": [place_of(now.work[i]) // stages for i in range(count)],
        "start_s": now.start_s,
        "end_s": now.end_s,
        "critical": critical,
        "before": before,
        "hand_stage": hand_stage,
        "hand_there": hand_there,
        "hand_kind": hand_kind,
        "hand_batch": hand_batch,
        "hand_chunk": hand_chunk,
        "hand_why": hand_why,
        "hand_missing": hand_missing,
        "input_stage": input_stage,
        "input_kind": input_kind,
        "input_chunk": input_chunk,
        "hand_code": hand_code,
        "hand_start_s": hand_start_s,
        "hand_end_s": hand_end_s,
        "hand_published": hand_published,
        "held_stage": strips.stage,
        "held_from_s": strips.from_s,
        "held_to_s": strips.to_s,
        "held_batches": strips.batches,
        "held": now.held,
        "code": code,
        "placed": count - sum_of_counts(line.gathers),
        "passes": stages * batches * chunks * (3 if mode == SPLIT else 2),
        "total_s": now.total_s,
        "least_s": least_total_s(line, orders, now.total_s),
        "par_s": par.total_s,
        "idle": 1 - compute_s / (stages * now.total_s) if now.total_s > 0 else 0.0,
        "par_idle": 1 - each_s / par.total_s,
    }


# -- what may be placed --------------------------------------------------------------------------------------
def empty_line(mode: int, stages: int, batches: int, chunks: int, room: float) -> Placing:
    """A pipeline that has placed nothing."""
    places = stages * chunks
    return Placing(
        mode,
        stages,
        batches,
        chunks,
        room,
        full(places, 0),
        full(places, 0),
        full(places, 0),
        full(stages, NOWHERE),
        full(stages, 0),
    )


def digits(code: float, base: int) -> list[int]:
    """The slots of an order, the first one first."""
    found, rest = [], int(code)
    while rest >= base:
        found.insert(0, rest % base)
        rest = rest // base
    return found


def judged(line: Placing, stage: int, slot: int) -> NextPass:
    """What a slot of a stage would place now, and whether it may."""
    kind, chunk = kind_in(line.mode, slot), slot % 2 if line.mode == CHUNKED else 0
    if line.mode == SHARDED:
        return judged_sharded(line, stage, kind)
    return judged_pass(line, stage, kind, chunk)


def kind_in(mode: int, slot: int) -> int:
    """The kind of pass that a slot places."""
    if mode == CHUNKED:
        return FORWARD if slot < 2 else BACKWARD
    if slot == 0:
        return FORWARD
    if mode == SPLIT:
        return INPUT if slot == 1 else WEIGHT
    return BACKWARD if slot == 1 else GATHER


def slot_of(mode: int, kind: int, chunk: int) -> int:
    """The slot that places a pass of this kind."""
    if mode == CHUNKED:
        return chunk if kind == FORWARD else 2 + chunk
    if kind == FORWARD:
        return 0
    return 1 if kind == BACKWARD or kind == INPUT else 2  # noqa: SIM109 (programs know no tuple)


def judged_pass(line: Placing, stage: int, kind: int, chunk: int) -> NextPass:
    """The next pass of this kind through a chunk of a stage, and what it lacks."""
    place, stages, mode = chunk * line.stages + stage, line.stages, line.mode
    places = stages * line.chunks
    if kind == WEIGHT:
        batch = line.weights[place]
        if batch == line.batches:
            return NextPass(kind, chunk, batch - 1, NONE_LEFT, NOWHERE)
        if batch == line.backwards[place]:
            return NextPass(kind, chunk, batch, NO_INPUT_GRADIENT, row_of(stage, slot_of(mode, INPUT, chunk)))
        return NextPass(kind, chunk, batch, MAY, NOWHERE)
    if kind == FORWARD:
        batch = line.forwards[place]
        if batch == line.batches:
            return NextPass(kind, chunk, batch - 1, NONE_LEFT, NOWHERE)
        if place > 0 and line.forwards[place - 1] <= batch:
            slot = slot_of(mode, FORWARD, (place - 1) // stages)
            return NextPass(kind, chunk, batch, NO_FORWARD, row_of((place - 1) % stages, slot))
        whole, kept = in_flight(line, stage), waiting_weights(line, stage)
        if (whole + 1 + KEPT_FOR_WEIGHTS * kept) / line.chunks > line.room + 1e-9:
            frees = WEIGHT if kept > 0 else INPUT if mode == SPLIT else BACKWARD
            slot = slot_of(mode, frees, line.chunks - 1)
            return NextPass(kind, chunk, batch, NO_ROOM, row_of(stage, slot))
        return NextPass(kind, chunk, batch, MAY, NOWHERE)
    batch = line.backwards[place]
    if batch == line.batches:
        return NextPass(kind, chunk, batch - 1, NONE_LEFT, NOWHERE)
    if place == places - 1 and line.forwards[place] <= batch:
        return NextPass(kind, chunk, batch, NO_OWN_FORWARD, row_of(stage, slot_of(mode, FORWARD, chunk)))
    if place < places - 1 and line.backwards[place + 1] <= batch:
        slot = slot_of(mode, kind, (place + 1) // stages)
        return NextPass(kind, chunk, batch, NO_BACKWARD, row_of((place + 1) % stages, slot))
    return NextPass(kind, chunk, batch, MAY, NOWHERE)


def judged_sharded(line: Placing, stage: int, kind: int) -> NextPass:
    """The same where a stage has the weights of one chunk at a time, and must gather those of the other."""
    has, gather_row = line.gathered[stage], row_of(stage, slot_of(SHARDED, GATHER, 0))
    other = 1 - has if has >= 0 else 0
    if kind == GATHER:
        left = line.batches - line.backwards[other * line.stages + stage]
        if left == 0:
            return NextPass(kind, other, 0, NONE_LEFT, NOWHERE)
        spent = line.gathers[stage] + 1 + gathers_to_come(line, stage, other)
        why = MAY if spent <= MOST_GATHERS else NO_GATHERS
        return NextPass(kind, other, line.gathers[stage], why, NOWHERE)
    if has < 0:
        batch = 0
        return NextPass(kind, other if kind == FORWARD else 1, batch, NO_WEIGHTS, gather_row)
    found = judged_pass(line, stage, kind, has)
    if found.why == NONE_LEFT:
        there = judged_pass(line, stage, kind, other)
        if there.why != NONE_LEFT:
            return NextPass(kind, other, there.batch, NO_WEIGHTS, gather_row)
    return found


def gathers_to_come(line: Placing, stage: int, has: int) -> int:
    """The gathers that a stage needs at least for what is left, with the weights of this chunk there:
    forwards through its first, all passes through its second, all backwards through its first."""
    first, second, last = stage, line.stages + stage, line.batches - 1
    if line.forwards[first] <= last:
        return 2 if has == 0 else 3
    if line.backwards[second] <= last:
        return 1 if has == 1 else 2
    return 1 if line.backwards[first] <= last and has != 0 else 0


def input_of(found: NextPass, stage: int, stages: int) -> tuple[int, int]:
    """(kind, place) of the pass of the same micro-batch that a refused pass needs first; itself if it needs
    none."""
    place = found.chunk * stages + stage
    if found.why == NO_FORWARD:
        return FORWARD, place - 1
    if found.why == NO_BACKWARD:
        return found.kind, place + 1
    if found.why == NO_OWN_FORWARD:
        return FORWARD, place
    return INPUT if found.why == NO_INPUT_GRADIENT else found.kind, place


def row_of(stage: int, slot: int) -> int:
    """The row of the hand for a slot of a stage."""
    return stage * MOST_SLOTS + slot


def in_flight(line: Placing, stage: int) -> int:
    """The chunks' activations that a stage holds whole."""
    whole = 0
    for chunk in range(line.chunks):
        place = chunk * line.stages + stage
        whole += line.forwards[place] - line.backwards[place]
    return whole


def waiting_weights(line: Placing, stage: int) -> int:
    """Input gradients of a stage whose weight gradients are still to come."""
    if line.mode != SPLIT:
        return 0
    return line.backwards[stage] - line.weights[stage]


def take(line: Placing, stage: int, found: NextPass) -> None:
    """Count a pass as placed."""
    place = found.chunk * line.stages + stage
    if found.kind == GATHER:
        line.gathered[stage] = found.chunk
        line.gathers[stage] += 1
    elif found.kind == FORWARD:
        line.forwards[place] += 1
    elif found.kind == WEIGHT:
        line.weights[place] += 1
    else:
        line.backwards[place] += 1


# -- the timetable -------------------------------------------------------------------------------------------
def takes_s(kind: int, chunks: int) -> float:
    """The time of a pass through one chunk of a stage."""
    if kind == GATHER:
        return GATHER_S
    return pass_s(kind, FORWARD_S, BACKWARD_S / 2, BACKWARD_S / 2) / chunks


def played(orders: list[list[int]], stages: int, batches: int, chunks: int) -> Played:
    """When each pass of these orders runs."""
    work, begins = [], [0]
    for s in range(stages):
        for number in range(len(orders[s])):
            work.append(orders[s][number])
        begins.append(len(work))
    kind, place = [kind_of(work[i]) for i in range(len(work))], [place_of(work[i]) for i in range(len(work))]
    batch, lasts_s = [batch_of(work[i]) for i in range(len(work))], zeros(len(work))
    stage_of, needs = zeros(len(work)), [[] for _ in range(len(work))]
    find_needs(kind, place, batch, begins, stages * chunks, batches, stage_of, needs)
    for number in range(len(work)):
        lasts_s[number] = takes_s(kind[number], chunks)
    start_s, end_s, waits_for = timetable(stages, stage_of, lasts_s, full(len(work), 0.0), needs)
    total_s, held = 0.0, zeros(MOST_STAGES)
    for number in range(len(work)):
        total_s = max(total_s, end_s[number])
    for s in range(stages):
        held[s] = most_held(kind, begins[s], begins[s + 1] - 1, chunks)
    return Played(work, begins, start_s, end_s, waits_for, total_s, held)


# -- what can still come of it -------------------------------------------------------------------------------
def least_total_s(line: Placing, orders: list[list[int]], total_s: float) -> float:
    """What a whole step takes at least if these orders stand. ``total_s``: the last end of what is placed.

    Each stage is looked at alone. A pass can begin no earlier than its input could be there if the other
    stages ran forwards and backwards side by side, and the step ends no earlier than the passes that wait for
    it, so counted. Between the two the stage runs one pass at a time. A bound: no order is faster, and the
    fastest may be slower.
    """
    stages, chunks = line.stages, line.chunks
    work, begins, stream, placed, gathers = [], [0], [], [], GathersLeft([], [], [])
    for s in range(stages):
        for number in range(len(orders[s])):
            work.append(orders[s][number])
            stream.append(s)
        placed.append(len(work))
        for chunk in range(chunks):
            add_left(line, chunk * stages + s, work, stream)
        if line.mode == SHARDED:
            add_gathers_left(line, s, work, stream, gathers)
        begins.append(len(work))
    count, batches = len(work), line.batches
    kind, place = [kind_of(work[i]) for i in range(count)], [place_of(work[i]) for i in range(count)]
    batch, lasts_s = [batch_of(work[i]) for i in range(count)], zeros(count)
    stage_of, needs = zeros(count), [[] for _ in range(count)]
    find_needs(kind, place, batch, begins, stages * chunks, batches, stage_of, needs)
    frees = full(stages * chunks * batches, NOWHERE)
    for number in range(count):
        lasts_s[number] = takes_s(kind[number], chunks)
        if kind[number] == (WEIGHT if line.mode == SPLIT else BACKWARD):
            frees[place[number] * batches + batch[number]] = number
    for s in range(stages):
        for number in range(placed[s], begins[s + 1]):
            if placed[s] > begins[s]:
                needs[number].append(placed[s] - 1)
            # with two chunks, those before the last may be in flight without anything of the last
            room = int(line.room) * (1 if place[number] // stages == chunks - 1 else chunks)
            if kind[number] == FORWARD and batch[number] >= room:
                needs[number].append(frees[place[number] * batches + batch[number] - room])
    for i in range(len(gathers.number)):
        if gathers.behind[i] >= 0:
            needs[gathers.number[i]].append(number_of(gathers.behind[i], work))
        needs[number_of(gathers.before[i], work)].append(gathers.number[i])
    streams, none_s = stages + 3 * stages * chunks, full(count, 0.0)
    start_s, _, _ = timetable(streams, stream, lasts_s, none_s, needs)
    back_stream = [stream[count - 1 - i] for i in range(count)]
    back_s, back_needs = [lasts_s[count - 1 - i] for i in range(count)], [[] for _ in range(count)]
    for number in range(count):
        for before in needs[number]:
            back_needs[count - 1 - before].append(count - 1 - number)
    _, from_end_s, _ = timetable(streams, back_stream, back_s, none_s, back_needs)
    least_s = total_s
    for s in range(stages):
        ready_s, own_s, after_s = [], [], []
        for number in range(placed[s], begins[s + 1]):
            ready_s.append(start_s[number])
            own_s.append(lasts_s[number])
            after_s.append(from_end_s[count - 1 - number] - lasts_s[number])
        least_s = max(least_s, least_end_s(ready_s, own_s, after_s))
    return least_s


def add_left(line: Placing, place: int, work: list[int], stream: list[int]) -> None:
    """Append the passes that are left at a place, each kind on a stream of its own."""
    first = line.stages + 3 * place
    for batch in range(line.forwards[place], line.batches):
        work.append(block(FORWARD, place, batch))
        stream.append(first)
    for batch in range(line.backwards[place], line.batches):
        work.append(block(INPUT if line.mode == SPLIT else BACKWARD, place, batch))
        stream.append(first + 1)
    if line.mode == SPLIT:
        for batch in range(line.weights[place], line.batches):
            work.append(block(WEIGHT, place, batch))
            stream.append(first + 2)


def add_gathers_left(
    line: Placing, stage: int, work: list[int], stream: list[int], gathers: GathersLeft
) -> None:
    """Append the gathers that a stage needs at least: the last micro-batch passes its first chunk forwards,
    its second, and the first backwards, and between these the weights change."""
    first, second, last = stage, line.stages + stage, line.batches - 1
    has = line.gathered[stage]
    if line.forwards[first] <= last:
        if has != 0:
            add_gather(
                line, first, NOWHERE, block(FORWARD, first, line.forwards[first]), work, stream, gathers
            )
        add_gather(
            line, second, block(FORWARD, first, last), block(FORWARD, second, last), work, stream, gathers
        )
    elif line.backwards[second] <= last and has != 1:
        batch = line.backwards[second]
        add_gather(line, second, NOWHERE, block(BACKWARD, second, batch), work, stream, gathers)
    if line.backwards[second] <= last:
        add_gather(
            line, first, block(BACKWARD, second, last), block(BACKWARD, first, last), work, stream, gathers
        )
    elif line.backwards[first] <= last and has != 0:
        batch = line.backwards[first]
        add_gather(line, first, NOWHERE, block(BACKWARD, first, batch), work, stream, gathers)


def add_gather(
    line: Placing,
    place: int,
    behind: int,
    before: int,
    work: list[int],
    stream: list[int],
    gathers: GathersLeft,
) -> None:
    """Append a gather of a place's weights."""
    gathers.number.append(len(work))
    gathers.behind.append(behind)
    gathers.before.append(before)
    work.append(block(GATHER, place, 0))
    stream.append(line.stages + 3 * place + 2)


def number_of(wanted: int, work: list[int]) -> int:
    """Where a block stands in a list that has it once."""
    found = NOWHERE
    for number in range(len(work)):
        if work[number] == wanted:
            found = number
    return found


def mark_critical(now: Played, critical: list[float]) -> None:
    """Mark the chain of passes that ends last, each of which waited for the one before it."""
    at = NOWHERE
    for number in range(len(now.work)):
        if at < 0 or now.end_s[number] > now.end_s[at]:
            at = number
    while at >= 0:
        critical[at] = 1.0
        at = now.waits_for[at]


def add_strips(now: Played, stage: int, chunks: int, strips: Strips) -> None:
    """Record how many micro-batches' activations a stage holds over time, up to the last end of all."""
    level, since_s = 0.0, 0.0
    for number in range(now.begins[stage], now.begins[stage + 1]):
        kind = kind_of(now.work[number])
        if kind == GATHER:
            continue
        at_s = now.start_s[number] if kind == FORWARD else now.end_s[number]
        if level > 0 and at_s > since_s:
            put_strip(strips, stage, since_s, at_s, level / chunks)
        level += holds_more(kind)
        level = level if level > 1e-9 else 0.0
        since_s = at_s
    if level > 0 and now.total_s > since_s:
        put_strip(strips, stage, since_s, now.total_s, level / chunks)


def put_strip(strips: Strips, stage: int, from_s: float, to_s: float, batches: float) -> None:
    """Append a stretch."""
    strips.stage.append(stage)
    strips.from_s.append(from_s)
    strips.to_s.append(to_s)
    strips.batches.append(batches)


def holds_more(kind: int) -> float:
    """How many more chunks' activations a stage holds after a pass of this kind."""
    if kind == FORWARD:
        return 1.0
    return -1.0 if kind == BACKWARD else KEPT_FOR_WEIGHTS - 1 if kind == INPUT else -KEPT_FOR_WEIGHTS


# -- what is published ---------------------------------------------------------------------------------------
def published(schedule: int, mode: int, stage: int, stages: int, batches: int, chunks: int) -> list[int]:
    """A stage's passes in the published order. Where weights are sharded, a gather comes before the first
    pass of each run through one chunk, as in a breadth-first pipeline (arXiv:2211.05953)."""
    work, found = [], []
    order(work, schedule, stage, stages, batches, chunks)
    has, gathers = NOWHERE, 0
    for number in range(len(work)):
        chunk = place_of(work[number]) // stages
        if mode == SHARDED and chunk != has:
            found.append(block(GATHER, chunk * stages + stage, gathers))
            has, gathers = chunk, gathers + 1
        found.append(work[number])
    return found


def published_slot(par: list[int], mine: list[int], mode: int, stages: int) -> int:
    """The slot that the published order places next; NOWHERE if this stage has left that order."""
    if len(mine) >= len(par):
        return NOWHERE
    for number in range(len(mine)):
        if mine[number] != par[number]:
            return NOWHERE
    work = par[len(mine)]
    return slot_of(mode, kind_of(work), place_of(work) // stages)


def sum_of_counts(counts: list[int]) -> int:
    """The sum of these."""
    total = 0
    for s in range(len(counts)):
        total += counts[s]
    return total


# -- with names, for tests and other tools -------------------------------------------------------------------
def level(key: str) -> ByHand:
    """A task by its key."""
    check.one_of([each.key for each in LEVELS], key=key)
    return next(each for each in LEVELS if each.key == key)


def codes_of(key: str, orders: list[str]) -> list[float]:
    """The numbers of orders that are written as slots, ``["0001", …]``."""
    base = SLOTS[int(level(key).mode)]
    return [float(int("1" + order_, base)) for order_ in orders]


def published_orders(key: str) -> list[str]:
    """The published schedule of a task as slots, stage by stage."""
    task = level(key)
    mode, stages, batches, chunks = (
        int(each) for each in (task.mode, task.stages, task.micro_batches, task.chunks)
    )
    found = []
    for stage in range(stages):
        work = published(int(task.schedule), mode, stage, stages, batches, chunks)
        found.append("".join(str(slot_of(mode, kind_of(w), place_of(w) // stages)) for w in work))
    return found


def by_level(key: str, orders: list[str], room: float = ROOM) -> dict[str, np.ndarray]:
    """``placed_by_hand`` for a task by key."""
    task = level(key)
    return placed_by_hand(
        task.schedule, task.mode, task.stages, task.micro_batches, task.chunks, room, codes_of(key, orders)
    )
