"""A decode step split by what it waits for, at many tensor degrees at once, and the users whose cache fits beside it.

The same sums as ``inference.decode_step``; what is chosen there by name is a number here, so that a page can choose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine import check, inference, memory, ops
from engine.interconnect import ranks_per_node
from engine.matmul import product_s, stream_s
from engine.shape import shape

ENDLESS = 1e30                  # a rate at which arithmetic takes no time
ALL_REDUCES = inference.ALGORITHMS              # "auto" and its candidates: a choice is a place in this list


class Split(NamedTuple):
    """Seconds of one decode step."""

    weights_s: float            # reading the weights
    cache_s: float              # reading keys and values
    compute_s: float            # what the products take beyond the reading
    launch_s: float             # kernels that do little but start: norms, rotary, adds
    communication_s: float      # AllReduces

    @property
    def total_s(self):
        """All of it."""
        return self.weights_s + self.cache_s + self.compute_s + self.launch_s + self.communication_s


def reduce_s(message_bytes, tp, choice, net):
    """One AllReduce by the algorithm at this place of ``ALL_REDUCES``."""
    per_node = ranks_per_node(tp, 1.0, net.gpus_per_node)
    found = inference.reduce_s(message_bytes, tp, "auto", net)
    for place, name in enumerate(ALL_REDUCES[1:], start=1):
        found = ops.where(choice == place, inference.ALL_REDUCES[name](message_bytes, tp, per_node, net), found)
    return found


def split(model, at, tp, batch, context, kv_value_bytes=2.0, weight_bytes=2.0, all_reduce=0) -> Split:
    """One token for each of ``batch`` sequences of ``context`` tokens, on ``tp`` GPUs (one degree or several)."""
    if not check.is_trusted():
        check.whole(tp=tp, batch=batch)
        check.non_negative(context=context)
        check.positive(kv_value_bytes=kv_value_bytes, weight_bytes=weight_bytes)
    size, chip, tp = shape(model), at.chip, tp * 1.0
    with check.trusted():
        def products_s(flops_per_s, wide_flops_per_s):
            head_s = product_s(batch, size.vocab / tp, size.hidden, 1.0, wide_flops_per_s, chip.wide_bytes, 2.0, chip)
            return inference.products_s(size, batch, tp, weight_bytes, chip, flops_per_s) + head_s
        reading_s = products_s(ENDLESS, ENDLESS)
        cache = memory.kv_bytes(size, context, batch, kv_value_bytes) / inference.kv_shards(size, tp)
        messages = size.layers * size.all_reduces
        return Split(
            reading_s, stream_s(cache, chip) + 0.0 * tp,    # a latent cache is the same at every degree
            ops.maximum(0.0, products_s(chip.matmul_flops_per_s, chip.wide_flops_per_s) - reading_s),
            inference.other_s(size, batch, tp, chip),
            messages * reduce_s(batch * size.hidden * 2.0, tp, all_reduce, at.wires))


class Room(NamedTuple):
    """Bytes on each GPU of a group that holds one copy of a model."""

    weights_bytes: float
    user_bytes: float           # of one user's cache
    users: float                # whose caches fit


def room(model, gpu, tp, context, kv_value_bytes=2.0, weight_bytes=2.0, embedding_bytes=2.0, head_copies=1.0) -> Room:
    """``head_copies`` > 1 asks what the cache would take with so many times the key and value heads (1 of each query
    head's own: ``heads / kv_heads``); a latent cache is the same on every rank."""
    if not check.is_trusted():
        check.whole(tp=tp)
        check.positive(context=context, kv_value_bytes=kv_value_bytes, weight_bytes=weight_bytes)
    size, tp = shape(model), tp * 1.0
    embeddings = size.embedding_params + size.head_params
    weights = ((size.total_params - embeddings) * weight_bytes + embeddings * embedding_bytes) / tp
    with check.trusted():
        shards = ops.minimum(inference.kv_shards(size, tp) * head_copies, tp)
        user = head_copies * memory.kv_bytes(size, context, 1.0, kv_value_bytes) / shards
    free = gpu.hbm_bytes - memory.FRAMEWORK_BYTES - weights
    return Room(weights, user, ops.maximum(0.0, ops.floor(free / user)))


def own_heads(model):
    """How many times its cache a model would keep without sharing: every query head its own key and its own value."""
    size = shape(model)
    return size.heads * (size.qk_dim + size.value_dim) / size.kv_values


def critical_batch(chip, weight_bytes=2.0):
    """Sequences from which a step's products take longer than reading their weights: C·b/(2·W), 2 FLOPs a weight."""
    return chip.matmul_flops_per_s * weight_bytes / (2.0 * chip.memory_bytes_per_s)


def tokens_per_s_per_gpu(batch, step_s, tp):
    """What a group brings in tokens for each of its GPUs: the figure that replicas multiply."""
    check.positive(batch=batch, step_s=step_s)
    check.whole(tp=tp)
    return batch / (step_s * tp)


def against_half(step_s):
    """Each degree's step over that of half the GPUs, in a list of doubling degrees; 1 for the first. Above 1, more GPUs are
    slower."""
    return step_s / np.concatenate([step_s[:1], step_s[:-1]])


def doubled(gpus):
    """Twice as many."""
    return gpus * 2.0


def rooms(model, gpu, context, cases) -> Room:
    """``room`` in several cases at once: (GPUs, bytes of a cached value, of a weight, 1 where every head keeps its own)."""
    found = [room(model, gpu, tp, context, kv, weight, head_copies=1.0 + own * (own_heads(model) - 1.0))
             for tp, kv, weight, own in cases]
    return Room(*(np.stack([column * 1.0 for column in columns]) for columns in zip(*found)))


def filled_bytes(held: Room, users):
    """What stands on each GPU with so many users."""
    check.non_negative(users=users)
    return held.weights_bytes + users * held.user_bytes


def token_bytes(model, kv_value_bytes=2.0):
    """Cache of one token, on all GPUs together."""
    return memory.kv_bytes_per_token(shape(model), kv_value_bytes)


def user_bytes(model, context, kv_value_bytes=2.0):
    """Cache of one user, on all GPUs together; windowed layers keep their window alone."""
    return memory.kv_bytes(shape(model), context, 1.0, kv_value_bytes)


# -- many layouts of a fleet at once ---------------------------------------------------------------------------------
class Steady(NamedTuple):
    """A replica that is kept full: every user's next token, and what each GPU brings."""

    batch: float                # users at once: as many as asked for, or as the cache holds
    token_s: float              # from one of a user's tokens to the next
    tokens_per_s_per_gpu: float
    first_s: float              # prefill of one prompt on an idle replica


def steady(model, at, tp, batch, prompt, output, kv_value_bytes=2.0, weight_bytes=2.0) -> Steady:
    """Continuous batching in its steady state, as ``inference.infer`` counts it: contexts are on average prompt +
    output/2, and every token's step also pays its share of the prefills that refill the batch, batch · prefill / output.

    Where not one user fits, nothing is served.
    """
    if not check.is_trusted():
        check.positive(prompt=prompt, output=output)
    with check.trusted():
        held = room(model, at.gpu, tp, prompt + output, kv_value_bytes, weight_bytes).users
        batch = ops.maximum(1.0, ops.minimum(batch, held))
        first = inference.prefill(model, at, tp, 1, prompt, weight_precision=weight_bytes)
        step = split(model, at, tp, batch, prompt + output / 2.0, kv_value_bytes, weight_bytes)
        token_s = step.total_s + batch * first.total_s / output
        brings = ops.where(held >= 1.0, batch / (token_s * tp), 0.0)
        return Steady(batch + 0.0 * brings, token_s + 0.0 * brings, brings, first.total_s + 0.0 * tp)


# users of a replica: every number where one more matters, then in steps of a twelfth
USERS = np.unique(np.round(np.concatenate([np.arange(1.0, 97.0), np.geomspace(96, 4096, 48)])))

AROUND = np.arange(-3.0, 5.0)


def users_within(target_s, token_s, batch):
    """For each target and each row of a grid, the users whose tokens come within it: straight lines between the grid's
    users, 0 where the first of them is already too late. A row of ``token_s`` never falls."""
    target_s = np.reshape(target_s, (-1, 1, 1))
    steps_s = token_s[:, 1:] - token_s[:, :-1]
    done = np.clip((target_s - token_s[None, :, :-1]) / np.where(steps_s > 0, steps_s, 1.0)[None, :, :], 0.0, 1.0)
    users = batch[:, 0] + np.sum(done * (batch[:, 1:] - batch[:, :-1])[None, :, :], axis=2)
    return np.where(target_s[:, :, 0] >= token_s[None, :, 0], users, 0.0)


def best_within(target_s, token_s, batch, tp):
    """For each target, the most tokens per second and GPU that any row's users bring within it; 0 where none does.

    ``token_s`` and ``batch`` hold a row for each degree of ``tp``, its users ascending.
    """
    users = users_within(target_s, token_s, batch)
    target_s = np.reshape(target_s, (-1, 1))
    as_many_as_may = np.max(users / (np.minimum(target_s, token_s[None, :, -1]) * tp[None, :]), axis=1)
    brings = np.ravel(batch / (token_s * tp[:, None]))      # fewer users may bring more, where prompts take the time
    return np.maximum(as_many_as_may, np.max(np.where(np.ravel(token_s)[None, :] <= target_s, brings[None, :], 0.0), axis=1))


def steady_within(target_s, grid: Steady, model, at, tp, prompt, output, kv_value_bytes=2.0, weight_bytes=2.0):
    """Each degree's best replica within a target: whole users, at most as many as the target allows.

    ``grid`` is ``steady`` for these degrees (rows) and ``USERS``. Between its points straight lines tell how many come in
    time; a few more and a few less are tried, for the lines may be a few off. Rows that cannot serve bring nothing.
    """
    serving = grid.tokens_per_s_per_gpu > 0
    users = users_within(target_s, grid.token_s, np.where(serving, grid.batch, 0.0))[0]
    tried = steady(model, at, tp[:, None], ops.maximum(1.0, ops.floor(users)[:, None] + AROUND[None, :]), prompt, output,
                   kv_value_bytes, weight_bytes)
    batch, token_s, brings = (np.concatenate([of_grid, of_tried], axis=1)
                              for of_grid, of_tried in zip(grid[:3], (tried.batch, tried.token_s,
                                                                     np.where(serving[:, :1], tried.tokens_per_s_per_gpu, 0.0))))
    brings = np.where(token_s <= target_s, brings, 0.0)
    most = np.max(brings, axis=1)
    best = (brings >= most[:, None]) & (brings > 0)
    return Steady(np.max(np.where(best, batch, 0.0), axis=1), np.max(np.where(best, token_s, 0.0), axis=1), most, grid.first_s[:, 0])


def dollars_per_million(price_per_hour, tokens_per_s_per_gpu):
    """Dollars for 10⁶ tokens at a price for a GPU-hour."""
    check.positive(price_per_hour=price_per_hour, tokens_per_s_per_gpu=tokens_per_s_per_gpu)
    return price_per_hour / 3600.0 / tokens_per_s_per_gpu * 1e6


def gpus_for(traffic_tokens_per_s, tokens_per_s_per_gpu, tp):
    """GPUs, in whole replicas of ``tp``, that bring so much."""
    check.positive(traffic_tokens_per_s=traffic_tokens_per_s, tokens_per_s_per_gpu=tokens_per_s_per_gpu)
    return tp * ops.ceil(traffic_tokens_per_s / (tokens_per_s_per_gpu * tp))


def replicas(gpus, tp):
    """Whole replicas of ``tp`` that a fleet holds."""
    return ops.floor(gpus / tp)


def fleet_tokens_per_s(gpus, tp, tokens_per_s_per_gpu):
    """What the whole replicas of a fleet bring; GPUs left over bring nothing."""
    return replicas(gpus, tp) * tp * tokens_per_s_per_gpu
