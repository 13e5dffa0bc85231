"""Who sends what to whom, step by step: rings, trees, halving and doubling. ``ranks.execute`` runs these
schedules.

``pieces`` are the [start, stop) of a buffer's chunks, ``members`` the participating ranks in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from engine.executed.ranks import ADD, PUT, Move, MoveStep

SCATTER, GATHER = "reduce-scatter", "all-gather"
REDUCE, BROADCAST, EXCHANGE, SEND = "reduce", "broadcast", "all-to-all", "send"
ACROSS = " across nodes"  # appended to the name of a phase that leaves the node


def cut(cells: int, count: int, start: int = 0) -> list[tuple[int, int]]:
    """``count`` chunks of ``cells`` cells. If they do not divide evenly, the first chunks are one cell
    longer; some may be empty."""
    size, longer = divmod(cells, count)
    ends = [start + size * i + min(i, longer) for i in range(count + 1)]
    return list(itertools.pairwise(ends))


def at_once(*schedules: list[MoveStep]) -> list[MoveStep]:
    """Schedules of disjoint sets of ranks, run in parallel; all have the same number of steps."""
    return [
        MoveStep(steps[0].phase, tuple(move for step in steps for move in step.moves))
        for steps in zip(*schedules, strict=True)
    ]


def _move(source, destination, piece, how) -> Move:
    return Move(source, destination, piece[0], piece[1], piece[0], how)


# -- rings (Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms, section 3) ---------------------
def ring_reduce_scatter(
    members: Sequence[int], pieces: list[tuple[int, int]], phase: str = SCATTER
) -> list[MoveStep]:
    """n−1 steps: each rank passes a partial sum to the next, which adds its own. Chunk c ends up complete at
    member c mod n.

    With fewer chunks than ranks some links are idle in every step; with more, the ring runs once for every n
    chunks.
    """
    n = len(members)
    return [
        MoveStep(
            phase,
            tuple(
                _move(members[i], members[(i + 1) % n], pieces[c], ADD)
                for i in range(n)
                if (c := turn + (i - 1 - step) % n) < len(pieces)
            ),
        )
        for turn in range(0, len(pieces), n)
        for step in range(n - 1)
    ]


def ring_all_gather(
    members: Sequence[int], pieces: list[tuple[int, int]], phase: str = GATHER
) -> list[MoveStep]:
    """n−1 steps: each rank passes on the chunk that it last received; chunk c starts at member c mod n."""
    n = len(members)
    return [
        MoveStep(
            phase,
            tuple(
                _move(members[i], members[(i + 1) % n], pieces[c], PUT)
                for i in range(n)
                if (c := turn + (i - step) % n) < len(pieces)
            ),
        )
        for turn in range(0, len(pieces), n)
        for step in range(n - 1)
    ]


def ring_all_reduce(members: range, pieces: list[tuple[int, int]]) -> list[MoveStep]:
    """Ring ReduceScatter, then ring AllGather: 2(n−1) steps, in which each link carries 2(n−1)/n of the
    buffer."""
    return ring_reduce_scatter(members, pieces) + ring_all_gather(members, pieces)


def chain_broadcast(ranks: int, root: int, pieces: list[tuple[int, int]]) -> list[MoveStep]:
    """From the root along the ring, chunk after chunk: n−2+chunks steps (NCCL's ring Broadcast)."""
    order = [(root + i) % ranks for i in range(ranks)]
    return _staggered(BROADCAST, order, pieces, PUT)


def chain_reduce(ranks: int, root: int, pieces: list[tuple[int, int]]) -> list[MoveStep]:
    """Along the ring to the root, where each rank adds its own buffer: the chain of ``chain_broadcast`` in
    reverse (NCCL's ring Reduce)."""
    order = [(root + 1 + i) % ranks for i in range(ranks)]
    return _staggered(REDUCE, order, pieces, ADD)


def _staggered(phase, order, pieces, how) -> list[MoveStep]:
    """Steps in which chunk c crosses hop h of the order in step c + h."""
    hops = list(itertools.pairwise(order))
    steps = len(hops) + len(pieces) - 1 if hops else 0
    return [
        MoveStep(
            phase,
            tuple(
                _move(*hop, pieces[step - h], how)
                for h, hop in enumerate(hops)
                if 0 <= step - h < len(pieces)
            ),
        )
        for step in range(steps)
    ]


def pairwise_all_to_all(ranks: int, block: int) -> list[MoveStep]:
    """n−1 steps: in step k each rank sends the block for the rank k places after it, and receives from the
    one k places before it.

    Blocks leave the send buffer, cells [0, n·block), and arrive in the receive buffer after it, at the
    sender's index. Thakur, Rabenseifner and Gropp 2005 section 4.3, the algorithm for long messages.
    """
    return [
        MoveStep(
            EXCHANGE,
            tuple(
                Move(
                    source,
                    to := (source + k) % ranks,
                    to * block,
                    (to + 1) * block,
                    (ranks + source) * block,
                    PUT,
                )
                for source in range(ranks)
            ),
        )
        for k in range(1, ranks)
    ]


# -- halving and doubling ------------------------------------------------------------------------------------
def halving_doubling_all_reduce(ranks: int, cells: int, nearest_first: bool = True) -> list[MoveStep]:
    """Recursive halving, then doubling (Rabenseifner; Thakur, Rabenseifner and Gropp 2005, section 4.5).

    Neighbours exchange half of the buffer, then ranks two apart a quarter, then four apart …: log2 n steps,
    and the same way back. That is the order of MPICH, which keeps the large messages local.
    ``nearest_first=False`` begins n/2 apart, the order of a ReduceScatter alone (section 4.2), which leaves
    chunk i at rank i; each rank sends the same number of bytes. Other numbers of ranks are first folded: if
    there are r more ranks than the largest power of two, each odd rank of the first 2r sends its whole buffer
    to the even rank before it, and gets the sum back at the end. That costs 2 more steps, with the whole
    buffer.
    """
    power = 1 << (ranks.bit_length() - 1)
    excess = ranks - power
    members = [2 * i for i in range(excess)] + list(range(2 * excess, ranks))
    if nearest_first:
        members = _bit_reversed(members)
    whole = (0, cells)
    fold = (
        [MoveStep("fold", tuple(_move(2 * i + 1, 2 * i, whole, ADD) for i in range(excess)))]
        if excess
        else []
    )
    unfold = (
        [MoveStep("unfold", tuple(_move(2 * i, 2 * i + 1, whole, PUT) for i in range(excess)))]
        if excess
        else []
    )
    return fold + _halving(members, cells) + _doubling(members, cells) + unfold


def _bit_reversed(members) -> list[int]:
    """The members in another order: members half of the list apart become neighbours, members a quarter of
    the list apart become two apart, and so on."""
    if len(members) < 2:
        return list(members)
    return _bit_reversed(members[::2]) + _bit_reversed(members[1::2])


def _halving(members, cells: int) -> list[MoveStep]:
    """Member i ends with the sum of chunk i: it keeps the half that contains it and sends the other to its
    partner."""
    pieces, steps, reach = cut(cells, len(members)), [], len(members) // 2
    while reach:
        steps.append(
            MoveStep(
                SCATTER,
                tuple(
                    _move(member, members[i ^ reach], _block(pieces, i ^ reach, reach), ADD)
                    for i, member in enumerate(members)
                ),
            )
        )
        reach //= 2
    return steps


def _doubling(members, cells: int) -> list[MoveStep]:
    """The way back from ``_halving``: the complete part of the buffer doubles in every step."""
    pieces, steps, reach = cut(cells, len(members)), [], 1
    while reach < len(members):
        steps.append(
            MoveStep(
                GATHER,
                tuple(
                    _move(member, members[i ^ reach], _block(pieces, i, reach), PUT)
                    for i, member in enumerate(members)
                ),
            )
        )
        reach *= 2
    return steps


def _block(pieces, i: int, size: int) -> tuple[int, int]:
    """The aligned group of ``size`` chunks that contains chunk i."""
    first = i - i % size
    return pieces[first][0], pieces[first + size - 1][1]


# -- trees ---------------------------------------------------------------------------------------------------
def binomial_reduce(ranks: int, root: int, cells: int) -> list[MoveStep]:
    """⌈log2 n⌉ steps: in each, half of the ranks that still hold a sum send it to the other half."""
    steps, reach = [], 1
    while reach < ranks:
        senders = list(range(reach, ranks, 2 * reach))
        steps.append(
            MoveStep(
                REDUCE,
                tuple(
                    _move((i + root) % ranks, (i - reach + root) % ranks, (0, cells), ADD) for i in senders
                ),
            )
        )
        reach *= 2
    return steps


def binomial_broadcast(ranks: int, root: int, cells: int) -> list[MoveStep]:
    """⌈log2 n⌉ steps: in each, every rank that has the buffer sends it to one that does not."""
    there = reversed(binomial_reduce(ranks, root, cells))
    return [
        MoveStep(
            BROADCAST, tuple(Move(m.destination, m.source, m.start, m.stop, m.into, PUT) for m in step.moves)
        )
        for step in there
    ]


def binary_tree_parents(ranks: int) -> list[int | None]:
    """The parent of each rank in NCCL's binary tree: rank 0 at the top, odd ranks as leaves (graph/trees.cc).

    The parent of a rank whose lowest set bit is b is the rank with that bit cleared and the next one set, or,
    if that is beyond the last rank, the rank with the bit just cleared.
    """
    parents: list[int | None] = [None]
    for rank in range(1, ranks):
        bit = rank & -rank
        above = (rank ^ bit) | (bit << 1)
        parents.append(above if above < ranks else rank ^ bit)
    return parents


def double_tree_parents(ranks: int) -> tuple[list[int | None], list[int | None]]:
    """Two binary trees: the leaves of one are inner ranks of the other, so together they use every rank's
    wires equally.

    The second is the first one mirrored (n even) or shifted by one rank (n odd), as in NCCL since 2.4.
    Sanders, Speck and Träff 2009, Two-tree algorithms for full bandwidth broadcast, reduction and scan.
    """
    first = binary_tree_parents(ranks)
    second: list[int | None] = [None] * ranks
    for rank, parent in enumerate(first):
        if ranks % 2:
            second[(rank + 1) % ranks] = None if parent is None else (parent + 1) % ranks
        else:
            second[ranks - 1 - rank] = None if parent is None else ranks - 1 - parent
    return first, second


def depths(parents: list[int | None]) -> list[int]:
    """The depth of each rank in its tree."""

    def depth(rank):
        return 0 if parents[rank] is None else 1 + depth(parents[rank])

    return [depth(rank) for rank in range(len(parents))]


def tree_all_reduce(parents: list[int | None], pieces: list[tuple[int, int]]) -> list[MoveStep]:
    """Up to the root and down again, chunk after chunk: 2·depth + chunks − 1 steps; a rank serves all its
    links at the same time.

    Chunk c goes up from depth d to d − 1 in step c + depth − d, and down from d − 1 to d in step c + depth +
    d − 1.
    """
    below, count = depths(parents), len(pieces)
    depth = max(below)
    if not depth:
        return []
    moves: list[list[Move]] = [[] for _ in range(2 * depth + count - 1)]
    for c, piece in enumerate(pieces):
        for rank, parent in enumerate(parents):
            if parent is not None:
                moves[c + depth - below[rank]].append(_move(rank, parent, piece, ADD))
                moves[c + depth + below[rank] - 1].append(_move(parent, rank, piece, PUT))
    return [MoveStep("reduce and broadcast", at_once) for at_once in moves]


def double_tree_all_reduce(ranks: int, cells: int, chunks: int) -> list[MoveStep]:
    """Each half of the buffer through its own tree, in ``chunks`` chunks."""
    halves = cut(cells, 2)
    return at_once(
        *(
            tree_all_reduce(parents, cut(stop - start, chunks, start))
            for parents, (start, stop) in zip(double_tree_parents(ranks), halves)
        )
    )


# -- two levels ----------------------------------------------------------------------------------------------
def two_level_all_reduce(nodes: int, gpus_per_node: int, cells: int) -> list[MoveStep]:
    """ReduceScatter in every node, a ring AllReduce of each GPU's piece across the nodes, AllGather in every
    node.

    Each GPU sends 2(g−1)/g of the buffer over its link, and 2(m−1)/m of a g-th of it through its NIC.
    """
    teams = [[node * gpus_per_node + gpu for gpu in range(gpus_per_node)] for node in range(nodes)]
    pieces = cut(cells, gpus_per_node)
    rails = [
        ([team[gpu] for team in teams], cut(stop - start, nodes, start))
        for gpu, (start, stop) in enumerate(pieces)
    ]
    return (
        at_once(*(ring_reduce_scatter(team, pieces) for team in teams))
        + at_once(*(ring_reduce_scatter(*rail, SCATTER + ACROSS) for rail in rails))
        + at_once(*(ring_all_gather(*rail, GATHER + ACROSS) for rail in rails))
        + at_once(*(ring_all_gather(team, pieces) for team in teams))
    )
