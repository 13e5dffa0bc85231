"""The incident room: a fault drawn from a number, what each look at the evidence costs, what follows from the
evidence alone, and how much goodput a verdict leaves.

``follows`` is given nothing but what a reader can look at. It is what the page explains after the verdict,
and a test holds it against the fault that was drawn.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from engine.base import units
from engine.base.program import full, program, zeros
from engine.base.types import Real, Truth
from engine.executed import incident
from engine.executed.incident import (
    CORRUPT,
    CROSSED,
    FSDP,
    KILLED,
    KINDS,
    LANES,
    LOADER,
    NORM,
    PORT,
    RANKS,
    SAVED,
    SCHEDULED,
    SIDE,
    SIZES,
    SKIPPED,
    STARTED,
    STEPS,
    SWAPPED,
    THROTTLED,
    WINDOW,
    WRITER,
    RankFault,
    about,
    group_of,
    roll,
    thrown,
)

MOST_INCIDENTS = 9999
CAUSES = 10  # the faults of ``incident``, without health
ERRORS, DUMPS, TIMES, GPUS, PORTS, HOSTS, REPLAY = range(7)  # what can be looked at
MINUTES = (
    2.0,
    4.0,
    3.0,
    3.0,
    3.0,
    3.0,
    15.0,
)  # that a look takes; ours, as of somebody who has the tools ready
RESTART_MIN, UNTIL_SEEN_MIN = 10.0, 10.0  # to come back, and until a fault that is still there shows again
FULL_MARKS = 10.0
JUMP, LONG, TWICE = (
    2.0,
    1.08,
    2.0,
)  # how many times its usual a norm, an arithmetic, another time is, to stand out


@program(kind=(), rank=(), step=(), size=())
def drawn(seed: float) -> dict[str, Any]:
    """The fault of an incident."""
    dice = thrown(seed + 70000)
    kind = math.floor(roll(dice) * CAUSES)
    rank = math.floor(roll(dice) * RANKS)
    step = 3 + math.floor(roll(dice) * 4)
    size = 0.0
    if kind == THROTTLED:
        size = about(dice, 0.2, 0.15)  # degrees for each watt
    elif kind == LOADER:
        size = about(dice, 0.25, 0.4)  # seconds more
    elif kind == PORT:
        size = 1.0 * math.floor(roll(dice) * 3)  # lanes that are left
    elif kind == WRITER:
        size = about(dice, 4.0, 0.4)
    elif kind == SIZES:
        size = 1 - math.floor(1 + 30 * roll(dice)) / 64  # of a batch
    elif kind == KILLED:
        size = about(dice, 42e9, 0.25)  # bytes more in each step
    elif kind == CORRUPT:
        size = 1.0 * math.floor(6 + 3 * roll(dice))  # bits of the exponent
    return {"kind": kind, "rank": rank, "step": step, "size": size}


def case_of(seed: Real) -> RankFault:
    """The same as a record."""
    return RankFault(**drawn(seed))


def evidence(seed: Real) -> dict[str, Real]:
    """What the ranks left behind, by ``incident.ranks``'s names."""
    return incident.ranks(*case_of(seed), seed)


# -- what follows from it -----------------------------------------------------------------------------------
def middle(values: list[float]) -> float:
    """The median of the ranks' values, the upper one of two."""
    for value in values:
        below, same = 0, 0
        for other in values:
            if other < value:
                below = below + 1
            elif other == value:
                same = same + 1
        if below <= RANKS // 2 and below + same > RANKS // 2:
            return value
    return values[0]


def most(values: list[float]) -> int:
    """The rank with the largest value."""
    found = 0
    for r in range(RANKS):
        if values[r] > values[found]:
            found = r
    return found


def is_odd(values: list[float], kind: int, rank: int) -> bool:
    """Whether a rank's value differs from that of all others in its group, which agree."""
    least, largest = math.inf, -math.inf
    for r in range(RANKS):
        if r != rank and group_of(r, kind) == group_of(rank, kind):
            least, largest = min(least, values[r]), max(largest, values[r])
    return least == largest and values[rank] != least


def least_of_group(values: list[float], kind: int, rank: int) -> bool:
    """Whether a rank is behind somebody of its group."""
    largest = -math.inf
    for r in range(RANKS):
        if group_of(r, kind) == group_of(rank, kind):
            largest = max(largest, values[r])
    return values[rank] < largest


class IncidentVerdict(NamedTuple):
    """A verdict."""

    rank: float
    cause: float


def of_dumps(
    kind: list[float], op: list[float], numel: list[float], state: list[float], enqueued: list[float]
) -> IncidentVerdict:
    """What the flight recorders of a job that hangs say: the first of these that is true of a rank."""
    heads = {"op": full(RANKS * KINDS, -1.0), "numel": full(RANKS * KINDS, -1.0)}  # what each waits in
    fsdp = [enqueued[r * KINDS + FSDP] for r in range(RANKS)]
    for r in range(RANKS):
        if state[r * WINDOW] < 0:
            return IncidentVerdict(r, KILLED)  # no dump
    for r in range(RANKS):
        waits_for_all = False
        for row in range(r * WINDOW, (r + 1) * WINDOW):
            if state[row] == STARTED:
                heads["op"][r * KINDS + int(kind[row])] = op[row]
                heads["numel"][r * KINDS + int(kind[row])] = numel[row]
                waits_for_all = op[row] == NORM
            if state[row] == SCHEDULED and waits_for_all and kind[row] == FSDP:
                return IncidentVerdict(r, CROSSED)
    for r in range(RANKS):
        if least_of_group(fsdp, FSDP, r):
            return IncidentVerdict(r, SKIPPED)
    for k in range(FSDP, KINDS):
        ops, sizes = zeros(RANKS), zeros(RANKS)
        for r in range(RANKS):
            ops[r], sizes[r] = heads["op"][r * KINDS + k], heads["numel"][r * KINDS + k]
        for r in range(RANKS):
            if ops[r] >= 0 and is_odd(ops, k, r):
                return IncidentVerdict(r, SWAPPED)
            if ops[r] >= 0 and is_odd(sizes, k, r):
                return IncidentVerdict(r, SIZES)
    return IncidentVerdict(-1, PORT)  # all have come, with the same thing, and still it does not end


@program(rank=(), cause=(), looks=len(MINUTES), minutes=())
def follows(
    hangs: float,
    norm: list[float],
    data_s: list[float],
    compute_s: list[float],
    write_s: list[float],
    kind: list[float],
    op: list[float],
    numel: list[float],
    state: list[float],
    enqueued: list[float],
    mhz: list[float],
    lanes: list[float],
    killed: list[float],
    bits: list[float],
) -> dict[str, Any]:
    """The rank and the cause that the evidence shows, and the looks that it takes: one at a time, and only
    those that the one before asks for. −1 where nothing was found."""
    looks, rank, cause = zeros(len(MINUTES)), -1, -1
    if hangs:
        looks[DUMPS] = 1
        found = of_dumps(kind, op, numel, state, enqueued)
        rank, cause = int(found.rank), int(found.cause)
        if cause == KILLED:
            looks[HOSTS] = 1
            if killed[rank] == 0:
                cause = -1
    elif max(norm) > JUMP * norm[0]:
        looks[REPLAY] = 1
        for r in range(RANKS):
            if is_odd(bits, FSDP, r):
                rank, cause = r, CORRUPT
    else:
        looks[TIMES] = 1
        if data_s[most(data_s)] > TWICE * middle(data_s):
            rank, cause = most(data_s), LOADER
        elif write_s[most(write_s)] > TWICE * middle(write_s):
            rank, cause = most(write_s), WRITER
        elif compute_s[most(compute_s)] > LONG * middle(compute_s):
            looks[GPUS] = 1
            rank = most(compute_s)
            if is_slowest(mhz, rank):
                cause = THROTTLED
        else:
            cause = PORT
    if cause == PORT:
        looks[PORTS] = 1
        for r in range(RANKS):
            if lanes[r] < LANES:
                rank = r
    minutes = 0.0
    for look in range(len(MINUTES)):
        minutes = minutes + looks[look] * MINUTES[look]
    return {"rank": rank, "cause": cause, "looks": looks, "minutes": minutes}


def is_slowest(mhz: list[float], rank: int) -> bool:
    """Whether no other GPU has as low a clock."""
    others = 0
    for r in range(RANKS):
        if mhz[r] <= mhz[rank]:
            others = others + 1
    return others == 1


READ_BY = (
    "hangs",
    "norm",
    "data_s",
    "compute_s",
    "write_s",
    "kind",
    "op",
    "numel",
    "state",
    "enqueued",
    "mhz",
    "lanes",
    "killed",
    "bits",
)  # of the evidence, what ``follows`` reads


def deduced(seen: dict[str, Real]) -> dict[str, Real]:
    """``follows`` of what was seen."""
    return follows(*(seen[name] for name in READ_BY))


# -- what it costs -------------------------------------------------------------------------------------------
def runs(seen: dict[str, Real]) -> Truth:
    """Whether the job goes on, at whatever pace."""
    return np.less(seen["hangs"], 1.0)


def computes_wrongly(seen: dict[str, Real]) -> Truth:
    """Whether the norm of the gradient says so."""
    return np.greater(jump(seen), JUMP)


def lost_share(seen: dict[str, Real]) -> Real:
    """The share of the job's pace that is lost while somebody looks: all of it if it hangs, and if it
    computes wrongly, since what it computes now will be thrown away; else what four steps and a checkpoint
    take longer than before."""
    step_s, save_s = seen["step_s"], seen["save_s"]
    before = SAVED[1] - SAVED[0]
    healthy_s = before * step_s[0] + save_s[SAVED[0]]
    now_s = before * step_s[STEPS - 1] + save_s[SAVED[1]]
    slower = 1.0 - healthy_s / np.where(runs(seen), now_s, healthy_s)
    return np.where(runs(seen) & ~computes_wrongly(seen), slower, 1.0)


def gpu_hours(minutes: Real) -> Real:
    """The same of all GPUs, in seconds of one."""
    return minutes * units.MINUTE * RANKS


def looked_min(looks: list[Real]) -> Real:
    """Minutes that all looks took."""
    return sum((minutes * look for minutes, look in zip(MINUTES, looks, strict=True)), 0.0)


def lost_min(share: Real, looked: Real, right: Truth, by_evidence: Real) -> Real:
    """Minutes of the whole job that are lost from the alarm on: the share of its pace while somebody looks,
    and a restart. After a wrong verdict the fault is still there: it has to show again, somebody else looks
    at what it takes, and restarts the job once more."""
    again = share * (UNTIL_SEEN_MIN + by_evidence) + RESTART_MIN
    return share * looked + RESTART_MIN + np.where(right, 0.0, again)


def points(share: Real, looked: Real, right: Truth, by_evidence: Real) -> Real:
    """Ten times the least that could have been lost over what was, rounded down; none for a wrong verdict."""
    least = lost_min(share, by_evidence, True, by_evidence)
    earned = np.floor(FULL_MARKS * least / lost_min(share, looked, True, by_evidence))
    return np.where(right, np.minimum(FULL_MARKS, earned), 0.0)


def is_right(fault: RankFault, rank: Real, cause: Real) -> Truth:
    """Whether a verdict names both."""
    return np.equal(rank, fault.rank) & np.equal(cause, fault.kind)


def blames_a_witness(seen: dict[str, Real], fault: RankFault, rank: Real) -> Truth:
    """Whether it names the rank that complained first, and that one is not at fault."""
    named = np.equal(rank, first_to_speak(seen)) & np.not_equal(rank, fault.rank)
    return ~runs(seen) & named


# -- what is shown of it -------------------------------------------------------------------------------------
FIRST_STEP = 41200  # the number of the first step that is looked at
PIDS = 20400  # the number of rank 0's process
MANY = 1e9


def first_to_speak(seen: dict[str, Real]) -> Real:
    """The rank whose watchdog spoke first; 0 if none did."""
    return np.argmin(np.where(seen["spoke_s"] > 0, seen["spoke_s"], MANY))


def usual(column: Real) -> Real:
    """What most ranks have: the value with as many above it as below, of each rank's rank among them."""
    below = np.sum(np.where(column[:, None] > column[None, :], 1.0, 0.0), axis=1)
    return np.sum(np.where(below == RANKS // 2, column, 0.0))


def jump(seen: dict[str, Real]) -> Real:
    """The largest norm of a gradient over the first."""
    norm = seen["norm"]
    return np.max(np.where(np.isfinite(norm), norm, 0.0)) / norm[0]


def peer(rank: Real, cause: Real) -> Real:
    """Another rank of a rank's group: of its tensor group where sizes differ, else of its FSDP group."""
    beside = np.where(rank % SIDE < SIDE - 1, rank + 1, rank - 1)
    across = np.where(rank < RANKS - SIDE, rank + SIDE, rank - SIDE)
    return np.where(cause == SIZES, beside, across)


def fsdp_place(rank: Real) -> Real:
    """Where a rank's FSDP group stands in a column by rank and kind of group."""
    return rank * KINDS + FSDP
