"""What an incident left behind, in the words of the programs that say it: PyTorch's watchdog and flight
recorder, torchtitan's log, nvidia-smi, InfiniBand's counters, the kernel of a host.

Each function takes the columns of ``incident.ranks``, and gives the text of a document.
"""

import numpy as np

from engine.exam import incident_cases as cases
from engine.executed import incident
from engine.executed.incident import COMPLETED, KINDS, LANES, RANKS, STEPS, WINDOW
from widgets.kit.compiler.symbols import lookup
from widgets.kit.text import choose, lines, phrase, plain, select, show

RANK = np.arange(float(RANKS))
OF_A_ROW = np.repeat(RANK, WINDOW)
NUMBERS = [str(rank) for rank in range(RANKS)]
NAMES = [f"rank {rank:2d}" for rank in range(RANKS)]
NODES, SLOTS, REPLICAS, TENSOR_RANKS = (
    list(map(str, places))
    for places in (incident.NODES_OF, incident.SLOTS_OF, incident.REPLICAS_OF, incident.TENSOR_RANKS_OF)
)
GROUPS = ["default_pg", "mesh_fsdp ", "mesh_tp   "]
STATES = ["scheduled", "started  ", "completed"]
# by operation of the simulation; those that are no collectives are not recorded
CALLED = [
    *[""] * incident.GATHER,
    "nccl:_all_gather_base    ",
    "nccl:all_reduce          ",
    "nccl:_reduce_scatter_base",
    "nccl:all_reduce          ",
    "nccl:all_reduce          ",
]
TYPES = [
    *[""] * incident.GATHER,
    "_ALLGATHER_BASE",
    "ALLREDUCE",
    "_REDUCE_SCATTER_BASE",
    "ALLREDUCE",
    "ALLREDUCE",
]
RATES = [
    "state 1: DOWN    rate 400 Gb/sec (4X NDR)",
    "state 4: ACTIVE  rate 100 Gb/sec (1X NDR)",
    "state 4: ACTIVE  rate 200 Gb/sec (2X NDR)",
    "state 4: ACTIVE  rate 300 Gb/sec (3X NDR)",
    "state 4: ACTIVE  rate 400 Gb/sec (4X NDR)",
]


def there(column):
    """Indices of a column that has −1 where there is nothing, for a choice of words."""
    return np.maximum(column, 0.0)


def job(seen):
    """What the job itself prints: a line for each step, and for a checkpoint."""
    known = np.isfinite(seen["step_s"])
    step = phrase(
        "step: {n}  loss: {loss}  grad_norm: {norm}  time: {time}",
        n=[str(cases.FIRST_STEP + k) for k in range(STEPS)],
        loss=show(seen["loss"], "count", 4),
        norm=show(seen["norm"], "count", 4),
        time=show(seen["step_s"], "seconds"),
    )
    save = phrase("Finished saving the checkpoint in {time}.", time=show(seen["save_s"], "seconds"))
    saved = choose(seen["save_s"] > 0, save, "")
    both = choose(seen["save_s"] > 0, phrase("{step}\n{save}", step=step, save=saved), step)
    first = cases.first_to_speak(seen)
    spoke = select(first, [line_of(seen, rank) for rank in range(RANKS)])
    return f"{lines(choose(known, both, ''))}{choose(seen['hangs'] > 0, f'{chr(10)}{spoke}', '')}"


def waits_in(seen, name, rank):
    """A column of the dumps, at the call in which a rank waits."""
    return lookup(seen[name], there(seen["of"][rank]))


def line_of(seen, rank):
    """What a rank's watchdog says."""
    asked = {name: waits_in(seen, name, rank) for name in ("seq", "op", "numel", "numel_out")}
    return (
        f"[rank{rank}]: [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={plain(asked['seq'])}, OpType={select(there(asked['op']), TYPES)}, "
        f"NumelIn={plain(asked['numel'])}, NumelOut={plain(asked['numel_out'])}, "
        f"Timeout(ms)={incident.TIMEOUT_MS:.0f}) "
        f"ran for {plain(seen['ran_ms'][rank])} milliseconds before timing out."
    )


def status_of(seen, rank):
    """How far a rank's group is, in its watchdog's words."""
    kind = there(waits_in(seen, "kind", rank))
    place = rank * KINDS + kind
    groups = [incident.group_of(rank, k) for k in range(KINDS)]
    name = select(kind, [f"PG ID {k} PG GUID {groups[k]}({GROUPS[k].strip()})" for k in range(KINDS)])
    return (
        f"[rank{rank}]: [{name} Rank {rank}] failure detected by watchdog at work sequence id: "
        f"{plain(waits_in(seen, 'seq', rank))} PG status: last enqueued work: "
        f"{plain(lookup(seen['enqueued'], place))}, last completed work: "
        f"{plain(lookup(seen['completed'], place))}"
    )


def errors(seen):
    """Standard error of all ranks."""
    said = [
        choose(seen["spoke_s"][rank] > 0, f"{line_of(seen, rank)}\n{status_of(seen, rank)}\n", "")
        for rank in range(RANKS)
    ]
    nothing = "No rank has written to standard error: no collective has run for as long as ten minutes.\n"
    return f"{choose(seen['hangs'] > 0, '', nothing)}{''.join(f'{each}' for each in said)}"


def dumps(seen):
    """Flight recorders, side by side: how far each rank is in each group, and its last calls."""
    enqueued, completed = (
        [show(seen[name].reshape(RANKS, KINDS)[:, kind], "count") for kind in range(KINDS)]
        for name in ("enqueued", "completed")
    )
    gone = seen["state"].reshape(RANKS, WINDOW)[:, 0] < 0
    status = phrase(
        "{name}  default_pg {a}/{d}  mesh_fsdp {b}/{e}  mesh_tp {c}/{f}",
        name=NAMES,
        **dict(zip("abc", enqueued)),
        **dict(zip("def", completed)),
    )
    status = choose(gone, [f"{name}  wrote no dump" for name in NAMES], status)
    took = choose(
        seen["state"] == COMPLETED, phrase(", {time}", time=show(there(seen["took_s"]), "seconds")), ""
    )
    call = phrase(
        "{name}  {state}  {group} {seq}  {op} [{numel}]{took}",
        name=[NAMES[int(rank)] for rank in OF_A_ROW],
        state=select(there(seen["state"]), STATES),
        group=select(there(seen["kind"]), GROUPS),
        seq=plain(there(seen["seq"])),
        op=select(there(seen["op"]), CALLED),
        numel=plain(there(seen["numel"])),
        took=took,
    )
    return (
        "pg_status: last_enqueued_collective/last_completed_collective\n"
        f"{lines(status)}\n\n"
        "entries: state, pg, collective_seq_id, profiling_name, input_sizes, duration\n"
        f"{lines(choose(seen['state'] >= 0, call, ''))}\n"
    )


def times(seen):
    """Each rank's own times, before its collectives."""
    said = phrase(
        "{name}  data {data}  forward+backward {compute}  in collectives {inside}  checkpoint {write}",
        name=NAMES,
        data=show(seen["data_s"], "seconds"),
        compute=show(seen["compute_s"], "seconds"),
        inside=show(seen["inside_s"], "seconds"),
        write=choose(seen["write_s"] > 0, show(seen["write_s"], "seconds"), "-"),
    )
    return f"the last step that all finished, and the last checkpoint\n{lines(said)}\n"


def gpus(seen):
    """nvidia-smi of all GPUs."""
    slow = seen["mhz"] < incident.FULL_MHZ
    said = phrase(
        "{name}  GPU {at}  {heat} C  {watt} W  {mhz} MHz  HW thermal slowdown: {slow}  ECC corrected: {ecc}",
        name=NAMES,
        at=[f"node{node}:{slot}" for node, slot in zip(NODES, SLOTS)],
        heat=plain(seen["celsius"]),
        watt=plain(seen["watt"]),
        mhz=plain(seen["mhz"]),
        slow=choose(slow, "Active", "Not Active"),
        ecc=plain(seen["corrected"]),
    )
    return f"{lines(said)}\n"


def ports(seen):
    """The counters of all network ports."""
    said = phrase(
        "{name}  mlx5_{at}  {rate}  link_downed {downed}  symbol_error {symbols}",
        name=NAMES,
        at=SLOTS,
        rate=select(seen["lanes"], RATES),
        downed=plain(seen["downed"]),
        symbols=plain(seen["symbols"]),
    )
    return f"{lines(said)}\n"


def hosts(seen):
    """The processes of both hosts, and what their kernels say of them."""
    pids = [str(cases.PIDS + rank) for rank in range(RANKS)]
    said = phrase(
        "{name}  node{node}  pid {pid}  VmRSS {size}",
        name=NAMES,
        node=NODES,
        pid=pids,
        size=show(seen["process_bytes"], "bytes"),
    )
    gone = phrase(
        "{name}  node{node}  pid {pid}  no such process\n"
        "kernel: Memory cgroup out of memory: Killed process {pid} (python), anon-rss {size}",
        name=NAMES,
        node=NODES,
        pid=pids,
        size=show(seen["process_bytes"], "bytes"),
    )
    return f"{lines(choose(seen['killed'] > 0, gone, said))}\n"


def replay(seen):
    """The gradients of one batch, which all replicas compute once more, as sums of their bits."""
    said = phrase(
        "{name}  replica {dp}  tensor rank {tp}  bits of the gradient {bits}",
        name=NAMES,
        dp=REPLICAS,
        tp=TENSOR_RANKS,
        bits=plain(seen["bits"]),
    )
    return f"one batch, the same for all replicas, with deterministic kernels\n{lines(said)}\n"


def why(seen, found):
    """How the evidence leads to the rank and the cause that it shows."""
    rank, cause = there(found["rank"]), there(found["cause"])
    who = f"rank {plain(rank)}"

    def of(name):
        return lookup(seen[name], rank)

    def its(name, family="seconds"):
        return show(of(name), family)

    def most(name):
        return show(cases.usual(seen[name]), "seconds")

    row = there(of("of"))
    peer = there(lookup(seen["of"], cases.peer(rank, cause)))
    waits = {name: lookup(seen[name], row) for name in ("seq", "op", "numel")}
    others = {name: lookup(seen[name], peer) for name in ("seq", "op", "numel")}
    behind = plain(lookup(seen["enqueued"], cases.fsdp_place(rank)))
    ahead = plain(lookup(seen["enqueued"], cases.fsdp_place(cases.peer(rank, cause))))
    port = choose(
        seen["hangs"] > 0,
        (
            "The dumps: all four ranks of one mesh_fsdp group have started the same collective, with the "
            "same "
            f"sizes, and it does not end. Nobody is missing, so it is the wire: the port of {who} is down."
        ),
        (
            "The own times are alike, so nobody is late. What has become long are the collectives of one "
            f"mesh_fsdp group, and of its four ports that of {who} runs on {plain(of('lanes'))} of "
            f"{LANES} lanes."
        ),
    )
    return select(
        cause,
        [
            (
                f"The own times: {who} computes for {its('compute_s')}, most others for "
                f"{most('compute_s')}, and "
                "it waits the least in collectives, since it comes last. Its GPU has "
                f"{plain(of('celsius'))} °C, the limit, and {plain(of('mhz'))} MHz instead of "
                f"{plain(incident.FULL_MHZ)}: it is not cooled well enough."
            ),
            (
                f"The own times: {who} waits {its('data_s')} for its batch, most others {most('data_s')}. It "
                "computes as fast as they do."
            ),
            port,
            (
                "The log: steps take as long as before, and only the checkpoint takes longer. The own times: "
                f"{who} writes for {its('write_s')}, most others for {most('write_s')}, and then wait for "
                "it at "
                "the barrier."
            ),
            (
                f"The dumps: in mesh_fsdp {who} has called {behind} collectives, the others of its group "
                f"{ahead}. "
                "It went on without one, to the AllReduce of the gradient's norm, where it waits for "
                "everybody. "
                "Its group waits for it."
            ),
            (
                f"The dumps: at number {plain(waits['seq'])} of mesh_fsdp {who} has called "
                f"{select(there(waits['op']), TYPES)}, the three others of its group "
                f"{select(there(others['op']), TYPES)}. All are there, and they do not do the same."
            ),
            (
                f"The dumps: at number {plain(waits['seq'])} of mesh_tp {who} brings "
                f"{show(waits['numel'], 'count')} numbers, the three others of its group "
                f"{show(others['numel'], 'count')}. Its batch was shorter."
            ),
            (
                f"The dumps: {who} has called as many collectives as the others, but in another order. It "
                "waits "
                "in the AllReduce of all ranks, and the scatter of mesh_fsdp is scheduled behind it; the "
                "others "
                "of its group wait in the scatter, and the AllReduce is behind that. Each waits for the "
                "other."
            ),
            (
                f"The dumps: {who} wrote none, and it alone has not complained. Its host says why: the "
                "kernel "
                f"killed the process when it reached {its('process_bytes', 'bytes')}. Who is dead logs "
                "nothing."
            ),
            (
                "The log: no step is slower, but the gradient's norm is "
                f"{show(cases.jump(seen), 'times')} its usual. All replicas have computed one batch once "
                "more, "
                f"and the bits of {who} differ from those of the three that hold the same piece of the "
                "weights."
            ),
        ],
    )
