"""The numbers of lesson 15, CUDA memory and the caching allocator."""

from functools import cache
from typing import Any

import numpy as np

from engine.catalog import gpu, link
from engine.catalog.hardware import Gpu
from engine.mechanism import matmul
from engine.one_gpu import allocator, allocator_replay, measurements, memory_timeline
from engine.validation import own_gpus

recorded = allocator_replay.trace()  # the storages of one training step


def run(
    spread: float, memory: float, length: int = 8192, expandable: int = 0, steps: int = 12
) -> dict[str, Any]:
    """That step replayed, with lengths that vary around one by this share, on a GPU with so many bytes."""
    return allocator_replay.of_steps(
        steps, length, spread, seed=8, capacity_bytes=memory, expandable=expandable, moment=steps
    )


opening = run(length=10240, spread=0.5, memory=80e9)  # the opening case
cured = run(length=10240, spread=0.5, memory=80e9, expandable=1)  # the opening case with expandable segments
one_length = run(spread=0, memory=180e9)  # twelve steps of one length
first_step = run(steps=1, spread=0, memory=180e9)  # the first of them
second_step = run(steps=2, spread=0, memory=180e9)  # the first two of them
beside = own_gpus.reserved()  # PyTorch's own allocator and the replay
# what the GPU allocates beside the replay
extra_bytes = beside[0].allocated_bytes - beside[0].replayed_allocated_bytes
apart = np.sort([abs(it.error) for it in beside])  # how far the replay's reserved memory is off
# what it reserved beyond the replay at most
needed_more = np.max([it.reserved_bytes / it.replayed_reserved_bytes - 1 for it in beside])
h100_calls = measurements.on("h100-sxm")["allocations"]["sizes"]  # allocations timed on an H100


def calls_s(each: dict[str, float]) -> float:
    """Seconds that a step's requests would take at such calls."""
    return len(recorded["steady"]) / 2 * (each["malloc_s"] + each["free_s"])


drawn = run(spread=0.1, memory=80e9)  # the replay of the figure
# twelve steps of one length in the middle of one
halfway = allocator_replay.of_steps(
    steps=12, length=8192, spread=0, seed=8, capacity_bytes=80e9, expandable=0, moment=5.25
)
healthy = memory_timeline.on_gpu()  # what was allocated over two steps of one length, on an H100
# the same by the storages that the meta device makes
on_meta = memory_timeline.of_steps(steps=2, length=8192)
# the same over three steps that keep their scores
leaking = memory_timeline.of_steps(steps=3, length=8192, keeps_scores=True)
excess = allocator_replay.excess  # reserved at most over allocated at most


def length_of(step: int) -> int:
    """Tokens of a step of that replay."""
    return allocator_replay.length_of_step(step, length=8192, spread=0.1, seed=8)


@cache
def draws() -> dict[str, np.ndarray]:
    """The same with other lengths by chance."""
    return allocator_replay.over_seeds(length=8192, spread=0.1, capacity_bytes=180e9)


# what one token more needs
token_bytes = (
    (
        run(length=10240, spread=0, memory=180e9, expandable=1)["peak_allocated_bytes"]
        - run(spread=0, memory=180e9, expandable=1)["peak_allocated_bytes"]
    )
    / 2048
    / 4
)


h100 = gpu("h100-sxm")  # an H100


def hiding_width(on: Gpu, wire: str) -> float:
    """The width from which a layer's arithmetic hides the copy of what it keeps."""
    return 4 / 3 * matmul.product_flops_per_s(on) / link(wire).bytes_per_s


def pool_of(asked_bytes: float) -> str:
    """The pool that serves a request."""
    return ["small", "large"][allocator.pool_of(allocator.rounded_bytes(asked_bytes))]


def segment_for(asked_bytes: float) -> float:
    """The bytes of a new segment for a request."""
    return allocator.segment_bytes(allocator.rounded_bytes(asked_bytes))


# -- what single sentences say -------------------------------------------------------------------------------
# how far the peak on meta lies below the H100's
meta_below = healthy.of_step(2).max() - on_meta.of_step(2).max()
healthy_peak = healthy.of_step(2).max()  # the H100's peak in its second step
# one of the two workspaces that are missing
workspace_bytes = (healthy.of_step(2)[-1] - on_meta.of_step(2)[-1]) / 2
# what each step leaves more than the one before
leak_a_step = leaking.of_step(3)[-1] - leaking.of_step(2)[-1]
# the first nine buffers, which later ones outgrow
outgrown_bytes = 3 * 8 * 50257 * sum(length_of(step=n) for n in (1, 2, 3))


@cache
def median_excess() -> float:
    """The median excess over all seeds."""
    return np.median(draws()["ratio"]) - 1


@cache
def excess_as_is() -> float:
    """The excess of the replay."""
    return excess(run(spread=0.1, memory=180e9))


@cache
def excess_expandable() -> float:
    """The same with expandable segments."""
    return excess(run(spread=0.1, memory=180e9, expandable=1))


third_segment = allocator.segment_bytes(allocator.rounded_bytes(1.2e6))  # the segment of the third request
# what the first two leave of the small segment
small_rest = allocator.SMALL_SEGMENT - sum(allocator.rounded_bytes(n) for n in (3e5, 7e5))
