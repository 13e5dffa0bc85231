"""Context parallelism: the exposed cost of passing keys and values around, beyond the attention that hides
it."""

from __future__ import annotations

from engine.base import check, ops
from engine.base.types import Real
from engine.mechanism.interconnect import Wires, all_gather_s, ranks_per_node, send_s


def ring_s(kv_bytes: Real, ranks: Real, stride: Real, attention_s: Real, net: Wires) -> Real:
    """Ring attention, exposed time: ranks − 1 messages, each hidden by one of the ``ranks`` blocks of
    attention.

    ``kv_bytes`` are one rank's keys and values. Assumes zig-zag order, in which every rank has the same
    causal work. arXiv:2310.01889 section 3.
    """
    if not check.is_trusted():
        check.non_negative(kv_bytes=kv_bytes, attention_s=attention_s)
        check.whole(ranks=ranks, stride=stride)
    steps = ranks - 1.0
    message_s = send_s(kv_bytes, stride * ranks > net.gpus_per_node, net)
    return steps * ops.maximum(0.0, message_s - attention_s / ranks)


def window_s(
    window_bytes: Real, kv_bytes: Real, ranks: Real, stride: Real, attention_s: Real, net: Wires
) -> Real:
    """Exposed time of a layer whose tokens attend only to a window. Each of a rank's two chunks (zig-zag)
    needs the keys and values of one window before it, but never more than there are; neighbours send them at
    once, hidden by the rank's own attention."""
    if not check.is_trusted():
        check.non_negative(window_bytes=window_bytes, kv_bytes=kv_bytes, attention_s=attention_s)
        check.whole(ranks=ranks, stride=stride)
    needed = ops.minimum(2.0 * window_bytes, (ranks - 1.0) * kv_bytes)
    message_s = send_s(needed, stride * ranks > net.gpus_per_node, net)
    return ops.where(ranks > 1.0, ops.maximum(0.0, message_s - attention_s), 0.0)


def gather_s(kv_bytes: Real, ranks: Real, stride: Real, net: Wires) -> Real:
    """AllGather of keys and values before attention (Llama 3, arXiv:2407.21783 section 3.3.2): fully
    exposed."""
    if not check.is_trusted():
        check.non_negative(kv_bytes=kv_bytes)
        check.whole(ranks=ranks)
    return all_gather_s(kv_bytes * ranks, ranks, ranks_per_node(ranks, stride, net.gpus_per_node), net)
