"""A decode step split by what takes the time, for many tensor-parallel degrees at once, and the number of
users whose cache fits.

The sums are those of ``inference.decode_step``. What is chosen by name there is chosen by number here, so
that a page can choose, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.mechanism import memory
from engine.mechanism.interconnect import ranks_per_node
from engine.mechanism.shape import reading, shape
from engine.serving import inference

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.models import Model
    from engine.mechanism.interconnect import Wires
    from engine.step.layout import Machine

ALL_REDUCES = inference.ALGORITHMS  # "auto" and its candidates: a choice is an index into this list


class DecodeSeconds(NamedTuple):
    """The seconds of one decode step, by what takes them."""

    weights_s: float  # reading the weights from memory
    cache_s: float  # reading keys and values
    beyond_s: float  # how much longer the measured products and attention take than reading their bytes
    launch_s: float  # launches of all kernels, and the short kernels: norms, rotary, adds
    communication_s: float  # AllReduces

    @property
    def total_s(self) -> Real:
        """The sum of all parts."""
        return self.weights_s + self.cache_s + self.beyond_s + self.launch_s + self.communication_s


def reduce_s(message_bytes: Real, tp: Real, choice: Real, net: Wires) -> Real:
    """One AllReduce by the algorithm with this index in ``ALL_REDUCES``."""
    per_node = ranks_per_node(tp, 1.0, net.gpus_per_node)
    found = inference.reduce_s(message_bytes, tp, "auto", net)
    for place, name in enumerate(ALL_REDUCES[1:], start=1):
        found = ops.where(
            choice == place, inference.ALL_REDUCES[name](message_bytes, tp, per_node, net), found
        )
    return found


def split(
    model: Model,
    at: Machine,
    tp: Real,
    batch: Real,
    context: Real,
    kv_value_bytes: Real = 2.0,
    weight_bytes: Real = 2.0,
    all_reduce: Real = 0,
) -> DecodeSeconds:
    """One token for each of ``batch`` sequences of ``context`` tokens, on ``tp`` GPUs (one degree or
    several)."""
    if not check.is_trusted():
        check.whole(tp=tp, batch=batch)
        check.non_negative(context=context)
        check.positive(kv_value_bytes=kv_value_bytes, weight_bytes=weight_bytes)
    size, chip, tp = shape(model), at.chip, tp * 1.0
    with check.trusted():
        reading_s = inference.reading_s(size, batch, tp, weight_bytes, chip)
        products_s = inference.products_s(size, batch, tp, weight_bytes, chip) + inference.head_s(
            size, batch, tp, chip
        )
        cache = inference.read_bytes(size, context, batch, kv_value_bytes, tp)
        cache_s = cache / chip.decode.memory_bytes_per_s
        attention_s = inference.attention_s(size, batch, context, tp, kv_value_bytes, chip)
        starts_s = inference.starts_s(size, chip)
        # negative where a kernel starts while another still reads
        left_s = products_s + attention_s - reading_s - cache_s - starts_s
        messages = size.depth * size.all_reduces
        return DecodeSeconds(
            reading_s,
            cache_s + 0.0 * tp,  # a latent cache is the same for every degree
            ops.maximum(0.0, left_s),
            inference.other_s(size, batch, tp, chip) + starts_s + ops.minimum(0.0, left_s),
            messages * reduce_s(batch * size.hidden * 2.0, tp, all_reduce, at.wires),
        )


class Room(NamedTuple):
    """Bytes on each GPU of a group that holds one copy of a model."""

    weights_bytes: Real
    user_bytes: Real  # cache of one user
    users: Real  # the number of users whose caches fit


def room(
    model: Model,
    gpu: Gpu,
    tp: Real,
    context: Real,
    kv_value_bytes: Real = 2.0,
    weight_bytes: Real = 2.0,
    embedding_bytes: Real = 2.0,
    head_copies: Real = 1.0,
) -> Room:
    """The room for weights and caches on each GPU of ``tp``. ``head_copies`` > 1 counts a cache with that
    many times the key and value heads (with ``heads / kv_heads`` each query head has its own). A latent cache
    is the same on every rank."""
    if not check.is_trusted():
        check.whole(tp=tp)
        check.positive(context=context, kv_value_bytes=kv_value_bytes, weight_bytes=weight_bytes)
    size, tp = shape(model), tp * 1.0
    embeddings = size.embedding_params + size.head_params
    weights = ((size.total_params - embeddings) * weight_bytes + embeddings * embedding_bytes) / tp
    with check.trusted():
        user = inference.kept_bytes(size, context, 1.0, kv_value_bytes, tp)
        if not ops.is_zero(head_copies - 1.0):
            shards = ops.minimum(inference.kv_shards(size, tp) * head_copies, tp)
            user = head_copies * memory.kv_bytes(size, context, 1.0, kv_value_bytes) / shards
    free = memory.server_bytes(gpu) - weights
    return Room(weights, user, ops.maximum(0.0, ops.floor(free / user)))


def own_heads(model: Model) -> Real:
    """How many times larger a model's cache would be if every query head had a key and value of its own."""
    kinds = reading(shape(model))
    if not any(one.mixer for one in kinds):
        return kinds[0].heads * (kinds[0].qk_dim + kinds[0].value_dim) / kinds[0].cached
    own = sum(one.share * one.heads * (one.qk_dim + one.value_dim) for one in kinds)
    return own / sum(one.share * one.cached for one in kinds)


def tokens_per_s_per_gpu(batch: Real, step_s: Real, tp: Real) -> Real:
    """Tokens per second for each GPU of a group: the figure that scales with replicas."""
    check.positive(batch=batch, step_s=step_s)
    check.whole(tp=tp)
    return batch / (step_s * tp)


def against_half(step_s: Real) -> Real:
    """For a list of doubling degrees, each degree's step time over the step time of half the GPUs; 1 for the
    first. Above 1, the larger degree is slower."""
    return step_s / np.concatenate([step_s[:1], step_s[:-1]])


def rooms(model: Model, gpu: Gpu, context: Real, cases: list[tuple[Real, Real, Real, int]]) -> Room:
    """``room`` in several cases at once: (GPUs, bytes per cached value, bytes per weight, 1 where every head
    has its own cache)."""
    found = [
        room(model, gpu, tp, context, kv, weight, head_copies=1.0 + own * (own_heads(model) - 1.0))
        for tp, kv, weight, own in cases
    ]
    return Room(*(np.stack([column * 1.0 for column in columns]) for columns in zip(*found)))


def filled_bytes(held: Room, users: Real) -> Real:
    """Bytes in use on each GPU with this many users."""
    check.non_negative(users=users)
    return held.weights_bytes + users * held.user_bytes


def token_bytes(model: Model, kv_value_bytes: Real = 2.0) -> Real:
    """Bytes of one token's cache, over all GPUs."""
    return memory.kv_bytes_per_token(shape(model), kv_value_bytes)


def user_bytes(model: Model, context: Real, kv_value_bytes: Real = 2.0) -> Real:
    """Bytes of one user's cache, over all GPUs; layers with a window keep only the window."""
    return memory.kv_bytes(shape(model), context, 1.0, kv_value_bytes)


def saves_from(model: Model, other: Model, kv_value_bytes: Real = 2.0) -> Real:
    """The context from which on a user of this model, with states of fixed size, keeps less than one of
    another without: state / (difference of what a token takes). Neither has windows, and the other's tokens
    take more."""
    gained = token_bytes(other, kv_value_bytes) - token_bytes(model, kv_value_bytes)
    if not check.is_trusted():
        check.positive(**{"the other's bytes a token, beyond this model's,": gained})
    return shape(model).state_bytes / gained


TOGETHER = 8192.0  # tokens of the prompts that are read in one step, at most


# -- many layouts of a fleet at once -------------------------------------------------------------------------
class FullReplica(NamedTuple):
    """A replica that is kept full: how long every user waits for the next token, and the throughput of each
    GPU."""

    batch: Real  # users at once: the requested number, or as many as the cache holds
    token_s: Real  # from one of a user's tokens to the next
    tokens_per_s_per_gpu: Real
    first_s: Real  # prefill of one prompt on an idle replica


def steady(
    model: Model,
    at: Machine,
    tp: Real,
    batch: Real,
    prompt: Real,
    output: Real,
    kv_value_bytes: Real = 2.0,
    weight_bytes: Real = 2.0,
) -> FullReplica:
    """Continuous batching in its steady state, as ``inference.infer`` counts it: contexts average prompt +
    output/2, and every token's step also pays its share of the prefills that refill the batch, batch ·
    prefill / output. The prompts that arrive during a step are read together, up to ``TOGETHER`` tokens of
    them, because a short prompt alone would read all weights for few tokens.

    If not even one user fits, nothing is served.
    """
    if not check.is_trusted():
        check.positive(prompt=prompt, output=output)
    with check.trusted():
        held = room(model, at.gpu, tp, prompt + output, kv_value_bytes, weight_bytes).users
        batch = ops.maximum(1.0, ops.minimum(batch, held))
        first = inference.prefill(model, at, tp, 1, prompt, weight_precision=weight_bytes)
        step = split(model, at, tp, batch, prompt + output / 2.0, kv_value_bytes, weight_bytes)
        few = ops.maximum(1.0, ops.minimum(TOGETHER / prompt, batch / output))
        read_s = inference.prefill(model, at, tp, few, prompt, weight_precision=weight_bytes).total_s / few
        token_s = step.total_s + batch * read_s / output
        brings = ops.where(held >= 1.0, batch / (token_s * tp), 0.0)
        return FullReplica(batch + 0.0 * brings, token_s + 0.0 * brings, brings, first.total_s + 0.0 * tp)


# users of a replica that are tried: every number as long as one more user matters, then in steps of a twelfth
USERS = np.unique(np.round(np.concatenate([np.arange(1.0, 97.0), np.geomspace(96, 4096, 48)])))

AROUND = np.arange(-3.0, 5.0)


def users_within(target_s: Real, token_s: Real, batch: Real) -> Real:
    """For each target and each row of a grid, the most users with whom tokens still come within the target:
    interpolated linearly between the grid's users, 0 where even the fewest are too slow. Rows of ``token_s``
    never decrease."""
    target_s = np.reshape(target_s, (-1, 1, 1))
    steps_s = token_s[:, 1:] - token_s[:, :-1]
    done = np.clip(
        (target_s - token_s[None, :, :-1]) / np.where(steps_s > 0, steps_s, 1.0)[None, :, :], 0.0, 1.0
    )
    users = batch[:, 0] + np.sum(done * (batch[:, 1:] - batch[:, :-1])[None, :, :], axis=2)
    return np.where(target_s[:, :, 0] >= token_s[None, :, 0], users, 0.0)


def best_within(target_s: Real, token_s: Real, batch: Real, tp: Real) -> Real:
    """For each target, the highest throughput per GPU that any row's users reach within it, in tokens per
    second; 0 where none does.

    ``token_s`` and ``batch`` have one row for each degree in ``tp``, with ascending users.
    """
    users = users_within(target_s, token_s, batch)
    target_s = np.reshape(target_s, (-1, 1))
    as_many_as_may = np.max(users / (np.minimum(target_s, token_s[None, :, -1]) * tp[None, :]), axis=1)
    brings = np.ravel(
        batch / (token_s * tp[:, None])
    )  # where prompts take most of the time, fewer users may have a higher throughput
    return np.maximum(
        as_many_as_may, np.max(np.where(np.ravel(token_s)[None, :] <= target_s, brings[None, :], 0.0), axis=1)
    )


def steady_within(
    target_s: Real,
    grid: FullReplica,
    model: Model,
    at: Machine,
    tp: Real,
    prompt: Real,
    output: Real,
    kv_value_bytes: Real = 2.0,
    weight_bytes: Real = 2.0,
) -> FullReplica:
    """Each degree's best replica within a target: a whole number of users, at most as many as the target
    allows.

    ``grid`` is ``steady`` for these degrees (rows) and ``USERS``. The number of users is interpolated
    linearly between the grid's points. Since the result may be off by a few, a few more and a few fewer users
    are tried as well. Rows that cannot serve have a throughput of 0.
    """
    serving = grid.tokens_per_s_per_gpu > 0
    users = users_within(target_s, grid.token_s, np.where(serving, grid.batch, 0.0))[0]
    tried = steady(
        model,
        at,
        tp[:, None],
        ops.maximum(1.0, ops.floor(users)[:, None] + AROUND[None, :]),
        prompt,
        output,
        kv_value_bytes,
        weight_bytes,
    )
    batch, token_s, brings = (
        np.concatenate([of_grid, of_tried], axis=1)
        for of_grid, of_tried in zip(
            grid[:3], (tried.batch, tried.token_s, np.where(serving[:, :1], tried.tokens_per_s_per_gpu, 0.0))
        )
    )
    brings = np.where(token_s <= target_s, brings, 0.0)
    most = np.max(brings, axis=1)
    best = (brings >= most[:, None]) & (brings > 0)
    return FullReplica(
        np.max(np.where(best, batch, 0.0), axis=1),
        np.max(np.where(best, token_s, 0.0), axis=1),
        most,
        grid.first_s[:, 0],
    )


def dollars_per_million(price_per_hour: Real, tokens_per_s_per_gpu: Real) -> Real:
    """Dollars per 10⁶ tokens at this price per GPU-hour."""
    check.positive(price_per_hour=price_per_hour, tokens_per_s_per_gpu=tokens_per_s_per_gpu)
    return price_per_hour / 3600.0 / tokens_per_s_per_gpu * 1e6


def gpus_for(traffic_tokens_per_s: Real, tokens_per_s_per_gpu: Real, tp: Real) -> Real:
    """The GPUs, in whole replicas of ``tp``, that this traffic needs."""
    check.positive(traffic_tokens_per_s=traffic_tokens_per_s, tokens_per_s_per_gpu=tokens_per_s_per_gpu)
    return tp * ops.ceil(traffic_tokens_per_s / (tokens_per_s_per_gpu * tp))


def replicas(gpus: Real, tp: Real) -> Real:
    """The number of whole replicas of ``tp`` GPUs in a fleet."""
    return ops.floor(gpus / tp)


def fleet_tokens_per_s(gpus: Real, tp: Real, tokens_per_s_per_gpu: Real) -> Real:
    """The throughput of a fleet's whole replicas; left-over GPUs do nothing."""
    return replicas(gpus, tp) * tp * tokens_per_s_per_gpu
