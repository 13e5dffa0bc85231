"""The rules of lessons 02 and 03: messages and collectives."""

from __future__ import annotations

from functools import cache

import numpy as np

from engine import catalog
from engine.base import ops
from engine.executed import ranks, ranks_operations
from engine.executed.ranks import ExecutedRun
from engine.mechanism import collectives, interconnect, start_ups
from engine.mechanism.placement import LeafNetwork, all_to_all_floor_s
from engine.rules.held import HeldRule

H100, DGX = catalog.gpu("h100-sxm"), catalog.node("dgx-h100")
NET, CARD, NVLINK = interconnect.wires(H100), DGX.nic, DGX.link
CELL_BYTES = 4.0
SIZES = tuple(float(size) for size in np.geomspace(1e3, 1e11, 17))
LARGE = tuple(float(size) for size in np.geomspace(1e7, 1e11, 9))


@cache
def executed(count: int, algorithm: str = "ring", gpus_per_node: int | None = None) -> ExecutedRun:
    """An executed AllReduce among this many ranks, with buffers of one cell for each rank."""
    return ranks_operations.all_reduce(
        ranks.example(count, count), algorithm, gpus_per_node=gpus_per_node, cell_bytes=CELL_BYTES
    )


def buffer_bytes(count: int) -> float:
    """The size of each rank's buffer in the executed runs."""
    return count * CELL_BYTES


# -- lesson 02 -----------------------------------------------------------------------------------------------
def message_s(size: float, wire: str) -> float:
    """The rule's time of a message, α + S/W, plus the start-up of a call."""
    over = CARD if wire == "card" else NVLINK
    return start_ups.hop_s(over) + size / over.bytes_per_s + start_ups.start_s(H100)


def fitted_message_s(size: float, wire: str) -> float:
    """The time of a message by the engine's fitted constants."""
    return interconnect.send_s(size, wire == "card", NET)


def executed_ring_s(size: float, count: int) -> float:
    """The time of the executed ring on cards, with cells scaled so that a rank's buffer has ``size``
    bytes."""
    run, larger = executed(count), size / buffer_bytes(count)
    return ranks.time_s(run, start_ups.hop_s(CARD), CARD.bytes_per_s / larger)


def textbook_ring_s(size: float, count: int) -> float:
    """The rule's time of a ring AllReduce on cards."""
    return collectives.ring_all_reduce_s(size, count, CARD.bytes_per_s, start_ups.hop_s(CARD))


def fitted_card_ring_s(size: float, count: int) -> float:
    """The time of the ring that the engine has fitted to NCCL, with one GPU in each node."""
    return interconnect.ring_s(size, count * 1.0, 1.0, NET)


def fitted_half_bytes(count: int) -> float:
    """The size of the buffer for which the fitted ring takes twice as long as for a single byte."""
    nothing_s = fitted_card_ring_s(1.0, count)
    low, high = 1.0, 1e13
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fitted_card_ring_s(middle, count) > 2 * nothing_s else (middle, high)
    return high


def sent_at_least(count: int, operation: str) -> float:
    """The bytes that a rank must send on average, by the rule."""
    return collectives.wire_share(operation, count) * buffer_bytes(count)


def sent_by_a_rank(count: int, operation: str) -> float:
    """The bytes that a rank sends on average in the executed collective."""
    buffers = ranks.example(count, count)
    of = buffers.T[:, :1] if operation == "all_gather" else buffers
    run = ranks_operations.PRIMITIVES[operation](of, cell_bytes=CELL_BYTES)
    return float(run.sent_bytes.mean())


OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
ALGORITHMS = ("ring", "double_tree", "halving_doubling")


def table_of_three(count: int, algorithm: str, column: str) -> float:
    """A cell of the lesson's table of three algorithms: the bytes that a rank sends, or the number of
    steps."""
    shared = 2 * (count - 1) / count * buffer_bytes(count)
    sent = 2 * buffer_bytes(count) if algorithm == "double_tree" else shared
    steps = 2 * (count - 1) if algorithm == "ring" else 2 * ops.log2_ceil(count)
    return sent if column == "bytes" else steps


def executed_of_three(count: int, algorithm: str, column: str) -> float:
    """The value of that cell, counted in an executed run."""
    run = executed(count, algorithm)
    return float(run.sent_bytes.max()) if column == "bytes" else run.busy_steps


# -- lesson 03 -----------------------------------------------------------------------------------------------
PER_NODE = 4  # GPUs in a node of the executed AllToAll


@cache
def executed_all_to_all(count: int) -> np.ndarray:
    """The bytes sent in an executed AllToAll, by [source, destination]."""
    return ranks_operations.all_to_all(ranks.example(count, count), cell_bytes=CELL_BYTES).link_bytes


def fabric(nodes: int, nodes_per_leaf: int, oversubscription: float) -> LeafNetwork:
    """A network of leaf switches over small nodes that have a card for each GPU."""
    return LeafNetwork(nodes, PER_NODE, PER_NODE, CARD.bytes_per_s, oversubscription, nodes_per_leaf)


def bisection_s(nodes: int, nodes_per_leaf: int, oversubscription: float) -> float:
    """The rule's time of an AllToAll: the longer of the cards' time and the uplinks' time."""
    size = buffer_bytes(nodes * PER_NODE)
    return all_to_all_floor_s(size, fabric(nodes, nodes_per_leaf, oversubscription))


def counted_s(nodes: int, nodes_per_leaf: int, oversubscription: float) -> float:
    """The longer of the cards' and the uplinks' time, for the bytes that leave a node or a leaf in the
    executed run."""

    def busiest_s(group: int, bytes_per_s: float) -> float:
        of = np.arange(nodes * PER_NODE) // group
        sent = executed_all_to_all(nodes * PER_NODE)
        leaving = max(float(sent[of == one][:, of != one].sum()) for one in set(of.tolist()))
        return leaving / group / bytes_per_s

    cards_s = busiest_s(PER_NODE, CARD.bytes_per_s)
    return max(cards_s, busiest_s(nodes_per_leaf * PER_NODE, CARD.bytes_per_s / oversubscription))


def cards_s(size: float, nodes: int) -> float:
    """The rule's time of an AllToAll among nodes of eight GPUs, if only the cards limit it."""
    return all_to_all_floor_s(size, LeafNetwork(nodes, nodes_per_leaf=nodes))


def fitted_all_to_all_s(size: float, nodes: int) -> float:
    """The time of an AllToAll by the engine's fitted constants."""
    return interconnect.all_to_all_s(size, nodes * 8.0, 8.0, NET)


def through_nodes_s(size: float, count: int) -> float:
    """The rule's time of a ring through whole nodes, plus the start-up of a call."""
    return start_ups.ring_through_s(size, count * 1.0, DGX) + start_ups.start_s(H100)


def fitted_ring_s(size: float, count: int) -> float:
    """The time of the ring through whole nodes that the engine has fitted to NCCL."""
    return interconnect.ring_s(size, count * 1.0, 8.0, NET)


def wires_of_levels() -> tuple[float, float, float, float]:
    """Rate and start-up of a hop over NVLink, then of a hop over a card."""
    return NVLINK.bytes_per_s, start_ups.hop_s(NVLINK), CARD.bytes_per_s, start_ups.hop_s(CARD)


def two_levels_s(size: float, nodes: int, per_node: int) -> float:
    """The rule's time of an AllReduce on two levels."""
    return collectives.two_level_all_reduce_s(size, nodes * per_node, per_node, *wires_of_levels())


def executed_two_levels_s(size: float, nodes: int, per_node: int) -> float:
    """The time of the executed AllReduce on two levels, with cells scaled so that a rank's buffer has
    ``size`` bytes."""
    count = nodes * per_node
    larger = size / buffer_bytes(count)
    link, link_alpha_s, card, card_alpha_s = wires_of_levels()
    run = executed(count, "two_level", per_node)
    return ranks.two_level_time_s(run, per_node, link_alpha_s, link / larger, card_alpha_s, card / larger)


POWERS = (2, 4, 8, 16, 32, 64)
RULES = (
    HeldRule(
        "02-collectives",
        "rule-alpha-and-beta",
        message_s,
        fitted_message_s,
        {"size": LARGE, "wire": ("link", "card")},
        "10 MB to 100 GB between two H100s, in a node and between nodes, with a call's start added",
        "the engine's fitted messages",
        0.3,
    ),
    HeldRule(
        "02-collectives",
        "rule-the-ring-allreduce",
        textbook_ring_s,
        executed_ring_s,
        {"size": SIZES[::4], "count": (2, 3, 8, 24, 64)},
        "2 to 64 ranks",
        "the executed ring",
    ),
    HeldRule(
        "02-collectives",
        "rule-the-ring-allreduce",
        lambda size, count: textbook_ring_s(size, count) + start_ups.start_s(H100),
        fitted_card_ring_s,
        {"size": SIZES, "count": (2, 4, 8, 16, 64, 256, 1024, 4096)},
        "1 kB to 100 GB among 2 to 4,096 H100s with a card each, with a call's start added",
        "the engine's fitted ring",
        0.45,
    ),
    HeldRule(
        "02-collectives",
        "rule-when-a-ring-is-too-long",
        lambda count: count * start_ups.hop_s(CARD) * CARD.bytes_per_s,
        fitted_half_bytes,
        {"count": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)},
        "16 to 4,096 H100s with a card each",
        "the buffer with which the engine's fitted ring takes twice as long as with none",
        0.56,
        because="NCCL's protocol for small messages carries half the bytes a second, so they count sooner.",
    ),
    HeldRule(
        "02-collectives",
        "rule-the-ring-is-bandwidth-optimal",
        sent_at_least,
        sent_by_a_rank,
        {"count": (2, 3, 5, 8, 16, 32), "operation": OPERATIONS},
        "2 to 32 ranks",
        "what the executed collectives send",
    ),
    HeldRule(
        "02-collectives",
        "rule-three-algorithms",
        table_of_three,
        executed_of_three,
        {"count": POWERS[1:], "algorithm": ALGORITHMS, "column": ("bytes", "steps")},
        "4 to 64 ranks, by powers of two",
        "the three algorithms, executed",
    ),
    HeldRule(
        "03-interconnect",
        "rule-what-needs-the-bisection",
        bisection_s,
        counted_s,
        {"nodes": (2, 4, 8), "nodes_per_leaf": (1, 2, 4), "oversubscription": (1.0, 2.0, 3.0, 7.0)},
        "2 to 8 nodes of four GPUs on leaves of 1 to 4 nodes, oversubscribed up to 7 times",
        "the bytes of an executed AllToAll",
        claims=lambda nodes, nodes_per_leaf, **_: nodes_per_leaf <= nodes,
    ),
    HeldRule(
        "03-interconnect",
        "rule-what-needs-the-bisection",
        cards_s,
        fitted_all_to_all_s,
        {"size": LARGE[2:], "nodes": (2, 4, 8, 16, 32, 64, 128)},
        "100 MB to 100 GB on each of 16 to 1,024 H100s",
        "the engine's fitted AllToAll",
        0.12,
    ),
    HeldRule(
        "03-interconnect",
        "rule-a-ring-through-whole-nodes",
        through_nodes_s,
        fitted_ring_s,
        {"size": SIZES, "count": (8, 16, 64, 256, 1024, 4096)},
        "1 kB to 100 GB among 8 to 4,096 H100s, with a call's start added",
        "the engine's fitted ring",
        start_ups.RING_OFF[1] - 1,
    ),
    HeldRule(
        "03-interconnect",
        "rule-two-levels",
        two_levels_s,
        executed_two_levels_s,
        {"size": SIZES[::4], "nodes": (2, 4, 8), "per_node": (2, 4, 8)},
        "2 to 8 nodes of 2 to 8 GPUs",
        "the two levels, executed one after the other",
    ),
)
