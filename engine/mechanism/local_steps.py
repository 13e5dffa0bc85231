"""Data parallelism that talks once in many steps: DiLoCo, in which each replica trains by itself for a while.

A replica, itself any layout of GPUs, takes H inner steps with AdamW. Then the mean of what all replicas'
weights changed by is the gradient of an outer step, SGD with Nesterov momentum (arXiv:2311.08105). Streaming
DiLoCo cuts the model into fragments that take their outer steps in turn, lets inner steps go on meanwhile,
and sends the changes in 4 bits (arXiv:2501.18512); eager updates let a whole round pass (arXiv:2502.12996).
What is here are bytes and seconds, not what H does to the loss. Read on 2026-11-28, the papers by their
summary pages.
"""

from __future__ import annotations

from engine.base import check, ops
from engine.base.types import Real

CHANGE_BYTES = 4.0  # of a weight's change as DiLoCo sends it, fp32
NARROW_BYTES = 0.5  # … as streaming DiLoCo sends it
MOMENTUM_BYTES, ANCHOR_BYTES = 4.0, 4.0  # of the outer momentum, and of the weight that the round began with


def sent_bytes(params: Real, inner_steps: Real, change_bytes: Real = CHANGE_BYTES) -> Real:
    """Bytes that a replica hands to the AllReduce for each inner step, on average: P·b/H.

    Plain data parallelism hands over P gradients in each step, so DiLoCo sends 1/H of that, with 4-bit
    changes for 16-bit gradients 1/(4·H). A ring puts 2·(n − 1)/n times these bytes on each wire, for both
    alike. Whatever is sent inside a replica stays as it was.
    """
    check.positive(params=params, change_bytes=change_bytes)
    check.whole(inner_steps=inner_steps)
    return params * change_bytes / inner_steps


def outer_state_bytes(params: Real) -> Real:
    """Bytes of the outer optimizer in a replica: 8·P, an fp32 momentum and the weights that the round began
    with. They are touched once a round, so they may lie in the host's memory, and ranks may share them."""
    check.positive(params=params)
    return (MOMENTUM_BYTES + ANCHOR_BYTES) * params


def average_bytes_per_s(
    params: Real, inner_steps: Real, step_s: Real, change_bytes: Real = NARROW_BYTES
) -> Real:
    """The rate at which a replica sends if it never pauses: P·b/(H·t), the least that a wire must carry."""
    check.positive(step_s=step_s)
    return sent_bytes(params, inner_steps, change_bytes) / step_s


def peak_bytes_per_s(
    params: Real, fragments: Real, hidden_steps: Real, step_s: Real, change_bytes: Real = NARROW_BYTES
) -> Real:
    """The rate that hides a fragment's exchange behind ``hidden_steps`` inner steps: P·b/(K·τ·t).

    K fragments divide the peak by K; without streaming, K = 1. It equals the average where the exchanges
    follow each other without a gap, K·τ = H.
    """
    check.positive(params=params, step_s=step_s, change_bytes=change_bytes)
    check.whole(fragments=fragments, hidden_steps=hidden_steps)
    return params * change_bytes / (fragments * hidden_steps * step_s)


def mean_step_s(
    step_s: Real, exchange_s: Real, inner_steps: Real, fragments: Real = 1, hidden_steps: Real = 0
) -> Real:
    """Seconds of an inner step with its part of the exchanges: t + K·max(0, e/K − τ·t)/H.

    ``exchange_s`` is e, the seconds to exchange the whole model, of which each of K fragments takes its part
    once in H steps, hidden behind τ steps; DiLoCo hides nothing (τ = 0), eager updates a whole round
    (K = 1, τ = H). Leaves out the outer optimizer's own pass, start-ups of small exchanges, and replicas that
    wait for slower ones.
    """
    check.positive(step_s=step_s)
    check.non_negative(exchange_s=exchange_s)
    check.whole(inner_steps=inner_steps, fragments=fragments)
    check.whole(0, hidden_steps=hidden_steps)
    waits_s = ops.maximum(0.0, exchange_s / fragments - hidden_steps * step_s)
    return step_s + fragments * waits_s / inner_steps
