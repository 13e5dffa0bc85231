"""The tensors that a transformer block saves for its backward pass, by
torch.autograd.graph.saved_tensors_hooks.

The block is that of Korthikanti et al. (arXiv:2205.05198, figure 2): GPT with dropout, in bf16, sequence
first, once with attention written out and once with scaled_dot_product_attention. Dropout is
torch.native_dropout, which saves a one-byte mask like the CUDA kernel (F.dropout on the CPU would save a
two-byte one). Weights are left out, as in the paper; each storage is counted once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from record.dispatch import written

RUNS_ON = ("torch",)
SIZES = [{"s": 6, "b": 5, "a": 7, "d": 11}, {"s": 9, "b": 4, "a": 5, "d": 13}]
DROP = 0.1
STATISTICS = {
    "s": "a norm's mean or deviation",
    "ab": "logarithm of the softmax's sum",
}  # they have no name of their own


class Block(torch.nn.Module):
    """`written_out` is the version that the paper counts; otherwise attention is one fused call."""

    def __init__(self, hidden: int, heads: int, written_out: bool):
        super().__init__()
        self.heads, self.written_out, self.names = heads, written_out, {}
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

    def named(self, name, tensor):
        self.names[tensor.untyped_storage().data_ptr()] = name
        return tensor

    def dropped(self, name, tensor):
        dropped, mask = torch.native_dropout(tensor, DROP, True)
        self.named(f"{name}: dropout mask", mask)
        return dropped

    def attention(self, q, k, v):
        if not self.written_out:
            return F.scaled_dot_product_attention(q[None], k[None], v[None])[
                0
            ]  # the fused kernel needs four dimensions
        scores = torch.softmax(q @ k.transpose(-2, -1) * (self.heads**-0.5), -1)
        dropped = self.named("softmax, after dropout", self.dropped("softmax", self.named("softmax", scores)))
        return dropped @ v

    def forward(self, x):
        s, b, h = x.shape
        qkv = self.named(
            "queries, keys and values", self.qkv(self.named("first norm's output", self.norm_1(x)))
        )
        q, k, v = qkv.view(s, b * self.heads, -1).transpose(0, 1).chunk(3, -1)
        mixed = self.attention(q, k, v).transpose(0, 1).reshape(s, b, h)
        x = x + self.dropped("attention", self.out(self.named("output projection's input", mixed)))
        x = self.named("second norm's input", x)
        up = self.named("GELU's input", self.up(self.named("second norm's output", self.norm_2(x))))
        return x + self.dropped("MLP", self.down(self.named("GELU's output", F.gelu(up))))


def kept(written_out: bool, sizes: dict) -> list[dict]:
    """The tensors that the block saves, in order."""
    hidden = sizes["a"] * sizes["d"]
    letters = sizes | {
        "h": hidden,
        "3h": 3 * hidden,
        "4h": 4 * hidden,
        "ab": sizes["a"] * sizes["b"],
        "sb": sizes["s"] * sizes["b"],
    }
    block = Block(hidden, sizes["a"], written_out).to(torch.bfloat16)
    x = block.named("first norm's input", torch.randn(sizes["s"], sizes["b"], hidden, dtype=torch.bfloat16))
    weights = {parameter.untyped_storage().data_ptr() for parameter in block.parameters()}
    found, alive = {}, []

    def keep(tensor):
        alive.append(tensor)
        place = tensor.untyped_storage().data_ptr()
        if place not in weights and tensor.dim() and place not in found:
            found[place] = written(whole(tensor), letters)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        alive.append(block(x.requires_grad_()))
    return [
        {"name": block.names.get(place) or STATISTICS[each["shape"][0]], **each}
        for place, each in found.items()
    ]


def whole(tensor):
    """The tensor that a view belongs to."""
    return tensor if tensor._base is None else tensor._base


def record() -> dict:
    """The recording, as its JSON file holds it."""
    found = {}
    for name, written_out in (("written out", True), ("fused", False)):
        small, large = (kept(written_out, sizes) for sizes in SIZES)
        if small != large:
            raise AssertionError(
                f"{name}: what is kept depends on the sizes in a way that letters do not say"
            )
        found[name] = small
    return {"kept": found}
