"""What a person types, read as a quantity: "1.12 TB", "1,120 GB", "3e8", "2 x 10^9", "$3M", "40 %", "14 days".

The way back from ``units``: each family takes the words that the formatter prints, and those that people write
instead. The page's script reads with these same tables and patterns (they are exported with it).
"""

from __future__ import annotations

import math
import re

from engine import units

LONGEST = 80    # characters; what is longer is no number that somebody typed

SPACE = "[ \t\u00a0\u2009\u202f]"
SUPERSCRIPT = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
SUPERSCRIPTS = f"[{''.join(SUPERSCRIPT)}]+"
GROUP = "[,_' \u00a0\u2009\u202f]"             # may part thousands; a comma is never a decimal point
_WHOLE = f"(?:[0-9]{{1,3}}(?:{GROUP}[0-9]{{3}})+(?![0-9])|[0-9]+)"
_POWER = r"(?:\^|\*\*)([+-]?[0-9]{1,4})"
# about, $, sign, then 2^30 or a number with e9 or x 10^9, then the unit
QUANTITY = (rf"{SPACE}*[~≈]?{SPACE}*(\$?){SPACE}*([+-]?)(?:(2|10){_POWER}|({_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)"
            rf"(?:[eE]([+-]?[0-9]{{1,4}})|{SPACE}*[x×*·]{SPACE}*10{_POWER})?){SPACE}*(.*?){SPACE}*")

_COUNTS = {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12,
           "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_MINUTE, _HOUR, _DAY, _YEAR = units.MINUTE, units.HOUR, units.DAY, units.YEAR
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


def _counted(*nouns: str) -> dict[str, float]:
    """'7B', '7 billion', '7B tokens', '7 tokens'."""
    named = {f"{word} {noun}": scale for word, scale in _COUNTS.items() for noun in nouns}
    return _COUNTS | named | dict.fromkeys(nouns, 1.0)


def _bits(per: tuple[str, ...], *ambiguous: str) -> dict[str, float | None]:
    """Gbit is bits. 'Gb' is bits to some and bytes to others: None, not to be read at all."""
    bits: dict[str, float | None] = {f"{prefix}bit{end}": scale / 8 for prefix, scale in _PREFIXES.items() for end in per}
    return bits | {f"{prefix}b{end}": None for prefix in "KMGTPE" for end in ambiguous}


# family -> what else it takes: word -> SI value of one, or None where the word could mean two things
ALSO: dict[str, dict[str, float | None]] = {
    "bytes": _bits(("", "s"), "") | {"byte": 1.0, "bytes": 1.0},
    "bytes_per_s": _bits(("/s",), "/s", "ps") | {f"{p}Bps": scale for p, scale in _PREFIXES.items()}
    | {"bytes/s": 1.0, "GiB/s": units.GIB, "MiB/s": units.MIB, "TiB/s": units.TIB},
    "flops": {f"{p}FLOPs": scale for p, scale in ({"": 1.0} | _PREFIXES | {"Z": 1e21, "Y": 1e24}).items()},
    "flops_per_s": {f"{p}{word}": scale for p, scale in ({"": 1.0} | _PREFIXES).items() for word in ("FLOPS", "FLOPs/s")},
    "flops_per_byte": dict.fromkeys(("FLOPs/B", "FLOP/byte", "FLOPs/byte", "FLOPs per byte", "FLOP per byte"), 1.0),
    "seconds": {"nanoseconds": 1e-9, "us": 1e-6, "μs": 1e-6, "microseconds": 1e-6, "milliseconds": 1e-3,
                "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "mins": _MINUTE, "minute": _MINUTE, "minutes": _MINUTE,
                "hr": _HOUR, "hrs": _HOUR, "hour": _HOUR, "hours": _HOUR, "GPU-hour": _HOUR, "GPU-hours": _HOUR, "GPU hours": _HOUR,
                "d": _DAY, "day": _DAY, "week": 7 * _DAY, "weeks": 7 * _DAY, "y": _YEAR, "yr": _YEAR, "year": _YEAR},
    "params": _counted("parameters", "params", "weights"),
    "tokens": _counted("token", "tokens"),
    "dollars": _counted("$", "dollars", "USD") | {"k$": 1e3, "M$": 1e6, "B$": 1e9},
    "count": _COUNTS,
    "percent": {"percent": 0.01, "per cent": 0.01, "pct": 0.01},
    "times": {"x": 1.0, "times": 1.0, "fold": 1.0, "-fold": 1.0},
}
TOGETHER = {"bytes": "bytes_binary", "bytes_binary": "bytes"}   # 80 GB or 80 GiB, whichever of them was asked for


def words(family: str) -> dict[str, float | None]:
    """Every word that may stand behind a number of this family, and what one of it is; "" is a number alone."""
    steps = units.FAMILIES[family]
    found: dict[str, float | None] = {"": steps[0][0] if len(steps) == 1 else 1.0}
    for each in (family, TOGETHER.get(family)):
        for scale, text in units.FAMILIES.get(each, ()):
            found.setdefault(text.strip(), scale)
            found.setdefault(text.split()[0] if text.strip() else "", scale)
    return found | {word: scale for each in (family, TOGETHER.get(family)) for word, scale in ALSO.get(each, {}).items()}


def scale_of(unit: str, family: str) -> float | None:
    """The SI value of one, as written or in any case; None for what the family does not take."""
    known = words(family)
    if unit in known:
        return known[unit]
    return next((scale for word, scale in known.items() if word.lower() == unit.lower()), None)


def split(text: str) -> tuple[float, str, str] | None:
    """(amount, unit, '$' or '') of a text, or None where there is no number in front."""
    if len(text) > LONGEST:
        return None
    text = text.replace("−", "-")
    plain = re.sub(SUPERSCRIPTS, lambda power: "^" + "".join(SUPERSCRIPT[digit] for digit in power[0]), text)
    found = re.fullmatch(QUANTITY, plain)
    if not found:
        return None
    dollar, sign, base, power, whole, exponent, of_ten, unit = (group or "" for group in found.groups())
    written = f"1e{power}" if base == "10" else f"{re.sub(GROUP, '', whole)}e{exponent or of_ten or 0}"
    amount = _power_of_two(int(power)) if base == "2" else float(written)
    return (-amount if sign == "-" else amount, unit, dollar) if amount < float("inf") else None


def _power_of_two(exponent: int) -> float:
    return 2.0**exponent if exponent < 1024 else float("inf")


def parse(text: str, family: str) -> float | None:
    """The quantity in SI; None where it is not one of this family, or could be two.

    A number alone is in the family's first unit: bytes, seconds, per cent.
    """
    found = split(text)
    if found is None or (found[2] and family != "dollars"):
        return None
    scale = scale_of(found[1], family)
    return None if scale is None or math.isinf(found[0] * scale) else found[0] * scale
