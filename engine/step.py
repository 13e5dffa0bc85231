"""One training step, term by term: the sum behind ``layout.estimate`` and behind the search.

Every number may be a float or an array; arrays broadcast, so a search gives each axis of its space a dimension of its
own and terms that do not depend on an axis are computed once for all of its values.
"""

from __future__ import annotations

from typing import NamedTuple

from engine import compute, experts, memory, ops, pipeline, sequence, sharding
from engine.interconnect import all_gather_s, all_reduce_s, ranks_per_node, send_s


# Beside the framework's own, what ZeRO in DeepSpeed of 2022 held: flat communication buckets with their fp32 copies,
# and an allocator without expandable segments. Fitted on two rows of the BLOOM sweep (see tests/published); constant in
# all of it.
FLAT_BUFFERS_BYTES = 12e9


class Axes(NamedTuple):
    """A job's sizes and a layout, in floats; ``plan`` is a pipeline schedule's coefficients."""

    seq: float
    global_batch: float
    tp: float
    pp: float
    cp: float
    dp: float
    ep: float
    expert_tp: float
    zero: float
    shard: float                    # GPUs that share one copy under ZeRO (HSDP); 0.0 for all
    micro_batch: float
    recompute: float
    plan: pipeline.Schedule
    chunks: float


class Terms(NamedTuple):
    """Seconds of a step, which add up to ``step_s``, and bytes of the fullest stage."""

    step_s: float
    compute_s: float
    tensor_s: float
    pipeline_bubble_s: float
    context_s: float
    expert_s: float
    data_exposed_s: float
    optimizer_s: float
    other_s: float                  # messages between pipeline stages
    total_bytes: float


class Layer(NamedTuple):
    """Seconds of an average layer for one micro-batch, forward and backward (recomputation in the backward time)."""

    forward_s: float
    backward_s: float
    weight_gradient_s: float
    compute_s: float                # forward and backward, arithmetic and memory alone
    tensor_s: float                 # … and what each axis adds
    context_s: float
    expert_s: float


class StageBytes(NamedTuple):
    """Bytes of one pipeline stage on one of its GPUs."""

    weights: float
    gradients: float
    optimizer: float
    activations: float


def layer_time(shape, job, at, net, a: Axes, tokens) -> Layer:
    """One layer with the traffic that its own arithmetic waits for."""
    whole_ranks = a.tp if job.sequence_parallel else 1.0
    own = compute.layer(shape, tokens, a.seq, a.tp, whole_ranks, a.ep, a.expert_tp, job.imbalance, job.flash,
                        job.fused, at)
    tensor_s = tensor_exposed_s(shape, job, net, a, tokens)
    context_f, context_b = context_exposed_s(shape, job, net, a, tokens, own.attention_forward_s)
    expert_s = expert_exposed_s(shape, job, net, a, tokens, own.forward_s)
    full = a.recompute == memory.FULL
    again = ops.where(full, 1.0, 0.0)
    again_s = ops.where(full, own.forward_s, 0.0)
    if not job.flash:   # fused attention keeps nothing that selective recomputation could drop
        again_s = ops.where(a.recompute == memory.SELECTIVE, own.attention_forward_s, again_s)
    forward_s = own.forward_s + tensor_s + context_f + expert_s
    traffic_b = tensor_s + context_b + expert_s + again * (tensor_s + context_f + expert_s)
    return Layer(
        forward_s, own.backward_s + again_s + traffic_b, own.weight_gradient_s,
        own.forward_s + own.backward_s + again_s,
        (2.0 + again) * tensor_s, context_f + context_b + again * context_f, (2.0 + again) * expert_s)


def tensor_exposed_s(shape, job, net, a: Axes, tokens):
    """Tensor parallelism in one layer and direction: an AllReduce behind attention and one behind the MLP, or with
    sequence parallelism an AllGather and a ReduceScatter for each (arXiv:2205.05198 section 4.2.2). Nothing hides them.

    A layer with experts has the one for attention alone; its tokens reach the experts by AllToAll.
    """
    message_bytes = tokens * shape.hidden * 2.0
    per_node = ranks_per_node(a.tp, 1.0, net.gpus_per_node)
    if job.sequence_parallel:
        pair_s = 2.0 * all_gather_s(message_bytes, a.tp, per_node, net)
    else:
        pair_s = all_reduce_s(message_bytes, a.tp, per_node, net)
    return shape.all_reduces * (1.0 - 0.5 * shape.moe_share) * pair_s


def context_exposed_s(shape, job, net, a: Axes, tokens, attention_s):
    """Context parallelism in one layer: forward, and backward, which passes the gradients around too."""
    if ops.is_zero(a.cp - 1.0):
        return 0.0, 0.0
    kv_bytes = tokens * shape.kv_width * 2.0 / a.tp
    if job.gather_context:
        forward_s = sequence.gather_s(kv_bytes, a.cp, a.tp, net)
        return forward_s, 2.0 * forward_s
    return (sequence.ring_s(kv_bytes, a.cp, a.tp, attention_s, net),
            sequence.ring_s(2.0 * kv_bytes, a.cp, a.tp, attention_s * compute.BACKWARD_OF_FLASH, net))


def expert_exposed_s(shape, job, net, a: Axes, tokens, forward_s):
    """Two AllToAlls (dispatch and combine) in each layer with experts and direction; tokens that reach experts split
    over expert_tp are gathered there, and their results scattered. DualPipe runs them beside the arithmetic of the
    opposite direction (arXiv:2412.19437 section 3.2.1)."""
    if not shape.expert:
        return 0.0
    sent_bytes = job.imbalance * tokens / a.tp * shape.top_k * shape.hidden * experts.TOKEN_BYTES
    traffic_s = 2.0 * shape.moe_share * (experts.dispatch_s(sent_bytes, a.ep, a.expert_tp, net)
                                         + experts.gather_s(sent_bytes, a.expert_tp, net))
    return ops.maximum(0.0, traffic_s - a.plan.hides_experts * forward_s)


def data_exposed_s(shape, job, recipe, net, a: Axes, layers, dense, routed, layer: Layer, micro_batches):
    """Data parallelism: gradients and sharded state, for the dense parameters and for the experts of a stage of so many
    layers.

    Gradients travel behind the last backward pass. A stage of v chunks has all but one of them ready while the others
    still work through p micro-batches, which leaves 1 + (p−1)(v−1)/v backward passes to hide behind (all m where there
    are fewer). That such a stage also waits for a slower last one is not counted: a little less is hidden here than is.
    """
    groups = [(dense, a.dp * a.cp, a.tp, 1.0)]
    if shape.expert:
        groups.append((routed, a.tp * a.cp * a.dp / (a.ep * a.expert_tp), a.ep * a.expert_tp, shape.has_experts))
    forward_s, backward_s = layers * layer.forward_s, layers * layer.backward_s

    def traffic(pieces):
        scatter = gather = replicas = 0.0
        for params, ranks, stride, there in groups:
            shard = ops.minimum(a.shard, ranks) if a.shard else ranks
            scatter = scatter + there * sharding.scatter_s(params, shard, stride, recipe, pieces, net)
            gather = gather + there * sharding.gather_s(params, shard, stride, recipe, pieces, net)
            if a.shard:
                left = params / ops.where(a.zero >= 1.0, shard, 1.0)
                replicas = replicas + sharding.across_replicas_s(left, ranks / shard, stride * shard, recipe, net)
        return scatter, gather, replicas

    free = ops.minimum(micro_batches, 1.0 + (a.pp - 1.0) * (a.chunks - 1.0) / a.chunks)

    def once():
        return sharding.exposed_once_s(a.zero, *traffic(1.0), free * forward_s, free * backward_s, layers, job.overlap)

    def scattering():
        (scatter, _, replicas), (_, gather, _) = traffic(layers), traffic(1.0)
        return sharding.exposed_scattering_s(micro_batches, scatter, gather, replicas, free * forward_s, backward_s, layers,
                                             job.overlap)

    def each_time():
        return sharding.exposed_each_time_s(micro_batches, *traffic(layers), forward_s, backward_s, layers, job.overlap)

    return ops.choose(a.zero >= 3.0, each_time, lambda: ops.choose(a.zero >= 2.0, scattering, once))


def stage_bytes(shape, recipe, a: Axes, layers, extra_params, shard, expert_shard, kept, extra_bytes) -> StageBytes:
    """One stage of so many layers, with ``extra_params`` beside them; ``kept`` bytes of activations a layer."""
    dense = (layers * shape.dense_params_per_layer + extra_params) / a.tp
    routed = layers * shape.routed_params_per_layer / (a.ep * a.expert_tp)
    whole, sharded = dense + routed, dense / shard + routed / expert_shard
    return StageBytes(
        ops.where(a.zero >= 3.0, sharded, whole) * (recipe.weight_bytes * a.plan.weight_copies),
        ops.where(a.zero >= 2.0, sharded, whole) * (recipe.gradient_bytes * a.plan.weight_copies),
        ops.where(a.zero >= 1.0, sharded, whole) * recipe.optimizer_bytes,
        layers * kept + extra_bytes)


def sizes(shape, a: Axes):
    """Tokens of a micro-batch on a GPU, micro-batches of a step, and the layers of the stages."""
    return (a.micro_batch * a.seq / a.cp, a.global_batch / (a.dp * a.micro_batch),
            pipeline.stage_layers(shape.layers, a.pp, a.chunks))


def stages_bytes(shape, job, recipe, a: Axes, tokens, micro_batches, stage) -> tuple[StageBytes, ...]:
    """Bytes of the first, second and last stage, one of which is the fullest: the first holds the embedding and the
    most micro-batches, the second may have a layer more, the last holds the output layer and its logits. Software that
    does not free a stage's output once it is sent holds it for each micro-batch too (arXiv:2205.05198 appendix B).
    """
    shard, expert_shard = shards(a)
    whole_ranks = a.tp if job.sequence_parallel else 1.0
    kept = kept_bytes(shape, job, a, tokens, whole_ranks, a.recompute)
    working = ops.choose(a.recompute == memory.FULL, lambda: kept_bytes(shape, job, a, tokens, whole_ranks, 0.0),
                         lambda: 0.0)
    working = working + ops.where(a.zero >= 3.0, 2.0 * recipe.weight_bytes * (
        shape.dense_params_per_layer / a.tp + shape.routed_params_per_layer / (a.ep * a.expert_tp)), 0.0)
    flight = pipeline.in_flight(a.pp, micro_batches, a.chunks, a.plan)
    logits = memory.logits_peak_bytes(shape, a.seq, a.micro_batch, a.tp, a.cp)
    alone = a.pp == 1.0
    before_last = working
    if not job.fused:
        before_last = working + flight * ops.where(alone, 0.0, 2.0 * tokens * shape.hidden)
    return (
        stage_bytes(shape, recipe, a, stage.first, shape.embedding_params + ops.where(alone, shape.head_params, 0.0),
                    shard, expert_shard, kept * flight, before_last + ops.where(alone, logits, 0.0)),
        stage_bytes(shape, recipe, a, ops.where(a.pp > 2.0, stage.full, 0.0), 0.0, shard, expert_shard,
                    kept * ops.maximum(1.0, flight - 1.0), before_last),
        stage_bytes(shape, recipe, a, ops.where(alone, 0.0, stage.last), shape.last_stage_params, shard, expert_shard,
                    kept * ops.minimum(flight, a.plan.last_flight), working + logits))


def overhead_bytes(job, a: Axes):
    """What the software holds beside the model."""
    if job.fused:
        return memory.FRAMEWORK_BYTES
    return memory.FRAMEWORK_BYTES + ops.where(a.zero >= 1.0, FLAT_BUFFERS_BYTES, 0.0)


def shards(a: Axes):
    """GPUs that share one copy of the state under ZeRO: of the dense parameters, and of an expert's."""
    ranks = a.dp * a.cp
    expert_ranks = a.tp * ranks / (a.ep * a.expert_tp)
    if not a.shard:
        return ranks, expert_ranks
    return ops.minimum(a.shard, ranks), ops.minimum(a.shard, expert_ranks)


def kept_bytes(shape, job, a: Axes, tokens, whole_ranks, recompute):
    """Activations that an average layer keeps of one micro-batch."""
    kept = 0.0
    for moe, share in ((False, 1.0 - shape.moe_share), (True, shape.moe_share)):
        if not ops.is_zero(share):
            kept = kept + share * memory.kept_per_token(shape, a.seq, a.tp, whole_ranks, recompute, job.flash, moe)
    return kept * tokens


def step(shape, job, recipe, at, net, a: Axes) -> Terms:
    """Seconds and bytes of one step. The pace is the slowest stage's; the bubble that of an average stage."""
    tokens, micro_batches, stage = sizes(shape, a)
    layer = layer_time(shape, job, at, net, a, tokens)
    head_f, head_b = compute.head(shape, tokens, a.tp, a.tp if job.sequence_parallel else 1.0, at)
    head_s = head_f + head_b

    layer_s = layer.forward_s + layer.backward_s
    before_last = ops.where(a.pp > 2.0, stage.full, stage.first)
    last_is_slowest = stage.last * layer_s + head_s >= before_last * layer_s
    layers = micro_batches * ops.where(last_is_slowest, stage.last, before_last)
    compute_s = layers * layer.compute_s + micro_batches * ops.where(last_is_slowest, head_s, 0.0)
    tensor_s, context_s, expert_s = layers * layer.tensor_s, layers * layer.context_s, layers * layer.expert_s

    bubble_s = pipeline.bubble_s(a.pp, a.chunks, (shape.layers * layer.forward_s + head_f) / a.pp,
                                 (shape.layers * layer.backward_s + head_b) / a.pp,
                                 shape.layers * layer.weight_gradient_s / a.pp, a.plan)
    other_s = messages_s(shape, job, net, a, tokens, micro_batches)

    dense = (before_last * shape.dense_params_per_layer
             + ops.where(a.pp > 1.0, shape.last_stage_params, shape.embedding_params + shape.head_params)) / a.tp
    routed = before_last * shape.routed_params_per_layer / (a.ep * a.expert_tp)
    data_s = data_exposed_s(shape, job, recipe, net, a, before_last, dense, routed, layer, micro_batches)
    shard, expert_shard = shards(a)
    optimizer_s = sharding.optimizer_s(ops.where(a.zero >= 1.0, dense / shard + routed / expert_shard, dense + routed),
                                       recipe, at.memory_bytes_per_s)
    first, second, last = stages_bytes(shape, job, recipe, a, tokens, micro_batches, stage)
    return Terms(
        compute_s + tensor_s + bubble_s + context_s + expert_s + other_s + optimizer_s + data_s,
        compute_s, tensor_s, bubble_s, context_s, expert_s, data_s, optimizer_s, other_s,
        ops.maximum(sum(first), ops.maximum(sum(second), sum(last))) + overhead_bytes(job, a))


def messages_s(shape, job, net, a: Axes, tokens, micro_batches):
    """Activations and their gradients between stages: one exchange for each micro-batch, chunk and direction that
    nothing hides, unless chunks leave other work to do; filling and draining always wait for theirs.

    Every tensor rank sends its own part; without sequence parallelism the parts are gathered again inside the node
    (the scatter/gather optimisation, arXiv:2104.04473 section 4.1).
    """
    message_bytes = tokens * shape.hidden * 2.0
    send = send_s(message_bytes / a.tp, a.tp * a.cp * a.dp >= net.gpus_per_node, net)
    if not job.sequence_parallel:
        send = send + all_gather_s(message_bytes, a.tp, ranks_per_node(a.tp, 1.0, net.gpus_per_node), net)
    waits = ops.where((a.chunks > 1.0) & job.overlap, 0.0, micro_batches * a.chunks)
    return ops.where(a.pp > 1.0, 2.0 * send * (waits + a.pp - 1.0), 0.0)
