"""Unsloth: a program that calls FastLanguageModel, and TRL's trainer with what comes of it.

Names and defaults: unslothai/unsloth unsloth/models/loader.py and llama.py at commit 015bdef0 (August
2026): a base in NF4 with quantised scales, checkpoints on the host (``use_gradient_checkpointing =
"unsloth"``), all matrices of a layer with an adapter of rank 16, and since 2025 a loss that is computed in
chunks (``unsloth_fused_ce_loss``). Older versions returned all logits in fp32. A line that installs it says
which version there is (unsloth==2024.5).

From memory: that a full fine-tuning keeps its weights in 16 bits, and that the loss takes chunks of at most
a tenth of what is free.

Left out: an embedding or an output layer that lies on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.frameworks import hugging_face, peft
from engine.frameworks.framework import Claim, Command, Framework, Sure
from engine.frameworks.hugging_face import HuggingFace
from engine.frameworks.settings import FLAG, TEXT, Draft, Entry, Field
from engine.mechanism.adapters import NAMES

if TYPE_CHECKING:
    from engine.mechanism.adapters import Adapter

FAST = ("FastLanguageModel", "FastModel", "FastVisionModel", "FastLlamaModel", "FastQwen2Model")
OWN = {
    "fast.0": Field("model", TEXT),
    "fast.model_name": Field("model", TEXT),
    "fast.max_seq_length": Field("longest"),
    "fast.dtype": Field("loaded_dtype", TEXT),
    "fast.load_in_4bit": Field("four_bits", FLAG),
    "fast.load_in_16bit": Field("sixteen_bits", FLAG),
    "fast.full_finetuning": Field("whole_model", FLAG),
    "fast.use_gradient_checkpointing": Field("loaded_checkpoints", TEXT),
    "adapted.r": Field("rank"),
    "adapted.target_modules": Field("targets", TEXT),
    "adapted.lora_alpha": Field("alpha", TEXT),
    "adapted.lora_dropout": Field("lora_dropout", TEXT),
    "adapted.use_rslora": Field("rslora", FLAG),
    "adapted.use_dora": Field("dora", FLAG),
    "adapted.use_gradient_checkpointing": Field("checkpoints", TEXT),
    "adapted.max_seq_length": Field("length of an adapter"),
}
ADAPTED = "adapted."
OWN[ADAPTED] = Field("adapted", FLAG)  # that it is called
ROLLOUT = "vLLM beside the training is not modelled"
UNMODELLED = {
    "fast.load_in_8bit": peft.QUANTISED,
    "fast.load_in_fp8": peft.QUANTISED,
    "fast.fast_inference": ROLLOUT,
    "fast.qat_scheme": "training with a simulated format is not modelled",
    "adapted.modules_to_save": peft.TRAINED,
    "adapted.target_parameters": "adapters of single parameters are not modelled",
    "adapted.loftq_config": "LoftQ is not modelled",
}
SEVEN = NAMES[:7]  # of attention and of the feed-forward block
RANK, LENGTH = 16, 2048
CHUNKS = 16  # of a loss: at least so many
CHUNKED_SINCE = 2025


def loss(d: Draft, shape: Model, tokens: int) -> tuple[str, int]:
    """In chunks, whose logits take about as much as the tokens themselves; before 2025 of all logits, in
    place, with the fp32 copy of what is returned (``_convert_to_fp32``, unslothai/unsloth issue 465)."""
    year = (d.given("release") or "").split(".")[0]
    if year.isdigit() and 2000 < int(year[:6]) < CHUNKED_SINCE:
        return "returned", 8
    d.assume("loss", "in chunks", "as in Unsloth since 2025; older versions keep all logits in fp32")
    return "chunked", max(CHUNKS, hugging_face.liger_chunks(shape, tokens))


class Unsloth(HuggingFace):
    """A program with its classes."""

    key = "unsloth"
    package = "unsloth"
    name = "Unsloth"
    place = 37
    fields = hugging_face.FIELDS | OWN
    unmodelled = hugging_face.UNMODELLED | UNMODELLED
    calls = (
        {f"{name}.from_pretrained": "fast." for name in FAST}
        | {f"{name}.get_peft_model": ADAPTED for name in FAST}
        | hugging_face.CALLS
        | {"UnslothTrainingArguments": "", "UnslothTrainer": ""}
    )
    can = None
    beside = ("hugging_face",)

    def claims(self, command: Command) -> Claim:
        """Nothing: it is called by programs."""
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A program that calls one of its classes."""
        mine = notation == "program" and any(entry.key.split(".")[0] in FAST for entry in entries)
        return Sure.NAMED if mine else Sure.NOT

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """Accelerate's file."""
        d.read(entries, hugging_face.FIELDS, hugging_face.UNMODELLED)

    def length(self, d: Draft) -> int:
        """Tokens of a sequence: the trainer's, or as many as the model was loaded for."""
        d.given("packed")
        d.given("length of an adapter")
        longest = d.given("longest")
        if longest:
            return d.get("seq", longest, "as many as the model is loaded for")
        return d.get("seq", LENGTH, "Unsloth's default")

    def checkpoints(self, d: Draft) -> str:
        """How activations are recomputed: "unsloth", "true" or "false"."""
        text = d.given("checkpoints") if d.given("adapted") else None
        text = text or d.given("loaded_checkpoints") or d.get("checkpoints", "unsloth")
        return text.lower()

    def limits(self, d: Draft) -> bool:
        """Always, at ``max_seq_length``."""
        return True

    def checkpointed(self, d: Draft) -> bool:
        """Unless it is told otherwise."""
        d.given("checkpointing")
        return self.checkpoints(d) not in ("false", "none")

    def recipe(self, d: Draft, zero: int) -> tuple[str, Recipe]:
        """In 16 bits: the trainer's arguments, or by the type that the model is loaded in."""
        loaded = (d.given("loaded_dtype") or "").lower()
        half = bool(d.given("fp16")) or loaded == "float16"
        if not half and not d.given("bf16"):
            d.assume("precision", "bf16", "the type that the model is loaded in")
        _, found = hugging_face.state(d)
        if not d.given("adapted"):
            found = hugging_face.without_master(found)
        return "fp16" if half else "bf16", found

    def loss(self, d: Draft, shape: Model, tokens: int) -> tuple[str, int]:
        """In chunks."""
        d.given("liger")
        return loss(d, shape, tokens)

    def joins(self, d: Draft) -> bool:
        """Its own kernels."""
        return True

    def adapter(self, d: Draft, shape: Model) -> Adapter | None:
        """Where get_peft_model is called; else the whole model is trained."""
        whole = bool(d.given("whole_model"))
        sixteen = whole or bool(d.given("sixteen_bits"))
        four = d.get("four_bits", not sixteen, "Unsloth's default" if not sixteen else "as it is loaded")
        d.given("prepared")
        if not d.given("adapted") and not d.given("peft"):
            if four and not whole:
                peft.leave(d, "four_bits", peft.QUANTISED)
            return None
        targets = tuple(name for name in SEVEN if not shape.attention.latent) or ("o_proj",)
        return peft.made(d, shape, peft.Usual(RANK, targets), bool(four), "adapted")

    def on_host(self, d: Draft, zero: int) -> str:
        """Its own checkpoints."""
        moved = hugging_face.on_host(d, zero)
        return hugging_face.with_checkpoints(moved) if self.checkpoints(d) == "unsloth" else moved


FRAMEWORK: Framework = Unsloth()
