"""TensorRT-LLM: ``trtllm-serve``.

Names and defaults: NVIDIA/TensorRT-LLM tensorrt_llm/commands/serve.py at commit 00209af1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.frameworks.framework import Framework
from engine.frameworks.servers import Pool, ServerCommand, command, each, stored_in_4_bits
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Field

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
}


class Trtllm(ServerCommand):
    """What is not a flag stands in the file of ``--config``."""

    key = "trtllm"
    name = "TensorRT-LLM"
    place = 70
    fields = FIELDS
    program = "trtllm-serve"
    alone = True
    joins = "_"
    of_rest = True
    of_fp8 = "the checkpoint has to be one in fp8: name yours in place of the one with -FP8"
    by_one_command = False

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

    def started(self, of: Deployment, name: str, pool: Pool) -> list[str]:
        """One replica, and how many of them."""
        stored = "" if stored_in_4_bits(of) else {"bf16": "", "fp8": "-FP8", "int4": "-AWQ"}[of.weights]
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
        return [each(pool), *command(flags, f"trtllm-serve {name}{stored}")]


FRAMEWORK: Framework = Trtllm()
