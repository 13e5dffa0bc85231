"""The time of attention that does not read all that it has seen: the kinds of ``catalog.mixers``.

A roofline of what a kind says it computes and moves. None of these kernels has been measured here, so the
share of softmax attention's rate that they reach is assumed, and whoever asks is told (``extrapolates``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.base import check
from engine.base.types import Real
from engine.calibration.attention import rate_at
from engine.calibration.products import either_s

if TYPE_CHECKING:
    from engine.calibration.attention import Prefill
    from engine.mechanism.matmul import Chip

HEAD_DIM = 128.0  # at whose rate of fused attention the products of these kinds are counted


def token_s(mixer: Any, batch: Real, context: Real, tp: Real, value_bytes: Real, at: Chip) -> Real:
    """One layer's time for one new token of each of ``batch`` sequences of this context."""
    if not check.is_trusted():
        check.positive(batch=batch, tp=tp, value_bytes=value_bytes)
        check.non_negative(context=context)
    if not mixer.kernels:
        return 0.0 * batch
    work = mixer.decoding(context, value_bytes)
    flops = batch * (work.flops / tp + work.repeated_flops)
    moved = batch * (work.moved_bytes / tp + work.repeated_bytes)
    busy_s = either_s(flops / at.latent.flops_per_s, moved / at.decode.memory_bytes_per_s)
    return mixer.kernels * at.decode.launch_s + busy_s


def sequence_s(mixer: Any, sequences: Real, seq: Real, tp: Real, at: Prefill) -> Real:
    """One layer's forward time for whole sequences of new tokens."""
    if not check.is_trusted():
        check.positive(sequences=sequences, seq=seq, tp=tp)
    if not mixer.kernels:
        return 0.0 * sequences
    work = mixer.reading(seq)
    rate = mixer.reached * rate_at(at.flops_per_s, HEAD_DIM)
    flops = sequences * (work.flops / tp + work.repeated_flops)
    moved = sequences * (work.moved_bytes / tp + work.repeated_bytes)
    return mixer.kernels * at.launch_s + either_s(flops / rate, moved / at.memory_bytes_per_s)
