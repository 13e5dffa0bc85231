"""ZeRO's stages side by side: what fits on a GPU, what a step sends, and how long wires and arithmetic take for it.

Bytes of state are in ``memory.sharded_state_bytes``, a step layer by layer in ``fully_sharded``, calibrated times of a
layout in ``sharding``. Here wires have their vendor's rates and no latency, as in lessons 01 to 04.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from engine import check, flops, fully_sharded, interconnect, memory, ops
from engine.sharding import WIRE_BYTES


# -- what fits -------------------------------------------------------------------------------------------------------
def state_parts_bytes(params, recipe, ranks, stage):
    """Bytes of weights, gradients and the optimizer's part on one GPU, in this order on the last axis."""
    slabs = memory.sharded_state_slabs(params, recipe, ranks, stage)
    return np.stack([slabs[..., 0], slabs[..., 1], np.sum(slabs[..., 2:], axis=-1)], axis=-1)


def largest_params(hbm_bytes, recipe, ranks, stage):
    """The model whose training state alone fills a GPU: HBM over the stage's bytes a parameter (arXiv:1910.02054
    Table 2). Leaves out activations and the gathered layers of stage 3."""
    check.positive(hbm_bytes=hbm_bytes)
    return hbm_bytes / memory.sharded_state_bytes(1.0, recipe, ranks, stage)


def whole_bytes(params, recipe, stage):
    """What a stage leaves whole on every GPU: everything, then no optimizer, no gradients, no weights."""
    check.positive(params=params)
    check.between(0, 3, stage=stage)
    kept = [ops.where(stage >= first, 0.0, amount) for first, amount in
            ((1, recipe.optimizer_bytes), (2, recipe.gradient_bytes), (3, recipe.weight_bytes))]
    return params * sum(kept)


def ranks_to_fit(params, hbm_bytes, recipe, stage):
    """The fewest GPUs that must share one copy of the state so that it fits: ⌈sharded / (HBM − whole)⌉; 0 where no
    number is enough. Leaves out what else a GPU must hold."""
    check.positive(hbm_bytes=hbm_bytes)
    everything, whole = memory.state_bytes(params, recipe), whole_bytes(params, recipe, stage)
    room = hbm_bytes - whole
    # 14.000000000000002 GPUs are 14
    needed = ops.ceil((everything - whole) / ops.where(room > 0, room, hbm_bytes) * (1 - 1e-12))
    return ops.where((room > 0) | (everything <= hbm_bytes), ops.maximum(1.0, needed), 0.0)


# -- what a step sends -----------------------------------------------------------------------------------------------
class StepTraffic(NamedTuple):
    """Of one GPU in one step; the seconds are those of the wires alone, whatever hides them."""

    weights_bytes: object           # gathered
    gradients_bytes: object         # scattered, or under stage 0 summed everywhere
    replicas_bytes: object          # HSDP: summed over the other shard groups
    weights_s: object
    gradients_s: object
    replicas_s: object

    @property
    def total_bytes(self):
        return self.weights_bytes + self.gradients_bytes + self.replicas_bytes

    @property
    def total_s(self):
        return self.weights_s + self.gradients_s + self.replicas_s


def shard_group(ranks, group, stage):
    """GPUs that share one copy of the state: ``group`` of HSDP, no more than there are. Under stage 0 nothing is
    shared, and all take part in one AllReduce."""
    check.whole(ranks=ranks, group=group)
    check.between(0, 3, stage=stage)
    return ops.where(stage >= 1, ops.minimum(group, ranks), ranks)


def passes(stage, micro_batches=1):
    """(of gradients, of weights): how many times Ψ elements cross a GPU's wire in a step, but for the (N−1)/N.

    Stage 0 sums the gradients, two passes; stage 1 scatters them and gathers the updated weights. Stage 2 keeps no
    whole gradient, so that every micro-batch scatters its own; under stage 3 each gathers the weights twice as well.
    """
    check.between(0, 3, stage=stage)
    check.whole(micro_batches=micro_batches)
    gradients = ops.where(stage >= 2, micro_batches * 1.0, ops.where(stage >= 1, 1.0, 2.0))
    return gradients, ops.where(stage >= 3, 2.0 * micro_batches, ops.where(stage >= 1, 1.0, 0.0))


def ring_wire_bytes_per_s(ranks, stride, gpu, nic_bytes_per_s):
    """What rings have for a group whose members stand ``stride`` GPUs apart: the link inside a node; beyond it no more
    than the NICs of its members in one node together. The last node counts as full."""
    check.positive(nic_bytes_per_s=nic_bytes_per_s)
    per_node = interconnect.ranks_per_node(ranks, stride, gpu.gpus_per_node)
    link = ops.where(gpu.link_bytes_per_s > 0, gpu.link_bytes_per_s, nic_bytes_per_s)
    net = SimpleNamespace(link_bytes_per_s=link, nic_bytes_per_s=nic_bytes_per_s)
    return interconnect.ring_bytes_per_s(per_node, ops.ceil(ranks / per_node), net)


def step_traffic(params, ranks, group, stage, recipe, gpu, nic_bytes_per_s, micro_batches=1) -> StepTraffic:
    """What each GPU sends in a step of so many micro-batches, and for how long.

    In its shard group of S neighbours: ``passes`` · (S−1)/S · Ψ. Beyond it, once a step: an AllReduce of its part of
    the gradients over the R groups, 2·(R−1)/R · Ψ/S (arXiv:2304.11277 section 3.2.2; the last group counts as full).
    """
    check.positive(params=params)
    shared = shard_group(ranks, group, stage)
    replicas = ops.ceil(ranks / shared)
    gradients, weights = passes(stage, micro_batches)
    once = params * (shared - 1.0) / shared
    gradient_bytes = ops.minimum(recipe.gradient_bytes, WIRE_BYTES)
    sent = (weights * once * recipe.weight_bytes, gradients * once * gradient_bytes,
            fully_sharded.replica_elements(params, shared, replicas) * gradient_bytes)
    inside = ring_wire_bytes_per_s(shared, 1, gpu, nic_bytes_per_s)
    across = ring_wire_bytes_per_s(replicas, shared, gpu, nic_bytes_per_s)
    return StepTraffic(*sent, sent[0] / inside, sent[1] / inside, sent[2] / across)


def arithmetic_s(params, tokens, peak_flops_per_s, mfu=0.4, micro_batches=1):
    """Forward and backward of so many tokens in each micro-batch at that share of the peak: 6·Ψ·T·m/(MFU·C)."""
    check.whole(micro_batches=micro_batches)
    return flops.run_time_s(flops.training_flops(params, tokens) * micro_batches, 1, peak_flops_per_s, mfu)


def against_arithmetic(wire_s, arithmetic_time_s):
    """How much of the arithmetic's time the wires take; above 1 no schedule hides them."""
    check.non_negative(wire_s=wire_s)
    check.positive(arithmetic_time_s=arithmetic_time_s)
    return wire_s / arithmetic_time_s


class BehindPasses(NamedTuple):
    """What the wires do in one pass over a micro-batch, and how long the pass computes."""

    forward_wire_s: object
    backward_wire_s: object         # of any micro-batch but the last, if it sends at all
    last_backward_wire_s: object
    forward_s: object
    backward_s: object

    @property
    def pressure(self):
        """The longest wire time of a pass over the pass's arithmetic; above 1 no schedule hides it all."""
        return ops.maximum(self.forward_wire_s / self.forward_s, self.last_backward_wire_s / self.backward_s)


def behind_passes(traffic, stage, arithmetic_time_s, micro_batches=1) -> BehindPasses:
    """Each part of a step's traffic, set against the pass it can hide behind: a third of the arithmetic forward, two
    backward.

    Stage 0 sums gradients in the last backward pass. Stages 1 and 2 gather weights in the next step's first forward
    pass, stage 3 once in every pass. What crosses between groups follows the last backward pass's scatters.
    """
    check.between(0, 3, stage=stage)
    check.whole(micro_batches=micro_batches)
    check.positive(arithmetic_time_s=arithmetic_time_s)
    gather_s = traffic.weights_s / ops.where(stage >= 3, 2.0 * micro_batches, 1.0)
    scatter_s = traffic.gradients_s / ops.where(stage >= 2, micro_batches * 1.0, 1.0)
    inside_s = scatter_s + ops.where(stage >= 3, gather_s, 0.0)
    forward_s = arithmetic_time_s / (3.0 * micro_batches)
    return BehindPasses(gather_s, ops.where(stage >= 2, inside_s, 0.0), inside_s + traffic.replicas_s,
                        forward_s, 2.0 * forward_s)


def exposed_s(traffic, stage, arithmetic_time_s, micro_batches=1):
    """What no schedule hides: of each pass's wires, what outlasts its arithmetic."""
    at = behind_passes(traffic, stage, arithmetic_time_s, micro_batches)
    gathering = ops.where(stage >= 3, micro_batches * 1.0, 1.0)
    return (gathering * ops.maximum(0.0, at.forward_wire_s - at.forward_s)
            + (micro_batches - 1.0) * ops.maximum(0.0, at.backward_wire_s - at.backward_s)
            + ops.maximum(0.0, at.last_backward_wire_s - at.backward_s))


def can_hide_s(traffic, stage, arithmetic_time_s, micro_batches=1):
    """For how long wires with this mix of collectives may be busy in a step and still hide; without any, all of it."""
    pressure = behind_passes(traffic, stage, arithmetic_time_s, micro_batches).pressure
    return ops.where(pressure > 0, traffic.total_s / ops.where(pressure > 0, pressure, 1.0), arithmetic_time_s)


def tokens_to_hide(tokens, wire_s, arithmetic_time_s):
    """Tokens in a micro-batch from which the arithmetic, which is proportional to them, is as long as the wires."""
    check.positive(tokens=tokens)
    return tokens * against_arithmetic(wire_s, arithmetic_time_s)
