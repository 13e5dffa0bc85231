"""The work of a training step, and the software that does it: what ``layout.estimate`` and the search are
asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine import catalog
from engine.base import check
from engine.catalog.recipes import Recipe
from engine.catalog.software import TrainingSoftware
from engine.mechanism.adapters import Adapter
from engine.mechanism.experts import IMBALANCE
from engine.mechanism.seeing import Pictures


def whole(name: str, value: object, at_least: int = 1) -> None:
    """Like ``check.whole``, but for one Python int and ten times as fast."""
    if value.__class__ is not int or value < at_least:  # pyright: ignore[reportOperatorIssue]
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r}")


@dataclass(frozen=True)
class Job:
    """The work of a step, and the software that does it.

    ``global_batch`` sequences of ``seq`` tokens. ``recipe`` says how many bytes each parameter's state takes
    (16, bf16 with Adam, unless given). ``software`` is what the program does beside the model: a key of the
    catalogue, or one that ``engine.software`` gave, with what you change in it. ``imbalance`` is the fullest
    expert rank's load over the mean. ``mtp`` multi-token prediction modules add a layer, a projection and a
    loss each. With an ``adapter`` (LoRA) the model is frozen, and the recipe's bytes are the adapter's.
    ``pictures`` are among the tokens of a sequence; a tower reads them first.

    >>> recipe = engine.recipe("fp8-lm")
    >>> mine = engine.software("megatron-core-0.8", loss="fused")
    >>> job = engine.Job(1024, 8192, recipe=recipe, software=mine)
    >>> job.recipe.bytes_per_param
    """

    global_batch: int  # sequences
    seq: int  # tokens of each
    recipe: Recipe | None = None  # bytes of state; bf16 mixed Adam (16 bytes) unless given
    software: TrainingSoftware = field(default_factory=catalog.modern)  # or the key of one
    imbalance: float = IMBALANCE  # the fullest expert rank's load over the mean
    mtp: int = 0  # multi-token prediction modules after the last layer (DeepSeek-V3 trains with one)
    adapter: Adapter | None = None  # what alone is trained; None for the whole model
    pictures: Pictures | None = None  # among the tokens, for a model with a tower that reads them

    if TYPE_CHECKING:  # what may be given is wider than what is kept: also the key of a program

        def __init__(
            self,
            global_batch: int,
            seq: int,
            recipe: Recipe | None = None,
            software: TrainingSoftware | str = ...,
            imbalance: float = IMBALANCE,
            mtp: int = 0,
            adapter: Adapter | None = None,
            pictures: Pictures | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.software, str):
            object.__setattr__(self, "software", catalog.training_software(self.software))
        whole("global_batch", self.global_batch)
        whole("seq", self.seq)
        whole("mtp", self.mtp, 0)
        if not isinstance(self.software, TrainingSoftware):
            raise ValueError(f"software must be a program that trains, or its key, got {self.software!r}")
        check.between(1, 1000, imbalance=self.imbalance)
        if self.pictures is not None and not isinstance(self.pictures, Pictures):
            raise ValueError(f"pictures must be an engine.Pictures, or None, got {self.pictures!r}")
        if self.adapter is not None:
            if not isinstance(self.adapter, Adapter):
                raise ValueError(f"adapter must be an engine.Adapter, or None, got {self.adapter!r}")
            if self.mtp:
                raise ValueError(f"mtp must be 0 with an adapter, got {self.mtp}")
