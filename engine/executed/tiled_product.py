"""A matrix product executed tile by tile, with the values counted that its tiles read."""

from __future__ import annotations

import numpy as np

from engine.base import check
from engine.executed.flash_attention import Hbm, tiles


def product(a: np.ndarray, b: np.ndarray, block_m: int, block_n: int, block_k: int) -> tuple[np.ndarray, int]:
    """a·b, where each tile of the result adds up its row of blocks of ``a`` times its column of blocks of
    ``b``, as one program of kernels/matmul.py does. Returns the result and the number of values read; values
    that a mask switches off are not read."""
    check.whole(block_m=block_m, block_n=block_n, block_k=block_k)
    memory, result = Hbm(a=a, b=b), np.zeros((len(a), b.shape[1]))
    for rows in tiles(len(a), block_m):
        for columns in tiles(b.shape[1], block_n):
            for inner in tiles(len(b), block_k):
                left, right = memory.read("a", (rows, inner)), memory.read("b", (inner, columns))
                result[rows, columns] += left @ right
    return result, memory.values_moved
