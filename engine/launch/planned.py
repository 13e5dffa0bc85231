"""The planner's best for a launch, among the layouts that its framework has, and how that is written
there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.launch import bridge
from engine.launch.launch import Launch
from engine.mechanism.memory import capacity_bytes, recompute_of
from engine.step import export, search
from engine.step.export import TORCH_SCHEDULES
from engine.step.layout import Estimate, Layout, Machine, estimate, recipe_of

MOST_LAYOUTS = 4_000_000  # more are not looked through for a report


class Able(NamedTuple):
    """What a framework can do of what the search lists."""

    stages: tuple[int, ...]
    schedules: tuple[str, ...]
    cut: bool  # whether a model can be cut at all, or only its state be shared


ABLE = {
    "megatron": Able((0, 1), ("1f1b", "interleaved"), True),
    "bridge": Able((0, 1), ("1f1b", "interleaved"), True),
    "torchtitan": Able((2, 3), ("1f1b", "interleaved", "gpipe"), True),
    "hugging_face": Able((0, 1, 2, 3), ("1f1b",), False),
}


def best(launch: Launch, at: Machine) -> Estimate | None:
    """The fastest layout that fits, on the same GPUs and for the same job; None where none does, or where
    there are too many to look through."""
    if launch.job is None or launch.framework not in ABLE:
        return None
    able, model, job = ABLE[launch.framework], launch.model, launch.job
    try:
        every = search.rows(model, job, launch.gpus)
    except ValueError:
        return None
    if not able.cut:
        every = every[np.all(every[:, :5] == 1, axis=1)]
    elif launch.framework != "torchtitan" and not model.kv_lora:
        every = every[model.kv_heads % every[:, 0] == 0]
    cells = len(every) and np.prod(search.Block(model, job, launch.gpus, every).shape, dtype=float)
    if not len(every) or cells > MOST_LAYOUTS:
        return None
    found = []
    for block in search.blocks(model, job, launch.gpus, every):
        seconds, total_bytes, legal = search.evaluate(block, at)
        schedule = np.array([key in able.schedules for key, _ in block.schedules])[:, np.newaxis]
        even = np.array(
            [model.layers % (pp * chunks) == 0 for _, chunks in block.schedules for pp in block.rows[:, 1]]
        )
        whole = even.reshape(len(block.schedules), -1) if launch.framework != "torchtitan" else True
        allowed = (
            legal
            & np.isin(block.axes().zero, able.stages)
            & schedule
            & whole
            & ((block.axes().zero != 2) | (block.axes().pp < 2) | (launch.framework != "torchtitan"))
            & (total_bytes <= capacity_bytes(at.gpu))
        )
        found += search.least_of_each_split(block, np.asarray(seconds), allowed)
    if not found:
        return None
    return estimate(model, at, job, min(found, key=lambda f: (f.cost, f.split)).layout)


def run_of(launch: Launch, layout: Layout, tokens: float = 0.0) -> export.Run:
    """A layout of this launch as the exports take it."""
    job, a = launch.job, layout
    if job is None:
        raise ValueError("a server has no layout to export")
    code, modules = recompute_of(a.recompute)
    schedules = tuple(TORCH_SCHEDULES)
    return export.Run(
        launch.model,
        a.tp,
        a.pp,
        a.cp,
        a.dp,
        a.ep,
        a.expert_tp,
        a.zero,
        a.micro_batch,
        code,
        schedules.index(a.schedule),
        a.interleave,
        schedules,
        job.global_batch,
        job.seq,
        tokens or float(job.global_batch * job.seq),
        float(launch.precision == "fp8"),
        job.loss,
        modules,
        a.recompute_layers,
        a.first_layers,
        a.last_layers,
        job.mtp,
        a.shard,
        recipe_of(job).gradient_bytes,
        job.gather_context,
    )


def written(launch: Launch, layout: Layout) -> str:
    """A layout in the framework's own settings."""
    run = run_of(launch, layout)
    if launch.framework == "torchtitan":
        return export.torchtitan(run)
    if launch.framework == "hugging_face":
        return export.deepspeed(run) + export.training_arguments(run)
    if launch.framework == "bridge":
        recipe = next((one.value for one in launch.settings if one.name == "recipe"), "")
        sizes = [f" \\\n  {one.key}={one.value}" for one in launch.settings if one.name in bridge.SIZES]
        return export.bridge(run, recipe).rstrip("\n") + "".join(sizes) + "\n"
    return export.megatron(run)
