"""The ranks of a job on the GPUs of a few nodes, numbered in any order of the axes, with two of them swapped.

A launcher fills the nodes one after the other, and the job decides which rank comes next: along the tensor
axis, along the expert axis, or along the copies of the experts. The groups are always the same; the order
alone decides which of their members share a node. A swap of two ranks breaks what every order keeps: that
all groups of an axis lie alike. So each group is counted here GPU by GPU, and its collective takes what its
most uneven node allows (``interconnect.Spread``). The step waits for the slowest group of each axis.

Buffers and calls are those of ``placement.messages``; all nodes are under one leaf. Leaves out the pipeline,
ZeRO, and whatever arithmetic could hide.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.catalog import models
from engine.mechanism import flops, interconnect, matmul, placement
from engine.mechanism.collectives import wire_share

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.mechanism.placement import LeafNetwork, Levels, OfAxes, PlacedStep

NAMES = {"tp": "tensor", "ep": "expert", "copies": "data"}


@dataclass(frozen=True)
class LevelOrder:
    """The position of each level of the mesh, 0 for the innermost."""

    key: str
    name: str
    tp: int
    ep: int
    copies: int


ORDERS = tuple(
    LevelOrder(
        "-".join(NAMES[level] for level in levels), ", ".join(NAMES[level] for level in levels), *places
    )
    for levels in itertools.permutations(NAMES)
    for places in [[levels.index(level) for level in NAMES]]
)
USUAL = ORDERS[0]  # tensor, expert, data: Megatron-LM's default


class Swap(NamedTuple):
    """Two GPUs whose ranks changed places; one and the same GPU for none."""

    one: Real = 0.0
    other: Real = 0.0


def strides(size: Levels, order: LevelOrder = USUAL) -> Levels:
    """How many GPUs lie between neighbours on each level: the product of the sizes of all levels further
    in."""
    found = placement.strides_in({"tp": size.tp, "ep": size.ep, "copies": size.copies}, order)
    return placement.Levels(found["tp"], found["ep"], found["copies"], size.tp * size.ep * size.copies)


def rank_on(gpu: Real, size: Levels, order: LevelOrder = USUAL, swap: Swap = Swap()) -> Real:
    """The rank that runs on each GPU. A rank's number counts the tensor axis first, then experts, then
    copies, whatever the order in which the ranks are laid over the GPUs."""
    check.non_negative(gpu=gpu)
    seat = np.where(gpu == swap.one, swap.other, np.where(gpu == swap.other, swap.one, gpu))
    apart = strides(size, order)
    tensor, expert, copy = (
        placement.coordinate(seat, getattr(size, level), getattr(apart, level)) for level in NAMES
    )
    return tensor + size.tp * (expert + size.ep * copy)


class SpreadGroup(NamedTuple):
    """The group of each GPU along an axis: its lowest rank, how many members share the GPU's node, and how
    all its members are spread."""

    first: Real
    near: Real
    spread: interconnect.Spread


class Groups(NamedTuple):
    """What communicates: the ranks of a tensor group, of an expert group, all data ranks with the same
    weights outside the experts, and those with the same experts."""

    tensor: SpreadGroup
    expert: SpreadGroup
    data: SpreadGroup
    copies: SpreadGroup


def groups(rank: Real, size: Levels, gpus_per_node: Real) -> Groups:
    """The groups of all GPUs, given the rank that runs on each."""
    check.whole(gpus_per_node=gpus_per_node)
    apart = strides(size)
    tensor = placement.group(rank, size.tp, apart.tp)
    expert = placement.group(rank, size.ep, apart.ep)
    copies = placement.group(rank, size.copies, apart.copies)
    data = placement.group(expert, size.copies, apart.copies)
    node = ops.floor(np.arange(float(len(rank))) / gpus_per_node)
    return Groups(*(_grouped(first, node) for first in (tensor, expert, data, copies)))


def _grouped(first: Real, node: Real) -> SpreadGroup:
    gpu = np.arange(float(len(first)))
    mates = first[:, None] == first[None, :]
    near = mates & (node[:, None] == node[None, :])
    beside = np.sum(np.where(near, 1.0, 0.0), axis=-1)
    leads = np.sum(np.where(near & (gpu[None, :] < gpu[:, None]), 1.0, 0.0), axis=-1) < 1  # in its node
    spread = interconnect.Spread(
        ranks=np.sum(np.where(mates, 1.0, 0.0), axis=-1),
        nodes=np.sum(np.where(mates & leads[None, :], 1.0, 0.0), axis=-1),
        fewest=np.min(np.where(mates, beside[None, :], float(len(first))), axis=-1),
        most=np.max(np.where(mates, beside[None, :], 1.0), axis=-1),
    )
    return SpreadGroup(first, beside, spread)


def _all_reduce_wires(buffer_bytes: Real, of: SpreadGroup) -> placement.ByWire:
    """Bytes that an AllReduce has to send at least, on two levels: each member exchanges 2(k − 1)/k of the
    buffer with the k members in its node, which share evenly the 2(m − 1)/m that leave each of m nodes."""
    inside = buffer_bytes * wire_share("all_reduce", of.near)
    leaving = buffer_bytes * wire_share("all_reduce", of.spread.nodes) / of.near
    return placement.ByWire(inside, leaving, 0.0 * leaving)


def wire_bytes(work: PlacedStep, axis_sizes: OfAxes, at: Groups) -> OfAxes:
    """Bytes that each GPU sends in one step, by axis and by wire: at least these through its card, and over
    NVLink, unless its switch adds."""
    m, expert = placement.messages(work, axis_sizes), at.expert
    tensor = m.tensor_bytes * m.tensor_calls + m.tensor_expert_bytes * m.tensor_expert_calls
    data = (
        _all_reduce_wires(m.dense_gradient_bytes, at.data),
        _all_reduce_wires(m.expert_gradient_bytes, at.copies),
    )
    reach = placement.Reach(expert.spread.ranks, expert.near, expert.spread.ranks)  # all under one leaf
    tensors = _all_reduce_wires(tensor, at.tensor)
    return placement.OfAxes(
        tp=tensors,
        ep=placement.all_to_all_wires(m.expert_bytes * m.expert_calls, reach),
        dp=placement.total_bytes(data),
        pp=placement.ByWire(*(0.0 * sent for sent in tensors)),
    )


class StepTimes(NamedTuple):
    """Seconds of one step: its arithmetic, and each axis's communication with nothing hidden."""

    compute: Real
    tensor: Real
    expert: Real
    data: Real

    @property
    def communication(self) -> Real:
        """Seconds of all axes."""
        return self.tensor + self.expert + self.data

    @property
    def step(self) -> Real:
        """Seconds of the step, if nothing hides its communication."""
        return self.compute + self.communication


def step_times_s(
    work: PlacedStep, axis_sizes: OfAxes, at: Groups, gpu: Gpu, fabric: LeafNetwork
) -> StepTimes:
    """The times of a step; every collective by its fastest algorithm, and all wait for the slowest group.

    The arithmetic runs at the rate that kernels reach. Where all groups of an axis lie alike, these are the
    times of ``placement.axis_times_s``.
    """
    check.positive(link_bytes_per_s=gpu.link_bytes_per_s)
    m = placement.messages(work, axis_sizes)
    net = interconnect.wires(gpu, fabric.gpus_per_node, fabric.nic_bytes_per_s_per_gpu)

    def all_reduce_s(buffer_bytes, of: SpreadGroup):
        return interconnect.all_reduce_spread_s(buffer_bytes, of.spread, net)

    tensor_s = m.tensor_calls * all_reduce_s(m.tensor_bytes, at.tensor)
    tensor_s = tensor_s + m.tensor_expert_calls * all_reduce_s(m.tensor_expert_bytes, at.tensor)
    expert_s = m.expert_calls * interconnect.all_to_all_spread_s(m.expert_bytes, at.expert.spread, net)
    held = ops.where(m.expert_gradient_bytes > 0, all_reduce_s(m.expert_gradient_bytes, at.copies), 0.0)
    data_s = all_reduce_s(m.dense_gradient_bytes, at.data) + held
    work_flops = flops.training_flops(models.active_parameters(work.model), work.tokens)
    compute_s = work_flops / (fabric.gpus * matmul.product_flops_per_s(gpu))
    return StepTimes(compute_s, *(np.max(seconds) for seconds in (tensor_s, expert_s, data_s)))
