"""Numbers as JavaScript writes them."""

from __future__ import annotations

import math


def literal(value: float) -> str:
    """A number to the last bit; whole ones without their '.0'."""
    if not math.isfinite(value):
        raise ValueError(f"a constant of the widget is {value}: it would show as nonsense on the page")
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
