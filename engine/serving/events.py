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
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from engine.base.program import full, program, zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

MOST_REQUESTS, MOST_INSTANCES = 240, 32  # of one run on a page
LATER = 600  # requests after those of a run on a page, as long as they are needed
PREFILL_FIRST, CHUNKED, DISAGGREGATED = 0, 1, 2
FAR = 1e300  # later than any event
RECOMPUTE = -1.0  # a preempted request's cache is dropped
WATERMARK = (
    0.01  # of the cache stays free for answers that grow, where a request joins (vLLM's BlockSpaceManager)
)


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
    """(arrivals, prompts, outputs) of so many requests, each from a stream of its own."""
    return (
        arrivals(count, rate, 7919 * (seed + 1)),
        lengths(count, prompt, prompt_spread, 104729 * (seed + 1)),
        lengths(count, output, output_spread, 1299709 * (seed + 1)),
    )


def underway(
    count: int, prompt: float, prompt_spread: float, output: float, output_spread: float, seed: int
) -> tuple[list[float], list[int], list[int], list[int]]:
    """(arrivals, prompts, outputs, tokens written) of requests that are found on their way: an answer twice
    as long is found twice as often, so the median grows by the square of the spread, and each has come any
    part of its way."""
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


# -- the time of a step --------------------------------------------------------------------------------------
def interpolated(
    at: float, places: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray
) -> float:
    """The value at a place between known ones, by linear interpolation; beyond the last, proportional to
    it."""
    last = len(places) - 1
    if at >= places[last]:
        return values[last] * at / places[last]
    i = max(1, bisect_left(places, at))
    share = max(0.0, (at - places[i - 1]) / (places[i] - places[i - 1]))
    return values[i - 1] + (values[i] - values[i - 1]) * share


def steps_before(gap_s: float, first_s: float, more_s: float, most: float) -> float:
    """How many decode steps start within a gap if each takes ``more_s`` longer than the one before (and the
    first takes at least as long as that); at least one."""
    slow = first_s - more_s / 2
    reached = 2.0 * gap_s / (slow + math.sqrt(slow * slow + 2 * more_s * gap_s))
    return max(1, math.ceil(min(most, reached - 1e-9)))


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
    """So many of the values, from one on."""
    return [values[begin + i] for i in range(int(count))]


def least(values: list[float], first: int, end: int) -> int:
    """The index of the smallest of values[first:end]."""
    best = first
    for i in range(first + 1, end):
        if values[i] < values[best]:
            best = i
    return best


def rounds(outputs: list[int]) -> list[int]:
    """The decode steps of each answer without drafts: one a token, after the first."""
    return [max(0, outputs[i] - 1) for i in range(len(outputs))]


def piece(left: float, room: float) -> float:
    """How many of a prompt's tokens a step reads: all that are left, or as many as its budget still has room
    for."""
    return min(left, max(0, room))


def has_no_room(asks: float, held: float, inside: int, seats: float, capacity: float) -> bool:
    """Whether a request that ``asks`` for so many tokens of cache must wait: all seats are taken, or beside
    what is ``held`` it would leave less than WATERMARK of the capacity. An empty server may be filled to the
    last token."""
    most = capacity if inside == 0 else (1 - WATERMARK) * capacity
    return inside >= seats or (asks > 0 and held + asks > most)


def enter(r: int, step: int, due: list[int], due_of: list[int]) -> None:
    """Note the step at which a request will be done, in order."""
    place = bisect_left(due, step)
    due.insert(place, step)
    due_of.insert(place, r)


def leave(r: int, step: int, due: list[int], due_of: list[int]) -> None:
    """Strike out what ``enter`` noted."""
    place = bisect_left(due, step)
    while due_of[place] != r:
        place += 1
    due.pop(place)
    due_of.pop(place)


# -- pauses --------------------------------------------------------------------------------------------------
def note_gap(
    step: int, gap_s: float, end_s: float, at: list[int], gaps: list[float], ends: list[float]
) -> None:
    """Remember the gap before an instance's step, and forget all earlier ones that are shorter: what is left
    falls from the longest to the latest, so that the longest since any step is found at once."""
    while len(gaps) > 0 and gaps[len(gaps) - 1] < gap_s:
        at.pop()
        gaps.pop()
        ends.pop()
    at.append(step)
    gaps.append(gap_s)
    ends.append(end_s)


def note_pause(
    r: int,
    since: int,
    at: list[int],
    gaps: list[float],
    ends: list[float],
    pause: list[float],
    pause_end: list[float],
) -> None:
    """Count the longest gap since a step, if there was one, to a request's longest pause."""
    place = bisect_left(at, since)
    if place < len(at) and gaps[place] > pause[r]:
        pause[r] = gaps[place]
        pause_end[r] = ends[place]


# -- the server ----------------------------------------------------------------------------------------------
def serve(
    came_s: list[float],
    prompts: list[int],
    outputs: list[int],
    hits: list[float],
    aged: Sequence[float],
    counted: int,
    rounds_of: list[int],
    rows: list[float],
    rows_s: list[float],
    pair_s: float,
    cached_s: float,
    mode: int,
    shared: int,
    instances: int,
    prefill_instances: int,
    budget: float,
    most_running: float,
    capacity: float,
    transfer_s: float,
    swap_s: float,
    width: int,
    draft_s: float,
    front_rows_s: list[float],
    front_pair_s: float,
    front_capacity: float,
) -> dict[str, Any]:
    """Serve requests that arrive at ``came_s``. Returns for each: the times of its prefill's start, its first
    and its last token and the end of its cache's transfer, where it was prefilled and decoded, its longest
    pause between two tokens and when that ended, and how often it was preempted; -1 for a time that does not
    exist. A request that no cache could ever hold is refused.

    ``rows_s`` are the seconds of a step over ``rows`` tokens without attention; ``pair_s`` those of attention
    per pair of a new token and one it sees; ``cached_s`` those for reading a cached token; ``budget`` the
    tokens per step; ``capacity`` the tokens that an instance's cache holds; ``transfer_s`` the seconds for
    sending a cached token.

    The run ends when the first ``counted`` requests are done; those that come later only keep the server busy
    until then, so that it does not empty around the last of them.

    Each piece can be left out. ``hits``: tokens of each prompt that a prefix cache already holds (0).
    ``aged``: tokens that the first requests have already written when the run begins (0 for those that have
    yet to come); they are dealt out to the instances that decode.
    ``rounds_of``: the decode steps of each answer (``rounds``), fewer where a step checks drafts; then
    ``width`` tokens a sequence are computed in a step, and ``draft_s`` are spent on drafting. The ``front``
    figures are those of replicas that only prefill, which may be built otherwise. ``shared``: one
    queue for all instances that prefill, instead of one for each. ``swap_s``: seconds a token to host memory
    or back, for a preempted request; ``RECOMPUTE`` drops its cache, and it is prefilled again.

    A waiting request stays in its queue; one that was preempted, is only partly prefilled, or has its cache
    on the way is in ``back`` of its instance, and goes before the queue.
    """
    count, apart = len(came_s), mode == DISAGGREGATED
    started, first, last, moved, pause_end = (
        full(count, -1),
        full(count, -1),
        full(count, -1),
        full(count, -1),
        full(count, -1),
    )
    pause, put_out, made, done, ready = (zeros(count), zeros(count), zeros(count), zeros(count), zeros(count))
    prefilled_at, at, holding = full(count, -1), full(count, -1), zeros(count)
    joined_at, to_go, gain = zeros(count), zeros(count), zeros(count)
    for r in range(count):
        done[r] = hits[r]
        to_go[r] = rounds_of[r]
        gain[r] = (outputs[r] - 1) / rounds_of[r] if rounds_of[r] > 0 else 0.0
    front = prefill_instances if apart else instances  # the instances where requests arrive
    queue, back, running = (
        [[] for i in range(instances)],
        [[] for i in range(instances)],
        [[] for i in range(instances)],
    )
    due, due_of, newly = (
        [[] for i in range(instances)],
        [[] for i in range(instances)],
        [[] for i in range(instances)],
    )
    gap_at, gap_s, gap_end = (
        [[] for i in range(instances)],
        [[] for i in range(instances)],
        [[] for i in range(instances)],
    )
    clock, wire, owed, held = zeros(instances), zeros(instances), zeros(instances), zeros(instances)
    cached, grows, ran, spoke = zeros(instances), zeros(instances), zeros(instances), zeros(instances)
    busy, prefilling = zeros(instances), zeros(instances)
    arrived, left = 0, counted
    while arrived < count and aged[arrived] > 0:
        r = arrived
        arrived += 1
        if prompts[r] + outputs[r] > capacity:
            left -= 1
            continue
        where = r % instances if not apart else front + r % (instances - front)
        started[r], first[r], last[r], prefilled_at[r] = 0.0, 0.0, 0.0, 0 if apart else where
        made[r] = aged[r]
        done[r] = prompts[r] + made[r]
        rest = (outputs[r] - made[r]) / (outputs[r] - 1)
        to_go[r] = max(1, round(rest * rounds_of[r]))
        back[where].append(r)
        owed[where] += outputs[r] + (0 if apart else prompts[r])
    while left > 0:
        # the next event: a request arrives, or an instance with work to do starts a step
        now, who, prefill_next = came_s[arrived] if arrived < count else FAR, -1, FAR
        for i in range(instances):
            start = clock[i]
            if len(running[i]) == 0:
                soonest, line = FAR, 0 if shared > 0 else i
                if i < front and len(queue[line]) > 0:
                    soonest = came_s[queue[line][0]]
                for r in back[i]:
                    soonest = min(soonest, ready[r])
                start = max(start, soonest)
            if i < front and apart:
                prefill_next = min(prefill_next, start)
            if start < now:
                now, who = start, i
        if who < 0:
            r = arrived
            arrived += 1
            if prompts[r] + outputs[r] > capacity or (apart and prompts[r] > front_capacity):
                left -= 1 if r < counted else 0
                continue
            where = 0 if shared > 0 else least(owed, 0, front)
            queue[where].append(r)
            owed[where] += prompts[r] + (0 if apart else outputs[r])
            continue

        # the time until which nothing else can happen to this instance; whatever reaches a decoder comes from
        # a prefill that started earlier
        decodes_only, prefills_only = apart and who >= front, apart and who < front
        holds = front_capacity if prefills_only else capacity
        line = 0 if shared > 0 else who
        coming = came_s[arrived] if arrived < count else FAR
        if decodes_only:
            coming = min(coming, prefill_next)

        # which requests join: those that come back first, then the queue, in order, while there is room in
        # the cache, in the batch and in the step's budget
        room = budget - (width * len(running[who]) if mode == CHUNKED else 0)
        fresh, pairs, full_up, joined, place = 0, 0.0, False, [], 0
        while not full_up:
            returns = place < len(back[who])
            if not returns and (decodes_only or len(queue[line]) == 0):
                break
            r = back[who][place] if returns else queue[line][0]
            if returns and ready[r] > now:
                coming = min(coming, ready[r])
                place += 1
                continue
            new = prompts[r] + made[r] - done[r]  # a preempted request prefills its own output again
            takes = piece(new, room - fresh) if mode == CHUNKED else new
            asks = 0 if holding[r] > 0 else prompts[r] + made[r] + (0 if apart or new == 0 else 1)
            inside = len(running[who]) + len(joined)
            full_up = (
                has_no_room(asks, held[who], inside, most_running, holds)
                or (takes == 0 and new > 0)
                or (mode != CHUNKED and fresh > 0 and fresh + takes > budget)
            )
            if full_up:
                continue
            if started[r] < 0:
                started[r], prefilled_at[r] = now, who
            held[who] += asks
            holding[r] = 1
            pairs += takes * (done[r] + takes / 2)
            fresh += takes
            done[r] += takes
            if returns:
                back[who].pop(place)
            else:
                queue[line].pop(0)
            if takes < new:  # the rest of it goes into the next step, before any other
                back[who].insert(place, r)
                full_up = True
            elif new > 0:
                joined.append(r)
            else:
                at[r] = who
                running[who].append(r)
                newly[who].append(r)
                enter(r, ran[who] + to_go[r], due[who], due_of[who])
                joined_at[r] = ran[who]
                cached[who] += prompts[r] + made[r]
                grows[who] += gain[r]

        # the step, or several decode steps in a row
        decoding = len(running[who]) if fresh == 0 or mode == CHUNKED else 0
        if fresh + decoding == 0:
            clock[who] = coming
            continue
        steps, read = 1, cached[who] if decoding > 0 else 0.0
        if prefills_only:
            step_s = interpolated(fresh, rows, front_rows_s) + pairs * front_pair_s
        else:
            step_s = interpolated(fresh + width * decoding, rows, rows_s) + pairs * pair_s + read * cached_s
        if decoding > 0:
            step_s += draft_s
        more_s = grows[who] * cached_s if decoding > 0 else 0.0
        if fresh == 0:
            most = due[who][0] - ran[who]
            most = min(most, max(1, math.floor((capacity - held[who]) / max(grows[who], 1e-9))))
            steps = steps_before(coming - now, step_s, more_s, most)
        took = steps * step_s + more_s * steps * (steps - 1) / 2
        end = now + took
        clock[who] = end
        busy[who] += took
        prefilling[who] += took if fresh > 0 else 0

        # which requests get a token: all that decoded, and those whose prompt is complete
        if decoding > 0:
            for r in newly[who]:
                if now + step_s - last[r] > pause[r]:
                    pause[r], pause_end[r] = now + step_s - last[r], now + step_s
            if len(newly[who]) < decoding:
                note_gap(
                    ran[who] + 1,
                    now + step_s - spoke[who],
                    now + step_s,
                    gap_at[who],
                    gap_s[who],
                    gap_end[who],
                )
            newly[who] = []
            if steps > 1:
                note_gap(
                    ran[who] + steps,
                    step_s + more_s * (steps - 1),
                    end,
                    gap_at[who],
                    gap_s[who],
                    gap_end[who],
                )
            ran[who] += steps
            spoke[who] = end
            held[who] += steps * grows[who]
            cached[who] += steps * grows[who]
            while len(due[who]) > 0 and due[who][0] <= ran[who]:
                due[who].pop(0)
                r = due_of[who].pop(0)
                running[who].remove(r)
                left -= 1 if r < counted else 0
                last[r] = end
                note_pause(r, joined_at[r] + 2, gap_at[who], gap_s[who], gap_end[who], pause, pause_end)
                held[who] -= prompts[r] + outputs[r]
                cached[who] -= prompts[r] + outputs[r]
                grows[who] -= gain[r]
                owed[who] -= outputs[r] + (0 if apart else prompts[r])
            if len(running[who]) == 0:
                held[who] -= cached[who]  # what rounding left, where a step brings parts of a token
                cached[who], grows[who] = 0.0, 0.0
                gap_at[who], gap_s[who], gap_end[who] = [], [], []
        for r in joined:
            if first[r] < 0:
                first[r] = end
                made[r] = 1
                done[r] = prompts[r] + made[r]
            else:
                if end - last[r] > pause[r]:
                    pause[r], pause_end[r] = end - last[r], end
                made[r] += gain[r]
                to_go[r] -= 1
                done[r] = prompts[r] + made[r]
            last[r] = end
            if prefills_only:
                holding[r] = 0
                held[who] -= prompts[r]
                owed[who] -= prompts[r]
            if to_go[r] <= 0:
                left -= 1 if r < counted else 0
                if not prefills_only:
                    at[r] = who
                    held[who] -= prompts[r] + made[r]
                    owed[who] -= prompts[r] + outputs[r]
            elif prefills_only:
                wire[who] = max(wire[who], end) + (prompts[r] + made[r]) * transfer_s
                moved[r], ready[r] = wire[who], wire[who]
                where = least(owed, front, instances)
                owed[where] += outputs[r]
                back[where].append(r)
            else:
                at[r] = who
                running[who].append(r)
                newly[who].append(r)
                enter(r, ran[who] + to_go[r], due[who], due_of[who])
                joined_at[r] = ran[who]
                cached[who] += prompts[r] + made[r]
                grows[who] += gain[r]

        # no room for the next tokens: the last to arrive is preempted; its cache is dropped, or sent to host
        # memory and back, or sent again by the pool that prefills
        while len(running[who]) > 1 and held[who] + grows[who] > capacity:
            r = running[who].pop()
            leave(r, joined_at[r] + to_go[r], due[who], due_of[who])
            went = ran[who] - joined_at[r]
            if went > 0:
                last[r] = spoke[who]
                note_pause(r, joined_at[r] + 2, gap_at[who], gap_s[who], gap_end[who], pause, pause_end)
            else:
                newly[who].remove(r)
            made[r] += went * gain[r]
            to_go[r] -= went
            tokens = prompts[r] + made[r]
            held[who] -= tokens
            cached[who] -= tokens
            grows[who] -= gain[r]
            holding[r] = 0
            put_out[r] += 1
            if apart:
                done[r], ready[r] = tokens, end + tokens * transfer_s
            elif swap_s >= 0:
                done[r], ready[r] = tokens, end + 2.0 * tokens * swap_s
            else:
                done[r], ready[r] = hits[r], 0.0
            back[who].insert(0, r)
    return {
        "started": started,
        "first": first,
        "last": last,
        "moved": moved,
        "pause": pause,
        "pause_end": pause_end,
        "put_out": put_out,
        "prefilled_at": prefilled_at,
        "at": at,
        "busy": busy,
        "prefilling": prefilling,
    }


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
        came_s,
        prompts,
        outputs,
        zeros(len(outputs)),
        aged,
        early + int(count),
        rounds(outputs),
        rows,
        rows_s,
        pair_s,
        cached_s,
        int(mode),
        0,
        int(instances),
        int(prefill_instances),
        budget,
        most_running,
        capacity,
        transfer_s,
        RECOMPUTE,
        1,
        0.0,
        rows_s,
        pair_s,
        capacity,
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
