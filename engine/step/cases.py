"""A job on a cluster and some layouts for it, in numbers or symbols, and what a step with each layout
costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from engine.base import ops
from engine.base.types import Real, Truth
from engine.catalog.models import Model
from engine.mechanism import flops, pipeline
from engine.mechanism.interconnect import Wires
from engine.mechanism.matmul import Chip
from engine.mechanism.memory import RECOMPUTE
from engine.mechanism.pipeline import SCHEDULES
from engine.mechanism.shape import shape
from engine.step import search
from engine.step.constraints import UNLIMITED, AxisLimits
from engine.step.layout import Job, Layout
from engine.step.search import Schedules
from engine.step.step import Axes, StageBytes, Terms, overhead_bytes, sizes, stages_bytes, step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.catalog.recipes import Recipe
    from engine.catalog.software import TrainingSoftware
    from engine.mechanism.adapters import Adapter


MODERN = Job(1, 1)  # today's software; a case has its own sizes
RECOMPUTES = tuple(
    float(value) for key, value in RECOMPUTE.items() if key != "selective"
)  # flash drops it anyway
SCHEDULE_KEYS, CHUNKS = zip(*search.EVERY_SCHEDULE)
SCHEDULE_NAMES = tuple(
    f"{key} × {chunks}" if chunks > 1 else key for key, chunks in zip(SCHEDULE_KEYS, CHUNKS)
)
# as the literature writes them, for readers
SCHEDULE_TITLES = tuple(
    name.replace(key, SCHEDULES[key].name.removesuffix(" 1F1B"))
    for key, name in zip(SCHEDULE_KEYS, SCHEDULE_NAMES)
)
IS_1F1B = tuple(float(key == "1f1b") for key in SCHEDULE_KEYS)
COEFFICIENTS = {
    name: tuple(float(getattr(SCHEDULES[key], name)) for key in SCHEDULE_KEYS) for name in Schedules._fields
}


class Case(NamedTuple):
    """A job and the cluster that it runs on; numbers or symbols."""

    model: Model
    chip: Chip
    wires: Wires
    hbm_bytes: float
    recipe: Recipe
    gpus: float
    global_batch: float  # sequences
    seq: float
    within: AxisLimits = UNLIMITED
    jobs: tuple[Job, ...] = (MODERN,)  # with the programs that may be counted; their sizes are not asked
    program: float = 0.0  # the place of the one that is


class Layouts(NamedTuple):
    """Several layouts, best first, as columns. A column is longer than there may be layouts: the rest of it
    is NaN."""

    tp: Real
    pp: Real
    cp: Real
    ep: Real
    expert_tp: Real
    dp: Real
    zero: Real
    micro_batch: Real
    recompute: Real
    schedule: Real  # index into SCHEDULE_KEYS
    chunks: Real


def cut(layout: Layout | Layouts) -> tuple[Real, Real, Real, Real, Real, Real, Real, Real]:
    """How a layout divides the work, in the order of ``ExportedRun``'s fields behind the model."""
    a = layout
    return a.tp, a.pp, a.cp, a.dp, a.ep, a.expert_tp, a.zero, a.micro_batch


class ExportedRun(NamedTuple):
    """Everything that the settings express; numbers or symbols."""

    model: Model
    tp: float
    pp: float
    cp: float
    dp: float
    ep: float
    expert_tp: float
    zero: float
    micro_batch: float
    recompute: float
    schedule: float  # index into ``schedules``
    chunks: float
    schedules: tuple  # keys of pipeline.SCHEDULES
    global_batch: float
    seq: float
    tokens: float  # tokens of the run
    fp8: float  # 1.0 where the matrix products run in fp8
    loss: str = "plain"  # one of CHOICES["loss"] of catalog/software.py
    modules: tuple[str, ...] = ()  # of memory.MODULES, recomputed
    recompute_layers: float = 0.0  # of each stage, under full recomputation; 0 for all
    first_layers: float = 0.0  # layers of the first stage and of the last one; 0 for an even split
    last_layers: float = 0.0
    mtp: float = 0.0  # multi-token prediction modules
    shard: float = 0.0  # GPUs that share one copy of the state (HSDP); 0 for all
    gradient_bytes: float = 0.0  # of a parameter's gradient, where that is known
    gather_context: bool = False  # context parallelism by AllGather instead of a ring
    eager: bool = False  # kernels as PyTorch runs them uncompiled, where the framework brings none of its own
    adapter: Adapter | None = None  # what alone is trained

    @property
    def steps(self) -> Real:
        """Optimizer steps of the run."""
        return ops.ceil(self.tokens / (self.global_batch * self.seq))

    @property
    def micro_batches(self) -> Real:
        """Micro-batches of a data-parallel rank in a step."""
        return self.global_batch / (self.dp * self.micro_batch)

    @property
    def is_hybrid(self) -> Truth:
        """Whether parts of the GPUs hold a copy of the state each (HSDP)."""
        return (self.shard > 0) & (self.shard < self.dp * self.cp)

    @property
    def copies(self) -> Real:
        """Copies of the state under ZeRO: one, but for HSDP."""
        return ops.where(self.is_hybrid, self.dp * self.cp / ops.maximum(1.0, self.shard), 1.0)

    @property
    def stage_layers(self) -> pipeline.StageLayers:
        """Layers of a full stage, of the first and of the last."""
        return pipeline.stage_layers(
            self.model.depth * 1.0, self.pp * 1.0, self.chunks * 1.0, self.first_layers, self.last_layers
        )

    def is_schedule(self, *keys: str) -> Truth:
        """Whether the pipeline uses one of these schedules."""
        places = [i for i, key in enumerate(self.schedules) if key in keys]
        if not places:
            return False
        return (
            (self.schedule >= places[0]) & (self.schedule <= places[-1])
            if len(keys) == 1
            else (self.is_schedule(keys[0]) | self.is_schedule(*keys[1:]))
        )


class LayoutCosts(NamedTuple):
    """The costs of a step with each of several layouts."""

    step_s: Real
    times_s: Real  # by layout and TERMS
    total_bytes: Real  # of the fullest stage
    parts_bytes: Real  # by layout and memory PARTS


def axes(case: Case, layouts: Layouts) -> Axes:
    """Job and layouts in the form that ``step`` takes."""
    a = layouts
    plan = Schedules(*(entry(COEFFICIENTS[name], a.schedule) for name in Schedules._fields))
    return Axes(
        case.seq,
        case.global_batch,
        a.tp,
        a.pp,
        a.cp,
        a.dp,
        a.ep,
        a.expert_tp,
        a.zero,
        0.0,
        a.micro_batch,
        a.recompute,
        plan,
        a.chunks,
    )


def entry(table: tuple[float, ...], schedule: Real) -> Real:
    """The entry of a table at an index that may be a symbol; 0 where there is none."""
    chosen = 0.0
    for index, value in enumerate(table):
        if value:
            chosen = ops.where(schedule == float(index), value, chosen)
    return chosen


def by_program(case: Case, found: Callable[[Job], Sequence[Real]]) -> list[Real]:
    """Some numbers, with the job whose program the case counts."""
    if len(case.jobs) == 1 or not hasattr(type(case.program), "__pick__"):
        return list(found(case.jobs[int(case.program)]))
    columns = list(found(case.jobs[0]))
    for place, job in enumerate(case.jobs[1:], start=1):
        is_counted = case.program == float(place)
        columns = [np.where(is_counted, own, other) for own, other in zip(found(job), columns, strict=True)]
    return columns


def terms(case: Case, layouts: Layouts) -> Terms:
    """Seconds and bytes of each layout's step."""
    a, size = axes(case, layouts), shape(case.model)
    return Terms(*by_program(case, lambda job: step(size, job, case.recipe, case.chip, case.wires, a)))


def memory_bytes(case: Case, layouts: Layouts) -> StageBytes:
    """Bytes of each layout's fullest stage, by part; the software's own memory is ``overhead_bytes``."""
    return StageBytes(*by_program(case, lambda job: _fullest(case, layouts, job)))


def _fullest(case: Case, layouts: Layouts, job: Job) -> list[Real]:
    a = axes(case, layouts)
    stages = stages_bytes(shape(case.model), job, case.recipe, a, *sizes(shape(case.model), a))
    first, second, last = (sum(stage) for stage in stages)
    return [
        ops.where(last > ops.maximum(first, second), in_last, ops.where(second > first, in_second, in_first))
        for in_first, in_second, in_last in zip(*stages)
    ]


def framework_bytes() -> float:
    """The software's own memory in addition to the model's."""
    return overhead_bytes(MODERN, 0.0)


def columns(cost: Terms, layouts: Layouts) -> list[Real]:
    """Seconds of each layout's step: a column for each of TERMS."""
    nothing = 0.0 * layouts.tp  # added to a term that no axis changes, it makes a column of a single number
    return [getattr(cost, name) + nothing for name in TERMS]


def times(cost: Terms, layouts: Layouts) -> Real:
    """Seconds of each layout's step, by TERMS."""
    return np.stack(columns(cost, layouts), axis=-1)


def filled(case: Case, layouts: Layouts) -> list[Real]:
    """Bytes of each layout's fullest stage: a column for each of PARTS."""
    found = framework_bytes(), *memory_bytes(case, layouts)
    return [part + 0.0 * layouts.tp for part in found]


def parts(case: Case, layouts: Layouts) -> Real:
    """Bytes of each layout's fullest stage, by PARTS."""
    return np.stack(filled(case, layouts), axis=-1)


def costs(case: Case, layouts: Layouts) -> LayoutCosts:
    """The costs of a step with each layout, split into terms."""
    cost, nothing = terms(case, layouts), 0.0 * layouts.tp
    return LayoutCosts(
        cost.step_s + nothing, times(cost, layouts), cost.total_bytes + nothing, parts(case, layouts)
    )


TERMS = tuple(name for name in Terms._fields if name not in ("step_s", "total_bytes"))
SENT = ("tensor_s", "context_s", "expert_s", "data_exposed_s", "other_s")  # terms that are traffic
PARTS = ("framework", *StageBytes._fields)


def sequences(batch_tokens: Real, seq: Real) -> Real:
    """Whole sequences in a batch of this many tokens; at least one."""
    return ops.maximum(1.0, ops.floor(batch_tokens * 1.0 / seq))


def ideal_s(case: Case) -> Real:
    """The step that the model's arithmetic alone would take, at the pace of the best matrix products. With no
    GPU at all it is the step of one GPU."""
    tokens, gpus = case.global_batch * case.seq, ops.maximum(case.gpus * 1.0, 1.0)
    return model_flops_per_token(case) * tokens / (gpus * case.chip.matmul_flops_per_s)


def model_flops_per_token(case: Case) -> Real:
    """FLOPs that MFU counts: forward and backward, with causal attention."""
    return flops.training_flops_per_token(shape(case.model), case.seq)


def run(
    case: Case, layouts: Layouts, tokens: Real, fp8: Real, by: TrainingSoftware = MODERN.software
) -> ExportedRun:
    """The first layout as settings for another program, in whole numbers. Where there is no layout, all its
    numbers are 1."""
    a = Layouts(*(np.where(column[0] >= 0, column[0], 1.0) for column in layouts))
    return ExportedRun(
        case.model,
        *cut(a),
        a.recompute,
        a.schedule,
        a.chunks,
        SCHEDULE_KEYS,
        case.global_batch,
        case.seq,
        tokens,
        fp8,
        by.loss,
        gradient_bytes=case.recipe.gradient_bytes,
        gather_context=by.context == "gather",
        eager=by.kernels == "eager",
    )


def crosses(case: Case, layouts: Layouts) -> list:
    """How the winner's pipeline, data, context and tensor groups communicate: 0 inside a node, 1 across
    nodes, 2 not at all. Tensor ranks are innermost, so a group reaches as far as the product of its own axis
    and those inside it."""
    a, per_node = layouts, case.wires.gpus_per_node
    groups = [
        (a.pp, a.tp * a.cp * a.dp * a.pp),
        (a.dp, a.tp * a.cp * a.dp),
        (a.cp, a.tp * a.cp),
        (a.tp, a.tp),
    ]
    return [np.where(size[0] > 1, np.where(reach[0] > per_node, 1.0, 0.0), 2.0) for size, reach in groups]


class Wired(Protocol):
    """What has wires: a case, or a machine."""

    @property
    def wires(self) -> Wires:
        """How fast they are, and how many GPUs a node has."""
        ...


def beyond_the_node(case: Wired, layouts: Layouts | Axes) -> Truth:
    """Whether the traffic behind each of TERMS leaves the node, by layout; False for a term without
    traffic."""
    a, none = layouts, 0.0 * layouts.tp
    replica = a.tp * a.cp * a.dp
    reach: dict[str, Real] = dict(zip(SENT, (a.tp, a.tp * a.cp, a.ep * a.expert_tp, replica, replica * a.pp)))
    return np.stack([reach.get(term, none) + none for term in TERMS], axis=-1) > case.wires.gpus_per_node


def chunks_of(schedule: Real) -> Real:
    """Chunks of layers per stage, by index into SCHEDULE_KEYS."""
    return entry(CHUNKS, schedule)
