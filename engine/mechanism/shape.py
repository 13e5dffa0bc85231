"""A model as the cost model reads it: plain floats, computed once per model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from engine.base import ops
from engine.base.ops import as_float
from engine.base.types import Real
from engine.catalog import models
from engine.mechanism import flops, memory

COLUMN, ROW, WHOLE = (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)  # does tensor parallelism split k? n?


@dataclass(frozen=True, slots=True)
class Product:
    """One weight matrix k×n, and which of its sides tensor parallelism splits (1.0) or leaves whole (0.0).
    ``there`` is 1.0; for a symbolic model it is a symbol, which is 0.0 if the chosen model has no such
    matrix.

    Where products take 8 bits, a kernel of its own casts the input (``casts_input``) and the gradient of the
    result (``casts_gradient``), unless a norm or an activation function writes them in 8 bits itself.
    """

    k: float
    n: float
    splits_k: float
    splits_n: float
    there: float = 1.0
    casts_input: float = 1.0
    casts_gradient: float = 1.0


def _known(*products):
    """The products that the model has; for a symbolic model, all that it may have."""
    return tuple(p for p in products if not ops.is_zero(p.there))


def _mlp(model, width):
    """The two products of an MLP (gate and up count as one); none where its width is 0."""
    there = ops.where(width > 0, 1.0, 0.0)
    return _known(
        Product(as_float(model.hidden), as_float((1 + model.gated) * width), *COLUMN, there, 0.0, 0.0),
        Product(as_float(width), as_float(model.hidden), *ROW, there, 0.0),
    )


def _attention(model):
    """The projections of attention: q, k and v in one, and the output; latent attention has down- and
    up-projections (DeepSeek-V2)."""
    h, q, kv = as_float(model.hidden), model.heads * model.head_dim, model.kv_heads * model.head_dim
    latent_q = as_float(model.heads * (model.nope_dim + model.rope_dim))
    latent, down = model.kv_lora > 0, model.q_lora > 0
    ordinary, has_latent = ops.where(latent, 0.0, 1.0), ops.where(latent, 1.0, 0.0)
    return _known(
        Product(h, as_float(q + 2 * kv), *COLUMN, ordinary, 0.0),
        Product(as_float(q), h, *ROW, ordinary),
        Product(h, as_float(model.q_lora), *WHOLE, ops.where(latent & down, 1.0, 0.0), 0.0),
        Product(ops.where(down, as_float(model.q_lora), h), latent_q, *COLUMN, has_latent, 0.0),
        Product(h, as_float(model.kv_lora + model.rope_dim), *WHOLE, has_latent, 0.0),
        Product(
            as_float(model.kv_lora),
            as_float(model.heads * (model.nope_dim + model.v_dim)),
            *COLUMN,
            has_latent,
            0.0,
        ),
        Product(as_float(model.heads * model.v_dim), h, *ROW, has_latent),
    )


class Shape:
    """Every number of a ``Model`` as a float (so that memory's formulas accept a Shape too), and quantities
    derived from them."""

    if TYPE_CHECKING:  # the model's own fields, which the constructor copies

        def __getattr__(self, name: str) -> Real: ...

    def __init__(self, model: models.Model) -> None:
        for field in fields(model):
            value = getattr(model, field.name)
            setattr(self, field.name, as_float(value))
        latent = model.kv_lora > 0
        self.key = model.key
        self.qk_dim = as_float(ops.where(latent, model.nope_dim + model.rope_dim, model.head_dim))
        self.value_dim = as_float(ops.where(latent, model.v_dim, model.head_dim))
        self.kv_width = as_float(ops.where(latent, model.heads, model.kv_heads)) * (
            self.qk_dim + self.value_dim
        )
        self.kv_values = as_float(
            ops.where(latent, model.kv_lora + model.rope_dim, 2 * model.kv_heads * model.head_dim)
        )
        self.all_reduces = ops.where(
            model.parallel_block, 1.0, 2.0
        )  # AllReduces of tensor parallelism, per layer and direction
        self.span_window = as_float(ops.where(model.windowed_layers > 0, model.window, 0))
        self.windowed_share = model.windowed_layers / model.layers
        self.kept_values = memory.layer_parts(self, False), memory.layer_parts(self, True)
        # matrix products
        self.attention = _attention(model)
        self.has_latents = ops.where(latent, 1.0, 0.0)
        self.up_projections = tuple(p for p in self.attention if p.splits_n)  # of latents, if there are any
        self.mlp = _mlp(model, model.ffn)
        self.has_experts = ops.where(model.experts > 0, 1.0, 0.0)
        self.expert = _mlp(model, model.expert_ffn * ops.where(model.experts > 0, 1, 0))
        self.shared = _mlp(
            model, model.shared_ffn * model.shared_experts * ops.where(model.experts > 0, 1, 0)
        )
        self.products = sum(p.there for p in (*self.attention, *self.mlp, *self.expert, *self.shared))
        # parameters, by how a layout's axes divide them
        moe_layers = as_float(models.moe_layers(model))
        self.moe_share = moe_layers / model.layers
        self.total_params = as_float(models.parameters(model))
        self.active_params = as_float(models.active_parameters(model))
        self.embedding_params = as_float(models.embedding_parameters(model))
        self.head_params = as_float(models.head_parameters(model))
        self.last_stage_params = self.head_params + ops.where(model.tied, model.vocab * self.hidden, 0.0)
        unrouted = as_float(models.layer_parameters(model, moe=True, experts=0))
        self.routed_params_per_layer = self.moe_share * (
            as_float(models.layer_parameters(model, moe=True)) - unrouted
        )
        self.dense_params_per_layer = (1.0 - self.moe_share) * as_float(
            models.layer_parameters(model)
        ) + self.moe_share * unrouted
        self.matmul_params = as_float(flops.matmul_parameters(model))


def shape(model: models.Model) -> Shape:
    """The shape of a catalogue model (or one of your own); computed once and stored with the model."""
    made = model.__dict__.get("_shape")
    if made is None:
        made = Shape(model)
        object.__setattr__(model, "_shape", made)  # outside the frozen fields, so equality and hash ignore it
    return made
