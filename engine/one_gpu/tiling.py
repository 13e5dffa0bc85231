"""A matrix product as a grid of programs, one per tile of the result: what a tile needs of a multiprocessor,
how the tiles spread over the chip, and how long that takes.

A program keeps its tile of C in registers and moves along k. Each step needs a block of A and a block of B in
shared memory, where several stages of them are being loaded while one is used. The time is set by the slowest
of the arithmetic, the reads through L2, the latency that the stages must cover, and HBM, on the
multiprocessor with the most tiles. 16-bit operands, sums in fp32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypedDict

import numpy as np

from engine import catalog
from engine.base import check, ops
from engine.base.types import Real, Truth
from engine.calibration import DEFAULT
from engine.catalog import files
from engine.mechanism import matmul
from engine.mechanism.hierarchy import SMEM_BYTES_PER_CLOCK, WORD_BYTES, hierarchies
from engine.one_gpu import measurements

ELEMENT_BYTES = 2.0
LANES = 32.0  # threads of a warp
# Limits of one multiprocessor of compute capability 8.0 and 9.0 (CUDA C++ Programming Guide, technical
# specifications).
REGISTERS, MOST_REGISTERS, REGISTER_STEP = (
    65536.0,
    255.0,
    8.0,
)  # registers in total, the most per thread, and the granularity of allocation
WARPS, PROGRAMS = 64.0, 32.0
RESERVED_SMEM_BYTES = 1024.0  # reserved for each program
GROUP_ROWS = 64.0  # fewest rows of a tile for Hopper's warpgroup instruction (four warps together)
# Registers per thread: a base for addresses, masks and counters, plus a multiple of the sums that it holds.
# Hopper's matrix units read their operands from shared memory (True), others from registers. Fitted to the
# kernels compiled for 22 tiles (engine/one_gpu/recordings/triton_tiles.json), so that for each tile as many
# programs fit on a multiprocessor as of the compiled kernel.
BASE_REGISTERS = {True: 16.0, False: 34.0}
REGISTERS_A_SUM = {True: 1.46, False: 1.6}
# What an autotuner tries; among equals the first one wins.
BLOCKS, INNER_BLOCKS, STAGES, WARP_COUNTS = (128, 256, 64, 32), (64, 32, 128), (3, 4, 2, 5), (8, 4)


class Tile(NamedTuple):
    """What a program computes and how: the constants of a Triton kernel for matrix products. Each may be an
    array."""

    block_m: Real
    block_n: Real
    block_k: Real
    stages: Real
    warps: Real


@dataclass(frozen=True)
class KernelGpu:
    """A GPU as seen by a kernel's author."""

    key: str
    name: str
    multiprocessors: float
    flops_per_s: float  # the best product measured on this chip
    hbm_bytes_per_s: float  # reached by streaming kernels
    l2_bytes: float
    l2_bytes_per_s: float
    smem_bytes: float  # per multiprocessor
    clock_hz: float
    load_s: float  # latency of a load from HBM
    reads_smem: float  # 1.0 where the matrix units read their operands from shared memory


@lru_cache(None)
def chips() -> dict[str, KernelGpu]:
    """The chips whose compiled kernels are recorded: an Ampere and a Hopper."""
    return {key: _chip(key, reads_smem) for key, reads_smem in (("a100-80", False), ("h100-sxm", True))}


def chip(key: str) -> KernelGpu:
    """One of the chips by key."""
    check.one_of(chips(), key=key)
    return chips()[key]


def _chip(key: str, reads_smem: bool) -> KernelGpu:
    gpu, levels = catalog.gpu(key), hierarchies()[key]
    return KernelGpu(
        key=key,
        name=gpu.name,
        multiprocessors=float(gpu.sms),
        l2_bytes=gpu.l2_bytes,
        flops_per_s=gpu.bf16_flops_per_s * matmul.achievable_share(gpu, "bf16"),
        hbm_bytes_per_s=gpu.hbm_bytes_per_s * DEFAULT.memory_share,
        l2_bytes_per_s=levels.l2_bytes_per_s,
        smem_bytes=gpu.smem_bytes_per_sm,
        clock_hz=levels.clock_hz,
        load_s=levels.hbm_clocks / levels.clock_hz,
        reads_smem=float(reads_smem),
    )


# -- the grid ------------------------------------------------------------------------------------------------
def blocks(size: Real, block: Real) -> Real:
    """How many blocks cover a size; the last one may extend beyond it."""
    check.positive(size=size, block=block)
    return ops.ceil(size / block)


def programs(m: Real, n: Real, tile: Tile) -> Real:
    """The number of programs: one per tile of the m×n result."""
    return blocks(m, tile.block_m) * blocks(n, tile.block_n)


def masked_share(m: Real, n: Real, block_m: Real, block_n: Real) -> Real:
    """The share of all lanes that a mask switches off: 1 − m·n over the number of elements that the tiles
    cover."""
    return 1.0 - m * n / (blocks(m, block_m) * block_m * blocks(n, block_n) * block_n)


def intensity(tile: Tile) -> Real:
    """FLOPs per byte that a step loads into shared memory: 2·bm·bn·bk / (2·bk·(bm + bn)) = bm·bn/(bm +
    bn)."""
    return 2.0 * tile.block_m * tile.block_n / (ELEMENT_BYTES * (tile.block_m + tile.block_n))


# -- one multiprocessor --------------------------------------------------------------------------------------
def from_smem(tile: Tile, at: KernelGpu) -> Truth:
    """Whether the matrix units read their operands from shared memory rather than registers."""
    return (at.reads_smem > 0.0) & (tile.block_m >= GROUP_ROWS)


def buffers(tile: Tile, at: KernelGpu) -> Real:
    """Stages in shared memory. If the matrix units read from registers, the stage in use needs no place in
    shared memory."""
    return ops.where(from_smem(tile, at), tile.stages, ops.maximum(tile.stages - 1.0, 1.0))


def smem_bytes(tile: Tile, at: KernelGpu) -> Real:
    """Shared memory of one program: buffers · bk·(bm + bn) elements, exactly as Triton 3.7.1 compiles
    kernels/matmul.py (recorded)."""
    return buffers(tile, at) * tile.block_k * (tile.block_m + tile.block_n) * ELEMENT_BYTES


def sums(tile: Tile) -> Real:
    """Elements of C that each thread holds in registers."""
    return tile.block_m * tile.block_n / (LANES * tile.warps)


def registers_needed(tile: Tile, at: KernelGpu) -> Real:
    """Registers per thread, a whole number; beyond MOST_REGISTERS they spill. Within 20 % of the compiled
    kernels, except for one tile: 128 × 128 with eight warps takes 27 % more registers on an A100 since Triton
    3.9."""
    read_smem = from_smem(tile, at)
    base = ops.where(read_smem, BASE_REGISTERS[True], BASE_REGISTERS[False])
    return ops.ceil(base + ops.where(read_smem, REGISTERS_A_SUM[True], REGISTERS_A_SUM[False]) * sums(tile))


def registers(tile: Tile, at: KernelGpu) -> Real:
    """Registers per thread, as the chip allocates them."""
    needed = ops.minimum(registers_needed(tile, at), MOST_REGISTERS)
    return ops.ceil(needed / REGISTER_STEP) * REGISTER_STEP


def spilled(tile: Tile, at: KernelGpu) -> Real:
    """Registers of each thread that do not fit."""
    return ops.maximum(registers_needed(tile, at) - MOST_REGISTERS, 0.0)


def by_smem(tile: Tile, at: KernelGpu) -> Real:
    """Programs whose shared memory fits on one multiprocessor."""
    return ops.floor(at.smem_bytes / (smem_bytes(tile, at) + RESERVED_SMEM_BYTES))


def by_registers(tile: Tile, at: KernelGpu) -> Real:
    """Programs whose registers fit on one multiprocessor."""
    return ops.floor(REGISTERS / (registers(tile, at) * LANES * tile.warps))


def resident(tile: Tile, at: KernelGpu) -> Real:
    """Programs that one multiprocessor holds at a time; 0 means that the kernel cannot be launched."""
    by_warps = ops.minimum(ops.floor(WARPS / tile.warps), PROGRAMS)
    return ops.minimum(ops.minimum(by_smem(tile, at), by_registers(tile, at)), by_warps)


def budget_shares(tile: Tile, at: KernelGpu) -> tuple[Real, Real, Real]:
    """One program's shares of a multiprocessor: (of its shared memory, of its registers, of its warp
    slots)."""
    return (
        (smem_bytes(tile, at) + RESERVED_SMEM_BYTES) / at.smem_bytes,
        registers(tile, at) * LANES * tile.warps / REGISTERS,
        tile.warps / WARPS,
    )


def occupancy(tile: Tile, at: KernelGpu) -> Real:
    """Resident warps as a share of the maximum."""
    return resident(tile, at) * tile.warps / WARPS


# -- the whole chip ------------------------------------------------------------------------------------------
def busiest(count: Real, multiprocessors: Real) -> Real:
    """The number of tiles on the busiest multiprocessor: ceil(tiles / multiprocessors)."""
    return ops.ceil(count / multiprocessors)


def busy_share(count: Real, multiprocessors: Real) -> Real:
    """The share of time in which the multiprocessors have work, if all tiles take equally long; the rest is
    the tail.

    tiles / (multiprocessors · ceil(tiles / multiprocessors)): NVIDIA's wave quantization (Matrix
    Multiplication Background User's Guide, section 3.2) for one program per multiprocessor. Several resident
    programs share a multiprocessor's units, so the one with the most tiles still finishes last.
    """
    check.positive(count=count, multiprocessors=multiprocessors)
    return count / (busiest(count, multiprocessors) * multiprocessors)


def last_wave_tiles(count: Real, multiprocessors: Real) -> Real:
    """Tiles in the last wave."""
    return count - (busiest(count, multiprocessors) - 1.0) * multiprocessors


class Published(NamedTuple):
    """A product on an H100 as somebody timed it."""

    what: str
    m: int
    n: int
    k: int
    flops_per_s: float


PUBLISHED = (
    # triton-lang/triton, issue 2339, fp16
    Published("cuBLAS, September 2023", 2048, 4096, 4096, 613.7e12),
    Published("Triton, September 2023", 2048, 4096, 4096, 346.3e12),
    Published("Triton, September 2023", 2048, 8192, 8192, 369.8e12),
    # meta-pytorch/tritonbench, pull request 894, before its change; it does not name its GPU
    Published("Triton, persistent with TMA, February 2026", 8192, 8192, 4096, 665.9e12),
    Published("the same", 8192, 8192, 8192, 673.6e12),
    Published("the same", 8192, 8192, 16384, 688.7e12),
    # H. He, gist 2ec89696db8b7ed1c24461159e325405, with more of the chip's power for its tensor cores
    Published("CUTLASS, power boosted, He", 4224, 2048, 8192, 780.2e12),
)


class Times(NamedTuple):
    """Seconds on the busiest multiprocessor if each were the only limit, and for HBM; ``total_s`` is the
    estimate."""

    arithmetic_s: float
    l2_s: float
    latency_s: float
    hbm_s: float
    total_s: float


def hbm_bytes(m: Real, n: Real, k: Real, tile: Tile, at: KernelGpu, group: Real) -> Real:
    """Bytes that HBM reads and writes: each operand once if both fit in L2, else once for each wave that uses
    it.

    A wave of W tiles in groups of g rows spans g rows of tiles and W/g columns, (g·bm + W/g·bn)·k elements.
    The programs of a wave move along k together, so a block is read from HBM once per wave. Leaves out blocks
    that a wave finds in L2 from the wave before.
    """
    once = (m * k + k * n) * ELEMENT_BYTES
    down, across = blocks(m, tile.block_m), blocks(n, tile.block_n)
    wave = ops.minimum(at.multiprocessors * ops.maximum(resident(tile, at), 1.0), down * across)
    height = ops.minimum(group, down)
    groups = ops.maximum(wave / (height * across), 1.0)
    width = ops.minimum(ops.ceil(wave / height), across)
    each = (groups * height * tile.block_m + width * tile.block_n) * k * ELEMENT_BYTES
    read = ops.where(once <= at.l2_bytes, once, ops.maximum(once, down * across / wave * each))
    return read + m * n * ELEMENT_BYTES


def step_s(tile: Tile, at: KernelGpu) -> Real:
    """Arithmetic of one step along k: 2·bm·bn·bk/rate; spilled registers go out and back in through L1 once
    per step."""
    spill_s = 2.0 * spilled(tile, at) * WORD_BYTES * LANES * tile.warps / (SMEM_BYTES_PER_CLOCK * at.clock_hz)
    return 2.0 * tile.block_m * tile.block_n * tile.block_k * at.multiprocessors / at.flops_per_s + spill_s


def ends_s(tile: Tile, at: KernelGpu, together: Real) -> Real:
    """Seconds at the start and the end of a program: it waits for its first load, which other resident
    programs may hide, and it writes its tile to L2."""
    return (
        at.load_s / together
        + tile.block_m * tile.block_n * ELEMENT_BYTES * at.multiprocessors / at.l2_bytes_per_s
    )


def times(m: Real, n: Real, k: Real, tile: Tile, at: KernelGpu, group: Real = 8.0) -> Times:
    """The time of a product of m×k by k×n, and what limits it.

    A step along k takes the matrix units step_s, and L2 2·bk·(bm + bn)/rate, for each of the programs that
    share the multiprocessor. One program's step takes at least load/(stages − 1), because a block requested
    at the start of a step is used stages − 1 steps later (a single stage loads and computes in turn). Each
    program adds its ends_s. Leaves out the launch, bank conflicts, clusters, persistent kernels and splits
    along k.
    """
    check.positive(m=m, n=n, k=k, group=group)
    mine = busiest(programs(m, n, tile), at.multiprocessors)
    together = ops.maximum(ops.minimum(resident(tile, at), mine), 1.0)
    work_s, ends = step_s(tile, at), ends_s(tile, at, together)
    feed_s = (
        (tile.block_m + tile.block_n) * tile.block_k * ELEMENT_BYTES * at.multiprocessors / at.l2_bytes_per_s
    )
    ahead = ops.maximum(tile.stages - 1.0, 1.0)
    covered_s = ops.where(tile.stages > 1.0, at.load_s / ahead, at.load_s + work_s)
    steps = blocks(k, tile.block_k)
    arithmetic_s, l2_s, latency_s = (
        mine * (steps * each + ends) for each in (work_s, feed_s, covered_s / together)
    )
    hbm_s = hbm_bytes(m, n, k, tile, at, group) / at.hbm_bytes_per_s
    return Times(
        arithmetic_s,
        l2_s,
        latency_s,
        hbm_s,
        ops.maximum(ops.maximum(arithmetic_s, l2_s), ops.maximum(latency_s, hbm_s)),
    )


def flops_per_s(m: Real, n: Real, k: Real, tile: Tile, at: KernelGpu, group: Real = 8.0) -> Real:
    """2·m·n·k over the estimated time; 0 for a tile that does not fit on a multiprocessor."""
    fits = ops.where(resident(tile, at) >= 1.0, 1.0, 0.0)
    return fits * 2.0 * m * n * k / times(m, n, k, tile, at, group).total_s


def bound(found: Times) -> Real:
    """What limits the estimate: 0 arithmetic, 1 L2, 2 latency, 3 HBM."""
    return np.argmin(np.stack([found.total_s - each for each in found[:4]]))


# -- the space that an autotuner tries -----------------------------------------------------------------------
@lru_cache(None)
def space() -> Tile:
    """All tiles that are tried, as one Tile of arrays."""
    grid = np.meshgrid(BLOCKS, BLOCKS, INNER_BLOCKS, STAGES, WARP_COUNTS, indexing="ij")
    return Tile(*(axis.ravel().astype(float) for axis in grid))


def tile_at(index: Real) -> Tile:
    """One tile of the space."""
    found, columns = index, []
    for values in reversed((BLOCKS, BLOCKS, INNER_BLOCKS, STAGES, WARP_COUNTS)):
        place = found - ops.floor(found / len(values)) * len(values)
        columns.append(sum(ops.where(place == i, float(value), 0.0) for i, value in enumerate(values)))
        found = ops.floor(found / len(values))
    return Tile(*reversed(columns))


def best(m: Real, n: Real, k: Real, at: KernelGpu, group: Real = 8.0) -> Tile:
    """The tile of the space with the highest estimate."""
    return tile_at(np.argmax(flops_per_s(m, n, k, space(), at, group)))


# -- measurements --------------------------------------------------------------------------------------------
class TimedProduct(NamedTuple):
    """A product that was timed, here or elsewhere."""

    chip: str
    name: str
    m: float
    n: float
    k: float
    flops_per_s: float


class Cited(TypedDict):
    """A published timing of a product, as in the catalogue."""

    name: str
    m: int
    n: int
    k: int
    flops_per_s: float
    source: str
    checked: str


@lru_cache(None)
def products() -> tuple[TimedProduct, ...]:
    """The published timings of products in the catalogue."""
    return tuple(
        TimedProduct(key, row["name"], row["m"], row["n"], row["k"], row["flops_per_s"])
        for key, rows in files.table("products.toml", list[Cited]).items()
        for row in rows
    )


class TileTiming(NamedTuple):
    """A product timed by measure/tile_sweep.py: by lesson 17's kernel with this tile, or by torch's kernel,
    which has no such tile."""

    chip: str
    m: float
    n: float
    k: float
    flops_per_s: float
    tile: Tile | None


@lru_cache(None)
def timed_here() -> tuple[TileTiming, ...]:
    """The products that were timed on our own chips. The sweep over rows uses the first tile of the sweep
    over tiles."""
    found = []
    for key, sweep in measurements.on_known("tile_sweep"):
        if key not in chips():
            continue
        n, k, rows = sweep["n"], sweep["k"], sweep["by_rows"]
        first, *others = [
            (Tile(*[row[side] for side in Tile._fields]), row["flops_per_s"]) for row in sweep["by_tile"]
        ]
        found += [TileTiming(key, row["rows"], n, k, row["torch_flops_per_s"], None) for row in rows]
        found += [TileTiming(key, row["rows"], n, k, row["flops_per_s"], first[0]) for row in rows]
        found += [TileTiming(key, rows[-1]["rows"], n, k, rate, tile) for tile, rate in others]
    return tuple(found)
