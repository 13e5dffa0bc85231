"""What a figure draws of a run: when each request passed from one phase to the next, and the lane in which it
is drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base.types import Real

OF_INSTANCES = ("busy_s", "prefilling_s")  # columns of a run that have no entry for each request


class Phases(NamedTuple):
    """The times at which each request arrived, started, gave its first token, had its cache sent, and
    finished, ascending; and its longest pause."""

    came_s: np.ndarray
    started_s: np.ndarray
    first_s: np.ndarray
    moved_s: np.ndarray
    last_s: np.ndarray
    paused_s: np.ndarray  # start of its longest pause between two tokens, after its cache's transfer …
    resumed_s: np.ndarray  # … and end of it


def phases(columns: dict) -> Phases:
    """The times of a run's requests; an event that did not happen (a cache transfer, or anything after a
    refusal) takes no time."""
    came = columns["came_s"]
    started = np.maximum(came, columns["started_s"])
    first = np.maximum(started, columns["first_s"])
    moved = np.maximum(first, columns["moved_s"])
    resumed = np.maximum(moved, columns["pause_end_s"])
    paused = np.maximum(moved, columns["pause_end_s"] - columns["pause_s"])
    return Phases(
        came,
        started,
        first,
        moved,
        np.maximum(moved, columns["last_s"]),
        np.minimum(paused, resumed),
        resumed,
    )


def lanes(at: Real) -> Real:
    """The lane of each request if the requests of one replica are drawn together, in order of arrival: how
    many requests are drawn before it. ``at`` is each request's replica."""
    number = np.arange(len(at))
    earlier = (at[None, :] == at[:, None]) & (number[None, :] < number[:, None])
    return np.sum(np.where((at[None, :] < at[:, None]) | earlier, 1.0, 0.0), axis=1)


def moving_s(columns: dict) -> Real:
    """Seconds from a request's first token until its cache has been sent; -1 if no cache was sent."""
    return np.where(columns["moved_s"] >= 0, columns["moved_s"] - columns["first_s"], -1.0)


def since(columns: dict, begin: int, end: int) -> dict:
    """The columns of the requests from ``begin`` up to ``end``, without the columns that describe
    instances."""
    return {name: column[begin:end] for name, column in columns.items() if name not in OF_INSTANCES}
