"""Data parallelism: gradients sent in buckets during the backward pass, and the benefit of further ranks.

The gradient is assumed to leave the backward pass at an even rate, last layer first, and to be cut into
buckets: at PyTorch's default a small first one, so that communication starts early, then equal ones (Li et
al., arXiv:2006.15704 section 3.2). Each bucket is one ring AllReduce: 2(N−1)·alpha + 2(N−1)/N·bytes/W.
Buckets are sent one after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.program import program, zeros
from engine.base.types import Real
from engine.base.units import MIB
from engine.catalog import models
from engine.mechanism import collectives, flops
from engine.mechanism.timeline import schedule

BUCKET_BYTES = 25 * MIB  # PyTorch's bucket_cap_mb, if it is left alone
FIRST_BUCKET_BYTES = 1 * MIB  # … and the size of the first bucket in that case


# -- buckets -------------------------------------------------------------------------------------------------
def gradient_bytes(params: Real, bytes_per_gradient: Real = 2.0) -> Real:
    """Bytes of the gradient of all parameters."""
    check.positive(params=params, bytes_per_gradient=bytes_per_gradient)
    return params * bytes_per_gradient


def first_or_default(first_bucket_bytes: Real | None, bucket_bytes: Real) -> Real:
    """The first bucket's size if one is given, else the size that PyTorch chooses: small if the other buckets
    have the default size, otherwise as large as the others (torch/nn/parallel/distributed.py,
    ``_BucketCapacityConfig``)."""
    if first_bucket_bytes is not None:
        return first_bucket_bytes
    return ops.where(bucket_bytes == BUCKET_BYTES, 1.0 * FIRST_BUCKET_BYTES, 1.0 * bucket_bytes)


def bucket_count(
    gradient_bytes: Real, bucket_bytes: Real = BUCKET_BYTES, first_bucket_bytes: Real | None = None
) -> Real:
    """The number of buckets: the first one, then ⌈(G − first)/bucket⌉ more."""
    first_bucket_bytes = first_or_default(first_bucket_bytes, bucket_bytes)
    check.positive(
        gradient_bytes=gradient_bytes, bucket_bytes=bucket_bytes, first_bucket_bytes=first_bucket_bytes
    )
    return 1.0 + ops.ceil(ops.maximum(gradient_bytes - first_bucket_bytes, 0.0) / bucket_bytes)


def filled_bytes(
    index: Real,
    gradient_bytes: Real,
    bucket_bytes: Real = BUCKET_BYTES,
    first_bucket_bytes: Real | None = None,
) -> Real:
    """Bytes of gradient in the buckets up to and including this one; index −1 means before the first."""
    first_bucket_bytes = first_or_default(first_bucket_bytes, bucket_bytes)
    check.positive(
        gradient_bytes=gradient_bytes, bucket_bytes=bucket_bytes, first_bucket_bytes=first_bucket_bytes
    )
    reached = ops.minimum(gradient_bytes * 1.0, first_bucket_bytes + index * bucket_bytes)
    return ops.where(index < 0, 0.0, reached)


def ready_s(
    index: Real,
    backward_s: Real,
    gradient_bytes: Real,
    bucket_bytes: Real = BUCKET_BYTES,
    first_bucket_bytes: Real | None = None,
) -> Real:
    """When a bucket is full, from the start of the backward pass."""
    check.non_negative(backward_s=backward_s)
    return backward_s * filled_bytes(index, gradient_bytes, bucket_bytes, first_bucket_bytes) / gradient_bytes


def sent_s(
    index: Real,
    ranks: Real,
    wire_bytes_per_s: Real,
    alpha_s: Real,
    gradient_bytes: Real,
    bucket_bytes: Real = BUCKET_BYTES,
    first_bucket_bytes: Real | None = None,
) -> Real:
    """Seconds that the wire works, without waiting, for the buckets up to and including this one; index −1
    means before the first."""
    filled = filled_bytes(index, gradient_bytes, bucket_bytes, first_bucket_bytes)
    start_ups = (index + 1) * collectives.ring_all_reduce_s(0.0, ranks, wire_bytes_per_s, alpha_s)
    return start_ups + collectives.ring_all_reduce_s(filled, ranks, wire_bytes_per_s, 0.0)


def bucket_end_s(
    index: Real,
    backward_s: Real,
    ranks: Real,
    wire_bytes_per_s: Real,
    alpha_s: Real,
    gradient_bytes: Real,
    bucket_bytes: Real = BUCKET_BYTES,
    first_bucket_bytes: Real | None = None,
) -> Real:
    """When a bucket is summed, from the start of the backward pass: max over j ≤ k of ready_j + sent_k −
    sent_{j−1}.

    The wire has worked without pause since some bucket j for which it had to wait. From the second bucket to
    the last but one the expression is linear in j, so its maximum is at one of four places: 0, 1, k − 1 or k.
    """
    wire = (ranks, wire_bytes_per_s, alpha_s)
    cut = (gradient_bytes, bucket_bytes, first_bucket_bytes)

    def if_waited_for(j):
        return ready_s(j, backward_s, *cut) - sent_s(j - 1, *wire, *cut)

    start_s = ops.maximum(if_waited_for(0.0 * index), if_waited_for(ops.minimum(1.0, index * 1.0)))
    start_s = ops.maximum(start_s, if_waited_for(ops.maximum(0.0, index - 1.0)))
    return ops.maximum(start_s, if_waited_for(index * 1.0)) + sent_s(index, *wire, *cut)


def start_ups_s(buckets: Real, ranks: Real, alpha_s: Real) -> Real:
    """The total start-up time of this many AllReduces: 2(N−1)·alpha each."""
    check.whole(buckets=buckets)
    return buckets * collectives.ring_all_reduce_s(0.0, ranks, 1.0, alpha_s)


def best_bucket_bytes(
    gradient_bytes: Real, ranks: Real, wire_bytes_per_s: Real, alpha_s: Real, backward_s: Real | None = None
) -> Real:
    """The bucket size b with the shortest step: G·a / max(√(a·B), B − X), at most the gradient G.

    a = 2(N−1)·alpha is a bucket's start-up, B the backward pass and X = 2·G/W what the bytes take, with
    (N−1)/N taken as 1. A wire that never waits for a bucket ends b/G·B + X + G/b·a after the pass began: it
    waits while the first bucket fills, which rises with b, and pays G/b start-ups, which fall. The sum is
    smallest at b = G·√(a/B). Where the pass is so much longer than the bytes that the wire waits for each
    bucket, only the last one is exposed, and b is as small as start-ups allow: G·a/(B − X). Without
    ``backward_s``, B is X, which leaves √(G·(N−1)·alpha·W): there the choice matters most. Leaves out that
    tensors are not cut, and the small first bucket of PyTorch's default.
    """
    check.positive(gradient_bytes=gradient_bytes, wire_bytes_per_s=wire_bytes_per_s)
    check.non_negative(alpha_s=alpha_s)
    check.whole(ranks=ranks)
    bytes_s = 2.0 * gradient_bytes / wire_bytes_per_s
    start_up_s = 2.0 * (ranks - 1.0) * alpha_s
    if backward_s is None:
        return gradient_bytes * ops.sqrt(start_up_s / bytes_s)
    check.positive(backward_s=backward_s)
    longest_s = ops.maximum(ops.sqrt(start_up_s * backward_s), backward_s - bytes_s)
    nothing_s = 1e-12 * backward_s  # without start-ups the smallest bucket is best, and this keeps 0/0 out
    return gradient_bytes * ops.minimum(1.0, start_up_s / ops.maximum(longest_s, nothing_s))


# -- a step --------------------------------------------------------------------------------------------------
class DataParallelStep(NamedTuple):
    """Seconds of one data-parallel step."""

    forward_s: float  # all micro-batches
    backward_s: float
    communication_s: float  # time that the wire works for the buckets
    exposed_s: float  # … and the part of it after the last backward pass
    step_s: float


def step(
    params: Real,
    micro_batch_tokens: Real,
    ranks: Real,
    flops_per_s: Real,
    wire_bytes_per_s: Real,
    alpha_s: Real,
    bucket_bytes: Real = BUCKET_BYTES,
    first_bucket_bytes: Real | None = None,
    bytes_per_gradient: Real = 2.0,
    micro_batches: Real = 1,
) -> DataParallelStep:
    """Forward 2·P·T and backward 4·P·T for each micro-batch; buckets are sent only during the last backward
    pass (no_sync).

    ``flops_per_s`` is the rate while kernels run, ``matmul.product_flops_per_s`` of the GPU. Leaves out the
    optimizer's pass, attention over
    the sequence, and the SMs and memory bandwidth that the AllReduce takes from the arithmetic.
    """
    check.positive(flops_per_s=flops_per_s, bytes_per_gradient=bytes_per_gradient)
    check.whole(micro_batches=micro_batches)
    forward = flops.forward_flops(params, micro_batch_tokens) / flops_per_s
    backward = flops.backward_flops(params, micro_batch_tokens) / flops_per_s
    gradient = params * bytes_per_gradient
    last = bucket_count(gradient, bucket_bytes, first_bucket_bytes) - 1.0
    cut = (gradient, bucket_bytes, first_bucket_bytes)
    end = bucket_end_s(last, backward, ranks, wire_bytes_per_s, alpha_s, *cut)
    # the difference of two equal times may differ from zero in its last digit
    exposed = ops.maximum(0.0, end - backward)
    return DataParallelStep(
        micro_batches * forward,
        micro_batches * backward,
        sent_s(last, ranks, wire_bytes_per_s, alpha_s, *cut),
        exposed,
        micro_batches * (forward + backward) + exposed,
    )


def tree_alpha_s(ranks: Real, alpha_s: Real) -> Real:
    """The alpha per hop with which the ring's 2(N−1) hops take as long as the 2·⌈log2 N⌉ hops of a tree.

    NCCL uses double binary trees where they are faster (since 2.4); their bandwidth term is nearly the
    ring's.
    """
    check.whole(ranks=ranks)
    check.non_negative(alpha_s=alpha_s)
    return alpha_s * ops.log2_ceil(ranks * 1.0) / ops.maximum(1.0, ranks - 1.0)


# -- a step, event by event ----------------------------------------------------------------------------------
MOST_LAYERS, MOST_BUCKETS = 84, 642  # capacity of ``overlap``: the stretches and tensors of 80 layers
NOT_OWN = [0.0]  # stands for: no step of somebody's own (own_step)
FORWARD_PASS, EMBEDDING = -1, 0  # instead of a layer; the output layer is one past the last


def bucket_ends(tensor_bytes: list[float], bucket_bytes: float, first_bucket_bytes: float) -> list[int]:
    """The index of the last tensor in each bucket, by PyTorch's rule for whole tensors in the order of the
    backward pass: a bucket takes tensors until it has reached its cap, so that a tensor above the cap gets a
    bucket of its own (reducer.cpp)."""
    ends, held, cap = [], 0.0, first_bucket_bytes
    for place in range(len(tensor_bytes)):
        held += tensor_bytes[place]
        if held >= cap or place == len(tensor_bytes) - 1:
            ends.append(place)
            held, cap = 0.0, bucket_bytes
    return ends


@program(
    layer=MOST_LAYERS,
    layer_start_s=MOST_LAYERS,
    layer_end_s=MOST_LAYERS,
    layer_s=MOST_LAYERS,
    bucket_bytes=MOST_BUCKETS,
    bucket_layer=MOST_BUCKETS,
    bucket_full_s=MOST_BUCKETS,
    bucket_start_s=MOST_BUCKETS,
    bucket_end_s=MOST_BUCKETS,
    bucket_s=MOST_BUCKETS,
    bucket_waits_s=MOST_BUCKETS,
    buckets=(),
    wire_s=(),
    compute_s=(),
    exposed_s=(),
    last_s=(),
    step_s=(),
    own=(),
)
def overlap(
    forward_s: float,
    backward_s: float,
    layers: int,
    layer_bytes: list[float],
    output_bytes: float,
    output_work: float,
    embedding_bytes: float,
    start_up_s: float,
    s_per_byte: float,
    cap_bytes: float,
    first_cap_bytes: float,
    own: list[float],
) -> dict[str, Any]:
    """One step with two streams, tensor by tensor: like ``step``, but without assuming an even flow of
    gradients.

    ``layer_bytes`` are the gradients of a layer's tensors (models.layer_tensors). The backward pass takes
    time in proportion to them (``output_work`` for the output layer). An embedding is a lookup and takes no
    time, but its gradient comes last; if the output layer shares its matrix, the gradient of the shared
    matrix comes last. An AllReduce of S bytes takes start_up_s + S·s_per_byte. The last one, ``last_s``,
    starts when no work is left, so ``exposed_s`` is never less. If ``own`` describes somebody's own step
    (own_step), that one is run instead, and the returned ``own`` is 1.
    """
    if own[0] > 0:
        sizes, work, tensor_layer, ends, start_up_s, s_per_byte = own_step(own)
        forward_s, backward_s = 0.0, sum_of(work)
    else:
        sizes, work, tensor_layer = backward_order(
            layers, layer_bytes, output_bytes, output_work, embedding_bytes
        )
        ends = bucket_ends(sizes, cap_bytes, first_cap_bytes)
    total = sum_of(work)
    duration_s, layer = [forward_s], [FORWARD_PASS]
    for tensor in range(len(sizes)):
        duration_s.append(backward_s * work[tensor] / total)
        layer.append(tensor_layer[tensor])
    bucket_bytes, bucket_s, start_s, end_s = behind(duration_s, sizes, ends, start_up_s, s_per_byte)
    wire_s = sum_of(bucket_s)
    shown, layer_start_s, layer_end_s, layer_s = stretches(layer, start_s, end_s)
    bucket_layer, full_s, starts_s, ends_s, waits_s, first = [], [], [], [], [], len(layer)
    for i in range(first, len(start_s)):
        bucket_layer.append(tensor_layer[ends[i - first]])
        filled_s = end_s[ends[i - first] + 1]  # the forward pass is task 0
        full_s.append(filled_s)
        starts_s.append(start_s[i])
        ends_s.append(end_s[i])
        waits_s.append(start_s[i] - filled_s)
    compute_s, step_s = (
        end_s[first - 1],
        end_s[len(end_s) - 1],
    )  # the last bucket is full after the last tensor
    return {
        "layer": shown,
        "layer_start_s": layer_start_s,
        "layer_end_s": layer_end_s,
        "layer_s": layer_s,
        "bucket_bytes": bucket_bytes,
        "bucket_layer": bucket_layer,
        "bucket_full_s": full_s,
        "bucket_start_s": starts_s,
        "bucket_end_s": ends_s,
        "bucket_s": bucket_s,
        "bucket_waits_s": waits_s,
        "buckets": len(bucket_bytes),
        "wire_s": wire_s,
        "compute_s": compute_s,
        "exposed_s": step_s - compute_s,
        "last_s": bucket_s[len(bucket_s) - 1],
        "step_s": step_s,
        "own": 1 if own[0] > 0 else 0,
    }


def behind(
    duration_s: list[float], sizes: list[float], ends: list[int], start_up_s: float, s_per_byte: float
) -> tuple[list[float], list[float], list[float], list[float]]:
    """(bytes of each bucket, seconds of its AllReduce, start and end of each task). The tasks are the forward
    pass, then the gradients one by one, then the AllReduces on one wire, each of which starts after the
    gradient that completes its bucket."""
    stream, lasts_s, after = [], [], []
    for i in range(len(duration_s)):
        stream.append(0)
        lasts_s.append(duration_s[i])
        after.append([])
    bucket_bytes, bucket_s, tensor = [], [], 0
    for last in ends:
        held = 0.0
        while tensor <= last:
            held += sizes[tensor]
            tensor += 1
        bucket_bytes.append(held)
        bucket_s.append(start_up_s + held * s_per_byte)
        stream.append(1)
        lasts_s.append(start_up_s + held * s_per_byte)
        after.append([last + 1])  # tasks are numbered one higher than gradients
    start_s, end_s, _ = schedule(2, stream, lasts_s, zeros(len(stream)), after)
    return bucket_bytes, bucket_s, start_s, end_s


def own_step(own: list[float]) -> tuple[list[float], list[float], list[int], list[int], float, float]:
    """Somebody's own backward pass and buckets, read from one column. The column holds a 1, the number of
    gradients, an AllReduce's start-up in ms, its ms for a MB, when each gradient is ready in ms, the MB of
    each gradient, and how many gradients each bucket holds. Returns (bytes, seconds of work, layer) of each
    gradient, the last gradient of each bucket, the start-up in s, and the s for a byte. There is one gradient
    for each layer, the last layer's first."""
    count = int(own[1])
    sizes, work, layer, ends, before, last = [], [], [], [], 0.0, -1
    for i in range(count):
        sizes.append(own[4 + count + i] * 1e6)
        work.append((own[4 + i] - before) / 1e3)
        layer.append(count - i)
        before = own[4 + i]
    for i in range(4 + 2 * count, len(own)):
        last += int(own[i])
        ends.append(last)
    return sizes, work, layer, ends, own[2] / 1e3, own[3] / 1e9


def sum_of(values: list[float]) -> float:
    """The sum of a list."""
    total = 0.0
    for value in values:
        total += value
    return total


def backward_order(
    layers: int, layer_bytes: list[float], output_bytes: float, output_work: float, embedding_bytes: float
) -> tuple[list[float], list[float], list[int]]:
    """(bytes, work, layer) of each tensor, in the order in which the gradients are ready; work is
    proportional to time."""
    sizes, work, layer = [output_bytes], [output_work], [int(layers) + 1]
    for number in range(int(layers), 0, -1):
        for size in layer_bytes:
            sizes.append(size)
            work.append(size)
            layer.append(number)
    sizes.append(embedding_bytes)
    work.append(0.0)
    layer.append(EMBEDDING)
    return sizes, work, layer


def stretches(
    layer: list[int], start_s: list[float], end_s: list[float]
) -> tuple[list[int], list[float], list[float], list[float]]:
    """(layer, start_s, end_s, length_s) of consecutive tasks of the same layer, merged; tasks without length
    are left out."""
    shown, from_s, to_s, length_s = [], [], [], []
    for i in range(len(layer)):
        last = len(shown) - 1
        if last >= 0 and shown[last] == layer[i]:
            to_s[last] = end_s[i]
            length_s[last] = to_s[last] - from_s[last]
        elif end_s[i] > start_s[i]:
            shown.append(layer[i])
            from_s.append(start_s[i])
            to_s.append(end_s[i])
            length_s.append(end_s[i] - start_s[i])
    return shown, from_s, to_s, length_s


def simulate_step(
    model: models.Model,
    tokens: Real,
    ranks: Real,
    flops_per_s: Real,
    wire_bytes_per_s: Real,
    alpha_s: Real,
    bucket_bytes: Real = BUCKET_BYTES,
    first_bucket_bytes: Real | None = None,
    bytes_per_gradient: Real = 2.0,
    own: Any = None,
) -> dict[str, Real]:
    """``overlap`` for a dense model of the catalogue, or for somebody's ``own`` step (own_step), with
    textbook rings: forward 2·P·T, backward 4·P·T."""
    check.between(0, 0, experts=model.experts, kv_lora=model.attention.kv_lora)
    first_bucket_bytes = first_or_default(first_bucket_bytes, bucket_bytes)
    check.positive(
        flops_per_s=flops_per_s,
        bucket_bytes=bucket_bytes,
        first_bucket_bytes=first_bucket_bytes,
        bytes_per_gradient=bytes_per_gradient,
    )
    params = models.parameters(model)
    wire = (ranks, wire_bytes_per_s)
    return overlap(
        flops.forward_flops(params, tokens) / flops_per_s,
        flops.backward_flops(params, tokens) / flops_per_s,
        model.depth,
        models.layer_tensors(model) * bytes_per_gradient,
        models.head_parameters(model) * bytes_per_gradient,
        model.vocab * model.hidden * bytes_per_gradient,
        models.embedding_parameters(model) * bytes_per_gradient,
        collectives.ring_all_reduce_s(0.0, *wire, alpha_s),
        collectives.ring_all_reduce_s(1.0, *wire, 0.0),
        bucket_bytes,
        first_bucket_bytes,
        NOT_OWN if own is None else own,
    )


# -- how large a batch is still worthwhile -------------------------------------------------------------------
def steps_of_least(batch: Real, critical_batch: Real) -> Real:
    """Steps to reach a loss, relative to the minimum with an infinitely large batch: 1 + B_crit/B.

    McCandlish, Kaplan, Amodei et al. 2018, arXiv:1812.06162, eq. 2.11: (S/S_min − 1)·(E/E_min − 1) = 1 with E
    = B·S.
    """
    check.positive(batch=batch, critical_batch=critical_batch)
    return 1.0 + critical_batch / batch


def samples_of_least(batch: Real, critical_batch: Real) -> Real:
    """Samples (or tokens) to reach the same loss, relative to the minimum with a tiny batch: 1 + B/B_crit. At
    the critical batch both steps and samples are twice their minimum."""
    check.positive(batch=batch, critical_batch=critical_batch)
    return 1.0 + batch / critical_batch


def useful_share(batch: Real, critical_batch: Real) -> Real:
    """The value of a sample in this batch, relative to one in a tiny batch: 1/(1 + B/B_crit)."""
    return 1.0 / samples_of_least(batch, critical_batch)


def critical_batch_tokens(loss_nats: float) -> float:
    """B_crit = 2·10⁸ tokens / L^(1/0.21) for language models (Kaplan et al., arXiv:2001.08361 eq. 1.4): it
    grows as the loss falls. Fitted on models up to 1.5B parameters and WebText, so only an order of
    magnitude."""
    check.positive(loss_nats=loss_nats)
    return 2e8 / loss_nats ** (1 / 0.21)


# -- stragglers ----------------------------------------------------------------------------------------------
def deviations_of_slowest(ranks: Real) -> Real:
    """The expected maximum of N independent normal values, in standard deviations above the mean.

    Blom 1958: the normal quantile at (N − 3/8)/(N + 1/4), by Abramowitz and Stegun 26.2.23. Accurate to 0.03;
    the textbook's √(2·ln N) is an upper bound, 0.6 too high at 8 and 0.5 at 1,024.
    """
    check.whole(ranks=ranks)
    tail = 0.625 / (ranks + 0.25)
    t = ops.sqrt(-2.0 * np.log(2.0) * np.log2(tail))
    above = 2.515517 + 0.802853 * t + 0.010328 * t * t
    below = 1.0 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t
    return ops.where(ranks > 1, ops.maximum(0.0, t - above / below), 0.0)


def slowest_s(ranks: Real, mean_s: Real, deviation_s: Real) -> Real:
    """The expected time of the slowest of N ranks, for which all wait in every step.

    Leaves out ranks that are always slow (a hot GPU, a bad cable): those set the pace for any N.
    """
    check.positive(mean_s=mean_s)
    check.non_negative(deviation_s=deviation_s)
    return mean_s + deviation_s * deviations_of_slowest(ranks)


# -- what more ranks bring -----------------------------------------------------------------------------------
class Shares(NamedTuple):
    """What a GPU spends its time on in one step; the four add up to 1."""

    useful: np.ndarray  # arithmetic that lowers the loss
    surplus: np.ndarray  # arithmetic on samples that a smaller batch would not have needed
    exposed: np.ndarray  # exposed communication
    waiting: np.ndarray  # waiting for the slowest rank

    @property
    def computing(self) -> Real:
        """The share of the time spent on arithmetic: the efficiency of weak scaling."""
        return self.useful + self.surplus


def shares(
    at: DataParallelStep, batch_tokens: Real, ranks: Real, critical_batch: Real, deviation_share: Real = 0.0
) -> Shares:
    """One step's time on ``ranks`` ranks, split by its value.

    The slowest rank computes for (1 + d·z_N) times the mean, with deviations d that are drawn afresh in each
    step; 1/(1 + B/B_crit) of the arithmetic is useful. Leaves out that a longer backward pass hides a little
    more.
    """
    check.non_negative(deviation_share=deviation_share)
    compute_s = at.step_s - at.exposed_s
    slowest = slowest_s(ranks, compute_s, deviation_share * compute_s)
    whole_s, worth = slowest + at.exposed_s, useful_share(batch_tokens, critical_batch)
    computing = compute_s / whole_s
    return Shares(
        computing * worth, computing * (1.0 - worth), at.exposed_s / whole_s, (slowest - compute_s) / whole_s
    )


def batch_tokens(ranks: Real, tokens_per_rank: Real) -> Real:
    """The global batch: the tokens of all ranks in one step."""
    check.whole(ranks=ranks)
    check.positive(tokens_per_rank=tokens_per_rank)
    return ranks * tokens_per_rank


def ranks_at(batch_tokens: Real, tokens_per_rank: Real) -> Real:
    """The number of ranks at which a step takes this many tokens."""
    check.positive(batch_tokens=batch_tokens, tokens_per_rank=tokens_per_rank)
    return batch_tokens / tokens_per_rank


def progress(useful: Real, ranks: Real, alone: Real = 1.0) -> Real:
    """Progress toward the loss relative to one rank's: N · useful share, over the useful share of one
    rank."""
    check.positive(alone=alone)
    check.whole(ranks=ranks)
    return ranks * useful / alone


def most_progress(critical_batch: Real, tokens_per_rank: Real) -> Real:
    """The largest speed-up from any number of ranks if only the batch size limited it: 1 + B_crit/B_1."""
    return steps_of_least(tokens_per_rank, critical_batch)
