"""From registers to storage: how fast each level hands over bytes, how long before the first arrives, what it holds.

Moving S bytes takes α + S/B at every level (Hockney 1994); B is one way and for one GPU. Levels on the chip are read by
all its multiprocessors at once. A payload larger than what a level holds streams through it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine import catalog, check
from engine.hardware import Gpu, Link, Node

LEVELS = ("registers", "smem", "l2", "hbm", "link", "host", "network", "storage")
VALUE_BYTES = 2.0               # bf16

SCHEDULERS, LANES, OPERANDS, WORD_BYTES = 4, 32, 3, 4
# Each scheduler starts one instruction for 32 threads a clock, which reads at most three operands of 4 bytes for each.
REGISTER_BYTES_PER_CLOCK = SCHEDULERS * LANES * OPERANDS * WORD_BYTES
# 32 banks of 4 bytes (CUDA C++ Programming Guide, compute capabilities 5.x and later).
SMEM_BYTES_PER_CLOCK = LANES * WORD_BYTES
REGISTER_FILE_BYTES = 65536 * WORD_BYTES    # 64 K registers an SM, the same guide
REGISTER_CLOCKS = 4                         # from one instruction to the next that needs its result (arXiv:1804.06826)


@dataclass(frozen=True)
class Hierarchy:
    """One GPU in its usual node, and what is known by measurement of its caches and latencies."""

    key: str
    node: Node
    host: Link
    clock_hz: float
    smem_clocks: float
    l2_bytes_per_s: float
    l2_clocks: float
    hbm_clocks: float
    storage_bytes_per_s: float
    storage_latency_s: float
    source: str = ""
    checked: str = ""
    note: str = ""

    @property
    def gpu(self) -> Gpu:
        return self.node.gpu

    @property
    def name(self) -> str:
        return self.gpu.name


@lru_cache(None)
def hierarchies() -> dict[str, Hierarchy]:
    """Those of the catalogue, by GPU."""
    with Path(catalog.__file__).with_name("memories.toml").open("rb") as file:
        entries = tomllib.load(file)
    return {key: Hierarchy(key, **fields | {"node": catalog.node(fields["node"]), "host": catalog.link(fields["host"])})
            for key, fields in entries.items()}


# -- rates, latencies, sizes: one number for each of LEVELS ----------------------------------------------------------
def bytes_per_s(chip: Hierarchy):
    """Registers and SMEM: SMs · bytes a clock · clock, what the banks can hand over at best. L2: measured. The others:
    as the vendor states them, one way; HBM counts reads and writes together; the network is a GPU's share of NICs."""
    gpu = chip.gpu
    all_sms_hz = gpu.sms * chip.clock_hz
    return np.stack([all_sms_hz * REGISTER_BYTES_PER_CLOCK, all_sms_hz * SMEM_BYTES_PER_CLOCK, chip.l2_bytes_per_s,
                     gpu.hbm_bytes_per_s, gpu.link_bytes_per_s, chip.host.bytes_per_s, gpu.nic_bytes_per_s,
                     chip.storage_bytes_per_s])


def alpha_s(chip: Hierarchy):
    """Before the first byte: a dependent load on the chip, one hop of NCCL's Simple protocol on the wires."""
    node = chip.node
    return np.stack([REGISTER_CLOCKS / chip.clock_hz, chip.smem_clocks / chip.clock_hz, chip.l2_clocks / chip.clock_hz,
                     chip.hbm_clocks / chip.clock_hz, node.link.latency_s, chip.host.latency_s, node.nic.latency_s,
                     chip.storage_latency_s])


def held_bytes(chip: Hierarchy):
    """What the chip holds at the first four levels; the others are ways, not places."""
    gpu = chip.gpu
    return np.stack([gpu.sms * REGISTER_FILE_BYTES, gpu.sms * gpu.smem_bytes_per_sm, gpu.l2_bytes, gpu.hbm_bytes])


# -- what a payload takes --------------------------------------------------------------------------------------------
def move_s(payload_bytes, chip: Hierarchy):
    """α + S/B at each level. Leaves out protocols, contention, and what an access pattern wastes."""
    check.positive(payload_bytes=payload_bytes)
    return alpha_s(chip) + payload_bytes / bytes_per_s(chip)


def rate_reached(payload_bytes, chip: Hierarchy):
    """Bytes a second that a payload sees: S / (α + S/B), at each level."""
    return payload_bytes / move_s(payload_bytes, chip)


def half_rate_bytes(chip: Hierarchy):
    """α·B: the payload whose start-up takes as long as its bytes, so that it sees half the rate (Hockney's n½)."""
    return alpha_s(chip) * bytes_per_s(chip)


def square_matmul_width(payload_bytes, value_bytes=VALUE_BYTES):
    """n of the product of two n×n matrices that, with its result, is as large as the payload: S = 3·b·n²."""
    check.positive(payload_bytes=payload_bytes, value_bytes=value_bytes)
    return np.sqrt(payload_bytes / (3 * value_bytes))


def square_matmul_s(payload_bytes, peak_flops_per_s, value_bytes=VALUE_BYTES):
    """2·n³ FLOPs at the peak, for that product. Leaves out launch and tiles: real ones are slower, small ones much."""
    check.positive(peak_flops_per_s=peak_flops_per_s)
    return 2 * square_matmul_width(payload_bytes, value_bytes) ** 3 / peak_flops_per_s


def against_matmul(payload_bytes, chip: Hierarchy, peak_flops_per_s, value_bytes=VALUE_BYTES):
    """Time to move a payload, as so many times the product of the same bytes: up to 1 it can hide behind it."""
    return move_s(payload_bytes, chip) / square_matmul_s(payload_bytes, peak_flops_per_s, value_bytes)


def hidden_from_bytes(chip: Hierarchy, peak_flops_per_s, value_bytes=VALUE_BYTES):
    """The payload from which on the product of the same bytes lasts longer than moving them, at each level.

    2n³/C = 3bn²/B gives n = 3bC/(2B): the arithmetic grows with n³, the bytes with n². Leaves out α.
    """
    check.positive(peak_flops_per_s=peak_flops_per_s, value_bytes=value_bytes)
    width = 3 * value_bytes * peak_flops_per_s / (2 * bytes_per_s(chip))
    return 3 * value_bytes * width**2


# -- one way and two ways --------------------------------------------------------------------------------------------
def link_over_network(chip: Hierarchy):
    """The link's rate over the network's, both one way and for one GPU: like for like."""
    return chip.gpu.link_bytes_per_s / chip.gpu.nic_bytes_per_s


def as_advertised(chip: Hierarchy):
    """The same with the figures as printed: vendors give links both ways together, network ports one way."""
    return chip.gpu.link_marketing_bytes_per_s / chip.gpu.nic_bytes_per_s
