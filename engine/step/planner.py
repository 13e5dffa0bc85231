"""The planner, in Python and on a page: the fastest layouts of a job, and what would make them faster.

With numbers, ``found`` calls ``search.plan``; with symbols, it takes what ``page_search`` finds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from engine.base import check
from engine.base.types import Real, Truth
from engine.catalog.hardware import Gpu
from engine.mechanism import flops
from engine.mechanism.memory import RECOMPUTE
from engine.mechanism.scaled_chip import scaled_chip
from engine.mechanism.shape import shape
from engine.mechanism.wires import scaled
from engine.step import cloud, search
from engine.step.cases import (
    CHUNKS,
    SCHEDULE_KEYS,
    TERMS,
    Case,
    Layouts,
    columns,
    filled,
    ideal_s,
    model_flops_per_token,
    terms,
)
from engine.step.constraints import AxisLimits, Constraints, of_limits
from engine.step.layout import Job, Layout, Machine
from engine.step.page_search import TOP, Cloud, every_layout, layouts_at, layouts_of, ranked


class PlannerAnswer(NamedTuple):
    """What a search found."""

    layouts: Layouts
    legal: Real  # how many layouts were compared
    fitting: Real  # how many of them fit
    free_s: Real  # the fastest step if memory were no limit
    unlimited: Layouts  # the best layout that one of the frameworks can run; only of a search with its cloud


def found(case: Case) -> PlannerAnswer:
    """The fastest layouts that fit, or those with the smallest memory where nothing fits; all NaN where no
    layout is legal."""
    if hasattr(type(case.gpus), "__run_sweep__"):
        return _found_on_page(case, in_cloud=False)[0]
    return _found_here(case, in_cloud=False)[0]


def found_in_cloud(case: Case) -> tuple[PlannerAnswer, Cloud]:
    """``found``, and the cloud of all layouts."""
    on_page = hasattr(type(case.gpus), "__run_sweep__")
    best, seen = _found_on_page(case, in_cloud=True) if on_page else _found_here(case, in_cloud=True)
    if seen is None:
        raise ValueError("a search that was asked for its cloud gave none")
    return best, seen


def _found_here(case: Case, in_cloud: bool) -> tuple[PlannerAnswer, Cloud | None]:
    return _found(
        case.model,
        case.chip,
        case.wires,
        float(case.hbm_bytes),
        case.recipe,
        int(case.gpus),
        int(case.global_batch),
        int(case.seq),
        float(ideal_s(case)) if in_cloud else None,
        case.within,
        case.jobs[int(case.program)].software,
    )


@lru_cache(64)
def _found(
    model,
    chip,
    wires,
    hbm_bytes,
    recipe,
    gpus,
    global_batch,
    seq,
    ideal_s: float | None,
    limits: AxisLimits,
    by,
) -> tuple[PlannerAnswer, Cloud | None]:
    at = Machine(Gpu("own", "own", "", 0, hbm_bytes, 1.0), "bf16", chip, wires)
    job, limits = Job(global_batch, seq, recipe, by), limits.of_model(model.key)
    splits = search.splits(model, job, gpus) if ideal_s else []
    counted = cloud.Counted(splits, hbm_bytes, ideal_s or 1.0)
    columns = dict(zip(search.Degrees._fields, np.reshape(splits, (-1, 6)).astype(float).T))
    seen = Cloud(counted.found, columns, ideal_s) if ideal_s else None
    nothing, some = _columns([], 1), Constraints(limits.able)
    try:
        within = of_limits(limits)
        plan = search.plan(model, at, job, gpus, TOP, counted.add if ideal_s else None, within)
    except ValueError:
        free = _unlimited(model, at, job, gpus, some) if ideal_s else nothing
        return PlannerAnswer(_columns([], TOP), 0.0, 0.0, np.nan, free), seen
    free = _columns([plan.best.layout], 1)
    if within != some:
        free = _unlimited(model, at, job, gpus, some) if ideal_s else nothing
    best = PlannerAnswer(
        _columns([e.layout for e in (plan.best, *plan.runners_up)], TOP),
        float(plan.layouts),
        float(plan.fitting),
        float(plan.free_s),
        free,
    )
    return best, seen


def _unlimited(model, at, job, gpus, some: Constraints) -> Layouts:
    try:
        return _columns([search.plan(model, at, job, gpus, 1, within=some).best.layout], 1)
    except ValueError:
        return _columns([], 1)


def _columns(layouts: list[Layout], length: int) -> Layouts:
    """Some layouts as columns, filled up with NaN."""
    rows = np.full((length, len(Layouts._fields)), np.nan)
    for row, a in zip(rows, layouts):
        schedule = next(
            i for i, pair in enumerate(zip(SCHEDULE_KEYS, CHUNKS)) if pair == (a.schedule, a.interleave)
        )
        row[:] = (
            a.tp,
            a.pp,
            a.cp,
            a.ep,
            a.expert_tp,
            a.dp,
            a.zero,
            a.micro_batch,
            RECOMPUTE[a.recompute],
            schedule,
            a.interleave,
        )
    return Layouts(*rows.T)


def _found_on_page(case: Case, in_cloud: bool = True) -> tuple[PlannerAnswer, Cloud | None]:
    splits, contests = every_layout(case, in_cloud)
    leanest, free = contests["leanest"], contests["free"]

    def ranking(fastest):
        return ranked(
            splits["tp"],
            fastest.cost,
            fastest.cell,
            fastest.count,
            leanest.cost,
            leanest.cell,
            leanest.count,
            free.cost,
        )

    def best(found):
        return layouts_of(splits, found["split"], found["cell"], np.arange(float(TOP)))

    found = ranking(contests["fastest"])
    layouts = unlimited = best(found)
    if in_cloud:
        unlimited = best(ranking(contests["unlimited"]))
    first = Layouts(*(column[:1] for column in unlimited))
    seen = Cloud(contests["cloud"], splits, ideal_s(case)) if in_cloud else None
    return PlannerAnswer(layouts, found["legal"], found["fitting"], found["free_s"], first), seen


MEMORY = len(TERMS)  # index of the loss of a layout that does not fit
RESOURCES = ("arithmetic", "memory_bandwidth", "link", "network")
FACTORS = np.round(np.geomspace(1.05, 8.0, 64), 3)  # how many times as fast a resource is tried
FASTER = 1.1  # the speed-up of the step that a faster resource should bring
A_TIE = 0.0005  # a smaller share of a step does not count as a difference
NEVER = 1e9  # stands for: no factor is enough
# SCALES: how fast each of RESOURCES is in each measured row. First come the layouts as they are, then the
# first layout with each factor of each resource.
SHOWN = TOP + cloud.FRONT + 1  # layouts of an outcome
ANYHOW = SHOWN - 1  # place of the last: the fastest layout that fits without the case's limits
SCALES = np.ones((len(RESOURCES), SHOWN + len(RESOURCES) * len(FACTORS)))
SCALES[:, SHOWN:] = np.where(
    np.repeat(np.eye(len(RESOURCES)), len(FACTORS), axis=1), np.tile(FACTORS, len(RESOURCES)), 1.0
)


class Outcome(NamedTuple):
    """A search's layouts and everything derived from them. Columns have one entry per layout: TOP of the
    search, the winner first, and then the front of the cloud, the leanest first."""

    found: PlannerAnswer
    cloud: Cloud
    layouts: Layouts  # SHOWN: the best of the best splits, the front, the best without limits
    step_s: Real  # of each layout
    times_s: Real  # by layout and TERMS
    total_bytes: Real
    parts_bytes: Real  # of each layout's fullest stage, by memory PARTS
    slower_by: Real  # than the winner
    lost_by: Real  # index of the term, or MEMORY, or MEMORY + 1 for a tie
    mfu: Real
    hfu: Real
    tokens_per_s: Real
    needed: Real  # by what factor each of RESOURCES must grow to make the winner FASTER, or NEVER
    uncovered: Real  # index of the term whose traffic that much arithmetic would expose most …
    uncovered_s: Real  # … and how many seconds of it


def outcome(case: Case, peak_flops_per_s: Real) -> Outcome:
    """Search, and compute the costs of what was found."""
    if hasattr(type(case.gpus), "__run_sweep__"):
        return _outcome(case, peak_flops_per_s)
    return _kept(case, float(peak_flops_per_s))


@lru_cache(32)
def _kept(case: Case, peak_flops_per_s) -> Outcome:
    with check.trusted(), np.errstate(invalid="ignore"):  # where there is no layout the numbers are NaN
        return _outcome(case, peak_flops_per_s)


def _outcome(case: Case, peak_flops_per_s) -> Outcome:
    best, seen = found_in_cloud(case)
    front = layouts_at(seen, cloud.front(seen.places.cost)["place"])
    layouts = Layouts(
        *(
            np.append(np.append(ours, theirs), anyhow)
            for ours, theirs, anyhow in zip(best.layouts, front, best.unlimited)
        )
    )
    tried, rows = with_faster(case, layouts)
    cost = terms(tried, rows)
    every_s, every_times_s = cost.step_s + 0.0 * rows.tp, columns(cost, rows)
    needs = needed(every_s)
    step_s, times_s, total_bytes = (
        every_s[:SHOWN],
        np.stack([column[:SHOWN] for column in every_times_s], axis=-1),
        (cost.total_bytes + 0.0 * rows.tp)[:SHOWN],
    )
    hardware_flops = flops.hardware_flops_per_token(shape(case.model), case.seq, 1, layouts.recompute)
    tokens_per_s = case.global_batch * case.seq / step_s
    per_peak = tokens_per_s / (case.gpus * peak_flops_per_s)
    slower_by = step_s / step_s[0] - 1.0
    longest = np.where(slower_by < A_TIE, MEMORY + 1.0, np.argmax(times_s - times_s[:1], axis=-1))
    return Outcome(
        best,
        seen,
        layouts,
        step_s,
        times_s,
        total_bytes,
        np.stack([part[:SHOWN] for part in filled(tried, rows)], axis=-1),
        slower_by,
        np.where(total_bytes > case.hbm_bytes, float(MEMORY), longest),
        model_flops_per_token(case) * per_peak,
        hardware_flops * per_peak,
        tokens_per_s,
        needs,
        *uncovered(every_times_s, needs[0]),
    )


def with_faster(case: Case, layouts: Layouts) -> tuple[Case, Layouts]:
    """The layouts, followed by copies of the first one in which one of RESOURCES is one of FACTORS times as
    fast. All are rows of one table, so that one call of ``step`` measures them."""
    rows = Layouts(*(np.append(column, np.repeat(column[:1], SCALES.shape[1] - SHOWN)) for column in layouts))
    faster, wider, link, nic = SCALES
    return case._replace(
        chip=scaled_chip(case.chip, faster, wider), wires=scaled(case.wires, link, nic)
    ), rows


def needed(step_s: Real) -> Real:
    """By which factor each of RESOURCES must grow to make the first layout FASTER, with everything else
    unchanged; NEVER where none of FACTORS is enough. ``step_s`` are the steps of ``with_faster``."""
    enough = np.reshape(step_s[SHOWN:], (len(RESOURCES), len(FACTORS))) * FASTER <= step_s[0]
    return np.min(np.where(enough, FACTORS, NEVER), axis=-1)


def uncovered(times_s: list[Real], faster: Real) -> tuple[Real, Real]:
    """(index in TERMS, seconds): the communication that is no longer hidden when the first layout's
    arithmetic is ``faster`` times as fast; with the largest FACTOR where no factor is enough. ``times_s`` are
    the columns of ``with_faster``."""
    row = SHOWN + np.argmax(np.minimum(faster, FACTORS[-1]) == FACTORS)
    more_s = np.stack([np.take(column, row) - column[0] for column in times_s])
    return np.argmax(more_s), np.max(more_s)


def slower_than_anyhow(found: Outcome) -> Real:
    """How much longer the winner's step is for the case's limits, as a share; 0 without limits, and where
    nothing is left to compare."""
    return found.step_s[0] / found.step_s[ANYHOW] - 1.0


def lost_to_limits(found: Outcome) -> tuple[Real, Real]:
    """(index in TERMS, seconds): the term by which the case's limits lengthen the winner's step most."""
    more_s = found.times_s[0] - found.times_s[ANYHOW]
    return np.argmax(more_s), np.max(more_s)


def binding(found: Outcome) -> Real:
    """Index of the winner's longest term; MEMORY if nothing fits, MEMORY + 1 if nothing is legal."""
    return np.where(
        found.found.legal < 1,
        MEMORY + 1.0,
        np.where(found.found.fitting < 1, float(MEMORY), np.argmax(found.times_s[0])),
    )


def waiting_share(found: Outcome) -> Real:
    """The share of the winner's step that is neither arithmetic nor the optimizer; 0 if nothing is legal."""
    busy_s = found.times_s[0][TERMS.index("compute_s")] + found.times_s[0][TERMS.index("optimizer_s")]
    return np.where(found.found.legal < 1, 0.0, 1.0 - busy_s / found.step_s[0])


def lost_to_memory(found: Outcome) -> Real:
    """How much shorter the best step would be if everything fitted, as a share; 0 if nothing is legal."""
    return np.where(found.found.legal < 1, 0.0, 1.0 - found.found.free_s / found.step_s[0])


def any_before(needs: Real, place: int) -> Truth:
    """Whether one of the entries before this place is not NEVER."""
    return np.any(needs[:place] < NEVER) if place else 0.0 > 1.0
