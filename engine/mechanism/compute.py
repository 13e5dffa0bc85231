"""Arithmetic and memory time of one transformer layer, and of the output layer, for one micro-batch on one
GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration import launch_costs
from engine.calibration.attention import fused_s
from engine.calibration.grouped import trained_experts_s
from engine.calibration.products import gemm_s, quantise_s, trained_product_s
from engine.mechanism import flops, mixing
from engine.mechanism.matmul import Chip, stream_s
from engine.mechanism.shape import mean_of

if TYPE_CHECKING:
    from engine.mechanism.shape import Attended, Product, Routed, Shape

GRADIENT_SUM_BYTES = 8.0  # a weight gradient is added to an fp32 sum, which is read and written
LOGIT_BYTES = (
    14.0,
    6.0,
)  # bytes per logit that the loss reads and writes, forward (with its fp32 copy) and backward
# bytes per logit of a fused loss, which finds maximum and sum in one pass and writes the gradient in a second
# one
FUSED_LOGIT_BYTES = (6.0, 0.0)
SECOND_COPY_BYTES = 1.0  # per value cast to 8 bits: the copy by columns that the weight's gradient reads
# bytes per value of a row that an AllToAll has brought. Rows arrive sorted by rank, so each is read and
# written once to lie beside the other rows of its expert, and its result once more to be sent back; this
# holds forward and, for gradients, backward
SORTED_BYTES = 8.0
CLAMPED_BYTES = 16.0  # to clamp both halves of an expert's inside and to join them: each is read and written
# per value of a row that PyTorch's operators permute, forward and backward, as Megatron-Core of 2024 does
# where experts have a capacity (``permute_with_padded_tokens`` and its inverse): selected (4); weighted in
# fp32 (6), added to zeros (2 + 12) and rounded, for each of a token's two choices (3); and their gradients
PADDED_BYTES = (27.0, 45.0)
# five matrix products instead of the forward pass's two (arXiv:2205.14135), each a little slower: it takes
# 2.4 times the forward pass in FlashAttention-2's own figures, 2.8 in those of FlashAttention-3
BACKWARD_OF_FLASH = 2.7


class LayerTime(NamedTuple):
    """Seconds of one (average) layer for one micro-batch."""

    forward_s: float
    backward_s: float  # both products of each matrix
    weight_gradient_s: float  # the part of backward_s that nothing waits for
    attention_forward_s: float  # of scores and weighted sum alone
    experts_s: float  # the part of forward_s that the experts take


def products_s(
    products: tuple[Product, ...], rows: Real, tp: Real, fused: bool, at: Chip
) -> tuple[Real, Real, Real]:
    """Forward time, backward time, and its weight-gradient part, for a chain of weight matrices.

    Fused: the product itself adds the weight gradient to the sum. Otherwise it writes the gradient, and a
    second kernel reads both and writes the sum.
    """
    if not check.is_trusted():
        check.positive(rows=rows)
    forward = backward = weight = 0.0
    others, casts = tp - 1.0, not ops.is_zero(at.casts)
    for p in products:
        k, n = p.k / (1.0 + others * p.splits_k), p.n / (1.0 + others * p.splits_n)
        forward_s, input_s, weight_s = trained_product_s(rows, k, n, GRADIENT_SUM_BYTES, at.product)
        if not fused:
            weight_s = weight_s + stream_s(GRADIENT_SUM_BYTES * k * n, at)
        if casts:
            if p.casts_input:
                forward_s = forward_s + cast_s(rows, k, at)
            if p.casts_gradient:
                input_s = input_s + cast_s(rows, n, at)
        forward = forward + p.there * forward_s
        backward = backward + p.there * (input_s + weight_s)
        weight = weight + p.there * weight_s
    return forward, backward, weight


def cast_s(rows: Real, width: Real, at: Chip) -> Real:
    """Casting the input of a product, or the gradient of its result, to 8 bits; nothing in wider formats."""
    return at.casts * quantise_s(rows, width, at.quantise, second_bytes=SECOND_COPY_BYTES)


def attention_by_kind(
    shape: Shape, tokens: Real, seq: Real, tp: Real, at: Chip, kernels: str = "library"
) -> tuple[Real, ...]:
    """Forward time of fused attention in a layer of each of ``shape.attended``. PyTorch's own call is
    FlashAttention-2, whether compiled or not."""
    if not check.is_trusted():
        check.positive(tokens=tokens, seq=seq, tp=tp)
    sequences, kernel = tokens / seq, at.attention if kernels == "library" else at.flash_2
    found = []
    for kind in shape.attended:
        if kind.mixer is not None:
            found.append(mixing.sequence_s(kind.mixer, sequences, seq, tp, kernel, at))
            continue
        heads, width = kind.heads / tp, 0.5 * (kind.qk_dim + kind.value_dim)
        kv_heads = heads * (kind.kv_heads / kind.heads)
        window = (kind.window,) if kind.windowed else ()
        found.append(fused_s(sequences, seq, heads, kv_heads, width, kernel, *window))
    return tuple(found)


def _backward_of(kind: Attended) -> Real:
    """The backward pass of one kind of attention, over its forward pass."""
    return (kind.mixer.backward or BACKWARD_OF_FLASH) if kind.mixer is not None else BACKWARD_OF_FLASH


def core_attention_s(
    shape: Shape, tokens: Real, seq: Real, tp: Real, flash: bool, at: Chip, kernels: str = "library"
) -> tuple[Real, Real]:
    """Scores and weighted sum in a mean layer, forward and backward: either fused (only the causal part), or
    as two batched products where the whole score matrix is written, scaled, masked, dropped out and read
    again."""
    if not check.is_trusted():
        check.positive(tokens=tokens, seq=seq, tp=tp)
    if flash:
        each = attention_by_kind(shape, tokens, seq, tp, at, kernels)
        forward = mean_of(shape.attended, each)
        if not any(kind.mixer is not None for kind in shape.attended):
            return forward, forward * BACKWARD_OF_FLASH
        backward = [forward_s * _backward_of(kind) for kind, forward_s in zip(shape.attended, each)]
        return forward, mean_of(shape.attended, backward)
    each = [_written_attention_s(kind, tokens, seq, tp, at, shape.dropout) for kind in shape.attended]
    return mean_of(shape.attended, [f for f, _ in each]), mean_of(shape.attended, [b for _, b in each])


def _written_attention_s(kind: Attended, tokens, seq, tp, at: Chip, dropout) -> tuple[Real, Real]:
    """``core_attention_s`` of one kind, where the scores are written; a kind of ``catalog.mixers`` has none
    to write."""
    if kind.mixer is not None:
        forward = mixing.sequence_s(kind.mixer, tokens / seq, seq, tp, at.flash_2, at)
        return forward, forward * _backward_of(kind)
    heads = kind.heads / tp
    batch = tokens / seq * heads
    two_products = gemm_s(seq, seq, kind.qk_dim, at.wide, batch) + gemm_s(
        seq, kind.value_dim, seq, at.wide, batch
    )
    scores = tokens * seq * heads
    return (
        two_products + stream_s((4.0 + 5.0 * dropout) * scores, at),
        2.0 * two_products + stream_s((6.0 + 5.0 * dropout) * scores, at),
    )


def layer(
    shape: Shape,
    tokens: Real,
    seq: Real,
    tp: Real,
    whole_ranks: Real,
    ep: Real,
    expert_tp: Real,
    imbalance: Real,
    flash: bool,
    fused: bool,
    at: Chip,
    kernels: str = "library",
    how: str = "grouped",
    sorts_rows: bool = False,
) -> LayerTime:
    """One layer's time, averaged over dense and MoE layers.

    ``tokens`` are this GPU's (micro-batch × sequence / context ranks); ``whole_ranks`` divides the work that
    plain tensor parallelism does not split (1 without sequence parallelism, tp with it). Experts process
    tokens·top_k·expert_tp/tp rows in all, spread over the GPU's own experts; ``imbalance`` is the fullest
    GPU's load over the mean. ``how`` says how the software runs experts (``TrainingSoftware.experts``), and
    ``sorts_rows`` that it moves SORTED_BYTES of each row where a rank holds several experts.
    """
    if not check.is_trusted():
        check.positive(tokens=tokens, seq=seq, imbalance=imbalance)
        check.whole(tp=tp, whole_ranks=whole_ranks, ep=ep, expert_tp=expert_tp)
    attention_f, attention_b = core_attention_s(shape, tokens, seq, tp, flash, at, kernels)
    dense_f, dense_b, dense_w = products_s(shape.attention, tokens, tp, fused, at)
    width, experts_f = 0.0, 0.0
    for part in shape.dense:
        f, b, w = products_s(part.products, tokens, tp, fused, at)
        dense_f, dense_b, dense_w = (
            dense_f + part.share * f,
            dense_b + part.share * b,
            dense_w + part.share * w,
        )
        width = width + part.width * part.share
    for part in shape.routed:
        part_f, experts_b, experts_w, routed = _experts(
            shape, part, tokens, tp, ep, expert_tp, imbalance, fused, at, how, sorts_rows
        )
        dense_f, dense_b, dense_w = dense_f + part_f, dense_b + experts_b, dense_w + experts_w
        experts_f, width = experts_f + part_f, width + routed
    moved_f, moved_b = moved_bytes(shape, tp, whole_ranks, width, kernels)
    launches = kernels_of(shape)
    forward_s = ops.maximum(dense_f + attention_f + stream_s(tokens * moved_f, at), launches * at.launch_s)
    backward_s = ops.maximum(
        dense_b + attention_b + stream_s(tokens * moved_b, at), 2.0 * launches * at.launch_s
    )
    return LayerTime(forward_s, backward_s, dense_w, attention_f, experts_f)


def kernels_of(shape: Shape) -> Real:
    """Kernels of a layer's forward pass, without those that experts add."""
    return launch_costs.PRODUCT_KERNELS * shape.products + launch_costs.LAYER_KERNELS


def issued_s(shape: Shape, ep: Real, at: Chip) -> tuple[Real, Real]:
    """Seconds that the CPU takes to launch an average layer's forward pass, one kernel after the other:
    (without its experts, its experts). The backward pass takes twice as long. The GPU cannot be faster than
    this, unless the whole pass is one graph.

    Counts the kernels of the vendors' training software; PyTorch's own operators launch more
    (``one_gpu.capture`` counts them).
    """
    if not check.is_trusted():
        check.positive(ep=ep)
    each = launch_costs.HELD_KERNELS * (1.0 + at.casts)
    experts = shape.moe_share * launch_costs.EXPERT_KERNELS
    for part in shape.routed:
        experts = experts + part.share * each * (part.experts / ep)
    return kernels_of(shape) * at.issue_s, experts * at.issue_s


def streamed_bytes(shape: Shape, tp: Real, whole_ranks: Real, width: Real) -> tuple[Real, Real]:
    """Bytes per token that the kernels between the products read and write in one layer, forward and
    backward.

    For the hidden state (h values of 2 bytes): two norms (4h), two residual additions (6h each, 1h more for a
    dropout mask); backward, a norm reads its input and gradient twice (10h), adding the residual's gradient
    takes 6h, and dropout 5h. Queries, keys and values are split out of their joint product, and rotated where
    rotary embedding is used (4 each). Of latents' heads only the rotary part is turned, in place (4); their
    keys and values are read as they come out of their product and written as attention reads them (2 and 2,
    Megatron-Core's fused_mla_yarn_rope_apply). The activation function reads one or two values of MLP width
    and writes one; backward it also reads the gradient.
    """
    hidden = shape.hidden / whole_ranks
    own, latent = shape.query_values + 2.0 * shape.key_values, 1.5 * shape.latent_values
    heads = 4.0 * (own - latent) + _turned(shape, 4.0, shape.latent_values) + shape.turned_bytes
    beside_f, beside_b = shape.beside_bytes
    forward, backward = (heads + beside_f) / tp, (heads + beside_b) / tp
    return (
        (20.0 + 2.0 * shape.dropout) * hidden + forward + (4.0 + 2.0 * shape.gated) * width / tp,
        (32.0 + 10.0 * shape.dropout) * hidden + backward + (6.0 + 4.0 * shape.gated) * width / tp,
    )


def _turned(shape, bytes_per_value, latent=0.0):
    """Bytes per token that rotating queries and keys moves, but for so many that are ``latent``."""
    both = shape.query_values + shape.key_values - latent
    return ops.where(shape.max_positions > 0.0, 0.0, bytes_per_value * both)


def moved_bytes(
    shape: Shape, tp: Real, whole_ranks: Real, width: Real, kernels: str = "library"
) -> tuple[Real, Real]:
    """``streamed_bytes``, or ``eager_bytes`` where nothing is fused."""
    moved = eager_bytes if kernels == "eager" else streamed_bytes
    return moved(shape, tp, whole_ranks, width)


def eager_bytes(shape: Shape, tp: Real, whole_ranks: Real, width: Real) -> tuple[Real, Real]:
    """The bytes of ``streamed_bytes`` if nothing is fused: every operator of PyTorch reads its inputs from
    memory and writes its result to memory.

    A model with a gated MLP has an RMSNorm, written out in fp32: 36 bytes a value forward and 92 backward; a
    LayerNorm is one kernel (4 and 6). Two residual additions (12); backward the gradients of all that reads a
    value are added (30). Rotation in fp32 (20 each way), keys and values copied for each query head of their
    group, SiLU and its product (10 and 18; GeLU 4 and 6). PyTorch's dispatcher counts the same bytes
    (record/eager_bytes.py).
    """
    gated = 1.0 * shape.gated
    hidden = shape.hidden / whole_ranks
    both = shape.query_values + shape.key_values
    copied = ops.where(shape.key_values < shape.query_values, 4.0 * both, 0.0)
    heads = (_turned(shape, 20.0) + copied) / tp
    return (
        (20.0 + 64.0 * gated + 2.0 * shape.dropout) * hidden + heads + (4.0 + 6.0 * gated) * width / tp,
        (36.0 + 178.0 * gated + 10.0 * shape.dropout) * hidden + heads + (6.0 + 12.0 * gated) * width / tp,
    )


def _routed_layer(
    part: Routed, tokens: Real, tp: Real, ep: Real, expert_tp: Real, imbalance: Real
) -> tuple[Real, Real, Real, Real, Real, Real]:
    """A GPU's routed experts as the arguments of ``trained_experts_s``: rows, experts with rows, experts
    held, hidden and expert width, gate."""
    # all numbers are at least one, because a symbol may stand for a model without experts, whose share is
    # zero
    held, top_k = ops.maximum(1.0, part.experts / ep), ops.maximum(1.0, part.top_k)
    rows = imbalance * tokens * expert_tp / tp * top_k
    return (
        rows,
        ops.minimum(held, rows),
        held,
        part.hidden,
        ops.maximum(1.0, part.width / expert_tp),
        part.gated,
    )


def _experts_casts_s(layer, within: bool, at: Chip) -> tuple[Real, Real]:
    """The time to cast the operands of routed experts, forward and backward; those inside an expert are cast
    by its products where these do so ``within``."""
    rows, _, _, hidden, width, gated = layer
    hidden_s = cast_s(rows, hidden, at)
    if within:
        return hidden_s, hidden_s
    return hidden_s + cast_s(rows, width, at), hidden_s + cast_s(rows, (1.0 + gated) * width, at)


def _experts(shape, part, tokens, tp, ep, expert_tp, imbalance, fused, at: Chip, how, sorts_rows):
    """Routed and shared experts of one kind in an average layer: forward, backward and weight-gradient times,
    and the MLP width over which the shared experts' activation functions run (for the whole tensor group, as
    with a dense MLP)."""
    share = part.share
    layer = rows, _, held, hidden, width, gated = _routed_layer(part, tokens, tp, ep, expert_tp, imbalance)
    within = how == "fused" and not ops.is_zero(at.casts)  # such kernels exist for 8 bits alone
    casts_f, casts_b = _experts_casts_s(layer, within, at)
    if how == "one-by-one":
        f, b, w = _one_by_one_s(layer, expert_tp, at)
    else:
        f, b, w = trained_experts_s(*layer, GRADIENT_SUM_BYTES, at.experts, within)
    if not fused:
        unfused_s = stream_s(GRADIENT_SUM_BYTES * held * (2.0 + gated) * hidden * width, at)
        b, w = b + unfused_s, w + unfused_s
    f, b = f + casts_f, b + casts_b
    if how == "operators":
        moved_f, moved_b = operator_bytes(shape, hidden, width)
        f, b = f + stream_s(rows * moved_f, at), b + stream_s(rows * moved_b, at)
    if sorts_rows:
        sort_s = ops.where(held > 1.0, stream_s(SORTED_BYTES * rows * hidden, at), 0.0)
        f, b = f + sort_s, b + sort_s
    width = 0.0
    if part.shared:
        f2, b2, w2 = products_s(part.shared, tokens, tp, fused, at)
        f, b, w = f + f2, b + b2, w + w2
        width = part.shared_width
    return share * f, share * b, share * w, share * width


def _one_by_one_s(layer, expert_tp, at: Chip):
    """Seconds of a GPU's routed experts if they run as dense layers, one after another (Megatron-Core's
    SequentialMLP): (forward, backward, the part of backward that computes weight gradients). ``layer`` are
    the arguments of ``trained_experts_s``.

    The products are dense products over an expert's rows. In addition the activation function's inputs and
    outputs are moved, and PADDED_BYTES of each row that a GPU sends, before its tensor ranks gather the rows.
    """
    rows, touched, _, hidden, width, gated = layer
    each, sent = rows / touched, rows / expert_tp * hidden
    up = trained_product_s(each, hidden, (1.0 + gated) * width, GRADIENT_SUM_BYTES, at.product)
    down = trained_product_s(each, width, hidden, GRADIENT_SUM_BYTES, at.product)
    forward, inputs, weights = (touched * (one + other) for one, other in zip(up, down))
    return (
        forward + stream_s(rows * (4.0 + 2.0 * gated) * width + PADDED_BYTES[0] * sent, at),
        inputs + weights + stream_s(rows * (6.0 + 4.0 * gated) * width + PADDED_BYTES[1] * sent, at),
        weights,
    )


def operator_bytes(shape: Shape, hidden: Real, width: Real) -> tuple[Real, Real]:
    """Bytes per row of a biased expert (gpt-oss) that PyTorch's operators move beside its fused kernels in
    Megatron-Core, forward and backward, as its code has them.

    ``TEGroupedMLP._apply_bias``: the output's bias times the token's weight, in fp32 (4 bytes written),
    added to the output (2 + 4 read, 4 written), joined over the experts (4 and 4) and rounded (4 and 2);
    backward the cast both ways (12), and two products with their sums (24).
    ``weighted_bias_quick_geglu_impl`` clamps the gate and the other half one by one and joins them again
    (CLAMPED_BYTES a unit of width, backward 20).
    """
    forward = 28.0 * hidden + CLAMPED_BYTES * width
    return shape.biases * forward, shape.biases * (36.0 * hidden + 20.0 * width)


def head(
    shape: Shape,
    tokens: Real,
    tp: Real,
    whole_ranks: Real,
    at: Chip,
    loss: str = "plain",
    chunks: Real = 8,
    frozen: bool = False,
) -> tuple[Real, Real]:
    """Final norm, output layer and loss: forward and backward time. They stay in 16 bits in an fp8 recipe.
    A ``frozen`` output layer has no weight gradient.

    A chunked loss adds each chunk's weight gradient to the sum, which is read and written again for every
    chunk but the first; a fused one reads the logits twice and writes them once.
    """
    if not check.is_trusted():
        check.positive(tokens=tokens)
        check.whole(tp=tp, whole_ranks=whole_ranks)
    vocab = shape.vocab / tp
    forward_s, input_s, weight_s = trained_product_s(tokens, shape.hidden, vocab, GRADIENT_SUM_BYTES, at.wide)
    norm = 4.0 * shape.hidden / whole_ranks
    read_f, read_b = FUSED_LOGIT_BYTES if loss == "fused" else LOGIT_BYTES
    again = (chunks - 1.0) * GRADIENT_SUM_BYTES * shape.hidden * vocab if loss == "chunked" else 0.0
    if frozen:
        weight_s, again = 0.0, 0.0
    return (
        forward_s + stream_s(tokens * (read_f * vocab + norm), at),
        input_s + weight_s + stream_s(tokens * (read_b * vocab + norm) + again, at),
    )


def joined(shape: Shape, tokens: Real, tp: Real, at: Chip) -> tuple[Real, Real]:
    """The 2h × h projection that merges two hidden states at the start of a multi-token prediction module:
    forward and backward time."""
    forward_s, input_s, weight_s = trained_product_s(
        tokens, 2.0 * shape.hidden, shape.hidden / tp, GRADIENT_SUM_BYTES, at.product
    )
    return forward_s, input_s + weight_s


class Again(NamedTuple):
    """Seconds that an average layer's backward pass spends on recomputing MODULES for one micro-batch, and
    which shares of the layer's traffic are sent again."""

    again_s: Real
    tensor: Real
    expert: Real


def again(
    shape: Shape,
    tokens: Real,
    seq: Real,
    tp: Real,
    whole_ranks: Real,
    ep: Real,
    expert_tp: Real,
    imbalance: Real,
    flash: bool,
    modules: tuple[str, ...],
    at: Chip,
    kernels: str = "library",
    how: str = "grouped",
) -> Again:
    """The cost of recomputing these modules (memory.MODULES).

    Each module repeats its own forward pass: its products, and what its kernels read and write
    (``streamed_bytes``). A dense MLP also gathers its input and scatters its output again, and experts send
    their tokens again; norms, the activation function and the latents' projections send nothing.
    ``every_other`` repeats every second product and all that lies between them. Leaves out launches.
    """
    if not check.is_trusted():
        check.positive(tokens=tokens, seq=seq, imbalance=imbalance)
        check.whole(tp=tp, whole_ranks=whole_ranks, ep=ep, expert_tp=expert_tp)
    seconds, moved, gate = 0.0, 0.0, 4.0 + 2.0 * shape.gated
    if "core_attn" in modules:
        seconds = seconds + _repeated_attention_s(shape, tokens, seq, tp, flash, at, kernels)
    if "every_other" in modules:
        for products, repeats in every_other(shape):
            seconds = seconds + repeats * _forward_s(products, tokens, tp, at)
        moved = moved + moved_bytes(shape, tp, whole_ranks, shape.ffn, kernels)[0]
    if "layernorm" in modules:
        moved = moved + 8.0 * shape.hidden / whole_ranks
    if "mla_up_proj" in modules:
        seconds = seconds + _forward_s(shape.up_projections, tokens, tp, at)
        moved = moved + 4.0 * shape.latent_values / tp
    dense = 1.0 - shape.moe_share
    if "mlp" in modules:
        for part in shape.dense:
            seconds = seconds + part.share * _forward_s(part.products, tokens, tp, at)
            moved = moved + part.share * gate * part.width / tp
    for part in shape.routed:
        everything = "moe" in modules
        if everything:
            layer = _routed_layer(part, tokens, tp, ep, expert_tp, imbalance)
            again_s = trained_experts_s(*layer, GRADIENT_SUM_BYTES, at.experts)[0]
            seconds = seconds + part.share * (again_s + _experts_casts_s(layer, False, at)[0])
        elif "moe_act" in modules:
            clamped = CLAMPED_BYTES * shape.biases if how == "operators" else 0.0
            rows = part.share * part.top_k * imbalance / tp
            moved = moved + rows * (gate + clamped) * part.width
        if everything or "shared_experts" in modules:
            seconds = seconds + part.share * _forward_s(part.shared, tokens, tp, at)
            moved = moved + part.share * gate * part.shared_width / tp
    return Again(
        seconds + stream_s(tokens * moved, at),
        # a dense layer has two such pairs of collectives, a layer of experts one
        dense / (1.0 + dense) if "mlp" in modules else 0.0,
        1.0 if "moe" in modules else 0.0,
    )


def _repeated_attention_s(shape, tokens, seq, tp, flash, at: Chip, kernels):
    """Forward time of the attention that recomputing ``core_attn`` repeats in a mean layer: of kinds that
    read what came before, not of those that keep a state of it, which are modules of their own."""
    if not flash or not any(_keeps_state(kind) for kind in shape.attended):
        return core_attention_s(shape, tokens, seq, tp, flash, at, kernels)[0]
    each = attention_by_kind(shape, tokens, seq, tp, at, kernels)
    return sum(kind.share * kind_s for kind, kind_s in zip(shape.attended, each) if not _keeps_state(kind))


def _keeps_state(kind: Attended) -> bool:
    return kind.mixer is not None and not kind.mixer.cached


def every_other(shape: Shape) -> tuple[tuple[tuple[Product, ...], Real], ...]:
    """The products of a gated dense layer, and which share of their FLOPs recomputing every second one
    repeats: two of queries, keys, values and output, which are half of them with any number of key heads;
    and one of gate, up and down."""
    return (shape.attention, 0.5), *((part.products, 1.0 / 3.0) for part in shape.dense)


def _forward_s(products, rows, tp, at: Chip):
    """Forward time of a chain of weight matrices."""
    return products_s(products, rows, tp, True, at)[0]


def repeated_flops_per_token(
    shape: Shape, seq: Real, causal: Real = 1, modules: tuple[str, ...] = ()
) -> Real:
    """FLOPs of the forward pass that recomputing these MODULES in every layer repeats: their products, 2·k·n
    each, and with ``core_attn`` the attention's own. Norms and activation functions have no products."""
    if not check.is_trusted():
        check.whole(seq=seq)
    found = flops.attention_flops_per_token(shape, seq, causal) if "core_attn" in modules else 0.0
    layer = 0.0
    if "mla_up_proj" in modules:
        layer = layer + _products_flops(shape.up_projections)
    if "every_other" in modules:
        for products, repeats in every_other(shape):
            layer = layer + repeats * _products_flops(products)
    if "mlp" in modules:
        for part in shape.dense:
            layer = layer + part.share * _products_flops(part.products)
    for part in shape.routed:
        if "moe" in modules:
            layer = layer + part.share * part.top_k * _products_flops(part.products)
        if "moe" in modules or "shared_experts" in modules:
            layer = layer + part.share * _products_flops(part.shared)
    return found + shape.depth * layer


def _products_flops(products) -> Real:
    return sum(2.0 * p.there * p.k * p.n for p in products)
