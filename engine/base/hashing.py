"""Hashing a large frozen dataclass once: ``ops.remembered`` asks for the hash of a chip and of its wires, a
hundred numbers each, at every call.

A class that wants it has ``__hash__ = once``, and a field ``hashed``, at first None, that is neither given
nor compared.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def once(self: Any) -> int:
    """The hash of all that the thing was made of; TypeError where a part has none, such as an array or a
    symbol."""
    found = self.hashed
    if found is None:
        found = hash(tuple(getattr(self, each.name) for each in fields(self) if each.init))
        object.__setattr__(self, "hashed", found)
    return found
