"""Expert parallelism: sending tokens to their experts and back."""

from __future__ import annotations

from engine.interconnect import Wires, all_to_all_s, ranks_per_node

TOKEN_BYTES = 2.0       # of each value of a hidden state on the wire


def dispatch_s(tokens, top_k, hidden, ep, expert_tp, imbalance, net: Wires):
    """One AllToAll: each of this GPU's tokens goes to top_k experts; the fullest GPU sets the pace.

    Leaves out routing limited to few nodes, which sends a token to each node once.
    """
    per_node = ranks_per_node(ep, expert_tp, net.gpus_per_node)
    return all_to_all_s(imbalance * tokens * top_k * hidden * TOKEN_BYTES, ep, per_node, net)
