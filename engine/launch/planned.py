"""The planner's best for a launch, among the layouts that its framework has, and how that is written
there."""

from __future__ import annotations

import numpy as np

from engine.frameworks.described import Launch
from engine.frameworks.registry import frameworks
from engine.mechanism.memory import capacity_bytes, recompute_of
from engine.mechanism.pipeline import SCHEDULES
from engine.step import search
from engine.step.cases import ExportedRun, cut
from engine.step.constraints import Constraints
from engine.step.layout import Estimate, Layout, Machine, estimate, recipe_of

MOST_LAYOUTS = 4_000_000  # more are not looked through for a report


def best(launch: Launch, at: Machine) -> Estimate | None:
    """The fastest layout that fits, on the same GPUs and for the same job; None where none does, or where
    there are too many to look through."""
    can = frameworks()[launch.framework].can
    if launch.job is None or can is None:
        return None
    model, job = launch.model, launch.job
    within = Constraints((can,))
    try:
        every = search.rows(model, job, launch.gpus, within, at.wires.gpus_per_node)
    except ValueError:
        return None
    cells = np.prod(search.Grid(model, job, launch.gpus, every, within).shape, dtype=float)
    if cells > MOST_LAYOUTS:
        return None
    found = []
    for block in search.blocks(model, job, launch.gpus, every, within):
        seconds, total_bytes, legal = search.evaluate(block, at)
        allowed = legal & (total_bytes <= capacity_bytes(at.gpu))
        found += search.least_of_each_split(block, np.asarray(seconds), allowed)
    if not found:
        return None
    return estimate(model, at, job, min(found, key=lambda f: (f.cost, f.split)).layout)


def run_of(launch: Launch, layout: Layout) -> ExportedRun:
    """A layout of this launch as the exports take it, for one step: how many there are no text says."""
    job, a = launch.job, layout
    if job is None:
        raise ValueError("a server has no layout to export")
    code, modules = recompute_of(a.recompute)
    schedules = tuple(SCHEDULES)
    return ExportedRun(
        launch.model,
        *cut(a),
        code,
        schedules.index(a.schedule),
        a.interleave,
        schedules,
        job.global_batch,
        job.seq,
        float(job.global_batch * job.seq),
        float(launch.precision == "fp8"),
        job.software.loss,
        modules,
        a.recompute_layers,
        a.first_layers,
        a.last_layers,
        job.mtp,
        a.shard,
        recipe_of(job).gradient_bytes,
        job.software.context == "gather" and a.cp > 1,
        job.software.kernels == "eager",
        job.adapter,
    )


def written(launch: Launch, layout: Layout) -> str:
    """A layout in the framework's own settings."""
    return frameworks()[launch.framework].write(run_of(launch, layout), said=launch.settings)
