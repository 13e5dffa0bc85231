"""Which batch sizes to capture: each step runs the smallest captured graph that fits its batch, padded to
that size.

The batches are those of a server with random arrivals, run step by step. The lists of sizes are those that
servers ship, or the best one for the traffic, found by dynamic programming.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine import catalog
from engine.base import check
from engine.base.program import full, program, zeros
from engine.base.types import Real
from engine.serving import decoding
from engine.serving.events import draw
from engine.step.layout import machine

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.models import Model
    from engine.step.layout import Machine

LARGEST = 128  # most sequences that run at once; further ones wait
STEPS, WARM = 4000, 1000  # steps that are counted, and warm-up steps before them
ANSWER = 200  # mean tokens per answer
FAR = 1e300
POWERS, SHIPPED, BEST, EVERY = range(4)
"""Plans. SHIPPED is 1, 2, 4, then every eighth: vLLM's list up to 256 (vllm/config/compilation.py), and
TensorRT-LLM's up to 128 with padding on (tensorrt_llm/llmapi/llm_args.py)."""


def captured_sizes(plan: float) -> list[int]:
    """The sizes of a plan that does not depend on the traffic, ascending."""
    sizes, size = [], 1
    while size <= LARGEST:
        sizes.append(size)
        if plan == EVERY:
            size += 1
        elif plan == POWERS or size < 8:
            size = 2 * size
        else:
            size += 8
    return sizes


def batches(load: Real, spread: Real, seed: Real) -> list[Any]:
    """How many steps ran with each batch, 0 to LARGEST. Poisson arrivals with ``load`` running on average;
    the lengths of answers are log-normal, with ``spread`` the standard deviation of their logarithm."""
    change = zeros(WARM + STEPS + 1)
    state, now = int(seed) * 7919 + 1, 0.0
    for _ in range(3):
        state = draw(state)
    while now < WARM + STEPS:
        state = draw(state)
        now = now - math.log(state / 2147483647) * ANSWER / load
        state = draw(state)
        radius = math.sqrt(-2 * math.log(state / 2147483647))
        state = draw(state)
        normal = radius * math.cos(2 * math.pi * state / 2147483647)
        tokens = max(1, round(ANSWER * math.exp(spread * normal - spread * spread / 2)))
        if now < WARM + STEPS:
            change[int(now)] += 1
            change[int(min(WARM + STEPS, int(now) + tokens))] -= 1
    counts, running = zeros(LARGEST + 1), 0
    for i in range(WARM + STEPS):
        running += change[i]
        if i >= WARM:
            counts[int(min(LARGEST, running))] += 1
    return counts


def best(counts: list[Any], kept: Real) -> list[int]:
    """The ``kept`` sizes, LARGEST among them, that pad the fewest rows.

    Bellman: the fewest padded rows for batches up to j with n sizes, j being the last, is the minimum over i
    of the fewest for batches up to i with n − 1 sizes plus the padding of batches i + 1 … j to j, which comes
    from running sums.

    Knuth (Acta Informatica 1, 1971) and Yao (STOC 1980): the cost satisfies the quadrangle inequality, so the
    best i decreases neither when j grows nor when n does. It only has to be looked for between the best i of
    (n − 1, j) and the best i of (n, j + 1).
    """
    steps, rows = zeros(LARGEST + 1), zeros(LARGEST + 1)
    for j in range(1, LARGEST + 1):
        steps[j] = steps[j - 1] + counts[j]
        rows[j] = rows[j - 1] + counts[j] * j
    fewest, before, cut = full(LARGEST + 1, FAR), full(LARGEST + 1, 0), []
    fewest[0] = 0.0
    for n in range(int(kept)):
        better, came, last = full(LARGEST + 1, FAR), full(LARGEST + 1, 0), LARGEST
        for j in range(LARGEST, n, -1):
            for i in range(max(n, before[j]), min(last, j - 1) + 1):
                total = fewest[i] + j * (steps[j] - steps[i]) - (rows[j] - rows[i])
                if total < better[j]:
                    better[j], last = total, i
            came[j] = last
        fewest, before = better, came
        cut.append(came)
    sizes, j = zeros(kept), LARGEST
    for n in range(int(kept)):
        place = int(kept) - 1 - n
        sizes[place] = j
        j = cut[place][j]
    return sizes


def buckets_of(sizes: list[int]) -> list[Any]:
    """For each batch, 0 to LARGEST, the smallest captured size that holds it; 0 if no size does."""
    found, place = zeros(LARGEST + 1), 0
    for batch in range(1, LARGEST + 1):
        while place < len(sizes) - 1 and sizes[place] < batch:
            place += 1
        found[batch] = sizes[place]
    return found


def padding(counts: list[float], bucket: list[float]) -> Real:
    """Rows that were computed only as padding."""
    total = 0
    for batch in range(1, LARGEST + 1):
        total += counts[batch] * (bucket[batch] - batch)
    return total


@program(counts=LARGEST + 1, bucket=LARGEST + 1, sizes=LARGEST, graphs=(), rows=(), padded=(), least=())
def fit(load: Real, spread: Real, seed: Real, plan: float, kept: Real) -> dict[str, Any]:
    """A plan under traffic. ``least`` are the rows that the best list with the same number of graphs would
    pad."""
    counts = batches(load, spread, seed)
    sizes = best(counts, kept) if plan == BEST else captured_sizes(plan)
    bucket = buckets_of(sizes)
    rows = 0
    for batch in range(1, LARGEST + 1):
        rows += counts[batch] * batch
    padded = padding(counts, bucket)
    least = padded
    if plan == POWERS or plan == SHIPPED:  # noqa: SIM109  a program knows no `in`
        least = padding(counts, buckets_of(best(counts, len(sizes))))
    return {
        "counts": counts,
        "bucket": bucket,
        "sizes": sizes,
        "graphs": len(sizes),
        "rows": rows,
        "padded": padded,
        "least": least,
    }


def rows_computed(counts: Real, bucket: Real) -> tuple[Real, Real]:
    """(rows wanted, rows computed) in all steps with b sequences, for each b from 0 on: with c such steps c·b
    rows are wanted, and c times the captured size for b is computed."""
    return counts * np.arange(LARGEST + 1.0), counts * bucket


# -- the cost of the graphs ----------------------------------------------------------------------------------
class Cost(NamedTuple):
    """The cost of all graphs that a server keeps."""

    graphs: float
    memory_bytes: float
    capture_s: float


def cost(sizes: Real, lengths: Real, graph_bytes: Real, graph_s: Real) -> Cost:
    """The cost of one graph for each batch size and each of ``lengths`` lengths: the second dimension
    multiplies the number of graphs."""
    if not check.is_trusted():
        check.positive(sizes=sizes, lengths=lengths)
        check.non_negative(graph_bytes=graph_bytes, graph_s=graph_s)
    graphs = sizes * lengths
    return Cost(graphs, graphs * graph_bytes, graphs * graph_s)


def step_times_s(model: Model, at: Machine) -> Real:
    """The time of a decode step with each batch, 0 to LARGEST, on one GPU, without its cache, because a
    padded row has none to read."""
    sizes = np.maximum(1.0, np.arange(LARGEST + 1.0))
    with check.trusted():
        return decoding.split(model, at, 1.0, sizes, 0.0).total_s


def time_lost(counts: Real, step_s: Real, padded_step_s: Real) -> Real:
    """The relative slowdown of the steps by padding."""
    ran = np.where(np.arange(LARGEST + 1) > 0, counts, 0.0)
    return np.sum(ran * padded_step_s) / np.sum(ran * step_s) - 1.0


def room_bytes(model: Model, gpu: Gpu) -> Real:
    """The memory left for caches and graphs beside the weights on one GPU."""
    held = decoding.room(model, gpu, 1, 1.0)
    return np.maximum(0.0, held.users * held.user_bytes)


def lengths_that_fill(share: Real, room: Real, sizes: int, graph_bytes: Real) -> Real:
    """The number of captured lengths at which the graphs take this share of the room."""
    check.positive(share=share, sizes=sizes, graph_bytes=graph_bytes)
    return share * room / (sizes * graph_bytes)


def lost(model_key: str, gpu_key: str, fitted: dict[str, Any]) -> float:
    """``time_lost`` by the names of a model and a GPU, for a lesson."""
    step_s = step_times_s(catalog.model(model_key), machine(catalog.gpu(gpu_key)))
    return time_lost(fitted["counts"], step_s, step_s[fitted["bucket"].astype(int)])
