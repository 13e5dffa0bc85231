"""Eager execution: the CPU issues operators one by one, a queue holds them, and the GPU runs them in order.

Leaves out kernels that run in parallel on several streams, the few microseconds between a launch and its
start (they delay every kernel equally), and the CPU work between steps.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypedDict

import numpy as np

from engine.base import check
from engine.base.program import program, zeros
from engine.base.types import Real
from engine.calibration import DEFAULT, launch_costs
from engine.catalog import files
from engine.one_gpu import measurements

# launches that CUDA queues before the next one blocks: "about 1000", says stackoverflow.com/q/53970187
QUEUE = 1024.0
MATMUL_SHARE = (
    0.8  # of the dense peak, for a large bf16 product on an H100 (engine/catalog/achievable.toml: 0.803)
)
BYTES = 2.0  # per bf16 value
MOST = 4096  # operators in a run
ADD, MATMUL = 0.0, 1.0  # kinds of operator


# -- GPU time of one operator --------------------------------------------------------------------------------
def add_s(values: Real, hbm_bytes_per_s: Real, shortest_s: Real = launch_costs.SHORTEST_S) -> Real:
    """c = a + b on this many bf16 values: two are read and one is written for each, at the memory's
    calibrated rate."""
    if not check.is_trusted():
        check.positive(values=values, hbm_bytes_per_s=hbm_bytes_per_s)
    return np.maximum(shortest_s, 3 * BYTES * values / (DEFAULT.memory_share * hbm_bytes_per_s))


def matmul_s(
    side: Real, flops_per_s: Real, hbm_bytes_per_s: Real, shortest_s: Real = launch_costs.SHORTEST_S
) -> Real:
    """A product of two square bf16 matrices: 2·n³ FLOPs or 3·n² values, whichever takes longer (the
    roofline).

    A lesson's simplification of ``products.gemm_s``, which is fitted on measurements and which all estimates
    of a step use. On an H100 the two agree within 2 % from a side of 4,096 on; this one is 18 % lower at
    2,048 and 63 % lower at 1,024, since it leaves out launches, tiles that do not fill the chip, and the
    steps in which a tile's pipeline fills.
    """
    if not check.is_trusted():
        check.positive(side=side, flops_per_s=flops_per_s)
    return np.maximum(add_s(side**2, hbm_bytes_per_s, shortest_s), 2 * side**3 / (MATMUL_SHARE * flops_per_s))


def op_s(
    kind: Real,
    side: Real,
    flops_per_s: Real,
    hbm_bytes_per_s: Real,
    shortest_s: Real = launch_costs.SHORTEST_S,
) -> Real:
    """GPU time of an operator on square bf16 matrices: ADD or MATMUL."""
    return np.where(
        kind == MATMUL,
        matmul_s(side, flops_per_s, hbm_bytes_per_s, shortest_s),
        add_s(side**2, hbm_bytes_per_s, shortest_s),
    )


def covering_add(issue_s: Real, hbm_bytes_per_s: Real) -> Real:
    """The number of values from which an addition takes the GPU as long as the CPU takes to issue the next:
    add_s = issue_s, solved."""
    if not check.is_trusted():
        check.positive(issue_s=issue_s, hbm_bytes_per_s=hbm_bytes_per_s)
    return issue_s * DEFAULT.memory_share * hbm_bytes_per_s / (3 * BYTES)


def covering_matmul(issue_s: Real, flops_per_s: Real) -> Real:
    """The side from which a product takes the GPU as long as the CPU takes to issue the next: 2·n³ / rate =
    issue_s, solved."""
    if not check.is_trusted():
        check.positive(issue_s=issue_s, flops_per_s=flops_per_s)
    return (issue_s * MATMUL_SHARE * flops_per_s / 2) ** (1 / 3)


def covering_side(kind: Real, issue_s: Real, flops_per_s: Real, hbm_bytes_per_s: Real) -> Real:
    """The side of the matrices from which the GPU is the slower of the two."""
    return np.where(
        kind == MATMUL, covering_matmul(issue_s, flops_per_s), np.sqrt(covering_add(issue_s, hbm_bytes_per_s))
    )


# -- the rule ------------------------------------------------------------------------------------------------
def step_s(ops: Real, issue_s: Real, gpu_s: Real, sync_every: Real = 0.0) -> Real:
    """The time of this many equal operators, from the first call to the last kernel's end.

    n·max(i, g) + min(i, g); with a synchronization after every k operators, each group of k adds the minimum
    again. Leaves out the queue's length, which delays the CPU but not the GPU. Source: derived; ``run``
    executes it.
    """
    if not check.is_trusted():
        check.non_negative(ops=ops, issue_s=issue_s, gpu_s=gpu_s, sync_every=sync_every)
    stretches = np.where(sync_every > 0, np.ceil(ops / np.maximum(sync_every, 1)), 1.0)
    return ops * np.maximum(issue_s, gpu_s) + stretches * np.minimum(issue_s, gpu_s)


def pace_s(issue_s: Real, gpu_s: Real, sync_every: Real = 0.0) -> Real:
    """The time that each operator adds to a long step: the time of the slower lane and, if every k-th result
    is read, a k-th of the faster lane's time."""
    if not check.is_trusted():
        check.non_negative(issue_s=issue_s, gpu_s=gpu_s, sync_every=sync_every)
    added = np.where(sync_every > 0, 1 / np.maximum(sync_every, 1), 0.0)
    return np.maximum(issue_s, gpu_s) + added * np.minimum(issue_s, gpu_s)


def gain_of_faster_gpu(
    ops: Real, issue_s: Real, gpu_s: Real, sync_every: Real = 0.0, faster: Real = 2.0
) -> Real:
    """How much shorter a step gets when each kernel runs ``faster`` times as fast."""
    return step_s(ops, issue_s, gpu_s, sync_every) / step_s(ops, issue_s, gpu_s / faster, sync_every)


@program(
    issued_s=MOST,
    launched_s=MOST,
    start_s=MOST,
    end_s=MOST,
    total_s=(),
    gpu_idle_s=(),
    cpu_waits_s=(),
    most_queued=(),
)
def run(ops: float, issue_s: float, gpu_s: float, sync_every: float, queue: float) -> dict[str, Any]:
    """The two lanes, operator by operator. issued_s, launched_s: when the CPU begins with an operator and
    when its launch is in the queue. start_s, end_s: its kernel. A launch has to wait while `queue` earlier
    ones have not ended. sync_every 0: the CPU never waits for results.
    """
    count, every, room = int(ops), int(sync_every), int(queue)
    issued_s, launched_s, start_s, end_s = zeros(count), zeros(count), zeros(count), zeros(count)
    cpu_s, gpu_free_s, gpu_idle_s, cpu_waits_s, most_queued, ended = 0.0, 0.0, 0.0, 0.0, 0, 0
    for i in range(count):
        issued_s[i] = cpu_s
        ready_s = cpu_s + issue_s
        launched_s[i] = ready_s
        if i >= room and end_s[i - room] > ready_s:
            launched_s[i] = end_s[i - room]
            cpu_waits_s += launched_s[i] - ready_s
        start_s[i] = max(launched_s[i], gpu_free_s)
        gpu_idle_s += start_s[i] - gpu_free_s
        end_s[i] = start_s[i] + gpu_s
        gpu_free_s = end_s[i]
        while end_s[ended] <= launched_s[i]:
            ended += 1
        most_queued = max(most_queued, i + 1 - ended)
        cpu_s = launched_s[i]
        if every > 0 and (i + 1) % every == 0:
            cpu_waits_s += max(0.0, gpu_free_s - cpu_s)
            cpu_s = max(cpu_s, gpu_free_s)
    return {
        "issued_s": issued_s,
        "launched_s": launched_s,
        "start_s": start_s,
        "end_s": end_s,
        "total_s": max(cpu_s, gpu_free_s),
        "gpu_idle_s": gpu_idle_s,
        "cpu_waits_s": cpu_waits_s,
        "most_queued": most_queued,
    }


# -- timed by others, and here -------------------------------------------------------------------------------
class Launches(TypedDict):
    """Published timings of small operators."""

    name: str
    kind: str  # matmul or add
    sides: list[int]  # side of the square matrices
    seconds: list[float]  # time per operator
    note: str
    source: str
    checked: str


@cache
def cited() -> dict[str, Launches]:
    """Published timings: name -> sides of square matrices, seconds per operator, source."""
    return files.table("launches.toml", Launches)


class TimedOperator(NamedTuple):
    """An operator on square matrices that was timed in a loop: by whom, on which GPU of the catalogue ("" if
    the source does not say), and for our own timings also the kernel alone."""

    who: str
    gpu: str
    side: int
    seconds: float
    kernel_s: float


@cache
def timed(kind: str) -> list[TimedOperator]:
    """The timings of "matmul" or "add": published ones, and our own from `make measure`."""
    rows = [
        TimedOperator(entry["name"], "", side, seconds, 0.0)
        for entry in cited().values()
        if entry["kind"] == kind
        for side, seconds in zip(entry["sides"], entry["seconds"])
    ]
    for key, found in measurements.on_known("launches"):
        for point in found[kind]:
            rows.append(TimedOperator("measured", key, point["side"], point["op_s"], point["kernel_s"]))
    return rows
