"""Data parallelism: gradients in buckets behind the backward pass, and what more ranks still bring.

The gradient is taken to come out of the backward pass evenly, last layer first, and to be cut into buckets: a small
first one, so that the wire starts early, then equal ones (Li et al., arXiv:2006.15704 section 3.2). Each bucket is one
ring AllReduce: 2(N−1)·alpha + 2(N−1)/N·bytes/W. Buckets go one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine import check, collectives, flops, models, ops, walls
from engine.program import program, zeros
from engine.timeline import schedule
from engine.units import MIB

BUCKET_BYTES = 25 * MIB             # PyTorch's bucket_cap_mb, which counts in MiB
FIRST_BUCKET_BYTES = 1 * MIB


# -- when communication hides ----------------------------------------------------------------------------------------
def tokens_to_hide(ranks, wire_bytes_per_s, peak_flops_per_s, mfu=0.4, gradient_bytes=2.0):
    """Tokens per GPU from which the AllReduce fits behind the backward pass: MFU·C/W·(N−1)/N with bf16 gradients.

    4·P·T/(MFU·C) ≥ 2·(N−1)/N·g·P/W, so T ≥ g/2·MFU·C/W·(N−1)/N; the parameters cancel. Tokens of one micro-batch:
    the last one's backward pass is all there is to hide behind. Leaves out latency and the last bucket.
    """
    return walls.break_even_tokens_per_gpu(ranks, wire_bytes_per_s, peak_flops_per_s, mfu, gradient_bytes,
                                           flops_per_weight=4)


def gradient_bytes(params, bytes_per_gradient=2.0):
    """The gradient of all parameters."""
    check.positive(params=params, bytes_per_gradient=bytes_per_gradient)
    return params * bytes_per_gradient


# -- buckets ---------------------------------------------------------------------------------------------------------
def bucket_count(gradient_bytes, bucket_bytes=BUCKET_BYTES, first_bucket_bytes=FIRST_BUCKET_BYTES):
    """One small bucket first, then ⌈(G − first)/bucket⌉ more."""
    check.positive(gradient_bytes=gradient_bytes, bucket_bytes=bucket_bytes, first_bucket_bytes=first_bucket_bytes)
    return 1.0 + ops.ceil(ops.maximum(gradient_bytes - first_bucket_bytes, 0.0) / bucket_bytes)


def filled_bytes(index, gradient_bytes, bucket_bytes=BUCKET_BYTES, first_bucket_bytes=FIRST_BUCKET_BYTES):
    """Bytes of gradient in the buckets up to and with this one; −1 is before the first."""
    check.positive(gradient_bytes=gradient_bytes, bucket_bytes=bucket_bytes, first_bucket_bytes=first_bucket_bytes)
    reached = ops.minimum(gradient_bytes * 1.0, first_bucket_bytes + index * bucket_bytes)
    return ops.where(index < 0, 0.0, reached)


def ready_s(index, backward_s, gradient_bytes, bucket_bytes=BUCKET_BYTES, first_bucket_bytes=FIRST_BUCKET_BYTES):
    """When a bucket is full, counted from the start of the backward pass."""
    check.non_negative(backward_s=backward_s)
    return backward_s * filled_bytes(index, gradient_bytes, bucket_bytes, first_bucket_bytes) / gradient_bytes


def sent_s(index, ranks, wire_bytes_per_s, alpha_s, gradient_bytes, bucket_bytes=BUCKET_BYTES,
           first_bucket_bytes=FIRST_BUCKET_BYTES):
    """How long the wire works for the buckets up to and with this one, without waiting; −1 is before the first."""
    filled = filled_bytes(index, gradient_bytes, bucket_bytes, first_bucket_bytes)
    start_ups = (index + 1) * collectives.ring_all_reduce_s(0.0, ranks, wire_bytes_per_s, alpha_s)
    return start_ups + collectives.ring_all_reduce_s(filled, ranks, wire_bytes_per_s, 0.0)


def bucket_end_s(index, backward_s, ranks, wire_bytes_per_s, alpha_s, gradient_bytes, bucket_bytes=BUCKET_BYTES,
                 first_bucket_bytes=FIRST_BUCKET_BYTES):
    """When a bucket is summed, from the start of the backward pass: max over j ≤ k of ready_j + sent_k − sent_{j−1}.

    The wire works without pause since some bucket j for which it waited. Between the second and the last but one the
    sum is linear in j, so that its largest value stands at one of four places: 0, 1, k − 1 or k.
    """
    wire = (ranks, wire_bytes_per_s, alpha_s)
    cut = (gradient_bytes, bucket_bytes, first_bucket_bytes)

    def if_waited_for(j):
        return ready_s(j, backward_s, *cut) - sent_s(j - 1, *wire, *cut)

    start_s = ops.maximum(if_waited_for(0.0 * index), if_waited_for(ops.minimum(1.0, index * 1.0)))
    start_s = ops.maximum(start_s, if_waited_for(ops.maximum(0.0, index - 1.0)))
    return ops.maximum(start_s, if_waited_for(index * 1.0)) + sent_s(index, *wire, *cut)


def start_ups_s(buckets, ranks, alpha_s):
    """What so many AllReduces take before the first byte: 2(N−1)·alpha each."""
    check.whole(buckets=buckets)
    return buckets * collectives.ring_all_reduce_s(0.0, ranks, 1.0, alpha_s)


def best_bucket_bytes(gradient_bytes, ranks, wire_bytes_per_s, alpha_s):
    """√(G·(N−1)·alpha·W): the bucket with the least of start-ups and of waiting for the end.

    G/b buckets pay 2(N−1)·alpha each; and one bucket is never hidden, 2·b/W with (N−1)/N taken as 1: the wire waits for
    it to fill at the start, or it sticks out at the end. The sum is least where its two parts are equal. This is for
    two streams about as long as each other, where a choice matters most. A backward pass far longer than the traffic
    wants smaller buckets (only the last is seen), a far shorter one larger (start-ups alone count).
    """
    check.positive(gradient_bytes=gradient_bytes, wire_bytes_per_s=wire_bytes_per_s)
    check.non_negative(alpha_s=alpha_s)
    check.whole(ranks=ranks)
    return ops.sqrt(gradient_bytes * (ranks - 1.0) * alpha_s * wire_bytes_per_s)


# -- a step ----------------------------------------------------------------------------------------------------------
class Step(NamedTuple):
    """Seconds of one data-parallel step."""

    forward_s: float                # of all micro-batches
    backward_s: float
    communication_s: float          # what the wire works for the buckets
    exposed_s: float                # … and what of it ends after the last backward pass
    step_s: float


def step(params, micro_batch_tokens, ranks, flops_per_s, wire_bytes_per_s, alpha_s, bucket_bytes=BUCKET_BYTES,
         first_bucket_bytes=FIRST_BUCKET_BYTES, bytes_per_gradient=2.0, micro_batches=1) -> Step:
    """Forward 2·P·T, backward 4·P·T for each micro-batch; buckets behind the last backward pass alone (no_sync).

    ``flops_per_s`` is what a GPU achieves, MFU·C. Leaves out the optimizer's pass, attention over the sequence and what
    the AllReduce takes from the arithmetic (its SMs and memory bandwidth).
    """
    check.positive(flops_per_s=flops_per_s, bytes_per_gradient=bytes_per_gradient)
    check.whole(micro_batches=micro_batches)
    forward = flops.forward_flops(params, micro_batch_tokens) / flops_per_s
    backward = flops.backward_flops(params, micro_batch_tokens) / flops_per_s
    gradient = params * bytes_per_gradient
    last = bucket_count(gradient, bucket_bytes, first_bucket_bytes) - 1.0
    cut = (gradient, bucket_bytes, first_bucket_bytes)
    end = bucket_end_s(last, backward, ranks, wire_bytes_per_s, alpha_s, *cut)
    # the difference of two equal times may miss zero in its last digit
    exposed = ops.maximum(0.0, end - backward)
    return Step(micro_batches * forward, micro_batches * backward,
                sent_s(last, ranks, wire_bytes_per_s, alpha_s, *cut), exposed,
                micro_batches * (forward + backward) + exposed)


def share(part_s, whole_s):
    """A part of a time."""
    check.non_negative(part_s=part_s)
    check.positive(whole_s=whole_s)
    return part_s / whole_s


def tree_alpha_s(ranks, alpha_s):
    """A start-up of a hop with which the ring's 2(N−1) hops start as the 2·⌈log2 N⌉ of a tree would.

    NCCL takes double binary trees where they are faster (since 2.4); their bandwidth term is all but the ring's.
    """
    check.whole(ranks=ranks)
    check.non_negative(alpha_s=alpha_s)
    return alpha_s * ops.log2_ceil(ranks * 1.0) / ops.maximum(1.0, ranks - 1.0)


# -- a step, event by event ------------------------------------------------------------------------------------------
MOST_LAYERS, MOST_BUCKETS = 84, 642     # what ``overlap`` has room for: the stretches and tensors of 80 layers
FORWARD_PASS, EMBEDDING = -1, 0         # in place of a layer's number; the output layer is one more than the last


def bucket_ends(tensor_bytes, bucket_bytes, first_bucket_bytes):
    """The place of the last tensor in each bucket, by PyTorch's own rule for whole tensors in the order of the backward
    pass: a bucket takes tensors until it has reached its cap, so that one above the cap is a bucket (reducer.cpp)."""
    ends, held, cap = [], 0.0, first_bucket_bytes
    for place in range(len(tensor_bytes)):
        held += tensor_bytes[place]
        if held >= cap or place == len(tensor_bytes) - 1:
            ends.append(place)
            held, cap = 0.0, bucket_bytes
    return ends


@program(layer=MOST_LAYERS, layer_start_s=MOST_LAYERS, layer_end_s=MOST_LAYERS, layer_s=MOST_LAYERS,
         bucket_bytes=MOST_BUCKETS, bucket_layer=MOST_BUCKETS, bucket_full_s=MOST_BUCKETS, bucket_start_s=MOST_BUCKETS,
         bucket_end_s=MOST_BUCKETS, bucket_s=MOST_BUCKETS, bucket_waits_s=MOST_BUCKETS,
         buckets=(), wire_s=(), compute_s=(), exposed_s=(), step_s=())
def overlap(forward_s, backward_s, layers, layer_bytes, output_bytes, output_work, embedding_bytes, start_up_s,
            s_per_byte, cap_bytes, first_cap_bytes):
    """One step of two streams, tensor by tensor: the physics of ``step`` without its even flow of gradients.

    ``layer_bytes`` are the gradients of a layer's tensors (models.layer_tensors). The backward pass takes time in
    proportion to them (``output_work`` for the output layer). An embedding takes none, for it is looked up, but its
    gradient comes last, and with it that of an output layer which is the same matrix. An AllReduce of S bytes takes
    start_up_s + S·s_per_byte.
    """
    sizes, work, tensor_layer = backward_order(layers, layer_bytes, output_bytes, output_work, embedding_bytes)
    total = 0.0
    for amount in work:
        total += amount
    stream, duration_s, after, layer = [0], [forward_s], [[]], [FORWARD_PASS]
    for tensor in range(len(sizes)):
        stream.append(0)
        duration_s.append(backward_s * work[tensor] / total)
        after.append([])
        layer.append(tensor_layer[tensor])
    bucket_bytes, bucket_layer, bucket_s, tensor, wire_s = [], [], [], 0, 0.0
    for last in bucket_ends(sizes, cap_bytes, first_cap_bytes):
        held = 0.0
        while tensor <= last:
            held += sizes[tensor]
            tensor += 1
        takes_s = start_up_s + held * s_per_byte
        bucket_bytes.append(held)
        bucket_layer.append(tensor_layer[last])
        bucket_s.append(takes_s)
        wire_s += takes_s
        stream.append(1)
        duration_s.append(takes_s)
        after.append([last + 1])        # tasks stand one further than tensors, behind the forward pass
    start_s, end_s, _ = schedule(2, stream, duration_s, zeros(len(stream)), after)
    shown, layer_start_s, layer_end_s, layer_s = stretches(layer, start_s, end_s)
    full_s, starts_s, ends_s, waits_s, first = [], [], [], [], len(layer)
    for i in range(first, len(stream)):
        filled_s = end_s[after[i][0]]
        full_s.append(filled_s)
        starts_s.append(start_s[i])
        ends_s.append(end_s[i])
        waits_s.append(start_s[i] - filled_s)
    compute_s, step_s = end_s[first - 1], end_s[len(end_s) - 1]     # the last bucket is full when the last tensor is
    return {"layer": shown, "layer_start_s": layer_start_s, "layer_end_s": layer_end_s, "layer_s": layer_s,
            "bucket_bytes": bucket_bytes, "bucket_layer": bucket_layer, "bucket_full_s": full_s,
            "bucket_start_s": starts_s, "bucket_end_s": ends_s, "bucket_s": bucket_s, "bucket_waits_s": waits_s,
            "buckets": len(bucket_bytes), "wire_s": wire_s, "compute_s": compute_s, "exposed_s": step_s - compute_s,
            "step_s": step_s}


def backward_order(layers, layer_bytes, output_bytes, output_work, embedding_bytes):
    """(bytes, work, layer) of each tensor in the order in which its gradient is there; work in proportion to time."""
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


def stretches(layer, start_s, end_s):
    """(layer, start_s, end_s, length_s) of neighbouring tasks of one layer taken together; nothing for those without
    length."""
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


def simulate_step(model, tokens, ranks, flops_per_s, wire_bytes_per_s, alpha_s, bucket_bytes=BUCKET_BYTES,
                  first_bucket_bytes=FIRST_BUCKET_BYTES, bytes_per_gradient=2.0):
    """``overlap`` for a dense model of the catalogue, by textbook rings: forward 2·P·T, backward 4·P·T."""
    check.between(0, 0, experts=model.experts, kv_lora=model.kv_lora)
    check.positive(flops_per_s=flops_per_s, bucket_bytes=bucket_bytes, first_bucket_bytes=first_bucket_bytes,
                   bytes_per_gradient=bytes_per_gradient)
    params = models.parameters(model)
    wire = (ranks, wire_bytes_per_s)
    return overlap(flops.forward_flops(params, tokens) / flops_per_s,
                   flops.backward_flops(params, tokens) / flops_per_s, model.layers,
                   models.layer_tensors(model) * bytes_per_gradient,
                   models.head_parameters(model) * bytes_per_gradient, model.vocab * model.hidden * bytes_per_gradient,
                   models.embedding_parameters(model) * bytes_per_gradient,
                   collectives.ring_all_reduce_s(0.0, *wire, alpha_s), collectives.ring_all_reduce_s(1.0, *wire, 0.0),
                   bucket_bytes, first_bucket_bytes)


# -- how large a batch still pays ------------------------------------------------------------------------------------
def steps_of_least(batch, critical_batch):
    """Steps to a loss, over the least there are with an endless batch: 1 + B_crit/B.

    McCandlish, Kaplan, Amodei et al. 2018, arXiv:1812.06162, eq. 2.11: (S/S_min − 1)·(E/E_min − 1) = 1 with E = B·S.
    """
    check.positive(batch=batch, critical_batch=critical_batch)
    return 1.0 + critical_batch / batch


def samples_of_least(batch, critical_batch):
    """Samples (or tokens) to the same loss, over the least there are with a tiny batch: 1 + B/B_crit. At the critical
    batch both steps and samples are twice their least."""
    check.positive(batch=batch, critical_batch=critical_batch)
    return 1.0 + batch / critical_batch


def useful_share(batch, critical_batch):
    """What a sample of such a batch is worth, against one of a tiny batch: 1/(1 + B/B_crit)."""
    return 1.0 / samples_of_least(batch, critical_batch)


def critical_batch_tokens(loss_nats):
    """B_crit = 2·10⁸ tokens / L^(1/0.21) for language models (Kaplan et al., arXiv:2001.08361 eq. 1.4): it grows as the
    loss falls. Fitted on models up to 1.5B parameters and WebText; take it as an order of magnitude."""
    check.positive(loss_nats=loss_nats)
    return 2e8 / loss_nats ** (1 / 0.21)


# -- stragglers ------------------------------------------------------------------------------------------------------
def deviations_of_slowest(ranks):
    """The largest of N independent normal values, in standard deviations above the mean.

    Blom 1958: the normal quantile at (N − 3/8)/(N + 1/4), by Abramowitz and Stegun 26.2.23. Within 0.03 of the truth;
    the textbook's √(2·ln N) is a bound, 0.6 too high at 8 and 0.5 at 1,024.
    """
    check.whole(ranks=ranks)
    tail = 0.625 / (ranks + 0.25)
    t = ops.sqrt(-2.0 * np.log(2.0) * np.log2(tail))
    above = 2.515517 + 0.802853 * t + 0.010328 * t * t
    below = 1.0 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t
    return ops.where(ranks > 1, ops.maximum(0.0, t - above / below), 0.0)


def slowest_s(ranks, mean_s, deviation_s):
    """When the slowest of N ranks is done, in expectation: everyone waits for it in every step.

    Leaves out ranks that are slow every time (a warm GPU, a bad cable): those set the pace whatever N.
    """
    check.positive(mean_s=mean_s)
    check.non_negative(deviation_s=deviation_s)
    return mean_s + deviation_s * deviations_of_slowest(ranks)


# -- what more ranks bring -------------------------------------------------------------------------------------------
class Shares(NamedTuple):
    """Where a GPU's time goes in one step; the four add up to 1."""

    useful: np.ndarray              # arithmetic that brings the loss down
    surplus: np.ndarray             # arithmetic on samples that a smaller batch would not have needed
    exposed: np.ndarray             # communication that nothing hides
    waiting: np.ndarray             # for the slowest rank

    @property
    def computing(self):
        """What of the time is arithmetic: the efficiency of weak scaling."""
        return self.useful + self.surplus


def shares(at: Step, batch_tokens, ranks, critical_batch, deviation_share=0.0) -> Shares:
    """One step's time on ``ranks`` ranks, split by what it is worth.

    The slowest rank computes for (1 + d·z_N) times the mean, with deviations d that are drawn anew in each step; of the
    arithmetic 1/(1 + B/B_crit) is useful. Leaves out that a longer backward pass hides a little more.
    """
    check.non_negative(deviation_share=deviation_share)
    compute_s = at.step_s - at.exposed_s
    slowest = slowest_s(ranks, compute_s, deviation_share * compute_s)
    whole_s, worth = slowest + at.exposed_s, useful_share(batch_tokens, critical_batch)
    computing = compute_s / whole_s
    return Shares(computing * worth, computing * (1.0 - worth), at.exposed_s / whole_s, (slowest - compute_s) / whole_s)


def batch_tokens(ranks, tokens_per_rank):
    """The global batch: what all ranks take in one step."""
    check.whole(ranks=ranks)
    check.positive(tokens_per_rank=tokens_per_rank)
    return ranks * tokens_per_rank


def ranks_at(batch_tokens, tokens_per_rank):
    """With how many ranks a step takes so many tokens."""
    check.positive(batch_tokens=batch_tokens, tokens_per_rank=tokens_per_rank)
    return batch_tokens / tokens_per_rank


def progress(useful, ranks, alone=1.0):
    """How many times one rank's progress toward the loss: N · useful share, over what is useful of one rank's time."""
    check.positive(alone=alone)
    check.whole(ranks=ranks)
    return ranks * useful / alone


def most_progress(critical_batch, tokens_per_rank):
    """The most that any number of ranks can speed up: 1 + B_crit/B_1, if nothing but the batch held them back."""
    return steps_of_least(tokens_per_rank, critical_batch)
