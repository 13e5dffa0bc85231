"""The planner's search, in Python and on a page: the fastest layouts of a job, their costs, and what would
make them faster.

With numbers, ``found`` calls ``search.plan``. With symbols, it lists the splits in a program and evaluates
every layout of each in a sweep, so that a page without Python searches the same space with the same ``step``.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.program import program
from engine.base.sweep import sweep
from engine.base.types import Real, Truth
from engine.catalog.hardware import Gpu
from engine.catalog.models import Model
from engine.mechanism import flops
from engine.mechanism.interconnect import Wires
from engine.mechanism.matmul import Chip
from engine.mechanism.memory import RECOMPUTE
from engine.mechanism.pipeline import SCHEDULES
from engine.mechanism.shape import shape
from engine.mechanism.wires import scaled
from engine.step import cloud, search
from engine.step.constraints import (
    ANY,
    FRAMEWORKS,
    NAMED,
    UNLIMITED,
    Constraints,
    Limits,
    is_run,
    is_within,
    of_limits,
)
from engine.step.export import Run
from engine.step.layout import Job, Layout, Machine
from engine.step.legality import cuts_a_head, cuts_tokens_unevenly, leaves_gpus_over, leaves_sequences_over
from engine.step.own import scaled_chip
from engine.step.search import LEAST_TOKENS, MICRO_BATCHES, ZERO_STAGES, Schedules
from engine.step.step import Axes, StageBytes, Terms, overhead_bytes, sizes, stages_bytes, step

if TYPE_CHECKING:
    from engine.base.sweep import Grouped
    from engine.catalog.recipes import Recipe

RUN_BY_SOME = Constraints(framework=ANY)
TOP = 5  # layouts shown: the winner and the best of the other splits
MOST_SPLITS = (
    12_288  # of one job that a page has room for: 24,576 GPUs, 384 experts, sequences of 131,072 have 11,908
)
MODERN = Job(1, 1)  # today's software; a case has its own sizes
RECOMPUTES = tuple(
    float(value) for key, value in RECOMPUTE.items() if key != "selective"
)  # flash drops it anyway
SCHEDULE_KEYS, CHUNKS = zip(*search.EVERY_SCHEDULE)
SCHEDULE_NAMES = tuple(
    f"{key} × {chunks}" if chunks > 1 else key for key, chunks in zip(SCHEDULE_KEYS, CHUNKS)
)
IS_1F1B = tuple(float(key == "1f1b") for key in SCHEDULE_KEYS)
COEFFICIENTS = {
    name: tuple(float(getattr(SCHEDULES[key], name)) for key in SCHEDULE_KEYS) for name in Schedules._fields
}
RUNS = {
    f"{key}_runs": tuple(float(schedule in able.schedules) for schedule in SCHEDULE_KEYS)
    for key, able in FRAMEWORKS.items()
}
EVERY_SCHEDULE = {**COEFFICIENTS, "chunks": CHUNKS, "is_1f1b": IS_1F1B, **RUNS}  # a dimension of a sweep


class Case(NamedTuple):
    """A job and the cluster that it runs on; numbers or symbols."""

    model: Model
    chip: Chip
    wires: Wires
    hbm_bytes: float
    recipe: Recipe
    gpus: float
    global_batch: float  # sequences
    seq: float
    within: Limits = UNLIMITED


class Layouts(NamedTuple):
    """Several layouts, best first, as columns; NaN where there are no more."""

    tp: Real
    pp: Real
    cp: Real
    ep: Real
    expert_tp: Real
    dp: Real
    zero: Real
    micro_batch: Real
    recompute: Real
    schedule: Real  # index into SCHEDULE_KEYS
    chunks: Real


class Costs(NamedTuple):
    """The costs of a step with each of several layouts."""

    step_s: Real
    times_s: Real  # by layout and TERMS
    total_bytes: Real  # of the fullest stage
    parts_bytes: Real  # by layout and memory PARTS


class Found(NamedTuple):
    """What a search found."""

    layouts: Layouts
    legal: Real  # how many layouts were compared
    fitting: Real  # how many of them fit
    free_s: Real  # the fastest step if memory were no limit
    unlimited: Layouts  # of a search with its cloud: the best layout that one of the frameworks can run


class Cloud(NamedTuple):
    """All layouts of a search, by their places in the cloud, and the splits that they have."""

    places: Grouped  # the fastest layout of each place, and how many there are
    splits: dict[str, Real]  # columns, in the order of their numbers
    ideal_s: Real  # the step that the arithmetic alone would take


def found(case: Case) -> Found:
    """The fastest layouts that fit, or those with the smallest memory where nothing fits; all NaN where no
    layout is legal."""
    if hasattr(type(case.gpus), "__run_sweep__"):
        return _found_on_page(case, in_cloud=False)[0]
    return _found_here(case, in_cloud=False)[0]


def found_in_cloud(case: Case) -> tuple[Found, Cloud]:
    """The same, with the cloud of all layouts."""
    on_page = hasattr(type(case.gpus), "__run_sweep__")
    best, seen = _found_on_page(case, in_cloud=True) if on_page else _found_here(case, in_cloud=True)
    if seen is None:
        raise ValueError("a search that was asked for its cloud gave none")
    return best, seen


def _found_here(case: Case, in_cloud: bool) -> tuple[Found, Cloud | None]:
    whole = [field.name for field in fields(Model) if field.type == "int"]
    model = replace(case.model, **{name: int(getattr(case.model, name)) for name in whole})
    return _found(
        model,
        case.chip,
        case.wires,
        float(case.hbm_bytes),
        case.recipe,
        int(case.gpus),
        int(case.global_batch),
        int(case.seq),
        float(ideal_s(case)) if in_cloud else None,
        case.within,
    )


@lru_cache(64)
def _found(
    model, chip, wires, hbm_bytes, recipe, gpus, global_batch, seq, ideal_s: float | None, limits: Limits
) -> tuple[Found, Cloud | None]:
    at = Machine(Gpu("own", "own", "", 0, hbm_bytes, 1.0), "bf16", chip, wires)
    job = Job(global_batch, seq, recipe)
    splits = sorted(search.splits(model, job, gpus)) if ideal_s else []
    counted = cloud.Counted(splits, hbm_bytes, ideal_s or 1.0)
    columns = dict(zip(search.Split._fields, np.reshape(splits, (-1, 6)).astype(float).T))
    seen = Cloud(counted.found, columns, ideal_s) if ideal_s else None
    nothing = _columns([], 1)
    try:
        within = of_limits(limits)
        plan = search.plan(model, at, job, gpus, TOP, counted.add if ideal_s else None, within)
    except ValueError:
        free = _unlimited(model, at, job, gpus) if ideal_s else nothing
        return Found(_columns([], TOP), 0.0, 0.0, np.nan, free), seen
    free = _columns([plan.best.layout], 1)
    if within != RUN_BY_SOME:
        free = _unlimited(model, at, job, gpus) if ideal_s else nothing
    best = Found(
        _columns([e.layout for e in (plan.best, *plan.runners_up)], TOP),
        float(plan.layouts),
        float(plan.fitting),
        float(plan.free_s),
        free,
    )
    return best, seen


def _unlimited(model, at, job, gpus) -> Layouts:
    try:
        return _columns([search.plan(model, at, job, gpus, 1, within=RUN_BY_SOME).best.layout], 1)
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


# -- on a page -----------------------------------------------------------------------------------------------
@program(
    tp=MOST_SPLITS, pp=MOST_SPLITS, cp=MOST_SPLITS, ep=MOST_SPLITS, expert_tp=MOST_SPLITS, dp=MOST_SPLITS
)
def legal_splits(
    gpus: float, global_batch: float, seq: float, heads: float, layers: float, experts: float
) -> dict[str, Any]:
    """``search.splits``, in the order of the splits' numbers, up to the capacity of the lists."""
    tps, pps, cps, eps, expert_tps, dps = [], [], [], [], [], []
    for tp in range(1, int(min(heads, gpus)) + 1):
        if cuts_a_head(heads, tp) or leaves_gpus_over(gpus, tp):
            continue
        for pp in range(1, int(min(layers, gpus / tp)) + 1):
            if leaves_gpus_over(gpus, tp * pp):
                continue
            for cp in range(1, int(max(1, seq // LEAST_TOKENS)) + 1):
                dp = gpus / (tp * pp * cp)
                if leaves_gpus_over(gpus, tp * pp * cp) or leaves_sequences_over(global_batch, dp):
                    continue
                if cp > 1 and cuts_tokens_unevenly(seq, cp):
                    continue
                for ep in range(1, int(max(1, experts)) + 1):
                    if leaves_gpus_over(max(1, experts), ep) or leaves_gpus_over(gpus / pp, ep):
                        continue
                    for whole in range(2):
                        expert_tp = tp if whole else 1
                        if whole and (tp == 1 or experts < 1) or leaves_gpus_over(gpus / pp, ep * expert_tp):
                            continue
                        if len(tps) < MOST_SPLITS:
                            tps.append(tp)
                            pps.append(pp)
                            cps.append(cp)
                            eps.append(ep)
                            expert_tps.append(expert_tp)
                            dps.append(dp)
    return {"tp": tps, "pp": pps, "cp": cps, "ep": eps, "expert_tp": expert_tps, "dp": dps}


@program(
    tp=TOP,
    pp=TOP,
    cp=TOP,
    ep=TOP,
    expert_tp=TOP,
    dp=TOP,
    zero=TOP,
    micro_batch=TOP,
    recompute=TOP,
    schedule=TOP,
    chunks=TOP,
    legal=(),
    fitting=(),
    free_s=(),
)
def ranked(
    tp: list[Real],
    pp: list[Real],
    cp: list[Real],
    ep: list[Real],
    expert_tp: list[Real],
    dp: list[Real],
    fitting_s: list[Real],
    fitting_cell: list[Real],
    fitting: list[Real],
    bytes_: list[Real],
    bytes_cell: list[Real],
    legal: list[Real],
    free_s: list[Real],
) -> dict[str, Any]:
    """The best layout of each of the best splits: the fastest that fit, or the smallest in memory where none
    does."""
    tps, pps, cps, eps, expert_tps, dps = [], [], [], [], [], []
    zeros_, micro_batches, recomputes, schedules, chunks = [], [], [], [], []
    fitting_count, legal_count, fastest = 0, 0, math.nan
    for i in range(len(tp)):
        if not math.isnan(tp[i]):
            fitting_count += fitting[i]
            legal_count += legal[i]
            if math.isnan(fastest) or free_s[i] < fastest:
                fastest = free_s[i]
    taken = [0 for i in range(len(tp))]
    for _place in range(TOP):
        best, cell, least = -1, 0, math.inf
        for i in range(len(tp)):
            cost = fitting_s[i] if fitting_count else bytes_[i]
            if not taken[i] and cost < least:
                best, least = i, cost
        if best < 0:
            break
        taken[best] = 1
        cell = fitting_cell[best] if fitting_count else bytes_cell[best]
        schedule = cell % len(CHUNKS)
        cell = cell // len(CHUNKS)
        zero = cell % len(ZERO_STAGES)
        cell = cell // len(ZERO_STAGES)
        tps.append(tp[best])
        pps.append(pp[best])
        cps.append(cp[best])
        eps.append(ep[best])
        expert_tps.append(expert_tp[best])
        dps.append(dp[best])
        zeros_.append(ZERO_STAGES[int(zero)])
        recomputes.append(RECOMPUTES[int(cell % len(RECOMPUTES))])
        micro_batches.append(MICRO_BATCHES[int(cell // len(RECOMPUTES))])
        schedules.append(schedule)
        chunks.append(CHUNKS[int(schedule)])
    return {
        "tp": tps,
        "pp": pps,
        "cp": cps,
        "ep": eps,
        "expert_tp": expert_tps,
        "dp": dps,
        "zero": zeros_,
        "micro_batch": micro_batches,
        "recompute": recomputes,
        "schedule": schedules,
        "chunks": chunks,
        "legal": legal_count,
        "fitting": fitting_count,
        "free_s": fastest,
    }


@program(
    tp=cloud.MOST_SHOWN,
    pp=cloud.MOST_SHOWN,
    cp=cloud.MOST_SHOWN,
    ep=cloud.MOST_SHOWN,
    expert_tp=cloud.MOST_SHOWN,
    dp=cloud.MOST_SHOWN,
    zero=cloud.MOST_SHOWN,
    micro_batch=cloud.MOST_SHOWN,
    recompute=cloud.MOST_SHOWN,
    schedule=cloud.MOST_SHOWN,
    chunks=cloud.MOST_SHOWN,
)
def fastest_at(
    places: list[Real],
    row: list[Real],
    cell: list[Real],
    tp: list[Real],
    pp: list[Real],
    cp: list[Real],
    ep: list[Real],
    expert_tp: list[Real],
    dp: list[Real],
) -> dict[str, Any]:
    """The fastest layouts at some places of the cloud, as columns."""
    tps, pps, cps, eps, expert_tps, dps = [], [], [], [], [], []
    zeros_, micro_batches, recomputes, schedules, chunks = [], [], [], [], []
    for i in range(len(places)):
        if math.isnan(places[i]):
            break
        split, rest = int(row[int(places[i])]), int(cell[int(places[i])])
        schedule = rest % len(CHUNKS)
        rest = rest // len(CHUNKS)
        zero = rest % len(ZERO_STAGES)
        rest = rest // len(ZERO_STAGES)
        tps.append(tp[split])
        pps.append(pp[split])
        cps.append(cp[split])
        eps.append(ep[split])
        expert_tps.append(expert_tp[split])
        dps.append(dp[split])
        zeros_.append(ZERO_STAGES[zero])
        recomputes.append(RECOMPUTES[rest % len(RECOMPUTES)])
        micro_batches.append(MICRO_BATCHES[rest // len(RECOMPUTES)])
        schedules.append(schedule)
        chunks.append(CHUNKS[schedule])
    return {
        "tp": tps,
        "pp": pps,
        "cp": cps,
        "ep": eps,
        "expert_tp": expert_tps,
        "dp": dps,
        "zero": zeros_,
        "micro_batch": micro_batches,
        "recompute": recomputes,
        "schedule": schedules,
        "chunks": chunks,
    }


def layouts_at(seen: Cloud, places: Real) -> Layouts:
    """The fastest layouts at some places of a cloud."""
    a = fastest_at(places, seen.places.row, seen.places.cell, *seen.splits.values())
    return Layouts(*(a[name][: len(places)] for name in Layouts._fields))


def every_layout(case: Case, in_cloud: bool = False) -> tuple[dict[str, Real], dict[str, Any]]:
    """For each legal split the fastest layout that fits, the one with the smallest memory, and the fastest of
    all: (splits, contests). If asked, also the fastest at each place of the cloud."""
    splits = legal_splits(
        case.gpus, case.global_batch, case.seq, case.model.heads, case.model.layers, case.model.experts
    )
    free = {} if in_cloud else {f"only_{name}": 0.0 * splits["tp"] - 1.0 for name in FIXABLE}
    return splits, contests(case, splits | free, in_cloud)


FIXABLE = {"micro_batch": MICRO_BATCHES, "recompute": RECOMPUTES, "zero": ZERO_STAGES}
EVERY = [*({name: values} for name, values in FIXABLE.items()), EVERY_SCHEDULE]  # dimensions of a sweep


def contests(case: Case, rows: dict, in_cloud: bool = False) -> dict[str, Any]:
    """The same for rows of splits, each with every micro-batch and so on, or with only the one that its
    column ``only_micro_batch`` names (below zero for all). A page runs both by the same loops."""
    arithmetic_s = ideal_s(case) if in_cloud else 0.0

    def measure(point):
        schedule = Schedules(*(point[name] for name in Schedules._fields))
        a = Axes(
            case.seq,
            case.global_batch,
            point["tp"],
            point["pp"],
            point["cp"],
            point["dp"],
            point["ep"],
            point["expert_tp"],
            point["zero"],
            0.0,
            point["micro_batch"],
            point["recompute"],
            schedule,
            point["chunks"],
        )
        terms = step(shape(case.model), MODERN, case.recipe, case.chip, case.wires, a)
        fits, allowed = terms.total_bytes <= case.hbm_bytes, a.tp > 0.0
        runs = [point[name] for name in RUNS]
        if case.within is not UNLIMITED:
            allowed = is_within(case.within, case.model, a, runs)
        found: dict[str, Any] = {
            "fastest": (terms.step_s, fits & allowed),
            "leanest": (terms.total_bytes, allowed),
            "free": (terms.step_s, allowed),
        }
        if in_cloud:
            at = cloud.place(terms.total_bytes, case.hbm_bytes, terms.step_s, arithmetic_s)
            found["cloud"] = terms.step_s, allowed, at, cloud.PLACES
            found["unlimited"] = terms.step_s, fits & is_run(float(NAMED.index(ANY)), case.model, a, runs)
        only = [
            (point[f"only_{name}"] < 0.0) | (point[name] == point[f"only_{name}"])
            for name in FIXABLE
            if f"only_{name}" in point
        ]
        return (*search.legal(a, case.model.layers, point["is_1f1b"]), *only), found

    return sweep(rows, EVERY, measure)


def _found_on_page(case: Case, in_cloud: bool = True) -> tuple[Found, Cloud | None]:
    splits, contests = every_layout(case, in_cloud)
    leanest, free = contests["leanest"], contests["free"]

    def ranking(fastest):
        return ranked(
            *splits.values(),
            fastest.cost,
            fastest.cell,
            fastest.count,
            leanest.cost,
            leanest.cell,
            leanest.count,
            free.cost,
        )

    best = ranking(contests["fastest"])
    layouts = Layouts(*(best[name] for name in Layouts._fields))
    unlimited = layouts
    if in_cloud:
        any_best = ranking(contests["unlimited"])
        unlimited = Layouts(*(any_best[name] for name in Layouts._fields))
    first = Layouts(*(column[:1] for column in unlimited))
    seen = Cloud(contests["cloud"], splits, ideal_s(case)) if in_cloud else None
    return Found(layouts, best["legal"], best["fitting"], best["free_s"], first), seen


# -- costs of the layouts ------------------------------------------------------------------------------------
def axes(case: Case, layouts: Layouts) -> Axes:
    """Job and layouts in the form that ``step`` takes."""
    a = layouts
    plan = Schedules(*(entry(COEFFICIENTS[name], a.schedule) for name in Schedules._fields))
    return Axes(
        case.seq,
        case.global_batch,
        a.tp,
        a.pp,
        a.cp,
        a.dp,
        a.ep,
        a.expert_tp,
        a.zero,
        0.0,
        a.micro_batch,
        a.recompute,
        plan,
        a.chunks,
    )


def entry(table, schedule):
    """The entry of a table at an index that may be a symbol; 0 where there is none."""
    chosen = 0.0
    for index, value in enumerate(table):
        if value:
            chosen = ops.where(schedule == float(index), value, chosen)
    return chosen


def terms(case: Case, layouts: Layouts) -> Terms:
    """Seconds and bytes of each layout's step."""
    return step(shape(case.model), MODERN, case.recipe, case.chip, case.wires, axes(case, layouts))


def memory_bytes(case: Case, layouts: Layouts) -> StageBytes:
    """Bytes of each layout's fullest stage, by part; the software's own memory is ``overhead_bytes``."""
    a = axes(case, layouts)
    stages = stages_bytes(shape(case.model), MODERN, case.recipe, a, *sizes(shape(case.model), a))
    first, second, last = (sum(stage) for stage in stages)
    fullest = [
        ops.where(last > ops.maximum(first, second), in_last, ops.where(second > first, in_second, in_first))
        for in_first, in_second, in_last in zip(*stages)
    ]
    return StageBytes(*fullest)


def framework_bytes() -> float:
    """The software's own memory in addition to the model's."""
    return overhead_bytes(MODERN, 0.0)


def columns(cost: Terms, layouts: Layouts) -> list[Real]:
    """Seconds of each layout's step: a column for each of TERMS."""
    nothing = 0.0 * layouts.tp  # a term that no axis changes is a single number; here it becomes a column
    return [getattr(cost, name) + nothing for name in TERMS]


def times(cost: Terms, layouts: Layouts) -> Real:
    """Seconds of each layout's step, by TERMS."""
    return np.stack(columns(cost, layouts), axis=-1)


def filled(case: Case, layouts: Layouts) -> list[Real]:
    """Bytes of each layout's fullest stage: a column for each of PARTS."""
    found = framework_bytes(), *memory_bytes(case, layouts)
    return [part + 0.0 * layouts.tp for part in found]


def parts(case: Case, layouts: Layouts) -> Real:
    """Bytes of each layout's fullest stage, by PARTS."""
    return np.stack(filled(case, layouts), axis=-1)


def costs(case: Case, layouts: Layouts) -> Costs:
    """The costs of a step with each layout, split into terms."""
    cost, nothing = terms(case, layouts), 0.0 * layouts.tp
    return Costs(
        cost.step_s + nothing, times(cost, layouts), cost.total_bytes + nothing, parts(case, layouts)
    )


# -- what a reader wants to know -----------------------------------------------------------------------------
TERMS = tuple(name for name in Terms._fields if name not in ("step_s", "total_bytes"))
SENT = ("tensor_s", "context_s", "expert_s", "data_exposed_s", "other_s")  # those of TERMS that are traffic
MEMORY = len(TERMS)  # index of the loss of a layout that does not fit
RESOURCES = ("arithmetic", "memory_bandwidth", "link", "network")
FACTORS = np.round(np.geomspace(1.05, 8.0, 64), 3)  # times a resource that are tried
FASTER = 1.1  # the speed-up that they should reach
A_TIE = 0.0005  # a smaller share of a step does not count as a difference
NEVER = 1e9  # no amount of it is enough
# how fast each of RESOURCES is in each row measured: the layouts as they are, then each factor of each
SHOWN = TOP + cloud.FRONT + 1  # layouts of an outcome
ANYHOW = SHOWN - 1  # the last of them: the fastest that fits without the case's limits
SCALES = np.ones((len(RESOURCES), SHOWN + len(RESOURCES) * len(FACTORS)))
SCALES[:, SHOWN:] = np.where(
    np.repeat(np.eye(len(RESOURCES)), len(FACTORS), axis=1), np.tile(FACTORS, len(RESOURCES)), 1.0
)


class Outcome(NamedTuple):
    """A search's layouts and everything derived from them. Columns have one entry per layout: TOP of the
    search, the winner first, and then the front of the cloud, the leanest first."""

    found: Found
    cloud: Cloud
    layouts: Layouts  # SHOWN: the best of the best splits, those of the front, the best without limits
    step_s: Real  # of each layout
    times_s: Real  # by layout and TERMS
    total_bytes: Real
    parts_bytes: Real  # of each layout's fullest stage, by memory PARTS
    slower_by: Real  # than the winner
    lost_by: Real  # index of the term, or MEMORY, or one more for a tie
    mfu: Real
    hfu: Real
    tokens_per_s: Real
    needed: Real  # how many times each of RESOURCES makes the winner FASTER, or NEVER
    uncovered: Real  # index of the term that so much arithmetic would expose most of …
    uncovered_s: Real  # … and how many seconds of it


PARTS = ("framework", *StageBytes._fields)


def sequences(batch_tokens: Real, seq: Real) -> Real:
    """Whole sequences in a batch of this many tokens; at least one."""
    return ops.maximum(1.0, ops.floor(batch_tokens * 1.0 / seq))


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


def ideal_s(case: Case) -> Real:
    """The step that the model's arithmetic alone would take, at the pace of the best matrix products; for no
    GPU at all, that of one."""
    tokens, gpus = case.global_batch * case.seq, ops.maximum(case.gpus * 1.0, 1.0)
    return model_flops_per_token(case) * tokens / (gpus * case.chip.matmul_flops_per_s)


def model_flops_per_token(case: Case) -> Real:
    """FLOPs that MFU counts: forward and backward, with causal attention."""
    return flops.training_flops_per_token(shape(case.model), case.seq)


def with_faster(case: Case, layouts: Layouts) -> tuple[Case, Layouts]:
    """The layouts, followed by copies of the first one in which one of RESOURCES is one of FACTORS times as
    fast. All are rows of one table, so that one call of ``step`` measures them."""
    rows = Layouts(*(np.append(column, np.repeat(column[:1], SCALES.shape[1] - SHOWN)) for column in layouts))
    faster, wider, link, nic = SCALES
    return case._replace(
        chip=scaled_chip(case.chip, faster, wider), wires=scaled(case.wires, link, nic)
    ), rows


def needed(step_s: Real) -> Real:
    """How many times each of RESOURCES the first layout needs to be FASTER, with everything else unchanged;
    NEVER where none of FACTORS is enough. ``step_s`` are the steps of ``with_faster``."""
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


def run(case: Case, layouts: Layouts, tokens: Real, fp8: Real) -> Run:
    """The first layout as settings for other programs; whole numbers throughout, ones where there is none."""
    a = Layouts(*(np.where(column[0] >= 0, column[0], 1.0) for column in layouts))
    return Run(
        case.model,
        a.tp,
        a.pp,
        a.cp,
        a.dp,
        a.ep,
        a.expert_tp,
        a.zero,
        a.micro_batch,
        a.recompute,
        a.schedule,
        a.chunks,
        SCHEDULE_KEYS,
        case.global_batch,
        case.seq,
        tokens,
        fp8,
    )


def crosses(case: Case, layouts: Layouts) -> list:
    """How the winner's pipeline, data, context and tensor groups communicate: 0 inside a node, 1 across
    nodes, 2 not at all. Tensor ranks are innermost, so a group reaches as far as the product of its own axis
    and those inside it."""
    a, per_node = layouts, case.wires.gpus_per_node
    groups = [
        (a.pp, a.tp * a.cp * a.dp * a.pp),
        (a.dp, a.tp * a.cp * a.dp),
        (a.cp, a.tp * a.cp),
        (a.tp, a.tp),
    ]
    return [np.where(size[0] > 1, np.where(reach[0] > per_node, 1.0, 0.0), 2.0) for size, reach in groups]


def beyond_the_node(case: Case, layouts: Layouts) -> Truth:
    """Whether what each of TERMS sends leaves the node, by layout; False for those that send nothing."""
    a, none = layouts, 0.0 * layouts.tp
    replica = a.tp * a.cp * a.dp
    reach: dict[str, Real] = dict(zip(SENT, (a.tp, a.tp * a.cp, a.ep * a.expert_tp, replica, replica * a.pp)))
    return np.stack([reach.get(term, none) + none for term in TERMS], axis=-1) > case.wires.gpus_per_node


def binding(found: Outcome) -> Real:
    """Index of the winner's longest term; MEMORY if nothing fits, one more if nothing is legal."""
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


def chunks_of(schedule: Real) -> Real:
    """Chunks of layers per stage, by index into SCHEDULE_KEYS."""
    return entry(CHUNKS, schedule)
