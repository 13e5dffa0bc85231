"""What measured runs of one's own say about the next one on the same machines.

An estimate misses a run for two kinds of reason. Some hold for every run of a cluster and a program: a
slow switch, a driver, a kernel that the program prefers. Others belong to the one run. ``bands.toml`` says
how large both are (``[own]``), from published runs of which several came from one source and one kind of GPU.
A run that you measure is a reading of the first kind, blurred by the second, so the more runs there are, the
further the estimate moves from the published ones towards yours:

    m = (μ / b² + Σ rᵢ / w²) / (1 / b² + n / w²)        s² = 1 / (1 / b² + n / w²) + w²

where rᵢ are the logarithms of measured over estimated, b² and w² the variances between clusters and within
one, μ the middle of the estimate's own band, and b² + w² that band's width. A band never becomes narrower
than what belongs to a run alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.calibration import bands

# half of an 80 % band, in standard deviations
HALF = 1.2816


class Carried(NamedTuple):
    """By what an estimate is multiplied, and between which ends 80 % of runs should lie, as factors of it."""

    times: float
    low: float
    high: float


def carries_from(what: str) -> int:
    """From how many runs of one's own on the next estimate of this quantity is better for them, as far as
    published runs can say: on sources that were left out, the error fell by a tenth and the bands held, with
    each number that was tried. 0 if with one they did not."""
    return int(bands.runs()["own"].get(what, {}).get("carries_from", 0))


def posterior(
    middle: float, half: float, share: float, errors: Sequence[float] | np.ndarray
) -> tuple[float, float]:
    """The middle of a band and half of its width, in logarithms, after the errors of some runs were seen:
    before, they are ``middle`` and ``half``, and ``share`` of the variance lies between clusters."""
    wide = (half / HALF) ** 2
    between, within = share * wide, (1.0 - share) * wide
    known = 1.0 / between + len(errors) / within
    at = (middle / between + float(np.sum(errors)) / within) / known
    return at, HALF * math.sqrt(1.0 / known + within)


def carried(what: str, band: tuple[float, float], ratios: Sequence[float]) -> Carried:
    """The correction that runs of one's own suggest; ``ratios`` are measured over estimated, and ``band`` is
    the band of the estimate that is to be corrected, as factors of it. With fewer runs than ``carries_from``
    asks for it is that band."""
    low, high = (math.log(end) for end in band)
    found = bands.runs()["own"][what]
    share = found["between"] ** 2 / (found["between"] ** 2 + found["within"] ** 2)
    if not 0 < carries_from(what) <= len(ratios):
        return Carried(1.0, *band)
    at, off = posterior(0.5 * (low + high), 0.5 * (high - low), share, np.log(ratios))
    return Carried(math.exp(at), math.exp(at - off), math.exp(at + off))
