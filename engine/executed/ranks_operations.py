"""The seven collective primitives, and AllReduce by five algorithms, each executed on one numpy buffer per
rank.

Each function returns a ``ranks.ExecutedRun``: results, every state on the way, the log of transfers, bytes on
each link. Semantics are NCCL's (user guide, Collective Operations): pieces of a buffer belong to the ranks in
order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.base import check
from engine.executed import ranks_schedules as schedules
from engine.executed.ranks import ExecutedRun, RankCells, emptied, execute, full_memory

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ALGORITHMS = ("ring", "tree", "double_tree", "halving_doubling", "two_level")


def broadcast(
    buffers: np.ndarray, root: int = 0, chunks: int | None = None, cell_bytes: float = 4.0
) -> ExecutedRun:
    """The root's buffer reaches every rank, in chunks (by default one per rank) along a chain."""
    memory, pieces = _rooted(buffers, root, chunks)
    at_root = np.zeros(memory.values.shape, dtype=bool)
    at_root[root] = True
    ranks, cells = memory.values.shape
    steps = schedules.chain_broadcast(ranks, root, pieces)
    return execute("broadcast", emptied(memory, at_root), steps, pieces, [(0, cells)] * ranks, cell_bytes)


def reduce(
    buffers: np.ndarray, root: int = 0, chunks: int | None = None, cell_bytes: float = 4.0
) -> ExecutedRun:
    """The sum of all buffers reaches the root; the others get nothing."""
    memory, pieces = _rooted(buffers, root, chunks)
    ranks, cells = memory.values.shape
    outputs = [(0, cells) if rank == root else None for rank in range(ranks)]
    return execute("reduce", memory, schedules.chain_reduce(ranks, root, pieces), pieces, outputs, cell_bytes)


def reduce_scatter(buffers: Iterable[ArrayLike], cell_bytes: float = 4.0) -> ExecutedRun:
    """Each rank gets its piece of the sum of all buffers, by a ring."""
    memory = full_memory(buffers)
    ranks, cells = memory.values.shape
    pieces = schedules.cut(cells, ranks)
    steps = schedules.ring_reduce_scatter(range(ranks), pieces)
    return execute("reduce_scatter", memory, steps, pieces, pieces, cell_bytes)


def all_gather(rank_pieces: Sequence[np.ndarray], cell_bytes: float = 4.0) -> ExecutedRun:
    """Every rank gets the pieces of all ranks, in order, by a ring. Pieces may differ in length."""
    lengths = [len(piece) for piece in rank_pieces]
    ends = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    pieces = list(itertools.pairwise(ends))
    ranks = len(pieces)
    own = np.arange(ends[-1]) >= np.array(ends[:-1])[:, None]
    own &= np.arange(ends[-1]) < np.array(ends[1:])[:, None]
    memory = emptied(full_memory([np.concatenate(list(rank_pieces))] * ranks), own)
    steps = schedules.ring_all_gather(range(ranks), pieces)
    return execute("all_gather", memory, steps, pieces, [(0, ends[-1])] * ranks, cell_bytes)


def all_to_all(buffers: Iterable[ArrayLike], cell_bytes: float = 4.0) -> ExecutedRun:
    """Block j of rank i becomes block i of rank j, by pairwise exchange. Cells [0, S) send, cells [S, 2S)
    receive."""
    sent = full_memory(buffers)
    ranks, cells = sent.values.shape
    if cells % ranks:
        raise ValueError(
            f"buffers must have a multiple of {ranks} cells, one block for each rank, got {cells}"
        )
    block = cells // ranks
    received = RankCells(np.zeros_like(sent.values), np.zeros_like(sent.holds))
    for rank in range(ranks):  # a rank's block for itself is not sent
        own = slice(rank * block, (rank + 1) * block)
        received.values[rank, own], received.holds[rank, own] = sent.values[rank, own], sent.holds[rank, own]
    memory = RankCells(*(np.concatenate(pair, axis=1) for pair in zip(sent, received)))
    steps, pieces = schedules.pairwise_all_to_all(ranks, block), schedules.cut(2 * cells, 2 * ranks)
    return execute("all_to_all", memory, steps, pieces, [(cells, 2 * cells)] * ranks, cell_bytes)


def send_recv(
    buffers: np.ndarray, source: int = 0, destination: int | None = None, cell_bytes: float = 4.0
) -> ExecutedRun:
    """One rank's buffer goes to one other (by default the next), as between pipeline stages."""
    memory = full_memory(buffers)
    ranks, cells = memory.values.shape
    to = (source + 1) % ranks if destination is None else destination
    check.one_of(range(ranks), source=source, destination=to)
    at_source = np.zeros(memory.values.shape, dtype=bool)
    at_source[source] = True
    whole = schedules.Move(source, to, 0, cells, 0, schedules.PUT)
    steps = [schedules.MoveStep(schedules.SEND, (whole,))] if to != source else []
    outputs = [(0, cells) if rank == to else None for rank in range(ranks)]
    return execute("send_recv", emptied(memory, at_source), steps, [(0, cells)], outputs, cell_bytes)


def all_reduce(
    buffers: Iterable[ArrayLike],
    algorithm: str = "ring",
    chunks: int | None = None,
    gpus_per_node: int | None = None,
    cell_bytes: float = 4.0,
    nearest_first: bool = True,
) -> ExecutedRun:
    """Every rank gets the sum of all buffers.

    ``chunks`` cuts the ring's buffer (by default into one per rank) or each tree's half (by default into
    one); ``gpus_per_node`` is for two levels; ``nearest_first`` is for halving and doubling: whether a rank
    first exchanges with its neighbour, or with the rank that is half of all ranks away. ``tree`` is one
    binomial tree, ``double_tree`` NCCL's two binary ones.
    """
    check.one_of(ALGORITHMS, algorithm=algorithm)
    memory = full_memory(buffers)
    ranks, cells = memory.values.shape
    count = (1 if algorithm == "double_tree" else ranks) if chunks is None else chunks
    check.whole(chunks=count)
    steps = {
        "ring": lambda: schedules.ring_all_reduce(range(ranks), schedules.cut(cells, count)),
        "tree": lambda: (
            schedules.binomial_reduce(ranks, 0, cells) + schedules.binomial_broadcast(ranks, 0, cells)
        ),
        "double_tree": lambda: schedules.double_tree_all_reduce(ranks, cells, count),
        "halving_doubling": lambda: schedules.halving_doubling_all_reduce(ranks, cells, nearest_first),
        "two_level": lambda: schedules.two_level_all_reduce(*_nodes(ranks, gpus_per_node), cells),
    }[algorithm]()
    pieces = schedules.cut(cells, count)
    return execute(f"all_reduce, {algorithm}", memory, steps, pieces, [(0, cells)] * ranks, cell_bytes)


PRIMITIVES = {
    "broadcast": broadcast,
    "reduce": reduce,
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
    "send_recv": send_recv,
}


def _rooted(buffers, root, chunks):
    memory = full_memory(buffers)
    ranks, cells = memory.values.shape
    check.one_of(range(ranks), root=root)
    count = ranks if chunks is None else chunks
    check.whole(chunks=count)
    return memory, schedules.cut(cells, count)


def _nodes(ranks: int, gpus_per_node: int | None) -> tuple[int, int]:
    """(number of nodes, GPUs on each)."""
    if gpus_per_node is None:
        raise ValueError("gpus_per_node must be given for two_level, got None")
    check.whole(gpus_per_node=gpus_per_node)
    if ranks % gpus_per_node:
        raise ValueError(f"gpus_per_node must divide the {ranks} ranks, got {gpus_per_node}")
    return ranks // gpus_per_node, gpus_per_node
