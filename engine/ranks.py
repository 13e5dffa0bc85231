"""Ranks that really send: a collective executed on numpy buffers, every transfer logged, nothing taken from a formula.

A schedule (``ranks_schedules``) is a list of steps, a step a list of moves: who sends which cells to whom. ``execute``
plays it: all moves of a step read before any of them writes, as machines that send at once do. Each cell remembers
whose contributions it holds, so that a schedule that would count one twice, or send what it does not have, is refused.
The numbers on screen, the bytes on each wire and the time by alpha-beta all come out of the same run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from engine import check

ADD, PUT = "add", "put"             # what the receiver does with a message: sum it to its own cells, or overwrite them


class Move(NamedTuple):
    """Cells [start, stop) of the source go to the destination, to the cells from ``into`` on."""

    source: int
    destination: int
    start: int
    stop: int
    into: int
    how: str


class Step(NamedTuple):
    """What happens at once. A step may be empty: the ring still turns where a rank has nothing to send."""

    phase: str
    moves: tuple[Move, ...]


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


class Memory(NamedTuple):
    """Every rank's cells, and of which ranks' data each of them is the sum (all False: an empty cell)."""

    values: np.ndarray              # [rank, cell]
    holds: np.ndarray               # [rank, cell, contributor]

    def copy(self) -> Memory:
        """The same contents in buffers of their own."""
        return Memory(self.values.copy(), self.holds.copy())


@dataclass(frozen=True, eq=False)
class Run:
    """An executed collective. State 0 is before the first step, state k after k steps."""

    name: str
    before: Memory
    steps: tuple[Step, ...]
    pieces: tuple[tuple[int, int], ...]             # the chunks: [start, stop) of each
    outputs: tuple[tuple[int, int] | None, ...]     # which cells of each rank are its result; None for no result
    cell_bytes: float

    @property
    def ranks(self) -> int:
        return len(self.before.values)

    @cached_property
    def states(self) -> tuple[Memory, ...]:
        """Every rank's memory before the run and after each step."""
        states = [self.before]
        for step in self.steps:
            states.append(_after(states[-1], step))
        return tuple(states)

    @cached_property
    def results(self) -> tuple[np.ndarray | None, ...]:
        """What each rank has in the end; None for a rank that gets nothing."""
        values = self.states[-1].values
        return tuple(None if cells is None else values[rank, slice(*cells)] for rank, cells in enumerate(self.outputs))

    @cached_property
    def values(self) -> np.ndarray:
        """[state, rank, cell]"""
        return np.stack([state.values for state in self.states])

    @cached_property
    def holds(self) -> np.ndarray:
        """[state, rank, cell, contributor]: whose data is in the sum that a cell shows."""
        return np.stack([state.holds for state in self.states])

    @cached_property
    def contributions(self) -> np.ndarray:
        """[state, rank, cell]: of how many ranks a cell is the sum; 0 where it is empty."""
        return self.holds.sum(axis=-1)

    @cached_property
    def log(self) -> tuple[Transfer, ...]:
        """Every message, in the order of the steps."""
        return tuple(Transfer(number, step.phase, *move, (move.stop - move.start) * self.cell_bytes)
                     for number, step in enumerate(self.steps) for move in step.moves)

    def carried(self, transfer: Transfer) -> np.ndarray:
        """The numbers in a message: what the sender's cells held before the step."""
        return self.states[transfer.step].values[transfer.source, transfer.start:transfer.stop]

    @property
    def phases(self) -> tuple[str, ...]:
        """The name of each step's phase."""
        return tuple(step.phase for step in self.steps)

    @cached_property
    def cells_sent(self) -> np.ndarray:
        """[step, source, destination], counted in cells: whole numbers."""
        sent = np.zeros((len(self.steps), self.ranks, self.ranks), dtype=np.int64)
        for number, step in enumerate(self.steps):
            for move in step.moves:
                sent[number, move.source, move.destination] += move.stop - move.start
        return sent

    @cached_property
    def link_bytes(self) -> np.ndarray:
        """[source, destination]: what crossed each link, one way, in the whole run."""
        return self.cells_sent.sum(axis=0) * self.cell_bytes

    @cached_property
    def link_bytes_so_far(self) -> np.ndarray:
        """[state, source, destination]: the same as it adds up, from zero in state 0."""
        counted = np.cumsum(self.cells_sent, axis=0) * self.cell_bytes
        return np.concatenate([np.zeros((1, self.ranks, self.ranks)), counted])

    @property
    def sent_bytes(self) -> np.ndarray:
        """[rank]: what each rank sent."""
        return self.link_bytes.sum(axis=1)

    @property
    def received_bytes(self) -> np.ndarray:
        """[rank]: what each rank received."""
        return self.link_bytes.sum(axis=0)

    @property
    def busy_steps(self) -> int:
        """Steps in which something travels: how often the start-up time alpha is paid."""
        return sum(bool(step.moves) for step in self.steps)


def execute(name, before: Memory, steps, pieces, outputs, cell_bytes=4.0) -> Run:
    """Play the schedule; ValueError where it would count a contribution twice or send what is not there."""
    check.positive(cell_bytes=cell_bytes)
    kept = tuple(Step(phase, tuple(move for move in moves if move.stop > move.start)) for phase, moves in steps)
    run = Run(name, before, kept, tuple(pieces), tuple(outputs), cell_bytes)
    run.states                      # played here, so that a wrong schedule never becomes a Run
    return run


def _after(memory: Memory, step: Step) -> Memory:
    """The memory once all messages of a step have arrived: first every one is read, then every one is written."""
    messages = [(move, memory.values[move.source, move.start:move.stop].copy(),
                 memory.holds[move.source, move.start:move.stop].copy()) for move in step.moves]
    after = memory.copy()
    for move, values, holds in messages:
        cells = slice(move.into, move.into + move.stop - move.start)
        mine = after.holds[move.destination, cells]
        if not holds.any(axis=1).all():
            raise ValueError(f"rank {move.source} must hold what it sends to rank {move.destination}, got empty cells "
                             f"in [{move.start}, {move.stop})")
        if move.how == ADD:
            if (mine & holds).any():
                raise ValueError(f"rank {move.destination} must not add a contribution twice, got {move}")
            after.values[move.destination, cells] += values
            mine |= holds
        else:
            after.values[move.destination, cells] = values
            mine[:] = holds
    return after


# -- buffers ---------------------------------------------------------------------------------------------------------
def full_memory(buffers) -> Memory:
    """Every rank's own buffer, all of one length, each cell its own contribution."""
    rows = [np.asarray(row) for row in buffers]
    if len({row.shape for row in rows}) > 1:
        raise ValueError(f"buffers must have one length, got {', '.join(str(row.size) for row in rows)}")
    values = np.array(rows)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"buffers must be one row of at least one number for each rank, got shape {values.shape}")
    if not (np.issubdtype(values.dtype, np.number) and np.isfinite(values).all()):
        raise ValueError("buffers must be finite numbers, got something else among them")
    ranks, cells = values.shape
    return Memory(values, np.repeat(np.eye(ranks, dtype=bool)[:, None, :], cells, axis=1))


def emptied(memory: Memory, keeps) -> Memory:
    """The same memory with only the cells that ``keeps`` [rank, cell] marks; the others are empty."""
    return Memory(np.where(keeps, memory.values, 0), memory.holds & keeps[:, :, None])


def example(ranks: int, cells: int) -> np.ndarray:
    """Digits from 1 to 9 to show, one row a rank: scattered, but the same each time."""
    check.whole(ranks=ranks, cells=cells)
    rank, cell = np.arange(1, ranks + 1)[:, None], np.arange(1, cells + 1)
    return 1 + (rank**3 + cell**3 + 2 * rank * rank * cell + 3 * rank * cell * cell) % 101 % 9


# -- time ------------------------------------------------------------------------------------------------------------
def step_times_s(run: Run, alpha_s, bytes_per_s, uses=None) -> np.ndarray:
    """[step]: alpha, and what the busiest rank sends or receives at the link's one-way rate (Hockney 1994).

    A rank sends and receives at once; several messages of one rank share its port, and their start-ups overlap.
    ``uses`` [source, destination] leaves out the links where it is False. Leaves out the arithmetic of the sum.
    """
    check.non_negative(alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    sent = run.cells_sent if uses is None else run.cells_sent * uses
    busiest = np.maximum(sent.sum(axis=2), sent.sum(axis=1)).max(axis=1)
    return np.where(busiest > 0, alpha_s, 0.0) + busiest * run.cell_bytes / bytes_per_s


def time_s(run: Run, alpha_s, bytes_per_s) -> float:
    """The whole run where every link is alike: each step waits for its slowest rank."""
    return float(step_times_s(run, alpha_s, bytes_per_s).sum())


def same_node(ranks: int, gpus_per_node: int) -> np.ndarray:
    """[rank, rank]: whether both stand in one node."""
    check.whole(ranks=ranks, gpus_per_node=gpus_per_node)
    node = np.arange(ranks) // gpus_per_node
    return node[:, None] == node


def two_level_time_s(run: Run, gpus_per_node, link_alpha_s, link_bytes_per_s, nic_alpha_s, nic_bytes_per_s) -> float:
    """The whole run on nodes: a rank's link and its NIC work at once, and a step waits for the slower of the two."""
    inside = same_node(run.ranks, gpus_per_node)
    return float(np.maximum(step_times_s(run, link_alpha_s, link_bytes_per_s, inside),
                            step_times_s(run, nic_alpha_s, nic_bytes_per_s, ~inside)).sum())


def bytes_by_wire(run: Run, gpus_per_node) -> tuple[np.ndarray, np.ndarray]:
    """([rank], [rank]): what each rank sent inside its node, and what it sent through its NIC."""
    inside = same_node(run.ranks, gpus_per_node)
    return (run.link_bytes * inside).sum(axis=1), (run.link_bytes * ~inside).sum(axis=1)
