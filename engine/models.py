"""What the models are: transformer shapes and their exact parameter counts.

One dataclass covers decoder-only transformers from GPT-2 to DeepSeek-V3. What a model does not have is 0 or False,
so that every count below is one formula without branches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine import check, ops


def _divisors(n) -> list[int]:
    return [] if check.is_trusted() else [d for d in range(1, int(n) + 1) if n % d == 0]


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
    ffn: int                        # width of the dense MLP; 0 where every layer has experts instead
    vocab: int
    gated: bool = True              # SwiGLU and kin: three matrices; a plain MLP has two
    tied: bool = False              # input embedding and output layer are one matrix
    max_context: int = 2048
    max_positions: int = 0          # learned position embeddings; 0 for rotary and ALiBi
    biases: bool = False            # a bias on every linear layer (not on the output layer)
    qkv_bias: bool = False          # a bias on query, key and value alone
    norms_per_layer: int = 2
    norm_bias: bool = False         # LayerNorm has one, RMSNorm has none
    final_norm: bool = True
    embedding_norm: bool = False
    parallel_block: bool = False    # attention and MLP side by side (PaLM): half the tensor-parallel AllReduces
    dropout: bool = False           # trained with dropout: its masks are kept for the backward pass
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
    shared_ffn: int = 0             # width of each shared expert
    first_dense_layers: int = 0
    moe_every: int = 1              # 2: every second layer has experts (Llama 4 Maverick)
    router_bias: bool = False
    # attention over a window of the last tokens, in some of the layers
    window: int = 0
    windowed_layers: int = 0
    chunked: bool = False           # the window does not slide: the sequence is cut into chunks of it (Llama 4)
    extra_params_per_layer: int = 0  # query and key norms, attention sinks, … (the entry's note says which)
    extra_params: int = 0            # parts outside the decoder that the published count includes
    family: str = ""
    year: int = 0
    published_params: float = 0.0
    published_active_params: float = 0.0
    source: str = ""
    checked: str = ""
    note: str = ""

    def __post_init__(self):
        check.whole(layers=self.layers, hidden=self.hidden, heads=self.heads, kv_heads=self.kv_heads,
                    head_dim=self.head_dim, vocab=self.vocab, moe_every=self.moe_every,
                    norms_per_layer=self.norms_per_layer)
        check.whole(0, ffn=self.ffn, max_positions=self.max_positions, experts=self.experts, top_k=self.top_k,
                    expert_ffn=self.expert_ffn, shared_experts=self.shared_experts, shared_ffn=self.shared_ffn,
                    first_dense_layers=self.first_dense_layers, q_lora=self.q_lora, kv_lora=self.kv_lora,
                    rope_dim=self.rope_dim, nope_dim=self.nope_dim, v_dim=self.v_dim, window=self.window,
                    windowed_layers=self.windowed_layers, extra_params_per_layer=self.extra_params_per_layer,
                    extra_params=self.extra_params)
        check.whole(max_context=self.max_context)
        check.between(0, 1, gated=self.gated, tied=self.tied, biases=self.biases, qkv_bias=self.qkv_bias,
                      norm_bias=self.norm_bias, final_norm=self.final_norm, embedding_norm=self.embedding_norm,
                      parallel_block=self.parallel_block, dropout=self.dropout, router_bias=self.router_bias,
                      chunked=self.chunked)
        check.between(0, self.layers, first_dense_layers=self.first_dense_layers, windowed_layers=self.windowed_layers)
        check.between(0, self.experts, top_k=self.top_k)
        check.one_of(_divisors(self.heads), kv_heads=self.kv_heads)


def moe_layers(model):
    """How many layers route their tokens to experts."""
    return ops.where(model.experts > 0, ops.floor((model.layers - model.first_dense_layers) / model.moe_every), 0)


def dense_layers(model):
    """How many layers have one ordinary MLP."""
    return model.layers - moe_layers(model)


def attention_matrices(model):
    """Weights of one layer's attention matrices (no biases, no norms).

    Ordinary: h·(heads + 2·kv_heads)·d for q, k, v and heads·d·h for the output. Multi-head latent attention
    (DeepSeek-V2, arXiv:2405.04434 section 2.1): q down and up, kv down with the shared rotary key, kv up, output.
    """
    h, heads = model.hidden, model.heads
    ordinary = h * (heads + 2 * model.kv_heads) * model.head_dim + heads * model.head_dim * h
    q_width = heads * (model.nope_dim + model.rope_dim)
    query = ops.where(model.q_lora > 0, model.q_lora * (h + q_width), h * q_width)
    latent = (query + h * (model.kv_lora + model.rope_dim) + model.kv_lora * heads * (model.nope_dim + model.v_dim)
              + heads * model.v_dim * h)
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


def expert_parameters(model):
    """Parameters of one routed expert."""
    return _mlp(model, model.expert_ffn)


def _moe_mlp(model, experts):
    """One layer's MoE block holding (or using) so many routed experts: they, the shared ones, and the router."""
    router = model.hidden * model.experts + ops.where(model.biases | model.router_bias, model.experts, 0)
    return experts * expert_parameters(model) + model.shared_experts * _mlp(model, model.shared_ffn) + router


def _norm(model):
    """One norm over the hidden width: a scale, and a shift in LayerNorm."""
    return model.hidden * (1 + model.norm_bias)


def layer_parameters(model, moe: bool = False, experts=None):
    """Parameters of one layer; ``moe`` for one with experts, of which ``experts`` are counted (all by default)."""
    mlp = _moe_mlp(model, model.experts if experts is None else experts) if moe else _mlp(model, model.ffn)
    return (attention_matrices(model) + _attention_vectors(model) + model.norms_per_layer * _norm(model)
            + model.extra_params_per_layer + mlp)


def layer_tensors(model):
    """Parameters of a dense layer's tensors in the order in which its backward pass ends them, on the last axis:
    MLP down, up, gate (0 where there is none), output, value, key, query; then biases, norms and what else there is.

    For ordinary attention: a fused projection counts as three.
    """
    h, d = model.hidden, model.head_dim
    tensors = (model.ffn * h, model.ffn * h, model.gated * model.ffn * h, model.heads * d * h, model.kv_heads * d * h,
               model.kv_heads * d * h, model.heads * d * h)
    return np.stack([*tensors, layer_parameters(model) - sum(tensors)], axis=-1)


def embedding_parameters(model):
    """Input embedding, learned positions and the norm behind them."""
    return (model.vocab + model.max_positions) * model.hidden + ops.where(model.embedding_norm, _norm(model), 0)


def head_parameters(model):
    """The final norm, and the output layer where it is a matrix of its own."""
    return ops.where(model.final_norm, _norm(model), 0) + ops.where(model.tied, 0, model.vocab * model.hidden)


def parameters(model):
    """Every parameter of the model, exactly: embeddings + layers + head.

    Leaves out nothing that is trained in the decoder; ``extra_params`` adds what a published count includes beside it.
    """
    return (embedding_parameters(model) + head_parameters(model) + model.extra_params
            + dense_layers(model) * layer_parameters(model) + moe_layers(model) * layer_parameters(model, moe=True))


def active_parameters(model):
    """Parameters that one token of text meets: the decoder, with only top_k of the routed experts in each MoE layer.

    Counts the input embedding; some reports leave it out (gpt-oss, DeepSeek-V2-Lite).
    """
    return (embedding_parameters(model) + head_parameters(model)
            + dense_layers(model) * layer_parameters(model)
            + moe_layers(model) * layer_parameters(model, moe=True, experts=model.top_k))


def typical(params):
    """A GPT-like shape of about that many parameters, for sliders over the size of a model: layers need not be whole.

    Width 128 times the layers, heads of 128, MLP four times the width, so 12·L·h² = params (the proportions of GPT-3
    175B, Llama 8B and 405B); dropout on, so that its activations are Korthikanti's 34·s·b·h·L. Leaves out the two
    vocabulary matrices: 1 % more at 405B, 15 % at 7B, half as much again at 1B.
    """
    check.positive(params=params)
    layers = (params / (12 * 128**2)) ** (1 / 3)
    hidden = 128 * layers
    with check.trusted():  # whole numbers are for real models
        return Model(key="typical", name="typical", layers=layers, hidden=hidden, heads=layers, kv_heads=layers,
                     head_dim=128, ffn=4 * hidden, vocab=128256, gated=False, dropout=True)
