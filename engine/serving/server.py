"""What a server of language models does at one event, piece by piece; ``events.py`` goes from event to event.

Two records hold all that is known, a column for each thing: ``request`` has a place for every request
(``requests``), ``instance`` one for every instance (``idle``). ``service`` says how requests are served, and
what a step costs; ``events.serve`` says what is in it.

Written in the subset of ``engine.base.program``, so that pages run the same loops. What runs at each event
compares two numbers instead of calling ``min`` or ``max``, which take Python several times as long.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

from engine.base.program import full, zeros
from engine.serving.modes import CHUNKED, DISAGGREGATED
from engine.serving.step_costs import interpolated

FAR = 1e300  # later than any event
WATERMARK = 0.01  # share of the cache kept free for growing answers when a request joins (vLLM's before V1)


# -- what is known -------------------------------------------------------------------------------------------
def requests(of: dict[str, Any]) -> dict[str, Any]:
    """The record of the requests of ``events.serve``, with further columns for what will happen to them; -1
    stands for a time or a place that does not exist yet."""
    count = len(of["came_s"])
    done, to_go, gain = zeros(count), zeros(count), zeros(count)
    for r in range(count):
        done[r] = of["hits"][r]
        to_go[r] = of["rounds"][r]
        gain[r] = (of["outputs"][r] - 1) / of["rounds"][r] if of["rounds"][r] > 0 else 0.0
    return {
        "came_s": of["came_s"],
        "prompts": of["prompts"],
        "outputs": of["outputs"],
        "hits": of["hits"],
        "aged": of["aged"],
        "rounds": of["rounds"],
        "counted": of["counted"],
        "started": full(count, -1),
        "first": full(count, -1),
        "last": full(count, -1),
        "moved": full(count, -1),
        "pause": zeros(count),
        "pause_end": full(count, -1),
        "put_out": zeros(count),  # how often it was preempted
        "prefilled_at": full(count, -1),
        "at": full(count, -1),  # the instance that decodes it
        "made": zeros(count),  # tokens of its answer
        "done": done,  # tokens of its prompt and answer that are in the cache
        "to_go": to_go,  # decode steps
        "gain": gain,  # tokens of a decode step
        "ready": zeros(count),  # when its cache has arrived
        "holding": zeros(count),  # whether room in a cache is kept for it
        "joined_at": zeros(count),  # how many decode steps the instance had made before it took part
    }


def idle(service: dict[str, Any]) -> dict[str, Any]:
    """The record of instances on which nothing has run yet. A waiting request stays in its ``queue``; one
    that was preempted, is only partly prefilled, or has its cache on the way is in ``back`` of its instance,
    and goes before the queue."""
    instances, apart = service["instances"], service["mode"] == DISAGGREGATED
    front = service["prefill_instances"] if apart else instances
    queue, beside = [[] for i in range(instances)], [[i] for i in range(instances)]
    capacity = full(instances, service["capacity"])
    for i in range(front):
        if apart:
            capacity[i] = service["front_capacity"]
        if service["shared"] > 0 and i > 0:
            beside[0].append(i)
            queue[i], beside[i] = queue[0], beside[0]
    return {
        "front": front,  # at how many instances requests arrive; these are the first ones
        "apart": apart,  # whether these only prefill
        "queue": queue,
        "beside": beside,  # the instances that take requests from the same queue
        "back": [[] for i in range(instances)],
        "capacity": capacity,  # tokens that its cache can hold
        "running": [[] for i in range(instances)],
        "newly": [[] for i in range(instances)],  # requests that have not decoded since they joined
        "due": [[] for i in range(instances)],  # the decode steps at which requests will be done, in order …
        "due_of": [[] for i in range(instances)],  # … and these requests
        "gap_at": [[] for i in range(instances)],  # see ``note_gap``
        "gap_s": [[] for i in range(instances)],
        "gap_end": [[] for i in range(instances)],
        "clock": zeros(instances),  # when its last step ends
        "wakes": full(instances, FAR),  # when its next step begins, see ``wake``
        "wire": zeros(instances),  # when the last cache that it sends has left
        "owed": zeros(instances),  # tokens that it has yet to process
        "held": zeros(instances),  # tokens of cache that are kept for its requests
        "cached": zeros(instances),  # … that its running requests have filled
        "grows": zeros(instances),  # … that a decode step adds
        "ran": zeros(instances),  # decode steps
        "spoke": zeros(instances),  # when the last of them ended
        "busy": zeros(instances),
        "prefilling": zeros(instances),
    }


def counts(r: int, request: dict[str, Any]) -> int:
    """1 for a request that has to be done before the run ends, 0 for one that only keeps the server busy."""
    return 1 if r < request["counted"] else 0


def least(values: list[float], first: int, end: int) -> int:
    """The index of the smallest of values[first:end]."""
    best = first
    for i in range(first + 1, end):
        if values[i] < values[best]:
            best = i
    return best


# -- the next event ------------------------------------------------------------------------------------------
def wake(i: int, request: dict[str, Any], instance: dict[str, Any]) -> None:
    """Note when an instance can begin its next step: at once if something runs on it, else when there is
    something to do. Must be called after everything that may change this."""
    begins = instance["clock"][i]
    if len(instance["running"][i]) == 0:
        found = soonest(i, request, instance)
        begins = found if found > begins else begins
    instance["wakes"][i] = begins


def soonest(i: int, request: dict[str, Any], instance: dict[str, Any]) -> float:
    """When an instance on which nothing runs will have something to do."""
    found, ready, waiting = FAR, request["ready"], instance["queue"][i]
    if len(waiting) > 0:
        found = request["came_s"][waiting[0]]
    for r in instance["back"][i]:
        found = ready[r] if ready[r] < found else found
    return found


# -- a request arrives ---------------------------------------------------------------------------------------
def resume(r: int, request: dict[str, Any], instance: dict[str, Any], service: dict[str, Any]) -> int:
    """Give a request that is under way when the run begins to an instance that decodes. Returns 1 if no cache
    could ever hold the request."""
    prompt, output, made = request["prompts"][r], request["outputs"][r], request["aged"][r]
    if prompt + output > service["capacity"]:
        return counts(r, request)
    apart, front, instances = instance["apart"], instance["front"], service["instances"]
    where = r % instances if not apart else front + r % (instances - front)
    request["started"][r], request["first"][r], request["last"][r] = 0.0, 0.0, 0.0
    request["prefilled_at"][r] = 0 if apart else where
    request["made"][r] = made
    request["done"][r] = prompt + made
    request["to_go"][r] = max(1, round((output - made) / (output - 1) * request["rounds"][r]))
    instance["back"][where].append(r)
    instance["owed"][where] += output + (0 if apart else prompt)
    return 0


def arrive(r: int, request: dict[str, Any], instance: dict[str, Any], service: dict[str, Any]) -> int:
    """Put a request into the queue of the instance with the fewest tokens left to do. Returns 1 if no cache
    could ever hold the request, so that the run need not wait for it."""
    prompt, output, apart = request["prompts"][r], request["outputs"][r], instance["apart"]
    if prompt + output > service["capacity"] or (apart and prompt > service["front_capacity"]):
        return counts(r, request)
    where = 0 if service["shared"] > 0 else least(instance["owed"], 0, instance["front"])
    instance["queue"][where].append(r)
    instance["owed"][where] += prompt + (0 if apart else output)
    for i in instance["beside"][where]:
        wake(i, request, instance)
    return 0


# -- which requests join a step ------------------------------------------------------------------------------
def piece(left: float, room: float) -> float:
    """How many of a prompt's tokens a step reads: all that are left, or as many as its budget still has room
    for."""
    most = room if room > 0 else 0
    return most if most < left else left


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
    """Delete what ``enter`` noted."""
    place = bisect_left(due, step)
    while due_of[place] != r:
        place += 1
    due.pop(place)
    due_of.pop(place)


def begin_decoding(r: int, who: int, request: dict[str, Any], instance: dict[str, Any]) -> None:
    """From now on a request, whose cache is complete, takes part in the decode steps of an instance."""
    ran = instance["ran"][who]
    request["at"][r] = who
    request["joined_at"][r] = ran
    instance["running"][who].append(r)
    instance["newly"][who].append(r)
    enter(r, ran + request["to_go"][r], instance["due"][who], instance["due_of"][who])
    instance["cached"][who] += request["prompts"][r] + request["made"][r]
    instance["grows"][who] += request["gain"][r]


def admit(
    who: int,
    now: float,
    coming: float,
    request: dict[str, Any],
    instance: dict[str, Any],
    service: dict[str, Any],
) -> tuple[float, float, float, list[int]]:
    """Let requests into an instance's next step: first those in ``back``, then those in its queue, in order,
    while there is room in the cache, in the batch and in the step's budget. Returns how many tokens of
    prompts the step reads, how many pairs of a new token and one it sees, the time until which nothing else
    can happen, which may be earlier than ``coming``, and which prompts will be complete."""
    waiting, back = instance["queue"][who], instance["back"][who]
    fresh, pairs, full_up, joined, place = 0, 0.0, False, [], 0
    if len(back) == 0 and len(waiting) == 0:
        return fresh, pairs, coming, joined
    budget, chunked, apart = service["budget"], service["mode"] == CHUNKED, instance["apart"]
    prompts, made, done, ready = request["prompts"], request["made"], request["done"], request["ready"]
    running, held, capacity = instance["running"][who], instance["held"], instance["capacity"][who]
    seats, room = service["most_running"], budget - (service["width"] * len(running) if chunked else 0)
    while not full_up:
        returns = place < len(back)
        if not returns and len(waiting) == 0:
            break
        r = back[place] if returns else waiting[0]
        if returns and ready[r] > now:
            coming = ready[r] if ready[r] < coming else coming
            place += 1
            continue
        new = prompts[r] + made[r] - done[r]  # a preempted request also prefills its own output
        takes = piece(new, room - fresh) if chunked else new
        asks = 0 if request["holding"][r] > 0 else prompts[r] + made[r] + (0 if apart or new == 0 else 1)
        full_up = (
            has_no_room(asks, held[who], len(running) + len(joined), seats, capacity)
            or (takes == 0 and new > 0)
            or (not chunked and fresh > 0 and fresh + takes > budget)
        )
        if full_up:
            continue
        if request["started"][r] < 0:
            request["started"][r], request["prefilled_at"][r] = now, who
        held[who] += asks
        request["holding"][r] = 1
        pairs += takes * (done[r] + takes / 2)
        fresh += takes
        done[r] += takes
        if returns:
            back.pop(place)
        else:
            waiting.pop(0)
        if takes < new:  # the rest of it goes into the next step, before any other
            back.insert(0, r)
            full_up = True
        elif new > 0:
            joined.append(r)
        else:
            begin_decoding(r, who, request, instance)
    return fresh, pairs, coming, joined


# -- the time of a step --------------------------------------------------------------------------------------
def prefill_s(fresh: float, pairs: float, service: dict[str, Any]) -> float:
    """Seconds of a step on an instance that only prefills."""
    return interpolated(fresh, service["rows"], service["front_rows_s"]) + pairs * service["front_pair_s"]


def step_s(fresh: float, pairs: float, decoding: int, cached: float, service: dict[str, Any]) -> float:
    """Seconds of a step that reads ``fresh`` tokens of prompts, with ``pairs`` pairs of a new token and a
    token that it attends to, and writes a token of each of ``decoding`` answers, whose caches hold ``cached``
    tokens."""
    products_s = interpolated(fresh + service["width"] * decoding, service["rows"], service["rows_s"])
    if decoding == 0:
        return products_s + pairs * service["pair_s"]
    return products_s + pairs * service["pair_s"] + cached * service["cached_s"] + service["draft_s"]


def steps_before(gap_s: float, first_s: float, more_s: float, most: float) -> float:
    """How many decode steps start within a gap if each takes ``more_s`` longer than the one before (and the
    first takes at least as long as that); at least one."""
    slow = first_s - more_s / 2
    reached = 2.0 * gap_s / (slow + math.sqrt(slow * slow + 2 * more_s * gap_s))
    reached -= 1e-9
    steps = math.ceil(reached if reached < most else most)
    return steps if steps > 1 else 1


def most_steps(who: int, instance: dict[str, Any], capacity: float) -> float:
    """Decode steps until the first of an instance's answers is done or its cache is full."""
    grows = instance["grows"][who]
    until_full = math.floor((capacity - instance["held"][who]) / (grows if grows > 1e-9 else 1e-9))
    until_full = until_full if until_full > 1 else 1
    until_done = instance["due"][who][0] - instance["ran"][who]
    return until_full if until_full < until_done else until_done


# -- what follows from a step --------------------------------------------------------------------------------
def note_gap(who: int, step: float, gap_s: float, end_s: float, instance: dict[str, Any]) -> None:
    """Remember the gap before an instance's step, and forget all earlier gaps that are shorter. The gaps that
    remain are in order of time and fall in length, so that the longest gap since any step is found at
    once."""
    at, gaps, ends = instance["gap_at"][who], instance["gap_s"][who], instance["gap_end"][who]
    while len(gaps) > 0 and gaps[len(gaps) - 1] < gap_s:
        at.pop()
        gaps.pop()
        ends.pop()
    at.append(step)
    gaps.append(gap_s)
    ends.append(end_s)


def note_pause(r: int, pause_s: float, end_s: float, request: dict[str, Any]) -> None:
    """Count a pause between two tokens, if it is the request's longest so far."""
    if pause_s > request["pause"][r]:
        request["pause"][r], request["pause_end"][r] = pause_s, end_s


def note_longest_gap(r: int, who: int, request: dict[str, Any], instance: dict[str, Any]) -> None:
    """Count the longest gap of an instance since a request joined it, if there was one."""
    place = bisect_left(instance["gap_at"][who], request["joined_at"][r] + 2)
    if place < len(instance["gap_at"][who]):
        note_pause(r, instance["gap_s"][who][place], instance["gap_end"][who][place], request)


def decode(
    who: int,
    now: float,
    first_s: float,
    more_s: float,
    steps: float,
    end: float,
    request: dict[str, Any],
    instance: dict[str, Any],
) -> None:
    """All running answers of an instance grow by so many decode steps, of which the first takes ``first_s``
    and each other ``more_s`` more than the one before."""
    ran, spoke, newly = instance["ran"], instance["spoke"], instance["newly"]
    spoken, last_s = now + first_s, first_s + more_s * (steps - 1)
    for r in newly[who]:
        note_pause(r, spoken - request["last"][r], spoken, request)
    gap_s, others = spoken - spoke[who], len(instance["running"][who]) - len(newly[who])
    newly[who] = []
    if others > 0 and (steps == 1 or gap_s >= last_s):  # else the longer gap of the last step is enough
        note_gap(who, ran[who] + 1, gap_s, spoken, instance)
    if steps > 1:
        note_gap(who, ran[who] + steps, last_s, end, instance)
    ran[who] += steps
    spoke[who] = end
    tokens = steps * instance["grows"][who]
    instance["held"][who] += tokens
    instance["cached"][who] += tokens


def finish(
    who: int, end: float, request: dict[str, Any], instance: dict[str, Any], service: dict[str, Any]
) -> int:
    """Release the answers of an instance that are done. Returns how many of them the run had to wait for."""
    due, ran, finished = instance["due"][who], instance["ran"][who], 0
    if due[0] > ran:
        return finished
    due_of, running, apart = instance["due_of"][who], instance["running"][who], instance["apart"]
    held, cached, grows = instance["held"], instance["cached"], instance["grows"]
    while len(due) > 0 and due[0] <= ran:
        due.pop(0)
        r = due_of.pop(0)
        running.remove(r)
        finished += counts(r, request)
        request["last"][r] = end
        note_longest_gap(r, who, request, instance)
        prompt, output = request["prompts"][r], request["outputs"][r]
        held[who] -= prompt + output
        cached[who] -= prompt + output
        grows[who] -= request["gain"][r]
        instance["owed"][who] -= output + (0 if apart else prompt)
    if len(running) == 0:
        held[who] -= cached[who]  # without the rounding errors of steps that yield parts of a token
        cached[who], grows[who] = 0.0, 0.0
        instance["gap_at"][who], instance["gap_s"][who], instance["gap_end"][who] = [], [], []
    return finished


def send(
    r: int, who: int, end: float, request: dict[str, Any], instance: dict[str, Any], service: dict[str, Any]
) -> None:
    """Send the cache of a complete prompt to the instance that decodes and has the fewest tokens left to do.
    An instance sends one cache after the other."""
    wire = instance["wire"]
    wire[who] = max(wire[who], end) + (request["prompts"][r] + request["made"][r]) * service["transfer_s"]
    request["moved"][r], request["ready"][r] = wire[who], wire[who]
    where = least(instance["owed"], instance["front"], service["instances"])
    instance["owed"][where] += request["outputs"][r]
    instance["back"][where].append(r)
    wake(where, request, instance)


def prompt_complete(
    r: int, who: int, end: float, request: dict[str, Any], instance: dict[str, Any], service: dict[str, Any]
) -> int:
    """A prompt is complete, which gives the next token of its answer: the first, or one more of an answer
    that was preempted. Returns 1 if this completes the answer, and the run had to wait for it."""
    made, prompt = request["made"], request["prompts"][r]
    held, owed = instance["held"], instance["owed"]
    if request["first"][r] < 0:
        request["first"][r] = end
        made[r] = 1
    else:
        note_pause(r, end - request["last"][r], end, request)
        made[r] += request["gain"][r]
        request["to_go"][r] -= 1
    request["done"][r] = prompt + made[r]
    request["last"][r] = end
    front = instance["apart"] and who < instance["front"]
    if front:
        request["holding"][r] = 0
        held[who] -= prompt
        owed[who] -= prompt
    if request["to_go"][r] <= 0:
        if not front:
            request["at"][r] = who
            held[who] -= prompt + made[r]
            owed[who] -= prompt + request["outputs"][r]
        return counts(r, request)
    if front:
        send(r, who, end, request, instance, service)
    else:
        begin_decoding(r, who, request, instance)
    return 0


def partly_read(who: int, request: dict[str, Any], instance: dict[str, Any]) -> int:
    """How many prompts an instance has read in part: 0 or 1, the first in ``back``. That prompt already holds
    room in the cache, so no request may go before it and wait for this room."""
    back = instance["back"][who]
    return 1 if len(back) > 0 and request["holding"][back[0]] > 0 else 0


def preempt(
    who: int, end: float, request: dict[str, Any], instance: dict[str, Any], service: dict[str, Any]
) -> None:
    """Where an instance's cache has no room for the next tokens, the last answer to arrive is preempted: its
    cache is dropped, or sent to host memory and back, or sent again by the pool that prefills."""
    held, grows = instance["held"], instance["grows"]
    if held[who] + grows[who] <= service["capacity"]:
        return
    running, ran, swap_s = instance["running"][who], instance["ran"], service["swap_s"]
    while len(running) > 1 and held[who] + grows[who] > service["capacity"]:
        r = running.pop()
        joined_at = request["joined_at"][r]
        leave(r, joined_at + request["to_go"][r], instance["due"][who], instance["due_of"][who])
        went = ran[who] - joined_at
        if went > 0:
            request["last"][r] = instance["spoke"][who]
            note_longest_gap(r, who, request, instance)
        else:
            instance["newly"][who].remove(r)
        request["made"][r] += went * request["gain"][r]
        request["to_go"][r] -= went
        tokens = request["prompts"][r] + request["made"][r]
        held[who] -= tokens
        instance["cached"][who] -= tokens
        grows[who] -= request["gain"][r]
        request["holding"][r] = 0
        request["put_out"][r] += 1
        if instance["apart"]:
            request["done"][r], request["ready"][r] = tokens, end + tokens * service["transfer_s"]
        elif swap_s >= 0:
            request["done"][r], request["ready"][r] = tokens, end + 2.0 * tokens * swap_s
        else:
            request["done"][r], request["ready"][r] = request["hits"][r], 0.0
        instance["back"][who].insert(partly_read(who, request, instance), r)
