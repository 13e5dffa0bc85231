"""Which of three ceilings a piece of work meets: compute, memory bandwidth, network bandwidth.

Intensity is FLOPs for each byte moved: over the HBM bus (the classic roofline) or over the wire (the network's).
"""

from __future__ import annotations

import numpy as np

from engine import check, memory, models, ops

CEILINGS = ("compute", "memory", "network")


# -- ceilings --------------------------------------------------------------------------------------------------------
def ridge_flops_per_byte(peak_flops_per_s, bytes_per_s):
    """The intensity from which on the arithmetic, not the bytes, sets the pace: peak / bandwidth.

    Williams, Waterman, Patterson, CACM 2009. With a link's bandwidth: the network's ridge, in FLOPs per byte sent.
    """
    check.positive(peak_flops_per_s=peak_flops_per_s, bytes_per_s=bytes_per_s)
    return peak_flops_per_s / bytes_per_s


def attainable_flops_per_s(intensity_flops_per_byte, peak_flops_per_s, bytes_per_s):
    """min(peak, intensity · bandwidth): the roofline. Leaves out latency, and assumes bytes and FLOPs overlap fully."""
    check.positive(intensity_flops_per_byte=intensity_flops_per_byte, peak_flops_per_s=peak_flops_per_s,
                   bytes_per_s=bytes_per_s)
    return ops.minimum(peak_flops_per_s, intensity_flops_per_byte * bytes_per_s)


def network_ceiling_flops_per_s(flops_per_byte_sent, link_bytes_per_s):
    """FLOP/s that a wire can keep busy: FLOPs per byte sent · bytes per second, if sending hides behind computing."""
    check.positive(flops_per_byte_sent=flops_per_byte_sent, link_bytes_per_s=link_bytes_per_s)
    return flops_per_byte_sent * link_bytes_per_s


def ceilings_flops_per_s(flops_per_byte, flops_per_byte_sent, peak_flops_per_s, hbm_bytes_per_s, link_bytes_per_s):
    """What compute, memory and network would each allow one piece of work, on the last axis in the order of CEILINGS.

    Work that sends nothing: pass the memory's intensity and bandwidth twice (``binding_ceiling`` then says memory).
    """
    check.positive(flops_per_byte=flops_per_byte, peak_flops_per_s=peak_flops_per_s, hbm_bytes_per_s=hbm_bytes_per_s)
    network = network_ceiling_flops_per_s(flops_per_byte_sent, link_bytes_per_s)
    return np.stack(np.broadcast_arrays(peak_flops_per_s, flops_per_byte * hbm_bytes_per_s, network), axis=-1)


def binding_ceiling(ceilings):
    """Index into CEILINGS of the lowest one; compute wins a tie, then memory."""
    return np.argmin(ceilings, axis=-1)


def attained_share(ceilings, peak_flops_per_s):
    """The share of the peak that the lowest ceiling leaves."""
    check.positive(peak_flops_per_s=peak_flops_per_s)
    return np.min(ceilings, axis=-1) / peak_flops_per_s


# -- what real work asks for -----------------------------------------------------------------------------------------
def matmul_flops_per_byte(rows, inner, columns, bytes_per_value=2.0):
    """2·m·k·n FLOPs over bytes·(m·k + k·n + m·n): a matrix product that reads and writes everything once.

    With m tokens and square weights of width h: m·h/(h + 2m), about m while m is small. Prefill and MLP are this.
    """
    check.positive(rows=rows, inner=inner, columns=columns, bytes_per_value=bytes_per_value)
    values = rows * inner + inner * columns + rows * columns
    return 2 * rows * inner * columns / (bytes_per_value * values)


def decode_flops_per_byte(batch, bytes_per_weight=2.0):
    """2·b FLOPs for each weight read once for b tokens: 2b / bytes. Leaves out KV cache and activations."""
    check.positive(batch=batch, bytes_per_weight=bytes_per_weight)
    return 2 * batch / bytes_per_weight


def critical_batch(peak_flops_per_s, hbm_bytes_per_s, bytes_per_weight=2.0):
    """The fewest sequences decoded together whose weights' products are compute-bound: ridge · bytes / 2, rounded up.

    Leaves out KV cache and activations, whose bytes no batch shares.
    """
    check.positive(bytes_per_weight=bytes_per_weight)
    return ops.ceil(ridge_flops_per_byte(peak_flops_per_s, hbm_bytes_per_s) * bytes_per_weight / 2)


def held_sequences(model, context_tokens, gpu, gpus=1, bytes_per_weight=2.0, bytes_per_kv_value=2.0):
    """Sequences whose KV caches the weights leave room for: floor((GPUs · HBM − weights) / cache of one), at least 0.

    The batch that can be had, beside ``critical_batch``. Takes weights and caches as cut evenly over the GPUs; leaves
    out activations and the framework.
    """
    check.positive(bytes_per_weight=bytes_per_weight)
    check.whole(gpus=gpus)
    left = gpus * gpu.hbm_bytes - models.parameters(model) * bytes_per_weight
    return ops.maximum(ops.floor(left / memory.kv_bytes(model, context_tokens, 1, bytes_per_kv_value)), 0.0)


def query_heads_per_kv_head(model):
    """How many query heads read the same keys and values: 1 for plain heads, 8 for Llama 3 70B."""
    return model.heads / model.kv_heads


def decode_attention_flops_per_byte(query_heads_per_kv_head, bytes_per_value=2.0):
    """4 FLOPs for each key and value pair and query head that shares it, over 2 values read: 2·group / bytes.

    Each sequence reads its own cache, so no batch raises it: 1 for plain heads in bf16, 8 for groups of 8.
    """
    check.positive(query_heads_per_kv_head=query_heads_per_kv_head, bytes_per_value=bytes_per_value)
    return 2 * query_heads_per_kv_head / bytes_per_value


def prefill_attention_flops_per_byte(seq, query_heads_per_kv_head=1, bytes_per_value=2.0, causal=1):
    """FlashAttention over a whole prompt: 4·s²·d FLOPs a head (half when causal), Q, K, V and O moved once.

    2·s / (bytes·(1 + 1/group)), halved when causal. An upper bound: K and V are read again for each block of queries
    that L2 does not hold (arXiv:2205.14135 section 3.2).
    """
    check.positive(seq=seq, query_heads_per_kv_head=query_heads_per_kv_head, bytes_per_value=bytes_per_value)
    check.between(0, 1, causal=causal)
    return ops.where(causal, 0.5, 1.0) * 2 * seq / (bytes_per_value * (1 + 1 / query_heads_per_kv_head))


def unfused_attention_flops_per_byte(seq, head_dim, bytes_per_value=2.0):
    """Attention that writes its scores out: 4·s²·d FLOPs over 4·s·d + 4·s² values (scores and softmax, there and back).

    Tends to d / bytes for long sequences, whatever the GPU (arXiv:2205.14135 section 2.2).
    """
    check.positive(seq=seq, head_dim=head_dim, bytes_per_value=bytes_per_value)
    return seq * head_dim / (bytes_per_value * (head_dim + seq))


def allreduce_flops_per_byte_sent(tokens_per_gpu, ranks, gradient_bytes=2.0):
    """FLOPs that a GPU does for each byte it sends in the gradients' AllReduce: 6·tokens / (2·(N−1)/N·bytes).

    Independent of the model's size: both sides grow with the parameters. Needs at least 2 ranks: one sends nothing.
    """
    check.positive(tokens_per_gpu=tokens_per_gpu, gradient_bytes=gradient_bytes)
    check.whole(2, ranks=ranks)
    return 3 * tokens_per_gpu * ranks / (gradient_bytes * (ranks - 1))
