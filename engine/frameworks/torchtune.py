"""torchtune: ``tune run RECIPE --config NAME-OR-FILE key=value …``, and its YAML.

Names, defaults and errors: pytorch/torchtune recipes/*.py, torchtune/modules/loss/cross_entropy_loss.py,
torchtune/models and torchtune/training at commit bd2a0fc7 (April 2026); what named configurations say is in
``torchtune_configs``. Weights, gradients and Adam's moments have the dtype of the model, and there is no
fp32 copy. QLoRA's base is torchao's NF4, whose scales are quantised. bitsandbytes' paged optimizers count as
on the host, where the driver moves their state while the GPU is full; where there is room it stays.

From memory: that bitsandbytes' PagedAdamW keeps its moments in fp32.

Left out: adapters of the output layer, preference pairs, distillation and training with simulated formats,
which are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine import catalog
from engine.catalog.models import Model, parameters
from engine.catalog.recipes import Recipe
from engine.frameworks import peft
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, Where
from engine.frameworks.known_models import named
from engine.frameworks.settings import FLAG, TEXT, Draft, Entry, Field
from engine.frameworks.torchtune_configs import (
    CHECKPOINTS,
    COMPILED,
    DORA,
    HOST,
    IN_BACKWARD,
    OFFLOADS,
    OLD_CHUNKS,
    OUTPUT,
    PAGED,
    PAGED_8BIT,
    PAIRS,
    QUANTISED,
    SIMULATED,
    TEACHER,
    Config,
    config,
)
from engine.frameworks.writing import keys_of
from engine.mechanism import adapters
from engine.mechanism.adapters import Adapter
from engine.step.layout import Job, Layout

if TYPE_CHECKING:
    from engine.frameworks.described import Launch

MOST = 8  # of a list of matrices
FIELDS = {
    "model._component_": Field("model", TEXT),
    "model": Field("model", TEXT),
    "model.lora_attn_modules": Field("targets", TEXT),
    "model.apply_lora_to_mlp": Field("mlp", FLAG),
    "model.apply_lora_to_output": Field("output", FLAG),
    "model.lora_rank": Field("rank"),
    "model.lora_alpha": Field("alpha", TEXT),
    "model.lora_dropout": Field("lora_dropout", TEXT),
    "model.use_dora": Field("dora", FLAG),
    "model.quantize_base": Field("quantised", FLAG),
    "tokenizer.max_seq_len": Field("seq"),
    "dataset.max_seq_len": Field("seq"),  # of early releases
    "dataset.packed": Field("packed", FLAG),
    "batch_size": Field("micro_batch"),
    "gradient_accumulation_steps": Field("accumulated"),
    "optimizer._component_": Field("optimizer", TEXT),
    "optimizer": Field("optimizer", TEXT),
    "optimizer.fused": Field("fused", FLAG),
    "optimizer_in_bwd": Field("in_backward", FLAG),
    "loss._component_": Field("loss", TEXT),
    "loss": Field("loss", TEXT),
    "loss.num_output_chunks": Field("chunks"),
    "compile": Field("compile", FLAG),
    "dtype": Field("dtype", TEXT),
    "enable_activation_checkpointing": Field("checkpointing", FLAG),
    "enable_activation_offloading": Field("activations", FLAG),
    "fsdp_cpu_offload": Field("host_all", FLAG),
    "fsdp_reshard_after_forward": Field("reshard", FLAG),
    "tensor_parallel_dim": Field("tp"),
    "context_parallel_dim": Field("cp"),
    "data_parallel_replicate_dim": Field("replicate"),
    "ac_mode": Field("ac_mode", TEXT),
    "recipe": Field("recipe", TEXT),
    "config": Field("configured", TEXT),
}
KEYS = keys_of(FIELDS)
FIELDS |= {f"{KEYS['targets']}.{place}": Field(f"target {place}", TEXT) for place in range(MOST)}
DISTILLED = "a teacher beside the model is not modelled"
FAKE = "training with a simulated format is not modelled"
PREFERENCES = "pairs of answers, a reference model and rollouts are not modelled"
HEAD = "an adapter of the output layer is not modelled"
OPTIMIZER = "this optimizer is not modelled"
UNMODELLED = {
    "quantizer._component_": FAKE,
    "teacher_model._component_": DISTILLED,
    "ref_model._component_": PREFERENCES,
    "policy_model._component_": PREFERENCES,
    "enable_fp8_training": "training in fp8 is not modelled here",
    "parallelize_plan._component_": "experts spread over GPUs are not modelled here",
}
PREFIXES = ("qlora_", "lora_")
ENDINGS = ("_instruct", "_base")
OTHERWISE = {"phi3_mini": "phi-3-mini", "phi4_14b": "phi-4"}
TARGETS, MLP = ("q_proj", "v_proj", "o_proj"), ("gate_proj", "up_proj", "down_proj")
ALIASES = {"output_proj": "o_proj", "w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
SECTION = "_component_"
FEWER, CHUNKS, LENGTH, BATCH = "single_device", 8, 2048, 2
MOVES = {"micro_batch": (), "recompute": ("none", "full"), "loss": ("chunked",)}


class Torchtune(Framework):
    """Its command, a YAML, or the name of a configuration."""

    key = "torchtune"
    name = "torchtune"
    place = 41
    fields = FIELDS
    unmodelled = UNMODELLED
    degrees = ("tp", "cp")
    new_keys = (Where.ARGUMENT,)
    tried = MOVES

    def claims(self, command: Command) -> Claim:
        """``tune run``, with torchrun's arguments in front of the recipe."""
        words = command.words
        for at, word in enumerate(words[:-1]):
            if word.split("/")[-1] == "tune" and words[at + 1] == "run":
                return Claim(Sure.NAMED, recipe_at(words, at + 2))
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A YAML with one of its components."""
        mine = any(entry.key.endswith(SECTION) and entry.value.startswith("torchtune.") for entry in entries)
        return Sure.OWN_SECTIONS if mine and notation in ("yaml", "json") else Sure.NOT

    def entries(self, found: list[Entry], bare: list[Entry], words: list) -> list[Entry]:
        """The recipe, the configuration and what is said otherwise."""
        texts = [word.text for word in words]
        behind = recipe_at(texts, texts.index("run") + 1) if "run" in texts else 0
        every: list[Entry] = []
        if 0 < behind <= len(words):
            every.append(Entry(KEYS["recipe"], texts[behind - 1], "", words[behind - 1].line))
        flag = f"--{KEYS['configured']}"
        for at in range(behind, len(words)):
            word = words[at]
            key, equals, value = word.text.partition("=")
            if equals:
                start, stop = word.span(len(key) + 1)
                name = KEYS["configured"] if key == flag else key
                every.append(Entry(name, value, "", word.line, start, stop, word.span()[0]))
            elif word.text == flag and at + 1 < len(words):
                every.append(Entry(KEYS["configured"], texts[at + 1], "", words[at + 1].line))
        return every

    def named_model(self, d: Draft) -> Model:
        """By the name of a function that builds it."""
        known = configured(d)
        text = d.given("model") or (known.model if known else "")
        if not text:
            name = d.given("configured")
            if name:
                raise ValueError(f"the configuration {name[:60]} is not among these texts: add its YAML")
            raise ValueError("no model is named: give the YAML with model._component_, or its config.json")
        return named(name_of(text))

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """Job, layout and precision; what torchtune refuses is noted."""
        usual = configured(d)
        marks, why = usual.marks if usual else "", f"as in {usual.name}" if usual else "its default"
        if FEWER in (d.given("recipe") or (usual.name if usual else "")) and gpus > 1:
            d.assume("gpus", 1, "the recipe is one for a single GPU")
            gpus = 1
        refused(d, marks)
        tp = max(1, d.get("tp", usual.tp if usual else 1, why))
        cp = max(1, d.given("cp") or 1)
        if gpus % (tp * cp):
            d.refuse(f"ValueError: Invalid parallel dims: tp({tp}) * cp({cp}) != WORLD_SIZE({gpus})", "tp")
            tp = cp = 1
        dp = gpus // (tp * cp)
        micro = max(1, d.get("micro_batch", usual.batch if usual else BATCH, why))
        steps = max(1, d.get("accumulated", usual.accumulated if usual else 1, why))
        d.given("packed")
        seq = d.given("seq") or (usual.seq if usual else 0)
        seq = seq or d.get("seq", LENGTH, "no max_seq_len: as long as the longest text")
        checkpoints = d.get("checkpointing", CHECKPOINTS in marks, why)
        away = d.get("activations", OFFLOADS in marks, why)
        if away and not checkpoints:
            d.refuse(
                "RuntimeError: enable_activation_offloading should only be True when "
                "enable_activation_checkpointing is True",
                "activations",
            )
        if d.given("ac_mode") == "selective":
            d.lacks("ac_mode", "selective checkpoints are not modelled here")
        found = adapter(d, shape, usual)
        precision, state, paged = recipe(d, shape, marks, steps, found is not None)
        compiled = d.get("compile", COMPILED in marks, why)
        loss, chunks = losses(d, marks)
        by = catalog.training_software(
            "torchtune",
            kernels="compiled" if compiled else "eager",
            written_out=not compiled,
            loss=loss,
            loss_chunks=chunks,
        )
        moved = []
        if paged:
            d.assume("optimizer's state", "on the host", "paged: the driver moves it while the GPU is full")
            moved.append("optimizer")
        if d.get("host_all", HOST in marks and dp * cp > 1, why):
            moved = ["optimizer", "gradients", "parameters"]
        if away and checkpoints:
            moved.append("activations")
        replicas = d.given("replicate") or 1
        kept = d.given("reshard") is False
        zero = 0 if dp * cp < 2 else 2 if kept else 3
        shard = dp * cp // replicas if replicas > 1 and dp * cp % replicas == 0 else 0
        layout = Layout(
            gpus,
            tp,
            cp=cp,
            zero=zero,
            micro_batch=micro,
            recompute="full" if checkpoints else "none",
            shard=shard if zero else 0,
            offload="+".join(moved) or "none",
        )
        return Meant(gpus, precision, Job(micro * steps * dp, seq, state, by, adapter=found), layout)

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The settings that set one of our names to a value."""
        assert launch.job is not None and launch.layout is not None
        if name == "recompute":
            return [(KEYS["checkpointing"], "true" if value == "full" else "false")]
        if name == "loss":
            return [(KEYS["loss"], "torchtune.modules.loss.LinearCrossEntropyLoss")]
        if name == "micro_batch":
            steps = launch.job.global_batch // (launch.layout.dp * int(str(value)))
            return [(KEYS["micro_batch"], str(value)), (KEYS["accumulated"], str(steps))]
        return []


def recipe_at(words: list[str], at: int) -> int:
    """The place behind the recipe: the first word that belongs to no argument of torchrun."""
    while at < len(words):
        if words[at].startswith("-"):
            at += 1 if "=" in words[at] or words[at] == "--standalone" else 2
        else:
            return at + 1
    return len(words)


def configured(d: Draft) -> Config | None:
    """The configuration that is named and that torchtune has; what the texts say goes before it."""
    name = (d.given("configured") or "").removeprefix("recipes/configs/").removesuffix(".yaml")
    return config(name) if "model" not in d.settings or d.settings["model"].key != KEYS["model"] else None


def name_of(component: str) -> str:
    """The model that a function builds, as people write it."""
    bare = component.split(".")[-1]
    for mark in PREFIXES:
        bare = bare.removeprefix(mark)
    for mark in ENDINGS:
        bare = bare.removesuffix(mark)
    if bare in OTHERWISE:
        return OTHERWISE[bare]
    parts = bare.split("_")
    joined = parts[0]  # llama3_1_8b: llama3.1-8b
    for part in parts[1:]:
        joined = f"{joined}.{part}" if part.isdigit() else f"{joined}-{part}"
    if catalog.model_key(joined) is None and len(parts) > 2 and parts[-2].isdigit():  # qwen2_0_5b: qwen2-0.5b
        return f"{'.'.join(parts[:-2])}-{parts[-2]}.{parts[-1]}"
    return joined


def refused(d: Draft, marks: str) -> None:
    """What is not modelled of a recipe or of a named configuration."""
    told = (d.given("recipe") or "") + " " + (d.given("loss") or "")
    if PAIRS in marks or any(word in told.lower() for word in ("dpo", "ppo", "grpo")):
        peft.leave(d, "loss" if "loss" in d.settings else "configured", PREFERENCES)
    if TEACHER in marks or "knowledge_distillation" in told:
        peft.leave(d, "configured", DISTILLED)
    if SIMULATED in marks or "qat" in told:
        peft.leave(d, "configured", FAKE)


def losses(d: Draft, marks: str) -> tuple[str, int]:
    """How the loss is computed, and in how many chunks. Either class widens a chunk of the logits at a time,
    and autograd keeps those of all chunks: the newer one, which multiplies chunk by chunk, as well."""
    text = (d.given("loss") or "").split(".")[-1]
    chunks = max(1, d.given("chunks") or CHUNKS)
    if text == "CEWithChunkedOutputLoss" or (not text and OLD_CHUNKS in marks):
        return "widened", chunks
    if text == "CrossEntropyLoss":
        return "plain", chunks
    if not text:
        d.assume("loss", "LinearCrossEntropyLoss", "as in torchtune's configurations")
    return "widened", chunks


def recipe(d: Draft, shape: Model, marks: str, steps: int, adapts: bool) -> tuple[str, Recipe, bool]:
    """The format of the products, the bytes of the state, and whether the optimizer is paged. All state has
    the model's type, but for what bitsandbytes keeps in its own."""
    usual = "PagedAdamW8bit" if PAGED_8BIT in marks else "PagedAdamW" if PAGED in marks else "AdamW"
    text = (d.given("optimizer") or usual).split(".")[-1].lower()
    d.given("fused")
    paged, eight = "paged" in text, "8bit" in text
    if "adamw" not in text and text != "adam" and "sgd" not in text:
        peft.leave(d, "optimizer", OPTIMIZER)
    found = catalog.recipe("adamw-8bit" if eight else "bf16-adam")
    narrow = d.get("dtype", "bf16").lower() in ("bf16", "bfloat16")
    if not narrow:
        found = catalog.recipe("fp32-adam")
    else:
        moment = found.momentum_bytes if eight else 4.0 if paged else 2.0
        found = replace(
            found, key=f"{found.key}+narrow", master_bytes=0.0, momentum_bytes=moment, variance_bytes=moment
        )
        if "sgd" in text:
            found = replace(found, momentum_bytes=0.0, variance_bytes=0.0)
    if d.get("in_backward", IN_BACKWARD in marks) and not adapts:
        if steps > 1:
            d.refuse(
                "RuntimeError: Gradient accumulation is not supported with optimizer_in_bwd: True",
                "in_backward",
            )
        largest = max(1.0 / shape.depth, shape.vocab * shape.hidden / parameters(shape))
        each = found.gradient_bytes * largest  # a layer's or the output layer's, gone once that is updated
        found = replace(found, key=f"{found.key}+in-backward", gradient_bytes=each)
    return "bf16" if narrow else "fp32", found, paged and not adapts


def adapter(d: Draft, shape: Model, usual: Config | None) -> Adapter | None:
    """LoRA where the function that builds the model says so."""
    built = (d.given("model") or (usual.model if usual else "")).split(".")[-1]
    marks = usual.marks if usual else ""
    wide = d.given("mlp"), d.given("output"), d.given("quantised")
    text = d.given("targets") or ""
    for mark in "[]()'\",":
        text = text.replace(mark, " ")
    words = [*text.split(), *(d.given(f"target {place}") or "" for place in range(MOST))]
    if not built.startswith(PREFIXES):
        return None
    names = [ALIASES.get(word, word) for word in words if word] or list(TARGETS)
    if wide[0] if wide[0] is not None else usual is not None:
        names += MLP
    if wide[1] if wide[1] is not None else OUTPUT in marks:
        peft.leave(d, "output", HEAD)
    unknown = [name for name in names if name not in adapters.NAMES]
    if unknown:
        d.refuse(f"ValueError: lora_attn_modules may not have {unknown[0][:40]!r}", "targets")
        names = [name for name in names if name not in unknown] or list(TARGETS)
    rank = max(
        1, d.get("rank", usual.rank if usual else 8, f"as in {usual.name}" if usual else "its default")
    )
    four = built.startswith(PREFIXES[0]) or wide[2] or QUANTISED in marks
    dora = d.given("dora") if d.given("dora") is not None else DORA in marks
    found = Adapter(rank, tuple(names), "dora" if dora else "lora", "nf4-double" if four else "bf16", "bf16")
    try:
        adapters.require(shape, found)
    except ValueError:
        d.refuse(f"ValueError: no matrix of {shape.name} is called {', '.join(names)}", "targets")
        return None
    return found


FRAMEWORK: Framework = Torchtune()
