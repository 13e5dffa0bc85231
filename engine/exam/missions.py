"""Missions: training jobs to lay out by hand, their requirements, and whether a layout meets them.

A layout is judged by the planner's own costs, and the job can be given to the search, whose result is the
mission's answer. Everything except reading the file works on numbers and on symbols.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np

from engine import catalog, frameworks
from engine.base import check, ops
from engine.base.types import Real, Truth
from engine.base.units import DAY
from engine.catalog import files, models
from engine.catalog.hardware import Gpu
from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.mechanism import memory
from engine.mechanism.cost import gpu_hours
from engine.step import cases, planner
from engine.step.cases import Case, Layouts
from engine.step.constraints import AxisLimits
from engine.step.layout import Machine, machine
from engine.step.legality import RULES, Facts

NO_CEILING = 1e18
PLAIN_SCHEDULE = float(cases.SCHEDULE_KEYS.index("1f1b"))

# The reasons why a layout cannot be built, in the order in which they are checked
FAULTS = tuple(rule.words for rule in RULES)


class Start(TypedDict, total=False):
    """Degrees of a mission's first layout."""

    tp: int
    pp: int
    cp: int
    ep: int
    zero: int
    micro_batch: int


class Written(TypedDict):
    """A mission as written in its file, with GPU, model and recipe by their keys."""

    name: str
    brief: str
    model: str
    gpu: str
    gpus: int
    batch: int
    seq: int
    tokens: float
    hints: list[str]
    recipe: NotRequired[str]
    least_mfu: NotRequired[float]
    most_days: NotRequired[float]
    most_dollars: NotRequired[float]
    start: NotRequired[Start]


@dataclass(frozen=True)
class Mission:
    """A job, the machines it runs on, and its requirements."""

    key: str
    name: str
    brief: str
    model: Model
    at: Machine
    recipe: Recipe
    gpus: int
    batch: int  # sequences per step
    seq: int
    tokens: float  # in the whole run
    hints: tuple[str, ...]
    least_mfu: float = 0.0
    most_days: float = NO_CEILING
    most_dollars: float = NO_CEILING
    start: dict = field(default_factory=dict, hash=False)  # degrees of the first layout that differ from one

    @property
    def hbm_bytes(self) -> float:
        """HBM of one GPU, as its driver reports it."""
        return memory.capacity_bytes(self.at.gpu)

    @property
    def peak_flops_per_s(self) -> float:
        """The peak that MFU is relative to."""
        return self.at.peak_flops_per_s

    @property
    def gpu(self) -> Gpu:
        """The GPU that the job runs on."""
        return self.at.gpu

    @property
    def price(self) -> float:
        """Dollars of a GPU-hour, the latest in the catalogue."""
        return catalog.price(self.gpu.key).dollars_per_hour


class Spec(NamedTuple):
    """A job of the examination. Fields that a ``Mission`` has as well have the same names."""

    model: Model
    at: Machine
    recipe: Recipe
    gpus: float
    batch: float  # sequences per step
    seq: float
    tokens: float  # in the whole run
    software: Real  # 1 for the first of ``registry.abilities``
    most_mfu: Real  # the highest MFU of a published run on such chips

    @property
    def hbm_bytes(self) -> Real:
        """HBM of one GPU, as its driver reports it."""
        return memory.capacity_bytes(self.at.gpu)

    @property
    def step_tokens(self) -> Real:
        """Tokens per step."""
        return self.batch * self.seq

    @property
    def params(self) -> Real:
        """Parameters of the whole model."""
        return models.parameters(self.model)

    @property
    def active_params(self) -> Real:
        """Parameters used for each token."""
        return models.active_parameters(self.model)


class Verdict(NamedTuple):
    """The results of a layout; if it cannot be built, the figures are those of a substitute."""

    fault: Real  # index into FAULTS, −1 for none
    step_s: Real
    times_s: Real  # by cases.TERMS
    parts_bytes: Real  # by cases.PARTS
    mfu: Real
    days: Real
    dollars: Real
    fits: Truth
    won: Truth

    @property
    def total_bytes(self) -> Real:
        """Bytes on the fullest GPU."""
        return np.sum(self.parts_bytes, axis=-1)


@lru_cache(None)
def missions() -> dict[str, Mission]:
    """All missions by key, the easiest first."""
    entries = files.table(
        "missions.toml", Written, gpu=catalog.gpu, model=catalog.model, recipe=catalog.recipe
    )
    return {key: _mission(key, entry) for key, entry in entries.items()}


def _mission(key: str, entry: dict) -> Mission:
    given: dict[str, Any] = {"recipe": catalog.recipe("bf16-adam")} | entry
    return Mission(key=key, at=machine(given.pop("gpu")), hints=tuple(given.pop("hints")), **given)


def case(mission: Mission | Spec) -> Case:
    """The mission's job in the form that the planner takes, restricted to layouts that some framework can
    run."""
    return Case(
        mission.model,
        mission.at.chip,
        mission.at.wires,
        mission.hbm_bytes,
        mission.recipe,
        mission.gpus,
        mission.batch,
        mission.seq,
        AxisLimits(able=frameworks.able("any")).of_any,
    )


def first_try(mission: Mission) -> Layouts:
    """The layout that a reader starts from: the smallest that can be built, which is all on one GPU where
    that is possible."""
    ones = Layouts(*(1.0,) * len(Layouts._fields))._replace(recompute=0.0, schedule=PLAIN_SCHEDULE)
    return ones._replace(**{name: float(degree) for name, degree in mission.start.items()})


def answer(mission: Mission) -> Layouts:
    """The planner's own layout, in single numbers."""
    with check.trusted():
        found = planner.found(case(mission))
    return Layouts(*(float(column[0]) for column in found.layouts))


def faults(mission: Mission | Spec, a: Layouts) -> Truth:
    """Which of FAULTS a layout has."""
    model = mission.model
    found = Facts(
        model.heads,
        model.depth,
        model.experts,
        mission.batch,
        mission.seq,
        mission.gpus,
        a.tp,
        a.pp,
        a.cp,
        data_ranks(mission, a.tp, a.pp, a.cp),
        a.ep,
        a.expert_tp,
        a.micro_batch,
        a.chunks,
        cases.axes(case(mission), a).plan,
    )
    return np.stack([rule.broken(found) for rule in RULES])


def judge(mission: Mission, layout: Layouts) -> Verdict:
    """Compute a layout's costs and compare them with the requirements. ``layout.dp`` is derived from the
    other degrees."""
    broken = faults(mission, layout)
    legal = ~np.any(broken)
    axes = Layouts(*(ops.where(legal, value, 1.0) for value in layout))._replace(
        zero=layout.zero,
        recompute=layout.recompute,
        schedule=ops.where(legal, layout.schedule, PLAIN_SCHEDULE),
    )
    a = axes._replace(dp=data_ranks(mission, axes.tp, axes.pp, axes.cp))
    job = case(mission)
    cost = cases.terms(job, a)
    parts = np.stack([cases.framework_bytes() + 0.0 * cost.step_s, *cases.memory_bytes(job, a)])
    tokens_per_s = mission.batch * mission.seq / cost.step_s
    model_flops = cases.model_flops_per_token(job)
    mfu = model_flops * tokens_per_s / (mission.gpus * mission.peak_flops_per_s)
    run_s = mission.tokens / tokens_per_s
    dollars = gpu_hours(mission.gpus, run_s) * mission.price
    fits = np.sum(parts) <= mission.hbm_bytes
    reached = (
        (mfu >= mission.least_mfu) & (run_s / DAY <= mission.most_days) & (dollars <= mission.most_dollars)
    )
    return Verdict(
        np.where(legal, -1.0, np.argmax(broken)),
        cost.step_s,
        np.stack([getattr(cost, name) + 0.0 * cost.step_s for name in cases.TERMS]),
        parts,
        mfu,
        run_s / DAY,
        dollars,
        legal & fits,
        legal & fits & reached,
    )


def ratios(mission: Mission, verdict: Verdict) -> Real:
    """How much of each limit a layout uses: memory, MFU (required over reached), days, dollars. Above 1 is
    too much; 0 where there is no limit or the layout cannot be built."""
    taken = np.stack(
        [
            np.sum(verdict.parts_bytes) / mission.hbm_bytes,
            mission.least_mfu / verdict.mfu,
            verdict.days / mission.most_days,
            verdict.dollars / mission.most_dollars,
        ]
    )
    return np.where((verdict.fault < 0) & (taken > 1e-9), taken, 0.0)


def model_ranks(tp: Real, pp: Real, cp: Real) -> Real:
    """GPUs that work on one sequence together, that is, those of one replica."""
    return tp * pp * cp


def data_ranks(job: Mission | Spec, tp: Real, pp: Real, cp: Real) -> Real:
    """Replicas that the job's GPUs have room for; below one where a single replica needs more GPUs."""
    return job.gpus / model_ranks(tp, pp, cp)


def by_hand(
    key: str,
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    ep: int = 1,
    expert_tp: int = 1,
    zero: int = 1,
    micro_batch: int = 1,
    recompute: int = 0,
    schedule: str = "1f1b",
) -> Verdict:
    """The verdict on a layout of a mission, in plain numbers."""
    with check.trusted():
        index = cases.SCHEDULE_NAMES.index(schedule)
        return judge(
            missions()[key],
            Layouts(
                *map(
                    float,
                    (tp, pp, cp, ep, expert_tp, 1, zero, micro_batch, recompute, index, cases.CHUNKS[index]),
                )
            ),
        )


def deepseek_as_trained(recompute: int = 0) -> Verdict:
    """DeepSeek-V3 in its own layout: 16 stages under DualPipe, 64 expert ranks, ZeRO 1 (arXiv:2412.19437,
    section 3.1)."""
    return by_hand("deepseek-v3", pp=16, ep=64, recompute=recompute, schedule="dualpipe")
