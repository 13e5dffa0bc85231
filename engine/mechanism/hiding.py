"""How many tokens a GPU needs so that the gradients' AllReduce hides behind its backward pass: the course's
only rule for it. Lessons, figures, tables and exercises all ask this module."""

from __future__ import annotations

from engine.base import check
from engine.base.types import Real
from engine.mechanism import flops

# Where the rule is claimed, and how far off it may be there. A test holds it against ``layout.estimate``.
FEWEST_RANKS, MOST_RANKS = 16, 512  # whole nodes; more than one
FEWEST_PARAMS = 8e9  # of a dense model
SLOWEST_CARD_BYTES_PER_S = 25e9  # for each GPU: 200 Gb/s; all of a node together no faster than its link
ERROR = 0.12  # share of the tokens by which the rule may be off, either way
MOST_WITH_EXPERTS = 2.8  # factor by which the rule may ask for too many tokens in a model with experts


def tokens_lasting(wire_s: Real, params: Real, flops_per_s: Real) -> Real:
    """Tokens with which a GPU's backward pass lasts as long as its wire is busy: τ·C_k/4P.

    If ``wire_s`` is the time of the bytes alone, this is ``tokens_to_hide``; if it includes each bucket's
    start-up, the difference is what start-ups cost in tokens. The last bucket is exposed with any number of
    tokens. ``flops_per_s`` is that of ``tokens_to_hide``.
    """
    check.positive(wire_s=wire_s, params=params, flops_per_s=flops_per_s)
    return wire_s / (flops.backward_flops(params, 1.0) / flops_per_s)


def tokens_to_hide(
    ranks: Real,
    wire_bytes_per_s: Real,
    flops_per_s: Real,
    gradient_bytes: Real = 2.0,
    params_per_active: Real = 1.0,
) -> Real:
    """Tokens in a GPU's backward pass above which the AllReduce of its gradients takes no longer than it.

    4·P_active·T/C_k ≥ 2·(N−1)/N·g·P/W, so T ≥ g/2·C_k/W·(N−1)/N·P/P_active. All parameters have a gradient
    to send, and only the active ones compute for a token; in a dense model P cancels. ``flops_per_s`` is the
    rate while kernels run, ``matmul.product_flops_per_s`` of the GPU. MFU times the peak is not: an MFU may
    contain the wait that is asked about. ``wire_bytes_per_s`` is the data sheet's, one way: one card where
    the ring has one GPU in each node, all cards of a node together (at most its link) for whole nodes.

    For stage 3 of ZeRO the same tokens hide a gather behind a forward pass, and a gather and a scatter
    behind a backward pass. Leaves out start-ups, the last bucket, and what a backward pass does besides the
    products of its weights (attention, norms). The first two make the rule too small, by half for a model of
    1B on 4,096 GPUs; the last makes it too large, where sequences are long and the wire is slow.
    """
    check.positive(
        wire_bytes_per_s=wire_bytes_per_s,
        flops_per_s=flops_per_s,
        gradient_bytes=gradient_bytes,
        params_per_active=params_per_active,
    )
    check.whole(ranks=ranks)
    return (ranks - 1) / ranks * gradient_bytes / 2.0 * params_per_active * flops_per_s / wire_bytes_per_s
