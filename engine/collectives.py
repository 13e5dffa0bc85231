"""What a collective operation costs: the alpha-beta forms, and the bytes each rank puts on its wires.

Hockney's model: a message of S bytes takes alpha + S / B. A collective of ``hops`` dependent messages moves its bytes in
chunks; with the best chunk size the start-up of the chunks adds the geometric mean of both ends:

    time = start + (sqrt(hops·alpha) + sqrt(S_wire / B))²  =  start + hops·alpha + S_wire/B + 2·sqrt(hops·alpha·S_wire/B)

The textbook form leaves out the last term (chunks that are infinitely small and free); ``textbook_s`` gives it.
"""

from __future__ import annotations

from engine import check, ops

OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "send_recv")


def pipelined_s(hops_s, transfer_s):
    """(√hops + √transfer)²: hops in sequence with the transfer cut in chunks of the best size (Hockney 1994; the optimum
    of α·(hops + n) + S/B·(1 + hops/n) over the number of chunks n)."""
    return hops_s + transfer_s + 2.0 * ops.sqrt(hops_s * transfer_s)


def wire_share(operation: str, ranks):
    """Bytes that each rank sends, as a share of the buffer: 2(n-1)/n for AllReduce by a ring, (n-1)/n for its halves.

    Patarasuk and Yuan 2009. The buffer is the whole one: n times the piece of a rank for AllGather and ReduceScatter.
    """
    check.one_of(OPERATIONS, operation=operation)
    check.whole(ranks=ranks)
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if operation in ("reduce_scatter", "all_gather", "all_to_all"):
        return (ranks - 1) / ranks
    return ops.where(ranks > 1, 1.0, 0.0)


def algorithm_bandwidth(buffer_bytes, time_s):
    """nccl-tests' algbw: bytes of the buffer per second."""
    check.positive(buffer_bytes=buffer_bytes, time_s=time_s)
    return buffer_bytes / time_s


def bus_bandwidth(operation: str, ranks, buffer_bytes, time_s):
    """nccl-tests' busbw: algbw times the share that crosses a wire, so that it can be held against the link's rate.

    By definition it keeps 2(n-1)/n where the switch does the sum, and may then exceed the link (doc/PERFORMANCE.md).
    """
    return algorithm_bandwidth(buffer_bytes, time_s) * wire_share(operation, ranks)


def ring_all_reduce_s(buffer_bytes, ranks, bytes_per_s, alpha_s):
    """Textbook ring: 2(n-1)/n·S/B + 2(n-1)·alpha. Its bandwidth term hardly depends on n; its latency term grows with n."""
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(ranks=ranks)
    return 2 * (ranks - 1) / ranks * buffer_bytes / bytes_per_s + 2 * (ranks - 1) * alpha_s


def ring_chunks(ranks, chunks_per_rank):
    """Chunks that a buffer is cut in: so many for each rank, and at least one."""
    check.whole(ranks=ranks)
    check.non_negative(chunks_per_rank=chunks_per_rank)
    return ops.maximum(1.0, ops.floor(ranks * chunks_per_rank))


def ring_steps(ranks, chunks):
    """Steps of a ring AllReduce: 2(n-1), again for each further n chunks."""
    check.whole(ranks=ranks, chunks=chunks)
    return 2 * (ranks - 1) * ops.ceil(chunks / ranks)


def chunk_bytes(buffer_bytes, chunks):
    """One of the equal chunks that a buffer is cut in."""
    check.non_negative(buffer_bytes=buffer_bytes)
    check.whole(chunks=chunks)
    return buffer_bytes / chunks


def chain_links(ranks):
    """Links of a chain through all ranks: n-1. The first of p pieces needs as many steps, the others p-1 more behind it."""
    check.whole(ranks=ranks)
    return ranks - 1


def idle_links(ranks, chunks):
    """Links of a ring that carry nothing in a step, where the chunks are fewer than the ranks."""
    check.whole(ranks=ranks, chunks=chunks)
    return ops.maximum(0.0, ranks - 1.0 * chunks)


def ring_step_s(buffer_bytes, chunks, bytes_per_s, alpha_s):
    """One step of it: alpha + S/(c·B)."""
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(chunks=chunks)
    return alpha_s + buffer_bytes / chunks / bytes_per_s


def chunked_ring_all_reduce_s(buffer_bytes, ranks, chunks, bytes_per_s, alpha_s):
    """Ring with any number of chunks: steps · (alpha + S/(c·B)); the textbook's where there are as many as ranks.

    With fewer, n - c of the n links idle in each step. The schedule of ranks_schedules.ring_all_reduce.
    """
    return ring_steps(ranks, chunks) * ring_step_s(buffer_bytes, chunks, bytes_per_s, alpha_s)


def ring_link_bytes(buffer_bytes, ranks):
    """2(n-1)/n·S: what each link of the ring carries, and the least that any AllReduce has each rank send."""
    check.non_negative(buffer_bytes=buffer_bytes)
    return wire_share("all_reduce", ranks) * buffer_bytes


def least_total_bytes(operation: str, ranks, buffer_bytes):
    """The least that must cross wires in all, over every rank, whichever the algorithm.

    Each of the others must receive (Broadcast) or send (Reduce) a whole buffer: (n-1)·S, the same for AllGather,
    ReduceScatter and AllToAll with n-1 pieces of S/n a rank; both ways for AllReduce: 2(n-1)·S. Patarasuk and Yuan 2009
    section 2; Chan, Heimlich, Purkayastha and van de Geijn 2007 table 2.
    """
    check.one_of(OPERATIONS, operation=operation)
    check.non_negative(buffer_bytes=buffer_bytes)
    check.whole(ranks=ranks)
    if operation == "send_recv":
        return ops.where(ranks > 1, 1.0, 0.0) * buffer_bytes
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) * buffer_bytes


def latency_share(time_s, alpha_s_only):
    """The share of a time that is start-up: what would remain if the buffer were empty, over the whole."""
    check.positive(time_s=time_s)
    check.non_negative(alpha_s_only=alpha_s_only)
    return alpha_s_only / time_s


def tree_all_reduce_s(buffer_bytes, ranks, bytes_per_s, alpha_s):
    """Double binary tree: 2·S/B + 2·⌈log2 n⌉·alpha (Sanders, Speck, Träff 2009; NCCL since 2.4)."""
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(ranks=ranks)
    return ops.where(ranks > 1, 2 * buffer_bytes / bytes_per_s, 0.0) + 2 * ops.log2_ceil(ranks) * alpha_s


def halving_doubling_buffers(ranks):
    """(buffers that pass one after the other, buffers that the busiest rank sends) by halving and doubling.

    2(p-1)/p of both for a power of two. Other counts first fold what exceeds the power p below: each excess rank gives
    its whole buffer to a partner, and gets the sum from it in the end. That is two more whole buffers in the time, and
    one more that the partner sends. Thakur, Rabenseifner, Gropp 2005 section 4.5; ranks_schedules runs it.
    """
    check.whole(ranks=ranks)
    above = 2.0 ** ops.log2_ceil(1.0 * ranks)
    power = ops.where(above > ranks, above / 2.0, above)
    folded = ops.where(above > ranks, 1.0, 0.0)
    halved = 2.0 * (power - 1.0) / power
    return halved + 2.0 * folded, halved + folded


def halving_doubling_all_reduce_s(buffer_bytes, ranks, bytes_per_s, alpha_s):
    """Recursive halving, then doubling: 2(n-1)/n·S/B + 2·⌈log2 n⌉·alpha (Thakur, Rabenseifner, Gropp 2005).

    For powers of two; other counts take two whole buffers more (halving_doubling_buffers). Leaves out the long wires
    that the far partners need.
    """
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    passed, _ = halving_doubling_buffers(ranks)
    return passed * buffer_bytes / bytes_per_s + 2 * ops.log2_ceil(ranks) * alpha_s


def as_fast(times_s, best_s, tolerance=0.02):
    """Which times are within so much of the best: closer than a model of this kind can tell apart."""
    return times_s <= (1.0 + tolerance) * best_s


def two_level_all_reduce_s(buffer_bytes, ranks, ranks_per_node, link_bytes_per_s, link_alpha_s, nic_bytes_per_s,
                           nic_alpha_s):
    """ReduceScatter in the node, AllReduce of a g-th across m nodes, AllGather in the node, each by a textbook ring:

    2(g-1)/g·S/B_link + 2(g-1)·alpha_link + 2(m-1)/m·(S/g)/B_nic + 2(m-1)·alpha_nic. Leaves out what the levels overlap.
    """
    check.whole(ranks=ranks, ranks_per_node=ranks_per_node)
    nodes = ranks / ranks_per_node
    check.whole(nodes=nodes)
    return (ring_all_reduce_s(buffer_bytes, ranks_per_node, link_bytes_per_s, link_alpha_s)
            + ring_all_reduce_s(buffer_bytes / ranks_per_node, nodes, nic_bytes_per_s, nic_alpha_s))


def flat_wire(ranks, ranks_per_node, link_bytes_per_s, link_alpha_s, nic_bytes_per_s, nic_alpha_s):
    """(bytes per second, alpha) of the slowest wire that an algorithm meets which knows nothing of nodes: the link
    while all ranks share one node, one NIC for each rank beyond."""
    check.whole(ranks=ranks, ranks_per_node=ranks_per_node)
    check.positive(link_bytes_per_s=link_bytes_per_s, nic_bytes_per_s=nic_bytes_per_s)
    check.non_negative(link_alpha_s=link_alpha_s, nic_alpha_s=nic_alpha_s)
    inside = ranks <= ranks_per_node
    return ops.where(inside, link_bytes_per_s, nic_bytes_per_s), ops.where(inside, link_alpha_s, nic_alpha_s)


def textbook_all_reduce_s(buffer_bytes, ranks, ranks_per_node, link_bytes_per_s, link_alpha_s, nic_bytes_per_s,
                          nic_alpha_s):
    """(ring, tree, halving-doubling, two levels): an AllReduce by each textbook form, on nodes of so many ranks.

    The first three are flat. Leaves out NCCL's several rings, one for each NIC, which give a flat ring the bandwidth of
    two levels (interconnect.ring_bytes_per_s has them). A node that is not full counts as full for two levels.
    """
    wire = flat_wire(ranks, ranks_per_node, link_bytes_per_s, link_alpha_s, nic_bytes_per_s, nic_alpha_s)
    per_node = ops.minimum(ranks, ranks_per_node)
    return (ring_all_reduce_s(buffer_bytes, ranks, *wire), tree_all_reduce_s(buffer_bytes, ranks, *wire),
            halving_doubling_all_reduce_s(buffer_bytes, ranks, *wire),
            two_level_all_reduce_s(buffer_bytes, per_node * ops.ceil(ranks / per_node), per_node, link_bytes_per_s,
                                   link_alpha_s, nic_bytes_per_s, nic_alpha_s))


def half_latency_bytes(buffer_bytes, start_share):
    """The buffer at which start-ups are half of the time, from their share at another: S·share/(1 - share).

    For any form a + b·S, which all the textbook ones are.
    """
    check.positive(buffer_bytes=buffer_bytes)
    check.between(0.0, 1.0 - 1e-12, start_share=start_share)
    return buffer_bytes * start_share / (1.0 - start_share)


def ring_tree_crossover_bytes(ranks, bytes_per_s, alpha_s):
    """The buffer above which the textbook ring beats the double tree: n·B·alpha·(n-1-⌈log2 n⌉); 0 for up to two ranks.

    From the two forms above: the tree sends 2·S/n more, the ring takes 2(n-1-⌈log2 n⌉) more messages.
    """
    check.whole(ranks=ranks)
    check.positive(bytes_per_s=bytes_per_s)
    check.non_negative(alpha_s=alpha_s)
    return ranks * bytes_per_s * alpha_s * ops.maximum(0.0, ranks - 1.0 - ops.log2_ceil(ranks))
