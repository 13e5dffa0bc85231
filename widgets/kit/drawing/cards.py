"""A row of cards that fill: how many GPUs something takes. Few stand in one row, many in several; the strip
that they share is one wide and one high."""

from __future__ import annotations

import numpy as np

from engine.base.types import Real
from widgets.kit.drawing import figure as fig

IN_A_ROW = 14  # the most in one row; with more, the rows grow with the root, so that cards keep their shape
WIDEST = 0.1  # of the strip
GAP = 0.1  # of a card's place


def places(count: Real, most: int) -> dict[str, Real]:
    """Columns of the boxes of ``count`` cards, the first at the upper left; those that are not there are far
    to the left."""
    index = np.arange(float(most))
    rows = np.ceil(np.sqrt(count / IN_A_ROW))
    columns = np.ceil(count / rows)
    row = np.floor(index / columns)
    width = np.minimum(1 / columns, WIDEST)
    left = (index - row * columns) * width
    there = index < count
    return {
        "left": fig.gone_unless(there, left),
        "right": fig.gone_unless(there, left + width * (1 - GAP)),
        "bottom": 1 - (row + 1 - GAP) / rows,
        "top": 1 - row / rows,
    }


def shares(cards: Real, most: int) -> Real:
    """How full each card is, if ``cards`` cards are filled one after the other."""
    return np.clip(cards - np.arange(float(most)), 0.0, 1.0)
