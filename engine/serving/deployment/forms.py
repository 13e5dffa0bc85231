"""Thousands of deployments at once, in closed form: what share of the requests each of them serves within the
limits, and how many replicas it needs for that.

A deployment is some number of equal units. A unit is one replica that mixes prompts with answers in steps of
at most ``budget`` tokens, or a few replicas that prefill and a few that decode. If a replica has several
batches (``Replica.batches``), each of them counts as a replica here. The sums are those of
``equilibrium.balance``, to which chance adds the wait for a free step (M/G/1, as in
``queues.wait_within_s``), the prompts that happen to arrive while an answer is written, and the wait for room
in the batch. These forms only choose what is worth simulating; ``runs`` decides.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from engine.serving import equilibrium, step_costs
from engine.serving.deployment.arrays import Tables, judge
from engine.serving.deployment.load import Limits, Load
from engine.serving.deployment.loops import LEAST
from engine.serving.drafts import Drafts, tokens_per_verification

QUANTILES = tuple(NormalDist().inv_cdf((i + 0.5) / 24) for i in range(24))
IDLE = 1 / 20  # mean answers at once on a replica that is as good as idle
TTFT, TPOT, CAPACITY, SMALLEST = 0, 1, 2, 3  # what a smaller deployment misses
BOUNDS = ("ttft_s", "tpot_s", "capacity", "smallest")  # their names


class Lengths(NamedTuple):
    """A load's lengths: means, and the values at equally likely quantiles."""

    prompts: np.ndarray
    fresh: np.ndarray  # tokens of each prompt that no prefix cache holds
    pairs: np.ndarray  # pairs of a fresh token and a token that it attends to
    answers: np.ndarray
    prompt: float
    context: float  # cached tokens of an answer that is being written, on average
    answer: float


def lengths(of: Load) -> Lengths:
    """The lengths of a load: log-normal, none beyond 16 medians (``events.lengths``)."""

    def at(median: float, spread: float) -> np.ndarray:
        z = np.array(QUANTILES)
        return np.minimum(equilibrium.LONGEST * median, median * np.exp(spread * z))

    prompts, answers = at(of.prompt, of.prompt_spread), at(of.output, of.output_spread)
    held = np.minimum(np.floor(of.prefix_share * prompts), prompts - 1.0)
    prompt = equilibrium.moment(of.prompt, of.prompt_spread, 1.0)
    answer = equilibrium.moment(of.output, of.output_spread, 1.0)
    return Lengths(
        prompts,
        prompts - held,
        (prompts**2 - held**2) / 2,
        answers,
        prompt,
        equilibrium.context_tokens(of.prompt, of.prompt_spread, of.output, of.output_spread),
        answer,
    )


class Plans(NamedTuple):
    """Deployments to judge, as columns of equal length with one entry for each deployment."""

    table: np.ndarray  # index of the replica's costs
    front: np.ndarray  # … and of those that only prefill; equal to ``table`` where none does
    budget: np.ndarray  # most tokens of a step
    prefillers: np.ndarray  # replicas of a unit that only prefill; 0 where prompts and answers share replicas
    decoders: np.ndarray  # of a unit
    drafts: np.ndarray  # index into the drafts that are tried; 0 for no drafts


class Judged(NamedTuple):
    """What each deployment does with its load."""

    steady: np.ndarray  # whether it keeps up
    prompts_met: np.ndarray  # share of requests whose first token comes within its limit …
    tokens_met: np.ndarray  # … and of those whose other tokens do
    running: np.ndarray  # answers that a replica writes at once
    token_s: np.ndarray  # seconds from one token to the next, on average
    batch: np.ndarray  # answers that a replica's cache and steps have room for

    def within(self, share: float | np.ndarray) -> np.ndarray:
        """Which deployments keep up and meet each limit for this share of the requests."""
        return self.steady & (self.prompts_met >= share) & (self.tokens_met >= share)


def tokens_a_step(drafts: Drafts) -> float:
    """The tokens that a step with drafts yields, on average."""
    return float(tokens_per_verification(drafts.accepted, drafts.drafted))


class Forms:
    """The closed forms for one load and its limits."""

    def __init__(
        self, load: Load, limits: Limits, tables: Tables, drafts: tuple[Drafts | None, ...], most: float
    ) -> None:
        self.load, self.limits, self.tables, self.lengths = load, limits, tables, lengths(load)
        self.most_running = most
        self.width = np.array([1.0 if one is None else one.drafted + 1.0 for one in drafts])
        self.draft_s = np.array([0.0 if one is None else one.step_s for one in drafts])
        self.gain = np.array([1.0 if one is None else tokens_a_step(one) for one in drafts])

    def judge(self, plans: Plans, units: np.ndarray) -> Judged:
        """The deployments, judged with this many units each."""
        load, limits, of, tables = self.load, self.limits, self.lengths, self.tables
        found = judge(
            load.per_s,
            limits.ttft_s,
            limits.tpot_s,
            self.most_running,
            of.prompt,
            of.context,
            of.answer,
            of.fresh,
            of.pairs,
            of.answers,
            self.width,
            self.draft_s,
            self.gain,
            step_costs.ROWS,
            tables.rows_s,
            tables.pair_s,
            tables.cached_s,
            tables.capacity,
            tables.sent_s,
            *plans,
            units,
        )
        steady, *rest = (np.array(found[name]) for name in Judged._fields)
        return Judged(steady > 0, *rest)

    def judge_all(self, asked: list[tuple[Plans, np.ndarray]]) -> list[Judged]:
        """Several lists of deployments in one go, which takes hardly longer than one."""
        plans = Plans(*(np.concatenate([each[i] for each, _ in asked]) for i in range(len(Plans._fields))))
        found, cut, begin = self.judge(plans, np.concatenate([units for _, units in asked])), [], 0
        for _, units in asked:
            end = begin + len(units)
            cut.append(Judged(*(column[begin:end] for column in found)))
            begin = end
        return cut

    def fewest(self, plans: Plans, share: float | np.ndarray | None = None) -> np.ndarray:
        """The fewest units of each plan that serve the load within its limits; 0 where no number does.
        ``share`` is the share of the requests that must be within them, for all plans or for each; by default
        it is the limits' own.

        Searched upwards from what full batches could serve, in steps that double, then by bisection: few
        plans need many more.
        """
        count = len(plans.table)
        shares = np.full(count, 1.0) * (self.limits.share if share is None else share)
        idle = np.full(count, self.load.per_s / LEAST)
        alone, full = self.judge_all([(plans, idle), (plans, np.full(count, LEAST))])
        seconds = self.limits.ttft_s + np.where(alone.steady, alone.token_s, 1.0) * self.lengths.answer
        high = np.maximum(1.0, np.ceil(self.load.per_s * seconds / IDLE))
        possible = self.judge(plans, high).within(shares)
        low = np.minimum(high - 1.0, np.floor(self._filled(plans, full))).tolist()
        most, stride = high.tolist(), [1.0] * len(low)
        open_ = [i for i, able in enumerate(possible.tolist()) if able and most[i] - low[i] > 1]
        while open_:
            tried = [
                min(low[i] + stride[i], most[i] - 1) if stride[i] else math.floor((low[i] + most[i]) / 2)
                for i in open_
            ]
            these = np.array(open_)
            judged = self.judge(Plans(*(column[these] for column in plans)), np.array(tried) * 1.0)
            for i, units, within in zip(open_, tried, judged.within(shares[these]).tolist()):
                if within:
                    most[i], stride[i] = units, 0.0
                else:
                    low[i], stride[i] = units, 2 * stride[i]
            open_ = [i for i in open_ if most[i] - low[i] > 1]
        return np.where(possible, np.array(most) * 1.0, 0.0)

    def bounds(
        self,
        plans: Plans,
        units: np.ndarray,
        halves: np.ndarray,
        batches: np.ndarray,
        share: float | None = None,
    ) -> np.ndarray:
        """What each deployment would miss with a replica less: TTFT, TPOT, CAPACITY, or SMALLEST if it would
        miss nothing or cannot be smaller.

        With two pools, each pool in turn gives up one of its replicas, or half the GPUs of its only one; a
        limit that either pool then misses is named rather than the capacity. If neither misses anything, a
        whole unit is taken away. ``halves`` is for each table the one with half the GPUs, or -1; ``batches``
        is each table's ``Replica.batches``.
        """
        share = self.limits.share if share is None else share
        reads, writes = units * plans.prefillers, units * plans.decoders
        front, back = batches[plans.front], batches[plans.table]
        apart = reads > 0
        single, lone = apart & (writes <= back), apart & (reads <= front)
        half_back, half_front = (
            np.where(single, halves[plans.table], plans.table),
            np.where(lone, halves[plans.front], plans.front),
        )
        fewer_writes = np.where(single, batches[np.maximum(half_back, 0)], writes - back)
        fewer_reads = np.where(lone, batches[np.maximum(half_front, 0)], reads - front)
        slower, later, unit_less = self._missed(
            plans,
            [
                (half_back, plans.front, reads, fewer_writes),
                (plans.table, half_front, fewer_reads, writes),
                (plans.table, plans.front, reads - plans.prefillers, writes - plans.decoders),
            ],
            share,
        )
        either = np.minimum(slower, np.where(apart, later, SMALLEST))
        return np.where((either < SMALLEST) | ~apart, either, unit_less)

    def _missed(self, plans: Plans, tried: list[tuple[np.ndarray, ...]], share: float) -> list[np.ndarray]:
        """What deployments with these replicas miss; SMALLEST for one that misses nothing, or that cannot
        exist. ``tried`` has the tables that write, the tables that read, and how many replicas read and
        write."""
        apart, one = plans.prefillers > 0, np.full(len(plans.table), 1.0)
        asked = [
            Plans(
                np.maximum(table, 0),
                np.maximum(front, 0),
                plans.budget,
                np.where(apart, np.maximum(1.0, prefillers), 0.0),
                np.maximum(1.0, decoders),
                plans.drafts,
            )
            for table, front, prefillers, decoders in tried
        ]
        missed = []
        for found, (table, front, prefillers, decoders) in zip(
            self.judge_all([(each, one) for each in asked]), tried
        ):
            there = (decoders >= 1) & (~apart | (prefillers >= 1)) & (table >= 0) & (front >= 0)
            misses = np.where(~found.steady, CAPACITY, np.where(found.prompts_met < share, TTFT, TPOT))
            missed.append(np.where(~there | found.within(share), SMALLEST, misses))
        return missed

    def _filled(self, plans: Plans, full: Judged) -> np.ndarray:
        """How many units, with full batches, write as fast as the load asks. A deployment keeps up only with
        more than that."""
        steps = np.maximum(LEAST, (self.lengths.answer - 1.0) / self.gain[plans.drafts])
        a_step_s = full.token_s * self.gain[plans.drafts]
        return self.load.per_s * a_step_s * steps / (plans.decoders * full.batch)
