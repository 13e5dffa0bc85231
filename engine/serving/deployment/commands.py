"""A deployment as the commands that start it: vLLM, SGLang, TensorRT-LLM, Dynamo.

Flags are those of vllm-project/vllm vllm/engine/arg_utils.py at commit 99d7eb5d (0.12 in the making),
sgl-project/sglang python/sglang/srt/server_args.py at 001067ff and NVIDIA/TensorRT-LLM
tensorrt_llm/commands/serve.py at 00209af1; the tests hold a list of them. Dynamo hands vLLM's flags on to
vLLM and has its own in ai-dynamo/dynamo components/src/dynamo/vllm/backend_args.py at d195d280 and
common/configuration/groups/router_args.py at 028cab44. The connector between two pools is that of vLLM's
guide to NixlConnector (docs.vllm.ai, v0.12.0), which also connects pools of two degrees. Experts over many
GPUs are started as in vLLM's guide to expert parallel deployment (v0.12.0) and SGLang's to expert
parallelism. What a program has no flag for is a comment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine import catalog
from engine.serving.deployment.found import Deployment
from engine.serving.replica import Replica

BOTH, READS, WRITES = "", "prefill", "decode"  # the part that a server has in the deployment
KV_CONNECTOR = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
PER_LINE = 100  # characters
USUAL_NODE = 8  # GPUs


class Pool(NamedTuple):
    """A pool of equal replicas that do the same work."""

    role: str
    replicas: int
    of: Replica


def commands(of: Deployment, program: str = "vllm", name: str = "") -> str:
    """The lines that start a deployment with one of ``PROGRAMS``, each pool by one command. ``name`` is the
    checkpoint; if it is not given, it is the model's public repository on Hugging Face, or the catalogue's
    key where there is none."""
    if program not in PROGRAMS:
        raise ValueError(f"program must be one of {', '.join(PROGRAMS)}; got {program!r}")
    _, write = PROGRAMS[program]
    told = [_heading(of, program)]
    if not name:
        told += _named(of)
    told += _comments(of, program)
    pools = (
        (Pool(READS, of.prefill_replicas, of.reads), Pool(WRITES, of.decode_replicas, of.replica))
        if of.apart
        else (Pool(BOTH, of.replicas, of.replica),)
    )
    lines = [line for pool in pools for line in write(of, name or checkpoint(of) or of.model, pool)]
    if program == "dynamo":
        lines = [*_dynamo_front(of), *lines]
    return "\n".join([f"# {line}" for line in told] + lines) + "\n"


def _heading(of: Deployment, program: str) -> str:
    pools = (
        f"{of.prefill_replicas} that prefill and {of.decode_replicas} that decode" if of.apart else "alike"
    )
    return (
        f"{PROGRAMS[program][0]}: {of.split} on {of.gpu}, {pools}, {of.weights} weights, "
        f"for {of.load.per_s:g} requests a second"
    )


def checkpoint(of: Deployment) -> str:
    """The model's public repository on Hugging Face; empty if it has none, or if the model is not in the
    catalogue."""
    known = catalog.all_models()
    return known[of.model].checkpoint if of.model in known else ""


def _named(of: Deployment) -> list[str]:
    """The name of the model in the commands, if the reader has not given one."""
    name = checkpoint(of)
    if not name:
        return [f"name your checkpoint: {of.model} is this catalogue's key, and we know of no public one"]
    if catalog.model(of.model).access == "gated":
        return [f"{name} is gated: ask for access on huggingface.co, and set HF_TOKEN"]
    return []


def _stored_in_4_bits(of: Deployment) -> bool:
    """Whether the public checkpoint already has its weights in 4 bits, so that no flag is needed."""
    known = catalog.all_models()
    return of.weights == "int4" and of.model in known and known[of.model].stored == "mxfp4"


def _quantization(of: Deployment) -> list[tuple[str, ...]]:
    """The flag of vLLM and SGLang for the format of the weights, where one is needed."""
    if of.weights == "bf16" or _stored_in_4_bits(of):
        return []
    return [("--quantization", {"fp8": "fp8", "int4": "awq_marlin"}[of.weights])]


def _comments(of: Deployment, program: str) -> list[str]:
    """Comments on what the program's flags cannot express."""
    told = []
    if _stored_in_4_bits(of):
        told.append("this checkpoint is in 4 bits (MXFP4) as it comes")
    elif of.weights == "int4":
        told.append("the checkpoint has to be one in 4 bits (AWQ or GPTQ): name yours")
    elif of.weights == "fp8" and program == "trtllm":
        told.append("the checkpoint has to be one in fp8: name yours in place of the one with -FP8")
    if of.drafts is not None:
        told.append(f"{of.drafts.drafted} drafted tokens a step were planned: name your drafts to the server")
    if max(of.reads.gpus, of.replica.gpus) > USUAL_NODE:
        told.append(
            "a replica on several nodes: the command runs on each, with the flags that name the node's"
        )
        told.append("rank and the first one's address")
    together = _by_one_command(of, program)
    if together > USUAL_NODE:
        told.append(
            f"{together} GPUs by one command: on nodes of {USUAL_NODE} give each node its share of the"
        )
        told.append("replicas by a command of its own, or add the flags that name the nodes")
    if program == "trtllm":
        if of.replica.dp > 1:
            told.append("attention by itself on each GPU: enable_attention_dp: true in the file of --config")
        if of.kv_precision == "fp8":
            told.append("keys and values in fp8: kv_cache_config has dtype: fp8 in the file of --config")
        if of.apart:
            told.append(
                "caches are sent: cache_transceiver_config in the file of --config, and a server that"
            )
            told.append("hands the requests on: trtllm-serve disaggregated")
    elif program == "dynamo":
        told.append("the workers find the front end by etcd and NATS, which have to run")
        if of.load.prefix_share:
            told.append(
                "the router follows the events of the workers' caches: --kv-events-config, a port for"
            )
            told.append("each worker")
    elif of.apart:
        told.append("in front of the two pools stands a router of yours, which sends each request to both")
    return told


def _by_one_command(of: Deployment, program: str) -> int:
    """The most GPUs over which one command spreads several replicas; 0 if each replica has its own."""
    if program not in ("vllm", "sglang"):
        return 0
    pools = (
        [(of.prefill_replicas, of.reads), (of.decode_replicas, of.replica)]
        if of.apart
        else [(of.replicas, of.replica)]
    )
    return max(count * one.gpus if one.dp == 1 and count > 1 else 0 for count, one in pools)


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


def _engine(of: Deployment, pool: Pool) -> list[tuple[str, ...]]:
    """vLLM's flags for one replica."""
    flags: list[tuple[str, ...]] = [("--tensor-parallel-size", f"{pool.of.tp}")]
    if pool.of.pp > 1:
        flags.append(("--pipeline-parallel-size", f"{pool.of.pp}"))
    if pool.of.dp > 1:
        flags += [
            ("--data-parallel-size", f"{pool.of.dp}"),
            ("--enable-expert-parallel",),
            ("--all2all-backend", f"deepep_{'high_throughput' if pool.role == READS else 'low_latency'}"),
            ("--enable-dbo",),
            ("--enable-eplb",),
        ]
    flags += [
        ("--max-model-len", f"{of.longest}"),
        ("--max-num-seqs", f"{of.largest_batch * pool.of.pp}"),
        ("--max-num-batched-tokens", f"{of.chunk}"),
        ("--enable-chunked-prefill",),
    ]
    flags += _quantization(of)
    if of.kv_precision == "fp8":
        flags.append(("--kv-cache-dtype", "fp8"))
    if of.load.prefix_share:
        flags.append(("--enable-prefix-caching",))
    if pool.role:
        flags.append(("--kv-transfer-config", f"'{KV_CONNECTOR}'"))
    return flags


def _vllm(of: Deployment, name: str, pool: Pool) -> list[str]:
    """The commands for a pool: one for all replicas, unless their GPUs share experts; then one for each
    replica."""
    degree, *rest = _engine(of, pool)
    if pool.of.dp > 1:
        return [_each(pool), *_command([degree, *rest], f"vllm serve {name}")]
    return _command([degree, ("--data-parallel-size", f"{pool.replicas}"), *rest], f"vllm serve {name}")


def _dynamo_front(of: Deployment) -> list[str]:
    """The command for Dynamo's front end. It sends a request to the worker that holds its prefix, or to the
    one with the least to do; if some workers only prefill, they get the prompts."""
    mode = "kv" if of.load.prefix_share else "least-loaded"
    return _command([("--router-mode", mode)], "python -m dynamo.frontend")


def _dynamo(of: Deployment, name: str, pool: Pool) -> list[str]:
    """The commands for a pool: in Dynamo each replica is a worker."""
    flags: list[tuple[str, ...]] = [("--model", name)]
    if pool.role:
        flags.append(("--disaggregation-mode", pool.role))
    return [_each(pool), *_command([*flags, *_engine(of, pool)], "python -m dynamo.vllm")]


def _each(pool: Pool) -> str:
    """The line above the command of one replica, which says how many replicas there are."""
    what = f"that {pool.role}" if pool.role else "alike"
    count = "once" if pool.replicas == 1 else f"{pool.replicas} times"
    return f"# {count}, on {pool.of.gpus} GPUs{'' if pool.replicas == 1 else ' each'}, {what}:"


def _sglang(of: Deployment, name: str, pool: Pool) -> list[str]:
    """The commands for a pool. SGLang's limits count for everything that one command starts. Where GPUs share
    experts, one command starts one replica: all of its GPUs are tensor ranks, and attention divides them
    anew."""
    spread = pool.of.dp > 1
    batches = pool.of.batches if spread else pool.of.batches * pool.replicas
    flags: list[tuple[str, ...]] = [
        ("--model-path", name),
        ("--tp-size", f"{pool.of.gpus if spread else pool.of.tp}"),
        ("--dp-size", f"{pool.of.dp if spread else pool.replicas}"),
    ]
    if pool.of.pp > 1:
        flags.append(("--pp-size", f"{pool.of.pp}"))
    if spread:
        flags += [
            ("--ep-size", f"{pool.of.gpus}"),
            ("--enable-dp-attention",),
            ("--enable-dp-lm-head",),
            ("--moe-a2a-backend", "deepep"),
            ("--deepep-mode", "normal" if pool.role == READS else "low_latency"),
            ("--enable-two-batch-overlap",),
        ]
    flags += [
        ("--context-length", f"{of.longest}"),
        ("--max-running-requests", f"{of.largest_batch * batches}"),
        ("--chunked-prefill-size", f"{of.chunk * (pool.of.dp if spread else 1)}"),
    ]
    if pool.role:
        flags += [("--disaggregation-mode", pool.role), ("--disaggregation-transfer-backend", "nixl")]
    else:
        flags.append(("--enable-mixed-chunk",))
    flags += _quantization(of)
    if of.kv_precision == "fp8":
        flags.append(("--kv-cache-dtype", "fp8_e4m3"))
    if not of.load.prefix_share:
        flags.append(("--disable-radix-cache",))
    command = _command(flags, "python -m sglang.launch_server")
    return [_each(pool), *command] if spread else command


def _trtllm(of: Deployment, name: str, pool: Pool) -> list[str]:
    stored = "" if _stored_in_4_bits(of) else {"bf16": "", "fp8": "-FP8", "int4": "-AWQ"}[of.weights]
    flags: list[tuple[str, ...]] = [
        ("--tp_size", f"{pool.of.tp * pool.of.dp}"),
        ("--max_batch_size", f"{of.largest_batch}"),
        ("--max_num_tokens", f"{of.chunk}"),
        ("--max_seq_len", f"{of.longest}"),
        ("--enable_chunked_prefill",),
    ]
    if pool.of.pp > 1:
        flags.insert(1, ("--pp_size", f"{pool.of.pp}"))
    if pool.of.dp > 1:
        flags.insert(1, ("--ep_size", f"{pool.of.gpus}"))
    return [_each(pool), *_command(flags, f"trtllm-serve {name}{stored}")]


PROGRAMS: dict[str, tuple[str, Callable[[Deployment, str, Pool], list[str]]]] = {
    "vllm": ("vLLM", _vllm),
    "sglang": ("SGLang", _sglang),
    "trtllm": ("TensorRT-LLM", _trtllm),
    "dynamo": ("Dynamo", _dynamo),
}
