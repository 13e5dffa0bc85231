"""Dense matrix products at full clocks, by rows and by size, in bf16 and in fp8: the GPU's own time.

Operands are random, since zeros draw less power, and there are so many copies of them that none is read from
the L2 cache.
"""

from __future__ import annotations

from itertools import cycle
from math import ceil

import torch

from measure._gpu import Work, burst_s

ROWS = (
    1,
    16,
    64,
    128,
    256,
    512,
    1024,
    2048,
    4096,
    8192,
    16384,
    32768,
)  # of activations, by a layer's weight:
LAYER = (8192, 8192)  # n, k
SIDES = (512, 1024, 2048, 3072, 4096, 6144, 12288, 16384)  # of square products
COLD_BYTES = 256e6  # of operands, several times the L2 cache of an H100


def measure(device: str, quick: bool) -> dict:
    """Seconds per product, each with its sizes."""
    rehearsed = quick and device == "cpu"
    layer, rows, sides = ((64, 64), (16, 32), (64,)) if rehearsed else (LAYER, ROWS, SIDES)
    shapes = [(m, layer[0], layer[1]) for m in rows] + [(side, side, side) for side in sides]
    found = {"bf16": [timed(bf16(*shape, device), shape, device, quick) for shape in shapes]}
    if device == "cuda":
        # the library takes multiples of 16 rows in fp8
        found["fp8"] = [
            timed(fp8(*shape, device), shape, device, quick) for shape in shapes if shape[0] % 16 == 0
        ]
    return found


def timed(product: Work, shape: tuple[int, int, int], device: str, quick: bool) -> dict:
    """One product's shape and its time in a burst."""
    return dict(zip("mnk", shape)) | {"burst_s": burst_s(product, device, quick)}


def copies(operand_bytes: float) -> int:
    """How many copies of an operand it takes so that no cache still holds the one in use."""
    return ceil(COLD_BYTES / operand_bytes) + 1 if operand_bytes < COLD_BYTES else 1


def random(rows: int, columns: int, device: str) -> torch.Tensor:
    """A random matrix in bf16."""
    return torch.randn(rows, columns, device=device, dtype=torch.bfloat16)


def bf16(m: int, n: int, k: int, device: str) -> Work:
    """A product of activations and a weight that lies as nn.Linear keeps it, each call on other copies."""
    some = range(copies(2.0 * (m * k + n * k)) if device == "cuda" else 1)
    pairs = cycle([(random(m, k, device), random(n, k, device)) for _ in some])
    out = torch.empty(m, n, device=device, dtype=torch.bfloat16)

    def product() -> None:
        a, b = next(pairs)
        torch.mm(a, b.t(), out=out)

    return product


def fp8(m: int, n: int, k: int, device: str) -> Work:
    """A product with both operands in E4M3 and one scale each. Casting is not part of it; sums stay in the
    tensor cores."""
    some, one = range(copies(1.0 * (m * k + n * k))), torch.ones((), device=device)

    def narrow(rows: int, columns: int) -> torch.Tensor:
        return random(rows, columns, device).to(torch.float8_e4m3fn)

    pairs = cycle([(narrow(m, k), narrow(n, k)) for _ in some])

    def product() -> None:
        a, b = next(pairs)
        torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)

    return product
