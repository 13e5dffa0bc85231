"""The memory budget of one GPU in training: its parts in order, the one that passes the HBM, what would bring it back."""

from __future__ import annotations

import numpy as np

from engine import catalog, check, memory, ops
from engine.memory import FULL, NO_RECOMPUTE

# In the order in which they are added up: what is there before any model, the state, what a batch leaves behind.
PARTS = ("framework", "weights", "gradients", "optimizer", "activations", "transient")

# One control moved to its lowest sensible value, all others left alone; the cheapest first.
CHANGES = ("FlashAttention", "micro-batch of 1", "full checkpointing", "8-bit moments", "short sequence")
SHORT_SEQ = 1024


def parts_bytes(params, model, recipe, seq, micro_batch, recompute=NO_RECOMPUTE, flash=1):
    """Bytes of each of PARTS on one GPU that trains the whole model alone, in this order on the last axis.

    framework    a constant: context, kernels, communication buffers (``memory.FRAMEWORK_BYTES``)
    weights, gradients, optimizer    params × the recipe's bytes (``memory.state_slabs``)
    activations  what all layers keep (Korthikanti et al., arXiv:2205.05198)
    transient    the larger of the loss's logits and, under full recompute, one rebuilt layer: the logits are gone
                 before the first layer is rebuilt, so the two never stand together
    The activations are counted at the recipe's bytes per value, which is exact for models without dropout masks.
    Leaves out fragmentation, and that gradients and activations need not peak at once.
    """
    state = memory.state_slabs(params, recipe)
    kept = memory.activation_bytes(model, seq, micro_batch, recompute=recompute, flash=flash)
    rebuilt = memory.peak_activation_bytes(model, seq, micro_batch, recompute=recompute, flash=flash) - kept
    width = recipe.activation_bytes / 2.0  # memory's activation formulas hold for 2-byte values
    logits = memory.logits_peak_bytes(model, seq, micro_batch, bytes_per_logit=recipe.logit_bytes)
    return np.stack(np.broadcast_arrays(
        memory.FRAMEWORK_BYTES, state[..., 0], state[..., 1], np.sum(state[..., 2:], axis=-1),
        kept * width, ops.maximum(rebuilt * width, logits)), axis=-1)


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


def cheapest_cure(totals, gpu):
    """Index into CHANGES of the first whose total fits the GPU; −1 where no single change is enough."""
    check.positive(totals=totals, hbm_bytes=gpu.hbm_bytes)
    fits = totals <= np.expand_dims(gpu.hbm_bytes, -1)
    return np.where(np.any(fits, axis=-1), np.argmax(fits, axis=-1), -1)


def minimum_ranks(parts, gpu):
    """The fewest GPUs that hold the budget if all but the framework is cut into equal parts without a remainder.

    No real layout reaches this: sharding the state (ZeRO-3) leaves each rank its own activations.
    """
    return memory.minimum_gpus(np.sum(parts[..., 1:], axis=-1), gpu, memory.FRAMEWORK_BYTES)
