"""Copies of the experts that are asked for most, in spare places on the GPUs, and what they leave uneven.

Servers cannot drop a token or teach the router, but they can hold an expert more than once. A balancer counts
the rows of each expert, gives each spare place to the one whose copies are fullest, and packs copies onto
GPUs, the largest first, each to the GPU that has least and room left (greedily, as DeepSeek's EPLB does:
github.com/deepseek-ai/EPLB). Leaves out that counts are some minutes old, and groups of nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from engine.base import check

SEED = 1  # of the order in which experts lie on the GPUs


def liked(experts: int, skew: float) -> list[float]:
    """The rows of each expert over the mean: its share falls with its place among the favourites as
    1/place^skew, and the favourites lie anywhere."""
    check.whole(experts=experts)
    rows = 1.0 / np.arange(1, experts + 1) ** skew
    return [float(each) for each in np.random.default_rng(SEED).permutation(rows / np.mean(rows))]


def copies(rows: Sequence[float], spare: int) -> list[int]:
    """How many copies each expert has, if each spare place goes to the one whose copies are fullest."""
    found = [1] * len(rows)
    fullest = [(-each, expert) for expert, each in enumerate(rows)]
    heapq.heapify(fullest)
    for _ in range(spare):
        _, expert = heapq.heappop(fullest)
        found[expert] += 1
        heapq.heappush(fullest, (-rows[expert] / found[expert], expert))
    return found


def on_gpus(rows: Sequence[float], gpus: int, spare: int) -> list[float]:
    """The rows of each GPU with so many spare places in all: without any, experts lie in order; otherwise
    their copies are packed."""
    check.whole(gpus=gpus)
    check.whole(0, spare=spare)
    if not spare:
        return [float(np.sum(part)) for part in np.array_split(np.asarray(rows), gpus)]
    times = copies(rows, spare)
    pieces = sorted((rows[e] / times[e] for e in range(len(rows)) for _ in range(times[e])), reverse=True)
    room = -(-len(pieces) // gpus)
    found, held = [0.0] * gpus, [0] * gpus
    least = [(0.0, gpu) for gpu in range(gpus)]
    for piece in pieces:
        _, gpu = heapq.heappop(least)
        found[gpu] += piece
        held[gpu] += 1
        if held[gpu] < room:
            heapq.heappush(least, (found[gpu], gpu))
    return found


def fullest(rows: Sequence[float], gpus: int, spare: int) -> float:
    """The fullest GPU over the mean."""
    found = on_gpus(rows, gpus, spare)
    return max(found) * gpus / sum(found)
