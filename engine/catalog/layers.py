"""What a model's layers are made of: a class for each kind of attention and of feed-forward block, and groups
of layers that are alike.

A kind answers what the cost model asks of it: parameters, the products with its weights, the values that it
caches for a token, the widths of its heads. A new kind is a class here, or in ``mixers``, with the same
answers, and its name in ATTENTIONS or MLPS of ``models``. A number may be an array or a symbol; an answer is
then one too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.base import check, ops
from engine.base.types import Real

COLUMN, ROW, WHOLE = (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)  # does tensor parallelism split k? n?


class Projection(NamedTuple):
    """One weight matrix k×n, and which of its sides tensor parallelism splits (1.0) or leaves whole (0.0).
    ``there`` is 1.0, or for symbolic sizes a symbol that may turn out to be 0.0.

    Where products take 8 bits, a kernel of its own casts the input (``casts_input``) and the gradient of the
    result (``casts_gradient``), unless a norm or an activation function writes them in 8 bits itself.
    """

    k: Real
    n: Real
    splits_k: float
    splits_n: float
    there: Real = 1.0
    casts_input: float = 1.0
    casts_gradient: float = 1.0


@dataclass(frozen=True)
class Window:
    """The latest tokens, which alone a layer's attention sees; ``chunked``: it does not slide, the sequence
    is cut into chunks of it (Llama 4)."""

    tokens: int
    chunked: bool = False

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(window=self.tokens)
            check.between(0, 1, chunked=self.chunked)


def seen(most: Real, seq: Real) -> Real:
    """How many of the latest ``most`` tokens one of ``seq`` sees on average, if it sees none after it: w −
    w²/2s."""
    width = ops.minimum(seq, most)
    return width - width * width / (2 * seq)


# -- attention -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class GroupedAttention:
    """Softmax attention in which groups of query heads share a head of keys and values: as many of these as
    query heads are multi-head attention, one is multi-query."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    biases: bool = False  # on all of its matrices
    qkv_bias: bool = False  # on query, key and value alone
    extra_params: int = 0  # query and key norms, attention sinks
    gate_width: int = 0  # values of a gate that multiplies the output; 0 without one
    tensors: int = 2  # that a token leaves: keys and values; 1 where they are the same (Gemma 4); 0 where
    # the layer reads an earlier one's (Gemma 3n)
    value_width: int = 0  # of a head's value, where it is another one than of its key (MiMo-V2)

    family = "softmax"  # kinds of a family stand for each other in a choice among models
    latent = False
    # it has no latents
    q_lora = 0
    kv_lora = 0
    rope_dim = 0
    nope_dim = 0
    v_dim = 0

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(hidden=self.hidden, heads=self.heads, kv_heads=self.kv_heads)
            check.whole(head_dim=self.head_dim)
            check.one_of(divisors(self.heads), kv_heads=self.kv_heads)

    @property
    def qk_dim(self) -> Real:
        """Width of one head's query, and of its key."""
        return self.head_dim

    @property
    def value_dim(self) -> Real:
        """Width of one head's value."""
        return self.value_width or self.head_dim

    @property
    def key_heads(self) -> Real:
        """Heads of keys and values as the attention kernel reads them in training."""
        return self.kv_heads

    @property
    def cached(self) -> Real:
        """Values of a token in the cache of one layer."""
        return self.kv_heads * ((self.tensors > 0) * self.head_dim + (self.tensors > 1) * self.value_dim)

    @property
    def matrices(self) -> Real:
        """Weights of the matrices: h·(heads + 2·kv_heads)·d for q, k and v, heads·d·h for the output; those
        of the gate."""
        h, d = self.hidden, self.head_dim
        return h * (self.heads * d + self.cached) + self.heads * self.value_dim * h + h * self.gate_width

    @property
    def parameters(self) -> Real:
        """Matrices, biases and what an entry's note says besides."""
        qkv = (self.heads + self.kv_heads) * self.head_dim + self.kv_heads * self.value_dim
        qkv_bias = ops.where((self.biases > 0) | (self.qkv_bias > 0), qkv, 0)
        return self.matrices + qkv_bias + ops.where(self.biases > 0, self.hidden, 0) + self.extra_params

    @property
    def projections(self) -> tuple[Projection, ...]:
        """q, k, v and the gate in one, and the output."""
        into = self.heads * self.head_dim + self.cached + self.gate_width
        return (
            Projection(self.hidden, into, *COLUMN, casts_input=0.0),
            Projection(self.heads * self.value_dim, self.hidden, *ROW),
        )


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434 section 2.1): keys and values of all heads
    are projected up from one latent of a token and a rotary key that they share; the two are what is
    cached."""

    hidden: int
    heads: int
    kv_lora: int
    rope_dim: int
    nope_dim: int
    v_dim: int
    q_lora: int = 0  # 0: queries are projected without a latent of their own
    biases: bool = False
    qkv_bias: bool = False
    extra_params: int = 0
    head_dim: int = 0  # as the makers' files have it; its biases alone are counted by it
    gate_width: int = 0  # values of a gate that multiplies the output; 0 without one

    family = "softmax"  # kinds of a family stand for each other in a choice among models
    latent = True

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(hidden=self.hidden, heads=self.heads, kv_lora=self.kv_lora)
            check.whole(nope_dim=self.nope_dim, v_dim=self.v_dim)
            check.whole(0, rope_dim=self.rope_dim, q_lora=self.q_lora)

    @property
    def kv_heads(self) -> Real:
        """Heads of keys and values: as many as of queries, which all read the same latents."""
        return self.heads

    @property
    def qk_dim(self) -> Real:
        """Width of one head's query, and of its key."""
        return self.nope_dim + self.rope_dim

    @property
    def value_dim(self) -> Real:
        """Width of one head's value."""
        return self.v_dim

    @property
    def key_heads(self) -> Real:
        """Heads of keys and values as the attention kernel reads them in training: projected up, one for
        each query head."""
        return self.heads

    @property
    def cached(self) -> Real:
        """Values of a token in the cache of one layer: kv_lora + rope_dim (arXiv:2405.04434 Table 1)."""
        return self.kv_lora + self.rope_dim

    @property
    def matrices(self) -> Real:
        """Weights of the matrices: q down and up, kv down with the shared rotary key, kv up, output."""
        h, q_width = self.hidden, self.heads * self.qk_dim
        query = ops.where(self.q_lora > 0, self.q_lora * (h + q_width), h * q_width)
        up = self.kv_lora * self.heads * (self.nope_dim + self.v_dim)
        own = query + h * (self.kv_lora + self.rope_dim) + up + self.heads * self.v_dim * h
        return own + h * self.gate_width

    @property
    def parameters(self) -> Real:
        """Matrices, the norms of both latents, biases and what an entry's note says besides."""
        qkv = (self.heads + 2 * self.kv_heads) * self.head_dim
        biases = ops.where((self.biases > 0) | (self.qkv_bias > 0), qkv, 0) + ops.where(
            self.biases > 0, self.hidden, 0
        )
        return self.matrices + biases + self.q_lora + self.kv_lora + self.extra_params

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Down and up for queries, down and up for keys and values, and the output."""
        down, h, q_width = self.q_lora > 0, self.hidden, self.heads * self.qk_dim
        return (
            Projection(h, self.q_lora, *WHOLE, ops.where(down, 1.0, 0.0), 0.0),
            Projection(ops.where(down, self.q_lora, h), q_width, *COLUMN, casts_input=0.0),
            Projection(h, self.kv_lora + self.rope_dim, *WHOLE, casts_input=0.0),
            Projection(self.kv_lora, self.heads * (self.nope_dim + self.v_dim), *COLUMN, casts_input=0.0),
            Projection(self.heads * self.v_dim, h, *ROW),
        )


# -- feed-forward --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class DenseMlp:
    """One MLP for every token: two matrices, three where it is gated (SwiGLU and its relatives)."""

    hidden: int
    width: int
    gated: bool = True
    biases: bool = False

    family = "dense"  # kinds of a family stand for each other in a choice among models
    routed = False

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(0, ffn=self.width)
            check.between(0, 1, gated=self.gated, biases=self.biases)

    @property
    def matrices(self) -> Real:
        """Weights that a token is multiplied by."""
        return (2 + self.gated) * self.hidden * self.width

    @property
    def parameters(self) -> Real:
        """Matrices and biases."""
        return self.matrices + ops.where(self.biases > 0, (1 + self.gated) * self.width + self.hidden, 0)

    @property
    def active(self) -> Real:
        """Parameters that one token uses: all of them."""
        return self.parameters

    @property
    def unrouted(self) -> Real:
        """Parameters outside of routed experts: all of them."""
        return self.parameters

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Gate and up in one, and down."""
        there = ops.where(self.width > 0, 1.0, 0.0)
        return (
            Projection(self.hidden, (1 + self.gated) * self.width, *COLUMN, there, 0.0, 0.0),
            Projection(self.width, self.hidden, *ROW, there, 0.0),
        )


@dataclass(frozen=True)
class ExpertsMlp:
    """A mixture of experts: a router sends each token to ``top_k`` of them, and every token goes to the
    shared ones.

    Tokens may be projected to a narrower ``latent`` before the routed experts, and back after (Nemotron 3,
    Kimi K3); the router may also pick ``idle_experts``, which give a token back as it is (LongCat-Flash).
    """

    hidden: int
    experts: int
    top_k: int
    width: int  # of each routed expert
    shared_experts: int = 0
    shared_width: int = 0  # of each shared expert
    groups: int = 0  # the router picks some groups before it picks experts; 0 where it does not
    top_groups: int = 0
    router_bias: bool = False
    gated: bool = True
    biases: bool = False
    latent: int = 0  # 0: tokens keep their width
    idle_experts: int = 0

    family = "experts"  # kinds of a family stand for each other in a choice among models
    routed = True

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(0, experts=self.experts, top_k=self.top_k, expert_ffn=self.width)
            check.whole(0, shared_experts=self.shared_experts, shared_ffn=self.shared_width)
            check.whole(0, expert_groups=self.groups, top_groups=self.top_groups)
            check.whole(0, latent=self.latent, idle_experts=self.idle_experts)
            check.between(0, 1, gated=self.gated, biases=self.biases, router_bias=self.router_bias)

    @property
    def inside(self) -> Real:
        """Width of a token as routed experts get it."""
        return self.latent or self.hidden

    @property
    def used(self) -> Real:
        """Routed experts that a token meets; on average, if the router likes idle ones as much."""
        if not self.idle_experts:
            return self.top_k
        return self.top_k * self.experts / (self.experts + self.idle_experts)

    @property
    def expert(self) -> DenseMlp:
        """One routed expert."""
        return DenseMlp(self.inside, self.width, self.gated, self.biases)

    @property
    def shared(self) -> DenseMlp:
        """All shared experts as one MLP, as their products are computed."""
        return DenseMlp(self.hidden, self.shared_experts * self.shared_width, self.gated, self.biases)

    @property
    def projections(self) -> tuple[Projection, ...]:
        """Into the latent and back; every tensor rank computes both."""
        if not self.latent:
            return ()
        return (Projection(self.hidden, self.latent, *WHOLE), Projection(self.latent, self.hidden, *WHOLE))

    @property
    def matrices(self) -> Real:
        """Weights that a token is multiplied by: its experts', the shared ones', the router's, and those into
        the latent and back."""
        routed = self.inside * self.used * self.width
        shared = self.hidden * self.shared_experts * self.shared_width
        router = self.hidden * (self.experts + self.idle_experts)
        return (2 + self.gated) * (routed + shared) + router + 2 * self.hidden * self.latent

    @property
    def unrouted(self) -> Real:
        """Parameters outside of routed experts: the shared ones, the router, and those of the latent."""
        biased = (self.biases > 0) | (self.router_bias > 0)
        chosen = self.experts + self.idle_experts
        router = self.hidden * chosen + ops.where(biased, self.experts, 0)
        one = DenseMlp(self.hidden, self.shared_width, self.gated, self.biases)
        return self.shared_experts * one.parameters + router + 2 * self.hidden * self.latent

    @property
    def parameters(self) -> Real:
        """All of them."""
        return self.experts * self.expert.parameters + self.unrouted

    @property
    def active(self) -> Real:
        """Parameters that one token uses."""
        return self.used * self.expert.parameters + self.unrouted


# -- groups of layers ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LayerGroup:
    """Layers that are alike: how many, their attention and what it sees, and their feed-forward block."""

    count: int
    attention: Any  # one of ATTENTIONS
    mlp: Any  # one of MLPS
    window: Window | None = None  # None: attention sees all tokens before
    norms: int = 2
    first: int = 0  # the place in the model of the first of them


def divisors(number: Real) -> list[int]:
    """All divisors of a whole number, ascending; above 10¹⁰ only those that are at most 100,000 or whose
    cofactor is."""
    whole = int(number)
    small = [d for d in range(1, min(math.isqrt(whole), 100_000) + 1) if whole % d == 0]
    return sorted({*small, *(whole // d for d in small)})
