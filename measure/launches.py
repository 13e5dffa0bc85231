"""The cost of an operator in eager PyTorch: the CPU's time to issue one, and the time per operator in a long
sequence.

Square bf16 matrices, added or multiplied in a loop. `issue_s` is measured before the queue fills and without
waiting for the GPU, `op_s` over the whole sequence to its end: the larger of issue and kernel, as in lesson
13. `kernel_s` is the GPU's own time, by events around a sequence that was queued behind a long kernel.
"""

from __future__ import annotations

import time

import torch

SIDES = (16, 64, 256, 512, 1024, 2048, 4096, 8192)
ROW, QUICK_ROW = 400, 4  # operators; a sequence is shorter than CUDA's queue of about 1,000 launches
OPERATORS = {"add": torch.add, "matmul": torch.matmul}


def waited(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def row(operator, a, b, count: int) -> None:
    for _ in range(count):
        operator(a, b)


def timed(operator, a, b, count: int, device: str) -> dict:
    """Seconds per operator: to issue it, and including its kernel."""
    row(operator, a, b, count)  # warm-up: libraries are loaded, kernels chosen
    waited(device)
    began = time.perf_counter()
    row(operator, a, b, count)
    issued = time.perf_counter()
    waited(device)
    return {"issue_s": (issued - began) / count, "op_s": (time.perf_counter() - began) / count}


def kernel_s(operator, a, b, count: int) -> float:
    """The GPU's own time: a long kernel runs first, so that the whole sequence is queued before its first
    kernel starts."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(50_000_000)  # clock cycles, about 30 ms
    before.record()
    row(operator, a, b, count)
    after.record()
    after.synchronize()
    return before.elapsed_time(after) / 1e3 / count


def measure(device: str, quick: bool) -> dict:
    count, found = QUICK_ROW if quick else ROW, {}
    for name, operator in OPERATORS.items():
        found[name] = []
        for side in SIDES[:3] if quick else SIDES:
            a = torch.randn(side, side, device=device, dtype=torch.bfloat16)
            point = {"side": side} | timed(operator, a, a, count, device)
            if device == "cuda":
                point["kernel_s"] = kernel_s(operator, a, a, count)
            found[name].append(point)
    tiny = torch.ones(1, device=device)
    found["smallest_issue_s"] = timed(torch.add, tiny, tiny, count, device)["issue_s"]
    return found
