"""One training step, term by term: the sum behind ``layout.estimate`` and the search.

Every number may be a float or an array. Arrays broadcast: a search gives each axis of its space a dimension
of its own, so that terms which do not depend on an axis are computed once for all of its values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import ops
from engine.base.types import Real
from engine.mechanism import (
    adapters,
    compute,
    experts,
    memory,
    optimizers,
    pipeline,
    seeing,
    sequence,
    sharding,
)
from engine.mechanism.interconnect import (
    all_gather_s,
    all_reduce_s,
    pair_all_reduce_s,
    ranks_per_node,
    send_s,
)
from engine.mechanism.wires import scaled

if TYPE_CHECKING:
    from engine.catalog.recipes import Recipe
    from engine.mechanism.adapters import Adapter
    from engine.mechanism.interconnect import Wires
    from engine.mechanism.matmul import Chip
    from engine.mechanism.offload import Offload
    from engine.mechanism.shape import Routed, Shape
    from engine.step.training_job import Job

# Memory that ZeRO in the DeepSpeed of 2022 used beyond the framework's own: flat communication buckets with
# their fp32 copies, and an allocator without expandable segments. Fitted on two rows of the BLOOM sweep (see
# engine/validation/published); the same for all its rows.
FLAT_BUFFERS_BYTES = 12e9

LIVE_PARAMS = 1e9  # that DeepSpeed's stage 3 keeps gathered (stage3_max_live_parameters, its default)

# remembered, because all layouts that cut a layer alike get the same values, whatever their pipeline and data
# ranks are
_layer, _head = ops.remembered(compute.layer), ops.remembered(compute.head)
_stage_layers = ops.remembered(pipeline.stage_layers)
_gather_s, _pair_s = ops.remembered(all_gather_s), ops.remembered(pair_all_reduce_s)

CAST_BYTES = 3.0  # per value: read in 16 bits, written in 8, its block's scale found on the way
JOINED_BYTES = 4.0  # moved to copy one 16-bit value to another place: two to read it, two to write it
# The share of a hidden transfer's time that is lost all the same: its copies take multiprocessors and memory
# bandwidth from the product, and the product is cut into smaller ones. Fitted on four rows (one model with
# and without overlap, in bf16 and in fp8, see engine/validation/published; these alone give 0.29) and on the
# five other rows with such traffic that the rates were fitted on. NVIDIA's profile of Qwen3 30B on 16 H100,
# with and without overlap of its AllToAlls, says 0.55 for theirs: of 8.25 s in 24.7, 3.7 s are saved
# (Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap).
COPYING_SLOWS = 0.45


# An estimate makes and reads these classes often, so they are frozen for the type checker alone: at run time
# a frozen dataclass takes Python three times as long to make, and a NamedTuple twice as long to make and to
# read.
@dataclass(frozen=TYPE_CHECKING, slots=True)
class Axes:
    """A job's sizes and a layout, as floats; ``plan`` is a pipeline schedule's coefficients."""

    seq: Real
    global_batch: Real
    tp: Real
    pp: Real
    cp: Real
    dp: Real
    ep: Real
    expert_tp: Real
    zero: Real
    shard: Real  # GPUs that share one copy under ZeRO (HSDP); 0.0 for all
    micro_batch: Real
    recompute: Real
    plan: Any  # one of pipeline.SCHEDULES, or the columns of several (search.Schedules)
    chunks: Real
    modules: tuple[str, ...] = ()  # of memory.MODULES, where recompute is BY_MODULE
    recompute_layers: Real = 0.0  # of each stage, where recompute is FULL; 0.0 for all
    first_layers: float = 0.0  # layers of the first and last stage; 0.0 for what stage_layers says
    last_layers: float = 0.0
    offload: Offload | None = None  # what the host's memory holds


class Terms(NamedTuple):
    """Seconds of a step, which add up to ``step_s``, and bytes of the fullest stage."""

    step_s: Real
    compute_s: Real
    tensor_s: Real
    pipeline_bubble_s: Real
    context_s: Real
    expert_s: Real
    data_exposed_s: Real
    optimizer_s: Real
    other_s: Real  # messages between pipeline stages, and the gradients of a tied embedding
    total_bytes: Real


@dataclass(frozen=TYPE_CHECKING, slots=True)
class MicroBatch:
    """Seconds of one micro-batch on one GPU: the arithmetic of an average layer, its traffic in each
    direction, and the head behind the last layer. Recomputation is not counted yet, and nothing is subtracted
    that the schedule hides."""

    forward_s: Real
    backward_s: Real
    weight_gradient_s: Real
    attention_forward_s: Real
    tensor_s: Real
    context_forward_s: Real
    context_backward_s: Real
    expert_s: Real
    head_forward_s: Real
    head_backward_s: Real


@dataclass(frozen=TYPE_CHECKING, slots=True)
class LayerSeconds:
    """Seconds of an average layer for one micro-batch, forward and backward (which includes
    recomputation)."""

    forward_s: Real
    backward_s: Real
    weight_gradient_s: Real
    compute_s: Real  # forward and backward: arithmetic, memory, and waiting for the host
    tensor_s: Real  # … and what the traffic of each axis adds
    context_s: Real
    expert_s: Real


class StageBytes(NamedTuple):
    """Bytes of one pipeline stage on one of its GPUs."""

    weights: Real
    gradients: Real
    optimizer: Real
    activations: Real


@dataclass(frozen=TYPE_CHECKING, slots=True)
class LayersWork:
    """Seconds that a step takes without the traffic of ZeRO, the optimizer and the messages between stages: a
    lower bound for all layouts that differ in their ZeRO stage alone."""

    total_s: Real
    compute_s: Real
    tensor_s: Real
    pipeline_bubble_s: Real
    context_s: Real
    expert_s: Real
    layer: LayerSeconds
    before_last: Real  # layers of the fullest stage before the last


def micro_batch(shape: Shape, job: Job, at: Chip, net: Wires, a: Axes, tokens: Real) -> MicroBatch:
    """The seconds of one micro-batch in an average layer and in the head. They depend only on the sizes and
    on the axes within a stage (tp, cp, ep, expert_tp), so many layouts share them."""
    by = job.software
    whole_ranks = a.tp if by.sequence_parallel else 1.0
    at = working(at, job)
    forward_s, backward_s, weight_gradient_s, attention_s, _ = _layer(
        shape,
        tokens,
        a.seq,
        a.tp,
        whole_ranks,
        a.ep,
        a.expert_tp,
        job.imbalance,
        by.flash,
        by.gradients == "fused",
        at,
        by.kernels,
        by.experts,
        by.dispatch == "choice",
    )
    attention = (attention_s,) * len(shape.attended)
    if by.flash and len(attention) > 1 and not ops.is_zero(a.cp - 1.0):
        attention = compute.attention_by_kind(shape, tokens, a.seq, a.tp, at, by.kernels)
    frozen = ()
    if job.adapter:
        frozen = (True,)
        forward_s, backward_s, weight_gradient_s = adapted_s(
            shape, job.adapter, at, a, tokens, job.imbalance, forward_s, backward_s - weight_gradient_s
        )
    head_f, head_b = _head(shape, tokens, a.tp, whole_ranks, at, by.loss, by.loss_chunks, *frozen)
    if job.pictures:  # the tower comes before the layers, and with one stage nothing but the sum matters
        seen = seeing.tower_s(shape, job.pictures, tokens * a.cp / a.seq, at)
        head_f, head_b = head_f + seen.forward_s, head_b + seen.backward_s
    if job.mtp:
        joined_f, joined_b = compute.joined(shape, tokens, a.tp, at)
        head_f, head_b = head_f + job.mtp * (head_f + joined_f), head_b + job.mtp * (head_b + joined_b)
    return MicroBatch(
        forward_s,
        backward_s,
        weight_gradient_s,
        attention_s,
        tensor_exposed_s(shape, job, net, a, tokens, forward_s - attention_s)
        + joined_s(shape, job, at, a, tokens),
        *context_exposed_s(shape, job, net, a, tokens, attention),
        expert_traffic_s(shape, job, at, net, a, tokens),
        head_f,
        head_b,
    )


def adapted_s(
    shape: Shape,
    adapter: Adapter,
    at: Chip,
    a: Axes,
    tokens: Real,
    imbalance: Real,
    forward_s: Real,
    input_gradient_s: Real,
) -> tuple[Real, Real, Real]:
    """A layer with an adapter: forward, backward, and the part of it for weight gradients, which are the
    adapter's alone. The frozen matrices have a forward pass and the gradient of their input."""
    own = adapters.layer_s(shape, adapter, tokens, a.tp, a.ep, a.expert_tp, imbalance, at)
    return forward_s + own.forward_s, input_gradient_s + own.backward_s, own.weight_gradient_s


def working(at: Chip, job: Job) -> Chip:
    """The chip, with the rates of the kernels that the job uses: of attention, and of casts."""
    narrow, by_blocks = job.software.attention == "fused-8bit", job.software.scales == "blocks"
    if not narrow and not by_blocks:
        return at
    return replace(
        at,
        attention=at.narrow_attention if narrow else at.attention,
        quantise=replace(at.quantise, moved_bytes=CAST_BYTES) if by_blocks else at.quantise,
    )


def layer_time(shape: Shape, job: Job, at: Chip, a: Axes, tokens: Real, own: MicroBatch) -> LayerSeconds:
    """One layer: its arithmetic, the traffic that this arithmetic waits for, and what the GPU waits for the
    CPU that launches the kernels, or for copies to the host, where these take longer than the arithmetic.

    The AllToAlls of experts overlap the arithmetic of another micro-batch under DualPipe (arXiv:2412.19437
    section 3.2.1), or under any schedule with several micro-batches if the software does so
    (``overlaps`` has "experts"), but for what COPYING_SLOWS takes.
    """
    by = job.software
    tensor_s, context_f, context_b = own.tensor_s, own.context_forward_s, own.context_backward_s
    expert_s = 0.0
    if shape.routed:
        hides = 1.0 if "experts" in by.overlaps else a.plan.hides_experts
        hidden_s = hides * ops.minimum(own.expert_s, own.forward_s)
        expert_s = own.expert_s - (1.0 - COPYING_SLOWS) * hidden_s
    again = ops.where(a.recompute == memory.FULL, 1.0, 0.0)
    if a.recompute_layers:
        again = again * recomputed_share(a, pipeline.stage_layers(shape.depth, a.pp, a.chunks).full)
    again_s = again * own.forward_s
    if not by.flash:  # fused attention keeps nothing that selective recomputation could drop
        again_s = ops.where(a.recompute == memory.SELECTIVE, own.attention_forward_s, again_s)
    again_tensor = again_expert = again
    if a.modules:
        at = working(at, job)
        parts = compute.again(
            shape,
            tokens,
            a.seq,
            a.tp,
            a.tp if by.sequence_parallel else 1.0,
            a.ep,
            a.expert_tp,
            job.imbalance,
            by.flash,
            a.modules,
            at,
            by.kernels,
            by.experts,
        )
        by_module = ops.where(a.recompute == memory.BY_MODULE, 1.0, 0.0)
        again_s = again_s + by_module * parts.again_s
        again_tensor = again + by_module * parts.tensor
        again_expert = again + by_module * parts.expert
    forward_s = own.forward_s + tensor_s + context_f + expert_s
    traffic_again = again_tensor * tensor_s + again * context_f + again_expert * expert_s
    backward_s = own.backward_s + again_s + tensor_s + context_b + expert_s + traffic_again
    waits_f, waits_b = 0.0, 0.0
    if by.launches != "graphed":
        waits_f, waits_b = launched_s(shape, job, at, a.ep, forward_s, backward_s, again, again_expert)
    if a.offload:
        whole_ranks = a.tp if by.sequence_parallel else 1.0
        copies_s = a.offload.layer_s(kept_bytes(shape, job, a, tokens, whole_ranks, a.recompute))
        waits_f = ops.maximum(waits_f, copies_s - forward_s)
        waits_b = ops.maximum(waits_b, copies_s - backward_s)
    return LayerSeconds(
        forward_s + waits_f,
        backward_s + waits_b,
        own.weight_gradient_s,
        own.forward_s + own.backward_s + again_s + waits_f + waits_b,
        (2.0 + again_tensor) * tensor_s,
        context_f + context_b + again * context_f,
        (2.0 + again_expert) * expert_s,
    )


def launched_s(
    shape: Shape,
    job: Job,
    at: Chip,
    ep: Real,
    forward_s: Real,
    backward_s: Real,
    again: Real,
    again_expert: Real,
) -> tuple[Real, Real]:
    """Seconds that the GPU waits for the CPU to launch a layer's kernels, forward and backward.

    The CPU launches ahead while the GPU works, so only the longer of the two counts. Experts are different:
    once in each forward pass Python reads how many rows each expert gets, and for that it waits until the GPU
    has counted them. By then the GPU has nothing left to do, so the time in which the CPU launches the
    experts comes on top. Experts with a capacity ("one-by-one") always have the same number of rows, and
    nothing is read. ``again`` and ``again_expert`` say which shares of the layer and of its experts are
    recomputed. Where each launch blocks, all launches come on top.
    """
    by = job.software
    dense_s, experts_s = compute.issued_s(shape, ep, at)
    if job.adapter:
        dense_s = dense_s + adapters.kernels(shape, job.adapter) * at.issue_s
    if by.launches == "blocking":
        both_s = dense_s + experts_s
        return both_s, (2.0 + again) * both_s
    counted_s = 0.0 if by.experts == "one-by-one" else experts_s
    launches_f = dense_s + experts_s - counted_s
    launches_b = (2.0 + again) * launches_f + 2.0 * counted_s
    return (
        counted_s + ops.maximum(0.0, launches_f - forward_s),
        again_expert * counted_s + ops.maximum(0.0, launches_b - backward_s),
    )


def recomputed_share(a: Axes, layers: Real) -> Real:
    """The recomputed share of a stage's layers, where only some layers are recomputed."""
    return ops.minimum(a.recompute_layers, layers) / ops.maximum(1.0, layers)


def tensor_exposed_s(shape: Shape, job: Job, net: Wires, a: Axes, tokens: Real, products_s: Real) -> Real:
    """Tensor parallelism in one layer and direction: an AllReduce after attention and one after the MLP, or
    with sequence parallelism an AllGather and a ReduceScatter for each (arXiv:2205.05198 section 4.2.2).

    Nothing hides them, unless the software cuts each product into as many pieces as there are ranks and sends
    one while it works on the next (``overlaps`` has "tensor"). Then the first piece is exposed, and part
    of the others, because copying takes multiprocessors and memory bandwidth from computing. A layer with
    experts has only the one for attention; its tokens reach the experts by AllToAll.
    """
    by = job.software
    message_bytes = tokens * shape.hidden * 2.0
    per_node = ranks_per_node(a.tp, 1.0, net.gpus_per_node)
    if by.sequence_parallel:
        pair_s = 2.0 * _gather_s(message_bytes, a.tp, per_node, net)
    else:
        pair_s = all_reduce_s(message_bytes, a.tp, per_node, net)
    all_s = shape.all_reduces * (1.0 - 0.5 * shape.moe_share) * pair_s
    if "tensor" not in by.overlaps:
        return all_s
    behind_s = all_s * (1.0 - 1.0 / a.tp)
    hidden_s = ops.minimum(behind_s, products_s) * (1.0 - COPYING_SLOWS)
    return all_s - hidden_s


def joined_s(shape: Shape, job: Job, at: Chip, a: Axes, tokens: Real) -> Real:
    """Seconds for copies in PyTorch's own tensor parallelism, in one layer and direction. It gathers and
    scatters along the sequence, which is not the first dimension, so before each scatter and after each
    gather it copies the whole tensor into another order. Counts the same where the products overlap with it,
    although these join smaller pieces at a time.

    ``torch.cat(torch.chunk(…))`` in torch/distributed/_functional_collectives.py.
    """
    by = job.software
    if not (by.fsdp and by.sequence_parallel):
        return 0.0
    pairs = shape.all_reduces * (1.0 - 0.5 * shape.moe_share)
    moved = 2.0 * JOINED_BYTES * pairs * tokens * shape.hidden
    return ops.where(a.tp > 1.0, moved / at.memory_bytes_per_s, 0.0)


def context_exposed_s(
    shape: Shape, job: Job, net: Wires, a: Axes, tokens: Real, attention: tuple[Real, ...]
) -> tuple[Real, Real]:
    """Exposed seconds of context parallelism in an average layer, forward and backward; backward passes the
    gradients around too. ``attention`` is the arithmetic that hides the traffic: the forward time in a layer
    of each of ``shape.attended``.

    Layers without a window pass all keys and values around; layers with a window send only as many of them to
    their neighbours as the window holds. With AllGather every layer gets all keys and values.
    """
    if ops.is_zero(a.cp - 1.0):
        return 0.0, 0.0
    if job.software.context == "gather":
        forward_s = sequence.gather_s(tokens * (shape.kv_width * 2.0 / a.tp), a.cp, a.tp, net)
        return forward_s, 2.0 * forward_s

    def exposed_s(copies, slower):
        found = 0.0
        for kind, kind_s in zip(shape.attended, attention):
            token_bytes = kind.kv_width * 2.0 / a.tp
            kv_bytes = copies * (tokens * token_bytes)
            if kind.windowed:
                near = copies * (a.micro_batch * kind.window * token_bytes)
                sent_s = sequence.window_s(near, kv_bytes, a.cp, a.tp, slower * kind_s, net)
            else:
                sent_s = sequence.ring_s(kv_bytes, a.cp, a.tp, slower * kind_s, net)
            found = found + kind.share * sent_s
        return found

    return exposed_s(1.0, 1.0), exposed_s(2.0, compute.BACKWARD_OF_FLASH)


def expert_traffic_s(shape: Shape, job: Job, at: Chip, net: Wires, a: Axes, tokens: Real) -> Real:
    """Two AllToAlls (dispatch and combine) per layer with experts and direction. Tokens for experts that are
    split over expert_tp are gathered there, and their results scattered. If the software supports it, a token
    crosses to each node only once; it is dispatched in 8 bits if the products are in 8 bits."""
    found = 0.0
    for part in shape.routed:
        found = found + part.share * _exchanged_s(shape, part, job, at, net, a, tokens)
    return found


def _exchanged_s(shape: Shape, part: Routed, job: Job, at: Chip, net: Wires, a: Axes, tokens: Real) -> Real:
    """Of one layer with these experts."""
    rows = job.imbalance * tokens / a.tp
    per_node = ranks_per_node(a.ep, a.expert_tp, net.gpus_per_node)
    nodes = ops.ceil(a.ep / per_node)
    limit = experts.nodes_allowed(nodes, part.groups, part.top_groups)
    sent = experts.copies(part.top_k, part.experts, a.ep, per_node, limit, job.software.dispatch == "node")
    narrow = ops.where(at.operand_bytes < experts.TOKEN_BYTES, experts.FP8_BYTES, experts.TOKEN_BYTES)
    group = (sent, a.ep, per_node, net)
    arrived_bytes = rows * part.top_k * part.hidden * experts.TOKEN_BYTES
    return (
        experts.exchange_s(rows, part.hidden, narrow, *group)
        + experts.exchange_s(rows, part.hidden, experts.TOKEN_BYTES, *group)
        + 2.0 * experts.gather_s(arrived_bytes, a.expert_tp, net)
    )


def data_exposed_s(
    shape: Shape,
    job: Job,
    recipe: Recipe,
    net: Wires,
    a: Axes,
    layers: Real,
    dense: Real,
    routed: Real,
    layer: LayerSeconds,
    micro_batches: Real,
    frozen: tuple[Real, Real] | None = None,
) -> Real:
    """Data parallelism: gradients and sharded state, for the dense parameters and the experts of a stage with
    this many layers, without what FSDP copies. ``frozen`` are the bytes of both that are never sent, unless
    ZeRO-3 gathers them for a layer, in the format in which they are stored.

    Gradients are sent during the last backward pass. A stage with v chunks has all but one of them ready
    while the others still work through p micro-batches, which leaves 1 + (p−1)(v−1)/v backward passes to hide
    behind (all m where there are fewer). Leaves out that a stage before a slower last one also waits for it,
    so in reality a little more is hidden.
    """
    by = job.software
    hides = "data" in by.overlaps
    shard, expert_shard = shards(a)
    groups = [(dense, shard, a.tp, 1.0)]
    if shape.routed:
        groups.append((routed, expert_shard, a.ep * a.expert_tp, shape.has_experts))
    each_layer = groups  # gathered for each layer by ZeRO-3
    if frozen:
        held = zip(groups, frozen)
        each_layer = [(g[0] + stored / sharding.weight_bytes(recipe), *g[1:]) for g, stored in held]
    forward_s, backward_s = layers * layer.forward_s, layers * layer.backward_s
    parts = net if by.zero_nics == 1.0 else scaled(net, nic=by.zero_nics)
    free = ops.minimum(micro_batches, 1.0 + (a.pp - 1.0) * (a.chunks - 1.0) / a.chunks)
    # stages of ZeRO send alike, and weights take as long to gather as gradients of as many bytes to scatter
    known: dict[tuple, Real] = {}
    alike = not frozen and ops.is_zero(sharding.weight_bytes(recipe) - sharding.gradient_bytes(recipe))
    gather_s = sharding.scatter_s if alike else sharding.gather_s

    def sent(cost_s, by_layer=False):
        found = known.get((cost_s, by_layer))
        if found is None:
            pieces, over = layers if by_layer else 1.0, net if cost_s is sharding.reduce_s else parts
            found = 0.0
            for params, ranks, stride, there in each_layer if by_layer and cost_s is gather_s else groups:
                found = found + there * cost_s(params, ranks, stride, recipe, pieces, over)
            known[cost_s, by_layer] = found
        return found

    def exposed(zero):
        sharded, replicas = zero >= 1.0, 0.0
        for params, ranks, stride, _ in groups if a.shard else ():
            left, copies = params / ops.where(sharded, ranks, 1.0), a.dp * a.cp / shard
            replicas = replicas + sharding.across_replicas_s(left, copies, stride * ranks, recipe, net)

        def once():
            scatter = ops.choose(
                sharded & (by.zero_sums == "shards"),
                lambda: sent(sharding.scatter_s),
                lambda: sent(sharding.reduce_s),
            )
            gather = 0.0 if sharded is False else sent(gather_s)
            return sharding.exposed_once_s(
                zero, scatter, gather, replicas, free * forward_s, free * backward_s, layers, hides
            )

        def scattering():
            scatter, gather = sent(sharding.scatter_s, by_layer=True), sent(gather_s)
            return sharding.exposed_scattering_s(
                micro_batches, scatter, gather, replicas, free * forward_s, backward_s, layers, hides
            )

        def each_time():
            scatter, gather = sent(sharding.scatter_s, by_layer=True), sent(gather_s, by_layer=True)
            again = ops.where(a.recompute == memory.FULL, 1.0, 0.0) if by.gathers_again else 0.0
            return sharding.exposed_each_time_s(
                micro_batches, scatter, gather, replicas, forward_s, backward_s, layers, hides, again
            )

        return ops.choose(zero >= 3.0, each_time, lambda: ops.choose(zero >= 2.0, scattering, once))

    return ops.for_each(a.zero, exposed, (layers, micro_batches, free, forward_s, backward_s), *groups)


class Stage(NamedTuple):
    """One pipeline stage on one of its GPUs, whatever the ZeRO stage. Under an adapter the parameters are
    the adapter's."""

    whole: Real  # parameters that the GPU has without ZeRO
    sharded: Real  # parameters that it has if ZeRO shares out all of them
    kept_bytes: Real  # activations of its layers
    sent_bytes: Real  # outputs that are kept although they have been sent
    logits_bytes: Real
    frozen_bytes: Real = 0.0  # weights that are not trained, without ZeRO …
    frozen_sharded_bytes: Real = 0.0  # … and if stage 3 shares them out


@dataclass(frozen=TYPE_CHECKING, slots=True)
class Stages:
    """The first, second and last stage, one of which is the fullest, and the layer that is being
    recomputed."""

    first: Stage
    second: Stage
    last: Stage
    working_bytes: Real  # activations of that layer …
    gathered_bytes: Real  # … and its weights, if they are sharded and have to be gathered
    # of an optimizer of whole matrices, master copy and moments of each stage: if every data rank keeps all,
    # and if the ranks share them
    of_matrices: tuple[tuple[Real, Real], ...] = ()
    frees: bool = False  # gradients come into being backward, and the moments of a step are told apart
    apart_bytes: Real = 0.0  # of streams that communicate, where weights are sharded
    ends: Any = None  # of Ends, where they are
    micro_batches: Real = 1.0

    def held(
        self, recipe: Recipe, plan: Any, zero: Real, offload: Offload | None = None
    ) -> list[tuple[Real, Real, Real, Real]]:
        """Bytes of the three stages under a ZeRO stage, in the order of StageBytes. If the optimizer is on
        the host, weights and gradients still stay here, unless they are moved, too.

        Where gradients are freed after a step, the fullest of its moments counts: the loss, with its logits
        and the gathered output layer; the first layer of the backward pass, with what it rebuilds and
        gathers; its end, when all gradients are there and no activations. With a single micro-batch there are
        no gradients before. Gradients are listed whole, and activations as what comes on top of them. What
        other streams than the default one take counts at any moment, gradients that are summed over ranks
        included: PyTorch's allocator has a pool for each stream, and gives none of it to another.
        """
        weight_bytes = recipe.weight_bytes * plan.weight_copies
        on_host = offload and offload.gradients
        gradient_bytes = 0.0 if on_host else recipe.gradient_bytes * plan.weight_copies
        optimizer_bytes = 0.0 if offload and offload.optimizer else recipe.optimizer_bytes
        weights, gradients, optimizer = zero >= 3.0, zero >= 2.0, zero >= 1.0  # what is sharded
        gathered = ops.where(weights, self.gathered_bytes, 0.0)
        at_loss, apart = 0.0, 0.0
        if self.ends:
            gathered = gathered + ops.where(weights, self.ends.at_layers, 0.0)
            at_loss = ops.where(weights, self.ends.at_loss, 0.0)
            apart = ops.where(weights, self.apart_bytes, 0.0)
        found = []
        for one in (self.first, self.second, self.last):
            whole, sharded, kept_bytes, sent_bytes, logits_bytes, frozen, frozen_sharded = one
            held_weights = ops.where(weights, sharded, whole) * weight_bytes
            if not ops.is_zero(frozen):
                held_weights = held_weights + ops.where(weights, frozen_sharded, frozen) * plan.weight_copies
            if offload and offload.parameters:  # the host has what is sharded
                held_weights = ops.where(weights, 0.0, held_weights)
            held_gradients = ops.where(gradients, sharded, whole) * gradient_bytes
            activations = kept_bytes + (self.working_bytes + gathered + sent_bytes + logits_bytes)
            if self.ends:
                lost = ops.where(logits_bytes > 0.0, logits_bytes + at_loss, 0.0)
                stays = kept_bytes + sent_bytes + apart
                layer = self.working_bytes + gathered
                activations = stays + self.working_bytes + ops.maximum(lost, gathered)
                if self.frees:
                    activations = stays + ops.maximum(lost, layer)
                    once = ops.maximum(activations - held_gradients, layer)
                    activations = ops.where(optimizer | (self.micro_batches > 1.0), activations, once)
            held = (
                held_weights,
                held_gradients,
                ops.where(optimizer, sharded, whole) * optimizer_bytes,
                activations,
            )
            found.append(held)
        if self.of_matrices:
            return [
                (*held[:2], ops.where(optimizer, shared, kept), held[3])
                for held, (kept, shared) in zip(found, self.of_matrices)
            ]
        return found


def sizes(shape: Shape, a: Axes) -> tuple[Real, Real, pipeline.StageLayers]:
    """Tokens of a micro-batch on a GPU, micro-batches per step, and the layers of the stages."""
    stage = _stage_layers(shape.depth, a.pp, a.chunks, a.first_layers, a.last_layers)
    if not ops.is_zero(a.plan.folded):
        in_a_v = pipeline.folded_layers(stage)
        stage = pipeline.StageLayers(
            *(ops.where(a.plan.folded > 0.0, turned, straight) for turned, straight in zip(in_a_v, stage))
        )
    return a.micro_batch * a.seq / a.cp, a.global_batch / (a.dp * a.micro_batch), stage


def stages_bytes(
    shape: Shape,
    job: Job,
    recipe: Recipe,
    a: Axes,
    tokens: Real,
    micro_batches: Real,
    stage: pipeline.StageLayers,
) -> list[StageBytes]:
    """Bytes of the first, second and last stage, one of which is the fullest."""
    found = stages(shape, job, recipe, a, tokens, micro_batches, stage)
    return [StageBytes(*held) for held in found.held(recipe, a.plan, a.zero, a.offload)]


def stages(
    shape: Shape,
    job: Job,
    recipe: Recipe,
    a: Axes,
    tokens: Real,
    micro_batches: Real,
    stage: pipeline.StageLayers,
) -> Stages:
    """The first stage holds the embedding and the most micro-batches, the second may have a layer more, the
    last holds the output layer and its logits. Under DualPipe both ends hold both, since micro-batches enter
    at either end; in a V one stage holds both ends, and counts as the last (``pipeline.folded_layers``).
    Software that does not free a stage's output once it is sent also keeps it for each micro-batch
    (arXiv:2205.05198 appendix B).
    """
    by = job.software
    whole_ranks = a.tp if by.sequence_parallel else 1.0
    kept = kept_bytes(shape, job, a, tokens, whole_ranks, a.recompute)
    full = a.recompute == memory.FULL
    everything = 0.0
    if full is not False:
        everything = ops.where(full, kept_bytes(shape, job, a, tokens, whole_ranks, 0.0), 0.0)
    working = everything  # the one layer being rebuilt
    if a.modules:
        by_module = a.recompute == memory.BY_MODULE
        working = ops.where(by_module, kept_bytes(shape, job, a, tokens, whole_ranks, 0.0) - kept, working)
    if by.written_out:
        working = working + passing_bytes(shape, job, a, tokens)
    expert_ranks = a.ep * a.expert_tp
    if job.adapter:
        working = working + adapters.unpacked_bytes(shape, job.adapter, a.tp)
    own = by.kernels != "library"
    how = by.loss, by.loss_chunks, own, by.kernels == "compiled"
    logits = memory.loss_bytes(shape, a.seq, a.micro_batch, a.tp, a.cp, *how)
    if by.loss_share != 1.0:
        logits = by.loss_share * logits
    first_params, last_params, joining = shape.embedding_params, shape.last_stage_params, 0.0
    alone = a.pp == 1.0
    if job.mtp:  # these modules are on the last stage, whose output layer and embedding they share
        logits = (1.0 + job.mtp) * logits
        stage = stage._replace(first=stage.first + ops.where(alone, job.mtp, 0.0), last=stage.last + job.mtp)
        joining = 2.0 * job.mtp * shape.hidden * shape.hidden
        last_params = shape.head_params + shape.embedding_params + joining
    sent = 0.0 if by.gradients == "fused" else ops.where(alone, 0.0, 2.0 * tokens * shape.hidden)
    if not ops.is_zero(a.plan.folded):
        both = shape.embedding_params + shape.head_params + joining
        first_params = ops.where(a.plan.folded > 0.0, 0.0, first_params)
        last_params = ops.where(a.plan.folded > 0.0, both, last_params)
    first, last, first_logits = stage.first, stage.last, ops.where(alone, logits, 0.0)
    if not ops.is_zero(a.plan.weight_copies - 1.0):
        both_ways = a.plan.weight_copies > 1.0
        layers, params = (first + last) / 2.0, (shape.embedding_params + last_params) / 2.0
        first, last = ops.where(both_ways, layers, first), ops.where(both_ways, layers, last)
        first_params = ops.where(both_ways, params, first_params)
        last_params = ops.where(both_ways, params, last_params)
        first_logits = ops.where(both_ways, logits, first_logits)
    seen_bytes = 0.0
    if job.pictures:
        first_logits = first_logits + seeing.kept_bytes(shape, job.pictures, a.micro_batch)
        joining = joining + (seeing.params(shape) if job.pictures.trained else 0.0)
        seen_bytes = 0.0 if job.pictures.trained else 2.0 * seeing.params(shape)
    first_params = ops.where(alone, shape.embedding_params + shape.head_params + joining, first_params)
    group = pipeline.first_group(a.pp, micro_batches)
    shard, expert_shard = shards(a)
    found, of_matrices = [], ()
    for place, layers, params, sent_bytes, logits_bytes, missing in (
        (0.0, first, first_params, sent, first_logits, stage.full - stage.first),
        (ops.minimum(1.0, a.pp - 1.0), ops.where(a.pp > 2.0, stage.full, 0.0), 0.0, sent, 0.0, 0.0),
        (a.pp - 1.0, ops.where(alone, 0.0, last), last_params, 0.0, logits, stage.full - stage.last),
    ):
        flight = pipeline.in_flight(a.pp, micro_batches, a.chunks, a.plan, place, group)
        held = layers * flight
        if not ops.is_zero(missing):
            held = pipeline.held_layers(layers, missing, flight, a.pp, micro_batches, a.chunks, a.plan, place)
        of_layer = kept
        if a.recompute_layers:
            of_layer = ops.where(full, everything - recomputed_share(a, layers) * (everything - kept), kept)
        dense = (layers * shape.dense_params_per_layer + params) / a.tp
        routed = layers * shape.routed_params_per_layer / expert_ranks
        frozen = ()
        if job.adapter:
            mine = adapted(shape, job.adapter, a, layers, params)
            dense, routed = mine.dense, mine.routed
            frozen = mine.frozen_bytes, mine.frozen_dense / shard + mine.frozen_routed / expert_shard
        if job.pictures:
            whole, cut = frozen or (0.0, 0.0)
            frozen = whole + seen_bytes, cut + seen_bytes / shard
        if recipe.matrices is not None:
            cut = optimizers.Cut(layers, a.tp, a.expert_tp, a.ep, shard, expert_shard)
            how = by.joins_gate, by.matrices == "parts"
            of_matrices = (*of_matrices, optimizers.held_bytes(shape, recipe, dense + routed, cut, *how))
        found.append(
            Stage(
                dense + routed,
                dense / shard + routed / expert_shard,
                a.offload.on_gpu(of_layer, layers, flight) if a.offload else of_layer * held,
                flight * sent_bytes,
                logits_bytes,
                *frozen,
            )
        )
    of_a_layer, apart, ends = gathered(shape, job, recipe, a)
    return Stages(
        found[0],
        found[1],
        found[2],
        working,
        of_a_layer,
        of_matrices,
        by.frees_gradients,
        apart,
        ends,
        micro_batches,
    )


def passing_bytes(shape: Shape, job: Job, a: Axes, tokens: Real) -> Real:
    """Gradients in an average layer's backward pass (``memory.passing_per_token``)."""
    found = 0.0
    for block, share in enumerate(shape.block_shares):
        found = found + share * memory.passing_per_token(shape, block, a.seq, job.software.flash)
    return found * tokens / a.tp


class Ends(NamedTuple):
    """Bytes of embedding and output layer that are gathered if they are sharded: while the loss is computed,
    and while layers are."""

    at_loss: Real
    at_layers: Real


class GatheredWeights(NamedTuple):
    """Bytes that are on a GPU while a layer is computed whose weights ZeRO 3 shards."""

    layer: Real  # where it is computed: its weights, and its gradients
    apart: Real  # in streams that communicate, whose memory PyTorch's allocator keeps apart
    ends: Ends | None


def gathered(shape: Shape, job: Job, recipe: Recipe, a: Axes) -> GatheredWeights:
    """What is gathered and summed, by the software.

    FSDP with a weight each gathers a layer into a buffer and copies it from there, and gathers the next one
    meanwhile; it copies gradients to sum them, in fp32 where it sums so, and frees the copy of the layer
    before once its sum is there (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py). With flat units
    nothing is copied. DeepSpeed keeps LIVE_PARAMS, or the layer if that has more. Other software counts two
    layers. The output layer is gathered for the loss; with ``gathers_ends`` it stays, with the embedding and
    its gradients, until the backward pass ends. DeepSpeed has its gradient whole by then, which is
    scattered once the next one is there (deepspeed/runtime/zero/stage3.py, ``reduce_ready_partitions``).
    """
    by, alone = job.software, a.pp == 1.0
    trained = shape.dense_params_per_layer / a.tp + shape.routed_params_per_layer / (a.ep * a.expert_tp)
    weight_bytes = end_bytes = sharding.weight_bytes(recipe)
    two_layers = 2.0 * recipe.weight_bytes * trained
    if job.adapter:
        mine = adapted(shape, job.adapter, a, 1.0, 0.0)
        two_layers = 2.0 * (recipe.weight_bytes * mine.params + mine.frozen_bytes)
        end_bytes, trained = job.adapter.rest_bytes, mine.params
    if not by.fsdp and not by.frees_gradients:
        return GatheredWeights(two_layers, 0.0, None)
    gradients = weight_bytes * trained
    if by.fsdp == "each":
        summed = 4.0 * trained if by.reduces_wide else gradients
        layer, apart = two_layers / 2.0 + gradients, two_layers + summed
    elif by.fsdp:
        layer, apart = gradients, two_layers
    else:
        live = ops.minimum(LIVE_PARAMS, shape.total_params / (a.tp * a.pp))
        layer, apart = gradients, ops.maximum(two_layers / 2.0, live * end_bytes)
    head = shape.last_stage_params / a.tp
    if not by.gathers_ends:
        whole = 0.0 if by.fsdp or job.adapter else weight_bytes * head
        return GatheredWeights(layer, apart, Ends(end_bytes * head + whole, 0.0))
    both = ops.where(alone, shape.embedding_params + shape.head_params, shape.last_stage_params) / a.tp
    sums = 0.0 if job.adapter else weight_bytes * head
    return GatheredWeights(layer, apart, Ends(end_bytes * both, end_bytes * both + sums))


class Adapted(NamedTuple):
    """The layers and the ends of a stage on one GPU, without ZeRO: parameters that an adapter trains, and
    bytes of what is frozen."""

    dense: Real
    routed: Real
    frozen_dense: Real
    frozen_routed: Real

    @property
    def params(self) -> Real:
        """All that is trained."""
        return self.dense + self.routed

    @property
    def frozen_bytes(self) -> Real:
        """All that is not."""
        return self.frozen_dense + self.frozen_routed


def adapted(shape: Shape, adapter: Adapter, a: Axes, layers: Real, ends: Real) -> Adapted:
    """So many layers with an adapter; ``ends`` are parameters of embedding and output layer, which have
    none."""
    dense, routed = adapters.layer_parameters(shape, adapter, a.tp, a.ep, a.expert_tp)
    frozen_dense, frozen_routed = adapters.frozen_layer_bytes(shape, adapter)
    return Adapted(
        layers * dense,
        layers * routed,
        (layers * frozen_dense + ends * adapter.rest_bytes) / a.tp,
        layers * frozen_routed / (a.ep * a.expert_tp),
    )


def overhead_bytes(job: Job, zero: Real) -> Real:
    """The software's own memory in addition to the model's, under this ZeRO stage."""
    if not job.software.flat_buffers:
        return memory.FRAMEWORK_BYTES
    return memory.FRAMEWORK_BYTES + ops.where(zero >= 1.0, FLAT_BUFFERS_BYTES, 0.0)


def shards(a: Axes) -> tuple[Real, Real]:
    """How many GPUs share one copy of the state under ZeRO: of the dense parameters, and of an expert's
    parameters. There are as many copies of an expert as of the dense parameters."""
    ranks = a.dp * a.cp
    shard = ops.minimum(a.shard, ranks) if a.shard else ranks
    return shard, a.tp * shard / (a.ep * a.expert_tp)


def kept_bytes(shape: Shape, job: Job, a: Axes, tokens: Real, whole_ranks: Real, recompute: Real) -> Real:
    """Activations that an average layer keeps for one micro-batch."""
    by = job.software
    kept = 0.0
    for block, share in enumerate(shape.block_shares):
        stored = memory.kept_per_token(
            shape,
            a.seq,
            a.tp,
            whole_ranks,
            recompute,
            by.flash,
            block,
            by.saves_fp8,
            by.weighs_early,
            job.adapter,
            by.written_out,
        )
        kept = kept + share * stored
        if a.modules:
            dropped = memory.dropped_per_token(
                shape,
                a.seq,
                a.tp,
                whole_ranks,
                by.flash,
                block,
                a.modules,
                by.saves_fp8,
                by.weighs_early,
                job.adapter,
                by.written_out,
            )
            kept = kept - ops.where(recompute == memory.BY_MODULE, share * dropped, 0.0)
    return (kept + gathered_per_token(shape, job, a, recompute)) * tokens


def gathered_per_token(shape: Shape, job: Job, a: Axes, recompute: Real) -> Real:
    """Bytes per token that PyTorch's tensor parallelism keeps beyond each rank's own tokens: it keeps the
    gathered inputs of both blocks for the gradients of the weights.

    Megatron-LM gathers these inputs again instead, and async tensor parallelism, which gathers piece by piece
    within the product, keeps none of them. With the latter torchtitan's 70B on 256 H100s needs 4.3 GiB less
    (benchmarks/llama3_h100_202412_torchtitan.md, table 4); this formula says 3.5."""
    by = job.software
    if by.kernels == "library" or "tensor" in by.overlaps or not by.sequence_parallel:
        return 0.0
    kept = ops.where((recompute == memory.FULL) | (recompute == memory.BY_MODULE), 0.0, 1.0)
    if job.adapter:  # a gathered input is read again for the gradient of A alone
        kept = kept * job.adapter.gathered_blocks / 2.0
    return kept * shape.all_reduces * 2.0 * shape.hidden * (1.0 - 1.0 / a.tp)


def step(
    shape: Shape, job: Job, recipe: Recipe, at: Chip, net: Wires, a: Axes, own: MicroBatch | None = None
) -> Terms:
    """Seconds and bytes of one step; ``own`` is its ``micro_batch``, if that is known."""
    sized = sizes(shape, a)
    own = own or micro_batch(shape, job, at, net, a, sized[0])
    return Terms(
        *seconds(shape, job, recipe, at, net, a, *sized, own),
        total_bytes=total_bytes(shape, job, recipe, a, *sized),
    )


def total_bytes(
    shape: Shape,
    job: Job,
    recipe: Recipe,
    a: Axes,
    tokens: Real,
    micro_batches: Real,
    stage: pipeline.StageLayers,
) -> Real:
    """Bytes of the fullest stage, and the software's own."""
    found = stages(shape, job, recipe, a, tokens, micro_batches, stage)

    def fullest(zero):
        most = 0.0
        for weights, gradients, optimizer, activations in found.held(recipe, a.plan, zero, a.offload):
            most = ops.maximum(most, weights + gradients + optimizer + activations)
        return most + overhead_bytes(job, zero)

    return ops.for_each(a.zero, fullest, found.first, found.second, found.last)


def worked(
    shape: Shape,
    job: Job,
    at: Chip,
    a: Axes,
    tokens: Real,
    micro_batches: Real,
    stage: pipeline.StageLayers,
    own: MicroBatch,
) -> LayersWork:
    """The layers' arithmetic and the traffic that this arithmetic waits for. Throughput is set by the slowest
    stage; the bubble is that of an average stage."""
    layer = layer_time(shape, job, at, a, tokens, own)
    last, layers_of_all = stage.last, shape.depth
    if job.mtp:
        last, layers_of_all = last + job.mtp, layers_of_all + job.mtp
    head_s = own.head_forward_s + own.head_backward_s
    layer_s = layer.forward_s + layer.backward_s
    before_last = ops.where(a.pp > 2.0, stage.full, stage.first)
    if a.first_layers:
        before_last = ops.maximum(before_last, stage.first)
    last_is_slowest = last * layer_s + head_s >= before_last * layer_s
    layers = micro_batches * ops.where(last_is_slowest, last, before_last)
    compute_s = layers * layer.compute_s + micro_batches * ops.where(last_is_slowest, head_s, 0.0)
    tensor_s, context_s, expert_s = layers * layer.tensor_s, layers * layer.context_s, layers * layer.expert_s
    bubble_s = pipeline.bubble_s(
        a.pp,
        a.chunks,
        (layers_of_all * layer.forward_s + own.head_forward_s) / a.pp,
        (layers_of_all * layer.backward_s + own.head_backward_s) / a.pp,
        layers_of_all * layer.weight_gradient_s / a.pp,
        a.plan,
    )
    total_s = compute_s + tensor_s + bubble_s + context_s + expert_s
    return LayersWork(total_s, compute_s, tensor_s, bubble_s, context_s, expert_s, layer, before_last)


def seconds(
    shape: Shape,
    job: Job,
    recipe: Recipe,
    at: Chip,
    net: Wires,
    a: Axes,
    tokens: Real,
    micro_batches: Real,
    stage: pipeline.StageLayers,
    own: MicroBatch,
) -> tuple[Real, ...]:
    """The seconds of one step, in the order of Terms."""
    by = job.software
    work = worked(shape, job, at, a, tokens, micro_batches, stage, own)
    layers = work.before_last
    other_s = messages_s(shape, job, net, a, tokens, micro_batches)
    if not job.adapter:  # which leaves the embedding as it is
        other_s = other_s + tied_s(shape, recipe, net, a)
    ends = ops.where(
        (a.pp > 1.0) & (a.plan.folded < 1.0),
        shape.last_stage_params,
        shape.embedding_params + shape.head_params,
    )
    dense = (layers * shape.dense_params_per_layer + ends) / a.tp
    routed = layers * shape.routed_params_per_layer / (a.ep * a.expert_tp)
    frozen, frozen_bytes = (), 0.0
    if job.adapter:
        mine = adapted(shape, job.adapter, a, layers, ends)
        dense, routed, frozen_bytes = mine.dense, mine.routed, mine.frozen_bytes
        frozen = ((mine.frozen_dense, mine.frozen_routed),)
    data_s = data_exposed_s(
        shape, job, recipe, net, a, layers, dense, routed, work.layer, micro_batches, *frozen
    )
    if by.fsdp:
        copied = micro_batches * (dense + routed) * sharding.FSDP_BYTES[by.fsdp]
        if frozen and by.fsdp == "each":  # out of the buffer, forward and backward, read and written
            copied = copied + micro_batches * 4.0 * frozen_bytes
        data_s = data_s + ops.where(a.zero >= 3.0, copied / at.memory_bytes_per_s, 0.0)
    shard, expert_shard = shards(a)
    if a.offload and a.offload.parameters:
        passes = micro_batches * (2.0 + ops.where(a.recompute == memory.FULL, 1.0, 0.0))
        held = recipe.weight_bytes * (dense / shard + routed / expert_shard) + frozen_bytes / shard
        data_s = data_s + ops.maximum(0.0, a.offload.weights_s(held, passes) - work.compute_s)
    updated = ops.where(a.zero >= 1.0, dense / shard + routed / expert_shard, dense + routed)
    optimizer_s = sharding.optimizer_s(updated, recipe, at.memory_bytes_per_s, by.kernels == "library")
    if recipe.matrices is not None:
        how = optimizers.Update(by.joins_gate, by.orthogonal, by.matrices == "parts")
        cut = optimizers.Cut(layers, a.tp, a.expert_tp, a.ep, shard, expert_shard)
        library = by.kernels == "library"
        optimizer_s = optimizers.update_s(shape, recipe, how, at, net, dense + routed, cut, a.zero, library)
    if a.offload and a.offload.optimizer:
        optimizer_s = a.offload.step_s(updated, recipe, layers * work.layer.backward_s)
    return (
        work.total_s + other_s + optimizer_s + data_s,
        work.compute_s,
        work.tensor_s,
        work.pipeline_bubble_s,
        work.context_s,
        work.expert_s,
        data_s,
        optimizer_s,
        other_s,
    )


def messages_s(shape: Shape, job: Job, net: Wires, a: Axes, tokens: Real, micro_batches: Real) -> Real:
    """Activations and their gradients between stages: one message for each micro-batch, chunk and direction,
    exposed unless there are other chunks to work on. While the pipeline fills and drains, its messages are
    always exposed.

    Every tensor rank sends its own part; without sequence parallelism the parts are gathered again inside the
    node (the scatter/gather optimisation, arXiv:2104.04473 section 4.1).
    """
    by = job.software
    message_bytes = tokens * shape.hidden * 2.0
    send = send_s(message_bytes / a.tp, a.tp * a.cp * a.dp >= net.gpus_per_node, net)
    if not by.sequence_parallel:
        send = send + all_gather_s(message_bytes, a.tp, ranks_per_node(a.tp, 1.0, net.gpus_per_node), net)
    waits = ops.where((a.chunks > 1.0) & ("data" in by.overlaps), 0.0, micro_batches * a.chunks)
    return ops.where(a.pp > 1.0, 2.0 * send * (waits + a.pp - 1.0), 0.0)


def tied_s(shape: Shape, recipe: Recipe, net: Wires, a: Axes) -> Real:
    """Seconds to keep a tied embedding the same in both places. An embedding that is also the output layer
    lies on the first and on the last stage of a pipeline: after the last backward pass the gradients of both
    are summed, by an AllReduce between two GPUs (Megatron-LM's ``_allreduce_word_embedding_grads``,
    DeepSpeed's ``_exec_reduce_tied_grads``). In a V-shaped schedule one stage holds both, and nothing is
    sent.
    """
    tied = shape.last_stage_params - shape.head_params
    if ops.is_zero(tied):
        return 0.0
    on_two_stages = (tied > 0.0) & (a.pp > 1.0) & (a.plan.folded < 1.0)
    if on_two_stages is False:
        return 0.0
    sent_bytes = tied / a.tp * sharding.gradient_bytes(recipe)
    summed_s = _pair_s(sent_bytes, a.tp * a.cp * a.dp * a.pp <= net.gpus_per_node, net)
    return ops.where(on_two_stages, summed_s, 0.0)
