"""Quantities as people type them: "1.12 TB", "1,120 GB", "3e8", "2 x 10^9", "$1.2M", "1/8", "3 days 4 h".

``parse(text, unit)`` is all that a caller needs::

    parse("96.6 Gbit/s", "GB/s").value  -> 12.075e9     in SI, whatever the unit
    parse("80", "GB").value             -> 80e9         a number without a unit is in the expected one
    parse("7 bananas", "GB").value      -> None
    parse("7 bananas", "GB").refused    -> "“bananas” is no unit that is known here; this needs …"

The unit is a name in ``units.UNITS`` ("GB", "days", "%"), "share" (where 0.732 means 73.2 %; with "%" it
means 0.732 %), or a family ("bytes", "count"). For a family, a number without a unit is in its first unit:
bytes, seconds, per cent. A ``label`` says what the quantity is: its words may follow a number that counts
something, as in "3 H100s".

A reading also says how precise it is: ``half`` is half a unit of the last digit typed, because "8.19k" means
8,190 give or take 5. A number without a unit (``bare``) may be meant in another unit than the expected one.
Only the caller can tell which fits, so the page's ``fitting`` tries them in turn.

This is the inverse of ``units``: each family accepts the words that the formatter prints, and those that
people write instead. The page reads with the same tables and patterns, which are exported with it
(site/theme/assets/widget/typed.js); a fuzz test compares the two.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from engine.base import units

LONGEST = 80  # characters; nobody types a longer number

SPACE = "[ \t\u00a0\u2009\u202f]"
EMPTY = "[ \t\r\n\u00a0\u2009\u202f]*"
SUPERSCRIPT = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
SUPERSCRIPTS = f"[{''.join(SUPERSCRIPT)}]+"
GROUP = "[,_' \u00a0\u2009\u202f]"  # may separate thousands; a comma is never a decimal point
_WHOLE = f"(?:[0-9]{{1,3}}(?:{GROUP}[0-9]{{3}})+(?![0-9])|[0-9]+)"
_DECIMAL = rf"{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+"
_POWER = r"(?:\^|\*\*)([+-]?[0-9]{1,4})"
# sign, about, $, then 0x3E9A, 2^30, 1/8 or a number with e9 or x 10^9, then the unit
QUANTITY = (
    rf"{SPACE}*[~≈]?{SPACE}*([+-]?){SPACE}*(\$?){SPACE}*([+-]?)"
    rf"(?:(0[xX][0-9a-fA-F]+|0[bB][01]+)(?![0-9A-Za-z])|(2|10){_POWER}"
    rf"|({_DECIMAL}){SPACE}*[/⁄]{SPACE}*({_DECIMAL})"
    rf"|({_DECIMAL})(?:[eE]([+-]?[0-9]{{1,4}})|{SPACE}*[x×*·]{SPACE}*10{_POWER})?)"
    rf"{SPACE}*([^\n\r\u2028\u2029]*?){SPACE}*"
)
TERM = rf"([0-9]+(?:\.[0-9]+)?){SPACE}*([A-Za-zµμ]+)"
COMPOUND = rf"{SPACE}*[~≈]?{SPACE}*{TERM}(?:{SPACE}*(?:,|and)?{SPACE}*{TERM})+{SPACE}*"  # 3 days 4 h
ANOTHER = r"(?:^|[^A-Za-z0-9^.])[+-]?[0-9]"  # a second number in the text after the first
COMMA, BROKEN = "^,[0-9]", "^[,.'0-9]"
NO_NUMBER = f"{EMPTY}([+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)){EMPTY}"
WORD = "[A-Za-z0-9]+"
PHRASE = r"[A-Za-z0-9 ./'-]+"

_COUNTS: dict[str, float | None] = {
    "k": 1e3,
    "M": 1e6,
    "B": 1e9,
    "T": 1e12,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
}
_MINUTE, _HOUR, _DAY, _YEAR = units.MINUTE, units.HOUR, units.DAY, units.YEAR
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SHARES: dict[str, float | None] = {"%": 0.01, "percent": 0.01, "per cent": 0.01, "pct": 0.01}
_FACTORS: dict[str, float | None] = {"×": 1.0, "x": 1.0, "times": 1.0, "fold": 1.0, "-fold": 1.0}


def _counted(*nouns: str) -> dict[str, float | None]:
    """The units of a count: '7B', '7 billion', '7B tokens', '7 tokens'."""
    named: dict[str, float | None] = {
        f"{word} {noun}": scale for word, scale in _COUNTS.items() for noun in nouns
    }
    return _COUNTS | named | dict.fromkeys(nouns, 1.0)


def _rates() -> dict[str, float | None]:
    """The units of a rate. A big B is bytes and a small one bits, as links are sold: 50 GB/s is 400 Gb/s."""
    found: dict[str, float | None] = {"bytes/s": 1.0, "bit/s": 1 / 8, "bits/s": 1 / 8, "bps": 1 / 8}
    for prefix, scale in ({"K": 1e3} | _PREFIXES).items():
        found |= {f"{prefix}{end}": scale for end in ("B/s", "Bps", "B/sec", "byte/s", "bytes/s")}
        found |= {f"{prefix}{end}": scale / 8 for end in ("b/s", "bps", "b/sec", "bit/s", "bits/s")}
        found[f"{prefix.lower()}bps"] = scale / 8
    return found | {"KiB/s": units.KIB, "MiB/s": units.MIB, "GiB/s": units.GIB, "TiB/s": units.TIB}


def _amounts() -> dict[str, float | None]:
    """The units of an amount. Gbit is bits; 'Gb' is bits to some and bytes to others, so it maps to None and
    is refused."""
    found: dict[str, float | None] = {"byte": 1.0, "bytes": 1.0, "bit": 1 / 8, "bits": 1 / 8}
    for prefix, scale in _PREFIXES.items():
        found |= {f"{prefix}bit{end}": scale / 8 for end in ("", "s")}
    return found | {f"{prefix}b": None for prefix in "KMGTPE"}


# family -> what else it accepts: word -> SI value of one, or None where the word could mean two things
ALSO: dict[str, dict[str, float | None]] = {
    "bytes": _amounts(),
    "bytes_per_s": _rates(),
    "flops": {f"{p}FLOPs": scale for p, scale in ({"": 1.0} | _PREFIXES | {"Z": 1e21, "Y": 1e24}).items()},
    "flops_per_s": {
        f"{p}{word}": scale for p, scale in ({"": 1.0} | _PREFIXES).items() for word in ("FLOPS", "FLOPs/s")
    },
    "flops_per_byte": dict.fromkeys(
        ("FLOPs/B", "FLOP/byte", "FLOPs/byte", "FLOPs per byte", "FLOP per byte"), 1.0
    ),
    "seconds": {
        "nanoseconds": 1e-9,
        "us": 1e-6,
        "μs": 1e-6,
        "microseconds": 1e-6,
        "milliseconds": 1e-3,
        "sec": 1.0,
        "secs": 1.0,
        "second": 1.0,
        "seconds": 1.0,
        "mins": _MINUTE,
        "minute": _MINUTE,
        "minutes": _MINUTE,
        "hr": _HOUR,
        "hrs": _HOUR,
        "hour": _HOUR,
        "hours": _HOUR,
        "GPU-hour": _HOUR,
        "GPU-hours": _HOUR,
        "GPU hours": _HOUR,
        "d": _DAY,
        "day": _DAY,
        "week": 7 * _DAY,
        "weeks": 7 * _DAY,
        "y": _YEAR,
        "yr": _YEAR,
        "year": _YEAR,
    },
    "params": _counted("parameters", "params", "weights"),
    "tokens": _counted("token", "tokens"),
    "dollars": _counted("$", "dollars", "USD") | {"k$": 1e3, "M$": 1e6, "B$": 1e9},
    "count": _COUNTS | _SHARES | _FACTORS,
    "real": _COUNTS | _SHARES | _FACTORS,
    "percent": _SHARES | _FACTORS,
    "times": _FACTORS | _SHARES,
    "watts": {"mW": None},
}
TOGETHER = {
    "bytes": "bytes_binary",
    "bytes_binary": "bytes",
}  # 80 GB or 80 GiB, whichever of them was asked for

# how a refusal describes each family. The first family that knows a unit says what the unit is, so k is a
# number before it is money
KINDS = {
    "bytes": "an amount of data",
    "bytes_binary": "an amount of data",
    "seconds": "a time",
    "bytes_per_s": "a bandwidth",
    "flops": "a number of FLOPs",
    "flops_per_s": "a rate of arithmetic",
    "flops_per_byte": "an intensity",
    "percent": "a share",
    "times": "a factor",
    "count": "a number",
    "real": "a number",
    "dollars": "an amount of money",
    "watts": "a power",
    "tokens": "a number of tokens",
    "params": "a number of parameters",
}
REFUSED = {
    "empty": "Type {asked} first.",
    "long": "No number is that long: only the first {longest} characters are kept. This needs {asked}.",
    "none": "No number that can be read here; this needs {asked}. "
    "Write digits, a point for decimals, and the unit behind them: 1.5 TB, 2e9, 40 %.",
    "nan": "“{unit}” is no number; this needs {asked}.",
    "comma": "No number that can be read here; this needs {asked}. "
    "A comma parts thousands, as in 8,192; for decimals write a point.",
    "two": "These are two numbers; this needs one, {asked}.",
    "zero": "No number is divided by 0; this needs {asked}.",
    "large": "No computer's number is that large; this needs {asked}.",
    "either": "“{unit}” is bits to some and bytes to others: write {upper} for bytes, {bits} for bits.",
    "other": "That is {kind}; this needs {asked}.",
    "unknown": "“{unit}” is no unit that is known here; this needs {asked}.",
    "noun": "“{unit}” is not what is counted here; this needs {asked}.",
}
# the nouns that the course counts, which may follow a number: "64 GPUs"
NOUNS = re.findall(
    r"\w+",
    """batch batches block bucket card chunk column copy copies cycle element entries entry epoch example
    expert failure flop gpu graph group head hop instruction iter iteration kernel launch launches layer
    machine matrices matrix message micro microbatch mini minibatch node op operation operator pair param
    parameter pass passes patch patches program prompt rank replica request row run sample sequence shape
    shard slice slot stage step sum switch thread tile token user value warp wave weight word""",
)
COUNTED = {
    "count": NOUNS,
    "real": NOUNS,
    "tokens": ["token"],
    "params": ["parameter", "param", "weight"],
    "times": [],
}
MEASURED = [family for family in KINDS if family not in COUNTED]
BITS = ("bytes", "bytes_binary", "bytes_per_s")  # families in which the case of a b matters
FILLERS = ("a", "an", "per", "of", "each")


class Reading(NamedTuple):
    """What was typed: its ``value`` in SI, or None with a sentence in ``refused`` that says what is wrong and
    what is expected."""

    value: float | None = None
    half: float = 0.0  # half a unit of the last digit that was typed; 0 where it is exact, as 1/8
    digits: int = 0  # significant digits that were typed; 0 where it is exact
    bare: bool = False  # typed without a unit, so taken in the expected one
    refused: str = ""


def words(family: str) -> dict[str, float | None]:
    """Every word that may follow a number of this family, with the SI value of one; "" is for a number
    without a unit."""
    steps = units.FAMILIES[family]
    found: dict[str, float | None] = {"": steps[0][0] if len(steps) == 1 else 1.0}
    read = [name for name in (family, TOGETHER.get(family)) if name]
    for each in read:
        for scale, text in units.FAMILIES.get(each, ()):
            found.setdefault(text.strip(), scale)
            found.setdefault(text.split()[0] if text.strip() else "", scale)
    return found | {word: scale for each in read for word, scale in ALSO.get(each, {}).items()}


WORDS = {family: words(family) for family in units.FAMILIES}


def families() -> dict[str, str]:
    """The family of each unit that can be asked for by name: 'TB' -> 'bytes'."""
    found = {name: name for name in units.FAMILIES}
    for name in units.UNITS:
        steps = ((family, text.strip()) for family, steps in units.FAMILIES.items() for _, text in steps)
        found[name] = next((family for family, text in steps if text == name), "count")
    named = {"GPU-hours": "seconds", "Gb/s": "bytes_per_s", "$": "dollars", "k$": "dollars", "M$": "dollars"}
    return found | named | {"share": "percent"}


FAMILY = families()


def scale_of(unit: str, family: str) -> float | None:
    """The SI value of one unit, spelled exactly or in another case; None for a unit the family does not have,
    or one that could mean two things."""
    known = WORDS[family]
    if unit in known:
        return known[unit]
    found = _meanings(unit, family) - {None}
    return found.pop() if len(found) == 1 else None


def _meanings(unit: str, family: str) -> set[float | None]:
    """What a unit may mean in another case. A big B stays bytes: 'KB/S' is bytes, but 'gb/s' could be
    bits."""
    same = {word: scale for word, scale in WORDS[family].items() if word.lower() == unit.lower()}
    big = {word: scale for word, scale in same.items() if "B" in word} if "B" in unit else {}
    return set((big or same).values())


def parse(text: str, unit: str, label: str = "") -> Reading:
    """Read a text where a quantity in this unit, or of this family, is expected."""
    if unit not in FAMILY:
        raise ValueError(f"unit must be one of {', '.join(FAMILY)}; got {unit!r}")
    return read(text, FAMILY[unit], alone(unit), label)


def alone(unit: str) -> float:
    """The SI value of a number typed without a unit, where this unit or family is expected."""
    if unit in units.UNITS:
        return units.UNITS[unit][0]
    return 1.0 if unit == "share" else WORDS[unit][""] or 1.0


def read(text: str, family: str, scale: float, label: str = "") -> Reading:
    """``parse`` for a family of units; ``scale`` is that of a number without a unit."""

    def refused(why: str, **more: str) -> Reading:
        fill = {"asked": KINDS[family], "longest": str(LONGEST)} | more
        return Reading(refused=re.sub(r"\{(\w+)\}", lambda name: fill[name[1]], REFUSED[why]))

    if len(text) > LONGEST:
        return refused("long")
    if re.fullmatch(EMPTY, text):
        return refused("empty")
    plain = re.sub(
        SUPERSCRIPTS, lambda power: "^" + "".join(SUPERSCRIPT[d] for d in power[0]), text.replace("−", "-")
    )
    if family == "seconds" and (sum_of := _compound(plain)):
        return sum_of
    found = re.fullmatch(QUANTITY, plain)
    if not found:
        named = re.fullmatch(NO_NUMBER, plain)
        return refused("nan", unit=named[1]) if named else refused("none")
    before, dollar, sign, coded, base, power, top, bottom, plain_number, e, ten, unit = (
        group or "" for group in found.groups()
    )
    if before and sign:
        return refused("none")
    if dollar and family != "dollars":
        return refused("other", kind=KINDS["dollars"])
    if (top and _decimal(bottom, 0) == 0) or (coded and family not in ("count", "real")):
        return refused("zero" if top else "none")
    unit = re.sub(f"{SPACE}+", " ", unit)
    named = _unit(unit, family, label)
    if isinstance(named, str):
        letter, rest = unit[:1].upper(), unit[2:]
        return refused(
            "other" if named in KINDS else named,
            kind=KINDS.get(named, ""),
            unit=unit[:20],
            upper=f"{letter}B{rest}",
            bits=f"{letter}bit{rest}",
        )
    bare = not unit
    if bare and (dollar or (top and family == "percent")):
        one = 1.0  # 1/8 is a share, whatever was asked
    else:
        one = named or scale
    places = _places(plain_number)
    exponent = int(e or ten or 0)
    minus = "-" in (before, sign)

    if coded:
        value = float(int(coded, 0)) * one
    elif base == "2":
        value = (2.0 ** int(power) if int(power) < 1024 else math.inf) * one
    elif base:
        value = _scaled("1", int(power), one)
    elif top:
        value = _decimal(top, 0) / _decimal(bottom, 0) * one
    else:
        value = _scaled(plain_number, exponent, one)
    if math.isinf(value):
        return refused("large")
    half = _scaled("5", exponent - places - 1, one) if plain_number else 0.0
    digits = len(re.sub("[^0-9]", "", plain_number).lstrip("0"))
    return Reading(-value if minus else value, half, digits, bare)


def _decimal(written: str, exponent: int) -> float:
    return float(f"{re.sub(GROUP, '', written)}e{exponent}")


def _scaled(written: str, exponent: int, one: float) -> float:
    """A decimal number times the value of one unit. If this value is a power of ten, only the point moves, so
    that 12.3k is exactly 12,300."""
    ten = round(math.log10(one))
    if float(f"1e{ten}") == one:
        return _decimal(written, exponent + ten)
    return _decimal(written, exponent) * one


def _places(written: str) -> int:
    """The number of digits after the decimal point."""
    return len(written.partition(".")[2])


def _compound(text: str) -> Reading | None:
    """'3 days 4 h': a sum of times, from the longest unit to the shortest."""
    if not re.fullmatch(COMPOUND, text):
        return None
    terms = [(amount, scale_of(unit, "seconds")) for amount, unit in re.findall(TERM, text)]
    total, before, half = 0.0, math.inf, 0.0
    for amount, one in terms:
        if one is None or one >= before:
            return None
        total, before, half = (total + _scaled(amount, 0, one), one, _scaled("5", -_places(amount) - 1, one))
    return Reading(total, half)


def _unit(unit: str, family: str, label: str) -> float | str | None:
    """The SI value of one unit, None for a unit that does not exist, or the name of what is wrong: a key of
    REFUSED, or the family the unit belongs to."""
    if not unit:
        return None
    if (own := scale_of(unit, family)) is not None:
        return own
    if len(_meanings(unit, family)) > 1 or unit in WORDS[family]:
        return "either" if family in BITS else "unknown"
    if re.search(COMMA, unit):
        return "comma"
    if re.search(ANOTHER, unit):
        return "two"
    if re.search(BROKEN, unit):
        return "none"
    counted = _noun(unit, family, label) if family in COUNTED else None
    if counted is not None:
        return counted
    other = next((kind for kind in KINDS if scale_of(unit, kind)), None)
    if other:
        return other
    return "noun" if family in COUNTED and re.fullmatch(PHRASE, unit) else "unknown"


def _noun(unit: str, family: str, label: str) -> float | None:
    """What one of a noun such as "k tokens" or "GPUs" counts for. The noun may be made of the words of the
    label, or of those that the course counts; for anything else None."""
    if not re.fullmatch(PHRASE, unit) or any(scale_of(unit, kind) for kind in MEASURED):
        return None
    known = {_singular(word) for word in re.findall(WORD, label.lower())} | set(
        map(_singular, COUNTED[family])
    )
    timed = {"s", "sec", "second"} if "second" in known else set()
    first, _, rest = unit.partition(" ")
    scale = _COUNTS.get(first) if rest else None
    said = [word.lower() for word in re.findall(WORD, rest if scale else unit)]
    nouns = [word for word in said if word not in FILLERS]
    good = nouns and all(_singular(word) in known or word in timed for word in nouns)
    return (scale or 1.0) if good else None


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 2 and word.endswith("s") else word


def tables() -> dict:
    """Everything the page needs to read quantities exactly as this module does."""
    return {
        "patterns": {
            "SPACE": SPACE,
            "EMPTY": EMPTY,
            "GROUP": GROUP,
            "NO_NUMBER": NO_NUMBER,
            "QUANTITY": QUANTITY,
            "COMPOUND": COMPOUND,
            "TERM": TERM,
            "SUPERSCRIPTS": SUPERSCRIPTS,
            "ANOTHER": ANOTHER,
            "COMMA": COMMA,
            "BROKEN": BROKEN,
            "WORD": WORD,
            "PHRASE": PHRASE,
        },
        "superscript": SUPERSCRIPT,
        "longest": LONGEST,
        "words": WORDS,
        "families": FAMILY,
        "alone": {unit: alone(unit) for unit in FAMILY},
        "kinds": KINDS,
        "refused": REFUSED,
        "counted": COUNTED,
        "counts": _COUNTS,
        "bits": BITS,
        "fillers": FILLERS,
    }
