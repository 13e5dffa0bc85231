"""A step of a replica whose GPUs share the experts and nothing else: wide expert parallelism with
data-parallel attention, as DeepSeek serves (arXiv:2412.19437, section 3.4).

``dp`` groups of ``tp`` GPUs have requests of their own. Each holds a copy of attention, dense layers, shared
experts and output layer, cut over its ``tp`` GPUs; the routed experts are spread over all of them, and every
token is sent to the experts that it chooses, and back. All groups step together, and all are taken to have
the same number of tokens. Leaves out waiting for a group that has more tokens, and the memory of the kernels
that send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration.grouped import experts_s
from engine.mechanism import experts, memory
from engine.mechanism.experts import IMBALANCE
from engine.mechanism.shape import shape
from engine.serving import inference
from engine.step.step import COPYING_SLOWS

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.mechanism.interconnect import Wires
    from engine.mechanism.matmul import Chip
    from engine.mechanism.shape import Routed, Shape
    from engine.step.layout import Machine


class Wide(NamedTuple):
    """Seconds of one step, by what takes them."""

    work_s: Real  # everything that a GPU computes and reads, and the AllReduces of its attention
    wires_s: Real  # tokens to their experts and back

    @property
    def total_s(self) -> Real:
        """The work and the wires, one after the other."""
        return self.work_s + self.wires_s


def held_experts(part: Routed, gpus: Real) -> Real:
    """Experts on each GPU, rounded up: if the number of experts is no multiple of the GPUs, some experts have
    copies."""
    return ops.ceil(part.experts / gpus)


def exchange_s(
    size: Shape, part: Routed, tokens: Real, gpus: Real, prompts: bool, narrow: Real, net: Wires
) -> Real:
    """Seconds to send one layer's tokens of one GPU to their experts and back.

    Prompts are sent once to each node that needs them, and their nodes are limited as the router limits them;
    a decode step sends a copy to each expert. With ``narrow``, values have 8 bits on the way there and 16 on
    the way back. The cost model is that of training and of lesson 09; it was compared with DeepEP's own
    figures for both kinds of kernels.
    """
    per_node = ops.minimum(gpus, net.gpus_per_node)
    nodes = ops.ceil(gpus / per_node)
    limit = ops.ceil(experts.nodes_allowed(nodes, part.groups, part.top_groups))
    sent = experts.copies(part.top_k, part.experts, gpus, per_node, limit, prompts)
    there = ops.where(narrow > 0.0, experts.FP8_BYTES, experts.TOKEN_BYTES)
    return sum(
        experts.exchange_s(tokens, part.hidden, value_bytes, sent, gpus, per_node, net)
        for value_bytes in (there, experts.TOKEN_BYTES)
    )


def routed_s(size: Shape, part: Routed, rows: Real, gpus: Real, weight_bytes: Real, at: Chip) -> Real:
    """Seconds of one layer's experts, for ``rows`` tokens of each GPU."""
    held = held_experts(part, gpus)
    touched = inference.experts_touched(held * gpus, part.top_k, rows * gpus) / gpus
    came = rows * part.top_k
    return experts_s(
        came, touched, held, came, part.hidden, part.width, part.gated, at.served.experts, weight_bytes
    )


class Batch(NamedTuple):
    """What is computed in a step, and by which replica."""

    size: Shape
    rows: Real  # tokens of each group
    attention_s: Real  # seconds of their attention over the cache
    tp: Real
    dp: Real
    prompts: bool
    weight_bytes: Real
    at: Chip
    net: Wires
    imbalance: Real = IMBALANCE  # tokens for the busiest GPU's experts over the mean


def step(of: Batch) -> Wide:
    """The seconds of a step over a batch that is not divided."""
    size, rows, tp, at = of.size, of.rows, of.tp, of.at
    gpus, routed = tp * of.dp, of.imbalance * rows / tp
    narrow = ops.where(at.operand_bytes < 2.0, 1.0, 0.0)
    computed_s, exchanged_s = 0.0, 0.0
    for part in size.routed:
        layers = size.depth * part.share
        computed_s = computed_s + layers * routed_s(size, part, routed, gpus, of.weight_bytes, at)
        sent_s = exchange_s(size, part, routed, gpus, of.prompts, narrow, of.net)
        exchanged_s = exchanged_s + layers * sent_s
    summed = size.depth * (size.all_reduces - size.moe_share)
    return Wide(
        inference.dense_s(size, rows, tp, of.weight_bytes, at)
        + computed_s
        + inference.head_s(size, ops.minimum(rows, inference.HEAD_ROWS) if of.prompts else rows, tp, at)
        + inference.other_s(size, rows, tp, at)
        + summed * inference.reduce_s(rows * size.hidden * 2.0, tp, "auto", of.net)
        + of.attention_s,
        exchanged_s,
    )


def chosen(of: Batch) -> Wide:
    """The seconds of a step over a batch: undivided, or in two halves that take turns, so that the work of
    one half hides the wires of the other, whichever is faster. ``wires_s`` is the part that stays exposed.
    Halves are smaller batches, and together they read the weights twice. A part of the hidden time is lost
    all the same, as in training (``COPYING_SLOWS``)."""
    whole = step(of)
    half = step(of._replace(rows=0.5 * of.rows, attention_s=0.5 * of.attention_s))
    hidden_s = ops.minimum(half.work_s, half.wires_s) * (1.0 - COPYING_SLOWS)
    seen_s = 2.0 * (half.wires_s - hidden_s)
    halved = 2.0 * half.work_s + seen_s < whole.total_s
    return Wide(ops.where(halved, 2.0 * half.work_s, whole.work_s), ops.where(halved, seen_s, whole.wires_s))


def prefill_s(
    model: Model,
    at: Machine,
    tp: Real,
    dp: Real,
    tokens: Real,
    prompt: Real,
    weight_precision: str | Real | None = None,
    imbalance: Real = IMBALANCE,
) -> Real:
    """The seconds of a step in which each group reads ``tokens`` tokens of prompts, each of which has
    ``prompt`` tokens."""
    require_experts(model, tp, dp)
    size, tp, dp, tokens, prompt = shape(model), tp * 1.0, dp * 1.0, tokens * 1.0, prompt * 1.0
    with check.trusted():
        attention_s = inference.prompt_attention_s(size, tokens / prompt, prompt, tp, at.chip)
        stored = inference.stored_bytes(at, weight_precision)
        of = Batch(size, tokens, attention_s, tp, dp, True, stored, at.chip, at.wires, imbalance)
        return chosen(of).total_s


def decode_s(
    model: Model,
    at: Machine,
    tp: Real,
    dp: Real,
    batch: Real,
    context: Real,
    kv_precision: str = "bf16",
    weight_precision: str | Real | None = None,
    imbalance: Real = IMBALANCE,
) -> Real:
    """The seconds of a step that writes a token for each of a group's ``batch`` sequences of ``context``
    tokens."""
    require_experts(model, tp, dp)
    size, tp, dp, batch, context = shape(model), tp * 1.0, dp * 1.0, batch * 1.0, context * 1.0
    with check.trusted():
        value_bytes = memory.BYTES_PER_VALUE[kv_precision]
        attention_s = inference.attention_s(size, batch, context, tp, value_bytes, at.chip)
        stored = inference.stored_bytes(at, weight_precision)
        of = Batch(size, batch, attention_s, tp, dp, False, stored, at.chip, at.wires, imbalance)
        return chosen(of).total_s


def require_experts(model: Model, tp: Real, dp: Real) -> None:
    """ValueError for a dense model."""
    check.whole(tp=tp, dp=dp)
    if not model.experts:
        raise ValueError(f"model must have experts to spread over GPUs, got {model.key}")


def weight_bytes_per_gpu(
    model: Model, at: Machine, tp: Real, dp: Real, weight_precision: str | Real | None = None
) -> Real:
    """Bytes of weights on each GPU: its experts, and its part of everything else, as stored; embedding and
    output layer in 16 bits."""
    size, stored = shape(model), inference.stored_bytes(at, weight_precision)
    routed = size.depth * size.routed_params_per_layer
    embeddings = size.embedding_params + size.head_params
    own = (size.total_params - embeddings - routed) * stored + embeddings * at.chip.wide_bytes
    found = own / tp
    for part in size.routed:
        share = held_experts(part, tp * dp) / ops.maximum(1.0, part.experts)
        found = found + size.depth * part.params * share * stored
    return found
