"""The wires that a group of GPUs really crosses, and what each collective costs on them.

A layout's axes are laid out innermost first: tensor, context, data, pipeline. A group of ``ranks`` GPUs whose members
stand ``stride`` apart has ``per_node`` of them in each node; what leaves the node goes through their NICs, which the
other groups of the same axis need at the same time, so that each GPU has its own share of the node's NICs and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import check, collectives, ops
from engine.calibration import DEFAULT
from engine.collectives import pipelined_s

ALGORITHMS = ("ring", "tree", "two_level", "nvls")      # what ``all_reduce_s`` chooses from, as NCCL does


@dataclass(frozen=True, slots=True)
class Wires:
    """Rates that collectives reach (one way, per GPU) and the time of one hop."""

    gpus_per_node: float
    link_bytes_per_s: float
    nic_bytes_per_s: float
    switch_bytes_per_s: float       # AllReduce in the switch; 0 where it cannot
    link_hop_s: float
    network_hop_s: float
    start_s: float


def wires(gpu, gpus_per_node=None, nic_bytes_per_s=None, oversubscription=1.0, calibration=DEFAULT) -> Wires:
    """The wires around one GPU of the catalogue: its node's fabric and its share of the NICs.

    A GPU without a link of its own talks through its NIC. ``oversubscription`` 2 halves what the fabric lets through.
    """
    per_node = gpu.gpus_per_node if gpus_per_node is None else gpus_per_node
    nic = gpu.nic_bytes_per_s if nic_bytes_per_s is None else nic_bytes_per_s
    check.whole(gpus_per_node=per_node)
    check.positive(nic_bytes_per_s=nic)
    _at_least_one(oversubscription)
    link = ops.where(gpu.link_bytes_per_s > 0, gpu.link_bytes_per_s, nic)
    return Wires(
        gpus_per_node=1.0 * per_node,
        link_bytes_per_s=link * calibration.link_share,
        nic_bytes_per_s=nic * calibration.network_share / oversubscription,
        switch_bytes_per_s=gpu.sums_in_switch * link * calibration.switch_share,
        link_hop_s=calibration.link_hop_s,
        network_hop_s=calibration.network_hop_s,
        start_s=calibration.collective_start_s,
    )


def _at_least_one(oversubscription):
    check.positive(oversubscription=oversubscription)
    if oversubscription < 1:
        raise ValueError(f"oversubscription must be at least 1, got {oversubscription!r}")


def _require_group(sent_bytes, ranks, per_node) -> None:
    """Bytes of at least zero; whole ranks, of which a node holds no more than there are."""
    if not check.is_trusted():
        check.non_negative(bytes=sent_bytes)
        check.whole(ranks=ranks, per_node=per_node)
        check.non_negative(ranks_elsewhere=ranks - per_node)


def ranks_per_node(ranks, stride, gpus_per_node):
    """How many of a group's members share a node, when they stand ``stride`` GPUs apart."""
    if not check.is_trusted():
        check.whole(ranks=ranks, stride=stride, gpus_per_node=gpus_per_node)
    return ops.minimum(ranks, ops.maximum(1.0, ops.floor(gpus_per_node / stride)))


def ring_bytes_per_s(per_node, nodes, net: Wires):
    """The slowest wire on a ring through the group: the link, or the NICs of its members in one node together."""
    slower = ops.minimum(net.link_bytes_per_s, per_node * net.nic_bytes_per_s)
    return ops.where(nodes > 1.0, slower, net.link_bytes_per_s)


def all_gather_s(buffer_bytes, ranks, per_node, net: Wires):
    """AllGather or ReduceScatter of a whole buffer by a ring: (n-1)/n·S over the slowest wire, n-1 hops.

    Leaves out NCCL's tree-like PAT algorithm, which shortens the hops of large groups.
    """
    _require_group(buffer_bytes, ranks, per_node)
    nodes = ops.ceil(ranks / per_node)
    hops_s = (nodes - 1.0) * net.network_hop_s + (ranks - nodes) * net.link_hop_s
    transfer_s = buffer_bytes * ((ranks - 1.0) / ranks) / ring_bytes_per_s(per_node, nodes, net)
    return ops.where(ranks > 1.0, net.start_s, 0.0) + pipelined_s(hops_s, transfer_s)


def ring_s(buffer_bytes, ranks, per_node, net: Wires):
    """AllReduce by a ring: ReduceScatter, then AllGather, started once."""
    return 2.0 * all_gather_s(buffer_bytes, ranks, per_node, net) - ops.where(ranks > 1.0, net.start_s, 0.0)


def tree_s(buffer_bytes, ranks, per_node, net: Wires):
    """AllReduce by double binary trees across nodes, each node a chain: 2·S over the slowest wire, few hops."""
    _require_group(buffer_bytes, ranks, per_node)
    nodes = ops.ceil(ranks / per_node)
    hops_s = 2.0 * (ops.log2_ceil(nodes) * net.network_hop_s + (per_node - 1.0) * net.link_hop_s)
    transfer_s = ops.where(ranks > 1.0, 2.0 * buffer_bytes, 0.0) / ring_bytes_per_s(per_node, nodes, net)
    return ops.where(ranks > 1.0, net.start_s, 0.0) + pipelined_s(hops_s, transfer_s)


def two_level_s(buffer_bytes, ranks, per_node, net: Wires):
    """AllReduce in two levels: ReduceScatter in the node, AllReduce of the pieces across, AllGather in the node."""
    _require_group(buffer_bytes, ranks, per_node)
    nodes = ops.ceil(ranks / per_node)
    inside_s = pipelined_s((per_node - 1.0) * net.link_hop_s,
                           buffer_bytes * ((per_node - 1.0) / per_node) / net.link_bytes_per_s)
    across_s = pipelined_s(2.0 * (nodes - 1.0) * net.network_hop_s,
                           2.0 * buffer_bytes / per_node * ((nodes - 1.0) / nodes) / net.nic_bytes_per_s)
    return ops.where(ranks > 1.0, net.start_s, 0.0) + 2.0 * inside_s + across_s


def nvls_s(buffer_bytes, ranks, per_node, net: Wires):
    """AllReduce in the switch: each GPU sends its buffer once and receives the sum. Where it cannot be had (across
    nodes, or without such a switch) it is given the ring's time."""
    _require_group(buffer_bytes, ranks, per_node)
    up_and_down_s = pipelined_s(6.0 * net.link_hop_s, buffer_bytes / ops.maximum(net.switch_bytes_per_s, 1.0))
    possible = (net.switch_bytes_per_s > 0.0) & (ranks > 2.0) & (ranks <= per_node)
    return ops.where(possible, net.start_s + up_and_down_s, ring_s(buffer_bytes, ranks, per_node, net))


def one_shot_s(buffer_bytes, ranks, per_node, net: Wires):
    """AllReduce in one hop: every GPU reads the others' whole buffers and adds them up itself; for the small messages
    of decoding (TensorRT-LLM, vLLM). Within a node alone: across nodes it is given the ring's time."""
    _require_group(buffer_bytes, ranks, per_node)
    inside_s = net.start_s + pipelined_s(net.link_hop_s, buffer_bytes * (ranks - 1.0) / net.link_bytes_per_s)
    together_s = ops.where(ranks <= per_node, inside_s, ring_s(buffer_bytes, ranks, per_node, net))
    return ops.where(ranks <= 1.0, 0.0, together_s)


def all_reduce_s(buffer_bytes, ranks, per_node, net: Wires):
    """The fastest of ring, tree, two levels and the switch: what NCCL's tuner is after."""
    flat = ops.minimum(ring_s(buffer_bytes, ranks, per_node, net), tree_s(buffer_bytes, ranks, per_node, net))
    return ops.minimum(flat, ops.minimum(two_level_s(buffer_bytes, ranks, per_node, net),
                                         nvls_s(buffer_bytes, ranks, per_node, net)))


def all_to_all_s(sent_bytes, ranks, per_node, net: Wires):
    """Every rank sends 1/n of ``sent_bytes`` to each rank: the part that stays in the node by the link, the rest by its
    NIC at the same time. Leaves out incast and uneven pieces (see experts.py for the imbalance)."""
    _require_group(sent_bytes, ranks, per_node)
    inside_s = sent_bytes * ((per_node - 1.0) / ranks) / net.link_bytes_per_s
    across_s = sent_bytes * ((ranks - per_node) / ranks) / net.nic_bytes_per_s
    hops_s = ops.where(ranks > per_node, net.network_hop_s, ops.where(ranks > 1.0, net.link_hop_s, 0.0))
    return ops.where(ranks > 1.0, net.start_s, 0.0) + pipelined_s(hops_s, ops.maximum(inside_s, across_s))


def send_s(message_bytes, leaves_node, net: Wires):
    """One message to one neighbour: by the link, or by this GPU's share of the NICs where ``leaves_node``."""
    if not check.is_trusted():
        check.non_negative(message_bytes=message_bytes)
    rate = ops.where(leaves_node, net.nic_bytes_per_s, net.link_bytes_per_s)
    hop_s = ops.where(leaves_node, net.network_hop_s, net.link_hop_s)
    return net.start_s + pipelined_s(hop_s, message_bytes / rate)


def collective_s(operation: str, buffer_bytes, ranks, per_node, net: Wires):
    """The time of any operation for a group with ``per_node`` members in each node (ranks must be a multiple of it)."""
    check.one_of(collectives.OPERATIONS, operation=operation)
    check.non_negative(buffer_bytes=buffer_bytes)
    check.whole(ranks=ranks, per_node=per_node)
    if operation == "all_reduce":
        return all_reduce_s(buffer_bytes, ranks, per_node, net)
    if operation in ("all_gather", "reduce_scatter"):
        return all_gather_s(buffer_bytes, ranks, per_node, net)
    if operation == "all_to_all":
        return all_to_all_s(buffer_bytes, ranks, per_node, net)
    if operation == "send_recv":
        return ops.where(ranks > 1, send_s(buffer_bytes, ranks > per_node, net), 0.0)
    return tree_s(buffer_bytes, ranks, per_node, net) / 2.0     # one way down (or up) the same trees


def algorithm(operation: str, buffer_bytes: float, ranks: float, per_node: float, net: Wires) -> str:
    """The name of what ``collective_s`` timed; for an AllReduce, the fastest of ALGORITHMS."""
    if operation == "all_reduce":
        functions = {"ring": ring_s, "tree": tree_s, "two_level": two_level_s, "nvls": nvls_s}
        times = {name: functions[name](buffer_bytes, ranks, per_node, net) for name in ALGORITHMS}
        return min(times, key=times.get)
    return {"all_gather": "ring", "reduce_scatter": "ring", "all_to_all": "pairwise", "send_recv": "direct"}.get(
        operation, "tree")
