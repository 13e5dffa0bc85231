"""Texts made of numbers: the same calls work on real values and on symbols, so each text is written only
once.

For a column they give one text per row, as needed for the hints of marks; "" where there is no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from engine.base import units
from engine.base.types import Real, Truth
from widgets.kit.compiler import texts as traced_texts
from widgets.kit.compiler.symbols import Symbol, lift
from widgets.kit.compiler.texts import Text, Texts

# one text, one text per row of a column, or a symbol of either while a widget is traced; Any to a type
# checker, like ``Real``
Words: TypeAlias = Any
POWERS_OF_TEN = 10.0 ** np.arange(-12, 22)


def show(value: Real, family: str, digits: int = 3) -> Words:
    """The value as a text in its best unit, as '1.12 TB' for 1.12e12 bytes."""
    return _shown(value, "human", units.human, family, digits)


def show_in(value: Real, unit: str, digits: int = 3) -> Words:
    """The value as a text in the named unit, as '1,120 GB' for 1.12e12 bytes."""
    return _shown(value, "in_unit", units.in_unit, unit, digits)


def plain(value: Real) -> Words:
    """A whole number in bare digits, as other programs read it."""
    return _shown(value, "plain", units.plain, "", 0)


def _shown(value, how: str, write, unit: str, digits: int):
    if isinstance(value, Symbol):
        write(1.0, unit, digits)  # an unknown unit raises here, as it does for numbers
        return traced_texts.shown(value, how, unit, digits)
    if np.ndim(value):
        said, texts = [""] * len(value), {}
        for row, number in _known(value):
            if number not in texts:  # columns repeat their numbers
                texts[number] = write(number, unit, digits)
            said[row] = texts[number]
        return said
    return write(float(value), unit, digits)


def _known(column: Real) -> Iterable[tuple[int, float]]:
    """(row, number) of the rows that have a number: in a padded column these are only a few."""
    values = np.asarray(column, dtype=float)
    rows = np.flatnonzero(~np.isnan(values))
    return zip(rows.tolist(), values[rows].tolist(), strict=True)


def choose(condition: Truth, yes: Words, no: Words) -> Words:
    """``yes`` where the condition holds, else ``no``; both texts are always computed."""
    return select(condition, [no, yes])


def select(index: Real, texts: Sequence[Words]) -> Words:
    """The text at an index. A column of indices picks for each row, from texts and from columns of texts."""
    if made := next((text for text in texts if isinstance(text, Texts)), None):
        index = lift(made.graph, index)
    if isinstance(index, Symbol):
        return traced_texts.picked(index, texts, checked=not index.truth)
    if np.ndim(index):
        said = [""] * len(index)
        for row, at in _known(index):
            text = texts[int(at)]
            said[row] = text[row] if isinstance(text, list) else str(text)
        return said
    if any(isinstance(text, list) for text in texts):
        raise ValueError("select: a column of texts takes an index for each row, got one index")
    chosen = texts[int(index)]
    return chosen if isinstance(chosen, Text) else str(chosen)


def adding_up(parts: Real, digits: int = 3) -> Real:
    """The parts of a whole as they are shown beside it: rounded to the whole's last digit, and so that the
    printed parts add up to the printed whole. To this end the sums up to each part are rounded, and a part is
    the difference of two; a part that would vanish stays as it is. For families whose units are thousands
    apart; ``digits`` as in ``show``."""
    sums = np.cumsum(parts)
    place = POWERS_OF_TEN * 10.0 ** (digits - 1)
    step = np.max(np.where(place <= sums[-1], POWERS_OF_TEN, POWERS_OF_TEN[0]))
    ends = np.rint(sums / step) * step
    rounded = ends - np.concatenate([np.zeros(1), ends[:-1]])
    return np.where(rounded > 0, rounded, parts)


def share_of(ratio: Real) -> Words:
    """A share of something in words: '37 % of', or '2.55×' if it is more than the whole."""
    return choose(ratio > 1, show(ratio, "times"), f"{show(ratio, 'percent')} of")


def counted(count: Real, one: str, many: str) -> Words:
    """A number of things: '1 rank', '8 ranks'."""
    return f"{show(count, 'count')} {choose(count == 1, one, many)}"


def sold(size: Real) -> Words:
    """A GPU's HBM as its data sheet gives it, the limit in calculations by hand (lesson 01)."""
    return show(size, "bytes")


def usable(size: Real, of: Real | None = None) -> Words:
    """The bytes of a GPU's HBM that software can fill, beside the bytes ``of`` which the GPU is sold. A card
    that is sold "with 40 GB" has 40 GiB, so 42.2 GB on it are no error."""
    return f"{show(size, 'bytes')} usable" + ("" if of is None else f" (sold as {sold(of)})")


def phrase(template: str, **texts: Words) -> Words:
    """A text for each row, from a template and the texts that fill it: ``phrase("{kind} of micro-batch {n}",
    kind=select(…), n=show(column, "count"))``."""
    parts = re.split(r"{(\w+)}", template)
    pieces = [texts[part] if place % 2 else part for place, part in enumerate(parts) if part]
    if any(isinstance(piece, Texts) for piece in pieces):
        return traced_texts.phrased(pieces)
    rows = next(len(piece) for piece in pieces if not isinstance(piece, str))
    columns = ([piece] * rows if isinstance(piece, str) else piece[:rows] for piece in pieces)
    return ["".join(row) for row in zip(*columns, strict=True)]


def lines(texts: Words) -> Words:
    """One text of a column of texts: a line for each that is not empty."""
    return traced_texts.lined(texts) if isinstance(texts, Texts) else "\n".join(filter(None, texts))
