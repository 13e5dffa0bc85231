"""Memory over a training step, as PyTorch's allocator sees it: the fullest stage's passes in the order of its
schedule, each tensor taken from and given back to the allocator that lesson 13 executes.

The sizes are those of the estimate: a layer's activations in the pieces of ``memory.layer_values``, the layer
that is rebuilt, gathered weights, logits. The order is that of ``pipeline_orders``, which the executed
schedules run. PyTorch's own modules make gradients in the backward pass and free them after the optimizer's;
Megatron-LM keeps them in buffers. The fp32 copy of the weights is there from the start, and Adam makes
the rest of its state in the first step. Leaves out workspaces, messages,
and all but the first micro-batches of a step, since the others repeat them.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.frameworks.framework import Framework
from engine.frameworks.registry import frameworks
from engine.launch import beside
from engine.launch.verdict import Report
from engine.mechanism import memory, pipeline
from engine.mechanism.pipeline_orders import BACKWARD, BESIDE, FORWARD, INPUT, batch_of, kind_of, place_of
from engine.mechanism.pipeline_orders import order as order_of
from engine.mechanism.shape import shape
from engine.one_gpu import allocator
from engine.step import step
from engine.step.layout import Estimate, recipe_of
from engine.step.layout import axes as axes_of

# of batches that are as long as their longest sequence, over their greatest length, step by step
LENGTHS = (1.0, 0.55, 0.8, 0.65, 0.95, 0.6)
LOGITS = 3  # tensors as large as the logits, which a loss in fp32 has at once
MOST_PASSES = 160
ENDLESS = 1e18  # bytes, for what does not fit
WASTED = 0.05  # of the memory, from which on fragmentation is worth a word
GIB = 2.0**30


class MomentOfStep(NamedTuple):
    """A pass: what it is, the bytes that tensors have at most and at its end, and what is reserved."""

    what: str
    most_bytes: float
    allocated_bytes: float
    reserved_bytes: float


class Over(NamedTuple):
    """The passes of a step, and the most that was allocated and reserved in all steps that were run."""

    moments: tuple[MomentOfStep, ...]
    peak_bytes: float
    reserved_bytes: float
    beside_bytes: float  # CUDA's and NCCL's own, and other models, which this part of PyTorch does not see
    drawn: int  # micro-batches
    micro_batches: int
    varied: bool  # whether lengths differ from step to step
    failed: bool  # memory ran out on the way; the figures are what it would take
    expandable_bytes: float  # reserved with expandable_segments:True
    expander: str = ""  # the framework whose own launcher asks for that, if it does

    @property
    def wasted_bytes(self) -> float:
        """How many more bytes were reserved at most than were allocated at most."""
        return self.reserved_bytes - self.peak_bytes

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "moments": [[m.what, m.most_bytes, m.allocated_bytes, m.reserved_bytes] for m in self.moments],
            "peak_bytes": self.peak_bytes,
            "reserved_bytes": self.reserved_bytes,
            "expandable_bytes": self.expandable_bytes,
            "beside_bytes": self.beside_bytes,
            "drawn": self.drawn,
            "micro_batches": self.micro_batches,
            "varied": self.varied,
            "failed": self.failed,
        }


class Sizes(NamedTuple):
    """What the fullest stage holds."""

    weights: tuple[float, ...]  # a layer each
    gradients: tuple[float, ...]
    master: tuple[float, ...]  # the weights in fp32, which are there from the beginning
    optimizer: tuple[float, ...]
    pieces: tuple[float, ...]  # that one pass through one layer keeps
    sent: float
    logits: float
    rebuilt: float
    gathered: float
    apart: float  # of streams that communicate, while there are passes
    buffers: float
    passing: float  # that the optimizer takes and gives back
    layers: int  # of a chunk


class AllocatorState:
    """The allocator's state, with the most that was allocated since it was last asked."""

    def __init__(self, capacity_bytes: float, expandable: bool) -> None:
        self.memory = allocator.unused(capacity_bytes, 1.0 if expandable else 0.0)
        self.most = 0.0
        self.failed = False

    def take(self, size: float) -> int:
        """A tensor; −1 where memory ran out, which is kept in mind, or where there is nothing to hold."""
        if size < 1.0 or self.failed:
            return allocator.NONE
        found = allocator.take(self.memory, allocator.rounded_bytes(size), 0.0)
        self.failed = found == allocator.NONE
        self.most = max(self.most, self.allocated)
        return found

    def give(self, tensors: list[int]) -> None:
        """Free tensors, the last one first."""
        for number in reversed(tensors):
            if number != allocator.NONE:
                allocator.release(self.memory, number)

    @property
    def allocated(self) -> float:
        """Bytes that are given to tensors now."""
        return float(self.memory.allocated)

    @property
    def reserved(self) -> float:
        """Bytes that the allocator has taken from the GPU now."""
        return float(self.memory.reserved)


def of(found: Estimate, framework: Framework, passing: float = 0.0, others_bytes: float = 0.0) -> Over | None:
    """The memory of this estimate over its steps, in which the optimizer takes ``passing`` bytes and gives
    them back, beside models of ``others_bytes`` that stay; None for schedules that hold two stages at once,
    and where a part of it comes and goes from the host."""
    if found.layout.schedule == "dualpipe" or found.layout.offload != "none":
        return None
    a = axes_of(found.job, found.layout)
    size = shape(found.model)
    tokens, micro, layers = step.sizes(size, a)
    stages = step.stages(size, found.job, recipe_of(found.job), a, tokens, micro, layers)
    held = stages.held(recipe_of(found.job), a.plan, a.zero)
    sums = [float(sum(part)) for part in held]
    fullest = sums.index(max(sums))
    stage = int((0, min(1, a.pp - 1), a.pp - 1)[fullest])
    drawn = _drawn(int(micro), int(a.pp), int(a.chunks))
    work: list[int] = []
    code = list(pipeline.SCHEDULES).index(found.layout.schedule)
    order_of(work, code, stage, int(a.pp), drawn, int(a.chunks))
    part = (stages.first, stages.second, stages.last)[fullest]
    counted = float((layers.first, layers.full, layers.last)[fullest])
    flight = float(pipeline.in_flight(a.pp, micro, a.chunks, a.plan, float(stage)))
    each = max(1, round(counted / a.chunks))
    kept = float(part.kept_bytes) / max(1e-9, flight) / a.chunks / each
    overhead = found.memory_bytes["overhead"]
    state = recipe_of(found.job)
    master = state.master_bytes / state.optimizer_bytes if state.optimizer_bytes else 0.0
    sizes = Sizes(
        _even(float(held[fullest][0]), each * int(a.chunks)),
        _even(float(held[fullest][1]), each * int(a.chunks)),
        _even(master * float(held[fullest][2]), each * int(a.chunks)),
        _even((1.0 - master) * float(held[fullest][2]), each * int(a.chunks)),
        tuple(kept * share for share in _shares(found)),
        float(part.sent_bytes) / max(1e-9, flight) / a.chunks,
        float(part.logits_bytes + (stages.ends.at_loss if stages.ends and a.zero >= 3 else 0.0)),
        float(stages.working_bytes),
        float(stages.gathered_bytes) if a.zero >= 3 else 0.0,
        float(stages.apart_bytes) if a.zero >= 3 else 0.0,
        max(0.0, float(overhead) - memory.FRAMEWORK_BYTES),
        passing,
        each,
    )
    beside_bytes = memory.FRAMEWORK_BYTES + others_bytes
    capacity = float(memory.capacity_bytes(found.at.gpu)) - beside_bytes
    varied, buffered = framework.pads, framework.keeps_gradients
    lengths = LENGTHS if varied else (1.0, 1.0)
    expands = framework.expands
    turns = int(a.chunks * a.pp)
    moments, peak, usual = _run(AllocatorState(capacity, expands), sizes, work, turns, lengths, buffered)
    failed = usual.failed
    if failed:  # what it would take
        capacity = ENDLESS
        moments, peak, usual = _run(AllocatorState(capacity, expands), sizes, work, turns, lengths, buffered)
    other = (
        usual if expands else _run(AllocatorState(capacity, True), sizes, work, turns, lengths, buffered)[2]
    )
    return Over(
        tuple(moments),
        peak,
        usual.reserved,
        beside_bytes,
        drawn,
        int(micro),
        varied,
        failed,
        other.reserved,
        framework.name if expands else "",
    )


def of_report(found: Report) -> Over | None:
    """That of a report; None where there is no estimate of a training step."""
    if found.estimate is None or found.launch is None:
        return None
    others = 0.0
    if found.launch.roles:
        held = dict(found.estimate.memory_bytes)
        own = {name: float(size) for name, size in held.items() if name not in ("total", "capacity")}
        training = beside.moments(found.launch, found.estimate.at, own).training
        others = sum(size for name, size in training.items() if name not in own)
    return of(found.estimate, frameworks()[found.launch.framework], found.passing_bytes, others)


def _drawn(micro: int, pp: int, chunks: int) -> int:
    """Micro-batches that are followed: enough for the most that a stage holds, in whole turns of the
    schedule."""
    if pp < 2:
        return min(micro, 3)
    most = max(2 * pp, MOST_PASSES // (2 * chunks) // pp * pp)
    return min(micro, 2 * pp, most)


def _even(size: float, count: int) -> tuple[float, ...]:
    return tuple(size / count for _ in range(count))


def _shares(found: Estimate) -> list[float]:
    """The parts in which a layer keeps its activations: one tensor where all is recomputed."""
    if found.layout.recompute == "full" and not found.layout.recompute_layers:
        return [1.0]
    kept = [float(part) for part in memory.layer_values(shape(found.model), 0) if part > 0]
    return [part / sum(kept) for part in kept]


def _run(
    held: AllocatorState, sizes: Sizes, work: list[int], last: int, lengths: tuple[float, ...], buffered: bool
) -> tuple[list[MomentOfStep], float, AllocatorState]:
    """Steps of these lengths: the passes of the first that begins with Adam's state, and the peak of all."""
    for size in (*sizes.weights, *sizes.master, sizes.buffers, *(sizes.gradients if buffered else ())):
        held.take(size)
    moments: list[MomentOfStep] = []
    peak, adam = 0.0, False
    for number, length in enumerate((1.0, *lengths)):
        passes: list[MomentOfStep] = []
        gradients = _step(held, sizes, work, last, length, buffered, passes)
        held.most = held.allocated
        if not adam:
            for size in sizes.optimizer:
                held.take(size)
            adam = True
        held.give([held.take(sizes.passing)])
        held.give(gradients)
        peak = max(peak, held.most, *(one.most_bytes for one in passes))
        passes.append(MomentOfStep("optimizer", held.most, held.allocated, held.reserved))
        if number == 1 or held.failed:
            moments = passes
        if held.failed:
            break
    return moments, peak, held


def _step(
    held: AllocatorState,
    sizes: Sizes,
    work: list[int],
    last: int,
    length: float,
    buffered: bool,
    passes: list[MomentOfStep],
) -> list[int]:
    """The passes of one step; the gradients that it leaves."""
    kept: dict[int, list[int]] = {}
    gradients: list[int] = []
    apart = held.take(sizes.apart)
    for block in work:
        kind, key = kind_of(block), place_of(block) * 100_000 + batch_of(block)
        ends = place_of(block) == last - 1
        held.most = held.allocated
        if kind in (FORWARD, BESIDE):
            kept[key] = _forward(held, sizes, length, ends)
            what = "forward"
        elif kind in (BACKWARD, INPUT):
            _backward(held, sizes, kept.pop(key, []), length, gradients, not buffered)
            what = "backward"
        else:
            what = "weights' gradient"
        passes.append(MomentOfStep(f"{what} {batch_of(block) + 1}", held.most, held.allocated, held.reserved))
        if held.failed:
            break
    held.give([apart])
    return gradients


def _forward(held: AllocatorState, sizes: Sizes, length: float, ends: bool) -> list[int]:
    """A pass through a chunk's layers: what is kept for the backward pass, logits last."""
    found: list[int] = []
    for _ in range(sizes.layers):
        gathered = held.take(sizes.gathered)
        found += [held.take(length * piece) for piece in sizes.pieces]
        held.give([gathered])
    found.append(held.take(length * sizes.sent))
    if ends:
        found += [held.take(length * sizes.logits / LOGITS) for _ in range(LOGITS)]
    return found


def _backward(
    held: AllocatorState, sizes: Sizes, kept: list[int], length: float, gradients: list[int], makes: bool
) -> None:
    """The layers in reverse: logits go first, then each layer's activations, once it is rebuilt."""
    each = len(sizes.pieces)
    ends = kept[sizes.layers * each :]
    held.give(ends)
    first = makes and len(gradients) < len(sizes.gradients)
    for layer in range(sizes.layers):
        working = [held.take(sizes.gathered), held.take(length * sizes.rebuilt)]
        if first:
            gradients.append(held.take(sizes.gradients[len(gradients)]))
        stop = (sizes.layers - layer) * each
        held.give([*kept[stop - each : stop], *working])


def words(found: Over, capacity_bytes: float) -> str:
    """What the allocator makes of it, in a sentence or two; how much it is in all is said above."""
    there = capacity_bytes - found.beside_bytes
    if found.failed and found.peak_bytes <= there:  # tensors fit, but for the pieces between them
        return (
            f"Over a step PyTorch's allocator runs out of memory{lengths_of(found)}: it would keep "
            f"{_gib(found.reserved_bytes)} of the {_gib(there)} there are, some in pieces in which nothing "
            f"fits.{expandable(found)}"
        )
    if found.failed:
        lacks = _gib(found.peak_bytes - there)
        return (
            f"Over a step PyTorch's allocator runs out of memory: it would need {lacks} more than there is."
        )
    lengths = lengths_of(found)
    if found.expander:
        return f"{found.expander}'s own launcher makes PyTorch's segments expandable: they hardly fragment."
    if found.wasted_bytes < WASTED * capacity_bytes:
        return f"Over a step PyTorch's allocator hardly fragments{lengths}."
    return (
        f"Over a step PyTorch's allocator fragments{lengths}: it keeps {_gib(found.wasted_bytes)} more, in "
        f"pieces that did not fit.{expandable(found)}"
    )


def lengths_of(found: Over) -> str:
    """That batches differ, where they do."""
    return " where batches differ in length" if found.varied else ""


def expandable(found: Over) -> str:
    """What segments that can grow would take."""
    return f" PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would reserve {_gib(found.expandable_bytes)}."


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
