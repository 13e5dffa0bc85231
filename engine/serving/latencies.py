"""What readers notice of a run: the wait for a first token, the time of each other one, the longest pause."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base import check, ops
from engine.base.types import Real
from engine.serving import events


class Felt(NamedTuple):
    """The latencies that each request's reader notices; -1 where there is none (a single token, or
    refused)."""

    ttft_s: np.ndarray  # time to first token
    tpot_s: np.ndarray  # time per output token after the first
    pause_s: np.ndarray  # longest pause between two tokens


def felt(columns: dict) -> Felt:
    """The latencies of a run's requests."""
    served = columns["last_s"] >= 0
    more = columns["output"] > 1
    tpot_s = (columns["last_s"] - columns["first_s"]) / ops.maximum(1.0, columns["output"] - 1.0)
    return Felt(
        np.where(served, columns["first_s"] - columns["came_s"], -1.0),
        np.where(served & more, tpot_s, -1.0),
        np.where(served & more, columns["pause_s"], -1.0),
    )


def percentile(values: Real, share: Real) -> Real:
    """The value below which the given share of the values lies; see ``events.percentile``."""
    return events.percentile(values, share)["value"]


def met(latencies: Felt, ttft_s: Real, tpot_s: Real) -> Real:
    """1 for each request that meets both targets, 0 for the others."""
    check.positive(ttft_s=ttft_s, tpot_s=tpot_s)
    both = (latencies.ttft_s >= 0) & (latencies.ttft_s <= ttft_s) & (latencies.tpot_s <= tpot_s)
    return np.where(both, 1.0, 0.0)


def attained(latencies: Felt, ttft_s: Real, tpot_s: Real, requests: Real) -> Real:
    """The share of requests that meet both targets (DistServe's attainment, arXiv:2401.09670 section 2.3)."""
    check.positive(requests=requests)
    return np.sum(met(latencies, ttft_s, tpot_s)) / requests
