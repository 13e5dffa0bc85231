"""How a thing of the catalogue is found by the names that people and programs write for it.

``NVIDIA H100-PCIe`` and ``h100 pcie`` differ in what does not matter: capitals, what stands between words,
the vendor, the size of a cloud's instance. ``plain`` leaves that out of a name.
"""

from __future__ import annotations

from difflib import get_close_matches

BETWEEN = "-_/.,:()!"  # what people write between words, beside the space
SAYS_NOTHING = ("nvidia", "geforce", "tesla", "amd", "instinct", "intel", "google", "aws", "ml", "standard")
INSTANCE = "xlarge"  # how the size of a cloud's instance ends: p5.48xlarge is one of the p5
ALIKE, SUGGESTED = 5, 8


def plain(name: str) -> str:
    """What is compared of a name: 'NVIDIA GeForce RTX 4090' and 'rtx-4090' are both 'rtx4090'."""
    words = name.lower()
    for mark in BETWEEN:
        words = words.replace(mark, " ")
    telling = [word for word in words.split() if word not in SAYS_NOTHING and not word.endswith(INSTANCE)]
    return "".join(telling)


def near(said: str, known: dict[str, str]) -> list[str]:
    """The keys that were probably meant, from a plain name to its key: first those whose name goes on where
    this one stops, then those that are spelled like it, the longer the same at its beginning the earlier."""
    asked = plain(said)
    begun = [name for name in known if asked and name.startswith(asked)]
    alike = get_close_matches(asked, list(known), n=ALIKE, cutoff=0.4)
    found = sorted(begun, key=len) + sorted(alike, key=lambda name: -_alike_for(name, asked))
    return list(dict.fromkeys(known[name] for name in found))[:SUGGESTED]


def _alike_for(one: str, other: str) -> int:
    """How many of their first letters are the same."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length
