"""PyTorch's own ``fully_shard`` (FSDP2), without another axis: torchtitan's files set it, with every other
degree 1."""

from __future__ import annotations

from typing import Any

from engine.frameworks import torchtitan
from engine.frameworks.framework import Framework
from engine.frameworks.settings import Setting
from engine.frameworks.writing import Words
from engine.step.constraints import Ability


class Fsdp2(Framework):
    """A function of PyTorch, which a reader's own script calls."""

    key = "fsdp2"
    name = "PyTorch's fully_shard"
    place = 40
    fields = torchtitan.FIELDS
    unmodelled = torchtitan.UNMODELLED
    program = "torchtitan"
    switches = torchtitan.COMPILED
    can = Ability(
        "fsdp2",
        "PyTorch's fully_shard",
        (2, 3),
        (),
        ("1f1b",),
        False,
        (2, 3),
        "torch.distributed.fsdp.fully_shard: reshard_after_forward, meshes of two dimensions",
    )

    def write(self, what: Any, words: Any = Words, said: tuple[Setting, ...] = (), name: str = "") -> str:
        """torchtitan's file."""
        return torchtitan.written(what, words)


FRAMEWORK: Framework = Fsdp2()
