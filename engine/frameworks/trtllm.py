"""TensorRT-LLM: ``trtllm-serve``.

Names and defaults: NVIDIA/TensorRT-LLM tensorrt_llm/commands/serve.py at commit 00209af1. The file of
--config (once --extra_llm_api_options) sets what its LlmArgs have (tensorrt_llm/llmapi/llm_args.py; its keys
as remembered). The share is of what is free once weights and a step of ``max_num_tokens`` are there; how
much that step takes is not published, and left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.frameworks.framework import Framework, Sure
from engine.frameworks.servers import UNMODELLED, Pool, ServerCommand, command
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Entry, Field

if TYPE_CHECKING:
    from engine.serving.deployment import Deployment

FIELDS = {
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
    "backend": Field("backend", TEXT),
    "extra-llm-api-options": Field("more", TEXT),
    "config": Field("more", TEXT),
    # what stands in that file
    "tensor_parallel_size": Field("tp"),
    "pipeline_parallel_size": Field("pp"),
    "moe_expert_parallel_size": Field("ep"),
    "max_seq_len": Field("longest", TEXT),
    "max_batch_size": Field("requests"),
    "max_num_tokens": Field("chunk"),
    "enable_chunked_prefill": Field("chunked", FLAG),
    "kv_cache_config.free_gpu_memory_fraction": Field("share", NUMBER),
    "kv_cache_config.dtype": Field("kv", TEXT),
    "kv_cache_config.enable_block_reuse": Field("prefixes", FLAG),
    "cuda_graph_config.padding_enabled": Field("eager_padding", FLAG),
    "cuda_graph_config.enable_padding": Field("eager_padding", FLAG),
    "cuda_graph_config.max_batch_size": Field("graphs"),
    "print_iter_log": Field("quiet", FLAG),
}
# public checkpoints in fp8 of models in 16 bits: NVIDIA's (docs of TensorRT-LLM, its support matrix), Qwen's
IN_FP8 = {
    f"meta-llama/Llama-3.1-{size}-Instruct": {"fp8": f"nvidia/Llama-3.1-{size}-Instruct-FP8"}
    for size in ("8B", "70B", "405B")
} | {
    f"Qwen/Qwen3-{size}": {"fp8": f"Qwen/Qwen3-{size}-FP8"}
    for size in ("0.6B", "1.7B", "4B", "8B", "14B", "32B", "30B-A3B", "235B-A22B")
}
GROUPS = ("kv_cache_config", "cuda_graph_config", "moe_config", "speculative_config")
ALONE = ("enable_attention_dp", "disable_overlap_scheduler", "print_iter_log", "cuda_graph_config")
MORE = {
    "enable_attention_dp": "attention by itself on each GPU is not modelled",
    "speculative_config.decoding_type": "a draft model's memory and time are not modelled",
    "kv_cache_config.host_cache_size": "a cache on the host is not modelled",
    "kv_cache_config.max_tokens": "a cache of a given number of tokens is not modelled",
}


class Trtllm(ServerCommand):
    """What is not a flag stands in the file of ``--config``."""

    key = "trtllm"
    name = "TensorRT-LLM"
    place = 70
    fields = FIELDS
    unmodelled = UNMODELLED | MORE
    program = "trtllm-serve"
    alone = True
    joins = "_"
    of_rest = True
    listens = "0.0.0.0"
    of_fp8 = "the checkpoint is one in fp8, as it shrinks none by itself"
    public = IN_FP8
    by_one_command = False

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """The file of --config has groups of its own."""
        keys = {entry.key for entry in entries}
        groups = {key.split(".")[0] for key in keys} & set(GROUPS)
        if notation != "yaml" or not (groups or keys & set(ALONE)):
            return Sure.NOT
        return Sure.OWN_KEYS if keys & set(FIELDS) or keys & set(MORE) else Sure.ONE_FLAG

    def beside_pools(self, of: Deployment) -> list[str]:
        """What the file of --config has to say."""
        told = []
        if of.replica.dp > 1:
            told.append("attention by itself on each GPU: enable_attention_dp: true in the file of --config")
        if of.kv_precision == "fp8":
            told.append("keys and values in fp8: kv_cache_config has dtype: fp8 in the file of --config")
        if of.apart:
            told.append(
                "caches are sent: cache_transceiver_config in the file of --config, and a server that"
            )
            told.append("hands the requests on: trtllm-serve disaggregated")
        return told

    def on_each_node(self) -> list[str]:
        """Its ranks are started by another program."""
        return [
            "a replica on several nodes: srun or mpirun starts it, a task for each GPU, with",
            "trtllm-llmapi-launch in front of its command",
        ]

    def started(self, of: Deployment, name: str, pool: Pool, port: str = "") -> list[str]:
        """One replica, and how many of them."""
        flags = [
            self.flag("tp", f"{pool.of.tp * pool.of.dp}"),
            self.flag("requests", f"{of.largest_batch}"),
            self.flag("chunk", f"{of.chunk}"),
            self.flag("longest", f"{of.longest}"),
            self.flag("chunked"),
        ]
        if pool.of.pp > 1:
            flags.insert(1, self.flag("pp", f"{pool.of.pp}"))
        if pool.of.dp > 1:
            flags.insert(1, self.flag("ep", f"{pool.of.gpus}"))
        return command([*flags, *self.at_port(port)], f"trtllm-serve {name}")


FRAMEWORK: Framework = Trtllm()
