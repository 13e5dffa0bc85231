"""Hashing a large frozen dataclass only once. ``ops.remembered`` needs the hash of a chip and of its wires at
every call, and each of them consists of a hundred numbers.

A class that wants this has ``__hash__ = once``, and a field ``hashed`` that is None at first and is neither
an argument nor compared.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def once(self: Any) -> int:
    """The hash of all fields of a dataclass; TypeError if a field has none, such as an array or a symbol."""
    found = self.hashed
    if found is None:
        found = hash(tuple(getattr(self, each.name) for each in fields(self) if each.init))
        object.__setattr__(self, "hashed", found)
    return found
