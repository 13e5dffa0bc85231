"""The cost of failures in a long run: how often they come, when to write checkpoints, and what share of the
time is useful.

Failures are assumed independent and spread evenly over GPUs and time; any one of them stops the whole job. An
interval is the useful time between two checkpoints, not counting the time to write one. ``wasted_share`` is
the textbooks' first-order sum, good while failures are rare; ``shares`` holds at any rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.base import check, ops, printing
from engine.base.types import Real, Truth
from engine.base.units import DAY, YEAR

# Unexpected interruptions of Llama 3's pre-training: 419 in 54 days on 16,384 GPUs (arXiv:2407.21783 section
# 3.3.4).
LLAMA3_FAILURES_PER_GPU_S = 419 / (54 * DAY * 16384)
LLAMA3_FAILURES_PER_GPU_YEAR = LLAMA3_FAILURES_PER_GPU_S * YEAR
NEWTON_STEPS = 6  # from √(2δ/M) each step squares the error, so five are enough for a double


def mean_time_between_failures_s(gpus: Real, failures_per_gpu_s: Real = LLAMA3_FAILURES_PER_GPU_S) -> Real:
    """1 / (GPUs · rate), so it falls as 1/GPUs. Leaves out failures of shared parts (storage, network
    core)."""
    check.whole(gpus=gpus)
    check.positive(failures_per_gpu_s=failures_per_gpu_s)
    return 1.0 / (gpus * failures_per_gpu_s)


def failures_per_gpu_s(gpus: Real, failures: Real, duration_s: Real) -> Real:
    """The rate implied by this many failures on this many GPUs over this time."""
    check.whole(gpus=gpus)
    check.positive(failures=failures, duration_s=duration_s)
    return failures / (gpus * duration_s)


def per_s(per_year: Real) -> Real:
    """A rate in failures per year as one in failures per second."""
    check.positive(per_year=per_year)
    return per_year / YEAR


def young_interval_s(checkpoint_s: Real, mtbf_s: Real) -> Real:
    """√(2·δ·M): the time between checkpoints that wastes least, to first order (Young 1974, Comm. ACM
    17(9))."""
    check.positive(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    return ops.sqrt(2.0 * checkpoint_s * mtbf_s)


def wasted_share(interval_s: Real, checkpoint_s: Real, mtbf_s: Real, restart_s: Real) -> Real:
    """δ/τ + τ/2M + R/M: writing checkpoints, repeating half an interval after each failure, and restarting;
    at most 1.

    First order: good while each part is small (Daly 2006). Leaves out failures during a restart.
    """
    check.positive(interval_s=interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    check.non_negative(restart_s=restart_s)
    wasted = checkpoint_s / interval_s + interval_s / (2.0 * mtbf_s) + restart_s / mtbf_s
    return ops.minimum(1.0, wasted * 1.0)


def shares(interval_s: Real, checkpoint_s: Real, mtbf_s: Real, restart_s: Real) -> Real:
    """The shares of the total time: useful, writing checkpoints, lost work that is redone, and restarting; on
    the last axis.

    Failures come at any time at the same rate 1/M, also while a checkpoint is written and during a restart,
    which then begins anew. An interval with its checkpoint, x = (τ+δ)/M, then takes M·e^(R/M)·(eˣ − 1) on
    average (Daly 2006, FGCS 22(3), section 3). The time not spent restarting is e^(−R/M) of the total; of
    that x/(eˣ − 1) is kept, and τ/(τ+δ) of what is kept is useful. Leaves out the time until a failure is
    noticed: count it as part of the restart.
    """
    check.positive(interval_s=interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    check.non_negative(restart_s=restart_s)
    running = np.exp(-restart_s / mtbf_s)
    kept = _kept(interval_s + checkpoint_s, mtbf_s, running)
    useful = kept * interval_s / (interval_s + checkpoint_s)
    return np.stack(np.broadcast_arrays(useful, kept - useful, running - kept, 1.0 - running), axis=-1)


def _kept(cycle_s, mtbf_s, running):
    """The share of the time that is spent on work, or on saving it, that no failure undoes."""
    x = ops.minimum(cycle_s / mtbf_s, 700.0)  # e^700 is about the largest double
    return running * x / np.expm1(x)


def lost_per_failure_s(interval_s: Real, checkpoint_s: Real, mtbf_s: Real) -> Real:
    """M − (τ+δ)/(eˣ − 1), x = (τ+δ)/M: mean time from the last checkpoint to a failure that comes before the
    next one.

    Half an interval while intervals are short compared with M; never more than M, however rare the
    checkpoints.
    """
    check.positive(interval_s=interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    x = ops.minimum((interval_s + checkpoint_s) / mtbf_s, 700.0)
    return mtbf_s * (1.0 - x / np.expm1(x))


def useful_share(interval_s: Real, checkpoint_s: Real, mtbf_s: Real, restart_s: Real) -> Real:
    """The first of ``shares``: e^(−R/M) · x/(eˣ − 1) · τ/(τ+δ), with x = (τ+δ)/M. ``goodput`` is its
    first-order approximation."""
    check.positive(interval_s=interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    check.non_negative(restart_s=restart_s)
    cycle_s = interval_s + checkpoint_s
    return _kept(cycle_s, mtbf_s, np.exp(-restart_s / mtbf_s)) * interval_s / cycle_s


def best_interval_s(checkpoint_s: Real, mtbf_s: Real) -> Real:
    """The interval with the largest useful share: the root u = τ/M of u + δ/M + ln(1 − u) = 0, by Newton's
    method.

    The function is falling and concave, so from a start to the right of the root each step approaches it from
    that side. Both starts, Young's √(2δ/M) and 1 − e^(−1−δ/M), lie there. Daly's formula is its series
    expansion (his eq. 37). The restart time plays no part.
    """
    check.positive(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    delta = ops.minimum(checkpoint_s / mtbf_s, 30.0)  # beyond this, the interval equals M in all digits
    u = ops.minimum(ops.sqrt(2.0 * delta), 1.0 - np.exp(-1.0 - delta))
    for _ in range(NEWTON_STEPS):
        u = u + (u + delta + np.log1p(-u)) * (1.0 - u) / u
    return u * mtbf_s


def restarts_pile_up(restart_s: Real, mtbf_s: Real) -> Truth:
    """Whether failures come less than two restarts apart, so that at least 1 − e^(−½), two fifths of the
    time, goes into restarting."""
    check.positive(mtbf_s=mtbf_s)
    check.non_negative(restart_s=restart_s)
    return 2.0 * restart_s >= mtbf_s


def far_from_best(interval_s: Real, best_s: Real, useful: Real, best_useful: Real, far: Real = 0.03) -> Real:
    """1 if the interval is too long and loses more than the share ``far`` of the best useful time, −1 if it
    is too short and loses as much, else 0."""
    check.positive(interval_s=interval_s, best_s=best_s)
    check.between(0, 1, useful=useful, best_useful=best_useful)
    lost = useful < (1.0 - far) * best_useful
    return ops.where(lost, ops.where(interval_s > best_s, 1.0, -1.0), 0.0)


def idle_gpus(gpus: Real, useful: Real) -> Real:
    """The GPUs that would be superfluous if nothing ever failed."""
    check.whole(gpus=gpus)
    check.between(0, 1, useful=useful)
    return gpus * (1.0 - useful)


@dataclass(frozen=True)
class Goodput(printing.Printed):
    """The effect of failures on a run with this many GPUs."""

    gpus: int
    mtbf_s: float
    interval_s: Real
    wasted: Real  # to first order
    goodput: float  # to first order
    failures_per_day: float
    checkpoint_s: float
    restart_s: float

    @property
    def best_interval_s(self) -> float:
        """The interval with the largest useful share, at any rate of failures."""
        return float(best_interval_s(self.checkpoint_s, self.mtbf_s))

    @property
    def useful_share(self) -> float:
        """The useful share of the time, at any rate of failures."""
        return float(useful_share(self.interval_s, self.checkpoint_s, self.mtbf_s, self.restart_s))

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "gpus": self.gpus,
            "checkpoint_s": self.checkpoint_s,
            "restart_s": self.restart_s,
            "mean_time_between_failures_s": self.mtbf_s,
            "interval_s": self.interval_s,
            "wasted_share": self.wasted,
            "goodput": self.goodput,
            "failures_per_day": self.failures_per_day,
            "best_interval_s": self.best_interval_s,
            "useful_share": self.useful_share,
        }


def run(
    gpus: int,
    checkpoint_s: float,
    restart_s: float,
    failures_per_gpu_year: float = LLAMA3_FAILURES_PER_GPU_YEAR,
    interval_s: float | None = None,
) -> Goodput:
    """Goodput for the given interval between checkpoints, or for Young's."""
    check.positive(failures_per_gpu_year=failures_per_gpu_year)
    mtbf_s = mean_time_between_failures_s(gpus, per_s(failures_per_gpu_year))
    every_s = young_interval_s(checkpoint_s, mtbf_s) if interval_s is None else interval_s
    wasted = wasted_share(every_s, checkpoint_s, mtbf_s, restart_s)
    return Goodput(gpus, mtbf_s, every_s, wasted, 1.0 - wasted, DAY / mtbf_s, checkpoint_s, restart_s)
