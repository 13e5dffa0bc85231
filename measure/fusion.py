"""The gain of fusing: GeLU in eight kernels and in one, attention with its scores written out and in
tiles."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F
from torch.utils.benchmark import Timer

HEADS, HEAD_DIM = 16, 64


def measure(device: str, quick: bool) -> dict:
    """Median seconds per call, by elements and by sequence length; on a GPU in bf16."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    elements = [2**k for k in ((10, 14) if quick else range(12, 29, 2))]
    lengths = [64, 128] if quick else [512, 1024, 2048, 4096, 8192]
    return {
        "gelu": [_gelu(count, device, dtype, quick) for count in elements],
        "attention": [_attention(length, device, dtype, quick) for length in lengths],
    }


def gelu_by_hand(x):
    """Eight kernels: each line a product or a sum of whole tensors."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def standard_attention(q, k, v):
    """Three kernels and a scale, the scores written out between them."""
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v


def _gelu(count: int, device: str, dtype, quick: bool) -> dict:
    x = torch.randn(count, device=device, dtype=dtype)
    return {
        "elements": count,
        "apart_s": _median_s(lambda: gelu_by_hand(x), quick),
        "fused_s": _median_s(lambda: F.gelu(x, approximate="tanh"), quick),
    }


def _attention(length: int, device: str, dtype, quick: bool) -> dict:
    q, k, v = torch.randn(3, 1, HEADS, length, HEAD_DIM, device=device, dtype=dtype)
    return {
        "tokens": length,
        "heads": HEADS,
        "head_dim": HEAD_DIM,
        "standard_s": _median_s(lambda: standard_attention(q, k, v), quick),
        "tiled_s": _median_s(lambda: F.scaled_dot_product_attention(q, k, v), quick),
    }


def _median_s(work, quick: bool) -> float:
    """The median; Timer waits for the GPU to finish."""
    timer = Timer("work()", globals={"work": work})
    return timer.timeit(2).median if quick else timer.blocked_autorange(min_run_time=0.5).median
