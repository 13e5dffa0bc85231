"""Shared by the subjects: waiting for a device, the GPU's own time of a row of calls, its clock and its
power."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

Work = Callable[[], Any]
CYCLES_PER_S = 2.0e9  # of the multiprocessors, at most: what a waiting kernel counts


def wait(device: str) -> None:
    """Wait until everything that was launched has run."""
    if device == "cuda":
        torch.cuda.synchronize()


def row_s(work: Work, count: int, device: str) -> float:
    """Seconds a call of a row of calls that are queued before the first one starts, behind a kernel that only
    waits: the GPU's own time. On the CPU it is the CPU's."""
    wait(device)
    began = time.perf_counter()
    if device != "cuda":
        for _ in range(count):
            work()
        return (time.perf_counter() - began) / count
    work()
    issue_s = time.perf_counter() - began
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(int((1e-4 + 1.5 * issue_s * count) * CYCLES_PER_S))
    before.record()
    for _ in range(count):
        work()
    after.record()
    after.synchronize()
    return before.elapsed_time(after) / 1e3 / count


def burst_s(work: Work, device: str, quick: bool = False) -> float:
    """Seconds a call at full clocks: the median of short rows, with a rest before each in which the GPU
    cools."""
    row_s(work, 1, device)  # libraries are loaded, kernels chosen
    count = max(1, min(200, int(0.01 / max(row_s(work, 1, device), 1e-7))))
    times = []
    for _ in range(1 if quick else 5):
        time.sleep(0.0 if quick else 0.1)
        times.append(row_s(work, count, device))
    return sorted(times)[len(times) // 2]


def health(device: str) -> dict[str, float]:
    """Clock of the multiprocessors, power and temperature at this moment; nothing on a CPU."""
    if device != "cuda":
        return {}
    return {
        "sm_hz": torch.cuda.clock_rate() * 1e6,
        "power_w": torch.cuda.power_draw() / 1e3,
        "celsius": float(torch.cuda.temperature()),
    }


def apart(module: str, call: str, **environment: str) -> Any:
    """The result of a module's function, run in a separate process in which no library has allocated memory
    yet."""
    code = f"import json, {module} as at; print(json.dumps(at.{call}))"
    settings = os.environ | environment
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=settings
    )
    return json.loads(done.stdout.splitlines()[-1])


def limits() -> dict[str, float | str]:
    """The driver's limits for the board, in watts and in clock rate, and the driver's version."""
    asked = "power.limit,clocks.max.sm,driver_version"
    said = subprocess.run(
        ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    power, clock, driver = said.stdout.splitlines()[0].split(", ")
    return {"power_limit_w": float(power), "sm_hz_max": float(clock) * 1e6, "driver": driver}
