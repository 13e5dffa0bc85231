"""The three constants of a training step, fitted on the published steps that are marked for it.

``python -m engine.validation.fitted_steps`` (part of ``make calibrate``) writes the best constants into
``calibration/constants.py``, to three digits, and prints how far each constant may move before the fit gets
worse. The same steps give the same constants, whatever values were shipped before.

Least squares of log(predicted / published), every group of steps with the same weight. Gauss-Newton steps,
halved until they help, within bounds; numpy alone, and the same result every time.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine import validation
from engine.base import printing
from engine.calibration import DEFAULT, constants
from engine.calibration.constants import Calibration

Bounds = dict[str, tuple[float, float]]
# Where each constant may lie. Streaming kernels timed by themselves reach 0.74 to 0.94 of the bandwidth.
BOUNDS: Bounds = {"matmul_sustained": (0.5, 1.0), "matmul_power": (0.0, 0.5), "memory_share": (0.74, 0.94)}
FREE: Bounds = BOUNDS | {"memory_share": (0.4, 1.0)}  # as if nothing were known of streaming kernels
SLACK = 0.05  # relative growth of the misfit at which a constant's span ends
START = replace(DEFAULT, matmul_sustained=0.85, matmul_power=0.15, memory_share=0.8)  # every search's start
DIGITS = 3  # written for each constant: more than the steps determine, so that nobody picks the last one
WIDTH = 1e-3  # half of the interval over which a slope is computed
CLOSE = 1e-6  # a step as short as this ends the search
EDGE = 5e-3  # precision to which the ends of a span are found


def cases() -> list[dict]:
    """The steps that the three constants are fitted on: marked as fitted, and not for another
    ``constant``."""
    return [
        case
        for case in validation.load()
        if case["kind"] == "step" and case["fitted"] is True and "constant" not in case
    ]


class Steps:
    """Published steps, each group with the same weight."""

    def __init__(self, these: list[dict]) -> None:
        self.cases = these
        self.groups = Counter(case["group"] for case in these)
        weights = [1.0 / self.groups[case["group"]] / len(self.groups) for case in these]
        self.roots = np.sqrt(weights)

    def residuals(self, calibration: Calibration) -> np.ndarray:
        """For each step log(predicted / published), times the root of the step's weight."""
        rows = [validation.rows_of(case, calibration)[0] for case in self.cases]
        return self.roots * np.log([row.predicted / row.measured for row in rows])

    def misfit(self, calibration: Calibration) -> float:
        """The root of the mean squared residual."""
        return float(np.linalg.norm(self.residuals(calibration)))


def fit(steps: Steps, bounds: Bounds = BOUNDS, start: Calibration = START) -> Calibration:
    """The constants with the least misfit; a constant whose two bounds are equal stays at that value."""
    low, high = (np.array([bounds[name][side] for name in bounds]) for side in (0, 1))

    def at(place: np.ndarray) -> Calibration:
        return replace(DEFAULT, **dict(zip(bounds, map(float, place))))

    def residuals(place: np.ndarray) -> np.ndarray:
        return steps.residuals(at(place))

    place = np.clip([getattr(start, name) for name in bounds], low, high)
    now = residuals(place)
    for _ in range(40):
        moving = np.flatnonzero(low < high)
        slopes = np.stack([_slope(residuals, place, int(j)) for j in moving], axis=1)
        uphill, here = slopes.T @ now, place[moving]
        stuck = ((here <= low[moving]) & (uphill > 0.0)) | ((here >= high[moving]) & (uphill < 0.0))
        step = np.zeros(len(place))
        step[moving[~stuck]] = np.linalg.lstsq(slopes[:, ~stuck], -now)[0]
        tries = (np.clip(place + step / 2**halvings, low, high) for halvings in range(8))
        tried = ((each, residuals(each)) for each in tries)
        better = next((pair for pair in tried if np.sum(pair[1] ** 2) < np.sum(now**2)), (place, now))
        moved = np.max(np.abs(better[0] - place))
        place, now = better
        if moved < CLOSE:
            break
    return at(place)


def _slope(residuals: Callable[[np.ndarray], np.ndarray], place: np.ndarray, j: int) -> np.ndarray:
    width = WIDTH * np.eye(len(place))[j]
    return (residuals(place + width) - residuals(place - width)) / (2.0 * WIDTH)


class Span(NamedTuple):
    """The range of a constant within which the misfit grows by at most ``SLACK``, if the other constants are
    fitted again."""

    low: float
    high: float


def span(steps: Steps, best: Calibration, name: str) -> Span:
    """The range in which the steps cannot tell one value of a constant from another."""
    allowed = (1.0 + SLACK) * steps.misfit(best)

    def fits(value: float) -> bool:
        return steps.misfit(fit(steps, BOUNDS | {name: (value, value)}, best)) <= allowed

    return Span(*(_edge(fits, getattr(best, name), end) for end in BOUNDS[name]))


def _edge(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """The value between ``inside`` and ``outside`` from which on ``fits`` is False; ``outside`` if it never
    is."""
    if fits(outside):
        return outside
    while abs(outside - inside) > EDGE:
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return inside


@cache
def marked() -> Steps:
    """The published steps of this repository that the constants are fitted on."""
    return Steps(cases())


@cache
def best(bounded: bool = True) -> Calibration:
    """The constants that fit the steps of this repository best."""
    return fit(marked(), BOUNDS if bounded else FREE)


def excess(**values: float) -> float:
    """The misfit of the shipped constants, or of the given ones, relative to the least possible, minus 1."""
    return marked().misfit(replace(DEFAULT, **values)) / marked().misfit(best()) - 1.0


def rounded() -> dict[str, float]:
    """The constants to ship: the best ones, rounded to ``DIGITS``."""
    return {name: round(getattr(best(), name), DIGITS) for name in BOUNDS}


def written(source: str, values: dict[str, float]) -> str:
    """The text of ``constants.py`` with these values."""
    for name, value in values.items():
        source, found = re.subn(rf"(?m)^(    {name}: float = ).*$", rf"\g<1>{value!r}", source)
        if found != 1:
            raise ValueError(f"{name} has {found} lines in constants.py, not one")
    return source


def main(arguments: list[str] | None = None) -> int:
    """Fit, write, and print the span of each constant."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.validation.fitted_steps", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--into", type=Path, default=Path(constants.__file__), help="the file to write")
    into = parser.parse_args(arguments).into
    source = into.read_text(encoding="utf-8")
    into.write_text(written(source, rounded()), encoding="utf-8")
    steps = marked()
    print(f"{len(steps.cases)} training steps in {len(steps.groups)} groups:")
    rows = []
    for name in BOUNDS:
        ways = {"shipped": DEFAULT, "fitted": best(), "unbounded": best(bounded=False)}
        numbers = {way: getattr(there, name) for way, there in ways.items()}
        numbers["written"] = rounded()[name]
        numbers |= span(steps, best(), name)._asdict()
        rows.append({"constant": name} | {key: f"{value:.3f}" for key, value in numbers.items()})
    print("\n".join(printing.table(rows, list(rows[0]))))
    print(f"low, high: with {SLACK:.0%} more misfit, the others fitted again.")
    for way, there in (("shipped", DEFAULT), ("fitted", best()), ("unbounded", best(bounded=False))):
        print(f"misfit as {way}: {steps.misfit(there):.4f}")
    print(f"The shipped ones had {excess():.1%} more than the least.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
