"""What training keeps in the memory of a GPU's host, for each GPU.

Names and buffers of DeepSpeed: deepspeed/runtime/zero/stage3.py and partition_parameters.py at commit
edaa7221 (August 2026). Under stage 3 each parameter's part lies in a pinned buffer of its own until it is
copied into one for all parts, and PyTorch's allocator keeps what was freed; the gradients have a buffer in
fp32 for each sub-group and one in 16 bits for all, which is copied when it is pinned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog import models
from engine.mechanism import adapters, offload
from engine.mechanism.offload import GRADIENTS, OPTIMIZER, PARAMETERS, pinned_bytes
from engine.step.layout import recipe_of

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.frameworks.described import Launch

SUB_GROUP = 1e9  # parameters that DeepSpeed's stage 3 updates at a time (sub_group_size)
WIDE, NARROW = 4.0, 2.0  # bytes of a value in fp32 and in 16 bits


def ranks(launch: Launch) -> float:
    """How many GPUs share a copy of the state, and of the weights under stage 3."""
    at = launch.layout
    assert at is not None
    return float((at.shard or at.dp * at.cp) * at.tp * at.pp)


def trained(launch: Launch) -> float:
    """Parameters that are trained, of all GPUs."""
    assert launch.job is not None
    adapter = launch.job.adapter
    return float(
        adapters.trained_parameters(launch.model, adapter) if adapter else models.parameters(launch.model)
    )


def frozen_bytes(launch: Launch) -> float:
    """Bytes of what is not trained, of all GPUs."""
    assert launch.job is not None
    adapter = launch.job.adapter
    return float(models.parameters(launch.model)) * adapter.base_bytes if adapter else 0.0


def plain_bytes(launch: Launch) -> float:
    """What is moved to the host, in the formats that it has on the GPU."""
    if launch.job is None or launch.layout is None:
        return 0.0
    moved, state = launch.layout.offload.split("+"), recipe_of(launch.job)
    each = state.optimizer_bytes * (OPTIMIZER in moved) + state.gradient_bytes * (GRADIENTS in moved)
    each = each + state.weight_bytes * (PARAMETERS in moved)
    rest = frozen_bytes(launch) if PARAMETERS in moved else 0.0
    return (each * trained(launch) + rest) / ranks(launch)


def deepspeed_bytes(launch: Launch, pins_optimizer: bool, pins_parameters: bool) -> float:
    """The same of DeepSpeed, with its buffers; whether those of the optimizer and of the parameters are
    pinned."""
    if launch.job is None or launch.layout is None:
        return 0.0
    moved, state, cut = launch.layout.offload.split("+"), recipe_of(launch.job), ranks(launch)
    own = trained(launch) / cut
    found = 0.0
    if PARAMETERS in moved:
        found = found + (NARROW * own + frozen_bytes(launch) / cut if not pins_parameters else 0.0)
        if pins_parameters:
            found = found + parts_bytes(launch.model, cut) + pinned_bytes(NARROW * own)
    if OPTIMIZER in moved:
        found = found + own * state.optimizer_bytes
        whole = own // SUB_GROUP
        groups = (whole * pinned_bytes(WIDE * SUB_GROUP)) + pinned_bytes(WIDE * (own - whole * SUB_GROUP))
        found = found + (groups if pins_optimizer else WIDE * own)
        if launch.layout.zero >= 3:
            found = found + NARROW * own + (pinned_bytes(NARROW * own) if pins_optimizer else 0.0)
    return found


def parts_bytes(model: Model, cut: float) -> float:
    """The pinned buffers of every matrix's part in 16 bits."""
    if models.has_mixers(model):  # whose matrices have no names here
        return offload.PINNED_MORE * NARROW * float(models.parameters(model)) / cut
    found = 0.0
    for count, (kind, mlp, _) in models.blocks(model):
        for each in (*adapters.attention_matrices(kind), *adapters.mlp_matrices(mlp)):
            size = pinned_bytes(NARROW * float(each.k) * float(each.n) / cut)
            found = found + float(count) * float(each.copies) * size
    ends = (models.embedding_parameters(model), models.head_parameters(model))
    return found + sum([pinned_bytes(NARROW * float(size) / cut) for size in ends])
