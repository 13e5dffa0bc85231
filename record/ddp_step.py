"""A step of DistributedDataParallel between two processes, as torch.profiler sees it in the first of them.

Four linear layers, two per bucket, so that the first AllReduce runs on gloo's thread while the backward pass
continues. Each process has one thread for arithmetic. The recording keeps the operators that take most of the
time, and what autograd and the reducer call them from.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity

from record import _profiler

RUNS_ON = ("torch",)
TIMED = True
RANKS, LAYERS, WIDTH, ROWS, BUCKET_MB = 2, 4, 1024, 512, 8
KEPT = (
    "DistributedDataParallel.forward",
    "aten::linear",
    "aten::mm",
    "aten::gelu",
    "aten::gelu_backward",
    "autograd::engine::evaluate_function: MmBackward0",
    "autograd::engine::evaluate_function: GeluBackward0",
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
    "c10d::allreduce_",
    "gloo:all_reduce",
    "torch.distributed.ddp.reducer::copy_bucket_to_grad",
    "Optimizer.step#SGD.step",
)


def network() -> nn.Module:
    """The network that is trained: linear layers with GELU between them."""
    torch.manual_seed(0)
    layers = [(nn.Linear(WIDTH, WIDTH, bias=False), nn.GELU()) for _ in range(LAYERS)]
    return nn.Sequential(*(module for pair in layers for module in pair))


def rank_works(rank: int, folder: str) -> None:
    """One process: three steps to warm up, then the profiled ones."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    model = DistributedDataParallel(network(), bucket_cap_mb=BUCKET_MB)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(ROWS, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    dist.barrier()
    lanes = _profiler.fastest(step, [ProfilerActivity.CPU], KEPT.__contains__)
    if rank == 0:
        Path(folder, "lanes.json").write_text(json.dumps(lanes))
    dist.barrier()
    dist.destroy_process_group()


def record() -> dict:
    """The recording, as its JSON file holds it."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(rank_works, args=(folder,), nprocs=RANKS, start_method="spawn")
        lanes = json.loads(Path(folder, "lanes.json").read_text())
    return {
        "of": f"one of {RANKS} processes on a CPU, {LAYERS} linear layers of {WIDTH} × {WIDTH}, buckets of "
        f"{BUCKET_MB} MB, the shortest of {_profiler.STEPS} steps",
        "lanes": lanes,
    }
