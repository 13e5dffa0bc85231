"""What tokens are drafted with beside a served model, and what it holds: another model with weights and a
cache of its own, or one of the model's own modules, which is a layer like its last and a matrix that joins
two tokens. The module's embedding and output layer are the model's (arXiv:2412.19437, section 2.2)."""

from __future__ import annotations

from engine.base.types import Real
from engine.catalog import models
from engine.catalog.models import Model
from engine.mechanism import memory
from engine.mechanism.shape import shape
from engine.serving import inference

VALUE = 2.0  # bytes of a weight in 16 bits


def module_bytes(model: Model, each: Real, tp: Real) -> float:
    """Bytes of one of the model's own modules on each rank, with weights of ``each`` byte."""
    last = model.layers[-1]
    norms = (last.norms + 3) * model.hidden
    params = last.attention.parameters + last.mlp.parameters + 2 * model.hidden * model.hidden + norms
    return float(params * each / tp)


def model_bytes(draft: Model, tp: Real) -> float:
    """Bytes of a draft model's weights on each rank, in 16 bits."""
    return float(VALUE * models.parameters(draft) / tp)


def cached_bytes(draft: Model, value: Real, tokens: Real, tp: Real) -> float:
    """Bytes that a draft model keeps of a request on each rank."""
    size = shape(draft)
    return float(memory.kv_bytes(size, tokens, 1.0, value) / inference.kv_shards(size, tp))


def module_cached_bytes(model: Model, value: Real, tokens: Real, tp: Real) -> float:
    """Bytes that one of the model's own modules keeps of a request: a layer that reads a cache."""
    size = shape(model)
    kind = inference.reading(size)[0]
    return float(kind.cached * value * tokens / inference.kv_shards(size, tp))
