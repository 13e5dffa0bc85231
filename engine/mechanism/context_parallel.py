"""Context parallelism in closed form: which tokens a rank holds, what it computes, waits for and sends.

The runs of ``ring_attention`` are checked against these formulas. What context parallelism adds to a training
step is in ``sequence``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration import attention
from engine.mechanism import matmul

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu

FULL, CONTIGUOUS, ZIGZAG = 0, 1, 2  # no mask; causal, blocks in order; causal, zig-zag order
ORDERS = (FULL, CONTIGUOUS, ZIGZAG)


# -- tokens and work of a rank -----------------------------------------------------
def position(rank: Real, token: Real, ranks: Real, block: Real, order: Real) -> Real:
    """The position in the sequence of a rank's token, counted from 0; each rank has ``block`` tokens.

    Zig-zag: of 2N chunks, rank i has the i-th from the front and the i-th from the back, so that each rank
    has as many early tokens as late ones (Llama 3, arXiv:2407.21783 section 3.3.2). Striped attention
    interleaves single tokens for the same purpose (arXiv:2311.09431).
    """
    check.whole(ranks=ranks)
    half = block / 2
    back = (2 * ranks - 1 - rank) * half + token - half
    zigzag = ops.where(token < half, rank * half + token, back)
    found = ops.where(order == ZIGZAG, zigzag, rank * block + token)
    return found.astype(int) if isinstance(found, np.ndarray) else found


def block_tokens(seq: Real, ranks: Real) -> Real:
    """How many tokens each rank holds."""
    check.positive(seq=seq)
    check.whole(ranks=ranks)
    return seq / ranks


def block_owner(rank: Real, step: Real, ranks: Real) -> Real:
    """The rank whose keys and values a rank uses in a step, counted from 0: first its own, then those of the
    rank before it, and so on."""
    check.whole(ranks=ranks)
    return np.mod(rank - step, ranks)


def user_of(owner: Real, step: Real, ranks: Real) -> Real:
    """The rank that uses a given rank's keys and values in a step: the inverse of ``block_owner``."""
    check.whole(ranks=ranks)
    return np.mod(owner + step, ranks)


def step_of(rank: Real, owner: Real, ranks: Real) -> Real:
    """The step in which a rank uses another's keys and values."""
    check.whole(ranks=ranks)
    return np.mod(rank - owner, ranks)


def used_share(moment: Real, rank: Real, owner: Real, ranks: Real) -> Real:
    """How much of a block a rank has used at a moment measured in steps: 0 before its step, 1 after it."""
    return np.clip(moment - step_of(rank, owner, ranks), 0.0, 1.0)


def seen_keys(rank: Real, token: Real, owner: Real, ranks: Real, block: Real, order: Real) -> Real:
    """How many of one rank's keys another rank's token may attend to under the mask. They are always the
    first ones, since each rank's tokens are in order. 0 for ranks that do not exist."""
    query, half = position(rank, token, ranks, block, order), block / 2

    def up_to_it(start, tokens):
        return np.clip(query - start + 1, 0, tokens)

    zigzag = up_to_it(owner * half, half) + up_to_it((2 * ranks - 1 - owner) * half, half)
    seen = np.where(order == FULL, block, np.where(order == ZIGZAG, zigzag, up_to_it(owner * block, block)))
    return np.where((rank < ranks) & (owner < ranks), seen, 0.0)


def tokens_that_see_fewer(keys: Real, rank: Real, owner: Real, ranks: Real, block: Real, order: Real) -> Real:
    """How many of a rank's tokens attend to fewer than ``keys`` of another rank's keys. They are its first
    tokens, since later ones never see fewer."""
    return sum(
        np.where(seen_keys(rank, token, owner, ranks, block, order) < keys, 1.0, 0.0)
        for token in range(block)
    )


def block_pairs(rank: Real, step: Real, ranks: Real, block: Real, order: Real) -> Real:
    """Query-key pairs that a rank computes in a step, as far as the mask allows them.

    Contiguous blocks: all c² where the keys come earlier in the sequence, none where they come later,
    c(c+1)/2 on the diagonal. Zig-zag: c²/2 for every rank in every step but the first, which has c(c+1)/2.
    """
    check.positive(block=block)
    own = block * (block + 1) / 2
    earlier = ops.where(block_owner(rank, step, ranks) < rank, block * block, 0.0)
    contiguous = ops.where(step == 0, own, earlier)
    zigzag = ops.where(step == 0, own, block * block / 2)
    return np.where(order == FULL, block * block, np.where(order == ZIGZAG, zigzag, contiguous))


def step_pairs(step: Real, ranks: Real, block: Real, order: Real) -> Real:
    """Query-key pairs of the busiest rank in a step, for which all other ranks wait. With contiguous blocks
    the last rank is always busy."""
    return block_pairs(ranks - 1, step, ranks, block, order)


def mean_pairs(ranks: Real, block: Real, order: Real) -> Real:
    """Pairs that the mask allows, averaged over ranks."""
    check.whole(ranks=ranks)
    check.positive(block=block)
    return block * ops.where(order == FULL, ranks * block, (ranks * block + 1) / 2)


def ring_busy_share(ranks: Real, block: Real, order: Real) -> Real:
    """The share of the ring's time in which an average rank computes, if all traffic is hidden: pairs /
    (ranks · Σ busiest).

    Contiguous and causal: N/(2N−1) for long blocks, so towards a half. Zig-zag, or without a mask: 1.
    """
    waited = step_pairs(0, ranks, block, order) + (ranks - 1) * step_pairs(1, ranks, block, order)
    return mean_pairs(ranks, block, order) / waited


# -- overlap -------------------------------------------------------------------------------------------------
def attention_s(pairs: Real, heads: Real, head_dim: Real, flops_per_s: Real) -> Real:
    """Scores and weighted sum of this many query-key pairs: 4·d FLOPs per pair and head. Leaves out the
    softmax."""
    check.non_negative(pairs=pairs)
    check.positive(heads=heads, head_dim=head_dim, flops_per_s=flops_per_s)
    return 4 * pairs * heads * head_dim / flops_per_s


def flash_flops_per_s(gpu: Gpu, head_dim: Real) -> Real:
    """The rate of fused attention on long blocks with heads this wide, in a long training job: that of a
    ``Chip``."""
    check.positive(head_dim=head_dim)
    rates = ops.each(gpu, lambda of: matmul.chip(of).attention)
    return attention.rate_at(rates.flops_per_s, head_dim)


def kv_block_bytes(block: Real, kv_heads: Real, head_dim: Real, value_bytes: Real = 2.0) -> Real:
    """One layer's keys and values for this many tokens: 2·c·g·d values."""
    check.positive(block=block, kv_heads=kv_heads, head_dim=head_dim, value_bytes=value_bytes)
    return 2 * block * kv_heads * head_dim * value_bytes


def hidden_from_tokens(
    heads: Real, kv_heads: Real, flops_per_s: Real, bytes_per_s: Real, order: Real, value_bytes: Real = 2.0
) -> Real:
    """The fewest tokens per rank for which attention takes as long as sending the next block's keys and
    values.

    Full blocks: 4·c²·a·d/C ≥ 2·c·g·d·v/W, so c ≥ v/2 · g/a · C/W; with half of the pairs, twice the tokens.
    With as many key heads as query heads and 2 bytes this is Ring Attention's c ≥ C/W (arXiv:2310.01889
    section 3). With contiguous blocks the steps are full, but only for the ranks that do not wait. Leaves out
    start-up and the softmax.
    """
    check.positive(heads=heads, kv_heads=kv_heads, flops_per_s=flops_per_s, bytes_per_s=bytes_per_s)
    full = value_bytes / 2 * (kv_heads / heads) * (flops_per_s / bytes_per_s)
    return ops.where(order == ZIGZAG, 2 * full, full)


def hidden_from_tokens_with_latency(
    heads: Real,
    kv_heads: Real,
    head_dim: Real,
    flops_per_s: Real,
    bytes_per_s: Real,
    latency_s: Real,
    order: Real,
    value_bytes: Real = 2.0,
) -> Real:
    """``hidden_from_tokens`` with start-up: the positive root of k·c² = m·c + α, for the actual number of
    heads per rank.

    k is a full block's attention time over c², halved in zig-zag order; m is the transfer time per token.
    """
    check.non_negative(latency_s=latency_s)
    check.positive(bytes_per_s=bytes_per_s)
    pair_s = attention_s(1.0, heads, head_dim, flops_per_s) * ops.where(order == ZIGZAG, 0.5, 1.0)
    token_s = kv_block_bytes(1.0, kv_heads, head_dim, value_bytes) / bytes_per_s
    return (token_s + ops.sqrt(token_s * token_s + 4 * pair_s * latency_s)) / (2 * pair_s)


def message_s(block_bytes: Real, bytes_per_s: Real, latency_s: Real) -> Real:
    """One block to the next rank: alpha and its bytes (Hockney 1994)."""
    check.non_negative(block_bytes=block_bytes, latency_s=latency_s)
    check.positive(bytes_per_s=bytes_per_s)
    return latency_s + block_bytes / bytes_per_s


def ring_step_s(step: Real, ranks: Real, attention_of_step_s: Real, message_s: Real) -> Real:
    """The time of a step: the busiest rank's computation or the arrival of the next block, whichever is
    longer. The last step has no next block."""
    check.whole(ranks=ranks)
    check.non_negative(attention_of_step_s=attention_of_step_s, message_s=message_s)
    longer = np.maximum(attention_of_step_s, ops.where(step < ranks - 1, message_s, 0.0))
    return ops.where(step < ranks, longer, 0.0)


def ring_axis_s(ranks: Real, whole_block_s: Real, message_s: Real) -> Real:
    """An upper bound of a ring's time for any order and mask: every block is computed whole, or every step
    takes as long as its message."""
    check.whole(ranks=ranks)
    return ranks * np.maximum(whole_block_s, message_s)


# -- bytes ---------------------------------------------------------------------------------------------------
def ring_sent_bytes(seq: Real, ranks: Real, kv_heads: Real, head_dim: Real, value_bytes: Real = 2.0) -> Real:
    """Bytes that each rank sends in one layer, forward: N−1 blocks of keys and values. An AllGather sends the
    same."""
    check.whole(ranks=ranks)
    return (ranks - 1) * kv_block_bytes(seq / ranks, kv_heads, head_dim, value_bytes)


def ulysses_sent_bytes(
    seq: Real, ranks: Real, heads: Real, kv_heads: Real, head_dim: Real, value_bytes: Real = 2.0
) -> Real:
    """Bytes that each rank sends in one layer, forward: queries, keys, values and outputs of its tokens,
    except the N-th part that it keeps.

    (N−1)/N · s/N · 2(a + g)·d values; 4·s·h/N for a = g and many ranks (arXiv:2309.14509 section 3.2).
    """
    check.positive(seq=seq, heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_bytes=value_bytes)
    check.whole(ranks=ranks)
    return (ranks - 1) / ranks * (seq / ranks) * 2 * (heads + kv_heads) * head_dim * value_bytes


def ring_over_ulysses(ranks: Real, heads: Real, kv_heads: Real) -> Real:
    """A ring's bytes over Ulysses': N·g/(a + g). Below 1 where few key heads serve many query heads."""
    check.whole(ranks=ranks, heads=heads, kv_heads=kv_heads)
    return ranks * kv_heads / (heads + kv_heads)


def ulysses_most_ranks(kv_heads: Real, tensor: Real = 1) -> Real:
    """The largest number of ranks that still get whole key-value heads, after tensor parallelism has split
    them."""
    check.whole(kv_heads=kv_heads, tensor=tensor)
    return ops.maximum(1.0, ops.floor(kv_heads / tensor))
