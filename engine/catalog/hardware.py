"""Hardware: accelerators, the links between them, nodes, and clusters of nodes.

Bandwidths are one way and per GPU; the two-way figure that vendors print is kept beside them, named
``marketing``. Peaks are dense (no structured sparsity). A peak of 0.0 means that the chip has no such unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.base import check, ops
from engine.base.types import Real

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")

# The format to run in on a chip that lacks a precision: the next wider one that can hold its numbers.
WIDER = {"fp4": "fp8", "fp8": "bf16", "int8": "bf16", "bf16": "fp16", "fp16": "fp32", "tf32": "fp32"}

# NVSwitch generations that sum an AllReduce inside the switch (NVLink SHARP, "NVLS").
SUMS_IN_SWITCH = ("NVLink 4", "NVLink 5")


# What a page calls a figure of a GPU.
FIGURES = {
    "hbm_bytes": "HBM",
    "reported_bytes": "HBM by the driver",
    "hbm_bytes_per_s": "HBM bandwidth",
    "fp32_flops_per_s": "fp32 peak",
    "tf32_flops_per_s": "tf32 peak",
    "bf16_flops_per_s": "bf16 peak",
    "fp16_flops_per_s": "fp16 peak",
    "fp8_flops_per_s": "fp8 peak",
    "int8_flops_per_s": "int8 peak",
    "fp4_flops_per_s": "fp4 peak",
    "link_bytes_per_s": "link",
    "link_marketing_bytes_per_s": "link as sold",
    "nic_bytes_per_s": "NIC",
    "gpus_per_node": "GPUs in a node",
    "l2_bytes": "cache",
    "sms": "multiprocessors",
    "smem_bytes_per_sm": "memory of a multiprocessor",
    "tdp_w": "power",
}


@dataclass(frozen=True)
class Gpu:
    """One accelerator as its vendor describes it (decimal gigabytes, dense peaks, one-way links).

    ``also`` are other names by which people and programs call it, and ``inferred`` are its fields that
    nobody prints: they follow from others, were remembered, or were assumed.
    """

    key: str
    name: str
    vendor: str
    year: int
    hbm_bytes: float
    hbm_bytes_per_s: float
    fp32_flops_per_s: float = 0.0
    tf32_flops_per_s: float = 0.0
    bf16_flops_per_s: float = 0.0
    fp16_flops_per_s: float = 0.0
    fp8_flops_per_s: float = 0.0
    int8_flops_per_s: float = 0.0
    fp4_flops_per_s: float = 0.0
    link_name: str = ""
    link_bytes_per_s: float = 0.0
    link_marketing_bytes_per_s: float = 0.0
    nic_bytes_per_s: float = 0.0
    gpus_per_node: int = 1
    l2_bytes: float = 0.0
    sms: int = 0
    smem_bytes_per_sm: float = 0.0
    tdp_w: float = 0.0
    peer_to_peer: bool = True  # false where the driver sends everything through the host's memory
    unified: bool = False  # true where its CPU shares the memory, which then is none of a card's own
    source: str = ""
    checked: str = ""
    note: str = ""
    reported_bytes: float = 0.0  # HBM as the driver reports it; 0.0 where that is not known
    reported_source: str = ""
    also: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()

    @property
    def inferred_words(self) -> str:
        """The inferred figures by the names that a page has for them."""
        return ", ".join(FIGURES[name] for name in self.inferred)

    @property
    def sums_in_switch(self) -> float:
        """1.0 where the node's switch can sum an AllReduce, else 0.0."""
        return 1.0 if self.link_name in SUMS_IN_SWITCH else 0.0

    def peak_flops_per_s(self, precision: str = "bf16") -> float:
        """The chip's dense peak in this precision; ValueError where it has none."""
        peak = getattr(self, f"{precision}_flops_per_s", 0.0)
        if precision not in PRECISIONS or not peak:
            has = [p for p in PRECISIONS if getattr(self, f"{p}_flops_per_s")]
            raise ValueError(f"precision must be one of {', '.join(has)} on {self.name}; got {precision!r}")
        return peak


@dataclass(frozen=True)
class Link:
    """A wire: one-way bandwidth per GPU (or per NIC) and the time before the first byte arrives.

    A network has two further α, for NCCL's protocols for small and for medium messages, and the share of the
    rate that the small-message protocol reaches. A torus has axes; in a mesh, every GPU has wires to
    ``peers`` others.
    """

    key: str
    name: str
    bytes_per_s: float
    marketing_bytes_per_s: float
    latency_s: float
    short_s: float = 0.0
    short_share: float = 1.0
    middle_s: float = 0.0  # by the protocol for medium messages; 0.0 where there is none
    full_s: float = 0.0  # by the protocol that fills the wire, where it was measured to differ from latency_s
    axes: int = 0  # of a torus; 0 for a switch or a mesh
    ring: int = 1  # chips in the shortest ring that an axis closes
    peers: int = 0  # in a mesh: GPUs that each one has wires to; 0 for a switch or a torus
    source: str = ""
    checked: str = ""
    note: str = ""


@dataclass(frozen=True)
class Host:
    """A GPU's way to its host, one way, and its share of the host's memory bandwidth, and of that memory in
    the maker's own node (0 where there is none)."""

    key: str
    link: Link
    memory_bytes_per_s: float
    memory_bytes: float = 0.0
    source: str = ""
    checked: str = ""
    note: str = ""


@dataclass(frozen=True)
class Node:
    """The GPUs that share one scale-up fabric, and the NICs that leave it."""

    key: str
    name: str
    gpu: Gpu
    gpus: int
    link: Link
    nic: Link
    nics: int
    source: str = ""
    checked: str = ""
    note: str = ""

    @property
    def nic_bytes_per_s_per_gpu(self) -> float:
        """One-way bandwidth out of the node, shared evenly by its GPUs."""
        return self.nics * self.nic.bytes_per_s / self.gpus

    @property
    def outgoing_bytes_per_s(self) -> float:
        """One-way bandwidth out of the node, all its NICs together: what a ring through all its GPUs can use
        at the node's border."""
        return self.nics * self.nic.bytes_per_s

    @property
    def hbm_bytes(self) -> float:
        """HBM of all GPUs of the node."""
        return self.gpus * self.gpu.hbm_bytes


@dataclass(frozen=True)
class Cluster:
    """Equal nodes, ``nodes`` of them; ``oversubscription`` 2 means that the fabric carries half of what the
    NICs can send."""

    node: Node
    nodes: int
    oversubscription: float = 1.0

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return self.nodes * self.node.gpus

    @property
    def hbm_bytes(self) -> float:
        """HBM of all GPUs of the cluster."""
        return self.nodes * self.node.hbm_bytes


def peak_with_fallback(gpu: Gpu, precision: str = "bf16") -> Real:
    """The peak in ``precision``, or in the next wider format the chip has (V100: bf16 runs as fp16; A100: fp8
    as bf16).

    Every chip of the catalogue has an fp32 figure, so the search always ends. Numeric and without branches,
    for widgets; ``falls_back`` says when the figure belongs to another precision.
    """
    peak = getattr(gpu, f"{precision}_flops_per_s")
    if precision == "fp32":
        return peak
    return ops.where(peak > 0, peak, peak_with_fallback(gpu, WIDER[precision]))


def achieved_flops_per_s(gpu: Gpu, mfu: Real, precision: str = "bf16") -> Real:
    """The rate of a GPU at this MFU: a share of its peak."""
    check.share(mfu=mfu)
    return mfu * peak_with_fallback(gpu, precision)


def peaks_with_fallback(gpu: Gpu) -> Real:
    """All peaks on the last axis, in the order of PRECISIONS; missing ones are replaced as in
    ``peak_with_fallback``."""
    return np.stack([peak_with_fallback(gpu, precision) for precision in PRECISIONS], axis=-1)


def _used_precision(gpu, precision: str):
    own = PRECISIONS.index(precision)
    if precision == "fp32":
        return own
    return ops.where(
        getattr(gpu, f"{precision}_flops_per_s") > 0, own, _used_precision(gpu, WIDER[precision])
    )


def used_precisions(gpu: Gpu) -> Real:
    """For each of PRECISIONS the index of the one whose peak is used: its own, or the next wider one that the
    chip has."""
    return np.stack([_used_precision(gpu, precision) for precision in PRECISIONS])
