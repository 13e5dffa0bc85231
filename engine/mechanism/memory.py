"""The bytes that a model needs: training state, activations, logits, weights and KV cache.

Every function takes floats or arrays that broadcast. A model, a recipe or a GPU is any object with their
attributes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from engine import catalog
from engine.base import check, ops
from engine.base.types import Real, Sized
from engine.catalog import models
from engine.catalog.software import CHOICES
from engine.mechanism import pipeline

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.recipes import Recipe

# CUDA context, kernels, NCCL buffers and what the allocator cannot use. Ultra-Scale Playbook: 1 to 2 GB for
# kernels alone, and each NCCL communicator adds tens of MB.
FRAMEWORK_BYTES = 2e9

# The part of the memory reported by the driver that no process can have: PyTorch finds 79.2 GiB of an H100's
# 79.65, 79.3 of an A100's 80, 139.8 of an H200's 140.4, 178.35 of a B200's 179.06, so 0.5 to 0.8 GB are
# missing.
RESERVED_BYTES = 0.7e9

# bytes per stored value
BYTES_PER_VALUE = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp4": 0.5,
    "int4": 0.5,
}

# what the forward pass discards and the backward pass computes again
NO_RECOMPUTE, SELECTIVE, FULL = 0, 1, 2
RECOMPUTE = {"none": NO_RECOMPUTE, "selective": SELECTIVE, "full": FULL}
# … or parts of a layer, as in Megatron's --recompute-modules
BY_MODULE = 3
# parts of a layer by Megatron's names; torchtitan's choice by operator, which keeps every other product
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts", "every_other")

DEFAULT_RECIPE = "bf16-adam"


@lru_cache(None)
def recompute_of(name: str) -> tuple[int, tuple[str, ...]]:
    """What a name recomputes: (one of RECOMPUTE's numbers or BY_MODULE, MODULES). Modules are joined by plus
    signs, as in "layernorm+moe_act"."""
    if name in RECOMPUTE:
        return RECOMPUTE[name], ()
    modules = tuple(name.split("+"))
    if not set(modules) <= set(MODULES) or len(set(modules)) < len(modules):
        raise ValueError(
            f"recompute must be one of {', '.join(RECOMPUTE)}; got {name!r}. Or parts of a layer, each once "
            f"and joined by +: {', '.join(MODULES)}"
        )
    return BY_MODULE, modules


# -- training state ------------------------------------------------------------------------------------------
def _uniform(recipe: Recipe | None) -> Recipe:
    """The recipe, or the default one; ValueError where its bytes depend on the model's matrices."""
    if recipe is None:
        return catalog.recipe(DEFAULT_RECIPE)
    if recipe.matrices is not None:
        raise ValueError(
            "recipe must take as many bytes for every parameter (for one with matrices: "
            f"optimizers.state_slabs, which asks the model), got {recipe.key!r}"
        )
    return recipe


def state_slabs(params: Real, recipe: Recipe | None = None) -> Real:
    """Bytes of weights, gradients, master copy, momentum and variance, in this order on the last axis.

    params × bytes per parameter of each (ZeRO, arXiv:1910.02054 section 3.1). Leaves out activations, buffers
    and fragmentation. Without a recipe: bf16 mixed-precision Adam. For optimizers of whole matrices see
    ``optimizers.state_slabs``.
    """
    check.positive(params=params)
    recipe = _uniform(recipe)
    return np.stack(
        [
            params * recipe.weight_bytes,
            params * recipe.gradient_bytes,
            params * recipe.master_bytes,
            params * recipe.momentum_bytes,
            params * recipe.variance_bytes,
        ],
        axis=-1,
    )


def state_bytes(params: Real, recipe: Recipe | None = None) -> Real:
    """Bytes of all training state: the sum of ``state_slabs``. 16 per parameter for bf16 mixed-precision
    Adam."""
    return np.sum(state_slabs(params, recipe), axis=-1)


def sharded_state_slabs(params: Real, recipe: Recipe | None = None, ranks: Real = 1, stage: Real = 0) -> Real:
    """``state_slabs`` of one GPU when ``ranks`` data-parallel GPUs share the state, for ZeRO stages 0 to 3.

    Stage 1 divides master, momentum and variance by the ranks, stage 2 the gradients too, stage 3 the weights
    too (arXiv:1910.02054 Table 1). Leaves out the gathered copies that stage 3 holds while a layer is
    computed.
    """
    check.positive(params=params)
    check.whole(ranks=ranks)
    check.between(0, 3, stage=stage)
    recipe = _uniform(recipe)
    weights = recipe.weight_bytes / ops.where(stage >= 3, ranks, 1)
    gradients = recipe.gradient_bytes / ops.where(stage >= 2, ranks, 1)
    optimizer = ops.where(stage >= 1, ranks, 1)
    slabs = (
        weights,
        gradients,
        recipe.master_bytes / optimizer,
        recipe.momentum_bytes / optimizer,
        recipe.variance_bytes / optimizer,
    )
    return np.stack([params * slab for slab in slabs], axis=-1)


def sharded_state_bytes(params: Real, recipe: Recipe | None = None, ranks: Real = 1, stage: Real = 0) -> Real:
    """Bytes of training state on one GPU under ZeRO: with 16-byte Adam 4P + 12P/N, 2P + 14P/N and 16P/N."""
    return np.sum(sharded_state_slabs(params, recipe, ranks, stage), axis=-1)


# -- activations ---------------------------------------------------------------------------------------------
class Kept(NamedTuple):
    """Bytes that one token leaves behind in one layer, by tensor. Every tensor-parallel rank keeps the first
    two whole; the others are split."""

    inputs: Real  # inputs of both blocks, as in the residual stream, and dropout masks
    norms: Real  # outputs of both norms
    projected: Real  # queries, keys and values
    attended: Real  # the attention's output
    mlp: Real  # the inside of a dense MLP, or of the routed experts with the tokens' copies
    activated: Real  # output of the routed experts' activation function
    shared: Real  # the inside of the shared experts


if TYPE_CHECKING:

    class Beside(Protocol):
        """What is trained beside a frozen model, as ``adapters.Adapter`` is: it says what of a layer's
        tensors a token still leaves behind."""

        def kept(self, found: Kept, attention: Any, mlp: Any, hidden: Real, weighs_early: bool) -> Kept:
            """Of these, what a frozen layer keeps."""
            ...


def layer_values(
    model: Sized,
    block: int,
    saves_fp8: bool = False,
    weighs_early: bool = False,
    adapter: Beside | None = None,
    eager: bool = False,
) -> Kept:
    """Bytes that one token leaves behind in one layer; ``block`` is its kind's place among ``models.blocks``.

    Korthikanti et al. section 4.1, generalised: 2-byte inputs of both blocks and both norms, and 1-byte
    dropout masks, are kept whole (10h); queries, keys, values, the attention's output and the inside of the
    MLP are split (24h). Experts: a token's routed copies (in and out, 2h bytes each) and the inside of the
    top_k experts and the shared ones.

    With ``saves_fp8`` a product keeps its input in 8 bits, as the backward pass multiplies it again in 8
    bits (Transformer Engine: ``inputmat.update_usage(rowwise_usage=False)`` before it is saved). What
    others need stays in 16: the inputs of norms and activation functions, the attention's operands and
    output, the router's input. Leaves out the scales of blocks (3 % more). With ``weighs_early`` a token's
    weight for an expert multiplies inside the activation function (Megatron-Core's ``weighted_swiglu``),
    so that what the expert puts out is not needed again. With an ``adapter`` the layer's own weights are
    frozen (``Adapter.kept``). ``eager`` is PyTorch's operators one by one (``_written_out``).
    """
    attention, mlp, _ = models.blocks(model)[block][1]
    moe = models.is_routed(mlp)
    saved = 1 if saves_fp8 else 2  # bytes of a product's input
    again = 1 if saves_fp8 else 0  # … and of an input that something else keeps in 16 bits as well
    inner = 2 + 2 * mlp.gated + saved  # bytes per unit of MLP width: into and out of GeLU; gate, up, product
    copies = saved if weighs_early else saved + 2  # bytes of a token at an expert: its input, and its output
    router = again if moe else 0  # the router's input stays in 16 bits
    keys = attention.key_heads * (attention.qk_dim + attention.value_dim)
    inside, activated, shared = inner * mlp.width, 0, 0
    if moe:
        routed = mlp.top_k * mlp.width
        inside, activated = (inner - saved) * routed + mlp.top_k * copies * model.hidden, saved * routed
        shared = mlp.shared_experts * inner * mlp.shared_width
        shared = shared + ops.where(mlp.shared_experts > 0, again * model.hidden, 0)
    found = Kept(
        (4 + 2 * model.dropout) * model.hidden,
        (2 * saved + router) * model.hidden,
        2 * (attention.heads * attention.qk_dim + keys),
        (2 + again) * attention.heads * attention.value_dim,
        inside,
        activated,
        shared,
    )
    found = found if adapter is None else adapter.kept(found, attention, mlp, model.hidden, weighs_early)
    return _written_out(found, model, attention, mlp, adapter) if eager else found


def _written_out(found: Kept, model: Sized, attention: Any, mlp: Any, adapter: Beside | None) -> Kept:
    """What a token leaves behind where a layer is made of PyTorch's operators, as transformers and torchtune
    write it, of what it does where norms and activation functions are one kernel each.

    A norm widens its input to fp32 and keeps that, 4·h bytes in place of 2·h, and its result in 16 bits for
    the gradient of its weights. A gated MLP keeps what its activation function puts out, which is multiplied
    by the other half. Norms of queries and keys, where a model has them, keep both of their results. A test
    runs such a layer and counts what autograd saves, to the byte. Leaves out keys and values that older
    versions repeat for grouped heads.
    """
    queries, keys = attention.heads * attention.qk_dim, attention.key_heads * attention.qk_dim
    both = 2 * attention.qk_dim  # weights of two norms of a head, or of all heads
    normed = (attention.extra_params >= both) & (attention.extra_params <= queries + keys) & (queries > 0)
    each = ops.where(normed, 4 + (0 if adapter else 2), 0)
    without_bias = ops.where(model.norm_bias > 0, 0, 1)  # PyTorch's layer_norm is one operator
    routed = models.is_routed(mlp)
    gated = 2 * mlp.gated
    return found._replace(
        inputs=found.inputs + 4 * model.hidden * without_bias,
        norms=found.norms + (0 if adapter else 4 * model.hidden * without_bias),
        projected=found.projected + each * (queries + keys),
        mlp=found.mlp + gated * (mlp.top_k * mlp.width if routed else mlp.width),
        shared=found.shared + (mlp.shared_experts * gated * mlp.shared_width if routed else 0),
    )


def passing_per_token(model: Sized, block: int, seq: Real, flash: Real) -> Real:
    """Bytes of gradients that a token has in a layer's backward pass beside all that the layer keeps, by
    PyTorch's operators: those of the activation function's result, of its factor and of their product, of
    which the product's input is gone by then, so 4 bytes for each unit of the MLP's width; and two of the
    residual stream. Where scores are written, or those of a token's rows of scores, if these are more:
    attention comes after the MLP. Leaves out that what the MLP kept is gone by then."""
    if not check.is_trusted():
        check.whole(seq=seq)
        check.between(0, 1, flash=flash)
    attention, mlp, _ = models.blocks(model)[block][1]
    width = (
        mlp.top_k * mlp.width + mlp.shared_experts * mlp.shared_width if models.is_routed(mlp) else mlp.width
    )
    scores = ops.where(flash == 0, PASSING_SCORE_BYTES * attention.heads * seq, 0)
    return ops.maximum(4 * width + 4 * model.hidden, scores)


def layer_parts(
    model: Sized,
    block: int,
    saves_fp8: bool = False,
    weighs_early: bool = False,
    adapter: Beside | None = None,
    eager: bool = False,
) -> tuple[Real, Real, Real]:
    """``layer_values`` in three parts: the part that every tensor-parallel rank keeps whole, attention's, and
    the MLP's. The last two are split. A Shape has them computed already."""
    known = getattr(model, "kept_values", None)
    if known is not None and not (saves_fp8 or weighs_early or eager) and adapter is None:
        return known[block]
    kept = layer_values(model, block, saves_fp8, weighs_early, adapter, eager)
    return (kept.inputs + kept.norms, kept.projected + kept.attended, kept.mlp + kept.activated + kept.shared)


def dropped_per_token(
    model: Sized,
    seq: Real,
    tensor: Real,
    ranks_of_whole: Real,
    flash: Real,
    block: int,
    modules: tuple[str, ...],
    saves_fp8: bool = False,
    weighs_early: bool = False,
    adapter: Beside | None = None,
    eager: bool = False,
) -> Real:
    """Bytes of ``kept_per_token`` that recomputing these MODULES saves, in one layer of a kind.

    ``layernorm``: the outputs of both norms. ``mla_up_proj``: queries, keys and values of latent attention,
    minus the latents that they are recomputed from. ``core_attn``: the scores, which fused attention does not
    keep anyway. ``mlp``: the inside of a dense MLP. ``moe``: everything that routed and shared experts keep;
    ``moe_act``: the output of their activation function; ``shared_experts``: the inside of the shared ones.
    ``every_other``: all but the layer's input, queries, values, the attention's output, the gate and the
    result of the MLP.
    """
    if not check.is_trusted():
        check.whole(seq=seq, tensor=tensor, ranks_of_whole=ranks_of_whole)
        check.between(0, 1, flash=flash)
    attention, mlp, _ = models.blocks(model)[block][1]
    kept = layer_values(model, block, saves_fp8, weighs_early, adapter, eager)
    latents = 2 * (attention.q_lora + attention.kv_lora + attention.rope_dim)
    whole = kept.norms if "layernorm" in modules else 0
    split = 0
    if "every_other" in modules:
        whole = whole + kept.inputs + kept.norms - 4 * model.hidden
        queries, values = attention.heads * attention.qk_dim, attention.kv_heads * attention.value_dim
        stays = 2 * (queries + values + mlp.width)
        split = split + kept.projected + kept.mlp - stays
    if "core_attn" in modules:
        split = split + _score_bytes(model, attention, seq, NO_RECOMPUTE, flash, eager)
    if "mla_up_proj" in modules:
        whole = whole - ops.where(attention.latent, latents, 0)
        split = split + ops.where(attention.latent, kept.projected, 0)
    if models.is_routed(mlp):
        everything = "moe" in modules
        if everything:
            split = split + kept.mlp
        if everything or "moe_act" in modules:
            split = split + kept.activated
        if everything or "shared_experts" in modules:
            split = split + kept.shared
    elif "mlp" in modules:
        split = split + kept.mlp
    return whole / ranks_of_whole + split / tensor


def layer_activation_bytes(
    model: models.Model,
    seq: Real,
    micro_batch: Real,
    tensor: Real = 1,
    context: Real = 1,
    sequence_parallel: Real = 0,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
    block: int = 0,
    adapter: Beside | None = None,
) -> Real:
    """Bytes that one layer keeps for its backward pass, on one GPU; ``block`` is its kind's place among
    ``models.blocks``, and with an ``adapter`` its own weights are frozen.

    Korthikanti et al. (arXiv:2205.05198) Table 2, for 2-byte activations: s·b·h·(10 + 24/t + 5·a·s/(h·t)).
    Sequence parallelism divides the 10 too; selective recompute and FlashAttention drop the last term; full
    recompute keeps only the layer's input, 2·s·b·h. Context parallelism divides the sequence. For shapes
    other than GPT's see ``layer_values``. Leaves out FlashAttention's row statistics (4·a bytes per token)
    and the router's scores.
    """
    check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
    check.between(0, 1, sequence_parallel=sequence_parallel)
    check.between(0, 2, recompute=recompute)
    tokens = seq * micro_batch / context
    return tokens * kept_per_token(
        model, seq, tensor, ops.where(sequence_parallel, tensor, 1), recompute, flash, block, adapter=adapter
    )


def kept_per_token(
    model: Sized,
    seq: Real,
    tensor: Real,
    ranks_of_whole: Real,
    recompute: Real,
    flash: Real,
    block: int,
    saves_fp8: bool = False,
    weighs_early: bool = False,
    adapter: Beside | None = None,
    eager: bool = False,
) -> Real:
    """Bytes that one token leaves behind in one layer of a kind; ``ranks_of_whole`` divides the tensors that
    plain tensor parallelism does not split."""
    if not check.is_trusted():
        check.whole(seq=seq, tensor=tensor, ranks_of_whole=ranks_of_whole)
        check.between(0, 3, recompute=recompute)
        check.between(0, 1, flash=flash)
    whole, attention, mlp = layer_parts(model, block, saves_fp8, weighs_early, adapter, eager)
    scores = _score_bytes(model, models.blocks(model)[block][1][0], seq, recompute, flash, eager)
    kept = whole / ranks_of_whole + (attention + mlp + scores) / tensor
    return ops.where(recompute == FULL, 2 * model.hidden / ranks_of_whole, kept)


# transformers' eager_attention_forward takes the softmax in fp32, which keeps its result, and multiplies a
# copy in 16 bits, which is kept as well (huggingface/transformers models/llama/modeling_llama.py). Backward,
# the copy is gone when most is there: the result, its gradient and the softmax's, all in fp32. Counted with
# PyTorch 2.14.
WRITTEN_SCORE_BYTES, PASSING_SCORE_BYTES = 6, 6


def _score_bytes(model, attention, seq, recompute, flash, eager):
    """Bytes of a token's rows of scores: the softmax's output, and with dropout its mask and the dropped-out
    result. ``eager`` is PyTorch's operators one by one."""
    each = WRITTEN_SCORE_BYTES if eager else 2
    return ops.where(
        ((recompute == NO_RECOMPUTE) | (recompute == BY_MODULE)) & (flash == 0),
        (each + 3 * model.dropout) * attention.heads * seq,
        0,
    )


def layer_activation_slabs(
    model: models.Model,
    seq: Real,
    micro_batch: Real,
    tensor: Real = 1,
    context: Real = 1,
    sequence_parallel: Real = 0,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
) -> Real:
    """``layer_activation_bytes`` of a layer of the first kind by part, on the last axis: the inputs of both
    blocks and their norms (under full recompute only the layer's input), attention, MLP, attention scores."""
    check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
    check.between(0, 1, sequence_parallel=sequence_parallel, flash=flash)
    check.between(0, 2, recompute=recompute)
    tokens, ranks_of_whole = seq * micro_batch / context, ops.where(sequence_parallel, tensor, 1)
    whole, attention, mlp = layer_parts(model, 0)
    scores = _score_bytes(model, models.blocks(model)[0][1][0], seq, recompute, flash, False)
    kept = ops.where(recompute == FULL, 0.0, tokens / tensor)
    inputs = tokens / ranks_of_whole * ops.where(recompute == FULL, 2 * model.hidden, whole)
    return np.stack([inputs, kept * attention, kept * mlp, kept * scores], axis=-1)


def activation_bytes(
    model: models.Model,
    seq: Real,
    micro_batch: Real,
    tensor: Real = 1,
    context: Real = 1,
    sequence_parallel: Real = 0,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
) -> Real:
    """Bytes that all layers keep for the backward pass of one micro-batch, on one GPU.

    For GPT: s·b·h·L·(34 + 5·a·s/h) (Korthikanti et al. eq. 2); with full recompute 2·s·b·h·L. Leaves out the
    output layer (``output_layer_bytes``), embeddings (``embedding_activation_bytes``) and, under full
    recompute, the one layer being rebuilt (``layer_activation_bytes`` again).
    """
    options = (seq, micro_batch, tensor, context, sequence_parallel, recompute, flash)
    return sum(
        count * layer_activation_bytes(model, *options, block)
        for block, (count, _) in enumerate(models.blocks(model))
    )


def peak_activation_bytes(
    model: models.Model,
    seq: Real,
    micro_batch: Real,
    tensor: Real = 1,
    context: Real = 1,
    sequence_parallel: Real = 0,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
) -> Real:
    """``activation_bytes``, plus the one layer that is rebuilt during its backward pass under full
    recompute: one with experts where there are some."""
    layout = (seq, micro_batch, tensor, context, sequence_parallel)
    rebuilt = 0.0
    for block, (count, _) in enumerate(models.blocks(model)):
        its = layer_activation_bytes(model, *layout, NO_RECOMPUTE, flash, block)
        rebuilt = ops.where(count > 0, its, rebuilt)
    return activation_bytes(model, *layout, recompute, flash) + ops.where(recompute == FULL, rebuilt, 0)


def rule_of_thumb_activation_bytes(
    layers: Real, hidden: Real, seq: Real, batch: Real, bytes_per_value: Real = 14
) -> Real:
    """The popular rules of thumb, bytes·s·b·h·L: "14" without checkpointing and "2" with it.

    For comparison only: 14 is less than half of what Korthikanti et al. count (34). Some versions of the "2"
    also drop the h, and are then wrong by a factor of thousands.
    """
    check.positive(layers=layers, hidden=hidden, seq=seq, batch=batch, bytes_per_value=bytes_per_value)
    return bytes_per_value * seq * batch * hidden * layers


def output_layer_bytes(
    model: models.Model, seq: Real, micro_batch: Real, tensor: Real = 1, context: Real = 1
) -> Real:
    """The last stage's final norm, output layer input and fp32 logits: 4·s·b·h/t·(1 + v/h).

    Korthikanti et al. section 4.3, with the loss computed in place of the logits and sequence parallelism on.
    """
    check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
    return 4 * seq * micro_batch * (model.hidden + model.vocab) / (tensor * context)


def logits_peak_bytes(
    model: Sized,
    seq: Real,
    micro_batch: Real,
    tensor: Real = 1,
    context: Real = 1,
    bytes_per_logit: Real = 10,
) -> Real:
    """The peak of an unfused loss: bf16 logits, their fp32 copy and its fp32 gradient, 2 + 4 + 4 bytes each.

    For a chunked or a fused cross entropy see ``loss_bytes``.
    """
    if not check.is_trusted():
        check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context)
        check.positive(bytes_per_logit=bytes_per_logit)
    return bytes_per_logit * seq * micro_batch * model.vocab / (tensor * context)


FUSED_LOGIT_BYTES = 2.0  # bf16, overwritten by their own gradient
# PyTorch's cross_entropy of logits.float(), at its peak in the backward pass: the fp32 log-softmax, its
# gradient and the result's; under ``loss_parallel`` another tensor besides. Both as PyTorch 2.13 allocates
# them, counted by its profiler; the bf16 logits are gone by then, as in torchtitan.
TORCH_LOGIT_BYTES, PARALLEL_LOGIT_BYTES = 12.0, 16.0
# the same loss, compiled: the bf16 logits, which the backward pass reads again, and their gradient
COMPILED_LOGIT_BYTES = 4.0
# The loss of some of the logits at a time, by PyTorch's operators: bf16 logits and a log-softmax in fp32 that
# is kept of all of them, and of those at hand its input and the gradient. Compiled, the bf16 logits, each
# chunk of which is followed by its gradient.
WIDENED_LOGIT_BYTES, WIDENED_AT_HAND_BYTES = 6.0, 4.0
COMPILED_WIDENED_BYTES = 2.0
# log-probabilities of the tokens at hand, as TRL takes them row by row: the fp32 logits, which a logsumexp
# reads again, and of these three gradients, from the logsumexp of a row, from the choice, and their sum.
# Counted by running such lines with PyTorch 2.13.
CHOSEN_LOGIT_BYTES = 16.0
# a loss in place in 16 bits, and the copy of the logits in fp32 that Accelerate makes of what a model returns
RETURNED_LOGIT_BYTES = 6.0
EACH_LOGIT = {"chosen": CHOSEN_LOGIT_BYTES, "returned": RETURNED_LOGIT_BYTES}


def loss_bytes(
    model: Sized,
    seq: Real,
    micro_batch: Real,
    tensor: Real = 1,
    context: Real = 1,
    loss: str = "plain",
    chunks: Real = 8,
    pytorch: bool = False,
    compiled: bool = False,
) -> Real:
    """The peak memory of the output layer and its loss, by how they are computed.

    ``plain``: all logits at once, 10 bytes each (``logits_peak_bytes``), or 12 by PyTorch's own kernels,
    and 16 where these split the vocabulary. ``chunked``: the output layer and the loss for 1/n of the tokens
    at a time, so 10/n bytes per logit, plus the gradient of the output layer's
    input, 2·h bytes per token (Liger-Kernel, arXiv:2410.10989 section 3.2). ``fused``: all logits in bf16,
    which the loss overwrites with their gradient, 2 bytes each (Transformer Engine's and Liger's cross
    entropy); 4 where PyTorch compiles its own, which has its gradient beside them. ``widened``: all logits in
    bf16, and 1/n of them in fp32 at a time (torchtune's CEWithChunkedOutputLoss): 6 + 4/n bytes each by
    PyTorch's operators, which keep every log-softmax, and 2 + 2/n compiled. ``chosen``: log-probabilities of
    given tokens, 16. ``returned``: a fused loss whose logits are returned in fp32 as well, 6.
    """
    if not check.is_trusted():
        check.one_of(CHOICES["loss"], loss=loss)
        check.whole(seq=seq, micro_batch=micro_batch, tensor=tensor, context=context, chunks=chunks)
    if loss in EACH_LOGIT:
        return logits_peak_bytes(model, seq, micro_batch, tensor, context, EACH_LOGIT[loss])
    if loss == "widened":
        all_of_them, at_hand = WIDENED_LOGIT_BYTES, WIDENED_AT_HAND_BYTES
        if compiled:
            all_of_them, at_hand = COMPILED_WIDENED_BYTES, COMPILED_WIDENED_BYTES
        return logits_peak_bytes(model, seq, micro_batch, tensor, context, all_of_them + at_hand / chunks)
    if loss == "fused":
        each = COMPILED_LOGIT_BYTES if compiled else FUSED_LOGIT_BYTES
        return logits_peak_bytes(model, seq, micro_batch, tensor, context, each)
    if loss == "plain" and pytorch:
        each = ops.where(tensor > 1, PARALLEL_LOGIT_BYTES, TORCH_LOGIT_BYTES)
        return logits_peak_bytes(model, seq, micro_batch, tensor, context, each)
    at_once = logits_peak_bytes(model, seq, micro_batch, tensor, context)
    if loss == "plain":
        return at_once
    return at_once / chunks + 2 * seq * micro_batch * model.hidden / context


def in_flight_micro_batches(stages: Real, micro_batches: Real, stage: Real = 0, interleave: Real = 1) -> Real:
    """Micro-batches whose activations a pipeline stage holds at its peak, under 1F1B or interleaved 1F1B:
    ``pipeline.in_flight`` for one or the other."""
    check.whole(stages=stages, micro_batches=micro_batches, interleave=interleave)
    plans = pipeline.SCHEDULES
    return ops.where(
        interleave > 1,
        pipeline.in_flight(stages, micro_batches, interleave, plans["interleaved"], stage),
        pipeline.in_flight(stages, micro_batches, 1.0, plans["1f1b"], stage),
    )


# -- serving -------------------------------------------------------------------------------------------------
def weight_bytes(params: Real, bytes_per_param: Real = 2.0) -> Real:
    """Weights alone, as stored for serving. Leaves out the scales of quantised formats."""
    check.positive(params=params, bytes_per_param=bytes_per_param)
    return params * bytes_per_param


def kv_bytes_per_token(model: Sized, bytes_per_value: Real = 2.0) -> Real:
    """KV cache per token of context: 2·layers·kv_heads·head_dim values; latent attention keeps
    layers·(kv_lora + rope_dim) (DeepSeek-V2, arXiv:2405.04434 Table 1).

    For contexts shorter than any window; ``kv_bytes`` handles longer ones. Leaves out the scales of quantised
    caches.
    """
    check.positive(bytes_per_value=bytes_per_value)
    return sum(count * kind.cached for count, kind in models.attentions(model)) * bytes_per_value


def kv_bytes(model: Sized, context_tokens: Real, sequences: Real = 1, bytes_per_value: Real = 2.0) -> Real:
    """KV cache of this many sequences of this length; layers with a window keep only the window. Layers with
    a state keep that too, whatever the length (``catalog.mixers``)."""
    check.non_negative(context_tokens=context_tokens, sequences=sequences)
    check.positive(bytes_per_value=bytes_per_value)
    values, states = 0, 0
    for count, (kind, window) in models.attended(model):
        if models.is_mixer(kind):
            held = kind.cache_bytes(context_tokens, bytes_per_value) + kind.state_bytes
            states = states + sequences * count * held
            continue
        kept = context_tokens if window is None else ops.minimum(context_tokens, window.tokens)
        values = values + sequences * (count * kept) * kind.cached
    return values * bytes_per_value + states


# -- against the machine ------------------------------------------------------------------------------------
def capacity_bytes(gpu: Gpu) -> Real:
    """The memory that software can fill on a GPU: what the driver reports minus what CUDA never hands out,
    where that is known; else the data sheet's figure.

    Used to decide whether a training step fits; the step's total already includes the CUDA context and NCCL
    (FRAMEWORK_BYTES). An H100 "of 80 GB" has 80 GiB and reports 85.5 · 10⁹ bytes, an H200 "of 141 GB" 150.8.
    Calculations by hand and whole clusters use the data sheet, ``gpu.hbm_bytes``; servers use
    ``server_bytes``.
    """
    return ops.where(gpu.reported_bytes > 0, card_bytes(gpu) - RESERVED_BYTES, gpu.hbm_bytes)


def card_bytes(gpu: Gpu) -> Real:
    """The HBM of a GPU as the driver reports it, where that is known; else the data sheet's figure."""
    return ops.where(gpu.reported_bytes > 0, gpu.reported_bytes, gpu.hbm_bytes)


def server_bytes(gpu: Gpu) -> Real:
    """The memory of a GPU that a server divides into weights and KV caches: the data sheet's figure minus the
    framework.

    A server does not fill all that ``capacity_bytes`` gives: vLLM takes 0.92 of what the driver reports, 78.7
    of an H100's 85.5 · 10⁹ bytes, and runs its kernels in the rest. This figure, 78, is within 1 % of that.
    """
    return gpu.hbm_bytes - FRAMEWORK_BYTES


# of what the driver reports: vLLM takes 0.92 by default (gpu_memory_utilization; 0.9 before about 0.20)
# and counts the activations of its largest step in it, for which this leaves the rest
SERVER_SHARE = 0.9


def startable_bytes(gpu: Gpu) -> Real:
    """The memory that vLLM leaves to weights and caches if it is started without a flag for it.
    ``server_bytes`` is a little more, and where weights leave hardly any room, that decides."""
    return SERVER_SHARE * capacity_bytes(gpu) - FRAMEWORK_BYTES


def cluster_bytes(gpu: Gpu, gpus: Real) -> Real:
    """The HBM of this many GPUs together, as the vendor counts it. Leaves out what the framework takes on
    each."""
    check.positive(hbm_bytes=gpu.hbm_bytes)
    check.whole(gpus=gpus)
    return gpus * gpu.hbm_bytes


def against_hbm(total_bytes: Real, gpu: Gpu, gpus: Real = 1) -> Real:
    """The bytes over the memory of this many GPUs; above 1 they do not fit."""
    check.non_negative(total_bytes=total_bytes)
    check.positive(gpus=gpus, hbm_bytes=gpu.hbm_bytes)
    return total_bytes / (gpus * gpu.hbm_bytes)


def hbm_of_each_layer(gpu: Gpu, layers: Real) -> Real:
    """Bytes that each layer may keep if a GPU holds nothing but activations: HBM / L.

    The same for any number of pipeline stages: under 1F1B the first of p stages holds L/p layers of p
    micro-batches.
    """
    check.positive(hbm_bytes=gpu.hbm_bytes, layers=layers)
    return gpu.hbm_bytes / layers


def minimum_gpus(total_bytes: Real, gpu: Gpu, reserved_bytes_per_gpu: Real = 0.0) -> Real:
    """The fewest GPUs that hold the bytes, if these are split into equal parts.

    ceil(bytes / (HBM − reserved)). Leaves out whatever each GPU holds besides its part: pass that as
    reserved.
    """
    check.positive(total_bytes=total_bytes)
    check.non_negative(reserved_bytes_per_gpu=reserved_bytes_per_gpu)
    check.positive(hbm_bytes_left=gpu.hbm_bytes - reserved_bytes_per_gpu)
    return ops.ceil(total_bytes / (gpu.hbm_bytes - reserved_bytes_per_gpu))
