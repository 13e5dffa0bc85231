"""The number of operators that one layer of a Llama-like model runs when it is written in PyTorch without any
fusion.

Counted below autograd by a TorchDispatchMode: everything that reaches a backend, forward, backward and in
AdamW's second update of the layer's weights, when its moments exist. Operators that only make a view start no
kernel and are counted separately; so are those on single numbers, AdamW's step counts, which stay on the CPU.
Norms and rotary positions are those of Hugging Face's modeling_llama.py: rotate_half takes five kernels for
queries and five for keys.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

RUNS_ON = ("torch",)
HIDDEN, HEADS, KV_HEADS, FFN, TOKENS = 64, 4, 2, 128, 16
NO_KERNEL = {
    "detach",
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "lift_fresh",
    "_local_scalar_dense",
    "_unsafe_view",
    "alias",
}


class Counting(TorchDispatchMode):
    """Counts operators, separately for those that start a kernel and those that do not."""

    def __init__(self):
        super().__init__()
        self.kernels, self.views, self.single = 0, 0, 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        if tensors and all(tensor.dim() == 0 for tensor in tensors):
            self.single += 1
        elif operator.is_view or operator._schema.name.removeprefix("aten::") in NO_KERNEL:
            self.views += 1
        elif operator.namespace == "aten":
            self.kernels += 1
        return operator(*args, **(kwargs or {}))


class Norm(torch.nn.Module):
    """RMSNorm, written out in fp32."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


def turned(x, cos, sin):
    """Rotary positions."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Layer(torch.nn.Module):
    """One layer of Llama."""

    def __init__(self):
        super().__init__()
        size = HIDDEN // HEADS
        self.norms = torch.nn.ModuleList(Norm() for _ in range(2))
        widths = {
            "q": HEADS * size,
            "k": KV_HEADS * size,
            "v": KV_HEADS * size,
            "o": HIDDEN,
            "gate": FFN,
            "up": FFN,
        }
        self.weights = torch.nn.ModuleDict(
            {name: torch.nn.Linear(HIDDEN, width, bias=False) for name, width in widths.items()}
        )
        self.down = torch.nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        normed = self.norms[0](x)
        q, k, v = (
            self.weights[name](normed).view(1, TOKENS, -1, HIDDEN // HEADS).transpose(1, 2) for name in "qkv"
        )
        mixed = F.scaled_dot_product_attention(
            turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True, enable_gqa=True
        )
        x = x + self.weights["o"](mixed.transpose(1, 2).reshape(1, TOKENS, HIDDEN))
        normed = self.norms[1](x)
        return x + self.down(F.silu(self.weights["gate"](normed)) * self.weights["up"](normed))


def counted(run) -> tuple[dict, object]:
    """The kernels and views of a run, counted, and the run's result."""
    with Counting() as seen:
        result = run()
    return {"kernels": seen.kernels, "views": seen.views, "on single numbers": seen.single}, result


def record() -> dict:
    """The recording, as its JSON file holds it."""
    layer = Layer().to(torch.bfloat16)
    x = torch.randn(1, TOKENS, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    cos, sin = torch.ones(2, TOKENS, HIDDEN // HEADS, dtype=torch.bfloat16)
    with torch.no_grad():
        inference, _ = counted(lambda: layer(x, cos, sin))
    forward, y = counted(lambda: layer(x, cos, sin))
    backward, _ = counted(lambda: y.backward(torch.ones_like(y)))
    optimizer = torch.optim.AdamW(layer.parameters(), foreach=False, fused=False)
    optimizer.step()
    update, _ = counted(optimizer.step)
    return {
        "inference": inference,
        "forward": forward,
        "backward": backward,
        "update": update,
        "parameters": len(list(layer.parameters())),
    }
