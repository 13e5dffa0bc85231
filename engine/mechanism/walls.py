"""Why one GPU is not enough: each wall as the ratio of what is needed to what is available. Above 1 the wall
is hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.catalog import models
from engine.catalog.hardware import peak_with_fallback
from engine.mechanism import collectives, flops, memory

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.recipes import Recipe

WALLS = ("memory", "step time", "deadline", "budget")
LOADS = ("memory", "compute", "bandwidth")


# -- the walls of lesson 01 ----------------------------------------------------------------------------------
def memory_ratio(params: Real, gpu: Gpu, gpus: Real = 1, recipe: Recipe | None = None) -> Real:
    """Training state over the HBM of this many GPUs, as if split evenly. Leaves out activations."""
    return memory.against_hbm(memory.state_bytes(params, recipe), gpu, gpus)


def step_ratio(
    params: Real, tokens_per_step: Real, gpus: Real, peak_flops_per_s: Real, mfu: Real, target_step_s: Real
) -> Real:
    """The time of one step, 6·P·D at this MFU, over the step time wanted. Leaves out attention."""
    check.positive(target_step_s=target_step_s)
    return (
        flops.run_time_s(flops.training_flops(params, tokens_per_step), gpus, peak_flops_per_s, mfu)
        / target_step_s
    )


def deadline_ratio(
    params: Real, tokens: Real, gpus: Real, peak_flops_per_s: Real, mfu: Real, deadline_s: Real
) -> Real:
    """The whole run's time over its deadline. Leaves out interruptions."""
    check.positive(deadline_s=deadline_s)
    return flops.run_time_s(flops.training_flops(params, tokens), gpus, peak_flops_per_s, mfu) / deadline_s


def budget_ratio(
    params: Real,
    tokens: Real,
    peak_flops_per_s: Real,
    mfu: Real,
    dollars_per_gpu_hour: Real,
    budget_dollars: Real,
) -> Real:
    """The run's bill over the budget. The number of GPUs cancels: twice as many work half as long."""
    check.positive(dollars_per_gpu_hour=dollars_per_gpu_hour, budget_dollars=budget_dollars)
    hours = flops.gpu_hours(flops.training_flops(params, tokens), peak_flops_per_s, mfu)
    return hours * dollars_per_gpu_hour / budget_dollars


def wall_ratios(
    params: Real,
    tokens: Real,
    tokens_per_step: Real,
    gpu: Gpu,
    gpus: Real,
    mfu: Real,
    target_step_s: Real,
    deadline_s: Real,
    dollars_per_gpu_hour: Real,
    budget_dollars: Real,
    recipe: Recipe | None = None,
    peak_flops_per_s: Real | None = None,
    state_ranks: Real | None = None,
) -> Real:
    """All four ratios on the last axis, in the order of WALLS. The peak is the GPU's bf16 peak unless given,
    and the state is cut over all GPUs, unless over ``state_ranks`` of them (1: a copy on each)."""
    peak = peak_with_fallback(gpu) if peak_flops_per_s is None else peak_flops_per_s
    return np.stack(
        np.broadcast_arrays(
            memory_ratio(params, gpu, gpus if state_ranks is None else state_ranks, recipe),
            step_ratio(params, tokens_per_step, gpus, peak, mfu, target_step_s),
            deadline_ratio(params, tokens, gpus, peak, mfu, deadline_s),
            budget_ratio(params, tokens, peak, mfu, dollars_per_gpu_hour, budget_dollars),
        ),
        axis=-1,
    )


def first_wall(ratios: Real) -> Real:
    """Index of the wall that a growing model hits first; −1 while none is hit.

    All four ratios are proportional to the parameters, so the largest was the first to exceed 1.
    """
    return ops.where(np.max(ratios, axis=-1) > 1, np.argmax(ratios, axis=-1), -1)


def largest_params(params: Real, ratios: Real) -> Real:
    """The model size at which the first wall is hit: the parameters divided by the largest ratio."""
    check.positive(params=params)
    return params / np.max(ratios, axis=-1)


def gpus_past(ratio: Real, gpus: Real) -> Real:
    """The fewest GPUs for which a wall that shrinks with their number (all but the budget) is no longer hit.

    ceil(ratio · GPUs), at least 1: the same need, spread over more GPUs. Assumes an unchanged MFU.
    """
    check.positive(ratio=ratio)
    check.whole(gpus=gpus)
    return ops.maximum(ops.ceil(ratio * gpus * (1 - 1e-12)), 1.0)  # 14.000000000000002 GPUs are 14


# -- the three loads of the regime cube ----------------------------------------------------------------------
def training_loads(
    model: models.Model,
    gpu: Gpu,
    gpus: Real,
    tokens_per_step: Real,
    target_step_s: Real,
    recipe: Recipe | None = None,
    wire_bytes_per_s: Real | None = None,
    mfu: Real = 0.4,
) -> Real:
    """The share of each cluster resource that a training step in the target time would use, in the order of
    LOADS, last axis.

    memory      training state / all HBM (perfect sharding; leaves out activations)
    compute     6 · active parameters · tokens / (GPUs · bf16 peak · MFU · target)
    bandwidth   the gradients' AllReduce, 2·(N−1)/N · gradient bytes / (wire · target): plain data parallelism
                over ``ring_wire_bytes_per_s`` unless a wire is given. A layout that splits the model sends
                less; nothing counts as hidden.

    A load above 1 cannot be met; the largest is the resource that binds.
    """
    check.positive(tokens_per_step=tokens_per_step, target_step_s=target_step_s)
    check.whole(gpus=gpus)
    check.share(mfu=mfu)
    params = models.parameters(model)
    slabs = memory.state_slabs(params, recipe)
    wire = ring_wire_bytes_per_s(gpu, gpus) if wire_bytes_per_s is None else wire_bytes_per_s
    check.positive(wire_bytes_per_s=wire)
    sent = 2 * slabs[..., 1] * (gpus - 1) / gpus
    useful = gpus * peak_with_fallback(gpu) * mfu * target_step_s
    return np.stack(
        np.broadcast_arrays(
            np.sum(slabs, axis=-1) / (gpus * gpu.hbm_bytes),
            6 * models.active_parameters(model) * tokens_per_step / useful,
            sent / (wire * target_step_s),
        ),
        axis=-1,
    )


def serving_loads(
    model: models.Model,
    gpu: Gpu,
    gpus: Real,
    batch: Real,
    context_tokens: Real,
    target_token_s: Real,
    bytes_per_weight: Real = 2.0,
    bytes_per_kv_value: Real = 2.0,
) -> Real:
    """The share of each of the GPUs' resources that a decode step in the target time would use, in the order
    of LOADS, last axis.

    memory      (weights + KV cache of the batch) / all HBM
    compute     batch · forward FLOPs of a token at that context / (GPUs · bf16 peak · target)
    bandwidth   (weights that the batch reads + KV cache) / (GPUs · HBM bandwidth · target)

    Of the experts a batch reads E·(1 − (1 − k/E)^b), assuming even routing. Leaves out traffic between the
    GPUs.
    """
    check.positive(
        batch=batch,
        context_tokens=context_tokens,
        target_token_s=target_token_s,
        gpus=gpus,
        bytes_per_weight=bytes_per_weight,
        bytes_per_kv_value=bytes_per_kv_value,
    )
    kv = memory.kv_bytes(model, context_tokens, batch, bytes_per_kv_value)
    arithmetic = batch * flops.forward_flops_per_token(model, context_tokens, causal=0)
    time = gpus * target_token_s
    return np.stack(
        np.broadcast_arrays(
            (models.parameters(model) * bytes_per_weight + kv) / (gpus * gpu.hbm_bytes),
            arithmetic / (peak_with_fallback(gpu) * time),
            (touched_parameters(model, batch) * bytes_per_weight + kv) / (gpu.hbm_bytes_per_s * time),
        ),
        axis=-1,
    )


def touched_parameters(model: models.Model, batch: Real) -> Real:
    """Parameters that a batch of tokens reads in one step: all dense ones, and of the experts E·(1 − (1 −
    k/E)^b)."""
    check.positive(batch=batch)
    idle = 0
    for count, mlp in models.mlps(model):
        if models.is_routed(mlp):
            used = mlp.experts * (1 - (1 - mlp.used / ops.maximum(mlp.experts, 1)) ** batch)
            idle = idle + count * (mlp.experts - used) * mlp.expert.parameters
    return models.parameters(model) - idle


def binding_load(loads: Real) -> Real:
    """Index into LOADS of the largest."""
    return np.argmax(loads, axis=-1)


# -- the gradients' AllReduce --------------------------------------------------------------------------------
def ring_wire_bytes_per_s(gpu: Gpu, gpus: Real, nics: Real | None = None) -> Real:
    """The one-way bandwidth of rings through this many GPUs: the link in one node, else min(link, NICs · one
    NIC).

    NCCL runs several rings at once, so that every NIC of a node carries a slice: ``nics`` of them, or one per
    GPU. The last node counts as full. A GPU without a link of its own communicates through its NIC. Vendor's
    rates, no latency.
    """
    check.whole(gpus=gpus)
    link = ops.where(gpu.link_bytes_per_s > 0, gpu.link_bytes_per_s, gpu.nic_bytes_per_s)
    carried = gpu.gpus_per_node if nics is None else nics
    check.whole(nics=carried)
    return collectives.ring_bytes_per_s(
        carried, ops.ceil(gpus / gpu.gpus_per_node), link, gpu.nic_bytes_per_s
    )


def allreduce_bytes_sent(params: Real, ranks: Real, gradient_bytes: Real = 2.0) -> Real:
    """Bytes each GPU sends (and receives) in a ring AllReduce of the gradients: 2·(N−1)/N·P·bytes.

    Patarasuk and Yuan 2009; the bandwidth term alone, no latency.
    """
    check.positive(params=params, gradient_bytes=gradient_bytes)
    check.whole(ranks=ranks)
    return 2 * (ranks - 1) / ranks * params * gradient_bytes


def allreduce_s(params: Real, ranks: Real, wire_bytes_per_s: Real, gradient_bytes: Real = 2.0) -> Real:
    """The time of that AllReduce on a wire with this one-way bandwidth."""
    check.positive(wire_bytes_per_s=wire_bytes_per_s)
    return allreduce_bytes_sent(params, ranks, gradient_bytes) / wire_bytes_per_s
