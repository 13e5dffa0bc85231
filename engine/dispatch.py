"""Eager execution: the CPU issues operators one by one, a queue holds them, the GPU runs them in order.

Leaves out: kernels that run side by side on several streams, the few microseconds between a launch and its start (they
delay every kernel alike), and the CPU work between steps.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import numpy as np

from engine import check, measurements
from engine.calibration import DEFAULT
from engine.program import program, zeros

QUEUE = 1024.0          # launches that CUDA keeps before the next one blocks: seen as "about 1000" (stackoverflow.com/q/53970187)
SHORTEST_S = 2e-6       # a kernel with next to nothing to do; an assumption, which `measure/launches.py` replaces
MATMUL_SHARE = 0.8      # of the dense peak, for a large bf16 product on an H100 (engine/catalog/achievable.toml: 0.803)
BYTES = 2.0             # of a bf16 value
MOST = 4096             # operators of a run
ADD, MATMUL = 0.0, 1.0  # kinds of operator


# -- what one operator takes on the GPU ------------------------------------------------------------------------------
def add_s(values, hbm_bytes_per_s, shortest_s=SHORTEST_S):
    """c = a + b on so many bf16 values: two are read and one is written for each, at the memory's calibrated share."""
    if not check.is_trusted():
        check.positive(values=values, hbm_bytes_per_s=hbm_bytes_per_s)
    return np.maximum(shortest_s, 3 * BYTES * values / (DEFAULT.memory_share * hbm_bytes_per_s))


def matmul_s(side, flops_per_s, hbm_bytes_per_s, shortest_s=SHORTEST_S):
    """A product of two square bf16 matrices: 2·n³ FLOPs or 3·n² values, whichever takes longer (the roofline)."""
    if not check.is_trusted():
        check.positive(side=side, flops_per_s=flops_per_s)
    return np.maximum(add_s(side**2, hbm_bytes_per_s, shortest_s), 2 * side**3 / (MATMUL_SHARE * flops_per_s))


def op_s(kind, side, flops_per_s, hbm_bytes_per_s, shortest_s=SHORTEST_S):
    """Of an operator on square bf16 matrices: ADD or MATMUL."""
    return np.where(kind == MATMUL, matmul_s(side, flops_per_s, hbm_bytes_per_s, shortest_s),
                    add_s(side**2, hbm_bytes_per_s, shortest_s))


def covering_add(issue_s, hbm_bytes_per_s):
    """The values from which an addition on the GPU covers the issue of the next: add_s = issue_s, solved."""
    if not check.is_trusted():
        check.positive(issue_s=issue_s, hbm_bytes_per_s=hbm_bytes_per_s)
    return issue_s * DEFAULT.memory_share * hbm_bytes_per_s / (3 * BYTES)


def covering_matmul(issue_s, flops_per_s):
    """The side from which a product covers it: 2·n³ / rate = issue_s, solved."""
    if not check.is_trusted():
        check.positive(issue_s=issue_s, flops_per_s=flops_per_s)
    return (issue_s * MATMUL_SHARE * flops_per_s / 2) ** (1 / 3)


def covering_side(kind, issue_s, flops_per_s, hbm_bytes_per_s):
    """The side of the matrices from which the GPU is the slower one."""
    return np.where(kind == MATMUL, covering_matmul(issue_s, flops_per_s), np.sqrt(covering_add(issue_s, hbm_bytes_per_s)))


# -- the rule --------------------------------------------------------------------------------------------------------
def step_s(ops, issue_s, gpu_s, sync_every=0.0):
    """How long so many equal operators take, from the first call to the last kernel's end.

    n·max(i, g) + min(i, g); with a synchronization after every k operators each stretch of k pays the minimum again.
    Leaves out the queue's length, which delays the CPU but not the GPU. Source: derived; ``run`` executes it.
    """
    if not check.is_trusted():
        check.non_negative(ops=ops, issue_s=issue_s, gpu_s=gpu_s, sync_every=sync_every)
    stretches = np.where(sync_every > 0, np.ceil(ops / np.maximum(sync_every, 1)), 1.0)
    return ops * np.maximum(issue_s, gpu_s) + stretches * np.minimum(issue_s, gpu_s)


def pace_s(issue_s, gpu_s, sync_every=0.0):
    """What each operator adds to a long step: the slower lane, and the shorter one's share when every k-th result is read."""
    if not check.is_trusted():
        check.non_negative(issue_s=issue_s, gpu_s=gpu_s, sync_every=sync_every)
    added = np.where(sync_every > 0, 1 / np.maximum(sync_every, 1), 0.0)
    return np.maximum(issue_s, gpu_s) + added * np.minimum(issue_s, gpu_s)


def gain_of_faster_gpu(ops, issue_s, gpu_s, sync_every=0.0, faster=2.0):
    """How much shorter a step is when each kernel runs so many times as fast."""
    return step_s(ops, issue_s, gpu_s, sync_every) / step_s(ops, issue_s, gpu_s / faster, sync_every)


@program(issued_s=MOST, launched_s=MOST, start_s=MOST, end_s=MOST, total_s=(), gpu_idle_s=(), cpu_waits_s=(), most_queued=())
def run(ops, issue_s, gpu_s, sync_every, queue):
    """The two lanes, operator by operator.

    issued_s, launched_s: when the CPU begins with an operator and when its launch is in the queue. start_s, end_s: its
    kernel. A launch finds no room while `queue` earlier ones have not ended. sync_every 0: the CPU never waits for results.
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
    return {"issued_s": issued_s, "launched_s": launched_s, "start_s": start_s, "end_s": end_s,
            "total_s": max(cpu_s, gpu_free_s), "gpu_idle_s": gpu_idle_s, "cpu_waits_s": cpu_waits_s, "most_queued": most_queued}


def share(part, whole):
    """A part of a whole, as a number from 0 to 1."""
    return part / whole


# -- timed by others, and here ---------------------------------------------------------------------------------------
@cache
def cited() -> dict:
    """What others timed: name -> sides of square matrices, seconds of an operator, source."""
    with Path(__file__).with_name("catalog").joinpath("launches.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def timed(kind: str) -> list[tuple[str, float, float]]:
    """(who timed it, side, seconds an operator) for "matmul" or "add": others' figures, and what `make measure` found."""
    rows = [(entry["name"], side, seconds) for entry in cited().values() if entry["kind"] == kind
            for side, seconds in zip(entry["sides"], entry["seconds"])]
    for device, found in measurements.of("launches").items():
        rows += [(f"measured on {device}", point["side"], point["op_s"]) for point in found[kind]]
    return rows
