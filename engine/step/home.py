"""The home page's example, a step of an 8B model on 1 to 16,384 GPUs, and the case in which the figure of
strategies opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine import catalog
from engine.base import check, ops
from engine.base.types import Real
from engine.executed import fully_sharded
from engine.mechanism import compute, memory, sharding
from engine.mechanism.pipeline import SCHEDULES
from engine.mechanism.shape import shape
from engine.step import layout, search, strategy
from engine.step.layout import Job, Layout
from engine.step.step import Axes, kept_bytes, layer_time, micro_batch, sizes, step

if TYPE_CHECKING:
    from engine.mechanism.matmul import Chip
    from engine.mechanism.wires import Wires
    from engine.step.layout import Estimate

MODEL, GPU = "llama3.1-8b", "h100-sxm"
SEQUENCES, SEQ = 2048, 4096  # of a step: 8.4 million tokens, as in Llama 3's second phase (arXiv:2407.21783)
MOST_GPUS = 16_384


class Shared(NamedTuple):
    """A step of the home page's job, and the last sequence that each of its GPUs works on."""

    step_s: Real
    compute_s: Real
    optimizer_s: Real
    wire_s: Real  # how long the wires are busy, hidden or not
    total_bytes: Real  # of HBM at the step's fullest moment
    turns: Real  # sequences that a GPU works on, one after the other
    sharers: Real  # GPUs that work on one sequence together
    layer: (
        fully_sharded.ShardedLayer
    )  # of one such sequence; the output layer's time is spread over all of them
    logits_bytes: Real  # held between the passes
    base_bytes: Real  # held all the time: this GPU's share of the state, two gathered layers, the framework


def split(gpus: int) -> Layout:
    """The rule by which the step is laid out: FSDP over all GPUs. Where there are more of them than
    sequences, several share one (context parallelism)."""
    return Layout(gpus, cp=max(1, gpus // SEQUENCES), zero=3)


def _axes(gpus: Real) -> Axes:
    """``split`` for symbols."""
    replicas = ops.minimum(1.0 * gpus, float(SEQUENCES))
    one = (1.0, 1.0)
    return Axes(
        float(SEQ),
        float(SEQUENCES),
        *one,
        gpus / replicas,
        replicas,
        *one,
        3.0,
        0.0,
        1.0,
        0.0,
        SCHEDULES["1f1b"],
        1.0,
    )


def shared(gpus: Real, chip: Chip, wires: Wires) -> Shared:
    """The step on this many GPUs, a power of two; its times and bytes are ``estimate``'s for ``split``."""
    if not check.is_trusted():
        check.whole(gpus=gpus)
    size, job, recipe, a = shape(catalog.model(MODEL)), strategy.HIDING, layout.default_recipe(), _axes(gpus)
    terms = step(size, job, recipe, chip, wires, a)
    tokens, turns, stage = sizes(size, a)
    each = layer_time(size, job, chip, a, tokens, micro_batch(size, job, chip, wires, a, tokens))
    head_forward_s, head_backward_s = compute.head(size, tokens, 1.0, 1.0, chip)
    layers, ranks = stage.first, a.dp * a.cp
    gather_s, scatter_s = (
        sent_s(size.total_params, ranks, 1.0, recipe, layers, wires) / layers
        for sent_s in (sharding.gather_s, sharding.scatter_s)
    )
    kept = kept_bytes(size, job, a, tokens, 1.0, 0.0)
    logits = memory.loss_bytes(size, a.seq, 1.0, 1.0, a.cp)
    one = fully_sharded.ShardedLayer(
        each.forward_s + head_forward_s / layers,
        each.backward_s + head_backward_s / layers,
        gather_s,
        scatter_s,
        0.0,  # gathered weights are part of base_bytes
        0.0,
        kept,
    )
    return Shared(
        terms.step_s,
        terms.compute_s,
        terms.optimizer_s,
        turns * layers * (2.0 * gather_s + scatter_s),
        terms.total_bytes,
        turns,
        a.cp,
        one,
        logits,
        terms.total_bytes - layers * kept - logits,
    )


def tokens_per_s(step: Shared) -> Real:
    """Tokens that all GPUs together get through."""
    return SEQUENCES * SEQ / step.step_s


def on(gpus: int) -> Shared:
    """The step on H100s, for prose."""
    at = layout.machine(catalog.gpu(GPU))
    return shared(float(gpus), at.chip, at.wires)


def saved(gpus: int, before: int) -> float:
    """The share of the step that more GPUs save."""
    return 1 - on(gpus).step_s / on(before).step_s


def fewest() -> int:
    """The least power of two of these H100s on which the step fits."""
    gpus = 1
    while on(gpus).total_bytes > memory.capacity_bytes(catalog.gpu(GPU)):
        gpus *= 2
    return gpus


def planned(gpus: int) -> Estimate:
    """The same step in the fastest layout that fits these H100s."""
    at = layout.machine(catalog.gpu(GPU))
    return search.plan(catalog.model(MODEL), at, Job(SEQUENCES, SEQ), gpus).best


def loads(key: str) -> strategy.Loads:
    """The load of one strategy for a step of four sequences of 4,096 tokens on eight H100s."""
    at = layout.machine(catalog.gpu(GPU))
    return strategy.loads_of(key, catalog.model(MODEL), at, gpus=8, sequences=4, seq=4096)
