"""The planner's search on a page: the splits are listed in a program, and every layout of each is evaluated
in a sweep, so that a page without Python searches the same space with the same ``step``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base.program import program
from engine.base.sweep import sweep
from engine.base.types import Real
from engine.mechanism.shape import shape
from engine.step import cloud, search, splits
from engine.step.cases import CHUNKS, COEFFICIENTS, IS_1F1B, RECOMPUTES, SCHEDULE_KEYS, Case, Layouts, ideal_s
from engine.step.constraints import UNLIMITED, Ability, is_run, is_within, may_run
from engine.step.search import MICRO_BATCHES, ZERO_STAGES, Schedules
from engine.step.step import Axes, step

if TYPE_CHECKING:
    from engine.base.sweep import Grouped


TOP = 5  # layouts shown: the winner and the best of the other splits
MOST_SPLITS = (
    12_288  # splits that a page has room for: 24,576 GPUs, 384 experts and sequences of 131,072 have 11,908
)


class Cloud(NamedTuple):
    """All layouts of a search by their places in the cloud, and the splits that these layouts have."""

    places: Grouped  # the fastest layout of each place, and how many there are
    splits: dict[str, Real]  # a column for each field of a split; a layout's ``row`` is a place in them
    ideal_s: Real  # the step that the arithmetic alone would take


@program(
    tp=MOST_SPLITS, pp=MOST_SPLITS, cp=MOST_SPLITS, ep=MOST_SPLITS, expert_tp=MOST_SPLITS, dp=MOST_SPLITS
)
def legal_splits(
    gpus: float, global_batch: float, seq: float, heads: float, layers: float, experts: float
) -> dict[str, Any]:
    """``search.splits``, up to the capacity of the lists."""
    return splits.legal_splits(gpus, global_batch, seq, [heads], layers, experts, MOST_SPLITS)


@program(split=TOP, cell=TOP, legal=(), fitting=(), free_s=())
def ranked(
    tp: list[Real],
    fitting_s: list[Real],
    fitting_cell: list[Real],
    fitting: list[Real],
    bytes_: list[Real],
    bytes_cell: list[Real],
    legal: list[Real],
    free_s: list[Real],
) -> dict[str, Any]:
    """The best splits, and the cell of the best layout of each: the fastest that fits, or the one with the
    smallest memory where none fits."""
    splits, cells = [], []
    fitting_count, legal_count, fastest = 0, 0, math.nan
    splits_of_job = 0
    while splits_of_job < len(tp) and not math.isnan(tp[splits_of_job]):
        fitting_count += fitting[splits_of_job]
        legal_count += legal[splits_of_job]
        if math.isnan(fastest) or free_s[splits_of_job] < fastest:
            fastest = free_s[splits_of_job]
        splits_of_job += 1
    taken = [0 for i in range(splits_of_job)]
    for _place in range(TOP):
        best, least = -1, math.inf
        for i in range(splits_of_job):
            cost = fitting_s[i] if fitting_count else bytes_[i]
            if not taken[i] and cost < least:
                best, least = i, cost
        if best < 0:
            break
        taken[best] = 1
        splits.append(best)
        cells.append(fitting_cell[best] if fitting_count else bytes_cell[best])
    return {"split": splits, "cell": cells, "legal": legal_count, "fitting": fitting_count, "free_s": fastest}


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
def laid_out(
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
    """The layouts at some places of two columns, which hold the number of a split and the cell of one of its
    layouts. The list ends at the first place that holds no layout."""
    tps, pps, cps, eps, expert_tps, dps = [], [], [], [], [], []
    zeros_, micro_batches, recomputes, schedules, chunks = [], [], [], [], []
    for i in range(len(places)):
        if math.isnan(places[i]) or math.isnan(row[int(places[i])]):
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


def layouts_of(splits: dict[str, Real], row: Real, cell: Real, places: Real) -> Layouts:
    """``laid_out`` with the columns of all splits: the layouts at some places of ``row`` and ``cell``."""
    a = laid_out(places, row, cell, *splits.values())
    return Layouts(*(a[name][: len(places)] for name in Layouts._fields))


def layouts_at(seen: Cloud, places: Real) -> Layouts:
    """The fastest layouts at some places of a cloud."""
    return layouts_of(seen.splits, seen.places.row, seen.places.cell, places)


def every_layout(case: Case, in_cloud: bool = False) -> tuple[dict[str, Real], dict[str, Any]]:
    """For each legal split the fastest layout that fits, the one with the smallest memory, and the fastest of
    all: (splits, contests). If asked, also the fastest at each place of the cloud."""
    splits = legal_splits(
        case.gpus, case.global_batch, case.seq, case.model.heads, case.model.depth, case.model.experts
    )
    free = {} if in_cloud else {f"only_{name}": 0.0 * splits["tp"] - 1.0 for name in FIXABLE}
    found = _of_program(case, splits | free, in_cloud, 0)
    for place in range(1, len(case.jobs)):
        own, is_counted = _of_program(case, splits | free, in_cloud, place), case.program == float(place)
        found = {
            name: type(other)(*(np.where(is_counted, *pair) for pair in zip(own[name], other, strict=True)))
            for name, other in found.items()
        }
    return splits, found


def _of_program(case: Case, rows: dict, in_cloud: bool, place: int) -> dict[str, Any]:
    """The contests with the program at a place, or without a single row where another one is counted."""
    if len(case.jobs) == 1:
        return contests(case, rows, in_cloud)
    empty = rows["tp"][MOST_SPLITS - 1]  # where a column ends, since no search has as many splits
    first = {"tp": np.where(case.program == float(place), rows["tp"], empty)}
    return contests(case._replace(jobs=case.jobs[place : place + 1], program=0.0), rows | first, in_cloud)


FIXABLE = {"micro_batch": MICRO_BATCHES, "recompute": RECOMPUTES, "zero": ZERO_STAGES}


def dimensions(able: tuple[Ability, ...]) -> list[dict]:
    """The dimensions of a sweep; that of the schedules also says whether each of ``able`` has one."""
    has = {f"{each.key}_runs": tuple(float(key in each.schedules) for key in SCHEDULE_KEYS) for each in able}
    schedules = {**COEFFICIENTS, "chunks": CHUNKS, "is_1f1b": IS_1F1B, **has}
    return [*({name: values} for name, values in FIXABLE.items()), schedules]


def contests(case: Case, rows: dict, in_cloud: bool = False) -> dict[str, Any]:
    """``every_layout`` for given rows of splits. Each split is tried with every value of FIXABLE, or with the
    one value that its column ``only_micro_batch``, ``only_recompute`` or ``only_zero`` names (a value below
    zero means all). A page runs the same loops for both."""
    arithmetic_s, (job,) = ideal_s(case) if in_cloud else 0.0, case.jobs

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
        terms = step(shape(case.model), job, case.recipe, case.chip, case.wires, a)
        fits, allowed, takes_part = terms.total_bytes <= case.hbm_bytes, a.tp > 0.0, []
        runs = [point[f"{able.key}_runs"] for able in case.within.able]
        if case.within is not UNLIMITED:
            allowed = is_within(case.within, case.model, a, runs)
            takes_part = [may_run(case.within.framework, runs), allowed]
        found: dict[str, Any] = {
            "fastest": (terms.step_s, fits & allowed),
            "leanest": (terms.total_bytes, allowed),
            "free": (terms.step_s, allowed),
        }
        if in_cloud:
            at = cloud.place(terms.total_bytes, case.hbm_bytes, terms.step_s, arithmetic_s)
            found["cloud"] = terms.step_s, allowed, at, cloud.PLACES
            anyhow = is_run(case.within.of_any, case.model, a, runs)
            found["unlimited"] = terms.step_s, fits & anyhow
            takes_part[1:] = [part | anyhow for part in takes_part[1:]]
        only = [
            (point[f"only_{name}"] < 0.0) | (point[name] == point[f"only_{name}"])
            for name in FIXABLE
            if f"only_{name}" in point
        ]
        return (*search.legal(a, case.model.depth, point["is_1f1b"]), *takes_part, *only), found

    return sweep(rows, dimensions(case.within.able), measure)
