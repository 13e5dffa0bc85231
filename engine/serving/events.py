"""A server of language models, event by event: continuous batching, paged caches, chunked prefill, and
separate pools.

Written as an ``engine.base.program``, so that the same loops run in Python and on a page.
``under_traffic.py`` builds its arguments; ``latencies.py`` and ``phases.py`` read its results. Times are
seconds, lengths are tokens. Only the requests are random, from one seed.

An instance runs one step at a time. A step is a prefill of some prompts, a decode step of all running
sequences, or both (chunked). Decode steps between two events differ only in the growing cache, so they are
processed together: as many as start before anything else can happen, their times summed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.base.program import full, program, zeros
from engine.serving.modes import CHUNKED, DISAGGREGATED, RECOMPUTE
from engine.serving.server import (
    FAR,
    admit,
    arrive,
    decode,
    finish,
    idle,
    least,
    most_steps,
    preempt,
    prefill_s,
    prompt_complete,
    requests,
    resume,
    step_s,
    steps_before,
    wake,
)

MOST_REQUESTS, MOST_INSTANCES = 240, 32  # of one run on a page
LATER = 600  # further requests behind those of a run on a page, to keep the server busy


# -- requests ------------------------------------------------------------------------------------------------
def draw(state: int) -> int:
    """The next state of Lehmer's generator (Park and Miller 1988), exact in doubles; state / 2147483647 is
    uniform."""
    return (state * 48271) % 2147483647


def lengths(count: int, median: float, spread: float, seed: int) -> list[int]:
    """Log-normal lengths with this median and standard deviation of the logarithm; at least one token, at
    most 16 medians."""
    found, state = zeros(count), seed
    for i in range(count):
        state = draw(state)
        radius = math.sqrt(-2 * math.log(state / 2147483647))
        state = draw(state)
        normal = radius * math.cos(2 * math.pi * state / 2147483647)
        found[i] = max(1, min(round(16 * median), round(median * math.exp(spread * normal))))
    return found


def arrivals(count: int, rate: float, seed: int) -> list[float]:
    """A Poisson stream: exponential gaps, the same at every rate except for their scale."""
    found, state, now = zeros(count), seed, 0.0
    for i in range(count):
        state = draw(state)
        now = now - math.log(state / 2147483647) / rate
        found[i] = now
    return found


def drawn(
    count: int,
    rate: float,
    prompt: float,
    prompt_spread: float,
    output: float,
    output_spread: float,
    seed: int,
) -> tuple[list[float], list[int], list[int]]:
    """(arrivals, prompts, outputs) of ``count`` requests; each of the three has a random stream of its
    own."""
    return (
        arrivals(count, rate, 7919 * (seed + 1)),
        lengths(count, prompt, prompt_spread, 104729 * (seed + 1)),
        lengths(count, output, output_spread, 1299709 * (seed + 1)),
    )


def underway(
    count: int, prompt: float, prompt_spread: float, output: float, output_spread: float, seed: int
) -> tuple[list[float], list[int], list[int], list[int]]:
    """(arrivals, prompts, outputs, tokens written) of requests that are found under way when a run begins. An
    answer that is twice as long is found twice as often, so the median grows with the square of the spread;
    and each answer may have been written up to any of its tokens."""
    grown = output * math.exp(output_spread * output_spread)
    prompts, outputs = (
        lengths(count, prompt, prompt_spread, seed),
        lengths(count, grown, output_spread, seed + 1),
    )
    state, aged = seed + 2, full(count, 1)
    for i in range(count):
        state = draw(state)
        outputs[i] = max(2, outputs[i])
        share = state / 2147483648
        aged[i] = 1 + math.floor((outputs[i] - 1) * share)
    return zeros(count), prompts, outputs, aged


# -- small helpers over lists --------------------------------------------------------------------------------
def ascending(values: list[float]) -> list[float]:
    """The values in ascending order: shell sort, with gaps that shrink to a third."""
    found = [values[i] for i in range(len(values))]
    gap = 1
    while gap < len(found) / 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, len(found)):
            value, j = found[i], i
            while j >= gap and found[j - gap] > value:
                found[j] = found[j - gap]
                j -= gap
            found[j] = value
        gap = gap // 3
    return found


def part(begin: int, count: float, values: Sequence[float]) -> list[float]:
    """``count`` of the values, from place ``begin`` on."""
    return [values[begin + i] for i in range(int(count))]


def rounds(outputs: list[int]) -> list[int]:
    """The decode steps of each answer without drafts: one for each token after the first."""
    return [max(0, outputs[i] - 1) for i in range(len(outputs))]


# -- the server ----------------------------------------------------------------------------------------------
def serve(of: dict[str, Any], service: dict[str, Any]) -> dict[str, Any]:
    """Serve requests that arrive at ``came_s``. Returns for each: the times of its prefill's start, its first
    and its last token and the end of its cache's transfer, where it was prefilled and decoded, its longest
    pause between two tokens and when that ended, and how often it was preempted; -1 for a time that does not
    exist. A request that no cache could ever hold is refused.

    ``of`` the requests are columns: ``came_s``; tokens of ``prompts`` and ``outputs``; ``hits``, the tokens
    of each prompt that a prefix cache already holds; ``aged``, the tokens that the first requests have
    already written when the run begins (0 for requests that have yet to come); the instances that decode
    share these requests out among them; ``rounds``, the decode steps of each answer (``rounds``), fewer where
    a step checks drafts. The run ends when the first ``counted`` requests are done; those that come later
    only keep the server busy until then, so that it does not empty around the last of them.

    ``service``: its ``mode``; how many ``instances``, of which so many ``prefill_instances`` in separate
    pools; whether one queue is ``shared`` by all that prefill; in a step at most ``budget`` tokens and
    ``most_running`` answers; the tokens that the ``capacity`` of an instance's cache holds, and
    ``front_capacity`` of one that only prefills; ``transfer_s`` for sending a cached token, and ``swap_s``
    for one of a preempted request to host memory or back (``RECOMPUTE`` drops its cache, and it is prefilled
    again). What a step costs: ``rows_s`` over ``rows`` tokens without attention, ``pair_s`` of attention per
    pair of a new token and one it sees, ``cached_s`` for reading a cached token; ``front_rows_s`` and
    ``front_pair_s`` on replicas that only prefill. With drafts ``width`` tokens of each answer are computed
    in a step (1), and ``draft_s`` spent on drafting them (0).
    """
    request, instance = requests(of), idle(service)
    came_s, aged = request["came_s"], request["aged"]
    wakes, front = instance["wakes"], instance["front"]
    count, arrived, left = len(came_s), 0, request["counted"]
    while arrived < count and aged[arrived] > 0:
        left -= resume(arrived, request, instance, service)
        arrived += 1
    for i in range(len(wakes)):
        wake(i, request, instance)
    while left > 0:
        coming = came_s[arrived] if arrived < count else FAR
        who = least(wakes, 0, len(wakes))
        now = wakes[who]
        if now >= coming:
            left -= arrive(arrived, request, instance, service)
            arrived += 1
            continue
        # a request that reaches an instance that only decodes comes from a prefill that started earlier
        if who >= front:
            prompts = wakes[least(wakes, 0, front)]
            coming = prompts if prompts < coming else coming
        left -= step(who, now, coming, request, instance, service)
        for i in instance["beside"][who]:
            wake(i, request, instance)
    return {
        "started": request["started"],
        "first": request["first"],
        "last": request["last"],
        "moved": request["moved"],
        "pause": request["pause"],
        "pause_end": request["pause_end"],
        "put_out": request["put_out"],
        "prefilled_at": request["prefilled_at"],
        "at": request["at"],
        "busy": instance["busy"],
        "prefilling": instance["prefilling"],
    }


def step(
    who: int,
    now: float,
    coming: float,
    request: dict[str, Any],
    instance: dict[str, Any],
    service: dict[str, Any],
) -> int:
    """One step of an instance, or as many decode steps in a row as start before anything else can happen to
    it, at ``coming``. Returns how many requests are done after it, of those for which the run waits."""
    fresh, pairs, coming, joined = admit(who, now, coming, request, instance, service)
    decoding = len(instance["running"][who]) if fresh == 0 or service["mode"] == CHUNKED else 0
    if fresh + decoding == 0:
        instance["clock"][who] = coming
        return 0
    if instance["apart"] and who < instance["front"]:
        first_s = prefill_s(fresh, pairs, service)
    else:
        first_s = step_s(fresh, pairs, decoding, instance["cached"][who], service)
    more_s = instance["grows"][who] * service["cached_s"] if decoding > 0 else 0.0
    steps = 1
    if fresh == 0:
        most = most_steps(who, instance, service["capacity"])
        steps = steps_before(coming - now, first_s, more_s, most)
    took = steps * first_s + more_s * steps * (steps - 1) / 2
    end = now + took
    instance["clock"][who] = end
    instance["busy"][who] += took
    if fresh > 0:
        instance["prefilling"][who] += took

    finished = 0
    if decoding > 0:
        decode(who, now, first_s, more_s, steps, end, request, instance)
        finished += finish(who, end, request, instance, service)
    for r in joined:
        finished += prompt_complete(r, who, end, request, instance, service)
    preempt(who, end, request, instance, service)
    return finished


@program(
    came_s=MOST_REQUESTS,
    prompt=MOST_REQUESTS,
    output=MOST_REQUESTS,
    started_s=MOST_REQUESTS,
    first_s=MOST_REQUESTS,
    last_s=MOST_REQUESTS,
    moved_s=MOST_REQUESTS,
    pause_s=MOST_REQUESTS,
    pause_end_s=MOST_REQUESTS,
    put_out=MOST_REQUESTS,
    prefilled_at=MOST_REQUESTS,
    at=MOST_REQUESTS,
    busy_s=MOST_INSTANCES,
    prefilling_s=MOST_INSTANCES,
)
def served(
    count: float,
    rate: float,
    prompt: float,
    prompt_spread: float,
    output: float,
    output_spread: float,
    seed: float,
    rows: list[float],
    rows_s: list[float],
    pair_s: float,
    cached_s: float,
    mode: float,
    instances: float,
    prefill_instances: float,
    budget: float,
    most_running: float,
    capacity: float,
    transfer_s: float,
    running: float,
) -> dict[str, Any]:
    """A run of ``count`` requests, drawn from a seed; returns what ``serve`` gives for each. It begins with
    ``running`` answers under way in every instance that decodes."""
    decoders = instances - (prefill_instances if mode == DISAGGREGATED else 0)
    early = int(decoders) * round(running)
    drawn_now = int(count) + LATER
    came, prompts_of, outputs_of = drawn(
        drawn_now, rate, prompt, prompt_spread, output, output_spread, int(seed)
    )
    came_s, prompts, outputs, aged = underway(
        early, prompt, prompt_spread, output, output_spread, 32452843 * (int(seed) + 1)
    )
    for i in range(drawn_now):
        came_s.append(came[i])
        prompts.append(prompts_of[i])
        outputs.append(outputs_of[i])
        aged.append(0)
    run = serve(
        {
            "came_s": came_s,
            "prompts": prompts,
            "outputs": outputs,
            "hits": zeros(len(outputs)),
            "aged": aged,
            "rounds": rounds(outputs),
            "counted": early + int(count),
        },
        {
            "mode": int(mode),
            "instances": int(instances),
            "prefill_instances": int(prefill_instances),
            "shared": 0,
            "budget": budget,
            "most_running": most_running,
            "capacity": capacity,
            "front_capacity": capacity,
            "transfer_s": transfer_s,
            "swap_s": RECOMPUTE,
            "rows": rows,
            "rows_s": rows_s,
            "pair_s": pair_s,
            "cached_s": cached_s,
            "front_rows_s": rows_s,
            "front_pair_s": pair_s,
            "width": 1,
            "draft_s": 0.0,
        },
    )
    return {
        "came_s": part(0, count, came),
        "prompt": part(0, count, prompts_of),
        "output": part(0, count, outputs_of),
        "started_s": part(early, count, run["started"]),
        "first_s": part(early, count, run["first"]),
        "last_s": part(early, count, run["last"]),
        "moved_s": part(early, count, run["moved"]),
        "pause_s": part(early, count, run["pause"]),
        "pause_end_s": part(early, count, run["pause_end"]),
        "put_out": part(early, count, run["put_out"]),
        "prefilled_at": part(early, count, run["prefilled_at"]),
        "at": part(early, count, run["at"]),
        "busy_s": run["busy"],
        "prefilling_s": run["prefilling"],
    }


@program(value=())
def percentile(values: list[float], share: float) -> dict[str, Any]:
    """The value that this share of them does not exceed, interpolated linearly between neighbours; values
    below zero and NaN are left out, and the result is 0 if none remain."""
    known = []
    for value in values:
        if value >= 0:
            known.append(value)
    if len(known) == 0:
        return {"value": 0.0}
    known = ascending(known)
    place = share * (len(known) - 1)
    low = min(math.floor(place), max(0, len(known) - 2))
    high = min(low + 1, len(known) - 1)
    return {"value": known[low] + (known[high] - known[low]) * (place - low)}
