"""A Megatron-Bridge (or NeMo) recipe with its overrides: ``model.tensor_model_parallel_size=4
train.micro_batch_size=1``.

The fields are Megatron-LM's by other names (docs.nvidia.com/nemo/megatron-bridge, *Megatron-LM to Megatron
Bridge*, 0.6). The values that a recipe sets by itself are not known here: what no override gives is assumed,
and said so.
"""

from __future__ import annotations

from typing import Any

from engine.catalog.models import Model
from engine.launch import megatron
from engine.launch.known_models import named
from engine.launch.settings import FLAG, TEXT, Assumed, Draft, Field, Setting
from engine.launch.texts import Entry
from engine.step.export import bridge_key
from engine.step.layout import Job, Layout

NAME = "Megatron-Bridge"
GROUPS = (
    "model",
    "train",
    "ddp",
    "optimizer",
    "dataset",
    "comm_overlap",
    "mixed_precision",
    "dist",
    "tokenizer",
)
OTHER = {
    "model.virtual_pipeline_model_parallel_size": Field("interleave"),
    "model.seq_length": Field("seq"),
    "dataset.sequence_length": Field("seq"),
    "dataset.seq_length": Field("seq"),
    "model.num_layers_in_first_pipeline_stage": Field("first_layers"),
    "model.num_layers_in_last_pipeline_stage": Field("last_layers"),
    "model.cross_entropy_loss_fusion": Field("fused_loss", FLAG),
    "model.cross_entropy_fusion_impl": Field("loss_impl", TEXT),
    "comm_overlap.tp_comm_overlap": Field("overlap_tensor", FLAG),
    "comm_overlap.overlap_grad_reduce": Field("overlap", FLAG),
    "mixed_precision.grad_reduce_in_fp32": Field("wide_gradients", FLAG),
    "mixed_precision": Field("mixed", TEXT),
    "recipe": Field("recipe", TEXT),
    "precision": Field("mixed", TEXT),
}
FIELDS = {
    f"{group}.{key.replace('-', '_')}": field for key, field in megatron.FIELDS.items() for group in GROUPS
} | OTHER
UNMODELLED = {
    f"{group}.{key.replace('-', '_')}": why
    for key, why in megatron.UNMODELLED.items()
    for group in GROUPS[:2]
} | {"peft": "adapters (LoRA and its relatives) are not modelled"}
DROP = (
    "pretrain",
    "sft",
    "finetune",
    "config",
    "perf",
    "gpu",
    "gpus",
    "h100",
    "b200",
    "gb200",
    "bf16",
    "fp8",
    "mock",
)
WHY = "not overridden, and the recipe's own value is not known here"


def model(d: Draft) -> Model:
    """The model that the recipe is named after."""
    name = d.given("recipe") or ""
    words = [w for w in name.lower().replace("/", "_").replace(".py", "").replace(".", "_").split("_") if w]
    kept = [w for w in words if w not in DROP and not w.endswith("gpu")]
    for start in range(len(kept)):
        for stop in range(len(kept), start, -1):
            try:
                return named(_dotted("-".join(kept[start:stop])))
            except ValueError:
                continue
    raise ValueError(
        f"the recipe {name[:60]!r} names no model of the catalogue: give its config.json as well"
    )


def _dotted(name: str) -> str:
    """llama31 -> llama3.1, which recipes write without the point."""
    for whole in ("llama31", "llama32", "llama33", "qwen25"):
        name = name.replace(whole, f"{whole[:-1]}.{whole[-1]}")
    return name


def layout(d: Draft, shape: Model, gpus: int) -> tuple[Job, Layout, str]:
    """Job, layout and precision, by Megatron-LM's rules with the recipes' usual switches."""
    mixed = (d.given("mixed") or "bf16").lower()
    switches = {"bf16": True, "distributed": True, "overlap": True}
    if d.given("distributed") is not False:
        switches["overlap_gather"] = True
    for name, value in switches.items():
        if name not in d.settings:
            d.settings[name] = unwritten(name, value)
            d.assume(name, value, "as the library's recipes set it")
    if "fp8" in mixed or "mxfp8" in mixed:
        d.settings["fp8"] = unwritten("fp8", "hybrid")
    if d.given("wide_gradients") is False:
        d.settings["narrow_gradients"] = unwritten("narrow_gradients", True)
    job, found, precision = megatron.layout(d, shape, gpus)
    for name in ("sequence_parallel", "positions"):
        d.given(name)
    weighty = ("tp", "pp", "cp", "ep", "expert_tp", "micro_batch", "global_batch", "seq")
    d.assumed = [Assumed(a.name, a.value, WHY) if a.name in weighty else a for a in d.assumed]
    d.settings = {name: one for name, one in d.settings.items() if one.line}
    return job, found, precision


def unwritten(name: str, value: object) -> Setting:
    """A setting that no line gives."""
    return Setting(name, value, Entry(name, str(value), "", 0))


def write(name: str, value: object, launch: Any) -> list[tuple[str, str | None]]:
    """The overrides that set one of our names to a value."""
    return [
        (bridge_key(key), "true" if text == "" else text) for key, text in megatron.write(name, value, launch)
    ]


MOVES = megatron.MOVES
