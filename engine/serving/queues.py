"""Queues in closed form: how long requests wait for a server, and how many requests per second it may get if
the wait is to meet a target."""

from __future__ import annotations

import numpy as np

from engine.base import check, ops
from engine.base.types import Real


def m_d_1_wait_s(per_s: Real, service_s: Real) -> Real:
    """Mean wait for a server with fixed service time: ρ·S/(2·(1 − ρ)), ρ = rate·S below 1 (Pollaczek,
    Khinchine)."""
    check.positive(per_s=per_s, service_s=service_s)
    check.between(0, 1 - 1e-12, load=per_s * service_s)
    load = per_s * service_s
    return load * service_s / (2.0 * (1.0 - load))


def wait_within_s(per_s: Real, service_s: Real, late: Real = 0.1, spread: Real = 0.0) -> Real:
    """The wait that only the share ``late`` of the requests exceeds, at one server: (w/ρ)·ln(ρ/late). It
    treats the waits of those that wait at all, a share ρ, as exponential (exact for M/M/1; Kingman 1961 near
    ρ = 1).

    w is the mean wait of M/G/1; ``spread`` is the standard deviation of the service time's logarithm. Within
    a tenth of an executed queue for ρ from 0.5 on.
    """
    load = per_s * service_s
    mean_s = m_d_1_wait_s(per_s, service_s) * np.exp(spread**2)
    return np.maximum(0.0, mean_s / load * np.log(np.maximum(load, late) / late))


def prefill_rate(prefill_s: Real, ttft_s: Real) -> Real:
    """Requests per second that one replica can prefill with a mean wait that meets the target: S +
    ρ·S/(2(1−ρ)) = T, so ρ = 2(T−S)/(2(T−S)+S), and the rate is ρ/S (M/D/1). 0 where a prompt alone takes
    longer than the target."""
    check.positive(prefill_s=prefill_s, ttft_s=ttft_s)
    spare_s = ops.maximum(0.0, ttft_s - prefill_s)
    return 2.0 * spare_s / (2.0 * spare_s + prefill_s) / prefill_s


def prefill_rate_within(prefill_s: float, ttft_s: float, late: float = 0.1, spread: float = 0.0) -> float:
    """Requests per second that one replica can prefill so that, for all but the share ``late``, waiting and
    prefill stay within the target; by bisection on ``wait_within_s``. 0 if a prompt alone takes longer.
    Leaves out that the waiting prompt may itself be longer than the average."""
    check.positive(prefill_s=prefill_s, ttft_s=ttft_s)
    if prefill_s >= ttft_s:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(50):
        load = (low + high) / 2
        within = prefill_s + wait_within_s(load / prefill_s, prefill_s, late, spread) <= ttft_s
        low, high = (load, high) if within else (low, load)
    return low / prefill_s
