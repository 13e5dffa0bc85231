"""How a training step is laid out over GPUs, whether that is legal, and what it costs: ``estimate``.

The axes, innermost first: tensor (tp), context (cp), data (dp), pipeline (pp). DP is what remains of the GPUs. Experts
are spread over ep groups of expert_tp GPUs, taken from the tensor, context and data ranks of a stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from engine import catalog, check, flops
from engine.calibration import DEFAULT
from engine.interconnect import wires
from engine.matmul import chip
from engine.memory import RECOMPUTE
from engine.pipeline import SCHEDULES, schedule
from engine.recipes import Recipe
from engine.shape import shape
from engine.step import Axes, Terms, step

ZERO_STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Job:
    """What is to be done in a step, and the software that does it."""

    global_batch: int
    seq: int
    recipe: Recipe | None = None            # bf16 mixed Adam with fp32 gradients unless said otherwise
    sequence_parallel: bool = True          # with tensor parallelism, shard norms and dropout too
    flash: bool = True                      # fused attention
    overlap: bool = True                    # data-parallel traffic (and interleaved stages' messages) behind arithmetic
    fused: bool = True                      # weight gradients summed inside their product; stage outputs freed once sent
    gather_context: bool = False            # context parallelism by AllGather instead of a ring
    imbalance: float = 1.1                  # the fullest expert rank's load over the mean

    def __post_init__(self):
        check.whole(global_batch=self.global_batch, seq=self.seq)
        check.between(1, 1000, imbalance=self.imbalance)


@dataclass(frozen=True)
class Layout:
    """Which GPU does what."""

    gpus: int
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    zero: int = 1
    micro_batch: int = 1
    recompute: str = "none"
    schedule: str = "1f1b"
    interleave: int = 1
    expert_tp: int = 1
    shard: int = 0                          # HSDP: GPUs that share one copy of the state under ZeRO; 0 for all

    @property
    def dp(self) -> int:
        return self.gpus // (self.tp * self.pp * self.cp)


@dataclass(frozen=True, slots=True)
class Machine:
    """One GPU at work in one precision, and the wires around it."""

    gpu: object
    precision: str
    chip: object
    wires: object


@lru_cache(256)
def machine(gpu, precision="bf16", gpus_per_node=None, nic_bytes_per_s=None, oversubscription=1.0, calibration=DEFAULT):
    """A catalogue GPU made ready; its node and NICs can be others than the usual ones."""
    return Machine(gpu, precision, chip(gpu, precision, calibration),
                   wires(gpu, gpus_per_node, nic_bytes_per_s, oversubscription, calibration))


def axes(job: Job, layout: Layout) -> Axes:
    """Job and layout in floats."""
    return Axes(float(job.seq), float(job.global_batch), float(layout.tp), float(layout.pp), float(layout.cp), float(layout.dp), float(layout.ep),
                float(layout.expert_tp), float(layout.zero), float(layout.shard), float(layout.micro_batch),
                float(RECOMPUTE[layout.recompute]), SCHEDULES[layout.schedule], float(layout.interleave))


def terms(model, at: Machine, job: Job, layout: Layout) -> Terms:
    with check.trusted():
        return step(shape(model), job, job.recipe or catalog.recipe("bf16-adam-fp32-grads"), at.chip, at.wires, axes(job, layout))
