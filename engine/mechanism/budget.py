"""The memory of one GPU in training: its parts in order, the part that exceeds the HBM, and the ways to make
it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine import catalog
from engine.base import check, ops
from engine.base.types import Real, Truth
from engine.catalog import models
from engine.mechanism import adapters, memory
from engine.mechanism.memory import FULL, NO_RECOMPUTE

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.recipes import Recipe
    from engine.mechanism.adapters import Adapter

# In the order in which they are added up: what needs memory before there is a model, then the model's state,
# then what a batch leaves behind.
PARTS = ("framework", "weights", "gradients", "optimizer", "activations", "transient")

# One control moved to its lowest sensible value and all others unchanged; the cheapest first.
CHANGES = ("FlashAttention", "micro-batch of 1", "full checkpointing", "8-bit moments", "short sequence")
SHORT_SEQ = 1024

# The sliders that can be to blame.
SLIDERS = ("model size", "micro-batch", "sequence")


def parts_bytes(
    params: Real,
    model: models.Model,
    recipe: Recipe,
    seq: Real,
    micro_batch: Real,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
    adapter: Adapter | None = None,
) -> Real:
    """Bytes of each of PARTS on one GPU that trains the whole model alone, in this order on the last axis.

    framework    a constant: context, kernels, communication buffers (``memory.FRAMEWORK_BYTES``)
    weights, gradients, optimizer    params × the recipe's bytes (``memory.state_slabs``); with an adapter its
                 own parameters × the recipe's bytes, and the frozen weights in the adapter's formats
    activations  what all layers keep (Korthikanti et al., arXiv:2205.05198)
    transient    the larger of the loss's logits and what recomputation rebuilds in one layer: the logits are
                 freed before the first layer is rebuilt
    Leaves out fragmentation, that gradients and activations need not peak at once, and the one matrix that a
    4-bit base has unpacked.
    """
    frozen, trained = _frozen_and_trained(params, model, adapter)
    state = memory.state_slabs(trained, recipe)
    kept, logits, rebuilt = _batch_bytes(model, recipe, seq, micro_batch, recompute, flash, adapter)
    return np.stack(
        np.broadcast_arrays(
            memory.FRAMEWORK_BYTES,
            frozen + state[..., 0],
            state[..., 1],
            np.sum(state[..., 2:], axis=-1),
            kept,
            ops.maximum(rebuilt, logits),
        ),
        axis=-1,
    )


def _frozen_and_trained(params, model, adapter):
    """Bytes of frozen weights, and how many parameters are trained."""
    if adapter is None:
        return 0.0, params
    return adapters.frozen_bytes(params, model, adapter), adapters.trained_parameters(model, adapter)


def _layer_bytes(model, recipe, seq, micro_batch, recompute, flash, block=0, adapter=None):
    """``memory.layer_activation_bytes``, for 2-byte values, at the recipe's width; masks take 1 byte.

    Dropout masks are 2·h of a token's 34·h bytes and a·s of its 5·a·s (Korthikanti et al. section 4.1).
    """
    width = recipe.activation_bytes / 2
    counted = memory.layer_activation_bytes(
        model, seq, micro_batch, recompute=recompute, flash=flash, block=block, adapter=adapter
    )
    heads = models.blocks(model)[block][1][0].heads
    scores = ops.where((recompute == NO_RECOMPUTE) & (flash == 0), heads * seq, 0)
    masks = seq * micro_batch * model.dropout * ops.where(recompute == FULL, 0, 2 * model.hidden + scores)
    return counted * width - masks * (width - 1)


def _batch_bytes(model, recipe, seq, micro_batch, recompute, flash, adapter):
    """What a batch leaves behind: stored activations, the loss's logits, and what recomputation rebuilds in
    one layer (all of it under full recompute, its scores under selective)."""

    def layer(recompute, block):
        return _layer_bytes(model, recipe, seq, micro_batch, recompute, flash, block, adapter)

    kept, rebuilt = 0.0, 0.0
    for block, (count, _) in enumerate(models.blocks(model)):
        kept = kept + count * layer(recompute, block)
        its = layer(NO_RECOMPUTE, block) - ops.where(recompute == FULL, 0, layer(recompute, block))
        rebuilt = ops.where(count > 0, its, rebuilt)
    logits = memory.logits_peak_bytes(model, seq, micro_batch, bytes_per_logit=recipe.logit_bytes)
    return kept, logits, rebuilt


def rebuilds_most(
    params: Real,
    model: models.Model,
    recipe: Recipe,
    seq: Real,
    micro_batch: Real,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
    adapter: Adapter | None = None,
) -> Truth:
    """Whether the transient part is the layer that recomputation rebuilds, rather than the logits."""
    _, logits, rebuilt = _batch_bytes(model, recipe, seq, micro_batch, recompute, flash, adapter)
    return rebuilt > logits


def total_bytes(
    params: Real,
    model: models.Model,
    recipe: Recipe,
    seq: Real,
    micro_batch: Real,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
    adapter: Adapter | None = None,
) -> Real:
    """All parts together: the memory needed at the worst moment of a step."""
    return np.sum(parts_bytes(params, model, recipe, seq, micro_batch, recompute, flash, adapter), axis=-1)


def first_over(parts: Real, gpu: Gpu) -> Real:
    """Index into PARTS of the part that, added in order, first exceeds the GPU's HBM; −1 if everything
    fits."""
    check.non_negative(parts=parts)
    check.positive(hbm_bytes=gpu.hbm_bytes)
    over = np.cumsum(parts, axis=-1) > np.expand_dims(gpu.hbm_bytes, -1)
    return np.where(np.any(over, axis=-1), np.argmax(over, axis=-1), -1)


def totals_after_one_change(
    params: Real,
    model: models.Model,
    recipe: Recipe,
    seq: Real,
    micro_batch: Real,
    recompute: Real = NO_RECOMPUTE,
    flash: Real = 1,
    adapter: Adapter | None = None,
) -> Real:
    """``total_bytes`` after each of CHANGES alone, on the last axis. A control that is already at its lowest
    value stays there.

    8-bit moments are those of arXiv:2110.02861, where they are smaller than the recipe's own; the short
    sequence has SHORT_SEQ tokens.
    """
    lean = catalog.recipe("adam-8bit")

    def total(seq, micro_batch, recompute, flash):
        return total_bytes(params, model, recipe, seq, micro_batch, recompute, flash, adapter)

    saved = ops.maximum(recipe.momentum_bytes - lean.momentum_bytes, 0) + ops.maximum(
        recipe.variance_bytes - lean.variance_bytes, 0
    )
    _, trained = _frozen_and_trained(params, model, adapter)
    return np.stack(
        np.broadcast_arrays(
            total(seq, micro_batch, recompute, 1),
            total(seq, 1, recompute, flash),
            total(seq, micro_batch, FULL, flash),
            total(seq, micro_batch, recompute, flash) - trained * saved,
            total(ops.minimum(seq, SHORT_SEQ), micro_batch, recompute, flash),
        ),
        axis=-1,
    )


def slider_at_wall(parts: Real, totals: Real, gpu: Gpu) -> Real:
    """Index into SLIDERS of the control that made the memory run out; −1 if everything fits. ``totals`` are
    the results of ``totals_after_one_change``.

    The model size where the state and the framework alone exceed the HBM; else the micro-batch where a single
    sequence would fit; else the sequence length.
    """
    first, fits_one = first_over(parts, gpu), totals[..., 1] <= gpu.hbm_bytes
    return np.where(first < 0, -1, np.where(first < PARTS.index("activations"), 0, np.where(fits_one, 1, 2)))


def cheapest_cure(totals: Real, gpu: Gpu) -> Real:
    """Index into CHANGES of the first change after which the total fits the GPU; −1 if no single change is
    enough."""
    check.positive(totals=totals, hbm_bytes=gpu.hbm_bytes)
    fits = totals <= np.expand_dims(gpu.hbm_bytes, -1)
    return np.where(np.any(fits, axis=-1), np.argmax(fits, axis=-1), -1)


def minimum_ranks(parts: Real, gpu: Gpu) -> Real:
    """The fewest GPUs that would each fit their part if the state were split evenly (ZeRO-3, FSDP); 0 where
    no number is enough.

    The smallest N with state/N + rest ≤ HBM. State: weights, gradients, optimizer. The rest (framework,
    activations, transient) is not split, because each GPU has its own micro-batch. Leaves out the layers that
    are gathered for use.
    """
    check.non_negative(parts=parts)
    check.positive(hbm_bytes=gpu.hbm_bytes)
    state = np.sum(parts[..., 1:4], axis=-1)
    room = gpu.hbm_bytes - (parts[..., 0] + np.sum(parts[..., 4:], axis=-1))
    ranks = ops.ceil(state / ops.where(room > 0, room, 1.0) * (1 - 1e-12))  # rounding must not add a GPU
    return ops.where(room > 0, ops.maximum(ranks, 1.0), 0.0)
