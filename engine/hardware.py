"""What the machines are: accelerators, the links between them, nodes and clusters of them.

Bandwidths are one way and per GPU; the two-way figure that vendors print stands beside it, named ``marketing``.
Peaks are dense (no structured sparsity). A peak of 0.0 means that the chip has no such unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine import check, ops

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")

# Where a precision runs on a chip that lacks it: the next wider format that can hold its numbers.
WIDER = {"fp4": "fp8", "fp8": "bf16", "int8": "bf16", "bf16": "fp16", "fp16": "fp32", "tf32": "fp32"}

# NVSwitch generations that add up an AllReduce by themselves (NVLink SHARP, "NVLS").
SUMS_IN_SWITCH = ("NVLink 4", "NVLink 5")


@dataclass(frozen=True)
class Gpu:
    """One accelerator as its vendor describes it (decimal gigabytes, dense peaks, one-way links)."""

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
    source: str = ""
    checked: str = ""
    note: str = ""

    @property
    def sums_in_switch(self) -> float:
        """1.0 where the switch of its node can add up an AllReduce, else 0.0."""
        return 1.0 if self.link_name in SUMS_IN_SWITCH else 0.0

    def peak_flops_per_s(self, precision: str = "bf16") -> float:
        """The chip's dense peak in that precision; ValueError where it has none."""
        peak = getattr(self, f"{precision}_flops_per_s", 0.0)
        if precision not in PRECISIONS or not peak:
            has = [p for p in PRECISIONS if getattr(self, f"{p}_flops_per_s")]
            raise ValueError(f"precision must be one of {', '.join(has)} on {self.name}; got {precision!r}")
        return peak


@dataclass(frozen=True)
class Link:
    """A wire: one-way bandwidth per GPU (or per NIC) and the time before the first byte arrives."""

    key: str
    name: str
    bytes_per_s: float
    marketing_bytes_per_s: float
    latency_s: float
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
        """One way out of the node, shared evenly by its GPUs."""
        return self.nics * self.nic.bytes_per_s / self.gpus

    @property
    def outgoing_bytes_per_s(self) -> float:
        """One way out of the node, all its NICs together: what a ring through all its GPUs has at the node's border."""
        return self.nics * self.nic.bytes_per_s

    @property
    def hbm_bytes(self) -> float:
        return self.gpus * self.gpu.hbm_bytes


@dataclass(frozen=True)
class Cluster:
    """So many equal nodes; ``oversubscription`` 2 means that the fabric carries half of what the NICs can send."""

    node: Node
    nodes: int
    oversubscription: float = 1.0

    @property
    def gpus(self) -> int:
        return self.nodes * self.node.gpus

    @property
    def hbm_bytes(self) -> float:
        return self.nodes * self.node.hbm_bytes


def peak_with_fallback(gpu, precision: str = "bf16"):
    """The peak in ``precision``, or in the next wider format the chip has (V100: bf16 runs as fp16; A100: fp8 as bf16).

    Every chip of the catalogue has an fp32 figure to end at. Numeric and without branches, for widgets; ``falls_back``
    says when the figure is not the precision's own.
    """
    peak = getattr(gpu, f"{precision}_flops_per_s")
    if precision == "fp32":
        return peak
    return ops.where(peak > 0, peak, peak_with_fallback(gpu, WIDER[precision]))


def achieved_flops_per_s(gpu, mfu, precision: str = "bf16"):
    """What a GPU does at that MFU: a share of its peak."""
    check.share(mfu=mfu)
    return mfu * peak_with_fallback(gpu, precision)


def falls_back(gpu, precision: str = "bf16"):
    """1.0 where ``peak_with_fallback`` had to take a wider format, else 0.0."""
    return ops.where(getattr(gpu, f"{precision}_flops_per_s") > 0, 0.0, 1.0)


def peaks_with_fallback(gpu):
    """All peaks on the last axis, in the order of PRECISIONS, missing ones replaced as above."""
    return np.stack([peak_with_fallback(gpu, precision) for precision in PRECISIONS], axis=-1)


def _used_precision(gpu, precision: str):
    own = PRECISIONS.index(precision)
    if precision == "fp32":
        return own
    return ops.where(getattr(gpu, f"{precision}_flops_per_s") > 0, own, _used_precision(gpu, WIDER[precision]))


def used_precisions(gpu):
    """For each of PRECISIONS the index of the one whose peak stands in: its own, or the next wider the chip has."""
    return np.stack([_used_precision(gpu, precision) for precision in PRECISIONS])
