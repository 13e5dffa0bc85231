"""llama.cpp: ``llama-server`` and ``llama-cli``.

Names and defaults: ggml-org/llama.cpp tools/server/README.md at commit 00dc8057: all layers and a context of
the model's own, which ``--fit`` (on unless said otherwise) lowers until they fit, the layers first where a
context is named; flash attention where it can; 2,048 tokens at a time, 512 of them on the GPU. Several GPUs
share the layers evenly. The order in which ``--fit`` lowers, and that experts in the host's memory are
computed there, are from memory. What it holds: ``serving/in_file.py``. The images of its server start that
(.devops/cuda.Dockerfile at 00d69466).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.models import Model
from engine.frameworks.described import Server
from engine.frameworks.framework import Claim, Command, Framework, Holds, Meant, Sure
from engine.frameworks.settings import FLAG, TEXT, Draft, Fault, Field
from engine.mechanism.shape import shape
from engine.serving import in_file

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu

PROGRAMS = ("llama-server", "llama-cli", "llama-simple", "llama-bench", "llama-batched-bench")
FIELDS = {
    "model": Field("model", TEXT),
    "m": Field("model", TEXT),
    "hf-repo": Field("model", TEXT),
    "hf": Field("model", TEXT),
    "hfr": Field("model", TEXT),
    "hf-file": Field("file", TEXT),
    "hff": Field("file", TEXT),
    "ctx-size": Field("longest"),
    "c": Field("longest"),
    "gpu-layers": Field("on_gpu", TEXT),
    "n-gpu-layers": Field("on_gpu", TEXT),
    "ngl": Field("on_gpu", TEXT),
    "ubatch-size": Field("chunk"),
    "ub": Field("chunk"),
    "batch-size": Field("batch"),
    "b": Field("batch"),
    "cache-type-k": Field("kv", TEXT),
    "ctk": Field("kv", TEXT),
    "cache-type-v": Field("values", TEXT),
    "ctv": Field("values", TEXT),
    "flash-attn": Field("flash", TEXT),
    "fa": Field("flash", TEXT),
    "cpu-moe": Field("all_experts_away", FLAG),
    "cmoe": Field("all_experts_away", FLAG),
    "n-cpu-moe": Field("experts_away"),
    "ncmoe": Field("experts_away"),
    "override-tensor": Field("moved", TEXT),
    "ot": Field("moved", TEXT),
    "parallel": Field("requests"),
    "np": Field("requests"),
    "split-mode": Field("split", TEXT),
    "sm": Field("split", TEXT),
    "tensor-split": Field("parts", TEXT),
    "ts": Field("parts", TEXT),
    "no-kv-offload": Field("cache_away", FLAG),
    "nkvo": Field("cache_away", FLAG),
    "fit": Field("fit", TEXT),
    "swa-full": Field("whole_windows", FLAG),
}
DRAFT = "a draft model's memory and time are not modelled"
UNMODELLED = {
    "mmproj": "what a tower takes that reads pictures is not modelled",
    "mmproj-url": "what a tower takes that reads pictures is not modelled",
    "model-draft": DRAFT,
    "md": DRAFT,
    "spec-draft-model": DRAFT,
    "lora": "adapters are not modelled",
    "lora-scaled": "adapters are not modelled",
    "rpc": "layers on other machines are not modelled",
    "moe-cache-mib": "a cache of experts is not modelled",
    "n-cpu-ffn": "a part of the layers on the host is not modelled",
    "ncffn": "a part of the layers on the host is not modelled",
}
ALL = ("all", "auto", "-1")
USUAL_BITS = "q4_k_m"  # of a repository whose name says nothing
CHUNK = 512


class LlamaCpp(Framework):
    """It puts as many layers on its GPUs as it is told, or as fit."""

    key = "llamacpp"
    name = "llama.cpp"
    place = 75
    serves = True
    deploys = False
    fields = FIELDS
    unmodelled = UNMODELLED
    names_model = "give -m or -hf, or its config.json"
    separator = "-"
    takes_all = True
    timed = False

    images = ("ggml-org/llama.cpp:server",)
    image_runs = ("llama-server",)

    def claims(self, command: Command) -> Claim:
        """One of its programs is named."""
        for at, word in enumerate(command.words[:20]):
            if word.split("/")[-1].removesuffix(".exe") in PROGRAMS:
                return Claim(Sure.NAMED, at + 1)
        return Claim(Sure.NOT)

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """The server; a fault or an error for what cannot be."""
        bits = bits_of(d.given("file") or d.given("model") or "")
        if not bits:
            bits = USUAL_BITS
            d.assume("weights", bits.upper(), "no file's name says how its weights are stored")
        longest = d.given("longest") or self.usual_context(d)
        fit = (d.given("fit") or "on").lower() not in ("off", "0")
        text = (d.given("on_gpu") or "auto").lower()
        layers = int(text) if text.isdigit() and len(text) < 9 else shape.depth
        if not text.isdigit() and text not in ALL:
            entry = d.settings["on_gpu"].entry
            words = f"{entry.key} must be a whole number, auto or all, got {text[:20]!r}"
            d.faults.append(Fault(entry.file, entry.line, words))
        away = 1.0 if d.given("all_experts_away") else min(1.0, (d.given("experts_away") or 0) / shape.depth)
        moved = d.given("moved")
        if moved:
            away = max(away, self.moved(d, moved))
        kinds = [self.cached(d, name) for name in ("kv", "values")]
        split = (d.given("split") or "layer").lower()
        if split not in ("layer", "none"):
            d.lacks("split", "layers cut into rows are not modelled")
        parts = d.given("parts")
        if parts and len(set(parts.replace("/", ",").split(","))) > 1:
            d.lacks("parts", "unequal parts are not modelled")
        if d.given("whole_windows") and any(group.window for group in shape.layers):
            d.lacks("whole_windows", "a whole cache of layers with a window is not modelled")
        d.given("batch")
        stages = max(1, gpus) if split != "none" else 1
        server = Server(
            1,
            stages,
            1,
            1.0,
            False,
            longest or shape.max_context,
            max(1, d.given("requests") or 1),
            in_file.BITS[bits] / 8.0,
            "bf16",
            d.given("chunk") or CHUNK,
        )
        server = replace(
            server,
            bytes_each=in_file.BITS[bits] / 8.0,
            cached_bytes=0.0 if d.given("cache_away") else sum(kinds) / 2.0,
            cache_away=bool(d.given("cache_away")),
            on_gpu=min(1.0, layers / shape.depth),
            experts_away=away,
            yields=fit and text == "auto",
            shortens=fit and not longest,
            flash=(d.given("flash") or "auto").lower() not in ("off", "0", "false"),
        )
        if not longest:
            d.assume("longest", shape.max_context, "the model's own, lowered until it fits")
        return Meant(stages, "bf16", server=server)

    def usual_context(self, d: Draft) -> int:
        """Tokens of the context where no text says how many; 0 for the model's own."""
        return 0

    def cached(self, d: Draft, name: str) -> float:
        """Bytes of a cached key or value."""
        kind = (d.given(name) or "f16").lower()
        if kind not in in_file.CACHED:
            entry = d.settings[name].entry
            words = f"{entry.key} must be one of {', '.join(in_file.CACHED)}, got {kind[:20]!r}"
            d.faults.append(Fault(entry.file, entry.line, words))
        return in_file.CACHED.get(kind, 2.0)

    def moved(self, d: Draft, patterns: str) -> float:
        """The share of the layers whose experts a pattern puts into the host's memory."""
        found = 0.0
        for each in patterns.split(","):
            pattern, _, to = each.rpartition("=")
            experts = "exps" in pattern or "ffn_" in pattern
            if to.upper() == "CPU" and experts and not any(c in "0123456789" for c in pattern):
                found = 1.0
            else:
                d.lacks("moved", "a pattern for some of the layers is not modelled")
        return found

    def holds(self, server: Server, model: Model, gpu: Gpu) -> Holds:
        """The buffer for a micro-batch, and what CUDA takes."""
        rows = float(min(server.chunk or CHUNK, server.longest))
        buffer = in_file.computed_bytes(shape(model), rows, float(server.longest), server.flash)
        return Holds({"activations": buffer, "framework": in_file.CONTEXT_BYTES})

    def too_small(self, server: Server, longest: int, needed_bytes: float, cache_bytes: float) -> str:
        """The allocation that fails."""
        if needed_bytes <= cache_bytes:
            return ""
        return (
            "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory "
            f"({(needed_bytes - cache_bytes) / 2.0**20:,.0f} MiB more than there are)"
        )


def bits_of(name: str) -> str:
    """How the weights are stored that a file's or a repository's name says; empty where it does not."""
    low = name.strip().lower().replace(":", "-").replace(".", "-").replace("/", "-")
    words = low.replace("_", "-").split("-")
    found = ""
    for at in range(len(words)):
        for many in (3, 2, 1):
            joined = "_".join(words[at : at + many])
            kind = joined.removesuffix("_xl")
            if kind != joined:  # some matrices in more bits than in the largest usual kind
                kind = next((k for k in (f"{kind}_l", f"{kind}_m", kind) if k in in_file.BITS), "")
            if kind in in_file.BITS:
                return kind
    return found


FRAMEWORK: Framework = LlamaCpp()
