"""Pipeline schedules, run: when each pass starts, what each stage waits for, and how many activations it holds.

One scheduler for all of them. It is given the order of work of each stage (pipeline_orders) and what each block needs;
nothing starts before both its stage and its input are there. The closed forms of pipeline.py are held against it.
"""

from __future__ import annotations

import math

from engine import check, pipeline
from engine.pipeline_orders import (BACKWARD, BESIDE, DUALPIPE, FORWARD, INPUT, INTERLEAVED, WEIGHT, batch_of, kind_of,
                                    order, place_of)
from engine.program import full, program, zeros
from engine.timeline import schedule as run_tasks

STAGES, MICRO_BATCHES, CHUNKS = 16, 64, 4
BLOCKS, NUMBERS, SEEN = 2 * STAGES * MICRO_BATCHES * CHUNKS, 1600, 4096
NOTHING = -1                                    # where there is no block
STEP_END = 4                                    # in place of a kind: the stage is done, and waits for the step's end
KEPT_FOR_WEIGHTS = 32 / 34                      # M_W over M_B of arXiv:2401.10241 Table 1, without attention's scores


@program(stage=BLOCKS, kind=BLOCKS, batch=BLOCKS, place=BLOCKS, beside=BLOCKS, start_s=BLOCKS, end_s=BLOCKS,
         idle_stage=BLOCKS, idle_start_s=BLOCKS, idle_end_s=BLOCKS, idle_kind=BLOCKS, idle_batch=BLOCKS,
         idle_from=BLOCKS, idle_wire_s=BLOCKS, other_stage=2 * STAGES, other_start_s=2 * STAGES, other_end_s=2 * STAGES,
         other_next=2 * STAGES, number_batch=NUMBERS, number_stage=NUMBERS, number_beside=NUMBERS, number_at_s=NUMBERS,
         weight_stage=SEEN, weight_start_s=SEEN, weight_end_s=SEEN, gap_stage=SEEN, gap_start_s=SEEN, gap_end_s=SEEN,
         busy_s=STAGES, held=STAGES, total_s=(), step_s=(), bubble=(), stages=(), micro_batches=())
def run(schedule, stages, micro_batches, chunks, forward_s, input_s, weight_s, together, message_s, first_extra,
        last_extra, in_step, legible_s, visible_s):
    """One step of training by a schedule of pipeline_orders. Times are those of one micro-batch on a whole stage.

    ``together``: how long a forward and a backward that run side by side take (DualPipe), as a share of one after the
    other. ``first_extra``, ``last_extra``: what the embedding and the output layer add, in stages. ``in_step``: all
    stages end a step together (1), as they must for a global norm of the gradients, or each by itself (0).
    DualPipe runs with the next numbers of stages and micro-batches that it can.

    A row for each block: its stage, kind, micro-batch and place, whether another runs beside it (1: the forward, 2: the
    backward of the pair), its start and end; ``number_…`` is about those that last ``legible_s``,
    ``weight_…`` and ``gap_…`` are weight gradients and idle stretches that last ``visible_s``. A row for each stretch
    in which a stage idles: kind, micro-batch and stage of the block that it waits for, and how long of that for the
    message; kind STEP_END and no more where it is done. ``other_…``: where the step before or the next one (1) reaches
    into this one's time. For each stage: how long it works, and the most micro-batches whose activations it holds at a
    time. ``total_s`` is the time from the first start to the last end, ``step_s`` what a step costs in a row of them,
    ``bubble`` the idle share of that. Left out: messages that delay each other.
    """
    schedule, stages, batches = int(schedule), int(stages), int(micro_batches)
    chunks = int(chunks) if schedule == INTERLEAVED else 1
    if schedule == DUALPIPE:
        stages = even(stages)
        batches = max(2 * stages, even(batches))
    work, begins = [], [0]
    for stage in range(stages):
        order(work, schedule, stage, stages, batches, chunks)
        begins.append(len(work))
    kind, place = [kind_of(work[i]) for i in range(len(work))], [place_of(work[i]) for i in range(len(work))]
    batch, beside = [batch_of(work[i]) for i in range(len(work))], zeros(len(work))
    stage_of, needs = zeros(len(work)), [[] for _ in range(len(work))]
    find_needs(kind, place, batch, begins, stages * chunks, batches, stage_of, needs)
    lasts_s = zeros(len(work))
    for number in range(len(work)):
        extra = ((first_extra if place[number] == 0 else 0) +
                 (last_extra if place[number] == stages * chunks - 1 else 0))
        lasts_s[number] = (1 / chunks + extra) * pass_s(kind[number], forward_s, input_s, weight_s)
    join_pairs(kind, together, lasts_s, beside)
    start_s, end_s, _ = run_tasks(stages, stage_of, lasts_s, full(len(work), message_s), needs)

    total_s, step_s, busy_s, held = max(end_s), 0, zeros(stages), zeros(stages)
    for stage in range(stages):
        first, last = begins[stage], begins[stage + 1] - 1
        step_s = total_s if in_step else max(step_s, end_s[last] - start_s[first])
        for number in range(first, last + 1):
            busy_s[stage] += lasts_s[number]
        held[stage] = most_held(kind, first, last, chunks)
    gaps, others = [[], [], [], [], [], [], []], [[], [], [], []]
    numbers, weights, wide = [[], [], [], []], [[], [], []], [[], [], []]
    for stage in range(stages):
        find_gaps(stage, begins, kind, batch, stage_of, needs, start_s, end_s, message_s, total_s, step_s, gaps, others)
    for number in range(len(work)):
        if beside[number] == 1:
            start_s[number], end_s[number] = start_s[number + 1], end_s[number + 1]
        if end_s[number] - start_s[number] >= legible_s:
            note(numbers, [batch[number], stage_of[number], beside[number], (start_s[number] + end_s[number]) / 2])
        if kind[number] == WEIGHT and end_s[number] - start_s[number] >= visible_s:
            note(weights, [stage_of[number], start_s[number], end_s[number]])
    for number in range(len(gaps[0])):
        if gaps[2][number] - gaps[1][number] >= visible_s:
            note(wide, [gaps[0][number], gaps[1][number], gaps[2][number]])
    share = 1 - sum_of(busy_s) / (stages * step_s)
    return {"stage": stage_of, "kind": [plain(kind[i]) for i in range(len(work))], "batch": batch, "place": place,
            "beside": beside, "start_s": start_s, "end_s": end_s, "idle_stage": gaps[0], "idle_start_s": gaps[1], "idle_end_s": gaps[2],
            "idle_kind": gaps[3], "idle_batch": gaps[4], "idle_from": gaps[5], "idle_wire_s": gaps[6],
            "other_stage": others[0], "other_start_s": others[1], "other_end_s": others[2], "other_next": others[3],
            "number_batch": numbers[0], "number_stage": numbers[1], "number_beside": numbers[2],
            "number_at_s": numbers[3], "weight_stage": weights[0], "weight_start_s": weights[1],
            "weight_end_s": weights[2], "gap_stage": wide[0], "gap_start_s": wide[1], "gap_end_s": wide[2],
            "busy_s": busy_s, "held": held, "total_s": total_s, "step_s": step_s,
            "bubble": share if share > 1e-9 else 0, "stages": stages, "micro_batches": batches}


def even(count):
    """The next even number."""
    return count + count % 2


def plain(kind):
    """The kind, whatever runs beside it."""
    return FORWARD if kind == BESIDE else kind


def sum_of(values):
    """The sum of a list."""
    total = 0
    for value in values:
        total += value
    return total


def find_needs(kind, place, batch, begins, places, batches, stage_of, needs):
    """Write down the stage of each block and the block that it needs: a forward, that of the place before; a backward,
    that of the place behind, or at the last place the forward itself; a weight gradient, its input gradient."""
    forward_of, backward_of = full(places * batches, NOTHING), full(places * batches, NOTHING)
    for stage in range(len(begins) - 1):
        for number in range(begins[stage], begins[stage + 1]):
            stage_of[number] = stage
            at = place[number] * batches + batch[number]
            if kind[number] == FORWARD:
                forward_of[at] = number
            elif kind[number] == BESIDE:
                forward_of[at] = number + 1     # a pair is done when its second block is
            elif kind[number] != WEIGHT:
                backward_of[at] = number
    for number in range(len(kind)):
        here = place[number] * batches + batch[number]
        if kind[number] == WEIGHT:
            needs[number] = [backward_of[here]]
        elif kind[number] == BACKWARD or kind[number] == INPUT:
            last = place[number] == places - 1
            needs[number] = [forward_of[here] if last else backward_of[here + batches]]
        elif place[number] > 0:
            needs[number] = [forward_of[here - batches]]


def pass_s(kind, forward_s, input_s, weight_s):
    """How long a pass of this kind takes; a backward in one piece takes both halves."""
    if kind == BACKWARD:
        return input_s + weight_s
    return forward_s if kind == FORWARD or kind == BESIDE else input_s if kind == INPUT else weight_s


def join_pairs(kind, together, lasts_s, beside):
    """Let each pair start and end as one: its forward becomes a gate without duration before the backward."""
    for number in range(len(kind) - 1):     # the last block of all is never the first of a pair
        if kind[number] == BESIDE:
            lasts_s[number + 1] = together * (lasts_s[number] + lasts_s[number + 1])
            lasts_s[number] = 0
            beside[number], beside[number + 1] = 1, 2


def most_held(kind, first, last, chunks):
    """The most micro-batches whose activations a stage holds at a time: from the start of a forward to the end of its
    backward; of a split one, KEPT_FOR_WEIGHTS of them to the end of the weight gradient."""
    whole, kept, most = 0, 0, 0
    for number in range(first, last + 1):
        if kind[number] == WEIGHT:
            kept -= 1
        elif kind[number] == FORWARD or kind[number] == BESIDE:
            whole += 1
        else:
            whole -= 1
            kept += 1 if kind[number] == INPUT else 0
        most = max(most, (whole + KEPT_FOR_WEIGHTS * kept) / chunks)
    return most


def find_gaps(stage, begins, kind, batch, stage_of, needs, start_s, end_s, message_s, total_s, step_s, gaps, others):
    """Note the stretches in which a stage idles. Where stages do not wait for each other between steps, the one before
    reaches into this one's beginning, and the next one begins before this one's end."""
    first, last, least_s = begins[stage], begins[stage + 1] - 1, 1e-9 * total_s
    free_s, ends_s = max(0, end_s[last] - step_s), min(total_s, start_s[first] + step_s)
    if free_s > least_s:
        note(others, [stage, 0, free_s, 0])
    if total_s - ends_s > least_s:
        note(others, [stage, ends_s, total_s, 1])
    for number in range(first, last + 1):
        if start_s[number] - free_s > least_s:
            need = needs[number][0]
            note(gaps, [stage, free_s, start_s[number], plain(kind[number]), batch[number], stage_of[need],
                        min(message_s, start_s[number] - free_s) if message_s > 0 else math.nan])
        free_s = end_s[number]
    if ends_s - free_s > least_s:
        note(gaps, [stage, free_s, ends_s, STEP_END, math.nan, math.nan, math.nan])


def note(columns, row):
    """Append a row to columns."""
    for place in range(len(row)):
        columns[place].append(row[place])


def by_key(key, stages, micro_batches, chunks=1, forward_s=1.0, input_s=1.0, weight_s=1.0, together=1.0, message_s=0.0,
           first_extra=0.0, last_extra=0.0, in_step=0, legible_s=math.inf, visible_s=math.inf):
    """``run`` for a schedule by its key; each pass takes a second unless told otherwise."""
    check.one_of(pipeline.SCHEDULES, key=key)
    check.whole(stages=stages, micro_batches=micro_batches, chunks=chunks)
    check.between(1, STAGES, stages=stages)
    check.between(1, MICRO_BATCHES, micro_batches=micro_batches)
    check.between(1, CHUNKS, chunks=chunks)
    check.positive(forward_s=forward_s, input_s=input_s, weight_s=weight_s, together=together)
    check.non_negative(message_s=message_s, first_extra=first_extra, last_extra=last_extra)
    return run(pipeline.SCHEDULES[key].order, stages, micro_batches, chunks, forward_s, input_s, weight_s, together,
               message_s, first_extra, last_extra, in_step, legible_s, visible_s)
