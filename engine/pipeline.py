"""Pipeline schedules in closed form: the bubble, the activations in flight, the layers of the fullest stage.

F and B are a stage's forward and backward time for one micro-batch; W is the part of B that computes weight gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from engine import check, ops
from engine import pipeline_orders as orders


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as coefficients, so that many of them can be evaluated at once.

    bubble = max(0, stages_share·p − 1) / v · max(0, F + backwards·B − weight_gradients·W)
    in flight = min(m, flight_stages·p + flight_warm_up·(p − 1)/v + flight_more)   micro-batches' activations of a stage
    """

    key: str
    name: str
    order: int                      # how pipeline_orders runs it
    weight_gradients: float
    flight_warm_up: float
    flight_more: float
    stages_share: float = 1.0
    backwards: float = 1.0
    weight_copies: float = 1.0
    last_flight: float = 1.0        # micro-batches that the last stage holds at most
    least_per_stage: float = 0.0    # the least micro-batches for which this holds are least_per_stage·p + least_more
    least_more: float = 0.0         # (one at the very least)
    hides_experts: float = 0.0      # 1.0 where an opposite direction's arithmetic runs beside the AllToAll
    interleaved: bool = False
    source: str = ""


ALL_OF_THEM = 1e12  # GPipe holds every micro-batch of the step

SCHEDULES = {schedule.key: schedule for schedule in (
    Schedule("gpipe", "GPipe", orders.GPIPE, 0.0, 0.0, ALL_OF_THEM, last_flight=ALL_OF_THEM,
             source="arXiv:1811.06965 section 2.3"),
    Schedule("1f1b", "1F1B", orders.ONE_F_ONE_B, 0.0, 0.0, 0.0, source="arXiv:2104.04473 section 2.2.1"),
    Schedule("interleaved", "interleaved 1F1B", orders.INTERLEAVED, 0.0, 1.0, 0.0, least_per_stage=1.0,
             interleaved=True, source="arXiv:2104.04473 section 2.2.2; memory: arXiv:2205.05198 section 4.2.3"),
    Schedule("zb-h1", "ZB-H1", orders.ZB_H1, 2.0, 0.0, 0.0, least_per_stage=1.0,
             source="arXiv:2401.10241 Table 2; DualPipe README (ZB1P)"),
    Schedule("zb-h2", "ZB-H2", orders.ZB_H2, 3.0, 1.0, 0.0, least_per_stage=2.0, least_more=-1.0,
             source="arXiv:2401.10241 Table 2"),
    Schedule("dualpipe", "DualPipe", orders.DUALPIPE, 3.0, 0.0, 1.0, stages_share=0.5, backwards=2.0, weight_copies=2.0,
             last_flight=ALL_OF_THEM, least_per_stage=2.0, hides_experts=1.0, source="DualPipe README"),
)}


def schedule(key: str) -> Schedule:
    """The schedule of this key."""
    check.one_of(SCHEDULES, schedule=key)
    return SCHEDULES[key]


def bubble_s(stages, chunks, forward_s, backward_s, weight_gradient_s, plan):
    """Idle time of a stage in one step. GPipe and 1F1B: (p−1)(F+B); interleaved: divided by its v chunks; ZB-H1:
    (p−1)(F+B−2W); ZB-H2: (p−1)(F+B−3W); DualPipe: (p/2−1)(F&B+B−3W), all never below zero.

    They hold where there are micro-batches enough (see ``least_micro_batches``). Leaves out what a stage waits for
    messages (see layout.py) and stages of unequal length. DualPipe's F&B, one forward and one backward run together, is
    taken as F + B; its formula is exact where a forward takes as long as an input gradient, and the zero-bubble ones
    where a weight gradient takes no longer than a forward or an input gradient (test_pipeline_schedules.py).
    """
    if not check.is_trusted():
        check.whole(stages=stages, chunks=chunks)
        check.non_negative(forward_s=forward_s, backward_s=backward_s, weight_gradient_s=weight_gradient_s)
    waiting = ops.maximum(0.0, plan.stages_share * stages - 1.0) / chunks
    return waiting * ops.maximum(
        0.0, forward_s + plan.backwards * backward_s - plan.weight_gradients * weight_gradient_s)


def step_s(stages, micro_batches, chunks, forward_s, backward_s, weight_gradient_s, plan):
    """A step with equal stages: m·(F + B) of work and the bubble."""
    if not check.is_trusted():
        check.whole(micro_batches=micro_batches)
    idle_s = bubble_s(stages, chunks, forward_s, backward_s, weight_gradient_s, plan)
    return micro_batches * (forward_s + backward_s) + idle_s


def idle_share(stages, micro_batches, chunks, forward_s, backward_s, weight_gradient_s, plan):
    """The bubble as a share of the whole step; 1F1B: (p−1)/(m+p−1), interleaved (p−1)/(v·m+p−1)."""
    idle_s = bubble_s(stages, chunks, forward_s, backward_s, weight_gradient_s, plan)
    return idle_s / step_s(stages, micro_batches, chunks, forward_s, backward_s, weight_gradient_s, plan)


def bubble_share(stages, micro_batches, chunks=1, backward_over_forward=2.0, key="1f1b"):
    """The same for a schedule by its key, with half of the backward in weight gradients."""
    check.whole(stages=stages, micro_batches=micro_batches, chunks=chunks)
    check.positive(backward_over_forward=backward_over_forward)
    return idle_share(stages * 1.0, micro_batches * 1.0, chunks * 1.0, 1.0, backward_over_forward,
                      backward_over_forward / 2, schedule(key))


def micro_batches_for(share, stages, chunks, forward_s, backward_s, weight_gradient_s, plan):
    """The least micro-batches with a bubble I/(m(F+B)+I) of at most this share, and enough for the formula to hold."""
    if not check.is_trusted():
        check.share(share=share)
    idle_s = bubble_s(stages, chunks, forward_s, backward_s, weight_gradient_s, plan)
    needed = idle_s * (1.0 - share) / (share * (forward_s + backward_s))
    return ops.maximum(ops.ceil(needed - 1e-9), least_micro_batches(stages, plan))


def in_flight(stages, micro_batches, chunks, plan):
    """Micro-batches whose activations the first stage holds at once (for all of its layers)."""
    if not check.is_trusted():
        check.whole(stages=stages, micro_batches=micro_batches, chunks=chunks)
    return ops.minimum(micro_batches, stages + plan.flight_warm_up * (stages - 1.0) / chunks + plan.flight_more)


def first_stage_bytes(stages, micro_batches, chunks, activation_bytes, plan):
    """Activations on the first stage at its fullest: its p-th part of what one micro-batch leaves in all layers
    (``activation_bytes``), for each micro-batch in flight. Under 1F1B that is the whole of one, for any p up to m."""
    if not check.is_trusted():
        check.non_negative(activation_bytes=activation_bytes)
    return in_flight(stages, micro_batches, chunks, plan) * activation_bytes / stages


def least_micro_batches(stages, plan):
    """From how many micro-batches on a schedule's bubble and memory are what the formulas say: with fewer, there is not
    enough work to fill the waiting with. ZB-H2 needs its 2p − 1 to warm up, DualPipe two for each stage."""
    if not check.is_trusted():
        check.whole(stages=stages)
    return ops.maximum(1.0, plan.least_per_stage * stages + plan.least_more)


class Passes(NamedTuple):
    """How long a stage takes for one micro-batch: forward, backward, and the backward's two halves."""

    forward_s: float
    backward_s: float
    input_s: float
    weight_s: float


def passes(forward_s, backward_over_forward, weight_share) -> Passes:
    """From a forward, its ratio to a backward, and the share of the backward that computes weight gradients."""
    if not check.is_trusted():
        check.positive(forward_s=forward_s, backward_over_forward=backward_over_forward, weight_share=weight_share)
    backward_s = forward_s * backward_over_forward
    return Passes(forward_s, backward_s, backward_s * (1.0 - weight_share), backward_s * weight_share)


def imbalance(slowest_s, all_s, stages):
    """How long the busiest stage works, over the average of all: what every further micro-batch costs too much."""
    return slowest_s * stages / all_s


def against_1f1b(held, stages, micro_batches):
    """The activations that a stage holds over those of 1F1B's first stage."""
    return held / in_flight(stages, micro_batches, 1.0, SCHEDULES["1f1b"])


class StageLayers(NamedTuple):
    """Layers of a full stage, of the first and of the last."""

    full: float
    first: float
    last: float


def stage_layers(layers, stages, chunks) -> StageLayers:
    """A full stage holds ⌈L/(p·v)⌉·v layers. What does not divide is taken off the ends, which also hold the embedding
    and the output layer: the last stage gives up the larger half, as in Llama 3 (126 layers in 128 slots) and BLOOM (70
    in 72). Each end keeps at least one layer; what is then still missing is taken off stages in the middle.
    """
    if not check.is_trusted():
        check.whole(layers=layers, stages=stages, chunks=chunks)
    full = ops.ceil(layers / (stages * chunks)) * chunks
    half = (full * stages - layers) / 2.0
    room = full - 1.0
    return StageLayers(full, full - ops.minimum(ops.floor(half), room), full - ops.minimum(ops.ceil(half), room))
