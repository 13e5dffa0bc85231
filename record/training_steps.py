"""The allocator requests of a training step: storages made and freed by a real PyTorch, in order, with their
sizes.

The tensors are on the meta device: dispatcher, autograd and optimizer do all they do on a GPU, with shapes
but without memory. Requests of a CUDA kernel beyond its output, such as a workspace of cuBLAS, are therefore
missing.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from record._storages import Storages

RUNS_ON = ("torch",)
WIDTH, HEADS, VOCABULARY, LAYERS, BATCH = 4096, 32, 50257, 6, 4  # six of the 32 layers of GPT-3 6.7B
LENGTHS = (1024, 2048)  # sizes are linear in the length, so two points determine them
SETUP, FIRST, STEADY = range(3)


class Block(nn.Module):
    """A layer of GPT-3."""

    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        heads = self.qkv(self.before(x)).unflatten(-1, (3 * HEADS, -1)).transpose(1, 2)
        # by name, because on the meta device the kernel that stores the score matrix would be chosen
        seen = torch.ops.aten._scaled_dot_product_flash_attention(*heads.chunk(3, 1), 0.0, True)[0]
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    """A small GPT-3."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        scores = self.head(self.norm(self.blocks(self.embedding(tokens))))
        return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def in_bf16(module):
    """The module, with its weights created in bf16: converting them would leave holes of fp32 size."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        return module()
    finally:
        torch.set_default_dtype(usual)


def step(model, optimizer, length: int) -> None:
    """One training step on the meta device."""
    tokens, targets = (torch.empty(BATCH, length, dtype=torch.long, device="meta") for _ in range(2))
    model(tokens, targets).backward()
    optimizer.step()
    optimizer.zero_grad()


def steps(length: int) -> tuple[Storages, list[int]]:
    """The storages of two steps, and the number of events before them, after one and after both."""
    storages, ends = Storages(), []
    with storages:
        with torch.device("meta"):
            model = in_bf16(Decoder)
        # the default on a GPU, where it is chosen automatically
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        ends.append(len(storages.events))
        for _ in range(2):
            step(model, optimizer, length)
            ends.append(len(storages.events))
    storages.events = storages.events[:]  # the model is freed after this, which is not part of a step
    return storages, ends


def record() -> dict:
    """The recording, as its JSON file holds it."""
    (short, ends), (long, same_ends) = map(steps, LENGTHS)
    if short.events != long.events or ends != same_ends:
        raise ValueError("the order of allocations depends on the length")
    per_token = [(b - a) / (LENGTHS[1] - LENGTHS[0]) for a, b in zip(short.bytes, long.bytes)]
    fixed = [a - slope * LENGTHS[0] for a, slope in zip(short.bytes, per_token)]
    return {
        "model": f"{LAYERS} of the 32 layers of GPT-3 6.7B, bf16, AdamW",
        "batch": BATCH,
        "layers": LAYERS,
        "events": {
            "setup": short.events[: ends[0]],
            "first": short.events[ends[0] : ends[1]],
            "steady": short.events[ends[1] : ends[2]],
        },
        "fixed_bytes": [int(b) for b in fixed],
        "bytes_per_length": [int(b) for b in per_token],
    }
