"""How much arithmetic a model needs, how long it takes, and what share of the machine it uses.

One multiply-add is two FLOPs. Model FLOPs are those that the mathematics requires; hardware FLOPs also count
whatever is computed twice.
"""

from __future__ import annotations

from engine.base import check, ops
from engine.base.types import Real, Sized
from engine.catalog import layers, models
from engine.mechanism.memory import FULL, NO_RECOMPUTE, SELECTIVE


# -- the rule: 6·P·D -----------------------------------------------------------------------------------------
def forward_flops(params: Real, tokens: Real) -> Real:
    """2·P·D: one multiply-add for each token and each parameter (Kaplan et al., arXiv:2001.08361 section
    2.1)."""
    check.positive(params=params, tokens=tokens)
    return 2 * params * tokens


def backward_flops(params: Real, tokens: Real) -> Real:
    """4·P·D: one product for the gradient of the input and one for the gradient of the weight."""
    return 2 * forward_flops(params, tokens)


def training_flops(params: Real, tokens: Real) -> Real:
    """6·P·D = 2 forward + 4 backward, for one step (tokens of the batch) or a whole run.

    Kaplan et al. section 2.1. For a mixture of experts, P is the active parameters. Leaves out attention over
    the sequence (``attention_flops_per_token``), which is below 10 % while the sequence is shorter than about
    the hidden width.
    """
    return forward_flops(params, tokens) + backward_flops(params, tokens)


# -- a model's own count -------------------------------------------------------------------------------------
def matmul_parameters(model: Sized) -> Real:
    """Weights that each token is multiplied by: active matrices and the output layer; the input embedding is
    a lookup."""
    attention = sum(count * kind.matrices for count, kind in models.attentions(model))
    mlp = sum(count * kind.matrices for count, kind in models.mlps(model))
    return attention + mlp + model.vocab * model.hidden


def mtp_flops_per_token(model: Sized, seq: Real, causal: Real = 1) -> Real:
    """FLOPs that one multi-token prediction module adds to ``training_flops_per_token`` (DeepSeek-V3,
    arXiv:2412.19437 section 2.2): one more layer like the last ones, the projection of two hidden states to
    one, 2h², and the shared output layer again. DeepSeek-V3: 250 GFLOP per token without it, 260 with it."""
    layer = 0.0
    for count, (kind, mlp, _) in models.blocks(model):
        layer = ops.where(count > 0, kind.matrices + mlp.matrices, layer)
    again = layer + 2 * model.hidden * model.hidden + model.vocab * model.hidden
    return 3 * (2 * again + attention_flops_per_token(model, seq, causal) / model.depth)


def attention_flops_per_token(model: Sized, seq: Real, causal: Real = 1) -> Real:
    """Forward FLOPs of scores and weighted sum, for one token: 2·s·heads·(query dim + value dim) in each
    layer.

    Causal: a token sees only the tokens before it, half of them on average; layers with a window see at most
    the window (w − w²/2s on average; chunks of w: w/2). Linear attention, state spaces and attention over
    what an indexer picks are counted as they run, causal or not (``catalog.mixers``). Leaves out the softmax.
    """
    check.whole(seq=seq)
    check.between(0, 1, causal=causal)
    found, before = 0, ops.where(causal, seq / 2, seq)
    for count, (kind, window) in models.attended(model):
        if models.is_mixer(kind):
            work = kind.reading(seq)
            found = found + count * (work.flops + work.repeated_flops) / seq
            continue
        seen = before if window is None else _seen_in(window, seq, causal)
        found = found + 2 * kind.heads * (kind.qk_dim + kind.value_dim) * (count * seen)
    return found


def next_token_attention_flops(model: Sized, context: Real) -> Real:
    """FLOPs of scores and weighted sum for one new token after ``context`` others, in all layers: 2·s·heads·
    (query dim + value dim) in each.

    Latent attention is counted as servers run it, with the up-projections absorbed: each head reads a token's
    latent and its rotary key, 2·s·heads·(2·kv_lora + rope_dim) (DeepSeek-V2, arXiv:2405.04434 section 2.1.2).
    Kinds that read less, or nothing but a state, say so themselves (``catalog.mixers``). Leaves out the
    softmax and all products with weights.
    """
    check.non_negative(context=context)
    found = 0.0
    for count, (kind, window) in models.attended(model):
        if models.is_mixer(kind):
            work = kind.decoding(context)
            found = found + count * (work.flops + work.repeated_flops)
            continue
        seen = context if window is None else ops.minimum(context, window.tokens)
        width = ops.where(kind.latent, 2 * kind.kv_lora + kind.rope_dim, kind.qk_dim + kind.value_dim)
        found = found + 2.0 * kind.heads * width * (count * seen)
    return found


def _seen_in(window, seq, causal):
    """Tokens that one sees on average within a window."""
    width = ops.minimum(seq, window.tokens)
    average = ops.where(window.chunked > 0, width / 2, layers.seen(window.tokens, seq))
    return ops.where(causal, average, width)


def forward_flops_per_token(model: Sized, seq: Real, causal: Real = 1) -> Real:
    """2 FLOPs for each weight that a token is multiplied by, plus the attention over its sequence."""
    return 2 * matmul_parameters(model) + attention_flops_per_token(model, seq, causal)


def training_flops_per_token(model: Sized, seq: Real, causal: Real = 1) -> Real:
    """Model FLOPs: three times the forward pass. This is what MFU counts; ``causal`` chooses the
    convention."""
    return 3 * forward_flops_per_token(model, seq, causal)


def hardware_flops_per_token(
    model: Sized, seq: Real, causal: Real = 1, recompute: Real = NO_RECOMPUTE
) -> Real:
    """Model FLOPs plus what recomputation repeats: with full, every layer's forward pass; with selective, the
    core attention.

    Full matches Megatron's 96·B·s·L·h²·(1 + s/6h + V/16Lh) (arXiv:2104.04473 section 5.1). Leaves out the
    products that FlashAttention's backward pass always repeats.
    """
    check.between(0, 2, recompute=recompute)
    attention = attention_flops_per_token(model, seq, causal)
    layers = 2 * (matmul_parameters(model) - model.vocab * model.hidden) + attention
    again = ops.where(recompute == FULL, layers, ops.where(recompute == SELECTIVE, attention, 0))
    return training_flops_per_token(model, seq, causal) + again


def recomputed_share(
    model: models.Model, seq: Real, causal: Real = 1, recompute: Real = NO_RECOMPUTE
) -> Real:
    """What recomputation adds to the model FLOPs, as a share of them: about a third with full
    recomputation."""
    model_flops = training_flops_per_token(model, seq, causal)
    return hardware_flops_per_token(model, seq, causal, recompute) / model_flops - 1


# -- time and utilisation ------------------------------------------------------------------------------------
def mfu(model_flops: Real, time_s: Real, gpus: Real, peak_flops_per_s: Real) -> Real:
    """Model FLOPs utilisation: the share of the machine's peak spent on the mathematics itself
    (arXiv:2204.02311)."""
    check.positive(model_flops=model_flops, time_s=time_s, gpus=gpus, peak_flops_per_s=peak_flops_per_s)
    return model_flops / (time_s * gpus * peak_flops_per_s)


def hfu(hardware_flops: Real, time_s: Real, gpus: Real, peak_flops_per_s: Real) -> Real:
    """Hardware FLOPs utilisation: like MFU, but recomputed work counts again. Never mix the two."""
    check.positive(hardware_flops=hardware_flops)
    return mfu(hardware_flops, time_s, gpus, peak_flops_per_s)


def run_time_s(model_flops: Real, gpus: Real, peak_flops_per_s: Real, mfu: Real = 0.4) -> Real:
    """Seconds for this many FLOPs: FLOPs / (GPUs · peak · MFU). One step or a whole run. Leaves out
    interruptions."""
    check.positive(model_flops=model_flops, gpus=gpus, peak_flops_per_s=peak_flops_per_s)
    check.share(mfu=mfu)
    return model_flops / (gpus * peak_flops_per_s * mfu)


def flops_in_time(time_s: Real, gpus: Real, peak_flops_per_s: Real, mfu: Real = 0.4) -> Real:
    """Model FLOPs that ``gpus`` GPUs do in ``time_s``: time · GPUs · peak · MFU, the inverse of
    ``run_time_s``."""
    check.positive(time_s=time_s, gpus=gpus, peak_flops_per_s=peak_flops_per_s)
    check.share(mfu=mfu)
    return time_s * gpus * peak_flops_per_s * mfu


def compute_optimal_params(model_flops: Real, tokens_per_param: Real = 20.0) -> Real:
    """The model size with the lowest loss for this many FLOPs: 6·P·(r·P) = FLOPs, so P = √(FLOPs / 6r).

    About r = 20 tokens per parameter (Hoffmann et al., arXiv:2203.15556, Table 3, where r goes from 20 to
    22). Leaves out the cost of serving the model; if that counts, train a smaller model for longer.
    """
    check.positive(model_flops=model_flops, tokens_per_param=tokens_per_param)
    return ops.sqrt(model_flops / (6 * tokens_per_param))


def gpu_hours(model_flops: Real, peak_flops_per_s: Real, mfu: Real = 0.4) -> Real:
    """GPU-hours for this many FLOPs, however many GPUs share them (as long as MFU holds)."""
    return run_time_s(model_flops, 1, peak_flops_per_s, mfu) / 3600
