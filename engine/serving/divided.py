"""A served replica with pipeline stages, or with groups that share experts: what ``inference.infer`` says of
a replica with tensor ranks alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.base import check, ops
from engine.mechanism import memory
from engine.mechanism.shape import shape
from engine.serving import inference, stages, wide
from engine.serving.inference import BYTES_PER_VALUE, Served, Serving, StepTime

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.step.layout import Machine


def infer(model: Model, at: Machine, serving: Serving) -> Served:
    """The latencies and throughput of ``batch`` requests, however the replica is divided: they are dealt out
    evenly to the batches that go round a pipeline, or to the groups that share experts."""
    if serving.dp > 1:
        return _spread(model, at, serving)
    return _staged(model, at, serving) if serving.pp > 1 else inference.infer(model, at, serving)


def _staged(model: Model, at: Machine, s: Serving) -> Served:
    """A pipeline with as many batches as stages, p. Reading the prompts of all batches takes 2p − 1 stage
    times, (2p − 1)/p of a batch's pass: after the first batch has gone through all p stages, one more batch
    leaves the last stage in each stage time."""
    alone = inference.infer(model, at, replace(s, batch=_part(s.batch, s.pp), pp=1))
    size, tp, pp = shape(model), s.tp * 1.0, s.pp * 1.0
    batch = alone.serving.batch

    def handed(step: StepTime, rows: float) -> StepTime:
        more_s = stages.handed_s(size, rows, tp, pp, at.wires)
        return replace(step, communication_s=step.communication_s + more_s)

    together = _times(handed(alone.prefill, batch * s.prompt * 1.0), (2.0 * pp - 1.0) / pp)
    weights = float(stages.weight_bytes_per_gpu(model, at, tp, pp, s.weight_precision))
    one = _cache_bytes(model, s) * float(stages.largest_share(size, pp))
    return Served(
        model,
        at,
        s,
        together,
        handed(alone.prefill_one, s.prompt * 1.0),
        handed(alone.decode, batch * 1.0),
        _fitting(at, weights, one),
        weights,
    )


def _spread(model: Model, at: Machine, s: Serving) -> Served:
    """Groups that share experts. Each group has its part of the requests, and reads the prompts of its part
    together."""
    inference.require_servable(model, at, s)
    wide.require_experts(model, s.tp, s.dp)
    weights = float(wide.weight_bytes_per_gpu(model, at, s.tp, s.dp, s.weight_precision))
    size, batch = shape(model), _part(s.batch, s.dp) * 1.0

    def told(rows: float, attention_s: float, prompts: bool) -> StepTime:
        stored = inference.stored_bytes(at, s.weight_precision)
        of = wide.Batch(size, rows, attention_s, s.tp * 1.0, s.dp * 1.0, prompts, stored, at.chip, at.wires)
        found = wide.chosen(of)
        other_s = inference.other_s(size, rows, s.tp * 1.0, at.chip)
        return StepTime(found.work_s - attention_s - other_s, attention_s, other_s, found.wires_s)

    def read(prompts: float) -> StepTime:
        attention_s = inference.prompt_attention_s(size, prompts, s.prompt * 1.0, s.tp * 1.0, at.chip)
        return told(prompts * s.prompt, attention_s, True)

    context, value_bytes = s.prompt + s.output / 2.0, BYTES_PER_VALUE[s.kv_precision]
    with check.trusted():
        attention_s = inference.attention_s(
            size, batch, context, s.tp * 1.0, value_bytes, at.chip, s.shares_reads
        )
        decode = told(batch, attention_s, False)
        largest = int(s.dp) * _fitting(at, weights, _cache_bytes(model, s))
        return Served(model, at, s, read(batch), read(1.0), decode, largest, weights)


def _part(batch: float, parts: float) -> int:
    """How many requests the fullest of ``parts`` equal parts has."""
    return int(ops.ceil(batch / parts))


def _times(step: StepTime, factor: float) -> StepTime:
    parts = step.weights_s, step.attention_s, step.other_s, step.communication_s
    return StepTime(*(factor * part for part in parts))


def _cache_bytes(model: Model, s: Serving) -> float:
    """Bytes of cache on one GPU for one request at its longest."""
    size = shape(model)
    with check.trusted():
        value_bytes = BYTES_PER_VALUE[s.kv_precision]
        return float(inference.kept_bytes(size, float(s.prompt + s.output), 1.0, value_bytes, float(s.tp)))


def _fitting(at: Machine, weights: float, one: float) -> int:
    return max(0, int((memory.server_bytes(at.gpu) - weights) // one))
