"""Kernels that only move bytes: a copy, a sum, two norms, softmax, Adam, a gradient added in fp32; and copies
to and from the host. The GPU's own time, beside the bytes that must move."""

from __future__ import annotations

from functools import partial

import torch
from torch.nn import functional as F

from measure._gpu import Work, burst_s

SIZES = tuple(2**k for k in range(14, 31, 2))  # bytes of one operand
WIDTH = 4096  # of a row that is normalised
HOST_SIZES = tuple(2**k for k in range(12, 31, 3))


def measure(device: str, quick: bool) -> dict:
    """Seconds and bytes of each kernel, by the bytes of its operand."""
    sizes, host = (SIZES[:2], HOST_SIZES[:1]) if device == "cpu" else (SIZES, HOST_SIZES)
    found = {
        name: [
            {"operand_bytes": size, "moved_bytes": moved, "burst_s": burst_s(work, device, quick)}
            for size in sizes
            for work, moved in [make(size, device)]
        ]
        for name, make in KERNELS.items()
    }
    if device == "cuda":
        found["host"] = [over_the_bus(size, quick) for size in host]
    return found


def random(size: int, device: str, dtype=torch.bfloat16) -> torch.Tensor:
    """A random tensor of ``size`` bytes."""
    return torch.randn(size // dtype.itemsize, device=device, dtype=dtype)


def copy(size: int, device: str) -> tuple[Work, float]:
    """The work of a copy on operands of ``size`` bytes, and the bytes that it reads and writes."""
    a, out = random(size, device), random(size, device)
    return lambda: out.copy_(a), 2.0 * size


def add(size: int, device: str) -> tuple[Work, float]:
    """The work of an addition on operands of ``size`` bytes, and the bytes that it reads and writes."""
    a, b, out = (random(size, device) for _ in range(3))
    return partial(torch.add, a, b, out=out), 3.0 * size


def rms_norm(size: int, device: str) -> tuple[Work, float]:
    """PyTorch's fused norm over rows of a model's width."""
    a = random(max(size, 2 * WIDTH), device).view(-1, WIDTH)
    weight = torch.ones(WIDTH, device=device, dtype=torch.bfloat16)
    return partial(F.rms_norm, a, (WIDTH,), weight), 2.0 * a.nbytes


def layer_norm(size: int, device: str) -> tuple[Work, float]:
    """The work of a layer norm on operands of ``size`` bytes, and the bytes that it reads and writes."""
    a = random(max(size, 2 * WIDTH), device).view(-1, WIDTH)
    weight = torch.ones(WIDTH, device=device, dtype=torch.bfloat16)
    return partial(F.layer_norm, a, (WIDTH,), weight, weight), 2.0 * a.nbytes


def softmax(size: int, device: str) -> tuple[Work, float]:
    """The work of a softmax on operands of ``size`` bytes, and the bytes that it reads and writes."""
    a = random(max(size, 2 * WIDTH), device).view(-1, WIDTH)
    return partial(torch.softmax, a, -1), 2.0 * a.nbytes


def adam(size: int, device: str) -> tuple[Work, float]:
    """torch's fused AdamW on fp32 weights: reads and writes weight and two moments, reads the gradient."""
    weight = random(size, device, torch.float32).requires_grad_()
    weight.grad = torch.randn_like(weight)
    optimizer = torch.optim.AdamW([weight], fused=True)
    optimizer.step()
    return optimizer.step, 7.0 * size


def widened(size: int, device: str) -> tuple[Work, float]:
    """bf16 to fp32, as a gradient is added to its master copy."""
    a = random(size, device)
    out = torch.zeros(a.numel(), device=device, dtype=torch.float32)
    return partial(out.add_, a), 5.0 * size


KERNELS = {each.__name__: each for each in (copy, add, rms_norm, layer_norm, softmax, adam, widened)}


def over_the_bus(size: int, quick: bool) -> dict:
    """Copies to and from pinned memory of the host, and from memory that is not pinned."""
    here = torch.empty(size, device="cuda", dtype=torch.uint8)
    there = torch.empty(size, dtype=torch.uint8).pin_memory()
    pageable = torch.zeros(size, dtype=torch.uint8)
    return {
        "operand_bytes": size,
        "to_device_s": burst_s(lambda: here.copy_(there, non_blocking=True), "cuda", quick),
        "to_host_s": burst_s(lambda: there.copy_(here, non_blocking=True), "cuda", quick),
        "pageable_to_device_s": burst_s(lambda: here.copy_(pageable), "cuda", quick),
    }
