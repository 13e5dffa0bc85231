"""The cost of a collective operation: the alpha-beta formulas, and the bytes that each rank sends.

Hockney's model: a message of S bytes takes alpha + S / B. A collective of ``hops`` dependent messages moves
its bytes in chunks; with the best chunk size, the start-up of the chunks adds twice the geometric mean of the
two terms:

    time = start + (sqrt(hops·alpha) + sqrt(S_wire / B))²  =  start + hops·alpha + S_wire/B +
    2·sqrt(hops·alpha·S_wire/B)

The textbook formula leaves out the last term (infinitely small chunks without overhead); ``textbook_s`` gives
it.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.base import check, ops
from engine.base.types import Real, Truth

OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "send_recv")


def pipelined_s(hops_s: Real, transfer_s: Real) -> Real:
    """(√hops + √transfer)²: hops in sequence, with the transfer cut into chunks of the best size (Hockney
    1994; the optimum of α·(hops + n) + S/B·(1 + hops/n) over the number of chunks n)."""
    return hops_s + transfer_s + 2.0 * ops.sqrt(hops_s * transfer_s)


def wire_share(operation: str, ranks: Real) -> Real:
    """Bytes that each rank sends, as a share of the buffer: 2(n-1)/n for a ring AllReduce, (n-1)/n for its
    halves.

    Patarasuk and Yuan 2009. The buffer is the whole one: n times a rank's piece for AllGather and
    ReduceScatter.
    """
    check.one_of(OPERATIONS, operation=operation)
    check.whole(ranks=ranks)
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if operation in ("reduce_scatter", "all_gather", "all_to_all"):
        return (ranks - 1) / ranks
    return ops.where(ranks > 1, 1.0, 0.0)


def algorithm_bandwidth(buffer_bytes: Real, time_s: Real) -> Real:
    """nccl-tests' algbw: bytes of the buffer per second."""
    check.positive(buffer_bytes=buffer_bytes, time_s=time_s)
    return buffer_bytes / time_s


def bus_bandwidth(operation: str, ranks: Real, buffer_bytes: Real, time_s: Real) -> Real:
    """nccl-tests' busbw: algbw times the share that crosses a wire, so that it can be compared with the
    link's rate.

    By definition it keeps 2(n-1)/n where the switch does the sum, and may then exceed the link
    (doc/PERFORMANCE.md).
    """
    return algorithm_bandwidth(buffer_bytes, time_s) * wire_share(operation, ranks)


def ring_all_reduce_s(buffer_bytes: Real, ranks: Real, bytes_per_s: Real, alpha_s: Real) -> Real:
    """Textbook ring: 2(n-1)/n·S/B + 2(n-1)·alpha. The bandwidth term hardly depends on n; the latency term
    grows with n."""
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(ranks=ranks)
    return 2 * (ranks - 1) / ranks * buffer_bytes / bytes_per_s + 2 * (ranks - 1) * alpha_s


def ring_chunks(ranks: Real, chunks_per_rank: Real) -> Real:
    """Chunks that a buffer is cut into: this many per rank, and at least one."""
    check.whole(ranks=ranks)
    check.non_negative(chunks_per_rank=chunks_per_rank)
    return ops.maximum(1.0, ops.floor(ranks * chunks_per_rank))


def ring_steps(ranks: Real, chunks: Real) -> Real:
    """Steps of a ring AllReduce: 2(n-1), again for each further n chunks."""
    check.whole(ranks=ranks, chunks=chunks)
    return 2 * (ranks - 1) * ops.ceil(chunks / ranks)


def idle_links(ranks: Real, chunks: Real) -> Real:
    """Links of a ring that are idle in a step, where there are fewer chunks than ranks."""
    check.whole(ranks=ranks, chunks=chunks)
    return ops.maximum(0.0, ranks - 1.0 * chunks)


def ring_step_s(buffer_bytes: Real, chunks: Real, bytes_per_s: Real, alpha_s: Real) -> Real:
    """The time of one step of ``chunked_ring_all_reduce_s``: alpha + S/(c·B)."""
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(chunks=chunks)
    return alpha_s + buffer_bytes / chunks / bytes_per_s


def chunked_ring_all_reduce_s(
    buffer_bytes: Real, ranks: Real, chunks: Real, bytes_per_s: Real, alpha_s: Real
) -> Real:
    """Ring with any number of chunks: steps · (alpha + S/(c·B)), which is the textbook's time with as many
    chunks as ranks.

    With fewer chunks, n - c of the n links are idle in each step. The schedule is that of
    ranks_schedules.ring_all_reduce.
    """
    return ring_steps(ranks, chunks) * ring_step_s(buffer_bytes, chunks, bytes_per_s, alpha_s)


def ring_link_bytes(buffer_bytes: Real, ranks: Real) -> Real:
    """2(n-1)/n·S: what each link of the ring carries, and the least that each rank must send in any
    AllReduce."""
    check.non_negative(buffer_bytes=buffer_bytes)
    return wire_share("all_reduce", ranks) * buffer_bytes


def least_total_bytes(operation: str, ranks: Real, buffer_bytes: Real) -> Real:
    """The fewest bytes that must cross wires in all, over every rank, whatever the algorithm.

    Each of the others must receive (Broadcast) or send (Reduce) a whole buffer: (n-1)·S, the same for
    AllGather, ReduceScatter and AllToAll with n-1 pieces of S/n a rank; both ways for AllReduce: 2(n-1)·S.
    Patarasuk and Yuan 2009 section 2; Chan, Heimlich, Purkayastha and van de Geijn 2007 table 2.
    """
    check.one_of(OPERATIONS, operation=operation)
    check.non_negative(buffer_bytes=buffer_bytes)
    check.whole(ranks=ranks)
    if operation == "send_recv":
        return ops.where(ranks > 1, 1.0, 0.0) * buffer_bytes
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) * buffer_bytes


def tree_all_reduce_s(buffer_bytes: Real, ranks: Real, bytes_per_s: Real, alpha_s: Real) -> Real:
    """Double binary tree: 2·S/B + 2·⌈log2 n⌉·alpha (Sanders, Speck, Träff 2009; NCCL since 2.4)."""
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(ranks=ranks)
    return ops.where(ranks > 1, 2 * buffer_bytes / bytes_per_s, 0.0) + 2 * ops.log2_ceil(ranks) * alpha_s


def halving_doubling_buffers(ranks: Real) -> tuple[Real, Real]:
    """(buffers sent one after the other, buffers that the busiest rank sends) with halving and doubling.

    2(p-1)/p of both for a power of two. Other counts are first folded to the power of two below, p: each
    excess rank gives its whole buffer to a partner and gets the sum back at the end. That adds two whole
    buffers to the time, and one to what the partner sends. Thakur, Rabenseifner, Gropp 2005 section 4.5;
    executed in ranks_schedules.
    """
    check.whole(ranks=ranks)
    above = 2.0 ** ops.log2_ceil(1.0 * ranks)
    power = ops.where(above > ranks, above / 2.0, above)
    folded = ops.where(above > ranks, 1.0, 0.0)
    halved = 2.0 * (power - 1.0) / power
    return halved + 2.0 * folded, halved + folded


def halving_doubling_all_reduce_s(buffer_bytes: Real, ranks: Real, bytes_per_s: Real, alpha_s: Real) -> Real:
    """Recursive halving, then doubling: 2(n-1)/n·S/B + 2·⌈log2 n⌉·alpha (Thakur, Rabenseifner, Gropp 2005).

    For powers of two; other counts take two whole buffers more (halving_doubling_buffers). Leaves out the
    long wires that the far partners need.
    """
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    passed, _ = halving_doubling_buffers(ranks)
    return passed * buffer_bytes / bytes_per_s + 2 * ops.log2_ceil(ranks) * alpha_s


def as_fast(times_s: Real, best_s: Real, tolerance: Real = 0.02) -> Truth:
    """Which times are within this tolerance of the best: closer than this kind of model can tell apart."""
    return times_s <= (1.0 + tolerance) * best_s


def two_level_all_reduce_s(
    buffer_bytes: Real,
    ranks: Real,
    ranks_per_node: Real,
    link_bytes_per_s: Real,
    link_alpha_s: Real,
    nic_bytes_per_s: Real,
    nic_alpha_s: Real,
) -> Real:
    """ReduceScatter in the node, AllReduce of the g-th parts across m nodes, AllGather in the node, each by a
    textbook ring.

    Leaves out any overlap of the levels.
    """
    check.whole(ranks=ranks, ranks_per_node=ranks_per_node)
    nodes = ranks / ranks_per_node
    inside_s, across_s = two_levels_s(
        buffer_bytes, ranks_per_node, nodes, link_bytes_per_s, link_alpha_s, nic_bytes_per_s, nic_alpha_s
    )
    return inside_s + across_s


def two_levels_s(
    buffer_bytes: Real,
    ranks_per_node: Real,
    nodes: Real,
    link_bytes_per_s: Real,
    link_alpha_s: Real,
    nic_bytes_per_s: Real,
    nic_alpha_s: Real,
) -> tuple[Real, Real]:
    """(inside nodes, between nodes): 2(g-1)/g·S/B_link + 2(g-1)·alpha_link, and
    2(m-1)/m·(S/g)/B_nic + 2(m-1)·alpha_nic, for m nodes of g ranks."""
    check.whole(ranks_per_node=ranks_per_node, nodes=nodes)
    check.non_negative(buffer_bytes=buffer_bytes, link_alpha_s=link_alpha_s, nic_alpha_s=nic_alpha_s)
    check.positive(link_bytes_per_s=link_bytes_per_s, nic_bytes_per_s=nic_bytes_per_s)
    return (
        ring_all_reduce_s(buffer_bytes, ranks_per_node, link_bytes_per_s, link_alpha_s),
        ring_all_reduce_s(buffer_bytes / ranks_per_node, nodes, nic_bytes_per_s, nic_alpha_s),
    )


def two_levels_bytes(buffer_bytes: Real, ranks_per_node: Real, nodes: Real) -> tuple[Real, Real]:
    """(inside nodes, between nodes): what each rank sends in an AllReduce on two levels."""
    check.whole(ranks_per_node=ranks_per_node, nodes=nodes)
    return (
        ring_link_bytes(buffer_bytes, ranks_per_node),
        ring_link_bytes(buffer_bytes / ranks_per_node, nodes),
    )


def ring_bytes_per_s(per_node: Real, nodes: Real, link_bytes_per_s: Real, nic_bytes_per_s: Real) -> Real:
    """The slowest wire on a ring through the group: the link, or all NICs of its members on one node
    together."""
    check.whole(per_node=per_node, nodes=nodes)
    check.positive(link_bytes_per_s=link_bytes_per_s, nic_bytes_per_s=nic_bytes_per_s)
    slower = ops.minimum(link_bytes_per_s, per_node * nic_bytes_per_s)
    return ops.where(nodes > 1.0, slower, link_bytes_per_s)


def ring_hops(ranks: Real, per_node: Real) -> tuple[Real, Real]:
    """(inside nodes, between nodes): the hops of one turn of a ring, N − m and m − 1, with m nodes that are
    filled one after the other."""
    check.whole(ranks=ranks, per_node=per_node)
    nodes = ops.ceil(ranks / per_node)
    return ranks - nodes, nodes - 1.0


def ring_through_nodes_s(
    buffer_bytes: Real,
    ranks: Real,
    ranks_per_node: Real,
    link_bytes_per_s: Real,
    link_alpha_s: Real,
    nic_bytes_per_s: Real,
    nic_alpha_s: Real,
) -> Real:
    """A textbook ring AllReduce through m whole nodes, with a ring for each NIC of a node:
    2(N−1)/N·S/W + 2(N−m)·alpha_link + 2(m−1)·alpha_nic, where W is the slower of the link and of all NICs
    that leave a node. With one rank in each node it is ``ring_all_reduce_s`` over the NICs."""
    check.whole(ranks=ranks, ranks_per_node=ranks_per_node)
    check.non_negative(link_alpha_s=link_alpha_s, nic_alpha_s=nic_alpha_s)
    inside, between = ring_hops(ranks, ranks_per_node)
    rate = ring_bytes_per_s(ranks_per_node, between + 1.0, link_bytes_per_s, nic_bytes_per_s)
    starts_s = 2.0 * (inside * link_alpha_s + between * nic_alpha_s)
    return ring_all_reduce_s(buffer_bytes, ranks, rate, 0.0) + starts_s


def flat_wire(
    ranks: Real,
    ranks_per_node: Real,
    link_bytes_per_s: Real,
    link_alpha_s: Real,
    nic_bytes_per_s: Real,
    nic_alpha_s: Real,
) -> tuple[Real, Real]:
    """(bytes per second, alpha) of the slowest wire used by an algorithm that ignores nodes: the link while
    all ranks share one node, otherwise one NIC per rank."""
    check.whole(ranks=ranks, ranks_per_node=ranks_per_node)
    check.positive(link_bytes_per_s=link_bytes_per_s, nic_bytes_per_s=nic_bytes_per_s)
    check.non_negative(link_alpha_s=link_alpha_s, nic_alpha_s=nic_alpha_s)
    inside = ranks <= ranks_per_node
    return ops.where(inside, link_bytes_per_s, nic_bytes_per_s), ops.where(inside, link_alpha_s, nic_alpha_s)


class Textbook(NamedTuple):
    """An operation whose textbook time is a fixed share of the AllReduce's."""

    key: str
    name: str
    said: str
    of_all_reduce: float


# An AllReduce is a ReduceScatter followed by an AllGather, and in the ring, halving-doubling and two-level
# forms below both take equally long. A tree's halves are a Reduce and a Broadcast, which work on whole
# buffers, so they move more than the operation requires.
TEXTBOOK = (
    Textbook("all_reduce", "AllReduce", "An AllReduce", 1.0),
    Textbook("reduce_scatter", "ReduceScatter", "A ReduceScatter", 0.5),
    Textbook("all_gather", "AllGather", "An AllGather", 0.5),
)


def textbook_all_reduce_s(
    buffer_bytes: Real,
    ranks: Real,
    ranks_per_node: Real,
    link_bytes_per_s: Real,
    link_alpha_s: Real,
    nic_bytes_per_s: Real,
    nic_alpha_s: Real,
) -> tuple[Real, Real, Real, Real]:
    """(ring, tree, halving-doubling, two levels): an AllReduce by each textbook formula, all on the same
    machine, with this many ranks in each node and a NIC for each rank.

    The ring passes through whole nodes (``ring_through_nodes_s``), at whose border the tree meets the same
    wire: a binary tree in each node and one across, 2·S over the slower of link and NICs. Halving begins with
    the nearest rank, so that it stays in the node until a g-th of the buffer is left, and crosses with that.
    With one rank in each node these are the formulas of a single kind of wire. A node that is partly filled
    counts as full, except for the ring's hops.
    """
    check.whole(ranks=ranks, ranks_per_node=ranks_per_node)
    check.non_negative(buffer_bytes=buffer_bytes, link_alpha_s=link_alpha_s, nic_alpha_s=nic_alpha_s)
    link, nic = (link_bytes_per_s, link_alpha_s), (nic_bytes_per_s, nic_alpha_s)
    inside = ops.minimum(ranks, ranks_per_node)
    nodes = ops.ceil(ranks / ranks_per_node)
    rate = ring_bytes_per_s(ranks_per_node, nodes, link_bytes_per_s, nic_bytes_per_s)
    hops_s = 2.0 * (ops.log2_ceil(inside) * link_alpha_s + ops.log2_ceil(nodes) * nic_alpha_s)
    part_bytes = buffer_bytes / inside
    return (
        ring_through_nodes_s(buffer_bytes, ranks, ranks_per_node, *link, *nic),
        tree_all_reduce_s(buffer_bytes, ranks, rate, 0.0) + hops_s,
        halving_doubling_all_reduce_s(buffer_bytes, inside, *link)
        + halving_doubling_all_reduce_s(part_bytes, nodes, *nic),
        two_level_all_reduce_s(buffer_bytes, inside * nodes, inside, *link, *nic),
    )


def half_latency_bytes(buffer_bytes: Real, start_share: Real) -> Real:
    """The buffer at which start-up is half of the time, from start-up's share at another size: S·share/(1 -
    share).

    Valid for any time of the form a + b·S, as all the textbook ones are.
    """
    check.positive(buffer_bytes=buffer_bytes)
    check.between(0.0, 1.0 - 1e-12, start_share=start_share)
    return buffer_bytes * start_share / (1.0 - start_share)


def ring_tree_crossover_bytes(ranks: Real, bytes_per_s: Real, alpha_s: Real) -> Real:
    """The buffer above which the textbook ring beats the double tree: n·B·alpha·(n-1-⌈log2 n⌉); 0 for up to
    two ranks.

    From the two formulas above: the tree sends 2·S/n more bytes, the ring 2(n-1-⌈log2 n⌉) more messages.
    """
    check.whole(ranks=ranks)
    check.non_negative(alpha_s=alpha_s)
    more_hops = 2.0 * ops.maximum(0.0, ranks - 1.0 - ops.log2_ceil(ranks))
    return crossover_bytes(ranks, bytes_per_s, more_hops * alpha_s)


def crossover_bytes(ranks: Real, bytes_per_s: Real, later_s: Real) -> Real:
    """The buffer above which a ring beats a double tree over the same wire, if its start-ups take this much
    longer: the tree sends 2·S/n more bytes, so n·B/2·later."""
    check.whole(ranks=ranks)
    check.positive(bytes_per_s=bytes_per_s)
    check.non_negative(later_s=later_s)
    return ranks * bytes_per_s / 2.0 * later_s
