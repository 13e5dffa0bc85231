"""A model as the cost model reads it: plain floats, made once for each model."""

from __future__ import annotations

from dataclasses import dataclass, fields

from engine import flops, models

COLUMN, ROW, WHOLE = (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)     # is k split by tensor parallelism? is n?


@dataclass(frozen=True, slots=True)
class Product:
    """One weight matrix k×n, and which of its sides tensor parallelism splits (1.0) or leaves whole (0.0)."""

    k: float
    n: float
    splits_k: float
    splits_n: float


def _mlp(model, width):
    """The two products of an MLP (gate and up are one); none where it has no width."""
    up = Product(float(model.hidden), float((1 + model.gated) * width), *COLUMN)
    return (up, Product(float(width), float(model.hidden), *ROW)) if width else ()


def _attention(model):
    """The projections of attention: q, k and v in one, and the output; latent attention goes down and up
    (DeepSeek-V2)."""
    h = float(model.hidden)
    if not model.kv_lora:
        q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
        return Product(h, float(q + 2 * kv), *COLUMN), Product(float(q), h, *ROW)
    q = float(model.heads * (model.nope_dim + model.rope_dim))
    down_up = (Product(h, float(model.q_lora), *WHOLE), Product(float(model.q_lora), q, *COLUMN))
    return (down_up if model.q_lora else (Product(h, q, *COLUMN),)) + (
        Product(h, float(model.kv_lora + model.rope_dim), *WHOLE),
        Product(float(model.kv_lora), float(model.heads * (model.nope_dim + model.v_dim)), *COLUMN),
        Product(float(model.heads * model.v_dim), h, *ROW))


class Shape:
    """Every number of a ``Model`` as a float (so that memory's formulas take a Shape too), and what follows from
    them."""

    def __init__(self, model):
        for field in fields(model):
            value = getattr(model, field.name)
            setattr(self, field.name, value if isinstance(value, str) else float(value))
        latent = bool(model.kv_lora)
        self.key = model.key
        self.qk_dim = float(model.nope_dim + model.rope_dim if latent else model.head_dim)
        self.value_dim = float(model.v_dim if latent else model.head_dim)
        self.kv_width = float(model.heads if latent else model.kv_heads) * (self.qk_dim + self.value_dim)
        self.kv_values = float(model.kv_lora + model.rope_dim if latent else 2 * model.kv_heads * model.head_dim)
        self.all_reduces = 1.0 if model.parallel_block else 2.0     # of tensor parallelism, in a layer and direction
        self.span_window = float(model.window) if model.windowed_layers else 0.0
        self.windowed_share = model.windowed_layers / model.layers
        # matrix products
        self.attention = _attention(model)
        self.mlp = _mlp(model, model.ffn)
        self.expert = _mlp(model, model.expert_ffn) if model.experts else ()
        self.shared = _mlp(model, model.shared_ffn * model.shared_experts) if model.experts else ()
        # parameters, by how the axes of a layout divide them
        moe_layers = float(models.moe_layers(model))
        self.moe_share = moe_layers / model.layers
        self.total_params = float(models.parameters(model))
        self.active_params = float(models.active_parameters(model))
        self.embedding_params = float(models.embedding_parameters(model))
        self.head_params = float(models.head_parameters(model))
        self.last_stage_params = self.head_params + (model.vocab * self.hidden if model.tied else 0.0)
        routed = float(models.layer_parameters(model, moe=True) - models.layer_parameters(model, moe=True, experts=0))
        self.routed_params_per_layer = self.moe_share * routed
        self.dense_params_per_layer = ((1.0 - self.moe_share) * float(models.layer_parameters(model))
                                       + self.moe_share * float(models.layer_parameters(model, moe=True, experts=0)))
        self.matmul_params = float(flops.matmul_parameters(model))


def shape(model) -> Shape:
    """The sizes of a catalogue model (or of one's own); made once and kept with the model."""
    made = model.__dict__.get("_shape")
    if made is None:
        made = Shape(model)
        object.__setattr__(model, "_shape", made)     # beside the frozen fields: equality and hash do not see it
    return made
