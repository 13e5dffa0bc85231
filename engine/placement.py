"""Where each parallel axis's traffic runs: over NVLink, through the NICs, or up to the spine, by the order of the axes.

GPUs are numbered node by node; an axis of stride 1 has its members side by side, one of stride 8 has them in every
eighth GPU. So the order of the axes alone decides which group stays inside a node. Every size is a power of two, so
that groups and nodes nest. Bytes are those of rings (``ranks`` executes them); seconds are ``interconnect``'s, axis by
axis, with nothing hidden behind arithmetic. Leaves out context parallelism, ZeRO and recomputation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine import check, interconnect, memory, models, ops
from engine.calibration import DEFAULT
from engine.collectives import wire_share

VALUE_BYTES = 2.0                   # bf16: activations, and gradients unless said otherwise


@dataclass(frozen=True)
class Axis:
    """A parallel axis and its place in the usual order, innermost first."""

    key: str
    name: str
    index: int


AXES = (Axis("tp", "Tensor", 0), Axis("ep", "Expert", 1), Axis("dp", "Data", 2), Axis("pp", "Pipeline", 3))


class ByAxis(NamedTuple):
    """One number (or ``ByWire``) for each axis, in the order of AXES."""

    tp: object
    ep: object
    dp: object
    pp: object


class ByWire(NamedTuple):
    """Bytes by wire; what passes the spine has passed a NIC too, and is counted in both."""

    link: object
    nic: object
    spine: object


@dataclass(frozen=True)
class Fabric:
    """The network around the nodes: every leaf switch serves ``nodes_per_leaf`` of them, the spine joins the leaves.

    That is wiring by node. With a leaf for each rail (GPUs of one number, in up to 32 nodes of a DGX SuperPOD) what keeps
    to its rail meets the spine only beyond those nodes: set ``nodes_per_leaf`` to their count.

    ``oversubscription`` 2 means that a leaf has half as much bandwidth up to the spine as down to its nodes.
    """

    nodes: float
    gpus_per_node: float = 8.0
    nics_per_node: float = 8.0
    nic_bytes_per_s: float = 50e9
    oversubscription: float = 1.0
    nodes_per_leaf: float = 4.0

    def __post_init__(self):
        check.whole(nics_per_node=self.nics_per_node)
        check.positive(nic_bytes_per_s=self.nic_bytes_per_s)
        check.between(1, 1000, oversubscription=self.oversubscription)
        _powers_of_two(nodes=self.nodes, gpus_per_node=self.gpus_per_node, nodes_per_leaf=self.nodes_per_leaf)

    @property
    def gpus(self):
        return self.nodes * self.gpus_per_node

    @property
    def gpus_per_leaf(self):
        return self.nodes_per_leaf * self.gpus_per_node

    @property
    def nic_bytes_per_s_per_gpu(self):
        """One way out of the node, shared evenly by its GPUs."""
        return self.nics_per_node * self.nic_bytes_per_s / self.gpus_per_node


@dataclass(frozen=True)
class Work:
    """One training step: ``global_batch`` sequences of ``seq`` tokens, ``micro_batch`` at a time."""

    model: object
    global_batch: float
    seq: float
    micro_batch: float = 1.0
    gradient_bytes: float = VALUE_BYTES

    def __post_init__(self):
        check.whole(global_batch=self.global_batch, seq=self.seq, micro_batch=self.micro_batch)
        check.positive(gradient_bytes=self.gradient_bytes)

    @property
    def tokens(self):
        """Of one step, over all GPUs."""
        return self.global_batch * self.seq


def _powers_of_two(**values):
    check.whole(**values)
    if not check.is_trusted():
        for name, value in values.items():
            exponent = np.log2(value)
            if np.any(exponent != np.floor(exponent)):
                raise ValueError(f"{name} must be a power of two, got {value!r}")


def gpus(nodes, gpus_per_node):
    """In all nodes together."""
    check.whole(nodes=nodes, gpus_per_node=gpus_per_node)
    return nodes * gpus_per_node


def leaves(nodes, nodes_per_leaf):
    """Leaf switches that the nodes need."""
    check.whole(nodes=nodes, nodes_per_leaf=nodes_per_leaf)
    return ops.ceil(nodes / nodes_per_leaf)


# -- where the groups stand ------------------------------------------------------------------------------------------
def sizes(gpus, tp=1.0, ep=1.0, pp=1.0) -> ByAxis:
    """The axes' sizes: data parallelism takes the GPUs that the others leave. It holds ep copies of the dense weights
    besides its own, since expert ranks are data-parallel for everything but their experts."""
    _powers_of_two(gpus=gpus, tp=tp, ep=ep, pp=pp)
    check.ordered(tp_times_ep_times_pp=tp * ep * pp, gpus=gpus)
    return ByAxis(tp, ep, gpus / (tp * ep * pp), pp)


def fitted_sizes(gpus, tp=1.0, ep=1.0, pp=1.0, experts=0.0) -> ByAxis:
    """``sizes`` for wishes that may be too large: tensor parallelism is served first, then the pipeline, then experts,
    which have no more ranks than there are experts (a power of two of them; one rank for a dense model)."""
    _powers_of_two(gpus=gpus, tp=tp, ep=ep, pp=pp)
    check.non_negative(experts=experts)
    tp = ops.minimum(tp, gpus)
    pp = ops.minimum(pp, gpus / tp)
    most = 2.0 ** ops.floor(np.log2(ops.maximum(experts, 1.0)))
    return sizes(gpus, tp, ops.minimum(ops.minimum(ep, most), gpus / (tp * pp)), pp)


def strides(axis_sizes: ByAxis, innermost) -> ByAxis:
    """How far apart the members of each axis's groups stand, once the axis of that index is moved innermost; the others
    keep their order. Megatron-LM's default is tp-cp-ep-dp-pp."""
    check.between(0, len(AXES) - 1, innermost=innermost)
    found = []
    for own in AXES:
        inside = 1.0
        for other, size in zip(AXES, axis_sizes):
            if other.index < own.index:
                inside = inside * size
            elif other.index > own.index:
                inside = inside * ops.where(innermost == other.index, size, 1.0)
        found.append(ops.where(innermost == own.index, 1.0, inside))
    return ByAxis(*found)


def coordinate(gpu, size, stride):
    """A GPU's place in its group along an axis: ⌊gpu/stride⌋ mod size."""
    block = ops.floor(gpu / stride)
    return block - size * ops.floor(block / size)


def group(gpu, size, stride):
    """The first GPU of the group that a GPU belongs to along an axis: two GPUs talk if theirs is the same."""
    return gpu - coordinate(gpu, size, stride) * stride


class Reach(NamedTuple):
    """A group: its ranks, how many of them share a node, and how many a leaf switch."""

    ranks: object
    per_node: object
    per_leaf: object


def reach(size, stride, fabric: Fabric) -> Reach:
    """The group of one axis."""
    return Reach(size, interconnect.ranks_per_node(size, stride, fabric.gpus_per_node),
                 interconnect.ranks_per_node(size, stride, fabric.gpus_per_leaf))


def joint(one: Reach, other: Reach) -> Reach:
    """The group over two axes at once: in an aligned block of GPUs each axis takes its values independently."""
    return Reach(*(a * b for a, b in zip(one, other)))


def reaches(axis_sizes: ByAxis, innermost, fabric: Fabric) -> ByAxis:
    """The group of each axis for a placement."""
    return ByAxis(*(reach(size, stride, fabric) for size, stride in zip(axis_sizes, strides(axis_sizes, innermost))))


WAYS = ("nowhere", "link", "nic", "spine")


def farthest(at: Reach):
    """Index into WAYS of the farthest wire that a group needs; 0 for a group of one, which sends nothing."""
    inside = ops.where(at.ranks > 1, 1.0, 0.0)
    return ops.where(at.ranks > at.per_leaf, 3.0, ops.where(at.ranks > at.per_node, 2.0, inside))


def ways(axis_sizes: ByAxis, innermost, fabric: Fabric) -> ByAxis:
    """The farthest wire of each axis; data parallelism sums dense gradients over the expert ranks too."""
    at = reaches(axis_sizes, innermost, fabric)
    return ByAxis(farthest(at.tp), farthest(at.ep), farthest(joint(at.dp, at.ep)), farthest(at.pp))


class Held(NamedTuple):
    """Parameters on one GPU: its part of what every token passes, and of the routed experts."""

    dense: object
    experts: object


def held_parameters(model, axis_sizes: ByAxis) -> Held:
    """Tensor and pipeline ranks cut everything, expert ranks the experts alone: the rest stands on each of them."""
    tp, ep, _, pp = axis_sizes
    routed = models.moe_layers(model) * model.experts * models.expert_parameters(model)
    return Held((models.parameters(model) - routed) / (tp * pp), routed / (tp * pp * ep))


def state_bytes(model, axis_sizes: ByAxis, stage=0):
    """Training state on one GPU under a ZeRO stage: data ranks share the experts' state, data and expert ranks the rest's.

    Bytes a parameter as in ``memory.sharded_state_bytes``; stages are taken as even, though the first and last hold more.
    """
    held = held_parameters(model, axis_sizes)
    return (memory.sharded_state_bytes(held.dense, ranks=axis_sizes.dp * axis_sizes.ep, stage=stage)
            + memory.sharded_state_bytes(held.experts, ranks=axis_sizes.dp, stage=stage))


# -- what a step sends -----------------------------------------------------------------------------------------------
class Messages(NamedTuple):
    """Bytes of each collective's buffer, and how often a GPU takes part in it in one step."""

    tensor_bytes: object            # AllReduce behind attention and behind a dense MLP
    tensor_calls: object
    tensor_expert_bytes: object     # … and behind experts: top_k copies of each token
    tensor_expert_calls: object
    expert_bytes: object            # AllToAll: dispatch and combine
    expert_calls: object
    dense_gradient_bytes: object    # AllReduce over data and expert ranks
    expert_gradient_bytes: object   # AllReduce over data ranks
    stage_bytes: object             # to the next stage, or a gradient to the one before
    micro_batches: object


def messages(work: Work, axis_sizes: ByAxis) -> Messages:
    """What one GPU sends in a step of plain 3D parallelism with experts.

    Tensor: two AllReduces a layer and direction (Shoeybi et al. 2019, section 3). Experts: two AllToAlls a layer and
    direction (GShard, 2020). Data: one AllReduce of the gradients. Pipeline: each micro-batch's activations, and their
    gradients back, each tensor rank its share (Narayanan et al. 2021, section 4.1).
    Leaves out recomputation, ZeRO, and the sums of embedding and output layer across stages.
    """
    model, (tp, ep, dp, pp) = work.model, axis_sizes
    micro_batches = work.global_batch / (dp * ep * work.micro_batch)
    check.whole(micro_batches=micro_batches)
    hidden_bytes = work.micro_batch * work.seq * model.hidden * VALUE_BYTES
    moe_layers = models.moe_layers(model)
    products = model.layers + ops.where(model.parallel_block, 0.0, 1.0) * models.dense_layers(model)
    held = held_parameters(model, axis_sizes)
    per_direction = micro_batches / pp
    return Messages(
        tensor_bytes=hidden_bytes, tensor_calls=2.0 * products * per_direction,
        tensor_expert_bytes=model.top_k * hidden_bytes, tensor_expert_calls=2.0 * moe_layers * per_direction,
        expert_bytes=model.top_k * hidden_bytes / tp, expert_calls=4.0 * moe_layers * per_direction,
        dense_gradient_bytes=work.gradient_bytes * held.dense,
        expert_gradient_bytes=work.gradient_bytes * held.experts,
        stage_bytes=hidden_bytes / tp, micro_batches=micro_batches)


# -- bytes on the wires ----------------------------------------------------------------------------------------------
def ring_wires(sent_bytes, at: Reach) -> ByWire:
    """What a GPU sends around a ring, by wire, on average: of ``per_node`` hops one leaves the node."""
    nic = ops.where(at.ranks > at.per_node, sent_bytes / at.per_node, 0.0)
    spine = ops.where(at.ranks > at.per_leaf, sent_bytes / at.per_leaf, 0.0)
    return ByWire(sent_bytes - nic, nic, spine)


def all_to_all_wires(buffer_bytes, at: Reach) -> ByWire:
    """Each rank gets an equal part: what is for the ranks beyond the node, and beyond the leaf, has to go there."""
    return ByWire(buffer_bytes * (at.per_node - 1.0) / at.ranks, buffer_bytes * (at.ranks - at.per_node) / at.ranks,
                  buffer_bytes * (at.ranks - at.per_leaf) / at.ranks)


def all_to_all_floor_s(buffer_bytes, fabric: Fabric):
    """The least time of an AllToAll over all GPUs of a fabric, by its network: max(1 − 1/m, o·(1 − 1/L))·S/B.

    Of each GPU's buffer 1 − 1/m is for other nodes and passes its NIC, 1 − 1/L for other leaves and shares their uplinks;
    m nodes, L leaves, oversubscription o, B the NICs' rate for a GPU. Leaves out start-up, collisions and NVLink.
    """
    check.non_negative(buffer_bytes=buffer_bytes)
    beyond_leaf = 1.0 - 1.0 / leaves(fabric.nodes, fabric.nodes_per_leaf)
    share = ops.maximum(1.0 - 1.0 / fabric.nodes, fabric.oversubscription * beyond_leaf)
    return share * buffer_bytes / fabric.nic_bytes_per_s_per_gpu


def chain_wires(message_bytes, at: Reach) -> ByWire:
    """To the next of a chain, on average over its ranks: the last has none, one hop in ``per_node`` leaves the node."""
    nic = message_bytes * (at.ranks / at.per_node - 1.0) / at.ranks
    spine = message_bytes * (at.ranks / at.per_leaf - 1.0) / at.ranks
    return ByWire(message_bytes * (at.ranks - 1.0) / at.ranks - nic, nic, spine)


def _sum(*wires: ByWire) -> ByWire:
    return ByWire(*(sum(parts[1:], parts[0]) for parts in zip(*wires)))


def wire_bytes(work: Work, axis_sizes: ByAxis, innermost, fabric: Fabric) -> ByAxis:
    """Bytes that a GPU sends in one step, on average, by axis and by wire."""
    m, at = messages(work, axis_sizes), reaches(axis_sizes, innermost, fabric)
    tensor = m.tensor_bytes * m.tensor_calls + m.tensor_expert_bytes * m.tensor_expert_calls
    replicas = joint(at.dp, at.ep)
    return ByAxis(
        tp=ring_wires(tensor * wire_share("all_reduce", at.tp.ranks), at.tp),
        ep=all_to_all_wires(m.expert_bytes * m.expert_calls, at.ep),
        dp=_sum(ring_wires(m.dense_gradient_bytes * wire_share("all_reduce", replicas.ranks), replicas),
                ring_wires(m.expert_gradient_bytes * wire_share("all_reduce", at.dp.ranks), at.dp)),
        pp=chain_wires(2.0 * m.micro_batches * m.stage_bytes, at.pp))


def total_bytes(by_axis: ByAxis) -> ByWire:
    """Over all axes: what a GPU sends in a step on each wire."""
    return _sum(*by_axis)


def drawn_bytes(wires: ByWire, fabric: Fabric) -> ByWire:
    """The same on the wires of a drawing: a GPU to its switch, a node to its leaf, a leaf to the spine."""
    return ByWire(wires.link, wires.nic * fabric.gpus_per_node, wires.spine * fabric.gpus_per_leaf)


def busy_share(wires: ByWire, gpu, fabric: Fabric, compute_s) -> ByWire:
    """The same as a share of the time that the step computes for; above 1 the wire alone takes longer."""
    check.positive(compute_s=compute_s)
    return ByWire(*(seconds / compute_s for seconds in busy_s(wires, gpu, fabric)))


def busy_s(wires: ByWire, gpu, fabric: Fabric) -> ByWire:
    """For how long each wire is busy with them at its full one-way rate: the least time they can take."""
    nic = fabric.nic_bytes_per_s_per_gpu
    return ByWire(wires.link / gpu.link_bytes_per_s, wires.nic / nic, wires.spine * fabric.oversubscription / nic)


def uplink_share(oversubscription):
    """A leaf's bandwidth up to the spine as a share of that down to its nodes."""
    check.between(1, 1000, oversubscription=oversubscription)
    return 1.0 / oversubscription


# -- time ------------------------------------------------------------------------------------------------------------
def group_wires(gpu, fabric: Fabric, at: Reach, calibration=DEFAULT) -> interconnect.Wires:
    """The wires of one group: its share of the NICs, less where it meets an oversubscribed spine."""
    through = ops.where(at.ranks > at.per_leaf, fabric.oversubscription, 1.0)
    return interconnect.Wires(
        gpus_per_node=fabric.gpus_per_node, link_bytes_per_s=gpu.link_bytes_per_s * calibration.link_share,
        nic_bytes_per_s=fabric.nic_bytes_per_s_per_gpu * calibration.network_share / through,
        switch_bytes_per_s=gpu.sums_in_switch * gpu.link_bytes_per_s * calibration.switch_share,
        link_hop_s=calibration.link_hop_s, network_hop_s=calibration.network_hop_s,
        start_s=calibration.collective_start_s)


def axis_times_s(work: Work, axis_sizes: ByAxis, innermost, gpu, fabric: Fabric) -> ByAxis:
    """Seconds of communication in one step, by axis, if nothing hid it; each collective by its fastest algorithm.

    The pipeline's are those on the way of a step: every micro-batch through one boundary, and filling and draining.
    """
    check.positive(link_bytes_per_s=gpu.link_bytes_per_s)
    m, at = messages(work, axis_sizes), reaches(axis_sizes, innermost, fabric)
    replicas = joint(at.dp, at.ep)

    def all_reduce_s(buffer_bytes, where: Reach):
        return interconnect.all_reduce_s(buffer_bytes, where.ranks, where.per_node, group_wires(gpu, fabric, where))

    tensor_s = (m.tensor_calls * all_reduce_s(m.tensor_bytes, at.tp)
                + m.tensor_expert_calls * all_reduce_s(m.tensor_expert_bytes, at.tp))
    expert_s = m.expert_calls * interconnect.all_to_all_s(m.expert_bytes, at.ep.ranks, at.ep.per_node,
                                                          group_wires(gpu, fabric, at.ep))
    data_s = all_reduce_s(m.dense_gradient_bytes, replicas) + ops.where(
        m.expert_gradient_bytes > 0, all_reduce_s(m.expert_gradient_bytes, at.dp), 0.0)
    hop_s = interconnect.send_s(m.stage_bytes, at.pp.ranks > at.pp.per_node, group_wires(gpu, fabric, at.pp))
    pipeline_s = ops.where(at.pp.ranks > 1, 2.0 * (m.micro_batches + at.pp.ranks - 1.0) * hop_s, 0.0)
    return ByAxis(tensor_s, expert_s, data_s, pipeline_s)


def against_compute(communication_s, compute_s):
    """Seconds of communication for each second of arithmetic; above 1 it cannot all hide behind it."""
    check.non_negative(communication_s=communication_s)
    check.positive(compute_s=compute_s)
    return communication_s / compute_s
