"""Collectives on a torus: every chip is wired only to its neighbours, and there is no switch.

A slice of a pod is assumed to be as close to a cube as its number of chips allows. Each of its axes is closed
to a ring if it is at least as long as the shortest ring that the fabric can close; smaller groups form one
ring. Messages travel both ways round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from engine.base import ops
from engine.base.types import Real

# The share of its line rate that a link carries: 90 of 100 GB/s on v5p, 45 of 50 on v5e (How to Scale Your
# Model).
LINK_SHARE = 0.90


@dataclass(frozen=True, slots=True)
class Torus:
    """The wires of one chip. ``axes`` is 0.0 where the fabric is not a torus."""

    axes: Real
    ring: Real  # chips in the shortest ring that closes
    bytes_per_s: Real  # one way over one of the two links of an axis
    hop_s: Real
    start_s: Real


class Slice(NamedTuple):
    """The shape of a group of chips."""

    axes: Real
    side: Real  # chips along each axis
    links: Real  # links per chip that carry a collective at the same time


def span(ranks: Real, at: Torus) -> Slice:
    """How many axes this many chips close to rings, and how long these are."""
    second = ops.where((at.axes >= 2.0) & (ranks >= at.ring * at.ring), 1.0, 0.0)
    third = ops.where((at.axes >= 3.0) & (ranks >= at.ring * at.ring * at.ring), 1.0, 0.0)
    axes = 1.0 + second + third
    return Slice(axes, ranks ** (1.0 / axes), ops.where(ranks > 2.0, 2.0 * axes, 1.0))


def hops_s(ranks: Real, at: Torus) -> Real:
    """The hops to the farthest chip: half of the ring along each axis, one axis after the other; at least
    one."""
    found = span(ranks, at)
    return at.hop_s * ops.maximum(1.0, found.axes * found.side / 2.0)


def gather_s(buffer_bytes: Real, ranks: Real, at: Torus) -> Real:
    """AllGather or ReduceScatter of a whole buffer, over all axes at once and both ways round each.

    max over the links of (n − 1)/n·S, and half a ring of hops along each axis (How to Scale Your Model,
    section 3).
    """
    wire_s = (ranks - 1.0) / ranks * buffer_bytes / (span(ranks, at).links * at.bytes_per_s)
    return at.start_s + hops_s(ranks, at) + wire_s


def all_reduce_s(buffer_bytes: Real, ranks: Real, at: Torus) -> Real:
    """ReduceScatter, then AllGather, with one start-up."""
    return 2.0 * gather_s(buffer_bytes, ranks, at) - at.start_s


def all_to_all_s(sent_bytes: Real, ranks: Real, at: Torus) -> Real:
    """Every chip sends 1/n of its buffer to each: on a ring of L chips a byte travels L/4 hops on average,
    and an axis has two links per chip, so D·L/(8·W) for buffers of D bytes; all axes work at once. Never less
    than the time for the buffer to leave its chip."""
    found = span(ranks, at)
    carried_s = sent_bytes * found.side / (8.0 * at.bytes_per_s)
    leaving_s = (ranks - 1.0) / ranks * sent_bytes / (found.links * at.bytes_per_s)
    return at.start_s + hops_s(ranks, at) + ops.maximum(carried_s, leaving_s)
