"""A served model whose layers lie on several stages: what a batch takes beside its layers, and what a stage
holds.

As many batches go round as there are stages, so every stage is busy, and each batch takes its turn on all of
them: its step takes what the layers take, and is handed on once for each stage. So a pipeline of p stages is
like p replicas, without AllReduces among their GPUs and with one copy of the weights. Leaves out that a batch
waits for those before it that take longer.
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
    return ops.ceil(size.layers / pp) / size.layers


def handed_s(size: Shape, rows: Real, tp: Real, pp: Real, net: Wires) -> Real:
    """Seconds of a step in which the batch is handed on: each of a stage's GPUs sends its part of the hidden
    states, and the last stage sends the tokens back."""
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
