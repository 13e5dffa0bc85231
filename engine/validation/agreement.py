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

MOST = 1152  # capacity of the picture, in rows
LABELS, TICKS = 3, 7  # how many of the worst groups the picture names, and the most ticks on its scale
NAMED_APART = 0.06  # minimum distance of labels, as a share of the picture's height
REACH = (0.15, 2.5)  # ratios, ours to published, that the picture covers


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
    check.positive(rows=len(found), room_left=MOST - len(found))
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
@cache
def _scale(sort: str) -> tuple[float, float]:
    """The powers of ten at the ends of a sort's scale: a little beyond its smallest and largest published
    value."""
    logs = np.log10([row.measured for row in rows() if is_among(row, sort)])
    room = max(0.05 * np.ptp(logs), 0.15)
    return float(logs.min() - room), float(logs.max() + room)


def _tick_values(low: float, high: float) -> list[float]:
    """Round values between two powers of ten: 1, 2, 5 and 10 if there is room, else only powers of ten, or
    some of them."""
    fine = [m * 10.0**power for power in range(math.floor(low), math.ceil(high)) for m in (1, 2, 5)]
    coarse = [10.0**power for power in range(math.floor(low), math.ceil(high) + 1)]
    for values in (fine, coarse, coarse[::2], coarse[::3], coarse[::5]):
        found = [value for value in values if low <= math.log10(value) <= high]
        if len(found) <= TICKS:
            return found
    raise ValueError(f"low and high must span at most {5 * TICKS} powers of ten, got {low:g} and {high:g}")


def _ticks(sort: str) -> tuple[list[float], list[str]]:
    """Positions from 0 to 1 and their labels, padded with the last one."""
    low, high = _scale(sort)
    values = _tick_values(low, high)
    values += values[-1:] * (TICKS - len(values))
    words = [_in_words(value, SORTS[sort].family) for value in values]
    return [(math.log10(value) - low) / (high - low) for value in values], words


def _named(sort: str, groups: str) -> list[int]:
    """The worst row of each of the worst groups, by index into ``rows``, unless its label would overlap
    another's."""
    span, found, known = math.log(REACH[1] / REACH[0]), [], set()
    for i, row in enumerate(rows()):
        if len(found) == LABELS or row.group in known or row.fitted or not is_among(row, sort, groups):
            continue
        known.add(row.group)
        if all(abs(math.log(_ratio(row) / _ratio(rows()[j]))) > NAMED_APART * span for j in found):
            found.append(i)
    return found + [-1] * (LABELS - len(found))


def _at(row: Row, sort: str) -> float:
    """The position of a row's published value on the scale of a sort."""
    low, high = _scale(sort)
    return (math.log10(row.measured) - low) / (high - low)


def _ratio(row: Row) -> float:
    return row.predicted / row.measured


@cache
def columns() -> SimpleNamespace:
    """The rows as columns of numbers, with their words."""
    ends = np.array([_scale(sort) for sort in SORTS])
    return SimpleNamespace(
        published=np.array([row.measured for row in rows()]),
        ratio=np.array([_ratio(row) for row in rows()]),
        error=np.array([abs(row.error) for row in rows()]),
        sort=np.array([float(KEYS.index(sort_of(row))) for row in rows()]),
        foreign=np.array([float(row.group not in fitting_groups()) for row in rows()]),
        fitted=np.array([float(row.fitted) for row in rows()]),
        told=[told(row) for row in rows()],
        low=ends[:, 0],
        high=ends[:, 1],
    )


@cache
def figures() -> SimpleNamespace:
    """The figures that do not depend on the allowed error, for each sort and choice of groups, in the order
    of ``place``."""
    places = [(sort, groups) for sort in SORTS for groups in GROUPS]
    named = np.array([_named(*place) for place in places])
    worst = [among(*place)[:1] for place in places]
    return SimpleNamespace(
        count=np.array([float(len(among(*place))) for place in places]),
        mean=np.array([mean_error(*place) for place in places]),
        half=np.array([half_within(*place) for place in places]),
        lean=np.array([lean(*place) for place in places]),
        fitted=np.array([float(len(among(*place, fitted=True))) for place in places]),
        fitted_mean=np.array([mean_error(*place, fitted=True) for place in places]),
        worst=[label(found[0]) if found else "none" for found in worst],
        labels=[[label(rows()[i]) if i >= 0 else "" for i in line] for line in named.T],
        short=[[signed(rows()[i].error) if i >= 0 else "" for i in line] for line in named.T],
        label_x=np.array([[_at(rows()[i], sort) for i in line] for (sort, _), line in zip(places, named)]),
        label_y=np.array([[_ratio(rows()[i]) for i in line] for line in named]),
        ticks=np.array([_ticks(sort)[0] for sort in SORTS]).ravel(),
        tick_words=[word for sort in SORTS for word in _ticks(sort)[1]],
        tick_short=[word if i % 2 == 0 else "" for sort in SORTS for i, word in enumerate(_ticks(sort)[1])],
    )


def tick_rows(sort: Real) -> Real:
    """The indices of a sort's ticks among those of all sorts."""
    return sort * TICKS + np.arange(float(TICKS))


def place(sort: Real, groups: Real) -> Real:
    """The index of a sort and a choice of groups in ``figures``."""
    return sort * len(GROUPS) + groups


def band(most: Real) -> tuple[Real, Real]:
    """(lowest, highest) ratio within this error; the lowest is not below the picture's range."""
    return np.maximum(1.0 - most, REACH[0]), 1.0 + most


@program(x=MOST, y=MOST, published=MOST, ours=MOST, error=MOST, kind=MOST, row=MOST, within=())
def seen(
    sort: float,
    groups: float,
    most: float,
    published: list[float],
    ratio: list[float],
    errors: list[float],
    sorts: list[float],
    foreign: list[float],
    fitted: list[float],
    low: list[float],
    high: list[float],
) -> dict[str, Any]:
    """The rows of a sort and of the requested groups. ``x``: position of the published value on the sort's
    logarithmic scale; ``kind``: 0 within the allowed error, 1 outside, 2 and 3 the same for rows that a
    constant was fitted to; ``within``: how many are within it and were not used for fitting."""
    xs = []
    ys = []
    values = []
    predicted = []
    off_by = []
    kinds = []
    places = []
    within = 0
    counted = len(low) - 1
    for i in range(len(ratio)):
        ours = sorts[i] == sort or (sort == 0 and sorts[i] != counted)
        if ours and (groups == 0 or foreign[i] == 2 - groups):
            outside = 1 if errors[i] > most else 0
            start = low[int(sort)]
            xs.append((math.log(published[i]) / math.log(10.0) - start) / (high[int(sort)] - start))
            ys.append(ratio[i])
            values.append(published[i])
            predicted.append(published[i] * ratio[i])
            off_by.append(errors[i])
            kinds.append(outside + 2 * fitted[i])
            places.append(i)
            if outside == 0 and fitted[i] == 0:
                within = within + 1
    return {
        "x": xs,
        "y": ys,
        "published": values,
        "ours": predicted,
        "error": off_by,
        "kind": kinds,
        "row": places,
        "within": within,
    }
