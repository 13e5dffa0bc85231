"""The load that each parallel strategy, applied alone to all GPUs, puts on the three resources: HBM, compute,
interconnect.

Each strategy is a ``Layout`` in which one axis (or one ZeRO stage) takes every GPU, with one sequence per
micro-batch; its numbers are those of the step that the planner and the command line use. A load is relative
to the capacity of one GPU:

    HBM            bytes on the fullest GPU / bytes of its HBM
    compute        seconds of arithmetic, optimizer and idle stages beyond the ideal / the ideal
    interconnect   seconds that its transfers keep the wires busy, hidden or not / the ideal

The ideal is the step's own arithmetic, evenly divided: ``compute_s`` of plain data parallelism. Communication
that takes longer than that cannot be hidden behind it. Leaves out mixtures of strategies, which large runs
use (lesson 10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine import catalog
from engine.base import check, ops
from engine.base.types import Real, Truth
from engine.mechanism import memory
from engine.mechanism.pipeline import SCHEDULES
from engine.mechanism.shape import shape
from engine.step.layout import Job, Layout, default_recipe
from engine.step.step import Axes, Terms, context_exposed_s, micro_batch, seconds, sizes, step

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.catalog.recipes import Recipe
    from engine.mechanism.interconnect import Wires
    from engine.mechanism.matmul import Chip
    from engine.step.layout import Machine


class Strategy(NamedTuple):
    """One way to use all GPUs; ``cuts`` names the axis of a Layout that takes them, by default the
    data-parallel one."""

    key: str
    name: str
    short: str
    cuts: str = "dp"
    zero: int = 0
    recompute: str = "none"


STRATEGIES = (
    Strategy("dp", "plain data parallelism", "DP"),
    Strategy("zero1", "ZeRO-1", "ZeRO-1", zero=1),
    Strategy("fsdp", "FSDP (ZeRO-3)", "FSDP", zero=3),
    Strategy("tp", "tensor parallelism", "TP", "tp"),
    Strategy("pp", "pipeline parallelism", "PP", "pp"),
    Strategy("cp", "context parallelism", "CP", "cp"),
    Strategy("ep", "expert parallelism", "EP", "ep"),
    Strategy("recompute", "DP + recomputation", "DP + rec.", recompute="full"),
    Strategy("fsdp_recompute", "FSDP + recomputation", "FSDP + rec.", zero=3, recompute="full"),
)
KEYS = [strategy.key for strategy in STRATEGIES]
RESOURCES = ("HBM", "compute", "interconnect")
START = 0  # plain data parallelism, to which the others are compared
HIDING = Job(1, 1)  # today's software; a job's sizes are in the axes
HIDING_NOTHING = Job(1, 1, software=catalog.modern(overlaps=""))


class StrategyCosts(NamedTuple):
    """The costs of a step, in columns in the order of STRATEGIES; ``ideal_s`` is one number."""

    possible: Truth  # whether the layout can be built
    total_bytes: Real  # on the fullest GPU
    step_s: Real  # with as much hidden behind arithmetic as today's software hides
    ideal_s: Real
    extra_s: Real  # arithmetic, optimizer and idling beyond the ideal
    wire_s: Real  # transfers, hidden or not …
    exposed_s: Real  # … and the exposed part of them


def _which(field: str, value) -> np.ndarray:
    return np.array([getattr(strategy, field) == value for strategy in STRATEGIES])


def layout(strategy: Strategy, model: Model, gpus: int) -> Layout:
    """One strategy over all GPUs, as ``layout.estimate`` takes it. There are no more expert ranks than
    experts."""
    degrees = {
        "dp": {},
        "tp": {"tp": gpus, "expert_tp": gpus if model.experts else 1},
        "pp": {"pp": gpus},
        "cp": {"cp": gpus},
        "ep": {"ep": min(gpus, model.experts)},
    }
    return Layout(gpus, **degrees[strategy.cuts], zero=strategy.zero, recompute=strategy.recompute)


def axes(model: Model, gpus: Real, sequences: Real, seq: Real) -> Axes:
    """The layouts of all strategies at once, one column per axis; ``sequences`` are per GPU and step."""
    tp, pp, cp = (np.where(_which("cuts", axis), gpus, 1.0) for axis in ("tp", "pp", "cp"))
    ep = np.where(_which("cuts", "ep"), np.minimum(gpus, np.maximum(model.experts, 1.0)), 1.0)
    expert_tp = np.where(_which("cuts", "tp") & (model.experts > 0), gpus, 1.0)
    zero = np.array([float(strategy.zero) for strategy in STRATEGIES])
    recompute = np.array([float(memory.RECOMPUTE[strategy.recompute]) for strategy in STRATEGIES])
    return Axes(
        seq,
        gpus * sequences,
        tp,
        pp,
        cp,
        gpus / (tp * pp * cp),
        ep,
        expert_tp,
        zero,
        0.0,
        1.0,
        recompute,
        SCHEDULES["1f1b"],
        1.0,
    )


def possible(model: Model, gpus: Real, seq: Real) -> Truth:
    """Which strategies can be built: heads, tokens and experts must divide among the GPUs, and there must be
    enough layers."""
    ranks = np.minimum(gpus, np.maximum(model.experts, 1.0))
    uneven = (np.remainder(model.experts, ranks) > 0) | (np.remainder(gpus, ranks) > 0)
    refused = {
        "tp": np.remainder(model.heads, gpus) > 0,
        "pp": model.depth < gpus,
        "cp": np.remainder(seq, 2.0 * gpus) > 0,
        "ep": uneven | (model.experts < 1),
    }
    return sum(np.where(_which("cuts", axis) & why, 1.0, 0.0) for axis, why in refused.items()) < 1


def costs(
    model: Model, chip: Chip, wires: Wires, recipe: Recipe, gpus: Real, sequences: Real, seq: Real
) -> StrategyCosts:
    """All strategies for a model on this many GPUs, each with this many sequences of ``seq`` tokens per
    step."""
    check.whole(gpus=gpus, sequences=sequences, seq=seq)
    gpus = 1.0 * gpus
    a = axes(model, gpus, 1.0 * sequences, 1.0 * seq)
    size = shape(model)
    sized = sizes(size, a)
    own = micro_batch(size, HIDING, chip, wires, a, sized[0])  # the same, whether or not traffic is hidden
    now = step(size, HIDING, recipe, chip, wires, a, own)
    bare = Terms(*seconds(size, HIDING_NOTHING, recipe, chip, wires, a, *sized, own), total_bytes=0.0)
    wire_s = _moving_s(bare._replace(context_s=_context_s(size, wires, a)))
    ideal_s = now.compute_s[START]
    worked_s = now.compute_s + now.pipeline_bubble_s + now.optimizer_s
    return StrategyCosts(
        possible(model, gpus, 1.0 * seq),
        now.total_bytes,
        now.step_s,
        ideal_s,
        ops.maximum(0.0, worked_s - ideal_s),
        wire_s,
        _moving_s(now),
    )


def _moving_s(terms: Terms):
    return terms.tensor_s + terms.context_s + terms.expert_s + terms.data_exposed_s + terms.other_s


def _context_s(size, wires, a: Axes):
    """The time to pass keys and values around, without attention to hide it."""
    tokens, micro_batches, _ = sizes(size, a)
    forward_s, backward_s = context_exposed_s(size, HIDING, wires, a, tokens, (0.0, 0.0))
    return micro_batches * size.depth * (forward_s + backward_s)


def loads(found: StrategyCosts, hbm_bytes: Real) -> Real:
    """The loads of each strategy on HBM, compute and interconnect, one row per strategy; 0 where it cannot be
    built."""
    asked = np.stack(
        np.broadcast_arrays(
            found.total_bytes / hbm_bytes, found.extra_s / found.ideal_s, found.wire_s / found.ideal_s
        ),
        axis=-1,
    )
    return np.where(found.possible[:, None], asked, 0.0)


class Loads(NamedTuple):
    """The three loads of one strategy."""

    hbm: float
    compute: float
    interconnect: float


def loads_of(
    key: str, model: Model, at: Machine, gpus: int, sequences: int, seq: int, recipe: Recipe | None = None
) -> Loads:
    """One strategy's loads on GPUs like ``at`` (a ``layout.machine``), for prose."""
    check.one_of(KEYS, key=key)
    found = costs(model, at.chip, at.wires, recipe or default_recipe(), gpus, sequences, seq)
    return Loads(*(float(load) for load in loads(found, memory.capacity_bytes(at.gpu))[KEYS.index(key)]))


class Trade(NamedTuple):
    """What each strategy saves and costs, compared with plain data parallelism."""

    saved_bytes: Real
    paid_s: Real  # what it costs: the larger increase of compute and wires; 0 where neither increases
    in_wires: Truth  # whether the larger increase is that of the wires
    is_little: Truth  # whether ``paid_s`` is less than a thousandth of the ideal step


def trades(found: StrategyCosts) -> Trade:
    """Each strategy compared with the first."""
    saved_bytes = found.total_bytes[START] - found.total_bytes
    extra_s, wire_s = (column - column[START] for column in (found.extra_s, found.wire_s))
    paid_s = ops.maximum(0.0, ops.maximum(extra_s, wire_s))
    return Trade(saved_bytes, paid_s, wire_s >= extra_s, paid_s < 1e-3 * found.ideal_s)
