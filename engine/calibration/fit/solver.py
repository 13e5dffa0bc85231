"""A robust fit of a few positive constants, with numpy alone; it gives the same result every time.

Levenberg-Marquardt steps on the logarithms of the constants. A residual is the logarithm of predicted over
measured time, so that twice too slow and twice too fast weigh the same. Large residuals count linearly rather
than by their square (soft L1), so that rows where a library picked a poor kernel do not bend the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

NEAR = 0.05  # residuals up to about this count by their square, larger ones linearly
DIGITS = 4  # significant digits of a constant


@dataclass(frozen=True)
class SearchStart:
    """Where the search for one constant begins, and its bounds."""

    value: float
    low: float
    high: float
    grain: float = 0.0  # the rows cannot tell apart values that differ by less than this


def rounded(value: float, grain: float = 0.0) -> float:
    """The value rounded to the digits that a constant is stored with, and no finer than its grain."""
    coarse = round(value / grain) * grain if grain else value
    return float(f"{coarse:.{DIGITS}g}")


def fit(
    predict: Callable[[dict[str, float]], np.ndarray],
    measured_s: np.ndarray,
    starts: dict[str, SearchStart],
    also_from: dict[str, float] | None = None,
) -> dict[str, float]:
    """The constants that predict the measured times best.

    ``also_from`` gives some constants a second starting point: a constant that has no effect at its start
    (because another alternative is faster there) would never move.
    """
    found = [_fit(predict, measured_s, starts)]
    if also_from:
        second = starts | {n: SearchStart(v, starts[n].low, starts[n].high) for n, v in also_from.items()}
        found.append(_fit(predict, measured_s, second))
    return min(found, key=lambda pair: pair[1])[0]


def _fit(predict, measured_s, starts: dict[str, SearchStart], steps=60) -> tuple[dict[str, float], float]:
    """The constants, and the remaining loss."""
    names = list(starts)
    low, high = (np.log([getattr(starts[n], side) for n in names]) for side in ("low", "high"))
    wanted = np.log(measured_s)

    def residuals(place):
        return np.log(predict(dict(zip(names, map(float, np.exp(place)))))) - wanted

    def cost(r):
        return float(np.sum(np.sqrt(1.0 + (r / NEAR) ** 2) - 1.0))

    place = np.clip(np.log([starts[n].value for n in names]), low, high)
    now = residuals(place)
    best, damping = cost(now), 1e-2
    for _ in range(steps):
        slopes = np.stack([_slope(residuals, place, j) for j in range(len(names))], axis=1)
        weights = 1.0 / np.sqrt(1.0 + (now / NEAR) ** 2)
        square = slopes.T @ (slopes * weights[:, None])
        downhill = -slopes.T @ (weights * now)
        gained = 0.0
        for _ in range(8):
            damped = square + damping * np.diag(np.diag(square) + 1e-9)
            step = np.clip(np.linalg.solve(damped, downhill), -0.5, 0.5)
            tried = np.clip(place + step, low, high)
            there = residuals(tried)
            if cost(there) < best:
                gained = (best - cost(there)) / best
                place, now, best, damping = tried, there, cost(there), max(damping / 3.0, 1e-6)
                break
            damping *= 4.0
        if gained < 1e-5:
            break
    return {name: rounded(value, starts[name].grain) for name, value in zip(names, np.exp(place))}, best


def _slope(residuals, place, j, width=0.01):
    """How the residuals change with one constant, over a step wide enough to smooth out the jumps caused by
    tiles."""
    up, down = place.copy(), place.copy()
    up[j] += width
    down[j] -= width
    return (residuals(up) - residuals(down)) / (2.0 * width)
