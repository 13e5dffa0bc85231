"""Expert parallelism: the computation of a layer of experts, the distance its tokens travel, and the time of
both.

The experts are divided evenly among the expert ranks. Each token goes to its top_k experts and the results
come back: two AllToAlls forward (dispatch, combine) and the same two, reversed, backward (Lepikhin et al.,
arXiv:2006.16668, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real, Truth
from engine.calibration import grouped, products
from engine.catalog import models
from engine.mechanism import interconnect, matmul
from engine.mechanism.interconnect import Wires, all_gather_s, ranks_per_node, wires

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu, Node

TOKEN_BYTES = 2.0  # per value of a hidden state on the wire
FP8_BYTES = 1.0 + 4.0 / 128.0  # with a scale of 4 bytes for each 128 values (DeepEP)
IMBALANCE = 1.1  # the fullest rank's load over the mean, where nothing is known of the router
MOST_CHOICES = 64  # per token; the length of the longest product below


def gather_s(sent_bytes: Real, expert_tp: Real, net: Wires) -> Real:
    """The AllGather of tokens among the expert_tp GPUs that share an expert, or the ReduceScatter of their
    results."""
    if not check.is_trusted():
        check.non_negative(sent_bytes=sent_bytes)
    return all_gather_s(
        sent_bytes * expert_tp, expert_tp, ranks_per_node(expert_tp, 1.0, net.gpus_per_node), net
    )


# -- load ----------------------------------------------------------------------------------------------------
def mean_rows(tokens: Real, top_k: Real, experts: Real) -> Real:
    """Rows of an expert's matrix product if all experts get the same: k·T/E."""
    check.positive(tokens=tokens)
    check.whole(top_k=top_k, experts=experts)
    return tokens * top_k / experts


def capacity_rows(tokens: Real, top_k: Real, experts: Real, capacity_factor: Real) -> Real:
    """The most rows that an expert accepts: ⌈c·k·T/E⌉ (Fedus et al., arXiv:2101.03961, equation 3, for k =
    1)."""
    check.positive(capacity_factor=capacity_factor)
    return ops.ceil(capacity_factor * mean_rows(tokens, top_k, experts) - 1e-9)


# -- arithmetic ----------------------------------------------------------------------------------------------
def expert_flops(rows: Real, hidden: Real, width: Real, gated: Real) -> Real:
    """Forward FLOPs of this many rows through one expert: 2·h·f for each of its 2 matrices, or 3 with a
    gate."""
    check.non_negative(rows=rows)
    check.positive(hidden=hidden, width=width)
    return 2.0 * rows * hidden * width * (2.0 + gated)


def experts_s(rows: Real, local: Real, hidden: Real, width: Real, gated: Real, at: matmul.Chip) -> Real:
    """Forward time of ``local`` experts with this many rows each, as measured (``grouped.experts_s``): the
    rows permuted, two grouped products, the activation, the rows summed up.

    A grouped product runs the tiles of all experts as one kernel. Each expert's last tile is padded and each
    expert's weights are read, however few rows it has. With less than one row per expert, only as many
    experts work as there are rows. ``rows`` have already been sent to this GPU, so no kernel has to search
    all tokens for them.
    """
    if not check.is_trusted():
        check.positive(rows=rows, local=local, hidden=hidden, width=width)
    working = local * ops.minimum(rows, 1.0)
    there = rows * local
    return grouped.experts_s(there, working, local, 0.0, hidden, width, gated, at.experts)


def shared_s(tokens: Real, hidden: Real, width: Real, gated: Real, at: matmul.Chip) -> Real:
    """Forward time of the experts that process every token: dense products, and the activation."""
    up_s = products.gemm_s(tokens, (1.0 + gated) * width, hidden, at.product)
    down_s = products.gemm_s(tokens, hidden, width, at.product)
    return up_s + down_s + matmul.stream_s(tokens * (4.0 + 2.0 * gated) * width, at)


def projections_s(tokens: Real, hidden: Real, latent: Real, at: matmul.Chip) -> Real:
    """Forward time of the two dense products that bring each token to a latent of its experts, and back."""
    if not check.is_trusted():
        check.positive(tokens=tokens, hidden=hidden, latent=latent)
    there_s = products.gemm_s(tokens, latent, hidden, at.product)
    return there_s + products.gemm_s(tokens, hidden, latent, at.product)


def share_of_peak(
    rows: Real, local: Real, hidden: Real, width: Real, gated: Real, time_s: Real, peak_flops_per_s: Real
) -> Real:
    """The share of a GPU's peak that the experts' arithmetic reaches in this time."""
    check.positive(time_s=time_s, peak_flops_per_s=peak_flops_per_s)
    return expert_flops(rows * local, hidden, width, gated) / time_s / peak_flops_per_s


# -- distance ------------------------------------------------------------------------------------------------
class Copies(NamedTuple):
    """How often one token is sent, on average: over NVLink, and through the NICs."""

    link: Real
    nic: Real


def distinct_groups(top_k: Real, experts: Real, groups: Real) -> Real:
    """In how many of these equal groups of experts a token's choices lie, on average, if all are equally
    likely.

    groups · (1 - Π_{j<k} (E - E/groups - j)/(E - j)): a group is missed if every choice, without replacement,
    misses it.
    """
    if not check.is_trusted():
        check.positive(groups=groups)
        check.between(1, MOST_CHOICES, top_k=top_k)
    missed = 1.0
    choices = int(top_k) if top_k.__class__ in (int, float) else MOST_CHOICES
    for j in range(choices):
        misses = ops.maximum(experts - experts / groups - j, 0.0) / ops.maximum(1.0 * experts - j, 1.0)
        missed = missed * ops.where(j < top_k, misses, 1.0)
    return groups * (1.0 - missed)


def copies(top_k: Real, experts: Real, ep: Real, per_node: Real, node_limit: Real, once: Truth) -> Copies:
    """The copies of a token whose experts are all equally likely, in at most ``node_limit`` nodes.

    Without ``once``, every choice is a message. With it, at most one copy crosses to each node, to the GPU
    with the sender's index there, which forwards it over NVLink to each GPU that holds one of the token's
    experts (arXiv:2412.19437, section 3.2.2). A limit below the number of nodes that the choices would reach
    is assumed to be used in full, since the router picks the nodes with the best experts.
    """
    if not check.is_trusted():
        check.whole(ep=ep, per_node=per_node, node_limit=node_limit)
    nodes = 1.0 * ep / per_node
    allowed = ops.minimum(nodes, 1.0 * node_limit)
    plain = Copies(top_k * (per_node - 1.0) / ep, top_k * (ep - per_node) / ep)
    gpus = distinct_groups(top_k, experts * allowed / nodes, allowed * per_node)
    met = ops.minimum(allowed, distinct_groups(top_k, experts, nodes))
    shared = Copies(gpus * (per_node - 1.0) / per_node, met * (nodes - 1.0) / nodes)
    return Copies(*(ops.where(once, a, b) for a, b in zip(shared, plain)))


def visited(top_k: Real, experts: Real, ep: Real, per_node: Real, node_limit: Real) -> Real:
    """The number of places that need a token's row, including its own: nodes, or GPUs where all ranks share
    one node."""
    nodes = ep / per_node
    few = np.minimum(np.minimum(nodes, node_limit), distinct_groups(top_k, experts, nodes))
    return ops.where(nodes > 1.0, few, distinct_groups(top_k, experts, ep))


def nodes_allowed(nodes: Real, expert_groups: Real, top_groups: Real) -> Real:
    """The most nodes in which a token may have experts, where the router first picks ``top_groups`` of these
    groups of experts (DeepSeek-V3: 4 of 8, so with 64 ranks on 8 nodes a token uses 4 of them); all nodes if
    it does not."""
    in_group = ops.maximum(1.0, nodes / ops.maximum(expert_groups, 1.0))
    return ops.where(expert_groups > 0.0, ops.minimum(nodes, top_groups * in_group), nodes)


def exchange_s(
    tokens: Real, hidden: Real, value_bytes: Real, at: Copies, ep: Real, per_node: Real, net: Wires
) -> Real:
    """Time of one AllToAll of a GPU's tokens, each sent this many times; the step, the planner and the
    lessons all use it. Where every choice is a message it equals ``interconnect.all_to_all_s``. Leaves out
    incast and the SMs that do the copying."""
    if not check.is_trusted():
        check.non_negative(tokens=tokens)
        check.positive(hidden=hidden, value_bytes=value_bytes)
    token_bytes = tokens * hidden * value_bytes
    return interconnect.exchange_s(token_bytes * at.link, token_bytes * at.nic, ep, per_node, net)


def hiding_width(
    copies_per_choice: Real,
    flops_per_s: Real,
    bytes_per_s: Real,
    both_ways_bytes: Real = 2.0 * TOKEN_BYTES,
    matrices: Real = 3.0,
) -> Real:
    """The expert width at which arithmetic and the two AllToAlls take equally long: (b_d + b_c)/(2·3)·c·C/W.

    A choice costs 2·3·h·f FLOPs and c·h·(b_d + b_c) bytes on a wire: tokens, choices and hidden width cancel.
    """
    check.non_negative(copies_per_choice=copies_per_choice)
    check.positive(
        flops_per_s=flops_per_s, bytes_per_s=bytes_per_s, both_ways_bytes=both_ways_bytes, matrices=matrices
    )
    return both_ways_bytes / (2.0 * matrices) * copies_per_choice * flops_per_s / bytes_per_s


# -- a layer -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ExpertNode:
    """A node of the catalogue as used for experts: rates of its GPU in 16 and 8 bits, and its wires."""

    key: str
    name: str
    gpu: Gpu
    wide: matmul.Chip
    narrow: matmul.Chip  # in 8 bits; equal to ``wide`` on a GPU without such units
    net: Wires

    @classmethod
    def of(cls, node: Node) -> ExpertNode:
        """The machine that is one node of the catalogue, with calibrated rates."""
        net = wires(node.gpu, node.gpus, node.nic_bytes_per_s_per_gpu, nic=node.nic)
        return cls(
            node.key, node.name, node.gpu, matmul.chip(node.gpu, "bf16"), matmul.chip(node.gpu, "fp8"), net
        )


class ExpertSizes(NamedTuple):
    """Sizes of a layer of experts that differ from those of a catalogue model."""

    experts: Real
    top_k: Real
    hidden: Real
    expert_ffn: Real
    gated: Real
    shared_experts: Real = 0.0
    shared_ffn: Real = 0.0

    @property
    def expert_hidden(self) -> Real:
        """Width at which a token reaches its routed experts."""
        return self.hidden


def block(model: models.Model, experts: Real, top_k: Real) -> ExpertSizes:
    """A model's experts, but ``experts`` of them, ``top_k`` for each token, and without shared ones."""
    check.whole(experts=experts, top_k=top_k)
    return ExpertSizes(experts, top_k, model.hidden, model.expert_ffn, model.gated)


class ExpertLayerTime(NamedTuple):
    """Seconds of one MoE layer's forward pass on one GPU."""

    dispatch_s: Real
    experts_s: Real  # routed and shared
    combine_s: Real


def total_s(found: ExpertLayerTime) -> Real:
    """The layer's time with nothing overlapped."""
    return found.dispatch_s + found.experts_s + found.combine_s


def wires_s(found: ExpertLayerTime) -> Real:
    """The time of both AllToAlls."""
    return found.dispatch_s + found.combine_s


def rows_of(tokens: Real, top_k: Real, imbalance: Real) -> Real:
    """Rows computed by a GPU whose load is this many times the mean."""
    check.positive(tokens=tokens, imbalance=imbalance)
    return imbalance * tokens * top_k


def in_a_node(ep: Real, net: Wires) -> Real:
    """The number of expert ranks that share a node: a power of two."""
    return np.minimum(ep, 2.0 ** np.floor(np.log2(net.gpus_per_node)))


def layer(
    model: ExpertSizes | models.Model,
    tokens: Real,
    ep: Real,
    machine: ExpertNode,
    node_limit: Real,
    once: Truth,
    fp8: Truth,
    imbalance: Real = 1.0,
    spare: Real = 0,
) -> ExpertLayerTime:
    """Forward time for a GPU's tokens and the experts it holds. ``fp8``: dispatch and products in 8 bits,
    combine in 16. ``imbalance`` is the fullest GPU's load over the mean, by which its receiving, computing
    and returning grow. ``spare`` places on each GPU have copies of experts, whose weights are read as well.
    Where a model's experts work on a latent, tokens are projected to it before they are sent, and back once
    they have returned: two dense products, and narrower rows on the wires."""
    check.positive(tokens=tokens, imbalance=imbalance)
    check.non_negative(spare=spare)
    net, gated = machine.net, 1.0 * model.gated
    per_node = in_a_node(ep, net)
    sent = copies(model.top_k, model.experts, ep, per_node, node_limit, once)
    local = model.experts / ep + spare
    rows = imbalance * mean_rows(tokens, model.top_k, local)
    shared_width = np.maximum(model.shared_experts * model.shared_ffn, 1.0)
    inside = model.expert_hidden
    work_s = [
        experts_s(rows, local, inside, model.expert_ffn, gated, chip)
        + np.where(inside < model.hidden, projections_s(tokens, model.hidden, inside, chip), 0.0)
        + np.where(model.shared_experts > 0, shared_s(tokens, model.hidden, shared_width, gated, chip), 0.0)
        for chip in (machine.narrow, machine.wide)
    ]
    there_s, back_s = (
        exchange_s(imbalance * tokens, inside, value_bytes, sent, ep, per_node, net)
        for value_bytes in (ops.where(fp8, FP8_BYTES, TOKEN_BYTES), TOKEN_BYTES)
    )
    return ExpertLayerTime(there_s, ops.where(fp8, *work_s), back_s)


def layer_share_of_peak(
    model: models.Model, tokens: Real, machine: ExpertNode, fp8: Real, imbalance: Real, experts_time_s: Real
) -> Real:
    """The share of the peak, in the precision of the products, that a GPU's routed and shared experts reach
    in ``experts_time_s``."""
    gpu = machine.gpu
    peak = ops.where(fp8, np.maximum(gpu.fp8_flops_per_s, gpu.bf16_flops_per_s), gpu.bf16_flops_per_s)
    routed = model.expert_ffn * model.expert_hidden / model.hidden
    width = imbalance * model.top_k * routed + model.shared_experts * model.shared_ffn
    return share_of_peak(tokens, 1.0, model.hidden, width, model.gated, experts_time_s, peak)


def held_bytes(model: models.Model, ep: Real, bytes_per_param: Real = 2.0, spare: Real = 0) -> Real:
    """The weights of the experts that one expert rank holds, over all layers: the reason to spread them.
    ``spare`` are its places for copies, in each layer."""
    check.whole(ep=ep)
    check.non_negative(spare=spare)
    return (
        models.moe_layers(model)
        * (model.experts / ep + spare)
        * models.expert_parameters(model)
        * bytes_per_param
    )
