"""Sixteen ranks that run steps of training, executed, with at most one fault among them.

Ranks are cut as 4 data-parallel (FSDP) × 4 tensor ranks on two nodes of eight. Each has a list of operations:
load a batch, gather a block, compute, AllReduce activations, reduce-scatter gradients, AllReduce the
gradient's norm, read it. A collective ends once every member of its group has come with the same operation
and the same size; a group that disagrees never ends it. Everything that somebody could look at afterwards
(records of collectives, clocks, counters, losses) is kept or computed by this run, and nothing of it is
written for a fault.

Left out: overlap of communication with arithmetic (each rank has one stream), tails of messages, what NCCL
really does with unlike sizes (it may also return rubbish).

The functions stay within the subset of Python that ``engine.base.program`` translates for the page.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from engine.base.program import full, program, zeros
from engine.catalog import gpu

RANKS, SIDE, NODE = 16, 4, 8
STEPS = 8
SAVED = (2, 6)  # steps after which a checkpoint is written
BLOCKS = 2
# what can be wrong
(THROTTLED, LOADER, PORT, WRITER, SKIPPED, SWAPPED, SIZES, CROSSED, KILLED, CORRUPT, HEALTHY) = range(11)
# what a rank does
DATA, FORWARD, BACKWARD, READ, WRITE, GATHER, ACTIVATIONS, SCATTER, NORM, BARRIER = range(10)
# where each rank is
NODES_OF, SLOTS_OF = [r // NODE for r in range(RANKS)], [r % NODE for r in range(RANKS)]
REPLICAS_OF, TENSOR_RANKS_OF = [r // SIDE for r in range(RANKS)], [r % SIDE for r in range(RANKS)]
KINDS = 3
WORLD, FSDP, TENSOR = range(KINDS)  # kinds of groups; there are one, four and four of them
SCHEDULED, STARTED, COMPLETED = range(3)
FORWARD_BLOCK = (GATHER, FORWARD, ACTIVATIONS)
BACKWARD_BLOCK = (GATHER, BACKWARD, ACTIVATIONS, SCATTER)
ONE_STEP = (DATA, *BLOCKS * FORWARD_BLOCK, *BLOCKS * BACKWARD_BLOCK, NORM, READ)
FIRST_SCATTER, LAST_SCATTER = ONE_STEP.index(SCATTER), len(ONE_STEP) - 3  # where these stand in a step

LINK_BYTES_PER_S = gpu("h100-sxm").link_bytes_per_s  # NVLink, one way
PORT_BYTES_PER_S = gpu("h100-sxm").nic_bytes_per_s  # of each rank's network port
SHARD = 67108864  # bf16 numbers of a block that one rank keeps
ACTIVATION = 33554432  # 4,096 tokens of width 8,192
# of each collective, from GATHER on
KIND_OF = (*[-1] * GATHER, FSDP, TENSOR, FSDP, WORLD, WORLD)
NUMEL = (*[0.0] * GATHER, 1.0 * SHARD, 1.0 * ACTIVATION, 1.0 * SHARD * SIDE, 1.0, 1.0)
GROWS = (*[1.0] * GATHER, 1.0 * SIDE, 1.0, 1.0 / SIDE, 1.0, 1.0)  # what comes out of it over what goes in
START_S = 20e-6  # a collective's latency
# of a healthy rank
DATA_S = 0.03  # a batch
FORWARD_S, BACKWARD_S = 0.06, 0.12  # of one block
WRITE_S = 0.4  # a copy of its shards to the host
ISSUE_S = 20e-6  # between two calls of a host that runs ahead
TIMEOUT_MS = 600000.0  # of NCCL's watchdog in PyTorch
POLL_MS = 100.0  # how often the watchdog looks

# a GPU in its case: it gets as hot as its power and its cooling say, and lowers its clock at the limit
INLET_C, LIMIT_C, FULL_W, FULL_MHZ, COOLED_C_PER_W = 24.0, 87.0, 650.0, 1980.0, 0.066
WAITING_W, IDLE_W = 240.0, 75.0  # in a collective's kernel, and without a process
PROCESS_BYTES, PROCESS_LIMIT_BYTES = 60e9, 240e9  # a rank's memory on the host, and what it may have
LANES = 4  # of a network port
WRONG_BITS = 12  # where a wrong number differs

PRIME, MULTIPLIER = 2**31 - 1, 48271
MOST_PIECES = 900  # of the picture of the last two steps
SHORTEST_S = 1e-3  # of them
WAITS = 10  # a piece of the picture: a rank waits in a collective for others
# of the little model that is trained
SHARDS, WEIGHTS = SIDE, 3  # tensor ranks, and the weights of each
RATE = 0.05  # of learning
WINDOW = 4  # records a rank that are looked at


class RankFault(NamedTuple):
    """What is wrong with which rank, from which step on, and how badly: by its kind a cooling, seconds,
    lanes, a share, bytes or bits."""

    kind: float
    rank: float
    step: float
    size: float


class RankCounters(NamedTuple):
    """What the counters of each rank's GPU, network port and host process say at the end."""

    cooling: list[float]  # degrees for each watt
    corrected: list[float]  # errors of the HBM that were corrected
    lanes: list[float]  # of the port that work
    downed: list[float]  # how often the port was down
    symbols: list[float]  # its errors
    process_bytes: list[float]
    grows_bytes: list[float]  # in a step
    killed: list[float]


class Calls(NamedTuple):
    """What the flight recorders hold: a row for each collective that a rank's host has called."""

    rank: list[float]
    kind: list[float]  # of group
    seq: list[float]
    op: list[float]
    numel: list[float]
    created_s: list[float]
    started_s: list[float]
    ended_s: list[float]
    state: list[float]


class RankStretches(NamedTuple):
    """What each rank did, from when to when."""

    rank: list[float]
    what: list[float]
    start_s: list[float]
    end_s: list[float]


class RankDumps(NamedTuple):
    """The last calls of each rank, as its dump holds them; −1 where there is no such call, or no dump."""

    kind: list[float]
    seq: list[float]
    op: list[float]
    numel: list[float]
    numel_out: list[float]
    state: list[float]
    took_s: list[float]


class Watchdogs(NamedTuple):
    """Of each rank: when its watchdog spoke, after how long, of which row of the dumps; −1 where it did
    not."""

    spoke_s: list[float]
    ran_ms: list[float]
    of: list[float]


class Gauges(NamedTuple):
    """What each GPU shows at the end, and the sum of the bits of its gradient of one batch, which all
    replicas compute."""

    celsius: list[float]
    watt: list[float]
    mhz: list[float]
    bits: list[float]


class RankJob(NamedTuple):
    """Where the ranks are, and what they took so far."""

    todo: list[list[int]]  # what each rank does in its present step
    at: list[int]  # its place there
    now: list[int]  # its step
    waits: list[int]  # its open call; −1 if it waits for nobody
    come: list[int]  # how many of each group are there
    groups: list[list[int]]  # who belongs to each
    # by step and rank
    data_s: list[float]
    compute_s: list[float]
    inside_s: list[float]  # in collectives
    write_s: list[float]
    read_s: list[float]  # when it had read the norm
    ended_s: list[float]  # when it was through with the step, checkpoint and all


class Clocks(NamedTuple):
    """Of each rank."""

    device_s: list[float]
    host_s: list[float]  # its next call
    called: list[float]  # by rank and kind of group


def roll(dice: list[float]) -> float:
    """A number from 0 to 1 of Lehmer's generator, whose state is ``dice[0]``; exact in doubles."""
    dice[0] = dice[0] * MULTIPLIER % PRIME
    return dice[0] / PRIME


def thrown(seed: float) -> list[float]:
    """A generator for this seed. Lehmer's states of neighbouring seeds lie a fixed step apart, so their
    leading digits are folded into them before."""
    dice = [1.0 + int(seed)]
    for _ in range(4):
        dice[0] = (dice[0] * MULTIPLIER + math.floor(dice[0] / 2**15) * 7919) % (PRIME - 1) + 1
    return dice


def about(dice: list[float], value: float, spread: float) -> float:
    """The value, off by at most a share."""
    return value * (1 + spread * (2 * roll(dice) - 1))


# -- the job -------------------------------------------------------------------------------------------------
def is_collective(op: int) -> bool:
    """Whether others take part."""
    return op >= GATHER


def kind_of_group(op: int) -> int:
    """The kind of group in which a collective runs."""
    return KIND_OF[op]


def group_of(rank: int, kind: int) -> int:
    """The number of a rank's group: one of all, then four across the nodes, then four within one."""
    if kind == FSDP:
        return 1 + rank % SIDE
    if kind == TENSOR:
        return 1 + SIDE + rank // SIDE
    return 0


def members(group: int) -> list[int]:
    """The ranks of a group."""
    if group == 0:
        return [0 + r for r in range(RANKS)]
    if group <= SIDE:
        return [group - 1 + SIDE * r for r in range(SIDE)]
    return [(group - 1 - SIDE) * SIDE + r for r in range(SIDE)]


def numel_of(op: int) -> float:
    """Numbers that go into a collective."""
    return NUMEL[op]


def takes_s(op: int, port_bytes_per_s: float) -> float:
    """Seconds of a ring's collective once all have come (lesson 02): (N−1)/N of the buffer for a gather or a
    scatter, twice that for an AllReduce. The slowest port of the group decides."""
    ways = (SIDE - 1) / SIDE
    if kind_of_group(op) == FSDP:
        return START_S + ways * 2 * SHARD * SIDE / port_bytes_per_s
    if op == ACTIVATIONS:
        return START_S + 2 * ways * 2 * ACTIVATION / LINK_BYTES_PER_S
    return START_S


def ordered(rank: int, step: int, fault: RankFault) -> list[int]:
    """What a rank does in a step, in its order: as all others, but for a fault in its program."""
    todo = [ONE_STEP[place] for place in range(len(ONE_STEP))]
    if rank == fault.rank and step == fault.step:
        if fault.kind == SWAPPED:
            todo[FIRST_SCATTER], todo[FIRST_SCATTER + 1] = GATHER, SCATTER
        if fault.kind == CROSSED:
            todo[LAST_SCATTER], todo[LAST_SCATTER + 1] = NORM, SCATTER
        if fault.kind == SKIPPED:
            todo.pop(LAST_SCATTER)
    for saved in SAVED:
        if step == saved:
            todo.append(WRITE)
            todo.append(BARRIER)
            todo.append(READ)
    return todo


# -- the machine ---------------------------------------------------------------------------------------------
def power_w(cooling: float) -> float:
    """The power at which a GPU stays at or below its limit of temperature, if that much cooling is there."""
    return min(FULL_W, (LIMIT_C - INLET_C) / cooling)


def clock_mhz(cooling: float) -> float:
    """Its clock: power grows about as its third power."""
    return FULL_MHZ * (power_w(cooling) / FULL_W) ** (1 / 3)


def machine(fault: RankFault, dice: list[float]) -> RankCounters:
    """Sixteen GPUs, ports and processes that differ a little. Somewhere there is a warm GPU, a port with some
    errors and a memory with some: as in any cluster, and nobody's fault."""
    found = RankCounters(
        zeros(RANKS),
        zeros(RANKS),
        full(RANKS, 1.0 * LANES),
        zeros(RANKS),
        zeros(RANKS),
        zeros(RANKS),
        zeros(RANKS),
        zeros(RANKS),
    )
    for r in range(RANKS):
        found.cooling[r] = about(dice, COOLED_C_PER_W, 0.12)
        found.corrected[r] = math.floor(4 * roll(dice) * roll(dice))
        found.symbols[r] = math.floor(9 * roll(dice))
        found.process_bytes[r] = about(dice, PROCESS_BYTES, 0.1)
        found.grows_bytes[r] = about(dice, 0.1e9, 0.5)
    warm = math.floor(roll(dice) * RANKS)
    found.cooling[warm] = about(dice, 0.092, 0.03)
    noisy = math.floor(roll(dice) * RANKS)
    found.symbols[noisy] = 200 + math.floor(300 * roll(dice))
    worn = math.floor(roll(dice) * RANKS)
    found.corrected[worn] = 11 + math.floor(20 * roll(dice))
    mine = int(fault.rank)
    if fault.kind == PORT:
        found.lanes[mine] = fault.size
        found.downed[mine] = 1 + math.floor(3 * roll(dice))
        found.symbols[mine] = 20000 + math.floor(60000 * roll(dice))
    if fault.kind == KILLED:
        found.grows_bytes[mine] = fault.size
    return found


# -- the run -------------------------------------------------------------------------------------------------
def call(calls: Calls, clocks: Clocks, rank: int, op: int, numel: float, state: int) -> None:
    """A rank's host calls a collective. It runs ahead of its GPU, up to where it reads a result."""
    kind = kind_of_group(op)
    place = rank * KINDS + kind
    clocks.called[place] = clocks.called[place] + 1
    calls.rank.append(1.0 * rank)
    calls.kind.append(1.0 * kind)
    calls.seq.append(clocks.called[place])
    calls.op.append(1.0 * op)
    calls.numel.append(numel)
    calls.created_s.append(clocks.host_s[rank])
    calls.started_s.append(clocks.device_s[rank])
    calls.ended_s.append(-1.0)
    calls.state.append(1.0 * state)
    clocks.host_s[rank] = clocks.host_s[rank] + ISSUE_S


def note(pieces: RankStretches, rank: int, what: int, start_s: float, end_s: float) -> None:
    """Note what a rank did, unless it is too short to be seen."""
    if end_s - start_s >= SHORTEST_S:
        pieces.rank.append(1.0 * rank)
        pieces.what.append(1.0 * what)
        pieces.start_s.append(start_s)
        pieces.end_s.append(end_s)


def port_of_group(group: list[int], there: RankCounters, fault: RankFault, now: list[int]) -> float:
    """Bytes a second of a group's slowest port; 0 if one is dead."""
    lanes = 1.0 * LANES
    for m in group:
        if m != fault.rank or now[m] >= fault.step:
            lanes = min(lanes, there.lanes[m])
    return PORT_BYTES_PER_S * lanes / LANES


def own_s(op: int, bad: bool, there: RankCounters, rank: int, fault: RankFault, dice: list[float]) -> float:
    """Seconds of something that a rank does alone; ``bad``: its fault has begun."""
    if op == DATA:
        return about(dice, DATA_S, 0.25) + (fault.size if bad and fault.kind == LOADER else 0.0)
    if op == WRITE:
        return about(dice, WRITE_S, 0.05) + (fault.size if bad and fault.kind == WRITER else 0.0)
    if op == READ:
        return 0.0
    cooling = fault.size if bad and fault.kind == THROTTLED else there.cooling[rank]
    return about(dice, FORWARD_S if op == FORWARD else BACKWARD_S, 0.01) * FULL_MHZ / clock_mhz(cooling)


def train(fault: RankFault, done: int, dice: list[float], loss: list[float], norm: list[float]) -> None:
    """Gradient descent on a bowl, by four tensor ranks with a piece of the weights each and four replicas of
    them: each replica's gradient is off by its own batch, and the mean of them is clipped to a norm of 1. A
    GPU that computes wrongly has wrong bits in the exponent of one number of its gradient."""
    w = [about(dice, 0.4, 0.2) for i in range(SHARDS * WEIGHTS)]
    for step in range(done):
        mean = zeros(SHARDS * WEIGHTS)
        for r in range(RANKS):
            for i in range(WEIGHTS):
                place = r % SIDE * WEIGHTS + i
                slope = w[place] + 0.05 * (2 * roll(dice) - 1)
                if fault.kind == CORRUPT and r == fault.rank and step >= fault.step and i == 0:
                    slope = slope * 2**fault.size
                mean[place] = mean[place] + slope / SIDE
        square, left = 0.0, 0.0
        for i in range(SHARDS * WEIGHTS):
            square = square + mean[i] * mean[i]
        for i in range(SHARDS * WEIGHTS):
            left = left + w[i] * w[i]
            w[i] = w[i] - RATE * mean[i] / max(1.0, math.sqrt(square))
        norm.append(math.sqrt(square))
        loss.append(1.9 + left / 2)


def join(
    rank: int,
    fault: RankFault,
    job: RankJob,
    there: RankCounters,
    calls: Calls,
    clocks: Clocks,
    pieces: RankStretches,
) -> None:
    """A rank comes to a collective. The last of its group ends it, if all came with the same."""
    op = job.todo[rank][job.at[rank]]
    numel = numel_of(op)
    if fault.kind == SIZES and rank == fault.rank and job.now[rank] == fault.step and op == ACTIVATIONS:
        numel = math.floor(numel * fault.size)
    call(calls, clocks, rank, op, numel, STARTED)
    job.waits[rank] = len(calls.op) - 1
    group = group_of(rank, kind_of_group(op))
    job.come[group] = job.come[group] + 1
    others = job.groups[group]
    if job.come[group] < len(others):
        return
    last, agree = 0.0, True
    for m in others:
        row = job.waits[m]
        last = max(last, calls.started_s[row])
        agree = agree and calls.op[row] == op and calls.numel[row] == numel
    port = port_of_group(others, there, fault, job.now)
    if not agree or (port == 0 and kind_of_group(op) == FSDP):
        return
    job.come[group] = 0
    end = last + takes_s(op, max(1.0, port))
    for m in others:
        row, cell = job.waits[m], job.now[m] * RANKS + m
        note(pieces, m, WAITS, calls.started_s[row], last)
        note(pieces, m, op, last, end)
        calls.ended_s[row], calls.state[row] = end, 1.0 * COMPLETED
        job.inside_s[cell] = job.inside_s[cell] + end - calls.started_s[row]
        clocks.device_s[m] = end
        job.at[m], job.waits[m] = job.at[m] + 1, -1


def work(
    rank: int,
    fault: RankFault,
    job: RankJob,
    there: RankCounters,
    clocks: Clocks,
    pieces: RankStretches,
    dice: list[float],
) -> None:
    """A rank does something alone, unless the kernel of its host kills it."""
    op, start_s, cell = job.todo[rank][job.at[rank]], clocks.device_s[rank], job.now[rank] * RANKS + rank
    if op == DATA:
        there.process_bytes[rank] = there.process_bytes[rank] + there.grows_bytes[rank]
        if there.process_bytes[rank] > PROCESS_LIMIT_BYTES:
            there.killed[rank], there.process_bytes[rank] = 1.0, PROCESS_LIMIT_BYTES
            return
    bad = rank == fault.rank and job.now[rank] >= fault.step
    took = own_s(op, bad, there, rank, fault, dice)
    clocks.device_s[rank] = start_s + took
    note(pieces, rank, op, start_s, start_s + took)
    if op == DATA:
        job.data_s[cell] = took
        clocks.host_s[rank] = start_s + took
    elif op == WRITE:
        job.write_s[cell] = took
        clocks.host_s[rank] = start_s + took
    elif op != READ:
        job.compute_s[cell] = job.compute_s[cell] + took
    elif job.read_s[cell] == 0:
        job.read_s[cell] = start_s
    job.at[rank] = job.at[rank] + 1
    if job.at[rank] == len(job.todo[rank]):
        job.ended_s[cell] = clocks.device_s[rank]
        job.at[rank], job.now[rank] = 0, job.now[rank] + 1
        if job.now[rank] < STEPS:
            job.todo[rank] = ordered(rank, job.now[rank], fault)


def run_ahead(rank: int, job: RankJob, calls: Calls, clocks: Clocks) -> None:
    """The host of a rank that waits has called on, up to where it reads a result."""
    place = job.at[rank] + 1
    while job.todo[rank][place] != READ:
        if is_collective(job.todo[rank][place]):
            call(calls, clocks, rank, job.todo[rank][place], numel_of(job.todo[rank][place]), SCHEDULED)
        place = place + 1


# -- what is looked at ---------------------------------------------------------------------------------------
def dump(
    rank: int,
    mine: list[int],
    job: RankJob,
    there: RankCounters,
    calls: Calls,
    rows: RankDumps,
    dogs: Watchdogs,
    dice: list[float],
) -> None:
    """The last calls of a rank, from its last completed one on, and what its watchdog says of the first that
    is open."""
    ended = len(mine)
    while ended > 0 and calls.state[mine[ended - 1]] != COMPLETED:
        ended = ended - 1
    waits = job.waits[rank] >= 0
    first = ended - 1 if waits else len(mine) - WINDOW
    for place in range(first, first + WINDOW):
        known = place < len(mine) and there.killed[rank] == 0
        row = mine[place] if known else 0
        rows.kind.append(calls.kind[row] if known else -1.0)
        rows.seq.append(calls.seq[row] if known else -1.0)
        rows.op.append(calls.op[row] if known else -1.0)
        rows.numel.append(calls.numel[row] if known else -1.0)
        grows = GROWS[int(calls.op[row])]
        rows.numel_out.append(calls.numel[row] * grows if known else -1.0)
        rows.state.append(calls.state[row] if known else -1.0)
        rows.took_s.append(calls.ended_s[row] - calls.started_s[row] if known else -1.0)
    if waits:
        dogs.ran_ms[rank] = TIMEOUT_MS + POLL_MS * roll(dice)
        dogs.spoke_s[rank] = calls.created_s[job.waits[rank]] + dogs.ran_ms[rank] / 1000
        dogs.of[rank] = 1.0 * (rank * WINDOW + 1)


def reach(rank: int, mine: list[int], calls: Calls, enqueued: list[float], completed: list[float]) -> None:
    """How far a rank is in each kind of group."""
    for row in mine:
        place = rank * KINDS + int(calls.kind[row])
        enqueued[place] = calls.seq[row]
        if calls.state[row] == COMPLETED:
            completed[place] = calls.seq[row]


def measure(fault: RankFault, hangs: bool, there: RankCounters, gauges: Gauges, dice: list[float]) -> None:
    """Read the GPUs, and compute one batch on all replicas: those with the same piece of the weights must
    have the same bits."""
    piece_bits = [math.floor(1e9 * (1 + roll(dice))) for i in range(SHARDS)]
    for r in range(RANKS):
        mine = r == fault.rank
        cooling = fault.size if mine and fault.kind == THROTTLED else there.cooling[r]
        gauges.watt[r] = WAITING_W if hangs else power_w(cooling)
        gauges.mhz[r] = FULL_MHZ if hangs else clock_mhz(cooling)
        if there.killed[r] == 1:
            gauges.watt[r] = IDLE_W
        gauges.celsius[r] = INLET_C + cooling * gauges.watt[r]
        wrong = 2 ** (WRONG_BITS + fault.size) if mine and fault.kind == CORRUPT else 0.0
        gauges.bits[r] = piece_bits[r % SIDE] + wrong


@program(
    # the job's own log: of each step that was finished
    done=(), hangs=(), step_s=STEPS, save_s=STEPS, loss=STEPS, norm=STEPS,
    # each rank's own times in the last step that all have finished, and of its last checkpoint
    data_s=RANKS, compute_s=RANKS, inside_s=RANKS, write_s=RANKS,
    # flight recorders: the last calls of each rank, and how far it is in each kind of group
    kind=RANKS * WINDOW, seq=RANKS * WINDOW, op=RANKS * WINDOW, numel=RANKS * WINDOW,
    numel_out=RANKS * WINDOW, state=RANKS * WINDOW, took_s=RANKS * WINDOW,
    enqueued=RANKS * KINDS, completed=RANKS * KINDS,
    # watchdogs: when each spoke, after how long, of which of the rows above; −1 where it did not
    spoke_s=RANKS, ran_ms=RANKS, of=RANKS,
    # the machine
    celsius=RANKS, watt=RANKS, mhz=RANKS, corrected=RANKS, lanes=RANKS, downed=RANKS, symbols=RANKS,
    process_bytes=RANKS, killed=RANKS,
    # the gradient of one batch, which all replicas compute once more: the sum of its bits
    bits=RANKS,
    # the picture of the last two steps
    piece_rank=MOST_PIECES, piece_what=MOST_PIECES, piece_start_s=MOST_PIECES, piece_end_s=MOST_PIECES,
    from_s=(), until_s=(),
)  # fmt: skip
def ranks(kind: float, rank: float, first: float, size: float, seed: float) -> dict[str, Any]:
    """Execute the steps with this fault, to the end or to where nobody moves any more."""
    fault = RankFault(int(kind), int(rank), int(first), 1.0 * size)
    dice = thrown(seed)
    there = machine(fault, dice)
    calls = Calls([], [], [], [], [], [], [], [], [])
    pieces = RankStretches([], [], [], [])
    clocks = Clocks(zeros(RANKS), zeros(RANKS), zeros(RANKS * KINDS))
    cells = RANKS * STEPS
    job = RankJob(
        [ordered(r, 0, fault) for r in range(RANKS)],
        full(RANKS, 0),
        full(RANKS, 0),
        full(RANKS, -1),
        full(1 + 2 * SIDE, 0),
        [members(group) for group in range(1 + 2 * SIDE)],
        zeros(cells),
        zeros(cells),
        zeros(cells),
        zeros(cells),
        zeros(cells),
        zeros(cells),
    )
    moved = True
    while moved:
        moved = False
        for r in range(RANKS):
            while job.now[r] < STEPS and job.waits[r] < 0 and there.killed[r] == 0:
                moved = True
                if is_collective(job.todo[r][job.at[r]]):
                    join(r, fault, job, there, calls, clocks, pieces)
                else:
                    work(r, fault, job, there, clocks, pieces, dice)

    # -- what there is to look at afterwards
    done = min(job.now)
    hangs = done < STEPS
    step_s, save_s, loss, norm = [], [], [], []
    for k in range(done):
        step_s.append(job.read_s[k * RANKS] - (job.ended_s[(k - 1) * RANKS] if k > 0 else 0.0))
        save_s.append(job.ended_s[k * RANKS] - job.read_s[k * RANKS])
    train(fault, done, dice, loss, norm)
    from_s = job.ended_s[(done - 2 - (0 if hangs else 1)) * RANKS]
    until_s = max(clocks.device_s)
    if hangs:
        until_s = until_s + 0.25 * (until_s - from_s)
    for r in range(RANKS):
        if job.waits[r] >= 0:
            run_ahead(r, job, calls, clocks)
            note(pieces, r, WAITS, clocks.device_s[r], until_s)
    rows = RankDumps([], [], [], [], [], [], [])
    dogs = Watchdogs(full(RANKS, -1.0), full(RANKS, -1.0), full(RANKS, -1.0))
    enqueued, completed = zeros(RANKS * KINDS), zeros(RANKS * KINDS)
    of_rank = [[0 for i in range(0)] for r in range(RANKS)]
    for row in range(len(calls.op)):
        of_rank[int(calls.rank[row])].append(row)
    for r in range(RANKS):
        dump(r, of_rank[r], job, there, calls, rows, dogs, dice)
        reach(r, of_rank[r], calls, enqueued, completed)
    gauges = Gauges(zeros(RANKS), zeros(RANKS), zeros(RANKS), zeros(RANKS))
    measure(fault, hangs, there, gauges, dice)
    seen = RankStretches([], [], [], [])
    for row in range(len(pieces.rank)):
        if pieces.end_s[row] > from_s:
            start_s = max(from_s, pieces.start_s[row])
            note(seen, int(pieces.rank[row]), int(pieces.what[row]), start_s, pieces.end_s[row])
    last, saved = (done - 1) * RANKS, (SAVED[1] if done > SAVED[1] else SAVED[0]) * RANKS
    return {
        "done": done,
        "hangs": 1.0 if hangs else 0.0,
        "step_s": step_s,
        "save_s": save_s,
        "loss": loss,
        "norm": norm,
        "data_s": [job.data_s[last + r] for r in range(RANKS)],
        "compute_s": [job.compute_s[last + r] for r in range(RANKS)],
        "inside_s": [job.inside_s[last + r] for r in range(RANKS)],
        "write_s": [job.write_s[saved + r] for r in range(RANKS)],
        "kind": rows.kind,
        "seq": rows.seq,
        "op": rows.op,
        "numel": rows.numel,
        "numel_out": rows.numel_out,
        "state": rows.state,
        "took_s": rows.took_s,
        "enqueued": enqueued,
        "completed": completed,
        "spoke_s": dogs.spoke_s,
        "ran_ms": dogs.ran_ms,
        "of": dogs.of,
        "celsius": gauges.celsius,
        "watt": gauges.watt,
        "mhz": gauges.mhz,
        "corrected": there.corrected,
        "lanes": there.lanes,
        "downed": there.downed,
        "symbols": there.symbols,
        "process_bytes": there.process_bytes,
        "killed": there.killed,
        "bits": gauges.bits,
        "piece_rank": seen.rank,
        "piece_what": seen.what,
        "piece_start_s": seen.start_s,
        "piece_end_s": seen.end_s,
        "from_s": from_s,
        "until_s": until_s,
    }
