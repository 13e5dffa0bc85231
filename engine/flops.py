"""How much arithmetic a model needs, how long that takes, and what share of the machine it used.

One multiply-add is two FLOPs. Model FLOPs are what the mathematics asks for; hardware FLOPs add what is computed twice.
"""

from __future__ import annotations

from engine import check, models, ops
from engine.memory import FULL, NO_RECOMPUTE, SELECTIVE


# -- the rule: 6·P·D -------------------------------------------------------------------------------------------------
def forward_flops(params, tokens):
    """2·P·D: each token meets each parameter in one multiply-add (Kaplan et al., arXiv:2001.08361 section 2.1)."""
    check.positive(params=params, tokens=tokens)
    return 2 * params * tokens


def backward_flops(params, tokens):
    """4·P·D: one product for the gradient of the input and one for that of the weight."""
    return 2 * forward_flops(params, tokens)


def training_flops(params, tokens):
    """6·P·D = 2 forward + 4 backward, for one step (tokens of the batch) or a whole run.

    Kaplan et al. section 2.1. For experts P is the active parameters. Leaves out attention over the sequence
    (``attention_flops_per_token``), which is below 10 % while the sequence is shorter than about the hidden width.
    """
    return forward_flops(params, tokens) + backward_flops(params, tokens)


# -- a model's own count ---------------------------------------------------------------------------------------------
def matmul_parameters(model):
    """Weights that one token is multiplied by: active matrices, output layer; the input embedding is a lookup."""
    matrices = 2 + model.gated
    dense = matrices * model.hidden * model.ffn
    width = model.top_k * model.expert_ffn + model.shared_experts * model.shared_ffn
    routed = model.hidden * (matrices * width + model.experts)
    return (model.layers * models.attention_matrices(model) + models.dense_layers(model) * dense
            + models.moe_layers(model) * routed + model.vocab * model.hidden)


def attention_flops_per_token(model, seq, causal=1):
    """Forward FLOPs of scores and weighted sum, for one token: 2·s·heads·(query dim + value dim) in each layer.

    Causal: a token sees the tokens before it alone, half as many on average; layers with a window see at most that many
    (w − w²/2s on average; chunks of w: w/2). Leaves out the softmax.
    """
    check.whole(seq=seq)
    check.between(0, 1, causal=causal)
    latent = model.kv_lora > 0
    dims = ops.where(latent, model.nope_dim + model.rope_dim + model.v_dim, 2 * model.head_dim)
    window = ops.minimum(seq, ops.where(model.windowed_layers > 0, model.window, seq))
    seen = ops.where(causal, seq / 2, seq)
    average = ops.where(model.chunked, window / 2, window - window * window / (2 * seq))
    seen_in_window = ops.where(causal, average, window)
    layers_times_seen = (model.layers - model.windowed_layers) * seen + model.windowed_layers * seen_in_window
    return 2 * model.heads * dims * layers_times_seen


def forward_flops_per_token(model, seq, causal=1):
    """2 FLOPs for each weight a token meets, and the attention over its sequence."""
    return 2 * matmul_parameters(model) + attention_flops_per_token(model, seq, causal)


def training_flops_per_token(model, seq, causal=1):
    """Model FLOPs: three times the forward pass. What MFU divides by, in the convention that ``causal`` says."""
    return 3 * forward_flops_per_token(model, seq, causal)


def hardware_flops_per_token(model, seq, causal=1, recompute=NO_RECOMPUTE):
    """Model FLOPs and what recomputation repeats: full, every layer's forward pass; selective, the core attention.

    Full matches Megatron's 96·B·s·L·h²·(1 + s/6h + V/16Lh) (arXiv:2104.04473 section 5.1). Leaves out the products that
    FlashAttention's backward pass always repeats.
    """
    check.between(0, 2, recompute=recompute)
    attention = attention_flops_per_token(model, seq, causal)
    layers = 2 * (matmul_parameters(model) - model.vocab * model.hidden) + attention
    again = ops.where(recompute == FULL, layers, ops.where(recompute == SELECTIVE, attention, 0))
    return training_flops_per_token(model, seq, causal) + again


def recomputed_share(model, seq, causal=1, recompute=NO_RECOMPUTE):
    """What recomputation adds to the model FLOPs, as a share of them: about a third for all layers, under full."""
    model_flops = training_flops_per_token(model, seq, causal)
    return hardware_flops_per_token(model, seq, causal, recompute) / model_flops - 1


# -- conventions of the papers ---------------------------------------------------------------------------------------
def palm_flops_per_token(params, layers, heads, head_dim, seq):
    """6·N + 12·L·H·Q·T, attention not causal: the convention of PaLM (arXiv:2204.02311 appendix B) and llm-foundry."""
    check.positive(params=params, layers=layers, heads=heads, head_dim=head_dim, seq=seq)
    return 6 * params + 12 * layers * heads * head_dim * seq


def megatron_model_flops(batch, seq, layers, hidden, vocab):
    """72·B·s·L·h²·(1 + s/6h + V/12Lh), a step's model FLOPs (arXiv:2205.05198 appendix A), attention not causal."""
    check.positive(batch=batch, seq=seq, layers=layers, hidden=hidden, vocab=vocab)
    return 72 * batch * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (12 * layers * hidden))


def megatron_full_recompute_flops(batch, seq, layers, hidden, vocab):
    """96·B·s·L·h²·(1 + s/6h + V/16Lh), a step with full recompute: the TFLOP/s of arXiv:2104.04473 count this."""
    check.positive(batch=batch, seq=seq, layers=layers, hidden=hidden, vocab=vocab)
    return 96 * batch * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))


def megatron_selective_flops(batch, seq, layers, hidden, vocab):
    """72·B·s·L·h²·(1 + s/3h + V/12Lh), a step with selective recompute as arXiv:2205.05198 appendix A prints it.

    It adds the attention's 12·B·s²·h·L a second time; one forward pass of it is a third of that, which is what
    ``hardware_flops_per_token`` adds. Use this one to reproduce the paper's HFU.
    """
    check.positive(batch=batch, seq=seq, layers=layers, hidden=hidden, vocab=vocab)
    return 72 * batch * seq * layers * hidden**2 * (1 + seq / (3 * hidden) + vocab / (12 * layers * hidden))


# -- time and utilisation --------------------------------------------------------------------------------------------
def mfu(model_flops, time_s, gpus, peak_flops_per_s):
    """Model FLOPs utilisation: the share of the machine's peak that the mathematics itself used (arXiv:2204.02311)."""
    check.positive(model_flops=model_flops, time_s=time_s, gpus=gpus, peak_flops_per_s=peak_flops_per_s)
    return model_flops / (time_s * gpus * peak_flops_per_s)


def hfu(hardware_flops, time_s, gpus, peak_flops_per_s):
    """Hardware FLOPs utilisation: as MFU, with what was computed twice counted twice. Never mix the two."""
    check.positive(hardware_flops=hardware_flops)
    return mfu(hardware_flops, time_s, gpus, peak_flops_per_s)


def run_time_s(model_flops, gpus, peak_flops_per_s, mfu=0.4):
    """Seconds that the FLOPs take: FLOPs / (GPUs · peak · MFU). One step or a whole run. Leaves out interruptions."""
    check.positive(model_flops=model_flops, gpus=gpus, peak_flops_per_s=peak_flops_per_s)
    check.share(mfu=mfu)
    return model_flops / (gpus * peak_flops_per_s * mfu)


def flops_in_time(time_s, gpus, peak_flops_per_s, mfu=0.4):
    """Model FLOPs that so many GPUs do in that time: time · GPUs · peak · MFU, the inverse of ``run_time_s``."""
    check.positive(time_s=time_s, gpus=gpus, peak_flops_per_s=peak_flops_per_s)
    check.share(mfu=mfu)
    return time_s * gpus * peak_flops_per_s * mfu


def compute_optimal_params(model_flops, tokens_per_param=20.0):
    """The model that gets the lowest loss from so many FLOPs: 6·P·(r·P) = FLOPs, so P = √(FLOPs / 6r).

    About r = 20 tokens for each parameter (Hoffmann et al., arXiv:2203.15556, Table 3, where r goes from 20 to 22).
    Leaves out what serving the model will cost: whoever counts it trains a smaller one for longer.
    """
    check.positive(model_flops=model_flops, tokens_per_param=tokens_per_param)
    return ops.sqrt(model_flops / (6 * tokens_per_param))


def gpu_hours(model_flops, peak_flops_per_s, mfu=0.4):
    """GPU-hours that the FLOPs take, however many GPUs share them (as long as MFU holds)."""
    return run_time_s(model_flops, 1, peak_flops_per_s, mfu) / 3600


def gpu_hours_per_trillion_tokens(flops_per_token, peak_flops_per_s, mfu=0.4):
    """GPU-hours for 10¹² tokens: the figure that training reports quote (DeepSeek-V3: 180,000 on H800)."""
    check.positive(flops_per_token=flops_per_token)
    return gpu_hours(1e12 * flops_per_token, peak_flops_per_s, mfu)
