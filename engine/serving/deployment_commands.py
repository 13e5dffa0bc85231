"""A deployment as the commands that start it: vLLM, SGLang, TensorRT-LLM.

Flags are those of vllm-project/vllm vllm/engine/arg_utils.py at commit 99d7eb5d (0.12 in the making),
sgl-project/sglang python/sglang/srt/server_args.py at 001067ff and NVIDIA/TensorRT-LLM
tensorrt_llm/commands/serve.py at 00209af1; the tests hold a list of them. The connector between two pools is
that of vLLM's guide to NixlConnector (docs.vllm.ai, v0.12.0). What a program has no flag for is a comment.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.serving.deployment import Deployment

BOTH, READS, WRITES = "", "prefill", "decode"  # what a server of the deployment does
KV_CONNECTOR = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
PER_LINE = 100  # characters


def commands(of: Deployment, program: str = "vllm", name: str = "") -> str:
    """The lines that start a deployment with one of ``PROGRAMS``, each pool by one command; ``name`` is the
    checkpoint's, the catalogue's key unless given."""
    if program not in PROGRAMS:
        raise ValueError(f"program must be one of {', '.join(PROGRAMS)}; got {program!r}")
    _, write = PROGRAMS[program]
    told = [_heading(of, program), *_comments(of, program)]
    pools = (
        ((READS, of.prefill_replicas), (WRITES, of.decode_replicas)) if of.apart else ((BOTH, of.replicas),)
    )
    lines = [line for role, replicas in pools for line in write(of, name or of.model, role, replicas)]
    return "\n".join([f"# {line}" for line in told] + lines) + "\n"


def _heading(of: Deployment, program: str) -> str:
    pools = (
        f"{of.prefill_replicas} that prefill and {of.decode_replicas} that decode" if of.apart else "alike"
    )
    return (
        f"{PROGRAMS[program][0]}: {of.replicas} replicas of {of.tp} {of.gpu}, {pools}, {of.weights} weights, "
        f"for {of.load.per_s:g} requests a second"
    )


def _comments(of: Deployment, program: str) -> list[str]:
    """What the flags cannot say."""
    told = []
    if of.weights == "int4":
        told.append("the checkpoint has to be one in 4 bits (AWQ or GPTQ): name yours")
    elif of.weights == "fp8" and program == "trtllm":
        told.append("the checkpoint has to be one in fp8: name yours")
    if of.drafts is not None:
        told.append(f"{of.drafts.drafted} drafted tokens a step were planned: name your drafts to the server")
    if program == "trtllm":
        if of.kv_precision == "fp8":
            told.append("keys and values in fp8: kv_cache_config has dtype: fp8 in the file of --config")
        if of.apart:
            told.append(
                "caches are sent: cache_transceiver_config in the file of --config, and a server that"
            )
            told.append("hands the requests on: trtllm-serve disaggregated")
    elif of.apart:
        told.append("in front of the two pools stands a router of yours, which sends each request to both")
    return told


def _command(words: list[tuple[str, ...]], start: str) -> list[str]:
    """One command, its flags on as many lines as they need."""
    lines = [start]
    for flag in words:
        text = " ".join(flag)
        if len(lines[-1]) + len(text) + 3 > PER_LINE:
            lines[-1] += " \\"
            lines.append(f"  {text}")
        else:
            lines[-1] += f" {text}"
    return lines


def _vllm(of: Deployment, name: str, role: str, replicas: int) -> list[str]:
    flags: list[tuple[str, ...]] = [
        ("--tensor-parallel-size", f"{of.tp}"),
        ("--data-parallel-size", f"{replicas}"),
        ("--max-model-len", f"{of.longest}"),
        ("--max-num-seqs", f"{of.largest_batch}"),
        ("--max-num-batched-tokens", f"{of.chunk}"),
        ("--enable-chunked-prefill",),
    ]
    if of.weights != "bf16":
        flags.append(("--quantization", {"fp8": "fp8", "int4": "awq_marlin"}[of.weights]))
    if of.kv_precision == "fp8":
        flags.append(("--kv-cache-dtype", "fp8"))
    if of.load.prefix_share:
        flags.append(("--enable-prefix-caching",))
    if role:
        flags.append(("--kv-transfer-config", f"'{KV_CONNECTOR}'"))
    return _command(flags, f"vllm serve {name}")


def _sglang(of: Deployment, name: str, role: str, replicas: int) -> list[str]:
    flags: list[tuple[str, ...]] = [
        ("--model-path", name),
        ("--tp-size", f"{of.tp}"),
        ("--dp-size", f"{replicas}"),
        ("--context-length", f"{of.longest}"),
        ("--max-running-requests", f"{of.largest_batch * replicas}"),
        ("--chunked-prefill-size", f"{of.chunk}"),
    ]
    if role:
        flags += [("--disaggregation-mode", role), ("--disaggregation-transfer-backend", "nixl")]
    else:
        flags.append(("--enable-mixed-chunk",))
    if of.weights != "bf16":
        flags.append(("--quantization", {"fp8": "fp8", "int4": "awq_marlin"}[of.weights]))
    if of.kv_precision == "fp8":
        flags.append(("--kv-cache-dtype", "fp8_e4m3"))
    if not of.load.prefix_share:
        flags.append(("--disable-radix-cache",))
    return _command(flags, "python -m sglang.launch_server")


def _trtllm(of: Deployment, name: str, role: str, replicas: int) -> list[str]:
    stored = {"bf16": "", "fp8": "-FP8", "int4": "-AWQ"}[of.weights]
    flags: list[tuple[str, ...]] = [
        ("--tp_size", f"{of.tp}"),
        ("--max_batch_size", f"{of.largest_batch}"),
        ("--max_num_tokens", f"{of.chunk}"),
        ("--max_seq_len", f"{of.longest}"),
        ("--enable_chunked_prefill",),
    ]
    what = f"that {role}" if role else "alike"
    return [
        f"# {replicas} times, on {of.tp} GPUs each, {what}:",
        *_command(flags, f"trtllm-serve {name}{stored}"),
    ]


PROGRAMS: dict[str, tuple[str, Callable[[Deployment, str, str, int], list[str]]]] = {
    "vllm": ("vLLM", _vllm),
    "sglang": ("SGLang", _sglang),
    "trtllm": ("TensorRT-LLM", _trtllm),
}
