"""The lowest cost over every combination of some values: one form of search, for Python and for a page.

``sweep(rows, dimensions, measure)`` calls ``measure`` with one combination (column name -> value) of a row
and of one entry of each dimension. ``measure`` returns the conditions under which the combination counts, and
its contests: name -> (cost, whether the combination takes part). For each row and contest the result is the
lowest cost, the index of the combination that has it (the last dimension runs fastest; the first wins a tie)
and how many took part. A contest can also be held in groups that cut across the rows, such as the cells of a
histogram: name -> (cost, takes part, index of its group, number of groups). Its result is the same for each
group, with the row that has the lowest cost.

In Python, ``measure`` is called once with arrays that hold all combinations of some rows. Where a row's value
is a symbol (it has ``__run_sweep__``), ``measure`` is called once with symbols and written out as nested
loops, with each value computed in the outermost loop that knows its inputs: widgets/kit/compiler/sweeps.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from engine.base.types import Real

AT_ONCE = 200_000  # combinations in one call: more would not fit the processor's caches


class Least(NamedTuple):
    """The result of one contest, row by row; NaN where no combination took part."""

    cost: Real
    cell: Real
    count: Real


class Grouped(NamedTuple):
    """The result of a contest in groups, group by group; NaN where no combination took part."""

    cost: Real
    row: Real
    cell: Real
    count: Real


def sweep(rows: dict, dimensions: list[dict], measure: Callable[..., Any]) -> dict[str, Any]:
    """The lowest cost of each contest, row by row or group by group. Columns of ``rows`` end at their first
    NaN."""
    for column in rows.values():
        if hasattr(type(column), "__run_sweep__"):
            return column.__run_sweep__(rows, dimensions, measure)
    columns = {name: np.asarray(column, dtype=float) for name, column in rows.items()}
    length = len(next(iter(columns.values())))
    cells = int(np.prod([_size(dimension) for dimension in dimensions]))
    step, found = max(1, AT_ONCE // cells), []
    count = int(np.count_nonzero(~np.isnan(next(iter(columns.values())))))
    if not count:
        return _without_rows(columns, length, dimensions, measure)
    for start in range(0, count, step):
        some = {name: column[start : min(count, start + step)] for name, column in columns.items()}
        found.append(_block(some, start, dimensions, measure))
    return {contest: _joined([block[contest] for block in found], length) for contest in found[0]}


def _joined(blocks: list, length: int) -> Any:
    """The result of a contest, joined from its results in the blocks."""
    if isinstance(blocks[0], Grouped):
        best = blocks[0]
        for block in blocks[1:]:
            best = better(best, block)
        return best
    padding = np.full((3, length - sum(len(block[0]) for block in blocks)), np.nan)
    return Least(*np.concatenate([*blocks, padding], axis=1))


def _without_rows(rows: dict, length: int, dimensions: list[dict], measure) -> dict[str, Any]:
    """The results if there are no rows. ``measure`` is called with a row of NaN, only to learn the names of
    the contests."""
    with np.errstate(invalid="ignore"):
        named = _block({name: column[:1] for name, column in rows.items()}, 0, dimensions, measure)
    return {
        contest: no_group(len(result.cost))
        if isinstance(result, Grouped)
        else Least(*np.full((3, length), np.nan))
        for contest, result in named.items()
    }


def no_group(groups: int) -> Grouped:
    """The result of a contest in groups in which nothing took part."""
    cost, row, cell = np.full((3, groups), np.nan)
    return Grouped(cost, row, cell, np.zeros(groups))


def better(one: Grouped, other: Grouped) -> Grouped:
    """Two results of a contest in groups, joined into one; the first row and combination wins a tie."""
    earlier = (other.row < one.row) | ((other.row == one.row) & (other.cell < one.cell))
    other_wins = (other.cost < one.cost) | ((other.cost == one.cost) & earlier) | np.isnan(one.cost)
    cost, row, cell = (np.where(other_wins, theirs, ours) for ours, theirs in zip(one[:3], other[:3]))
    return Grouped(cost, row, cell, one.count + other.count)


def in_groups(cost: Real, rows: Real, cells: Real, group: Real, groups: int) -> Grouped:
    """The result of a contest in groups among some combinations; the first row and combination wins a tie."""
    found, group = no_group(groups), group.astype(int)
    least = np.full(groups, np.inf)
    np.minimum.at(least, group, cost)
    best = np.flatnonzero(cost == least[group])
    best = best[np.lexsort((cells[best], rows[best]))[::-1]]  # of several assignments the last one counts
    for column, values in zip(found[:3], (cost, rows, cells)):
        column[group[best]] = values[best]
    found.count[:] = np.bincount(group, minlength=groups)
    return found


def _size(dimension: dict) -> int:
    return len(next(iter(dimension.values())))


def _block(rows: dict, start: int, dimensions: list[dict], measure) -> dict[str, Any]:
    whole = (_size(rows), *(_size(dimension) for dimension in dimensions))
    flat = whole[0], int(np.prod(whole[1:]))
    point = {}
    for axis, dimension in enumerate((rows, *dimensions)):
        along = [-1 if i == axis else 1 for i in range(len(whole))]
        point |= {name: np.asarray(values, dtype=float).reshape(along) for name, values in dimension.items()}
    conditions, contests = measure(point)
    counts, found = np.ones(whole, dtype=bool), {}
    for condition in conditions:
        counts = counts & condition
    for name, (cost, takes_part, *grouping) in contests.items():
        there = np.broadcast_to(counts & takes_part, whole).reshape(flat)
        costs = np.broadcast_to(cost, whole).reshape(flat)
        if grouping:
            row, cell = np.nonzero(there)
            group = np.broadcast_to(grouping[0], whole).reshape(flat)[there]
            found[name] = in_groups(costs[there], row + start, cell, group, grouping[1])
            continue
        costs = np.where(there, costs, np.inf)
        cells = costs.argmin(axis=1)
        least = costs[np.arange(whole[0]), cells]
        some = least < np.inf
        found[name] = np.stack(
            [np.where(some, least, np.nan), np.where(some, cells, np.nan), there.sum(axis=1)]
        )
    return found
