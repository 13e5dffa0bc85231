"""Words made of numbers: the same calls on real values and on symbols, so that texts need to be written once."""

from __future__ import annotations

from engine import units
from widgets.kit.symbolic import Symbol, Text


def show(value, family: str, digits: int = 3):
    """The value with its best scale: show(1.12e12, 'bytes') -> '1.12 TB'."""
    if isinstance(value, Symbol):
        return value.graph.shown(value, "human", family, digits)
    return units.human(float(value), family, digits)


def show_in(value, unit: str, digits: int = 3):
    """The value in the unit asked for: show_in(1.12e12, 'GB') -> '1,120 GB'."""
    if isinstance(value, Symbol):
        return value.graph.shown(value, "in_unit", unit, digits)
    return units.in_unit(float(value), unit, digits)


def choose(condition, yes, no):
    """``yes`` where the condition holds, else ``no``; both texts are made either way."""
    return select(condition, [no, yes])


def select(index, texts):
    """The text at an index."""
    if isinstance(index, Symbol):
        return index.graph.picked(index, texts)
    chosen = texts[int(index)]
    return chosen if isinstance(chosen, Text) else str(chosen)
