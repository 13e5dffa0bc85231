"""What each parallel strategy, taken alone by all GPUs, asks of the three resources: HBM, compute, interconnect.

Each strategy is a ``Layout`` in which one axis (or one ZeRO stage) takes every GPU, with one sequence a micro-batch; its
numbers are those of the step that the planner and the command line use. A load is a share of what one GPU has, 1 is all:

    HBM            bytes on the fullest GPU / bytes of its HBM
    compute        seconds of arithmetic, optimizer and idle stages beyond the ideal / the ideal
    interconnect   seconds that its transfers keep the wires busy, hidden or not / the ideal

The ideal is the step's own arithmetic, evenly divided: ``compute_s`` of plain data parallelism. Wires that are busy for
longer than that cannot be hidden behind it. Left out: mixtures of strategies, which are what large runs use (lesson 10).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine import check, memory, ops
from engine.layout import Job, Layout, default_recipe
from engine.own import as_model
from engine.pipeline import SCHEDULES
from engine.shape import shape
from engine.step import Axes, Terms, context_exposed_s, sizes, step


class Strategy(NamedTuple):
    """One way to use all GPUs; ``cuts`` names the axis of a Layout that takes them, the data-parallel one unless said."""

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
START = 0                                   # plain data parallelism: what the others are compared with
HIDING = Job(1, 1)                          # today's software; the sizes of a job stand in the axes
HIDING_NOTHING = Job(1, 1, overlap=False)


class Costs(NamedTuple):
    """What a step costs, in columns in the order of STRATEGIES; ``ideal_s`` is one number."""

    possible: object                        # whether the layout can be built
    total_bytes: object                     # on the fullest GPU
    step_s: object                          # behind arithmetic is hidden what today's software hides
    ideal_s: object
    extra_s: object                         # arithmetic, optimizer and idling beyond the ideal
    wire_s: object                          # transfers, hidden or not …
    exposed_s: object                       # … and what of them the step waits for


def _which(field: str, value) -> np.ndarray:
    return np.array([getattr(strategy, field) == value for strategy in STRATEGIES])


def layout(strategy: Strategy, model, gpus: int) -> Layout:
    """One strategy over all GPUs as ``layout.estimate`` takes it. There are no more expert ranks than experts."""
    degrees = {"dp": {}, "tp": {"tp": gpus, "expert_tp": gpus if model.experts else 1}, "pp": {"pp": gpus},
               "cp": {"cp": gpus}, "ep": {"ep": min(gpus, model.experts)}}
    return Layout(gpus, **degrees[strategy.cuts], zero=strategy.zero, recompute=strategy.recompute)


def axes(model, gpus, sequences, seq) -> Axes:
    """The layouts of all strategies at once, each axis a column; ``sequences`` are those of each GPU in a step."""
    tp, pp, cp = (np.where(_which("cuts", axis), gpus, 1.0) for axis in ("tp", "pp", "cp"))
    ep = np.where(_which("cuts", "ep"), np.minimum(gpus, np.maximum(model.experts, 1.0)), 1.0)
    expert_tp = np.where(_which("cuts", "tp") & (model.experts > 0), gpus, 1.0)
    zero = np.array([float(strategy.zero) for strategy in STRATEGIES])
    recompute = np.array([float(memory.RECOMPUTE[strategy.recompute]) for strategy in STRATEGIES])
    return Axes(seq, gpus * sequences, tp, pp, cp, gpus / (tp * pp * cp), ep, expert_tp, zero, 0.0, 1.0, recompute,
                SCHEDULES["1f1b"], 1.0)


def possible(model, gpus, seq):
    """Which can be built: heads, tokens and experts must divide among the GPUs, and layers suffice."""
    ranks = np.minimum(gpus, np.maximum(model.experts, 1.0))
    uneven = (np.remainder(model.experts, ranks) > 0) | (np.remainder(gpus, ranks) > 0)
    refused = {"tp": np.remainder(model.heads, gpus) > 0, "pp": model.layers < gpus,
               "cp": np.remainder(seq, 2.0 * gpus) > 0, "ep": uneven | (model.experts < 1)}
    return sum(np.where(_which("cuts", axis) & why, 1.0, 0.0) for axis, why in refused.items()) < 1


def costs(model, chip, wires, recipe, gpus, sequences, seq) -> Costs:
    """All strategies for a model on so many GPUs, each with so many sequences of ``seq`` tokens in a step."""
    check.whole(gpus=gpus, sequences=sequences, seq=seq)
    numbers, gpus = as_model(model), 1.0 * gpus
    a = axes(numbers, gpus, 1.0 * sequences, 1.0 * seq)
    size = shape(numbers)
    now, bare = (step(size, job, recipe, chip, wires, a) for job in (HIDING, HIDING_NOTHING))
    wire_s = _moving_s(bare._replace(context_s=_context_s(size, wires, a)))
    ideal_s = now.compute_s[START]
    worked_s = now.compute_s + now.pipeline_bubble_s + now.optimizer_s
    return Costs(possible(numbers, gpus, 1.0 * seq), now.total_bytes, now.step_s, ideal_s,
                 ops.maximum(0.0, worked_s - ideal_s), wire_s, _moving_s(now))


def _moving_s(terms: Terms):
    return terms.tensor_s + terms.context_s + terms.expert_s + terms.data_exposed_s + terms.other_s


def _context_s(size, wires, a: Axes):
    """What keys and values take to go round, with no attention to hide them."""
    tokens, micro_batches, _ = sizes(size, a)
    forward_s, backward_s = context_exposed_s(size, HIDING, wires, a, tokens, 0.0)
    return micro_batches * size.layers * (forward_s + backward_s)


def loads(found: Costs, hbm_bytes):
    """What each asks of HBM, compute and interconnect: a row for each strategy; nothing where it cannot be built."""
    asked = np.stack(np.broadcast_arrays(found.total_bytes / hbm_bytes, found.extra_s / found.ideal_s,
                                         found.wire_s / found.ideal_s), axis=-1)
    return np.where(found.possible[:, None], asked, 0.0)


def shares(asked):
    """How each strategy's loads divide among the three: rows that add up to 1, or to 0 where nothing is asked."""
    whole = np.sum(asked, axis=-1, keepdims=True)
    return asked / np.where(whole > 0, whole, 1.0)


class Loads(NamedTuple):
    """The three loads of one strategy."""

    hbm: float
    compute: float
    interconnect: float


def loads_of(key: str, model, at, gpus, sequences, seq, recipe=None) -> Loads:
    """One strategy's loads on GPUs like ``at`` (a ``layout.machine``), for prose."""
    check.one_of(KEYS, key=key)
    found = costs(model, at.chip, at.wires, recipe or default_recipe(), gpus, sequences, seq)
    return Loads(*(float(load) for load in loads(found, at.gpu.hbm_bytes)[KEYS.index(key)]))


class Trade(NamedTuple):
    """What each strategy saves and pays against plain data parallelism."""

    saved_bytes: object
    paid_s: object                          # the dearer of compute and wires; 0 where neither costs more
    in_wires: object                        # whether that is the wires
    is_little: object                       # less than a thousandth of the ideal step


def trades(found: Costs) -> Trade:
    """Each strategy against the first."""
    saved_bytes = found.total_bytes[START] - found.total_bytes
    extra_s, wire_s = (column - column[START] for column in (found.extra_s, found.wire_s))
    paid_s = ops.maximum(0.0, ops.maximum(extra_s, wire_s))
    return Trade(saved_bytes, paid_s, wire_s >= extra_s, paid_s < 1e-3 * found.ideal_s)
