"""The numbers of lesson 16, Custom kernels and fusion."""

from functools import cache
from typing import Any

import numpy as np

from engine import validation
from engine.catalog import gpu, model, models
from engine.catalog.hardware import Gpu
from engine.executed import flash_attention
from engine.mechanism import fusion, matmul, memory, roofline
from engine.mechanism.fusion import Fusion
from engine.one_gpu import own_timings, tiling

h100 = gpu("h100-sxm")  # an H100
a100 = gpu("a100-80")  # an A100
reached = matmul.chip(h100)  # the rates that an H100 really reaches
llama = model("llama3-8b")  # Llama 3 8B
values = 2048 * 49152  # numbers between the two products of a feed-forward block


def gelu_bytes(elements: int) -> float:
    """What a GELU in eight kernels reads and writes."""
    return fusion.chain_bytes(elements, operations=6) + fusion.chain_bytes(elements, operations=2, reads=2)


front_s = 2 * 12288 * values / h100.bf16_flops_per_s  # the product in front of it


def behind(inner: int) -> Fusion:
    """Two operations behind a product."""
    return fusion.compared(
        2048 * 49152, operations=2, flops_per_element=10, values_kept=2, inner=inner, gpu=h100
    )


# eight operations in a row
chain = fusion.compared(8192 * 14336, operations=8, flops_per_element=50, values_kept=2, inner=0, gpu=h100)
standard_bytes = flash_attention.standard_bytes  # what attention with its scores in HBM moves for one head


def rows(head_dim: int, on: Gpu = h100) -> float:
    """Rows of the largest tile."""
    return flash_attention.tile_rows(on.smem_bytes_per_sm, head_dim)


def tiled_bytes(seq: int, head_dim: int, on: Gpu = h100) -> float:
    """What attention in such tiles moves for one head."""
    return flash_attention.tiled_bytes(seq, head_dim, rows=rows(head_dim, on))


def saved(head_dim: int, seq: int = 8192, on: Gpu = h100) -> float:
    """What tiles divide those bytes by."""
    return standard_bytes(seq, head_dim) / tiled_bytes(seq, head_dim, on)


# seconds for a layer's products
products_s = 2 * 8192 * models.layer_parameters(llama) / reached.matmul_flops_per_s
# the bytes of its attention with scores in HBM
standard_s = matmul.stream_s(32 * standard_bytes(seq=8192, head_dim=128), reached)


def tiled_s(seq: int) -> float:
    """Its attention in tiles."""
    return flash_attention.tiled_arithmetic_s(seq, head_dim=128, heads=32, at=reached)


def tiled_rate(seq: int) -> float:
    """What it reaches, in FLOP/s."""
    return 32 * flash_attention.flops(seq=seq, head_dim=128) / tiled_s(seq)


apart_bytes = fusion.between_products_bytes(llama, 8192)[0]  # bytes of its other kernels apart
fused_bytes = fusion.between_products_bytes(llama, 8192)[1]  # bytes of its other kernels fused


def of_h100(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Those of the H100."""
    return [row for row in rows if row[1].device == "H100"]


timed_gelu = of_h100(own_timings.gelu())  # that GELU timed on an H100
gelu_s = timed_gelu[-1][1].measured  # the largest of them in eight kernels
timed_attention = of_h100(own_timings.attention())[-1]  # attention timed there over 8192 tokens
# how many times as fast its one call is
measured_gain = timed_attention[1].measured / timed_attention[2].measured
our_gain = timed_attention[1].ours / timed_attention[2].ours  # how many times as fast by our formulas
# what that call is taken to reach
burst_rate = 16 * flash_attention.flops(seq=8192, head_dim=64) / timed_attention[2].ours
cache_bytes = memory.kv_bytes(llama, context_tokens=32768) / 32  # keys and values of one layer
scores_bytes = 4 * 32 * 32768 * 2  # its scores, written and read twice
# FLOPs for each byte that its L2 hands out
l2_ridge = roofline.ridge_flops_per_byte(
    tiling.chip("h100-sxm").flops_per_s, tiling.chip("h100-sxm").l2_bytes_per_s
)
# the products of Llama 3 70B in FP8
fp8_products_s = (
    2
    * 2048
    * models.parameters(model("llama3-70b"))
    / (h100.fp8_flops_per_s * matmul.achievable_share(h100, "fp8"))
)


def behind_gain(inner: int) -> float:
    """How many times as fast the same are, fused."""
    return fusion.gain(behind(inner))


def tile_in_words(head_dim: int) -> str:
    """Rows of queries and rows of keys of such a tile."""
    return f"{rows(head_dim):.0f} × {flash_attention.inner_rows(rows(head_dim), head_dim):.0f}"


def from_hbm_bytes(head_dim: int) -> float:
    """What of it HBM sends and takes for 8,192 tokens, if L2 serves the rest."""
    return flash_attention.from_hbm_bytes(8192, head_dim, rows(head_dim), h100.sms)


def less_from_hbm(head_dim: int) -> float:
    """How many times as many bytes the standard way moves over HBM."""
    return standard_bytes(seq=8192, head_dim=head_dim) / from_hbm_bytes(head_dim)


def timed_in_words(case: str) -> str:
    """The version, the GPU, the passes and the head dimension of a published timing."""
    version, head_dim = case[2], case.split("_d")[1].split("_")[0]
    passes = "A100, forward and backward" if version == "2" else "H100, forward"
    return f"FlashAttention-{version}, {passes}, d = {head_dim}"


# -- what single sentences say -------------------------------------------------------------------------------
# seconds of the arithmetic of attention at an H100's peak
attention_flops_s = 32 * flash_attention.flops(seq=16384, head_dim=128) / h100.bf16_flops_per_s
# seconds of its bytes at the rate that kernels reach
standard_moving_s = 32 * standard_bytes(seq=16384, head_dim=128) / reached.memory_bytes_per_s
# the time of the GELU over that of its product
gelu_over_product = gelu_bytes(elements=values) / reached.memory_bytes_per_s / front_s
gelu_passes = gelu_bytes(elements=1) / fusion.fused_bytes(1)  # the gain of fusing a GELU in its tanh form
# the share of the data sheet's rate that the GELU reaches
gelu_of_the_rate = gelu_bytes(elements=268435456) / gelu_s / h100.hbm_bytes_per_s
epilogue_worth = 1 - 1 / fusion.gain(behind(inner=12288))  # what the epilogue is worth at a width of 12,288
# what attention would move, one query at a time
query_by_query_bytes = 32 * flash_attention.tiled_bytes(seq=16384, head_dim=128, rows=1)


@cache
def fa3_bytes_per_s() -> float:
    """Bytes a second that FlashAttention-3 must be brought."""
    return validation.row("fa3_h100_d256_noncausal_16384").measured / 128


# the layer's time with its kernels apart
layer_apart_s = products_s + standard_s + matmul.stream_s(apart_bytes, reached)
# the layer's time, fused
layer_fused_s = products_s + tiled_s(seq=8192) + matmul.stream_s(fused_bytes, reached)
# FLOPs for each element up to which fusing pays on a B200
b200_break_even = fusion.break_even_flops_per_element(gpu("b200"))
# rows of a square block that fills an A100's shared memory
a100_block = np.floor(np.sqrt(a100.smem_bytes_per_sm / 4))
# seconds of 160 such kernels apart
swiglu_apart_s = 160 * matmul.stream_s(moved_bytes=2048 * 8192 * 19, at=reached)
# seconds of 160 such kernels, fused
swiglu_fused_s = 160 * matmul.stream_s(moved_bytes=2048 * 8192 * 7, at=reached)
# the gain over the products of a step in fp8
swiglu_gain = 160 * matmul.stream_s(moved_bytes=2048 * 8192 * 12, at=reached) / fp8_products_s
chain_gain = fusion.gain(chain)  # how many times as fast the eight operations are, fused
# what HBM sends attention in tiles with heads of 128, over the same with heads of 64
wider_heads_from_hbm = from_hbm_bytes(head_dim=128) / from_hbm_bytes(head_dim=64)
