"""Units and number formatting. Inside the engine everything is SI; this is the only module that turns a
number into text.

There are two ways: ``human(value, "bytes")`` picks the scale itself, ``in_unit(value, "TB")`` keeps the one
you name. The browser formats with the same tables (they are exported with each page), so both print the same
characters.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal

MINUTE, HOUR, DAY, YEAR = 60.0, 3600.0, 86400.0, 365.25 * 86400.0
KIB, MIB, GIB, TIB = 2.0**10, 2.0**20, 2.0**30, 2.0**40


def _decimal(suffix: str, prefixes: str, start: float = 1.0) -> list[tuple[float, str]]:
    """[(1, ' B'), (1e3, ' kB'), ...]: each prefix is a thousand times the one before; '_' means no prefix."""
    return [(start * 1000.0**i, " " + (p if p != "_" else "") + suffix) for i, p in enumerate(prefixes)]


# family -> ascending (scale, text after the number); a text before the number is listed under PREFIX
FAMILIES: dict[str, list[tuple[float, str]]] = {
    "bytes": _decimal("B", "_kMGTPE"),
    "bytes_binary": [(1.0, " B"), (KIB, " KiB"), (MIB, " MiB"), (GIB, " GiB"), (TIB, " TiB")],
    "bytes_per_s": _decimal("B/s", "_kMGTP"),
    "flops": _decimal("FLOP", "_kMGTPEZY"),
    "flops_per_s": _decimal("FLOP/s", "_kMGTPE"),
    "flops_per_byte": [(1.0, " FLOP/B")],
    "seconds": [
        (1e-9, " ns"),
        (1e-6, " µs"),
        (1e-3, " ms"),
        (1.0, " s"),
        (MINUTE, " min"),
        (HOUR, " h"),
        (DAY, " days"),
        (YEAR, " years"),
    ],
    "params": [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "B"), (1e12, "T")],
    "tokens": [(1.0, " tokens"), (1e3, "k tokens"), (1e6, "M tokens"), (1e9, "B tokens"), (1e12, "T tokens")],
    "dollars": [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "B")],
    "count": [(1.0, "")],
    "real": [(1.0, "")],  # any number: with its power of ten where that is far from 0
    "percent": [(0.01, " %")],
    "times": [(1.0, "×")],
    "watts": _decimal("W", "_kM"),
}
PREFIX = {"dollars": "$"}
ONE = {
    " days": " day",
    " years": " year",
    " tokens": " token",
    " GPU-hours": " GPU-hour",
}  # the singular of each plural unit, used after a 1

LEAST_FACTOR, LARGEST_SHARE, MANY = 0.1, 10.0, 1e4  # where per cent begin, × and powers of ten
POWERS = dict(zip("0123456789-+", [*"⁰¹²³⁴⁵⁶⁷⁸⁹⁻", ""]))  # the signs of an exponent
DIGITS = {power: digit for digit, power in POWERS.items() if power}

# a unit, by the name by which it can be asked for -> (SI value of one, text behind the number)
UNITS: dict[str, tuple[float, str]] = {
    text.strip(): (scale, text)
    for family in (
        "params",
        "bytes",
        "bytes_binary",
        "bytes_per_s",
        "flops",
        "flops_per_s",
        "flops_per_byte",
        "seconds",
        "tokens",
        "percent",
        "times",
        "watts",
    )
    for scale, text in FAMILIES[family]
    if text.strip() and not (family == "params" and text == "B")
}
UNITS |= {
    "Gb/s": (1e9 / 8, " Gb/s"),  # as links are sold: bits
    "GPU-hours": (HOUR, " GPU-hours"),
    "billion": (1e9, " billion"),
    "$": (1.0, ""),
    "k$": (1e3, "k"),
    "M$": (1e6, "M"),
}


# A number, a space and a unit, between which a line must not break. Browsers use the same pattern.
_WORDS = {re.escape(text.strip()) for _, text in UNITS.values() if text.strip()}
BEFORE_UNIT = rf"(\d) (?=(?:{'|'.join(sorted(_WORDS, key=lambda word: (-len(word), word)))})(?![A-Za-z]))"


def tables() -> dict:
    """Everything the page needs to write numbers exactly as this module does."""
    return {
        "FAMILIES": FAMILIES,
        "PREFIX": PREFIX,
        "ONE": ONE,
        "UNITS": UNITS,
        "LEAST_FACTOR": LEAST_FACTOR,
        "LARGEST_SHARE": LARGEST_SHARE,
        "MANY": MANY,
        "POWERS": POWERS,
        "BEFORE_UNIT": BEFORE_UNIT,
    }


def unbroken(text: str) -> str:
    """The text as a page shows it, with no line break between a number and its unit. Elsewhere texts keep the
    plain space, so that they can be searched, compared and typed."""
    return re.sub(BEFORE_UNIT, "\\1\u00a0", text)


def round_significant(value: float, digits: int = 3) -> float:
    """The value rounded to this many significant digits; exact ties go away from zero, as in browsers."""
    if not math.isfinite(value):
        raise ValueError(f"value must be finite to be shown, got {value!r}")
    value = float(value)
    if f"{value:.{digits}e}".partition("e")[0][-1] != "5":  # no tie: Python rounds as browsers do, and soon
        return float(f"{value:.{digits - 1}e}") or 0.0
    exact = Decimal(value)
    return float(exact.quantize(Decimal((0, (1,), exact.adjusted() - digits + 1)), ROUND_HALF_UP))


def number(value: float, digits: int = 3) -> str:
    """A plain number with this many significant digits; from 1,000 up it is whole, with thousands
    separators."""
    rounded = round_significant(value, digits)
    if rounded == 0:
        return "0"
    if abs(rounded) >= 1e15:
        return _power_of_ten(rounded)
    if abs(rounded) >= 1000:
        return f"{math.floor(value + 0.5):,}".replace("-", "−")
    if abs(rounded) < 1e-3:
        return "under 0.001" if value > 0 else "about −0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def real(value: float, digits: int = 3) -> str:
    """A number that may be tiny or huge: 0.1 -> '0.1', 1.4e-45 -> '1.4·10⁻⁴⁵'."""
    rounded = round_significant(value, digits)
    if rounded == 0 or 1e-3 <= abs(rounded) < 1e6 or is_round_in_binary(value):
        return number(value, digits)
    return _power_of_ten(rounded)


def _power_of_ten(rounded: float) -> str:
    """A number in as few digits as it needs, and its power of ten."""
    digits, exponent = f"{Decimal(repr(rounded)).normalize():e}".split("e")
    sign_and_times = {"1": "", "-1": "−"}.get(digits, f"{digits.replace('-', '−')}·")
    return f"{sign_and_times}10{''.join(POWERS[sign] for sign in exponent)}"


def is_round_in_binary(value: float) -> bool:
    """Whether a number is round in binary: a power of two from 1,024 to 2²⁴, or up to fifteen times a power
    of two if that is at most 2²⁰. Such a number is known by all its digits: 8,192, not 8.19k."""
    if not 2**10 <= abs(value) <= 2**24 or value % 1:
        return False
    whole = int(abs(value))
    return whole // (whole & -whole) < (16 if whole <= 2**20 else 2)


def human(value: float, family: str, digits: int = 3) -> str:
    """The value in the largest scale of its family that leaves at least 1 in front: 1.12e12 bytes -> '1.12
    TB'. A factor under 0.1 is told as a share, '3.51 %', and a share of a thousand per cent as a factor."""
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}; got {family!r}")
    if not math.isfinite(value):
        raise ValueError(f"value must be finite to be shown, got {value!r}")
    if family == "real":
        return real(value, digits)
    if family in ("times", "percent"):
        size = abs(round_significant(value, digits))
        if family == "times" and 0 < size < LEAST_FACTOR:
            family = "percent"
        elif family == "percent" and size >= LARGEST_SHARE:
            family = "times"
        if family == "times" and size >= MANY:
            return _power_of_ten(round_significant(value, digits)) + FAMILIES[family][0][1]
    if family == "tokens" and is_round_in_binary(value):
        return number(value) + FAMILIES[family][0][1]
    scale, text = FAMILIES[family][0]
    for candidate in FAMILIES[family][1:]:
        if not _leaves_one(abs(value / candidate[0]), digits):
            break
        scale, text = candidate
    if value == 0 and family == "seconds":
        scale, text = 1.0, " s"
    return _priced(_counted(number(value / scale, digits), text), PREFIX.get(family, ""))


def _leaves_one(size: float, digits: int) -> bool:
    """Whether a size, once rounded, is written as at least 1."""
    return size >= 1 or (size > 0.9 and round_significant(size, digits) >= 1)


def _priced(text: str, sign: str) -> str:
    """An amount with its currency sign before the first digit: '−$3', 'under $0.001'."""
    if not sign:
        return text
    first = next(at for at, letter in enumerate(text) if letter in "0123456789")
    return text[:first] + sign + text[first:]


def _counted(amount: str, text: str) -> str:
    """A number with its unit, singular after a 1: '2 days', '1 day'."""
    return amount + (ONE.get(text, text) if amount == "1" else text)


def plain(value: float, _unit: str = "", _digits: int = 0) -> str:
    """A whole number in bare digits, as other programs read it: 8,192 -> '8192'."""
    return f"{math.floor(value + 0.5)}"


def in_unit(value: float, unit: str, digits: int = 3) -> str:
    """The value as a text in the named unit, as '1,120 GB' for 1.12e12 bytes."""
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}; got {unit!r}")
    scale, text = UNITS[unit]
    return _priced(_counted(number(value / scale, digits), text), "$" if "$" in unit else "")
