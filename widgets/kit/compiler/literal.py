"""Numbers and names as JavaScript writes them."""

from __future__ import annotations

import math

MOST_WHOLE = 2**53  # up to here every whole number is exact in a double
# words that JavaScript keeps for itself, and the values that it has under a name
WORDS = (
    "arguments await break case catch class const continue debugger default delete do else enum eval export "
    "extends false finally for function get if implements import in instanceof interface let new null of "
    "package private protected public return set static super switch this throw true try typeof undefined "
    "var void while with yield Infinity NaN"
)
RESERVED = frozenset(WORDS.split())


def literal(value: float) -> str:
    """A number to the last bit; whole numbers without '.0'."""
    if not math.isfinite(value):
        raise ValueError(f"a constant of the widget is {value}: it would show as nonsense on the page")
    if value == 0 and math.copysign(1, value) < 0:
        return "-0"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
