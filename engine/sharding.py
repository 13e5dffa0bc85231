"""Traffic of data parallelism and ZeRO/FSDP in one step, and what of it no arithmetic hides."""

from __future__ import annotations

from engine import check, ops
from engine.interconnect import Wires, all_gather_s, all_reduce_s, ranks_per_node

WIRE_BYTES = 4.0            # a gradient travels in its own precision, at most fp32 …
GATHERED_BYTES = 2.0        # … and a weight in at most 16 bits, whatever the optimizer keeps


def scatter_s(params, ranks, stride, recipe, pieces, net: Wires):
    """ReduceScatter of the gradients of so many parameters, in so many pieces: Ψ elements on each wire. An AllReduce is
    two of them (arXiv:1910.02054 section 7)."""
    if not check.is_trusted():
        check.non_negative(params=params)
    gradient_bytes = params * ops.minimum(recipe.gradient_bytes, WIRE_BYTES)
    return pieces * all_gather_s(gradient_bytes / pieces, ranks, ranks_per_node(ranks, stride, net.gpus_per_node), net)


def gather_s(params, ranks, stride, recipe, pieces, net: Wires):
    """AllGather of as many weights: Ψ elements on each wire."""
    if not check.is_trusted():
        check.non_negative(params=params)
    weight_bytes = params * ops.minimum(recipe.weight_bytes, GATHERED_BYTES)
    return pieces * all_gather_s(weight_bytes / pieces, ranks, ranks_per_node(ranks, stride, net.gpus_per_node), net)


def across_replicas_s(params, replicas, stride, recipe, net: Wires):
    """HSDP: what is left of the gradients after their ReduceScatter is summed over the replicas of the shard group."""
    if not check.is_trusted():
        check.non_negative(params=params)
    gradient_bytes = params * ops.minimum(recipe.gradient_bytes, WIRE_BYTES)
    return all_reduce_s(gradient_bytes, replicas, ranks_per_node(replicas, stride, net.gpus_per_node), net)


def hidden_behind(communication_s, arithmetic_s, pieces, overlap):
    """What stays visible of communication that runs piece by piece beside arithmetic: the excess, or at least its last
    piece, which has nothing left to hide behind; all of it without overlap."""
    if not check.is_trusted():
        check.non_negative(communication_s=communication_s, arithmetic_s=arithmetic_s)
        check.positive(pieces=pieces)
    visible = ops.maximum(communication_s - arithmetic_s, communication_s / pieces)
    return ops.where(overlap, visible, communication_s)


def exposed_once_s(zero, scatter, gather, replicas, forward_s, backward_s, pieces, overlap):
    """ZeRO 0 and 1, seconds of a step: gradients behind the last backward pass, and in stage 1 weights behind the next
    forward pass. 2Ψ elements on each wire in all, and over HSDP's replicas once more."""
    reduce = ops.where(zero >= 1.0, scatter, 2.0 * scatter) + replicas
    return (hidden_behind(reduce, backward_s, pieces, overlap)
            + ops.where(zero >= 1.0, hidden_behind(gather, forward_s, pieces, overlap), 0.0))


def exposed_scattering_s(micro_batches, scatter, gather, replicas, forward_s, backward_s, pieces, overlap):
    """ZeRO-2, seconds of a step: no whole gradient is kept to add to, so every micro-batch scatters its own behind its
    backward pass (Megatron-FSDP's ``grad_reduce_every_bprop``; DeepSpeed too). What is left of one travels behind the
    next forward pass, but for the last piece of all. Weights are gathered once, as in stage 1."""
    scattered = hidden_behind(micro_batches * scatter, micro_batches * backward_s, micro_batches * pieces, overlap)
    room = ops.maximum(0.0, backward_s - scatter)
    return scattered + hidden_behind(gather, forward_s, pieces, overlap) + hidden_behind(replicas, room, pieces, overlap)


def exposed_each_time_s(micro_batches, scatter, gather, replicas, forward_s, backward_s, pieces, overlap):
    """ZeRO-3/FSDP, seconds of a step: for every micro-batch each layer's weights are gathered before its forward and
    its backward pass and its gradients scattered after, one layer ahead of the arithmetic (3Ψ elements on each wire).
    HSDP's replicas meet once a step, in what the last backward pass still hides."""
    backward_traffic = gather + scatter
    each = (hidden_behind(gather, forward_s, pieces, overlap)
            + hidden_behind(backward_traffic, backward_s, pieces, overlap))
    room = ops.maximum(0.0, backward_s - backward_traffic)
    return micro_batches * each + hidden_behind(replicas, room, pieces, overlap)


def optimizer_s(params, recipe, memory_bytes_per_s):
    """One pass of the optimizer over this GPU's share of the state: read and write master copy and moments, read the
    gradient twice (norm, update) and clear it, write the weight."""
    if not check.is_trusted():
        check.non_negative(params=params)
        check.positive(memory_bytes_per_s=memory_bytes_per_s)
    moved = 2.0 * recipe.optimizer_bytes + 3.0 * recipe.gradient_bytes + recipe.weight_bytes
    return params * moved / memory_bytes_per_s
