"""Lesson 17's matmul over its tiles, and over rows from one wave of tiles to the next, compared with torch's
own product."""

from __future__ import annotations

import json
import os
import subprocess
import sys

N, K = 4096, 4096
TILES = [
    (128, 256, 64, 3, 8),
    (128, 128, 64, 3, 8),
    (128, 128, 64, 3, 4),
    (128, 64, 64, 4, 4),
    (64, 64, 32, 4, 4),
]
ROWS = [
    1024,
    1152,
    1536,
    2048,
    2176,
    2560,
    3072,
    3200,
    4096,
]  # two around the end of each wave with tiles of 128 × 256


def measure(device: str, quick: bool) -> dict:
    """FLOP/s of each tile at 4,096 rows, and of the first tile and of torch by rows. On the CPU Triton
    interprets the kernel, in a separate process, because it decides that on import."""
    if device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        code = (
            f"import json; from measure.tile_sweep import measure; print(json.dumps(measure('cpu', {quick})))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"TRITON_INTERPRET": "1"},
        )
        return json.loads(done.stdout)
    import torch

    from kernels.matmul import matmul

    names = ("block_m", "block_n", "block_k", "stages", "warps")
    tiles, rows, n, k = ([(32, 32, 32, 2, 4)], [64], 64, 64) if device == "cpu" else (TILES, ROWS, N, K)
    b = torch.randn(k, n, device=device, dtype=torch.float32 if device == "cpu" else torch.bfloat16)

    def rate(m, product) -> float:
        a = torch.randn(m, k, device=device, dtype=b.dtype)
        return 2 * m * n * k / _seconds(lambda: product(a, b), device, quick)

    tiles = [dict(zip(names, tile)) for tile in tiles]
    by_tile = [
        tile | {"flops_per_s": rate(rows[-1], lambda a, b, t=tile: matmul(a, b, **t))} for tile in tiles
    ]
    first = tiles[0]
    by_rows = [
        {
            "rows": m,
            "flops_per_s": rate(m, lambda a, b: matmul(a, b, **first)),
            "torch_flops_per_s": rate(m, torch.mm),
        }
        for m in rows
    ]
    return {"n": n, "k": k, "by_tile": by_tile, "by_rows": by_rows}


def _seconds(run, device: str, quick: bool) -> float:
    """The median of several runs, after some warm-up runs."""
    from triton.testing import do_bench

    if device == "cpu":
        import time

        began = time.perf_counter()
        run()
        return time.perf_counter() - began
    return do_bench(run, warmup=5 if quick else 50, rep=20 if quick else 300, return_mode="median") / 1e3
