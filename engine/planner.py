"""The planner's search, here and on a page: the fastest layouts of a job, their costs, and what would make them faster.

With numbers ``found`` is ``search.plan``. With symbols it lists the splits by a program and measures every layout of
each by a sweep, so that a page without Python searches the same space by the same ``step``.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from engine import flops, ops, search
from engine.export import Run
from engine.hardware import Gpu
from engine.interconnect import Wires
from engine.layout import Job, Machine
from engine.matmul import Chip
from engine.memory import RECOMPUTE
from engine.models import Model
from engine.pipeline import SCHEDULES
from engine.own import scaled_chip, scaled_wires
from engine.program import program
from engine.search import INTERLEAVES, LEAST_TOKENS, MICRO_BATCHES, ZERO_STAGES, Schedules
from engine.shape import shape
from engine.units import HOUR
from engine.step import Axes, StageBytes, Terms, overhead_bytes, sizes, stages_bytes, step
from engine.sweep import sweep

TOP = 5                 # layouts that are shown: the winner and the best of the other splits
MOST_SPLITS = 12_288    # of one job that a page has room for: 24,576 GPUs, 384 experts, sequences of 131,072 have 11,908
MODERN = Job(1, 1)      # today's software; a case has its own sizes
RECOMPUTES = tuple(float(value) for key, value in RECOMPUTE.items() if key != "selective")  # flash drops it anyway
# every (schedule, chunks of layers a stage), in the order of ``search.schedules``
SCHEDULE_KEYS = tuple(key for key in SCHEDULES if key != "interleaved") + ("interleaved",) * len(INTERLEAVES)
CHUNKS = (1,) * (len(SCHEDULES) - 1) + INTERLEAVES
SCHEDULE_NAMES = tuple(f"{key} × {chunks}" if chunks > 1 else key for key, chunks in zip(SCHEDULE_KEYS, CHUNKS))
IS_1F1B = tuple(float(key == "1f1b") for key in SCHEDULE_KEYS)
COEFFICIENTS = {name: tuple(float(getattr(SCHEDULES[key], name)) for key in SCHEDULE_KEYS)
                for name in Schedules._fields}
EVERY_SCHEDULE = {**COEFFICIENTS, "chunks": CHUNKS, "is_1f1b": IS_1F1B}     # a dimension of a sweep


class Case(NamedTuple):
    """A job and the cluster that it runs on; numbers or symbols."""

    model: Model
    chip: Chip
    wires: Wires
    hbm_bytes: float
    recipe: object
    gpus: float
    global_batch: float             # sequences
    seq: float


class Layouts(NamedTuple):
    """Several layouts, best first, as columns; NaN where there are no more."""

    tp: object
    pp: object
    cp: object
    ep: object
    expert_tp: object
    dp: object
    zero: object
    micro_batch: object
    recompute: object
    schedule: object                # index into SCHEDULE_KEYS
    chunks: object


class Costs(NamedTuple):
    """What a step of each of several layouts takes."""

    step_s: object
    times_s: object                 # by layout and TERMS
    total_bytes: object             # of the fullest stage
    parts_bytes: object             # by layout and memory PARTS


class Found(NamedTuple):
    """What a search found."""

    layouts: Layouts
    legal: object                   # how many layouts were compared
    fitting: object                 # how many of them fit
    free_s: object                  # the fastest step if memory were no limit


def found(case: Case) -> Found:
    """The fastest layouts that fit, or the leanest where nothing fits; all NaN where no layout is legal."""
    if hasattr(type(case.gpus), "__run_sweep__"):
        return _found_on_page(case)
    whole = [field.name for field in fields(Model) if field.type == "int"]
    model = replace(case.model, **{name: int(getattr(case.model, name)) for name in whole})
    return _found(model, case.chip, case.wires, float(case.hbm_bytes), case.recipe, int(case.gpus),
                  int(case.global_batch), int(case.seq))


@lru_cache(64)
def _found(model, chip, wires, hbm_bytes, recipe, gpus, global_batch, seq) -> Found:
    at = Machine(Gpu("own", "own", "", 0, hbm_bytes, 1.0), "bf16", chip, wires)
    try:
        plan = search.plan(model, at, Job(global_batch, seq, recipe), gpus, TOP)
    except ValueError:
        return Found(Layouts(*np.full((len(Layouts._fields), TOP), np.nan)), 0.0, 0.0, np.nan)
    rows = np.full((TOP, len(Layouts._fields)), np.nan)
    for row, a in zip(rows, (e.layout for e in (plan.best, *plan.runners_up))):
        schedule = next(i for i, pair in enumerate(zip(SCHEDULE_KEYS, CHUNKS)) if pair == (a.schedule, a.interleave))
        row[:] = (a.tp, a.pp, a.cp, a.ep, a.expert_tp, a.dp, a.zero, a.micro_batch, RECOMPUTE[a.recompute], schedule,
                  a.interleave)
    return Found(Layouts(*rows.T), float(plan.layouts), float(plan.fitting), float(plan.free_s))


# -- on a page -------------------------------------------------------------------------------------------------------
@program(tp=MOST_SPLITS, pp=MOST_SPLITS, cp=MOST_SPLITS, ep=MOST_SPLITS, expert_tp=MOST_SPLITS, dp=MOST_SPLITS)
def legal_splits(gpus, global_batch, seq, heads, layers, experts):
    """``search.splits``, in the order of the splits' numbers; no more than there is room for."""
    tps, pps, cps, eps, expert_tps, dps = [], [], [], [], [], []
    for tp in range(1, int(min(heads, gpus)) + 1):
        if heads % tp or gpus % tp:
            continue
        for pp in range(1, int(min(layers, gpus / tp)) + 1):
            if gpus % (tp * pp):
                continue
            for cp in range(1, int(max(1, seq // LEAST_TOKENS)) + 1):
                dp = gpus / (tp * pp * cp)
                if dp != math.floor(dp) or global_batch % dp or (cp > 1 and seq % (2 * cp)):
                    continue
                for ep in range(1, int(max(1, experts)) + 1):
                    if max(1, experts) % ep or (gpus / pp) % ep:
                        continue
                    for whole in range(2):
                        expert_tp = tp if whole else 1
                        if whole and (tp == 1 or experts < 1) or (gpus / pp) % (ep * expert_tp):
                            continue
                        if len(tps) < MOST_SPLITS:
                            tps.append(tp)
                            pps.append(pp)
                            cps.append(cp)
                            eps.append(ep)
                            expert_tps.append(expert_tp)
                            dps.append(dp)
    return {"tp": tps, "pp": pps, "cp": cps, "ep": eps, "expert_tp": expert_tps, "dp": dps}


@program(tp=TOP, pp=TOP, cp=TOP, ep=TOP, expert_tp=TOP, dp=TOP, zero=TOP, micro_batch=TOP, recompute=TOP, schedule=TOP,
         chunks=TOP, legal=(), fitting=(), free_s=())
def ranked(tp, pp, cp, ep, expert_tp, dp, fitting_s, fitting_cell, fitting, bytes_, bytes_cell, legal, free_s):
    """The best layout of each of the best splits: the fastest that fit, or the leanest where none does."""
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
    for place in range(TOP):
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
    return {"tp": tps, "pp": pps, "cp": cps, "ep": eps, "expert_tp": expert_tps, "dp": dps, "zero": zeros_,
            "micro_batch": micro_batches, "recompute": recomputes, "schedule": schedules, "chunks": chunks,
            "legal": legal_count, "fitting": fitting_count, "free_s": fastest}


def every_layout(case: Case):
    """For each legal split the fastest layout that fits it, the leanest, and the fastest of all: (splits, contests)."""
    splits = legal_splits(case.gpus, case.global_batch, case.seq, case.model.heads, case.model.layers,
                          case.model.experts)
    return splits, contests(case, splits, [{"micro_batch": MICRO_BATCHES}, {"recompute": RECOMPUTES}, {"zero": ZERO_STAGES},
                                           EVERY_SCHEDULE])


def contests(case: Case, rows: dict, dimensions: list[dict]):
    """The same for rows that name some of a layout's parts, over dimensions that name the rest."""
    def measure(point):
        schedule = Schedules(*(point[name] for name in Schedules._fields))
        split = (point[name] for name in ("tp", "pp", "cp", "dp", "ep", "expert_tp", "zero"))
        a = Axes(case.seq, case.global_batch, *split, 0.0, point["micro_batch"], point["recompute"], schedule,
                 point["chunks"])
        terms = step(shape(case.model), MODERN, case.recipe, case.chip, case.wires, a)
        return search.legal(a, case.model.layers, point["is_1f1b"]), {
            "fastest": (terms.step_s, terms.total_bytes <= case.hbm_bytes),
            "leanest": (terms.total_bytes, a.tp > 0.0), "free": (terms.step_s, a.tp > 0.0)}

    return sweep(rows, dimensions, measure)


def _found_on_page(case: Case) -> Found:
    splits, contests = every_layout(case)
    fastest, leanest = contests["fastest"], contests["leanest"]
    best = ranked(*splits.values(), fastest.cost, fastest.cell, fastest.count, leanest.cost, leanest.cell,
                  leanest.count, contests["free"].cost)
    return Found(Layouts(*(best[name] for name in Layouts._fields)), best["legal"], best["fitting"], best["free_s"])


# -- what the layouts cost -------------------------------------------------------------------------------------------
def axes(case: Case, layouts: Layouts) -> Axes:
    """Job and layouts as ``step`` reads them."""
    a = layouts
    plan = Schedules(*(_entry(COEFFICIENTS[name], a.schedule) for name in Schedules._fields))
    return Axes(case.seq, case.global_batch, a.tp, a.pp, a.cp, a.dp, a.ep, a.expert_tp, a.zero, 0.0, a.micro_batch,
                a.recompute, plan, a.chunks)


def _entry(table, schedule):
    """The entry of a table at an index that may be a symbol; 0 where it has none."""
    chosen = 0.0
    for index, value in enumerate(table):
        if value:
            chosen = ops.where(schedule == float(index), value, chosen)
    return chosen


def terms(case: Case, layouts: Layouts) -> Terms:
    """Seconds and bytes of each layout's step."""
    return step(shape(case.model), MODERN, case.recipe, case.chip, case.wires, axes(case, layouts))


def memory_bytes(case: Case, layouts: Layouts) -> StageBytes:
    """Bytes of each layout's fullest stage, by part; the software's own are ``overhead_bytes``."""
    a = axes(case, layouts)
    stages = stages_bytes(shape(case.model), MODERN, case.recipe, a, *sizes(shape(case.model), a))
    first, second, last = (sum(stage) for stage in stages)
    fullest = [ops.where(last > ops.maximum(first, second), in_last, ops.where(second > first, in_second, in_first))
               for in_first, in_second, in_last in zip(*stages)]
    return StageBytes(*fullest)


def framework_bytes() -> float:
    """What the software holds beside the model."""
    return overhead_bytes(MODERN, None)


def costs(case: Case, layouts: Layouts) -> Costs:
    """What a step of each layout takes, cut up."""
    cost, nothing = terms(case, layouts), 0.0 * layouts.tp      # what no axis changes is one number; here it is a column
    times_s = np.stack([getattr(cost, name) + nothing for name in TERMS], axis=-1)
    parts = np.stack([part + nothing for part in (framework_bytes(), *memory_bytes(case, layouts))], axis=-1)
    return Costs(cost.step_s + nothing, times_s, cost.total_bytes + nothing, parts)


# -- what a reader asks of them --------------------------------------------------------------------------------------
TERMS = tuple(name for name in Terms._fields if name not in ("step_s", "total_bytes"))
MEMORY = len(TERMS)             # index of what a layout loses by that does not fit
RESOURCES = ("arithmetic", "memory_bandwidth", "link", "network")
FACTORS = np.round(np.geomspace(1.05, 8.0, 64), 3)      # times a resource that are tried
FASTER = 1.1                    # what they are tried for
A_TIE = 0.0005                  # less than this share of a step is no difference
NEVER = 1e9                     # no amount of it is enough


class Outcome(NamedTuple):
    """A search's layouts and all that follows from them. Columns have a place for each layout, the winner's first."""

    found: Found
    step_s: object              # of each layout
    times_s: object             # by layout and TERMS
    total_bytes: object
    parts_bytes: object         # of each layout's fullest stage, by memory PARTS
    slower_by: object           # than the winner
    lost_by: object             # index of the term, or MEMORY, or one more for a tie
    mfu: object                 # of the winner
    hfu: object
    tokens_per_s: object
    needed: object              # times each of RESOURCES that makes the winner FASTER, or NEVER
    uncovered: object           # index of the term that so much arithmetic would uncover most of …
    uncovered_s: object         # … and how much of it


PARTS = ("framework", *StageBytes._fields)


def sequences(batch_tokens, seq):
    """Whole sequences in a batch of so many tokens; at least one."""
    return ops.maximum(1.0, ops.floor(batch_tokens * 1.0 / seq))


def outcome(case: Case, peak_flops_per_s) -> Outcome:
    """Search, and cost what was found."""
    if hasattr(type(case.gpus), "__run_sweep__"):
        return _outcome(case, peak_flops_per_s)
    return _kept(case, float(peak_flops_per_s))


@lru_cache(32)
def _kept(case: Case, peak_flops_per_s) -> Outcome:
    with np.errstate(invalid="ignore"):     # where there is no layout there are no numbers
        return _outcome(case, peak_flops_per_s)


def _outcome(case: Case, peak_flops_per_s) -> Outcome:
    best = found(case)
    step_s, times_s, total_bytes, parts = costs(case, best.layouts)
    model_flops = model_flops_per_token(case)
    hardware_flops = flops.hardware_flops_per_token(shape(case.model), case.seq, 1, best.layouts.recompute[0])
    tokens_per_s = case.global_batch * case.seq / step_s[0]
    per_peak = tokens_per_s / (case.gpus * peak_flops_per_s)
    slower_by = step_s / step_s[0] - 1.0
    longest = np.where(slower_by < A_TIE, MEMORY + 1.0, np.argmax(times_s - times_s[:1], axis=-1))
    needs = needed(case, best.layouts)
    return Outcome(
        best, step_s, times_s, total_bytes, parts, slower_by,
        np.where(total_bytes > case.hbm_bytes, float(MEMORY), longest),
        model_flops * per_peak, hardware_flops * per_peak, tokens_per_s, needs,
        *uncovered(case, best.layouts, needs[0]))


def model_flops_per_token(case: Case):
    """What MFU counts: forward and backward, attention causal."""
    return flops.training_flops_per_token(shape(case.model), case.seq)


def needed(case: Case, layouts: Layouts):
    """How many times each of RESOURCES the first layout needs to be FASTER, with all else as it is; NEVER where none of
    FACTORS is enough."""
    winner = Layouts(*(column[0] for column in layouts))
    before_s = terms(case, winner).step_s
    found_at = []
    for at in range(len(RESOURCES)):
        faster, wider, link, nic = (FACTORS if at == i else 1.0 for i in range(len(RESOURCES)))
        better = case._replace(chip=scaled_chip(case.chip, faster, wider), wires=scaled_wires(case.wires, link, nic))
        enough = terms(better, winner).step_s * FASTER <= before_s
        found_at.append(np.min(np.where(enough, FACTORS, NEVER)))
    return np.stack(found_at)


def uncovered(case: Case, layouts: Layouts, faster):
    """(index in TERMS, seconds): what no longer hides behind the arithmetic of the first layout when that is so many times
    faster; by the largest FACTOR where no factor is enough."""
    winner = Layouts(*(column[0] for column in layouts))
    before, factor = terms(case, winner), np.minimum(faster, FACTORS[-1])
    after = terms(case._replace(chip=scaled_chip(case.chip, factor, 1.0)), winner)
    more_s = np.stack([getattr(after, name) - getattr(before, name) for name in TERMS])
    return np.argmax(more_s), np.max(more_s)


def run(case: Case, layouts: Layouts, tokens, fp8) -> Run:
    """The first layout as the settings of other programs need it; whole numbers throughout, ones where there is none."""
    a = Layouts(*(np.where(column[0] >= 0, column[0], 1.0) for column in layouts))
    return Run(case.model, a.tp, a.pp, a.cp, a.dp, a.ep, a.expert_tp, a.zero, a.micro_batch, a.recompute, a.schedule,
               a.chunks, SCHEDULE_KEYS, case.global_batch, case.seq, tokens, fp8)


def run_time_s(tokens, tokens_per_s):
    """How long a run over so many tokens takes, without interruptions."""
    return tokens / tokens_per_s


def gpu_hours(run_s, gpus):
    """What is paid for."""
    return run_s * gpus / HOUR


def crosses(case: Case, layouts: Layouts) -> list:
    """How the winner's pipeline, data, context and tensor groups send: 0 inside a node, 1 across nodes, 2 not at all. Tensor
    ranks stand innermost, so a group reaches as far as the axes inside it and its own make."""
    a, per_node = layouts, case.wires.gpus_per_node
    groups = [(a.pp, a.tp * a.cp * a.dp * a.pp), (a.dp, a.tp * a.cp * a.dp), (a.cp, a.tp * a.cp), (a.tp, a.tp)]
    return [np.where(size[0] > 1, np.where(reach[0] > per_node, 1.0, 0.0), 2.0) for size, reach in groups]


def binding(found: Outcome):
    """Index of the winner's longest term; MEMORY where nothing fits, one more where nothing is legal."""
    return np.where(found.found.legal < 1, MEMORY + 1.0, np.where(found.found.fitting < 1, float(MEMORY),
                                                                 np.argmax(found.times_s[0])))


def binding_share(found: Outcome):
    """What the longest term takes of the step."""
    return np.max(found.times_s[0]) / found.step_s[0]


def waiting_share(found: Outcome):
    """What is neither arithmetic nor the optimizer of the winner's step; 0 where nothing is legal."""
    busy_s = found.times_s[0][TERMS.index("compute_s")] + found.times_s[0][TERMS.index("optimizer_s")]
    return np.where(found.found.legal < 1, 0.0, 1.0 - busy_s / found.step_s[0])


def lost_to_memory(found: Outcome):
    """How much shorter the best step would be if everything fitted, as a share; 0 where nothing is legal."""
    return np.where(found.found.legal < 1, 0.0, 1.0 - found.found.free_s / found.step_s[0])


def headroom(case: Case, found: Outcome):
    """What the winner leaves of its fullest GPU's memory."""
    return case.hbm_bytes - found.total_bytes[0]


def any_before(needs, place: int):
    """Whether one of the entries before this place is not NEVER."""
    return np.any(needs[:place] < NEVER) if place else 0.0 > 1.0


def chunks_of(schedule):
    """Chunks of layers a stage, by the index into SCHEDULE_KEYS."""
    return _entry(CHUNKS, schedule)
