"""Measures how fast the processor is now, because shared machines are twice as slow at some hours as at
others."""

from __future__ import annotations

import time

QUIET_LOOP_MS = 4.0  # of a hundred thousand multiplications and sums in Python


def slowness() -> float:
    """How many times slower this processor is now than on a quiet day, at least 1. It depends on who else
    uses the machine."""
    took = []
    for _ in range(5):
        began, total = time.thread_time(), 0.0
        for i in range(100_000):
            total += i * 0.5
        took.append(1e3 * (time.thread_time() - began))
    return max(1.0, min(took) / QUIET_LOOP_MS)
