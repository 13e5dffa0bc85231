"""Arithmetic and memory time of one transformer layer and of the output layer, for one micro-batch on one GPU."""

from __future__ import annotations

from typing import NamedTuple

from engine import check, ops
from engine.matmul import Chip, fused_attention_s, product_s, stream_s, trained_product_s

GRADIENT_SUM_BYTES = 8.0    # a weight gradient is added to an fp32 sum: read and written
LOGIT_BYTES = 14.0, 6.0     # of each logit that the loss reads and writes, forward (with its fp32 copy) and backward
BACKWARD_OF_FLASH = 2.5     # five products where the forward pass has two (arXiv:2205.14135)


class LayerTime(NamedTuple):
    """Seconds of one (average) layer for one micro-batch."""

    forward_s: float
    backward_s: float               # both products of each matrix
    weight_gradient_s: float        # the part of it that nothing waits for
    attention_forward_s: float      # scores and weighted sum alone
    experts_s: float                # of forward_s, what the experts take


def products_s(products, rows, tp, batch, rate, fused: bool, at: Chip):
    """Forward time, backward time and the weight-gradient part of it, of a chain of weight matrices.

    Fused: the product adds its weight gradient to the sum by itself. Otherwise it writes it, and a second kernel reads
    both and writes the sum.
    """
    if not check.is_trusted():
        check.positive(rows=rows)
    forward = backward = weight = 0.0
    cast_s = stream_s(at.casts * batch * rows * 4.0, at)
    for p in products:
        k = p.k / (1.0 + (tp - 1.0) * p.splits_k)
        n = p.n / (1.0 + (tp - 1.0) * p.splits_n)
        forward_s, input_s, weight_s = trained_product_s(
            rows, k, n, batch, rate, at.operand_bytes, GRADIENT_SUM_BYTES, at)
        if not fused:
            weight_s = weight_s + stream_s(GRADIENT_SUM_BYTES * batch * k * n, at)
        forward = forward + p.there * (forward_s + cast_s * k)
        backward = backward + p.there * (input_s + weight_s + cast_s * n)
        weight = weight + p.there * weight_s
    return forward, backward, weight


def seen_per_query(shape, seq, causal: float):
    """Keys that a query meets, averaged over layers: half the sequence under a causal mask, less in a window."""
    window = ops.minimum(seq, ops.where(shape.windowed_share > 0.0, shape.span_window, seq))
    full = seq * (1.0 - 0.5 * causal)
    inside = window - causal * (window * window / (2.0 * seq))
    return full + shape.windowed_share * (inside - full)


def core_attention_s(shape, tokens, seq, heads, flash: bool, at: Chip):
    """Scores and weighted sum, forward and backward: fused (causal work alone), or as two batched products with the
    whole score matrix written, scaled, masked, dropped out and read again."""
    if not check.is_trusted():
        check.positive(tokens=tokens, seq=seq, heads=heads)
    if flash:
        score_pairs = tokens * seen_per_query(shape, seq, 1.0) * heads
        forward = fused_attention_s(score_pairs, seq, shape.qk_dim, shape.value_dim, 1.0, at)
        return forward, forward * BACKWARD_OF_FLASH
    batch = tokens / seq * heads
    two_products = (product_s(seq, seq, shape.qk_dim, batch, at.wide_flops_per_s, at.wide_bytes, 2.0, at)
                    + product_s(seq, shape.value_dim, seq, batch, at.wide_flops_per_s, at.wide_bytes, 2.0, at))
    scores = tokens * seq * heads
    return (two_products + stream_s((4.0 + 5.0 * shape.dropout) * scores, at),
            2.0 * two_products + stream_s((6.0 + 5.0 * shape.dropout) * scores, at))


def layer(shape, tokens, seq, tp, whole_ranks, ep, expert_tp, imbalance, flash: bool, fused: bool,
          at: Chip) -> LayerTime:
    """One layer, dense and MoE ones averaged.

    ``tokens`` are this GPU's (micro-batch × sequence / context ranks); ``whole_ranks`` divides what tensor parallelism
    leaves whole (1 without sequence parallelism, tp with it). Experts see tokens·top_k·expert_tp/tp rows in all, spread
    over the GPU's own experts; ``imbalance`` is the fullest GPU's load over the mean.
    """
    if not check.is_trusted():
        check.positive(tokens=tokens, seq=seq, imbalance=imbalance)
        check.whole(tp=tp, whole_ranks=whole_ranks, ep=ep, expert_tp=expert_tp)
    heads = shape.heads / tp
    attention_f, attention_b = core_attention_s(shape, tokens, seq, heads, flash, at)
    rate = at.matmul_flops_per_s
    dense_f, dense_b, dense_w = products_s(shape.attention, tokens, tp, 1.0, rate, fused, at)
    width = shape.ffn * (1.0 - shape.moe_share)
    if shape.mlp:
        share = 1.0 - shape.moe_share
        f, b, w = products_s(shape.mlp, tokens, tp, 1.0, rate, fused, at)
        dense_f, dense_b, dense_w = dense_f + share * f, dense_b + share * b, dense_w + share * w
    experts_f = 0.0
    if shape.expert:
        experts_f, experts_b, experts_w, routed = _experts(shape, tokens, tp, ep, expert_tp, imbalance, fused, at)
        dense_f, dense_b, dense_w = dense_f + experts_f, dense_b + experts_b, dense_w + experts_w
        width = width + routed
    moved_f, moved_b = streamed_bytes(shape, tp, whole_ranks, width)
    kernels = 2.0 * shape.products + 8.0
    forward_s = ops.maximum(dense_f + attention_f + stream_s(tokens * moved_f, at), kernels * at.launch_s)
    backward_s = ops.maximum(dense_b + attention_b + stream_s(tokens * moved_b, at), 2.0 * kernels * at.launch_s)
    return LayerTime(forward_s, backward_s, dense_w, attention_f, experts_f)


def streamed_bytes(shape, tp, whole_ranks, width):
    """Bytes of a token that the kernels between the products read and write in one layer, forward and backward.

    Of the hidden state (h values of 2 bytes): two norms (4h), two residual additions (6h each, 1h more for a dropout
    mask); backward a norm reads its input and gradient twice (10h) and the residual's gradient is added (6h), dropout
    5h. Queries, keys and values are cut out of their product, and turned by rotary embedding where it is used (4 each).
    The activation function reads one or two values of MLP width and writes one; backward it also reads the gradient.
    """
    hidden = shape.hidden / whole_ranks
    heads = (4.0 * (shape.heads + 2.0 * shape.kv_heads)
             + ops.where(shape.max_positions > 0.0, 0.0, 4.0 * (shape.heads + shape.kv_heads))) * shape.qk_dim / tp
    return ((20.0 + 2.0 * shape.dropout) * hidden + heads + (4.0 + 2.0 * shape.gated) * width / tp,
            (32.0 + 10.0 * shape.dropout) * hidden + heads + (6.0 + 4.0 * shape.gated) * width / tp)


def _experts(shape, tokens, tp, ep, expert_tp, imbalance, fused, at: Chip):
    """Routed and shared experts of an average layer: forward, backward, weight gradients, and the MLP width that their
    activation functions cover (for the whole tensor group, as a dense MLP's would)."""
    share = shape.moe_share
    local = ops.maximum(1.0, shape.experts / ep)    # at least one, also where it is not known yet whether there are any
    rows = imbalance * tokens * shape.top_k * expert_tp / tp / local
    f, b, w = products_s(shape.expert, rows, expert_tp, local, at.matmul_flops_per_s, fused, at)
    width = shape.top_k * shape.expert_ffn * imbalance
    if shape.shared:
        f2, b2, w2 = products_s(shape.shared, tokens, tp, 1.0, at.matmul_flops_per_s, fused, at)
        f, b, w = f + f2, b + b2, w + w2
        width = width + shape.shared_experts * shape.shared_ffn
    router_and_permutation_s = stream_s(8.0 * imbalance * tokens * shape.top_k * shape.hidden / tp, at)
    return (share * (f + router_and_permutation_s), share * (b + router_and_permutation_s), share * w, share * width)


def head(shape, tokens, tp, whole_ranks, at: Chip):
    """Final norm, output layer and loss: forward and backward time. They stay in 16 bits under fp8."""
    if not check.is_trusted():
        check.positive(tokens=tokens)
        check.whole(tp=tp, whole_ranks=whole_ranks)
    vocab = shape.vocab / tp
    forward_s, input_s, weight_s = trained_product_s(
        tokens, shape.hidden, vocab, 1.0, at.wide_flops_per_s, at.wide_bytes, GRADIENT_SUM_BYTES, at)
    norm = 4.0 * shape.hidden / whole_ranks
    return (forward_s + stream_s(tokens * (LOGIT_BYTES[0] * vocab + norm), at),
            input_s + weight_s + stream_s(tokens * (LOGIT_BYTES[1] * vocab + norm), at))
