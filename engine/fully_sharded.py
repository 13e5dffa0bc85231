"""ZeRO and FSDP: what travels, when it hides, and a step layer by layer with its memory.

FSDP's rule of one wire: gathers and scatters go one after the other on one NCCL stream, in the order in which they were
issued; a layer's gather is issued so many layers ahead (Zhao et al., arXiv:2304.11277 section 3.3). Memory per GPU is
in ``memory.sharded_state_bytes``, ZeRO's stages as a whole in ``zero``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine import check, collectives, memory, models, ops, walls
from engine.program import full, program, zeros
from engine.timeline import schedule, uncovered

KINDS = ("gather", "forward pass", "backward pass", "reduce-scatter")
GATHER, FORWARD, BACKWARD, SCATTER = range(4)
COMPUTE, NETWORK = range(2)         # the two streams
MOST_LAYERS = 32
TASKS, LEVELS = 5 * MOST_LAYERS, 7 * MOST_LAYERS + 1        # the most that a step of so many layers has


# -- traffic ---------------------------------------------------------------------------------------------------------
def traffic_elements(params, ranks, stage):
    """Elements each GPU sends in one step: 2Ψ for plain data parallelism and stages 1 and 2, 3Ψ for stage 3, each times
    (N−1)/N (arXiv:1910.02054 section 7). For one micro-batch; stage 3 pays again for each."""
    check.positive(params=params)
    check.whole(ranks=ranks)
    check.between(0, 3, stage=stage)
    return ops.where(stage >= 3, 3.0, 2.0) * params * (ranks - 1) / ranks


def traffic_bytes(params, ranks, stage, recipe):
    """The same in bytes: gradients once under stages 1 to 3 and twice before, weights once, under stage 3 twice."""
    check.positive(params=params)
    check.whole(ranks=ranks)
    check.between(0, 3, stage=stage)
    gradients = ops.where(stage >= 1, 1.0, 2.0) * recipe.gradient_bytes
    weights = ops.where(stage >= 3, 2.0, ops.where(stage >= 1, 1.0, 0.0)) * recipe.weight_bytes
    return params * (gradients + weights) * (ranks - 1) / ranks


def replica_elements(params, shard_ranks, replicas):
    """HSDP: elements each GPU sends beyond its shard group, an AllReduce of its part: 2·(R−1)/R·Ψ/S. What stays in the
    group is ``traffic_elements`` of S ranks, and the memory that of S ranks (arXiv:2304.11277 section 3.2.2)."""
    check.positive(params=params)
    check.whole(shard_ranks=shard_ranks, replicas=replicas)
    return 2.0 * (replicas - 1) / replicas * params / shard_ranks


def tokens_to_hide(ranks, wire_bytes_per_s, peak_flops_per_s, mfu=0.4, bytes_per_value=2.0):
    """Tokens per GPU and micro-batch from which stage 3 hides: MFU·C/W·(N−1)/N with two bytes a value.

    Forward, a gather of Ψ behind 2·Ψ·T FLOPs; backward, a gather and a scatter behind 4·Ψ·T: the same ratio twice, and
    the same as that of data parallelism. But here every micro-batch pays, so that accumulation does not help.
    """
    return walls.break_even_tokens_per_gpu(ranks, wire_bytes_per_s, peak_flops_per_s, mfu, bytes_per_value,
                                           flops_per_weight=4)


# -- a step, layer by layer ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Layer:
    """What one layer takes and holds on one GPU; all layers are alike."""

    forward_s: float
    backward_s: float
    gather_s: float
    scatter_s: float
    weight_bytes: float             # whole, as gathered
    gradient_bytes: float           # whole, before it is scattered
    activation_bytes: float         # from its forward pass to its backward pass
    rebuilt_bytes: float = 0.0      # more, during its backward pass: what recomputation brings back


def layer(params, tokens, ranks, flops_per_s, wire_bytes_per_s, alpha_s, activation_bytes, weight_bytes=2.0,
          gradient_bytes=2.0, recompute=0, rebuilt_bytes=0.0) -> Layer:
    """A layer of so many parameters: forward 2·P·T, backward 4·P·T, with ``recompute`` 1 a second forward pass inside
    it; gather and scatter by textbook rings.

    ``weight_bytes`` and ``gradient_bytes`` are those of a value. Leaves out attention over the sequence.
    """
    check.positive(params=params, tokens=tokens, flops_per_s=flops_per_s, weight_bytes=weight_bytes,
                   gradient_bytes=gradient_bytes)
    check.non_negative(activation_bytes=activation_bytes, rebuilt_bytes=rebuilt_bytes)
    check.between(0, 1, recompute=recompute)
    forward_s = 2 * params * tokens / flops_per_s

    def half_ring_s(size):
        return collectives.ring_all_reduce_s(size, ranks, wire_bytes_per_s, alpha_s) / 2

    return Layer(forward_s, (2 + recompute) * forward_s, half_ring_s(params * weight_bytes),
                 half_ring_s(params * gradient_bytes), params * weight_bytes, params * gradient_bytes,
                 activation_bytes, rebuilt_bytes)


def transformer_layer(model, tokens, ranks, flops_per_s, wire_bytes_per_s, alpha_s, recompute=0) -> Layer:
    """``layer`` for one of a model's dense layers, in bf16 and with FlashAttention; ``recompute`` 1 keeps its input
    alone and rebuilds the rest (``memory.kept_per_token``)."""
    kept = tokens * memory.kept_per_token(model, 1, 1, 1, memory.FULL * recompute, 1, False)
    whole = tokens * memory.kept_per_token(model, 1, 1, 1, memory.NO_RECOMPUTE, 1, False)
    return layer(models.layer_parameters(model), tokens, ranks, flops_per_s, wire_bytes_per_s, alpha_s, kept,
                 recompute=recompute, rebuilt_bytes=recompute * whole)


def state_bytes(model, layers, ranks):
    """Training state of so many of a model's dense layers on one of the GPUs that share it."""
    check.whole(layers=layers)
    return memory.sharded_state_bytes(layers * models.layer_parameters(model), None, ranks, 3)


@program(**dict.fromkeys(("kind", "layer", "start_s", "end_s", "last_s", "waits_kind", "waits_layer"), TASKS),
         **dict.fromkeys(("idle_from_s", "idle_to_s", "idle_s", "idle_kind", "idle_layer"), TASKS),
         **dict.fromkeys(("level_s", "gathered_bytes", "gradients_bytes", "activations_bytes"), LEVELS),
         total_s=(), compute_s=(), network_s=(), exposed_s=(), exposed_share=(), peak_bytes=())
def simulate_step(layers, prefetch, forward_s, backward_s, gather_s, scatter_s, weight_bytes, gradient_bytes,
                  activation_bytes, rebuilt_bytes):
    """One micro-batch through all layers and back. With ``prefetch`` d at most d + 1 layers stand gathered: a gather
    waits until the use d + 1 before it is done; with 0 nothing overlaps with the next layer's gather.

    Tasks in the order of their issue, each with what it waits for (−1: nothing); the stretches in which the wire works
    and the arithmetic waits, with the task that is waited for; and from each ``level_s`` on what stands in memory
    beside the sharded state. Every layer is gathered twice, 3Ψ in all; PyTorch may keep the last one from
    forward to backward.
    """
    kind, layer, after = issued(int(layers), int(prefetch))
    lasts_s = [gather_s, forward_s, backward_s, scatter_s]
    stream = [NETWORK if kind[i] == GATHER or kind[i] == SCATTER else COMPUTE for i in range(len(kind))]
    duration_s = [lasts_s[kind[i]] for i in range(len(kind))]
    start_s, end_s, waits = schedule(2, stream, duration_s, zeros(len(kind)), after)
    idle_from_s, idle_to_s, idle = uncovered(stream, start_s, end_s, NETWORK, COMPUTE)
    level_s, gathered, gradients, activations = memory_levels(kind, start_s, end_s, weight_bytes, gradient_bytes,
                                                              activation_bytes, rebuilt_bytes)
    total_s = max(end_s)
    compute_s = layers * (forward_s + backward_s)
    return {"kind": kind, "layer": layer, "start_s": start_s, "end_s": end_s, "last_s": duration_s,
            "waits_kind": [kind[waits[i]] if waits[i] >= 0 else -1 for i in range(len(kind))],
            "waits_layer": [layer[waits[i]] if waits[i] >= 0 else 0 for i in range(len(kind))],
            "idle_from_s": idle_from_s, "idle_to_s": idle_to_s,
            "idle_s": [idle_to_s[i] - idle_from_s[i] for i in range(len(idle))],
            "idle_kind": [kind[idle[i]] for i in range(len(idle))],
            "idle_layer": [layer[idle[i]] for i in range(len(idle))],
            "level_s": level_s, "gathered_bytes": gathered, "gradients_bytes": gradients,
            "activations_bytes": activations, "total_s": total_s, "compute_s": compute_s,
            "network_s": layers * (2 * gather_s + scatter_s), "exposed_s": total_s - compute_s,
            "exposed_share": 1 - compute_s / total_s,
            "peak_bytes": max([gathered[i] + gradients[i] + activations[i] for i in range(len(level_s))])}


def issued(layers, prefetch):
    """(kind, layer, after) of the tasks in the order of their issue: the gathers ahead, the arithmetic, and after a
    backward pass the scatter. ``after`` are the tasks that each needs."""
    kind, layer, after = [], [], []
    uses, gathers = 2 * layers, 0
    gather_of, done = full(uses, -1), full(uses, -1)
    for use in range(uses):
        while gathers < uses and gathers <= use + prefetch:
            room = gathers - prefetch - 1           # the use whose weights must have gone to make room
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


def memory_levels(kind, start_s, end_s, weight_bytes, gradient_bytes, activation_bytes, rebuilt_bytes):
    """(times, gathered, gradients, activations): bytes from each time on.

    Weights come with a gather's start and go with the end of their use; a gradient stands from the start of its
    backward pass to the end of its scatter. What comes and goes at one instant counts as one change.
    """
    # four lists of changes, each in order of time: gathers, scatters, starts and ends of the arithmetic
    times, weights, gradients, activations = [[], [], [], []], [[], [], [], []], [[], [], [], []], [[], [], [], []]
    for i in range(len(kind)):
        back = kind[i] == BACKWARD
        if kind[i] == GATHER:
            note(times[0], weights[0], gradients[0], activations[0], start_s[i], weight_bytes, 0.0, 0.0)
        elif kind[i] == SCATTER:
            note(times[1], weights[1], gradients[1], activations[1], end_s[i], 0.0, -gradient_bytes, 0.0)
        else:
            note(times[2], weights[2], gradients[2], activations[2], start_s[i], 0.0, gradient_bytes if back else 0.0,
                 rebuilt_bytes if back else activation_bytes)
            note(times[3], weights[3], gradients[3], activations[3], end_s[i], -weight_bytes, 0.0,
                 -activation_bytes - rebuilt_bytes if back else 0.0)
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


def note(times, weights, gradients, activations, time_s, weight_bytes, gradient_bytes, activation_bytes):
    """One more line in four columns."""
    times.append(time_s)
    weights.append(weight_bytes)
    gradients.append(gradient_bytes)
    activations.append(activation_bytes)


def run(at: Layer, layers, prefetch=1) -> dict:
    """``simulate_step`` of such layers."""
    check.whole(layers=layers)
    check.whole(at_least=0, prefetch=prefetch)
    return simulate_step(layers, prefetch, at.forward_s, at.backward_s, at.gather_s, at.scatter_s, at.weight_bytes,
                         at.gradient_bytes, at.activation_bytes, at.rebuilt_bytes)
