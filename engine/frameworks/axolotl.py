"""Axolotl: a YAML with keys of its own, over the Trainer's and Accelerate's.

Names and defaults: axolotl-ai-cloud/axolotl src/axolotl/utils/schemas (config.py, training.py, peft.py,
fsdp.py), loaders/model.py and examples/gpt-oss at commit 067b021c (July 2026): a batch of 1, sequences of
512, bf16 where the GPU has it, AdamW fused, no checkpoints, NF4 with quantised scales.

A model that is trained whole is loaded in 16 bits, and the optimizer has its own state alone. DeepSpeed
adds an fp32 copy, and Accelerate's FSDP widens what is trained to fp32 (huggingface/accelerate
src/accelerate/utils/fsdp_utils.py, fsdp2_prepare_model at 16cb6eb8). With sample_packing a sequence is
full. From memory: that cut cross entropy keeps next to no logits.

Left out: a paged optimizer's state counts as on the host, where the driver moves it while the GPU is full,
unless an adapter is trained, whose state is small. Preference pairs are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.frameworks import deepspeed, hugging_face, peft
from engine.frameworks.framework import Claim, Command, Framework, Sure
from engine.frameworks.hugging_face import HuggingFace
from engine.frameworks.settings import FALSE, FLAG, TEXT, Draft, Entry, Field, Setting
from engine.frameworks.writing import Words, keys_of
from engine.mechanism.adapters import ALL_LINEAR

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.mechanism.adapters import Adapter

MOST = 8  # plugins, and words of FSDP's list
OWN = {
    "base_model": Field("model", TEXT),
    "sequence_len": Field("seq"),
    "micro_batch_size": Field("micro_batch"),
    "optimizer": Field("optimizer", TEXT),
    "adapter": Field("adapter", TEXT),
    "lora_target_linear": Field("every", FLAG),
    "lora_target_parameters": Field("parameters", TEXT),
    "peft_use_dora": Field("dora", FLAG),
    "peft_use_rslora": Field("rslora", FLAG),
    "bnb_config_kwargs.bnb_4bit_use_double_quant": Field("double", FLAG),
    "sample_packing": Field("packed", FLAG),
    "pad_to_sequence_len": Field("padded", FLAG),
    "gradient_checkpointing": Field("checkpoints", TEXT),
    "activation_offloading": Field("activations", TEXT),
    "bf16": Field("narrow", TEXT),
    "bfloat16": Field("narrow", TEXT),
    "fp16": Field("half", TEXT),
    "float16": Field("half", TEXT),
    "flash_attention": Field("flash", FLAG),
    "sdp_attention": Field("flash", FLAG),
    "xformers_attention": Field("flash", FLAG),
    "flex_attention": Field("flash", FLAG),
    "eager_attention": Field("scores", FLAG),
    "fsdp_version": Field("fsdp_version"),
    "dp_shard_size": Field("shards"),
    "dp_replicate_size": Field("replicate"),
    "context_parallel_size": Field("cp"),
    "sequence_parallel_degree": Field("cp"),
    "liger_fused_linear_cross_entropy": Field("liger", FLAG),
    "liger_cross_entropy": Field("fused_loss", FLAG),
    "chunked_cross_entropy": Field("chunked", FLAG),
    "chunked_cross_entropy_num_chunks": Field("chunks"),
    "cut_cross_entropy": Field("cut", FLAG),
    "model_quantization_config": Field("stored", TEXT),
    "model_quantization_config_kwargs.dequantize": Field("dequantised", FLAG),
}
OWN |= {f"plugins.{place}": Field(f"plugin {place}", TEXT) for place in range(MOST)}
OWN |= {f"fsdp.{place}": Field(f"fsdp {place}", TEXT) for place in range(MOST)}
OWN |= {f"lora_target_parameters.{place}": Field(f"parameter {place}", TEXT) for place in range(MOST)}
KEYS = hugging_face.KEYS | keys_of(OWN)
KEYS |= {"checkpointing": KEYS["checkpoints"], "liger": KEYS["chunked"]}
PAIRS = "pairs of answers, a reference model and rollouts are not modelled"
PARTLY = "training some of the weights is not modelled"
LAYERS = "layers of weights on the host are not modelled"
TILES = "a feed-forward block in tiles is not modelled"
UNMODELLED = {
    "rl": PAIRS,
    "unfrozen_parameters": PARTLY,
    "unfrozen_parameters.0": PARTLY,
    "layer_offloading": LAYERS,
    "tiled_mlp": TILES,
    "peft_layers_to_transform": "adapters of some layers are not modelled",
    "relora": "ReLoRA is not modelled",
    "gptq": "a base in GPTQ's format is not modelled in training",
    "qat": "training with a simulated format is not modelled",
    "selective_checkpointing": "keeping single operators of a checkpoint is not modelled",
    "quantize_moe_experts": "experts quantised by themselves are not modelled",
}
MINE = ("base_model", "micro_batch_size", "sequence_len", "sample_packing")
LENGTH, CUT_CHUNKS, CHUNKS, RANK = 512, 256, 8, 8
CUT, LIGER = "cut_cross_entropy", "liger"  # in the names of plugins
FUSED_EXPERTS = ("gpt-oss",)  # whose experts are parameters, and not layers that an adapter finds
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
PARTS = ("gate_up_proj", "gate_proj", "up_proj", "down_proj")


class Axolotl(HuggingFace):
    """Its command, and a YAML."""

    key = "axolotl"
    name = "Axolotl"
    place = 38
    fields = hugging_face.FIELDS | OWN
    unmodelled = hugging_face.UNMODELLED | UNMODELLED
    names_model = "give base_model, or its config.json"
    lightens = (*HuggingFace.lightens, LAYERS)
    calls = {}
    beside = ("hugging_face",)
    pads = False
    usual_micro = 1
    usual_roots = False

    def claims(self, command: Command) -> Claim:
        """Its program or its module is named."""
        for at, word in enumerate(command.words):
            if word.split("/")[-1] == "axolotl" or word.startswith("axolotl.cli"):
                return Claim(Sure.NAMED, at + 2)
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A file with keys that it alone has."""
        tops = {entry.key.split(".")[0] for entry in entries}
        return Sure.OWN_KEYS if notation == "yaml" and len(tops & set(MINE)) > 1 else Sure.NOT

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """A DeepSpeed JSON or Accelerate's file."""
        d.read(entries, hugging_face.FIELDS, hugging_face.UNMODELLED)

    def known_as(self, name: str) -> str:
        """The model that is named, be it widened beforehand."""
        return name.removesuffix("-dequantized")

    def sharding(self, d: Draft, ranks: int) -> tuple[int, int]:
        """FSDP is on where anything is said of it."""
        words = [d.given(f"fsdp {place}") or "" for place in range(MOST)]
        sections = [one.key for one in d.settings.values() if one.key.startswith("fsdp")]
        version = d.given("fsdp_version")
        speed = "zero" in d.settings or d.given("deepspeed_file")
        if "shard_grad_op" in words and "strategy" not in d.settings:
            d.assume("strategy", "shard_grad_op", "by the list of fsdp")
            return 2, 0
        return hugging_face.sharding(d, ranks, not speed and bool(version or sections))

    def length(self, d: Draft) -> int:
        """Tokens of a sequence."""
        d.given("packed")
        d.given("padded")
        return d.get("seq", LENGTH, "Axolotl's default")

    def limits(self, d: Draft) -> bool:
        """Always, at ``sequence_len``."""
        return True

    def checkpointed(self, d: Draft) -> bool:
        """Where it is asked for, be it with checkpoints on the host."""
        asked = (d.get("checkpoints", "false") or "").lower() not in FALSE
        return asked or bool(d.given("checkpointing"))

    def recipe(self, d: Draft, zero: int) -> tuple[str, Recipe]:
        """In 16 bits, with an fp32 copy of the weights under DeepSpeed alone."""
        half = (d.given("half") or "false").lower() not in FALSE
        if not half and d.given("narrow") is None:
            d.assume("precision", "bf16", "where the GPU has it, Axolotl's default")
        wide = (d.given("narrow") or "auto").lower() in FALSE and not half
        _, found = hugging_face.state(d)
        if wide:
            return hugging_face.recipe(d)
        if not zero and not self.adapts(d):  # DeepSpeed and Accelerate's FSDP widen what is trained
            found = hugging_face.without_master(found)
        return "fp16" if half else "bf16", found

    def fuses(self, d: Draft) -> bool:
        """Unless eager attention is asked for."""
        d.given("flash")
        return not d.given("scores") and (d.given("attention") or "flash") != "eager"

    def loss(self, d: Draft, shape: Model, tokens: int) -> tuple[str, int]:
        """By its plugins and switches."""
        plugins = [(d.given(f"plugin {place}") or "").lower() for place in range(MOST)]
        cut = any(CUT in plugin for plugin in plugins) and d.given("cut") is not False
        liger, fused = d.given("liger"), d.given("fused_loss")
        chunked, chunks = d.given("chunked"), d.given("chunks")
        if cut:
            return "chunked", CUT_CHUNKS
        if liger:
            return "chunked", hugging_face.liger_chunks(shape, tokens)
        if chunked:
            return "chunked", max(1, chunks or CHUNKS)
        return ("fused", 8) if fused else ("plain", 8)

    def adapts(self, d: Draft) -> bool:
        """Whether there is an adapter."""
        return (d.given("adapter") or "").lower() not in ("", "none")

    def adapter(self, d: Draft, shape: Model) -> Adapter | None:
        """LoRA, or QLoRA over a base in 4 bits."""
        kind, four = (d.given("adapter") or "").lower(), bool(d.given("four_bits"))
        stored, wide = d.given("stored"), d.given("dequantised")
        if stored and not wide:
            peft.leave(d, "stored", peft.QUANTISED)
        if not self.adapts(d):
            if four:
                peft.leave(d, "four_bits", peft.QUANTISED)
            return None
        if kind not in ("lora", "qlora"):
            peft.leave(d, "adapter", peft.ADAPTER)
            return None
        usual = peft.Usual(RANK)
        if kind == "qlora" and not four:
            d.refuse("ValueError: Require cfg.load_in_4bit to be True for qlora", "adapter")
        asked = self.parameters(d)
        if shape.key.startswith(FUSED_EXPERTS) and d.given("every"):
            d.assume("targets", ", ".join((*ATTENTION, *asked)), "experts are no linear layers here")
            d.settings.pop("every")
            usual = peft.Usual(RANK, (*ATTENTION, *asked))
        elif asked:
            peft.leave(d, "parameters" if "parameters" in d.settings else "parameter 0", peft.ADAPTER)
        return peft.made(d, shape, usual, four, "adapter")

    def parameters(self, d: Draft) -> tuple[str, ...]:
        """The experts' matrices that get an adapter."""
        text = d.given("parameters") or ""
        for place in range(MOST):
            text = f"{text} {d.given(f'parameter {place}') or ''}"
        return tuple(part for part in PARTS if part in text.replace(",", " ").replace(".", " ").split())

    def on_host(self, d: Draft, zero: int) -> str:
        """Activations, where it is asked for, and the state of a paged optimizer."""
        moved = hugging_face.on_host(d, zero)
        paged = "paged" in (d.given("optimizer") or "").lower() and not self.adapts(d)
        if paged and moved == "none":
            d.assume("optimizer's state", "on the host", "paged: the driver moves it while the GPU is full")
            moved = "optimizer"
        said = (d.given("activations") or "false").lower()
        checkpoints = (d.given("checkpoints") or "").lower()
        away = said not in (*FALSE, "none") or checkpoints.startswith(("offload", "unsloth"))
        if away and self.checkpointed(d):
            return hugging_face.with_checkpoints(moved)
        if away:
            d.lacks("activations", "activations on the host without checkpoints are not modelled")
        return moved

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """Batch, checkpoints and the loss have keys of their own."""
        if name == "recompute":
            return [(KEYS["checkpoints"], "true" if value == "full" else "false")]
        if name == "loss":
            return [(KEYS["chunked"], "true")]
        found = hugging_face.edit(name, value, launch)
        if name == "micro_batch":
            return [(KEYS["micro_batch"], str(value)), *found[1:]]
        return found

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """A DeepSpeed JSON and a YAML."""
        told = hugging_face.training_arguments(what, words, KEYS)
        return deepspeed.written(what, words) + told + written(what.adapter)


def written(one: Adapter | None) -> str:
    """An adapter in its keys."""
    if one is None:
        return ""
    packed = one.base in ("nf4", "nf4-double")
    told = f"{KEYS['adapter']}: {'qlora' if packed else 'lora'}\nlora_r: {one.rank}\n"
    if ALL_LINEAR in one.targets:
        told = f"{told}{KEYS['every']}: true\n"
    else:
        told = f"{told}lora_target_modules: [{', '.join(one.targets)}]\n"
    if packed:
        yes = "true" if one.base == "nf4-double" else "false"
        section, _, inside = KEYS["double"].partition(".")
        told = f"{told}load_in_4bit: true\n{section}:\n  {inside}: {yes}\n"
    if one.dropout:
        told = f"{told}lora_dropout: {one.dropout:g}\n"
    return f"{told}{KEYS['dora']}: true\n" if one.kind == "dora" else told


FRAMEWORK: Framework = Axolotl()
