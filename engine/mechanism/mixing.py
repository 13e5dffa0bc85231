"""The time of attention that does not read all that it has seen: the kinds of ``catalog.mixers``.

Linear attention over a whole sequence is a chain of kernels (flash-linear-attention, in Triton), each of
which writes what the next one reads: products at a share of fused attention's rate, and the least traffic
several times, one after the other. Two numbers for all GPUs meet 19 published timings of the gated delta rule
on H100 and B200 and of Kimi's on H20 and H800 to 8 %, 3 % on average (flashinfer pull requests 3866 and 4078,
MoonshotAI/FlashKDA, fla-org/flash-linear-attention 915); seven of them fitted the two. Fused kernels for the
same are two to five times as fast (FlashInfer, FlashKDA), and are not what this asks. Mamba-2's chain,
likewise in Triton, moves 0.85 times what we count, since its chunks are longer (vllm pull request 27299).

One new token, and the other kinds, are a roofline of what a kind says it computes and moves. FlashMLA's
sparse kernel reaches 640 TFLOP/s on an H800 where fused attention has 572 here. Whoever asks for what was
not timed is told (``extrapolates``).
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


def sequence_s(mixer: Any, sequences: Real, seq: Real, tp: Real, kernel: Prefill, at: Chip) -> Real:
    """One layer's forward time for whole sequences of new tokens; ``kernel`` is that of fused attention on
    the chip."""
    if not check.is_trusted():
        check.positive(sequences=sequences, seq=seq, tp=tp)
    if not mixer.kernels:
        return 0.0 * sequences
    work = mixer.reading(seq)
    flops = sequences * (work.flops / tp + work.repeated_flops)
    moved = sequences * (work.moved_bytes / tp + work.repeated_bytes)
    if mixer.passes:
        rate = mixer.reached * rate_at(at.attention.flops_per_s, HEAD_DIM)
        return mixer.starts * at.launch_s + flops / rate + mixer.passes * moved / at.memory_bytes_per_s
    rate = mixer.reached * rate_at(kernel.flops_per_s, HEAD_DIM)
    return mixer.starts * kernel.launch_s + either_s(flops / rate, moved / kernel.memory_bytes_per_s)
