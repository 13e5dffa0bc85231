"""LLaMA-Factory: the Trainer's arguments with its own beside them, in a YAML or on a line.

Names and defaults: hiyouga/LlamaFactory src/llamafactory/hparams (model_args.py, data_args.py,
finetuning_args.py), model/adapter.py, model/loader.py, model/model_utils/unsloth.py and checkpointing.py at
commit ff6d4d12 (August 2026). It recomputes activations unless told otherwise. Trained weights are cast to
fp32, except under stage 3 and with pure_bf16.

Left out: LongLoRA's shifted attention, which keeps what other attention keeps; the layers without gradients
under ``finetuning_type: freeze``, and preference pairs, which are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.frameworks import deepspeed, hugging_face, peft, unsloth
from engine.frameworks.framework import Claim, Command, Framework, Sure
from engine.frameworks.hugging_face import HuggingFace
from engine.frameworks.settings import FLAG, TEXT, Draft, Entry, Field, Setting
from engine.frameworks.writing import Words, keys_of
from engine.mechanism.adapters import ALL_LINEAR

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.mechanism.adapters import Adapter

OWN = {
    "finetuning_type": Field("finetuning", TEXT),
    "stage": Field("stage", TEXT),
    "cutoff_len": Field("seq"),
    "freeze_vision_tower": Field("frozen_tower", FLAG),
    "freeze_multi_modal_projector": Field("frozen_aligner", FLAG),
    "image_max_pixels": Field("pixels"),
    "image_resolution": Field("pixels"),  # its older name
    "video_max_pixels": Field("frame_pixels"),
    "video_resolution": Field("frame_pixels"),
    "flash_attn": Field("attention", TEXT),
    "disable_gradient_checkpointing": Field("unchecked", FLAG),
    "enable_liger_kernel": Field("liger", FLAG),
    "use_unsloth": Field("unsloth", FLAG),
    "use_unsloth_gc": Field("unsloth_gc", FLAG),
    "pure_bf16": Field("pure", FLAG),
    "lora_rank": Field("rank"),
    "lora_target": Field("targets", TEXT),
    "quantization_bit": Field("bits"),
    "quantization_method": Field("method", TEXT),
    "double_quantization": Field("double", FLAG),
    "neat_packing": Field("packed", FLAG),
    "shift_attn": Field("shifted", FLAG),
} | peft.listed("lora_target")
KEYS = hugging_face.KEYS | keys_of(OWN)
OPTIMIZER = "this optimizer is not modelled"
ELSEWHERE = "another trainer in place of the Trainer is not modelled"
PAIRS = "pairs of answers and a reference model are not modelled"
UNMODELLED = {
    "additional_target": peft.TRAINED,
    "use_galore": OPTIMIZER,
    "use_apollo": OPTIMIZER,
    "use_badam": OPTIMIZER,
    "use_adam_mini": OPTIMIZER,
    "use_muon": OPTIMIZER,
    "use_llama_pro": "new blocks are not modelled",
    "mixture_of_depths": "a mixture of depths is not modelled",
    "use_mca": ELSEWHERE,
    "use_megatron_bridge": ELSEWHERE,
    "use_hyper_parallel": ELSEWHERE,
    "use_kt": ELSEWHERE,
}
PROGRAMS = ("llamafactory-cli", "lmf")
SCRIPTS = ("src/train_bash.py", "src/train.py")
NAMES = ("finetuning", "stage", "bits", "seq")
RANK, LENGTH = 8, 2048
METHODS = ("bnb", "bitsandbytes")


class LlamaFactory(HuggingFace):
    """Its command, and a YAML."""

    key = "llama_factory"
    package = "unsloth"  # whose loss depends on the release, if it is used
    name = "LLaMA-Factory"
    place = 36
    fields = hugging_face.FIELDS | OWN
    unmodelled = hugging_face.UNMODELLED | UNMODELLED
    calls = {}
    beside = ("hugging_face",)  # whose reader takes a DeepSpeed JSON and Accelerate's file

    def claims(self, command: Command) -> Claim:
        """Its program is named, or a script of its own with arguments of its own."""
        for at, word in enumerate(command.words):
            if word.split("/")[-1] in PROGRAMS:
                return Claim(Sure.NAMED, at + 2)
        own = command.flags & {key for key, field in OWN.items() if field.name in NAMES}
        scripted = any(word.endswith(SCRIPTS) for word in command.words)
        sure = Sure.FLAGS if own else Sure.ONE_FLAG if scripted else Sure.NOT
        return Claim(sure, command.script)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A file with keys that it alone has."""
        if notation != "yaml" and notation != "json":
            return Sure.NOT
        tops = {entry.key.split(".")[0] for entry in entries}
        own = tops & {key for key in OWN if "." not in key}
        return Sure.OWN_KEYS if own else Sure.NOT

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """A DeepSpeed JSON or Accelerate's file."""
        d.read(entries, hugging_face.FIELDS, hugging_face.UNMODELLED)

    def length(self, d: Draft) -> int:
        """Tokens of a sequence."""
        d.given("packed")
        return d.get("seq", LENGTH, "LLaMA-Factory's default")

    def limits(self, d: Draft) -> bool:
        """Always, at ``cutoff_len``."""
        return True

    def checkpointed(self, d: Draft) -> bool:
        """Always, unless it is told otherwise: gradient_checkpointing is not asked."""
        d.given("checkpointing")
        if d.given("unchecked") is not None:
            return not d.given("unchecked")
        d.assume("checkpointing", True, "LLaMA-Factory's default")
        return True

    def recipe(self, d: Draft, zero: int) -> tuple[str, Recipe]:
        """With pure_bf16 there is no fp32 copy of anything."""
        d.given("loaded_dtype")
        stage = (d.given("stage") or "sft").lower()
        if stage not in ("sft", "pt"):
            peft.leave(d, "stage", PAIRS)
        precision, found = hugging_face.recipe(d)
        if d.given("pure"):
            return "bf16", hugging_face.without_master(found)
        return precision, found

    def loss(self, d: Draft, shape: Model, tokens: int) -> tuple[str, int]:
        """Liger's, Unsloth's, or that of all logits."""
        if d.given("liger"):
            return "chunked", hugging_face.liger_chunks(shape, tokens)
        return unsloth.loss(d, shape, tokens) if d.given("unsloth") else ("plain", 8)

    def joins(self, d: Draft) -> bool:
        """Liger's kernels, or Unsloth's."""
        return bool(d.given("liger") or d.given("unsloth"))

    def adapter(self, d: Draft, shape: Model) -> Adapter | None:
        """LoRA unless another way of tuning is given; quantised scales unless told otherwise."""
        kind = d.get("finetuning", "lora").lower()
        bits, method = d.given("bits"), (d.given("method") or METHODS[0]).lower()
        if kind not in ("full", "lora"):
            peft.leave(d, "finetuning", peft.ADAPTER)
        if bits not in (None, 4):
            peft.leave(d, "bits", peft.QUANTISED)
        elif bits and method not in METHODS:
            peft.leave(d, "method", peft.QUANTISED)
        if kind != "lora":
            if bits and kind != "oft":
                d.refuse("ValueError: Quantization is only compatible with the LoRA or OFT method.", "bits")
            return None
        return peft.made(d, shape, peft.Usual(RANK, (ALL_LINEAR,)), bits == 4, "finetuning")

    def on_host(self, d: Draft, zero: int) -> str:
        """Unsloth's checkpoints lie on the host."""
        moved = hugging_face.on_host(d, zero)
        if (d.given("unsloth") or d.given("unsloth_gc")) and not d.given("unchecked"):
            return hugging_face.with_checkpoints(moved)
        return moved

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """Checkpoints and the loss have keys of their own."""
        if name == "recompute":
            return [(KEYS["unchecked"], "false" if value == "full" else "true")]
        if name == "loss":
            return [(KEYS["liger"], "true")]
        return hugging_face.edit(name, value, launch)

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """A DeepSpeed JSON and a YAML."""
        told = hugging_face.training_arguments(what, words, KEYS)
        return deepspeed.written(what, words) + told + written(what.adapter)


def written(one: Adapter | None) -> str:
    """How the model is tuned."""
    if one is None:
        return f"{KEYS['finetuning']}: full\n"
    names = "all" if ALL_LINEAR in one.targets else ",".join(one.targets)
    told = f"{KEYS['finetuning']}: lora\n{KEYS['rank']}: {one.rank}\n{KEYS['targets']}: {names}\n"
    if one.base in ("nf4", "nf4-double"):
        yes = "true" if one.base == "nf4-double" else "false"
        told = f"{told}{KEYS['bits']}: 4\n{KEYS['double']}: {yes}\n"
    if one.dropout:
        told = f"{told}lora_dropout: {one.dropout:g}\n"
    return f"{told}use_dora: true\n" if one.kind == "dora" else told


FRAMEWORK: Framework = LlamaFactory()
