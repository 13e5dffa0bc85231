"""How a decode step reaches the GPU: kernel by kernel, or as a graph that was captured once and is replayed.

The kernels of a step were counted in a real PyTorch (record/decode_kernels.py). The time of each on the GPU
follows from the bytes that it moves, and the CPU time to issue one is given. ``step`` then runs CPU and GPU
against each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check
from engine.base.program import program
from engine.base.types import Real
from engine.calibration import launch_costs
from engine.calibration.attention import decode_s
from engine.calibration.products import gemm_s
from engine.mechanism.shape import shape
from engine.one_gpu import dispatch, recordings
from engine.serving import inference
from engine.step.layout import machine

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.models import Model
    from engine.step.layout import Machine

MOST_SHOWN = 100  # kernels whose times are returned individually
QUEUE = int(dispatch.QUEUE)  # launches that can wait for the GPU; beyond that the CPU waits
KINDS = ("small", "product", "attention", "AllReduce")
SUMMED = (4, 7)  # products followed by an AllReduce of tensor parallelism: attention's output and the MLP's
BATCHES = np.unique(np.round(np.geomspace(1, 2048, 120)))  # batch sizes to search


# -- kernels -------------------------------------------------------------------------------------------------
class Kernels(NamedTuple):
    """GPU time of each kernel in seconds, in order; 0 for one that does not exist."""

    before_s: np.ndarray  # the step's kernels before its layers
    layer_s: np.ndarray  # the kernels of each layer
    after_s: np.ndarray  # final norm, output layer, sampling the token
    what: np.ndarray  # the purpose of each kernel of a layer: index into KINDS
    after_what: np.ndarray  # the same of those after the layers; those before are all small


def counted(way: str) -> dict:
    """The kernels of a step as they were recorded: "eager" or "compiled"."""
    check.one_of(("eager", "compiled"), way=way)
    return recordings.load("decode_kernels")[way]


def kernels_per_layer(way: str) -> int:
    """Kernels in one layer on one GPU."""
    return len(counted(way)["layer"])


def what(way: str) -> list[str]:
    """The purpose of each kernel of a layer, as in ``kernels``, including the AllReduces after attention and
    the MLP."""
    named, products = [], 0
    for kind in counted(way)["layer_kinds"]:
        named.append(kind)
        products += kind == "product"
        if kind == "product" and products in SUMMED:
            named.append("AllReduce")
    return named


def kernels_per_step(way: str, layers: Real, tp: Real = 1) -> Real:
    """Kernels in a whole decode step, on each of ``tp`` GPUs; with several GPUs, two AllReduces per layer are
    added."""
    check.whole(layers=layers, tp=tp)
    found = counted(way)
    return found["before"] + layers * (len(found["layer"]) + np.where(tp > 1, 2, 0)) + len(found["after"])


def _products(size, tp):
    """(k, n) of a layer's seven products on one GPU, in execution order."""
    query, key = size.query_values / tp, size.key_values / inference.kv_shards(size, tp)
    ffn = size.ffn / tp
    return [
        (size.hidden, query),
        (size.hidden, key),
        (size.hidden, key),
        (query, size.hidden),
        (size.hidden, ffn),
        (size.hidden, ffn),
        (ffn, size.hidden),
    ]


def kernels(
    way: str,
    model: Model,
    at: Machine,
    tp: Real,
    batch: Real,
    context: Real,
    small_s: Real = launch_costs.SHORTEST_S,
) -> Kernels:
    """GPU time of each kernel of a decode step: products and attention take as long as was measured, without
    their launch, for which the gap between kernels stands here; an AllReduce takes as long as its message,
    and every other kernel takes ``small_s``. No kernel takes less than that.

    Leaves out the bytes of the activations: up to some hundred sequences, the time of a small kernel covers
    them.
    """
    if not check.is_trusted():
        check.whole(tp=tp, batch=batch)
        check.positive(context=context, small_s=small_s)
    found, size, chip = counted(way), shape(model), at.chip
    with check.trusted():
        kind = size.attended[0]
        heads, kv_heads = kind.heads / tp, kind.kv_heads / inference.kv_shards(size, tp)
        attention_s = decode_s(batch, context, heads, kv_heads, kind.qk_dim, chip.decode)
        reduce_s = np.where(tp > 1, inference.reduce_s(batch * size.hidden * 2.0, tp, "auto", at.wires), 0.0)

        def taken(k, n):
            return np.maximum(small_s, gemm_s(batch, n, k, chip.wide) - chip.wide.launch_s)

        products = iter([taken(*sides) for sides in _products(size, tp)])
        others = {
            "attention": np.maximum(small_s, attention_s - chip.decode.launch_s),
            "small": small_s,
            "AllReduce": reduce_s,
        }
        layer = [next(products) if kind == "product" else others[kind] for kind in what(way)]
        head_s = taken(size.hidden, size.vocab / tp)
    none = 0.0 * (batch + tp + context + small_s + size.hidden)
    after = [head_s if kind == "product" else small_s for kind in found["after_kinds"]]

    def column(values):
        return np.stack([value + none for value in values])

    before = [small_s] * found["before"] or [0.0]  # a page cannot have empty columns
    return Kernels(
        column(before),
        column(layer),
        column(after),
        np.array([KINDS.index(kind) for kind in what(way)], dtype=float),
        np.array([KINDS.index(kind) for kind in found["after_kinds"]], dtype=float),
    )


def gpu_s(found: Kernels, layers: Real, gap_s: Real) -> Real:
    """The GPU's time for a step if it never waits: its kernels, and the gap after each."""

    def total(each_s):
        return np.sum(each_s + np.where(each_s > 0, gap_s, 0.0), axis=0)

    return total(found.before_s) + layers * total(found.layer_s) + total(found.after_s) - gap_s


def by_kind_s(found: Kernels, layers: Real, gap_s: Real) -> Real:
    """``gpu_s`` by purpose, in the order of KINDS: each kernel with the gap after it, so that the last gap is
    one too many."""

    def spent(each_s, what, kind):
        return np.sum(np.where((what == kind) & (each_s > 0), each_s + gap_s, 0.0))

    in_all = []
    for kind in range(len(KINDS)):
        layer_s = spent(found.layer_s, found.what, kind)
        in_all.append(layers * layer_s + spent(found.after_s, found.after_what, kind))
    in_all[0] = in_all[0] + spent(found.before_s, np.zeros(len(found.before_s)), 0)
    return np.stack(in_all)


def count(found: Kernels, layers: Real) -> Real:
    """The number of kernels."""

    def there(each_s):
        return np.sum(np.where(each_s > 0, 1.0, 0.0), axis=0)

    return there(found.before_s) + layers * there(found.layer_s) + there(found.after_s)


def enough_s(found: Kernels, layers: Real, gap_s: Real) -> Real:
    """CPU time per kernel up to which the GPU is the slower of the two: its time over the number of
    kernels."""
    return gpu_s(found, layers, gap_s) / count(found, layers)


# -- a step, run ---------------------------------------------------------------------------------------------
def played(
    before_s: list[float],
    layer_s: list[float],
    after_s: list[float],
    what: list[float],
    layers: int,
    first_s: float,
    issue_s: float,
    gap_s: float,
    shown: float,
) -> tuple[Any, ...]:
    """The results of ``step``, as lists and numbers in the order of its outputs."""
    begins, issued, starts, ends, numbers, whats, done = [], [], [], [], [], [], []
    now, free, busy, waited = first_s, -gap_s, 0.0, 0.0
    for part in range(layers + 2):
        row = before_s
        if part > layers:
            row = after_s
        elif part > 0:
            row = layer_s
        for i in range(len(row)):
            if row[i] > 0:
                now = now + issue_s
                ahead = len(done) - QUEUE  # the kernel that must be done before another can be queued
                if issue_s > 0 and ahead >= 0 and done[ahead] > now:
                    waited = waited + done[ahead] - now
                    now = done[ahead]
                start = max(now, free + gap_s)
                free = start + row[i]
                busy = busy + row[i]
                done.append(free)
                if part <= shown and len(starts) < MOST_SHOWN:
                    if issue_s > 0 or len(starts) == 0:
                        begins.append(now - issue_s if issue_s > 0 else 0.0)
                    issued.append(now)
                    starts.append(start)
                    ends.append(free)
                    numbers.append(part)
                    whats.append(what[i] if part > 0 and part <= layers else 0)
    return begins, issued, starts, ends, numbers, whats, free, now, busy, len(done), waited


@program(
    began_s=MOST_SHOWN,
    issued_s=MOST_SHOWN,
    start_s=MOST_SHOWN,
    end_s=MOST_SHOWN,
    layer=MOST_SHOWN,
    what=MOST_SHOWN,
    total_s=(),
    cpu_s=(),
    busy_s=(),
    kernels=(),
    full_s=(),
)
def step(
    before_s: list[float],
    layer_s: list[float],
    after_s: list[float],
    what: list[float],
    layers: float,
    first_s: float,
    issue_s: float,
    gap_s: float,
    shown: float,
) -> dict[str, Any]:
    """One step from its first launch to its last kernel's end. The CPU issues one kernel after another, each
    ``issue_s`` after the one before, the first after an extra ``first_s``; a graph is issued at once. The GPU
    runs them in order, each once it has been issued and ``gap_s`` after the last one's end. While ``QUEUE``
    kernels are unfinished the CPU waits; ``full_s`` is how long it waits in all.

    Up to layer ``shown`` it returns each kernel's times (a graph is issued once), its layer (0 before the
    first) and its purpose.
    """
    begins, issued, starts, ends, numbers, whats, total_s, cpu_s, busy_s, count, full_s = played(
        before_s, layer_s, after_s, what, int(layers), first_s, issue_s, gap_s, shown
    )
    return {
        "began_s": begins,
        "issued_s": issued,
        "start_s": starts,
        "end_s": ends,
        "layer": numbers,
        "what": whats,
        "total_s": total_s,
        "cpu_s": cpu_s,
        "busy_s": busy_s,
        "kernels": count,
        "full_s": full_s,
    }


@program(
    lane=4 * MOST_SHOWN,
    issued_s=4 * MOST_SHOWN,
    start_s=4 * MOST_SHOWN,
    end_s=4 * MOST_SHOWN,
    layer=4 * MOST_SHOWN,
    what=4 * MOST_SHOWN,
    cpu_lane=4 * MOST_SHOWN,
    cpu_from_s=4 * MOST_SHOWN,
    cpu_to_s=4 * MOST_SHOWN,
    total_s=4,
    busy_s=4,
    kernels=4,
    last_s=4,
)
def four_steps(
    before_s: list[float],
    layer_s: list[float],
    after_s: list[float],
    what: list[float],
    fused_before_s: list[float],
    fused_layer_s: list[float],
    fused_after_s: list[float],
    fused_what: list[float],
    layers: float,
    issue_s: float,
    launch_s: float,
    fused_launch_s: float,
    shown: float,
) -> dict[str, Any]:
    """``step`` four times: eager, compiled, and each of these as a graph. One row for each kernel shown, with
    its lane counted from 0; one for each launch on the CPU; and for each step its total time, and the end of
    the last kernel shown."""
    lane, issued_s, start_s, end_s, layer, kind = [], [], [], [], [], []
    cpu_lane, cpu_from_s, cpu_to_s = [], [], []
    total_s, busy_s, kernels_run, last_s = [], [], [], []
    for way in range(4):
        each_s = issue_s if way < 2 else 0.0
        gap_s = launch_costs.STREAM_GAP_S if way < 2 else launch_costs.GRAPH_GAP_S
        first_s = 0.0
        if way == 2:
            first_s = launch_s
        elif way == 3:
            first_s = fused_launch_s
        if way == 0 or way == 2:
            begins, issued, starts, ends, numbers, whats, total, _cpu, busy, count, _waited = played(
                before_s, layer_s, after_s, what, int(layers), first_s, each_s, gap_s, shown
            )
        else:
            begins, issued, starts, ends, numbers, whats, total, _cpu, busy, count, _waited = played(
                fused_before_s,
                fused_layer_s,
                fused_after_s,
                fused_what,
                int(layers),
                first_s,
                each_s,
                gap_s,
                shown,
            )
        for i in range(len(starts)):
            lane.append(way)
            issued_s.append(issued[i])
            start_s.append(starts[i])
            end_s.append(ends[i])
            layer.append(numbers[i])
            kind.append(whats[i])
        for i in range(len(begins)):
            cpu_lane.append(way)
            cpu_from_s.append(begins[i])
            cpu_to_s.append(issued[i])
        total_s.append(total)
        busy_s.append(busy)
        kernels_run.append(count)
        last_s.append(ends[len(ends) - 1])
    return {
        "lane": lane,
        "issued_s": issued_s,
        "start_s": start_s,
        "end_s": end_s,
        "layer": layer,
        "what": kind,
        "cpu_lane": cpu_lane,
        "cpu_from_s": cpu_from_s,
        "cpu_to_s": cpu_to_s,
        "total_s": total_s,
        "busy_s": busy_s,
        "kernels": kernels_run,
        "last_s": last_s,
    }


def graph_launch_s(found: Kernels, layers: Real) -> Real:
    """CPU time to launch all kernels of a step as one graph."""
    return launch_costs.GRAPH_LAUNCH_S + launch_costs.NODE_LAUNCH_S * count(found, layers)


def four(eager: Kernels, compiled: Kernels, layers: Real, issue_s: Real, shown: Real) -> dict[str, Real]:
    """``four_steps`` for two sets of kernels, each issued one by one and as a graph."""
    return four_steps(
        eager.before_s,
        eager.layer_s,
        eager.after_s,
        eager.what,
        compiled.before_s,
        compiled.layer_s,
        compiled.after_s,
        compiled.what,
        layers,
        issue_s,
        graph_launch_s(eager, layers),
        graph_launch_s(compiled, layers),
        shown,
    )


def run(found: Kernels, layers: int, issue_s: float, captured: Real, shown: int = 0) -> dict[str, np.ndarray]:
    """A step whose kernels are issued one by one (``captured`` 0) or replayed from a graph (1)."""
    if captured:
        return step(
            found.before_s,
            found.layer_s,
            found.after_s,
            found.what,
            layers,
            graph_launch_s(found, layers),
            0.0,
            launch_costs.GRAPH_GAP_S,
            shown,
        )
    return step(
        found.before_s,
        found.layer_s,
        found.after_s,
        found.what,
        layers,
        0.0,
        issue_s,
        launch_costs.STREAM_GAP_S,
        shown,
    )


def trial(
    way: str,
    model: Model,
    gpu: Gpu,
    tp: Real = 1,
    batch: Real = 1,
    context: Real = 1024.0,
    issue_s: float = launch_costs.ISSUE_S,
    captured: Real = 0,
    small_s: float = launch_costs.SHORTEST_S,
) -> dict:
    """``run`` by the names of a model and a GPU, for a lesson."""
    found = kernels(way, model, machine(gpu), tp * 1.0, batch * 1.0, context, small_s)
    return run(found, model.depth, issue_s, captured)


def token_s(
    way: str,
    model: Model,
    gpu: Gpu,
    tp: Real = 1,
    batch: Real = 1,
    context: Real = 1024.0,
    issue_s: float = launch_costs.ISSUE_S,
    captured: Real = 0,
) -> float:
    """Seconds of the step of ``trial``: the time from one token of a sequence to the next."""
    return trial(way, model, gpu, tp, batch, context, issue_s, captured)["total_s"]


def rule_s(way: str, model: Model, gpu: Gpu, tp: Real = 1, batch: Real = 1, context: Real = 1024) -> Real:
    """Seconds of the step of ``trial`` by a rule of thumb: the longer of all launches together and of all
    kernels with their gaps. Leaves out that short kernels still wait for their launches where long ones set
    the pace."""
    found = kernels(way, model, machine(gpu), tp * 1.0, batch * 1.0, context)
    issued_s = kernels_per_step(way, model.depth, tp) * launch_costs.ISSUE_S
    return launch_costs.step_s(issued_s, gpu_s(found, model.depth, launch_costs.STREAM_GAP_S))


def enough_batch(
    way: str,
    model: Model,
    gpu: Gpu,
    tp: Real = 1,
    context: Real = 1024.0,
    issue_s: Real = launch_costs.ISSUE_S,
) -> int:
    """The first of BATCHES for which the GPU alone takes as long as the CPU; 0 if there is none."""
    for batch in BATCHES:
        found = kernels(way, model, machine(gpu), tp * 1.0, batch, context)
        if enough_s(found, model.depth, launch_costs.STREAM_GAP_S) >= issue_s:
            return int(batch)
    return 0


# -- reading a run -------------------------------------------------------------------------------------------
def waiting_share(found: dict[str, Real], gap_s: Real = launch_costs.STREAM_GAP_S) -> Real:
    """The share of a step in which the GPU waits for a launch. Gaps between kernels do not count, because
    they would be there even if every launch came in time."""
    return 1.0 - (found["busy_s"] + (found["kernels"] - 1.0) * gap_s) / found["total_s"]
