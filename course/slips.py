"""Typical wrong answers: the factors by which well-known slips are off, and the hint for each.

A hint is offered only where it can apply: a slip has the families of quantity in which it occurs, and some
concern things (a wire, a forward pass, a node of eight) that the exercise itself must mention. The rule
of engine/base/answers.py looks for the factors, and the page shows the hint with the factor in place of
``{by}``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.base import units

BYTES = ("bytes", "bytes_binary", "bytes_per_s")
COUNTED = ("count", "params", "tokens")
OF_A_NODE = ("count", "seconds", "dollars", "flops", "flops_per_s", "tokens")
OF_A_PASS = ("count", "seconds", "tokens", "flops", "flops_per_s")
PREFIXES = {
    "bytes": "k, M, G, T",
    "bytes_binary": "Ki, Mi, Gi, Ti",
    "bytes_per_s": "k, M, G, T",
    "flops": "G, T, P, E",
    "flops_per_s": "G, T, P",
    "seconds": "ms, µs",
    "watts": "k, M",
    "dollars": "k, M, B",
    **dict.fromkeys(COUNTED, "k, M, B, T"),
}
WIRES = (
    r"\b(wires?|links?|NVLink|InfiniBand|Ethernet|PCIe|network|NICs?|cards?|send\w*|sent|spine|ring"
    r"|AllReduce|AllGather|ReduceScatter|AllToAlls?)\b"
)
# A number whose own label names one of these is no wire's, even where its exercise speaks of wires.
NO_WIRE = (
    r"(?i)\b(forward|backward|arithmetic|comput\w*|products?|weights|states?|drives?|disks?|storage|caches?|HBM"
    r"|host|memory)\b"
)
PASSES = r"\b(forward|backward|FLOPs?|MFU|arithmetic|training)\b"
NODES = r"\b(GPUs?|[HAB][12]00s?|nodes?|eight|ranks?|replicas?)\b"
# how close an answer must be to the factor, unless the exercise's own tolerance is wider
ROUGHLY = 0.02
TIGHTLY = 0.005  # for 1.5 and 3, which other mistakes come close to
BINARY = 0.002  # for 1.024 and its powers, which are close to 1


@dataclass(frozen=True)
class Slip:
    """Factors, the hint for them, and how close an answer must be to one."""

    factors: tuple[float, ...]
    words: str
    near: float


def offered(family: str, scale: float, within: float, speaks: str, label: str = "") -> list[Slip]:
    """The slips that may be mentioned for a wrong answer to this question. ``scale`` is the SI value of the
    requested unit, ``within`` the tolerance, ``speaks`` the words of the exercise and ``label`` those of the
    number that it asks for. For a small whole number
    that must be exact, only the prefix slip is offered, because such a number is too easily off by 2 or 8 for
    other reasons."""
    rough = max(ROUGHLY, within)
    short = family != "seconds" or scale < units.MINUTE  # nobody thinks of a duration in days as milliseconds
    found = [_thousands(PREFIXES.get(family, "") if short else "", rough)]
    if not within:
        return found
    if family == "percent":
        found.append(Slip((100,), "Off by a factor of 100: a share, or a percentage?", rough))
    if family == "seconds" and scale >= 1:
        words = "Off by a factor of {by}: seconds, minutes, hours or days?"
        found.append(Slip((60, 3600, 24, 86400), words, rough))
    if family in BYTES:
        words = "Near: is yours binary (GiB) where decimal is asked (GB), or the other way round?"
        found.append(Slip((2**30 / 1e9, 2**40 / 1e12, 2**20 / 1e6), words, BINARY))
        found.append(Slip((8,), "Off by a factor of 8: bits, or bytes?", rough))
    if family in OF_A_NODE and re.search(NODES, speaks):
        found.append(Slip((8,), "Off by a factor of 8: one GPU where a node of eight is meant?", rough))
    found.append(Slip((2,), f"Off by a factor of 2: {_two(family, short, speaks, label)}?", rough))
    if family in OF_A_PASS and re.search(PASSES, speaks):
        words = "Off as a forward pass is from a whole step: two FLOPs a parameter and token, four, or six?"
        found.append(Slip((3, 1.5), words, TIGHTLY))
    return found


def _thousands(prefixes: str, near: float) -> Slip:
    look = f"look at the prefix of your unit ({prefixes})" if prefixes else "count the zeros"
    return Slip((1e3, 1e6, 1e9), f"Off by a factor of {{by}}: {look}.", near)


def _two(family: str, short: bool, speaks: str, label: str) -> str:
    """What is easily counted twice, or only once, for quantities of this kind."""
    ways = []
    if family in ("bytes", "bytes_binary"):
        ways.append("two bytes a value, or one")
    on_a_wire = re.search(WIRES, label) or (re.search(WIRES, speaks) and not re.search(NO_WIRE, label))
    if family in ("bytes", "bytes_per_s", "seconds") and short and on_a_wire:
        ways.append("both directions of a wire, there and back")
    if family in ("flops", "flops_per_s"):
        ways.append("a multiplication and an addition are two FLOPs")
    return "; ".join(ways) or "is something counted twice, or only half of it"
