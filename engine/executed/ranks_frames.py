"""An executed collective as frames of an animation: what each cell shows, and what is on the wires, at any
moment.

``frames`` turns a ``ranks.ExecutedRun`` into arrays of a fixed size, so that runs of different lengths fit
one table. The other functions read such arrays at a moment measured in steps: 2.5 is halfway through the
third. They accept symbols.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base import check
from engine.base.types import Real
from engine.executed.ranks import ADD, ExecutedRun

NEVER = 1e6  # a state that no run reaches, for changes that do not happen


class Frames(NamedTuple):
    """A run padded to ``size`` ranks and chunks, in flat arrays; a place is one chunk of one rank, ordered by
    chunk."""

    changes_at: np.ndarray  # [change, place]: the state in which the place gets its next value, or NEVER
    values: np.ndarray  # [change + 1, place]: the value before the first change, and after each
    shares: np.ndarray  # [change + 1, place]: the share of the ranks that the value sums up; 0: empty
    chunks: np.ndarray  # [step, rank]: the chunk that each rank is receiving
    arriving: np.ndarray  # [step, rank]: the value of that chunk
    travels: np.ndarray  # [step, rank]: 1 where a value is on the wire
    adds: np.ndarray  # [step, rank]: 1 where it will be added, 0 where it overwrites
    carried: np.ndarray  # [step, rank]: chunks that the links into each rank have carried before the step


def frames(run: ExecutedRun, size: int, steps: int, changes: int = 2) -> Frames:
    """The run as arrays for ``size`` ranks and chunks and ``steps`` steps. Each chunk must be one cell."""
    check.whole(size=size, steps=steps, changes=changes)
    cells = run.values.shape[2]
    if max(run.ranks, cells) > size or len(run.steps) > steps or len(run.pieces) != cells:
        raise ValueError(
            f"run must fit {size} ranks and one-cell chunks and {steps} steps, got {run.ranks} ranks, "
            f"{cells} cells in {len(run.pieces)} chunks and {len(run.steps)} steps"
        )
    changes_at = np.full((changes, size, size), NEVER)
    values, shares = np.zeros((2, changes + 1, size, size))
    for rank in range(run.ranks):
        for cell in range(cells):
            held = run.holds[:, rank, cell]
            states = [0, *(np.flatnonzero((held[1:] != held[:-1]).any(axis=1)) + 1)]
            if len(states) > changes + 1:
                raise ValueError(f"run must change a cell at most {changes} times, got {len(states) - 1}")
            later = np.minimum(np.arange(changes + 1), len(states) - 1)
            changes_at[: len(states) - 1, rank, cell] = states[1:]
            values[:, rank, cell] = run.values[states, rank, cell][later]
            shares[:, rank, cell] = run.contributions[states, rank, cell][later] / run.ranks
    chunks, arriving, travels, adds, carried = np.zeros((5, steps + 1, size))
    for move in run.log:
        at = move.step, move.destination
        chunks[at], arriving[at] = move.start, run.values[move.step, move.source, move.start]
        travels[at], adds[at] = 1, move.how == ADD
        carried[move.step + 1 :, move.destination] += move.stop - move.start
    return Frames(
        *(array.ravel() for array in (changes_at, values, shares, chunks, arriving, travels, adds, carried))
    )


class Cells(NamedTuple):
    """The contents of each place at a moment."""

    values: np.ndarray
    shares: np.ndarray  # the share of the ranks whose data is in the value
    fresh: np.ndarray  # True where the value arrived with the last step


class Messages(NamedTuple):
    """The message on its way to each rank at a moment."""

    chunks: np.ndarray
    values: np.ndarray
    travels: np.ndarray  # True where a message is on its way
    adds: np.ndarray  # True where it will be added to the value there


def way_made(moment: Real) -> Real:
    """The fraction of its way that a message has covered."""
    return moment - np.floor(moment)


def half_at(moment: Real, steps: Real) -> Real:
    """The position in a run of two equal phases: 0 before the first phase, 1 during it and right after it, 2
    during the second phase, 3 at the end."""
    return np.where(moment >= steps, 3.0, np.ceil(2 * moment / steps))


def cells_at(run: Frames, size: int, moment: Real) -> Cells:
    """Each place's last change up to the moment; messages on their way have not arrived yet."""
    state = np.floor(moment)
    changes_at, values, shares = (np.reshape(column, (-1, size * size)) for column in run[:3])
    value, share = values[0], shares[0]
    for change in range(len(values) - 1):
        over = changes_at[change] <= state
        value, share = np.where(over, values[change + 1], value), np.where(over, shares[change + 1], share)
    return Cells(value, share, np.any(changes_at == state, axis=0))


def messages_at(run: Frames, size: int, moment: Real) -> Messages:
    """What each rank is about to receive; between two steps nothing is on its way."""
    chunks, values, travels, adds = (_row(column, size, moment) for column in run[3:7])
    return Messages(chunks, values, (travels > 0) & (way_made(moment) > 0), adds > 0)


def messages_of(run: Frames, size: int, step: Real) -> Messages:
    """What each rank receives in the step with this number, counted from 1; nothing in step 0."""
    chunks, values, travels, adds = (_row(column, size, step - 1) for column in run[3:7])
    return Messages(chunks, values, travels > 0, adds > 0)


def carried_bytes(run: Frames, size: int, moment: Real, chunks: Real, buffer_bytes: Real) -> Real:
    """Bytes that the links into each rank have carried so far, including the part of a message that is
    already across."""
    carried = _row(run.carried, size, moment) + _row(run.travels, size, moment) * way_made(moment)
    return carried * buffer_bytes / chunks


def _row(column, size, moment):
    steps = np.reshape(column, (-1, size))
    return np.sum(np.where(np.arange(len(steps))[:, None] == np.floor(moment), steps, 0.0), axis=0)


class Ways(NamedTuple):
    """The way that each message of a run takes through nodes, padded as ``Frames`` are, in flat arrays."""

    sources: np.ndarray  # [step, rank]: who sends to this rank
    cells: np.ndarray  # [step, rank]: how many neighbouring chunks are in the message; 0 where there is none
    leaves: np.ndarray  # [step, rank]: 1 where the message leaves its node


def ways(run: ExecutedRun, gpus_per_node: int, size: int, steps: int) -> Ways:
    """The ways of the run's messages through nodes, as arrays for ``size`` ranks and ``steps`` steps."""
    check.whole(gpus_per_node=gpus_per_node, size=size, steps=steps)
    if run.ranks > size or len(run.steps) > steps:
        raise ValueError(
            f"run must fit {size} ranks and {steps} steps, got {run.ranks} ranks and {len(run.steps)} steps"
        )
    sources, cells, leaves = np.zeros((3, steps + 1, size))
    for move in run.log:
        at = move.step, move.destination
        sources[at], cells[at] = move.source, move.stop - move.start
        leaves[at] = move.source // gpus_per_node != move.destination // gpus_per_node
    return Ways(*(array.ravel() for array in (sources, cells, leaves)))


def way_at(run: Ways, size: int, moment: Real) -> Ways:
    """The message that is on its way to each rank at a moment, or comes with the next step."""
    return Ways(*(_row(column, size, moment) for column in run))


def arrived_bytes(
    run: Ways, size: int, moment: Real, chunks: Real, buffer_bytes: Real
) -> tuple[np.ndarray, np.ndarray]:
    """(inside its node, from another node): bytes that have come to each rank so far, including the part of a
    message that is already across."""
    cells, leaves = np.reshape(run.cells, (-1, size)), np.reshape(run.leaves, (-1, size))
    across = np.minimum(np.maximum(moment - np.arange(len(cells)), 0.0), 1.0)[:, None] * cells
    far, every = np.sum(across * leaves, axis=0), np.sum(across, axis=0)
    return (every - far) * buffer_bytes / chunks, far * buffer_bytes / chunks


class Exchange(NamedTuple):
    """The start and end of a primitive, padded to ``size`` ranks and pieces, in flat arrays."""

    before: np.ndarray  # [rank, piece]
    holds_before: np.ndarray  # [rank, piece, rank]: 1 where that rank's data is in the piece
    after: np.ndarray  # [rank, piece]: the results; a rank that gets nothing is empty
    holds_after: np.ndarray
    sent: np.ndarray  # [rank]: what it sent, in multiples of a buffer
    received: np.ndarray
    steps: np.ndarray  # steps in which something is sent


def exchange(run: ExecutedRun, size: int, pieces: int) -> Exchange:
    """The start and end of a run whose buffer is ``pieces`` cells; a separate receive buffer is shown in the
    same places."""
    check.whole(size=size, pieces=pieces)
    if max(run.ranks, pieces) > size:
        raise ValueError(f"run must fit {size} ranks and pieces, got {run.ranks} ranks and {pieces} pieces")
    values, holds = np.zeros((2, size, size)), np.zeros((2, size, size, size))
    first, last = run.states[0], run.states[-1]
    values[0, : run.ranks, :pieces] = first.values[:, :pieces]
    holds[0, : run.ranks, :pieces, : run.ranks] = first.holds[:, :pieces]
    for rank, cells in enumerate(run.outputs):
        if cells is not None:
            place = slice(cells[0] % pieces, cells[0] % pieces + cells[1] - cells[0])
            values[1, rank, place] = last.values[rank, slice(*cells)]
            holds[1, rank, place, : run.ranks] = last.holds[rank, slice(*cells)]
    shares = np.zeros((2, size))
    shares[:, : run.ranks] = np.stack([run.sent_bytes, run.received_bytes]) / (run.cell_bytes * pieces)
    values[0] *= holds[0].any(axis=-1)
    columns = values[0], holds[0], values[1], holds[1], *shares, np.array([run.busy_steps])
    return Exchange(*(column.ravel() for column in columns))
