"""ZeRO and FSDP: what is sent, when it is hidden, and a step layer by layer with its memory.

FSDP uses one wire: gathers and scatters run one after the other on one NCCL stream, in the order of issue,
and a layer's gather is issued a given number of layers ahead (Zhao et al., arXiv:2304.11277 section 3.3).
``memory.sharded_state_bytes`` has the memory per GPU, and ``zero`` compares ZeRO's stages as a whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.base import check, ops
from engine.base.program import full, program, zeros
from engine.base.types import Real
from engine.catalog import models
from engine.mechanism import collectives, memory
from engine.mechanism.timeline import schedule, uncovered

if TYPE_CHECKING:
    from engine.catalog.recipes import Recipe

KINDS = ("gather", "forward pass", "backward pass", "reduce-scatter")
GATHER, FORWARD, BACKWARD, SCATTER = range(4)
COMPUTE, NETWORK = range(2)  # the two streams
MOST_LAYERS = 32
NOT_OWN = [0.0]  # stands for: no order of somebody's own (own_order)
TASKS, LEVELS = 5 * MOST_LAYERS, 7 * MOST_LAYERS + 1  # the most in a step with this many layers


# -- traffic -------------------------------------------------------------------------------------------------
def traffic_elements(params: float, ranks: int, stage: int) -> float:
    """Elements that each GPU sends in one step: 2P for plain data parallelism and stages 1 and 2, 3P for
    stage 3, each times (N−1)/N (arXiv:1910.02054 section 7). These are for one micro-batch; stage 3 sends
    them again for each further one."""
    check.positive(params=params)
    check.whole(ranks=ranks)
    check.between(0, 3, stage=stage)
    return ops.where(stage >= 3, 3.0, 2.0) * params * (ranks - 1) / ranks


def traffic_bytes(params: float, ranks: int, stage: int, recipe: Recipe) -> float:
    """``traffic_elements`` in bytes. Gradients cross the wire twice in stage 0 and once in stages 1 to 3;
    weights cross it not at all in stage 0, once in stages 1 and 2, and twice in stage 3."""
    check.positive(params=params)
    check.whole(ranks=ranks)
    check.between(0, 3, stage=stage)
    gradients = ops.where(stage >= 1, 1.0, 2.0) * recipe.gradient_bytes
    weights = ops.where(stage >= 3, 2.0, ops.where(stage >= 1, 1.0, 0.0)) * recipe.weight_bytes
    return params * (gradients + weights) * (ranks - 1) / ranks


def replica_elements(params: Real, shard_ranks: Real, replicas: Real) -> Real:
    """HSDP: elements that each GPU sends beyond its shard group, in an AllReduce of its part: 2·(R−1)/R·P/S.
    Inside the group, traffic and memory are the same as with S ranks and no replicas (arXiv:2304.11277
    section 3.2.2)."""
    check.positive(params=params)
    check.whole(shard_ranks=shard_ranks, replicas=replicas)
    return 2.0 * (replicas - 1) / replicas * params / shard_ranks


# -- a step, layer by layer ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class ShardedLayer:
    """The time and memory of one layer on one GPU; all layers are alike."""

    forward_s: float
    backward_s: float
    gather_s: float
    scatter_s: float
    weight_bytes: float  # whole, as gathered
    gradient_bytes: float  # whole, before it is scattered
    activation_bytes: float  # kept from its forward pass to its backward pass
    rebuilt_bytes: float = 0.0  # extra during its backward pass: what recomputation rebuilds


def layer(
    params: Real,
    tokens: Real,
    ranks: Real,
    flops_per_s: Real,
    wire_bytes_per_s: Real,
    alpha_s: Real,
    activation_bytes: Real,
    weight_bytes: Real = 2.0,
    gradient_bytes: Real = 2.0,
    recompute: Real = 0,
    rebuilt_bytes: Real = 0.0,
) -> ShardedLayer:
    """A layer with this many parameters: forward 2·P·T, backward 4·P·T, which with ``recompute`` 1 includes a
    second forward pass; gather and scatter by textbook rings.

    ``weight_bytes`` and ``gradient_bytes`` are per value. Leaves out attention over the sequence.
    """
    check.positive(
        params=params,
        tokens=tokens,
        flops_per_s=flops_per_s,
        weight_bytes=weight_bytes,
        gradient_bytes=gradient_bytes,
    )
    check.non_negative(activation_bytes=activation_bytes, rebuilt_bytes=rebuilt_bytes)
    check.between(0, 1, recompute=recompute)
    forward_s = 2 * params * tokens / flops_per_s

    def half_ring_s(size):
        return collectives.ring_all_reduce_s(size, ranks, wire_bytes_per_s, alpha_s) / 2

    return ShardedLayer(
        forward_s,
        (2 + recompute) * forward_s,
        half_ring_s(params * weight_bytes),
        half_ring_s(params * gradient_bytes),
        params * weight_bytes,
        params * gradient_bytes,
        activation_bytes,
        rebuilt_bytes,
    )


def transformer_layer(
    model: models.Model,
    tokens: Real,
    ranks: Real,
    flops_per_s: Real,
    wire_bytes_per_s: Real,
    alpha_s: Real,
    recompute: Real = 0,
) -> ShardedLayer:
    """``layer`` for one of a model's dense layers, in bf16 and with FlashAttention; ``recompute`` 1 keeps
    only its input and rebuilds the rest (``memory.kept_per_token``)."""
    kept = tokens * memory.kept_per_token(model, 1, 1, 1, memory.FULL * recompute, 1, 0)
    whole = tokens * memory.kept_per_token(model, 1, 1, 1, memory.NO_RECOMPUTE, 1, 0)
    return layer(
        models.layer_parameters(model),
        tokens,
        ranks,
        flops_per_s,
        wire_bytes_per_s,
        alpha_s,
        kept,
        recompute=recompute,
        rebuilt_bytes=recompute * whole,
    )


def state_bytes(model: models.Model, layers: Real, ranks: Real) -> Real:
    """Training state of this many of a model's dense layers on one of the GPUs that share it."""
    check.whole(layers=layers)
    return memory.sharded_state_bytes(layers * models.layer_parameters(model), None, ranks, 3)


@program(
    **dict.fromkeys(("kind", "layer", "start_s", "end_s", "last_s", "waits_kind", "waits_layer"), TASKS),
    **dict.fromkeys(("idle_from_s", "idle_to_s", "idle_s", "idle_kind", "idle_layer"), TASKS),
    **dict.fromkeys(("level_s", "gathered_bytes", "gradients_bytes", "activations_bytes"), LEVELS),
    total_s=(),
    compute_s=(),
    network_s=(),
    exposed_s=(),
    exposed_share=(),
    own=(),
    peak_bytes=(),
)
def simulate_step(
    layers: float,
    prefetch: float,
    forward_s: float,
    backward_s: float,
    gather_s: float,
    scatter_s: float,
    weight_bytes: float,
    gradient_bytes: float,
    activation_bytes: float,
    rebuilt_bytes: float,
    own: list[float],
) -> dict[str, Any]:
    """One micro-batch through all layers and back. With ``prefetch`` d at most d + 1 layers are gathered at a
    time: a gather waits until the use d + 1 places before it is done; with 0 nothing overlaps the next
    layer's gather.

    Returns the tasks in the order of issue, each with the task it waits for (−1: none); the stretches in
    which the wire works while the arithmetic waits, with the task waited for; and from each ``level_s`` on
    the memory in use beside the sharded state. ``own`` is somebody's own order (own_order), which replaces
    the one that ``prefetch`` gives. Every layer is gathered twice, 3P in all; PyTorch may keep the last layer
    from forward to backward.
    """
    kind, layer, after = issued(int(layers), int(prefetch))
    if own[0] > 0:
        kind, layer = own_order(own)
        after = needed(kind, layer)
    lasts_s = [gather_s, forward_s, backward_s, scatter_s]
    stream = [NETWORK if kind[i] == GATHER or kind[i] == SCATTER else COMPUTE for i in range(len(kind))]
    duration_s = [lasts_s[kind[i]] for i in range(len(kind))]
    start_s, end_s, waits = schedule(2, stream, duration_s, zeros(len(kind)), after)
    idle_from_s, idle_to_s, idle = uncovered(stream, start_s, end_s, NETWORK, COMPUTE)
    level_s, gathered, gradients, activations = memory_levels(
        kind, start_s, end_s, weight_bytes, gradient_bytes, activation_bytes, rebuilt_bytes
    )
    total_s = max(end_s)
    compute_s = layers * (forward_s + backward_s)
    return {
        "kind": kind,
        "layer": layer,
        "start_s": start_s,
        "end_s": end_s,
        "last_s": duration_s,
        "waits_kind": [kind[waits[i]] if waits[i] >= 0 else -1 for i in range(len(kind))],
        "waits_layer": [layer[waits[i]] if waits[i] >= 0 else 0 for i in range(len(kind))],
        "idle_from_s": idle_from_s,
        "idle_to_s": idle_to_s,
        "idle_s": [idle_to_s[i] - idle_from_s[i] for i in range(len(idle))],
        "idle_kind": [kind[idle[i]] for i in range(len(idle))],
        "idle_layer": [layer[idle[i]] for i in range(len(idle))],
        "level_s": level_s,
        "gathered_bytes": gathered,
        "gradients_bytes": gradients,
        "activations_bytes": activations,
        "total_s": total_s,
        "compute_s": compute_s,
        "network_s": layers * (2 * gather_s + scatter_s),
        "exposed_s": total_s - compute_s,
        "exposed_share": 1 - compute_s / total_s,
        "own": 1 if own[0] > 0 else 0,
        "peak_bytes": max([gathered[i] + gradients[i] + activations[i] for i in range(len(level_s))]),
    }


def issued(layers: int, prefetch: int) -> tuple[list[int], list[int], list[list[int]]]:
    """(kind, layer, after) of the tasks in the order of issue: the gathers ahead, the arithmetic, and after a
    backward pass the scatter. ``after`` are the tasks that each depends on."""
    kind, layer, after = [], [], []
    uses, gathers = 2 * layers, 0
    gather_of, done = full(uses, -1), full(uses, -1)
    for use in range(uses):
        while gathers < uses and gathers <= use + prefetch:
            room = gathers - prefetch - 1  # the use whose weights must be freed to make room
            gather_of[gathers] = len(kind)
            kind.append(GATHER)
            layer.append(gathers + 1 if gathers < layers else uses - gathers)
            after.append([done[room]] if room >= 0 else [])
            gathers += 1
        done[use] = len(kind)
        kind.append(FORWARD if use < layers else BACKWARD)
        layer.append(use + 1 if use < layers else uses - use)
        after.append([gather_of[use]])
        if use >= layers:
            kind.append(SCATTER)
            layer.append(uses - use)
            after.append([done[use]])
    return kind, layer, after


def own_order(own: list[float]) -> tuple[list[int], list[int]]:
    """(kind, layer) of the tasks of somebody's own step, read from one column: a 1, then for each task 4
    times its layer plus its kind."""
    kind, layer = [], []
    for i in range(1, len(own)):
        kind.append(int(own[i]) % 4)
        layer.append(int(own[i]) // 4)
    return kind, layer


def needed(kind: list[int], layer: list[int]) -> list[list[int]]:
    """The tasks that each task depends on, in an order that makes every pass once: a gather waits for the
    pass before it in the list, a pass for the gather of its layer that was issued for it, a scatter for its
    backward pass. A task that is missing is not waited for."""
    after, before = [], -1
    for i in range(len(kind)):
        need = before if kind[i] == GATHER else -1
        gathers = 0
        for j in range(i):
            if layer[j] == layer[i] and kind[j] == GATHER:
                gathers += 1
                if (kind[i] == FORWARD and gathers == 1) or (kind[i] == BACKWARD and gathers == 2):
                    need = j
            elif layer[j] == layer[i] and kind[j] == BACKWARD and kind[i] == SCATTER:
                need = j
        if kind[i] == FORWARD or kind[i] == BACKWARD:
            before = i
        after.append([need] if need >= 0 else [])
    return after


def memory_levels(
    kind: list[int],
    start_s: list[float],
    end_s: list[float],
    weight_bytes: float,
    gradient_bytes: float,
    activation_bytes: float,
    rebuilt_bytes: float,
) -> tuple[list[float], list[float], list[float], list[float]]:
    """(times, gathered, gradients, activations): bytes from each time on.

    Weights are allocated when a gather starts and freed when their use ends; a gradient exists from the start
    of its backward pass to the end of its scatter. Changes at the same instant count as one.
    """
    # four lists of changes, each in order of time: gathers, scatters, starts and ends of the arithmetic
    times, weights, gradients, activations = (
        [[], [], [], []],
        [[], [], [], []],
        [[], [], [], []],
        [[], [], [], []],
    )
    for i in range(len(kind)):
        back = kind[i] == BACKWARD
        if kind[i] == GATHER:
            note(times[0], weights[0], gradients[0], activations[0], start_s[i], weight_bytes, 0.0, 0.0)
        elif kind[i] == SCATTER:
            note(times[1], weights[1], gradients[1], activations[1], end_s[i], 0.0, -gradient_bytes, 0.0)
        else:
            note(
                times[2],
                weights[2],
                gradients[2],
                activations[2],
                start_s[i],
                0.0,
                gradient_bytes if back else 0.0,
                rebuilt_bytes if back else activation_bytes,
            )
            note(
                times[3],
                weights[3],
                gradients[3],
                activations[3],
                end_s[i],
                -weight_bytes,
                0.0,
                -activation_bytes - rebuilt_bytes if back else 0.0,
            )
    level_s, gathered, held, kept = [], [], [], []
    weight, gradient, activation = 0.0, 0.0, 0.0
    head, first = full(4, 0), 0
    while first >= 0:
        first, earliest_s = -1, math.inf
        for q in range(4):
            if head[q] < len(times[q]) and times[q][head[q]] < earliest_s:
                first, earliest_s = q, times[q][head[q]]
        if first >= 0:
            weight += weights[first][head[first]]
            gradient += gradients[first][head[first]]
            activation += activations[first][head[first]]
            head[first] += 1
            last = len(level_s) - 1
            if last >= 0 and level_s[last] == earliest_s:
                gathered[last], held[last], kept[last] = weight, gradient, activation
            else:
                note(level_s, gathered, held, kept, earliest_s, weight, gradient, activation)
    return level_s, gathered, held, kept


def note(
    times: list[float],
    weights: list[float],
    gradients: list[float],
    activations: list[float],
    time_s: float,
    weight_bytes: float,
    gradient_bytes: float,
    activation_bytes: float,
) -> None:
    """Append one row to four columns."""
    times.append(time_s)
    weights.append(weight_bytes)
    gradients.append(gradient_bytes)
    activations.append(activation_bytes)


def run(at: ShardedLayer, layers: Real, prefetch: Real = 1, own: Any = None) -> dict:
    """``simulate_step`` for layers that are all like ``at``, in somebody's ``own`` order if one is given."""
    check.whole(layers=layers)
    check.whole(at_least=0, prefetch=prefetch)
    return simulate_step(
        layers,
        prefetch,
        at.forward_s,
        at.backward_s,
        at.gather_s,
        at.scatter_s,
        at.weight_bytes,
        at.gradient_bytes,
        at.activation_bytes,
        at.rebuilt_bytes,
        NOT_OWN if own is None else own,
    )
