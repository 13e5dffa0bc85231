"""Four processes that sum up counts and gradients until one of them has no batch left, and what PyTorch's
flight recorder then says in each.

The run is on a CPU, where the backend is gloo. It hangs as it would with NCCL: three ranks wait in an
AllReduce that the fourth never calls. When a rank's record has not changed for a while, it is dumped.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RUNS_ON = ("torch",)
RANKS, SHORT, GRADIENT = 4, 2, 1024  # the rank with a batch less than the others
BATCHES = [2 if rank == SHORT else 3 for rank in range(RANKS)]
UNCHANGED_S = 2.0


def train(batches: int) -> None:
    """The loop that hangs."""
    tokens, gradient = torch.ones(1), torch.ones(GRADIENT)
    for _ in range(batches):
        dist.all_reduce(tokens)
        dist.all_reduce(gradient)


def dumped() -> dict:
    """The flight record of the process."""
    return pickle.loads(torch._C._distributed_c10d._dump_fr_trace())


def stood_still() -> dict:
    """The flight record, once nothing has been added to it for a while."""
    found, since = dumped(), time.monotonic()
    while not found["entries"] or time.monotonic() - since < UNCHANGED_S:
        time.sleep(0.1)
        now = dumped()
        if len(now["entries"]) != len(found["entries"]):
            found, since = now, time.monotonic()
    return found


def rank_works(rank: int, folder: str) -> None:
    """One process: it trains on a thread, and its record is taken from another."""
    os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    threading.Thread(target=train, args=(BATCHES[rank],), daemon=True).start()
    part = Path(folder, f"part_{rank}")
    part.write_bytes(pickle.dumps(stood_still()))
    part.rename(part.with_name(f"dump_{rank}"))
    while len(list(Path(folder).glob("dump_*"))) < RANKS:
        time.sleep(0.1)
    os._exit(0)  # a waiting thread cannot be ended otherwise


def entry(found: dict) -> dict:
    """What the lesson shows of a recorded call."""
    ours = next(frame for frame in found["frames"] if frame["name"] == train.__name__)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    kept = ("collective_seq_id", "profiling_name", "input_sizes", "retired")
    return {key: found[key] for key in kept} | {"called_from": lines[ours["line"] - 1].strip()}


def record() -> dict:
    """The recording, as its JSON file holds it."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(rank_works, args=(folder,), nprocs=RANKS, start_method="spawn")
        dumps = [pickle.loads(Path(folder, f"dump_{rank}").read_bytes()) for rank in range(RANKS)]
    return {
        "of": f"{RANKS} processes on a CPU, of which number {SHORT} has {BATCHES[SHORT]} batches and the "
        f"others {max(BATCHES)}",
        "ranks": [
            {"pg_status": dump["pg_status"]["0"], "entries": [entry(each) for each in dump["entries"]]}
            for dump in dumps
        ],
    }
