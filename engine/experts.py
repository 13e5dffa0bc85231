"""Expert parallelism: sending tokens to their experts and back."""

from __future__ import annotations

from engine import check
from engine.interconnect import Wires, all_gather_s, all_to_all_s, ranks_per_node

TOKEN_BYTES = 2.0       # of each value of a hidden state on the wire


def dispatch_s(sent_bytes, ep, expert_tp, net: Wires):
    """One AllToAll of the hidden states that a GPU's tokens send to their experts (top_k copies of each).

    Leaves out routing limited to few nodes, which sends a token to each node once (DeepSeek-V3).
    """
    return all_to_all_s(sent_bytes, ep, ranks_per_node(ep, expert_tp, net.gpus_per_node), net)


def gather_s(sent_bytes, expert_tp, net: Wires):
    """Tokens that arrived at one of the expert_tp GPUs of an expert go to the others (and their results come back)."""
    check.non_negative(sent_bytes=sent_bytes)
    return all_gather_s(sent_bytes * expert_tp, expert_tp, ranks_per_node(expert_tp, 1.0, net.gpus_per_node), net)
