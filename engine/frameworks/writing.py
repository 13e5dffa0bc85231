"""How settings are written. Numbers may be symbols: all text is produced by ``words``, for which widgets pass
their own implementation (widgets/kit/text.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.base.types import Real, Truth
from engine.base.units import plain
from engine.frameworks.settings import Field


class Words:
    """Texts for plain numbers."""

    @staticmethod
    def plain(value: Real) -> str:
        """A whole number in bare digits."""
        return plain(float(value))

    @staticmethod
    def choose(condition: Truth, yes: str, no: str) -> str:
        """``yes`` where the condition holds, else ``no``."""
        return yes if condition else no

    @staticmethod
    def select(index: Real, texts: Sequence[str]) -> str:
        """The text at an index."""
        return texts[int(index)]


class Line(NamedTuple):
    """One line: a key, its value as text (None for a flag), and whether it is needed at all."""

    key: str
    value: Any = None
    when: Truth = True


def keys_of(fields: dict[str, Field]) -> dict[str, str]:
    """Our names -> the key with which each is written, the first that has it."""
    found: dict[str, str] = {}
    for key, field in fields.items():
        found.setdefault(field.name, key)
    return found


def given(line: Line, text: str, words: Any) -> Any:
    """A line's text where the line is needed; nothing elsewhere."""
    if line.when is False:
        return ""
    return text if line.when is True else words.choose(line.when, text, "")


def any_is_needed(lines: list[Line]) -> Truth:
    """Whether one of the lines is needed."""
    found: Truth = False
    for line in lines:
        if line.when is True:
            return True
        if line.when is not False:
            found = line.when if found is False else found | line.when
    return found
