"""A server of language models, event by event: continuous batching, paged caches, chunked prefill, pools of their own.

Written as an ``engine.program``: the same loops run here and on a page. ``serving.py`` makes its arguments and reads its
results. Times are seconds, lengths are tokens. Nothing is drawn at random but the requests, from one seed.

An instance runs one step at a time. A step is a prefill of some prompts, a decode step of all that run, or both (chunked).
Decode steps between two events are alike but for the growing cache, so they are taken together: as many as start before
something else can happen, their times added up exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from engine.program import full, program, zeros

MOST_REQUESTS, MOST_INSTANCES = 240, 32       # of one run on a page
PREFILL_FIRST, CHUNKED, DISAGGREGATED = 0, 1, 2
FAR = 1e300                     # later than anything


# -- requests --------------------------------------------------------------------------------------------------------
def draw(state):
    """The next state of Lehmer's generator (Park and Miller 1988), exact in doubles; a share is state / 2147483647."""
    return (state * 48271) % 2147483647


def lengths(count, median, spread, seed):
    """Log-normal lengths with this median and standard deviation of the logarithm; at least one token, 16 medians at most."""
    found, state = zeros(count), seed
    for i in range(count):
        state = draw(state)
        radius = math.sqrt(-2 * math.log(state / 2147483647))
        state = draw(state)
        normal = radius * math.cos(2 * math.pi * state / 2147483647)
        found[i] = max(1, min(round(16 * median), round(median * math.exp(spread * normal))))
    return found


def arrivals(count, rate, seed):
    """A Poisson stream: exponential gaps, the same ones at every rate but for their scale."""
    found, state, now = zeros(count), seed, 0.0
    for i in range(count):
        state = draw(state)
        now = now - math.log(state / 2147483647) / rate
        found[i] = now
    return found


# -- what a step takes -----------------------------------------------------------------------------------------------
def interpolated(at, places, values):
    """The value at a place between known ones, on a straight line; beyond the last, in proportion to it."""
    last = len(places) - 1
    if at >= places[last]:
        return values[last] * at / places[last]
    i = max(1, bisect_left(places, at))
    share = max(0.0, (at - places[i - 1]) / (places[i] - places[i - 1]))
    return values[i - 1] + (values[i] - values[i - 1]) * share


def steps_before(gap_s, first_s, more_s, most):
    """How many decode steps start within a gap when each takes ``more_s`` longer than the one before (and the
    first takes at least as long as that); at least one."""
    slow = first_s - more_s / 2
    reached = 2 * gap_s / (slow + math.sqrt(slow * slow + 2 * more_s * gap_s))
    return max(1, min(most, math.ceil(reached - 1e-9)))


# -- small helpers over lists ----------------------------------------------------------------------------------------
def ascending(values):
    """The values in order: shell sort, with gaps of a third."""
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


def least(values, first, end):
    """Where the smallest of values[first:end] stands."""
    best = first
    for i in range(first + 1, end):
        if values[i] < values[best]:
            best = i
    return best


def with_first(one, others):
    """A list with one more at its head."""
    found = [one]
    for other in others:
        found.append(other)
    return found


# -- the server ------------------------------------------------------------------------------------------------------
def serve(came_s, prompts, outputs, rows, rows_s, pair_s, cached_s, mode, instances, prefill_instances, budget,
          most_running, capacity, transfer_s):
    """Serve requests that came at ``came_s``. Gives, for each, when its prefill started, its first and its last token,
    when its cache had been moved, where it was prefilled and decoded, its longest pause between two tokens and when that
    ended, and how often it was put out; -1 for a time that there was not. A request that no cache could ever hold is refused.

    ``rows_s`` are the seconds of a step over ``rows`` tokens without attention; ``pair_s`` those of attention for each
    pair of a new token and one it sees; ``cached_s`` those for reading a cached token; ``budget`` the tokens of a step;
    ``capacity`` the tokens that an instance's cache holds; ``transfer_s`` the seconds that moving a cached token takes.
    """
    count, apart = len(came_s), mode == DISAGGREGATED
    started, first, last, moved, pause = full(count, -1), full(count, -1), full(count, -1), full(count, -1), zeros(count)
    put_out, prefilled_at, at, made, done = zeros(count), full(count, -1), full(count, -1), zeros(count), zeros(count)
    pause_end = full(count, -1)
    waiting, running = [[] for i in range(instances)], [[] for i in range(instances)]
    clock, wire, owed, held = zeros(instances), zeros(instances), zeros(instances), zeros(instances)
    busy, prefilling = zeros(instances), zeros(instances)
    front = prefill_instances if apart else instances       # where requests come in
    arrived, left = 0, count
    while left > 0:
        # what is next: a request comes, or an instance that has something to do starts a step
        now, who, prefill_next = came_s[arrived] if arrived < count else FAR, -1, FAR
        for i in range(instances):
            start = clock[i]
            if len(running[i]) == 0:
                ready = FAR
                for r in waiting[i]:
                    comes = moved[r] if i >= front else came_s[r]
                    if comes < ready:
                        ready = comes
                start = max(start, ready)
            if i < front and apart:
                prefill_next = min(prefill_next, start)
            if start < now:
                now, who = start, i
        if who < 0:
            r = arrived
            arrived += 1
            if prompts[r] + outputs[r] > capacity:
                left -= 1
                continue
            where = least(owed, 0, front)
            waiting[where].append(r)
            owed[where] += prompts[r] + (0 if apart else outputs[r])
            continue

        # until when nothing else can happen to this instance: what comes to a decoder, a prefill must have started before
        decodes_only, prefills_only = apart and who >= front, apart and who < front
        coming = came_s[arrived] if arrived < count else FAR
        if decodes_only:
            coming = min(coming, prefill_next)

        # who joins: in order, while there is room in the cache, among those that run and in the step's budget
        room = budget - (len(running[who]) if mode == CHUNKED else 0)
        fresh, pairs, full_up, joined, kept = 0, 0.0, False, [], []
        for r in waiting[who]:
            if full_up and not decodes_only:
                kept.append(r)
                continue
            new = prompts[r] + made[r] - done[r]            # what was put out prefills its own words again
            takes = 0 if decodes_only else (min(new, max(0, room - fresh)) if mode == CHUNKED else new)
            if decodes_only and moved[r] > now:
                coming = min(coming, moved[r])
                kept.append(r)
                continue
            holds = prompts[r] + made[r] + (0 if apart else 1) if done[r] == 0 or decodes_only else 0
            if (full_up or len(running[who]) + len(joined) >= most_running or held[who] + holds > capacity
                    or (takes == 0 and not decodes_only) or (mode != CHUNKED and fresh > 0 and fresh + takes > budget)):
                full_up = True
                kept.append(r)
                continue
            if started[r] < 0:
                started[r], prefilled_at[r] = now, who
            held[who] += holds
            pairs += takes * (done[r] + takes / 2)
            fresh += takes
            done[r] += takes
            if done[r] >= prompts[r] + made[r] or decodes_only:
                joined.append(r)
            else:
                full_up = True                              # the rest of it in the next step, before anyone else
                kept.append(r)
        waiting[who] = kept
        if decodes_only:
            for r in joined:
                running[who].append(r)
                at[r] = who
            joined = []

        # the step, or several decode steps in a row
        decoding = len(running[who]) if fresh == 0 or mode == CHUNKED else 0
        if fresh + decoding == 0:
            clock[who] = coming
            continue
        cached, most, steps = 0.0, FAR, 1
        if decoding > 0:
            for r in running[who]:
                cached += prompts[r] + made[r]
                most = min(most, outputs[r] - made[r])
            most = min(most, max(1, math.floor((capacity - held[who]) / decoding)))
        step_s = interpolated(fresh + decoding, rows, rows_s) + pairs * pair_s + cached * cached_s
        more_s = decoding * cached_s
        if fresh == 0:
            steps = steps_before(coming - now, step_s, more_s, most)
        took = steps * step_s + more_s * steps * (steps - 1) / 2
        end = now + took
        clock[who] = end
        busy[who] += took
        prefilling[who] += took if fresh > 0 else 0

        # who speaks: everyone that decoded, and whoever's prompt is through
        if decoding > 0:
            still = []
            for r in running[who]:
                if now + step_s - last[r] > pause[r]:
                    pause[r], pause_end[r] = now + step_s - last[r], now + step_s
                if steps > 1 and step_s + more_s * (steps - 1) > pause[r]:
                    pause[r], pause_end[r] = step_s + more_s * (steps - 1), end
                last[r] = end
                made[r] += steps
                held[who] += steps
                if made[r] >= outputs[r]:
                    left -= 1
                    held[who] -= prompts[r] + made[r]
                    owed[who] -= outputs[r] + (0 if apart else prompts[r])
                else:
                    still.append(r)
            running[who] = still
        for r in joined:
            if first[r] < 0:
                first[r] = end
            elif end - last[r] > pause[r]:
                pause[r], pause_end[r] = end - last[r], end
            last[r] = end
            made[r] += 1
            if prefills_only:
                held[who] -= prompts[r]
                owed[who] -= prompts[r]
            if made[r] >= outputs[r]:
                left -= 1
                if not prefills_only:
                    at[r] = who
                    held[who] -= prompts[r] + made[r]
                    owed[who] -= prompts[r] + outputs[r]
            elif prefills_only:
                wire[who] = max(wire[who], end) + (prompts[r] + made[r]) * transfer_s
                moved[r] = wire[who]
                where = least(owed, front, instances)
                owed[where] += outputs[r]
                waiting[where].append(r)
            else:
                at[r] = who
                running[who].append(r)

        # no room for the next tokens: the last to come is put out and starts over, or has its cache moved in again
        while len(running[who]) > 1 and held[who] + len(running[who]) > capacity:
            r = running[who].pop()
            held[who] -= prompts[r] + made[r]
            put_out[r] += 1
            if apart:
                moved[r] = end + (prompts[r] + made[r]) * transfer_s
            else:
                done[r] = 0
            waiting[who] = with_first(r, waiting[who])
    return {"started": started, "first": first, "last": last, "moved": moved, "pause": pause, "pause_end": pause_end, "put_out": put_out,
            "prefilled_at": prefilled_at, "at": at, "busy": busy, "prefilling": prefilling}


@program(came_s=MOST_REQUESTS, prompt=MOST_REQUESTS, output=MOST_REQUESTS, started_s=MOST_REQUESTS, first_s=MOST_REQUESTS,
         last_s=MOST_REQUESTS, moved_s=MOST_REQUESTS, pause_s=MOST_REQUESTS, pause_end_s=MOST_REQUESTS, put_out=MOST_REQUESTS,
         prefilled_at=MOST_REQUESTS, at=MOST_REQUESTS, busy_s=MOST_INSTANCES, prefilling_s=MOST_INSTANCES)
def served(count, rate, prompt, prompt_spread, output, output_spread, seed, rows, rows_s, pair_s, cached_s, mode, instances,
           prefill_instances, budget, most_running, capacity, transfer_s):
    """A run of so many requests, drawn from a seed; what ``serve`` says of each."""
    came_s = arrivals(int(count), rate, 7919 * (int(seed) + 1))
    prompts = lengths(int(count), prompt, prompt_spread, 104729 * (int(seed) + 1))
    outputs = lengths(int(count), output, output_spread, 1299709 * (int(seed) + 1))
    run = serve(came_s, prompts, outputs, rows, rows_s, pair_s, cached_s, int(mode), int(instances), int(prefill_instances),
                budget, most_running, capacity, transfer_s)
    return {"came_s": came_s, "prompt": prompts, "output": outputs, "started_s": run["started"], "first_s": run["first"],
            "last_s": run["last"], "moved_s": run["moved"], "pause_s": run["pause"], "pause_end_s": run["pause_end"], "put_out": run["put_out"],
            "prefilled_at": run["prefilled_at"], "at": run["at"], "busy_s": run["busy"], "prefilling_s": run["prefilling"]}


@program(value=())
def percentile(values, share):
    """The value that a share of them does not pass, on a straight line between two neighbours; what is below zero or no
    number is left out, and 0 is given where nothing is left."""
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
