"""What a search may use: what a framework can do, and the axes that are fixed or limited.

Which frameworks there are is not known here: ``engine.frameworks`` has an ``Ability`` of each, and the
planner, its page, and the planner's best beside a launch hand some of them in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real, Truth
from engine.catalog import models
from engine.mechanism import pipeline
from engine.step import legality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.catalog.models import Model
    from engine.step.step import Axes
    from engine.step.training_job import Job

COLUMNS = ("tp", "pp", "cp", "ep", "expert_tp", "dp", "shard", "micro_batch")  # of a search's rows


@dataclass(frozen=True)
class Ability:
    """What one version of a framework can run of the layouts that the search lists, as data."""

    key: str
    name: str
    stages: tuple[int, ...]  # of ZeRO
    stages_of_a_pipeline: tuple[int, ...]  # … that work under one
    schedules: tuple[str, ...]  # that it runs with the fast kernels that the planner's times assume
    cuts_models: bool  # or only shares their state; its tensor ranks then divide the key and value heads
    stages_in_copies: tuple[int, ...]  # of ZeRO, of whose state several copies can be kept (HSDP)
    source: str
    counts_ends: bool = False  # embedding and output count as layers, and every stage must get some
    borrows_ranks: bool = False  # expert ranks borrow whole groups of context ranks, and of tensor ranks
    # where these do not cut experts; without expert ranks the tensor ranks cut them
    cuts_contexts: bool = False  # ranks that share a context may belong to different copies of the state
    mixes: bool = True  # has linear attention, state spaces, indexers (``catalog.mixers``)
    rounds: str = ""  # an interleaved pipeline deals micro-batches out in groups of as many as it has stages,
    # all of them FULL, or in as many groups, all of them EQUAL
    row_tokens: int = 0  # tensor ranks divide every MLP's width, and a sequence into multiples of so many
    some_layers: bool = False  # it recomputes any number of a stage's layers
    modules: tuple[str, ...] = ()  # of memory.MODULES, that it recomputes where products are in 16 bits …
    modules_in_fp8: tuple[str, ...] = ()  # … and in 8
    one_kind: bool = False  # its settings say a model's layers, all of which are then of one kind …
    names: tuple[str, ...] = ()  # … but for these models, which it has by name
    whole: tuple[str, ...] = ()  # models that it cannot cut into stages


@lru_cache(512)
def says(able: Ability, model: Model) -> bool:
    """Whether a framework's settings can say a model of the catalogue's layers."""
    if not isinstance(model, models.Model):  # a page's choice, among models of one kind
        return True
    alike = able.mixes or not models.has_mixers(model)
    return alike and (not able.one_kind or model.key in able.names or models.in_short_keys(model))


FULL, EQUAL = "full", "equal"  # values of ``Ability.rounds``


def deals_out(able: Ability, a: Any) -> Truth:
    """Whether a framework can deal the micro-batches of an interleaved pipeline out to its chunks."""
    if not able.rounds:
        return a.pp > 0.0
    many = a.global_batch / (a.dp * a.micro_batch)
    groups = ops.maximum(1.0, ops.floor(many / a.pp))
    size = a.pp if able.rounds == FULL else groups
    return (a.chunks < 2) | (a.pp < 2) | (many % size == 0)


def cuts_rows(able: Ability, model: Model, a: Any) -> Truth:
    """Whether tensor ranks get the same number of tokens and of columns of each MLP; those that share an
    expert, of its columns."""
    whole = (a.seq % (able.row_tokens * a.tp * a.cp) == 0) & (model.ffn % a.tp == 0)
    return whole & (model.expert_ffn % a.expert_tp == 0) & (model.shared_ffn % a.tp == 0)


def starts(able: Ability, model: Model, a: Any) -> Truth:
    """Whether a framework starts with the layout's batch and widths, whatever it makes of the rest."""
    if not able.row_tokens:
        return deals_out(able, a)
    return deals_out(able, a) & cuts_rows(able, model, a)


def shared_out(able: Ability, layers: Real, pp: Real, chunks: Real) -> Truth:
    """Whether a framework can share the layers out. Where embedding and output count as layers, every stage
    must get some. Elsewhere there are equal chunks, chunks that are equal if embedding and loss count as
    layers, without chunks ends that differ from an even middle, and layouts that are written out, which also
    have chunks of which the first and the last are shorter."""
    if able.counts_ends:
        return (pp < 2) | legality.fills_every_stage(layers + 2.0, pp * chunks)
    cut = pipeline.stage_layers(layers, pp, chunks)
    return (
        legality.equal_chunks(layers, pp, chunks)
        | legality.ends_take_slots(layers, pp, chunks)
        | (chunks < 2) & legality.middle_is_even(layers, pp, cut)
        | (pp > 1) & legality.ends_share_the_rest(layers, pp, chunks, cut)
    )


def shards(able: Ability, a: Any) -> Truth:
    """Whether a framework has the ZeRO stage; without replicas there is nothing that a stage would shard."""
    alone = a.dp * a.cp < 2.0
    piped = (a.pp < 2.0) | alone
    for stage in able.stages_of_a_pipeline:
        piped = piped | (a.zero == float(stage))
    found = alone
    for stage in able.stages:
        found = found | (a.zero == float(stage))
    return found & piped


def spreads_experts(able: Ability, experts: Real, a: Any) -> Truth:
    """Whether a framework can spread experts so."""
    if not able.borrows_ranks:
        return a.ep > 0.0
    cut, whole = a.expert_tp == a.tp, a.expert_tp < 2.0
    borrowed = cut & (a.ep % a.cp == 0) | whole & (a.ep % (a.cp * a.tp) == 0)
    return (experts < 1) | (a.ep < 2.0) & cut | (a.ep > 1.0) & borrowed


def copies(able: Ability, a: Any) -> Truth:
    """Whether a framework can let each ``a.shard`` GPUs share one copy of the state."""
    found = a.zero < 0.0
    for stage in able.stages_in_copies:
        found = found | (a.zero == float(stage))
    return found if able.cuts_contexts else found & (a.shard % a.cp == 0)


def runs(able: Ability, model: Model, a: Any, has_schedule: Truth) -> Truth:
    """Whether a framework can run layouts, of whose schedule ``has_schedule`` says whether it has it."""
    can = has_schedule & shards(able, a)
    if able.cuts_models:
        can = can & shared_out(able, model.depth * 1.0, a.pp, a.chunks)
        can = can & spreads_experts(able, model.experts, a)
        can = can & (model.attention.latent | (model.kv_heads % a.tp == 0))
        can = can & starts(able, model, a)
    else:
        can = can & (a.tp * a.pp * a.cp * a.ep < 2.0)
    if a.shard:
        can = can & copies(able, a)
    return can


def on_one_stage(can: Truth, a: Any, uncut: Real) -> Truth:
    """What is left of what a framework can run where it cannot cut the model into stages (``uncut`` is 1)."""
    return can & ((uncut < 1) | (a.pp < 2.0))


MOST_LEFT = 0.5  # of the memory, that may stay free


@dataclass(frozen=True)
class Constraints:
    """Which layouts a search may choose: those that one of ``able`` can run, and within the ranges, which are
    (least, most). Nothing given allows everything that is modelled.

    >>> Constraints(tp=(8, 8), most_chunks=4, recompute="none")
    """

    able: tuple[Ability, ...] = ()
    tp: tuple[int, int] | None = None
    pp: tuple[int, int] | None = None
    cp: tuple[int, int] | None = None
    ep: tuple[int, int] | None = None
    micro_batch: tuple[int, int] | None = None
    zero: tuple[int, ...] | None = None
    schedules: tuple[str, ...] | None = None
    most_chunks: int = 0  # of layers on a stage; 0 for any number
    recompute: str = ""  # none or full
    leave: float = 0.0  # of the memory that a job may have, the share that stays free

    def __post_init__(self) -> None:
        if not all(isinstance(each, Ability) for each in self.able):
            raise ValueError(
                f"able must be what frameworks can run (engine.frameworks.able), got {self.able!r}"
            )
        if self.recompute:
            check.one_of(("none", "full"), recompute=self.recompute)
        for schedule in self.schedules or ():
            check.one_of(pipeline.SCHEDULES, schedules=schedule)
        for stage in self.zero or ():
            check.one_of((0, 1, 2, 3), zero=stage)
        check.whole(at_least=0, most_chunks=self.most_chunks)
        check.between(0, MOST_LEFT, leave=self.leave)
        for name, limits in self.ranges.items():
            if limits is not None and not 1 <= limits[0] <= limits[1]:
                raise ValueError(f"{name} must be a range from 1 or more to no less, got {limits}")

    @property
    def ranges(self) -> dict[str, tuple[int, int] | None]:
        """Those of the constraints that are ranges, by their names."""
        return {"tp": self.tp, "pp": self.pp, "cp": self.cp, "ep": self.ep, "micro_batch": self.micro_batch}

    @property
    def only(self) -> Ability | None:
        """What the framework can do, where it is a single one."""
        return self.able[0] if len(self.able) == 1 else None

    def having(self, model: Model) -> tuple[Ability, ...]:
        """Those of the frameworks that have the model, without those that then run the same as another."""
        rest = {"key": "", "name": "", "source": "", "one_kind": False, "names": ()}
        return tuple({replace(able, **rest): able for able in self.able if says(able, model)}.values())

    def rows(self, model: Model, every: np.ndarray) -> np.ndarray:
        """Those of a search's rows that are within the ranges."""
        if self.able and not self.having(model):
            named = ", ".join(able.name for able in self.able)
            raise ValueError(
                f"model must have layers that {named} can be told of, got {model.key}: its settings say one "
                "kind of layer, and this model has several"
            )
        kept, able = every[:, 0] >= 1, self.only
        for name, limits in self.ranges.items():
            if limits is not None:
                column = every[:, COLUMNS.index(name)]
                kept = kept & (column >= limits[0]) & (column <= limits[1])
        if able is not None and not able.cuts_models:
            kept = kept & np.all(every[:, :5] == 1, axis=1)
        if able is not None and able.cuts_models and not model.attention.latent:
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
        if not self.able:
            return kept
        some = False
        for able in self.having(model):
            has = np.array([key in able.schedules for key, _ in schedules])[:, np.newaxis]
            some = some | on_one_stage(runs(able, model, a, has), a, float(model.key in able.whole))
        return kept & some

    def allows(self, model: Model, layout: Any, job: Job | None = None) -> bool:
        """Whether one layout is within the constraints; without a job nothing is asked of its batch and its
        sequences."""
        if self.able and not self.having(model):
            return False
        row = np.array([[getattr(layout, name) for name in COLUMNS]])
        one = [(layout.schedule, layout.interleave)]
        names = ("tp", "pp", "cp", "ep", "expert_tp", "dp", "zero", "shard", "micro_batch")
        axes = SimpleNamespace(
            chunks=float(layout.interleave),
            global_batch=float(job.global_batch) if job else 0.0,
            seq=float(job.seq) if job else 0.0,
            **{name: float(getattr(layout, name)) for name in names},
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
        said = ["what one of the frameworks runs"] if self.able else []
        if self.only:
            said = [self.only.name]
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
        if self.leave:
            said.append(f"{100 * self.leave:g} % of the memory left free")
        return ", ".join(said) or "no constraint"


FREE = Constraints()


class AxisLimits(NamedTuple):
    """Constraints as numbers, for the controls of a page; 0 where there is none."""

    framework: Real = 0.0  # 1 for the first of ``able``, one more than their number for any of them
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
    able: tuple[Ability, ...] = ()  # what each of the frameworks can run
    whole: tuple[Real, ...] = ()  # for each of them, 1 where it cannot cut the model into stages

    def of_model(self, key: str) -> AxisLimits:
        """These limits for a model of this key, with ``whole`` in what the frameworks can run."""
        if not self.whole:
            return self
        cut = zip(self.able, self.whole, strict=True)
        able = tuple(replace(each, whole=(key,) if uncut else ()) for each, uncut in cut)
        return self._replace(able=able, whole=())

    @property
    def of_any(self) -> AxisLimits:
        """What one of the frameworks can run, without any other limit."""
        return AxisLimits(float(len(self.able) + 1), able=self.able, whole=self.whole)

    @property
    def ranges(self) -> dict[str, tuple[Real, Real]]:
        """The limits of each axis, by its name."""
        return {name: (getattr(self, f"{name}_from"), getattr(self, f"{name}_to")) for name in RANGED}


RANGED = ("tp", "pp", "cp", "ep")
NO_END = 2**40  # more ranks than anybody has
UNLIMITED = AxisLimits()


def of_limits(limits: AxisLimits) -> Constraints:
    """The constraints that some numbers stand for; ValueError where a range is empty."""
    tp, pp, cp, ep = (
        (max(1, int(least)), int(most) or NO_END) if least or most else None
        for least, most in limits.ranges.values()
    )
    place = int(limits.framework)
    named = limits.able if place > len(limits.able) else limits.able[place - 1 : place] if place else ()
    return Constraints(
        named,
        tp,
        pp,
        cp,
        ep,
        zero=(int(limits.zero) - 1,) if limits.zero else None,
        most_chunks=int(limits.most_chunks),
        recompute=("", "none", "full")[int(limits.recompute)],
    )


def is_within(limits: AxisLimits, model: Model, a: Axes, schedules: Sequence[Real]) -> Truth:
    """Whether layouts are within the limits: ``of_limits`` for numbers that may be symbols. ``schedules``
    says of each of ``limits.able`` whether it has their schedule (above 0)."""
    kept = (limits.most_chunks < 1) | (a.chunks <= limits.most_chunks)
    for name, (least, most) in limits.ranges.items():
        size = getattr(a, name)
        kept = kept & (size >= least) & ((most < 1) | (size <= most))
    kept = kept & ((limits.recompute < 1) | ((a.recompute > 0) == (limits.recompute > 1)))
    kept = kept & ((limits.zero < 1) | (a.zero == limits.zero - 1.0) | (a.dp * a.cp < 2.0))
    return kept & is_run(limits, model, a, schedules)


def is_run(limits: AxisLimits, model: Model, a: Axes, schedules: Sequence[Real]) -> Truth:
    """Whether the framework that the limits number can run layouts, or any of them where it is none's
    number."""
    every = [runs(able, model, a, has > 0) for able, has in zip(limits.able, schedules, strict=True)]
    if limits.whole:
        every = [on_one_stage(can, a, uncut) for can, uncut in zip(every, limits.whole, strict=True)]
    if not every:
        return a.tp > 0.0
    some = every[0]
    for can in every[1:]:
        some = some | can
    kept = (limits.framework != float(len(every) + 1)) | some
    for place, can in enumerate(every, start=1):
        kept = kept & ((limits.framework != float(place)) | can)
    return kept


def may_run(framework: Real, schedules: Sequence[Real]) -> Truth:
    """Whether the framework with this number, or any of them, has a schedule; without a framework, always.
    What ``is_run`` asks besides depends on more: a search asks this first."""
    some = framework < 1
    for has in schedules:
        some = some | (has > 0)
    return some
