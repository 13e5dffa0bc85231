"""Training with products in blocks of 8 or 4 bits: what a value takes with its scale, what FSDP gathers, and
how much a step gains.

MXFP8 gives each 32 values a scale of 8 bits. NVFP4 gives each 16 values one of 8 bits, and each tensor one in
fp32. Both keep master copy and moments in fp32 and send gradients in bf16. NVFP4 leaves about 16 % of the
linear layers in bf16, and attention, embedding, output layer and norms (arXiv:2509.25149).
"""

from __future__ import annotations

from engine.base import check
from engine.base.types import Real

BLOCKS = {"mxfp8": (8.0, 8.0, 32.0), "nvfp4": (4.0, 8.0, 16.0), "mxfp4": (4.0, 8.0, 32.0)}


def value_bytes(value_bits: Real, scale_bits: Real, block: Real) -> Real:
    """Bytes of a value with its part of the scale of a block: (value + scale / block) / 8.

    MXFP8 1.03125, NVFP4 0.5625, MXFP4 0.53125. Leaves out NVFP4's scale of a tensor, 4 bytes. OCP
    Microscaling Formats 1.0; NVIDIA/Megatron-LM at d98e8a64, docs/api-guide/core/
    generalized_tensor_parallel.md section 1.3.
    """
    check.positive(value_bits=value_bits, block=block)
    check.non_negative(scale_bits=scale_bits)
    return (value_bits + scale_bits / block) / 8.0


def micro_batch_bytes(weight_bytes: Real, gradient_bytes: Real) -> Real:
    """Bytes on the wire for each parameter and micro-batch under FSDP: weights before the forward and before
    the backward pass, and the gradient: 2·w + g.

    6 in bf16, 4.0625 in MXFP8, 3.125 in NVFP4, whose gradients stay in bf16 (the table of the same page of
    Megatron-LM). So 4 bits save half of the traffic, not three quarters.
    """
    check.positive(weight_bytes=weight_bytes, gradient_bytes=gradient_bytes)
    return 2.0 * weight_bytes + gradient_bytes


def gain(narrowed_share: Real, faster: Real) -> Real:
    """How many times as fast a step is if ``narrowed_share`` of its time becomes ``faster`` times as fast:
    1 / (1 − q + q/r).

    The same format gains 1.5 or nothing, because q differs. Against MXFP8 on GB200, whose 4-bit peak is twice
    that of 8 bits, NVFP4 makes Llama 3.1 405B 1.49 times as fast (783 to 1,166 tokens/s and GPU): two thirds
    of its time are such products. Nemotron 3 Super, a hybrid with narrow experts that spends its time on
    Mamba, on AllToAlls and on layers that stay in bf16, gains 1.03 times: 6 %. On GB300 the peak is three
    times as high, and 405B gains no more (952 to 1,413): half of its time. NVIDIA-NeMo/Megatron-Bridge,
    docs/performance-summary.md, 26.04 and 26.06, read on 2026-11-28. Leaves out what casts add.
    """
    check.between(0, 1, narrowed_share=narrowed_share)
    check.between(1, float("inf"), faster=faster)
    return 1.0 / (1.0 - narrowed_share + narrowed_share / faster)


def narrowed_share(gain: Real, faster: Real) -> Real:
    """The share of a step's time that became ``faster`` times as fast, from what the step gained: the inverse
    of ``gain``, (1 − 1/gain) / (1 − 1/r)."""
    check.between(1, float("inf"), gain=gain)
    check.positive(faster=faster - 1.0)
    return (1.0 - 1.0 / gain) / (1.0 - 1.0 / faster)
