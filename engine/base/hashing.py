"""Hashing a large frozen dataclass once, because ``ops.remembered`` asks for the hash of a chip and of its wires,
a hundred numbers each, at every call.

A class that wants it has ``__hash__ = once``, and a field ``hashed``, None at first, that is neither given nor
compared.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def once(self: Any) -> int:
    """The hash of all that the thing was made of; TypeError where a part has none, such as an array or a
    symbol."""
    if self.hashed is None:
        parts = tuple(getattr(self, each.name) for each in fields(self) if each.init)
        object.__setattr__(self, "hashed", hash(parts))
    return self.hashed
