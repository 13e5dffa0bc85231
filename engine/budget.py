"""The memory budget of one GPU in training: its parts in order, the one that passes the HBM, the ways back."""

from __future__ import annotations

import numpy as np

from engine import catalog, check, memory, models, ops
from engine.memory import FULL, NO_RECOMPUTE

# In the order in which they are added up: what is there before any model, the state, what a batch leaves behind.
PARTS = ("framework", "weights", "gradients", "optimizer", "activations", "transient")

# One control moved to its lowest sensible value, all others left alone; the cheapest first.
CHANGES = ("FlashAttention", "micro-batch of 1", "full checkpointing", "8-bit moments", "short sequence")
SHORT_SEQ = 1024

# The sliders that can hit the wall
SLIDERS = ("model size", "micro-batch", "sequence")


def parts_bytes(params, model, recipe, seq, micro_batch, recompute=NO_RECOMPUTE, flash=1):
    """Bytes of each of PARTS on one GPU that trains the whole model alone, in this order on the last axis.

    framework    a constant: context, kernels, communication buffers (``memory.FRAMEWORK_BYTES``)
    weights, gradients, optimizer    params × the recipe's bytes (``memory.state_slabs``)
    activations  what all layers keep (Korthikanti et al., arXiv:2205.05198)
    transient    the larger of the loss's logits and what recomputation rebuilds in one layer: the logits are gone
                 before the first layer is rebuilt, so the two never stand together
    Leaves out fragmentation, and that gradients and activations need not peak at once.
    """
    state = memory.state_slabs(params, recipe)
    kept, logits, rebuilt = _batch_bytes(model, recipe, seq, micro_batch, recompute, flash)
    return np.stack(np.broadcast_arrays(
        memory.FRAMEWORK_BYTES, state[..., 0], state[..., 1], np.sum(state[..., 2:], axis=-1),
        kept, ops.maximum(rebuilt, logits)), axis=-1)


def _layer_bytes(model, recipe, seq, micro_batch, recompute, flash, moe=False):
    """``memory.layer_activation_bytes``, which counts 2-byte values, at the recipe's width; masks stay at 1 byte.

    Dropout's masks are 2·h of a token's 34·h bytes and a·s of its 5·a·s (Korthikanti et al. section 4.1).
    """
    width = recipe.activation_bytes / 2
    counted = memory.layer_activation_bytes(model, seq, micro_batch, recompute=recompute, flash=flash, moe=moe)
    scores = ops.where((recompute == NO_RECOMPUTE) & (flash == 0), model.heads * seq, 0)
    masks = seq * micro_batch * model.dropout * ops.where(recompute == FULL, 0, 2 * model.hidden + scores)
    return counted * width - masks * (width - 1)


def _batch_bytes(model, recipe, seq, micro_batch, recompute, flash):
    """What a batch leaves behind: activations kept, the loss's logits, and what recomputation rebuilds in one layer
    (all of it under full recompute, its scores under selective)."""
    def layer(recompute, moe):
        return _layer_bytes(model, recipe, seq, micro_batch, recompute, flash, moe)

    def rebuilt(moe):
        return layer(NO_RECOMPUTE, moe) - ops.where(recompute == FULL, 0, layer(recompute, moe))

    kept = models.dense_layers(model) * layer(recompute, False) + models.moe_layers(model) * layer(recompute, True)
    logits = memory.logits_peak_bytes(model, seq, micro_batch, bytes_per_logit=recipe.logit_bytes)
    return kept, logits, ops.where(model.experts > 0, rebuilt(True), rebuilt(False))


def rebuilds_most(params, model, recipe, seq, micro_batch, recompute=NO_RECOMPUTE, flash=1):
    """Whether the transient part is what one layer rebuilds, rather than the logits."""
    _, logits, rebuilt = _batch_bytes(model, recipe, seq, micro_batch, recompute, flash)
    return rebuilt > logits


def total_bytes(params, model, recipe, seq, micro_batch, recompute=NO_RECOMPUTE, flash=1):
    """All parts together: what the GPU has to hold at the worst moment of a step."""
    return np.sum(parts_bytes(params, model, recipe, seq, micro_batch, recompute, flash), axis=-1)


def first_over(parts, gpu):
    """Index into PARTS of the part that, added in order, is the first to pass the GPU's HBM; −1 while all fit."""
    check.non_negative(parts=parts)
    check.positive(hbm_bytes=gpu.hbm_bytes)
    over = np.cumsum(parts, axis=-1) > np.expand_dims(gpu.hbm_bytes, -1)
    return np.where(np.any(over, axis=-1), np.argmax(over, axis=-1), -1)


def totals_after_one_change(params, model, recipe, seq, micro_batch, recompute=NO_RECOMPUTE, flash=1):
    """``total_bytes`` after each of CHANGES alone, on the last axis; what is at its lowest already stays as it is.

    8-bit moments are those of arXiv:2110.02861, where they are smaller than the recipe's own; the short sequence has
    SHORT_SEQ tokens.
    """
    lean = catalog.recipe("adam-8bit")
    now = total_bytes(params, model, recipe, seq, micro_batch, recompute, flash)
    saved = (ops.maximum(recipe.momentum_bytes - lean.momentum_bytes, 0)
             + ops.maximum(recipe.variance_bytes - lean.variance_bytes, 0))
    return np.stack(np.broadcast_arrays(
        total_bytes(params, model, recipe, seq, micro_batch, recompute, 1),
        total_bytes(params, model, recipe, seq, 1, recompute, flash),
        total_bytes(params, model, recipe, seq, micro_batch, FULL, flash),
        now - params * saved,
        total_bytes(params, model, recipe, ops.minimum(seq, SHORT_SEQ), micro_batch, recompute, flash)), axis=-1)


def slider_at_wall(parts, totals, gpu):
    """Index into SLIDERS of the one that hit the wall; −1 while all fits. ``totals`` are those after one change.

    The model size where the state and the framework alone pass the HBM; else the micro-batch where a single sequence
    would fit; else the sequence, since not even one of them does.
    """
    first, fits_one = first_over(parts, gpu), totals[..., 1] <= gpu.hbm_bytes
    return np.where(first < 0, -1, np.where(first < PARTS.index("activations"), 0, np.where(fits_one, 1, 2)))


def cheapest_cure(totals, gpu):
    """Index into CHANGES of the first whose total fits the GPU; −1 where no single change is enough."""
    check.positive(totals=totals, hbm_bytes=gpu.hbm_bytes)
    fits = totals <= np.expand_dims(gpu.hbm_bytes, -1)
    return np.where(np.any(fits, axis=-1), np.argmax(fits, axis=-1), -1)


def minimum_ranks(parts, gpu):
    """The fewest GPUs that each fit their share when the state is cut evenly (ZeRO-3, FSDP); 0 where no number does.

    The smallest N with state/N + rest ≤ HBM. State: weights, gradients, optimizer. The rest stays whole on each GPU,
    which has a micro-batch of its own: framework, activations, transient. Leaves out the layers gathered for use.
    """
    check.non_negative(parts=parts)
    check.positive(hbm_bytes=gpu.hbm_bytes)
    state = np.sum(parts[..., 1:4], axis=-1)
    room = gpu.hbm_bytes - (parts[..., 0] + np.sum(parts[..., 4:], axis=-1))
    ranks = ops.ceil(state / ops.where(room > 0, room, 1.0) * (1 - 1e-12))  # a last digit is no further GPU
    return ops.where(room > 0, ops.maximum(ranks, 1.0), 0.0)
