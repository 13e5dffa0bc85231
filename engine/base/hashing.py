"""Hashing a large frozen dataclass once, when it is made, because ``ops.remembered`` asks for the hash of a
chip and of its wires, a hundred numbers each, at every call.

A class that wants it has a field ``hashed``, neither given nor compared. It calls ``keep`` when it is made,
and its ``__hash__`` is ``kept``.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def keep(thing: Any) -> None:
    """Hashes all that the thing was made of; None where a part has no hash, such as an array or a symbol."""
    parts = tuple(getattr(thing, each.name) for each in fields(thing) if each.init)
    try:
        found = hash(parts)
    except TypeError:
        found = None
    object.__setattr__(thing, "hashed", found)


def kept(self: Any) -> int:
    """``__hash__`` of such a class."""
    if self.hashed is None:
        raise TypeError(f"a {type(self).__name__} of arrays or symbols has no hash")
    return self.hashed
