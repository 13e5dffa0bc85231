"""The least of some costs over every combination of some values: how a search runs here and on a page alike.

``sweep(rows, dimensions, measure)`` calls ``measure`` with one combination (column name -> value) of a row and of one
entry of each dimension. It gives the conditions under which the combination counts, and contests: name -> (cost,
whether it takes part). For each row and contest the answer is the least cost, the cell where it is (an index into the
dimensions' combinations, the last running fastest; the first of equal ones) and how many took part.

Here all combinations of some rows are one call of ``measure`` on arrays. Where a row's value only stands for a number
(it has ``__run_sweep__``), ``measure`` is called once with such values and written out as nested loops, in which
everything is computed in the outermost loop that knows what it needs: widgets/kit/sweep.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

AT_ONCE = 200_000       # combinations measured in one call: more would not stay near the processor's caches


class Least(NamedTuple):
    """What one contest found: for each row; NaN where none took part."""

    cost: object
    cell: object
    count: object


def sweep(rows: dict, dimensions: list[dict], measure) -> dict[str, Least]:
    """The least of each contest, row by row. Columns of ``rows`` end at their first NaN."""
    for column in rows.values():
        if hasattr(type(column), "__run_sweep__"):
            return column.__run_sweep__(rows, dimensions, measure)
    columns = {name: np.asarray(column, dtype=float) for name, column in rows.items()}
    length = len(next(iter(columns.values())))
    cells = int(np.prod([_size(dimension) for dimension in dimensions]))
    step, found = max(1, AT_ONCE // cells), []
    count = int(np.count_nonzero(~np.isnan(next(iter(columns.values())))))
    if not count:
        return {contest: Least(*np.full((3, length), np.nan)) for contest in _contests(columns, dimensions, measure)}
    for start in range(0, count, step):
        some = {name: column[start:min(count, start + step)] for name, column in columns.items()}
        found.append(_block(some, dimensions, measure))
    padding = np.full((3, length - count), np.nan)
    return {contest: Least(*np.concatenate([*(block[contest] for block in found), padding], axis=1))
            for contest in found[0]}


def _contests(rows: dict, dimensions: list[dict], measure) -> list[str]:
    """Their names, where there is no row to ask about: of one that is not known."""
    with np.errstate(invalid="ignore"):
        return list(_block({name: column[:1] for name, column in rows.items()}, dimensions, measure))


def _size(dimension: dict) -> int:
    return len(next(iter(dimension.values())))


def _block(rows: dict, dimensions: list[dict], measure) -> dict:
    whole = (_size(rows), *(_size(dimension) for dimension in dimensions))
    point = {}
    for axis, dimension in enumerate((rows, *dimensions)):
        along = [-1 if i == axis else 1 for i in range(len(whole))]
        point |= {name: np.asarray(values, dtype=float).reshape(along) for name, values in dimension.items()}
    conditions, contests = measure(point)
    counts, found = np.ones(whole, dtype=bool), {}
    for condition in conditions:
        counts = counts & condition
    for name, (cost, takes_part) in contests.items():
        there = (counts & takes_part).reshape(whole[0], -1)
        costs = np.where(there, np.broadcast_to(cost, whole).reshape(whole[0], -1), np.inf)
        cells = costs.argmin(axis=1)
        least = costs[np.arange(whole[0]), cells]
        some = least < np.inf
        found[name] = np.stack([np.where(some, least, np.nan), np.where(some, cells, np.nan), there.sum(axis=1)])
    return found
