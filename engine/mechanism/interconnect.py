"""The cost of each collective. Every other module takes the time of a transfer between GPUs from here.

Inside one box a collective takes the time measured there (``calibration.exchange``). Between boxes it is
hierarchical: inside, between, inside, overlapped for large buffers, by the fastest of ring, tree and PAT,
which is how NCCL's tuner chooses; each hop takes the time of its link. A torus (TPU) has neither a switch nor
a tree (``torus``).

A layout's axes are placed innermost first: tensor, context, data, pipeline. A group of ``ranks`` GPUs whose
members are ``stride`` apart has ``per_node`` of them on each node, and the remainder on the last. Traffic
between nodes goes through the members' NICs. The other groups of the same axis use the NICs at the same time,
so that each GPU has exactly its own share of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from engine.base import check, ops, printing
from engine.base.types import Real, Truth
from engine.calibration import DEFAULT, bands, exchange, known
from engine.mechanism import collectives, torus
from engine.mechanism.wires import Network, Wires, plain, wires

__all__ = ["DEFAULT", "Network", "Wires", "plain", "wires"]

ALGORITHMS = ("ring", "tree", "nvls")  # what ``all_reduce_s`` chooses from, as NCCL does
PAT_SHARE = 0.75  # share of a ring's rate that NCCL assumes for PAT (graph/tuning.cc)
TREE_HOP = 1.85  # ring hops per tree hop, where the sums of two children meet (5.0 to 2.7 µs there)
USUAL_HOPS_S = (2.7e-6, 4e-6, 9.6e-6)  # α of a network hop in NCCL's three protocols there (see links.toml)


def _require_group(sent_bytes, ranks, per_node) -> None:
    """Bytes of at least zero, whole ranks, and no more ranks on a node than there are."""
    if not check.is_trusted():
        check.non_negative(bytes=sent_bytes)
        check.whole(ranks=ranks, per_node=per_node)
        check.non_negative(ranks_elsewhere=ranks - per_node)


def ranks_per_node(ranks: Real, stride: Real, gpus_per_node: Real) -> Real:
    """How many of a group's members share a node, if they are ``stride`` GPUs apart."""
    if not check.is_trusted():
        check.whole(ranks=ranks, stride=stride, gpus_per_node=gpus_per_node)
    return ops.minimum(ranks, ops.maximum(1.0, ops.floor(gpus_per_node / stride)))


# -- a group over several nodes ------------------------------------------------------------------------------
class Spread(NamedTuple):
    """How the members of a group are spread over nodes."""

    ranks: Real
    nodes: Real
    fewest: Real  # members on the node that has the fewest, through whose cards all rings must pass
    most: Real  # … and on the node that has the most


def _spread(ranks: Real, per_node: Real) -> Spread:
    """Ranks spread over nodes, filled one after the other."""
    nodes = ops.ceil(ranks / per_node)
    return Spread(ranks, nodes, ranks - (nodes - 1.0) * per_node, per_node)


def _fastest_s(link_hops, network_hops, inside_s, across_s, net: Wires, summing_hops: Real = 0.0) -> Real:
    """The time of one algorithm with the fastest of NCCL's protocols: the latency of its hops, each over its
    own link, and the busier of link and NIC, once a buffer's chunks keep both at work. At ``summing_hops`` of
    the network's hops two children's sums meet, which takes GPUs as long on a slow network as on a fast
    one."""
    low_s, middle_s, full_s = [
        link_hops * link_s
        + network_hops * network_s
        + summing_hops * (TREE_HOP - 1.0) * ops.minimum(network_s, usual_s)
        + ops.maximum(inside_s / link_share, across_s / network_share)
        for (link_s, network_s, link_share, network_share), usual_s in zip(net.protocols, USUAL_HOPS_S)
    ]
    return ops.minimum(low_s, ops.minimum(middle_s, full_s))


def _box_rate(rates, ranks, net: Wires):
    """The rate inside a box for this many of its GPUs, or of a torus for this many chips."""
    return ops.choose(
        net.torus.axes > 0.0,
        lambda: torus.span(ranks, net.torus).links * net.torus.bytes_per_s,
        lambda: exchange.of_ranks(rates, ranks),
    )


def _boxed(ranks, per_node, inside, across):
    """``inside`` within one node, else ``across``; 0 for a single rank."""
    return _of_nodes(ranks, ranks <= per_node, inside, across)


def _of_nodes(ranks, in_one, inside, across):
    return ops.where(ranks > 1.0, ops.choose(in_one, inside, across), 0.0)


def _gather_in_box_s(buffer_bytes, ranks, net: Wires):
    """An AllGather or ReduceScatter inside one box: on a torus, or as it was measured."""
    return ops.choose(
        net.torus.axes > 0.0,
        lambda: torus.gather_s(buffer_bytes, ranks, net.torus),
        lambda: exchange.gather_s(buffer_bytes, ranks, net.box),
    )


def _all_reduce_in_box_s(buffer_bytes, ranks, net: Wires):
    """An AllReduce inside one box: on a torus, or as it was measured."""
    return ops.choose(
        net.torus.axes > 0.0,
        lambda: torus.all_reduce_s(buffer_bytes, ranks, net.torus),
        lambda: exchange.all_reduce_s(buffer_bytes, ranks, net.box, net.sums_in_switch),
    )


# -- AllGather and ReduceScatter -----------------------------------------------------------------------------
def _ring_across_s(times, buffer_bytes, at: Spread, net):
    """A ring through all ranks, this many times round: each time, every wire carries (n − 1)/n of the buffer,
    and a node's border is crossed through all NICs of its members together."""
    carried = times * buffer_bytes * ((at.ranks - 1.0) / at.ranks)
    return net.start_s + _fastest_s(
        times * (at.ranks - at.nodes),
        times * (at.nodes - 1.0),
        carried / _box_rate(net.box.gather_bytes_per_s, at.most, net),
        carried / (at.fewest * net.nic_bytes_per_s),
        net,
    )


def _pat_across_s(buffer_bytes, ranks, per_node, net):
    """PAT across the nodes, where every GPU of a node handles its own piece in ⌈log2 m⌉ hops instead of m −
    1, and then a collective inside. Two calls, one after the other."""
    _, nodes, fewest, _ = _spread(ranks, per_node)
    across_s = buffer_bytes / fewest * ((nodes - 1.0) / nodes) / (net.nic_bytes_per_s * PAT_SHARE)
    inside_s = _gather_in_box_s(buffer_bytes, per_node, net)
    hops_s = ops.log2_ceil(nodes) * net.network.long_s
    return net.start_s + hops_s + across_s + ops.where(per_node > 1.0, inside_s, 0.0)


def all_gather_s(buffer_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """AllGather or ReduceScatter of a whole buffer. In one box as measured; beyond it by a ring through all
    ranks, or by PAT across the nodes (NCCL since 2.23), whichever is faster.

    NCCL up to 2.28 chooses PAT by itself only with one GPU of the group on each node. With more, software for
    large groups gets it by gathering across and inside in two calls.
    """
    _require_group(buffer_bytes, ranks, per_node)
    return _boxed(
        ranks,
        per_node,
        lambda: _gather_in_box_s(buffer_bytes, ranks, net),
        lambda: ops.minimum(
            _ring_across_s(1.0, buffer_bytes, _spread(ranks, per_node), net),
            _pat_across_s(buffer_bytes, ranks, per_node, net),
        ),
    )


# -- AllReduce -----------------------------------------------------------------------------------------------
def ring_s(buffer_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """AllReduce by a ring: ReduceScatter, then AllGather, with one start-up. In a box whose switch can sum,
    this is a ring forced by the user; elsewhere it is what was measured."""
    _require_group(buffer_bytes, ranks, per_node)

    return _boxed(
        ranks,
        per_node,
        lambda: ops.choose(
            (net.sums_in_switch > 0.0) & (ranks > 2.0),
            lambda: 2.0 * _gather_in_box_s(buffer_bytes, ranks, net) - net.start_s,
            lambda: _all_reduce_in_box_s(buffer_bytes, ranks, net),
        ),
        lambda: _ring_across_s(2.0, buffer_bytes, _spread(ranks, per_node), net),
    )


def tree_s(buffer_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """AllReduce by double binary trees across the nodes. Inside a box NCCL's tree is a chain, up and down."""
    _require_group(buffer_bytes, ranks, per_node)

    def chain_s():
        chained = 2.0 * buffer_bytes / _box_rate(net.box.gather_bytes_per_s, per_node, net)
        return net.start_s + _fastest_s(2.0 * (per_node - 1.0), 0.0, chained, 0.0, net)

    return _boxed(
        ranks, per_node, chain_s, lambda: _tree_across_s(buffer_bytes, _spread(ranks, per_node), net)
    )


def _tree_across_s(buffer_bytes, at: Spread, net):
    """Trees across the nodes, each node summing first: few hops, but twice the buffer through each node's
    NICs (once with only two nodes)."""
    rate = _box_rate(net.box.reduce_bytes_per_s, at.most, net)
    passed = ops.where(at.nodes > 2.0, 2.0, ops.where(at.nodes > 1.0, 1.0, 0.0))
    hops = 2.0 * ops.log2_ceil(at.nodes)
    return net.start_s + _fastest_s(
        2.0 * (at.most - 1.0),
        hops,
        2.0 * buffer_bytes * ((at.most - 1.0) / at.most) / rate,
        passed * buffer_bytes / (at.fewest * net.nic_bytes_per_s),
        net,
        hops,
    )


def nvls_s(buffer_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """AllReduce in the switch, as measured. Where that is impossible (across nodes, with two ranks, or
    without such a switch) the ring's time."""
    _require_group(buffer_bytes, ranks, per_node)
    possible = (net.sums_in_switch > 0.0) & (ranks > 2.0) & (ranks <= per_node)
    return ops.choose(
        possible,
        lambda: _all_reduce_in_box_s(buffer_bytes, ranks, net),
        lambda: ring_s(buffer_bytes, ranks, per_node, net),
    )


def one_shot_s(buffer_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """A serving framework's own AllReduce over mapped memory, in one shot or two, for the small messages of
    decoding (TensorRT-LLM, vLLM). It works only inside a node; across nodes, and on a torus, this is the
    ring's time."""
    _require_group(buffer_bytes, ranks, per_node)
    return _boxed(
        ranks,
        ops.where(net.torus.axes > 0.0, 0.0, per_node),
        lambda: exchange.mapped_all_reduce_s(buffer_bytes, ops.maximum(ranks, 2.0), net.mapped),
        lambda: ring_s(buffer_bytes, ranks, per_node, net),
    )


def all_reduce_s(buffer_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """NCCL's time: in one box as measured, across nodes the faster of ring and tree."""
    _require_group(buffer_bytes, ranks, per_node)
    return _boxed(
        ranks,
        per_node,
        lambda: _all_reduce_in_box_s(buffer_bytes, ranks, net),
        lambda: _fastest_across_s(buffer_bytes, _spread(ranks, per_node), net),
    )


def _fastest_across_s(buffer_bytes, at: Spread, net):
    return ops.minimum(_ring_across_s(2.0, buffer_bytes, at, net), _tree_across_s(buffer_bytes, at, net))


def all_reduce_spread_s(buffer_bytes: Real, spread: Spread, net: Wires) -> Real:
    """``all_reduce_s`` of a group that may be spread unevenly over its nodes. Every ring and every tree
    passes through the node with the fewest members, and through the cards of no more than these."""
    if not check.is_trusted():
        check.non_negative(bytes=buffer_bytes)
        check.whole(ranks=spread.ranks, nodes=spread.nodes, fewest=spread.fewest, most=spread.most)
    return _of_nodes(
        spread.ranks,
        spread.nodes <= 1.0,
        lambda: _all_reduce_in_box_s(buffer_bytes, spread.ranks, net),
        lambda: _fastest_across_s(buffer_bytes, spread, net),
    )


def pair_all_reduce_s(buffer_bytes: Real, in_a_node: Truth, net: Wires) -> Real:
    """AllReduce between two GPUs: in one box as measured; on two nodes by a ring of two hops, since a tree
    would send as much over more of them."""
    if not check.is_trusted():
        check.non_negative(buffer_bytes=buffer_bytes)
    return ops.choose(
        in_a_node,
        lambda: _all_reduce_in_box_s(buffer_bytes, 2.0, net),
        lambda: net.start_s + _fastest_s(0.0, 2.0, 0.0, buffer_bytes / net.nic_bytes_per_s, net),
    )


# -- AllToAll and single messages ----------------------------------------------------------------------------
def exchange_s(link_bytes: Real, nic_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """An exchange in which a GPU sends ``link_bytes`` over its link, spread evenly over the others of its
    node, and ``nic_bytes`` through its NIC at the same time. Every AllToAll is timed here. Leaves out
    incast."""
    if not check.is_trusted():
        check.non_negative(link_bytes=link_bytes, nic_bytes=nic_bytes)
        check.whole(ranks=ranks, per_node=per_node)
    at, far, on_torus = net.box, net.network, net.torus.axes > 0.0
    leaves = ops.where(ranks > per_node, 1.0, 0.0)
    some = ops.maximum(per_node, 2.0)
    whole_bytes = link_bytes * some / (some - 1.0)
    inside_s = ops.choose(
        on_torus,
        lambda: torus.all_to_all_s(whole_bytes, some, net.torus) - net.torus.start_s,
        lambda: link_bytes / exchange.of_ranks(at.direct_bytes_per_s, some),
    )
    low = ops.where(on_torus, 1.0, at.direct_low)
    short_s = ops.maximum(inside_s / low, nic_bytes / (far.bytes_per_s * far.short_share))
    late_s = ops.where(on_torus, 0.0, at.late_direct_s) + leaves * (far.long_s - far.short_s)
    fastest_s = ops.minimum(short_s, late_s + ops.maximum(inside_s, nic_bytes / far.bytes_per_s))
    hops_s = at.hop_s * ops.log2_ceil(1.0 * per_node) + leaves * far.short_s
    begun_s = net.start_s + ops.where(on_torus, leaves * far.short_s, at.direct_s + hops_s)
    return ops.where(ranks > 1.0, begun_s + fastest_s, 0.0)


def all_to_all_s(sent_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """Every rank sends 1/n of ``sent_bytes`` to each rank: the part that stays on the node over the link, the
    rest through its NIC at the same time. A partly filled node sends the largest share away, and all others
    wait for it. Leaves out incast and uneven pieces (see experts.py for imbalance)."""
    _require_group(sent_bytes, ranks, per_node)
    return all_to_all_spread_s(sent_bytes, _spread(ranks, per_node), net)


def all_to_all_spread_s(sent_bytes: Real, spread: Spread, net: Wires) -> Real:
    """``all_to_all_s`` of a group that may be spread unevenly over its nodes."""
    if not check.is_trusted():
        check.non_negative(sent_bytes=sent_bytes)
    return exchange_s(
        sent_bytes * ((spread.most - 1.0) / spread.ranks),
        sent_bytes
        * ops.where(spread.ranks > spread.most, (spread.ranks - spread.fewest) / spread.ranks, 0.0),
        spread.ranks,
        spread.most,
        net,
    )


def send_s(message_bytes: Real, leaves_node: Truth, net: Wires) -> Real:
    """One message to one neighbour: over the link, or through this GPU's share of the NICs where
    ``leaves_node``."""
    if not check.is_trusted():
        check.non_negative(message_bytes=message_bytes)
    beyond_s = net.neighbour.start_s + net.network.long_s + message_bytes / net.network.bytes_per_s
    next_s = net.torus.start_s + net.torus.hop_s + message_bytes / net.torus.bytes_per_s
    inside_s = ops.where(net.torus.axes > 0.0, next_s, exchange.send_s(message_bytes, net.neighbour))
    return ops.where(leaves_node, beyond_s, inside_s)


def collective_s(operation: str, buffer_bytes: Real, ranks: Real, per_node: Real, net: Wires) -> Real:
    """The time of any operation for a group with ``per_node`` members on each node and the remainder on the
    last."""
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
    one_way_s = (all_reduce_s(buffer_bytes, ranks, per_node, net) + net.start_s) / 2.0
    return ops.where(ranks > 1, one_way_s, 0.0)  # down (or up) in the same way


@dataclass(frozen=True)
class Collective(printing.Printed):
    """One collective operation of a group of GPUs, and its time."""

    op: str
    gpu: str
    ranks: int
    per_node: int  # ranks on each node except the last
    buffer_bytes: float  # size of the whole buffer
    time_s: float
    algorithm: str
    extrapolates: tuple[str, ...] = ()  # what lies outside the measurements, by name

    @property
    def algorithm_bandwidth(self) -> float:
        """Bytes of the buffer per second: what nccl-tests calls algbw."""
        return collectives.algorithm_bandwidth(self.buffer_bytes, self.time_s)

    @property
    def bus_bandwidth(self) -> float:
        """What crosses each rank's wires per second: what nccl-tests calls busbw."""
        return collectives.bus_bandwidth(self.op, float(self.ranks), self.buffer_bytes, self.time_s)

    @property
    def band_s(self) -> tuple[float, float]:
        """An 80 % band of the time: the 10th and 90th percentile over collectives that were not used for
        fitting."""
        kind = bands.collective_kind(self.ranks > self.per_node, self.buffer_bytes)
        low, high = bands.band("collective", kind)
        return low * self.time_s, high * self.time_s

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "op": self.op,
            "gpu": self.gpu,
            "ranks": self.ranks,
            "per_node": self.per_node,
            "bytes": self.buffer_bytes,
            "time_s": self.time_s,
            "band_s": list(self.band_s),
            "algorithm_bandwidth": self.algorithm_bandwidth,
            "bus_bandwidth": self.bus_bandwidth,
            "algorithm": self.algorithm,
            "extrapolates": list(self.extrapolates),
        }


def collective(
    op: str, gpu: str, net: Wires, ranks: int, buffer_bytes: float, per_node: int | None = None
) -> Collective:
    """One operation of ``ranks`` GPUs that fill one node after the other, or of ``per_node`` on each."""
    check.one_of(collectives.OPERATIONS, op=op)
    check.whole(2, ranks=ranks)
    check.positive(buffer_bytes=buffer_bytes)
    most = min(ranks, int(net.gpus_per_node))
    if per_node is not None:
        check.whole(per_node=per_node)
        if per_node > most:
            raise ValueError(
                f"per_node must be at most ranks and the node's {net.gpus_per_node:.0f} GPUs, got {per_node}"
            )
        if ranks % per_node:
            fits = ", ".join(str(n) for n in range(1, most + 1) if ranks % n == 0)
            raise ValueError(
                f"per_node must divide ranks ({ranks} ranks: {fits}), got {per_node}; "
                "without it they fill one node after the other"
            )
    per_node = most if per_node is None else per_node
    if net.torus.axes and ranks <= most and ranks % 2:
        raise ValueError(
            f"ranks must be even on a torus, where no slice has an odd number of chips, got {ranks}"
        )
    group = (buffer_bytes, float(ranks), float(per_node), net)
    return Collective(
        op,
        gpu,
        ranks,
        per_node,
        buffer_bytes,
        collective_s(op, *group),
        algorithm(op, *group),
        _extrapolated(gpu, buffer_bytes, ranks, per_node, net),
    )


def _extrapolated(gpu: str, buffer_bytes: float, ranks: int, per_node: int, net: Wires) -> tuple[str, ...]:
    """The names of what lies outside our measurements of a collective: the GPU's box (then another box's
    constants are used), the number of ranks, the size of the buffer, and everything beyond the box."""
    if net.torus.axes:
        return ("torus",)
    box = known.collective(gpu)
    inside = min(ranks, per_node)
    asked = {"ranks": float(inside), "buffer_bytes": float(buffer_bytes)}
    known_names = {name: asked[name] for name in box.ranges if name in asked}
    names = box.extrapolates(**known_names) if inside > 1 else []
    said = [f"gpu (by {box.by})" if name == "gpu" else name for name in names]
    return (*said, "network") if ranks > per_node else tuple(said)


def algorithm(operation: str, buffer_bytes: float, ranks: float, per_node: float, net: Wires) -> str:
    """The name of the algorithm that ``collective_s`` timed; for an AllReduce, the fastest of ALGORITHMS."""
    if net.torus.axes and ranks <= per_node:
        return "torus"
    if operation == "all_reduce":
        functions = {"ring": ring_s, "tree": tree_s, "nvls": nvls_s}
        times = {name: functions[name](buffer_bytes, ranks, per_node, net) for name in ALGORITHMS}
        return min(times, key=lambda name: times[name])
    if operation in ("all_gather", "reduce_scatter"):
        ring = _ring_across_s(1.0, buffer_bytes, _spread(ranks, per_node), net)
        by_ring = ranks <= per_node or ring <= _pat_across_s(buffer_bytes, ranks, per_node, net)
        return "ring" if by_ring else "pat"
    return {"all_to_all": "pairwise", "send_recv": "direct"}.get(operation, "tree")
