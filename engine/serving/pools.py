"""Two pools in closed form: what replicas that only prefill or only decode can serve, and the best split into
the two.

Requests are all alike and come at a steady rate; the waits are those of ``queues.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.serving import decoding, inference
from engine.serving.queues import prefill_rate

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.step.layout import Machine

NEVER_S = 1e30  # the time of something impossible
USERS = np.concatenate(
    [np.arange(1.0, 513.0), np.round(np.geomspace(520, 4096, 60))]
)  # batches to choose from


def prefill_share(prompt_s: Real, output_s: Real) -> Real:
    """The share of the GPUs that should prefill for both pools to be equally busy.

    ``prompt_s`` are the GPU-seconds of one request's prefill, ``output_s`` those of its decoding in a full
    batch.
    """
    check.positive(prompt_s=prompt_s, output_s=output_s)
    return prompt_s / (prompt_s + output_s)


def answer_rate(users: Real, token_s: Real, output: Real, tpot_s: Real) -> Real:
    """Answers per second of one replica with this many users, 0 where their tokens miss the target; the
    maximum over the last axis."""
    check.positive(users=users, token_s=token_s, output=output, tpot_s=tpot_s)
    return np.max(np.where(token_s <= tpot_s, users / (token_s * output), 0.0), axis=-1)


def wire_rate(cache_bytes: Real, wire_bytes_per_s: Real) -> Real:
    """Caches per second that one replica sends, one after another."""
    check.positive(cache_bytes=cache_bytes, wire_bytes_per_s=wire_bytes_per_s)
    return wire_bytes_per_s / cache_bytes


def exposed_transfer_s(cache_bytes: Real, wire_bytes_per_s: Real, prefill_s: Real, layers: Real) -> Real:
    """How long after the end of the prefill a cache sent layer by layer arrives: the time of the last layer's
    share, or, on a wire slower than the prefill, of all that has not been sent by then: max(c/(L·W), S/L +
    c/W − S) (Splitwise, arXiv:2311.18677 section 4.3).

    Leaves out the start-up of each layer's transfer.
    """
    check.positive(
        cache_bytes=cache_bytes, wire_bytes_per_s=wire_bytes_per_s, prefill_s=prefill_s, layers=layers
    )
    sending_s = cache_bytes / wire_bytes_per_s
    return ops.maximum(sending_s / layers, prefill_s / layers + sending_s - prefill_s)


class Pools(NamedTuple):
    """Requests per second that each split of the replicas could serve, and what limits it."""

    prefill_per_s: np.ndarray
    wire_per_s: np.ndarray
    decode_per_s: np.ndarray
    goodput_per_s: np.ndarray  # the smallest of the three rates


def pools(
    prefillers: Real, replicas: Real, prefill_per_s: Real, wire_per_s: Real, decode_per_s: Real
) -> Pools:
    """``prefillers`` of ``replicas`` process prompts and send their caches, the others decode; rates are per
    replica."""
    check.positive(replicas=replicas)
    ours = (
        prefillers * prefill_per_s,
        prefillers * wire_per_s,
        ops.maximum(0.0, replicas - prefillers) * decode_per_s,
    )
    return Pools(*ours, ops.minimum(ops.minimum(ours[0], ours[1]), ours[2]))


class Rates(NamedTuple):
    """Requests per second of one replica within its targets, in each of its possible roles."""

    prefill_per_s: float
    wire_per_s: float
    decode_per_s: float
    shared_per_s: float  # prompts and answers on the same GPUs
    prefill_s: float
    cache_bytes: float  # per prompt


def rates(
    model: Model,
    at: Machine,
    tp: Real,
    users: Real,
    prompt: Real,
    output: Real,
    ttft_s: Real,
    tpot_s: Real,
    wire_bytes_per_s: Real,
) -> Rates:
    """The rates of a single replica in each role, for identical requests; ``users`` are the batch sizes to
    try."""
    with check.trusted():
        held = decoding.room(model, at.gpu, tp, prompt + output).users
        together = ops.maximum(1.0, ops.minimum(users, held))  # at most as many as have room for their caches
        step_s = decoding.split(model, at, tp, together, prompt + output / 2.0).total_s
        fitting = np.where(held >= 1.0, step_s, NEVER_S)
        shared = decoding.steady(model, at, tp, users, prompt, output)
        prefill_s = inference.prefill(model, at, tp, 1, prompt).total_s
        cache_bytes = decoding.user_bytes(model, prompt)
        return Rates(
            prefill_rate(prefill_s, ttft_s),
            wire_rate(cache_bytes, wire_bytes_per_s),
            answer_rate(together, fitting, output, tpot_s),
            np.where(
                prefill_s <= ttft_s,
                np.max(np.where(shared.token_s <= tpot_s, shared.tokens_per_s_per_gpu, 0.0)),
                0.0,
            )
            * tp
            / output,
            prefill_s,
            cache_bytes,
        )


class PoolSplit(NamedTuple):
    """The number of replicas that prefill, and the requests per second of all replicas together."""

    prefillers: float
    goodput_per_s: float


def best_split(of_one: Rates, replicas: Real) -> PoolSplit:
    """The best of all splits with at least one replica on each side."""
    check.whole(replicas=replicas)
    check.between(2, 1e6, replicas=replicas)
    prefillers = np.arange(1.0, replicas)
    goodput = pools(
        prefillers, replicas, of_one.prefill_per_s, of_one.wire_per_s, of_one.decode_per_s
    ).goodput_per_s
    return PoolSplit(prefillers[np.argmax(goodput)], np.max(goodput))


class Bargain(NamedTuple):
    """What the same replicas serve under the same targets, shared and split into two pools."""

    users_sharing: float  # answers at once on one replica …
    users_apart: float
    sharing_per_s: float  # … and requests per second of all replicas
    apart_per_s: float


def bargain(
    model: Model,
    at: Machine,
    tp: Real,
    prompt: Real,
    output: Real,
    ttft_s: Real,
    tpot_s: Real,
    replicas: Real,
    wire_bytes_per_s: Real = 50e9,
) -> Bargain:
    """The gain of a split. A replica that only decodes may have as many users u as keep t(u) ≤ T; a shared
    one must keep t(u) + u·S/n ≤ T, which allows fewer."""
    found = rates(model, at, tp, USERS, prompt, output, ttft_s, tpot_s, wire_bytes_per_s)
    shared = decoding.steady(model, at, tp, USERS, prompt, output)
    users = np.minimum(USERS, decoding.room(model, at.gpu, tp, prompt + output).users)
    step_s = decoding.split(model, at, tp, np.maximum(1.0, users), prompt + output / 2.0).total_s
    return Bargain(
        np.max(np.where(shared.token_s <= tpot_s, shared.batch, 0.0)),
        np.max(np.where(step_s <= tpot_s, users, 0.0)),
        replicas * found.shared_per_s,
        best_split(found, replicas).goodput_per_s,
    )
