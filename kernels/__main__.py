"""python -m kernels: runs each kernel on small ragged inputs and prints, as JSON, how far each is from numpy."""

import json
import math

import numpy as np
import torch

from kernels.attention import attention
from kernels.matmul import matmul
from kernels.persistent import matmul as persistent
from kernels.softmax import Softmax, softmax
from kernels.vector_add import add

TILES = {"block_m": 32, "block_n": 16, "block_k": 16}
gelu = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))


def normalised(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def differences() -> dict[str, float]:
    """Kernel -> the largest difference to numpy's result in double precision; all sizes miss the blocks' on purpose."""
    random = np.random.default_rng(17)

    def values(*shape):
        return random.standard_normal(shape).astype(np.float32)

    def off(found, expected):
        return float(np.abs(found.numpy() - expected).max())

    x, y, rows, bias = values(1000), values(1000), values(5, 100), values(37)
    a, b, (q, k, v) = values(70, 45), values(45, 37), (values(70, 16) for _ in range(3))
    tensor, product = torch.from_numpy, a.astype(np.float64) @ b
    found = {"add": off(add(tensor(x), tensor(y), block=256), x + y),
             "softmax": off(softmax(tensor(rows)), normalised(rows)),
             "linear_gelu": off(matmul(tensor(a), tensor(b), tensor(bias), **TILES), gelu(product + bias)),
             "attention": off(attention(tensor(q), tensor(k), tensor(v), 32, 16), normalised(q @ k.T / 4) @ v)}
    x, dy = tensor(rows).requires_grad_(), values(5, 100)
    Softmax.apply(x).backward(tensor(dy))
    y = normalised(rows)
    found["softmax's gradient"] = off(x.grad, y * (dy - (y * dy).sum(axis=1, keepdims=True)))
    left, right = values(70, 44), values(44, 36)  # rows of whole sixteen bytes
    found["persistent"] = off(persistent(tensor(left), tensor(right), programs=3, **TILES), left.astype(np.float64) @ right)
    for group in (1, 2, 3):
        found[f"matmul, groups of {group}"] = off(matmul(tensor(a), tensor(b), group=group, **TILES), product)
    return found


if __name__ == "__main__":
    print(json.dumps(differences(), indent=1))
