"""Serving under traffic: the cost of an instance's steps, a run of requests, and how to size two pools.

The times come from ``inference.py``, the event-by-event run from ``serving_events.py``. An instance is ``tp``
GPUs that hold one copy of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.mechanism import memory
from engine.mechanism.shape import shape
from engine.serving import decoding, equilibrium, inference, serving_events, stages, wide
from engine.serving.inference import BYTES_PER_VALUE

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.mechanism.matmul import Chip
    from engine.mechanism.shape import Shape
    from engine.step.layout import Machine

ROWS = np.array([1.0, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384])
OF_INSTANCES = ("busy_s", "prefilling_s")  # columns of a run that have no entry for each request
NEVER_S = 1e30  # the time of something impossible
USERS = np.concatenate(
    [np.arange(1.0, 513.0), np.round(np.geomspace(520, 4096, 60))]
)  # batches to choose from
USUAL_BATCH = 64.0  # sequences for which the reading of a cached token is computed
MODES = {
    "prefill_first": serving_events.PREFILL_FIRST,
    "chunked": serving_events.CHUNKED,
    "disaggregated": serving_events.DISAGGREGATED,
}


class Costs(NamedTuple):
    """The costs of one instance's steps."""

    rows: np.ndarray  # tokens that a step computes
    rows_s: np.ndarray  # … and the step's seconds, without attention over the cache
    pair_s: float  # per pair of a new token and one that it sees
    cached_s: float  # for reading one cached token
    capacity: float  # cached tokens that fit beside the weights
    kv_bytes: float  # per token, over all GPUs of the instance


def costs(
    model: Model,
    at: Machine,
    tp: Real,
    prompt: Real = 1024,
    kv_precision: str = "bf16",
    weight_precision: str | Real | None = None,
    all_reduce: str = "auto",
    context: Real | None = None,
    pp: Real = 1,
) -> Costs:
    """The costs of an instance's steps. ``prompt`` is the length for which attention's efficiency is
    computed, ``context`` that of a cache which a decode step reads: ``context_of`` the traffic (the prompt's
    length, where no answers are written).

    With ``pp`` stages as many batches go round, each with requests of its own, and these are the costs of
    one: its step takes its turn on all stages.

    Leaves out windows shorter than the context, that the attention of a chunk fills the chip less than that
    of a whole prompt, and that a batch in a pipeline waits for those that take longer.
    """
    check.whole(tp=tp, pp=pp)
    size, chip, tp, pp = shape(model), at.chip, tp * 1.0, pp * 1.0
    held = prompt if context is None else context
    with check.trusted():
        value_bytes = BYTES_PER_VALUE[kv_precision]
        start_s, cached_s = _cached_s(size, held, tp, value_bytes, chip)
        rows_s = (
            inference.products_s(size, ROWS, tp, inference.stored_bytes(at, weight_precision), chip)
            + inference.head_s(size, ops.minimum(ROWS, inference.HEAD_ROWS), tp, chip)
            + start_s
            + inference.other_s(size, ROWS, tp, chip)
            + inference.communication_s(size, ROWS, tp, all_reduce, at.wires)
            + stages.handed_s(size, ROWS, tp, pp, at.wires)
        )
        weights = stages.weight_bytes_per_gpu(model, at, tp, pp, weight_precision)
        pair_s = _pair_s(size, prompt, start_s, tp, chip)
        return _costs(model, at, rows_s, pair_s, cached_s, weights, kv_precision, tp, pp)


def spread_costs(
    model: Model,
    at: Machine,
    tp: Real,
    dp: Real,
    prompts: bool,
    prompt: Real = 1024,
    kv_precision: str = "bf16",
    weight_precision: str | Real | None = None,
    context: Real | None = None,
) -> Costs:
    """The same for one of the ``dp`` groups of ``tp`` GPUs that share experts (``wide``), if the others have
    as much to do; for a replica that reads ``prompts``, or for one that writes answers.

    What hides the wires is all of a step's work, so attention is counted for prompts and caches of the given
    lengths when a step is cut in halves.
    """
    check.whole(tp=tp, dp=dp)
    size, chip, tp, dp = shape(model), at.chip, tp * 1.0, dp * 1.0
    held = prompt if context is None else context
    with check.trusted():
        start_s, cached_s = _cached_s(size, held, tp, BYTES_PER_VALUE[kv_precision], chip)
        pair_s = _pair_s(size, prompt, start_s, tp, chip)
        sees_s = ROWS * (0.5 * prompt * pair_s if prompts else held * cached_s)
        stored = inference.stored_bytes(at, weight_precision)
        step_s = wide.step_s(size, ROWS, start_s + sees_s, tp, dp, prompts, stored, chip, at.wires)
        weights = wide.weight_bytes_per_gpu(model, at, tp, dp, weight_precision)
        return _costs(model, at, step_s - sees_s, pair_s, cached_s, weights, kv_precision, tp, 1.0)


def _cached_s(size: Shape, held: Real, tp: Real, value_bytes: Real, chip: Chip) -> tuple[Real, Real]:
    """What a step's attention takes to start, and for each cached token that it reads."""
    start_s, reading_s = (
        inference.attention_s(size, batch, cached, tp, value_bytes, chip)
        for batch, cached in ((1.0, 1.0), (USUAL_BATCH, held * 1.0))
    )
    return start_s, (reading_s - start_s) / (USUAL_BATCH * held)


def _pair_s(size: Shape, prompt: Real, start_s: Real, tp: Real, chip: Chip) -> Real:
    of_prompt_s = inference.prompt_attention_s(size, 1.0, prompt * 1.0, tp, chip)
    return (of_prompt_s - start_s) / (0.5 * prompt * prompt)


def _costs(
    model: Model,
    at: Machine,
    rows_s: Real,
    pair_s: Real,
    cached_s: Real,
    weights: Real,
    kv_precision: str,
    tp: Real,
    pp: Real,
) -> Costs:
    """With the tokens for which ``weights`` on each GPU leave room, of which each of ``pp`` batches has its
    part; copies of the key and value heads are not sent twice."""
    size = shape(model)
    kv = memory.kv_bytes_per_token(size, BYTES_PER_VALUE[kv_precision])
    shared = kv / inference.kv_shards(size, tp) * stages.largest_share(size, pp) * pp
    free = ops.maximum(0.0, memory.server_bytes(at.gpu) - weights)
    return Costs(ROWS, rows_s, pair_s, cached_s, ops.floor(free / shared), kv)


class Traffic(NamedTuple):
    """Requests as they arrive: a Poisson stream with log-normal lengths."""

    requests: Real
    per_s: float
    prompt: float  # medians, in tokens
    output: float
    prompt_spread: float = 0.0  # standard deviation of the logarithm
    output_spread: float = 0.0
    seed: int = 0


def context_of(traffic: Traffic) -> Real:
    """Cached tokens that a decode step reads for each answer, on average (``equilibrium.context_tokens``)."""
    return equilibrium.context(traffic.prompt, traffic.prompt_spread, traffic.output, traffic.output_spread)[
        "tokens"
    ]


class Service(NamedTuple):
    """How the requests are served."""

    mode: int  # one of MODES' values
    instances: int  # total number
    prefill_instances: int = 0  # … of them for prefill only, with separate pools
    budget: float = 2048  # the most tokens in a step
    most_running: float = 256  # the most sequences that decode together
    wire_bytes_per_s: float = 50e9  # between instances, all GPUs of one together
    one_queue: bool = False  # for all instances that prefill; else each request is sent to one on arrival
    warm: bool = True  # a short run begins with as many answers on their way as the load makes; else idle
    swap_bytes_per_s: float = 0.0  # to host memory, for preempted requests; 0 drops their caches


def run(at: Costs, traffic: Traffic, service: Service) -> dict:
    """Each request's times, and each instance's busy seconds, as columns; see ``serving_events.served``.

    Caches are sent over a wire one after another, once the whole prompt is processed. A request goes to the
    instance with the fewest tokens left to do.
    """
    if not check.is_trusted():
        check.whole(requests=traffic.requests, instances=service.instances)
        check.between(1, serving_events.MOST_REQUESTS, requests=traffic.requests)
        check.between(1, serving_events.MOST_INSTANCES, instances=service.instances)
        check.positive(
            per_s=traffic.per_s,
            prompt=traffic.prompt,
            output=traffic.output,
            budget=service.budget,
            wire_bytes_per_s=service.wire_bytes_per_s,
            capacity=at.capacity,
        )
        check.non_negative(prompt_spread=traffic.prompt_spread, output_spread=traffic.output_spread)
        check.whole(most_running=service.most_running)
        if service.mode == serving_events.DISAGGREGATED:
            check.between(1, service.instances - 1, prefill_instances=service.prefill_instances)
    return serving_events.served(
        traffic.requests,
        traffic.per_s,
        traffic.prompt,
        traffic.prompt_spread,
        traffic.output,
        traffic.output_spread,
        traffic.seed,
        *_how(at, service),
        balance(at, traffic, service)["running"] if service.warm else 0.0,
    )


def _how(at: Costs, service: Service) -> tuple:
    """What the programs of a server take of its costs and its service."""
    return (
        at.rows,
        at.rows_s,
        at.pair_s,
        at.cached_s,
        service.mode,
        service.instances,
        service.prefill_instances,
        service.budget,
        service.most_running,
        at.capacity,
        at.kv_bytes / service.wire_bytes_per_s,
    )


def balance(at: Costs, traffic: Traffic, service: Service) -> dict[str, Any]:
    """What the service can serve at most, and how many answers a replica writes at once under this traffic;
    see ``equilibrium.balance``."""
    return equilibrium.balance(
        traffic.per_s,
        traffic.prompt,
        traffic.prompt_spread,
        traffic.output,
        traffic.output_spread,
        *_how(at, service),
    )


def underway(at: Costs, traffic: Traffic, service: Service) -> int:
    """The answers on their way at any time under this traffic, over all instances; none if a run is to begin
    idle."""
    apart = service.mode == serving_events.DISAGGREGATED
    decoders = service.instances - (service.prefill_instances if apart else 0)
    return decoders * round(balance(at, traffic, service)["running"]) if service.warm else 0


class Felt(NamedTuple):
    """The latencies that each request's reader notices; -1 where there is none (a single token, or
    refused)."""

    ttft_s: np.ndarray  # time to first token
    tpot_s: np.ndarray  # time per output token after the first
    pause_s: np.ndarray  # longest pause between two tokens


def felt(columns: dict) -> Felt:
    """The latencies of a run's requests."""
    served = columns["last_s"] >= 0
    more = columns["output"] > 1
    tpot_s = (columns["last_s"] - columns["first_s"]) / ops.maximum(1.0, columns["output"] - 1.0)
    return Felt(
        np.where(served, columns["first_s"] - columns["came_s"], -1.0 + 0 * columns["came_s"]),
        np.where(served & more, tpot_s, -1.0 + 0 * columns["came_s"]),
        np.where(served & more, columns["pause_s"], -1.0 + 0 * columns["came_s"]),
    )


def percentile(values: Real, share: Real) -> Real:
    """The value below which this share of them lies; see ``serving_events.percentile``."""
    return serving_events.percentile(values, share)["value"]


def met(latencies: Felt, ttft_s: Real, tpot_s: Real) -> Real:
    """1 for each request that meets both targets, 0 for the others."""
    check.positive(ttft_s=ttft_s, tpot_s=tpot_s)
    both = (latencies.ttft_s >= 0) & (latencies.ttft_s <= ttft_s) & (latencies.tpot_s <= tpot_s)
    return np.where(both, 1.0, 0.0)


def attained(latencies: Felt, ttft_s: Real, tpot_s: Real, requests: Real) -> Real:
    """The share of requests that meet both targets (DistServe's attainment, arXiv:2401.09670 section 2.3)."""
    check.positive(requests=requests)
    return np.sum(met(latencies, ttft_s, tpot_s)) / requests


def whole_or_in_chunks_s(at: Costs, prompt: Real, chunk: Real) -> Real:
    """Seconds to process a prompt alone, at most ``chunk`` tokens per step: every chunk pays for its own
    products and for attention to everything before it. Leaves out that attention reads the cache again for
    each chunk, which is hidden by the products of a chunk of some hundreds of tokens."""
    check.whole(prompt=prompt, chunk=chunk)
    seconds, done = 0.0, 0
    while done < prompt:
        tokens = min(chunk, prompt - done)
        seconds += (
            serving_events.interpolated(tokens, at.rows, at.rows_s) + tokens * (done + tokens / 2) * at.pair_s
        )
        done += tokens
    return seconds


# -- in closed form ------------------------------------------------------------------------------------------
def m_d_1_wait_s(per_s: Real, service_s: Real) -> Real:
    """Mean wait for a server with fixed service time: ρ·S/(2·(1 − ρ)), ρ = rate·S below 1 (Pollaczek,
    Khinchine)."""
    check.positive(per_s=per_s, service_s=service_s)
    check.between(0, 1 - 1e-12, load=per_s * service_s)
    load = per_s * service_s
    return load * service_s / (2.0 * (1.0 - load))


def wait_within_s(per_s: Real, service_s: Real, late: Real = 0.1, spread: Real = 0.0) -> Real:
    """The wait that all but this share of requests stay within, at one server: (w/ρ)·ln(ρ/late), as if those
    that wait at all, a share ρ, did so for an exponential time (exact for M/M/1; Kingman 1961 near ρ = 1).

    w is the mean wait of M/G/1; ``spread`` is the standard deviation of the service time's logarithm. Within
    a tenth of an executed queue for ρ from 0.5 on.
    """
    load = per_s * service_s
    mean_s = m_d_1_wait_s(per_s, service_s) * np.exp(spread**2)
    return np.maximum(0.0, mean_s / load * np.log(np.maximum(load, late) / late))


def prefill_rate_within(prefill_s: float, ttft_s: float, late: float = 0.1, spread: float = 0.0) -> float:
    """Requests per second that one replica can prefill so that all but this share wait and are read within
    the target, by bisection on ``wait_within_s``; 0 where a prompt alone takes longer. Leaves out that the
    prompt itself may be a long one."""
    check.positive(prefill_s=prefill_s, ttft_s=ttft_s)
    if prefill_s >= ttft_s:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(50):
        load = (low + high) / 2
        within = prefill_s + wait_within_s(load / prefill_s, prefill_s, late, spread) <= ttft_s
        low, high = (load, high) if within else (low, load)
    return low / prefill_s


def tokens_per_verification(accepted: Real, drafted: Real) -> Real:
    """Expected tokens per speculative step: (1 − aᵏ⁺¹)/(1 − a), if each of k drafted tokens is accepted with
    probability a (Leviathan et al. 2023, arXiv:2211.17192 eq. 1). Includes the token that the large model
    itself adds."""
    check.between(0, 1, accepted=accepted)
    check.non_negative(drafted=drafted)
    rest = ops.maximum(1e-9, 1.0 - accepted)
    return ops.where(accepted > 1.0 - 1e-9, drafted + 1.0, (1.0 - accepted ** (drafted + 1.0)) / rest)


def speculative_speed_up(accepted: Real, drafted: Real, draft_cost: Real) -> Real:
    """… over one token per step, if a draft token costs ``draft_cost`` of a step of the large model (Theorem
    3.8).

    Valid while verifying k + 1 tokens takes no longer than one, as in a decode step far below the critical
    batch.
    """
    check.non_negative(draft_cost=draft_cost)
    return tokens_per_verification(accepted, drafted) / (drafted * draft_cost + 1.0)


def speculative_gain(
    model: Model,
    draft: Model,
    at: Machine,
    tp: Real,
    batch: Real,
    context: Real,
    accepted: Real,
    drafted: Real,
) -> Real:
    """The same for ``batch`` sequences at once, with a draft model on the same GPUs, from the steps' own
    times.

    A verification computes batch·(k + 1) tokens, and reads each cache once for the k + 1 tokens of its
    sequence. Above 1 it pays off. Leaves out sampling, and that the sequences of a batch advance unevenly.
    """
    tokens = tokens_per_verification(accepted, drafted)
    checked = drafted + 1.0
    plain_s = decoding.split(model, at, tp, batch, context).total_s
    check_s = decoding.split(model, at, tp, batch * checked, context / checked).total_s
    return tokens * plain_s / (drafted * decoding.split(draft, at, tp, batch, context).total_s + check_s)


def prefill_share(prompt_s: Real, output_s: Real) -> Real:
    """The share of the GPUs that should prefill for both pools to be equally busy.

    ``prompt_s`` are the GPU-seconds of one request's prefill, ``output_s`` those of its decoding in a full
    batch.
    """
    check.positive(prompt_s=prompt_s, output_s=output_s)
    return prompt_s / (prompt_s + output_s)


# -- reading a run -------------------------------------------------------------------------------------------
class Phases(NamedTuple):
    """The times at which each request arrived, started, gave its first token, had its cache sent, and
    finished, ascending; and its longest pause."""

    came_s: np.ndarray
    started_s: np.ndarray
    first_s: np.ndarray
    moved_s: np.ndarray
    last_s: np.ndarray
    paused_s: np.ndarray  # start of its longest pause between two tokens, after its cache's transfer …
    resumed_s: np.ndarray  # … and end of it


def phases(columns: dict) -> Phases:
    """The times of a run's requests; an event that did not happen (a cache transfer, or anything after a
    refusal) takes no time."""
    came = columns["came_s"]
    started = np.maximum(came, columns["started_s"])
    first = np.maximum(started, columns["first_s"])
    moved = np.maximum(first, columns["moved_s"])
    resumed = np.maximum(moved, columns["pause_end_s"])
    paused = np.maximum(moved, columns["pause_end_s"] - columns["pause_s"])
    return Phases(
        came,
        started,
        first,
        moved,
        np.maximum(moved, columns["last_s"]),
        np.minimum(paused, resumed),
        resumed,
    )


def lanes(at: Real) -> Real:
    """How many requests are drawn before each one, if those of one replica are grouped, in order of arrival;
    ``at`` is each request's replica."""
    number = np.arange(len(at))
    earlier = (at[None, :] == at[:, None]) & (number[None, :] < number[:, None])
    return np.sum(np.where((at[None, :] < at[:, None]) | earlier, 1.0, 0.0), axis=1)


def moving_s(columns: dict) -> Real:
    """Seconds from a request's first token until its cache has been sent; -1 where it was not."""
    return np.where(columns["moved_s"] >= 0, columns["moved_s"] - columns["first_s"], -1.0)


def since(columns: dict, begin: int, end: int) -> dict:
    """The columns of a run's requests from one to before another, without those of its instances."""
    return {name: column[begin:end] for name, column in columns.items() if name not in OF_INSTANCES}


# -- two pools, in closed form -------------------------------------------------------------------------------
def prefill_rate(prefill_s: Real, ttft_s: Real) -> Real:
    """Requests per second that one replica can prefill with a mean wait that meets the target: S +
    ρ·S/(2(1−ρ)) = T, so ρ = 2(T−S)/(2(T−S)+S), and the rate is ρ/S (M/D/1). 0 where a prompt alone takes
    longer than the target."""
    check.positive(prefill_s=prefill_s, ttft_s=ttft_s)
    spare_s = ops.maximum(0.0, ttft_s - prefill_s)
    return 2.0 * spare_s / (2.0 * spare_s + prefill_s) / prefill_s


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
    goodput_per_s: np.ndarray  # the smallest of the three


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
    """The rates of one replica alone in each role, for identical requests; ``users`` are the batches to
    try."""
    with check.trusted():
        held = decoding.room(model, at.gpu, tp, prompt + output).users
        together = ops.maximum(1.0, ops.minimum(users, held))  # limited by the caches that fit
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


class Split(NamedTuple):
    """The number of replicas that prefill, and the requests per second of all replicas together."""

    prefillers: float
    goodput_per_s: float


def best_split(of_one: Rates, replicas: Real) -> Split:
    """The best of all splits with at least one replica on each side."""
    check.whole(replicas=replicas)
    check.between(2, 1e6, replicas=replicas)
    prefillers = np.arange(1.0, replicas)
    goodput = pools(
        prefillers, replicas, of_one.prefill_per_s, of_one.wire_per_s, of_one.decode_per_s
    ).goodput_per_s
    return Split(prefillers[np.argmax(goodput)], np.max(goodput))


class Bargain(NamedTuple):
    """The same replicas shared and split, under the same targets."""

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
    """The gain of a split: with t(u) ≤ T a decoding replica can take more users than a shared one with t(u) +
    u·S/n ≤ T."""
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
