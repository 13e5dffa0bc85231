"""SGLang: ``python -m sglang.launch_server``.

Names and defaults: sgl-project/sglang python/sglang/srt/server_args.py at commit 001067ff; errors:
model_runner.py. Experts over many GPUs are started as in its guide to expert parallelism.

The default share is what the steps of a prefill and the graphs leave, of the card as nvidia-smi has it: its
pull request 10975 of September 2025, server_args.py; 0.828 on one H100 is its issue 29092. The sizes of
cards that it tells apart are as remembered of that file. Before, it was a table by sizes of cards.

The share is of weights and cache alone (model_runner.py, ``profile_max_num_token``: what is free behind the
weights, less all but the share of what was free before them). Steps and graphs have to do with the rest,
whoever sets the share; its guide to tuning says so, too: a prefill that runs out wants a smaller chunk or a
smaller share. Left out: what it takes off for models that read pictures, and steps where attention is
data-parallel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from engine.catalog.models import Model
from engine.frameworks.described import Server
from engine.frameworks.framework import Framework, Holds, LogLine
from engine.frameworks.servers import READS, Group, Pool, ServerCommand, command, nodes_of, tokens_of
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Field, Ignored
from engine.mechanism import memory
from engine.mechanism.shape import shape
from engine.serving import profiled

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.serving.deployment import Deployment
    from engine.serving.replica import Replica

FIELDS = {
    "model-path": Field("model", TEXT),
    "model": Field("model", TEXT),
    "tp-size": Field("tp"),
    "tp": Field("tp"),
    "tensor-parallel-size": Field("tp"),
    "pp-size": Field("pp"),
    "pipeline-parallel-size": Field("pp"),
    "dp-size": Field("replicas"),
    "dp": Field("replicas"),
    "data-parallel-size": Field("replicas"),
    "mem-fraction-static": Field("share", NUMBER),
    "context-length": Field("longest", TEXT),
    "max-running-requests": Field("requests"),
    "chunked-prefill-size": Field("chunk", TEXT),
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
    "moe-runner-backend": Field("expert_kernels", TEXT),
    "enable-two-batch-overlap": Field("halves", FLAG),
    "disable-cuda-graph": Field("eager", FLAG),
    "enable-torch-compile": Field("compiled", FLAG),
    "config": Field("config", TEXT),
}


MIB = 2.0**20
# tokens that a rank may send by DeepEP's low-latency kernels in a step, and at most (environ.py and
# layers/moe/token_dispatcher/deepep.py of 0.5.23)
USUALLY_SENT, MOST_SENT = 128, 1024
MEET_PORT = 20000  # of the first node of a replica
# at which a server that prefills is asked for caches (arg_groups/fields/disagg.py of 0.5.23)
BOOTSTRAP = 8998


class Sized(NamedTuple):
    """What it takes for cards of less than so many GiB."""

    below: float
    chunk: int  # tokens of a prefill's step
    graphs: int  # requests of the largest graph …
    graphs_of_four: int  # … with four tensor ranks and more


SIZES = (
    Sized(20, 2048, 8, 8),
    Sized(35, 2048, 24, 80),
    Sized(60, 4096, 32, 160),
    Sized(160, 8192, 256, 512),
    Sized(10**6, 16384, 512, 512),
)
CONSTANT, A_TOKEN, A_REQUEST, A_NODE, LEAST_LARGE = 512.0, 1.5, 2.0, 1024.0, 10240.0  # MiB
LARGE = 60 * 1024  # … of a card that keeps at least the last free
UNDIVIDED = 16384  # tokens of a step without chunks (max_prefill_tokens)


def sized(gpu: Gpu) -> Sized:
    """What it takes for a card of this size."""
    card = float(memory.card_bytes(gpu)) / MIB
    return next(one for one in SIZES if card < one.below * 1024)


def graphs_mib(server: Server, size: Sized) -> float:
    """MiB of the graphs of decoding, by the requests of the largest."""
    return A_REQUEST * (size.graphs if server.tp * server.dp < 4 else size.graphs_of_four)


class Sglang(ServerCommand):
    """With data-parallel attention all tensor ranks share the experts, and attention divides them into
    groups."""

    key = "sglang"
    port = 30000
    port_step = (
        20  # with attention apart, six ports from 234 above it on are taken (server_args.py, PortArgs)
    )
    listens = "0.0.0.0"
    written_for = "0.5.5 to 0.5.23"
    image = "lmsysorg/sglang:v0.5.18"
    name = "SGLang"
    log_lines = (
        LogLine("requests_and_rate", r"#running-req: {number},.*gen throughput \(token/s\): {number}"),
        LogLine("requests_and_held", r"#running-req: {number}, #token: {number}"),
        LogLine("cache_tokens", r"max_total_num_tokens={number}"),
    )
    place = 60
    fields = FIELDS
    program = "sglang"
    module = "sglang.launch_server"
    share = 0.88
    limits_all = True

    def spread(self, d: Draft, shape: Model, tp: int, replicas: int) -> tuple[int, int, int]:
        """Tensor ranks are divided where attention is data-parallel."""
        divided = d.given("dp_attention")
        if divided and not shape.experts:
            entry = d.settings["dp_attention"].entry
            d.unmodelled.append(
                Ignored(*entry[:4], "data-parallel attention of a dense model is not modelled")
            )
        if not divided or not shape.experts or replicas < 2:
            return tp, 1, replicas
        if tp % replicas:
            d.refuse(
                f"AssertionError: tp_size ({tp}) must be divisible by dp_size ({replicas})", "dp_attention"
            )
            return tp, 1, 1
        return tp // replicas, replicas, 1

    def tokens_of_a_step(self, d: Draft, text: str) -> int | None:
        """-1 is that prompts are not divided: a step has as many whole ones as its other limit allows."""
        return UNDIVIDED if text == "-1" else tokens_of(d, text, "chunk")

    def settled(self, server: Server, gpu: Gpu) -> Server:
        """The share and the tokens of a step, as the card has them."""
        card, size = float(memory.card_bytes(gpu)) / MIB, sized(gpu)
        chunk = server.chunk or size.chunk
        if server.share_said or server.dp > 1:  # what groups pad grows with them, beyond any card for many
            return replace(server, chunk=chunk)
        ranks = server.tp * server.dp
        graphs = graphs_mib(server, size)
        kept = CONSTANT + max(chunk, 2048) * A_TOKEN + graphs + ranks * server.pp / 8 * A_NODE
        kept = max(kept, LEAST_LARGE) if card > LARGE else kept
        return replace(server, chunk=chunk, share=round(1000 * (card - kept) / card) / 1000)

    def holds(self, server: Server, model: Model, gpu: Gpu) -> Holds:
        """What it counts to its share; and beside the share the largest step of a prefill, and the graphs of
        decoding as it reserves for them."""
        inside = {"framework": memory.FRAMEWORK_BYTES}
        if server.dp > 1:
            return Holds(inside)
        graphs = 0.0 if server.eager else graphs_mib(server, sized(gpu)) * MIB
        tokens = float(server.chunk or sized(gpu).chunk)
        step = profiled.step_bytes(shape(model), tokens, float(server.tp))
        return Holds(inside, step + graphs)

    def too_small(self, server: Server, longest: int, needed_bytes: float, cache_bytes: float) -> str:
        """No room for a cache."""
        return (
            ""
            if cache_bytes > 0
            else "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
            f"Current value: mem_fraction_static={server.share:g}"
        )

    def started(self, of: Deployment, name: str, pool: Pool, port: str = "") -> list[str]:
        """Limits are those of all that one command starts. Where GPUs share experts it is one replica, and
        its tensor ranks are all of them; attention divides them anew."""
        spread = pool.of.dp > 1
        batches = pool.of.batches if spread else pool.of.batches * pool.replicas
        flags = [
            self.flag("model", name),
            self.flag("tp", f"{pool.of.gpus if spread else pool.of.tp}"),
            self.flag("replicas", f"{pool.of.dp if spread else pool.replicas}"),
        ]
        if pool.of.pp > 1:
            flags.append(self.flag("pp", f"{pool.of.pp}"))
        if spread:
            flags += [
                self.flag("ep", f"{pool.of.gpus}"),
                self.flag("dp_attention"),
                self.flag("dp_head"),
                self.flag("exchange", "deepep"),
                self.flag("exchange_mode", "normal" if pool.role == READS else "low_latency"),
                self.flag("halves"),
            ]
        if (
            spread and of.weights == "bf16"
        ):  # no other kernel takes DeepEP's tokens in 16 bits (ep_moe/layer.py)
            flags.append(self.flag("expert_kernels", "deep_gemm"))
        requests = of.largest_batch
        if spread and pool.role != READS:
            requests = min(requests, MOST_SENT)
        flags += [
            self.flag("longest", f"{of.longest}"),
            self.flag("requests", f"{requests * batches}"),
            self.flag("chunk", f"{of.chunk * (pool.of.dp if spread else 1)}"),
        ]
        if pool.role:
            flags += [
                self.flag("disaggregation-mode", pool.role),
                self.flag("disaggregation-transfer-backend", "nixl"),
            ]
        else:
            flags.append(self.flag("mixed"))
        flags += self.quantization(of)
        if of.kv_precision == "fp8":
            flags.append(self.flag("kv", "fp8_e4m3"))
        if not of.load.prefix_share:
            flags.append(self.flag("disable-radix-cache"))
        flags += self.over_nodes(pool.of)
        return command([*flags, *self.at_port(port)], "python -m sglang.launch_server")

    def beside_pools(self, of: Deployment) -> list[str]:
        """The router that its makers have for two pools (the package sglang-router), which has to be told the
        address of each server."""
        if not of.apart:
            return []
        return [
            "in front of the two pools stands a router (pip install sglang-router), with --prefill and",
            "--decode as often as there are servers: python -m sglang_router.launch_router",
            f"--pd-disaggregation --prefill http://ADDRESS:PORT {BOOTSTRAP} --decode http://ADDRESS:PORT",
        ]

    def variables(self, of: Deployment, group: Group, counted: bool) -> list[str]:
        """How many tokens a rank may send to experts in a step, where that is more than usual."""
        writes = group.pool.of.dp > 1 and group.pool.role != READS
        if not writes or of.largest_batch <= USUALLY_SENT:
            return []
        return [f"SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK={min(of.largest_batch, MOST_SENT)}"]

    def over_nodes(self, one: Replica) -> list[tuple[str, ...]]:
        """All nodes meet at the first one's address."""
        nodes = nodes_of(one)
        if nodes == 1:
            return []
        return [
            self.flag("nnodes", f"{nodes}"),
            self.flag("node-rank", "${LATER:-0}"),
            self.flag("dist-init-addr", f'"${{FIRST:?the address of the first node}}:{MEET_PORT}"'),
        ]


FRAMEWORK: Framework = Sglang()
