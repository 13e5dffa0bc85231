"""SGLang: ``python -m sglang.launch_server``.

Names and defaults: sgl-project/sglang python/sglang/srt/server_args.py at commit 001067ff; errors:
model_runner.py. Experts over many GPUs are started as in its guide to expert parallelism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog.models import Model
from engine.frameworks.described import Server
from engine.frameworks.framework import Framework
from engine.frameworks.servers import READS, Pool, ServerCommand, command, each
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Field, Ignored

if TYPE_CHECKING:
    from engine.serving.deployment import Deployment

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
    "config": Field("config", TEXT),
}


class Sglang(ServerCommand):
    """With data-parallel attention all tensor ranks share the experts, and attention divides them into
    groups."""

    key = "sglang"
    name = "SGLang"
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

    def too_small(self, server: Server, longest: int, needed_bytes: float, cache_bytes: float) -> str:
        """No room for a cache."""
        return (
            ""
            if cache_bytes > 0
            else "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
            f"Current value: mem_fraction_static={server.share:g}"
        )

    def started(self, of: Deployment, name: str, pool: Pool) -> list[str]:
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
        flags += [
            self.flag("longest", f"{of.longest}"),
            self.flag("requests", f"{of.largest_batch * batches}"),
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
        lines = command(flags, "python -m sglang.launch_server")
        return [each(pool), *lines] if spread else lines


FRAMEWORK: Framework = Sglang()
