"""Missions: training jobs to lay out by hand, what they ask for, and whether a layout gives it.

A mission's layout is judged by the planner's own costs, and its job can be given to the search, which is its answer.
Everything but the reading of the file works on numbers and on symbols.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine import catalog, check, ops, planner
from engine.hardware import Gpu
from engine.layout import Machine, machine
from engine.models import Model
from engine.own import as_model
from engine.pipeline import least_micro_batches
from engine.planner import Case, Layouts
from engine.recipes import Recipe
from engine.units import DAY

NO_CEILING = 1e18
PLAIN_SCHEDULE = float(planner.SCHEDULE_KEYS.index("1f1b"))

# Why a layout cannot be built, in the order in which it is looked at; the engine's ``require_legal`` says it with figures
FAULTS = ("tensor must divide the attention heads", "pipeline × chunks must leave each chunk a layer",
          "tensor × pipeline × context must divide the GPUs", "the data ranks that are left must divide the batch",
          "the micro-batch must divide what a data rank gets", "context must cut the sequence into 2 × context equal pieces",
          "interleaving needs a pipeline", "DualPipe needs an even pipeline, it and ZB-H2 about 2 × pipeline micro-batches",
          "expert must divide the model's experts", "expert × its tensor ranks must divide the GPUs of a stage")


@dataclass(frozen=True)
class Mission:
    """A job, the machines it runs on and what is asked for."""

    key: str
    name: str
    brief: str
    model: Model
    at: Machine
    recipe: Recipe
    gpus: int
    batch: int                  # sequences of a step
    seq: int
    tokens: float               # of the run
    price: float                # dollars per GPU-hour
    hints: tuple[str, ...]
    least_mfu: float = 0.0
    most_days: float = NO_CEILING
    most_dollars: float = NO_CEILING
    start: dict = field(default_factory=dict, hash=False)   # degrees of the first layout that are not one

    @property
    def hbm_bytes(self) -> float:
        """Of one GPU."""
        return self.at.gpu.hbm_bytes

    @property
    def peak_flops_per_s(self) -> float:
        """That MFU counts by."""
        return self.at.peak_flops_per_s

    @property
    def gpu(self) -> Gpu:
        """What the job runs on."""
        return self.at.gpu


class Verdict(NamedTuple):
    """What a layout gives; the figures are of a stand-in where it cannot be built."""

    fault: object               # index into FAULTS, −1 for none
    step_s: object
    times_s: object             # by planner.TERMS
    parts_bytes: object         # by planner.PARTS
    mfu: object
    days: object
    dollars: object
    fits: object
    won: object

    @property
    def total_bytes(self):
        """On the fullest GPU."""
        return np.sum(self.parts_bytes, axis=-1)


@lru_cache(None)
def missions() -> dict[str, Mission]:
    """Key -> Mission, the easiest first."""
    with Path(catalog.__file__).with_name("missions.toml").open("rb") as file:
        entries = tomllib.load(file)
    return {key: _mission(key, entry) for key, entry in entries.items()}


def _mission(key: str, entry: dict) -> Mission:
    gpu, recipe = catalog.gpu(entry.pop("gpu")), catalog.recipe(entry.pop("recipe", "bf16-adam"))
    return Mission(key=key, model=catalog.model(entry.pop("model")), at=machine(gpu), recipe=recipe,
                   hints=tuple(entry.pop("hints")), **entry)


def case(mission) -> Case:
    """The mission's job as the planner takes it."""
    return Case(as_model(mission.model), mission.at.chip, mission.at.wires, mission.hbm_bytes, mission.recipe,
                mission.gpus, mission.batch, mission.seq)


def first_try(mission: Mission) -> Layouts:
    """The layout that a reader starts from: the least that can be built, one GPU's whole job where that can."""
    ones = Layouts(*(1.0,) * len(Layouts._fields))._replace(recompute=0.0, schedule=PLAIN_SCHEDULE)
    return ones._replace(**{name: float(degree) for name, degree in mission.start.items()})


def answer(mission: Mission) -> Layouts:
    """The planner's own layout, as single numbers."""
    with check.trusted():
        found = planner.found(case(mission))
    return Layouts(*(float(column[0]) for column in found.layouts))


def faults(mission, a: Layouts):
    """Which of FAULTS a layout has."""
    dp = data_ranks(mission, a)
    sequences = mission.batch / dp
    schedule = planner.axes(case(mission), a).plan
    interleaved, dualpipe = a.chunks > 1, schedule.weight_copies > 1
    experts = ops.maximum(1.0, mission.model.experts * 1.0)
    return np.stack([
        mission.model.heads % a.tp != 0, a.pp * a.chunks > mission.model.layers, dp % 1 != 0, mission.batch % dp != 0,
        sequences % a.micro_batch != 0, (a.cp > 1) & (mission.seq % (2 * a.cp) != 0), interleaved & (a.pp < 2),
        (dualpipe & (a.pp % 2 != 0)) | (sequences / a.micro_batch < least_micro_batches(a.pp, schedule)),
        experts % a.ep != 0, (mission.gpus / a.pp) % (a.ep * a.expert_tp) != 0])


def judge(mission, layout: Layouts) -> Verdict:
    """Cost a layout and hold it against what is asked for. ``layout.dp`` is taken from the others."""
    broken = faults(mission, layout)
    legal = ~np.any(broken)
    axes = Layouts(*(ops.where(legal, value, 1.0) for value in layout))._replace(
        zero=layout.zero, recompute=layout.recompute, schedule=ops.where(legal, layout.schedule, PLAIN_SCHEDULE))
    a = axes._replace(dp=data_ranks(mission, axes))
    job = case(mission)
    cost = planner.terms(job, a)
    parts = np.stack([planner.framework_bytes() + 0.0 * cost.step_s, *planner.memory_bytes(job, a)])
    tokens_per_s = mission.batch * mission.seq / cost.step_s
    model_flops = planner.model_flops_per_token(job)
    mfu = model_flops * tokens_per_s / (mission.gpus * mission.peak_flops_per_s)
    run_s = planner.run_time_s(mission.tokens, tokens_per_s)
    dollars = planner.gpu_hours(run_s, mission.gpus) * mission.price
    fits = np.sum(parts) <= mission.hbm_bytes
    reached = (mfu >= mission.least_mfu) & (run_s / DAY <= mission.most_days) & (dollars <= mission.most_dollars)
    return Verdict(np.where(legal, -1.0, np.argmax(broken)), cost.step_s,
                   np.stack([getattr(cost, name) + 0.0 * cost.step_s for name in planner.TERMS]), parts, mfu, run_s / DAY,
                   dollars, legal & fits, legal & fits & reached)


def ratios(mission, verdict: Verdict):
    """How much of each limit a layout takes: memory, MFU (what is asked over what is reached), days, dollars. Above 1 is
    too much; 0 where nothing is asked or the layout cannot be built."""
    taken = np.stack([np.sum(verdict.parts_bytes) / mission.hbm_bytes, mission.least_mfu / verdict.mfu,
                      verdict.days / mission.most_days, verdict.dollars / mission.most_dollars])
    return np.where((verdict.fault < 0) & (taken > 1e-9), taken, 0.0)


def model_ranks(layout: Layouts):
    """GPUs that work on one sequence together."""
    return layout.tp * layout.pp * layout.cp


def data_ranks(mission, layout: Layouts):
    """What the other axes leave of the GPUs."""
    return mission.gpus / model_ranks(layout)


def by_hand(key: str, tp=1, pp=1, cp=1, ep=1, expert_tp=1, zero=1, micro_batch=1, recompute=0,
            schedule="1f1b") -> Verdict:
    """The verdict on a layout of a mission, in plain numbers."""
    with check.trusted():
        index = planner.SCHEDULE_NAMES.index(schedule)
        return judge(missions()[key], Layouts(*map(float, (tp, pp, cp, ep, expert_tp, 1, zero, micro_batch, recompute, index,
                                                           planner.CHUNKS[index]))))
