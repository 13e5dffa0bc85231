"""Megatron-SWIFT: ``megatron sft`` of ms-swift, Megatron-LM's arguments with underscores and other defaults.

Names and defaults: modelscope/ms-swift swift/megatron/arguments/megatron_args.py at commit 3602360a (August
2026): full fine-tuning, batches of 1 and 16, selective recomputation, a distributed optimizer, gradients
summed in fp32, a loss fused by Megatron's own kernels, padding-free batches. The model is that of
``--model``, of the checkpoint's own config.json, or of a name in ``--load``.

From memory: that ``--load`` named the converted checkpoint in release 3, where ``--mcore_model`` does today.

Left out: preference pairs and rollouts (``megatron rlhf``), and weights of a vision tower that are trained,
which are refused. How fast the host updates is not what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.models import Model
from engine.frameworks import megatron, peft
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, of_config
from engine.frameworks.known_models import named
from engine.frameworks.megatron import Megatron, reader
from engine.frameworks.ms_swift import with_method
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Entry, Field, Setting
from engine.mechanism.adapters import ALL_LINEAR

if TYPE_CHECKING:
    from engine.mechanism.adapters import Adapter

OWN = {
    "model": Field("model", TEXT),
    "load": Field("loaded", TEXT),
    "mcore-model": Field("loaded", TEXT),
    "max-length": Field("seq"),
    "tuner-type": Field("tuner", TEXT),
    "train-type": Field("tuner", TEXT),
    "lora-rank": Field("rank"),
    "target-modules": Field("targets", TEXT),
    "lora-alpha": Field("alpha", TEXT),
    "lora-dropout": Field("lora_dropout", TEXT),
    "packing": Field("packed", FLAG),
    "padding-free": Field("unpadded", FLAG),
    "attention-backend": Field("attention", TEXT),
    "virtual-pipeline-model-parallel-size": Field("interleave"),
    "optimizer-cpu-offload": Field("host_optimizer", FLAG),
    "optimizer-offload-fraction": Field("host_share", NUMBER),
    "freeze-vit": Field("frozen_tower", FLAG),
    "torch-dtype": Field("dtype", TEXT),
    "task-type": Field("task", TEXT),
}
TOWER = "training of what reads pictures is not modelled"
PAIRS = "pairs, rollouts and the models beside the trained one are not modelled"
PARTLY_AWAY = "a part of an optimizer on the host is not modelled"
UNMODELLED = {key: why for key, why in megatron.UNMODELLED.items() if key not in OWN}
UNMODELLED |= {
    "rlhf-type": PAIRS,
    "freeze-parameters-ratio": "training some of the weights is not modelled",
    "modules-to-save": peft.TRAINED,
}
MORE = "modules that predict more tokens are not modelled beside an adapter"
TASK = "a head other than that of a language model is not modelled"
CAUSAL = "causal_lm"
WORDS = ("sft", "pt", "rlhf")
RANK, LENGTH = 8, 2048
# what is so unless it is said, by our names
USUAL = {
    "bf16": True,
    "distributed": True,
    "granularity": "selective",
    "global_batch": 16,
    "fused_loss": True,
    "expert_tp": 1,
}
SAVED = ("-mcore", "_mcore", "-mg", "_mg")  # how people end the name of a converted checkpoint


class MegatronSwift(Megatron):
    """Its command."""

    key = "megatron_swift"
    name = "Megatron-SWIFT"
    place = 43
    fields = megatron.FIELDS | OWN
    unmodelled = UNMODELLED
    lightens = (PAIRS,)
    can = None
    beside = ()

    def claims(self, command: Command) -> Claim:
        """``megatron sft``."""
        words = command.words
        for at, word in enumerate(words[:-1]):
            if word.split("/")[-1] == "megatron" and words[at + 1] in WORDS:
                return Claim(Sure.NAMED, at + 2)
        return Claim(Sure.NOT)

    def entries(self, found: list[Entry], bare: list[Entry], words: list) -> list[Entry]:
        """Its flags; ``rlhf`` is one, too."""
        return with_method(found, words, "rlhf-type")

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """Nothing lies beside it."""

    def model_of(self, d: Draft, config: Callable[[], Model] | None) -> Model:
        """By name, or of a config.json."""
        return self.named_model(d) if config is None else of_config(d, config)

    def named_model(self, d: Draft) -> Model:
        """The model that is named, or whose converted checkpoint is."""
        name, loaded = d.given("model"), d.given("loaded")
        if not name and not loaded:
            raise ValueError("no model is named: give --model, or its config.json")
        if not name:
            name = loaded.rstrip("/").split("/")[-1]
            for mark in SAVED:
                name = name.removesuffix(mark)
        return named(name)

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """By Megatron-LM's rules, after its own defaults."""
        usual = dict(USUAL)
        if d.given("fp16") or d.given("dtype") == "float16":
            usual.pop("bf16")
            usual["fp16"] = True
        if "recompute_activations" in d.settings:
            usual.pop("granularity")
        supposed = [name for name in usual if name not in d.settings]
        for name in supposed:
            d.settings[name] = Setting(name, usual[name], Entry(name, "", "", 0))
        if "seq" not in d.settings:
            d.settings["seq"] = Setting("seq", LENGTH, Entry("seq", "", "", 0))
            supposed.append("seq")
        found = reader.meant(d, shape, gpus)
        for name in supposed:
            value = d.settings.pop(name).value
            why = (
                "no --max_length: as long as the longest text"
                if name == "seq"
                else "Megatron-SWIFT's default"
            )
            d.assume(name, value, why)
        assert found.job is not None and found.layout is not None
        if d.given("frozen_tower") is False:
            d.lacks("frozen_tower", TOWER)
        for name in ("packed", "unpadded", "attention", "gradient_dtype", "dtype"):
            d.given(name)
        layout, share = found.layout, d.given("host_share")
        if d.given("host_optimizer"):
            if share is not None and share < 1:
                d.lacks("host_share", PARTLY_AWAY)
            layout = replace(layout, offload="optimizer")
        if (d.given("task") or CAUSAL).lower() != CAUSAL:
            d.lacks("task", TASK)
        tuned, more = self.adapter(d, shape), found.job.mtp
        if tuned and more:
            d.lacks("mtp", MORE)
            more = 0
        job = replace(found.job, adapter=tuned, mtp=more)
        return found._replace(job=job, layout=layout)

    def adapter(self, d: Draft, shape: Model) -> Adapter | None:
        """LoRA on all linear layers, where it is asked for."""
        kind = d.get("tuner", "full", "Megatron-SWIFT's default").lower()
        if kind == "full":
            return None
        if kind != "lora":
            peft.leave(d, "tuner", peft.ADAPTER)
            return None
        return peft.made(d, shape, peft.Usual(RANK, (ALL_LINEAR,)), False, "tuner")


FRAMEWORK: Framework = MegatronSwift()
