"""Traces in a profiler's form: lanes of named events in time, and an executed pipeline or an executed
data-parallel step converted to one.

An executed schedule says when each pass starts and which message it waits for. A profile of Megatron-LM shows
the passes under the names of its timers, and each wait as an NCCL kernel that begins when the stage requests
the message and ends when it has arrived. Leaves out the CPU, and kernels within a pass.
"""

from __future__ import annotations

from typing import NamedTuple

from engine import catalog
from engine.base import check, units
from engine.executed import data_parallel, pipeline_schedules
from engine.mechanism import matmul, start_ups
from engine.mechanism.pipeline_orders import FORWARD

MILLISECOND, MICROSECOND = 1e-3, 1e-6
DRAWN = "drawn from the executed schedule, not recorded"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
DDP_RANKS = 256  # GPUs, one in each node
DDP_BUCKET = 400 * units.MIB  # large, so that buckets can be told apart
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
PASSES = ("forward-compute", "backward-compute")  # timers of Megatron-LM, megatron/training/training.py
SCHEDULES = ("gpipe", "1f1b")  # those that do not split backwards and give each rank one stage


class Event(NamedTuple):
    """A named event: its begin and end, and its nesting depth."""

    name: str
    start_s: float
    end_s: float
    depth: int = 0


class Lane(NamedTuple):
    """A thread or a stream."""

    name: str
    events: tuple[Event, ...]


class Profile(NamedTuple):
    """A trace: its lanes, and a description of where it comes from."""

    lanes: tuple[Lane, ...]
    source: str

    def within(self, first_s: float, last_s: float) -> Profile:
        """The excerpt between two times; its events keep their own times."""
        if not first_s < last_s:
            raise ValueError(f"an excerpt must end after it begins, got {first_s:g} s to {last_s:g} s")
        lanes = [
            Lane(lane.name, tuple(one for one in lane.events if one.end_s > first_s and one.start_s < last_s))
            for lane in self.lanes
        ]
        return Profile(tuple(lanes), self.source)

    @property
    def end_s(self) -> float:
        """When the last event ends."""
        return max(one.end_s for lane in self.lanes for one in lane.events)


def pipeline(
    key: str, stages: int, micro_batches: int, forward_s: float, backward_s: float, message_s: float
) -> Profile:
    """A profile of one step of a pipeline, with two lanes per stage: one for its passes and one for its
    messages.

    A stage requests the input of its next pass as soon as the last one is done, and sends its result at the
    same time; both are one kernel, as in Megatron-LM's fused send and receive
    (pipeline_parallel/p2p_communication.py).
    """
    check.one_of(SCHEDULES, key=key)
    check.positive(forward_s=forward_s, backward_s=backward_s, message_s=message_s)
    half_s = backward_s / 2
    found = pipeline_schedules.by_key(
        key, stages, micro_batches, 1, forward_s, half_s, half_s, message_s=message_s
    )
    rows = list(zip(found["stage"], found["kind"], found["start_s"], found["end_s"]))
    lanes: list[Lane] = []
    for stage in range(stages):
        passes = [
            Event(PASSES[int(kind != FORWARD)], float(start_s), float(end_s))
            for at, kind, start_s, end_s in rows
            if at == stage
        ]
        lanes.append(Lane(f"stage {stage + 1}, compute stream", tuple(passes)))
        lanes.append(Lane(f"stage {stage + 1}, NCCL stream", _messages(passes, stage, stages, message_s)))
    return Profile(tuple(lanes), DRAWN)


def _messages(passes: list[Event], stage: int, stages: int, message_s: float) -> tuple[Event, ...]:
    """The kernels that send each pass's result and receive the next pass's input."""
    forward, found = PASSES[0], []
    before_s = 0.0
    for one in passes:
        neighbour = stage > 0 if one.name == forward else stage < stages - 1
        if neighbour and one.start_s > before_s:  # it waited for a message
            found.append((before_s, one.start_s))
        before_s = one.end_s
        sends = stage < stages - 1 if one.name == forward else stage > 0
        if sends:
            found.append((one.end_s, one.end_s + message_s))
    joined: list[tuple[float, float]] = []
    for start_s, end_s in sorted(found):
        if joined and start_s < joined[-1][1] - 1e-12:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end_s))
        else:
            joined.append((start_s, end_s))
    return tuple(Event(SEND_RECV, start_s, end_s) for start_s, end_s in joined)


def data_parallel_steps(tokens: list[int]) -> Profile:
    """A profile of a step of Llama 3 8B under DistributedDataParallel for each number of tokens on a GPU: 256
    H100s, one in each node with a card of its own. Each step has a lane for its passes and one for its
    AllReduces."""
    lanes: list[Lane] = []
    card = catalog.link("ib-ndr")
    for each in tokens:
        check.positive(tokens=each)
        step = data_parallel.simulate_step(
            catalog.model("llama3-8b"),
            each,
            DDP_RANKS,
            matmul.product_flops_per_s(catalog.gpu("h100-sxm")),
            card.bytes_per_s,
            start_ups.hop_s(card),
            DDP_BUCKET,
        )
        passes = [
            Event("forward" if at == data_parallel.FORWARD_PASS else "backward of a layer", start_s, end_s)
            for at, start_s, end_s in _rows(step, "layer", "layer_start_s", "layer_end_s")
        ]
        sums = [
            Event(ALL_REDUCE, start_s, end_s)
            for start_s, end_s in _rows(step, "bucket_start_s", "bucket_end_s")
        ]
        lanes.append(Lane(f"{each:,} tokens, compute stream", tuple(passes)))
        lanes.append(Lane(f"{each:,} tokens, NCCL stream", tuple(sums)))
    return Profile(tuple(lanes), DRAWN)


def _rows(step: dict, *columns: str) -> list[tuple[float, ...]]:
    """The rows of some columns of a program's result, which is filled up with NaN."""
    rows = zip(*(step[name] for name in columns))
    return [tuple(float(each) for each in row) for row in rows if row[-1] == row[-1]]
