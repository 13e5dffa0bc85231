"""Who sends what to whom, step by step: rings, trees, halving and doubling. ``ranks.execute`` plays these schedules.

``pieces`` are [start, stop) of the chunks a buffer is cut in, ``members`` the ranks that take part, in their order.
"""

from __future__ import annotations

from engine.ranks import ADD, PUT, Move, Step

SCATTER, GATHER = "reduce-scatter", "all-gather"
REDUCE, BROADCAST, EXCHANGE, SEND = "reduce", "broadcast", "all-to-all", "send"
ACROSS = " across nodes"            # behind the name of a phase that leaves the node


def cut(cells: int, count: int, start: int = 0) -> list[tuple[int, int]]:
    """``count`` chunks of ``cells`` cells; where it does not divide the first are a cell longer; some may be empty."""
    size, longer = divmod(cells, count)
    ends = [start + size * i + min(i, longer) for i in range(count + 1)]
    return list(zip(ends, ends[1:]))


def at_once(*schedules) -> list[Step]:
    """Schedules of ranks that do not meet, side by side; all have the same number of steps."""
    return [Step(steps[0].phase, tuple(move for step in steps for move in step.moves))
            for steps in zip(*schedules, strict=True)]


def _move(source, destination, piece, how) -> Move:
    return Move(source, destination, piece[0], piece[1], piece[0], how)


# -- rings (Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms, section 3) -----------------------------
def ring_reduce_scatter(members, pieces, phase=SCATTER) -> list[Step]:
    """n−1 steps: each rank passes a partial sum to the next, which adds its own. Chunk c ends whole at member c mod n.

    With fewer chunks than ranks some links idle in every step; with more, the ring turns once for each n of them.
    """
    n = len(members)
    return [Step(phase, tuple(
        _move(members[i], members[(i + 1) % n], pieces[c], ADD)
        for i in range(n) if (c := turn + (i - 1 - step) % n) < len(pieces)))
        for turn in range(0, len(pieces), n) for step in range(n - 1)]


def ring_all_gather(members, pieces, phase=GATHER) -> list[Step]:
    """n−1 steps: each rank passes on the chunk that it last received; chunk c starts at member c mod n."""
    n = len(members)
    return [Step(phase, tuple(
        _move(members[i], members[(i + 1) % n], pieces[c], PUT)
        for i in range(n) if (c := turn + (i - step) % n) < len(pieces)))
        for turn in range(0, len(pieces), n) for step in range(n - 1)]


def ring_all_reduce(members, pieces) -> list[Step]:
    """The one after the other: 2(n−1) steps, in which each link carries 2(n−1)/n of the buffer."""
    return ring_reduce_scatter(members, pieces) + ring_all_gather(members, pieces)


def chain_broadcast(ranks: int, root: int, pieces) -> list[Step]:
    """From the root along the ring, chunk behind chunk: n−2+chunks steps (NCCL's ring Broadcast)."""
    order = [(root + i) % ranks for i in range(ranks)]
    return _staggered(BROADCAST, order, pieces, PUT)


def chain_reduce(ranks: int, root: int, pieces) -> list[Step]:
    """Along the ring to the root, each rank adding its own: the same chain backwards (NCCL's ring Reduce)."""
    order = [(root + 1 + i) % ranks for i in range(ranks)]
    return _staggered(REDUCE, order, pieces, ADD)


def _staggered(phase, order, pieces, how) -> list[Step]:
    """Chunk c crosses hop h in step c + h."""
    hops = list(zip(order, order[1:]))
    steps = len(hops) + len(pieces) - 1 if hops else 0
    return [Step(phase, tuple(_move(*hop, pieces[step - h], how) for h, hop in enumerate(hops)
                              if 0 <= step - h < len(pieces))) for step in range(steps)]


def pairwise_all_to_all(ranks: int, block: int) -> list[Step]:
    """n−1 steps: in step k each rank sends the block for the rank k behind it, and receives from the one k before.

    Blocks leave the send buffer, cells [0, n·block), and arrive in the receive buffer behind it, in the sender's place.
    Thakur, Rabenseifner and Gropp 2005 section 4.3, the algorithm for long messages.
    """
    return [Step(EXCHANGE, tuple(
        Move(source, to := (source + k) % ranks, to * block, (to + 1) * block, (ranks + source) * block, PUT)
        for source in range(ranks))) for k in range(1, ranks)]


# -- halving and doubling --------------------------------------------------------------------------------------------
def halving_doubling_all_reduce(ranks: int, cells: int, nearest_first: bool = True) -> list[Step]:
    """Recursive halving, then doubling (Rabenseifner; Thakur, Rabenseifner and Gropp 2005, section 4.5).

    Neighbours exchange half of the buffer, then ranks two apart a quarter, then four apart …: log2 n steps, and the same
    way back. That is the order of MPICH: the large messages stay near. ``nearest_first=False`` begins n/2 apart, the
    order of a ReduceScatter alone (section 4.2), which leaves chunk i at rank i; each rank sends the same bytes.
    Other counts fold their excess first: with r ranks above the power of two below, each odd one of the first 2r gives
    its whole buffer to the even one before it and gets the sum at the end, which costs 2 steps of the whole buffer.
    """
    power = 1 << (ranks.bit_length() - 1)
    excess = ranks - power
    members = [2 * i for i in range(excess)] + list(range(2 * excess, ranks))
    if nearest_first:
        members = _bit_reversed(members)
    whole = (0, cells)
    fold = [Step("fold", tuple(_move(2 * i + 1, 2 * i, whole, ADD) for i in range(excess)))] if excess else []
    unfold = [Step("unfold", tuple(_move(2 * i, 2 * i + 1, whole, PUT) for i in range(excess)))] if excess else []
    return fold + _halving(members, cells) + _doubling(members, cells) + unfold


def _bit_reversed(members) -> list[int]:
    """Reordered so that those half of the list apart are neighbours, those a quarter apart two apart, and so on."""
    if len(members) < 2:
        return list(members)
    return _bit_reversed(members[::2]) + _bit_reversed(members[1::2])


def _halving(members, cells: int) -> list[Step]:
    """Member i ends with the sum of chunk i: the half that holds it is kept, the other sent to the partner across."""
    pieces, steps, reach = cut(cells, len(members)), [], len(members) // 2
    while reach:
        steps.append(Step(SCATTER, tuple(
            _move(member, members[i ^ reach], _block(pieces, i ^ reach, reach), ADD)
            for i, member in enumerate(members))))
        reach //= 2
    return steps


def _doubling(members, cells: int) -> list[Step]:
    """The way back: what is known doubles in every step."""
    pieces, steps, reach = cut(cells, len(members)), [], 1
    while reach < len(members):
        steps.append(Step(GATHER, tuple(
            _move(member, members[i ^ reach], _block(pieces, i, reach), PUT) for i, member in enumerate(members))))
        reach *= 2
    return steps


def _block(pieces, i: int, size: int) -> tuple[int, int]:
    """The aligned run of ``size`` chunks that holds chunk i."""
    first = i - i % size
    return pieces[first][0], pieces[first + size - 1][1]


# -- trees -----------------------------------------------------------------------------------------------------------
def binomial_reduce(ranks: int, root: int, cells: int) -> list[Step]:
    """⌈log2 n⌉ steps: in each, half of the ranks that still hold a sum give it to the other half."""
    steps, reach = [], 1
    while reach < ranks:
        senders = [i for i in range(reach, ranks, 2 * reach)]
        steps.append(Step(REDUCE, tuple(
            _move((i + root) % ranks, (i - reach + root) % ranks, (0, cells), ADD) for i in senders)))
        reach *= 2
    return steps


def binomial_broadcast(ranks: int, root: int, cells: int) -> list[Step]:
    """⌈log2 n⌉ steps: in each, every rank that has the buffer sends it to one that has not."""
    there = reversed(binomial_reduce(ranks, root, cells))
    return [Step(BROADCAST, tuple(Move(m.destination, m.source, m.start, m.stop, m.into, PUT) for m in step.moves))
            for step in there]


def binary_tree_parents(ranks: int) -> list[int | None]:
    """The parent of each rank in NCCL's binary tree: rank 0 above all, odd ranks the leaves (graph/trees.cc).

    A rank whose lowest set bit is b hangs under the rank with that bit cleared and the next one set, or, where that is
    beyond the last rank, under the one with the bit just cleared.
    """
    parents = [None]
    for rank in range(1, ranks):
        bit = rank & -rank
        above = (rank ^ bit) | (bit << 1)
        parents.append(above if above < ranks else rank ^ bit)
    return parents


def double_tree_parents(ranks: int) -> tuple[list[int | None], list[int | None]]:
    """Two binary trees: the leaves of one are inner ranks of the other, so both use every rank's wires alike.

    The second is the first mirrored (n even) or shifted by one rank (n odd), as NCCL has it since 2.4. Sanders, Speck
    and Träff 2009, Two-tree algorithms for full bandwidth broadcast, reduction and scan.
    """
    first, second = binary_tree_parents(ranks), [None] * ranks
    for rank, parent in enumerate(first):
        if ranks % 2:
            second[(rank + 1) % ranks] = None if parent is None else (parent + 1) % ranks
        else:
            second[ranks - 1 - rank] = None if parent is None else ranks - 1 - parent
    return first, second


def depths(parents) -> list[int]:
    """How far each rank is from the top of its tree."""
    def depth(rank):
        return 0 if parents[rank] is None else 1 + depth(parents[rank])
    return [depth(rank) for rank in range(len(parents))]


def tree_all_reduce(parents, pieces) -> list[Step]:
    """Up to the root and down again, chunk behind chunk: 2·depth + chunks − 1 steps; a rank serves all links at once.

    Chunk c goes up from depth d to d − 1 in step c + depth − d, and down from d − 1 to d in step c + depth + d − 1.
    """
    below, count = depths(parents), len(pieces)
    depth = max(below)
    if not depth:
        return []
    steps = [Step("reduce and broadcast", []) for _ in range(2 * depth + count - 1)]
    for c, piece in enumerate(pieces):
        for rank, parent in enumerate(parents):
            if parent is not None:
                steps[c + depth - below[rank]].moves.append(_move(rank, parent, piece, ADD))
                steps[c + depth + below[rank] - 1].moves.append(_move(parent, rank, piece, PUT))
    return steps


def double_tree_all_reduce(ranks: int, cells: int, chunks: int) -> list[Step]:
    """Each half of the buffer through its own tree, ``chunks`` chunks each."""
    halves = cut(cells, 2)
    return at_once(*(tree_all_reduce(parents, cut(stop - start, chunks, start))
                     for parents, (start, stop) in zip(double_tree_parents(ranks), halves)))


# -- two levels ------------------------------------------------------------------------------------------------------
def two_level_all_reduce(nodes: int, gpus_per_node: int, cells: int) -> list[Step]:
    """ReduceScatter in every node, a ring AllReduce of each GPU's piece across the nodes, AllGather in every node.

    Each GPU sends 2(g−1)/g of the buffer over its link, and 2(m−1)/m of a g-th of it through its NIC.
    """
    teams = [[node * gpus_per_node + gpu for gpu in range(gpus_per_node)] for node in range(nodes)]
    pieces = cut(cells, gpus_per_node)
    rails = [([team[gpu] for team in teams], cut(stop - start, nodes, start))
             for gpu, (start, stop) in enumerate(pieces)]
    return (at_once(*(ring_reduce_scatter(team, pieces) for team in teams))
            + at_once(*(ring_reduce_scatter(*rail, SCATTER + ACROSS) for rail in rails))
            + at_once(*(ring_all_gather(*rail, GATHER + ACROSS) for rail in rails))
            + at_once(*(ring_all_gather(team, pieces) for team in teams)))
