"""A Megatron-Bridge (or NeMo) recipe with its overrides: ``model.tensor_model_parallel_size=4
train.micro_batch_size=1``.

Only keys that are documented are read: in NVIDIA-NeMo/Megatron-Bridge, scripts/translate_mlm_to_bridge.py at
commit 158aa4e2, docs/megatron-lm-to-megatron-bridge.md at 167ba2ad, docs/training/communication-overlap.md;
under model, ddp and optimizer the fields of Megatron-Core's TransformerConfig, DistributedDataParallelConfig
and OptimizerConfig. Any other is listed as not read. The values that a recipe sets by itself are not known
here: what no override gives is assumed, and said so.
"""

from __future__ import annotations

from typing import Any

from engine.catalog.models import Model, resized
from engine.launch import megatron
from engine.launch.known_models import named
from engine.launch.settings import FLAG, TEXT, Assumed, Draft, Field, Setting
from engine.launch.texts import Entry
from engine.step.export import bridge_key
from engine.step.layout import Job, Layout

NAME = "Megatron-Bridge"
# the arguments of Megatron-LM that a group has by the same names, with underscores
GROUPS = {
    "model": """num-layers hidden-size ffn-hidden-size num-attention-heads num-query-groups kv-channels
        vocab-size seq-length moe-router-topk moe-ffn-hidden-size tensor-model-parallel-size
        pipeline-model-parallel-size
        pipeline-model-parallel-layout context-parallel-size cp-comm-type expert-model-parallel-size
        expert-tensor-parallel-size account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split
        sequence-parallel recompute-granularity recompute-method recompute-num-layers recompute-modules
        mtp-num-layers cross-entropy-loss-fusion cross-entropy-fusion-impl tp-comm-overlap
        overlap-moe-expert-parallel-comm""",
    "train": "micro-batch-size global-batch-size",
    "ddp": """use-distributed-optimizer overlap-grad-reduce overlap-param-gather use-megatron-fsdp
        data-parallel-sharding-strategy num-distributed-optimizer-instances""",
    "dist": "use-megatron-fsdp",
    "comm_overlap": """tp-comm-overlap overlap-grad-reduce overlap-param-gather
        overlap-moe-expert-parallel-comm""",
    "optimizer": """optimizer use-precision-aware-optimizer main-grads-dtype main-params-dtype exp-avg-dtype
        exp-avg-sq-dtype""",
    "dataset": "seq-length",
}
FIELDS = {
    f"{group}.{key.replace('-', '_')}": megatron.FIELDS[key]
    for group, keys in GROUPS.items()
    for key in keys.split()
}
FIELDS |= {
    "model.num_moe_experts": Field("experts"),
    "model.virtual_pipeline_model_parallel_size": Field("interleave"),
    "model.num_layers_in_first_pipeline_stage": Field("first_layers"),
    "model.num_layers_in_last_pipeline_stage": Field("last_layers"),
    "dataset.sequence_length": Field("seq"),
    "ddp.grad_reduce_in_fp32": Field("wide_gradients", FLAG),
    "mixed_precision.grad_reduce_in_fp32": Field("wide_gradients", FLAG),
    "mixed_precision": Field("mixed", TEXT),
    "recipe": Field("recipe", TEXT),
    "precision": Field("mixed", TEXT),
}
# the sizes of a recipe's model that an override changes: our names, which are Model's too
SIZES = (
    "layers",
    "hidden",
    "ffn",
    "heads",
    "kv_heads",
    "head_dim",
    "vocab",
    "experts",
    "top_k",
    "expert_ffn",
)
UNMODELLED = {
    f"{group}.{key.replace('-', '_')}": why
    for key, why in megatron.UNMODELLED.items()
    for group in ("model", "train", "optimizer", "comm_overlap")
} | {
    "peft": "adapters (LoRA and its relatives) are not modelled",
    "model.cpu_offloading": "activations offloaded to the host are not modelled",
    "model.hybrid_layer_pattern": "layers of state-space models are not modelled",
}
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
    """The model that the recipe is named after, with the sizes that are overridden."""
    return overridden(d, of_recipe(d))


def overridden(d: Draft, found: Model) -> Model:
    """A model with the sizes that overrides give it; ValueError where no model can have them."""
    sizes = {name: d.given(name) for name in SIZES if d.given(name) is not None}
    if not sizes:
        return found
    if "head_dim" not in sizes and found.head_dim * found.heads == found.hidden:  # Megatron-LM's own rule
        hidden, heads = sizes.get("hidden", found.hidden), sizes.get("heads", found.heads)
        if heads < 1 or hidden % heads:
            raise ValueError(f"hidden_size {hidden} must be a multiple of num_attention_heads {heads}")
        sizes["head_dim"] = hidden // heads
    name = f"{found.name} with other sizes"
    return resized(found, key="own", name=name, published_params=0.0, **sizes)


def of_recipe(d: Draft) -> Model:
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
