"""Fused causal attention of PyTorch, forward and backward, by length, with each library that it can call: the
GPU's own time."""

from __future__ import annotations

from functools import partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from measure._gpu import Work, burst_s

HEADS, HEAD_DIM, TOKENS = 32, 128, 16384  # tokens of all sequences together
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
LIBRARIES = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def measure(device: str, quick: bool) -> dict:
    """Seconds of a call over all sequences; backward is the difference of both and forward."""
    rehearsed = device == "cpu"
    lengths, heads, total = ((32,), 2, 64) if rehearsed else (LENGTHS, HEADS, TOKENS)
    found: dict = {"heads": heads, "head_dim": HEAD_DIM}
    for name, library in LIBRARIES.items():
        if rehearsed and name != "flash":
            continue
        with sdpa_kernel(library):
            found[name] = [point(total // length, heads, length, device, quick) for length in lengths]
    return found


def point(batch: int, heads: int, length: int, device: str, quick: bool) -> dict:
    """Seconds of attention at one size, forward and backward."""
    q, k, v = (
        torch.randn(batch, heads, length, HEAD_DIM, device=device, dtype=torch.bfloat16, requires_grad=True)
        for _ in range(3)
    )
    forward = partial(scaled_dot_product_attention, q, k, v, is_causal=True)
    with torch.no_grad():
        forward_s = burst_s(forward, device, quick)
    return {
        "batch": batch,
        "tokens": length,
        "forward_s": forward_s,
        "both_s": burst_s(both(forward, q, k, v), device, quick),
    }


def both(forward: Work, *inputs: torch.Tensor) -> Work:
    """The work of a forward and a backward pass."""
    gradient = torch.randn_like(forward())

    def work() -> None:
        torch.autograd.grad(forward(), inputs, gradient)

    return work
