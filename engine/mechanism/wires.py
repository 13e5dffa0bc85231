"""The wires around a group of GPUs: the box, as measured; the network, by its cards; or a torus.

Every module that times a transfer uses ``interconnect``, which uses this one. Rates are those reached in
practice, one way and per GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine import catalog
from engine.base import check, hashing, ops
from engine.base.types import Real
from engine.calibration import DEFAULT, known
from engine.calibration.exchange import BoxWires, Mapped, Wire
from engine.catalog.hardware import Gpu
from engine.mechanism import start_ups
from engine.mechanism.torus import LINK_SHARE, Torus

if TYPE_CHECKING:
    from engine.calibration.constants import Calibration
    from engine.catalog.hardware import Link

SLOWEST_NIC, FASTEST_NIC = 1e7, 1e13  # bytes a second: less than 100 Mb/s Ethernet, more than any card
MIDDLE_SHARE = 120.0 / 128.0  # of the rate that NCCL's middle protocol (LL128) reaches
FRAMEWORK = "trtllm"  # whose AllReduce represents those of all serving frameworks


@dataclass(frozen=True, slots=True)
class Network:
    """A GPU's share of the cards that leave its node, with the α of a hop over their link.

    NCCL sends small messages by a low-latency protocol, which reaches a share of the rate, and large ones by
    one that fills the wire but starts late, with another in between (graph/tuning.cc).
    """

    bytes_per_s: Real
    short_s: Real
    short_share: Real
    middle_s: Real
    middle_share: Real
    long_s: Real


@dataclass(frozen=True, slots=True)
class Wires:
    """The wires around one GPU."""

    gpus_per_node: Real
    box: BoxWires  # NCCL inside the node, as fitted
    mapped: Mapped  # a serving framework's own AllReduce inside the node
    neighbour: Wire  # one message inside the node
    network: Network
    torus: Torus
    sums_in_switch: Real  # 1.0 where the node's switch can sum an AllReduce
    # of NCCL's low-latency protocol, its middle one and the one that fills the wires: the α of a hop over the
    # link and over the network, and the shares of their rates that it reaches
    protocols: tuple[tuple[Real, Real, Real, Real], ...] = field(init=False, repr=False, compare=False)
    hashed: int | None = field(default=None, init=False, repr=False, compare=False)
    __hash__ = hashing.once

    def __post_init__(self) -> None:
        at, far, on_torus = self.box, self.network, self.torus.axes > 0.0
        protocols = (
            (at.hop_s, far.short_s, at.low, far.short_share),
            (at.hop_s + at.middle_s, far.middle_s, at.middle, far.middle_share),
            (at.hop_s + at.late_s, far.long_s, 1.0, 1.0),
        )
        known = tuple(
            (ops.where(on_torus, self.torus.hop_s, hop_s), beyond_s, ops.where(on_torus, 1.0, share), beyond)
            for hop_s, beyond_s, share, beyond in protocols
        )
        object.__setattr__(self, "protocols", known)

    @property
    def link_bytes_per_s(self) -> Real:
        """The rate of a ring through a full node."""
        return self.box.gather_bytes_per_s[2]

    @property
    def nic_bytes_per_s(self) -> Real:
        """The rate of a GPU's share of the cards."""
        return self.network.bytes_per_s

    @property
    def start_s(self) -> Real:
        """The start-up time of a collective that is already queued."""
        return self.box.start_s


@lru_cache(None)
def _box(gpu_key: str) -> BoxWires:
    return known.collective(gpu_key).rates


@lru_cache(None)
def _mapped(gpu_key: str) -> Mapped:
    return known.mapped_all_reduce(gpu_key, FRAMEWORK).rates


@lru_cache(None)
def _neighbour(gpu_key: str) -> Wire:
    return known.neighbour(gpu_key).rates


def _around(build, kind, gpu, faster):
    """A dataclass of constants for one GPU, or for a symbolic choice among several, its rates scaled by
    ``faster``."""
    if faster.__class__ is float and faster == 1.0 and gpu.__class__ is Gpu:
        return build(gpu.key)

    def asked(name, place=None):
        def of(one):
            value = getattr(build(one.key), name)
            return value if place is None else value[place]

        return ops.each(gpu, of)

    found = {}
    for name in (each.name for each in fields(kind)):
        if not name.endswith("bytes_per_s"):
            found[name] = asked(name)
        elif kind is BoxWires:  # a rate for 2, for 4 and for 8 ranks
            found[name] = tuple(asked(name, place) * faster for place in range(3))
        else:
            found[name] = asked(name) * faster
    return kind(**found)


def wires(
    gpu: Gpu,
    gpus_per_node: Real | None = None,
    nic_bytes_per_s: Real | None = None,
    oversubscription: Real = 1.0,
    calibration: Calibration = DEFAULT,
    nic: Link | None = None,
    link_bytes_per_s: Real | None = None,
) -> Wires:
    """The wires around one GPU of the catalogue: its node's fabric and its share of the NICs.

    The box is the one measured with this GPU, or else the nearest measured one, scaled to this GPU's link
    (``known.collective``). A network hop takes the time of its cards: those of the GPU's usual node, or
    ``nic``. ``oversubscription`` 2 halves what the fabric carries.
    """
    per_node = gpu.gpus_per_node if gpus_per_node is None else gpus_per_node
    nic_rate = gpu.nic_bytes_per_s if nic_bytes_per_s is None else nic_bytes_per_s
    check.whole(gpus_per_node=per_node)
    check.positive(nic_bytes_per_s=nic_rate)
    check.between(SLOWEST_NIC, FASTEST_NIC, nic_bytes_per_s=nic_rate)
    _at_least_one(oversubscription)
    card = catalog.usual_nic if nic is None else lambda _: nic
    faster = 1.0 if link_bytes_per_s is None else link_bytes_per_s / gpu.link_bytes_per_s
    axes = ops.each(gpu, lambda of: float(catalog.usual_link(of).axes))
    link = gpu.link_bytes_per_s * faster
    box = _around(_box, BoxWires, gpu, faster)
    return Wires(
        gpus_per_node=1.0 * per_node,
        box=box,
        mapped=_around(_mapped, Mapped, gpu, faster),
        neighbour=_around(_neighbour, Wire, gpu, faster),
        network=Network(
            nic_rate * calibration.network_share / oversubscription,
            ops.each(gpu, lambda of: card(of).short_s),
            ops.each(gpu, lambda of: card(of).short_share),
            ops.each(gpu, lambda of: card(of).middle_s or card(of).full_s or card(of).latency_s),
            MIDDLE_SHARE,
            ops.each(gpu, lambda of: start_ups.bulk_hop_s(card(of))),
        ),
        torus=Torus(
            axes,
            ops.each(gpu, lambda of: float(catalog.usual_link(of).ring)),
            link * LINK_SHARE / ops.maximum(2.0 * axes, 1.0),
            ops.each(gpu, lambda of: catalog.usual_link(of).latency_s),
            box.start_s,
        ),
        sums_in_switch=1.0 * gpu.sums_in_switch,
    )


def scaled(net: Wires, link: Real = 1.0, nic: Real = 1.0) -> Wires:
    """The wires with this many times the bandwidth inside and outside the node; hops take as long as
    before."""
    return replace(
        net,
        box=_faster(net.box, link),
        mapped=_faster(net.mapped, link),
        neighbour=_faster(net.neighbour, link),
        network=_faster(net.network, nic),
        torus=_faster(net.torus, link),
    )


def _faster(of, times):
    rates = {f.name: getattr(of, f.name) for f in fields(of) if f.name.endswith("bytes_per_s")}
    return replace(
        of,
        **{
            name: tuple(rate * times for rate in value) if isinstance(value, tuple) else value * times
            for name, value in rates.items()
        },
    )


def plain(
    gpus_per_node: Real,
    link_bytes_per_s: Real,
    nic_bytes_per_s: Real,
    link_hop_s: Real = 0.0,
    network_hop_s: Real = 0.0,
    start_s: Real = 0.0,
) -> Wires:
    """Textbook wires: one rate and one α inside the node, one of each outside, no protocols."""
    rates = (link_bytes_per_s, link_bytes_per_s, link_bytes_per_s)
    none_s = 0.0 * start_s
    box = BoxWires(start_s, link_hop_s, none_s, none_s, 1.0, none_s, none_s, 1.0, 1.0, rates, rates, rates)
    return Wires(
        gpus_per_node,
        box,
        Mapped(start_s + link_hop_s, none_s, none_s, link_bytes_per_s, link_bytes_per_s),
        Wire(link_bytes_per_s, start_s + link_hop_s, none_s),
        Network(nic_bytes_per_s, network_hop_s, 1.0, network_hop_s, 1.0, network_hop_s),
        Torus(0.0, 1.0, link_bytes_per_s, link_hop_s, start_s),
        0.0,
    )


def _at_least_one(oversubscription):
    check.positive(oversubscription=oversubscription)
    if oversubscription < 1:
        raise ValueError(f"oversubscription must be at least 1, got {oversubscription!r}")
