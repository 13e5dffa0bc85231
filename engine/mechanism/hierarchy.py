"""The memory hierarchy from registers to storage: the bandwidth of each level, its latency, and its capacity.

Moving S bytes takes α + S/B at every level (Hockney 1994); B is one way and for one GPU. Levels on the chip
are read by all its multiprocessors at once. A payload larger than a level's capacity streams through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine import catalog
from engine.base import check
from engine.base.types import Real
from engine.catalog import files
from engine.catalog.hardware import Gpu, Link, Node
from engine.mechanism import start_ups

SHORTEST_S = 1e-9  # of a product: one pass through a tensor core takes longer, whatever the bytes
LEVELS = ("registers", "smem", "l2", "hbm", "link", "host", "network", "storage")
VALUE_BYTES = 2.0  # bf16

SCHEDULERS, LANES, OPERANDS, WORD_BYTES = 4, 32, 3, 4
# Each scheduler issues one instruction for 32 threads per clock, which reads at most three operands of 4
# bytes for each thread.
REGISTER_BYTES_PER_CLOCK = SCHEDULERS * LANES * OPERANDS * WORD_BYTES
# 32 banks of 4 bytes (CUDA C++ Programming Guide, compute capabilities 5.x and later).
SMEM_BYTES_PER_CLOCK = LANES * WORD_BYTES
REGISTER_FILE_BYTES = 65536 * WORD_BYTES  # 64 K registers an SM, the same guide
REGISTER_CLOCKS = 4  # from one instruction to the next that needs its result (arXiv:1804.06826)


@dataclass(frozen=True)
class Hierarchy:
    """One GPU in its usual node, with what has been measured of its caches and latencies."""

    key: str
    node: Node
    host_start_s: float
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
        """The GPU of the node."""
        return self.node.gpu

    @property
    def name(self) -> str:
        """The GPU's name."""
        return self.gpu.name

    @property
    def host(self) -> Link:
        """The link between a GPU and its host."""
        return catalog.all_hosts()[self.key].link


@lru_cache(None)
def hierarchies() -> dict[str, Hierarchy]:
    """The hierarchies of the catalogue's GPUs, by key."""
    entries = files.table("memories.toml", Hierarchy, node=catalog.node)
    return {key: Hierarchy(key, **entry) for key, entry in entries.items()}


# -- bandwidth, latency, capacity: one number for each of LEVELS ---------------------------------------------
def bytes_per_s(chip: Hierarchy) -> Real:
    """Bandwidth of each level. Registers and shared memory: SMs · bytes per clock · clock, the most that the
    banks can deliver. L2: measured. The others: as the vendor states them, one way; HBM counts reads and
    writes together; the network is one GPU's share of the NICs."""
    gpu = chip.gpu
    all_sms_hz = gpu.sms * chip.clock_hz
    return np.stack(
        [
            all_sms_hz * REGISTER_BYTES_PER_CLOCK,
            all_sms_hz * SMEM_BYTES_PER_CLOCK,
            chip.l2_bytes_per_s,
            gpu.hbm_bytes_per_s,
            gpu.link_bytes_per_s,
            chip.host.bytes_per_s,
            gpu.nic_bytes_per_s,
            chip.storage_bytes_per_s,
        ]
    )


def alpha_s(chip: Hierarchy) -> Real:
    """Time before the first byte: a dependent load on the chip; between GPUs, one hop of a collective
    (``start_ups.hop_s``); from the host, a small copy as we measured it; a drive's own latency."""
    return np.stack(
        [
            REGISTER_CLOCKS / chip.clock_hz,
            chip.smem_clocks / chip.clock_hz,
            chip.l2_clocks / chip.clock_hz,
            chip.hbm_clocks / chip.clock_hz,
            start_ups.link_hop_s(chip.gpu),
            chip.host_start_s,
            start_ups.card_hop_s(chip.gpu),
            chip.storage_latency_s,
        ]
    )


def held_bytes(chip: Hierarchy) -> Real:
    """Capacity of the first four levels; the other levels are links, which store nothing."""
    gpu = chip.gpu
    return np.stack(
        [gpu.sms * REGISTER_FILE_BYTES, gpu.sms * gpu.smem_bytes_per_sm, gpu.l2_bytes, gpu.hbm_bytes]
    )


# -- moving a payload ------------------------------------------------------------------------------------
def move_s(payload_bytes: Real, chip: Hierarchy) -> Real:
    """α + S/B at each level. Leaves out protocols, contention, and bandwidth wasted by access patterns."""
    check.positive(payload_bytes=payload_bytes)
    return alpha_s(chip) + payload_bytes / bytes_per_s(chip)


def rate_reached(payload_bytes: Real, chip: Hierarchy) -> Real:
    """Effective bandwidth for a payload, S / (α + S/B), at each level."""
    return payload_bytes / move_s(payload_bytes, chip)


def half_rate_bytes(chip: Hierarchy) -> Real:
    """α·B: the payload for which start-up and transfer take equally long, so that it sees half the rate
    (Hockney's n½)."""
    return alpha_s(chip) * bytes_per_s(chip)


def square_matmul_width(payload_bytes: Real, value_bytes: Real = VALUE_BYTES) -> Real:
    """The n at which two n×n matrices and their product together are as large as the payload: S = 3·b·n²."""
    check.positive(payload_bytes=payload_bytes, value_bytes=value_bytes)
    return np.sqrt(payload_bytes / (3 * value_bytes))


def square_matmul_s(payload_bytes: Real, peak_flops_per_s: Real, value_bytes: Real = VALUE_BYTES) -> Real:
    """2·n³ FLOPs at the peak, for that product. Leaves out launch and tiles: real products are slower, small
    ones much slower."""
    check.positive(peak_flops_per_s=peak_flops_per_s)
    return 2 * square_matmul_width(payload_bytes, value_bytes) ** 3 / peak_flops_per_s


def against_matmul(
    payload_bytes: Real, chip: Hierarchy, peak_flops_per_s: Real, value_bytes: Real = VALUE_BYTES
) -> Real:
    """Time to move a payload over the time of a matrix product of the same bytes; up to 1, the transfer can
    hide behind the product."""
    return move_s(payload_bytes, chip) / square_matmul_s(payload_bytes, peak_flops_per_s, value_bytes)


def hidden_from_bytes(chip: Hierarchy, peak_flops_per_s: Real, value_bytes: Real = VALUE_BYTES) -> Real:
    """The payload above which the product of the same bytes takes longer than moving them, at each level.

    2n³/C = 3bn²/B gives n = 3bC/(2B): the arithmetic grows with n³, the bytes with n². Leaves out α.
    """
    check.positive(peak_flops_per_s=peak_flops_per_s, value_bytes=value_bytes)
    width = 3 * value_bytes * peak_flops_per_s / (2 * bytes_per_s(chip))
    return 3 * value_bytes * width**2


# -- one way and two ways ------------------------------------------------------------------------------------
def link_over_network(chip: Hierarchy) -> Real:
    """The link's rate over the network's, both one way and for one GPU, so that like is compared with
    like."""
    return chip.gpu.link_bytes_per_s / chip.gpu.nic_bytes_per_s


def as_advertised(chip: Hierarchy) -> Real:
    """``link_over_network`` with the figures as printed: vendors quote links in both directions together, and
    network ports in one."""
    return chip.gpu.link_marketing_bytes_per_s / chip.gpu.nic_bytes_per_s
