"""Traffic of data parallelism and ZeRO/FSDP in one step, and what of it no arithmetic hides."""

from __future__ import annotations

from engine import check, ops
from engine.interconnect import Wires, all_gather_s, all_reduce_s, ranks_per_node

WIRE_BYTES = 4.0            # a gradient travels in its own precision, at most fp32 …
GATHERED_BYTES = 2.0        # … and a weight in at most 16 bits, whatever the optimizer keeps


def hidden_behind(communication_s, arithmetic_s, pieces, overlap):
    """What stays visible of communication that runs piece by piece beside arithmetic: the excess, or at least its last
    piece, which has nothing left to hide behind; all of it without overlap."""
    if not check.is_trusted():
        check.non_negative(communication_s=communication_s, arithmetic_s=arithmetic_s)
        check.positive(pieces=pieces)
    return ops.where(overlap, ops.maximum(communication_s - arithmetic_s, communication_s / pieces), communication_s)


def once_per_step_s(params, ranks, stride, zero, recipe, forward_s, backward_s, pieces, overlap, net: Wires):
    """ZeRO 0 to 2, exposed seconds of a step. Stage 0: AllReduce of gradients (2Ψ elements on each wire); stages 1 and 2:
    ReduceScatter of gradients behind the last backward pass, AllGather of weights behind the next forward pass (2Ψ).

    arXiv:1910.02054 section 7. Stage 2 with several micro-batches is taken to reduce once, as Megatron-FSDP does.
    """
    check.non_negative(params=params)
    per_node = ranks_per_node(ranks, stride, net.gpus_per_node)
    gradient_bytes = params * ops.minimum(recipe.gradient_bytes, WIRE_BYTES)
    weight_bytes = params * ops.minimum(recipe.weight_bytes, GATHERED_BYTES)
    scatter_s = all_gather_s(gradient_bytes, ranks, per_node, net)
    gather_s = all_gather_s(weight_bytes, ranks, per_node, net)
    reduce_s = ops.where(zero >= 1.0, scatter_s, 2.0 * scatter_s)
    return (hidden_behind(reduce_s, backward_s, pieces, overlap)
            + ops.where(zero >= 1.0, hidden_behind(gather_s, forward_s, pieces, overlap), 0.0))


def every_micro_batch_s(params, ranks, stride, recipe, forward_s, backward_s, pieces, overlap, net: Wires):
    """ZeRO-3/FSDP, exposed seconds of one micro-batch: each layer's weights are gathered before its forward and its
    backward pass and its gradients scattered after (3Ψ elements on each wire), one layer ahead of the arithmetic."""
    check.non_negative(params=params)
    per_node = ranks_per_node(ranks, stride, net.gpus_per_node)
    gather_s = pieces * all_gather_s(params * ops.minimum(recipe.weight_bytes, GATHERED_BYTES) / pieces, ranks, per_node, net)
    scatter_s = pieces * all_gather_s(params * ops.minimum(recipe.gradient_bytes, WIRE_BYTES) / pieces, ranks, per_node, net)
    return (hidden_behind(gather_s, forward_s, pieces, overlap)
            + hidden_behind(gather_s + scatter_s, backward_s, pieces, overlap))


def across_replicas_s(params, shard, replicas, stride, recipe, backward_s, pieces, overlap, net: Wires):
    """HSDP: the scattered gradients are summed once more over the replicas of each shard group, once a step."""
    check.non_negative(params=params)
    check.whole(shard=shard)
    per_node = ranks_per_node(replicas, stride, net.gpus_per_node)
    reduce_s = all_reduce_s(params / shard * ops.minimum(recipe.gradient_bytes, WIRE_BYTES), replicas, per_node, net)
    return hidden_behind(reduce_s, backward_s, pieces, overlap)


def optimizer_s(params, recipe, memory_bytes_per_s):
    """One pass of the optimizer over this GPU's share of the state: read and write master copy and moments, read the
    gradient twice (norm, update) and clear it, write the weight."""
    check.non_negative(params=params)
    check.positive(memory_bytes_per_s=memory_bytes_per_s)
    moved = 2.0 * recipe.optimizer_bytes + 3.0 * recipe.gradient_bytes + recipe.weight_bytes
    return params * moved / memory_bytes_per_s
