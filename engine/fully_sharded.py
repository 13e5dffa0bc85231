"""ZeRO and FSDP: what travels, when it hides, and a step layer by layer with its memory.

FSDP's rule of one wire: gathers and scatters go one after the other on one NCCL stream, in the order in which they were
issued; a layer's gather is issued so many layers ahead (Zhao et al., arXiv:2304.11277 section 3.3). Memory per GPU is
in ``memory.sharded_state_bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine import check, collectives, ops, walls
from engine.timeline import Task, Timeline, levels, simulate

COMPUTE, NETWORK = "compute", "network"
FORWARD, BACKWARD, GATHER, SCATTER = "forward", "backward", "gather", "reduce-scatter"


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


def layer(params, tokens, ranks, flops_per_s, wire_bytes_per_s, alpha_s, activation_bytes, weight_bytes=2.0,
          gradient_bytes=2.0) -> Layer:
    """A layer of so many parameters: forward 2·P·T, backward 4·P·T, gather and scatter by textbook rings.

    ``weight_bytes`` and ``gradient_bytes`` are those of a value. Leaves out attention over the sequence.
    """
    check.positive(params=params, tokens=tokens, flops_per_s=flops_per_s, weight_bytes=weight_bytes,
                   gradient_bytes=gradient_bytes)
    check.non_negative(activation_bytes=activation_bytes)

    def half_ring_s(size):
        return collectives.ring_all_reduce_s(size, ranks, wire_bytes_per_s, alpha_s) / 2

    return Layer(2 * params * tokens / flops_per_s, 4 * params * tokens / flops_per_s,
                 half_ring_s(params * weight_bytes), half_ring_s(params * gradient_bytes), params * weight_bytes,
                 params * gradient_bytes, activation_bytes)


@dataclass(frozen=True)
class ShardedStep:
    """A simulated step: lanes and memory on one axis of time."""

    timeline: Timeline
    frees: tuple[tuple[str, float], ...]        # (use, time): when its gathered weights are dropped
    times_s: np.ndarray
    gathered_bytes: np.ndarray                  # from each time on
    gradients_bytes: np.ndarray                 # whole ones that are not scattered yet
    activations_bytes: np.ndarray

    @property
    def total_bytes(self) -> np.ndarray:
        """All three, beside the sharded state."""
        return self.gathered_bytes + self.gradients_bytes + self.activations_bytes

    @property
    def exposed_s(self) -> float:
        """Traffic with no arithmetic beside it."""
        return self.timeline.exposed_s(NETWORK, COMPUTE)


def simulate_step(at: Layer, layers: int, prefetch: int = 1) -> ShardedStep:
    """One micro-batch through all layers and back. With ``prefetch`` d at most d + 1 layers stand gathered: a gather
    waits until the use d + 1 before it is done; with 0 nothing overlaps with the next layer's gather.

    Every layer is gathered twice, 3Ψ in all; PyTorch may keep the last one from forward to backward.
    """
    check.whole(layers=layers)
    check.whole(at_least=0, prefetch=prefetch)
    uses = [f"{FORWARD} {n}" for n in range(1, layers + 1)] + [f"{BACKWARD} {n}" for n in range(layers, 0, -1)]
    line = simulate(_tasks(at, uses, prefetch))
    frees = tuple((use, line.ends(use)) for use in uses)
    backward = uses[layers:]
    gathered = [(line.starts(f"{GATHER}, {use}"), at.weight_bytes) for use in uses]
    gathered += [(time, -at.weight_bytes) for _, time in frees]
    gradients = [(line.starts(use), at.gradient_bytes) for use in backward]
    gradients += [(line.ends(f"{SCATTER}, {use}"), -at.gradient_bytes) for use in backward]
    activations = [(line.starts(use), at.activation_bytes) for use in uses[:layers]]
    activations += [(line.ends(use), -at.activation_bytes) for use in backward]
    parts = (gathered, gradients, activations)
    times = [time for part in parts for time, _ in part]
    # every part gets all the times, so that they can be stacked
    stacked = [levels(part + [(time, 0.0) for time in times]) for part in parts]
    return ShardedStep(line, frees, stacked[0][0], *(level for _, level in stacked))


def _tasks(at: Layer, uses, prefetch: int) -> list[Task]:
    """In the order of issue: the gather of a layer ahead, the arithmetic, and after a backward pass the scatter."""
    tasks, issued = [], 0
    for place, use in enumerate(uses):
        for ahead in range(issued, min(place + prefetch + 1, len(uses))):
            room = ahead - prefetch - 1         # the use whose weights must have gone to make room
            after = (uses[room],) if room >= 0 else ()
            tasks.append(Task(f"{GATHER}, {uses[ahead]}", NETWORK, at.gather_s, after, GATHER))
            issued = ahead + 1
        kind = FORWARD if use.startswith(FORWARD) else BACKWARD
        duration = at.forward_s if kind == FORWARD else at.backward_s
        tasks.append(Task(use, COMPUTE, duration, (f"{GATHER}, {use}",), kind))
        if kind == BACKWARD:
            tasks.append(Task(f"{SCATTER}, {use}", NETWORK, at.scatter_s, (use,), SCATTER))
    return tasks
