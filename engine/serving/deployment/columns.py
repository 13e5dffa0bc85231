"""What the closed forms of deployments are told, what they say, and what follows from that: as columns over
many deployments, or as the numbers of a single one (``engine.base.program.elementwise``)."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from engine.base.program import elementwise, for_each, mean
from engine.base.types import Real, Truth
from engine.serving import equilibrium, step_costs
from engine.serving.equilibrium import LONGEST
from engine.serving.step_costs import Costs

LEAST = 1e-12
QUANTILES = tuple(NormalDist().inv_cdf((i + 0.5) / 24) for i in range(24))
IDLE = 1 / 20  # mean answers at once on a replica that is as good as idle
TTFT, TPOT, PAUSE, CAPACITY, SMALLEST = 0, 1, 2, 3, 4  # what a smaller deployment misses
BOUNDS = ("ttft_s", "tpot_s", "pause_s", "capacity", "smallest")  # their names


class Tables(NamedTuple):
    """The costs of several replicas, side by side (``step_costs.Costs``)."""

    rows: Real  # tokens of a step …
    rows_s: Real  # … and its seconds without attention, the table of one replica after the other
    pair_s: Real
    cached_s: Real
    capacity: Real
    sent_s: Real  # seconds for sending a cached token

    @classmethod
    def of(cls, costs: list[Costs], wires: list[float]) -> Tables:
        """``wires`` are the bytes per second between replicas, for each of the costs."""
        return cls(
            step_costs.ROWS,
            np.array([one.rows_s for one in costs]).ravel(),
            np.array([float(one.pair_s) for one in costs]),
            np.array([float(one.cached_s) for one in costs]),
            np.array([float(one.capacity) for one in costs]),
            np.array([float(one.kv_bytes) / wire for one, wire in zip(costs, wires)]),
        )


class Asked(NamedTuple):
    """The load and its limits. Its lengths are means, or columns of equally likely quantiles."""

    per_s: float
    ttft_s: float
    tpot_s: float
    pause_s: float
    most_running: float  # answers at once
    prompt: float
    context: float  # cached tokens of an answer that is being written
    answer: float
    fresh: Real  # quantiles of the tokens of a prompt that no prefix cache holds
    pairs: Real  # … of the pairs of a fresh token and a token that it attends to
    answers: Real
    fresh_mean: float
    fresh_square: float  # mean of the squares
    pairs_mean: float


class Tried(NamedTuple):
    """The drafts that are tried, as columns; the first are no drafts."""

    width: Real  # tokens of an answer that a step computes
    draft_s: Real
    gain: Real  # … and that it yields


class Plans(NamedTuple):
    """Deployments to judge, as columns of equal length with one entry for each deployment."""

    table: Real  # index of the replica's costs
    front: Real  # … and of those that only prefill; equal to ``table`` where none does
    budget: Real  # most tokens of a step
    prefillers: Real  # replicas of a unit that only prefill; 0 where prompts and answers share replicas
    decoders: Real  # of a unit
    drafts: Real  # index into the drafts that are tried; 0 for no drafts


class Judged(NamedTuple):
    """What each deployment does with its load."""

    steady: Truth  # whether it keeps up
    prompts_met: Real  # share of requests whose first token comes within its limit …
    tokens_met: Real  # … and of those whose other tokens do
    running: Real  # answers that a replica writes at once
    token_s: Real  # seconds from one token to the next, on average
    batch: Real  # answers that a replica's cache and steps have room for
    pause_s: Real  # the longest step that an answer sees, about
    pauses_met: Real  # 1 where that is within its limit

    def within(self, share: Real) -> Truth:
        """Which deployments keep up and meet each limit for this share of the requests."""
        return keeps(self, share)


# -- a load --------------------------------------------------------------------------------------------------
@elementwise
def length(z: Real, median: float, spread: float) -> Real:
    """A log-normal length that is ``z`` standard deviations from its median; none is beyond 16 medians
    (``events.lengths``)."""
    return np.minimum(LONGEST * median, median * np.exp(spread * z))


@elementwise
def held_tokens(prompt: Real, prefix_share: float) -> Real:
    """The tokens of a prompt that a prefix cache holds: never all."""
    return np.minimum(np.floor(prefix_share * prompt), prompt - 1.0)


@elementwise
def fresh_tokens(prompt: Real, held: Real) -> Real:
    """The tokens of a prompt that no prefix cache holds."""
    return prompt - held


@elementwise
def fresh_pairs(prompt: Real, held: Real) -> Real:
    """Pairs of a fresh token and a token that it attends to."""
    return (prompt**2 - held**2) / 2


@elementwise
def squared(value: Real) -> Real:
    """The square of a number."""
    return value**2


def asked(
    per_s: float,
    prompt: float,
    prompt_spread: float,
    output: float,
    output_spread: float,
    prefix_share: float,
    ttft_s: float,
    tpot_s: float,
    pause_s: float,
    most_running: float,
    quantiles: Any,
) -> Asked:
    """A load and its limits; ``quantiles`` are QUANTILES as a column."""
    prompts = for_each(length, (quantiles,), prompt, prompt_spread)
    held = for_each(held_tokens, (prompts,), prefix_share)
    fresh, pairs = for_each(fresh_tokens, (prompts, held)), for_each(fresh_pairs, (prompts, held))
    return Asked(
        per_s=per_s,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        pause_s=pause_s,
        most_running=most_running,
        prompt=equilibrium.moment(prompt, prompt_spread, 1.0),
        context=equilibrium.context_tokens(prompt, prompt_spread, output, output_spread),
        answer=equilibrium.moment(output, output_spread, 1.0),
        fresh=fresh,
        pairs=pairs,
        answers=for_each(length, (quantiles,), output, output_spread),
        fresh_mean=float(mean(fresh)),
        fresh_square=float(mean(for_each(squared, (fresh,)))),
        pairs_mean=float(mean(pairs)),
    )


# -- how many units ------------------------------------------------------------------------------------------
@elementwise
def keeps(found: Judged, share: Real) -> Truth:
    """Whether a deployment keeps up and meets each limit for this share of the requests."""
    met = (found.prompts_met >= share) & (found.tokens_met >= share) & (found.pauses_met >= share)
    return found.steady & met


@elementwise
def sureness(found: Judged, tpot_s: float) -> Real:
    """By what the better of two deployments is chosen that cost the same: first whether no answer pauses for
    longer than its tokens may take on average, then the share of requests within the limits."""
    even = np.where(found.pause_s <= tpot_s, 1.0, 0.0)
    return even + np.minimum(found.prompts_met, found.tokens_met)


@elementwise
def idle_units(ask: Asked, alone: Judged) -> Real:
    """How many units it takes for each to be as good as idle; ``alone`` is what an idle unit does."""
    seconds = ask.ttft_s + np.where(alone.steady, alone.token_s, 1.0) * ask.answer
    return np.maximum(1.0, np.ceil(ask.per_s * seconds / IDLE))


@elementwise
def filled_units(ask: Asked, decoders: Real, gain: Real, full: Judged) -> Real:
    """How many units, with full batches, write as fast as the load asks. A deployment keeps up only with more
    than that. ``full`` is what a unit does that has far more requests than it can serve."""
    steps = np.maximum(LEAST, (ask.answer - 1.0) / gain)
    return ask.per_s * (full.token_s * gain) * steps / (decoders * full.batch)


def units_to_try(low: float, high: float, stride: float) -> float:
    """The next number of units to try between one that is too small and one that is enough: by a stride that
    doubles until something is enough (0 from then on), then halfway."""
    return min(low + stride, high - 1) if stride > 0 else float(math.floor((low + high) / 2))


# -- what a smaller deployment misses ------------------------------------------------------------------------
class Halved(NamedTuple):
    """A replica's batches (``Replica.batches``), the table with half its GPUs (-1 if there is none), and the
    batches of that."""

    batches: Real
    half: Real
    half_batches: Real


@elementwise
def one_less(plan: Plans, units: Real, back: Halved, front: Halved) -> tuple[Plans, Plans, Plans]:
    """Three smaller deployments, each as one unit: with a replica less that writes, or half the GPUs of its
    only one; the same with one that reads; and with a whole unit less."""
    reads, writes = units * plan.prefillers, units * plan.decoders
    single, lone = (reads > 0) & (writes <= back.batches), (reads > 0) & (reads <= front.batches)
    table, other = np.where(single, back.half, plan.table), np.where(lone, front.half, plan.front)
    fewer_writes = np.where(single, back.half_batches, writes - back.batches)
    fewer_reads = np.where(lone, front.half_batches, reads - front.batches)
    reads_less, writes_less = reads - plan.prefillers, writes - plan.decoders
    return (
        Plans(table, plan.front, plan.budget, reads, fewer_writes, plan.drafts),
        Plans(plan.table, other, plan.budget, fewer_reads, writes, plan.drafts),
        Plans(plan.table, plan.front, plan.budget, reads_less, writes_less, plan.drafts),
    )


@elementwise
def may_exist(plan: Plans, apart: Truth) -> Truth:
    """Whether there is a deployment with so many replicas of these kinds."""
    replicas = (plan.decoders >= 1) & (~apart | (plan.prefillers >= 1))
    return replicas & (plan.table >= 0) & (plan.front >= 0)


@elementwise
def nearest(plan: Plans, apart: Truth) -> Plans:
    """The plan itself, or one that may exist in its place."""
    return Plans(
        np.maximum(plan.table, 0),
        np.maximum(plan.front, 0),
        plan.budget,
        np.where(apart, np.maximum(1.0, plan.prefillers), 0.0),
        np.maximum(1.0, plan.decoders),
        plan.drafts,
    )


@elementwise
def misses(found: Judged, share: Real) -> Real:
    """What a deployment misses: TTFT, TPOT, PAUSE, CAPACITY, or SMALLEST for nothing."""
    later = np.where(found.tokens_met < share, TPOT, PAUSE)
    first = np.where(found.prompts_met < share, TTFT, later)
    return np.where(keeps(found, share), SMALLEST, np.where(~found.steady, CAPACITY, first))


@elementwise
def bound_by(slower: Real, later: Real, unit_less: Real, apart: Truth) -> Real:
    """What keeps a deployment from being smaller, by what those of ``one_less`` miss. A limit that either
    pool misses is named rather than the capacity."""
    either = np.minimum(slower, np.where(apart, later, SMALLEST))
    return np.where((either < SMALLEST) | ~apart, either, unit_less)
