"""A step of Llama 3 70B under FSDP2 on 64 ranks, counted by PyTorch without a GPU: lesson 05's program as it
is printed, on fake tensors and a fake process group.

All layers are alike, so a few of them are enough: two depths are run, and each further layer adds what the
second had over the first.
"""

from __future__ import annotations

import json
import tempfile
import types
from collections import Counter
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from course import lessons

RUNS_ON = ("torch",)
LESSON, SIZE = "05-fsdp-and-zero.md", "70B"
RANKS, SEQ, DEPTHS = 64, 8192, (4, 6)
GATHER, SCATTER = "c10d._allgather_base_.default", "c10d._reduce_scatter_base_.default"


def program() -> types.ModuleType:
    """The lesson's Python blocks, one after the other, as one module."""
    module = types.ModuleType("train")
    blocks = [fence.source for fence in lessons.read(LESSON).fences if fence.kind == "python"]
    exec(compile("\n".join(blocks), LESSON, "exec"), module.__dict__)
    return module


class Sent(TorchDispatchMode):
    """How many collectives of each kind are issued, and how large their whole buffers are."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for name, kind, whole in ((GATHER, "gathers", 0), (SCATTER, "scatters", 1)):
            if str(func) == name:
                self.counts[kind] += 1
                self.counts[f"{kind}_bytes"] += args[whole].nbytes
        return func(*args, **(kwargs or {}))


def counted(train: types.ModuleType, layers: int) -> dict:
    """The second step of a model with this many layers: the first creates the optimizer's state."""
    width, _, *others = train.SIZES[SIZE]
    train.SIZES["some"] = (width, layers, *others)
    mesh = init_device_mesh("cpu", (RANKS,))
    with FakeTensorMode():
        model, optimizer = train.prepare("some", mesh)
        tokens = torch.zeros(1, SEQ + 1, dtype=torch.long)
        train.train_step(model, optimizer, tokens)
        weights = list(model.parameters())
        found = {
            "parameters": sum(each.numel() for each in weights),
            "on_each": sum(each.to_local().numel() for each in weights),
            "state_bytes": state_bytes(optimizer),
        }
        tracker = FSDPMemTracker(model, optimizer)
        with tracker, Sent() as sent:
            train.train_step(model, optimizer, tokens)
    [peak] = tracker.get_tracker_snapshot("peak").values()
    return found | dict(sent.counts) | {"peak_bytes": peak["Total"]}


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """One rank's share of weights, gradients and moments; a gradient is as large as its weight."""
    weights = [each for group in optimizer.param_groups for each in group["params"]]
    moments = [each for state in optimizer.state.values() for each in state.values() if each.dim()]
    return sum(each.to_local().nbytes for each in (*weights, *weights, *moments))


def deepened(first: dict, second: dict, layers: int) -> dict:
    """What this many layers come to, if each adds as much."""
    near, far = DEPTHS
    return {
        name: first[name] + (second[name] - first[name]) * (layers - near) // (far - near) for name in first
    }


def one_rank(_: int, place: str) -> None:
    """A process of its own, for the sake of the process group."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    train = program()
    first, second = (counted(train, layers) for layers in DEPTHS)
    found = deepened(first, second, train.SIZES[SIZE][1])
    Path(place).write_text(json.dumps(found))
    dist.destroy_process_group()


def record() -> dict:
    """The recording, as its JSON file holds it."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder, "counted.json"))
        mp.start_processes(one_rank, args=(place,), nprocs=1, start_method="spawn")
        found = json.loads(Path(place).read_text())
    return {"of": f"one of {RANKS} ranks, a sequence of {SEQ:,} tokens on each", "ranks": RANKS} | found
