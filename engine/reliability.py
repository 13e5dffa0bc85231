"""What failures cost a long run: how often they come, when to write checkpoints, and what share of the time is useful.

Failures are taken as independent and spread evenly over GPUs and time; any one of them stops the whole job.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import check, ops
from engine.units import DAY, YEAR

# Unexpected interruptions of Llama 3's pre-training: 419 in 54 days on 16,384 GPUs (arXiv:2407.21783 section 3.3.4).
LLAMA3_FAILURES_PER_GPU_S = 419 / (54 * DAY * 16384)


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
    mtbf_s = mean_time_between_failures_s(gpus, failures_per_gpu_year / YEAR)
    interval_s = young_interval_s(checkpoint_s, mtbf_s) if interval_s is None else interval_s
    wasted = wasted_share(interval_s, checkpoint_s, mtbf_s, restart_s)
    return Goodput(gpus, mtbf_s, interval_s, wasted, 1.0 - wasted, DAY / mtbf_s)
