"""NeMo Automodel: ``automodel FILE.yaml``, and that YAML.

Names and defaults: NVIDIA-NeMo/Automodel nemo_automodel/components (distributed/config.py, mesh.py,
pipelining/config.py, moe/parallelizer.py, _peft/lora.py, loss), _transformers/auto_model.py and
examples/llm_benchmark at commit 36044ad3 (August 2026). Models are made in bf16, and what PyTorch's Adam
keeps has their type. FSDP gathers a layer's weights again for its backward pass, but for experts and under a
pipeline, which keep them, and their whole gradients, until the last batch of a step.

From memory: that a masked loss without a wide copy keeps four bytes of a logit.

Left out: gradients that stay whole while batches are summed and the weights are sharded
(``defer_fsdp_grad_sync``), teachers and quantised bases, which are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine import catalog
from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.frameworks import peft, torchtitan
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, Where
from engine.frameworks.settings import FLAG, TEXT, Draft, Entry, Field
from engine.frameworks.writing import keys_of
from engine.mechanism.adapters import ALL_LINEAR
from engine.step.layout import Job, Layout

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.mechanism.adapters import Adapter

FIELDS = {
    "model.pretrained_model_name_or_path": Field("model", TEXT),
    "model.config.pretrained_model_name_or_path": Field("model", TEXT),
    "model.config": Field("model", TEXT),
    "model.torch_dtype": Field("dtype", TEXT),
    "step_scheduler.global_batch_size": Field("global_batch"),
    "step_scheduler.local_batch_size": Field("local_batch"),
    "distributed.strategy": Field("strategy", TEXT),
    "distributed._target_": Field("strategy", TEXT),
    "distributed.tp_size": Field("tp", TEXT),
    "distributed.cp_size": Field("cp", TEXT),
    "distributed.pp_size": Field("pp", TEXT),
    "distributed.ep_size": Field("ep", TEXT),
    "distributed.dp_replicate_size": Field("replicate", TEXT),
    "distributed.sequence_parallel": Field("sequence_parallel", FLAG),
    "distributed.activation_checkpointing": Field("checkpointing", TEXT),
    "distributed.reshard_after_forward": Field("reshard", FLAG),
    "distributed.defer_fsdp_grad_sync": Field("deferred", FLAG),
    "distributed.moe.reshard_after_forward": Field("reshard_experts", FLAG),
    "distributed.pipeline.pp_schedule": Field("schedule", TEXT),
    "distributed.pipeline.pp_microbatch_size": Field("micro_batch"),
    "distributed.pipeline.layers_per_stage": Field("layers_per_stage"),
    "dataset.seq_len": Field("seq"),
    "dataset.seq_length": Field("seq"),
    "packed_sequence.packed_sequence_size": Field("packed"),
    "loss_fn._target_": Field("loss", TEXT),
    "loss_fn.fp32_upcast": Field("upcast", FLAG),
    "optimizer._target_": Field("optimizer", TEXT),
    "optimizer.master_weights": Field("master", FLAG),
    "compile.enabled": Field("compile", FLAG),
    "peft._target_": Field("peft", TEXT),
    "peft.dim": Field("rank"),
    "peft.alpha": Field("alpha", TEXT),
    "peft.match_all_linear": Field("every", FLAG),
    "peft.target_modules": Field("targets", TEXT),
    "peft.use_dora": Field("dora", FLAG),
    "recipe": Field("recipe", TEXT),
}
KEYS = keys_of(FIELDS)
FIELDS |= peft.listed(KEYS["targets"])
DEFERRED = "whole gradients beside sharded weights, while batches are summed, are not modelled"
UNMODELLED = {
    "quantization.load_in_4bit": peft.QUANTISED,
    "quantization.load_in_8bit": peft.QUANTISED,
    "fp8.enabled": "training in fp8 is not modelled here",
    "teacher_model.pretrained_model_name_or_path": "a teacher beside the model is not modelled",
    "distributed.offload_policy": "state on the host is not modelled here",
    "distributed.offload_policy._target_": "state on the host is not modelled here",
    "qat.enabled": "training with a simulated format is not modelled",
}
PACKAGE, PROGRAM = "nemo_automodel", "automodel"
STRATEGIES = ("fsdp2", "ddp", "megatron_fsdp")
RANK, LENGTH, LOCAL = 8, 2048, 1
FUSED = ("fusedlinearcrossentropy", "linear_ce")
MOVES = {"recompute": ("none", "full"), "micro_batch": ()}


class Automodel(Framework):
    """Its command and its YAML."""

    key = "automodel"
    name = "NeMo Automodel"
    place = 42
    fields = FIELDS
    unmodelled = UNMODELLED
    names_model = f"give {KEYS['model']}, or its config.json"
    lightens = (peft.QUANTISED,)
    new_keys = (Where.OVERRIDE,)
    tried = MOVES

    def claims(self, command: Command) -> Claim:
        """Its program is named."""
        for at, word in enumerate(command.words):
            if word.split("/")[-1] == PROGRAM or word.startswith(f"{PACKAGE}."):
                return Claim(Sure.NAMED, at + 1)
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A YAML that builds one of its classes."""
        mine = any(entry.key.endswith("_target_") and entry.value.startswith(PACKAGE) for entry in entries)
        return Sure.OWN_SECTIONS if mine and notation == "yaml" else Sure.NOT

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """Job, layout and precision; what Automodel refuses is noted."""
        tp, cp, pp, ep = (degree(d, name) for name in ("tp", "cp", "pp", "ep"))
        if gpus % (tp * cp * pp):
            d.refuse(
                f"ValueError: world_size ({gpus}) must be divisible by (tp_size * cp_size * pp_size) "
                f"({tp} * {cp} * {pp})",
                "tp",
            )
            tp = cp = pp = 1
        dp = gpus // (tp * cp * pp)
        ep = ep if shape.experts else 1
        if ep > 1 and (dp * cp) % ep:
            d.refuse(
                f"AssertionError: {dp * cp} data-parallel ranks must be divisible by ep_size ({ep})", "ep"
            )
            ep = 1
        local = max(1, d.get("local_batch", LOCAL))
        batch = max(1, d.get("global_batch", local * dp, "a batch of each rank"))
        if batch % (local * dp):
            d.refuse(
                f"AssertionError: global_batch_size {batch} must be divisible by local_batch_size * dp_size "
                f"({local} * {dp})",
                "global_batch",
            )
            batch = local * dp
        micro = max(1, d.get("micro_batch", 1)) if pp > 1 else local
        d.given("micro_batch")
        steps = batch // (local * dp)
        packed = d.given("packed") or 0
        seq = packed or d.get("seq", LENGTH, "no text says how long a sequence is")
        found = adapter(d, shape)
        schedule, chunks = pipelined(d, shape, pp)
        told = (d.get("checkpointing", "false") or "").lower()
        if told == "selective":
            d.lacks("checkpointing", "selective checkpoints are not modelled here")
        zero = self.stage(d, shape, pp, dp * cp, steps, found is not None)
        copies = degree(d, "replicate")
        shard = dp * cp // copies if zero and copies > 1 and dp * cp % copies == 0 else 0
        loss, compiled = losses(d), bool(d.given("compile"))
        by = catalog.training_software(
            PROGRAM,
            sequence_parallel=bool(d.given("sequence_parallel")) or tp == 1,
            kernels="compiled" if compiled else "eager",
            loss=loss,
            loss_chunks=64 if loss == "chunked" else 8,
        )
        precision, state = recipe(d)
        layout = Layout(
            gpus,
            tp,
            pp,
            cp,
            ep,
            zero,
            micro,
            "full" if told in ("true", "full") else "none",
            schedule,
            chunks,
            shard=shard,
        )
        return Meant(gpus, precision, Job(batch, max(1, seq), state, by, adapter=found), layout)

    def stage(self, d: Draft, shape: Model, pp: int, ranks: int, steps: int, adapts: bool) -> int:
        """The ZeRO stage that is nearest to what FSDP keeps."""
        text = (d.get("strategy", STRATEGIES[0]) or "").lower()
        if "ddp" in text:
            return 0
        if "megatron" in text:
            d.lacks("strategy", "Megatron's FSDP is not modelled here")
        deferred = d.get("deferred", True)
        experts = d.given("reshard_experts")
        gathers = experts if shape.experts else d.given("reshard")
        if gathers is None:
            gathers = pp < 2 and not shape.experts
        if ranks < 2:
            return 0
        if not gathers:
            return 1
        if deferred and steps > 1 and not adapts:
            peft.leave(d, "deferred", DEFERRED)
        return 3

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The settings that set one of our names to a value."""
        assert launch.layout is not None
        if name == "recompute":
            return [(KEYS["checkpointing"], "true" if value == "full" else "false")]
        if name == "micro_batch":
            return [(KEYS["micro_batch" if launch.layout.pp > 1 else "local_batch"], str(value))]
        return []


def degree(d: Draft, name: str) -> int:
    """A degree, which may be "none" for what is left or for 1."""
    text = str(d.get(name, "1"))
    if text.lower() in ("none", "null", "-1"):
        return 1
    if not text.isdigit() or not 0 < int(text[:9]) < 10**6:
        d.refuse(f"ValueError: {name}_size must be a whole number of at least 1, got {text[:20]!r}", name)
        return 1
    return int(text)


def pipelined(d: Draft, shape: Model, pp: int) -> tuple[str, int]:
    """The schedule, and its chunks of layers on each stage."""
    each, text = d.given("layers_per_stage"), d.given("schedule")
    if pp < 2:
        return "1f1b", 1
    key = torchtitan.SCHEDULES.get((text or "1f1b").lower())
    if key is None:
        peft.leave(d, "schedule", "this schedule is not modelled")
        return "1f1b", 1
    if key != "interleaved":
        return key, 1
    if not each:
        return key, 2
    return key, max(2, -(-shape.depth // each // pp))


def losses(d: Draft) -> str:
    """How the loss is computed."""
    text = (d.given("loss") or "").split(".")[-1].lower()
    upcast = d.given("upcast")
    if text in FUSED or "chunked" in text:
        return "chunked"
    if text.startswith("te") or upcast is False:
        return "fused"
    return "plain"


def recipe(d: Draft) -> tuple[str, Recipe]:
    """The format of the products, and the bytes of the state, which has the model's type."""
    text = (d.given("optimizer") or "Adam").split(".")[-1].lower()
    if "adam" not in text:
        peft.leave(d, "optimizer", "this optimizer is not modelled")
    if (d.get("dtype", "bf16", "the type that models are made in") or "").split(".")[-1].lower() in (
        "float32",
        "fp32",
    ):
        return "bf16", replace(catalog.recipe("fp32-adam"), precision="bf16", gathered_bytes=2.0)
    found = catalog.recipe("bf16-adam")
    if d.given("master"):
        return "bf16", found
    return "bf16", replace(
        found, key="bf16-adam+narrow", master_bytes=0.0, momentum_bytes=2.0, variance_bytes=2.0
    )


def adapter(d: Draft, shape: Model) -> Adapter | None:
    """LoRA, where there is a section for it."""
    if "peft" not in d.settings and "rank" not in d.settings:
        return None
    d.given("peft")
    if (d.given("targets") or "").strip("'\"") in ("*_proj", "*"):
        d.settings.pop("targets")
    return peft.made(d, shape, peft.Usual(RANK, (ALL_LINEAR,)), False, "rank")


FRAMEWORK: Framework = Automodel()
