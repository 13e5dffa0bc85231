"""Pipeline schedules in closed form: the bubble, the micro-batches in flight, the layers of the fullest
stage.

F and B are a stage's forward and backward time for one micro-batch; W is the part of B that computes weight
gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.mechanism import pipeline_orders as orders


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as coefficients, so that many of them can be evaluated at once.

    bubble = max(0, stages_share·p − 1) / v · max(0, forwards·F + backwards·B − weight_gradients·W)
    in flight on stage i: see ``in_flight``, which reads flight_ahead, flight_group, flight_stages,
    flight_more and weights_late
    """

    key: str
    name: str
    order: int  # which of pipeline_orders' orders executes it
    weight_gradients: float
    flight_ahead: float  # micro-batches (of a chunk) that a stage runs ahead, per stage after it
    flight_more: float = 0.0
    flight_stages: float = 0.0  # … and per stage of the pipeline, wherever the stage is
    flight_group: float = 1.0  # 1.0 where each chunk but the last holds a group of micro-batches
    weights_late: float = 0.0  # weight gradients postponed, per stage before
    stages_share: float = 1.0
    forwards: float = 1.0
    backwards: float = 1.0
    weight_copies: float = 1.0
    least_per_stage: float = 0.0  # the formulas hold from least_per_stage·p + least_more micro-batches on
    least_more: float = 0.0  # (at least one)
    hides_experts: float = 0.0  # 1.0 where the opposite direction's arithmetic overlaps the AllToAll
    interleaved: bool = False
    folded: float = 0.0  # 1.0 for a V: micro-batches go down the stages and up again, so each has two chunks
    source: str = ""


TURNS = 2  # chunks on each stage of a V
KEPT_FOR_WEIGHTS = 32 / 34  # M_W over M_B of arXiv:2401.10241 Table 1, without attention's scores
ALL_OF_THEM = 1e12  # GPipe holds every micro-batch of the step

SCHEDULES = {
    schedule.key: schedule
    for schedule in (
        Schedule(
            "gpipe",
            "GPipe",
            orders.GPIPE,
            0.0,
            0.0,
            flight_more=ALL_OF_THEM,
            source="arXiv:1811.06965 section 2.3",
        ),
        Schedule("1f1b", "1F1B", orders.ONE_F_ONE_B, 0.0, 1.0, source="arXiv:2104.04473 section 2.2.1"),
        Schedule(
            "interleaved",
            "interleaved 1F1B",
            orders.INTERLEAVED,
            0.0,
            2.0,
            least_per_stage=1.0,
            interleaved=True,
            source="arXiv:2104.04473 section 2.2.2; memory: arXiv:2205.05198 section 4.2.3",
        ),
        Schedule(
            "zb-h1",
            "ZB-H1",
            orders.ZB_H1,
            2.0,
            1.0,
            weights_late=1.0,
            least_per_stage=1.0,
            source="arXiv:2401.10241 Table 2; DualPipe README (ZB1P)",
        ),
        Schedule(
            "zb-h2",
            "ZB-H2",
            orders.ZB_H2,
            3.0,
            2.0,
            weights_late=2.0,
            least_per_stage=2.0,
            least_more=-1.0,
            source="arXiv:2401.10241 Table 2",
        ),
        Schedule(
            "dualpipe",
            "DualPipe",
            orders.DUALPIPE,
            3.0,
            0.0,
            flight_stages=1.0,
            stages_share=0.5,
            backwards=2.0,
            weight_copies=2.0,
            least_per_stage=2.0,
            hides_experts=1.0,
            source="DualPipe README",
        ),
        Schedule(
            "zb-v",
            "ZB-V",
            orders.ZB_V,
            4.0,
            0.0,
            flight_more=-0.5,
            flight_stages=1.0,
            flight_group=0.0,
            forwards=0.0,
            backwards=2.0,
            least_per_stage=2.0,
            least_more=-1.0,
            folded=1.0,
            source="arXiv:2401.10241 section 6; torch.distributed.pipelining, ScheduleZBVZeroBubble",
        ),
        Schedule(
            "dualpipe-v",
            "DualPipeV",
            orders.DUALPIPE_V,
            3.0,
            0.0,
            flight_stages=1.0,
            flight_group=0.0,
            backwards=2.0,
            least_per_stage=2.0,
            folded=1.0,  # PyTorch runs a pair's passes one after the other, so nothing hides AllToAlls
            source="DualPipe README; torch.distributed.pipelining, ScheduleDualPipeV",
        ),
    )
}


def schedule(key: str) -> Schedule:
    """The schedule with this key."""
    check.one_of(SCHEDULES, schedule=key)
    return SCHEDULES[key]


def chunks_of(plan: Schedule, chunks: Real) -> Real:
    """Chunks of layers on a stage: as many as are asked for if the schedule is interleaved, two in a V, else
    one."""
    return ops.where(plan.interleaved, chunks * 1.0, ops.where(plan.folded > 0.0, float(TURNS), 1.0))


def bubble_s(
    stages: Real, chunks: Real, forward_s: Real, backward_s: Real, weight_gradient_s: Real, plan: Schedule
) -> Real:
    """Idle time of a stage in one step. GPipe and 1F1B: (p−1)(F+B); interleaved: divided by its v chunks;
    ZB-H1: (p−1)(F+B−2W); ZB-H2: (p−1)(F+B−3W); DualPipe: (p/2−1)(F&B+B−3W); ZB-V: (p−1)(B−2W); DualPipeV:
    (p−1)(F&B+B−3W)/2; all never below zero.

    These hold with enough micro-batches (see ``least_micro_batches``). Leaves out the time that a stage waits
    for messages (see layout.py) and stages of unequal length. DualPipe's F&B, one forward and one backward
    run together, is taken as F + B; its formula and DualPipeV's are exact if a forward takes as long as an
    input gradient, and the zero-bubble ones if a weight gradient takes no longer than a forward or an input
    gradient; ZB-V's, which is read off the executed schedule, if a forward takes no longer than an input
    gradient, either (test_pipeline_schedules.py). ZB-V and DualPipeV have two chunks: v is 2.
    """
    if not check.is_trusted():
        check.whole(stages=stages, chunks=chunks)
        check.non_negative(forward_s=forward_s, backward_s=backward_s, weight_gradient_s=weight_gradient_s)
    waiting = ops.maximum(0.0, plan.stages_share * stages - 1.0) / chunks
    return waiting * ops.maximum(
        0.0,
        plan.forwards * forward_s + plan.backwards * backward_s - plan.weight_gradients * weight_gradient_s,
    )


def step_s(
    stages: Real,
    micro_batches: Real,
    chunks: Real,
    forward_s: Real,
    backward_s: Real,
    weight_gradient_s: Real,
    plan: Schedule,
) -> Real:
    """The time of a step with equal stages: m·(F + B) of work plus the bubble."""
    if not check.is_trusted():
        check.whole(micro_batches=micro_batches)
    idle_s = bubble_s(stages, chunks, forward_s, backward_s, weight_gradient_s, plan)
    return micro_batches * (forward_s + backward_s) + idle_s


def idle_share(
    stages: Real,
    micro_batches: Real,
    chunks: Real,
    forward_s: Real,
    backward_s: Real,
    weight_gradient_s: Real,
    plan: Schedule,
) -> Real:
    """The bubble as a share of the whole step; 1F1B: (p−1)/(m+p−1), interleaved (p−1)/(v·m+p−1)."""
    idle_s = bubble_s(stages, chunks, forward_s, backward_s, weight_gradient_s, plan)
    return idle_s / step_s(stages, micro_batches, chunks, forward_s, backward_s, weight_gradient_s, plan)


def bubble_share(
    stages: Real, micro_batches: Real, chunks: Real = 1, backward_over_forward: Real = 2.0, key: str = "1f1b"
) -> Real:
    """``idle_share`` of a schedule by its key, if half of the backward pass computes weight gradients."""
    check.whole(stages=stages, micro_batches=micro_batches, chunks=chunks)
    check.positive(backward_over_forward=backward_over_forward)
    return idle_share(
        stages * 1.0,
        micro_batches * 1.0,
        chunks * 1.0,
        1.0,
        backward_over_forward,
        backward_over_forward / 2,
        schedule(key),
    )


def micro_batches_for(
    share: Real,
    stages: Real,
    chunks: Real,
    forward_s: Real,
    backward_s: Real,
    weight_gradient_s: Real,
    plan: Schedule,
) -> Real:
    """The fewest micro-batches whose bubble, I/(m(F+B)+I), is at most this share, and with which the formula
    holds."""
    if not check.is_trusted():
        check.share(share=share)
    idle_s = bubble_s(stages, chunks, forward_s, backward_s, weight_gradient_s, plan)
    needed = idle_s * (1.0 - share) / (share * (forward_s + backward_s))
    return ops.maximum(ops.ceil(needed - 1e-9), least_micro_batches(stages, plan))


def in_flight(
    stages: Real,
    micro_batches: Real,
    chunks: Real,
    plan: Schedule,
    stage: Real = 0.0,
    group: Real | None = None,
) -> Real:
    """Micro-batches whose activations stage i (0 is the first) holds at its peak, for all of its layers.

    Never more than the m of the step. GPipe: all of them. 1F1B: p − i. Interleaved with v chunks: (2·(p−i−1)
    + (v−1)·g + 1)/v, with g the micro-batches of the first group. Where p divides m, g is p, which gives p·(1
    + (p−1)/(p·v)) on the first stage (Korthikanti et al. section 4.2.3). ZB-H1: p − i, ZB-H2: 2·(p − i) − 1,
    plus i and 2·i micro-batches whose weight gradients are still to come, each counting KEPT_FOR_WEIGHTS of a
    whole one. DualPipe: p + 1 on every stage, both directions together. ZB-V: p, DualPipeV: p + 1/2, each on
    every stage.

    Equal to what the executed schedules hold (test_pipeline_schedules.py). Leaves out that chunks may differ
    by a layer. ``group`` is ``first_group``, where several stages are asked for.
    """
    if not check.is_trusted():
        check.whole(stages=stages, micro_batches=micro_batches, chunks=chunks)
        check.whole(0, stage=stage)
        check.ordered(stage=stage, last_stage=stages - 1)
    behind = stages - stage - 1.0
    group = first_group(stages, micro_batches) if group is None else group
    whole = ops.minimum(
        micro_batches,
        (plan.flight_ahead * behind + plan.flight_group * (chunks - 1.0) * group + 1.0) / chunks
        + (plan.flight_stages * stages + plan.flight_more),
    )
    if ops.is_zero(stage):  # the first stage postpones no weight gradients
        return whole
    put_off = ops.minimum(plan.weights_late * stage, micro_batches - whole)
    return whole + KEPT_FOR_WEIGHTS * put_off


def first_group(stages: Real, micro_batches: Real) -> Real:
    """The g of ``in_flight``: micro-batches that a stage works on before it turns to the next chunk. They are
    p, or a few more where p does not divide m."""
    if not check.is_trusted():
        check.whole(stages=stages, micro_batches=micro_batches)
    return ops.ceil(micro_batches / ops.maximum(1.0, ops.floor(micro_batches / stages)))


def held_layers(
    layers: Real,
    missing: Real,
    flight: Real,
    stages: Real,
    micro_batches: Real,
    chunks: Real,
    plan: Schedule,
    stage: Real,
) -> Real:
    """Layers times micro-batches whose activations an end of the pipeline holds at its peak: it has so many
    layers, ``missing`` fewer than the full stage whose micro-batches in flight are given.

    Without interleaving, all layers are held for as many micro-batches. With it, the chunk next to the
    embedding or the output layer is the one with fewer layers: the first stage holds its first chunk for 2p −
    1 micro-batches (all m where there are fewer), the last stage its last chunk for one, and for none once a
    second group of micro-batches has begun. Equal to the executed schedule
    (test_pipeline_schedules.py) while no other chunk has fewer layers; each layer that is missing there
    counts for p micro-batches.
    """
    full = layers + missing
    outer = ops.minimum(missing, full / chunks)
    first = ops.minimum(micro_batches, 2.0 * stages - 1.0)
    last = ops.where((micro_batches > stages) & (missing > 0.0), 0.0, 1.0)
    fewer = outer * ops.where(stage > 0.0, last, first)
    fewer = fewer + (missing - outer) * ops.minimum(micro_batches, stages)
    in_chunks = (chunks > 1.0) & (plan.folded < 1.0) & (layers > 0.0)
    return ops.where(in_chunks, full * flight - fewer, layers * flight)


def first_stage_bytes(
    stages: Real, micro_batches: Real, chunks: Real, activation_bytes: Real, plan: Schedule
) -> Real:
    """Activations on the first stage at its peak: a p-th of what one micro-batch leaves in all layers
    (``activation_bytes``), for each micro-batch in flight. Under 1F1B that equals one whole micro-batch, for
    any p up to m."""
    if not check.is_trusted():
        check.non_negative(activation_bytes=activation_bytes)
    return in_flight(stages, micro_batches, chunks, plan) * activation_bytes / stages


def least_micro_batches(stages: Real, plan: Schedule) -> Real:
    """The number of micro-batches from which a schedule's bubble and memory follow the formulas; with fewer,
    there is too little work to fill the waiting time. ZB-H2 and ZB-V need 2p − 1 to warm up, DualPipe and
    DualPipeV two per stage."""
    if not check.is_trusted():
        check.whole(stages=stages)
    return ops.maximum(1.0, plan.least_per_stage * stages + plan.least_more)


class Passes(NamedTuple):
    """The time of a stage for one micro-batch: forward, backward, and the backward's two halves."""

    forward_s: float
    backward_s: float
    input_s: float
    weight_s: float


def passes(forward_s: Real, backward_over_forward: Real, weight_share: Real) -> Passes:
    """The passes from the forward time, the ratio of backward to forward, and the share of the backward that
    computes weight gradients."""
    if not check.is_trusted():
        check.positive(
            forward_s=forward_s, backward_over_forward=backward_over_forward, weight_share=weight_share
        )
    backward_s = forward_s * backward_over_forward
    return Passes(forward_s, backward_s, backward_s * (1.0 - weight_share), backward_s * weight_share)


def imbalance(slowest_s: Real, all_s: Real, stages: Real) -> Real:
    """The busiest stage's work over the average of all stages: the factor by which each further micro-batch
    is too slow."""
    return slowest_s * stages / all_s


def against_1f1b(held: Real, stages: Real, micro_batches: Real) -> Real:
    """The activations that a stage holds, relative to 1F1B's first stage."""
    return held / in_flight(stages, micro_batches, 1.0, SCHEDULES["1f1b"])


class StageLayers(NamedTuple):
    """Layers of a full stage, of the first and of the last."""

    full: float
    first: float
    last: float


def folded_layers(cut: StageLayers) -> StageLayers:
    """``stage_layers`` for a V, where the first stage holds both ends: here ``last`` is that stage, and all
    others are full."""
    return StageLayers(cut.full, cut.full, ops.maximum(1.0, cut.first + cut.last - cut.full))


def stage_layers(
    layers: Real, stages: Real, chunks: Real, first: float = 0.0, last: float = 0.0
) -> StageLayers:
    """A full stage holds ⌈L/(p·v)⌉·v layers. If the layers do not divide evenly, the ends get fewer, because
    they also hold the embedding and the output layer: the last stage gives up the larger half, as in Llama 3
    (126 layers in 128 slots) and BLOOM (70 in 72). Each end keeps at least one layer; any further shortfall
    is taken off stages in the middle. Where the layers of the first or the last stage are given (above 0),
    the others share what is left.
    """
    if first or last:
        left, others = layers - first - last, stages - (first > 0.0) - (last > 0.0)
        full = left / others if others else max(first, last)
        return StageLayers(full, first or full, last or full)
    if not check.is_trusted():
        check.whole(layers=layers, stages=stages, chunks=chunks)
    full = ops.ceil(layers / (stages * chunks)) * chunks
    half = (full * stages - layers) / 2.0
    room = full - 1.0
    return StageLayers(
        full, full - ops.minimum(ops.floor(half), room), full - ops.minimum(ops.ceil(half), room)
    )
