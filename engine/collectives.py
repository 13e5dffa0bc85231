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


def tree_all_reduce_s(buffer_bytes, ranks, bytes_per_s, alpha_s):
    """Double binary tree: 2·S/B + 2·⌈log2 n⌉·alpha (Sanders, Speck, Träff 2009; NCCL since 2.4)."""
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(ranks=ranks)
    return ops.where(ranks > 1, 2 * buffer_bytes / bytes_per_s, 0.0) + 2 * ops.log2_ceil(ranks) * alpha_s


def halving_doubling_all_reduce_s(buffer_bytes, ranks, bytes_per_s, alpha_s):
    """Recursive halving, then doubling: 2(n-1)/n·S/B + 2·⌈log2 n⌉·alpha (Thakur, Rabenseifner, Gropp 2005).

    For powers of two; leaves out the extra round of other counts, and the long wires that the far partners need.
    """
    check.non_negative(buffer_bytes=buffer_bytes, alpha_s=alpha_s)
    check.positive(bytes_per_s=bytes_per_s)
    check.whole(ranks=ranks)
    return 2 * (ranks - 1) / ranks * buffer_bytes / bytes_per_s + 2 * ops.log2_ceil(ranks) * alpha_s


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


def ring_tree_crossover_bytes(ranks, bytes_per_s, alpha_s):
    """The buffer above which the textbook ring beats the double tree: n·B·alpha·(n-1-⌈log2 n⌉); 0 for up to two ranks.

    From the two forms above: the tree sends 2·S/n more, the ring takes 2(n-1-⌈log2 n⌉) more messages.
    """
    check.whole(ranks=ranks)
    check.positive(bytes_per_s=bytes_per_s)
    check.non_negative(alpha_s=alpha_s)
    return ranks * bytes_per_s * alpha_s * ops.maximum(0.0, ranks - 1.0 - ops.log2_ceil(ranks))
