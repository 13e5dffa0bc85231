"""ZeRO's stages side by side: what fits on a GPU, what a step sends, and how long wires and arithmetic take.

``memory.sharded_state_bytes`` has the bytes of state, ``fully_sharded`` a step layer by layer, and
``sharding`` the calibrated times of a layout. Here wires have their vendor's rates and no latency, as in
lessons 01 to 04.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.executed import fully_sharded
from engine.mechanism import collectives, flops, interconnect, memory
from engine.mechanism.sharding import WIRE_BYTES

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.recipes import Recipe


# -- what fits -----------------------------------------------------------------------------------------------
def state_parts_bytes(params: Real, recipe: Recipe, ranks: Real, stage: Real) -> Real:
    """Bytes of weights, gradients and the optimizer's part on one GPU, in this order on the last axis."""
    slabs = memory.sharded_state_slabs(params, recipe, ranks, stage)
    return np.stack([slabs[..., 0], slabs[..., 1], np.sum(slabs[..., 2:], axis=-1)], axis=-1)


def largest_params(hbm_bytes: Real, recipe: Recipe, ranks: Real, stage: Real) -> Real:
    """The largest model whose training state fits a GPU: HBM over the stage's bytes per parameter
    (arXiv:1910.02054 Table 2). Leaves out activations and the gathered layers of stage 3."""
    check.positive(hbm_bytes=hbm_bytes)
    return hbm_bytes / memory.sharded_state_bytes(1.0, recipe, ranks, stage)


def whole_bytes(params: Real, recipe: Recipe, stage: Real) -> Real:
    """The bytes that a stage leaves unsharded on every GPU: everything in stage 0; stage 1 shards the
    optimizer's part, stage 2 the gradients too, and stage 3 the weights too."""
    check.positive(params=params)
    check.between(0, 3, stage=stage)
    kept = [
        ops.where(stage >= first, 0.0, amount)
        for first, amount in (
            (1, recipe.optimizer_bytes),
            (2, recipe.gradient_bytes),
            (3, recipe.weight_bytes),
        )
    ]
    return params * sum(kept)


def ranks_to_fit(params: Real, hbm_bytes: Real, recipe: Recipe, stage: Real) -> Real:
    """The fewest GPUs that must share one copy of the state for it to fit: ⌈sharded / (HBM − whole)⌉; 0 where
    no number is enough. Leaves out everything else on the GPU."""
    check.positive(hbm_bytes=hbm_bytes)
    everything, whole = memory.state_bytes(params, recipe), whole_bytes(params, recipe, stage)
    room = hbm_bytes - whole
    # rounding must not add a GPU
    needed = ops.ceil((everything - whole) / ops.where(room > 0, room, hbm_bytes) * (1 - 1e-12))
    return ops.where((room > 0) | (everything <= hbm_bytes), ops.maximum(1.0, needed), 0.0)


# -- traffic of a step ---------------------------------------------------------------------------------------
class StepTraffic(NamedTuple):
    """Traffic of one GPU in one step; the seconds are those of the wires alone, hidden or not."""

    weights_bytes: Real  # gathered
    gradients_bytes: Real  # scattered, or in stage 0 summed on every GPU
    replicas_bytes: Real  # HSDP: summed over the other shard groups
    weights_s: Real
    gradients_s: Real
    replicas_s: Real

    @property
    def total_bytes(self) -> Real:
        """Bytes that one GPU sends in a step, of all kinds together."""
        return self.weights_bytes + self.gradients_bytes + self.replicas_bytes

    @property
    def total_s(self) -> Real:
        """Seconds that one GPU's wires are busy in a step, for all kinds of traffic one after the other."""
        return self.weights_s + self.gradients_s + self.replicas_s


def shard_group(ranks: Real, group: Real, stage: Real) -> Real:
    """GPUs that share one copy of the state: HSDP's ``group``, but no more than there are. In stage 0 nothing
    is sharded, and all GPUs take part in one AllReduce."""
    check.whole(ranks=ranks, group=group)
    check.between(0, 3, stage=stage)
    return ops.where(stage >= 1, ops.minimum(group, ranks), ranks)


def passes(stage: Real, micro_batches: Real = 1) -> tuple[Real, Real]:
    """(for gradients, for weights): how many times P elements cross a GPU's wire in a step, not counting the
    factor (N−1)/N.

    Stage 0 sums the gradients, two passes; stage 1 scatters them and gathers the updated weights. Stage 2
    keeps no whole gradient, so every micro-batch scatters its own; in stage 3 each also gathers the weights
    twice.
    """
    check.between(0, 3, stage=stage)
    check.whole(micro_batches=micro_batches)
    gradients = ops.where(stage >= 2, micro_batches * 1.0, ops.where(stage >= 1, 1.0, 2.0))
    return gradients, ops.where(stage >= 3, 2.0 * micro_batches, ops.where(stage >= 1, 1.0, 0.0))


def ring_wire_bytes_per_s(ranks: Real, stride: Real, gpu: Gpu, nic_bytes_per_s: Real) -> Real:
    """The bandwidth of rings through a group whose members are ``stride`` GPUs apart: inside a node that of
    the link; across nodes no more than the NICs of the members on one node have together. The last node
    counts as full."""
    check.positive(nic_bytes_per_s=nic_bytes_per_s)
    per_node = interconnect.ranks_per_node(ranks, stride, gpu.gpus_per_node)
    link = ops.where(gpu.link_bytes_per_s > 0, gpu.link_bytes_per_s, nic_bytes_per_s)
    return collectives.ring_bytes_per_s(per_node, ops.ceil(ranks / per_node), link, nic_bytes_per_s)


def step_traffic(
    params: Real,
    ranks: Real,
    group: Real,
    stage: Real,
    recipe: Recipe,
    gpu: Gpu,
    nic_bytes_per_s: Real,
    micro_batches: Real = 1,
) -> StepTraffic:
    """What each GPU sends in a step with this many micro-batches, and how long that takes.

    In its shard group of S neighbours a GPU sends ``passes`` · (S−1)/S · P elements. Between groups, once per
    step, it takes part in an AllReduce of its part of the gradients over the R groups, 2·(R−1)/R · P/S
    (arXiv:2304.11277 section 3.2.2; the last group counts as full).
    """
    check.positive(params=params)
    shared = shard_group(ranks, group, stage)
    replicas = ops.ceil(ranks / shared)
    gradients, weights = passes(stage, micro_batches)
    once = params * (shared - 1.0) / shared
    gradient_bytes = ops.minimum(recipe.gradient_bytes, WIRE_BYTES)
    sent = (
        weights * once * recipe.weight_bytes,
        gradients * once * gradient_bytes,
        fully_sharded.replica_elements(params, shared, replicas) * gradient_bytes,
    )
    inside = ring_wire_bytes_per_s(shared, 1, gpu, nic_bytes_per_s)
    across = ring_wire_bytes_per_s(replicas, shared, gpu, nic_bytes_per_s)
    return StepTraffic(*sent, sent[0] / inside, sent[1] / inside, sent[2] / across)


def arithmetic_s(params: Real, tokens: Real, flops_per_s: Real, micro_batches: Real = 1) -> Real:
    """Forward and backward of this many tokens in each micro-batch, at the rate while kernels run
    (``matmul.product_flops_per_s``): 6·P·T·m/C_k."""
    check.whole(micro_batches=micro_batches)
    check.positive(flops_per_s=flops_per_s)
    return flops.training_flops(params, tokens) * micro_batches / flops_per_s


class BehindPasses(NamedTuple):
    """The wires' time during one pass over a micro-batch, and the pass's compute time."""

    forward_wire_s: Real
    backward_wire_s: Real  # during each micro-batch but the last, if gradients are sent then
    last_backward_wire_s: Real
    forward_s: Real
    backward_s: Real

    @property
    def pressure(self) -> Real:
        """The largest ratio of wire time to arithmetic of any pass; above 1 no schedule can hide all
        traffic."""
        return ops.maximum(self.forward_wire_s / self.forward_s, self.last_backward_wire_s / self.backward_s)


def behind_passes(
    traffic: StepTraffic, stage: Real, arithmetic_time_s: Real, micro_batches: Real = 1
) -> BehindPasses:
    """Each part of a step's traffic beside the pass that can hide it. A third of the arithmetic is forward,
    two thirds are backward.

    Stage 0 sums gradients during the last backward pass. Stages 1 and 2 gather weights during the next step's
    first forward pass, stage 3 once in every pass. Traffic between groups follows the scatters of the last
    backward pass.
    """
    check.between(0, 3, stage=stage)
    check.whole(micro_batches=micro_batches)
    check.positive(arithmetic_time_s=arithmetic_time_s)
    gather_s = traffic.weights_s / ops.where(stage >= 3, 2.0 * micro_batches, 1.0)
    scatter_s = traffic.gradients_s / ops.where(stage >= 2, micro_batches * 1.0, 1.0)
    inside_s = scatter_s + ops.where(stage >= 3, gather_s, 0.0)
    forward_s = arithmetic_time_s / (3.0 * micro_batches)
    return BehindPasses(
        gather_s,
        ops.where(stage >= 2, inside_s, 0.0),
        inside_s + traffic.replicas_s,
        forward_s,
        2.0 * forward_s,
    )


def exposed_s(traffic: StepTraffic, stage: Real, arithmetic_time_s: Real, micro_batches: Real = 1) -> Real:
    """The time that no schedule can hide: how much longer each pass's traffic takes than its arithmetic."""
    at = behind_passes(traffic, stage, arithmetic_time_s, micro_batches)
    gathering = ops.where(stage >= 3, micro_batches * 1.0, 1.0)
    return (
        gathering * ops.maximum(0.0, at.forward_wire_s - at.forward_s)
        + (micro_batches - 1.0) * ops.maximum(0.0, at.backward_wire_s - at.backward_s)
        + ops.maximum(0.0, at.last_backward_wire_s - at.backward_s)
    )


def can_hide_s(traffic: StepTraffic, stage: Real, arithmetic_time_s: Real, micro_batches: Real = 1) -> Real:
    """How long wires with this mix of collectives may be busy in a step and still be hidden; the whole step
    if there is no traffic."""
    pressure = behind_passes(traffic, stage, arithmetic_time_s, micro_batches).pressure
    return ops.where(
        pressure > 0, traffic.total_s / ops.where(pressure > 0, pressure, 1.0), arithmetic_time_s
    )


def tokens_to_hide(tokens: Real, wire_s: Real, arithmetic_time_s: Real) -> Real:
    """Tokens per micro-batch at which the arithmetic, which is proportional to them, takes as long as the
    wires."""
    check.non_negative(wire_s=wire_s)
    check.positive(tokens=tokens, arithmetic_time_s=arithmetic_time_s)
    return tokens * (wire_s / arithmetic_time_s)
