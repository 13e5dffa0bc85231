"""How many bytes a model needs: training state, activations, logits, weights and KV cache.

Every function takes floats or arrays that broadcast. A model, a recipe and a GPU are anything with their attributes.
"""

from __future__ import annotations

import numpy as np

from engine import catalog, check, models, ops

# CUDA context, kernels, NCCL buffers and what the allocator cannot hand out; Ultra-Scale Playbook: 1 to 2 GB of kernels
# alone, and each NCCL communicator adds tens of MB.
FRAMEWORK_BYTES = 2e9

# bytes that one stored number takes
BYTES_PER_VALUE = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5}

# what is thrown away in the forward pass and computed again in the backward pass
NO_RECOMPUTE, SELECTIVE, FULL = 0, 1, 2
RECOMPUTE = {"none": NO_RECOMPUTE, "selective": SELECTIVE, "full": FULL}

DEFAULT_RECIPE = "bf16-adam"


# -- training state --------------------------------------------------------------------------------------------------
def state_slabs(params, recipe=None):
    """Bytes of weights, gradients, master copy, momentum and variance, in this order on the last axis.

    params × bytes per parameter of each (ZeRO, arXiv:1910.02054 section 3.1). Leaves out activations, buffers and
    fragmentation. Without a recipe: bf16 mixed-precision Adam.
    """
    check.positive(params=params)
    recipe = catalog.recipe(DEFAULT_RECIPE) if recipe is None else recipe
    return np.stack([params * recipe.weight_bytes, params * recipe.gradient_bytes, params * recipe.master_bytes,
                     params * recipe.momentum_bytes, params * recipe.variance_bytes], axis=-1)


def state_bytes(params, recipe=None):
    """Bytes of all training state: the sum of ``state_slabs``; 16 per parameter for bf16 mixed-precision Adam."""
    return np.sum(state_slabs(params, recipe), axis=-1)


def sharded_state_slabs(params, recipe=None, ranks=1, stage=0):
    """``state_slabs`` of one GPU when ``ranks`` data-parallel GPUs share the state, ZeRO stage 0 to 3.

    Stage 1 divides master, momentum and variance by the ranks, stage 2 the gradients too, stage 3 the weights too
    (arXiv:1910.02054 Table 1). Leaves out the gathered copies that stage 3 holds while a layer is computed.
    """
    check.positive(params=params)
    check.whole(ranks=ranks)
    check.between(0, 3, stage=stage)
    recipe = catalog.recipe(DEFAULT_RECIPE) if recipe is None else recipe
    weights = recipe.weight_bytes / ops.where(stage >= 3, ranks, 1)
    gradients = recipe.gradient_bytes / ops.where(stage >= 2, ranks, 1)
    optimizer = ops.where(stage >= 1, ranks, 1)
    slabs = (weights, gradients, recipe.master_bytes / optimizer, recipe.momentum_bytes / optimizer,
             recipe.variance_bytes / optimizer)
    return np.stack([params * slab for slab in slabs], axis=-1)


def sharded_state_bytes(params, recipe=None, ranks=1, stage=0):
    """Bytes of training state on one GPU under ZeRO: with 16-byte Adam 4Ψ + 12Ψ/N, 2Ψ + 14Ψ/N and 16Ψ/N."""
    return np.sum(sharded_state_slabs(params, recipe, ranks, stage), axis=-1)


def adafactor_variance_bytes_per_param(rows, columns):
    """Adafactor keeps one fp32 sum for each row and column of a matrix: 4·(r + c)/(r·c) bytes a parameter.

    arXiv:1804.04235 section 3. Vectors (norms, biases) keep a whole second moment and are left out.
    """
    check.whole(rows=rows, columns=columns)
    return 4.0 * (rows + columns) / (rows * columns)


# -- activations -----------------------------------------------------------------------------------------------------
def _layer_values(model, moe: bool):
    """Bytes a token leaves behind in one layer: (kept whole by every tensor rank, attention's and MLP's, both split).

    Korthikanti et al. section 4.1, generalised: 2-byte inputs of both blocks and both norms and 1-byte dropout masks
    are kept whole (10h); queries, keys, values, the attention's output and the inside of the MLP are split (24h).
    Experts: a token's routed copies (in and out, 2h bytes each) and the inside of top_k experts and the shared ones.
    """
    whole = (8 + 2 * model.dropout) * model.hidden
    query, value_dim = _query_and_value_dims(model)
    keys = ops.where(model.kv_lora > 0, model.heads, model.kv_heads)
    attention = 2 * (model.heads * (query + value_dim) + keys * (query + value_dim))
    inner = 4 + 2 * model.gated  # bytes for each unit of MLP width: into and out of GeLU; gate, up and their product
    if moe:
        mlp = (model.top_k * (inner * model.expert_ffn + 4 * model.hidden)
               + model.shared_experts * inner * model.shared_ffn)
    else:
        mlp = inner * model.ffn
    return whole, attention, mlp


def _query_and_value_dims(model):
    """Width of one head's query (and key) and of its value."""
    latent = model.kv_lora > 0
    return (ops.where(latent, model.nope_dim + model.rope_dim, model.head_dim),
            ops.where(latent, model.v_dim, model.head_dim))


def layer_activation_bytes(model, seq, micro_batch, tensor=1, context=1, sequence_parallel=0, recompute=NO_RECOMPUTE,
                           flash=1, moe=False):
    """Bytes that one layer keeps for its backward pass, on one GPU.

    Korthikanti et al. (arXiv:2205.05198) Table 2, for 2-byte activations: s·b·h·(10 + 24/t + 5·a·s/(h·t)); sequence
    parallelism divides the 10 too; selective recompute and FlashAttention drop the last term; full recompute keeps the
    layer's input alone, 2·s·b·h. Context parallelism divides the sequence. For other shapes than GPT's see
    ``_layer_values``. Leaves out FlashAttention's row statistics (4·a bytes a token) and the router's scores.
    """
    check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
    check.between(0, 1, sequence_parallel=sequence_parallel)
    tokens = seq * micro_batch / context
    return tokens * kept_per_token(model, seq, tensor, ops.where(sequence_parallel, tensor, 1), recompute, flash, moe)


def kept_per_token(model, seq, tensor, ranks_of_whole, recompute, flash, moe):
    """Bytes that a token leaves in one layer; ``ranks_of_whole`` divides what tensor ranks otherwise all keep."""
    if not check.is_trusted():
        check.whole(seq=seq, tensor=tensor, ranks_of_whole=ranks_of_whole)
        check.between(0, 2, recompute=recompute)
        check.between(0, 1, flash=flash)
    whole, attention, mlp = _layer_values(model, moe)
    scores = _score_bytes(model, seq, recompute, flash)
    kept = whole / ranks_of_whole + (attention + mlp + scores) / tensor
    return ops.where(recompute == FULL, 2 * model.hidden / ranks_of_whole, kept)


def _score_bytes(model, seq, recompute, flash):
    """Bytes of a token's rows of scores: what the softmax puts out, and with dropout its mask and what it leaves."""
    return ops.where((recompute == NO_RECOMPUTE) & (flash == 0), (2 + 3 * model.dropout) * model.heads * seq, 0)


def layer_activation_slabs(model, seq, micro_batch, tensor=1, context=1, sequence_parallel=0, recompute=NO_RECOMPUTE,
                           flash=1):
    """``layer_activation_bytes`` of a dense layer by part, on the last axis: the inputs of both blocks and their norms
    (under full recompute the layer's input alone), attention, MLP, attention scores."""
    check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
    check.between(0, 1, sequence_parallel=sequence_parallel, flash=flash)
    check.between(0, 2, recompute=recompute)
    tokens, ranks_of_whole = seq * micro_batch / context, ops.where(sequence_parallel, tensor, 1)
    whole, attention, mlp = _layer_values(model, moe=False)
    kept = ops.where(recompute == FULL, 0.0, tokens / tensor)
    inputs = tokens / ranks_of_whole * ops.where(recompute == FULL, 2 * model.hidden, whole)
    return np.stack([inputs, kept * attention, kept * mlp, kept * _score_bytes(model, seq, recompute, flash)], axis=-1)


def activation_bytes(model, seq, micro_batch, tensor=1, context=1, sequence_parallel=0, recompute=NO_RECOMPUTE,
                     flash=1):
    """Bytes that all layers keep for the backward pass of one micro-batch, on one GPU.

    For GPT: s·b·h·L·(34 + 5·a·s/h) (Korthikanti et al. eq. 2); with full recompute 2·s·b·h·L. Leaves out the output
    layer (``output_layer_bytes``), embeddings (``embedding_activation_bytes``) and, under full recompute, the one layer
    being rebuilt (``layer_activation_bytes`` again).
    """
    options = (seq, micro_batch, tensor, context, sequence_parallel, recompute, flash)
    return (models.dense_layers(model) * layer_activation_bytes(model, *options)
            + models.moe_layers(model) * layer_activation_bytes(model, *options, moe=True))


def peak_activation_bytes(model, seq, micro_batch, tensor=1, context=1, sequence_parallel=0, recompute=NO_RECOMPUTE,
                          flash=1):
    """``activation_bytes`` and, under full recompute, the one layer that stands rebuilt during its backward pass."""
    layout = (seq, micro_batch, tensor, context, sequence_parallel)
    dense = layer_activation_bytes(model, *layout, NO_RECOMPUTE, flash)
    rebuilt = ops.where(model.experts > 0, layer_activation_bytes(model, *layout, NO_RECOMPUTE, flash, moe=True), dense)
    return activation_bytes(model, *layout, recompute, flash) + ops.where(recompute == FULL, rebuilt, 0)


def rule_of_thumb_activation_bytes(layers, hidden, seq, batch, bytes_per_value=14):
    """The rules in circulation, bytes·s·b·h·L: "14" without checkpointing and "2" with it.

    For comparison only: 14 leaves out more than half of what Korthikanti et al. count (34). Some versions of the "2"
    also drop the h, and are then wrong by a factor of thousands.
    """
    check.positive(layers=layers, hidden=hidden, seq=seq, batch=batch, bytes_per_value=bytes_per_value)
    return bytes_per_value * seq * batch * hidden * layers


def output_layer_bytes(model, seq, micro_batch, tensor=1, context=1):
    """The last stage's final norm, output layer input and fp32 logits: 4·s·b·h/t·(1 + v/h).

    Korthikanti et al. section 4.3, with the loss computed in the logits' own place and sequence parallelism on.
    """
    check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
    return 4 * seq * micro_batch * (model.hidden + model.vocab) / (tensor * context)


def logits_peak_bytes(model, seq, micro_batch, tensor=1, context=1, bytes_per_logit=10):
    """The peak of an unfused loss: bf16 logits, their fp32 copy and its fp32 gradient, 2 + 4 + 4 bytes each.

    Leaves out what a chunked or fused cross entropy saves: that needs one chunk's worth at a time.
    """
    if not check.is_trusted():
        check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
        check.positive(bytes_per_logit=bytes_per_logit)
    return bytes_per_logit * seq * micro_batch * model.vocab / (tensor * context)


def embedding_activation_bytes(model, seq, micro_batch, tensor=1, context=1, in_flight=1):
    """The embedding's dropout mask on the first stage: s·b·h/t for each micro-batch in flight; nothing without dropout.

    Korthikanti et al. section 4.3.
    """
    check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
    check.positive(in_flight=in_flight)
    return model.dropout * seq * micro_batch * model.hidden * in_flight / (tensor * context)


def in_flight_micro_batches(stages, micro_batches, stage=0, interleave=1):
    """Micro-batches whose activations a pipeline stage holds at its worst, under 1F1B or its interleaved form.

    1F1B: p − i on stage i (0 is the first). Interleaved with v chunks: p·(1 + (p−1)/(p·v)) on the first stage, in
    general (2·(p−i−1) + (v−1)·p + 1)/v (Korthikanti et al. section 4.2.3; warm-up of Megatron's schedule). Never more
    than the step has. GPipe holds them all.
    """
    check.whole(stages=stages, micro_batches=micro_batches, interleave=interleave)
    check.whole(0, stage=stage)
    check.ordered(stage=stage, last_stage=stages - 1)
    plain = stages - stage
    interleaved = (2 * (stages - stage - 1) + (interleave - 1) * stages + 1) / interleave
    return ops.minimum(ops.where(interleave > 1, interleaved, plain), micro_batches)


# -- serving ---------------------------------------------------------------------------------------------------------
def weight_bytes(params, bytes_per_param=2.0):
    """Weights alone, as they stand in memory to serve the model. Leaves out the scales of quantised formats."""
    check.positive(params=params, bytes_per_param=bytes_per_param)
    return params * bytes_per_param


def kv_bytes_per_token(model, bytes_per_value=2.0):
    """KV cache that each token of context holds: 2·layers·kv_heads·head_dim values; latent attention keeps
    layers·(kv_lora + rope_dim) (DeepSeek-V2, arXiv:2405.04434 Table 1).

    For contexts shorter than any window; ``kv_bytes`` takes longer ones. Leaves out the scales of quantised caches.
    """
    check.positive(bytes_per_value=bytes_per_value)
    return model.layers * _kv_values_per_layer(model) * bytes_per_value


def _kv_values_per_layer(model):
    return ops.where(model.kv_lora > 0, model.kv_lora + model.rope_dim, 2 * model.kv_heads * model.head_dim)


def kv_bytes(model, context_tokens, sequences=1, bytes_per_value=2.0):
    """KV cache of so many sequences of that length; windowed layers keep their window alone."""
    check.non_negative(context_tokens=context_tokens, sequences=sequences)
    check.positive(bytes_per_value=bytes_per_value)
    windowed = ops.minimum(context_tokens, ops.where(model.windowed_layers > 0, model.window, context_tokens))
    tokens = (model.layers - model.windowed_layers) * context_tokens + model.windowed_layers * windowed
    return sequences * tokens * _kv_values_per_layer(model) * bytes_per_value


# -- against the machine ---------------------------------------------------------------------------------------------
def cluster_bytes(gpu, gpus):
    """The HBM of so many GPUs together, as the vendor counts it. Leaves out what the framework keeps of each."""
    check.positive(hbm_bytes=gpu.hbm_bytes)
    check.whole(gpus=gpus)
    return gpus * gpu.hbm_bytes


def against_hbm(total_bytes, gpu, gpus=1):
    """How many times the memory of so many GPUs the bytes would fill; above 1 they do not fit."""
    check.non_negative(total_bytes=total_bytes)
    check.positive(gpus=gpus, hbm_bytes=gpu.hbm_bytes)
    return total_bytes / (gpus * gpu.hbm_bytes)


def hbm_of_each_layer(gpu, layers):
    """What each layer may keep if activations were all that a GPU holds: HBM / L.

    For any number of pipeline stages: under 1F1B the first of p stages holds L/p layers of p micro-batches.
    """
    check.positive(hbm_bytes=gpu.hbm_bytes, layers=layers)
    return gpu.hbm_bytes / layers


def minimum_gpus(total_bytes, gpu, reserved_bytes_per_gpu=0.0):
    """The fewest GPUs that hold the bytes if they are cut into equal parts without a remainder.

    ceil(bytes / (HBM − reserved)). Leaves out everything that each GPU holds beside its part: pass it as reserved.
    """
    check.positive(total_bytes=total_bytes)
    check.non_negative(reserved_bytes_per_gpu=reserved_bytes_per_gpu)
    check.positive(hbm_bytes_left=gpu.hbm_bytes - reserved_bytes_per_gpu)
    return ops.ceil(total_bytes / (gpu.hbm_bytes - reserved_bytes_per_gpu))
