"""What a matrix product, a streaming kernel and fused attention cost on one GPU.

A product is cut into tiles; the tiles run in waves over the multiprocessors; a last wave that is half empty costs as
much as a full one, and a tile at the edge as much as one inside. The product is done when the slower of arithmetic and
memory is.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine import check, ops
from engine.calibration import DEFAULT
from engine.hardware import WIDER

TILE = 128.0            # rows and columns of one thread block's tile
TILE_FLOPS = 2.0 * TILE * TILE
SMALL_TILE = 16.0       # a product with fewer rows than a tile pads them to this many
RAMP_K = TILE / 2.0     # steps along k that loading the first tiles and writing the result cost
SPLIT_K = 512.0         # with fewer tiles than multiprocessors, k is split into pieces not shorter than this
ELEMENT_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5}


@dataclass(frozen=True, slots=True)
class Chip:
    """What one GPU achieves: rates after calibration. ``wide`` is the precision that the head and attention stay in."""

    matmul_flops_per_s: float
    wide_flops_per_s: float
    attention_flops_per_s: float
    memory_bytes_per_s: float
    multiprocessors: float
    operand_bytes: float            # of an element that a matrix product reads; it writes 16 bits, or 32 in fp32
    wide_bytes: float
    casts: float                    # 1.0 where operands are cast to a narrower format before each product
    launch_s: float
    softmax_d: float


@lru_cache(None)
def _achievable() -> dict:
    """Best shares by GPU key, and the medians for chips that were never measured."""
    with Path(__file__).with_name("catalog").joinpath("achievable.toml").open("rb") as file:
        shares = tomllib.load(file)
    medians = {}
    for kind in ("bf16", "fp8"):
        known = sorted(entry[kind] for entry in shares.values() if kind in entry)
        medians[kind] = known[len(known) // 2]
    return shares | {"": medians}


def achievable_share(gpu, precision: str) -> float:
    """The best measured matrix product on this chip, as a share of its dense peak."""
    kind = "fp8" if precision in ("fp8", "int8", "fp4") else "bf16"
    shares = _achievable()
    return shares.get(gpu.key, {}).get(kind, shares[""][kind])


def sustained_share(gpu, calibration=DEFAULT) -> float:
    """What a training step sustains of the best product: less on chips with much arithmetic for their power.

    share · (peak per watt in TFLOP/s)^−power, with the 16-bit peak (or fp32's) and the board's power; at most 1.
    """
    peak = gpu.bf16_flops_per_s or gpu.fp16_flops_per_s or gpu.fp32_flops_per_s
    dense = peak / 1e12 / gpu.tdp_w if gpu.tdp_w else 1.0
    return min(1.0, calibration.matmul_sustained * dense ** -calibration.matmul_power)


def supported_precision(gpu, precision: str) -> str:
    """The precision itself, or the next wider one that the chip has units for."""
    check.one_of(ELEMENT_BYTES, precision=precision)
    while not getattr(gpu, f"{precision}_flops_per_s"):
        if precision == "fp32":
            raise ValueError(f"gpu must have a peak in fp32 or wider formats; {gpu.key!r} has none")
        precision = WIDER[precision]
    return precision


def chip(gpu, precision: str = "bf16", calibration=DEFAULT) -> Chip:
    """The GPU at work in one precision (in the next wider one where it has no such unit)."""
    precision = supported_precision(gpu, precision)
    wide = precision if ELEMENT_BYTES[precision] >= 2.0 else supported_precision(gpu, "bf16")
    peak = getattr(gpu, f"{precision}_flops_per_s")
    wide_peak = getattr(gpu, f"{wide}_flops_per_s")
    sustained = sustained_share(gpu, calibration)
    return Chip(
        matmul_flops_per_s=float(peak * achievable_share(gpu, precision) * sustained),
        wide_flops_per_s=float(wide_peak * achievable_share(gpu, wide) * sustained),
        attention_flops_per_s=float(wide_peak * calibration.attention_share),
        memory_bytes_per_s=float(gpu.hbm_bytes_per_s * calibration.memory_share),
        multiprocessors=float(gpu.sms or 1),
        operand_bytes=ELEMENT_BYTES[precision],
        wide_bytes=ELEMENT_BYTES[wide],
        casts=1.0 if precision != wide else 0.0,
        launch_s=float(calibration.launch_s),
        softmax_d=float(calibration.attention_softmax_d),
    )


def waves(tiles, k, multiprocessors):
    """Waves that so many tiles take: whole ones from one upwards; below, k is split so that more of the chip has
    work."""
    check.positive(tiles=tiles, k=k, multiprocessors=multiprocessors)
    return _waves(tiles / multiprocessors, k)


def _waves(share, k):
    if share.__class__ is float and share >= 1.0:       # the usual case by far
        return float(math.ceil(share))
    return ops.where(share >= 1.0, ops.ceil(share), ops.maximum(share, 1.0 / ops.maximum(1.0, k / SPLIT_K)))


def product_s(m, n, k, batch, flops_per_s, operand_bytes, result_bytes, at: Chip):
    """``batch`` products m×k by k×n: the slower of its waves of tiles and of its bytes.

    waves · multiprocessors · 2·128·128·(k + ramp) / rate, against (m·k + k·n)·operand + m·n·result bytes.
    Leaves out what the L2 cache saves or costs, and tiles of other shapes than 128×128.
    """
    check.positive(m=m, n=n, k=k, batch=batch, flops_per_s=flops_per_s, operand_bytes=operand_bytes)
    check.non_negative(result_bytes=result_bytes)
    return _tiled_product_s(m, n, k, ops.ceil(m / TILE) * ops.ceil(n / TILE) * batch, _filled(m), batch, flops_per_s,
                            operand_bytes, result_bytes, at)


def _filled(rows):
    """The part of a tile that so few rows are padded to; whole tiles from one upwards."""
    if rows.__class__ is float and rows >= TILE:
        return 1.0
    return ops.where(rows < TILE, ops.ceil(rows / SMALL_TILE) * (SMALL_TILE / TILE), 1.0)


def _tiled_product_s(m, n, k, tiles, filled, batch, flops_per_s, operand_bytes, result_bytes, at: Chip):
    arithmetic_s = _waves(tiles / at.multiprocessors, k) * filled * (
        at.multiprocessors * TILE_FLOPS * (k + RAMP_K) / flops_per_s)
    memory_s = batch * ((m + n) * k * operand_bytes + m * n * result_bytes) / at.memory_bytes_per_s
    return ops.maximum(arithmetic_s, memory_s)


def trained_product_s(rows, k, n, batch, flops_per_s, operand_bytes, sum_bytes, at: Chip):
    """The three products of a weight k×n that ``rows`` tokens meet: forward, gradient of the input, gradient of the
    weight (added to a sum of ``sum_bytes`` an element)."""
    if not check.is_trusted():
        check.positive(rows=rows, k=k, n=n, batch=batch, flops_per_s=flops_per_s, operand_bytes=operand_bytes)
        check.non_negative(sum_bytes=sum_bytes)
    tiles_rows, tiles_k, tiles_n = ops.ceil(rows / TILE) * batch, ops.ceil(k / TILE), ops.ceil(n / TILE)
    filled = _filled(rows)
    rate, operand = flops_per_s, operand_bytes
    return (_tiled_product_s(rows, n, k, tiles_rows * tiles_n, filled, batch, rate, operand, 2.0, at),
            _tiled_product_s(rows, k, n, tiles_rows * tiles_k, filled, batch, rate, operand, 2.0, at),
            _tiled_product_s(k, n, rows, tiles_k * tiles_n * batch, 1.0, batch, rate, operand, sum_bytes, at))


def stream_s(moved_bytes, at: Chip):
    """A kernel that only moves bytes: norms, activations, the optimizer."""
    if not check.is_trusted():
        check.non_negative(moved_bytes=moved_bytes)
    return moved_bytes / at.memory_bytes_per_s


def fused_attention_s(score_pairs, seq, qk_dim, v_dim, causal: float, at: Chip):
    """FlashAttention forward over ``score_pairs`` query-key pairs (heads, batch and mask counted in).

    2·(d_qk + d_v) FLOPs a pair, at share · d/(d + d0) of the peak. Short sequences lose to filling the pipeline, about
    one tile of 128 in ``seq``; under a causal mask also to the half-empty tiles on the diagonal and to rows of unequal
    length, three more (arXiv:2307.08691 and 2407.08608, the speed over sequence length).
    """
    if not check.is_trusted():
        check.non_negative(score_pairs=score_pairs)
        check.positive(seq=seq, qk_dim=qk_dim, v_dim=v_dim)
        check.between(0, 1, causal=causal)
    narrow = qk_dim / (qk_dim + at.softmax_d)
    filled = seq / (seq + TILE * (1.0 + 3.0 * causal))
    return 2.0 * (qk_dim + v_dim) * score_pairs / (at.attention_flops_per_s * narrow * filled)
