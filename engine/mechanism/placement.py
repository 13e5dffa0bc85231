"""Where the traffic of each parallel axis runs, given the order of the axes: over NVLink, through the NICs,
or up to the spine.

GPUs are numbered node by node; the members of an axis of stride 1 are neighbours, those of an axis of stride
8 are every eighth GPU. So the order of the axes alone decides which groups stay inside a node. Every size is
a power of two, so that groups and nodes nest. Expert ranks are taken out of the data ranks, as in ``mesh``:
each expert has dp/ep copies. Bytes are those of rings (``ranks`` executes them); times come
from ``interconnect``, axis by axis, with nothing hidden behind arithmetic. Leaves out context parallelism,
ZeRO and recomputation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration import DEFAULT
from engine.catalog import models
from engine.mechanism import interconnect, memory
from engine.mechanism.collectives import wire_share

if TYPE_CHECKING:
    from engine.calibration.constants import Calibration
    from engine.catalog.hardware import Gpu

VALUE_BYTES = 2.0  # bf16: activations, and gradients unless stated otherwise


@dataclass(frozen=True)
class Axis:
    """A parallel axis."""

    key: str
    name: str


# in the usual order, innermost first
AXES = (Axis("tp", "Tensor"), Axis("ep", "Expert"), Axis("dp", "Data"), Axis("pp", "Pipeline"))


class OfAxes(NamedTuple):
    """One number (or ``ByWire``) for each axis, in the order of AXES."""

    tp: Any
    ep: Any
    dp: Any
    pp: Any


class Levels(NamedTuple):
    """One number (or ``Reach``) for each level of the mesh: the data ranks are expert ranks times copies."""

    tp: Any
    ep: Any
    copies: Any
    pp: Any


class ByWire(NamedTuple):
    """Bytes by wire; what crosses the spine has crossed a NIC too, and is counted in both."""

    link: Real
    nic: Real
    spine: Real


@dataclass(frozen=True)
class LeafNetwork:
    """The network around the nodes: each leaf switch serves ``nodes_per_leaf`` nodes, and the spine joins the
    leaves.

    This is wiring by node. With one leaf per rail (the GPUs of one index, in up to 32 nodes of a DGX
    SuperPOD), traffic that keeps to its rail reaches the spine only beyond those nodes: set
    ``nodes_per_leaf`` to their number.

    ``oversubscription`` 2 means that a leaf has half as much bandwidth up to the spine as down to its nodes.
    """

    nodes: float
    gpus_per_node: float = 8.0
    nics_per_node: float = 8.0
    nic_bytes_per_s: float = 50e9
    oversubscription: float = 1.0
    nodes_per_leaf: float = 4.0

    def __post_init__(self) -> None:
        check.whole(nics_per_node=self.nics_per_node)
        check.positive(nic_bytes_per_s=self.nic_bytes_per_s)
        check.between(1, 1000, oversubscription=self.oversubscription)
        _powers_of_two(nodes=self.nodes, gpus_per_node=self.gpus_per_node, nodes_per_leaf=self.nodes_per_leaf)

    @property
    def gpus(self) -> Real:
        """GPUs of all nodes."""
        return self.nodes * self.gpus_per_node

    @property
    def gpus_per_leaf(self) -> Real:
        """GPUs whose nodes share one leaf switch."""
        return self.nodes_per_leaf * self.gpus_per_node

    @property
    def nic_bytes_per_s_per_gpu(self) -> Real:
        """One-way bandwidth out of the node, shared evenly by its GPUs."""
        return self.nics_per_node * self.nic_bytes_per_s / self.gpus_per_node


class Switches(NamedTuple):
    """What joins network cards in two levels of equal switches."""

    down: Real  # ports of a leaf that lead to cards
    leaves: Real
    cables: Real  # from all leaves up to the spine
    spines: Real


def switches(cards: Real, oversubscription: Real = 1.0, ports: Real = 64.0) -> Switches:
    """The least switches and cables for this many cards: of a leaf's ports o/(1 + o) lead down, rounded down.

    NVIDIA's reference design for 1,024 H100s has 64 ports on a switch and o = 1, hence 32 leaves and 16
    spines. Leaves out that rails may want more leaves than their cards fill, and a third level.
    """
    check.whole(cards=cards, ports=ports)
    check.between(1, 1000, oversubscription=oversubscription)
    down = ops.floor(ports * oversubscription / (1.0 + oversubscription))
    count = ops.ceil(cards / down)
    cables = count * (ports - down)
    return Switches(down, count, cables, ops.ceil(cables / ports))


@dataclass(frozen=True)
class PlacedStep:
    """One training step: ``global_batch`` sequences of ``seq`` tokens, ``micro_batch`` at a time."""

    model: models.Model
    global_batch: float
    seq: float
    micro_batch: float = 1.0
    gradient_bytes: float = VALUE_BYTES

    def __post_init__(self) -> None:
        check.whole(global_batch=self.global_batch, seq=self.seq, micro_batch=self.micro_batch)
        check.positive(gradient_bytes=self.gradient_bytes)

    @property
    def tokens(self) -> Real:
        """Tokens of one step, over all GPUs."""
        return self.global_batch * self.seq


def _powers_of_two(**values):
    check.whole(**values)
    if not check.is_trusted():
        for name, value in values.items():
            exponent = np.log2(value)
            if np.any(exponent != np.floor(exponent)):
                raise ValueError(f"{name} must be a power of two, got {value!r}")


def gpus(nodes: Real, gpus_per_node: Real) -> Real:
    """The number of GPUs in all nodes together."""
    check.whole(nodes=nodes, gpus_per_node=gpus_per_node)
    return nodes * gpus_per_node


def leaves(nodes: Real, nodes_per_leaf: Real) -> Real:
    """The number of leaf switches that the nodes need."""
    check.whole(nodes=nodes, nodes_per_leaf=nodes_per_leaf)
    return ops.ceil(nodes / nodes_per_leaf)


# -- where the groups are ----------------------------------------------------------------------------------
def sizes(gpus: Real, tp: Real = 1.0, ep: Real = 1.0, pp: Real = 1.0) -> OfAxes:
    """The axes' sizes: data parallelism takes the GPUs that tensor and pipeline ranks leave, and expert ranks
    are data ranks too, so they take no GPUs of their own."""
    _powers_of_two(gpus=gpus, tp=tp, ep=ep, pp=pp)
    check.ordered(tp_times_pp=tp * pp, gpus=gpus)
    check.ordered(ep=ep, data_ranks=gpus / (tp * pp))
    return OfAxes(tp, ep, gpus / (tp * pp), pp)


def fitted_sizes(gpus: Real, tp: Real = 1.0, ep: Real = 1.0, pp: Real = 1.0, experts: Real = 0.0) -> OfAxes:
    """``sizes`` when the requested ones may be too large: tensor parallelism gets its size first, then the
    pipeline, then experts, which get no more ranks than there are experts (rounded to a power of two; one
    rank for a dense model)."""
    _powers_of_two(gpus=gpus, tp=tp, ep=ep, pp=pp)
    check.non_negative(experts=experts)
    tp = ops.minimum(tp, gpus)
    pp = ops.minimum(pp, gpus / tp)
    most = 2.0 ** ops.floor(np.log2(ops.maximum(experts, 1.0)))
    return sizes(gpus, tp, ops.minimum(ops.minimum(ep, most), gpus / (tp * pp)), pp)


def levels(axis_sizes: OfAxes) -> Levels:
    """How many ranks each level of the mesh has."""
    return Levels(axis_sizes.tp, axis_sizes.ep, axis_sizes.dp / axis_sizes.ep, axis_sizes.pp)


def strides(axis_sizes: OfAxes, innermost: Real) -> Levels:
    """The distance between neighbours on each level, once the axis with this index is moved innermost; the
    others keep their order. Data ranks move with their expert ranks inside them. Megatron-LM's default is
    tp-cp-ep-dp-pp."""
    check.between(0, len(AXES) - 1, innermost=innermost)
    inwards = ops.where(innermost == 2, 4.0, 0.0)  # the data axis consists of both of its levels
    places = (
        ops.where(innermost == 0, -4.0, 0.0),
        1.0 - ops.where(innermost == 1, 4.0, inwards),
        2.0 - inwards,
        ops.where(innermost == 3, -1.0, 3.0),
    )
    found = []
    for own in places:
        inside = 1.0
        for other, size in zip(places, levels(axis_sizes)):
            inside = inside * ops.where(other < own, size, 1.0)
        found.append(inside)
    return Levels(*found)


def coordinates(gpu: Real, axis_sizes: OfAxes, innermost: Real) -> OfAxes:
    """A GPU's coordinate on each axis; its data rank counts the expert ranks first, then the copies."""
    tp, ep, copy, pp = (
        coordinate(gpu, size, stride)
        for size, stride in zip(levels(axis_sizes), strides(axis_sizes, innermost))
    )
    return OfAxes(tp, ep, ep + axis_sizes.ep * copy, pp)


def groups(gpu: Real, axis_sizes: OfAxes, innermost: Real) -> OfAxes:
    """The first GPU of the group that a GPU belongs to along each axis."""
    size, stride = levels(axis_sizes), strides(axis_sizes, innermost)
    alone = [group(gpu, ranks, apart) for ranks, apart in zip(size, stride)]
    return OfAxes(alone[0], alone[1], group(alone[1], size.copies, stride.copies), alone[3])


def strides_in(axes: dict[str, Real], order: Any) -> dict[str, Real]:
    """How many GPUs lie between neighbours on each of these axes: the product of the sizes of all axes
    further in. ``order`` has a place for each of them, the innermost first."""
    found = {}
    for axis in axes:
        stride = 1.0
        for other, wide in axes.items():
            stride = stride * ops.where(getattr(order, other) < getattr(order, axis), wide, 1.0)
        found[axis] = stride
    return found


def coordinate(gpu: Real, size: Real, stride: Real) -> Real:
    """A GPU's coordinate in its group along an axis: ⌊gpu/stride⌋ mod size."""
    block = ops.floor(gpu / stride)
    return block - size * ops.floor(block / size)


def group(gpu: Real, size: Real, stride: Real) -> Real:
    """The first GPU of the group that a GPU belongs to along an axis: two GPUs communicate if theirs is the
    same."""
    return gpu - coordinate(gpu, size, stride) * stride


class Reach(NamedTuple):
    """A group: its ranks, and how many of them share a node and a leaf switch."""

    ranks: Real
    per_node: Real
    per_leaf: Real


def reach(size: Real, stride: Real, fabric: LeafNetwork) -> Reach:
    """The group of one axis."""
    return Reach(
        size,
        interconnect.ranks_per_node(size, stride, fabric.gpus_per_node),
        interconnect.ranks_per_node(size, stride, fabric.gpus_per_leaf),
    )


def joint(one: Reach, other: Reach) -> Reach:
    """The group over two axes at once: in an aligned block of GPUs, each axis takes its values
    independently."""
    return Reach(*(a * b for a, b in zip(one, other)))


def reaches(axis_sizes: OfAxes, innermost: Real, fabric: LeafNetwork) -> Levels:
    """The group of each level in a placement."""
    return Levels(
        *(
            reach(size, stride, fabric)
            for size, stride in zip(levels(axis_sizes), strides(axis_sizes, innermost))
        )
    )


def replicas(at: Levels) -> Reach:
    """The group of all data ranks, which sum the gradients of everything outside the experts."""
    return joint(at.copies, at.ep)


WAYS = ("nowhere", "link", "nic", "spine")


def farthest(at: Reach) -> Real:
    """Index into WAYS of the farthest wire that a group uses; 0 for a group of one, which sends nothing."""
    inside = ops.where(at.ranks > 1, 1.0, 0.0)
    return ops.where(at.ranks > at.per_leaf, 3.0, ops.where(at.ranks > at.per_node, 2.0, inside))


def ways(axis_sizes: OfAxes, innermost: Real, fabric: LeafNetwork) -> OfAxes:
    """The farthest wire of each axis."""
    at = reaches(axis_sizes, innermost, fabric)
    return OfAxes(farthest(at.tp), farthest(at.ep), farthest(replicas(at)), farthest(at.pp))


class HeldParameters(NamedTuple):
    """Parameters on one GPU: its part of the dense ones, and of the routed experts."""

    dense: Real
    experts: Real


def held_parameters(model: models.Model, axis_sizes: OfAxes) -> HeldParameters:
    """Tensor and pipeline ranks split everything, expert ranks only the experts; each expert rank holds all
    the rest."""
    tp, ep, _, pp = axis_sizes
    routed = models.routed_parameters(model)
    return HeldParameters((models.parameters(model) - routed) / (tp * pp), routed / (tp * pp * ep))


def state_bytes(model: models.Model, axis_sizes: OfAxes, stage: Real = 0) -> Real:
    """Training state on one GPU under a ZeRO stage: the copies of an expert share its state, all data ranks
    the rest.

    Bytes per parameter as in ``memory.sharded_state_bytes``; stages are taken as equal, although the first
    and last hold more.
    """
    held = held_parameters(model, axis_sizes)
    return memory.sharded_state_bytes(
        held.dense, ranks=axis_sizes.dp, stage=stage
    ) + memory.sharded_state_bytes(held.experts, ranks=levels(axis_sizes).copies, stage=stage)


# -- traffic of a step ---------------------------------------------------------------------------------------
class AxisMessages(NamedTuple):
    """Bytes of each collective's buffer, and how many times a GPU takes part in it per step."""

    tensor_bytes: Real  # AllReduce after attention and after a dense MLP
    tensor_calls: Real
    tensor_expert_bytes: Real  # … and after experts: top_k copies of each token
    tensor_expert_calls: Real
    expert_bytes: Real  # AllToAll: dispatch and combine
    expert_calls: Real
    dense_gradient_bytes: Real  # AllReduce over all data ranks
    expert_gradient_bytes: Real  # AllReduce over the copies of an expert
    stage_bytes: Real  # to the next stage, or a gradient to the one before
    micro_batches: Real


def messages(work: PlacedStep, axis_sizes: OfAxes) -> AxisMessages:
    """The messages of one GPU in a step of plain 3D parallelism with experts.

    Tensor: two AllReduces per layer and direction (Shoeybi et al. 2019, section 3). Experts: two AllToAlls
    per layer and direction (GShard, 2020). Data: one AllReduce of the gradients. Pipeline: each micro-batch's
    activations forward and their gradients back, each tensor rank its share (Narayanan et al. 2021, section
    4.1). Leaves out recomputation, ZeRO, and the sums of embedding and output layer across stages.
    """
    model, (tp, _, dp, pp) = work.model, axis_sizes
    micro_batches = work.global_batch / (dp * work.micro_batch)
    check.whole(micro_batches=micro_batches)
    hidden_bytes = work.micro_batch * work.seq * model.hidden * VALUE_BYTES
    moe_layers = models.moe_layers(model)
    products = model.depth + ops.where(model.parallel_block, 0.0, 1.0) * models.dense_layers(model)
    held = held_parameters(model, axis_sizes)
    per_direction = micro_batches / pp
    return AxisMessages(
        tensor_bytes=hidden_bytes,
        tensor_calls=2.0 * products * per_direction,
        tensor_expert_bytes=model.top_k * hidden_bytes,
        tensor_expert_calls=2.0 * moe_layers * per_direction,
        expert_bytes=model.top_k * hidden_bytes / tp,
        expert_calls=4.0 * moe_layers * per_direction,
        dense_gradient_bytes=work.gradient_bytes * held.dense,
        expert_gradient_bytes=work.gradient_bytes * held.experts,
        stage_bytes=hidden_bytes / tp,
        micro_batches=micro_batches,
    )


# -- bytes on the wires --------------------------------------------------------------------------------------
def leaving(sent_bytes: Real, ranks: Real, together: Real) -> Real:
    """Bytes that a member of a ring sends out of a place (a node, a leaf) that holds ``together`` of its
    ranks, on average: one hop in ``together`` leads out of the place, and none does if all ranks are
    there."""
    return ops.where(ranks > together, sent_bytes / together, 0.0)


def ring_wires(sent_bytes: Real, at: Reach) -> ByWire:
    """Bytes that a GPU sends around a ring, by wire, on average."""
    nic = leaving(sent_bytes, at.ranks, at.per_node)
    spine = leaving(sent_bytes, at.ranks, at.per_leaf)
    return ByWire(sent_bytes - nic, nic, spine)


def all_to_all_wires(buffer_bytes: Real, at: Reach) -> ByWire:
    """Bytes by wire in an AllToAll: each rank gets an equal part, so the parts for ranks on other nodes, and
    under other leaves, must travel there."""
    return ByWire(
        buffer_bytes * (at.per_node - 1.0) / at.ranks,
        buffer_bytes * (at.ranks - at.per_node) / at.ranks,
        buffer_bytes * (at.ranks - at.per_leaf) / at.ranks,
    )


def all_to_all_floor_s(buffer_bytes: Real, fabric: LeafNetwork) -> Real:
    """A lower bound for an AllToAll over all GPUs of a fabric, from its network: max(1 − 1/m, o·(1 −
    1/L))·S/B.

    Of each GPU's buffer, 1 − 1/m goes to other nodes through its NIC, and 1 − 1/L to other leaves over shared
    uplinks; m nodes, L leaves, oversubscription o, B the NICs' rate per GPU. Leaves out start-up, collisions
    and NVLink.
    """
    check.non_negative(buffer_bytes=buffer_bytes)
    beyond_leaf = 1.0 - 1.0 / leaves(fabric.nodes, fabric.nodes_per_leaf)
    share = ops.maximum(1.0 - 1.0 / fabric.nodes, fabric.oversubscription * beyond_leaf)
    return share * buffer_bytes / fabric.nic_bytes_per_s_per_gpu


def chain_wires(message_bytes: Real, at: Reach) -> ByWire:
    """Bytes to the next rank of a chain, averaged over its ranks: the last sends nothing, and one hop in
    ``per_node`` leaves the node."""
    nic = message_bytes * (at.ranks / at.per_node - 1.0) / at.ranks
    spine = message_bytes * (at.ranks / at.per_leaf - 1.0) / at.ranks
    return ByWire(message_bytes * (at.ranks - 1.0) / at.ranks - nic, nic, spine)


def _sum(*wires: ByWire) -> ByWire:
    return ByWire(*(sum(parts[1:], parts[0]) for parts in zip(*wires)))


def wire_bytes(work: PlacedStep, axis_sizes: OfAxes, innermost: Real, fabric: LeafNetwork) -> OfAxes:
    """Bytes that a GPU sends in one step, on average, by axis and by wire."""
    m, at = messages(work, axis_sizes), reaches(axis_sizes, innermost, fabric)
    tensor = m.tensor_bytes * m.tensor_calls + m.tensor_expert_bytes * m.tensor_expert_calls
    whole = replicas(at)
    return OfAxes(
        tp=ring_wires(tensor * wire_share("all_reduce", at.tp.ranks), at.tp),
        ep=all_to_all_wires(m.expert_bytes * m.expert_calls, at.ep),
        dp=_sum(
            ring_wires(m.dense_gradient_bytes * wire_share("all_reduce", whole.ranks), whole),
            ring_wires(m.expert_gradient_bytes * wire_share("all_reduce", at.copies.ranks), at.copies),
        ),
        pp=chain_wires(2.0 * m.micro_batches * m.stage_bytes, at.pp),
    )


def total_bytes(by_axis: tuple[ByWire, ...]) -> ByWire:
    """Bytes that a GPU sends in a step on each wire, over all axes."""
    return _sum(*by_axis)


def busy_share(wires: ByWire, gpu: Gpu, fabric: LeafNetwork, compute_s: Real) -> ByWire:
    """``busy_s`` as a share of the step's compute time; above 1 the wire alone takes longer than
    computing."""
    check.positive(compute_s=compute_s)
    return ByWire(*(seconds / compute_s for seconds in busy_s(wires, gpu, fabric)))


def busy_s(wires: ByWire, gpu: Gpu, fabric: LeafNetwork) -> ByWire:
    """How long each wire is busy with these bytes at its full one-way rate: a lower bound of the time."""
    nic = fabric.nic_bytes_per_s_per_gpu
    return ByWire(
        wires.link / gpu.link_bytes_per_s, wires.nic / nic, wires.spine * fabric.oversubscription / nic
    )


# -- time ----------------------------------------------------------------------------------------------------
def group_wires(
    gpu: Gpu, fabric: LeafNetwork, at: Reach, calibration: Calibration = DEFAULT
) -> interconnect.Wires:
    """The wires of one group: its share of the NICs, less where it crosses an oversubscribed spine."""
    through = ops.where(at.ranks > at.per_leaf, fabric.oversubscription, 1.0)
    return interconnect.wires(
        gpu, fabric.gpus_per_node, fabric.nic_bytes_per_s_per_gpu / through, calibration=calibration
    )


def axis_times_s(
    work: PlacedStep, axis_sizes: OfAxes, innermost: Real, gpu: Gpu, fabric: LeafNetwork
) -> OfAxes:
    """Seconds of communication in one step, by axis, with nothing hidden; each collective by its fastest
    algorithm.

    For the pipeline these are the messages on a step's critical path: every micro-batch across one boundary,
    plus filling and draining.
    """
    check.positive(link_bytes_per_s=gpu.link_bytes_per_s)
    m, at = messages(work, axis_sizes), reaches(axis_sizes, innermost, fabric)

    def all_reduce_s(buffer_bytes, where: Reach):
        return interconnect.all_reduce_s(
            buffer_bytes, where.ranks, where.per_node, group_wires(gpu, fabric, where)
        )

    tensor_s = m.tensor_calls * all_reduce_s(m.tensor_bytes, at.tp) + m.tensor_expert_calls * all_reduce_s(
        m.tensor_expert_bytes, at.tp
    )
    expert_s = m.expert_calls * interconnect.all_to_all_s(
        m.expert_bytes, at.ep.ranks, at.ep.per_node, group_wires(gpu, fabric, at.ep)
    )
    data_s = all_reduce_s(m.dense_gradient_bytes, replicas(at)) + ops.where(
        m.expert_gradient_bytes > 0, all_reduce_s(m.expert_gradient_bytes, at.copies), 0.0
    )
    hop_s = interconnect.send_s(m.stage_bytes, at.pp.ranks > at.pp.per_node, group_wires(gpu, fabric, at.pp))
    pipeline_s = ops.where(at.pp.ranks > 1, 2.0 * (m.micro_batches + at.pp.ranks - 1.0) * hop_s, 0.0)
    return OfAxes(tensor_s, expert_s, data_s, pipeline_s)
