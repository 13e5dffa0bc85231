"""Expert parallelism: what a layer of experts computes, how far its tokens travel, and how long both take.

Expert ranks hold the experts, so many each. A token goes to its top_k experts and its results come back: two AllToAlls
forward (dispatch, combine) and the same two, reversed, backward (Lepikhin et al., arXiv:2006.16668, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine import check, matmul, models, ops
from engine.collectives import pipelined_s
from engine.interconnect import Wires, all_gather_s, all_to_all_s, ranks_per_node, wires

TOKEN_BYTES = 2.0       # of each value of a hidden state on the wire
FP8_BYTES = 1.0
MOST_CHOICES = 64       # of a token; the longest product below


def dispatch_s(sent_bytes, ep, expert_tp, net: Wires):
    """One AllToAll of the hidden states that a GPU's tokens send to their experts (top_k copies of each).

    Leaves out routing limited to few nodes, which sends a token to each node once (``exchange_s`` has it).
    """
    return all_to_all_s(sent_bytes, ep, ranks_per_node(ep, expert_tp, net.gpus_per_node), net)


def gather_s(sent_bytes, expert_tp, net: Wires):
    """Tokens that arrived at one of the expert_tp GPUs of an expert go to the others (and their results come back)."""
    check.non_negative(sent_bytes=sent_bytes)
    return all_gather_s(sent_bytes * expert_tp, expert_tp, ranks_per_node(expert_tp, 1.0, net.gpus_per_node), net)


# -- load ------------------------------------------------------------------------------------------------------------
def mean_rows(tokens, top_k, experts):
    """Rows of an expert's matrix product where all have the same: k·T/E."""
    check.positive(tokens=tokens)
    check.whole(top_k=top_k, experts=experts)
    return tokens * top_k / experts


def capacity_rows(tokens, top_k, experts, capacity_factor):
    """What an expert takes at most: ⌈c·k·T/E⌉ (Fedus et al., arXiv:2101.03961, equation 3, for k = 1)."""
    check.positive(capacity_factor=capacity_factor)
    return ops.ceil(capacity_factor * mean_rows(tokens, top_k, experts) - 1e-9)


# -- arithmetic ------------------------------------------------------------------------------------------------------
def expert_flops(rows, hidden, width, gated):
    """Forward, of so many rows through one expert: 2·h·f for each of its 2 matrices, or 3 with a gate."""
    check.non_negative(rows=rows)
    check.positive(hidden=hidden, width=width)
    return 2.0 * rows * hidden * width * (2.0 + gated)


def experts_s(rows, local, hidden, width, gated, at: matmul.Chip):
    """Forward, of ``local`` experts with so many rows each: two grouped products, the activation, and putting the rows
    in order of their experts and back.

    A grouped product runs the tiles of all experts as one kernel; each expert's last tile is padded and each expert's
    weights are read, however few its rows are. With less than a row for each, only so many experts work.
    """
    if not check.is_trusted():
        check.positive(rows=rows, local=local, hidden=hidden, width=width)
    working = local * ops.minimum(rows, 1.0)
    rows = ops.maximum(rows, 1.0)
    common = (working, at.matmul_flops_per_s, at.operand_bytes, 2.0, at)
    up_s = matmul.product_s(rows, (1.0 + gated) * width, hidden, *common)
    down_s = matmul.product_s(rows, hidden, width, *common)
    return up_s + down_s + matmul.stream_s(rows * working * (8.0 * hidden + (4.0 + 2.0 * gated) * width), at)


def share_of_peak(rows, local, hidden, width, gated, time_s, peak_flops_per_s):
    """How much of a GPU's peak the experts' arithmetic reaches in that time."""
    check.positive(time_s=time_s, peak_flops_per_s=peak_flops_per_s)
    return expert_flops(rows * local, hidden, width, gated) / time_s / peak_flops_per_s


# -- distance --------------------------------------------------------------------------------------------------------
class Copies(NamedTuple):
    """How often one token travels, on average: over NVLink, and through the NICs."""

    link: object
    nic: object


def distinct_groups(top_k, experts, groups):
    """In how many of so many equal groups of experts a token's choices lie, on average, if all are alike.

    groups · (1 - Π_{j<k} (E - E/groups - j)/(E - j)): a group is missed if each choice, none put back, misses it.
    """
    check.positive(groups=groups)
    check.between(1, MOST_CHOICES, top_k=top_k)
    missed = 1.0
    for j in range(MOST_CHOICES):
        misses = np.maximum(experts - experts / groups - j, 0.0) / np.maximum(experts - j, 1.0)
        missed = missed * np.where(j < top_k, misses, 1.0)
    return groups * (1.0 - missed)


def copies(top_k, experts, ep, per_node, node_limit, once) -> Copies:
    """Of a token whose experts are as likely as any, in at most ``node_limit`` nodes.

    Plainly, every choice is a message. ``once``: at most one crosses to each node, to the GPU with the sender's number
    there, which hands it on over NVLink to each GPU that holds one of its experts (arXiv:2412.19437, section 3.2.2). A
    limit below the nodes that the choices would meet is taken as used up: a node is allowed for its good experts.
    """
    check.whole(ep=ep, per_node=per_node, node_limit=node_limit)
    nodes = ep / per_node
    allowed = np.minimum(nodes, node_limit)
    plain = Copies(top_k * (per_node - 1.0) / ep, top_k * (ep - per_node) / ep)
    gpus = distinct_groups(top_k, experts * allowed / nodes, allowed * per_node)
    met = np.minimum(allowed, distinct_groups(top_k, experts, nodes))
    shared = Copies(gpus * (per_node - 1.0) / per_node, met * (nodes - 1.0) / nodes)
    return Copies(*(ops.where(once, a, b) for a, b in zip(shared, plain)))


def visited(top_k, experts, ep, per_node, node_limit):
    """Where a token's row is wanted, its own place included: nodes, or GPUs where all ranks share one node."""
    nodes = ep / per_node
    few = np.minimum(np.minimum(nodes, node_limit), distinct_groups(top_k, experts, nodes))
    return ops.where(nodes > 1.0, few, distinct_groups(top_k, experts, ep))


def exchange_s(tokens, hidden, value_bytes, at: Copies, ep, per_node, net: Wires):
    """One AllToAll of a GPU's tokens: NVLink and NIC at once, whichever takes longer; ``interconnect.all_to_all_s``
    where every choice is a message. Leaves out incast and what the SMs that copy cost."""
    check.non_negative(tokens=tokens)
    check.positive(hidden=hidden, value_bytes=value_bytes)
    token_bytes = tokens * hidden * value_bytes
    hop_s = ops.where(ep > per_node, net.network_hop_s, ops.where(ep > 1.0, net.link_hop_s, 0.0))
    wire_s = np.maximum(token_bytes * at.link / net.link_bytes_per_s, token_bytes * at.nic / net.nic_bytes_per_s)
    return ops.where(ep > 1.0, net.start_s, 0.0) + pipelined_s(hop_s, wire_s)


def hiding_width(copies_per_choice, flops_per_s, bytes_per_s, both_ways_bytes=2.0 * TOKEN_BYTES, matrices=3.0):
    """The expert width at which arithmetic and the two AllToAlls take equally long: (b_d + b_c)/(2·3)·c·C/W.

    A choice costs 2·3·h·f FLOPs and c·h·(b_d + b_c) bytes on a wire: tokens, choices and hidden width cancel.
    """
    check.non_negative(copies_per_choice=copies_per_choice)
    check.positive(flops_per_s=flops_per_s, bytes_per_s=bytes_per_s, both_ways_bytes=both_ways_bytes, matrices=matrices)
    return both_ways_bytes / (2.0 * matrices) * copies_per_choice * flops_per_s / bytes_per_s


# -- a layer ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Machine:
    """A node of the catalogue as experts meet it: rates of its GPU in 16 and 8 bits, and its wires."""

    key: str
    name: str
    gpu: object
    wide: matmul.Chip
    narrow: matmul.Chip             # 8 bits; the same as wide on a GPU without
    net: Wires

    @classmethod
    def of(cls, node) -> Machine:
        net = wires(node.gpu, node.gpus, node.nic_bytes_per_s_per_gpu)
        return cls(node.key, node.name, node.gpu, matmul.chip(node.gpu, "bf16"), matmul.chip(node.gpu, "fp8"), net)


class Block(NamedTuple):
    """The experts of a layer, where they are not a catalogue model's."""

    experts: object
    top_k: object
    hidden: object
    expert_ffn: object
    gated: object
    shared_experts: object = 0.0
    shared_ffn: object = 0.0


def block(model, experts, top_k) -> Block:
    """Experts of a model's sizes, in another number; without the shared ones."""
    check.whole(experts=experts, top_k=top_k)
    return Block(experts, top_k, model.hidden, model.expert_ffn, model.gated)


class LayerTime(NamedTuple):
    """Seconds of one MoE layer's forward pass on one GPU."""

    dispatch_s: object
    experts_s: object               # routed and shared
    combine_s: object


def total_s(found: LayerTime):
    """One after the other: nothing overlapped."""
    return found.dispatch_s + found.experts_s + found.combine_s


def wires_s(found: LayerTime):
    """Both AllToAlls."""
    return found.dispatch_s + found.combine_s


def against(one_s, other_s):
    """One time over another."""
    check.non_negative(one_s=one_s)
    check.positive(other_s=other_s)
    return one_s / other_s


def rows_of(tokens, top_k, imbalance):
    """Rows that a GPU computes which gets so many times the mean."""
    check.positive(tokens=tokens, imbalance=imbalance)
    return imbalance * tokens * top_k


def in_a_node(ep, net: Wires):
    """Expert ranks that share a node: a power of two of them."""
    return np.minimum(ep, 2.0 ** np.floor(np.log2(net.gpus_per_node)))


def layer(model, tokens, ep, machine: Machine, node_limit, once, fp8, imbalance=1.0) -> LayerTime:
    """Forward, of a GPU's tokens and of the experts it holds. ``fp8``: dispatch and products in 8 bits, combine in 16.
    ``imbalance`` is the fullest GPU's load over the mean: it receives, computes and returns so much more."""
    check.positive(tokens=tokens, imbalance=imbalance)
    net, gated = machine.net, 1.0 * model.gated
    per_node = in_a_node(ep, net)
    sent = copies(model.top_k, model.experts, ep, per_node, node_limit, once)
    local = model.experts / ep
    rows = imbalance * mean_rows(tokens, model.top_k, local)
    shared_width = np.maximum(model.shared_experts * model.shared_ffn, 1.0)
    work_s = [experts_s(rows, local, model.hidden, model.expert_ffn, gated, chip)
              + np.where(model.shared_experts > 0, experts_s(tokens, 1.0, model.hidden, shared_width, gated, chip), 0.0)
              for chip in (machine.narrow, machine.wide)]
    there_s, back_s = (exchange_s(imbalance * tokens, model.hidden, value_bytes, sent, ep, per_node, net)
                       for value_bytes in (ops.where(fp8, FP8_BYTES, TOKEN_BYTES), TOKEN_BYTES))
    return LayerTime(there_s, ops.where(fp8, *work_s), back_s)


def layer_share_of_peak(model, tokens, machine: Machine, fp8, imbalance, experts_time_s):
    """How much of the peak, in the precision of the products, a GPU's routed and shared experts reach in that time."""
    gpu = machine.gpu
    peak = ops.where(fp8, np.maximum(gpu.fp8_flops_per_s, gpu.bf16_flops_per_s), gpu.bf16_flops_per_s)
    width = imbalance * model.top_k * model.expert_ffn + model.shared_experts * model.shared_ffn
    return share_of_peak(tokens, 1.0, model.hidden, width, model.gated, experts_time_s, peak)


def doublings(ranks):
    """How often one rank is doubled for so many."""
    check.positive(ranks=ranks)
    return np.log2(ranks)


def held_bytes(model, ep, bytes_per_param=2.0):
    """The weights of the experts that one expert rank holds, over all layers: why they are spread at all."""
    check.whole(ep=ep)
    return models.moe_layers(model) * model.experts / ep * models.expert_parameters(model) * bytes_per_param
