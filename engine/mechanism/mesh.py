"""The device mesh: a rank's coordinates on the parallel axes, its peers, and the effect of the axes' order.

Ranks are numbered node by node. The innermost axis has stride 1, the next one the size of the innermost, and
so on; a rank's coordinate on an axis is ⌊rank/stride⌋ mod size (``placement``). Expert ranks are neighbours
among the data ranks: their axis lies within the data axis. Where they are ``folded``, as in Megatron-LM
(arXiv:2504.14960), they are neighbours among all ranks of a stage instead, on a mesh of their own. Every size
is a power of two, so that groups and nodes nest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real, Truth
from engine.mechanism import interconnect
from engine.mechanism.placement import coordinate, group, strides_in

NAMES = ("tensor", "context", "expert", "data", "pipeline")
RELATIONS = ("none", "itself", *NAMES)


class ByAxis(NamedTuple):
    """One number for each axis, in the order of NAMES."""

    tp: Real
    cp: Real
    ep: Real
    dp: Real
    pp: Real


@dataclass(frozen=True)
class Order:
    """The position of each axis, 0 for the innermost."""

    key: str
    name: str
    tp: int
    cp: int
    dp: int
    pp: int


ORDERS = tuple(
    Order("-".join(axes), name, *(axes.index(axis) for axis in ("tp", "cp", "dp", "pp")))
    for axes, name in (
        (("tp", "cp", "dp", "pp"), "tensor, context, data, pipeline"),  # Megatron-LM's default
        (
            ("tp", "cp", "pp", "dp"),
            "tensor, context, pipeline, data",
        ),  # Llama 3 (arXiv:2407.21783 section 3.3.2)
        (("dp", "tp", "cp", "pp"), "data, tensor, context, pipeline"),
        (("pp", "tp", "cp", "dp"), "pipeline, tensor, context, data"),
    )
)
USUAL = ORDERS[0]


def sizes(
    gpus: Real, tp: Real = 1.0, pp: Real = 1.0, cp: Real = 1.0, ep: Real = 1.0, folded: Truth = False
) -> ByAxis:
    """The axes' sizes, when the requested ones may be too large: tensor gets its size first, then pipeline
    and context; data takes what is left, and the expert ranks are part of it, or ``folded`` of all ranks of a
    stage."""
    check.whole(gpus=gpus, tp=tp, pp=pp, cp=cp, ep=ep)
    tp = ops.minimum(tp, gpus)
    pp = ops.minimum(pp, gpus / tp)
    cp = ops.minimum(cp, gpus / (tp * pp))
    dp = gpus / (tp * pp * cp)
    return ByAxis(tp, cp, ops.minimum(ep, ops.where(folded, tp * cp * dp, dp)), dp, pp)


def strides(size: ByAxis, order: Order = USUAL) -> ByAxis:
    """The distance between neighbours on each axis: the product of the sizes of all axes further in."""
    found = strides_in({"tp": size.tp, "cp": size.cp, "dp": size.dp, "pp": size.pp}, order)
    return ByAxis(found["tp"], found["cp"], found["dp"], found["dp"], found["pp"])


def in_stage(rank: Real, size: ByAxis, order: Order = USUAL) -> Real:
    """A rank's number among those of its stage, in the order of the ranks."""
    stride = strides(size, order).pp
    return rank % stride + ops.floor(rank / (stride * size.pp)) * stride


def coordinates(rank: Real, size: ByAxis, order: Order = USUAL, folded: Truth = False) -> ByAxis:
    """A rank's coordinate on each axis."""
    check.non_negative(rank=rank)
    at = ByAxis(*(coordinate(rank, wide, stride) for wide, stride in zip(size, strides(size, order))))
    return at._replace(ep=ops.where(folded, in_stage(rank, size, order) % size.ep, at.ep))


def folded_stride(size: ByAxis, order: Order = USUAL) -> Real:
    """The distance between neighbours among the folded expert ranks: 1, or a stage's next rank where the
    pipeline is the innermost axis."""
    return ops.where(strides(size, order).pp > 1.0, 1.0, size.pp)


def peers(ranks: Real, rank: Real, size: ByAxis, order: Order = USUAL, folded: Truth = False) -> ByAxis:
    """For each axis, which of ``ranks`` are in the same group as ``rank`` (which is in it too)."""
    check.non_negative(ranks=ranks, rank=rank)
    found = ByAxis(
        *(
            group(ranks, wide, stride) == group(rank, wide, stride)
            for wide, stride in zip(size, strides(size, order))
        )
    )
    stage = strides(size, order).pp
    together = ops.floor(in_stage(ranks, size, order) / size.ep) == ops.floor(
        in_stage(rank, size, order) / size.ep
    )
    same_stage = coordinate(ranks, size.pp, stage) == coordinate(rank, size.pp, stage)
    return found._replace(ep=ops.where(folded, together & same_stage, found.ep))


def relation(ranks: Real, rank: Real, size: ByAxis, order: Order = USUAL, folded: Truth = False) -> Real:
    """Index into RELATIONS of how each rank relates to ``rank``. A data peer in the same expert group counts
    as the closer relation, an expert peer; where the experts are ``folded``, so does any other peer."""
    at = peers(ranks, rank, size, order, folded)
    found = np.where(at.pp, 6.0, 0.0)
    for index, same in ((5, at.dp), (4, at.ep), (3, at.cp), (2, at.tp), (4, at.ep & folded)):
        found = np.where(same, float(index), found)
    return np.where(ranks == rank, 1.0, found)


def nodes(size: ByAxis, order: Order, gpus_per_node: Real, folded: Truth = False) -> ByAxis:
    """The number of nodes over which a group of each axis is spread."""
    at = strides(size, order)
    found = ByAxis(
        *(wide / interconnect.ranks_per_node(wide, stride, gpus_per_node) for wide, stride in zip(size, at))
    )
    # folded: neighbours as far as the stage's ranks are, then on in its next stretch
    near = ops.minimum(size.ep, at.pp)
    stretches = size.ep / near
    spread = (near / interconnect.ranks_per_node(near, 1.0, gpus_per_node)) * (
        stretches / interconnect.ranks_per_node(stretches, at.pp * size.pp, gpus_per_node)
    )
    return found._replace(ep=ops.where(folded, spread, found.ep))


def node(rank: Real, gpus_per_node: Real) -> Real:
    """The node on which a rank runs."""
    check.whole(gpus_per_node=gpus_per_node)
    return ops.floor(rank / gpus_per_node)
