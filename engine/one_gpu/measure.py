"""The roofline of the machine this runs on: the fastest matrix product and the fastest copy that numpy
reaches.

Bounded in time and memory, and run at low priority by ``python -m engine.one_gpu.measure``, which prints one
line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.base import check

MATMUL_WIDTH = 1024  # fp32: three matrices of 4 MB
COPY_BYTES = 128 * 2**20  # far more than any cache holds
LONGEST_S = 20.0


@dataclass(frozen=True)
class MeasuredCpu:
    """The rates that numpy reached here: FLOP/s of an fp32 matrix product, bytes/s (read and written) of a
    copy."""

    flops_per_s: float
    bytes_per_s: float
    cores: int


def best_s(work: Callable[[], Any], seconds: float) -> float:
    """The fastest run out of as many as fit into this time, after one warm-up."""
    check.positive(seconds=seconds)
    work()
    fastest, stop = float("inf"), time.perf_counter() + seconds
    while True:
        began = time.perf_counter()
        work()
        ended = time.perf_counter()
        fastest = min(fastest, ended - began)
        if ended >= stop:
            return fastest


def matmul_flops_per_s(width: int = MATMUL_WIDTH, seconds: float = 1.2) -> float:
    """2·n³ FLOPs of an fp32 product over its best time, on as many threads as numpy's BLAS uses."""
    check.whole(width=width)
    a, b = np.random.default_rng(0).standard_normal((2, width, width), dtype=np.float32)
    out = np.empty_like(a)
    return 2 * width**3 / best_s(lambda: np.matmul(a, b, out=out), seconds)


def copy_bytes_per_s(size_bytes: int = COPY_BYTES, seconds: float = 1.2, threads: int = 1) -> float:
    """Bytes read and written by a copy over its best time, split between threads.

    Leaves out that most CPUs fetch a cache line before they write to it, so the bus may have carried half as
    much again.
    """
    check.whole(size_bytes=size_bytes, threads=threads)
    source, target = (
        np.ones(size_bytes, np.uint8),
        np.empty(size_bytes, np.uint8),
    )  # zeros would all be one page
    pieces = list(zip(np.array_split(target, threads), np.array_split(source, threads)))
    with ThreadPoolExecutor(threads) as pool:  # numpy releases the interpreter lock while it copies
        fastest = best_s(lambda: list(pool.map(lambda piece: np.copyto(*piece), pieces)), seconds)
    return 2 * size_bytes / fastest


def machine() -> MeasuredCpu:
    """Measure here and now, in about three seconds and 300 MB."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return MeasuredCpu(matmul_flops_per_s(), copy_bytes_per_s(threads=min(cores, 8)), cores)


def machine_apart(longest_s: float = LONGEST_S) -> MeasuredCpu:
    """``machine``, measured in a separate process, so that a server stays responsive. The process is ended if
    it takes too long.

    RuntimeError if the machine could not be measured in that time.
    """
    check.positive(longest_s=longest_s)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "engine.one_gpu.measure"],
            cwd=Path(__file__).resolve().parents[__name__.count(".")],
            timeout=longest_s,
            capture_output=True,
            check=True,
        )
        return MeasuredCpu(**json.loads(done.stdout))
    except (subprocess.SubprocessError, ValueError) as error:
        raise RuntimeError(f"this machine could not be measured within {longest_s:g} s") from error


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(5)
    print(json.dumps(asdict(machine())))
