"""What a search may use: what a framework can do, and the axes that are fixed or limited.

``FRAMEWORKS`` is the one place that knows what a framework can run of the layouts that the engine models; the
planner, its page, and the planner's best beside a launch ask it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check
from engine.base.types import Real, Truth
from engine.mechanism import pipeline
from engine.step import legality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.catalog.models import Model
    from engine.step.step import Axes

COLUMNS = ("tp", "pp", "cp", "ep", "expert_tp", "dp", "shard", "micro_batch")  # of a search's rows


@dataclass(frozen=True)
class Framework:
    """What one version of a framework can run of the layouts that the search lists."""

    key: str
    name: str
    stages: tuple[int, ...]  # of ZeRO
    stages_of_a_pipeline: tuple[int, ...]  # … that work under one
    schedules: tuple[str, ...]  # that it runs with the fast kernels that the planner's times assume
    cuts_models: bool  # or only shares their state
    whole_key_heads: bool  # tensor ranks divide the key and value heads
    stages_in_copies: tuple[int, ...]  # of ZeRO, of whose state several copies can be kept (HSDP)
    source: str


FRAMEWORKS = {
    each.key: each
    for each in (
        Framework(
            "megatron",
            "Megatron Core 0.15",
            (0, 1),
            (0, 1),
            ("1f1b", "interleaved"),
            True,
            True,
            (1,),
            "megatron/training/arguments.py, commit 000c4ac: distributed optimizer and its instances, "
            "interleaved 1F1B, layouts written out",
        ),
        Framework(
            "torchtitan",
            "torchtitan 0.2.0",
            (2, 3),
            (3,),
            ("gpipe", "1f1b", "interleaved"),
            True,
            True,
            (2, 3),
            "torchtitan 0.2.0, config/job_config.py: FSDP2, torch.distributed.pipelining; distributed/"
            "parallel_dims.py: which ranks experts borrow; models/llama3: whole heads of keys and values. It "
            "has ZB-V and DualPipeV too, but PyTorch does not split the backward of a compiled model "
            "(pytorch/pytorch#161904), and eager kernels cost more than these schedules save",
        ),
        Framework(
            "deepspeed",
            "DeepSpeed 0.19, its ZeRO alone",
            (0, 1, 2, 3),
            (),
            ("1f1b",),
            False,
            False,
            (),
            "DeepSpeed docs/_pages/config-json.md: zero_optimization",
        ),
        Framework(
            "fsdp2",
            "PyTorch's fully_shard",
            (2, 3),
            (),
            ("1f1b",),
            False,
            False,
            (2, 3),
            "torch.distributed.fsdp.fully_shard: reshard_after_forward, meshes of two dimensions",
        ),
    )
}


def shared_out(framework: str, layers: Real, pp: Real, chunks: Real) -> Truth:
    """Whether a framework can share the layers out. Megatron Core's arguments know equal chunks, chunks that
    are equal if embedding and loss count as layers, and without chunks ends that differ from an even middle;
    a layout that is written out (--pipeline-model-parallel-layout) also has chunks of which the first and the
    last are shorter. torchtitan counts embedding and output as layers, and every stage must get some."""
    if framework == "torchtitan":
        return (pp < 2) | legality.fills_every_stage(layers + 2.0, pp * chunks)
    cut = pipeline.stage_layers(layers, pp, chunks)
    return (
        legality.equal_chunks(layers, pp, chunks)
        | legality.ends_take_slots(layers, pp, chunks)
        | (chunks < 2) & legality.middle_is_even(layers, pp, cut)
        | (pp > 1) & legality.ends_share_the_rest(layers, pp, chunks, cut)
    )


def shards(able: Framework, a: Any) -> Truth:
    """Whether a framework has the ZeRO stage; without replicas there is nothing that a stage would shard."""
    alone = a.dp * a.cp < 2.0
    piped = (a.pp < 2.0) | alone
    for stage in able.stages_of_a_pipeline:
        piped = piped | (a.zero == float(stage))
    found = alone
    for stage in able.stages:
        found = found | (a.zero == float(stage))
    return found & piped


def spreads_experts(framework: str, experts: Real, a: Any) -> Truth:
    """Whether a framework can spread experts so. torchtitan's expert ranks borrow whole groups of context
    ranks, and of tensor ranks where these do not cut experts; without expert ranks the tensor ranks cut
    them."""
    if framework != "torchtitan":
        return a.ep > 0.0
    cut, whole = a.expert_tp == a.tp, a.expert_tp < 2.0
    borrowed = cut & (a.ep % a.cp == 0) | whole & (a.ep % (a.cp * a.tp) == 0)
    return (experts < 1) | (a.ep < 2.0) & cut | (a.ep > 1.0) & borrowed


def copies(able: Framework, a: Any) -> Truth:
    """Whether a framework can let each ``a.shard`` GPUs share one copy of the state. torchtitan replicates
    over data-parallel ranks alone, so ranks that share a context share a copy."""
    found = a.zero < 0.0
    for stage in able.stages_in_copies:
        found = found | (a.zero == float(stage))
    return found & ((a.shard % a.cp == 0) | (able.key == "megatron"))


def runs(able: Framework, model: Model, a: Any, has_schedule: Truth) -> Truth:
    """Whether a framework can run layouts, of whose schedule ``has_schedule`` says whether it has it."""
    can = has_schedule & shards(able, a)
    if able.cuts_models:
        can = can & shared_out(able.key, model.depth * 1.0, a.pp, a.chunks)
        can = can & spreads_experts(able.key, model.experts, a)
    else:
        can = can & (a.tp * a.pp * a.cp * a.ep < 2.0)
    if a.shard:
        can = can & copies(able, a)
    if able.whole_key_heads:
        can = can & (model.attention.latent | (model.kv_heads % a.tp == 0))
    return can


ANY = "any"  # instead of a framework: whatever one of them can run


@dataclass(frozen=True)
class Constraints:
    """Which layouts a search may choose. Ranges are (least, most); nothing given allows everything that is
    modelled, and the framework "any" what one of FRAMEWORKS can run.

    >>> Constraints(framework="megatron", tp=(8, 8), most_chunks=4, recompute="none")
    """

    framework: str = ""  # a key of FRAMEWORKS, or ANY
    tp: tuple[int, int] | None = None
    pp: tuple[int, int] | None = None
    cp: tuple[int, int] | None = None
    ep: tuple[int, int] | None = None
    micro_batch: tuple[int, int] | None = None
    zero: tuple[int, ...] | None = None
    schedules: tuple[str, ...] | None = None
    most_chunks: int = 0  # of layers on a stage; 0 for any number
    recompute: str = ""  # none or full

    def __post_init__(self) -> None:
        if self.framework:
            check.one_of((*FRAMEWORKS, ANY), framework=self.framework)
        if self.recompute:
            check.one_of(("none", "full"), recompute=self.recompute)
        for schedule in self.schedules or ():
            check.one_of(pipeline.SCHEDULES, schedules=schedule)
        for stage in self.zero or ():
            check.one_of((0, 1, 2, 3), zero=stage)
        check.whole(at_least=0, most_chunks=self.most_chunks)
        for name, limits in self.ranges.items():
            if limits is not None and not 1 <= limits[0] <= limits[1]:
                raise ValueError(f"{name} must be a range from 1 or more to no less, got {limits}")

    @property
    def ranges(self) -> dict[str, tuple[int, int] | None]:
        """Those of the constraints that are ranges, by their names."""
        return {"tp": self.tp, "pp": self.pp, "cp": self.cp, "ep": self.ep, "micro_batch": self.micro_batch}

    @property
    def able(self) -> Framework | None:
        """What the framework can do, where one is named."""
        return FRAMEWORKS.get(self.framework)

    def rows(self, model: Model, every: np.ndarray) -> np.ndarray:
        """Those of a search's rows that are within the ranges."""
        kept, able = every[:, 0] >= 1, self.able
        for name, limits in self.ranges.items():
            if limits is not None:
                column = every[:, COLUMNS.index(name)]
                kept = kept & (column >= limits[0]) & (column <= limits[1])
        if able is not None and not able.cuts_models:
            kept = kept & np.all(every[:, :5] == 1, axis=1)
        if able is not None and able.whole_key_heads and not model.attention.latent:
            kept = kept & (model.kv_heads % every[:, 0] == 0)
        return every[kept]

    def cells(self, model: Model, a: Any, schedules: list[tuple[str, int]]) -> Any:
        """Which cells of a block are within the rest: ``a`` are its axes, ``schedules`` those along its third
        dimension."""
        keys = self.schedules
        kept = np.array(
            [
                (keys is None or key in keys) and (not self.most_chunks or chunks <= self.most_chunks)
                for key, chunks in schedules
            ]
        )[:, np.newaxis]
        alone = a.dp * a.cp < 2.0  # without replicas there is nothing that a stage would shard
        if self.zero is not None:
            kept = kept & (np.isin(a.zero, self.zero) | alone)
        if not self.framework:
            return kept
        some = False
        for able in FRAMEWORKS.values() if self.framework == ANY else [FRAMEWORKS[self.framework]]:
            has = np.array([key in able.schedules for key, _ in schedules])[:, np.newaxis]
            some = some | runs(able, model, a, has)
        return kept & some

    def allows(self, model: Model, layout: Any) -> bool:
        """Whether one layout is within the constraints."""
        row = np.array([[getattr(layout, name) for name in COLUMNS]])
        one = [(layout.schedule, layout.interleave)]
        names = ("tp", "pp", "cp", "ep", "expert_tp", "dp", "zero", "shard")
        axes = SimpleNamespace(
            chunks=float(layout.interleave), **{name: float(getattr(layout, name)) for name in names}
        )
        return (
            len(self.rows(model, row)) > 0
            and bool(np.all(self.cells(model, axes, one)))
            and (not self.recompute or layout.recompute == self.recompute)
        )

    def recomputed(self, every: list[str]) -> list[str]:
        """Those of the ways to recompute that are allowed."""
        return [each for each in every if not self.recompute or each == self.recompute]

    def __str__(self) -> str:
        said = [FRAMEWORKS[self.framework].name] if self.able else []
        if self.framework == ANY:
            said = ["what one of the frameworks runs"]
        for name, limits in self.ranges.items():
            if limits is not None:
                least, most = limits
                said.append(f"{name} {least}" if least == most else f"{name} {least} to {most}")
        if self.zero is not None:
            said.append(f"zero {' or '.join(map(str, self.zero))}")
        if self.schedules is not None:
            said.append(" or ".join(self.schedules))
        if self.most_chunks:
            said.append(f"at most {self.most_chunks} chunks a stage")
        if self.recompute:
            said.append(f"recompute {self.recompute}")
        return ", ".join(said) or "no constraint"


FREE = Constraints()
# What is admitted wherever a page says "the planner's" without naming a framework: the planner's own page,
# the missions' answers, lesson 10. Schedules that need code of one's own, such as DualPipe, are not.
RUN_BY_SOME = Constraints(framework=ANY)


class Limits(NamedTuple):
    """Constraints as numbers, for the controls of a page; 0 where there is none."""

    framework: Real = 0.0  # 1 for the first of FRAMEWORKS, one more than their number for ANY
    tp_from: Real = 0.0  # at least so many …
    tp_to: Real = 0.0  # … and at most
    pp_from: Real = 0.0
    pp_to: Real = 0.0
    cp_from: Real = 0.0
    cp_to: Real = 0.0
    ep_from: Real = 0.0
    ep_to: Real = 0.0
    zero: Real = 0.0  # 1 for stage 0
    most_chunks: Real = 0.0
    recompute: Real = 0.0  # 1 for none, 2 for full

    @property
    def ranges(self) -> dict[str, tuple[Real, Real]]:
        """The limits of each axis, by its name."""
        return {name: (getattr(self, f"{name}_from"), getattr(self, f"{name}_to")) for name in RANGED}


RANGED = ("tp", "pp", "cp", "ep")
NAMED = ("", *FRAMEWORKS, ANY)  # frameworks by their numbers
NO_END = 2**40  # more ranks than anybody has
UNLIMITED = Limits()


def of_some_framework() -> Limits:
    """RUN_BY_SOME as numbers."""
    return Limits(framework=float(NAMED.index(ANY)))


def of_limits(limits: Limits) -> Constraints:
    """The constraints that some numbers stand for; ValueError where a range is empty."""
    tp, pp, cp, ep = (
        (max(1, int(least)), int(most) or NO_END) if least or most else None
        for least, most in limits.ranges.values()
    )
    return Constraints(
        NAMED[int(limits.framework)],
        tp,
        pp,
        cp,
        ep,
        zero=(int(limits.zero) - 1,) if limits.zero else None,
        most_chunks=int(limits.most_chunks),
        recompute=("", "none", "full")[int(limits.recompute)],
    )


def is_within(limits: Limits, model: Model, a: Axes, schedules: Sequence[Real]) -> Truth:
    """Whether layouts are within the limits: ``of_limits`` for numbers that may be symbols. ``schedules``
    says of each of FRAMEWORKS whether it has their schedule (above 0)."""
    kept = (limits.most_chunks < 1) | (a.chunks <= limits.most_chunks)
    for name, (least, most) in limits.ranges.items():
        size = getattr(a, name)
        kept = kept & (size >= least) & ((most < 1) | (size <= most))
    kept = kept & ((limits.recompute < 1) | ((a.recompute > 0) == (limits.recompute > 1)))
    kept = kept & ((limits.zero < 1) | (a.zero == limits.zero - 1.0) | (a.dp * a.cp < 2.0))
    return kept & is_run(limits.framework, model, a, schedules)


def is_run(framework: Real, model: Model, a: Axes, schedules: Sequence[Real]) -> Truth:
    """Whether the framework with this number can run layouts, or one of them where it is ANY's."""
    every = [runs(able, model, a, has > 0) for able, has in zip(FRAMEWORKS.values(), schedules, strict=True)]
    some = every[0] | every[1] | every[2] | every[3]
    kept = (framework != float(NAMED.index(ANY))) | some
    for place, can in enumerate(every, start=1):
        kept = kept & ((framework != float(place)) | can)
    return kept


def may_run(framework: Real, schedules: Sequence[Real]) -> Truth:
    """Whether the framework with this number, or any of them, has a schedule; without a framework, always.
    What ``is_run`` asks besides depends on more: a search asks this first."""
    some = (framework < 1) | (schedules[0] > 0)
    for has in schedules[1:]:
        some = some | (has > 0)
    return some
