"""What a run costs, and what of that was waste."""

from __future__ import annotations

from engine import check, ops
from engine.units import HOUR


def gpu_hours(gpus, duration_s):
    """GPUs × hours: what is paid for, whether they work or wait."""
    check.whole(gpus=gpus)
    check.non_negative(duration_s=duration_s)
    return gpus * duration_s / HOUR


def run_dollars(gpu_hours, dollars_per_gpu_hour, overhead_share=0.0):
    """GPU-hours × price × (1 + overhead); overhead is storage, network and idle GPUs, as a share of that bill."""
    check.non_negative(gpu_hours=gpu_hours, dollars_per_gpu_hour=dollars_per_gpu_hour, overhead_share=overhead_share)
    return gpu_hours * dollars_per_gpu_hour * (1 + overhead_share)


def waste_share(mfu, achievable_mfu):
    """1 − MFU / achievable: the part of the bill that a well-tuned run would have saved.

    Against what is achievable, not against 100 %: no training run reaches the peak, so 1 − MFU is not waste.
    """
    check.share(mfu=mfu, achievable_mfu=achievable_mfu)
    check.ordered(mfu=mfu, achievable_mfu=achievable_mfu)
    return 1 - mfu / achievable_mfu


def wasted_dollars(dollars, mfu, achievable_mfu):
    """The waste's part of the bill."""
    check.non_negative(dollars=dollars)
    return dollars * waste_share(mfu, achievable_mfu)


def dollars_per_million_tokens(tokens_per_s_per_gpu, dollars_per_gpu_hour):
    """Price of 10⁶ tokens at a steady rate on one GPU: price / (3600 · rate) · 10⁶."""
    check.positive(tokens_per_s_per_gpu=tokens_per_s_per_gpu)
    check.non_negative(dollars_per_gpu_hour=dollars_per_gpu_hour)
    return dollars_per_gpu_hour / 3600 / tokens_per_s_per_gpu * 1e6


def over_budget_dollars(dollars, budget_dollars):
    """How much the bill is above the ceiling; 0 within it."""
    check.non_negative(dollars=dollars)
    check.positive(budget_dollars=budget_dollars)
    return ops.maximum(dollars - budget_dollars, 0)


def over_budget_share(dollars, budget_dollars):
    """The same as a share of the ceiling: 0.25 is a quarter too much."""
    return over_budget_dollars(dollars, budget_dollars) / budget_dollars


def affordable_gpu_hours(budget_dollars, dollars_per_gpu_hour, overhead_share=0.0):
    """The GPU-hours that a ceiling pays for: what a run has to be cut to."""
    check.positive(budget_dollars=budget_dollars, dollars_per_gpu_hour=dollars_per_gpu_hour)
    check.non_negative(overhead_share=overhead_share)
    return budget_dollars / (dollars_per_gpu_hour * (1 + overhead_share))


def affordable_s(budget_dollars, gpus, dollars_per_gpu_hour, overhead_share=0.0):
    """How long a ceiling pays for so many GPUs."""
    check.whole(gpus=gpus)
    return affordable_gpu_hours(budget_dollars, dollars_per_gpu_hour, overhead_share) * HOUR / gpus


def affordable_gpus(budget_dollars, duration_s, dollars_per_gpu_hour, overhead_share=0.0):
    """How many GPUs a ceiling pays for over such a time; 0 where not even one."""
    check.positive(duration_s=duration_s)
    return ops.floor(affordable_gpu_hours(budget_dollars, dollars_per_gpu_hour, overhead_share) * HOUR / duration_s)


def left_dollars(dollars, budget_dollars):
    """What the ceiling leaves; 0 where the bill is above it."""
    check.non_negative(dollars=dollars)
    check.positive(budget_dollars=budget_dollars)
    return ops.maximum(budget_dollars - dollars, 0)


def against_budget(dollars, budget_dollars):
    """The bill as a share of the ceiling; above 1 the guard refuses."""
    check.non_negative(dollars=dollars)
    check.positive(budget_dollars=budget_dollars)
    return dollars / budget_dollars
