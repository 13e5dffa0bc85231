"""The rules of lessons 16 and 17: chains fused, attention and products in tiles."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from engine import catalog
from engine.catalog.hardware import Gpu
from engine.executed import flash_attention, tiled_product
from engine.mechanism import fusion
from engine.one_gpu import own_timings, recordings, tile_order, tiling
from engine.rules.held import HeldRule

GPUS = tuple(catalog.gpu(key) for key in ("a100-80", "h100-sxm", "b200"))
TILE_NAMES = tiling.Tile._fields


# -- lesson 16 -----------------------------------------------------------------------------------------------
def gain_of_passes(gpu: Gpu, operations: int, flops: float, elements: float) -> float:
    """The rule's gain of fusing k operations: k while the arithmetic of the whole chain takes no longer than
    reading and writing the tensor once, and 1 from where the arithmetic of a single operation takes
    longer."""
    fits = fusion.break_even_flops_per_element(gpu)
    return operations * max(1.0, flops / fits) / max(1.0, operations * flops / fits)


def gain(gpu: Gpu, operations: int, flops: float, elements: float) -> float:
    """The gain by the engine's kernels, launches included."""
    return float(fusion.gain(fusion.compared(elements, operations, flops, 2, 0.0, gpu)))


@cache
def head(tokens: int, width: int) -> np.ndarray:
    """Queries, keys and values of one head."""
    random = np.random.default_rng(0)
    return random.normal(size=(3, tokens, width))


def tiled_values(tokens: int, width: int, sram: int) -> float:
    """The rule's number of values moved by attention in tiles: 8·N²·d²/M."""
    return 8 * tokens**2 * width**2 / sram


def moved_in_tiles(tokens: int, width: int, sram: int) -> int:
    """The values that enter or leave the SRAM in an executed sweep with the largest tiles."""
    rows = int(flash_attention.tile_rows(2.0 * sram, width))
    inner = int(flash_attention.inner_rows(rows, width))
    q, k, v = head(tokens, width)
    return flash_attention.tiled(q, k, v, rows, inner).values_moved


# -- lesson 17 -----------------------------------------------------------------------------------------------
@cache
def flops_a_byte(size: int, block_m: int, block_n: int) -> float:
    """FLOPs per byte that the tiles read, in an executed product of square matrices with values of 2
    bytes."""
    ones = np.ones((size, size))
    _, read = tiled_product.product(ones, ones, block_m, block_n, size)
    return 2 * size**3 / (2 * read)


def wave_blocks(wave: int, group: int) -> float:
    """The rule's number of blocks that a wave reads, for each block along k: g + W/g."""
    return group + wave / group


def blocks_of_a_wave(wave: int, group: int) -> int:
    """The blocks that the first wave of an executed order reads, in a product of 16 × 16 tiles and one block
    along k."""
    return tile_order.run(16, 16, 1, group, wave, tile_order.MOST, 1)["wave_read"]


def compiled(key: str) -> tuple[dict, ...]:
    """The recorded tiles for this chip that are tall enough for a Hopper's warp-group instructions."""
    rows = recordings.load("triton_tiles")["tiles"][key]
    return tuple(row for row in rows if row["block_m"] >= tiling.GROUP_ROWS)


def staged_bytes(row: dict, less: int) -> float:
    """The rule's bytes of staged tiles, 2·s·b_k·(b_m + b_n), for s = the row's stages minus ``less``."""
    tile = tiling.Tile(*(row[name] for name in TILE_NAMES))
    return 2 * (tile.stages - less) * tile.block_k * (tile.block_m + tile.block_n)


STAIRS = tuple(row for row in own_timings.tiles() if row.device == "H100")
FULL = max(STAIRS, key=lambda row: row.triton)  # the size at which the kernel is fastest


def busy(rows: int) -> float:
    """The share of the multiprocessors' places in whole waves that the tiles of the lesson's kernel fill, for
    a result of 4,096 columns."""
    tiles = math.ceil(rows / 128) * 4096 // 256
    places = GPUS[1].sms * math.ceil(tiles / GPUS[1].sms)
    return tiles / places


RULES = (
    HeldRule(
        "16-custom-kernels-and-fusion",
        "rule-what-fusing-brings",
        gain_of_passes,
        gain,
        {"gpu": GPUS, "operations": (2, 4, 8, 16), "flops": (1, 10, 50, 200), "elements": (2.0**27, 2.0**30)},
        "2 to 16 operations of 1 to 200 FLOPs on tensors of 2²⁷ and 2³⁰ elements, A100 to B200",
        "the engine's kernels, launches included",
    ),
    HeldRule(
        "16-custom-kernels-and-fusion",
        "rule-standard-attention",
        lambda tokens, width: 4 * tokens * width + 4 * tokens**2,
        lambda tokens, width: flash_attention.written_out(*head(tokens, width))[1],
        {"tokens": (64, 256, 512), "width": (16, 64)},
        "64 to 512 tokens and heads of 16 and 64",
        "the three kernels, executed",
    ),
    HeldRule(
        "16-custom-kernels-and-fusion",
        "rule-attention-in-tiles",
        tiled_values,
        moved_in_tiles,
        {"tokens": (256, 512), "width": (16, 32), "sram": (2048, 4096)},
        "256 and 512 tokens, heads of 16 and 32 and an SRAM of 2,048 and 4,096 values",
        "the tiles, executed",
        0.3,
        because="The rule leaves out queries and results, moved once; with more tiles they count for less.",
    ),
    HeldRule(
        "17-triton",
        "rule-what-a-tile-is-worth",
        lambda size, block_m, block_n: block_m * block_n / (block_m + block_n),
        flops_a_byte,
        {"size": (128, 256), "block_m": (8, 16, 32), "block_n": (8, 32, 64)},
        "tiles of 8 × 8 to 32 × 64 that divide the matrices",
        "the reads of a product, executed tile by tile",
    ),
    HeldRule(
        "17-triton",
        "rule-a-wave-should-be-a-square",
        wave_blocks,
        blocks_of_a_wave,
        {"wave": (16, 32, 64), "group": (1, 2, 3, 4, 5, 6, 8, 16)},
        "waves of 16 to 64 programs in groups of 1 to 16 rows",
        "the executed order of tiles",
        0.1,
        claims=lambda wave, group: group <= wave and wave / group <= 16,
        because="It is exact where the group divides the wave.",
    ),
    HeldRule(
        "17-triton",
        "rule-the-budget-of-a-tile",
        lambda row: staged_bytes(row, less=0),
        lambda row: row["smem_bytes"],
        {"row": compiled("h100-sxm")},
        f"{len(compiled('h100-sxm'))} tiles from 64 rows on",
        "the shared memory that Triton's compiler takes for an H100",
    ),
    HeldRule(
        "17-triton",
        "rule-the-budget-of-a-tile",
        lambda row: staged_bytes(row, less=1),
        lambda row: row["smem_bytes"],
        {"row": compiled("a100-80")},
        "the same tiles with one stage less",
        "what it takes for an A100",
    ),
    HeldRule(
        "17-triton",
        "rule-the-tail",
        lambda row: busy(row.rows) / busy(FULL.rows),
        lambda row: row.triton / FULL.triton,
        {"row": STAIRS},
        f"{min(row.rows for row in STAIRS):,} to {max(row.rows for row in STAIRS):,} rows, relative to "
        f"{FULL.rows:,}",
        "the speed of this lesson's kernel, timed on an H100",
        0.1,
    ),
)
