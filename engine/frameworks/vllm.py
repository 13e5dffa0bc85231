"""vLLM: ``vllm serve``.

Names and defaults: vllm-project/vllm vllm/engine/arg_utils.py at commit 001999d2 and later names of the
same; written are those of commit 99d7eb5d (0.12 in the making). Errors: v1/core/kv_cache_utils.py and
config.py. What it holds beside weights and cache is ``serving/profiled.py``; what a step may have by
default is of arg_utils.py, get_batch_defaults (8,192 tokens and 1,024 requests from 70 GiB on, but for the
A100, vllm-project/vllm pull requests 12369, 17073, 17885; 16,384 from 160 GiB on with CUDA, issue 53961).
Graphs count to the share since 0.21 (its log: "CUDA graph memory profiling is enabled (default since
v0.21.0)"). The default share is 0.9 in 0.19 and 0.92 by 0.26 (pull request 48601); which release changed it
was not found, 0.20 is taken. --swap-space is gone since 0.18 (unslothai/unsloth-zoo issue 1210),
--enable-reasoning since 0.10 (issue 18538), the first engine since 0.11 (pull request 25033). Once graphs
are captured its sampler warms up in memory of its own (issue 18136, where that fails). From memory: that
graphs of releases before 0.10 have sizes up to 512 whatever the requests; that a step has no more tokens
than all requests together, nor more requests than tokens; how the first engine chose its tokens; that a
module that predicts further tokens is loaded once, and shares embedding and output layer. The connector
between two pools is that of the guide to NixlConnector (docs.vllm.ai, v0.12.0), which also connects pools
of two degrees; experts over many GPUs are started as in the guide to expert parallel deployment (v0.12.0).

Its images start ``vllm serve`` (docker/Dockerfile; before 0.11 its api_server, which takes the same flags).
The chart: vllm-project/production-stack helm/README.md at 008a23bd, templates/deployment-vllm-multi.yaml at
010004ee. A file of --config has flags as keys, and the command's own go before it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import catalog
from engine.catalog import models
from engine.catalog.models import Model
from engine.frameworks.described import Drafters, Server
from engine.frameworks.framework import Framework, Holds, LogLine, Sure
from engine.frameworks.known_models import named
from engine.frameworks.servers import (
    DRAFT,
    READS,
    UNMODELLED,
    WRITES,
    Group,
    Pool,
    ServerCommand,
    command,
    nodes_of,
)
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Entry, Fault, Field, Ignored
from engine.mechanism import memory
from engine.mechanism.shape import shape
from engine.serving import compressed, pictures, profiled

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.serving.deployment import Deployment
    from engine.serving.replica import Replica

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
    "limit-mm-per-prompt": Field("pictures", TEXT),
    "mm-processor-kwargs": Field("pixels", TEXT),
    "mm-encoder-tp-mode": Field("tower", TEXT),
    "language-model-only": Field("text_only", FLAG),
    "speculative-config": Field("drafts", TEXT),
    "kv-cache-memory-bytes": Field("cache_bytes", NUMBER),
    "kv-cache-memory": Field("cache_bytes", NUMBER),
    "cpu-offload-gb": Field("on_host", NUMBER),
    "swap-space": Field("swap", NUMBER),
    "enable-reasoning": Field("reasoning", FLAG),
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
NOT_MODELLED = {key: why for key, why in UNMODELLED.items() if key not in FIELDS} | {
    "decode-context-parallel-size": "a cache that is divided by tokens is not modelled",
    "dcp": "a cache that is divided by tokens is not modelled",
    "prefill-context-parallel-size": "prompts that are divided by tokens are not modelled",
    "kv-offloading-size": "a cache on the host is not modelled",
    "num-redundant-experts": "copies of experts are not modelled",
}
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
ENVIRONMENT = {
    "VLLM_PP_LAYER_PARTITION": Field("stages", TEXT),
    "VLLM_USE_V1": Field("engine"),
    "VLLM_USE_V2_MODEL_RUNNER": Field("runner"),
}
NEWEST = (0, 28)  # taken where no text says which release
FIRST = (0, 7)  # the last release that has the first engine alone
FLAGS_UNTIL = {"reasoning": (0, 9), "swap": (0, 17)}  # the last release that takes a flag
SHARES = ((0, 20), 0.92, 0.9)  # since which release which share, and before
PICKS = (0, 17)  # since which release a kernel picks from the logits
COUNTS_GRAPHS = (0, 21)  # … and graphs count to the share
DSPARK = 3  # layers with which DeepSeek-V4 drafts, in its checkpoint (antirez/ds4 issue 468)
COMPRESSED = "how it lays out a compressed cache is known in fp8 alone"
# on MI300X with steps of 16,384 tokens less than 23.32 GiB of some 70 are left of a share (issue 53961)
ON_AMD = "on AMD what it takes to pick compressed entries is not known, and could decide here"
# since which release a model is its own, and not that of transformers, whose experts no rank shares with
# another before 0.11 (QwenLM/Qwen3-VL issues 1489 and 1493, a week before that release)
KNOWN_SINCE = {"qwen3-vl": (0, 11)}
# since which release weights are shrunk to fp8 as they come (pull request 31914, January 2026)
STREAMS = (0, 15)
LARGE, LARGEST = 70 * 2.0**30, 160 * 2.0**30  # bytes of a card that has more by default
# what NCCL, its buffers and the kernels take outside of PyTorch: 57 runs of 0.19 on H100 (0.25 alone, 2.1
# with tensor ranks); by mid 2026 0.6 on four of them (pull request 48601); 0.34 to 0.43 on cards without a
# switch that adds
ALONE, TOGETHER, SWITCHED, LESS_SINCE = 0.25 * 2.0**30, 0.5 * 2.0**30, 2.1 * 2.0**30, (0, 20)
CONTEXT_BYTES = 0.5 * 2.0**30  # of CUDA, outside of the share: 0.51 GiB in the same logs
# graphs of all 51 sizes: 1.04 in the mean of the 57 runs (0.51 to 1.85); 2.04 with states beside
# attention, as pull request 48601 prints
GRAPHS, GRAPHS_WITH_STATES, SIZES = 1.04 * 2.0**30, 2.04 * 2.0**30, 51
# Graphs of all 67 sizes on cards that reach each other over PCIe alone, where NCCL's sums are captured, too:
# 1.88 on four RTX 4090 (issue 27782), 2.28 (issue 18136)
NCCL_GRAPHS, EVERY_8TH = 2.08 * 2.0**30, 67
PCIE_BYTES_PER_S = 64e9  # of a link, at most
SIZES_BY_REQUESTS, FEWER_SIZES = (0, 10), (0, 12)  # since which release sizes follow the requests, and which
KV_CONNECTOR = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
GIB = 2.0**30

SIDE_CHANNEL = 5600  # the first port at which NIXL's connector offers caches (envs.py)
RPC_PORT = 13345  # at which the first node counts the ranks of the others
# tokens of a step for which DeepEP's low-latency kernels hold buffers: scheduler.py of 0.33,
# DEFAULT_MAX_NUM_BATCHED_TOKENS_FOR_BATCHED_DP; they take what a step may have (all2all_utils.py)
BUFFERED = 256


class Vllm(ServerCommand):
    """Its data-parallel ranks share experts where that is asked."""

    key = "vllm"
    name = "vLLM"
    log_lines = (  # the first only while no prompts are read, so that the rate is that of writing
        LogLine(
            "rate_and_requests",
            r"Avg prompt throughput: 0\.0 tokens/s, "
            r"Avg generation throughput: {number} tokens/s, Running: {number} reqs",
        ),
        LogLine("cache_tokens", r"GPU KV cache size: {number} tokens"),
    )
    place = 50
    fields = FIELDS
    unmodelled = NOT_MODELLED
    program = "vllm"
    module = "vllm.entrypoints"
    share = memory.SERVER_SHARE
    fp8 = "fp8_per_tensor"  # as its documentation of online quantization has it since 0.20
    environment = ENVIRONMENT
    package = "vllm"
    loads_whole = True

    images = ("vllm/vllm-openai", "vllm/vllm-openai-rocm", "vllm-openai-nonroot")
    image_runs = ("vllm", "serve")
    written_for = "0.20 to 0.33"
    image = "vllm/vllm-openai:v0.29.0"
    image_starts = True

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

    def release(self, d: Draft) -> tuple[int, int]:
        """As installed; else by what only some releases have; else the newest, which is assumed."""
        text, engine = d.given("release"), d.given("engine")
        if text:
            parts = text.split(".")
            if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() and len(text) < 20:
                return (FIRST if engine == 0 and int(parts[1]) < 11 else (int(parts[0]), int(parts[1])))[:2]
            d.faults.append(
                Fault(*d.settings["release"].entry[2:4], f"{text[:20]!r} is no release: write vllm==0.8.5")
            )
        if engine is not None:
            return FIRST if engine == 0 else (0, 10)
        until = [last for name, last in FLAGS_UNTIL.items() if d.given(name) is not None]
        if until:
            return min(until)
        d.assume(
            "release", f"{NEWEST[0]}.{NEWEST[1]}", "no text says which: older ones leave less to the cache"
        )
        return NEWEST

    def timed_as(self, release: tuple[int, int]) -> str:
        """That of the nearest release that was timed."""
        return "vllm-0" if release <= FIRST else "vllm-0.11"

    def usual_share(self, release: tuple[int, int]) -> float:
        """0.92 since about 0.20, 0.9 before."""
        return SHARES[1] if release >= SHARES[0] else SHARES[2]

    def more_of(self, d: Draft, shape: Model, server: Server) -> Server:
        """Pictures, and a pipeline's stages."""
        text, limits = bool(d.given("text_only")), d.given("pictures") or ""
        videos = not text and pictures.allowed(limits, "video")
        allowed = videos or (not text and pictures.allowed(limits, "image"))
        engine = d.given("engine")
        second = server.release > FIRST or (engine is not None and engine > 0)
        crosses = pictures.CROSSES if shape.key in pictures.CROSSED and allowed else ""
        if crosses and second:
            d.unmodelled.append(Ignored(*d.settings["model"].entry[:4], crosses))
        if compressed.compresses(shape) and server.kv_precision != "fp8":
            place = d.settings["model"].entry[:4] if "model" in d.settings else ("", "", "", 0)
            d.unmodelled.append(Ignored(*place, COMPRESSED))
        if d.given("runner"):
            d.lacks("runner", "the second runner's sampler, which its profile leaves out, is not modelled")
        text_of_drafts = d.given("drafts")
        drafts = self.drafts(d, shape, text_of_drafts) if text_of_drafts else None
        listed = d.given("stages")
        fullest = self.fullest(d, shape, server, listed) if listed else 0.0
        return replace(
            server,
            second=second,
            crosses="" if second else crosses,
            loaded_whole=server.loaded_whole and server.release < STREAMS,
            pictures=allowed,
            videos=videos,
            text_only=text,
            pixels=pictures.pixels_of(d.given("pixels") or ""),
            tower_whole=(d.given("tower") or "").lower() == "data",
            fullest=fullest,
            drafts=drafts,
            cache_bytes=d.given("cache_bytes") or 0.0,
        )

    def drafts(self, d: Draft, shape: Model, text: str) -> Drafters | None:
        """What ``--speculative-config`` names: n-grams take nothing, a model's own modules a layer each,
        another model its weights and its cache. Heads that were trained for a model are not in the
        catalogue."""
        try:
            said = json.loads(text)
        except json.JSONDecodeError:
            said = None
        if not isinstance(said, dict):
            entry = d.settings["drafts"].entry
            words = f"{entry.key} must be an object in JSON, got {text[:20]!r}"
            d.faults.append(Fault(entry.file, entry.line, words))
            return None
        method, name = str(said.get("method") or "").lower(), str(said.get("model") or "")
        if "ngram" in method or "suffix" in method or name == "[ngram]":
            return Drafters()
        if "mtp" in method and shape.mtp_modules and not name:
            return Drafters(modules=1)
        if method == "dspark" and compressed.compresses(shape) and not name:
            return Drafters(modules=DSPARK)
        if name and method in ("", "draft_model") and catalog.model_key(name):
            return Drafters(model=named(name))
        d.lacks("drafts", DRAFT)
        return None

    def fullest(self, d: Draft, shape: Model, server: Server, listed: str) -> float:
        """The share of the layers on the fullest stage of ``16,32``."""
        parts = [int(part) for part in listed.split(",") if part.strip().isdigit() and len(part) < 6]
        if len(parts) != server.pp:
            d.refuse(
                f"ValueError: len(partitions)={len(parts)} does not match pp_size={server.pp}.", "stages"
            )
        elif sum(parts) != shape.depth:
            d.refuse(f"ValueError: sum(partitions)={sum(parts)} does not match {shape.depth}.", "stages")
        else:
            return max(parts) / shape.depth
        return 0.0

    def settled(self, server: Server, gpu: Gpu) -> Server:
        """Tokens of a step and requests at once, as the card and the release have them."""
        s, large = server, float(memory.card_bytes(gpu)) >= LARGE and "a100" not in gpu.name.lower()
        second = s.second
        largest = float(memory.card_bytes(gpu)) >= LARGEST and gpu.vendor == "NVIDIA" and s.release >= NEWEST
        requests = s.requests if s.requests_said else 1024 if large and second else self.requests
        chunk = s.chunk
        if chunk is None and second:
            chunk = 16384 if largest else 8192 if large else 2048
            chunk = min(chunk, requests * s.longest)
        elif chunk is None:  # whole prompts, but for long ones since 0.5
            chunk = 2048 if s.longest > 32768 and s.release >= (0, 5) else max(s.longest, 2048)
        return replace(s, chunk=chunk, requests=min(requests, chunk) if second else requests)

    def holds(self, server: Server, model: Model, gpu: Gpu) -> Holds:
        """The profiling run's peak, what lies outside of PyTorch, and the graphs."""
        s, size = server, shape(model)
        copies = profiled.PICKED if s.release >= PICKS else profiled.SORTED
        peak = profiled.peak_bytes(size, float(s.chunk or 2048), float(s.requests), float(s.tp), copies)
        if s.second and s.release <= FIRST:
            peak = profiled.early_peak_bytes(size, float(s.chunk or 2048), float(s.tp))
        peak, less, more = self.with_pictures(s, model, peak)
        beyond = self.tower(s, model) + self.whole_experts(s, model)
        doubt = pictures.TURNS
        if compressed.compresses(model) and gpu.vendor == "AMD":
            more, doubt = more + float(memory.capacity_bytes(gpu)), ON_AMD
        outside = ALONE
        if s.tp * s.dp > 1:
            outside = SWITCHED if gpu.sums_in_switch and s.release < LESS_SINCE else TOGETHER
        inside = {"activations": peak, "framework": outside}
        graphs = 0.0 if s.eager else self.graphs_bytes(s, gpu, float(size.state_bytes) > 0)
        if s.release >= COUNTS_GRAPHS:
            inside = inside | {"graphs": graphs}
            return Holds(inside, 0.0, 0.0, less, more, beyond, True, doubt)
        if s.release <= FIRST:
            return Holds(inside, graphs, peak - CONTEXT_BYTES, less, more, beyond, False, doubt)
        # its sampler warms up once graphs are captured (``_dummy_sampler_run``, issue 18136): what the run
        # took for it is needed again
        rows = min(s.requests, s.chunk or s.requests)
        sampled = profiled.sampler_bytes(size, float(rows), float(rows), copies)
        spare = peak - CONTEXT_BYTES
        return Holds(inside, graphs + sampled, spare, less, more, beyond, True, doubt)

    def graphs_bytes(self, s: Server, gpu: Gpu, states: bool) -> float:
        """What graphs take of all sizes that are captured."""
        most = GRAPHS_WITH_STATES if states else GRAPHS
        largest = min(2 * s.requests, 512)
        if s.second and s.release < SIZES_BY_REQUESTS:
            largest = 512
        sums = (
            s.tp > 1 and s.second and gpu.link_bytes_per_s <= PCIE_BYTES_PER_S and s.release < COUNTS_GRAPHS
        )
        each = NCCL_GRAPHS / EVERY_8TH if sums else most / SIZES
        return each * sizes_of(largest, s.release < FEWER_SIZES)

    def with_pictures(self, s: Server, model: Model, peak: float) -> tuple[float, float, float]:
        """The run's peak where the tower reads too, and by how much it may be less and more."""
        if s.crosses:
            layer, beside = pictures.crossed_bytes(
                pictures.CROSSED[model.key], float(s.requests), float(s.tp)
            )
            low, most = max(peak, layer / pictures.OFF + beside), max(peak, layer + beside)
            return most, most - low, max(peak, layer * pictures.OFF + beside) - most
        tower = model.tower
        if tower is None or not tower.most or not s.pictures:
            return peak, 0.0, 0.0
        ranks = 1.0 if s.tower_whole else float(s.tp)
        read = pictures.tokens(tower, float(s.chunk or 2048), s.pixels)
        if s.videos and s.second:
            read = max(read, pictures.video_tokens(model.key, tower, s.longest, s.pixels, s.release))
        taken = pictures.read_bytes(tower, read, ranks)
        kept = pictures.kept_bytes(tower, read, float(model.hidden))
        low, most = max(peak, taken / pictures.OFF), max(peak, taken)
        return most + kept, most - low, max(peak, taken * pictures.OFF) - most

    def whole_experts(self, s: Server, model: Model) -> float:
        """Weights of routed experts that each rank has beside its part, where a release without the model
        runs that of transformers, which cuts none of them."""
        since = next((KNOWN_SINCE[name] for name in KNOWN_SINCE if model.key.startswith(name)), FIRST)
        if not model.experts or s.release >= since:
            return 0.0
        routed = float(shape(model).routed_params_per_layer) * float(model.depth)
        return 2.0 * routed * (1.0 - 1.0 / s.tp) / s.cut

    def tower(self, s: Server, model: Model) -> float:
        """Bytes of the tower that are not counted with the layers; below 0 where it is not loaded."""
        tower = model.tower
        params = float(model.extra_params)
        if tower is None:
            return 0.0
        if not s.pictures and s.text_only:
            return -2.0 * params / s.tp
        whole = params + tower.left_out
        return 2.0 * (whole if s.tower_whole else whole / s.tp) - 2.0 * params / s.tp

    def too_many(self, server: Server, blocks: int) -> str:
        """Graphs are captured of a step of all requests."""
        if server.eager:
            return ""
        return (
            f"ValueError: max_num_seqs ({server.requests}) exceeds available Mamba cache blocks ({blocks}). "
            "Each decode sequence requires one Mamba cache block, so CUDA graph capture cannot proceed. "
            f"Please lower max_num_seqs to at most {blocks} or increase gpu_memory_utilization."
        )

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
        requests, chunk = of.largest_batch * pool.of.pp, of.chunk
        if pool.role == WRITES:  # no prompt comes, and low-latency buffers are as large as a step may be
            chunk = max(BUFFERED if pool.of.dp > 1 else chunk, requests)
        flags = [self.flag("tp", f"{pool.of.tp}")]
        if among > 1:
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
            self.flag("requests", f"{min(requests, chunk)}"),  # a step has a token of each, so no more
            self.flag("chunk", f"{chunk}"),
            self.flag("chunked"),
        ]
        flags += self.over_nodes(pool.of)
        flags += self.quantization(of)
        if of.kv_precision == "fp8":
            flags.append(self.flag("kv", "fp8"))
        if of.load.prefix_share:
            flags.append(self.flag("prefixes"))
        if pool.role:
            flags.append(self.flag("kv-transfer-config", f"'{KV_CONNECTOR}'"))
        return flags

    def started(self, of: Deployment, name: str, pool: Pool, port: str = "") -> list[str]:
        """The replicas of a pool by one command, unless their GPUs share experts: then each by its own."""
        among = 0 if pool.of.dp > 1 else pool.replicas
        return command([*self.replica(of, pool, among), *self.at_port(port)], f"vllm serve {name}")

    def variables(self, of: Deployment, group: Group, counted: bool) -> list[str]:
        """Where a pool's worker offers its caches: its own machine, to which nobody else comes by the usual
        address, and a port; each of its ranks takes the next one."""
        if not group.pool.role:
            return []
        first = SIDE_CHANNEL + group.first
        told = ["VLLM_NIXL_SIDE_CHANNEL_HOST=${HERE:?the address of this node}"] if group.alone else []
        port = f"$(({first} + {group.each} * i))" if counted else f"{first}"
        return [*told, f"VLLM_NIXL_SIDE_CHANNEL_PORT={port}"]

    def over_nodes(self, one: Replica) -> list[tuple[str, ...]]:
        """Data-parallel ranks are counted from node to node, and the ranks of a pipeline are a node's each;
        only the first node answers."""
        nodes = nodes_of(one)
        if nodes == 1:
            return []
        first = '"${FIRST:?the address of the first node}"'
        if one.dp > 1:
            here = one.dp // nodes
            return [
                self.flag("data-parallel-size-local", f"{here}"),
                self.flag("data-parallel-address", first),
                self.flag("data-parallel-rpc-port", f"{RPC_PORT}"),
                (f"${{LATER:+--headless --data-parallel-start-rank $(({here} * LATER))}}",),
            ]
        return [
            self.flag("nnodes", f"{nodes}"),
            self.flag("node-rank", "${LATER:-0}"),
            self.flag("master-addr", first),
            ("${LATER:+--headless}",),
        ]


def sizes_of(largest: int, every_8th: bool = False) -> int:
    """Of how many sizes of a step a graph is captured: 1, 2, 4, every 8th up to 256, every 16th beyond; older
    releases take every 8th of all."""
    few = 3 if largest >= 4 else largest
    if every_8th:
        return few + largest // 8
    return few + min(largest, 256) // 8 + max(0, largest - 256) // 16


FRAMEWORK: Framework = Vllm()
