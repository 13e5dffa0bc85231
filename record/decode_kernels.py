"""The number of kernels in one decode step of a Llama: its PyTorch calls as written, and as fused by
Inductor.

The decoder below has Llama's layer structure (arXiv:2407.21783) with tiny sizes, which change the duration of
a kernel but not the number of kernels. In eager mode, every ATen operator that is not a view counts as one
kernel. Compiled, the calls in Inductor's generated code are counted. Inductor decides on fusion before it
generates code for a device; here that is its CPU backend, so a GPU may have a kernel more or fewer per layer.
"""

from __future__ import annotations

import re
import warnings
from unittest import mock

import torch
from torch import _inductor as inductor
from torch import nn
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.utils import run_and_get_code
from torch.utils._python_dispatch import TorchDispatchMode

RUNS_ON = ("torch",)
BATCH, CONTEXT, HIDDEN, HEADS, KV_HEADS, FFN, VOCAB = 4, 32, 64, 8, 2, 160, 96
HEAD = HIDDEN // HEADS
PRODUCTS = 7  # per layer: query, key, value, output, gate, up, down
LAYERS = 3
NO_WORK = {"_unsafe_view"}  # a view, though its schema does not say so
ADDED_BY_INDUCTOR = re.compile(r"^(cpp_|extern_kernels\.|torch\.ops\.aten\._?)|_\d+$")
COMPILED_CALL = re.compile(
    r"^ {8}(?:\w+ = )?(cpp_fused_\w+|extern_kernels\.\w+|torch\.ops\.aten\.\w+)", re.MULTILINE
)


class Norm(nn.Module):
    """An RMS norm, as Llama's code computes it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


def rotated(x, cos, sin):
    """Queries or keys, rotated by their positions."""
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Layer(nn.Module):
    """A layer of Llama that decodes one token over a cache of fixed size."""

    def __init__(self):
        super().__init__()
        self.before, self.between = Norm(), Norm()
        self.query, self.output = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(HIDDEN, FFN, bias=False) for _ in range(2))
        self.down = nn.Linear(FFN, HIDDEN, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(BATCH, KV_HEADS, CONTEXT, HEAD))

    def forward(self, x, place, cos, sin, mask):
        h = self.before(x)
        q, k, v = (
            product(h).view(BATCH, 1, -1, HEAD).transpose(1, 2)
            for product in (self.query, self.key, self.value)
        )
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        seen = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, mask, enable_gqa=True)
        x = x + self.output(seen.transpose(1, 2).reshape(BATCH, 1, HIDDEN))
        h = self.between(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """One decode step: the last token of each sequence in, the next one out."""

    def __init__(self, layers):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = Norm(), nn.Linear(HIDDEN, VOCAB, bias=False)
        self.register_buffer("angles", torch.outer(torch.arange(CONTEXT), torch.rand(HEAD)))

    def forward(self, token, place):
        x = self.embedding(token)
        angles = self.angles.index_select(0, place)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        mask = x.new_zeros(1, CONTEXT).masked_fill(torch.arange(CONTEXT) > place, -torch.inf)
        for layer in self.layers:
            x = layer(x, place, cos, sin, mask)
        return self.head(self.norm(x)).argmax(-1)


class Kernels(TorchDispatchMode):
    """The name of each operator that does work, in order."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if not function.is_view and name not in NO_WORK:
            self.names.append(name.lstrip("_"))
        return function(*args, **(kwargs or {}))


def step(layers):
    """A model with this many layers, and the arguments of one decode step."""
    torch.manual_seed(0)
    model = Decoder(layers).to(torch.bfloat16).eval()
    return model, (torch.zeros(BATCH, 1, dtype=torch.long), torch.tensor([5]))


def eager(layers) -> list[str]:
    """The kernels of an eager step, in order."""
    model, inputs = step(layers)
    with torch.no_grad(), Kernels() as kernels:
        model(*inputs)
    return kernels.names


def compiled(layers) -> list[str]:
    """The calls in Inductor's code. The C++ of its kernels is not compiled, because nothing has to run."""
    model, inputs = step(layers)
    settings = {"force_disable_caches": True, "cpp.simdlen": 1}
    uncompiled = mock.patch.object(AsyncCompile, "cpp_pybinding", return_value=lambda *_: None)
    with torch.no_grad(), inductor.config.patch(settings), uncompiled, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch._dynamo.reset()
        _, [code] = run_and_get_code(torch.compile(model, fullgraph=True), *inputs)
    body = code[code.index("def call(") :]
    return [ADDED_BY_INDUCTOR.sub("", call) for call in COMPILED_CALL.findall(body)]


def kinds(names) -> list[str]:
    """What each kernel is: a product, attention, or a small one."""
    return [
        "product"
        if name == "mm"
        else "attention"
        if "scaled_dot_product" in name and "fused" not in name
        else "small"
        for name in names
    ]


def parts(names) -> dict:
    """How many kernels come before the layers, in the last layer, and after it: final norm, output, the
    token.

    A layer extends from one layer's last product to the next one's, because compiled norms contain the sum
    before them.
    """
    products = [place for place, kind in enumerate(kinds(names)) if kind == "product"]
    first, end = products[-2 - PRODUCTS] + 1, products[-2] + 1
    layer, after = names[first:end], names[end:]
    return {
        "before": len(names) - LAYERS * len(layer) - len(after),
        "layer": layer,
        "layer_kinds": kinds(layer),
        "after": after,
        "after_kinds": kinds(after),
    }


def record() -> dict:
    """The recording, as its JSON file holds it."""
    return {"eager": parts(eager(LAYERS)), "compiled": parts(compiled(LAYERS))}
