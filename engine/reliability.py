"""What failures cost a long run: how often they come, when to write checkpoints, and what share of the time is useful.

Failures are taken as independent and spread evenly over GPUs and time; any one of them stops the whole job. An interval
is the useful time between two checkpoints: writing one comes on top of it. ``goodput`` and ``wasted_share`` are the
first-order sums of textbooks, good while failures are rare; ``shares`` holds at any rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine import check, ops
from engine.units import DAY, YEAR

# Unexpected interruptions of Llama 3's pre-training: 419 in 54 days on 16,384 GPUs (arXiv:2407.21783 section 3.3.4).
LLAMA3_FAILURES_PER_GPU_S = 419 / (54 * DAY * 16384)
NEWTON_STEPS = 6                    # from √(2δ/M) the error squares at each: none is left in a double after five


def mean_time_between_failures_s(gpus, failures_per_gpu_s=LLAMA3_FAILURES_PER_GPU_S):
    """1 / (GPUs · rate): it falls as 1/GPUs. Leaves out failures of what all share (storage, network core)."""
    check.whole(gpus=gpus)
    check.positive(failures_per_gpu_s=failures_per_gpu_s)
    return 1.0 / (gpus * failures_per_gpu_s)


def failures_per_gpu_s(gpus, failures, duration_s):
    """The rate that so many failures of so many GPUs in so long a time imply."""
    check.whole(gpus=gpus)
    check.positive(failures=failures, duration_s=duration_s)
    return failures / (gpus * duration_s)


def per_s(per_year):
    """A rate in failures a year as one in failures a second."""
    check.positive(per_year=per_year)
    return per_year / YEAR


def young_interval_s(checkpoint_s, mtbf_s):
    """√(2·δ·M): the time between checkpoints that loses least, to first order (Young 1974, Comm. ACM 17(9))."""
    check.positive(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    return ops.sqrt(2.0 * checkpoint_s * mtbf_s)


def daly_interval_s(checkpoint_s, mtbf_s):
    """√(2·δ·M)·(1 + ⅓·√(δ/2M) + δ/18M) − δ, and M where δ ≥ 2M (Daly 2006, FGCS 22(3), eq. 37)."""
    check.positive(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    half = checkpoint_s / (2.0 * mtbf_s)
    higher = ops.sqrt(2.0 * checkpoint_s * mtbf_s) * (1.0 + ops.sqrt(half) / 3.0 + half / 9.0) - checkpoint_s
    return ops.where(half < 1.0, higher, mtbf_s * 1.0)


def wasted_share(interval_s, checkpoint_s, mtbf_s, restart_s):
    """δ/τ + τ/2M + R/M: writing checkpoints, repeating half an interval after each failure, and coming back; at most 1.

    First order: good while each part is small (Daly 2006). Failures during a restart are left out.
    """
    check.positive(interval_s=interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    check.non_negative(restart_s=restart_s)
    wasted = checkpoint_s / interval_s + interval_s / (2.0 * mtbf_s) + restart_s / mtbf_s
    return ops.minimum(1.0, wasted * 1.0)


def goodput(interval_s, checkpoint_s, mtbf_s, restart_s):
    """The useful share of a run: 1 − the wasted one."""
    return 1.0 - wasted_share(interval_s, checkpoint_s, mtbf_s, restart_s)


def shares(interval_s, checkpoint_s, mtbf_s, restart_s):
    """Of all the time: useful, writing checkpoints, work lost and done again, and coming back; on the last axis.

    Failures strike at any time at the same rate 1/M, also while a checkpoint is written and during a restart, which
    then begins anew. An interval with its checkpoint, x = (τ+δ)/M, then takes M·e^(R/M)·(eˣ − 1) on average (Daly
    2006, FGCS 22(3), section 3). The time not spent coming back is e^(−R/M) of all; of that x/(eˣ − 1) is kept, and
    τ/(τ+δ) of what is kept is useful. Leaves out how long a failure goes unseen: count it as restart.
    """
    check.positive(interval_s=interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    check.non_negative(restart_s=restart_s)
    cycle_s = interval_s + checkpoint_s
    x = ops.minimum(cycle_s / mtbf_s, 700.0)        # e^700 is about the largest number there is
    running = np.exp(-restart_s / mtbf_s)
    kept = running * x / np.expm1(x)
    useful = kept * interval_s / cycle_s
    return np.stack(np.broadcast_arrays(useful, kept - useful, running - kept, 1.0 - running), axis=-1)


def lost_per_failure_s(interval_s, checkpoint_s, mtbf_s):
    """M − (τ+δ)/(eˣ − 1), x = (τ+δ)/M: mean time from the last checkpoint to a failure that strikes before the next.

    Half an interval while intervals are short against M; never more than M, however seldom one writes.
    """
    check.positive(interval_s=interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    x = ops.minimum((interval_s + checkpoint_s) / mtbf_s, 700.0)
    return mtbf_s * (1.0 - x / np.expm1(x))


def useful_share(interval_s, checkpoint_s, mtbf_s, restart_s):
    """The first of ``shares``: e^(−R/M) · x/(eˣ − 1) · τ/(τ+δ), with x = (τ+δ)/M. To first order it is ``goodput``."""
    return shares(interval_s, checkpoint_s, mtbf_s, restart_s)[..., 0]


def best_interval_s(checkpoint_s, mtbf_s):
    """The interval with the largest useful share: the root u = τ/M of u + δ/M + ln(1 − u) = 0, by Newton's method.

    The function falls and is concave, so that from a start right of the root each step comes nearer from the same side;
    both starts, Young's √(2δ/M) and 1 − e^(−1−δ/M), are. Daly's formula is its series (his eq.
    37). The restart time has no part in it.
    """
    check.positive(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    delta = ops.minimum(checkpoint_s / mtbf_s, 30.0)    # beyond, the interval is M in all digits
    u = ops.minimum(ops.sqrt(2.0 * delta), 1.0 - np.exp(-1.0 - delta))
    for _ in range(NEWTON_STEPS):
        u = u + (u + delta + np.log1p(-u)) * (1.0 - u) / u
    return u * mtbf_s


def gpus_at(mtbf_s, failures_per_gpu_s=LLAMA3_FAILURES_PER_GPU_S):
    """How many GPUs fail once in so long a time."""
    check.positive(mtbf_s=mtbf_s, failures_per_gpu_s=failures_per_gpu_s)
    return 1.0 / (mtbf_s * failures_per_gpu_s)


def restarts_pile_up(restart_s, mtbf_s):
    """Whether the next failure comes within two restarts: 1 − e^(−½), two fifths of the time, go into coming back."""
    check.positive(mtbf_s=mtbf_s)
    check.non_negative(restart_s=restart_s)
    return 2.0 * restart_s >= mtbf_s


def far_from_best(interval_s, best_s, useful, best_useful, far=0.03):
    """1 where the interval is too long by more than that share of the best's useful time, −1 where too short; or 0."""
    check.positive(interval_s=interval_s, best_s=best_s)
    check.between(0, 1, useful=useful, best_useful=best_useful)
    lost = useful < (1.0 - far) * best_useful
    return ops.where(lost, ops.where(interval_s > best_s, 1.0, -1.0), 0.0)


def idle_gpus(gpus, useful):
    """The GPUs that could be sent home if nothing ever failed."""
    check.whole(gpus=gpus)
    check.between(0, 1, useful=useful)
    return gpus * (1.0 - useful)


@dataclass(frozen=True)
class Goodput:
    """What failures do to a run of so many GPUs."""

    gpus: int
    mtbf_s: float
    interval_s: float
    wasted: float
    goodput: float
    failures_per_day: float


def run(gpus, checkpoint_s, restart_s, failures_per_gpu_year=LLAMA3_FAILURES_PER_GPU_S * YEAR,
        interval_s=None) -> Goodput:
    """Goodput at the given interval between checkpoints, or at Young's."""
    check.positive(failures_per_gpu_year=failures_per_gpu_year)
    mtbf_s = mean_time_between_failures_s(gpus, per_s(failures_per_gpu_year))
    interval_s = young_interval_s(checkpoint_s, mtbf_s) if interval_s is None else interval_s
    wasted = wasted_share(interval_s, checkpoint_s, mtbf_s, restart_s)
    return Goodput(gpus, mtbf_s, interval_s, wasted, 1.0 - wasted, DAY / mtbf_s)
