"""A served model whose layers are divided among pipeline stages: the time that a batch takes in addition to
its layers, and the bytes that a stage holds.

There are as many batches as stages, so every stage is busy. Each batch passes through all stages in turn: its
step takes the time of all layers, and of one transfer for each stage. So a pipeline of p stages is like p
replicas, without AllReduces among their GPUs and with one copy of the weights. Leaves out that a batch has to
wait for a batch before it that takes longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.base import ops
from engine.base.types import Real
from engine.mechanism.interconnect import send_s
from engine.mechanism.shape import shape
from engine.serving import inference

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.mechanism.interconnect import Wires
    from engine.mechanism.shape import Shape
    from engine.step.layout import Machine


def largest_share(size: Shape, pp: Real) -> Real:
    """The share of all layers on the stage that has most of them: ⌈L/p⌉/L."""
    return ops.ceil(size.depth / pp) / size.depth


def handed_s(size: Shape, rows: Real, tp: Real, pp: Real, net: Wires) -> Real:
    """Seconds that a step spends on transfers between stages: each of a stage's GPUs sends its part of the
    hidden states to the next stage, and the last stage sends the tokens back."""
    beyond = tp * pp > net.gpus_per_node
    return ops.where(pp > 1.0, pp * send_s(rows * size.hidden * 2.0 / tp, beyond, net), 0.0)


def weight_bytes_per_gpu(
    model: Model, at: Machine, tp: Real, pp: Real, weight_precision: str | Real | None = None
) -> Real:
    """Bytes of weights on a GPU of the fullest stage; the first has the embedding, the last the output layer
    (``inference.weight_bytes_per_gpu`` for a single stage)."""
    size = shape(model)
    embeddings = size.embedding_params + size.head_params
    matrices = (size.total_params - embeddings) * largest_share(size, pp)
    ends = ops.where(pp > 1.0, ops.maximum(size.embedding_params, size.last_stage_params), embeddings)
    return (matrices * inference.stored_bytes(at, weight_precision) + ends * at.chip.wide_bytes) / tp
