"""A model as the cost model reads it: plain floats, computed once per model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from engine.base import check, ops
from engine.base.ops import as_float
from engine.base.types import Real
from engine.catalog import layers, models
from engine.mechanism import flops, memory


@dataclass(frozen=True, slots=True)
class Product:
    """A ``catalog.layers.Projection``: one weight matrix k×n, as floats. ``there`` is the share of the layers
    that have it, or within a kind of feed-forward block whether it does; for a symbolic model a symbol."""

    k: float
    n: float
    splits_k: float
    splits_n: float
    there: float
    casts_input: float
    casts_gradient: float


@dataclass(frozen=True, slots=True)
class Attended:
    """Layers whose attention has the same heads and sees the same tokens."""

    share: float  # of the model's layers
    heads: float
    kv_heads: float
    qk_dim: float
    value_dim: float
    kv_width: float  # values of keys and values that a token passes around in training
    cached: float  # values of a token in the cache of one layer
    is_latent: Any  # whether these are latents that all heads read
    window: float  # tokens; 0 where it sees all before
    windowed: bool
    mixer: Any = None  # the attention itself, where it is of a kind of ``catalog.mixers``


@dataclass(frozen=True, slots=True)
class Dense:
    """Layers with the same dense MLP."""

    share: float
    width: float
    products: tuple[Product, ...]


@dataclass(frozen=True, slots=True)
class Routed:
    """Layers with the same mixture of experts."""

    share: float
    experts: float
    top_k: float  # that a token meets, those left out that do nothing
    width: float  # of a routed expert
    gated: float
    groups: float
    top_groups: float
    shared_width: float  # of all shared experts together
    params: float  # of all routed experts of such a layer, in a mean layer
    products: tuple[Product, ...]  # of one routed expert
    shared: tuple[Product, ...]  # what every token passes beside them
    hidden: float  # width of a token as they get it


def _products(projections: Any, examples: Any, share: Real = 1.0) -> tuple[Product, ...]:
    """The products of a part; for a symbolic model, all that it may have. How each is split is said by the
    example, which is no symbol."""
    found = []
    for of, like in zip(projections, examples):
        there = share * of.there
        if not ops.is_zero(there):
            sides = like.splits_k, like.splits_n
            casts = like.casts_input, like.casts_gradient
            found.append(Product(as_float(of.k), as_float(of.n), *sides, there, *casts))
    return tuple(found)


def _shares(view: Any, depth: Real) -> list[Real]:
    """The share of the layers that have each part of a view; the first has what the others leave, so that
    they add up to 1."""
    others = [as_float(count) / depth for count, _ in view[1:]]
    left = 1.0
    for share in others:
        left = left - share
    return [left, *others]


def _floated(part: Any) -> Any:
    """A part of a model with its numbers as floats; a symbolic one as it is."""
    if isinstance(part, tuple):
        return tuple(_floated(each) for each in part)
    if isinstance(part, PARTS):
        return type(part)(*[as_float(getattr(part, field.name)) for field in fields(part)])
    return as_float(part)


PARTS = (*models.ATTENTIONS.values(), *models.MLPS.values(), layers.Window)


class Shape:
    """Every number of a ``Model`` as a float (so that memory's formulas accept a Shape too), and quantities
    derived from them. Its layers are told apart by what costs time or memory: by their products, by what
    their attention reads, by their feed-forward blocks."""

    if TYPE_CHECKING:  # the model's own fields, which the constructor copies

        def __getattr__(self, name: str) -> Real: ...

    def __init__(self, model: models.Model) -> None:
        for name in (*models.OWN, *SUMMARY):
            setattr(self, name, as_float(getattr(model, name)))
        depth = self.depth
        with check.trusted():
            self.views = {
                name: tuple((as_float(count), _floated(part)) for count, part in view(model))
                for name, view in VIEWS.items()
            }
        self.all_reduces = ops.where(
            self.parallel_block > 0, 1.0, 2.0
        )  # AllReduces of tensor parallelism, per layer and direction
        if any(models.is_mixer(kind) and not kind.kernels for _, kind in self.views["attentions"]):
            self.all_reduces = 1.0  # every layer is attention or a feed-forward block alone
        # attention: its products, and what it reads
        view = self.views["attentions"]
        self.attention, self.up_projections = (), ()  # products of all kinds; of latents alone
        self.query_values, self.key_values, self.latent_values = 0.0, 0.0, 0.0  # a token's, in a mean layer
        self.turned_bytes = 0.0  # moved to turn latents' heads and to lay out their keys and values
        self.kv_width, self.kv_values = 0.0, 0.0  # … passed around in training, cached in serving
        for share, (_, kind) in zip(_shares(view, depth), view):
            for there, one, example in models.of_kind(kind):
                products = _products(one.projections, example.projections, share * there)
                self.attention = (*self.attention, *products)
                if example.latent:
                    self.up_projections = (*self.up_projections, *(p for p in products if p.splits_n))
            queries, keys = share * kind.heads * kind.qk_dim, share * kind.kv_heads * kind.qk_dim
            self.query_values, self.key_values = self.query_values + queries, self.key_values + keys
            width = kind.key_heads * (kind.qk_dim + kind.value_dim)
            self.kv_width = self.kv_width + share * width
            self.kv_values = self.kv_values + share * kind.cached
            self.latent_values = self.latent_values + ops.where(kind.latent, queries + keys, 0.0)
            turned = kind.heads * (4.0 * (kind.nope_dim + kind.v_dim) + 6.0 * kind.rope_dim)
            self.turned_bytes = self.turned_bytes + share * ops.where(kind.latent, turned, 0.0)
        view = self.views["attended"]
        self.attended = tuple(
            _attended(share, kind, window) for share, (_, (kind, window)) in zip(_shares(view, depth), view)
        )
        beside = [(kind.share, kind.mixer.beside_bytes) for kind in self.attended if kind.mixer is not None]
        self.beside_bytes = tuple(sum(share * both[way] for share, both in beside) for way in (0, 1))
        self.state_bytes = as_float(models.state_bytes(model))  # of a sequence, whatever its length
        # feed-forward blocks
        self.dense, self.routed, view = (), (), self.views["mlps"]
        for share, (_, mlp) in zip(_shares(view, depth), view):
            if models.is_routed(mlp):
                self.routed = (*self.routed, _routed(share, mlp))
            else:
                self.dense = (*self.dense, _dense(share, mlp))
        self.moe_share = sum(part.share for part in self.routed)
        self.has_experts = ops.where(self.experts > 0, 1.0, 0.0)
        ways = [part.products for part in self.dense] + [part.shared for part in self.routed]
        self.mlp_products = tuple(product for products in ways for product in products)  # but routed experts'
        routed = tuple(product for part in self.routed for product in part.products)
        self.products = sum(p.there for p in (*self.attention, *self.mlp_products, *routed))
        # parameters, by how a layout's axes divide them
        self.total_params = as_float(models.parameters(model))
        self.active_params = as_float(models.active_parameters(model))
        self.embedding_params = as_float(models.embedding_parameters(model))
        self.head_params = as_float(models.head_parameters(model))
        self.last_stage_params = self.head_params + ops.where(self.tied > 0, self.vocab * self.hidden, 0.0)
        self.dense_params_per_layer = 0.0
        self.routed_params_per_layer = sum(part.params for part in self.routed)
        view = self.views["blocks"]
        self.block_shares = _shares(view, depth)
        for share, (_, (kind, mlp, norms)) in zip(self.block_shares, view):
            whole = kind.parameters + norms * (self.hidden * (1.0 + self.norm_bias))
            self.dense_params_per_layer = self.dense_params_per_layer + share * (whole + mlp.unrouted)
        self.matmul_params = as_float(flops.matmul_parameters(model))
        self.kept_values = None
        self.kept_values = tuple(memory.layer_parts(self, block) for block in range(len(view)))


SUMMARY = (
    "depth",
    "heads",
    "kv_heads",
    "head_dim",
    "gated",
    "biases",
    "ffn",
    "experts",
    "top_k",
    "expert_ffn",
)
VIEWS = {
    "attentions": models.attentions,
    "attended": models.attended,
    "mlps": models.mlps,
    "blocks": models.blocks,
}


def _attended(share: Real, kind: Any, window: Any) -> Attended:
    return Attended(
        share,
        as_float(kind.heads),
        as_float(kind.kv_heads),
        as_float(kind.qk_dim),
        as_float(kind.value_dim),
        kind.key_heads * (kind.qk_dim + kind.value_dim),
        as_float(kind.cached),
        kind.latent,
        0.0 if window is None else window.tokens,
        window is not None,
        kind if models.is_mixer(kind) else None,
    )


def _dense(share: Real, mlp: Any) -> Dense:
    return Dense(share, mlp.width, _mlp_products(mlp))


def _routed(share: Real, mlp: Any) -> Routed:
    return Routed(
        share,
        mlp.experts,
        mlp.used,
        mlp.width,
        mlp.gated,
        mlp.groups,
        mlp.top_groups,
        mlp.shared_experts * mlp.shared_width,
        share * (mlp.parameters - mlp.unrouted),
        _mlp_products(mlp.expert),
        (*_mlp_products(mlp.shared), *_latent_products(mlp)),
        as_float(mlp.inside),
    )


def _latent_products(mlp: Any) -> tuple[Product, ...]:
    """The products that bring tokens to a narrower width before the routed experts, and back; none in a
    choice among models, of which none has them."""
    if hasattr(type(mlp), "__each__"):
        return ()
    return _products(mlp.projections, mlp.projections)


def _mlp_products(mlp: Any) -> tuple[Product, ...]:
    return _products(mlp.projections, layers.DenseMlp(1, 1).projections)


def shape(model: models.Model) -> Shape:
    """The shape of a catalogue model (or one of your own); computed once and stored with the model. That of a
    choice among models is computed anew."""
    if hasattr(type(model), "__each__"):
        return Shape(model)
    made = model.__dict__.get("_shape")
    if made is None:
        made = Shape(model)
        object.__setattr__(model, "_shape", made)  # outside the frozen fields, so equality and hash ignore it
    return made


def reading(shape: Shape) -> list[Attended]:
    """The kinds of attention that read a cache; those of a state alone are left out. All where none does."""
    found = [kind for kind in shape.attended if kind.mixer is None or kind.cached]
    return found or list(shape.attended)


def mean_of(kinds: Sequence[Attended], values: Sequence[Real]) -> Real:
    """The mean over a model's layers of what each kind of them takes."""
    mean = values[0]
    for kind, value in zip(kinds[1:], values[1:]):
        mean = mean + kind.share * (value - values[0])
    return mean
