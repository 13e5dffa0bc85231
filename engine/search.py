"""The whole space of layouts at once: ``plan`` finds the fastest that fits, and says what the others lost by.

tp × pp × cp × ep (with dp as what remains) are listed as far as they are legal; micro-batch, recomputation, ZeRO stage
and schedule with interleaving are dimensions of their own. One call of ``step`` then evaluates all of them by
broadcasting: what does not depend on a dimension is computed once along it. The estimates are the same to the last
digit as ``estimate``'s.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine import check
from engine.layout import Estimate, Job, Layout, Machine, divisors, estimate, recipe_of
from engine.memory import RECOMPUTE
from engine.pipeline import SCHEDULES, least_micro_batches
from engine.shape import shape
from engine.step import Axes, step

MICRO_BATCHES = (1, 2, 4, 8, 16, 32, 64)
INTERLEAVES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24)
ZERO_STAGES = (0, 1, 2, 3)
LEAST_TOKENS = 1024             # of a sequence that context parallelism leaves on a GPU
MOST_GPUS = 10_000_000          # that a plan is made for
AT_ONCE = 200_000               # layouts evaluated in one call: more would not stay near the processor's caches


class Split(NamedTuple):
    """How the GPUs are divided among the axes."""

    tp: int
    pp: int
    cp: int
    ep: int
    expert_tp: int
    dp: int


class Schedules(NamedTuple):
    """Coefficients of several schedules as arrays: what ``Schedule`` is for one."""

    weight_gradients: np.ndarray
    flight_warm_up: np.ndarray
    flight_more: np.ndarray
    stages_share: np.ndarray
    backwards: np.ndarray
    weight_copies: np.ndarray
    last_flight: np.ndarray
    hides_experts: np.ndarray
    least_per_stage: np.ndarray
    least_more: np.ndarray


@dataclass(frozen=True)
class Plan:
    """The winner, the best layout of every other split in order, and what was searched."""

    best: Estimate
    runners_up: tuple[Estimate, ...]
    layouts: int                    # legal ones, all evaluated
    fitting: int
    seconds: float
    free_s: float = math.nan        # the fastest step of all, whether it fits or not

    def as_dict(self) -> dict:
        """The plan as the command line prints it with --json."""
        return {
            "layouts": self.layouts, "fitting": self.fitting, "search_s": self.seconds,
            "layouts_per_s": self.layouts / self.seconds, "best": self.best.as_dict(),
            "runners_up": [{**other.as_dict(), **lost_by(self.best, other)} for other in self.runners_up],
        }


def lost_by(best: Estimate, other: Estimate) -> dict:
    """The term that the other layout loses most on, and by how much; memory where it does not fit."""
    more = {name: other.time_s[name] - seconds for name, seconds in best.time_s.items()}
    term = max(more, key=more.get)
    if not other.fits:
        term = "memory"
    return {"slower_by": other.step_s / best.step_s - 1.0, "lost_by": term, "lost_s": max(0.0, more.get(term, 0.0))}


def splits(model, job: Job, gpus: int) -> list[Split]:
    """Every legal (tp, pp, cp, ep, expert_tp) for so many GPUs."""
    contexts = [c for c in divisors(gpus) if c == 1 or (job.seq % (2 * c) == 0 and job.seq // c >= LEAST_TOKENS)]
    found = []
    for tp in (d for d in divisors(gpus) if model.heads % d == 0):
        for pp in (d for d in divisors(gpus // tp) if d <= model.layers):
            for cp in contexts:
                if gpus % (tp * pp * cp) or job.global_batch % (gpus // (tp * pp * cp)):
                    continue
                dp = gpus // (tp * pp * cp)
                found += [Split(tp, pp, cp, ep, expert_tp, dp)
                          for ep, expert_tp in _expert_splits(model, tp, gpus // pp)]
    return found


def _expert_splits(model, tp: int, stage_gpus: int) -> list[tuple[int, int]]:
    if not model.experts:
        return [(1, 1)]
    return [(ep, expert_tp) for expert_tp in sorted({1, tp}) for ep in divisors(model.experts)
            if stage_gpus % (ep * expert_tp) == 0]


def schedules(model, stages: set[int]) -> list[tuple[str, int]]:
    """Every (schedule, chunks) that a pipeline of one of so many stages can run."""
    if stages == {1}:
        return [("1f1b", 1)]
    fewest = min(stages - {1})
    return [(key, 1) for key, schedule in SCHEDULES.items() if not schedule.interleaved] + [
        ("interleaved", v) for v in INTERLEAVES if fewest * v <= model.layers]


def _along(values, axis: int):
    """A vector along one of the five dimensions."""
    return np.asarray(values, dtype=float).reshape([-1 if i == axis else 1 for i in range(5)])


def legal(a: Axes, layers, is_1f1b):
    """What ``require_legal`` asks beyond a legal split, and of equal layouts one: (the micro-batch divides, the schedule
    can be had and there is a pipeline for it, there are replicas for ZeRO)."""
    sequences = a.global_batch / a.dp
    dualpipe = a.plan.weight_copies > 1.0
    schedule = np.where(a.pp > 1.0, a.chunks * a.pp <= layers, is_1f1b > 0.0)
    schedule = schedule & (~dualpipe | (a.pp % 2.0 == 0.0))
    schedule = schedule & (sequences / a.micro_batch >= least_micro_batches(a.pp, a.plan))
    return sequences % a.micro_batch == 0.0, schedule, (a.zero == 0.0) | (a.dp * a.cp > 1.0)


class Block:
    """Some of the splits, and every micro-batch, recomputation, ZeRO stage and schedule that one of them can have."""

    def __init__(self, model, job: Job, gpus: int, some: list[Split]):
        self.model, self.job, self.gpus, self.splits = model, job, gpus, some
        largest = job.global_batch // min(s.dp for s in some)
        self.micro_batches = [m for m in MICRO_BATCHES if m <= largest]
        # with fused attention, selective recomputation drops nothing that is kept: the same layout as none
        self.recompute = [r for r in RECOMPUTE if not (job.flash and r == "selective")]
        self.schedules = schedules(model, {s.pp for s in some})

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.splits), len(self.micro_batches), len(self.recompute), len(ZERO_STAGES), len(self.schedules))

    def axes(self) -> Axes:
        """Each dimension's values along its own dimension of an array."""
        tp, pp, cp, ep, expert_tp, dp = (_along(column, 0) for column in zip(*self.splits))
        coefficients = [SCHEDULES[key] for key, _ in self.schedules]
        return Axes(
            float(self.job.seq), float(self.job.global_batch), tp, pp, cp, dp, ep, expert_tp,
            _along(ZERO_STAGES, 3), 0.0, _along(self.micro_batches, 1),
            _along([RECOMPUTE[r] for r in self.recompute], 2),
            Schedules(*(_along([getattr(c, name) for c in coefficients], 4) for name in Schedules._fields)),
            _along([chunks for _, chunks in self.schedules], 4))

    def legal(self, a: Axes):
        """Which places of the grid are legal layouts."""
        batch, schedule, replicas = legal(a, self.model.layers, _along([key == "1f1b" for key, _ in self.schedules], 4))
        return batch & schedule & replicas

    def layout(self, row: int, cell: int) -> Layout:
        """The layout at one place of the grid."""
        micro_batch, recompute, zero, schedule = np.unravel_index(cell, self.shape[1:])
        s = self.splits[row]
        key, chunks = self.schedules[schedule]
        return Layout(self.gpus, s.tp, s.pp, s.cp, s.ep, ZERO_STAGES[zero], self.micro_batches[micro_batch],
                      self.recompute[recompute], key, chunks, s.expert_tp)


def blocks(model, job: Job, gpus: int) -> list[Block]:
    """All splits in blocks of similar ones, so that few places of a block's grid are illegal."""
    ordered = sorted(splits(model, job, gpus), key=lambda s: (s.pp, s.dp, s))
    if not ordered:
        raise ValueError(f"global_batch must be a multiple of a data-parallel degree that {gpus} GPUs can have, "
                         f"got {job.global_batch}")
    alone = sum(s.pp == 1 for s in ordered)
    rows = max(1, AT_ONCE // int(np.prod(Block(model, job, gpus, ordered).shape[1:])))
    bounds = sorted({0, alone, *range(alone, len(ordered), rows), len(ordered)})
    return [Block(model, job, gpus, ordered[start:stop]) for start, stop in zip(bounds, bounds[1:])]


class Found(NamedTuple):
    """One layout of a block: its seconds (or bytes, where nothing fits), and its place in the grid."""

    cost: float
    block: Block
    row: int
    cell: int

    @property
    def layout(self) -> Layout:
        return self.block.layout(self.row, self.cell)


def evaluate(block: Block, at: Machine):
    """Seconds and bytes of every layout of a block, and which are legal."""
    a = block.axes()
    with check.trusted():
        terms = step(shape(block.model), block.job, recipe_of(block.job), at.chip, at.wires, a)
    return terms.step_s, np.broadcast_to(terms.total_bytes, block.shape), np.broadcast_to(block.legal(a), block.shape)


def least_of_each_split(block: Block, costs, allowed) -> list[Found]:
    """For every split with an allowed layout, the one that costs least."""
    costs = np.where(allowed, costs, np.inf).reshape(len(block.splits), -1)
    cells = costs.argmin(axis=1)
    least = costs[np.arange(len(cells)), cells]
    return [Found(least[row], block, row, cells[row]) for row in np.flatnonzero(least < np.inf)]


def plan(model, at: Machine, job: Job, gpus: int, top: int = 5) -> Plan:
    """The fastest layout that fits ``gpus`` GPUs, and the best of the other splits. Where nothing fits, the leanest."""
    check.whole(gpus=gpus, top=top)
    check.between(1, MOST_GPUS, gpus=gpus)
    started = time.perf_counter()
    fastest, leanest, legal_count, fitting_count, free_s = [], [], 0, 0, math.inf
    for block in blocks(model, job, int(gpus)):
        seconds, total_bytes, legal = evaluate(block, at)
        seconds = np.where(legal, seconds, np.inf)
        fitting = legal & (total_bytes <= at.gpu.hbm_bytes)
        legal_count += int(np.count_nonzero(legal))
        fitting_count += int(np.count_nonzero(fitting))
        free_s = min(free_s, float(seconds.min()))
        fastest += least_of_each_split(block, seconds, fitting)
        if not fastest:
            leanest += least_of_each_split(block, total_bytes, legal)
    found = sorted(fastest or leanest, key=lambda f: (f.cost, f.block.splits[f.row]))[:top]
    if not found:
        raise ValueError(f"gpus must leave some layout legal for {model.key} with global_batch {job.global_batch}, "
                         f"got {gpus}")
    elapsed_s = time.perf_counter() - started
    first, *others = (estimate(model, at, job, f.layout) for f in found)
    return Plan(first, tuple(others), legal_count, fitting_count, elapsed_s, free_s)
