"""DeepSpeed: its JSON, which a trainer of Hugging Face or a script hands to it.

Names: DeepSpeed 0.19, docs/_pages/config-json.md. Who starts it reads its file: ``hugging_face``, and
``megatron`` of its fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.frameworks.framework import Framework
from engine.frameworks.settings import FLAG, TEXT, Draft, Field, Setting
from engine.frameworks.writing import Words, keys_of
from engine.step.constraints import Ability

if TYPE_CHECKING:
    from engine.step.cases import ExportedRun

FIELDS = {
    "train_batch_size": Field("global_batch"),
    "train_micro_batch_size_per_gpu": Field("micro_batch"),
    "gradient_accumulation_steps": Field("accumulated"),
    "bf16.enabled": Field("bf16", FLAG),
    "fp16.enabled": Field("fp16", FLAG),
    "zero_optimization.stage": Field("zero"),
    "zero_optimization.overlap_comm": Field("overlap", FLAG),
    "zero_optimization.zero_hpz_partition_size": Field("shard"),
    "optimizer.type": Field("optimizer", TEXT),
    "zero_optimization.offload_optimizer.device": Field("host_optimizer", TEXT),
    "zero_optimization.offload_param.device": Field("host_parameters", TEXT),
    "zero_optimization.cpu_offload": Field("host_old", FLAG),
    "zero_optimization.offload_optimizer.pin_memory": Field("pins_optimizer", FLAG),
    "zero_optimization.offload_param.pin_memory": Field("pins_parameters", FLAG),
}
KEYS = keys_of(FIELDS)
DISK = "state on a disk is not modelled"
UNMODELLED = {
    "tensor_parallel.autotp_size": "DeepSpeed's AutoTP in training is not modelled",
    "sequence_parallel_size": "DeepSpeed's Ulysses is not modelled",
}
CAN = Ability(
    "deepspeed",
    "DeepSpeed 0.19, its ZeRO alone",
    (0, 1, 2, 3),
    (),
    ("1f1b",),
    False,
    (),
    "DeepSpeed docs/_pages/config-json.md: zero_optimization",
)
CUT_ELSEWHERE = """DeepSpeed's JSON knows data-parallel ranks alone. This layout has tensor, pipeline, context or expert ranks,
which are built in code there: take the Megatron-LM arguments or the torchtitan file.
"""  # noqa: E501
ON_A_LINE = ("bf16",)  # sections that are written on a line


def on_host(d: Draft, zero: int) -> str:
    """What is moved to the host, as a layout's ``offload``. DeepSpeed sends gradients after the optimizer as
    they are computed, and moves parameters in stage 3 alone (docs/_pages/config-json.md)."""
    optimizer = (d.given("host_optimizer") or "none").lower()
    parameters = (d.given("host_parameters") or "none").lower()
    for name, device in (("host_optimizer", optimizer), ("host_parameters", parameters)):
        if device == "nvme":
            d.lacks(name, DISK)
        elif device not in ("none", "cpu"):
            d.refuse(f"ValueError: device must be none, cpu or nvme, got {device[:40]!r}", name)
    d.ask("pins_optimizer", "pins_parameters")
    moves = ["optimizer", "gradients"] if zero and (optimizer == "cpu" or d.given("host_old")) else []
    if parameters == "cpu" and zero == 3:
        moves.append("parameters")
    return "+".join(moves) or "none"


def written(run: ExportedRun, words: Any = Words) -> str:
    """The part of a layout that the JSON expresses: batch, precision and ZeRO stage, counted over the
    data-parallel ranks. Its other axes are set in code, and ZeRO 2 and 3 do not work with its pipeline, so a
    layout that combines them is not written."""
    n = words.plain
    settings = {
        KEYS["global_batch"]: n(run.global_batch),
        KEYS["micro_batch"]: n(run.micro_batch),
        KEYS["accumulated"]: n(run.micro_batches),
        KEYS["bf16"]: "true",
        "gradient_clipping": "1.0",
        KEYS["zero"]: n(run.zero),
        KEYS["overlap"]: words.choose(run.zero > 0, "true", "false"),
        "zero_optimization.reduce_scatter": "true",
        "zero_optimization.contiguous_gradients": "true",
        "activation_checkpointing.partition_activations": "false",
    }
    return words.choose(run.tp * run.pp * run.cp * run.ep <= 1, _json(settings), CUT_ELSEWHERE)


def _json(settings: dict[str, str]) -> str:
    """Settings of at most two levels as a JSON text."""
    sections: dict[str, list[str]] = {}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section or key, []).append(f'"{name}": {value}')
    pieces = []
    for section, inside in sections.items():
        if section in settings:
            pieces.append(f"  {inside[0]}")
        elif section in ON_A_LINE:
            pieces.append(f'  "{section}": {{{inside[0]}}}')
        else:
            rest = ",\n    ".join(inside)
            pieces.append(f'  "{section}": {{\n    {rest}\n  }}')
    return "{\n" + ",\n".join(pieces) + "\n}\n"


class Deepspeed(Framework):
    """A JSON beside somebody's script."""

    key = "deepspeed"
    name = "DeepSpeed"
    place = 30
    fields = FIELDS
    unmodelled = UNMODELLED
    can = CAN
    program = "trainer"

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """The JSON."""
        return written(what, words)


FRAMEWORK: Framework = Deepspeed()
