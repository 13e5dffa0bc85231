"""Models: transformer shapes and their exact parameter counts.

One dataclass covers decoder-only transformers from GPT-2 to DeepSeek-V3. A part that a model lacks is 0 or
False, so that every count below is one formula without branches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.base import check, ops
from engine.base.types import Real


def _divisors(n) -> list[int]:
    return [] if check.is_trusted() else [d for d in range(1, int(n) + 1) if n % d == 0]


# no model has more of the first than of the second
AT_MOST = {
    "windowed_layers": "layers",
    "first_dense_layers": "layers",
    "top_k": "experts",
    "kv_heads": "heads",
}
LATENT = ("nope_dim", "v_dim")  # the widths that a head needs where keys and values are kept as latents


def contradiction(shape: Mapping[str, float]) -> str:
    """In words, what in a model's numbers cannot stand beside the rest; "" if all of them can."""
    for name, most in AT_MOST.items():
        if shape[name] > shape[most]:
            return f"{name} must be at most {most} ({shape[most]:.0f}), got {shape[name]:.0f}"
    for name in LATENT:
        if shape["kv_lora"] > 0 and shape[name] < 1:
            return f"{name} must be at least 1 where kv_lora is above 0, got {shape[name]:.0f}"
    return ""


@dataclass(frozen=True)
class Model:
    """The shape of a decoder-only transformer."""

    key: str
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int  # width of the dense MLP; 0 where every layer has experts instead
    vocab: int
    gated: bool = True  # SwiGLU and its relatives have three matrices; a plain MLP has two
    tied: bool = False  # input embedding and output layer are one matrix
    max_context: int = 2048
    max_positions: int = 0  # learned position embeddings; 0 for rotary and ALiBi
    rotary_base: int = 0  # of rotary position embeddings; 0 for others, and where it is not known
    biases: bool = False  # a bias on every linear layer (not on the output layer)
    qkv_bias: bool = False  # a bias on query, key and value alone
    norms_per_layer: int = 2
    norm_bias: bool = False  # LayerNorm has one, RMSNorm has none
    small_epsilon: bool = False  # a norm adds 1e-6 to the mean square, not 1e-5
    final_norm: bool = True
    embedding_norm: bool = False
    parallel_block: bool = False  # attention and MLP side by side (PaLM): half the tensor-parallel AllReduces
    dropout: bool = False  # trained with dropout: its masks are kept for the backward pass
    # multi-head latent attention (DeepSeek); kv_lora 0 means ordinary attention
    q_lora: int = 0
    kv_lora: int = 0
    rope_dim: int = 0
    nope_dim: int = 0
    v_dim: int = 0
    # mixture of experts; experts 0 means dense
    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_experts: int = 0
    shared_ffn: int = 0  # width of each shared expert
    expert_groups: int = 0  # the router picks some groups before it picks experts; 0 where it does not
    top_groups: int = 0
    first_dense_layers: int = 0
    moe_every: int = 1  # 2: every second layer has experts (Llama 4 Maverick)
    router_bias: bool = False
    # attention over a window of the most recent tokens, in some of the layers
    window: int = 0
    windowed_layers: int = 0
    chunked: bool = False  # the window does not slide: the sequence is cut into chunks of it (Llama 4)
    extra_params_per_layer: int = 0  # query and key norms, attention sinks, … (the entry's note says which)
    extra_params: int = 0  # parts outside the decoder that the published count includes
    checkpoint: str = ""  # its repository on Hugging Face; empty where there is none
    access: str = ""  # "gated" where one has to ask for it
    stored: str = ""  # the format of its weights there, where that is not 16 or 8 bits
    family: str = ""
    year: int = 0
    published_params: float = 0.0
    published_active_params: float = 0.0
    source: str = ""
    checked: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        check.whole(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            vocab=self.vocab,
            moe_every=self.moe_every,
            norms_per_layer=self.norms_per_layer,
        )
        check.whole(
            0,
            ffn=self.ffn,
            max_positions=self.max_positions,
            rotary_base=self.rotary_base,
            experts=self.experts,
            top_k=self.top_k,
            expert_ffn=self.expert_ffn,
            expert_groups=self.expert_groups,
            top_groups=self.top_groups,
            shared_experts=self.shared_experts,
            shared_ffn=self.shared_ffn,
            first_dense_layers=self.first_dense_layers,
            q_lora=self.q_lora,
            kv_lora=self.kv_lora,
            rope_dim=self.rope_dim,
            nope_dim=self.nope_dim,
            v_dim=self.v_dim,
            window=self.window,
            windowed_layers=self.windowed_layers,
            extra_params_per_layer=self.extra_params_per_layer,
            extra_params=self.extra_params,
        )
        check.whole(max_context=self.max_context)
        check.between(
            0,
            1,
            gated=self.gated,
            tied=self.tied,
            biases=self.biases,
            qkv_bias=self.qkv_bias,
            norm_bias=self.norm_bias,
            small_epsilon=self.small_epsilon,
            final_norm=self.final_norm,
            embedding_norm=self.embedding_norm,
            parallel_block=self.parallel_block,
            dropout=self.dropout,
            router_bias=self.router_bias,
            chunked=self.chunked,
        )
        check.one_of(_divisors(self.heads), kv_heads=self.kv_heads)
        if not check.is_trusted() and (wrong := contradiction(vars(self))):
            raise ValueError(wrong)


def moe_layers(model: Model) -> Real:
    """How many layers route their tokens to experts."""
    return ops.where(
        model.experts > 0, ops.floor((model.layers - model.first_dense_layers) / model.moe_every), 0
    )


def dense_layers(model: Model) -> Real:
    """How many layers have one ordinary MLP."""
    return model.layers - moe_layers(model)


def attention_matrices(model: Model) -> Real:
    """Weights of one layer's attention matrices (no biases, no norms).

    Ordinary: h·(heads + 2·kv_heads)·d for q, k, v and heads·d·h for the output. Multi-head latent attention
    (DeepSeek-V2, arXiv:2405.04434 section 2.1): q down and up, kv down with the shared rotary key, kv up,
    output.
    """
    h, heads = model.hidden, model.heads
    ordinary = h * (heads + 2 * model.kv_heads) * model.head_dim + heads * model.head_dim * h
    q_width = heads * (model.nope_dim + model.rope_dim)
    query = ops.where(model.q_lora > 0, model.q_lora * (h + q_width), h * q_width)
    latent = (
        query
        + h * (model.kv_lora + model.rope_dim)
        + model.kv_lora * heads * (model.nope_dim + model.v_dim)
        + heads * model.v_dim * h
    )
    return ops.where(model.kv_lora > 0, latent, ordinary)


def _attention_vectors(model):
    """Biases of one layer's attention, and the norms inside latent attention."""
    qkv = (model.heads + 2 * model.kv_heads) * model.head_dim
    norms = model.q_lora + model.kv_lora
    return ops.where(model.biases | model.qkv_bias, qkv, 0) + ops.where(model.biases, model.hidden, 0) + norms


def _mlp(model, width):
    """One MLP of that width: 2 matrices, 3 when gated, and their biases."""
    biases = ops.where(model.biases, (1 + model.gated) * width + model.hidden, 0)
    return (2 + model.gated) * model.hidden * width + biases


def expert_parameters(model: Model) -> Real:
    """Parameters of one routed expert."""
    return _mlp(model, model.expert_ffn)


def _moe_mlp(model, experts):
    """One layer's MoE block with this many routed experts, plus the shared ones and the router."""
    router = model.hidden * model.experts + ops.where(model.biases | model.router_bias, model.experts, 0)
    return experts * expert_parameters(model) + model.shared_experts * _mlp(model, model.shared_ffn) + router


def _norm(model):
    """One norm over the hidden width: a scale, and a shift in LayerNorm."""
    return model.hidden * (1 + model.norm_bias)


def layer_parameters(model: Model, moe: bool = False, experts: Real | None = None) -> Real:
    """Parameters of one layer; with ``moe``, of a layer with experts, of which ``experts`` are counted (all
    by default)."""
    mlp = _moe_mlp(model, model.experts if experts is None else experts) if moe else _mlp(model, model.ffn)
    return (
        attention_matrices(model)
        + _attention_vectors(model)
        + model.norms_per_layer * _norm(model)
        + model.extra_params_per_layer
        + mlp
    )


def layer_tensors(model: Model) -> Real:
    """Parameters of a dense layer's tensors on the last axis, in the order in which the backward pass
    finishes them: MLP down, up, gate (0 where there is none), output, value, key, query; then biases, norms
    and the rest.

    For ordinary attention; a fused projection counts as three tensors.
    """
    h, d = model.hidden, model.head_dim
    tensors = (
        model.ffn * h,
        model.ffn * h,
        model.gated * model.ffn * h,
        model.heads * d * h,
        model.kv_heads * d * h,
        model.kv_heads * d * h,
        model.heads * d * h,
    )
    return np.stack([*tensors, layer_parameters(model) - sum(tensors)], axis=-1)


def embedding_parameters(model: Model) -> Real:
    """Input embedding, learned positions and the norm after them."""
    return (model.vocab + model.max_positions) * model.hidden + ops.where(
        model.embedding_norm, _norm(model), 0
    )


def head_parameters(model: Model) -> Real:
    """The final norm, and the output layer where it is a separate matrix."""
    return ops.where(model.final_norm, _norm(model), 0) + ops.where(model.tied, 0, model.vocab * model.hidden)


def parameters(model: Model) -> Real:
    """Every parameter of the model, exactly: embeddings + layers + head.

    Counts everything that is trained in the decoder; ``extra_params`` adds what a published count includes
    beyond it.
    """
    return (
        embedding_parameters(model)
        + head_parameters(model)
        + model.extra_params
        + dense_layers(model) * layer_parameters(model)
        + moe_layers(model) * layer_parameters(model, moe=True)
    )


def active_parameters(model: Model) -> Real:
    """Parameters used for one token of text: the decoder, with only top_k of the routed experts in each MoE
    layer.

    Counts the input embedding; some reports leave it out (gpt-oss, DeepSeek-V2-Lite).
    """
    return (
        embedding_parameters(model)
        + head_parameters(model)
        + dense_layers(model) * layer_parameters(model)
        + moe_layers(model) * layer_parameters(model, moe=True, experts=model.top_k)
    )


def typical(params: Real) -> Model:
    """A GPT-like shape with about this many parameters, for sliders over the size of a model; its number of
    layers need not be whole.

    Width 128 times the layers, heads of 128, MLP four times the width, so 12·L·h² = params (the proportions
    of GPT-3 175B, Llama 8B and 405B); dropout on, so that its activations are Korthikanti's 34·s·b·h·L.
    Leaves out the two vocabulary matrices, which would add 1 % at 405B, 15 % at 7B and half as much again at
    1B.
    """
    check.positive(params=params)
    layers = (params / (12 * 128**2)) ** (1 / 3)
    hidden = 128 * layers
    with check.trusted():  # real models are checked for whole numbers, this one is not
        return Model(
            key="typical",
            name="typical",
            layers=layers,
            hidden=hidden,
            heads=layers,
            kv_heads=layers,
            head_dim=128,
            ffn=4 * hidden,
            vocab=128256,
            gated=False,
            dropout=True,
        )
