"""Checks whether something is computed in time, on a machine that other programs use as well."""

import math
from collections.abc import Callable, Mapping

from bench import processor

BUSY = 2  # times the budget may be used, because other programs may share the processor's cores
ROUNDS = 3


def too_slow(
    measured_ms: Callable[[], Mapping[str, float]], budgets_ms: Mapping[str, float]
) -> dict[str, float]:
    """Name -> how many times its budget it took, of all that took more than ``BUSY`` budgets.

    ``measured_ms`` gives processor time. It is held against a loop of known length, since the processor may
    be slow at that hour. What is over is measured twice more, and the quickest counts: another program may
    have had the other half of the core.
    """
    times = dict.fromkeys(budgets_ms, math.inf)
    for _ in range(ROUNDS):
        slowness = processor.slowness()
        for name, took_ms in measured_ms().items():
            times[name] = min(times[name], took_ms / (slowness * budgets_ms[name]))
        if max(times.values()) <= BUSY:
            break
    return {name: time for name, time in times.items() if time > BUSY}
