"""The rules of lessons 13 and 14: what a layer keeps, as recorded, and what rounding loses, executed."""

from __future__ import annotations

import math
from collections.abc import Callable

from engine.mechanism import precision
from engine.mechanism.precision import Format
from engine.one_gpu import traces
from engine.rules.held import HeldRule

SIZES = {"seq": (512, 2048, 8192), "batch": (1, 4), "hidden": (4096, 12288), "heads": (32, 96)}
DIVIDES = "512 to 8,192 tokens, one or four sequences, and widths of 4,096 and 12,288"
NARROW = (precision.BF16, precision.FP16, precision.E4M3, precision.E5M2)
HALVINGS = 60  # enough to narrow an interval down to rounding


def edge(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """The value at which ``holds`` turns from true (at ``low``) to false (at ``high``)."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# -- lesson 13 -----------------------------------------------------------------------------------------------
def kept_bytes(seq: int, batch: int, hidden: int, heads: int) -> float:
    """The rule's bytes that a layer keeps: s·b·h·(34 + 5·a·s/h)."""
    return seq * batch * hidden * (34 + 5 * heads * seq / hidden)


def kept_bytes_fused(seq: int, batch: int, hidden: int, heads: int) -> float:
    """The rule's bytes that a layer with fused attention keeps: s·b·(34·h + 4·a)."""
    return seq * batch * (34 * hidden + 4 * heads)


def heads_divide(hidden: int, heads: int, **rest: int) -> bool:
    """True if each head has 128 values, as in GPT-3."""
    return hidden == 128 * heads


# -- lesson 14 -----------------------------------------------------------------------------------------------
def half_gap(kind: Format, weight: float, up: bool) -> float:
    """Half of the gap between the weight and its neighbour on the side of the update. At a power of two the
    gap towards 0 is half as wide."""
    exponent = math.floor(math.log2(weight))
    if not up and weight == 2.0**exponent:
        exponent -= 1
    return 2.0 ** (exponent - kind.mantissa_bits - 1)


def largest_lost(kind: Format, weight: float, up: bool) -> float:
    """The largest update that leaves the weight where it was, when each sum is rounded."""
    sign = 1 if up else -1
    return edge(0.0, weight / 2, lambda update: kind.round(weight + sign * update) == weight)


def largest_vanishing(kind: Format, scale: float) -> float:
    """The largest gradient that becomes 0, when each is scaled and rounded."""
    return edge(0.0, 4 * kind.smallest / scale, lambda gradient: kind.round(gradient * scale) == 0)


def largest_finite(kind: Format, scale: float) -> float:
    """The largest gradient that stays finite, when each is scaled and rounded."""
    return edge(0.0, 4 * kind.largest / scale, lambda gradient: math.isfinite(kind.round(gradient * scale)))


RULES = (
    HeldRule(
        "13-pytorch-internals",
        "rule-a-layer-keeps-what-its-formulas-mention",
        kept_bytes,
        lambda **sizes: traces.layer_kept_bytes(**sizes, written_out=True),
        SIZES,
        DIVIDES,
        "what a recorded GPT layer saves, tensor by tensor, with attention written out",
        7e-5,
        claims=heads_divide,
    ),
    HeldRule(
        "13-pytorch-internals",
        "rule-a-layer-keeps-what-its-formulas-mention",
        kept_bytes_fused,
        lambda **sizes: traces.layer_kept_bytes(**sizes, written_out=False),
        SIZES,
        "the same sizes",
        "the same layer with fused attention",
        1e-4,
        because="What is left are the norms' means and deviations.",
        claims=heads_divide,
    ),
    HeldRule(
        "14-mixed-precision",
        "rule-an-update-under-half-a-gap-is-lost",
        half_gap,
        largest_lost,
        {"kind": NARROW, "weight": (0.03125, 0.75, 1.0, 1.5, 20.0), "up": (True, False)},
        "bf16, fp16 and both fp8 formats, five weights and updates either way",
        "the largest update that rounding loses, executed",
        claims=lambda kind, weight, up: kind.round(weight) == weight,
    ),
    HeldRule(
        "14-mixed-precision",
        "rule-a-loss-scale-moves-gradients-into-the-window",
        lambda kind, scale: kind.smallest / 2 / scale,
        largest_vanishing,
        {"kind": NARROW, "scale": (1.0, 8.0, 1024.0, 65536.0)},
        "scales of 1 to 65,536 in bf16, fp16 and both fp8 formats",
        "the largest gradient that becomes 0, each scaled and rounded",
    ),
    HeldRule(
        "14-mixed-precision",
        "rule-a-loss-scale-moves-gradients-into-the-window",
        lambda kind, scale: kind.largest / scale,
        largest_finite,
        {"kind": NARROW, "scale": (1.0, 8.0, 1024.0, 65536.0)},
        "the same, without E4M3, which has no infinity",
        "the largest gradient that stays finite",
        0.1,
        because="What is less than half a gap above the largest number is rounded down to it.",
        claims=lambda kind, scale: kind.has_infinity,
    ),
)
