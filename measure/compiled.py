"""The cost and gain of torch.compile for one transformer block: cold compile time, and a training step before
and after."""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Attention and a SwiGLU MLP with their norms, as in Llama, written in plain operations."""

    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.RMSNorm(hidden) for _ in range(2)])
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.gate, self.up = (nn.Linear(hidden, 4 * hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(4 * hidden, hidden, bias=False)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        split = self.qkv(self.norms[0](x)).view(batch, tokens, 3, self.heads, hidden // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        inner = self.norms[1](x)
        return x + self.down(F.silu(self.gate(inner)) * self.up(inner))


def measure(device: str, quick: bool) -> dict:
    """For few and for many tokens: seconds to the end of the first compiled step, and per warm step."""
    hidden, heads, lengths = (64, 4, (32,)) if quick else (4096, 32, (128, 8192))
    backend = "aot_eager" if quick else "inductor"  # a rehearsal should not need a compiler on the machine
    found = {}
    for tokens in lengths:
        block = Block(hidden, heads).to(device, torch.bfloat16)
        x = torch.randn(1, tokens, hidden, device=device, dtype=torch.bfloat16, requires_grad=True)
        eager_s = warm_s(block, x, block, quick)
        torch.compiler.reset()
        with torch.compiler.config.patch(force_disable_caches=True):
            compiled = torch.compile(block, backend=backend)
            began = time.perf_counter()
            step(compiled, x, block)
            wait(x)
            compile_s = time.perf_counter() - began
            found[f"tokens_{tokens}"] = {
                "tokens": tokens,
                "gradients": "cleared before each step",
                "compile_s": compile_s,
                "eager_s": eager_s,
                "compiled_s": warm_s(compiled, x, block, quick),
            }
    return found


def step(block, x, owner) -> None:
    """Forward and backward, from a state without gradients: a step that found them would also add into them,
    and that takes about as long as it takes to read the weights."""
    owner.zero_grad(set_to_none=True)
    x.grad = None
    block(x).sum().backward()


def wait(x) -> None:
    """Wait until the device of a tensor has nothing left to do."""
    if x.is_cuda:
        torch.cuda.synchronize()


def warm_s(block, x, owner, quick: bool) -> float:
    """The median of steps after a few that do not count."""
    times = []
    for _ in range(4 if quick else 30):
        wait(x)
        began = time.perf_counter()
        step(block, x, owner)
        wait(x)
        times.append(time.perf_counter() - began)
    kept = sorted(times[len(times) // 3 :])
    return kept[len(kept) // 2]
