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

import numpy as np

from engine.base.types import Real
from engine.serving.deployment import columns
from engine.serving.deployment.closed_forms import judge
from engine.serving.deployment.columns import (
    LEAST,
    QUANTILES,
    SMALLEST,
    Asked,
    Halved,
    Judged,
    Plans,
    Tables,
    Tried,
)
from engine.serving.deployment.load import Limits, Load
from engine.serving.drafts import Drafts, tokens_of_a_round


def asked(load: Load, limits: Limits, most_running: float) -> Asked:
    """A load and its limits, as ``columns.asked`` makes them of QUANTILES."""
    return columns.asked(
        load.per_s,
        load.prompt,
        load.prompt_spread,
        load.output,
        load.output_spread,
        load.prefix_share,
        limits.ttft_s,
        limits.tpot_s,
        limits.pause_s,
        most_running,
        np.array(QUANTILES),
    )


def tokens_a_step(drafts: Drafts) -> float:
    """The tokens that a step with drafts yields, on average."""
    return tokens_of_a_round(drafts.accepted, drafts.drafted, drafts.falls)


class Forms:
    """The closed forms for one load and its limits."""

    def __init__(
        self, load: Load, limits: Limits, tables: Tables, drafts: tuple[Drafts | None, ...], most: float
    ) -> None:
        self.load, self.limits, self.tables = load, limits, tables
        self.ask = asked(load, limits, most)
        self.tried = Tried(
            np.array([1.0 if one is None else one.drafted + 1.0 for one in drafts]),
            np.array([0.0 if one is None else one.step_s for one in drafts]),
            np.array([1.0 if one is None else tokens_a_step(one) for one in drafts]),
        )

    def judge(
        self, plans: Plans, units: np.ndarray, ttft_s: Real | None = None, tpot_s: Real | None = None
    ) -> Judged:
        """The deployments, judged with this many units each; by other limits, if these are given."""
        of = self.ask
        ask = of._replace(
            ttft_s=self.limits.ttft_s if ttft_s is None else ttft_s,
            tpot_s=self.limits.tpot_s if tpot_s is None else tpot_s,
            pause_s=self.limits.pause_s,
            fresh=of.fresh[:, None],
            pairs=of.pairs[:, None],
            answers=of.answers[:, None],
        )
        found = judge(ask, self.tried, self.tables, plans, units)
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
        high = columns.idle_units(self.ask, alone)
        possible = self.judge(plans, high).within(shares)
        filled = columns.filled_units(self.ask, plans.decoders, self.tried.gain[plans.drafts], full)
        low = np.minimum(high - 1.0, np.floor(filled)).tolist()
        most, stride = high.tolist(), [1.0] * len(low)
        open_ = [i for i, able in enumerate(possible.tolist()) if able and most[i] - low[i] > 1]
        while open_:
            tried = [columns.units_to_try(low[i], most[i], stride[i]) for i in open_]
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

        The deployments with a replica less are those of ``columns.one_less``. ``halves`` is for each table
        the one with half the GPUs, or -1; ``batches`` is each table's ``Replica.batches``.
        """
        share, apart = self.limits.share if share is None else share, plans.prefillers > 0
        back, front = (
            Halved(batches[of], halves[of], batches[np.maximum(halves[of], 0)])
            for of in (plans.table, plans.front)
        )
        less = columns.one_less(plans, units, back, front)
        one = np.full(len(plans.table), 1.0)
        found = self.judge_all([(columns.nearest(each, apart), one) for each in less])
        missed = [
            np.where(columns.may_exist(each, apart), columns.misses(judged, share), SMALLEST)
            for each, judged in zip(less, found)
        ]
        return columns.bound_by(*missed, apart)
