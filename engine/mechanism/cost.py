"""The cost of a run, and how much of it was waste."""

from __future__ import annotations

from engine.base import check, ops
from engine.base.types import Real
from engine.base.units import HOUR


def gpu_hours(gpus: Real, duration_s: Real) -> Real:
    """GPUs × hours: what is billed, whether the GPUs work or wait."""
    check.whole(gpus=gpus)
    check.non_negative(duration_s=duration_s)
    return gpus * duration_s / HOUR


def run_dollars(gpu_hours: Real, dollars_per_gpu_hour: Real, overhead_share: Real = 0.0) -> Real:
    """GPU-hours × price × (1 + overhead); overhead is storage, network and idle GPUs, as a share of the GPU
    bill."""
    check.non_negative(
        gpu_hours=gpu_hours, dollars_per_gpu_hour=dollars_per_gpu_hour, overhead_share=overhead_share
    )
    return gpu_hours * dollars_per_gpu_hour * (1 + overhead_share)


def waste_share(mfu: Real, achievable_mfu: Real) -> Real:
    """1 − MFU / achievable: the share of the bill that a well-tuned run would have saved.

    Relative to what is achievable, not to 100 %: no training run reaches the peak, so 1 − MFU is not waste.
    """
    check.share(mfu=mfu, achievable_mfu=achievable_mfu)
    check.ordered(mfu=mfu, achievable_mfu=achievable_mfu)
    return 1 - mfu / achievable_mfu


def wasted_dollars(dollars: Real, mfu: Real, achievable_mfu: Real) -> Real:
    """The part of the bill that was waste."""
    check.non_negative(dollars=dollars)
    return dollars * waste_share(mfu, achievable_mfu)


def over_budget_dollars(dollars: Real, budget_dollars: Real) -> Real:
    """How much the bill exceeds the budget; 0 within it."""
    check.non_negative(dollars=dollars)
    check.positive(budget_dollars=budget_dollars)
    return ops.maximum(dollars - budget_dollars, 0)


def affordable_gpu_hours(
    budget_dollars: Real, dollars_per_gpu_hour: Real, overhead_share: Real = 0.0
) -> Real:
    """The GPU-hours that a budget pays for, to which a run has to be cut."""
    check.positive(budget_dollars=budget_dollars, dollars_per_gpu_hour=dollars_per_gpu_hour)
    check.non_negative(overhead_share=overhead_share)
    return budget_dollars / (dollars_per_gpu_hour * (1 + overhead_share))


def affordable_s(
    budget_dollars: Real, gpus: Real, dollars_per_gpu_hour: Real, overhead_share: Real = 0.0
) -> Real:
    """How long a budget pays for this many GPUs."""
    check.whole(gpus=gpus)
    return affordable_gpu_hours(budget_dollars, dollars_per_gpu_hour, overhead_share) * HOUR / gpus


def affordable_gpus(
    budget_dollars: Real, duration_s: Real, dollars_per_gpu_hour: Real, overhead_share: Real = 0.0
) -> Real:
    """How many GPUs a budget pays for over this time; 0 if not even one."""
    check.positive(duration_s=duration_s)
    return ops.floor(
        affordable_gpu_hours(budget_dollars, dollars_per_gpu_hour, overhead_share) * HOUR / duration_s
    )


def left_dollars(dollars: Real, budget_dollars: Real) -> Real:
    """What is left of the budget; 0 where the bill exceeds it."""
    check.non_negative(dollars=dollars)
    check.positive(budget_dollars=budget_dollars)
    return ops.maximum(budget_dollars - dollars, 0)
