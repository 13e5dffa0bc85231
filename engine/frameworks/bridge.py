"""A Megatron-Bridge (or NeMo) recipe with its overrides: ``model.tensor_model_parallel_size=4
train.micro_batch_size=1``.

Only keys that are documented are read: in NVIDIA-NeMo/Megatron-Bridge, scripts/translate_mlm_to_bridge.py at
commit 158aa4e2, docs/megatron-lm-to-megatron-bridge.md at 167ba2ad, docs/training/communication-overlap.md;
under model, ddp and optimizer the fields of Megatron-Core's TransformerConfig, DistributedDataParallelConfig
and OptimizerConfig. Any other is listed as not read. The values that a recipe sets by itself are known of
some performance recipes (``bridge_recipes``); of others what no override gives is assumed, and said so. The
performance scripts' arguments: scripts/performance/argument_parser.py at 067f987d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.base.units import plain
from engine.catalog.models import Model, resized
from engine.frameworks import megatron
from engine.frameworks.bridge_recipes import (
    AWARE,
    FSDP,
    OF_THE_LIBRARY,
    SEQUENCE,
    STEMS,
    WHOLE_GRAPH,
    named_by,
    recipe,
)
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, Where, of_config
from engine.frameworks.known_models import named
from engine.frameworks.megatron import reader, writer
from engine.frameworks.megatron.fields import KEYS as MEGATRON
from engine.frameworks.settings import FLAG, TEXT, Assumed, Draft, Entry, Field, Setting, overrides
from engine.frameworks.writing import Words, keys_of

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.step.cases import ExportedRun

# what a group sets by Megatron-LM's arguments, with underscores: our names
GROUPS = {
    "model": """layers hidden ffn heads kv_heads head_dim vocab seq top_k expert_ffn tp pp pipeline_layout
        cp cp_comm ep expert_tp embedding_counts loss_counts sequence_parallel granularity
        recompute_method recompute_layers recompute_modules mtp fused_loss loss_impl
        overlap_tensor overlap_experts""",
    "train": "micro_batch global_batch",
    "ddp": "distributed overlap overlap_gather fsdp strategy copies",
    "dist": "fsdp",
    "comm_overlap": "overlap_tensor overlap overlap_gather overlap_experts",
    "optimizer": "optimizer aware gradient_dtype master_dtype momentum_dtype variance_dtype",
    "dataset": "seq",
}
TOKENS = "dataset.seq_length"  # of which the model's is made
EVERY_RANK = "each rank runs this: start it by srun, or with torchrun --nproc-per-node 8 in place of python"
NO_RECIPE = (
    "the library has no recipe of that name: write one, with AutoBridge.from_hf_pretrained for its model"
)
FIELDS = {
    f"{group}.{MEGATRON[name].replace('-', '_')}": megatron.FIELDS[MEGATRON[name]]
    for group, names in GROUPS.items()
    for name in names.split()
}
FIELDS |= {
    "model.num_moe_experts": Field("experts"),
    "model.virtual_pipeline_model_parallel_size": Field("interleave"),
    "model.num_layers_in_first_pipeline_stage": Field("first_layers"),
    "model.num_layers_in_last_pipeline_stage": Field("last_layers"),
    "dataset.sequence_length": Field("seq"),  # as it was once called
    "mixed_precision.grad_reduce_in_fp32": Field("wide_gradients", FLAG),
    "ddp.grad_reduce_in_fp32": Field("wide_gradients", FLAG),
    "mixed_precision": Field("mixed", TEXT),
    "recipe": Field("recipe", TEXT),
    "precision": Field("mixed", TEXT),
    "model_recipe_name": Field("recipe", TEXT),
    "compute_dtype": Field("mixed", TEXT),
    "task": Field("task", TEXT),
    "gpu": Field("card", TEXT),
}
SHORT = {"mr": "model_recipe_name", "c": "compute_dtype", "g": "gpu", "ng": "num_gpus"}  # in a command
PERFORMANCE = ("setup_experiment.py", "run_script.py")
UNKNOWN = "the layout that this performance recipe has by itself is not known here"
COUNTED = "qwen3_235b_a22b"  # whose embedding and output count as layers of a pipeline
WHOLE = "what a CUDA graph of a whole step keeps, and experts padded for it, are not modelled"
KEYS = keys_of(FIELDS)
# the sizes of a recipe's model that an override changes: our names, which are Model's too
SIZES = "layers hidden ffn heads kv_heads head_dim vocab experts top_k expert_ffn"
UNMODELLED = {
    f"{group}.{key.replace('-', '_')}": why
    for key, why in megatron.UNMODELLED.items()
    for group in ("model", "train", "optimizer", "comm_overlap")
} | {
    "peft": "adapters (LoRA and its relatives) are not modelled",
    "model.cpu_offloading": "activations offloaded to the host are not modelled",
    "model.hybrid_layer_pattern": "layers of state-space models are not modelled",
}
# a part of a mixed precision's name, and Megatron Core's word for how it scales
SCALINGS = {"mxfp8": "mxfp8", "current": "tensorwise", "subchannel": "blockwise"}
CAN = replace(
    megatron.CAN,
    key="bridge",
    name="Megatron-Bridge on Core 0.15",
    source=f"{megatron.CAN.source}; NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/recipes at 067f987d",
    names=tuple(OF_THE_LIBRARY),
)
DROP = "pretrain sft finetune config perf gpu gpus h100 b200 gb200 bf16 fp8 mock"
WHY = "not overridden, and the recipe's own value is not known here"


def overridden(d: Draft, found: Model) -> Model:
    """A model with the sizes that overrides give it; ValueError where no model can have them."""
    sizes = {name: d.given(name) for name in SIZES.split() if d.given(name) is not None}
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
    stem = name.partition("_pretrain")[0]
    if stem in STEMS:
        return named(STEMS[stem])
    words = [w for w in name.lower().replace("/", "_").replace(".py", "").replace(".", "_").split("_") if w]
    kept = [w for w in words if w not in DROP.split() and not w.endswith("gpu")]
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


def unwritten(name: str, value: object) -> Setting:
    """A setting that no line gives."""
    return Setting(name, value, Entry(name, str(value), "", 0))


def supply(d: Draft, gpus: int, mixed: str) -> list[str]:
    """What a performance recipe that is known here sets, where no override does: our names."""
    told, card = d.given("recipe") or "", (d.given("card") or "").lower()
    task = d.given("task") or "pretrain"
    precise = mixed if "_" in mixed or mixed in ("bf16", "nvfp4") else "bf16"
    found = recipe(told) or recipe(named_by(told, task, gpus, card, precise))
    if found is None:
        if card:  # only a recipe by name has the layout, and no override gives all of it
            d.lacks("recipe", UNKNOWN)
        return []
    values: dict[str, object] = dict(found.sizes.items())
    values |= {"wide_gradients": False, "fused_loss": True, "loss_impl": "te"}
    if found.name.startswith(COUNTED) and found.sizes.get("pp", 1) > 1:
        values |= {"embedding_counts": True, "loss_counts": True}
    if SEQUENCE in found.marks:
        values["sequence_parallel"] = True
    if AWARE in found.marks:
        values["aware"] = True
    if FSDP in found.marks:
        values |= {"fsdp": True, "strategy": "optim_grads_params"}
    for name, value in values.items():
        if name not in d.settings:
            d.settings[name] = unwritten(name, value)
            d.assume(name, value, f"as the recipe {found.name} sets it")
    if WHOLE_GRAPH in found.marks:
        d.lacks("recipe", WHOLE)
    return list(values)


# What a recipe of the library may set by itself, and has to be said where a layout has nothing of it. An
# optimizer's own switch turns the distributed one on for both (config.py, line 2111).
UNLESS_WRITTEN = (
    *((f"model.{key}", "null") for key in ("virtual_pipeline_model_parallel_size", "mtp_num_layers")),
    ("model.pipeline_model_parallel_layout", "null"),
    *((f"model.num_layers_in_{end}_pipeline_stage", "null") for end in ("first", "last")),
    *((f"model.account_for_{end}_in_pipeline_split", "false") for end in ("embedding", "loss")),
    *((f"model.recompute_{what}", "null") for what in ("granularity", "method", "num_layers", "modules")),
    *((f"model.{key}", "false") for key in ("sequence_parallel", "cross_entropy_loss_fusion")),
    *((f"ddp.{key}", "false") for key in ("use_distributed_optimizer", "overlap_param_gather")),
    *((f"optimizer.{key}", "false") for key in ("use_distributed_optimizer", "overlap_param_gather")),
    ("optimizer.use_precision_aware_optimizer", "false"),
)
OF_THE_PRECISION = tuple(MEGATRON[name] for name in ("bf16", "fp8", "narrow_gradients"))
GROUP_OF = {
    "ckpt-format": "checkpoint",
    "train-iters": "train",
}  # of what is written and not read; else model


def own_key(key: str) -> str:
    """The override for one of Megatron-LM's arguments."""
    field = megatron.FIELDS.get(key)
    if field and field.name in KEYS:
        return KEYS[field.name]
    return f"{GROUP_OF.get(key, 'model')}.{key.replace('-', '_')}"


def written(run: ExportedRun, recipe: str = "") -> str:
    """The overrides that give a recipe this layout and batch.

    The recipe, which brings the model, is the one that is named, or the one that is called like the model.
    Its own switches are said as well, because they are on unless an override turns them off.
    """
    name = f"{run.model.key.replace('.', '').replace('-', '_')}_pretrain_config"
    started = recipe or OF_THE_LIBRARY.get(run.model.key, name)
    given = {
        own_key(line.key): "true" if line.value is None else line.value
        for line in writer.layout_lines(run, Words.plain)
        if line.when and line.key not in OF_THE_PRECISION
    }
    if KEYS["recompute_modules"] in given:
        given[KEYS["recompute_modules"]] = f"[{given[KEYS['recompute_modules']].replace(' ', ',')}]"
    if run.zero > 0:
        given |= {f"optimizer.{key}": "true" for key in ("use_distributed_optimizer", "overlap_param_gather")}
    given |= {key: value for key, value in UNLESS_WRITTEN if key not in given}
    tokens = plain(float(run.seq))
    mixed = "bf16_with_fp8_current_scaling_mixed" if run.fp8 else "bf16_mixed"
    given |= {KEYS["seq"]: tokens, TOKENS: tokens, KEYS["mixed"]: mixed}
    if 0 < run.gradient_bytes < 4:
        given[KEYS["wide_gradients"]] = "false"
    lost = "".join([line.lstrip() for line in writer.lost(run, Words)])
    lost += f"# {EVERY_RANK}\n"
    if started == name:
        lost += f"# {NO_RECIPE}\n"
    lines = [f"python run_recipe.py --recipe {started}", *(f"  {key}={given[key]}" for key in given)]
    return lost + " \\\n".join(lines) + "\n"


class Bridge(Framework):
    """A recipe with overrides: words of a command, or assignments to ``cfg``."""

    key = "bridge"
    name = "Megatron-Bridge"
    place = 15
    fields = FIELDS
    unmodelled = UNMODELLED
    lightens = (UNKNOWN,)
    tried = megatron.MOVES
    can = CAN
    program = "megatron-core"
    switches = megatron.OVERLAPPED
    switches_in_fp8 = megatron.NARROW
    recipe_key = "bf16-adam-fp32-grads"
    new_keys = (Where.OVERRIDE,)
    keeps_gradients = True

    def claims(self, command: Command) -> Claim:
        """One of its overrides, or a recipe."""
        mine = any(flag.startswith(("model.", "train.")) and flag in FIELDS for flag in command.flags)
        mine = mine or KEYS["recipe"] in command.flags or bool(command.flags & {"model_recipe_name", "mr"})
        return Claim(Sure.OWN_KEYS if mine else Sure.NOT, command.script)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """Python that sets ``cfg``, or one of the overrides that every recipe has."""
        usual = {KEYS[name] for name in ("tp", "global_batch", "micro_batch")}
        mine = notation == "python" or (notation != "toml" and any(entry.key in usual for entry in entries))
        return Sure.OWN_KEYS if mine else Sure.NOT

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """Flags that are its own, and ``model.tensor_model_parallel_size=4``, with or without a plus sign
        before it."""
        long = [entry._replace(key=SHORT.get(entry.key, entry.key)) for entry in found]
        long = [e._replace(key="world_size") if e.key == "num_gpus" else e for e in long]  # all of them
        kept = [e for e in long if "." in e.key or e.key in FIELDS or e.key == "world_size"]
        given = overrides(words)
        scripts = [w for w in words if w.text.endswith(".py") and "run_" not in w.text]
        script = next((w for w in scripts if not w.text.endswith(PERFORMANCE)), None)
        if script and not any(entry.key == KEYS["recipe"] for entry in given):
            given.append(Entry(KEYS["recipe"], script.text, "", script.line, *script.span()))
        return kept + given

    def named_model(self, d: Draft) -> Model:
        """The model that the recipe is named after, with the sizes that are overridden."""
        return overridden(d, of_recipe(d))

    def model_of(self, d: Draft, config: Callable[[], Model] | None) -> Model:
        """The same of a config.json."""
        return self.named_model(d) if config is None else overridden(d, of_config(d, config))

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """Job, layout and precision, by Megatron-LM's rules with the recipes' usual switches."""
        mixed = (d.given("mixed") or "bf16").lower()
        by_name = supply(d, gpus, mixed)
        switches = {"bf16": True, "distributed": True, "overlap": True}
        if d.given("distributed") is not False:
            switches["overlap_gather"] = True
        for name, value in switches.items():
            if name not in d.settings:
                d.settings[name] = unwritten(name, value)
                d.assume(name, value, "as the library's recipes set it")
        if "fp8" in mixed or "mxfp8" in mixed:
            d.settings["fp8"] = unwritten("fp8", "hybrid")
        for part, scaling in SCALINGS.items():
            if part in mixed:
                d.settings["fp8_recipe"] = unwritten("fp8_recipe", scaling)
        if d.given("wide_gradients") is False:
            d.settings["narrow_gradients"] = unwritten("narrow_gradients", True)
        found = reader.meant(d, shape, gpus)
        for name in ("sequence_parallel", "positions"):
            d.given(name)
        weighty = ("tp", "pp", "cp", "ep", "expert_tp", "micro_batch", "global_batch", "seq")
        weighty = [name for name in weighty if name not in by_name]
        d.assumed = [Assumed(a.name, a.value, WHY) if a.name in weighty else a for a in d.assumed]
        d.settings = {name: one for name, one in d.settings.items() if one.line}
        return found

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The overrides that set one of our names."""
        return [
            (own_key(key), "true" if text == "" else text) for key, text in megatron.edit(name, value, False)
        ]

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """A recipe, that of the launch if it names one, with its sizes, and overrides."""
        recipe = next((one.value for one in said if one.name == "recipe"), "")
        sizes = [f" \\\n  {one.key}={one.value}" for one in said if one.name in SIZES.split()]
        return written(what, recipe).rstrip("\n") + "".join(sizes) + "\n"


FRAMEWORK: Framework = Bridge()
