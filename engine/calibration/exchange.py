"""The time of collectives inside one NVLink domain or box, of messages between two GPUs, and of tokens
between experts.

NCCL has three protocols: one of low latency for small messages, a middle one, and one that fills the wires
but starts late. The time of each is a straight line over the bytes; NCCL uses the lowest, and so do these
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration.products import either_s

MOST_MEASURED = 8.0  # ranks
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


@dataclass(frozen=True, slots=True)
class BoxWires:
    """The wires of one box as NCCL uses them. Rates are bus bandwidths of 2, 4 and 8 ranks."""

    start_s: float
    hop_s: float  # per step of a ring
    direct_s: float  # extra time to start an all-to-all exchange
    middle_s: float  # extra time per step with the middle protocol …
    middle: float  # … which reaches this share of the rate
    late_s: float  # extra time per step with the protocol that fills the wires
    late_direct_s: float  # extra time of an all-to-all exchange with that protocol, paid once
    low: float  # share of the rate that the low-latency protocol reaches
    direct_low: float  # share of the rate that it reaches in an all-to-all exchange
    reduce_bytes_per_s: tuple[float, float, float]
    gather_bytes_per_s: tuple[float, float, float]
    direct_bytes_per_s: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Wire:
    """The path from one GPU to another."""

    bytes_per_s: float
    start_s: float
    late_s: float  # extra time of a message that is cut into pieces


@dataclass(frozen=True, slots=True)
class Mapped:
    """A serving framework's own AllReduce over mapped memory."""

    start_s: float
    rank_s: float  # per other rank
    second_s: float  # extra time of two shots over one
    one_shot_bytes_per_s: float
    two_shot_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class ExchangedRows:
    """Tokens travelling to their experts' ranks or back, in one NVLink domain."""

    bytes_per_s: float  # of one GPU's rows, with as many multiprocessors as it takes
    copier_bytes_per_s: float  # of one multiprocessor copying
    start_s: float
    row_s: float  # per row, in addition to its bytes
    token_bytes: float  # per value of a row


@ops.remembered
def of_ranks(rates: Sequence[Real], ranks: Real) -> Real:
    """A rate interpolated between those of 2, 4 and 8 ranks, linearly in its logarithm; constant outside."""
    low = ops.minimum(1.0, ops.maximum(0.0, 0.5 * ranks - 1.0))
    high = ops.minimum(1.0, ops.maximum(0.0, 0.25 * ranks - 1.0))
    return rates[0] * (rates[1] / rates[0]) ** low * (rates[2] / rates[1]) ** high


def _lowest_s(wire_s, low, middle_s, middle, late_s):
    """The fastest of NCCL's three protocols for a transfer that takes ``wire_s`` at the full rate."""
    return ops.minimum(ops.minimum(wire_s / low, middle_s + wire_s / middle), late_s + wire_s)


def all_reduce_s(buffer_bytes: Real, ranks: Real, at: BoxWires, in_switch: Real = 0.0) -> Real:
    """2·(n − 1) steps, and 2·(n − 1)/n of the buffer over the bus bandwidth. This is how a ring counts. It is
    used even where the switch sums (NVLS), and the fitted rate then exceeds the ring's. With ``in_switch``
    1.0 the number of steps stops growing beyond the eight ranks that were measured."""
    wire_s = 2.0 * (ranks - 1.0) / ranks * buffer_bytes / of_ranks(at.reduce_bytes_per_s, ranks)
    counted = ops.where(in_switch > 0.0, ops.minimum(1.0 * ranks, MOST_MEASURED), ranks)
    steps = 2.0 * (counted - 1.0)
    return (
        at.start_s
        + at.hop_s * steps
        + _lowest_s(wire_s, at.low, at.middle_s * steps, at.middle, at.late_s * steps)
    )


def gather_s(buffer_bytes: Real, ranks: Real, at: BoxWires) -> Real:
    """AllGather or ReduceScatter of a whole buffer: n − 1 steps, (n − 1)/n of it on the wires."""
    steps = ranks - 1.0
    wire_s = steps / ranks * buffer_bytes / of_ranks(at.gather_bytes_per_s, ranks)
    return (
        at.start_s
        + at.hop_s * steps
        + _lowest_s(wire_s, at.low, at.middle_s * steps, at.middle, at.late_s * steps)
    )


def all_to_all_s(buffer_bytes: Real, ranks: Real, at: BoxWires) -> Real:
    """Every rank sends 1/n of its buffer to each rank: one step, (n − 1)/n of it on the wires."""
    wire_s = (ranks - 1.0) / ranks * buffer_bytes / of_ranks(at.direct_bytes_per_s, ranks)
    return (
        at.start_s
        + at.direct_s
        + at.hop_s * ops.log2_ceil(ranks)
        + ops.minimum(wire_s / at.direct_low, at.late_direct_s + wire_s)
    )


def collective_s(operation: str, buffer_bytes: Real, ranks: Real, at: BoxWires) -> Real:
    """Any of OPERATIONS among the ranks of one box or NVLink domain; 0 for a single rank.

    Leaves out slowdown by arithmetic that runs at the same time, and everything between nodes.
    """
    check.one_of(OPERATIONS, operation=operation)
    if not check.is_trusted():
        check.non_negative(buffer_bytes=buffer_bytes)
        check.whole(ranks=ranks)
    some = ops.maximum(ranks, 2.0)
    if operation == "all_reduce":
        found = all_reduce_s(buffer_bytes, some, at)
    elif operation == "all_to_all":
        found = all_to_all_s(buffer_bytes, some, at)
    else:
        found = gather_s(buffer_bytes, some, at)
    return ops.where(ranks > 1, found, 0.0)


def send_s(message_bytes: Real, at: Wire) -> Real:
    """One message to one neighbour: at once at a quarter of the rate, or in pieces at the full rate,
    whichever arrives sooner."""
    if not check.is_trusted():
        check.non_negative(message_bytes=message_bytes)
    wire_s = message_bytes / at.bytes_per_s
    return at.start_s + ops.minimum(4.0 * wire_s, at.late_s + wire_s)


def mapped_all_reduce_s(buffer_bytes: Real, ranks: Real, at: Mapped) -> Real:
    """One shot: every rank reads all other ranks' buffers. Two shots: it reduces its own piece, then reads
    the other pieces. Whichever is faster, replayed in a CUDA graph. Beyond some MB, frameworks use NCCL
    instead."""
    if not check.is_trusted():
        check.non_negative(buffer_bytes=buffer_bytes)
        check.whole(2, ranks=ranks)
    others = ranks - 1.0
    one_s = others * buffer_bytes / at.one_shot_bytes_per_s
    two_s = at.second_s + 2.0 * others / ranks * buffer_bytes / at.two_shot_bytes_per_s
    return at.start_s + at.rank_s * others + ops.minimum(one_s, two_s)


def rows_s(rows: Real, hidden: Real, at: ExchangedRows, copiers: Real = 0.0) -> Real:
    """One rank's rows of ``hidden`` values sent to (or brought back from) other ranks: a start-up, then the
    slower of the wires and the multiprocessors that copy (0: as many as the kernel needs).

    ``rows`` counts a token once for each copy that leaves the rank: for a low-latency kernel, each chosen
    expert on another rank; for a high-throughput one, each other rank that holds a chosen expert.
    """
    if not check.is_trusted():
        check.non_negative(rows=rows, copiers=copiers)
        check.positive(hidden=hidden)
    sent = rows * hidden * at.token_bytes
    copied = ops.where(copiers > 0.0, copiers, 1e9) * at.copier_bytes_per_s
    return at.start_s + rows * at.row_s + either_s(sent / at.bytes_per_s, sent / copied)
