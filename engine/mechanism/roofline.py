"""Which of three ceilings limits a piece of work: compute, memory bandwidth or network bandwidth.

Intensity is FLOPs per byte moved, over the HBM bus (the classic roofline) or over the wire (the network's).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.catalog import models
from engine.mechanism import memory

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu

CEILINGS = ("compute", "memory", "network")


# -- ceilings ------------------------------------------------------------------------------------------------
def ridge_flops_per_byte(peak_flops_per_s: Real, bytes_per_s: Real) -> Real:
    """The intensity above which arithmetic, not bytes, is the limit: peak / bandwidth.

    Williams, Waterman, Patterson, CACM 2009. With a link's bandwidth this is the network's ridge, in FLOPs
    per byte sent.
    """
    check.positive(peak_flops_per_s=peak_flops_per_s, bytes_per_s=bytes_per_s)
    return peak_flops_per_s / bytes_per_s


def attainable_flops_per_s(intensity_flops_per_byte: Real, peak_flops_per_s: Real, bytes_per_s: Real) -> Real:
    """min(peak, intensity · bandwidth): the roofline. Leaves out latency, and assumes bytes and FLOPs overlap
    fully."""
    check.positive(
        intensity_flops_per_byte=intensity_flops_per_byte,
        peak_flops_per_s=peak_flops_per_s,
        bytes_per_s=bytes_per_s,
    )
    return ops.minimum(peak_flops_per_s, intensity_flops_per_byte * bytes_per_s)


def network_ceiling_flops_per_s(flops_per_byte_sent: Real, link_bytes_per_s: Real) -> Real:
    """The FLOP/s that a wire can keep supplied: FLOPs per byte sent · bytes per second, if sending overlaps
    computing."""
    check.positive(flops_per_byte_sent=flops_per_byte_sent, link_bytes_per_s=link_bytes_per_s)
    return flops_per_byte_sent * link_bytes_per_s


def ceilings_flops_per_s(
    flops_per_byte: Real,
    flops_per_byte_sent: Real,
    peak_flops_per_s: Real,
    hbm_bytes_per_s: Real,
    link_bytes_per_s: Real,
) -> Real:
    """The FLOP/s that compute, memory and network would each allow, on the last axis in the order of
    CEILINGS.

    For work that sends nothing, pass the memory's intensity and bandwidth twice (``binding_ceiling`` then
    says memory).
    """
    check.positive(
        flops_per_byte=flops_per_byte, peak_flops_per_s=peak_flops_per_s, hbm_bytes_per_s=hbm_bytes_per_s
    )
    network = network_ceiling_flops_per_s(flops_per_byte_sent, link_bytes_per_s)
    return np.stack(np.broadcast_arrays(peak_flops_per_s, flops_per_byte * hbm_bytes_per_s, network), axis=-1)


def binding_ceiling(ceilings: Real) -> Real:
    """Index into CEILINGS of the lowest one; on a tie compute comes before memory, memory before network."""
    return np.argmin(ceilings, axis=-1)


def attained_share(ceilings: Real, peak_flops_per_s: Real) -> Real:
    """The share of the peak that the lowest ceiling allows."""
    check.positive(peak_flops_per_s=peak_flops_per_s)
    return np.min(ceilings, axis=-1) / peak_flops_per_s


# -- intensities of real work --------------------------------------------------------------------------------
def matmul_flops_per_byte(rows: Real, inner: Real, columns: Real, bytes_per_value: Real = 2.0) -> Real:
    """2·m·k·n FLOPs over bytes·(m·k + k·n + m·n): a matrix product that reads and writes everything once.

    With m tokens and square weights of width h: m·h/(h + 2m), about m while m is small. Prefill and MLP are
    of this kind.
    """
    check.positive(rows=rows, inner=inner, columns=columns, bytes_per_value=bytes_per_value)
    values = rows * inner + inner * columns + rows * columns
    return 2 * rows * inner * columns / (bytes_per_value * values)


def decode_flops_per_byte(batch: Real, bytes_per_weight: Real = 2.0) -> Real:
    """2·b FLOPs for each weight read once for b tokens: 2b / bytes. Leaves out KV cache and activations."""
    check.positive(batch=batch, bytes_per_weight=bytes_per_weight)
    return 2 * batch / bytes_per_weight


def critical_batch(peak_flops_per_s: Real, hbm_bytes_per_s: Real, bytes_per_weight: Real = 2.0) -> Real:
    """The fewest sequences decoded together for which the weights' products are compute-bound: ridge · bytes
    / 2, rounded up.

    Leaves out KV cache and activations, whose bytes a larger batch does not share.
    """
    check.positive(bytes_per_weight=bytes_per_weight)
    return ops.ceil(ridge_flops_per_byte(peak_flops_per_s, hbm_bytes_per_s) * bytes_per_weight / 2)


def held_sequences(
    model: models.Model,
    context_tokens: Real,
    gpu: Gpu,
    gpus: Real = 1,
    bytes_per_weight: Real = 2.0,
    bytes_per_kv_value: Real = 2.0,
) -> Real:
    """Sequences whose KV caches fit beside the weights: floor((GPUs · server_bytes − weights) / cache of
    one), at least 0.

    The batch that is possible, to compare with ``critical_batch``. Assumes that weights and caches are split
    evenly over the GPUs; leaves out activations.
    """
    check.positive(bytes_per_weight=bytes_per_weight)
    check.whole(gpus=gpus)
    left = gpus * memory.server_bytes(gpu) - models.parameters(model) * bytes_per_weight
    return ops.maximum(ops.floor(left / memory.kv_bytes(model, context_tokens, 1, bytes_per_kv_value)), 0.0)


def query_heads_per_kv_head(model: models.Model) -> Real:
    """How many query heads share the same keys and values: 1 in multi-head attention, 8 in Llama 3 70B."""
    return model.heads / model.kv_heads


def decode_attention_flops_per_byte(query_heads_per_kv_head: Real, bytes_per_value: Real = 2.0) -> Real:
    """4 FLOPs per key-value pair and query head that shares it, over 2 values read: 2·group / bytes.

    Each sequence reads its own cache, so a larger batch does not raise it: 1 for multi-head attention in
    bf16, 8 for groups of 8.
    """
    check.positive(query_heads_per_kv_head=query_heads_per_kv_head, bytes_per_value=bytes_per_value)
    return 2 * query_heads_per_kv_head / bytes_per_value


def allreduce_flops_per_byte_sent(tokens_per_gpu: Real, ranks: Real, gradient_bytes: Real = 2.0) -> Real:
    """FLOPs that a GPU does per byte that it sends in the gradients' AllReduce: 6·tokens / (2·(N−1)/N·bytes).

    Independent of the model's size, since both sides grow with the parameters. Needs at least 2 ranks,
    because a single one sends nothing.
    """
    check.positive(tokens_per_gpu=tokens_per_gpu, gradient_bytes=gradient_bytes)
    check.whole(2, ranks=ranks)
    return 3 * tokens_per_gpu * ranks / (gradient_bytes * (ranks - 1))
