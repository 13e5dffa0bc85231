"""The time of attention on one GPU, by family of kernels: a prefill, and one step of decoding.

Each is a fixed start-up cost plus work. The two are added, not compared: even a short sequence pays the
start-up, because an attention kernel has to start, split the work and combine the parts whatever their size.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration.products import WARM, cold_share, either_s

CAUSAL_TILE = 64.0  # queries and keys that a kernel processes together
RAMP_TOKENS = 1000.0  # prefill length at which half of ``ramp_s`` is paid
SPLIT_TOKENS = 1500.0  # cache length at which half of ``ramp_s`` is paid
JOINED_TOKENS = 128.0  # a longer cache is split over thread blocks and combined by a second kernel
WIDE = 256.0  # head dimensions: a block takes block_s · (0.5 + d / this), which is block_s at 128


@dataclass(frozen=True, slots=True)
class Prefill:
    """One GPU's constants for attention over new tokens, by one family of kernels."""

    flops_per_s: tuple[float, float, float, float]  # long sequences, head dimensions 64, 128, 256 and 512
    multiprocessors: float
    memory_bytes_per_s: float
    write_bytes_per_s: float  # writing new keys and values into the cache, by a separate kernel
    launch_s: float
    block_s: float  # per thread block (a tile of queries of one head), in addition to its products
    ramp_s: float  # extra time of a long sequence over a short one, in addition to its arithmetic


@dataclass(frozen=True, slots=True)
class Decode:
    """One GPU's constants for attention of one new token per sequence, by one family of kernels."""

    flops_per_s: float
    multiprocessors: float
    memory_bytes_per_s: float
    walk_bytes_per_s: float  # of one multiprocessor reading a cache by itself
    launch_s: float
    block_s: float  # per thread block (a key head of one sequence), in addition to its bytes
    ramp_s: float
    join_s: float
    warm: float  # how many times faster a cache is read from L2 than from memory
    packs_always: float  # 1.0: query heads of a group share a block even under a window (FA2: 0.0)


@ops.remembered
def rate_at(rates: tuple[Real, Real, Real, Real], head_dim: Real) -> Real:
    """A rate for heads this wide, interpolated between those at 64, 128, 256 and 512 dimensions; constant
    outside."""
    found = rates[0]
    for narrow, at_narrow, at_wide in zip((64.0, 128.0, 256.0), rates, rates[1:]):
        along = ops.minimum(1.0, ops.maximum(0.0, head_dim / narrow - 1.0))
        found = found + along * (at_wide - at_narrow)
    return found


def fused_s(
    batch: Real,
    tokens: Real,
    heads: Real,
    kv_heads: Real,
    head_dim: Real,
    at: Prefill,
    window: Real = 0.0,
    causal: Real = 1.0,
) -> Real:
    """Forward time of fused attention over ``batch`` sequences of new tokens.

    4·head_dim FLOPs for each visible pair of query and key, rounded up to tiles of 64, at the rate of that
    width; never faster than one multiprocessor takes for the longest row of tiles. Queries, keys, values and
    results also cross the memory. ``window`` 0: every earlier token is visible. Leaves out earlier tokens in
    the cache and rotary embedding.
    """
    if not check.is_trusted():
        check.positive(batch=batch, tokens=tokens, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
        check.non_negative(window=window)
        check.between(0, 1, causal=causal)
    padded = ops.ceil(tokens / CAUSAL_TILE) * CAUSAL_TILE
    longest = ops.where(window > 0.0, ops.minimum(window + CAUSAL_TILE, padded), padded)
    unseen = padded - longest
    lower = 0.5 * (padded * (padded + CAUSAL_TILE) - unseen * (unseen + CAUSAL_TILE))
    pairs = causal * lower + (1.0 - causal) * padded * padded
    rate = rate_at(at.flops_per_s, head_dim)
    all_s = 4.0 * batch * heads * head_dim * pairs / rate
    row_s = 4.0 * head_dim * CAUSAL_TILE * longest / (rate / at.multiprocessors)
    moved_s = 4.0 * batch * tokens * head_dim * (heads + kv_heads) / at.memory_bytes_per_s
    blocks = batch * heads * padded / CAUSAL_TILE / at.multiprocessors
    return (
        at.launch_s
        + either_s(ops.maximum(all_s, row_s), moved_s)
        + blocks * at.block_s * (0.5 + head_dim / WIDE)
        + at.ramp_s * longest / (longest + RAMP_TOKENS)
    )


def prefill_s(
    batch: Real,
    tokens: Real,
    heads: Real,
    kv_heads: Real,
    head_dim: Real,
    at: Prefill,
    window: Real = 0.0,
    cache_bytes: Real = 2.0,
) -> Real:
    """The forward time of ``fused_s`` while serving, where a separate kernel also writes the new keys and
    values into the cache."""
    if not check.is_trusted():
        check.positive(cache_bytes=cache_bytes)
    written = batch * tokens * head_dim * kv_heads * (4.0 + 2.0 * cache_bytes)
    return fused_s(batch, tokens, heads, kv_heads, head_dim, at, window, 1.0) + written / at.write_bytes_per_s


def decode_s(
    batch: Real,
    cached: Real,
    heads: Real,
    kv_heads: Real,
    head_dim: Real,
    at: Decode,
    window: Real = 0.0,
    cache_bytes: Real = 2.0,
    l2_bytes: Real = 0.0,
) -> Real:
    """Time of attention of one new token for each of ``batch`` sequences with ``cached`` tokens.

    Start-up + blocks + keys and values over the memory bandwidth, overlapped with the arithmetic of large
    groups. FA2 packs the query heads of a group into one block, and splits a long cache over blocks, only
    where there is a group and no window; otherwise each query head reads the cache alone. With ``l2_bytes``
    above 0 a small cache may be read from L2, as in a benchmark that repeats one step; a real model reads it
    from memory.
    """
    if not check.is_trusted():
        check.positive(batch=batch, cached=cached, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
        check.non_negative(window=window, l2_bytes=l2_bytes)
        check.positive(cache_bytes=cache_bytes)
    seen = ops.where(window > 0.0, ops.minimum(cached, window), cached)
    read = 2.0 * batch * kv_heads * head_dim * seen * cache_bytes
    grouped = ops.where((heads > kv_heads) & (window <= 0.0), 1.0, 0.0)
    packed = ops.maximum(at.packs_always, grouped)
    blocks = batch * ops.where(packed > 0.0, kv_heads, heads) / at.multiprocessors
    walk_s = (1.0 - packed) * ops.maximum(1.0, blocks) * seen * head_dim * 2.0 * cache_bytes
    cold = ops.where(l2_bytes > 0.0, cold_share(read, l2_bytes), 1.0)
    memory_s = read * (cold + (1.0 - cold) / at.warm) / at.memory_bytes_per_s
    pairs_s = 4.0 * batch * heads * head_dim * seen / at.flops_per_s
    joined = ops.where((seen > JOINED_TOKENS) & (blocks < 1.0), at.join_s, 0.0)
    return (
        at.launch_s
        + either_s(either_s(memory_s, pairs_s), walk_s / at.walk_bytes_per_s)
        + blocks * at.block_s * (0.5 + head_dim / WIDE)
        + packed * (at.ramp_s * seen / (seen + SPLIT_TOKENS) + joined)
    )


@dataclass(frozen=True, slots=True)
class Latent:
    """One GPU at latent attention (DeepSeek's MLA), prefill or decoding."""

    flops_per_s: float
    multiprocessors: float
    memory_bytes_per_s: float
    walk_bytes_per_s: float  # of one multiprocessor reading a sequence's cache by itself
    launch_s: float
    block_s: float
    ramp_s: float


LATENT = 576.0  # values per token in the cache: 512 latent and 64 rotary
LATENT_TILE = 64.0  # query heads that one thread block of decoding holds


def latent_decode_s(
    batch: Real, cached: Real, heads: Real, at: Latent, cache_bytes: Real = 2.0, l2_bytes: Real = 0.0
) -> Real:
    """One new token per sequence, with the up-projections absorbed: 2·(576 + 512) FLOPs for each head and
    cached token, whose 576 values are read once for all heads of the rank. Leaves out the projections."""
    if not check.is_trusted():
        check.positive(batch=batch, cached=cached, heads=heads, cache_bytes=cache_bytes)
    read = batch * cached * LATENT * cache_bytes
    cold = ops.where(l2_bytes > 0.0, ops.maximum(cold_share(read, l2_bytes), WARM), 1.0)
    padded = ops.ceil(heads / LATENT_TILE) * LATENT_TILE
    pairs_s = 2.0 * batch * padded * cached * (LATENT + 512.0) / at.flops_per_s
    blocks = ops.maximum(1.0, batch * padded / LATENT_TILE / at.multiprocessors)
    walk_s = blocks * cached * LATENT * cache_bytes / at.walk_bytes_per_s
    return (
        at.launch_s
        + either_s(either_s(read * cold / at.memory_bytes_per_s, pairs_s), walk_s)
        + batch / at.multiprocessors * at.block_s
        + at.ramp_s * cached / (cached + SPLIT_TOKENS)
    )


def latent_prefill_s(batch: Real, tokens: Real, heads: Real, at: Latent) -> Real:
    """New tokens with keys of 192 and values of 128 dimensions in every head: 2·320 FLOPs per visible pair,
    rounded up to tiles; never faster than one multiprocessor takes for the longest row."""
    if not check.is_trusted():
        check.positive(batch=batch, tokens=tokens, heads=heads)
    padded = ops.ceil(tokens / CAUSAL_TILE) * CAUSAL_TILE
    pairs = 0.5 * padded * (padded + CAUSAL_TILE)
    all_s = 640.0 * batch * heads * pairs / at.flops_per_s
    row_s = 640.0 * CAUSAL_TILE * padded / (at.flops_per_s / at.multiprocessors)
    moved = batch * tokens * heads * 2.0 * (192.0 + 192.0 + 128.0 + 128.0)
    blocks = batch * heads * ops.ceil(tokens / CAUSAL_TILE) / at.multiprocessors
    return (
        at.launch_s
        + either_s(ops.maximum(all_s, row_s), moved / at.memory_bytes_per_s)
        + blocks * at.block_s
        + at.ramp_s * padded / (padded + RAMP_TOKENS)
    )
