"""Traffic of data parallelism and ZeRO/FSDP in one step, and how much of it is exposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.base import check, ops
from engine.base.types import Real
from engine.mechanism.interconnect import Wires, all_gather_s, all_reduce_s, ranks_per_node

if TYPE_CHECKING:
    from engine.catalog.recipes import Recipe

WIRE_BYTES = 4.0  # a gradient is sent in its own precision, at most fp32
# Bytes in memory that PyTorch's FSDP moves for each parameter and micro-batch, beside what is on the wire.
# "flat" (FullyShardedDataParallel): autograd joins the gradients of a unit to one flat tensor, which is
# divided before it is scattered, 4 bytes each. "each" (fully_shard): gathered weights are copied out of their
# buffer, forward and backward (4 each), and gradients into an fp32 one (6).
FSDP_BYTES = {"": 0.0, "flat": 8.0, "each": 14.0}
# Bytes that Adam moves for each parameter where every operation is a kernel of its own, as in the loops of
# torch.optim (``foreach`` is the same, with many tensors to a kernel): both moments are scaled (8 each) and
# added to (12 each), a root is taken, divided and added to (8 each), and the weight is updated (16).
UNFUSED_ADAM_BYTES = 80.0


# remembered, because all layouts that spread as many bytes in the same way get the same values
_gather_s, _reduce_s = ops.remembered(all_gather_s), ops.remembered(all_reduce_s)


def gradient_bytes(recipe: Recipe) -> Real:
    """Bytes of a gradient on the wire."""
    return ops.minimum(recipe.gradient_bytes, WIRE_BYTES)


def weight_bytes(recipe: Recipe) -> Real:
    """Bytes of a weight on the wire."""
    return recipe.sent_weight_bytes


def scatter_s(params: Real, ranks: Real, stride: Real, recipe: Recipe, pieces: Real, net: Wires) -> Real:
    """ReduceScatter of the gradients of this many parameters, in this many pieces: P elements on each
    wire."""
    if not check.is_trusted():
        check.non_negative(params=params)
    return _gathered_s(params * gradient_bytes(recipe), ranks, stride, pieces, net)


def gather_s(params: Real, ranks: Real, stride: Real, recipe: Recipe, pieces: Real, net: Wires) -> Real:
    """AllGather of the weights of this many parameters: P elements on each wire."""
    if not check.is_trusted():
        check.non_negative(params=params)
    return _gathered_s(params * weight_bytes(recipe), ranks, stride, pieces, net)


def _gathered_s(sent_bytes: Real, ranks: Real, stride: Real, pieces: Real, net: Wires) -> Real:
    return pieces * _gather_s(
        sent_bytes / pieces, ranks, ranks_per_node(ranks, stride, net.gpus_per_node), net
    )


def reduce_s(params: Real, ranks: Real, stride: Real, recipe: Recipe, pieces: Real, net: Wires) -> Real:
    """AllReduce of the gradients of this many parameters, unsharded: 2P elements on each wire, by the
    algorithm that any AllReduce uses."""
    if not check.is_trusted():
        check.non_negative(params=params)
    sent_bytes = params * gradient_bytes(recipe)
    return pieces * _reduce_s(
        sent_bytes / pieces, ranks, ranks_per_node(ranks, stride, net.gpus_per_node), net
    )


def across_replicas_s(params: Real, replicas: Real, stride: Real, recipe: Recipe, net: Wires) -> Real:
    """HSDP: after their ReduceScatter, the gradients are summed over the replicas of the shard group."""
    if not check.is_trusted():
        check.non_negative(params=params)
    sent_bytes = params * gradient_bytes(recipe)
    return _reduce_s(sent_bytes, replicas, ranks_per_node(replicas, stride, net.gpus_per_node), net)


def hidden_behind(communication_s: Real, arithmetic_s: Real, pieces: Real, overlap: bool) -> Real:
    """The exposed part of communication that runs piece by piece beside arithmetic: the excess, but at least
    the last piece, which has nothing left to hide behind; without overlap, all of it."""
    if not check.is_trusted():
        check.non_negative(communication_s=communication_s, arithmetic_s=arithmetic_s)
        check.positive(pieces=pieces)
    visible = ops.maximum(communication_s - arithmetic_s, communication_s / pieces)
    return ops.where(overlap, visible, communication_s)


def exposed_once_s(
    zero: Real,
    scatter: Real,
    gather: Real,
    replicas: Real,
    forward_s: Real,
    backward_s: Real,
    pieces: Real,
    overlap: bool,
) -> Real:
    """ZeRO 0 and 1, exposed seconds per step: gradients behind the last backward pass (``scatter`` is their
    ReduceScatter, in stage 0 their AllReduce), and in stage 1 weights behind the next forward pass. 2P
    elements on each wire in all, and once more over HSDP's replicas."""
    return hidden_behind(scatter + replicas, backward_s, pieces, overlap) + ops.where(
        zero >= 1.0, hidden_behind(gather, forward_s, pieces, overlap), 0.0
    )


def exposed_scattering_s(
    micro_batches: Real,
    scatter: Real,
    gather: Real,
    replicas: Real,
    forward_s: Real,
    backward_s: Real,
    pieces: Real,
    overlap: bool,
) -> Real:
    """ZeRO-2, exposed seconds per step: no rank keeps a whole gradient to add to, so every micro-batch
    scatters its own behind its backward pass (Megatron-FSDP's ``grad_reduce_every_bprop``; DeepSpeed too).
    What does not finish is hidden behind the next forward pass, except for the very last piece. Weights are
    gathered once, as in stage 1."""
    scattered = hidden_behind(
        micro_batches * scatter, micro_batches * backward_s, micro_batches * pieces, overlap
    )
    room = ops.maximum(0.0, backward_s - scatter)
    return (
        scattered
        + hidden_behind(gather, forward_s, pieces, overlap)
        + hidden_behind(replicas, room, pieces, overlap)
    )


def exposed_each_time_s(
    micro_batches: Real,
    scatter: Real,
    gather: Real,
    replicas: Real,
    forward_s: Real,
    backward_s: Real,
    pieces: Real,
    overlap: bool,
    again: Real = 0.0,
) -> Real:
    """ZeRO-3/FSDP, exposed seconds per step: for every micro-batch, each layer's weights are gathered before
    its forward and its backward pass and its gradients scattered after, one layer ahead of the arithmetic (3P
    elements on each wire). HSDP's replicas are summed once per step, partly hidden by the last backward
    pass. ``again`` is how often the weights are gathered once more to recompute."""
    backward_traffic = (1.0 + again) * gather + scatter
    each = hidden_behind(gather, forward_s, pieces, overlap) + hidden_behind(
        backward_traffic, backward_s, pieces, overlap
    )
    room = ops.maximum(0.0, backward_s - backward_traffic)
    return micro_batches * each + hidden_behind(replicas, room, pieces, overlap)


def optimizer_s(params: Real, recipe: Recipe, memory_bytes_per_s: Real, fused: bool = True) -> Real:
    """One pass of the optimizer over this GPU's share of the state: read and write master copy and moments,
    read the gradient twice (norm, update), clear it, and write the weight. Without a fused kernel the update
    itself moves UNFUSED_ADAM_BYTES, with the gradient's second reading among them."""
    if not check.is_trusted():
        check.non_negative(params=params)
        check.positive(memory_bytes_per_s=memory_bytes_per_s)
    moved = 3.0 * recipe.gradient_bytes + recipe.weight_bytes
    if fused:
        moved = moved + 2.0 * recipe.optimizer_bytes
    else:
        moved = moved + UNFUSED_ADAM_BYTES - recipe.gradient_bytes
    return params * moved / memory_bytes_per_s
