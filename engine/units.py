"""Scales and their text. Inside the engine everything is SI; this is the only place that turns a number into words.

Two ways in: ``human(value, "bytes")`` picks the scale by itself, ``in_unit(value, "TB")`` keeps the one asked for.
The browser formats with the same tables (they are exported with each page), so both print the same characters.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

MINUTE, HOUR, DAY, YEAR = 60.0, 3600.0, 86400.0, 365.25 * 86400.0
KIB, MIB, GIB, TIB = 2.0**10, 2.0**20, 2.0**30, 2.0**40
TRILLION = 1e12


def _decimal(suffix: str, prefixes: str, start: float = 1.0) -> list[tuple[float, str]]:
    """[(1, ' B'), (1e3, ' kB'), ...]: one step of a thousand for each prefix; '_' stands for none."""
    return [(start * 1000.0**i, " " + (p if p != "_" else "") + suffix) for i, p in enumerate(prefixes)]


# family -> ascending (scale, text behind the number); a text before the number stands under PREFIX
FAMILIES: dict[str, list[tuple[float, str]]] = {
    "bytes": _decimal("B", "_kMGTPE"),
    "bytes_binary": [(1.0, " B"), (KIB, " KiB"), (MIB, " MiB"), (GIB, " GiB"), (TIB, " TiB")],
    "bytes_per_s": _decimal("B/s", "_kMGTP"),
    "flops": _decimal("FLOP", "_kMGTPEZY"),
    "flops_per_s": _decimal("FLOP/s", "_kMGTPE"),
    "flops_per_byte": [(1.0, " FLOP/B")],
    "seconds": [(1e-9, " ns"), (1e-6, " µs"), (1e-3, " ms"), (1.0, " s"), (MINUTE, " min"), (HOUR, " h"),
                (DAY, " days"), (YEAR, " years")],
    "params": [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "B"), (1e12, "T")],
    "tokens": [(1.0, " tokens"), (1e3, "k tokens"), (1e6, "M tokens"), (1e9, "B tokens"), (1e12, "T tokens")],
    "dollars": [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "B")],
    "count": [(1.0, "")],
    "real": [(1.0, "")],        # any number: with its power of ten where that is far from 0
    "percent": [(0.01, " %")],
    "times": [(1.0, "×")],
    "watts": _decimal("W", "_kM"),
}
PREFIX = {"dollars": "$"}
ONE = {" days": " day", " years": " year", " tokens": " token", " GPU-hours": " GPU-hour"}  # how a unit in the plural reads after a 1

# a unit that can be asked for by name -> (SI value of one, text behind the number)
UNITS: dict[str, tuple[float, str]] = {
    text.strip(): (scale, text) for family in ("params", "bytes", "bytes_binary", "bytes_per_s", "flops", "flops_per_s",
                                               "flops_per_byte", "seconds", "tokens", "percent", "times", "watts")
    for scale, text in FAMILIES[family] if text.strip() and not (family == "params" and text == "B")
}
UNITS |= {"GPU-hours": (HOUR, " GPU-hours"), "billion": (1e9, " billion"), "$": (1.0, ""), "k$": (1e3, "k"), "M$": (1e6, "M")}


def round_significant(value: float, digits: int = 3) -> float:
    """The value rounded to so many significant digits; exact ties go away from zero, as browsers have it."""
    if not math.isfinite(value):
        raise ValueError(f"value must be finite to be shown, got {value!r}")
    exact = Decimal(float(value))
    return float(exact.quantize(Decimal((0, (1,), exact.adjusted() - digits + 1)), ROUND_HALF_UP)) if exact else 0.0


def number(value: float, digits: int = 3) -> str:
    """A plain number: so many significant digits, whole with thousands separators from 1,000 up."""
    rounded = round_significant(value, digits)
    if rounded == 0:
        return "0"
    if abs(rounded) >= 1e15:
        mantissa, exponent = f"{rounded:.{digits - 1}e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    if abs(rounded) >= 1000:
        return f"{math.floor(value + 0.5):,}".replace("-", "−")
    if abs(rounded) < 1e-3:
        return "under 0.001" if value > 0 else "about −0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def real(value: float, digits: int = 3) -> str:
    """A number that may be tiny or huge: 0.1 -> '0.1', 1.4e-45 -> '1.4e−45'."""
    rounded = round_significant(value, digits)
    if rounded == 0 or 1e-3 <= abs(rounded) < 1e6:
        return number(value, digits)
    shortest = Decimal(repr(rounded)).normalize()
    return f"{shortest:e}".replace("e+", "e").replace("-", "−")


def human(value: float, family: str, digits: int = 3) -> str:
    """The value in the largest scale of its family that leaves at least 1 in front: 1.12e12 bytes -> '1.12 TB'."""
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}; got {family!r}")
    if family == "real":
        return real(value, digits)
    scale, text = FAMILIES[family][0]
    for candidate in FAMILIES[family]:
        if abs(round_significant(value / candidate[0], digits)) >= 1:
            scale, text = candidate
    if value == 0 and family == "seconds":
        scale, text = 1.0, " s"
    return PREFIX.get(family, "") + _counted(number(value / scale, digits), text)


def _counted(amount: str, text: str) -> str:
    """A number and the unit behind it: '2 days', '1 day'."""
    return amount + (ONE.get(text, text) if amount == "1" else text)


def plain(value: float, _unit: str = "", _digits: int = 0) -> str:
    """A whole number in digits alone, as other programs read it: 8,192 -> '8192'."""
    return f"{math.floor(value + 0.5)}"


def in_unit(value: float, unit: str, digits: int = 3) -> str:
    """The value in the unit asked for: in_unit(1.12e12, 'GB') -> '1,120 GB'."""
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(UNITS)}; got {unit!r}")
    scale, text = UNITS[unit]
    return ("$" if "$" in unit else "") + _counted(number(value / scale, digits), text)
