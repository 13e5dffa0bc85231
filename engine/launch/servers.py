"""Lines that start a server: ``vllm serve``, ``sglang.launch_server``, ``trtllm-serve``.

Names and defaults: vllm-project/vllm vllm/engine/arg_utils.py at commit 001999d2 and later names of the same;
sgl-project/sglang python/sglang/srt/server_args.py at 001067ff; NVIDIA/TensorRT-LLM
tensorrt_llm/commands/serve.py at 00209af1. Errors: vLLM's v1/core/kv_cache_utils.py and config.py, SGLang's
model_runner.py.

Left out: what a server's profiling run keeps beyond the engine's fixed share for the framework, drafts,
adapters and pictures."""

from __future__ import annotations

from typing import NamedTuple

from engine.catalog.models import Model
from engine.launch.known_models import named, stored_precision
from engine.launch.launch import Server
from engine.launch.settings import FLAG, NUMBER, TEXT, Draft, Field, Ignored
from engine.mechanism import memory

VLLM = {
    "model": Field("model", TEXT),
    "tensor-parallel-size": Field("tp"),
    "tp": Field("tp"),
    "pipeline-parallel-size": Field("pp"),
    "pp": Field("pp"),
    "data-parallel-size": Field("replicas"),
    "dp": Field("replicas"),
    "gpu-memory-utilization": Field("share", NUMBER),
    "max-model-len": Field("longest", TEXT),
    "max-num-seqs": Field("requests"),
    "max-num-batched-tokens": Field("chunk"),
    "quantization": Field("quantization", TEXT),
    "q": Field("quantization", TEXT),
    "kv-cache-dtype": Field("kv", TEXT),
    "dtype": Field("dtype", TEXT),
    "enable-expert-parallel": Field("expert_parallel", FLAG),
    "all2all-backend": Field("exchange", TEXT),
    "enable-dbo": Field("halves", FLAG),
    "enable-eplb": Field("balanced", FLAG),
    "trust-remote-code": Field("trusted", FLAG),
    "enforce-eager": Field("eager", FLAG),
    "enable-prefix-caching": Field("prefixes", FLAG),
    "enable-chunked-prefill": Field("chunked", FLAG),
    "disable-log-requests": Field("quiet", FLAG),
    "disable-log-stats": Field("quiet", FLAG),
    "enable-auto-tool-choice": Field("tools", FLAG),
}
SGLANG = {
    "model-path": Field("model", TEXT),
    "model": Field("model", TEXT),
    "tp": Field("tp"),
    "tp-size": Field("tp"),
    "tensor-parallel-size": Field("tp"),
    "pp-size": Field("pp"),
    "pipeline-parallel-size": Field("pp"),
    "dp": Field("replicas"),
    "dp-size": Field("replicas"),
    "data-parallel-size": Field("replicas"),
    "mem-fraction-static": Field("share", NUMBER),
    "context-length": Field("longest", TEXT),
    "max-running-requests": Field("requests"),
    "chunked-prefill-size": Field("chunk"),
    "enable-mixed-chunk": Field("mixed", FLAG),
    "quantization": Field("quantization", TEXT),
    "kv-cache-dtype": Field("kv", TEXT),
    "dtype": Field("dtype", TEXT),
    "trust-remote-code": Field("trusted", FLAG),
    "enable-dp-attention": Field("dp_attention", FLAG),
    "enable-dp-lm-head": Field("dp_head", FLAG),
    "ep-size": Field("ep"),
    "expert-parallel-size": Field("ep"),
    "ep": Field("ep"),
    "moe-a2a-backend": Field("exchange", TEXT),
    "deepep-mode": Field("exchange_mode", TEXT),
    "enable-two-batch-overlap": Field("halves", FLAG),
    "disable-cuda-graph": Field("eager", FLAG),
    "enable-torch-compile": Field("compiled", FLAG),
}
TRTLLM = {
    "model": Field("model", TEXT),
    "tp-size": Field("tp"),
    "tensor-parallel-size": Field("tp"),
    "pp-size": Field("pp"),
    "pipeline-parallel-size": Field("pp"),
    "ep-size": Field("ep"),
    "moe-expert-parallel-size": Field("ep"),
    "kv-cache-free-gpu-memory-fraction": Field("share", NUMBER),
    "free-gpu-memory-fraction": Field("share", NUMBER),
    "max-seq-len": Field("longest", TEXT),
    "max-batch-size": Field("requests"),
    "max-num-tokens": Field("chunk"),
    "enable-chunked-prefill": Field("chunked", FLAG),
    "trust-remote-code": Field("trusted", FLAG),
}
DRAFT = "a draft model's memory and time are not modelled"
UNMODELLED = {
    "cpu-offload-gb": "weights on the host are not modelled",
    "speculative-config": DRAFT,
    "speculative-model": DRAFT,
    "speculative-algorithm": DRAFT,
    "speculative-draft-model-path": DRAFT,
    "enable-lora": "adapters are not modelled",
    "lora-paths": "adapters are not modelled",
    "num-gpu-blocks-override": "a cache of a given number of blocks is not modelled",
}


class Program(NamedTuple):
    """One server: its table, and the defaults that matter."""

    name: str
    fields: dict[str, Field]
    share: float
    of_rest: bool
    requests: int
    keys: dict[str, str]  # our names -> the arguments that set them


PROGRAMS = {
    "vllm": Program(
        "vLLM",
        VLLM,
        memory.SERVER_SHARE,
        False,
        256,
        {
            "tp": "tensor-parallel-size",
            "share": "gpu-memory-utilization",
            "longest": "max-model-len",
            "kv": "kv-cache-dtype",
            "requests": "max-num-seqs",
        },
    ),
    "sglang": Program(
        "SGLang",
        SGLANG,
        0.88,
        False,
        256,
        {
            "tp": "tp-size",
            "share": "mem-fraction-static",
            "longest": "context-length",
            "kv": "kv-cache-dtype",
            "requests": "max-running-requests",
        },
    ),
    "trtllm": Program(
        "TensorRT-LLM",
        TRTLLM,
        0.9,
        True,
        256,
        {
            "tp": "tp_size",
            "share": "kv_cache_free_gpu_memory_fraction",
            "longest": "max_seq_len",
            "requests": "max_batch_size",
        },
    ),
}
STORED = {
    "fp8": "fp8",
    "w8a8_fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "modelopt": "fp8",
    "modelopt_fp8": "fp8",
    "ptpc_fp8": "fp8",
    "awq": "int4",
    "awq_marlin": "int4",
    "gptq": "int4",
    "gptq_marlin": "int4",
    "marlin": "int4",
    "bitsandbytes": "int4",
    "bnb": "int4",
    "modelopt_fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "w8a8_int8": "int8",
    "gguf": "int4",
}
UNITS = {"k": 1000, "K": 1024, "m": 10**6, "M": 2**20}


def model(d: Draft) -> Model:
    """The model that is named."""
    name = d.given("model")
    if not name:
        raise ValueError("no model is named: write it behind `serve`, or give --model, or its config.json")
    return named(name)


def tokens(d: Draft, text: str) -> int | None:
    """A number of tokens, which may be written 32k; None if it is no number."""
    scale = UNITS.get(text[-1:], 1)
    digits = text[:-1] if scale > 1 else text
    if not digits.isdigit() or len(digits) > 12 or not int(digits):
        d.refuse(f"ValueError: {text[:20]!r} is no number of tokens", "longest")
        return None
    return int(digits) * scale


def serving(d: Draft, shape: Model, program: Program) -> tuple[Server, str, int]:
    """The server, the format of its products, and the GPUs of all its replicas."""
    tp, pp = max(1, d.get("tp", 1)), max(1, d.get("pp", 1))
    replicas = max(1, d.given("replicas") or 1)
    share = d.get("share", program.share)
    if not 0 < share <= 1:
        d.refuse(
            f"ValueError: {program.keys['share']} must be above 0 and at most 1, got {share:g}.", "share"
        )
        share = program.share
    text = d.given("longest")
    longest = (tokens(d, text) if text else None) or shape.max_context
    if not text:
        d.assume("longest", longest, "the model's own limit")
    requests = max(1, d.get("requests", program.requests))
    stored = STORED.get((d.given("quantization") or "").lower()) or stored_precision(d.given("model") or "")
    kept = (d.get("kv", "auto", "16 bits") or "auto").lower()
    kind = (d.given("dtype") or "bfloat16").lower()
    precision = "fp32" if kind in ("float32", "float") else "fp16" if kind in ("half", "float16") else "bf16"
    if stored == "fp8":
        precision = "fp8"
    for name in ("eager", "exchange", "exchange_mode", "halves", "balanced", "dp_head", "ep"):
        d.given(name)
    tp, dp, replicas = _spread(d, shape, tp, replicas, program)
    if shape.heads % tp:
        d.refuse(
            f"ValueError: Total number of attention heads ({shape.heads}) must be divisible by tensor "
            f"parallel size ({tp}).",
            "tp",
        )
    kv = "fp8" if "fp8" in kept else "fp32" if precision == "fp32" else "bf16"
    chunk = d.given("chunk") or None
    if program.name == "SGLang" and dp > 1:  # its limits are those of all groups together
        requests, chunk = max(1, requests // dp), chunk and chunk // dp
    server = Server(tp, pp, replicas, share, program.of_rest, longest, requests, stored, kv, chunk, dp)
    return server, precision, tp * pp * dp * replicas


def _spread(d: Draft, shape: Model, tp: int, replicas: int, program: Program) -> tuple[int, int, int]:
    """Tensor ranks, groups of them that share the experts, and replicas. vLLM's data-parallel ranks share
    experts where that is asked; with SGLang's data-parallel attention all tensor ranks do, and attention
    divides them into groups."""
    vllm, sglang = d.given("expert_parallel"), d.given("dp_attention")
    if not shape.experts:
        if sglang:
            entry = d.settings["dp_attention"].entry
            d.unmodelled.append(
                Ignored(*entry[:4], "data-parallel attention of a dense model is not modelled")
            )
        return tp, 1, replicas
    if vllm and replicas > 1:
        return tp, replicas, 1
    if sglang and replicas > 1:
        if tp % replicas:
            d.refuse(
                f"AssertionError: tp_size ({tp}) must be divisible by dp_size ({replicas})", "dp_attention"
            )
            return tp, 1, 1
        return tp // replicas, replicas, 1
    return tp, 1, replicas
