"""The bytes that PyTorch's operators between the matrix products read and write in one layer of a Llama, when
nothing is fused.

Counted below autograd by a TorchDispatchMode: the tensors that an operator takes and returns, once each. A
tensor that repeats a value along a dimension counts once. Left out are views, the products and the attention
itself; what attention is handed in copies is counted. Norms, rotation and repeated keys are written as in
torchtitan's model of 2024; the same layer with PyTorch's LayerNorm stands beside it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

RUNS_ON = ("torch",)
TOKENS, HEADS, KV_HEADS, HEAD_DIM, FFN = 32, 32, 8, 32, 3584
HIDDEN = HEADS * HEAD_DIM
PRODUCTS = ("mm", "addmm", "bmm")
MOVES_NOTHING = ("_unsafe_view", "detach", "alias", "empty", "empty_like", "new_empty", "empty_strided")


class Moved(TorchDispatchMode):
    """Adds up the bytes of what each operator takes and returns."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        found = operator(*args, **(kwargs or {}))
        name = operator._schema.name.removeprefix("aten::")
        if not operator.is_view and name not in PRODUCTS + MOVES_NOTHING:
            leaves = tree_leaves((args, kwargs, found))
            self.total += sum(stored(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor))
        return found


def stored(tensor: torch.Tensor) -> int:
    """Bytes of the values that a tensor really has."""
    sizes = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return math.prod(sizes) * tensor.element_size()


class Attention(torch.autograd.Function):
    """A fused kernel's place: it takes and gives what one does, and its own traffic is not counted."""

    @staticmethod
    def forward(context, queries, keys, values):
        context.save_for_backward(queries, keys, values)
        return torch.empty_like(queries)

    @staticmethod
    def backward(context, gradient):
        return tuple(torch.empty_like(each) for each in context.saved_tensors)


def rms_norm(x, weight):
    """An RMS norm, as Llama's code computes it."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * weight


def layer_norm(x, weight):
    """PyTorch's own layer norm."""
    return F.layer_norm(x, (HIDDEN,), weight)


def turned(x, turns):
    """Queries or keys, rotated by their positions."""
    pairs = torch.view_as_complex(x.float().reshape(TOKENS, -1, HEAD_DIM // 2, 2))
    return torch.view_as_real(pairs * turns).flatten(2).type_as(x)


def repeated(x):
    """Keys or values, repeated for each query head that shares them."""
    group = HEADS // KV_HEADS
    return x[:, :, None, :].expand(TOKENS, KV_HEADS, group, HEAD_DIM).reshape(TOKENS, HEADS, HEAD_DIM)


def layer(x, weights, turns, norm):
    """One layer of Llama."""
    normed = norm(x, weights["first"])
    q, k, v = ((normed @ weights[name]).view(TOKENS, -1, HEAD_DIM) for name in "qkv")
    mixed = Attention.apply(turned(q, turns), repeated(turned(k, turns)), repeated(v))
    x = x + mixed.view(TOKENS, HIDDEN) @ weights["o"]
    normed = norm(x, weights["second"])
    return x + (F.silu(normed @ weights["gate"]) * (normed @ weights["up"])) @ weights["down"]


def counted(norm) -> dict:
    """Bytes per token, forward and backward."""

    def weight(*shape):
        return torch.ones(shape, dtype=torch.bfloat16, requires_grad=True)

    keys = KV_HEADS * HEAD_DIM
    weights = {"first": weight(HIDDEN), "second": weight(HIDDEN), "down": weight(FFN, HIDDEN)}
    widths = {"q": HIDDEN, "k": keys, "v": keys, "o": HIDDEN, "gate": FFN, "up": FFN}
    weights |= {name: weight(HIDDEN, width) for name, width in widths.items()}
    turns = torch.ones(TOKENS, 1, HEAD_DIM // 2, dtype=torch.complex64)
    x = weight(TOKENS, HIDDEN)
    with Moved() as forward:
        y = layer(x, weights, turns, norm)
    with Moved() as backward:
        y.backward(torch.ones_like(y))
    return {"forward": forward.total / TOKENS, "backward": backward.total / TOKENS}


def record() -> dict:
    """The recording, as its JSON file holds it."""
    return {
        "hidden": HIDDEN,
        "heads": HEADS,
        "kv_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "ffn": FFN,
        "rms_norm": counted(rms_norm),
        "layer_norm": counted(layer_norm),
    }
