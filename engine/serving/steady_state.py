"""A server in its steady state: the load that it can carry, and the latencies of its requests, each with its
own error.

A run that starts idle shows a server filling up. Here the first part of a run is dropped, the rest is cut
into batches whose means say how uncertain the whole is, and the run is doubled until this uncertainty is
small enough. Where requests arrive faster than they can be served there is nothing to measure: the queue
grows for as long as anyone looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.base import check
from engine.base.types import Real
from engine.serving import events, modes, under_traffic

if TYPE_CHECKING:
    from engine.serving.drafts import Drafts
    from engine.serving.step_costs import Costs
    from engine.serving.under_traffic import Service, Traffic

WARM_UP, LATER = 0.2, 0.25  # shares of a run: dropped at its start, added behind it to keep it busy
NEAR = 0.9  # share of the most that can be served, above which a short run's error says too little
BATCHES, STUDENT = 20, 2.093  # Student's t for 95 % with 19 degrees of freedom


# -- the load ------------------------------------------------------------------------------------------------
def lengths_of(traffic: Traffic) -> tuple[float, float, float, float]:
    """(prompt, its spread, output, its spread)."""
    return traffic.prompt, traffic.prompt_spread, traffic.output, traffic.output_spread


def can_serve_per_s(at: Costs, traffic: Traffic, service: Service) -> float:
    """Requests per second that can be served at most: ``equilibrium.balance`` of these costs, lengths and
    service."""
    return under_traffic.balance(at, traffic, service)["per_s"]


# -- the error of a run --------------------------------------------------------------------------------------
class Interval(NamedTuple):
    """A figure of a run, and half the width of its 95 % interval."""

    value: float
    error: float


def known(values: np.ndarray, statistic: Callable[[np.ndarray], Any] = np.mean) -> Interval:
    """A statistic of a series, with an error that is estimated from consecutive batches of the series (batch
    means: Law and Carson, Operations Research 27, 1979). NaN is left out: it stands for a value that a
    request does not have."""
    values = values[~np.isnan(values)]
    if len(values) < 2 * BATCHES:
        raise ValueError(f"values must have at least {2 * BATCHES} entries, got {len(values)}")
    of_batches = [statistic(batch) for batch in np.array_split(values, BATCHES)]
    spread = float(np.std(of_batches, ddof=1)) / math.sqrt(BATCHES)
    return Interval(float(statistic(values)), STUDENT * spread)


FEW, STUDENT_FEW = 5, 2.776  # batches of a short run, and Student's t for 95 % with 4 degrees of freedom


def half_width(values: Real) -> Real:
    """Half of the 95 % interval of a short run's mean, from five batches; for a page."""
    of_batches = np.mean(np.reshape(values, (FEW, -1)), axis=1)
    squares = (of_batches - np.mean(of_batches)) ** 2
    return STUDENT_FEW * np.sqrt(np.sum(squares) / ((FEW - 1.0) * FEW))


def median(values: np.ndarray) -> float:
    """The median: half of the values are no larger."""
    return float(np.percentile(values, 50))


def most(values: np.ndarray) -> float:
    """The 90th percentile: nine of ten values are no larger."""
    return float(np.percentile(values, 90))


class Settled(NamedTuple):
    """The latencies of requests in the steady state; all are ``None`` if there is no steady state."""

    can_serve_per_s: float
    load: float  # arrivals over the requests that can be served
    requests: int  # requests that were counted
    ttft_s: Interval | None  # median time to first token
    ttft_most_s: Interval | None  # 90th percentile
    tpot_most_s: Interval | None
    pause_s: Interval | None  # median of each request's longest pause between two tokens
    pause_most_s: Interval | None
    met: (
        tuple[Interval, ...] | None
    )  # share of requests within both targets, for each target of a token's time

    @property
    def steady(self) -> bool:
        """Whether the server keeps up with its requests."""
        return self.met is not None

    @property
    def falls_behind(self) -> float:
        """Seconds that a first token comes later with each second that passes: load − 1, at least 0."""
        return max(0.0, self.load - 1.0)


def requests_of(
    at: Costs,
    traffic: Traffic,
    service: Service,
    drafts: Drafts | None = None,
    hits: list[int] | None = None,
    front: Costs | None = None,
) -> dict[str, np.ndarray]:
    """The requests of a run of any length, as columns: arrival, output, and what ``events.serve`` gives for
    each. If ``service.warm``, the run begins with as many answers under way as this load has on average.
    ``hits`` are the tokens of each prompt that a prefix cache holds, for a quarter more requests than are
    counted; ``front`` the costs of the replicas that only prefill, if they are other ones."""
    front = at if front is None else front
    count, seed = int(traffic.requests), int(traffic.seed)
    drawn = int((1 + LATER) * count)
    begun = int(under_traffic.underway(at, traffic, service))
    came, prompts, outputs, aged = events.underway(begun, *lengths_of(traffic), 32452843 * (seed + 1))
    begin = len(came)
    late = events.drawn(drawn, traffic.per_s, *lengths_of(traffic), seed)
    came, prompts, outputs = came + late[0], prompts + late[1], outputs + late[2]
    swap_s = at.kv_bytes / service.swap_bytes_per_s if service.swap_bytes_per_s else modes.RECOMPUTE
    run = events.serve(
        {
            "came_s": came,
            "prompts": prompts,
            "outputs": outputs,
            "hits": [0.0] * begin + [*([0] * drawn if hits is None else hits)],
            "aged": [*aged, *[0.0] * drawn],
            "rounds": events.rounds(outputs) if drafts is None else drafts.rounds(outputs, seed),
            "counted": begin + count,
        },
        {
            "mode": int(service.mode),
            "instances": int(service.instances),
            "prefill_instances": int(service.prefill_instances),
            "shared": int(service.one_queue),
            "budget": float(service.budget),
            "most_running": float(service.most_running),
            "capacity": float(at.capacity),
            "front_capacity": float(front.capacity),
            "transfer_s": float(at.kv_bytes / service.wire_bytes_per_s),
            "swap_s": float(swap_s),
            "rows": [float(value) for value in at.rows],
            "rows_s": [float(value) for value in at.rows_s],
            "pair_s": float(at.pair_s),
            "cached_s": float(at.cached_s),
            "front_rows_s": [float(value) for value in front.rows_s],
            "front_pair_s": float(front.pair_s),
            "width": 1 if drafts is None else drafts.drafted + 1,
            "draft_s": 0.0 if drafts is None else drafts.step_s,
        },
    )
    columns = run | {"came": came, "output": outputs}
    return {
        name: np.array(values if name in ("busy", "prefilling") else values[begin : begin + count], float)
        for name, values in columns.items()
    }


def felt_in(columns: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first token, time per token, longest pause) in seconds of each request after the warm-up; NaN for one
    that was refused, or has a single token."""
    begin = int(WARM_UP * len(columns["came"]))
    came, output, first, last, pause = (
        columns[name][begin:] for name in ("came", "output", "first", "last", "pause")
    )
    served, more = last >= 0, output > 1
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            np.where(served, first - came, np.nan),
            np.where(served & more, (last - first) / (output - 1), np.nan),
            np.where(served & more, pause, np.nan),
        )


def settle(
    at: Costs,
    traffic: Traffic,
    service: Service,
    ttft_s: float,
    tpot_s: tuple[float, ...],
    within: float = 0.02,
    longest: int = 64_000,
) -> Settled:
    """The steady state under this traffic, from a run that is doubled until each share within the targets is
    known to ``within``, or until it would have more than ``longest`` requests. Near the limit rare floods
    matter, which a short run may not contain; there the run always has that many requests.

    ``traffic.requests`` is the length of the first run. A refused request meets no target; a single token has
    no time between tokens to miss.
    """
    check.positive(ttft_s=ttft_s, within=within)
    can = can_serve_per_s(at, traffic, service)
    load = traffic.per_s / can
    if load >= 1.0:
        return Settled(can, load, 0, None, None, None, None, None, None)
    count = int(traffic.requests)
    while load >= NEAR and 2 * count <= longest:
        count *= 2
    while True:
        first_s, token_s, pause_s = felt_in(requests_of(at, traffic._replace(requests=count), service))
        met = tuple(known(np.where((first_s <= ttft_s) & ~(token_s > each_s), 1.0, 0.0)) for each_s in tpot_s)
        sure = all(share.error <= within for share in met)
        if sure or 2 * count > longest:
            return Settled(
                can,
                load,
                len(first_s),
                known(first_s, median),
                known(first_s, most),
                known(token_s, most),
                known(pause_s, median),
                known(pause_s, most),
                met,
            )
        count *= 2
