"""Context parallelism: what passing keys and values around costs beyond the attention that hides it."""

from __future__ import annotations

from engine import check, ops
from engine.interconnect import Wires, all_gather_s, ranks_per_node, send_s


def ring_s(kv_bytes, ranks, stride, attention_s, net: Wires):
    """Ring attention, exposed: ranks − 1 messages, each behind one of the ``ranks`` blocks of attention.

    ``kv_bytes`` are one rank's keys and values. Zig-zag order is taken for granted: every rank has the same causal
    work. arXiv:2310.01889 section 3.
    """
    if not check.is_trusted():
        check.non_negative(kv_bytes=kv_bytes, attention_s=attention_s)
        check.whole(ranks=ranks, stride=stride)
    steps = ranks - 1.0
    message_s = send_s(kv_bytes, stride * ranks > net.gpus_per_node, net)
    return steps * ops.maximum(0.0, message_s - attention_s / ranks)


def gather_s(kv_bytes, ranks, stride, net: Wires):
    """All-gather of keys and values before attention (Llama 3, arXiv:2407.21783 section 3.3.2): wholly exposed."""
    check.non_negative(kv_bytes=kv_bytes)
    check.whole(ranks=ranks)
    return all_gather_s(kv_bytes * ranks, ranks, ranks_per_node(ranks, stride, net.gpus_per_node), net)
