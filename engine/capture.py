"""How a decode step reaches the GPU: call by call, or as a graph that was captured once and is replayed.

The kernels of a step were counted in a real PyTorch (record/decode_kernels.py); what each takes on the GPU follows from
the bytes it moves; how long the CPU needs to issue one is given. ``step`` then runs CPU and GPU against each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine import check, dispatch, inference, memory, recordings
from engine.layout import machine
from engine.matmul import product_s, stream_s
from engine.program import program
from engine.shape import shape

MOST_SHOWN = 100                # kernels whose times are given one by one
QUEUE = int(dispatch.QUEUE)     # launches that may wait for the GPU; then the CPU waits
STREAM_GAP_S, GRAPH_GAP_S = 0.9e-6, 0.5e-6
"""Between one kernel's end and the next one's start, launched one by one and as nodes of a graph: 3.8 and 3.4 µs for a
kernel of 2.9 µs (NVIDIA, "Getting started with CUDA graphs", V100). No figure of a newer GPU is published."""
GRAPH_LAUNCH_S, NODE_LAUNCH_S = 2.5e-6, 1e-9
"""Of a graph without branches, and of each of its kernels (NVIDIA, "Constant time launch for straight-line graphs", 2024:
2.5 µs and about 1 ns a node)."""
KINDS = ("small", "product", "attention", "AllReduce")
ISSUE_S = 12e-6
"""CPU time of a kernel in eager PyTorch: 8.1 ms for the 658 kernels of Llama 3.2 1B (B200; stas00/ml-engineering,
training/performance). A matrix product alone takes 11 to 18 µs (NVIDIA/dgxc-benchmarking, cpu_overhead)."""
SUMMED = (4, 7)                 # products behind which tensor parallelism sums: attention's output and the MLP's
SMALL_S = dispatch.SHORTEST_S   # a kernel that hardly moves a byte: it starts, it ends


# -- kernels ---------------------------------------------------------------------------------------------------------
class Kernels(NamedTuple):
    """Seconds of each kernel on the GPU, in order; 0 for one that is not there."""

    before_s: np.ndarray        # of the step, before its layers
    layer_s: np.ndarray         # of each layer
    after_s: np.ndarray         # final norm, output layer, the token
    what: np.ndarray            # what each of a layer's does: its place in KINDS


def counted(way: str) -> dict:
    """The kernels of a step as they were recorded: "eager" or "compiled"."""
    check.one_of(("eager", "compiled"), way=way)
    return recordings.load("decode_kernels")[way]


def kernels_per_layer(way: str) -> int:
    """Of one layer on one GPU."""
    return len(counted(way)["layer"])


def what(way: str) -> list[str]:
    """What each kernel of a layer does, as ``kernels`` has them: with the AllReduces behind attention and the MLP."""
    named, products = [], 0
    for kind in counted(way)["layer_kinds"]:
        named.append(kind)
        products += kind == "product"
        if kind == "product" and products in SUMMED:
            named.append("AllReduce")
    return named


def kernels_per_step(way: str, layers, tp=1):
    """Of a whole decode step, on each of ``tp`` GPUs; across several, two AllReduces a layer come on top."""
    check.whole(layers=layers, tp=tp)
    found = counted(way)
    return found["before"] + layers * (len(found["layer"]) + np.where(tp > 1, 2, 0)) + len(found["after"])


def _products(size, tp):
    """(k, n) of a layer's seven products on one GPU, in the order in which they run."""
    query, key = size.heads * size.qk_dim / tp, size.kv_heads * size.qk_dim / inference.kv_shards(size, tp)
    ffn = size.ffn / tp
    return [(size.hidden, query), (size.hidden, key), (size.hidden, key), (query, size.hidden),
            (size.hidden, ffn), (size.hidden, ffn), (ffn, size.hidden)]


def kernels(way: str, model, at, tp, batch, context, small_s=SMALL_S) -> Kernels:
    """What each kernel of a decode step takes on the GPU: a product the slower of its bytes and its FLOPs, attention
    its cache, an AllReduce its message, everything else ``small_s``; nothing takes less.

    Leaves out the activations' own bytes, which a small kernel's time covers up to some hundred sequences.
    """
    if not check.is_trusted():
        check.whole(tp=tp, batch=batch)
        check.positive(context=context, small_s=small_s)
    found, size, chip = counted(way), shape(model), at.chip
    with check.trusted():
        cache_bytes = memory.kv_bytes(size, context, batch, 2.0) / (inference.kv_shards(size, tp) * size.layers)
        cache_s = stream_s(cache_bytes, chip)
        reduce_s = np.where(tp > 1, inference.reduce_s(batch * size.hidden * 2.0, tp, "auto", at.wires), 0.0)

        def taken(k, n):
            return np.maximum(small_s, product_s(batch, n, k, 1.0, chip.wide_flops_per_s, 2.0, 2.0, chip))
        products = iter([taken(*sides) for sides in _products(size, tp)])
        others = {"attention": np.maximum(small_s, cache_s), "small": small_s, "AllReduce": reduce_s}
        layer = [next(products) if kind == "product" else others[kind] for kind in what(way)]
        head_s = taken(size.hidden, size.vocab / tp)
    none = 0.0 * (batch + tp + context + small_s + size.hidden)
    after = [head_s if kind == "product" else small_s for kind in found["after_kinds"]]

    def column(values):
        return np.stack([value + none for value in values])
    before = [small_s] * found["before"] or [0.0]       # a page has no empty columns
    return Kernels(column(before), column(layer), column(after),
                   np.array([KINDS.index(kind) for kind in what(way)], dtype=float))


def gpu_s(found: Kernels, layers, gap_s):
    """What the GPU needs for a step if it never waits: its kernels, and the gap behind each."""
    def total(each_s):
        return np.sum(each_s + np.where(each_s > 0, gap_s, 0.0), axis=0)
    return total(found.before_s) + layers * total(found.layer_s) + total(found.after_s) - gap_s


def count(found: Kernels, layers):
    """How many kernels there are."""
    def there(each_s):
        return np.sum(np.where(each_s > 0, 1.0, 0.0), axis=0)
    return there(found.before_s) + layers * there(found.layer_s) + there(found.after_s)


def enough_s(found: Kernels, layers, gap_s):
    """CPU time a kernel up to which the GPU is the slower of the two: its time over the number of kernels."""
    return gpu_s(found, layers, gap_s) / count(found, layers)


# -- a step, run -----------------------------------------------------------------------------------------------------
def played(before_s, layer_s, after_s, what, layers, first_s, issue_s, gap_s, shown):
    """What ``step`` gives, as lists and numbers in the order of its outputs."""
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
                if issue_s > 0 and len(done) >= QUEUE and done[len(done) - QUEUE] > now:
                    waited = waited + done[len(done) - QUEUE] - now
                    now = done[len(done) - QUEUE]
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


@program(began_s=MOST_SHOWN, issued_s=MOST_SHOWN, start_s=MOST_SHOWN, end_s=MOST_SHOWN, layer=MOST_SHOWN,
         what=MOST_SHOWN, total_s=(), cpu_s=(), busy_s=(), kernels=(), full_s=())
def step(before_s, layer_s, after_s, what, layers, first_s, issue_s, gap_s, shown):
    """One step from its first launch to its last kernel's end. The CPU issues kernel after kernel, each ``issue_s``
    after the one before and the first after ``first_s`` more; a graph is issued at once. The GPU runs them in order,
    each once it was issued and ``gap_s`` after the last one's end. With ``QUEUE`` kernels not done the CPU waits:
    ``full_s`` of it.

    Up to layer ``shown`` it gives each kernel's times (a graph is begun once), its layer (0 before the first) and what
    it does.
    """
    begins, issued, starts, ends, numbers, whats, total_s, cpu_s, busy_s, count, full_s = played(
        before_s, layer_s, after_s, what, int(layers), first_s, issue_s, gap_s, shown)
    return {"began_s": begins, "issued_s": issued, "start_s": starts, "end_s": ends, "layer": numbers, "what": whats,
            "total_s": total_s, "cpu_s": cpu_s, "busy_s": busy_s, "kernels": count, "full_s": full_s}


@program(lane=4 * MOST_SHOWN, issued_s=4 * MOST_SHOWN, start_s=4 * MOST_SHOWN, end_s=4 * MOST_SHOWN,
         layer=4 * MOST_SHOWN, what=4 * MOST_SHOWN, cpu_lane=4 * MOST_SHOWN, cpu_from_s=4 * MOST_SHOWN,
         cpu_to_s=4 * MOST_SHOWN, total_s=4, busy_s=4, kernels=4, last_s=4)
def four_steps(before_s, layer_s, after_s, what, fused_before_s, fused_layer_s, fused_after_s, fused_what, layers, issue_s,
               launch_s, fused_launch_s, shown):
    """The same step four times: eager, compiled, and both as graphs. One row for each kernel shown, its lane from 0;
    one for each launch on the CPU; and of each step what it took in all, and when the last kernel shown ends."""
    lane, issued_s, start_s, end_s, layer, kind = [], [], [], [], [], []
    cpu_lane, cpu_from_s, cpu_to_s = [], [], []
    total_s, busy_s, kernels_run, last_s = [], [], [], []
    for way in range(4):
        each_s = issue_s if way < 2 else 0.0
        gap_s = STREAM_GAP_S if way < 2 else GRAPH_GAP_S
        first_s = 0.0
        if way == 2:
            first_s = launch_s
        elif way == 3:
            first_s = fused_launch_s
        if way == 0 or way == 2:
            begins, issued, starts, ends, numbers, whats, total, cpu, busy, count, waited = played(
                before_s, layer_s, after_s, what, int(layers), first_s, each_s, gap_s, shown)
        else:
            begins, issued, starts, ends, numbers, whats, total, cpu, busy, count, waited = played(
                fused_before_s, fused_layer_s, fused_after_s, fused_what, int(layers), first_s, each_s, gap_s, shown)
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
    return {"lane": lane, "issued_s": issued_s, "start_s": start_s, "end_s": end_s, "layer": layer, "what": kind,
            "cpu_lane": cpu_lane, "cpu_from_s": cpu_from_s, "cpu_to_s": cpu_to_s, "total_s": total_s, "busy_s": busy_s,
            "kernels": kernels_run, "last_s": last_s}


def graph_launch_s(found: Kernels, layers):
    """CPU time to launch all kernels of a step as one graph."""
    return GRAPH_LAUNCH_S + NODE_LAUNCH_S * count(found, layers)


def four(eager: Kernels, compiled: Kernels, layers, issue_s, shown):
    """Both sets of kernels, issued one by one and as a graph."""
    return four_steps(eager.before_s, eager.layer_s, eager.after_s, eager.what, compiled.before_s, compiled.layer_s,
                      compiled.after_s, compiled.what, layers, issue_s, graph_launch_s(eager, layers),
                      graph_launch_s(compiled, layers), shown)


def run(found: Kernels, layers, issue_s, captured, shown=0):
    """A step whose kernels are issued one by one (``captured`` 0), or replayed from a graph (1)."""
    if captured:
        return step(found.before_s, found.layer_s, found.after_s, found.what, layers, graph_launch_s(found, layers), 0.0,
                    GRAPH_GAP_S, shown)
    return step(found.before_s, found.layer_s, found.after_s, found.what, layers, 0.0, issue_s, STREAM_GAP_S, shown)


def trial(way, model, gpu, tp=1, batch=1, context=1024.0, issue_s=ISSUE_S, captured=0, small_s=SMALL_S) -> dict:
    """The same from the names of things, for a lesson."""
    found = kernels(way, model, machine(gpu), tp * 1.0, batch * 1.0, context, small_s)
    return run(found, model.layers, issue_s, captured)


def token_s(way, model, gpu, tp=1, batch=1, context=1024.0, issue_s=ISSUE_S, captured=0) -> float:
    """Seconds of that step: from one token of a sequence to its next."""
    return trial(way, model, gpu, tp, batch, context, issue_s, captured)["total_s"]


def enough_batch(way, model, gpu, tp=1, context=1024.0, issue_s=ISSUE_S) -> int:
    """The first power of two as a batch at which the GPU alone needs as long as the CPU; 0 if none up to 4,096."""
    for batch in (2**k for k in range(13)):
        found = kernels(way, model, machine(gpu), tp * 1.0, batch * 1.0, context)
        if enough_s(found, model.layers, STREAM_GAP_S) >= issue_s:
            return batch
    return 0


# -- what a run shows ------------------------------------------------------------------------------------------------
def times(slower_s, faster_s):
    """How many times as long."""
    return slower_s / faster_s


def waiting_share(found, gap_s=STREAM_GAP_S):
    """The part of a step in which the GPU waits for a launch. The gaps between kernels are its own: they would be there
    if every launch came in time."""
    return 1.0 - (found["busy_s"] + (found["kernels"] - 1.0) * gap_s) / found["total_s"]
