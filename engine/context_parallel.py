"""Context parallelism in closed form: which tokens a rank has, what it computes and waits for, and what it sends.

What the runs of ``ring_attention`` are held against. What the rest costs in a training step is in ``sequence``.
"""

from __future__ import annotations

import numpy as np

from engine import check, ops
from engine.calibration import DEFAULT

FULL, CONTIGUOUS, ZIGZAG = 0, 1, 2      # no mask; a causal mask over blocks in order; the same in zig-zag order
ORDERS = (FULL, CONTIGUOUS, ZIGZAG)


# -- which tokens a rank has, and what it has to compute --------------------------------------------------------------
def position(rank, token, ranks, block, order):
    """Where a rank's token stands in the sequence, counted from 0; each rank has ``block`` of them.

    Zig-zag: of 2N chunks, rank i has the i-th from the front and the i-th from the back, so that each rank has as many
    early tokens as late ones (Llama 3, arXiv:2407.21783 section 3.3.2). Striped attention deals out single tokens to
    the same end (arXiv:2311.09431).
    """
    check.whole(ranks=ranks)
    half = block / 2
    back = (2 * ranks - 1 - rank) * half + token - half
    zigzag = ops.where(token < half, rank * half + token, back)
    found = ops.where(order == ZIGZAG, zigzag, rank * block + token)
    return found.astype(int) if isinstance(found, np.ndarray) else found


def block_tokens(seq, ranks):
    """How many tokens each rank has."""
    check.positive(seq=seq)
    check.whole(ranks=ranks)
    return seq / ranks


def block_owner(rank, step, ranks):
    """Whose keys and values a rank uses in a step, counted from 0: its own first, then those of the rank before, …"""
    check.whole(ranks=ranks)
    return np.mod(rank - step, ranks)


def user_of(owner, step, ranks):
    """Which rank uses a rank's keys and values in a step: the inverse of ``block_owner``."""
    check.whole(ranks=ranks)
    return np.mod(owner + step, ranks)


def step_of(rank, owner, ranks):
    """In which step a rank uses another's keys and values."""
    check.whole(ranks=ranks)
    return np.mod(rank - owner, ranks)


def is_last_step(step, ranks):
    """Whether a step, counted from 0, is the last: it uses a block and hands nothing on."""
    check.whole(ranks=ranks)
    return step >= ranks - 1


def used_share(moment, rank, owner, ranks):
    """How much of a block a rank has used at a moment, counted in steps: 0 before its step, 1 after it."""
    return np.clip(moment - step_of(rank, owner, ranks), 0.0, 1.0)


def seen_keys(rank, token, owner, ranks, block, order):
    """How many of a rank's keys another's token may look at by the mask: the first, since each rank's tokens are
    in order. 0 for ranks that there are not."""
    query, half = position(rank, token, ranks, block, order), block / 2

    def up_to_it(start, tokens):
        return np.clip(query - start + 1, 0, tokens)

    zigzag = up_to_it(owner * half, half) + up_to_it((2 * ranks - 1 - owner) * half, half)
    seen = np.where(order == FULL, block, np.where(order == ZIGZAG, zigzag, up_to_it(owner * block, block)))
    return np.where((rank < ranks) & (owner < ranks), seen, 0.0)


def tokens_that_see_fewer(keys, rank, owner, ranks, block, order):
    """How many of a rank's tokens look at fewer than so many of another's keys: its first; later ones see no less."""
    return sum(np.where(seen_keys(rank, token, owner, ranks, block, order) < keys, 1.0, 0.0) for token in range(block))


def block_pairs(rank, step, ranks, block, order):
    """Query-key pairs of a rank in a step, that a mask lets through.

    Contiguous blocks: all c² where the keys come from before, none where they come from behind, c(c+1)/2 on the
    diagonal. Zig-zag: c²/2 for every rank in every step but the first, which has c(c+1)/2.
    """
    check.positive(block=block)
    own = block * (block + 1) / 2
    earlier = ops.where(block_owner(rank, step, ranks) < rank, block * block, 0.0)
    contiguous = ops.where(step == 0, own, earlier)
    zigzag = ops.where(step == 0, own, block * block / 2)
    return np.where(order == FULL, block * block, np.where(order == ZIGZAG, zigzag, contiguous))


def step_pairs(step, ranks, block, order):
    """Pairs of the busiest rank in a step: all wait for it. With contiguous blocks the last rank is always busy."""
    return block_pairs(ranks - 1, step, ranks, block, order)


def mean_pairs(ranks, block, order):
    """Pairs that the mask lets through, for each rank on average."""
    check.whole(ranks=ranks)
    check.positive(block=block)
    return block * ops.where(order == FULL, ranks * block, (ranks * block + 1) / 2)


def ring_busy_share(ranks, block, order):
    """Of the ring's time, the share in which a rank computes, where traffic hides: pairs over ranks · Σ busiest.

    Contiguous and causal: N/(2N−1) for long blocks, towards a half. Zig-zag and without a mask: 1.
    """
    check.whole(ranks=ranks)
    check.positive(block=block)
    waited = step_pairs(0, ranks, block, order) + (ranks - 1) * step_pairs(1, ranks, block, order)
    return mean_pairs(ranks, block, order) / waited


# -- overlap ----------------------------------------------------------------------------------------------------------
def attention_s(pairs, heads, head_dim, flops_per_s):
    """Scores and weighted sum of so many query-key pairs: 4·d FLOPs each and head. Leaves out the softmax."""
    check.non_negative(pairs=pairs)
    check.positive(heads=heads, head_dim=head_dim, flops_per_s=flops_per_s)
    return 4 * pairs * heads * head_dim / flops_per_s


def flash_flops_per_s(peak_flops_per_s, head_dim, calibration=DEFAULT):
    """What fused attention reaches over long blocks: share · d/(d + d0) of the peak (``matmul.fused_attention_s``)."""
    check.positive(peak_flops_per_s=peak_flops_per_s, head_dim=head_dim)
    return peak_flops_per_s * calibration.attention_share * head_dim / (head_dim + calibration.attention_softmax_d)


def kv_block_bytes(block, kv_heads, head_dim, value_bytes=2.0):
    """One layer's keys and values of so many tokens: 2·c·g·d values."""
    check.positive(block=block, kv_heads=kv_heads, head_dim=head_dim, value_bytes=value_bytes)
    return 2 * block * kv_heads * head_dim * value_bytes


def hidden_from_tokens(heads, kv_heads, flops_per_s, bytes_per_s, order, value_bytes=2.0):
    """The fewest tokens on a rank behind whose attention the next block's keys and values hide.

    Full blocks: 4·c²·a·d/C ≥ 2·c·g·d·v/W, so c ≥ v/2 · g/a · C/W; half of the pairs, twice the tokens. With as many
    key heads as query heads and 2 bytes this is Ring Attention's c ≥ C/W (arXiv:2310.01889 section 3). Contiguous
    blocks have full steps, but in each only for the ranks that do not wait. Leaves out start-up and the softmax.
    """
    check.positive(heads=heads, kv_heads=kv_heads, flops_per_s=flops_per_s, bytes_per_s=bytes_per_s)
    full = value_bytes / 2 * (kv_heads / heads) * (flops_per_s / bytes_per_s)
    return ops.where(order == ZIGZAG, 2 * full, full)


def hidden_from_tokens_with_latency(heads, kv_heads, head_dim, flops_per_s, bytes_per_s, latency_s, order,
                                    value_bytes=2.0):
    """The same with start-up: the positive root of k·c² = m·c + α, for the heads that one rank really has.

    k is a full block's attention over c², halved in zig-zag order; m is the time on the wire of one token.
    """
    check.non_negative(latency_s=latency_s)
    check.positive(bytes_per_s=bytes_per_s)
    pair_s = attention_s(1.0, heads, head_dim, flops_per_s) * ops.where(order == ZIGZAG, 0.5, 1.0)
    token_s = kv_block_bytes(1.0, kv_heads, head_dim, value_bytes) / bytes_per_s
    return (token_s + ops.sqrt(token_s * token_s + 4 * pair_s * latency_s)) / (2 * pair_s)


def message_s(block_bytes, bytes_per_s, latency_s):
    """One block to the next rank: alpha and its bytes (Hockney 1994)."""
    check.non_negative(block_bytes=block_bytes, latency_s=latency_s)
    check.positive(bytes_per_s=bytes_per_s)
    return latency_s + block_bytes / bytes_per_s


def ring_step_s(step, ranks, attention_of_step_s, message_s):
    """A step lasts as long as the busiest rank computes, or as the next block needs to come; the last has no next."""
    check.whole(ranks=ranks)
    check.non_negative(attention_of_step_s=attention_of_step_s, message_s=message_s)
    longer = np.maximum(attention_of_step_s, ops.where(step < ranks - 1, message_s, 0.0))
    return ops.where(step < ranks, longer, 0.0)


def ring_axis_s(ranks, whole_block_s, message_s):
    """The longest that any order and mask could take: every block whole, or every step as long as its message."""
    check.whole(ranks=ranks)
    return ranks * np.maximum(whole_block_s, message_s)


def share_of_time(useful_s, total_s):
    """The share of a ring's time that its ranks compute, on average."""
    check.non_negative(useful_s=useful_s)
    check.positive(total_s=total_s)
    return useful_s / total_s


# -- bytes ------------------------------------------------------------------------------------------------------------
def ring_sent_bytes(seq, ranks, kv_heads, head_dim, value_bytes=2.0):
    """Sent by each rank in one layer, forward: N−1 blocks of keys and values. An AllGather sends the same."""
    check.whole(ranks=ranks)
    return (ranks - 1) * kv_block_bytes(seq / ranks, kv_heads, head_dim, value_bytes)


def ulysses_sent_bytes(seq, ranks, heads, kv_heads, head_dim, value_bytes=2.0):
    """Sent by each rank in one layer, forward: queries, keys, values and outputs of its tokens, but for its own N-th.

    (N−1)/N · s/N · 2(a + g)·d values; 4·s·h/N for a = g and many ranks (arXiv:2309.14509 section 3.2).
    """
    check.positive(seq=seq, heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_bytes=value_bytes)
    check.whole(ranks=ranks)
    return (ranks - 1) / ranks * (seq / ranks) * 2 * (heads + kv_heads) * head_dim * value_bytes


def ring_over_ulysses(ranks, heads, kv_heads):
    """How many times Ulysses' bytes a ring sends: N·g/(a + g). Below 1 where few key heads serve many queries."""
    check.whole(ranks=ranks, heads=heads, kv_heads=kv_heads)
    return ranks * kv_heads / (heads + kv_heads)


def ulysses_most_ranks(kv_heads, tensor=1):
    """The most ranks that get whole key-value heads: those that tensor parallelism leaves on a GPU."""
    check.whole(kv_heads=kv_heads, tensor=tensor)
    return ops.maximum(1.0, ops.floor(kv_heads / tensor))
