"""The cost of an operator in eager PyTorch: the CPU's time to issue one, and the time per operator in a long
sequence.

Square bf16 matrices, added or multiplied in a loop. `issue_s` is measured before the queue fills and without
waiting for the GPU, `op_s` over the whole sequence to its end: the larger of issue and kernel, as in lesson
13. `kernel_s` is the GPU's own time of a queued sequence.
"""

from __future__ import annotations

import time
from functools import partial

import torch

from measure._gpu import row_s, wait

SIDES = (16, 64, 256, 512, 1024, 2048, 4096, 8192)
ROW, QUICK_ROW = 400, 4  # operators; a sequence is shorter than CUDA's queue of about 1,000 launches
OPERATORS = {"add": torch.add, "matmul": torch.matmul}


def row(operator, a, b, count: int) -> None:
    """Run an operator ``count`` times in a row."""
    for _ in range(count):
        operator(a, b)


def timed(operator, a, b, count: int, device: str) -> dict:
    """Seconds per operator: to issue it, and including its kernel."""
    row(operator, a, b, count)  # warm-up: libraries are loaded, kernels chosen
    wait(device)
    began = time.perf_counter()
    row(operator, a, b, count)
    issued = time.perf_counter()
    wait(device)
    return {"issue_s": (issued - began) / count, "op_s": (time.perf_counter() - began) / count}


def measure(device: str, quick: bool) -> dict:
    """Seconds of each operator in a row, by the side of its matrices."""
    count, found = QUICK_ROW if quick else ROW, {}
    for name, operator in OPERATORS.items():
        found[name] = []
        for side in SIDES[:3] if quick else SIDES:
            a = torch.randn(side, side, device=device, dtype=torch.bfloat16)
            point = {"side": side} | timed(operator, a, a, count, device)
            if device == "cuda":
                point["kernel_s"] = row_s(partial(operator, a, a), count, device)
            found[name].append(point)
    tiny = torch.ones(1, device=device)
    found["smallest_issue_s"] = timed(torch.add, tiny, tiny, count, device)["issue_s"]
    return found
