"""Megatron-LM, and the programs that grew out of it.

With ``--deepspeed`` it is Megatron-DeepSpeed, the fork of Megatron-LM 2 that BLOOM was trained with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.frameworks import deepspeed, hugging_face
from engine.frameworks.framework import Claim, Command, Framework, LogLine, Meant, Sure, of_config
from engine.frameworks.megatron import reader, writer
from engine.frameworks.megatron.fields import CAN, FIELDS, KEYS, UNMODELLED
from engine.frameworks.settings import Draft, Entry, Setting
from engine.frameworks.writing import Words

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.frameworks.described import Launch

SCRIPTS = (
    "pretrain_gpt.py",
    "pretrain_llama.py",
    "pretrain_mamba.py",
    "pretrain_qwen.py",
    "pretrain_deepseek.py",
)
SIZED = {KEYS[name].replace("-", "_") for name in ("tp", "pp", "layers", "micro_batch")}
OF_DEEPSPEED = ("tp", "pp", "micro_batch")  # what its fork sets by the same arguments
OVERLAPPED, NARROW = {"overlaps": "data"}, {"saves_fp8": True}
MOVES = {"recompute": ("none", "full"), "zero": (0, 1), "loss": ("fused",)}
MOVES |= dict.fromkeys(("micro_batch", "tp", "pp", "cp", "ep", "interleave"), ())  # by steps


class Megatron(Framework):
    """Arguments of a command."""

    key = "megatron"
    name = "Megatron-LM"
    place = 10
    fields = FIELDS
    unmodelled = UNMODELLED
    tried = MOVES
    can = CAN
    program = "megatron-core"
    switches = OVERLAPPED
    switches_in_fp8 = NARROW
    recipe_key = "bf16-adam-fp32-grads"  # --bf16 sums gradients in fp32
    separator = "-"
    beside = ("hugging_face",)  # whose reader takes a DeepSpeed JSON
    keeps_gradients = True
    log_lines = (
        LogLine("step_s", r"elapsed time per iteration \(ms\):\s*{number}", 1e-3),
        LogLine("global_batch", r"global batch size:\s*{number}"),
        LogLine("memory_bytes", r"max reserved:\s*{number}", 2.0**20),
    )

    def claims(self, command: Command) -> Claim:
        """Two of its arguments, or one of its scripts."""
        mine = len(command.flags & SIZED) > 1 or any(word.endswith(SCRIPTS) for word in command.words)
        return Claim(Sure.FLAGS if mine else Sure.NOT, command.script)

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """The part of a DeepSpeed JSON that Megatron-DeepSpeed takes: the stage, and what it cannot do."""
        extra = Draft()
        extra.read(entries, deepspeed.FIELDS, hugging_face.UNMODELLED)
        d.unmodelled += extra.unmodelled
        d.ignored += extra.ignored
        zero = extra.settings.get("zero")
        if zero and zero.value:
            d.settings["distributed"] = Setting("distributed", True, zero.entry)
        for name in ("bf16", "fp16"):
            if name in extra.settings and name not in d.settings:
                d.settings[name] = extra.settings[name]
        if zero and zero.value > 1:
            d.refuse(
                "AssertionError: ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism", "distributed"
            )

    def model_of(self, d: Draft, config: Callable[[], Model] | None) -> Model:
        """Its own arguments go before a config.json."""
        if config is None or "layers" in d.settings:
            return reader.model(d)
        return of_config(d, config)

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """By the rules of ``validate_args``."""
        return reader.meant(d, shape, gpus)

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The arguments that set one of our names."""
        return edit(name, value, any(one.name == "deepspeed" for one in launch.settings))

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """The arguments of pretrain_gpt.py."""
        return writer.written(what, words)


def edit(name: str, value: object, of_deepspeed: bool) -> list[tuple[str, str | None]]:
    """The arguments that set one of our names to a value; None takes an argument away."""
    if of_deepspeed and name not in OF_DEEPSPEED:
        return [(KEYS["checkpointed"], None if value == "none" else "")] if name == "recompute" else []
    if name == "recompute":
        full = {"granularity": "full", "recompute_method": "uniform", "recompute_layers": "1"}
        every = (*full, "recompute_modules", "recompute_activations")
        return [(KEYS[each], None if value == "none" else full.get(each)) for each in every]
    if name == "zero":
        return [(KEYS["distributed"], "" if value else None), (KEYS["overlap_gather"], None)]
    if name == "loss":
        return [(KEYS["fused_loss"], ""), (KEYS["loss_impl"], "te")]
    if name == "interleave":
        return [(KEYS["interleave"], str(value) if value != 1 else None), (KEYS["chunk_layers"], None)]
    if name == "tp":
        return [(KEYS["tp"], str(value)), (KEYS["sequence_parallel"], "" if value != 1 else None)]
    return [(KEYS[name], str(value))] if name in ("pp", "cp", "ep", "micro_batch") else []


FRAMEWORK: Framework = Megatron()
