"""Serving under traffic: what an instance's steps cost, a run of requests, and how two pools should be sized.

The seconds come from ``inference.py``; the run, event by event, from ``serving_events.py``. An instance is ``tp`` GPUs that
hold one copy of the model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine import check, decoding, inference, memory, ops, serving_events
from engine.inference import BYTES_PER_VALUE
from engine.matmul import fused_attention_s, product_s, stream_s
from engine.shape import shape

ROWS = np.array([1.0, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384])
NEVER_S = 1e30                  # the time of what cannot be
USERS = np.concatenate([np.arange(1.0, 513.0), np.round(np.geomspace(520, 4096, 60))])        # batches to choose from
HEAD_ROWS = 256.0               # rows of the output layer at most: a prompt needs it for its last token alone
MODES = {"prefill_first": serving_events.PREFILL_FIRST, "chunked": serving_events.CHUNKED,
         "disaggregated": serving_events.DISAGGREGATED}


class Costs(NamedTuple):
    """What the steps of one instance take."""

    rows: np.ndarray            # tokens that a step computes
    rows_s: np.ndarray          # … and its seconds without attention over what is cached
    pair_s: float               # for each pair of a new token and one that it sees
    cached_s: float             # for reading one cached token
    capacity: float             # cached tokens that fit beside the weights
    kv_bytes: float             # of a token, on all GPUs of the instance


def costs(model, at, tp, prompt=1024, kv_precision="bf16", weight_precision=None, all_reduce="auto") -> Costs:
    """An instance's steps. ``prompt`` says for which length the efficiency of attention is taken.

    Leaves out windows shorter than the context, and that a chunk's attention fills the chip less than a whole prompt's.
    """
    check.whole(tp=tp)
    size, chip, tp = shape(model), at.chip, tp * 1.0
    with check.trusted():
        head_s = product_s(ops.minimum(ROWS, HEAD_ROWS), size.vocab / tp, size.hidden, 1.0, chip.wide_flops_per_s,
                           chip.wide_bytes, 2.0, chip)
        rows_s = (inference.products_s(size, ROWS, tp, inference.stored_bytes(at, weight_precision), chip) + head_s
                  + inference.other_s(size, ROWS, tp, chip)
                  + inference.communication_s(size, ROWS, tp, all_reduce, at.wires))
        pair_s = size.layers * fused_attention_s(size.heads / tp, prompt, size.qk_dim, size.value_dim, 1.0, chip)
        kv = memory.kv_bytes_per_token(size, BYTES_PER_VALUE[kv_precision])
        shared = kv / inference.kv_shards(size, tp)
        weights = inference.weight_bytes_per_gpu(model, at, tp, weight_precision)
        free = ops.maximum(0.0, at.gpu.hbm_bytes - memory.FRAMEWORK_BYTES - weights)
        # copies of the key and value heads are not sent twice
        return Costs(ROWS, rows_s, pair_s, stream_s(shared, chip), ops.floor(free / shared), kv)


class Traffic(NamedTuple):
    """Requests as they come: a Poisson stream with log-normal lengths."""

    requests: int
    per_s: float
    prompt: float               # medians, in tokens
    output: float
    prompt_spread: float = 0.0  # standard deviation of the logarithm
    output_spread: float = 0.0
    seed: int = 0


class Service(NamedTuple):
    """Who serves them, and how."""

    mode: int                   # one of MODES' values
    instances: int              # all of them
    prefill_instances: int = 0  # … of which only prefill, where the pools are apart
    budget: float = 2048        # tokens of a step, at most
    most_running: float = 256   # sequences that decode together, at most
    wire_bytes_per_s: float = 50e9      # from instance to instance, all its GPUs together


def run(at: Costs, traffic: Traffic, service: Service) -> dict:
    """Each request's times, and each instance's busy seconds, as columns; see ``serving_events.served``.

    Caches move over a wire one after another, once the whole prompt is through. A request goes to the instance that owes
    the fewest tokens.
    """
    if not check.is_trusted():
        check.whole(requests=traffic.requests, instances=service.instances)
        check.between(1, serving_events.MOST_REQUESTS, requests=traffic.requests)
        check.between(1, serving_events.MOST_INSTANCES, instances=service.instances)
        check.positive(per_s=traffic.per_s, prompt=traffic.prompt, output=traffic.output, budget=service.budget,
                       wire_bytes_per_s=service.wire_bytes_per_s, capacity=at.capacity)
        check.non_negative(prompt_spread=traffic.prompt_spread, output_spread=traffic.output_spread)
        check.whole(most_running=service.most_running)
        if service.mode == serving_events.DISAGGREGATED:
            check.between(1, service.instances - 1, prefill_instances=service.prefill_instances)
    return serving_events.served(
        traffic.requests, traffic.per_s, traffic.prompt, traffic.prompt_spread, traffic.output, traffic.output_spread,
        traffic.seed, at.rows, at.rows_s, at.pair_s, at.cached_s, service.mode, service.instances,
        service.prefill_instances, service.budget, service.most_running, at.capacity,
        at.kv_bytes / service.wire_bytes_per_s)


class Felt(NamedTuple):
    """What each request's reader feels; -1 where there is nothing to feel (one token, or refused)."""

    ttft_s: np.ndarray          # time to first token
    tpot_s: np.ndarray          # time per output token after the first
    pause_s: np.ndarray         # longest pause between two tokens


def felt(columns: dict) -> Felt:
    """Latencies of a run's requests."""
    served = columns["last_s"] >= 0
    more = columns["output"] > 1
    tpot_s = (columns["last_s"] - columns["first_s"]) / ops.maximum(1.0, columns["output"] - 1.0)
    return Felt(np.where(served, columns["first_s"] - columns["came_s"], -1.0 + 0 * columns["came_s"]),
                np.where(served & more, tpot_s, -1.0 + 0 * columns["came_s"]),
                np.where(served & more, columns["pause_s"], -1.0 + 0 * columns["came_s"]))


def percentile(values, share):
    """The value that a share of them stays below; see ``serving_events.percentile``."""
    return serving_events.percentile(values, share)["value"]


def attained(latencies: Felt, ttft_s, tpot_s, requests):
    """The share of requests that meet both targets (DistServe's attainment, arXiv:2401.09670 section 2.3)."""
    check.positive(ttft_s=ttft_s, tpot_s=tpot_s, requests=requests)
    met = (latencies.ttft_s >= 0) & (latencies.ttft_s <= ttft_s) & (latencies.tpot_s <= tpot_s)
    return np.sum(np.where(met, 1.0, 0.0)) / requests


class Outcome(NamedTuple):
    """A run of requests in a few numbers; "most" is what nine of ten stay within."""

    ttft_median_s: float
    ttft_most_s: float
    tpot_median_s: float
    tpot_most_s: float
    pause_median_s: float       # of each reader's longest pause between two tokens
    pause_most_s: float
    moving_median_s: float      # of a cache, from the first token until it has arrived; 0 where none moves


def outcome(columns: dict) -> Outcome:
    """What the readers of a run feel."""
    latencies = felt(columns)
    return Outcome(*(percentile(values, share) for values in latencies for share in (0.5, 0.9)),
                   percentile(moving_s(columns), 0.5))


def trial(model, at, tp, traffic: Traffic, service: Service) -> Outcome:
    """A run on instances of ``tp`` GPUs, in a few numbers; attention at the efficiency of prompts of 2,048 tokens."""
    return outcome(run(costs(model, at, tp, 2048.0), traffic, service))


class Trials(NamedTuple):
    """Several runs of the same plan, each with its own seed: means of what the readers feel."""

    felt: Outcome
    met: tuple                  # the share of requests that meet both targets, for each target of a token's time


def trials(model, at, tp, traffic: Traffic, service: Service, ttft_s, tpot_s, seeds=8) -> Trials:
    """``trial`` for so many seeds from the traffic's own on, in means; ``tpot_s`` are one target or several."""
    steps = costs(model, at, tp, 2048.0)
    runs = [run(steps, traffic._replace(seed=traffic.seed + n), service) for n in range(seeds)]
    met = [[attained(felt(columns), ttft_s, each_s, traffic.requests) for columns in runs] for each_s in np.atleast_1d(tpot_s)]
    return Trials(Outcome(*np.mean([outcome(columns) for columns in runs], axis=0)), tuple(np.mean(met, axis=1)))


def whole_or_in_chunks_s(at: Costs, prompt, chunk):
    """Seconds of a prompt that is read alone, at most ``chunk`` tokens in a step: every chunk pays for its own products and
    for attention to all that came before it. Leaves out that attention reads what is cached again for each chunk, which
    the products of a chunk of some hundreds of tokens hide."""
    check.whole(prompt=prompt, chunk=chunk)
    seconds, done = 0.0, 0
    while done < prompt:
        tokens = min(chunk, prompt - done)
        seconds += serving_events.interpolated(tokens, at.rows, at.rows_s) + tokens * (done + tokens / 2) * at.pair_s
        done += tokens
    return seconds


# -- in closed form --------------------------------------------------------------------------------------------------
def m_d_1_wait_s(per_s, service_s):
    """Mean wait before a server of fixed service time: ρ·S/(2·(1 − ρ)), ρ = rate·S below 1 (Pollaczek, Khinchine)."""
    check.positive(per_s=per_s, service_s=service_s)
    check.between(0, 1 - 1e-12, load=per_s * service_s)
    load = per_s * service_s
    return load * service_s / (2.0 * (1.0 - load))


def tokens_per_verification(accepted, drafted):
    """Expected tokens of one speculative step: (1 − aᵏ⁺¹)/(1 − a), each of k drafted tokens accepted with probability a
    (Leviathan et al. 2023, arXiv:2211.17192 eq. 1). The token that the large model adds itself is counted."""
    check.between(0, 1, accepted=accepted)
    check.non_negative(drafted=drafted)
    rest = ops.maximum(1e-9, 1.0 - accepted)
    return ops.where(accepted > 1.0 - 1e-9, drafted + 1.0, (1.0 - accepted ** (drafted + 1.0)) / rest)


def speculative_speed_up(accepted, drafted, draft_cost):
    """… over one token a step, where a draft token costs ``draft_cost`` of a step of the large model (eq. of Theorem 3.8).

    It holds while verifying k + 1 tokens takes no longer than one: in a decode step far below the critical batch.
    """
    check.non_negative(draft_cost=draft_cost)
    return tokens_per_verification(accepted, drafted) / (drafted * draft_cost + 1.0)


def speculative_gain(model, draft, at, tp, batch, context, accepted, drafted):
    """The same for ``batch`` sequences at once, with a draft model on the same GPUs, by the steps' own times.

    A check computes batch·(k + 1) tokens, and reads each cache once for all k + 1 of its own. Above 1 it pays. Leaves out
    sampling, and how unevenly the sequences of a batch come on.
    """
    tokens = tokens_per_verification(accepted, drafted)
    checked = drafted + 1.0
    plain_s = decoding.split(model, at, tp, batch, context).total_s
    check_s = decoding.split(model, at, tp, batch * checked, context / checked).total_s
    return tokens * plain_s / (drafted * decoding.split(draft, at, tp, batch, context).total_s + check_s)


def prefill_share(prompt_s, output_s):
    """The share of the GPUs that should prefill when both pools are to be equally busy: work is work.

    ``prompt_s`` are the GPU-seconds of one request's prefill, ``output_s`` those of its decoding in a full batch.
    """
    check.positive(prompt_s=prompt_s, output_s=output_s)
    return prompt_s / (prompt_s + output_s)


# -- reading a run ---------------------------------------------------------------------------------------------------
class Phases(NamedTuple):
    """When each request came, was begun, spoke first, had its cache moved, and was through, ascending; and its pause."""

    came_s: np.ndarray
    started_s: np.ndarray
    first_s: np.ndarray
    moved_s: np.ndarray
    last_s: np.ndarray
    paused_s: np.ndarray        # where its longest pause between two tokens begins, past its cache's way over a wire …
    resumed_s: np.ndarray       # … and ends


def phases(columns: dict) -> Phases:
    """The times of a run's requests; what did not happen (a cache that was not moved, a refusal) takes no time."""
    came = columns["came_s"]
    started = np.maximum(came, columns["started_s"])
    first = np.maximum(started, columns["first_s"])
    moved = np.maximum(first, columns["moved_s"])
    resumed = np.maximum(moved, columns["pause_end_s"])
    paused = np.maximum(moved, columns["pause_end_s"] - columns["pause_s"])
    return Phases(came, started, first, moved, np.maximum(moved, columns["last_s"]), np.minimum(paused, resumed), resumed)


def moving_s(columns: dict):
    """Seconds from a request's first token until its cache has been moved; -1 where it was not."""
    return np.where(columns["moved_s"] >= 0, columns["moved_s"] - columns["first_s"], -1.0)


def late_over_early(values, count):
    """(mean of the last quarter, mean of the first) of so many values in order of arrival: does a queue grow?"""
    quarter = count // 4
    return np.sum(values[count - quarter:count]) / quarter, np.sum(values[:quarter]) / quarter


def at_least_one_left(some, all_of_them):
    """So many, but not all."""
    return np.minimum(some, all_of_them - 1.0)


def others(all_of_them, some):
    """The rest."""
    return all_of_them - some


def times(factor, value):
    """So many times a value."""
    return factor * value


# -- two pools, in closed form ---------------------------------------------------------------------------------------
def prefill_rate(prefill_s, ttft_s):
    """Requests a second that one replica prefills with a mean wait that leaves the target: S + ρ·S/(2(1−ρ)) = T, so
    ρ = 2(T−S)/(2(T−S)+S), and ρ/S of them (M/D/1). None where a prompt alone takes longer than the target."""
    check.positive(prefill_s=prefill_s, ttft_s=ttft_s)
    spare_s = ops.maximum(0.0, ttft_s - prefill_s)
    return 2.0 * spare_s / (2.0 * spare_s + prefill_s) / prefill_s


def answer_rate(users, token_s, output, tpot_s):
    """Answers a second of one replica with so many users, 0 where their tokens come later than the target; the most of
    them over the last axis."""
    check.positive(users=users, token_s=token_s, output=output, tpot_s=tpot_s)
    return np.max(np.where(token_s <= tpot_s, users / (token_s * output), 0.0), axis=-1)


def wire_rate(cache_bytes, wire_bytes_per_s):
    """Caches a second that one replica sends, one after another."""
    check.positive(cache_bytes=cache_bytes, wire_bytes_per_s=wire_bytes_per_s)
    return wire_bytes_per_s / cache_bytes


def exposed_transfer_s(cache_bytes, wire_bytes_per_s, prefill_s, layers):
    """Seconds that a cache sent layer by layer arrives after the prefill's end: the last layer's share, or, on a wire slower
    than the prefill, all that has not left by then: max(c/(L·W), S/L + c/W − S) (Splitwise, arXiv:2311.18677 section 4.3).

    Leaves out the cost of starting each layer's transfer.
    """
    check.positive(cache_bytes=cache_bytes, wire_bytes_per_s=wire_bytes_per_s, prefill_s=prefill_s, layers=layers)
    sending_s = cache_bytes / wire_bytes_per_s
    return ops.maximum(sending_s / layers, prefill_s / layers + sending_s - prefill_s)


class Pools(NamedTuple):
    """Requests a second that each split of the replicas could take, and what bounds it."""

    prefill_per_s: np.ndarray
    wire_per_s: np.ndarray
    decode_per_s: np.ndarray
    goodput_per_s: np.ndarray   # the least of the three


def pools(prefillers, replicas, prefill_per_s, wire_per_s, decode_per_s) -> Pools:
    """``prefillers`` of ``replicas`` read prompts and send their caches, the others answer; rates are one replica's."""
    check.positive(replicas=replicas)
    ours = (prefillers * prefill_per_s, prefillers * wire_per_s, ops.maximum(0.0, replicas - prefillers) * decode_per_s)
    return Pools(*ours, ops.minimum(ops.minimum(ours[0], ours[1]), ours[2]))


class Rates(NamedTuple):
    """Requests a second of one replica under its targets, in each of its possible roles."""

    prefill_per_s: float
    wire_per_s: float
    decode_per_s: float
    shared_per_s: float         # prompts and answers on the same GPUs
    prefill_s: float
    cache_bytes: float          # of one prompt


def rates(model, at, tp, users, prompt, output, ttft_s, tpot_s, wire_bytes_per_s) -> Rates:
    """What one replica can do alone in each role, for requests that are all alike; ``users`` are the batches to try."""
    with check.trusted():
        held = decoding.room(model, at.gpu, tp, prompt + output).users
        together = ops.maximum(1.0, ops.minimum(users, held))       # at most as many as the caches leave room for
        step_s = decoding.split(model, at, tp, together, prompt + output / 2.0).total_s
        fitting = np.where(held >= 1.0, step_s, NEVER_S)
        shared = decoding.steady(model, at, tp, users, prompt, output)
        prefill_s = inference.prefill(model, at, tp, 1, prompt).total_s
        cache_bytes = decoding.user_bytes(model, prompt)
        return Rates(prefill_rate(prefill_s, ttft_s), wire_rate(cache_bytes, wire_bytes_per_s),
                     answer_rate(together, fitting, output, tpot_s),
                     np.where(prefill_s <= ttft_s, np.max(np.where(shared.token_s <= tpot_s, shared.tokens_per_s_per_gpu, 0.0)), 0.0)
                     * tp / output, prefill_s, cache_bytes)


class Split(NamedTuple):
    """Replicas that prefill, and the requests a second that they and the others take together."""

    prefillers: float
    goodput_per_s: float


def best_split(of_one: Rates, replicas: int) -> Split:
    """The best of all splits with at least one replica on each side."""
    check.whole(replicas=replicas)
    check.between(2, 1e6, replicas=replicas)
    prefillers = np.arange(1.0, replicas)
    goodput = pools(prefillers, replicas, of_one.prefill_per_s, of_one.wire_per_s, of_one.decode_per_s).goodput_per_s
    return Split(prefillers[np.argmax(goodput)], np.max(goodput))


class Bargain(NamedTuple):
    """The same replicas shared and split, under the same targets."""

    users_sharing: float        # answers at once on one replica …
    users_apart: float
    sharing_per_s: float        # … and requests a second of them all
    apart_per_s: float


def bargain(model, at, tp, prompt, output, ttft_s, tpot_s, replicas, wire_bytes_per_s=50e9) -> Bargain:
    """What a split brings: t(u) ≤ T lets a decoding replica take more users than t(u) + u·S/n ≤ T lets one that shares."""
    found = rates(model, at, tp, USERS, prompt, output, ttft_s, tpot_s, wire_bytes_per_s)
    shared = decoding.steady(model, at, tp, USERS, prompt, output)
    users = np.minimum(USERS, decoding.room(model, at.gpu, tp, prompt + output).users)
    step_s = decoding.split(model, at, tp, np.maximum(1.0, users), prompt + output / 2.0).total_s
    return Bargain(np.max(np.where(shared.token_s <= tpot_s, shared.batch, 0.0)),
                   np.max(np.where(step_s <= tpot_s, users, 0.0)),
                   replicas * found.shared_per_s, best_split(found, replicas).goodput_per_s)
