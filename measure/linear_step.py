"""The step of record/linear_step.py on a GPU: the CPU's thread with its launches, and the stream with its
kernels.

Microseconds, as the profiler gives them; a fence `trace` shows the result.
"""

from __future__ import annotations

from torch.profiler import ProfilerActivity

from record import linear_step


def measure(device: str, quick: bool) -> dict:
    """The lanes of one step; the rehearsal on a CPU has no stream."""
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    of = f"nn.Linear({linear_step.WIDTH}, {linear_step.WIDTH}) and GELU for {linear_step.ROWS} rows, SGD"
    return {"of": of, "lanes": linear_step.traced(device, activities)}
