"""A layout by rules of thumb, as it is found on paper; and the search held to the same tools, to see who was right.

The rules, in order of what they rule out:
1.  Tensor parallelism stays in the node, and a sequence is not cut into pieces of under ``search.LEAST_TOKENS``.
2.  A pipeline is allowed where its bubble, (p − 1)/(v·m), is small; the state is sharded as little as lets it fit; and
    the traffic of data and context ranks must hide behind arithmetic.
3.  Of what remains, the least tp²·pp that fits: tensor ranks are the dearest, a pipeline comes next, context ranks cost
    little. Among equals, fewer tensor ranks. Experts: as many ranks as experts or a node, whichever is less.
4.  Where nothing fits, a larger bubble; then recomputation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from engine import catalog, check, search
from engine.layout import Estimate, Job, Layout, Machine, divisors, estimate, machine, require_legal
from engine.memory import FULL, NO_RECOMPUTE, RECOMPUTE

BUBBLES = (0.04, 0.15, 0.3, float("inf"))   # of the arithmetic: what is allowed at first, and where nothing fits
EXPOSED = 0.03                          # of the step: what traffic over the network may cost beyond what hides
SCHEDULES = ("1f1b", "interleaved")
NAMES = {value: name for name, value in RECOMPUTE.items()}


@dataclass(frozen=True)
class Tools:
    """What the training software of a time can do."""

    key: str
    name: str
    stages: tuple[int, ...]         # of ZeRO
    context: bool                   # context parallelism


TOOLS = {tools.key: tools for tools in (
    Tools("3d", "whole replicas", (0,), False),
    Tools("zero1", "the optimizer sharded (ZeRO-1)", (0, 1), False),
    Tools("fsdp", "all state sharded (up to ZeRO-3)", (0, 1, 2, 3), False),
    Tools("context", "and context parallelism", (0, 1, 2, 3), True))}


class Split(NamedTuple):
    """How many GPUs work on one sequence, and in which way."""

    tp: int
    pp: int
    cp: int
    ep: int = 1

    @property
    def cost(self) -> tuple:
        """What the rules sort by."""
        return self.tp**2 * self.pp, self.tp, self.cp


def split_of(layout: Layout) -> Split:
    """The part of a layout that the rules are about."""
    return Split(layout.tp, layout.pp, layout.cp, layout.ep)


def _powers_of_two(number: int) -> list[int]:
    return [d for d in divisors(number) if d & (d - 1) == 0]


def splits(model, at: Machine, job: Job, gpus: int, tools: Tools) -> list[Split]:
    """Every split that rule 1 lets through, in the order of rule 3."""
    node = int(at.wires.gpus_per_node)
    found = []
    for tp in _powers_of_two(gpus):
        for pp in _powers_of_two(gpus // tp):
            for cp in _powers_of_two(gpus // (tp * pp)) if tools.context else [1]:
                whole = cp == 1 or (job.seq // cp >= search.LEAST_TOKENS and job.seq % (2 * cp) == 0)
                if tp <= node and model.heads % tp == 0 and pp <= model.layers and whole:
                    found.append(Split(tp, pp, cp, max(1, min(model.experts, node, gpus // pp))))
    return sorted(found, key=lambda split: split.cost)


def chunks(model, pp: int) -> list[int]:
    """Chunks of layers a stage can have, the most first."""
    return [v for v in reversed((1, *search.INTERLEAVES)) if v * pp <= model.layers and (v == 1 or pp > 1)]


def advise(model, at: Machine, job: Job, gpus: int, tools: Tools = TOOLS["context"]) -> Estimate:
    """The layout that the rules lead to, with one sequence a micro-batch; ValueError where not even the last fits."""
    check.whole(gpus=gpus)
    candidates = splits(model, at, job, gpus, tools)
    for recompute in (NO_RECOMPUTE, FULL):
        for bubble in BUBBLES:
            for split in candidates:
                found = _fitting(model, at, job, gpus, tools, split, NAMES[recompute], bubble)
                if found:
                    return found
    raise ValueError(f"gpus must be enough for {model.key} with {tools.name}, got {gpus}")


def _fitting(model, at, job, gpus, tools, split, recompute, bubble) -> Estimate | None:
    """Rule 2 for one split: the lowest stage of ZeRO, and the most chunks, with which it fits."""
    dp = gpus // (split.tp * split.pp * split.cp)
    for stage in tools.stages:
        for v in chunks(model, split.pp):
            if (split.pp - 1) * dp > bubble * v * job.global_batch:
                continue
            layout = Layout(gpus, split.tp, split.pp, split.cp, split.ep, stage, 1, recompute,
                            "interleaved" if v > 1 else "1f1b", v)
            try:
                require_legal(model, job, layout)
            except ValueError:
                continue
            found = estimate(model, at, job, layout)
            if found.fits and _hidden(found):
                return found
    return None


def _hidden(found: Estimate) -> bool:
    """Whether sharding and replicas, and passing keys and values around, cost little beyond what hides."""
    return max(found.time_s["data_exposed"], found.time_s["context"]) <= EXPOSED * found.step_s


def fastest(model, at: Machine, job: Job, gpus: int, tools: Tools = TOOLS["context"],
            only: Split | None = None) -> Estimate:
    """The search's winner among all layouts that the tools can run, or among those of one split."""
    check.whole(gpus=gpus)
    found = []
    for block in search.blocks(model, job, gpus):
        seconds, total_bytes, legal = search.evaluate(block, at)
        allowed = _allowed(block, tools, only) & legal & (total_bytes <= at.gpu.hbm_bytes)
        found += search.least_of_each_split(block, seconds, allowed)
    if not found:
        raise ValueError(f"gpus must be enough for {model.key} with {tools.name}, got {gpus}")
    return estimate(model, at, job, min(found, key=lambda f: (f.cost, f.block.splits[f.row])).layout)


def _allowed(block, tools: Tools, only: Split | None):
    """Which layouts of a block the tools can run."""
    a = block.axes()
    schedule = np.array([key in SCHEDULES for key, _ in block.schedules])
    allowed = np.isin(a.zero, tools.stages) & ((a.cp == 1) | tools.context) & schedule
    if only:
        allowed = allowed & (a.tp == only.tp) & (a.pp == only.pp) & (a.cp == only.cp) & (a.ep == only.ep)
    return allowed


@dataclass(frozen=True)
class Verdict:
    """The rules' layout beside the search's, both tuned in micro-batch, stage, chunks and recomputation."""

    tools: Tools
    rules: Estimate
    search: Estimate

    @property
    def agree(self) -> bool:
        return split_of(self.rules.layout) == split_of(self.search.layout)

    @property
    def slower_by(self) -> float:
        """What following the rules costs."""
        return self.rules.step_s / self.search.step_s - 1.0

    @property
    def lost_by(self) -> str:
        """The term on which the rules' layout loses most."""
        return search.lost_by(self.search, self.rules)["lost_by"] if not self.agree else "nothing"


def verdict(model, at: Machine, job: Job, gpus: int, tools: Tools = TOOLS["context"]) -> Verdict:
    """Who was right, and by how much."""
    advised = advise(model, at, job, gpus, tools)
    return Verdict(tools, fastest(model, at, job, gpus, tools, split_of(advised.layout)),
                   fastest(model, at, job, gpus, tools))


def written(layout: Layout) -> str:
    """A layout as people say it: TP 8 × PP 4 × DP 16."""
    axes = [("TP", layout.tp), ("CP", layout.cp), ("PP", layout.pp), ("EP", layout.ep), ("DP", layout.dp)]
    return " × ".join(f"{name} {size}" for name, size in axes if size > 1) or "one GPU"


def tuned(model, gpus: int, global_batch: int, seq: int, tools: str = "context", only: Split | None = None,
          gpu: str = "h100-sxm") -> Estimate:
    """``fastest`` by the names of things: for a lesson's tables."""
    return fastest(catalog.model(model), machine(catalog.gpu(gpu)), Job(global_batch, seq), gpus, TOOLS[tools], only)


@lru_cache(64)
def judged(model: str, gpus: int, global_batch: int, seq: int, tools: str = "context",
           gpu: str = "h100-sxm") -> Verdict:
    """``verdict`` by the names of things."""
    return verdict(catalog.model(model), machine(catalog.gpu(gpu)), Job(global_batch, seq), gpus, TOOLS[tools])
