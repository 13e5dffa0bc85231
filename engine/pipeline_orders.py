"""Pipeline schedules as orders of work: for each stage, the list of passes that it makes, one after the other.

A *block* is one pass of one micro-batch through one stretch of layers. The stretches that a micro-batch comes by are
its *places*, from 0 at the embedding to the last one at the loss. A stage holds one place; with interleaving it holds
every p-th of p·v places; in DualPipe, where micro-batches enter from both ends, it holds one place of each direction.

A block is written as one number, so that an order is a plain list that ``engine.program`` can take to the page.
"""

from __future__ import annotations

FORWARD, BACKWARD, INPUT, WEIGHT, BESIDE = 0, 1, 2, 3, 4  # BESIDE: a forward that runs together with the next block
GPIPE, ONE_F_ONE_B, INTERLEAVED, ZB_H1, ZB_H2, DUALPIPE = 0, 1, 2, 3, 4, 5
KINDS, PLACES = 8, 64


def block(kind, place, batch):
    """The number of a block: kind + 8·(place + 64·micro-batch)."""
    return kind + KINDS * (place + PLACES * batch)


def kind_of(work):
    """FORWARD, BACKWARD (whole), INPUT or WEIGHT (its two halves), or BESIDE."""
    return work % KINDS


def place_of(work):
    """Where on its way through the model the micro-batch is."""
    return work // KINDS % PLACES


def batch_of(work):
    """The micro-batch, from 0."""
    return work // (KINDS * PLACES)


def order(work, schedule, stage, stages, micro_batches, chunks):
    """Append a stage's blocks to the list ``work`` in the order of the schedule."""
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
    else:
        dualpipe(work, stage, stages, micro_batches)


def one_path(work, stage, micro_batches, warm_up, lag, split):
    """Forwards to warm up, then one backward and one forward in turn. Where the backward is split, the weight gradients
    follow ``lag`` backwards later, and what is left of them comes last.

    GPipe warms up with every micro-batch (arXiv:1811.06965 section 2.3), 1F1B with p − s at stage s (arXiv:2104.04473
    section 2.2.1). ZB-H1 has the same warm-up and lags by s, ZB-H2 warms up with 2(p − s) − 1 and lags by 2s
    (arXiv:2401.10241 section 2 and figure 3).
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


def interleaved(work, stage, stages, micro_batches, chunks):
    """Interleaved 1F1B (arXiv:2104.04473 section 2.2.2): a group of p micro-batches through the first chunk, the same
    through the next one, and so on; backwards the same from the last chunk. Where p does not divide m, the groups are
    as equal as can be (torch.distributed.pipelining has such rounds, too), the larger ones first.
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


def in_groups(turn, size, larger, chunks):
    """Which chunk and which micro-batch a stage's pass of this number has, the first groups being larger by one."""
    first = larger * (size + 1)                 # micro-batches of the larger groups
    if turn < first * chunks:
        return within(turn, 0, size + 1, chunks)
    return within(turn - first * chunks, first, size, chunks)


def within(turn, first, size, chunks):
    """The same for groups of one size, from the micro-batch ``first`` on."""
    group, rest = turn // (size * chunks), turn % (size * chunks)
    return rest // size, first + group * size + rest % size


def dualpipe(work, stage, stages, micro_batches):
    """DualPipe (arXiv:2412.19437 section 3.2.1), in the eight steps of its published code (deepseek-ai/DualPipe,
    dualpipe.py, ``step``). Half of the micro-batches enter at stage 0, the others at stage p − 1. For a stage,
    direction 0 is the one that enters nearer to it. p must be even, m even and at least 2p.
    """
    half, per_direction = stages // 2, micro_batches // 2
    near = min(stage, stages - 1 - stage)
    far = half - near - 1
    place = [near, stages - 1 - near]
    first = [0, per_direction] if stage < half else [per_direction, 0]
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
    for turn in range(per_direction - stages + near + 1):
        step(work, FORWARD if turn == 0 and far == 0 else BESIDE, 0, place, first, forward)
        step(work, BACKWARD, 1, place, first, backward)
        step(work, BESIDE, 1, place, first, forward)
        step(work, BACKWARD, 0, place, first, backward)
    for _ in range(far):
        step(work, BACKWARD, 1, place, first, backward)
        step(work, BESIDE, 1, place, first, forward)
        step(work, BACKWARD, 0, place, first, backward)
    whole = near + 1            # so many of the last 2·(near + 1) backwards are in one piece
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


def step(work, kind, direction, place, first, count):
    """The next micro-batch of a direction."""
    work.append(block(kind, place[direction], first[direction] + count[direction]))
    count[direction] += 1


def input_first(work, direction, place, first, count, weights):
    """The same for an input gradient; its weight gradient is put off."""
    weights.append(block(WEIGHT, place[direction], first[direction] + count[direction]))
    step(work, INPUT, direction, place, first, count)
