"""The graph of what a widget's methods compute: each step once, in an order in which it can be computed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Node:
    """One step: an operation on earlier nodes, and the shape of its result. ``sort`` is "truth" for truth
    values, "whole" where numpy uses integers, and "" for floats."""

    op: str
    args: tuple[int, ...] = ()
    data: Any = None  # specific to each operation
    shape: tuple[int, ...] = ()
    sort: str = ""


@dataclass
class Graph:
    """Every step once: two equal steps are the same node."""

    nodes: list[Node] = field(default_factory=list)
    known: dict = field(default_factory=dict)
    tables: list[np.ndarray] = field(default_factory=list)  # concatenated in one file beside the module
    results: dict = field(default_factory=dict)  # the results of a widget's methods, by name

    def add(
        self, op: str, args: Iterable[int] = (), data: Any = None, shape: tuple[int, ...] = (), sort: str = ""
    ) -> int:
        """The number of a step, which is new unless an equal step already exists."""
        fingerprint = data.tobytes() if isinstance(data, np.ndarray) else data
        if isinstance(data, float):
            fingerprint = np.float64(data).tobytes()  # 0.0 and −0.0 are two numbers
        key = (op, tuple(args), fingerprint, shape, sort)
        if key not in self.known:
            self.known[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(args), data, shape, sort))
        return self.known[key]

    def due(
        self, step: int, known: Collection[int], reads: Callable[[int], Iterable[int]] | None = None
    ) -> Iterator[int]:
        """A step and all steps that it needs, each after the steps that it reads, without those that are
        known. The caller must make each step known before it asks for the next. Chains of steps may be longer
        than Python's recursion limit, so there is no recursion here."""
        waiting = [step]
        while waiting:
            step = waiting[-1]
            args = self.nodes[step].args if reads is None else reads(step)
            if step in known:
                waiting.pop()
            elif unknown := [a for a in args if a not in known]:
                waiting += reversed(unknown)
            else:
                yield waiting.pop()

    def start_of_table(self, values: np.ndarray) -> int:
        """Where a table begins in the file of all tables; equal tables are stored once."""
        start = 0
        for kept in self.tables:
            if kept.shape == values.shape and np.array_equal(kept, values, equal_nan=True):
                return start
            start += kept.size
        self.tables.append(values)
        return start


class Contest(NamedTuple):
    """A contest of a sweep, held in each row, or in each of so many ``groups``. The steps are its cost,
    whether a combination takes part, and the index of its group, if it has groups."""

    name: str
    steps: tuple[int, ...]
    groups: int = 0


class Sweep(NamedTuple):
    """The data of a node that is an ``engine.base.sweep``. Steps of the graph are given by number, so that
    equal sweeps are one node."""

    length: int  # the most rows
    rows: tuple[tuple[str, int], ...]  # (column, step)
    dimensions: tuple[tuple[tuple[str, tuple[float, ...]], ...], ...]  # of each: (column, values)
    conditions: tuple[int, ...]
    contests: tuple[Contest, ...]

    def sizes(self) -> list[int]:
        """The number of entries in each dimension."""
        return [len(dimension[0][1]) for dimension in self.dimensions]
