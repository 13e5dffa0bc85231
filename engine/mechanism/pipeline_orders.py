"""Pipeline schedules as execution orders: for each stage, the list of its passes, one after the other.

A *block* is one pass of one micro-batch through one chunk of layers. The chunks that a micro-batch passes
through are its *places*, numbered from 0 at the embedding to the last one at the loss. A stage holds one
place; with interleaving it holds every p-th of p·v places; in a V, where the line goes down the stages and up
again, it holds two, s and 2p − 1 − s; in DualPipe, where micro-batches enter from both ends, it holds one
place for each direction.

A block is encoded as one number, so that an order is a plain list that ``engine.base.program`` can carry into
the page.
"""

from __future__ import annotations

from typing import NamedTuple

FORWARD, BACKWARD, INPUT, WEIGHT, BESIDE = (0, 1, 2, 3, 4)  # BESIDE: a forward that overlaps the next block
GATHER = 5  # no pass: the weights of a chunk are fetched (placed_by_hand.py)
GPIPE, ONE_F_ONE_B, INTERLEAVED, ZB_H1, ZB_H2, DUALPIPE, ZB_V, DUALPIPE_V = 0, 1, 2, 3, 4, 5, 6, 7
KINDS, PLACES = 8, 64


def block(kind: int, place: int, batch: int) -> int:
    """The number of a block: kind + 8·(place + 64·micro-batch)."""
    return kind + KINDS * (place + PLACES * batch)


def kind_of(work: int) -> int:
    """FORWARD, BACKWARD (whole), INPUT or WEIGHT (its two halves), or BESIDE."""
    return work % KINDS


def place_of(work: int) -> int:
    """How far through the model the micro-batch is."""
    return work // KINDS % PLACES


def batch_of(work: int) -> int:
    """The micro-batch, counted from 0."""
    return work // (KINDS * PLACES)


def order(work: list[int], schedule: int, stage: int, stages: int, micro_batches: int, chunks: int) -> None:
    """Append a stage's blocks to the list ``work`` in the schedule's order."""
    if schedule == GPIPE:
        one_path(work, stage, micro_batches, micro_batches, 0, False)
    elif schedule == ONE_F_ONE_B:
        one_path(work, stage, micro_batches, stages - stage, 0, False)
    elif schedule == INTERLEAVED:
        interleaved(work, stage, stages, micro_batches, chunks)
    elif schedule == ZB_H1:
        one_path(work, stage, micro_batches, stages - stage, stage, True)
    elif schedule == ZB_H2:
        one_path(work, stage, micro_batches, 2 * (stages - stage) - 1, 2 * stage, True)
    elif schedule == ZB_V:
        zb_v(work, stage, stages, micro_batches)
    elif schedule == DUALPIPE_V:
        two_ways(work, stage, stages, micro_batches, [stage, 2 * stages - 1 - stage], [0, 0])
    else:
        dualpipe(work, stage, stages, micro_batches)


def is_own(own: list[float]) -> bool:
    """Whether this column (own_order) holds a schedule."""
    return own[0] > 0


class Stuck(NamedTuple):
    """The passes for which stages wait without end, as columns."""

    stage: list[int]
    kind: list[int]
    batch: list[int]
    source: list[int]  # the stage from which the input should come
    since_s: list[float]


def own_order(work: list[int], own: list[float], stage: int, stages: int, stuck: Stuck) -> None:
    """Append a stage's blocks of somebody's own schedule. The column holds a 1 and then the blocks, those of
    a stage in its order. A block that never runs, because what it needs never comes, stands there as −1 − its
    number: it goes to ``stuck``, but for the time since when.
    """
    for i in range(1, len(own)):
        waits = own[i] < 0
        number = int(-1 - own[i]) if waits else int(own[i])
        if place_of(number) % stages == stage and waits:
            forward = kind_of(number) == FORWARD
            stuck.stage.append(stage)
            stuck.kind.append(kind_of(number))
            stuck.batch.append(batch_of(number))
            stuck.source.append(stage - 1 if forward else min(stage + 1, stages - 1))
        elif place_of(number) % stages == stage:
            work.append(number)


def one_path(work: list[int], stage: int, micro_batches: int, warm_up: int, lag: int, split: bool) -> None:
    """Warm-up forwards, then one backward and one forward in turn. If the backward is split, each weight
    gradient follows ``lag`` backwards later, and the remaining ones come last.

    GPipe warms up with every micro-batch (arXiv:1811.06965 section 2.3), 1F1B with p − s at stage s
    (arXiv:2104.04473 section 2.2.1). ZB-H1 has the same warm-up and a lag of s, ZB-H2 warms up with 2(p − s)
    − 1 and has a lag of 2s (arXiv:2401.10241 section 2 and figure 3).
    """
    ahead = min(warm_up, micro_batches)
    for batch in range(ahead):
        work.append(block(FORWARD, stage, batch))
    for batch in range(micro_batches):
        work.append(block(INPUT if split else BACKWARD, stage, batch))
        if split and batch >= lag:
            work.append(block(WEIGHT, stage, batch - lag))
        if batch + ahead < micro_batches:
            work.append(block(FORWARD, stage, batch + ahead))
    if split:
        for batch in range(max(0, micro_batches - lag), micro_batches):
            work.append(block(WEIGHT, stage, batch))


def interleaved(work: list[int], stage: int, stages: int, micro_batches: int, chunks: int) -> None:
    """Interleaved 1F1B (arXiv:2104.04473 section 2.2.2): a group of p micro-batches through the first chunk,
    the same group through the next chunk, and so on; backwards likewise from the last chunk. Where p does not
    divide m, the groups are made as equal as possible, the larger ones first (torch.distributed.pipelining
    also has such rounds).
    """
    groups = max(1, micro_batches // stages)
    size, larger = micro_batches // groups, micro_batches % groups
    passes = micro_batches * chunks
    warm_up = min(passes, 2 * (stages - stage - 1) + (chunks - 1) * (size + (1 if larger > 0 else 0)))
    for turn in range(passes + warm_up):
        if turn < passes:
            chunk, batch = in_groups(turn, size, larger, chunks)
            work.append(block(FORWARD, chunk * stages + stage, batch))
        if turn >= warm_up:
            chunk, batch = in_groups(turn - warm_up, size, larger, chunks)
            work.append(block(BACKWARD, (chunks - 1 - chunk) * stages + stage, batch))


def in_groups(turn: int, size: int, larger: int, chunks: int) -> tuple[int, int]:
    """The chunk and the micro-batch of a stage's pass with this number, where the first groups are larger by
    one."""
    first = larger * (size + 1)  # micro-batches in the larger groups
    if turn < first * chunks:
        return within(turn, 0, size + 1, chunks)
    return within(turn - first * chunks, first, size, chunks)


def within(turn: int, first: int, size: int, chunks: int) -> tuple[int, int]:
    """``in_groups`` for groups of one size, starting at the micro-batch ``first``."""
    group, rest = turn // (size * chunks), turn % (size * chunks)
    return rest // size, first + group * size + rest % size


def dualpipe(work: list[int], stage: int, stages: int, micro_batches: int) -> None:
    """DualPipe (arXiv:2412.19437 section 3.2.1). Half of the micro-batches enter at stage 0, the others at
    stage p − 1. For a stage, direction 0 is the one that enters at the nearer end. p must be even, m even and
    at least 2p.
    """
    half, per_direction = stages // 2, micro_batches // 2
    near = min(stage, stages - 1 - stage)
    first = [0, per_direction] if stage < half else [per_direction, 0]
    two_ways(work, near, half, per_direction, [near, stages - 1 - near], first)


def two_ways(
    work: list[int], near: int, half: int, per_direction: int, place: list[int], first: list[int]
) -> None:
    """The eight steps of DualPipe's published code (deepseek-ai/DualPipe, dualpipe.py, ``step``), for two
    lines of ``half`` GPUs that are folded onto each other: two directions in DualPipe. In DualPipeV, its one
    half, they are the way down the stages and the way up, so that all m micro-batches enter at stage 0; m
    must be at least 2p.
    """
    far = half - near - 1
    forward, backward, weights = [0, 0], [0, 0], []
    for _ in range(2 * far):
        step(work, FORWARD, 0, place, first, forward)
    for _ in range(near + 1):
        step(work, FORWARD, 0, place, first, forward)
        step(work, FORWARD, 1, place, first, forward)
    for _ in range(far):
        input_first(work, 1, place, first, backward, weights)
        work.append(weights.pop())
        step(work, FORWARD, 1, place, first, forward)
    for turn in range(per_direction - 2 * half + near + 1):
        step(work, FORWARD if turn == 0 and far == 0 else BESIDE, 0, place, first, forward)
        step(work, BACKWARD, 1, place, first, backward)
        step(work, BESIDE, 1, place, first, forward)
        step(work, BACKWARD, 0, place, first, backward)
    for _ in range(far):
        step(work, BACKWARD, 1, place, first, backward)
        step(work, BESIDE, 1, place, first, forward)
        step(work, BACKWARD, 0, place, first, backward)
    whole = near + 1  # this many of the last 2·(near + 1) backwards are not split
    for turn in range(2 * (near + 1)):
        if turn < whole:
            step(work, BACKWARD, 1 - turn % 2, place, first, backward)
        else:
            input_first(work, 1 - turn % 2, place, first, backward, weights)
    done = 0
    for _ in range(far):
        work.append(weights[done])
        done += 1
        input_first(work, 0, place, first, backward, weights)
    for turn in range(done, len(weights)):
        work.append(weights[turn])


def zb_v(work: list[int], stage: int, stages: int, micro_batches: int) -> None:
    """ZB-V (arXiv:2401.10241 section 6): each stage has a chunk of the way down and one of the way up, so
    that the last stage turns a micro-batch round without a message. The order is that of
    torch.distributed.pipelining's ScheduleZBVZeroBubble; a step with fewer than 2p − 1 micro-batches leaves
    out the others' passes.
    """
    place, count = [stage, 2 * stages - 1 - stage], [0, 0, 0, 0, 0, 0]
    turns = max(2 * stages - 1, micro_batches)
    for _ in range(2 * (stages - stage) - 1):
        next_of(work, FORWARD, 0, place, count, micro_batches)
    for _ in range(stage):
        next_of(work, FORWARD, 1, place, count, micro_batches)
        next_of(work, FORWARD, 0, place, count, micro_batches)
    for _ in range(stages - stage):
        next_of(work, FORWARD, 1, place, count, micro_batches)
        next_of(work, INPUT, 1, place, count, micro_batches)
        next_of(work, WEIGHT, 1, place, count, micro_batches)
    for _ in range(turns - stages):
        next_of(work, FORWARD, 0, place, count, micro_batches)
        next_of(work, INPUT, 0, place, count, micro_batches)
        next_of(work, WEIGHT, 0, place, count, micro_batches)
        next_of(work, FORWARD, 1, place, count, micro_batches)
        next_of(work, INPUT, 1, place, count, micro_batches)
        next_of(work, WEIGHT, 1, place, count, micro_batches)
    for _ in range(stage):
        next_of(work, INPUT, 0, place, count, micro_batches)
        next_of(work, INPUT, 1, place, count, micro_batches)
    for _ in range(stages - stage):
        next_of(work, INPUT, 0, place, count, micro_batches)
        next_of(work, WEIGHT, 0, place, count, micro_batches)
    for _ in range(stage):
        next_of(work, WEIGHT, 1, place, count, micro_batches)
    for _ in range(stage):
        next_of(work, WEIGHT, 0, place, count, micro_batches)


def next_of(
    work: list[int], kind: int, chunk: int, place: list[int], count: list[int], micro_batches: int
) -> None:
    """Append the next pass of this kind through one of the two chunks, if there is such a micro-batch;
    ``count`` has one number for each kind and chunk."""
    at = 2 * (kind if kind == FORWARD else kind - 1) + chunk
    if count[at] < micro_batches:
        work.append(block(kind, place[chunk], count[at]))
    count[at] += 1


def step(
    work: list[int], kind: int, direction: int, place: list[int], first: list[int], count: list[int]
) -> None:
    """Append the next micro-batch of a direction."""
    work.append(block(kind, place[direction], first[direction] + count[direction]))
    count[direction] += 1


def input_first(
    work: list[int], direction: int, place: list[int], first: list[int], count: list[int], weights: list[int]
) -> None:
    """``step`` for an input gradient, whose weight gradient is postponed."""
    weights.append(block(WEIGHT, place[direction], first[direction] + count[direction]))
    step(work, INPUT, direction, place, first, count)
