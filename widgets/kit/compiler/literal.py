"""Numbers as JavaScript writes them."""

from __future__ import annotations

import math

MOST_WHOLE = 2**53  # up to here every whole number is exact in a double


def literal(value: float) -> str:
    """A number to the last bit; whole numbers without '.0'."""
    if not math.isfinite(value):
        raise ValueError(f"a constant of the widget is {value}: it would show as nonsense on the page")
    if value == 0 and math.copysign(1, value) < 0:
        return "-0"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
