"""The rate of work that is repeated for seconds, until the GPU reaches its power limit, with clock, power and
temperature; and the rate of the first moments, at full clocks."""

from __future__ import annotations

import time
from functools import partial

import torch
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from measure._gpu import Work, burst_s, health, limits, row_s, wait
from measure.attention import LIBRARIES, both
from measure.compiled import Block, step
from measure.products import bf16, fp8

SIDE = 8192
SECONDS, ROW_S = 8.0, 0.2  # of each work, and of a row between two looks at the clock
REST_S = 4.0  # between two works


def measure(device: str, quick: bool) -> dict:
    """For each work its FLOPs or bytes a call, the burst, and rows over time."""
    side, seconds = (64, 0.05) if device == "cpu" else (SIDE, 1.0 if quick else SECONDS)
    flops = 2.0 * side**3
    works = {"bf16": (bf16(side, side, side, device), {"flops": flops})}
    if device == "cuda":
        works |= {
            "bf16_zeros": (of_zeros(side, device), {"flops": flops}),
            "fp8": (fp8(side, side, side, device), {"flops": flops}),
        }
    works["copy"] = (copying(side, device), {"bytes": 4.0 * side**2})
    works |= attentions(side, device)
    works["block"] = (training(side, device), {"flops": block_flops(side, device)})
    held_to = limits() if device == "cuda" else {}
    return {
        "limits": held_to,
        "works": {name: of | over_time(work, device, seconds) for name, (work, of) in works.items()},
    }


def over_time(work: Work, device: str, seconds: float) -> dict:
    """The burst after a rest, then rows for so many seconds without one."""
    time.sleep(REST_S if device == "cuda" else 0.0)
    burst = burst_s(work, device)
    count = max(1, int(ROW_S / burst)) if device == "cuda" else 3
    rows, began = [], time.perf_counter()
    while not rows or time.perf_counter() - began < seconds:
        rows.append({"at_s": time.perf_counter() - began} | row(work, count, device))
    return {"burst_s": burst, "rows": rows}


def row(work: Work, count: int, device: str) -> dict:
    """One row, and the state of the GPU in its middle."""
    if device != "cuda":
        return {"call_s": row_s(work, count, device)}
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    for _ in range(count):
        work()
    after.record()
    seen = health(device)
    wait(device)
    return {"call_s": before.elapsed_time(after) / 1e3 / count} | seen


def of_zeros(side: int, device: str) -> Work:
    """The work of a product of zeros, which takes less power."""
    a = torch.zeros(side, side, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(a)
    return lambda: torch.mm(a, a.t(), out=out)


def copying(side: int, device: str) -> Work:
    """A copy within the GPU's memory: each byte is read and written."""
    a = torch.ones(side, side, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(a)
    return lambda: out.copy_(a)


def attentions(tokens: int, device: str) -> dict[str, tuple[Work, dict[str, float]]]:
    """Causal attention by each library that PyTorch can call, forward alone and with its backward pass."""
    heads, width = (HEADS, WIDTH) if device == "cuda" else (4, 64)
    q, k, v = (
        torch.randn(1, heads, tokens, width // heads, device=device, dtype=torch.bfloat16, requires_grad=True)
        for _ in range(3)
    )
    plain = partial(scaled_dot_product_attention, q, k, v, is_causal=True)
    forward_flops = 4.0 * width * tokens * (tokens + 1) / 2
    found: dict[str, tuple[Work, dict[str, float]]] = {}
    for name in LIBRARIES if device == "cuda" else ["flash"]:
        called = partial(by, name, plain)
        found[f"attention_{name}"] = (partial(without_gradients, called), {"flops": forward_flops})
        found[f"attention_{name}_both"] = (both(called, q, k, v), {"flops": 3.0 * forward_flops})
    return found


def by(library: str, work: Work) -> torch.Tensor:
    """Attention by the kernels of one library."""
    with sdpa_kernel(LIBRARIES[library]):
        return work()


def without_gradients(work: Work) -> None:
    """Do some work without keeping anything for a backward pass."""
    with torch.no_grad():
        work()


def training(tokens: int, device: str) -> Work:
    """Forward and backward of a block of Llama's width, uncompiled."""
    block, x = block_and_input(tokens, device)
    return lambda: step(block, x, block)


WIDTH, HEADS = 4096, 32


def block_and_input(tokens: int, device: str) -> tuple[Block, torch.Tensor]:
    """A transformer block and an input for it; a small one on a CPU."""
    width, heads = (WIDTH, HEADS) if device == "cuda" else (64, 4)
    block = Block(width, heads).to(device, torch.bfloat16)
    return block, torch.randn(1, tokens, width, device=device, dtype=torch.bfloat16, requires_grad=True)


def block_flops(tokens: int, device: str) -> float:
    """FLOPs of forward and backward: six for each weight and token, plus those of causal attention, of which
    the backward pass has twice as many as the forward pass."""
    width = WIDTH if device == "cuda" else 64
    weights = 16.0 * width**2  # four of attention, three of four times the width
    return 6.0 * tokens * weights + 3.0 * 4.0 * width * tokens * (tokens + 1) / 2
