"""Ranks that really send: a collective executed on numpy buffers, with every transfer logged and no formula
involved.

A schedule (``ranks_schedules``) is a list of steps, and a step is a list of moves: who sends which cells to
whom. ``execute`` runs it: all moves of a step read before any of them writes, because real machines send at
the same time. Each cell records whose contributions it holds, so that a schedule which counts one twice, or
sends something a rank does not have, is refused. The numbers on screen, the bytes on each wire and the
alpha-beta time all come from the same run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ADD, PUT = "add", "put"  # whether the receiver adds a message to its own cells, or overwrites them


class Move(NamedTuple):
    """Cells [start, stop) of the source go to the cells of the destination from ``into`` on."""

    source: int
    destination: int
    start: int
    stop: int
    into: int
    how: str


class MoveStep(NamedTuple):
    """Moves that happen at the same time. A step may be empty, e.g. when a rank of a ring has nothing to
    send."""

    phase: str
    moves: Sequence[Move]


class Transfer(NamedTuple):
    """One line of the log."""

    step: int
    phase: str
    source: int
    destination: int
    start: int
    stop: int
    into: int
    how: str
    bytes: float


class RankCells(NamedTuple):
    """Every rank's cells, and which ranks' data each of them sums up (all False: an empty cell)."""

    values: np.ndarray  # [rank, cell]
    holds: np.ndarray  # [rank, cell, contributor]

    def copy(self) -> RankCells:
        """The same contents in new buffers."""
        return RankCells(self.values.copy(), self.holds.copy())


@dataclass(frozen=True, eq=False)
class ExecutedRun:
    """An executed collective. State 0 is before the first step, state k after k steps."""

    name: str
    before: RankCells
    steps: tuple[MoveStep, ...]
    pieces: tuple[tuple[int, int], ...]  # [start, stop) of each chunk
    outputs: tuple[tuple[int, int] | None, ...]  # the cells that are each rank's result; None for no result
    cell_bytes: float

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return len(self.before.values)

    @cached_property
    def states(self) -> tuple[RankCells, ...]:
        """Every rank's memory before the run and after each step."""
        states = [self.before]
        for step in self.steps:
            states.append(_after(states[-1], step))
        return tuple(states)

    @cached_property
    def results(self) -> tuple[np.ndarray | None, ...]:
        """Each rank's result; None for a rank that gets nothing."""
        values = self.states[-1].values
        return tuple(
            None if cells is None else values[rank, slice(*cells)] for rank, cells in enumerate(self.outputs)
        )

    @property
    def each_result(self) -> list[np.ndarray]:
        """[rank]: the results of a collective that gives every rank one."""
        found = [result for result in self.results if result is not None]
        if len(found) < self.ranks:
            raise ValueError(f"{self.name} must give every rank a result, got {len(found)} of {self.ranks}")
        return found

    @cached_property
    def values(self) -> np.ndarray:
        """[state, rank, cell]: the number in each cell."""
        return np.stack([state.values for state in self.states])

    @cached_property
    def holds(self) -> np.ndarray:
        """[state, rank, cell, contributor]: whose data a cell's sum contains."""
        return np.stack([state.holds for state in self.states])

    @cached_property
    def contributions(self) -> np.ndarray:
        """[state, rank, cell]: how many ranks' data a cell sums up; 0 where it is empty."""
        return self.holds.sum(axis=-1)

    @cached_property
    def log(self) -> tuple[Transfer, ...]:
        """Every message, in the order of the steps."""
        return tuple(
            Transfer(number, step.phase, *move, (move.stop - move.start) * self.cell_bytes)
            for number, step in enumerate(self.steps)
            for move in step.moves
        )

    def carried(self, transfer: Transfer) -> np.ndarray:
        """The numbers in a message: the sender's cells before the step."""
        return self.states[transfer.step].values[transfer.source, transfer.start : transfer.stop]

    @property
    def phases(self) -> tuple[str, ...]:
        """The name of each step's phase."""
        return tuple(step.phase for step in self.steps)

    @cached_property
    def cells_sent(self) -> np.ndarray:
        """[step, source, destination]: whole numbers of cells."""
        sent = np.zeros((len(self.steps), self.ranks, self.ranks), dtype=np.int64)
        for number, step in enumerate(self.steps):
            for move in step.moves:
                sent[number, move.source, move.destination] += move.stop - move.start
        return sent

    @cached_property
    def link_bytes(self) -> np.ndarray:
        """[source, destination]: bytes over each link, one way, in the whole run."""
        return self.cells_sent.sum(axis=0) * self.cell_bytes

    @cached_property
    def link_bytes_so_far(self) -> np.ndarray:
        """[state, source, destination]: bytes over each link up to that state; zero in state 0."""
        counted = np.cumsum(self.cells_sent, axis=0) * self.cell_bytes
        return np.concatenate([np.zeros((1, self.ranks, self.ranks)), counted])

    @property
    def sent_bytes(self) -> np.ndarray:
        """[rank]: bytes that each rank sent."""
        return self.link_bytes.sum(axis=1)

    @property
    def received_bytes(self) -> np.ndarray:
        """[rank]: bytes that each rank received."""
        return self.link_bytes.sum(axis=0)

    @property
    def busy_steps(self) -> int:
        """Steps in which something is sent: how often the start-up time alpha is paid."""
        return sum(bool(step.moves) for step in self.steps)


def execute(
    name: str,
    before: RankCells,
    steps: list[MoveStep],
    pieces: list[tuple[int, int]],
    outputs: Sequence[tuple[int, int] | None],
    cell_bytes: float = 4.0,
) -> ExecutedRun:
    """Run the schedule. ValueError if it would count a contribution twice, or send data that the sender does
    not have."""
    check.positive(cell_bytes=cell_bytes)
    kept = tuple(
        MoveStep(phase, tuple(move for move in moves if move.stop > move.start)) for phase, moves in steps
    )
    run = ExecutedRun(name, before, kept, tuple(pieces), tuple(outputs), cell_bytes)
    run.states  # noqa: B018  run now, so that a wrong schedule never becomes a Run
    return run


def _after(memory: RankCells, step: MoveStep) -> RankCells:
    """The memory after all messages of a step have arrived: all are read before any is written."""
    messages = [
        (
            move,
            memory.values[move.source, move.start : move.stop].copy(),
            memory.holds[move.source, move.start : move.stop].copy(),
        )
        for move in step.moves
    ]
    after = memory.copy()
    for move, values, holds in messages:
        cells = slice(move.into, move.into + move.stop - move.start)
        mine = after.holds[move.destination, cells]
        if not holds.any(axis=1).all():
            raise ValueError(
                f"rank {move.source} must hold what it sends to rank {move.destination}, got empty cells "
                f"in [{move.start}, {move.stop})"
            )
        if move.how == ADD:
            if (mine & holds).any():
                raise ValueError(f"rank {move.destination} must not add a contribution twice, got {move}")
            after.values[move.destination, cells] += values
            mine |= holds
        else:
            after.values[move.destination, cells] = values
            mine[:] = holds
    return after


# -- buffers -------------------------------------------------------------------------------------------------
def full_memory(buffers: Iterable[ArrayLike]) -> RankCells:
    """Every rank's own buffer, all of the same length, where each cell holds the rank's own contribution."""
    rows = [np.asarray(row) for row in buffers]
    if len({row.shape for row in rows}) > 1:
        raise ValueError(f"buffers must have one length, got {', '.join(str(row.size) for row in rows)}")
    values = np.array(rows)
    if values.ndim != 2 or not values.size:
        raise ValueError(
            f"buffers must be one row of at least one number for each rank, got shape {values.shape}"
        )
    if not (np.issubdtype(values.dtype, np.number) and np.isfinite(values).all()):
        raise ValueError("buffers must be finite numbers, got something else among them")
    ranks, cells = values.shape
    return RankCells(values, np.repeat(np.eye(ranks, dtype=bool)[:, None, :], cells, axis=1))


def emptied(memory: RankCells, keeps: np.ndarray) -> RankCells:
    """The same memory with only the cells marked in ``keeps`` [rank, cell]; the others are empty."""
    return RankCells(np.where(keeps, memory.values, 0), memory.holds & keeps[:, :, None])


def example(ranks: int, cells: int) -> np.ndarray:
    """Digits from 1 to 9 for display, one row per rank: scattered, but the same every time."""
    check.whole(ranks=ranks, cells=cells)
    rank, cell = np.arange(1, ranks + 1)[:, None], np.arange(1, cells + 1)
    return 1 + (rank**3 + cell**3 + 2 * rank * rank * cell + 3 * rank * cell * cell) % 101 % 9


# -- time ----------------------------------------------------------------------------------------------------
def step_times_s(
    run: ExecutedRun, alpha_s: float, bytes_per_s: float, uses: np.ndarray | None = None
) -> np.ndarray:
    """[step]: alpha, plus the busiest rank's sending or receiving time at the link's one-way rate (Hockney
    1994).

    A rank sends and receives at the same time; several messages of one rank share its port, and their
    start-ups overlap. ``uses`` [source, destination] leaves out the links where it is False. Leaves out the
    arithmetic of the sum.
    """
    check.non_negative(alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    sent = run.cells_sent if uses is None else run.cells_sent * uses
    busiest = np.maximum(sent.sum(axis=2), sent.sum(axis=1)).max(axis=1)
    return np.where(busiest > 0, alpha_s, 0.0) + busiest * run.cell_bytes / bytes_per_s


def time_s(run: ExecutedRun, alpha_s: float, bytes_per_s: float) -> float:
    """The time of the whole run if all links are alike: each step waits for its slowest rank."""
    return float(step_times_s(run, alpha_s, bytes_per_s).sum())


def same_node(ranks: int, gpus_per_node: int) -> np.ndarray:
    """[rank, rank]: whether both are on the same node."""
    check.whole(ranks=ranks, gpus_per_node=gpus_per_node)
    node = np.arange(ranks) // gpus_per_node
    return node[:, None] == node


def two_level_time_s(
    run: ExecutedRun,
    gpus_per_node: int,
    link_alpha_s: float,
    link_bytes_per_s: float,
    nic_alpha_s: float,
    nic_bytes_per_s: float,
) -> float:
    """The time of the whole run on nodes: a rank's link and its NIC work at the same time, and a step waits
    for the slower of the two."""
    inside = same_node(run.ranks, gpus_per_node)
    return float(
        np.maximum(
            step_times_s(run, link_alpha_s, link_bytes_per_s, inside),
            step_times_s(run, nic_alpha_s, nic_bytes_per_s, ~inside),
        ).sum()
    )


def bytes_by_wire(run: ExecutedRun, gpus_per_node: int) -> tuple[np.ndarray, np.ndarray]:
    """([rank], [rank]): bytes that each rank sent inside its node, and through its NIC."""
    inside = same_node(run.ranks, gpus_per_node)
    return (run.link_bytes * inside).sum(axis=1), (run.link_bytes * ~inside).sum(axis=1)
