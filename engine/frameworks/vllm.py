"""vLLM: ``vllm serve``.

Names and defaults: vllm-project/vllm vllm/engine/arg_utils.py at commit 001999d2 and later names of the same;
written are those of commit 99d7eb5d (0.12 in the making). Errors: v1/core/kv_cache_utils.py and config.py.
The connector between two pools is that of the guide to NixlConnector (docs.vllm.ai, v0.12.0), which also
connects pools of two degrees; experts over many GPUs are started as in the guide to expert parallel
deployment (v0.12.0).

Its images start ``vllm serve`` (docker/Dockerfile; before 0.11 its api_server, which takes the same flags).
The chart: vllm-project/production-stack helm/README.md at 008a23bd, templates/deployment-vllm-multi.yaml at
010004ee. A file of --config has flags as keys, and the command's own go before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog import models
from engine.catalog.models import Model
from engine.frameworks.described import Server
from engine.frameworks.framework import Framework, Sure
from engine.frameworks.servers import READS, UNMODELLED, Pool, ServerCommand, command, each
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Entry, Field, Ignored
from engine.mechanism import memory

if TYPE_CHECKING:
    from engine.serving.deployment import Deployment

FIELDS = {
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
    "max-num-batched-tokens": Field("chunk", TEXT),
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
    "enable-lora": Field("adapters", FLAG),
    "max-loras": Field("slots"),
    "max-lora-rank": Field("adapter_rank"),
    "lora-modules": Field("named_adapters", TEXT),
    "max-cpu-loras": Field("waiting_adapters"),
    "enable-prefix-caching": Field("prefixes", FLAG),
    "enable-chunked-prefill": Field("chunked", FLAG),
    "disable-log-requests": Field("quiet", FLAG),
    "disable-log-stats": Field("quiet", FLAG),
    "enable-auto-tool-choice": Field("tools", FLAG),
    "config": Field("config", TEXT),
}
NOT_MODELLED = {key: why for key, why in UNMODELLED.items() if key not in FIELDS}
NOT_MODELLED |= {"VLLM_PP_LAYER_PARTITION": "stages of unequal layers are not modelled"}
# the values of the chart of vllm-project/production-stack, by the flags that its template passes
CHART = "servingEngineSpec.modelSpec"
CHART_FLAGS = {
    "enableLoRA": "--enable-lora",
    "vllmConfig.enableChunkedPrefill": "--enable-chunked-prefill",
    "vllmConfig.enablePrefixCaching": "--enable-prefix-caching",
    "vllmConfig.maxModelLen": "--max-model-len",
    "vllmConfig.dtype": "--dtype",
    "vllmConfig.tensorParallelSize": "--tensor-parallel-size",
    "vllmConfig.maxNumSeqs": "--max-num-seqs",
    "vllmConfig.gpuMemoryUtilization": "--gpu-memory-utilization",
    "vllmConfig.maxLoras": "--max-loras",
}
KV_CONNECTOR = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
GIB = 2.0**30


class Vllm(ServerCommand):
    """Its data-parallel ranks share experts where that is asked."""

    key = "vllm"
    name = "vLLM"
    place = 50
    fields = FIELDS
    unmodelled = NOT_MODELLED
    program = "vllm"
    module = "vllm.entrypoints"
    share = memory.SERVER_SHARE
    images = ("vllm/vllm-openai", "vllm/vllm-openai-rocm")
    image_runs = ("vllm", "serve")

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """The values of its chart."""
        return Sure.OWN_SECTIONS if any(e.key.startswith(f"{CHART}.") for e in entries) else Sure.NOT

    def commands(self, notation: str, entries: list[Entry]) -> list[list[Entry]]:
        """The servers of the chart's values, each as its template starts it."""
        each: dict[str, list[Entry]] = {}
        for entry in entries:
            if entry.key.startswith(f"{CHART}."):
                number, _, key = entry.key.removeprefix(f"{CHART}.").partition(".")
                each.setdefault(number, []).append(entry._replace(key=key))
        found = []
        for values in each.values():
            model = [e for e in values if e.key == "modelURL"]
            if not model:
                continue
            gpus = [e for e in values if e.key in ("requestGPU", "resources.limits.nvidia.com/gpu")]
            front = ["--gpus", gpus[-1]] if gpus else []
            words: list[str | Entry] = [*front, "vllm", "serve", model[-1]]
            for entry in values:
                if entry.key in CHART_FLAGS:
                    words += [CHART_FLAGS[entry.key], entry]
                elif entry.key.startswith("vllmConfig.extraArgs."):
                    words.append(entry)
            line = model[-1]._replace(start=-1, stop=-1)
            found.append([w if isinstance(w, Entry) else line._replace(value=w) for w in words])
        return found

    def slots(self, d: Draft, shape: Model) -> tuple[int, int]:
        """With --enable-lora one slot of rank 16, unless more are asked for."""
        if not d.given("adapters"):
            return 0, 1
        if models.has_mixers(shape):
            entry = d.settings["adapters"].entry
            d.unmodelled.append(
                Ignored(*entry[:4], "adapters of linear attention and state spaces are not modelled")
            )
            return 0, 1
        return d.get("slots", 1), max(1, d.get("adapter_rank", 16))

    def spread(self, d: Draft, shape: Model, tp: int, replicas: int) -> tuple[int, int, int]:
        """Replicas become groups that share the experts."""
        asked = d.given("expert_parallel")
        return (tp, replicas, 1) if asked and shape.experts and replicas > 1 else (tp, 1, replicas)

    def too_small(self, server: Server, longest: int, needed_bytes: float, cache_bytes: float) -> str:
        """No block, or too few for the longest request."""
        if cache_bytes <= 0:
            return (
                "ValueError: No available memory for the cache blocks. Try increasing "
                "`gpu_memory_utilization` when initializing the engine."
            )
        if needed_bytes <= cache_bytes:
            return ""
        return (
            f"ValueError: To serve at least one request with the models's max seq len ({server.longest}), "
            f"({needed_bytes / GIB:.2f} GiB KV cache is needed, which is larger than the available KV cache "
            f"memory ({cache_bytes / GIB:.2f} GiB). Based on the available memory, the estimated maximum "
            f"model length is {longest}. Try increasing `gpu_memory_utilization` or decreasing "
            "`max_model_len` when initializing the engine."
        )

    def replica(self, of: Deployment, pool: Pool, among: int) -> list[tuple[str, ...]]:
        """The flags of one replica, or of ``among`` equal ones."""
        flags = [self.flag("tp", f"{pool.of.tp}")]
        if among:
            flags.append(self.flag("replicas", f"{among}"))
        if pool.of.pp > 1:
            flags.append(self.flag("pp", f"{pool.of.pp}"))
        if pool.of.dp > 1:
            flags += [
                self.flag("replicas", f"{pool.of.dp}"),
                self.flag("expert_parallel"),
                self.flag("exchange", f"deepep_{'high_throughput' if pool.role == READS else 'low_latency'}"),
                self.flag("halves"),
                self.flag("balanced"),
            ]
        flags += [
            self.flag("longest", f"{of.longest}"),
            self.flag("requests", f"{of.largest_batch * pool.of.pp}"),
            self.flag("chunk", f"{of.chunk}"),
            self.flag("chunked"),
        ]
        flags += self.quantization(of)
        if of.kv_precision == "fp8":
            flags.append(self.flag("kv", "fp8"))
        if of.load.prefix_share:
            flags.append(self.flag("prefixes"))
        if pool.role:
            flags.append(self.flag("kv-transfer-config", f"'{KV_CONNECTOR}'"))
        return flags

    def started(self, of: Deployment, name: str, pool: Pool) -> list[str]:
        """The replicas of a pool by one command, unless their GPUs share experts: then each by its own."""
        if pool.of.dp > 1:
            return [each(pool), *command(self.replica(of, pool, 0), f"vllm serve {name}")]
        return command(self.replica(of, pool, pool.replicas), f"vllm serve {name}")


FRAMEWORK: Framework = Vllm()
