"""The time to get a block from the cache, and one that cudaMalloc makes and cudaFree gives back."""

from __future__ import annotations

import time
from functools import partial

import torch

SIZES = (2**12, 2**20, 2**25, 2**30)


def seconds(work) -> float:
    """How long some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def median(values: list[float]) -> float:
    """The median of some values."""
    return sorted(values)[len(values) // 2]


def measure(device: str, quick: bool) -> dict:
    """Medians on the CPU's clock; on a CPU there is no cache to empty, so both times are its own
    allocator's."""
    repetitions = 5 if quick else 200
    empty_cache = torch.cuda.empty_cache if device == "cuda" else (lambda: None)
    found = []
    for size in SIZES[:2] if quick else SIZES:
        malloc_s, free_s, cached_s = [], [], []
        allocate = partial(torch.empty, size, dtype=torch.uint8, device=device)
        for _ in range(repetitions):
            empty_cache()
            malloc_s.append(seconds(allocate))
            free_s.append(seconds(empty_cache))
        allocate()
        for _ in range(repetitions):
            cached_s.append(seconds(allocate))
        found.append(
            {
                "size_bytes": size,
                "malloc_s": median(malloc_s),
                "free_s": median(free_s),
                "cached_s": median(cached_s),
            }
        )
    return {"sizes": found}
