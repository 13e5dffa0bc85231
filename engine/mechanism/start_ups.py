"""The start-up of a hop, α: what a message in a collective pays on each wire, however few its bytes.

NCCL has three protocols, each a straight line over the bytes (``calibration.exchange``, ``wires.Network``).
The α of this module is the start-up of the first one, for small messages. With it and the wire's own rate,
α + S/B is what ``interconnect`` charges at both ends: for small messages, where that protocol is used, and
for large ones, where start-ups no longer count. In between, where NCCL changes protocols, it is too low.

So a textbook ring with these α is a lower bound: the fitted ring of ``interconnect`` takes between once and
twice as long (``RING_OFF``), with a call's own ``start_s`` added. Nothing else in the course charges a hop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import catalog
from engine.base import check, ops
from engine.base.types import Real
from engine.calibration import known
from engine.mechanism import collectives

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu, Link, Node

# The fitted ring's time over the textbook ring's, with a call's start added: whole nodes of eight H100s, 8 to
# 4,096 ranks, 1 kB to 100 GB. tests/engine/mechanism/test_start_ups.py sweeps it.
RING_OFF = (1.0, 2.1)


def hop_s(wire: Link) -> Real:
    """α of one hop over a wire of the catalogue.

    Between nodes: NCCL's latency of its low-latency protocol (LL; graph/tuning.cc of 2.28, 2.7 µs), or what a
    run of nccl-tests shows on a network where one was found (links.toml). Inside: fitted to collectives
    measured in a box with this link (calibration, 0.76 µs for an H100's NVLink). On a torus: as published. A
    link that joins no two GPUs of any node has NCCL's.
    """
    return ops.each(wire, _of)


def bulk_hop_s(wire: Link) -> Real:
    """α of one hop of a message that fills the wire: NCCL's Simple protocol, or what nccl-tests showed."""
    return ops.each(wire, lambda of: of.full_s or of.latency_s)


def measured_on(wire: Link) -> str:
    """The origin of a wire's α in ``hop_s``, in words: the GPUs in whose box it was fitted, or who published
    it."""
    if wire.axes:
        return "its sources"
    if wire.short_s:
        return "nccl-tests" if wire.full_s else "NCCL"
    if not _having(wire):
        return "NCCL"
    box, gpus = known.box_of(_measured_with(wire)), catalog.all_gpus()
    return gpus[box].name if box in gpus else box.replace("-", " ").upper() or "all boxes"


def _of(wire: Link) -> float:
    if wire.short_s or wire.axes or not _having(wire):
        return wire.short_s or wire.latency_s
    return known.collective(_measured_with(wire)).rates.hop_s


def _measured_with(wire: Link) -> str:
    """The GPU in whose box this link was measured. Of the GPUs that have the link, one that was measured
    comes first."""
    return min(_having(wire), key=lambda key: known.box_of(key) != key)


def _having(wire: Link) -> list[str]:
    """The GPUs that are joined by this link in their usual node; none where it leads to a host."""
    return [gpu.key for gpu in catalog.all_gpus().values() if catalog.usual_link(gpu).key == wire.key]


def link_hop_s(gpu: Gpu) -> Real:
    """α of a hop between two GPUs of this GPU's usual node."""
    return ops.each(gpu, lambda of: _of(catalog.usual_link(of)))


def card_hop_s(gpu: Gpu) -> Real:
    """α of a hop over the network cards of this GPU's usual node."""
    return ops.each(gpu, lambda of: _of(catalog.usual_nic(of)))


def start_s(gpu: Gpu) -> Real:
    """The fitted time that a collective of NCCL pays once for each call, however many hops it has."""
    return ops.each(gpu, lambda of: known.collective(of.key).rates.start_s)


def ring_hop_s(ranks: Real, per_node: Real, link_hop_s: Real, network_hop_s: Real) -> Real:
    """The mean α of a hop of a ring through all ranks: N − m hops inside a node and m − 1 between two."""
    check.non_negative(link_hop_s=link_hop_s, network_hop_s=network_hop_s)
    inside, between = collectives.ring_hops(ranks, per_node)
    return (inside * link_hop_s + between * network_hop_s) / ops.maximum(1.0, ranks - 1.0)


def mean_hop_s(node: Node, ranks: Real | None = None) -> Real:
    """The mean α of a hop of a ring through whole nodes of this kind: through ``ranks`` GPUs, or through so
    many that the number hardly matters: one hop in g is over a card, the others over the link."""
    link, card = hop_s(node.link), hop_s(node.nic)
    if ranks is None:
        return ((node.gpus - 1.0) * link + card) / node.gpus
    return ring_hop_s(ranks, node.gpus, link, card)


def ring_through_s(buffer_bytes: Real, ranks: Real, node: Node) -> Real:
    """A textbook ring AllReduce through whole nodes of this kind (``collectives.ring_through_nodes_s``), a
    call's start left out. Within RING_OFF of the fitted ring."""
    card_bytes_per_s = node.outgoing_bytes_per_s / node.gpus
    return collectives.ring_through_nodes_s(
        buffer_bytes,
        ranks,
        node.gpus,
        node.link.bytes_per_s,
        hop_s(node.link),
        card_bytes_per_s,
        hop_s(node.nic),
    )
