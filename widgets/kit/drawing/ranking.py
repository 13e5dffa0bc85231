"""The order of things by a number, where the number may be a symbol."""

from __future__ import annotations

import numpy as np

from engine.base.types import Real


def ranks(values: Real) -> Real:
    """The place of each value, 0 for the least; equal ones keep their order."""
    count = len(values)
    before = np.arange(count)[None, :] < np.arange(count)[:, None]  # settles ties
    less = (values[None, :] < values[:, None]) | ((values[None, :] == values[:, None]) & before)
    return np.sum(np.where(less, 1.0, 0.0), axis=1)


def in_order(values: Real) -> Real:
    """The rows of a table with the least value first."""
    place = ranks(values)
    return np.stack([np.argmax(np.where(place == i, 1, 0)) for i in range(len(values))])
