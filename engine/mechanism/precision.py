"""Number formats bit by bit: what a bit pattern means, which number is nearest, and how far away the next one
is.

A format has a sign bit, an exponent field and a mantissa field. An exponent field of 0 means a subnormal
number, mantissa times the smallest gap; otherwise the number is (1 + mantissa / 2^m) times a power of two.
Rounding goes to the nearest number and, on a tie, to the one whose last bit is 0. What rounds to more than
the largest number becomes infinity; E4M3, which has none, stops at its largest, as PyTorch does since 2.12
(pull request 178817; NaN before, which OFP8 also allows). Numbers to be rounded are doubles, which can
represent every number of these formats.

IEEE 754-2019, sections 3.4 and 4.3; OCP 8-bit Floating Point Specification (OFP8), revision 1.0, for the two
of 8 bits; NVIDIA's A100 white paper for TF32, which has 19 bits and is stored in 32.

The plain functions stay within the subset of Python that ``engine.base.program`` translates for the page; all
their arithmetic is with powers of two, so it is exact in doubles. ``m`` is the number of mantissa bits,
``lowest`` the smallest exponent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from engine.base import check
from engine.base.program import full, program
from engine.base.types import Real

ZERO, SUBNORMAL, NORMAL, INFINITE, NAN = range(5)  # kinds of a pattern
SIGN, EXPONENT, MANTISSA = range(3)  # what a bit is for
MOST_BITS, AROUND = 32, 2  # the longest pattern; neighbours to show on each side


@dataclass(frozen=True)
class Format:
    """A number format; sizes in bits as they are computed with (TF32: 19)."""

    key: str
    name: str
    exponent_bits: int
    mantissa_bits: int
    largest: float
    has_infinity: bool = True

    @property
    def bits(self) -> int:
        """Bits of one number: its sign, exponent and mantissa."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def stored_bytes(self) -> float:
        """Bytes in memory, where TF32 takes as many as fp32."""
        return 4.0 if self.bits > 16 else self.bits / 8

    @property
    def lowest_exponent(self) -> int:
        """The exponent of the smallest normal number: 1 less the bias."""
        return 2 - 2 ** (self.exponent_bits - 1)

    @property
    def smallest_normal(self) -> float:
        """The smallest number above zero with a full mantissa."""
        return 2.0**self.lowest_exponent

    @property
    def smallest(self) -> float:
        """The smallest number above zero, a subnormal; also the smallest gap."""
        return 2.0 ** (self.lowest_exponent - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """The gap above 1."""
        return 2.0**-self.mantissa_bits

    @property
    def half_gap_at_one(self) -> float:
        """The size that an update of a weight of 1 must exceed to change it."""
        return self.epsilon / 2

    @property
    def vanishing_octave(self) -> int:
        """The base-2 logarithm of half the smallest number: numbers up to there round to 0."""
        return self.lowest_exponent - self.mantissa_bits - 1

    @property
    def smallest_octave(self) -> int:
        """The exponent of the smallest number above zero, as a power of two."""
        return self.lowest_exponent - self.mantissa_bits

    @property
    def largest_octave(self) -> float:
        """The base-2 logarithm of the largest number."""
        return math.log2(self.largest)

    @property
    def range_octaves(self) -> float:
        """The number of doublings between the smallest number above zero and the largest."""
        return math.log2(self.largest / self.smallest)

    def round(self, x: float) -> float:
        """The number of this format that ``x`` becomes: nearest, ties to even; beyond the largest as in the
        module's docstring."""
        check.between(-1e300, 1e300, x=x)
        near = nearest(x, self.mantissa_bits, self.lowest_exponent)
        if abs(near) <= self.largest:
            return math.copysign(near, x)
        return math.copysign(math.inf if self.has_infinity else self.largest, x)

    def gap(self, x: float) -> float:
        """The distance between neighbouring numbers around ``x``."""
        check.between(-self.largest, self.largest, x=x)
        return gap_at(x, self.mantissa_bits, self.lowest_exponent)

    def encode(self, x: float) -> int:
        """The pattern of the nearest number, as an integer."""
        check.between(-1e300, 1e300, x=x)
        return int(
            encoded(x, self.bits, self.mantissa_bits, self.lowest_exponent, self.largest, self.has_infinity)
        )

    def decode(self, pattern: int) -> float:
        """The number that a pattern means."""
        check.whole(at_least=0, pattern=pattern)
        check.between(0, 2**self.bits - 1, pattern=pattern)
        sign, magnitude = divmod(int(pattern), 2 ** (self.bits - 1))
        kind = kind_of(magnitude, self.mantissa_bits, self.lowest_exponent, self.largest, self.has_infinity)
        number = {INFINITE: math.inf, NAN: math.nan}.get(
            kind, float(magnitude_value(magnitude, self.mantissa_bits, self.lowest_exponent))
        )
        return math.copysign(number, -1 if sign else 1)


FP32 = Format("fp32", "fp32", 8, 23, (2 - 2.0**-23) * 2.0**127)
TF32 = Format("tf32", "tf32", 8, 10, (2 - 2.0**-10) * 2.0**127)
BF16 = Format("bf16", "bf16", 8, 7, (2 - 2.0**-7) * 2.0**127)
FP16 = Format("fp16", "fp16", 5, 10, 65504.0)
E4M3 = Format(
    "e4m3", "fp8 E4M3", 4, 3, 448.0, has_infinity=False
)  # all ones is NaN, the other patterns are numbers
E5M2 = Format("e5m2", "fp8 E5M2", 5, 2, 57344.0)
FORMATS = (FP32, TF32, BF16, FP16, E4M3, E5M2)
_M, _LOWEST = tuple(f.mantissa_bits for f in FORMATS), tuple(f.lowest_exponent for f in FORMATS)
_LARGEST = tuple(f.largest for f in FORMATS)
DENSE, MOST_TICKS = 64, 800  # numbers on either side of a ruler that are still drawn one by one; all of them
OUT_OF_SIGHT = -9.0


def position(exponent_bits: Real, m: Real) -> Real:
    """The index in FORMATS of the format with these exponent and mantissa bits."""
    return sum(
        i * ((exponent_bits == f.exponent_bits) & (m == f.mantissa_bits)) for i, f in enumerate(FORMATS)
    )


# -- one number ----------------------------------------------------------------------------------------------
def exponent_of(x: Real) -> Real:
    """The e for which 2^e <= x < 2^(e+1), for x > 0. A logarithm may be off in its last bit; this is
    exact."""
    e = math.floor(math.log2(x))
    if 2.0 ** (e + 1) <= x:
        e = e + 1
    elif 2.0**e > x:
        e = e - 1
    return e


def gap_at(x: Real, m: Real, lowest: Real) -> Real:
    """The distance between neighbouring numbers around x: 2^(e - m), and below the normal numbers the same as
    at the smallest of them."""
    e = exponent_of(abs(x)) if x != 0 else lowest
    return 2.0 ** ((e if e > lowest else lowest) - m)


def nearest(x: Real, m: Real, lowest: Real) -> Real:
    """The nearest number of a format without a largest one; ties go to even."""
    gap = gap_at(x, m, lowest)
    return round(x / gap) * gap


def magnitude_code(size: Real, m: Real, lowest: Real) -> Real:
    """The pattern, without sign, of a number of the format. Patterns count the numbers upwards from 0."""
    if size == 0:
        return 0
    e = max(exponent_of(size), lowest)
    return (e - lowest) * 2.0**m + size / 2.0 ** (e - m)


def magnitude_value(code: Real, m: Real, lowest: Real) -> Real:
    """The number that a pattern without its sign stands for, if it stands for a number."""
    field = math.floor(code / 2.0**m)
    mantissa = code - field * 2.0**m
    if field == 0:
        return mantissa * 2.0 ** (lowest - m)
    return (2.0**m + mantissa) * 2.0 ** (field - 1 + lowest - m)


def encoded(x: Real, bits: Real, m: Real, lowest: Real, largest: Real, has_infinity: Real) -> Real:
    """The pattern of x including its sign. Infinity's pattern follows the largest number's."""
    size = magnitude_code(min(nearest(abs(x), m, lowest), 2.0 * largest), m, lowest)
    most = magnitude_code(largest, m, lowest) + (1 if has_infinity else 0)
    return min(size, most) + (2.0 ** (bits - 1) if x < 0 else 0)


def kind_of(code: Real, m: Real, lowest: Real, largest: Real, has_infinity: Real) -> Real:
    """Zero, subnormal, normal, infinite or NaN: the kind of a pattern without its sign."""
    beyond = code - magnitude_code(largest, m, lowest)
    if beyond > 0:
        return INFINITE if beyond == 1 and has_infinity else NAN
    if code == 0:
        return ZERO
    return SUBNORMAL if code < 2.0**m else NORMAL


def bit_of(code: Real, place: Real) -> Real:
    """The bit at a position, counted from 0 at the right."""
    return math.floor(code / 2.0**place) % 2


# -- what an explorer of formats shows -----------------------------------------------------------------------
@program(
    bit=MOST_BITS,
    role=MOST_BITS,
    turned=MOST_BITS,
    around=2 * AROUND + 1,
    around_kind=2 * AROUND + 1,
    place=2 * AROUND + 1,
    number=(),
    kind=(),
    gap=(),
    turns=(),
    pattern=(),
    fits=(),
    asked=(),
    seen=(),
    error=(),
)
def explored(
    value: Real, flips: Real, exponent_bits: Real, m: Real, largest: Real, has_infinity: Real
) -> dict[str, Any]:
    """The pattern of a number with some bits flipped (bit i of ``flips`` flips bit i), and its meaning
    afterwards.

    ``around`` are the neighbouring numbers, those nearer to 0 first; ``place`` gives their distance from it
    in gaps, and ``asked`` that of the original value, if it is in sight (``seen``). ``fits``: the value is
    within the range before any bit is flipped.
    """
    bits = int(1 + exponent_bits + m)
    lowest = 2 - 2.0 ** (exponent_bits - 1)
    code = encoded(value, bits, m, lowest, largest, has_infinity)
    bit, role, turned = full(bits, 0), full(bits, MANTISSA), full(bits, 0)
    pattern, turns = 0, 0
    for i in range(bits):
        place = bits - 1 - i
        turned[i] = bit_of(flips, place)
        bit[i] = abs(bit_of(code, place) - turned[i])
        pattern = pattern + bit[i] * 2.0**place
        turns = turns + turned[i]
        if i == 0:
            role[i] = SIGN
        elif i <= exponent_bits:
            role[i] = EXPONENT
    magnitude = pattern - bit[0] * 2.0 ** (bits - 1)
    kind = kind_of(magnitude, m, lowest, largest, has_infinity)
    size = magnitude_value(magnitude, m, lowest)
    sign, gap = 1 - 2 * bit[0], gap_at(size, m, lowest)
    around, around_kind, place = [], [], []
    for i in range(2 * AROUND + 1):
        there = magnitude + i - AROUND
        if kind <= NORMAL:
            beside = magnitude_value(abs(there), m, lowest) * (1 if there >= 0 else -1)
            what = kind_of(abs(there), m, lowest, largest, has_infinity)
            around.append(sign * beside if what <= NORMAL else math.nan)
            around_kind.append(what)
            place.append((beside - size) / gap)
    asked = (value * sign - size) / gap
    seen = kind <= NORMAL and abs(asked) <= AROUND
    number = sign * size
    return {
        "bit": bit,
        "role": role,
        "turned": turned,
        "around": around,
        "around_kind": around_kind,
        "place": place,
        "number": number,
        "kind": kind,
        "gap": gap,
        "turns": turns,
        "pattern": pattern,
        "fits": 1 if abs(nearest(value, m, lowest)) <= largest else 0,
        "asked": asked if seen else 0.0,
        "seen": 1 if seen else 0,
        "error": number / value - 1 if value != 0 else 0.0,
    }


@program(size=len(FORMATS), error=len(FORMATS), kind=len(FORMATS))
def in_every_format(value: Real) -> dict[str, Any]:
    """A number in each format, the relative error (0 for a zero), and its kind; both NaN where it exceeds the
    largest."""
    size, error, kind = full(len(_M), 0), full(len(_M), 0), full(len(_M), 0)
    for i in range(len(_M)):
        near = nearest(value, _M[i], _LOWEST[i])
        over = abs(near) > _LARGEST[i]
        size[i] = math.nan if over else near
        error[i] = size[i] / value - 1 if value != 0 else 0.0
        kind[i] = (
            INFINITE
            if over
            else ZERO
            if near == 0
            else SUBNORMAL
            if abs(near) < 2.0 ** _LOWEST[i]
            else NORMAL
        )
    return {"size": size, "error": error, "kind": kind}


@program(place=MOST_TICKS, row=MOST_TICKS, start=len(FORMATS), end=len(FORMATS), near=len(FORMATS), reach=())
def ruler(value: Real, m: Real, lowest: Real) -> dict[str, Any]:
    """The numbers of each format around a number, on one linear scale from −1 to 1. Around a number below
    zero it is the mirror image of the scale around its absolute value.

    The scale reaches ``reach`` to either side: one and a half gaps of the format with ``m`` and ``lowest``,
    and at least of one with two mantissa bits. ``place`` and ``row`` are the numbers and the indices of their
    formats; formats with more than DENSE numbers in the reach have a line instead, from ``start`` to ``end``
    (the same where there is none). ``near`` is the nearest number, or OUT_OF_SIGHT.
    """
    sign = -1.0 if value < 0 else 1.0
    value = abs(value)
    coarse = 2.0 ** (exponent_of(value) - 2) if value > 0 else 0.0
    own = gap_at(value, m, lowest)
    reach = 1.5 * (own if own > coarse else coarse)
    place, row = [], []
    start, end, near = full(len(_M), 0.0), full(len(_M), 0.0), full(len(_M), OUT_OF_SIGHT)
    for i in range(len(_M)):
        close, most = nearest(value, _M[i], _LOWEST[i]), 1.0 * _LARGEST[i]
        if close <= most and abs(close - value) <= reach:
            near[i] = sign * (close - value) / reach
        if gap_at(value, _M[i], _LOWEST[i]) * DENSE < reach:
            if most > value - reach:
                upper = 1.0 if most > value + reach else (most - value) / reach
                start[i] = -1.0 if sign > 0 else -upper
                end[i] = upper if sign > 0 else 1.0
        else:
            code = magnitude_code(close if close < most else most, _M[i], _LOWEST[i])
            while signed_value(code, _M[i], _LOWEST[i]) >= value - reach:
                code = code - 1
            code = code + 1
            there = signed_value(code, _M[i], _LOWEST[i])
            while there <= value + reach and there <= most:
                place.append(sign * (there - value) / reach)
                row.append(i)
                code = code + 1
                there = signed_value(code, _M[i], _LOWEST[i])
    return {"place": place, "row": row, "start": start, "end": end, "near": near, "reach": reach}


def signed_value(code: Real, m: Real, lowest: Real) -> Real:
    """The number of a pattern that counts from 0 in both directions."""
    return magnitude_value(abs(code), m, lowest) * (1 if code >= 0 else -1)
