"""Lesson 04's train.py, watched: run under torchrun beside it, one file of findings for each rank.

It trains in fp64 and without autocast here, so that nothing but the order of sums is left between two runs.
As "alone" the program runs without DistributedDataParallel, on one rank, with the whole batch at once."""

import contextlib
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import train
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import TensorDataset


class Data(TensorDataset):
    """Remembers which samples were asked for."""

    def __init__(self, *columns):
        super().__init__(*columns)
        self.seen: list[int] = []

    def __getitem__(self, index):
        self.seen.append(index)
        return super().__getitem__(index)


class Sent(TorchDispatchMode):
    """The bytes of each AllReduce."""

    def __init__(self):
        super().__init__()
        self.bytes: list[int] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "c10d.allreduce_" in str(func):
            self.bytes += [each.nbytes for each in args[0]]
        return func(*args, **(kwargs or {}))


def trained(alone: bool) -> dict:
    data, drawn, wrap = Data(*train.toy().tensors), [], train.wrap

    def wrapped(model):
        drawn.append(model[0].weight.detach().clone())
        return model if alone else wrap(model)

    autocast, train.toy, train.wrap = torch.autocast, lambda: data, wrapped
    torch.autocast = lambda *_: contextlib.nullcontext()
    torch.set_default_dtype(torch.float64)
    model = train.main(micro=16 if alone else 2)
    torch.set_default_dtype(torch.float32)
    torch.autocast, train.wrap = autocast, wrap
    weights = [each.detach() for each in model.parameters()]
    logged = {} if alone else model._get_ddp_logging_data()
    return {"drawn": drawn[0], "weights": weights, "seen": data.seen, "logged": logged}


def sent(model, inputs) -> list[int]:
    """The bytes that one backward pass under autocast sends."""
    with Sent() as found:
        with torch.autocast("cpu", torch.bfloat16):
            outputs = model(inputs)
        outputs.float().sum().backward()
    return found.bytes


def buckets() -> dict:
    """What is sent, where gradients lie, and how they are divided."""
    inputs, plain, hooked = torch.ones(2, 64), train.wrap(nn.Linear(64, 64)), train.wrap(nn.Linear(64, 64))

    def hook(state, bucket):  # under another name, since DDP lets bf16_compress_hook through on NCCL alone
        return default_hooks.bf16_compress_hook(state, bucket)

    hooked.register_comm_hook(None, hook)
    found = {"plain": sent(plain, inputs), "hooked": sent(hooked, inputs)}
    for to_none in (False, True):
        plain.zero_grad(set_to_none=to_none)
        with plain.no_sync():
            found["silent"] = sent(plain, inputs)
        places = {each.grad.untyped_storage().data_ptr() for each in plain.parameters()}
        found[f"places, to none: {to_none}"] = len(places)
        sent(plain, inputs)
    for name, given in (("default", {}), ("chosen", {"bucket_cap_mb": 25})):
        two_mib = nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(8)))
        model = DistributedDataParallel(two_mib, **given)
        sent(model, torch.ones(1, 256))  # after the first pass buckets are filled in the order found there
        found[f"{name} buckets"] = sent(model, torch.ones(1, 256))
    return found


def by_hand() -> dict:
    """The gradients of the lesson's own wrapper, and of DDP, of the same samples."""
    torch.manual_seed(dist.get_rank())
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8), nn.Linear(8, 4, bias=False))
    own = train.ByHand(model, bucket_bytes=300)
    copy = DistributedDataParallel(copied(model))
    inputs = torch.randn(5, 8)
    for each in (own, copy):
        each(inputs).square().sum().backward()
    begun = len(own.sent)
    own.finish()
    return {
        "by hand": [each.grad for each in own.parameters()],
        "by ddp": [each.grad for each in copy.parameters()],
        "sent in the backward pass": begun,
        "sent after finish": len(own.sent),
    }


def profiled() -> int:
    """The steps in the trace that the lesson's own lines write."""
    lines = Path("profiled.py").read_text(encoding="utf-8")
    exec(lines, {"dist": dist, "step": lambda: torch.ones(8) @ torch.ones(8)})  # a lesson's own code
    trace = json.loads(Path(f"rank{dist.get_rank()}.json").read_text(encoding="utf-8"))
    return len(
        {each["name"] for each in trace["traceEvents"] if each.get("name", "").startswith("ProfilerStep")}
    )


def copied(model):
    """Without the hooks of the first."""
    twin = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8), nn.Linear(8, 4, bias=False))
    twin.load_state_dict(model.state_dict())
    return twin


if __name__ == "__main__":
    alone = sys.argv[1] == "alone"
    found = trained(alone)
    if not alone:
        found |= buckets() | by_hand() | {"steps in the trace": profiled()}
    torch.save(found, f"{sys.argv[1]}_{dist.get_rank()}.pt")
    dist.destroy_process_group()
