"""A model as the cost model reads it: plain floats, made once for each model."""

from __future__ import annotations

from dataclasses import dataclass, fields

from engine import flops, models, ops
from engine.ops import number

COLUMN, ROW, WHOLE = (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)     # is k split by tensor parallelism? is n?


@dataclass(frozen=True, slots=True)
class Product:
    """One weight matrix k×n, and which of its sides tensor parallelism splits (1.0) or leaves whole (0.0). ``there`` is
    1.0, or for a model whose numbers are not known yet a symbol that may turn out to be 0.0."""

    k: float
    n: float
    splits_k: float
    splits_n: float
    there: float = 1.0


def _known(*products):
    """The products that the model has; all that it may have, where its numbers are symbols."""
    return tuple(p for p in products if not ops.is_zero(p.there))


def _mlp(model, width):
    """The two products of an MLP (gate and up are one); none where it has no width."""
    there = ops.where(width > 0, 1.0, 0.0)
    return _known(Product(number(model.hidden), number((1 + model.gated) * width), *COLUMN, there),
                  Product(number(width), number(model.hidden), *ROW, there))


def _attention(model):
    """The projections of attention: q, k and v in one, and the output; latent attention goes down and up
    (DeepSeek-V2)."""
    h, q, kv = number(model.hidden), model.heads * model.head_dim, model.kv_heads * model.head_dim
    latent_q = number(model.heads * (model.nope_dim + model.rope_dim))
    latent, down = model.kv_lora > 0, model.q_lora > 0
    ordinary, has_latent = ops.where(latent, 0.0, 1.0), ops.where(latent, 1.0, 0.0)
    return _known(
        Product(h, number(q + 2 * kv), *COLUMN, ordinary),
        Product(number(q), h, *ROW, ordinary),
        Product(h, number(model.q_lora), *WHOLE, ops.where(latent & down, 1.0, 0.0)),
        Product(ops.where(down, number(model.q_lora), h), latent_q, *COLUMN, has_latent),
        Product(h, number(model.kv_lora + model.rope_dim), *WHOLE, has_latent),
        Product(number(model.kv_lora), number(model.heads * (model.nope_dim + model.v_dim)), *COLUMN, has_latent),
        Product(number(model.heads * model.v_dim), h, *ROW, has_latent))


class Shape:
    """Every number of a ``Model`` as a float (so that memory's formulas take a Shape too), and what follows from
    them."""

    def __init__(self, model):
        for field in fields(model):
            value = getattr(model, field.name)
            setattr(self, field.name, number(value))
        latent = model.kv_lora > 0
        self.key = model.key
        self.qk_dim = number(ops.where(latent, model.nope_dim + model.rope_dim, model.head_dim))
        self.value_dim = number(ops.where(latent, model.v_dim, model.head_dim))
        self.kv_width = number(ops.where(latent, model.heads, model.kv_heads)) * (self.qk_dim + self.value_dim)
        self.kv_values = number(ops.where(latent, model.kv_lora + model.rope_dim,
                                          2 * model.kv_heads * model.head_dim))
        self.all_reduces = ops.where(model.parallel_block, 1.0, 2.0)    # of tensor parallelism, in a layer and direction
        self.span_window = number(ops.where(model.windowed_layers > 0, model.window, 0))
        self.windowed_share = model.windowed_layers / model.layers
        # matrix products
        self.attention = _attention(model)
        self.mlp = _mlp(model, model.ffn)
        self.has_experts = ops.where(model.experts > 0, 1.0, 0.0)
        self.expert = _mlp(model, model.expert_ffn * ops.where(model.experts > 0, 1, 0))
        self.shared = _mlp(model, model.shared_ffn * model.shared_experts * ops.where(model.experts > 0, 1, 0))
        self.products = sum(p.there for p in (*self.attention, *self.mlp, *self.expert, *self.shared))
        # parameters, by how the axes of a layout divide them
        moe_layers = number(models.moe_layers(model))
        self.moe_share = moe_layers / model.layers
        self.total_params = number(models.parameters(model))
        self.active_params = number(models.active_parameters(model))
        self.embedding_params = number(models.embedding_parameters(model))
        self.head_params = number(models.head_parameters(model))
        self.last_stage_params = self.head_params + ops.where(model.tied, model.vocab * self.hidden, 0.0)
        unrouted = number(models.layer_parameters(model, moe=True, experts=0))
        self.routed_params_per_layer = self.moe_share * (number(models.layer_parameters(model, moe=True)) - unrouted)
        self.dense_params_per_layer = ((1.0 - self.moe_share) * number(models.layer_parameters(model))
                                       + self.moe_share * unrouted)
        self.matmul_params = number(flops.matmul_parameters(model))


def shape(model) -> Shape:
    """The sizes of a catalogue model (or of one's own); made once and kept with the model."""
    made = model.__dict__.get("_shape")
    if made is None:
        made = Shape(model)
        object.__setattr__(model, "_shape", made)     # beside the frozen fields: equality and hash do not see it
    return made
