"""One small linear layer forward, backward and updated, as torch.profiler sees it: every operator that the
dispatcher called, and every node that autograd ran.

The matrices are small, so that the overhead around a kernel is visible next to it.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.profiler import ProfilerActivity

from record import _profiler

RUNS_ON = ("torch",)
TIMED = True
WIDTH, ROWS, WARM_UP = 256, 64, 20


def traced(device: str, activities: list[ProfilerActivity]) -> list[dict]:
    """The lanes of one step on a device, after some warm-up steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(ROWS, WIDTH, device=device)

    def step() -> None:
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(WARM_UP):
        step()
    return _profiler.fastest(step, activities)


def record() -> dict:
    """The recording, as its JSON file holds it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        lanes = traced("cpu", [ProfilerActivity.CPU])
    finally:
        torch.set_num_threads(before)
    job = f"nn.Linear({WIDTH}, {WIDTH}) and GELU for {ROWS} rows, SGD"
    return {"of": f"a CPU, {job}, the shortest of {_profiler.STEPS} steps", "lanes": lanes}
