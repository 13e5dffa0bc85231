"""The cost of a run, from GPU-hours or from the tokens it trains on; how much of it was waste, and whether a
budget allows it."""

from __future__ import annotations

from dataclasses import dataclass

from engine import catalog
from engine.base import check, ops, printing, units
from engine.base.types import Real
from engine.base.units import HOUR
from engine.catalog import models
from engine.catalog.hardware import Gpu
from engine.catalog.models import Model
from engine.mechanism import flops


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


# -- the bill of one run ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Bill(printing.Printed):
    """The cost of a run; money in US dollars."""

    gpu: Gpu
    gpus: int
    gpu_hours: float
    dollars_per_gpu_hour: float
    overhead_share: float
    price_date: str | None  # date of the catalogue's price; None where another price was given
    budget_dollars: float | None = None

    @property
    def hours(self) -> float:
        """Hours from start to end."""
        return float(self.gpu_hours / self.gpus)

    @property
    def dollars(self) -> float:
        """GPU-hours × price × (1 + overhead)."""
        return float(
            run_dollars(
                self.gpu_hours,
                overhead_share=self.overhead_share,
                dollars_per_gpu_hour=self.dollars_per_gpu_hour,
            )
        )

    @property
    def over_budget_dollars(self) -> float:
        """How much the bill is above the budget; 0 within it, or without one."""
        if self.budget_dollars is None:
            return 0.0
        return float(over_budget_dollars(self.dollars, self.budget_dollars))

    @property
    def within_budget(self) -> bool:
        """Whether the budget allows the run; without a budget it is always allowed."""
        return self.over_budget_dollars <= 0.0

    @property
    def sentence(self) -> str:
        """The bill in one sentence."""
        hours_s = self.gpu_hours / self.gpus * units.HOUR
        on_top = f" and {units.human(self.overhead_share, 'percent')} on top" if self.overhead_share else ""
        return (
            f"This run takes {self.gpus:,} {self.gpu.name} for {units.human(hours_s, 'seconds')}, "
            f"{units.number(self.gpu_hours)} GPU-hours at "
            f"{units.human(self.dollars_per_gpu_hour, 'dollars')}{on_top}: "
            f"{units.human(self.dollars, 'dollars')}."
        )

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        result = {
            "sentence": self.sentence,
            "gpu": self.gpu.key,
            "gpus": self.gpus,
            "gpu_hours": float(self.gpu_hours),
            "hours": self.hours,
            "dollars_per_gpu_hour": self.dollars_per_gpu_hour,
            "dollars": self.dollars,
        }
        if self.price_date is not None:
            result["price_date"] = self.price_date
        if self.budget_dollars is not None:
            result |= {
                "budget_dollars": self.budget_dollars,
                "over_budget_dollars": self.over_budget_dollars,
                "within_budget": self.within_budget,
            }
        return result


@printing.parts.register
def _parts(found: Bill) -> list[printing.Part]:
    """The bill in one sentence, and its figures."""
    figures = found.as_dict()
    return [figures.pop("sentence"), figures]


def bill(
    gpu: Gpu,
    gpus: int = 1,
    hours: float | None = None,
    model: Model | None = None,
    tokens: float | None = None,
    mfu: float = 0.4,
    dollars_per_gpu_hour: float | None = None,
    overhead_share: float = 0.0,
    budget_dollars: float | None = None,
) -> Bill:
    """The bill of a run of ``hours`` hours, or of a run that trains a model on ``tokens`` tokens.

    From tokens: 6 · active parameters · tokens FLOPs at ``mfu`` of the 16-bit peak. That leaves out
    attention's own FLOPs.
    """
    check.whole(gpus=gpus)
    check.share(mfu=mfu)
    if tokens is not None:
        check.positive(tokens=tokens)
    if hours is not None:
        check.positive(hours=hours)
        gpu_hours = gpus * hours
    elif model is not None and tokens is not None:
        needed = flops.training_flops(models.active_parameters(model), tokens)
        gpu_hours = flops.gpu_hours(needed, gpu.peak_flops_per_s("bf16"), mfu)
    else:
        raise ValueError(
            f"hours must be given, or model and tokens; got model {model and model.key!r}, tokens {tokens!r}"
        )
    date = None
    if dollars_per_gpu_hour is None:
        latest = catalog.price(gpu.key)
        dollars_per_gpu_hour, date = latest.dollars_per_hour, latest.date
    check.non_negative(dollars_per_gpu_hour=dollars_per_gpu_hour, overhead_share=overhead_share)
    if budget_dollars is not None:
        check.positive(budget_dollars=budget_dollars)
    return Bill(gpu, gpus, gpu_hours, dollars_per_gpu_hour, overhead_share, date, budget_dollars)
