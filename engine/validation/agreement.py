"""The engine's error for each published number: the rows of ``validation``, sorted by what they measure.

A row is *measured* if hardware was timed or its memory read, and *counted* if the published number is itself
arithmetic. Agreement on counted rows shows that the engine counts as others do, and nothing about speed.
Three rows say yes or no ("does it fit"); they have no ratio and are left out here.

Rows that a constant was fitted to are kept separate. Among the others, the harder test
are rows from groups in which no row was fitted, so that not even similar rows helped to set the constants.
"""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from engine import validation
from engine.base import check, units
from engine.base.program import program
from engine.base.types import Real
from engine.validation import Row

MOST = 512  # capacity of the picture, in rows
LANES = 24  # the most groups of one sort, each of which has a lane of its own on the picture
WIDEST = 0.25  # of the picture's height: a lane where there are few
REACH = (0.3, 1.95)  # ratios, ours to published, that the picture covers
STACKED, LANE_SHARE = (
    0.013,
    0.36,
)  # of the reach: marks that are closer are stacked; of a lane: half its marks' height


class Sort(NamedTuple):
    """What rows measure: a name, how its values are written, and whether hardware was measured."""

    name: str
    family: str
    unit: str
    measured: bool


SORTS = {
    "measured": Sort("everything measured", "real", "in s, B, FLOP/s or tokens/s", True),
    "steps": Sort("training step times", "seconds", "", True),
    "memory": Sort("training memory", "bytes", "", True),
    "collectives": Sort("collectives", "seconds", "", True),
    "latency": Sort("serving latencies", "seconds", "", True),
    "throughput": Sort("serving throughputs", "count", "in tokens/s", True),
    "passes": Sort("passes, eager and from a graph", "seconds", "", True),
    "rates": Sort("attention and FLOP rates", "flops_per_s", "", True),
    "streams": Sort("streaming kernels, linear attention", "seconds", "", True),
    "counted": Sort("what is counted, not measured", "real", "in s, B, FLOP or parameters", False),
}
KEYS = list(SORTS)
GROUPS = ("all", "foreign", "fitting")  # every group; groups without fitted rows; groups with some
STEP = {"step_s": "steps", "total_bytes": "memory", "model_flops_per_gpu_per_s": "rates"}
KINDS = {
    "collective": "collectives",
    "attention": "rates",
    "stream": "streams",
    "token": "passes",
    "mixer": "streams",
}
WRITTEN = {"parameters": "params", "active_parameters": "params", "flops": "flops", "wasted": "percent"}
PER_S = {"tokens_per_s": " tokens/s", "tokens_per_s_per_gpu": " tokens/s for each GPU", "days": " days"}

LEFT_OPEN = ("not in the table", "not printed", "not stated")  # in a row's note
QUANTITIES = {
    "step_s": "step time",
    "total_bytes": "memory",
    "fits": "does it fit?",
    "time_s": "time",
    "bytes": "bytes",
    "model_flops_per_gpu_per_s": "FLOP/s of a GPU",
    "all": "latency",
    "interval_s": "checkpoint interval",
    "wasted": "share lost",
    "tokens_per_s": "tokens/s",
    "tokens_per_s_per_gpu": "tokens/s of a GPU",
    "flops_per_s": "FLOP/s",
    "flops": "FLOPs",
    "active_parameters": "active parameters",
}


# -- rows ----------------------------------------------------------------------------------------------------
def sort_of(row: Row) -> str:
    """The key of the sort that a row belongs to; "" for yes or no."""
    if isinstance(row.measured, bool):
        return ""
    if row.kind == "step":
        return STEP[row.quantity]
    if row.kind == "serving":
        return "throughput" if row.quantity.startswith("tokens_per_s") else "latency"
    return "throughput" if row.kind == "wide" else KINDS.get(row.kind, "counted")


@cache
def rows() -> tuple[Row, ...]:
    """Every row with a ratio, worst first."""
    found = tuple(row for row in validation.validate().compared if sort_of(row))
    check.positive(rows=len(found))
    return found


@cache
def fitting_groups() -> frozenset[str]:
    """The groups with at least one row that a constant was fitted to."""
    return frozenset(row.group for row in rows() if row.fitted)


def is_among(row: Row, sort: str, groups: str = "all") -> bool:
    """Whether a row belongs to a sort, or to all measured ones, and to the requested groups."""
    kept = SORTS[sort_of(row)].measured if sort == "measured" else sort_of(row) == sort
    return kept and (groups == "all" or (row.group in fitting_groups()) == (groups == "fitting"))


@cache
def among(sort: str = "measured", groups: str = "all", fitted: bool = False) -> tuple[Row, ...]:
    """The rows of a sort that were not used for fitting, or those that were; worst first."""
    check.one_of(SORTS, sort=sort)
    check.one_of(GROUPS, groups=groups)
    return tuple(row for row in rows() if is_among(row, sort, groups) and row.fitted == fitted)


def count(sort: str = "", groups: str = "all", fitted: bool = False) -> int:
    """The number of such rows; without a sort, of all rows."""
    return len(among(sort, groups, fitted) if sort else rows())


def errors(sort: str = "measured", groups: str = "all", fitted: bool = False) -> np.ndarray:
    """The relative errors, with sign, of the rows that ``among`` selects."""
    return np.array([row.error for row in among(sort, groups, fitted)])


def _or_zero(reduce, values) -> float:
    return float(reduce(values)) if len(values) else 0.0


def mean_error(sort: str = "measured", groups: str = "all", fitted: bool = False) -> float:
    """The mean absolute error; 0 where there are no rows."""
    return _or_zero(np.mean, np.abs(errors(sort, groups, fitted)))


def half_within(sort: str = "measured", groups: str = "all") -> float:
    """The median absolute error of the rows that were not used for fitting."""
    return _or_zero(np.median, np.abs(errors(sort, groups)))


def half_apart(sort: str = "measured", groups: str = "all") -> float:
    """The median absolute error after subtracting each group's mean, which is the error between two runs of
    one group; groups of one row are left out."""
    of_group: dict[tuple[str, str], list[float]] = {}
    for row in among(sort, groups):
        of_group.setdefault((row.group, row.quantity), []).append(_ratio(row))
    rests = [
        np.abs(np.asarray(ratios) / np.mean(ratios) - 1.0) for ratios in of_group.values() if len(ratios) > 1
    ]
    check.positive(groups=len(rests))
    return float(np.median(np.concatenate(rests)))


def filled_in(sort: str = "measured") -> int:
    """How many of the rows that were not used for fitting come from a source that left something open."""
    return sum(any(words in row.note for words in LEFT_OPEN) for row in among(sort))


def lean(sort: str = "measured", groups: str = "all") -> float:
    """The mean error with sign: below 0 where the engine's numbers are too small overall."""
    return _or_zero(np.mean, errors(sort, groups))


def share_within(most: float, sort: str = "measured", groups: str = "all") -> float:
    """The share of the rows not used for fitting whose error is at most ``most``."""
    found = np.abs(errors(sort, groups))
    check.positive(rows=len(found))
    return np.sum(np.where(found <= most, 1.0, 0.0)) / len(found)


@cache
def summaries(*sorts: str) -> tuple[validation.Summary, ...]:
    """A line for each group of these sorts, worst first."""
    return validation.summaries([row for row in rows() if sort_of(row) in sorts])


# -- words ---------------------------------------------------------------------------------------------------
def written(row: Row, value: float) -> str:
    """A row's value with its unit."""
    if row.quantity in PER_S:
        return units.human(value, "count") + PER_S[row.quantity]
    ending = next(
        (
            family
            for end, family in (("_per_s", "flops_per_s"), ("_s", "seconds"), ("bytes", "bytes"))
            if row.quantity.endswith(end)
        ),
        "real",
    )
    return _in_words(value, WRITTEN.get(row.quantity, ending))


def _in_words(value: float, family: str) -> str:
    """The value with its unit; times of a second and more in seconds, so that two of them compare easily and
    ticks stay round."""
    return units.in_unit(value, "s") if family == "seconds" and value >= 1 else units.human(value, family)


def off(error: float) -> str:
    """An error in words: by how much ours is above or below the published number."""
    if abs(error) < 5e-5:
        return "the same"
    return f"{units.human(abs(error), 'percent', 2)} {'more' if error > 0 else 'less'}"


def quantity(summary: validation.Summary) -> str:
    """The name of the quantity in a line of the tables."""
    return QUANTITIES.get(summary.quantity, summary.quantity)


def span(group: str, quantity: str) -> str:
    """The range of errors of a group's quantity, in words."""
    found = [row.error for row in rows() if row.group == group and row.quantity == quantity]
    check.positive(rows=len(found))
    return f"{signed(min(found))} to {signed(max(found))}"


def told(row: Row) -> str:
    """A description of a row: the run, both numbers, their difference, and who published it."""
    fitted = "It fitted a constant." if row.fitted else "It fitted nothing."
    return (
        f"{row.group}: {row.case}\nPublished {written(row, row.measured)}, ours "
        f"{written(row, row.predicted)}: {off(row.error)}. {fitted}\nSource: {row.source.replace('; ', ', ')}"
    )


def signed(error: float) -> str:
    """An error with its sign: "+80 %"."""
    return ("+" if error > 0 else "") + units.human(error, "percent", 2)


def miss(key: str) -> str:
    """The error of one row of the tables, with its sign."""
    return signed(validation.row(key).error)


def group_error(group: str, case: str = "", ends: str = "") -> float:
    """The mean absolute error of a group's rows that were not used for fitting, where the case's name
    contains ``case`` and ends with ``ends``."""
    rows = [row for row in among("measured") if row.group == group]
    found = [abs(row.error) for row in rows if case in row.case and row.case.endswith(ends)]
    check.positive(rows=len(found))
    return float(np.mean(found))


def answers() -> tuple[Row, ...]:
    """The rows without a ratio: whether a job fits, yes or no."""
    return tuple(row for row in validation.validate().compared if row.quantity == "fits")


def label(row: Row) -> str:
    """A row's group and error."""
    return f"{row.group}, {signed(row.error)}"


# -- the picture ---------------------------------------------------------------------------------------------
def along(ratio: Real) -> Real:
    """The place of a ratio, ours to published, across the picture: from 0 to 1 on a logarithmic scale."""
    return np.log(ratio / REACH[0]) / math.log(REACH[1] / REACH[0])


@cache
def lanes(sort: str, groups: str = "all") -> tuple[str, ...]:
    """The groups of a sort, from the one that is met best to the one that is met worst."""
    of_group: dict[str, list[Row]] = {}
    for row in rows():
        if is_among(row, sort, groups):
            of_group.setdefault(row.group, []).append(row)

    def missed(group: str) -> float:
        some = [row for row in of_group[group] if not row.fitted] or of_group[group]
        return float(np.mean([abs(row.error) for row in some]))

    return tuple(sorted(of_group, key=missed))


def lane_height(count: int) -> float:
    """The height of each of so many lanes, as a share of the picture's."""
    return min(1.0 / count, WIDEST) if count else WIDEST


@cache
def _stacked() -> dict[Row, float]:
    """How far above or below the middle of its lane a row's mark stands, in heights of a lane: rows whose
    marks would cover each other are stacked."""
    piles: dict[tuple[str, str, int], list[Row]] = {}
    for row in sorted(rows(), key=_ratio):
        piles.setdefault((sort_of(row), row.group, round(along(_ratio(row)) / STACKED)), []).append(row)
    highest: dict[tuple[str, str], int] = {}
    for (sort, group, _), pile in piles.items():
        highest[sort, group] = max(highest.get((sort, group), 0), len(pile))
    found = {}
    for (sort, group, _), pile in piles.items():
        step = LANE_SHARE / max(3.0, (highest[sort, group] - 1) / 2)
        for i, row in enumerate(pile):
            found[row] = step * ((i + 1) // 2) * (1 if i % 2 else -1)
    return found


def _ratio(row: Row) -> float:
    return row.predicted / row.measured


@cache
def columns() -> SimpleNamespace:
    """The rows as columns of numbers, with their words."""
    return SimpleNamespace(
        published=np.array([row.measured for row in rows()]),
        ratio=np.array([_ratio(row) for row in rows()]),
        error=np.array([abs(row.error) for row in rows()]),
        sort=np.array([float(KEYS.index(sort_of(row))) for row in rows()]),
        lane=np.array([float(lanes(sort_of(row)).index(row.group)) for row in rows()]),
        apart=np.array([_stacked()[row] for row in rows()]),
        x=along(np.array([_ratio(row) for row in rows()])),
        fitted=np.array([float(row.fitted) for row in rows()]),
        told=[told(row) for row in rows()],
    )


@cache
def figures() -> SimpleNamespace:
    """The figures that do not depend on the allowed error, for each sort and choice of groups, in the order
    of ``place``."""
    places = [(sort, groups) for sort in SORTS for groups in GROUPS]
    worst = [among(*place)[:1] for place in places]
    in_lanes = [lanes(*place) if place[0] != "measured" else () for place in places]
    middles, slots, names, counts = [], [], [], []
    for (sort, groups), here in zip(places, in_lanes):
        every = lanes(sort) if here else ()
        check.between(0, LANES, lanes=len(every))
        check.between(0, MOST, rows=len(among(sort)) + len(among(sort, fitted=True)) if here else 0)
        empty = [-1.0] * (LANES - len(here))
        middles += [1.0 - (slot + 0.5) * lane_height(len(here)) for slot in range(len(here))] + empty
        slots += [float(here.index(group)) if group in here else -1.0 for group in every]
        slots += [-1.0] * (LANES - len(every))
        names += [*here, *[""] * len(empty)]
        tested = among(sort, groups)
        counts += [float(sum(row.group == group for row in tested)) for group in here] + empty
    return SimpleNamespace(
        count=np.array([float(len(among(*place))) for place in places]),
        mean=np.array([mean_error(*place) for place in places]),
        half=np.array([half_within(*place) for place in places]),
        lean=np.array([lean(*place) for place in places]),
        fitted=np.array([float(len(among(*place, fitted=True))) for place in places]),
        fitted_mean=np.array([mean_error(*place, fitted=True) for place in places]),
        worst=[label(found[0]) if found else "none" for found in worst],
        height=np.array([lane_height(len(here)) for here in in_lanes]),
        middle=np.array(middles),
        slot=np.array(slots),
        lane_name=names,
        lane_count=np.array(counts),
    )


def lane_rows(place: Real) -> Real:
    """The indices of a place's lanes among those of all places."""
    return place * LANES + np.arange(float(LANES))


def place(sort: Real, groups: Real) -> Real:
    """The index of a sort and a choice of groups in ``figures``."""
    return sort * len(GROUPS) + groups


def band(most: Real) -> tuple[Real, Real]:
    """(left, right) end of this error on the picture; the left one is not beyond its edge."""
    return along(np.maximum(1.0 - most, REACH[0])), along(np.minimum(1.0 + most, REACH[1]))


@program(
    x=MOST,
    y=MOST,
    apart=MOST,
    published=MOST,
    ours=MOST,
    error=MOST,
    kind=MOST,
    row=MOST,
    met=LANES,
    within=(),
)
def seen(
    sort: float,
    at: float,
    most: float,
    published: list[float],
    ratio: list[float],
    errors: list[float],
    sorts: list[float],
    lane: list[float],
    apart: list[float],
    along: list[float],
    fitted: list[float],
    slots: list[float],
    heights: list[float],
) -> dict[str, Any]:
    """The rows of a sort that are shown ``at`` a place. ``x`` and ``y``: where a row's mark stands on the
    picture, from 0 to 1; ``apart``: by how much that is above the middle of its lane; ``kind``: 0 within the
    allowed error, 1 outside, 2 and 3 the same for rows that a constant was fitted to; ``within``: how many
    are within it and were not used for fitting, and ``met``: how many of each lane."""
    xs = []
    ys = []
    above = []
    values = []
    predicted = []
    off_by = []
    kinds = []
    places = []
    met = []
    within = 0
    for _ in range(LANES):
        met.append(0)
    for i in range(len(ratio)):
        slot = slots[int(at) * LANES + int(lane[i])] if sorts[i] == sort else -1
        if slot >= 0:
            outside = 1 if errors[i] > most else 0
            xs.append(along[i])
            ys.append(1 - (slot + 0.5 - apart[i]) * heights[int(at)])
            above.append(apart[i] * heights[int(at)])
            values.append(published[i])
            predicted.append(published[i] * ratio[i])
            off_by.append(errors[i])
            kinds.append(outside + 2 * fitted[i])
            places.append(i)
            if outside == 0 and fitted[i] == 0:
                within = within + 1
                met[int(slot)] = met[int(slot)] + 1
    return {
        "x": xs,
        "y": ys,
        "apart": above,
        "published": values,
        "ours": predicted,
        "error": off_by,
        "kind": kinds,
        "row": places,
        "met": met,
        "within": within,
    }
