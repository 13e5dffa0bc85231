"""One deployment under its load, simulated event by event: what the closed forms promise has to hold here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.serving import events, steady_state
from engine.serving.deployment.found import Measured
from engine.serving.deployment.load import ANY_S, Limits, Load
from engine.serving.drafts import Drafts
from engine.serving.step_costs import Costs
from engine.serving.under_traffic import MODES, Service, Traffic

INSTANCES = 8  # most replicas that are simulated; a larger fleet is cut down, and its load with it
FIRST, COUNTED = 600, 2400  # requests of a run that can only refuse, and of a run that counts
SURE = 9600  # … and of a run that decides where the other is not certain
HOPELESS = 1.25  # a short run that is past a limit by this factor needs no longer run
SEED = 1


class Fleet(NamedTuple):
    """Equal units of replicas, and what they cost."""

    costs: Costs
    units: int
    prefillers: int  # replicas of a unit; 0 where prompts and answers share replicas
    decoders: int
    budget: float
    most_running: float
    wire_bytes_per_s: float
    drafts: Drafts | None = None
    front: Costs | None = None  # costs of the replicas that only prefill, if these are of another kind


def run(fleet: Fleet, load: Load, limits: Limits, requests: int, seed: int = SEED) -> Measured:
    """The latencies at the limits' percentile, in the steady state. A refused request counts as one that
    waits for ever.

    Of a fleet of more than eight replicas, only eight are simulated, or the fewest whole units, with their
    share of the load. A larger fleet would only share its queues better.
    """
    of_unit = fleet.prefillers + fleet.decoders
    units = min(fleet.units, max(1, INSTANCES // of_unit))
    traffic = Traffic(
        requests,
        load.per_s * units / fleet.units,
        load.prompt,
        load.output,
        load.prompt_spread,
        load.output_spread,
        seed,
    )
    service = Service(
        MODES["disaggregated" if fleet.prefillers else "chunked"],
        units * of_unit,
        units * fleet.prefillers,
        budget=fleet.budget,
        most_running=fleet.most_running,
        wire_bytes_per_s=fleet.wire_bytes_per_s,
    )
    columns = steady_state.requests_of(
        fleet.costs, traffic, service, fleet.drafts, hits(load, requests, seed), fleet.front
    )
    first_s, token_s, pause_s = steady_state.felt_in(columns)
    first_s = np.where(np.isnan(first_s), np.inf, first_s)
    kept = (first_s <= limits.ttft_s) & ~(token_s > limits.tpot_s) & ~(pause_s > limits.pause_s)
    goodput = steady_state.known(np.where(kept, 1.0, 0.0))

    def at_limit(values: np.ndarray) -> float:
        return float(np.percentile(values, 100 * limits.share, method="higher"))

    ttft = steady_state.known(first_s, at_limit)
    if np.all(np.isnan(token_s)):  # answers of a single token
        return Measured(ttft.value, ttft.error, 0.0, 0.0, 0.0, len(first_s), 0.0, 0.0, *goodput)
    tpot, pause = steady_state.known(token_s, at_limit), steady_state.known(pause_s, at_limit)
    return Measured(
        *(ttft.value, ttft.error, tpot.value, tpot.error, float(np.nanmedian(token_s)), len(first_s)),
        *(pause.value, pause.error, *goodput),
    )


def hits(load: Load, requests: int, seed: int) -> list[int] | None:
    """The tokens of each prompt that a prefix cache holds; the last token of a prompt is always computed."""
    if not load.prefix_share:
        return None
    drawn = int((1 + steady_state.LATER) * requests)
    prompts = events.lengths(drawn, load.prompt, load.prompt_spread, 104729 * (seed + 1))
    return [min(prompt - 1, int(load.prefix_share * prompt)) for prompt in prompts]


def missed(felt: Measured, limits: Limits, slack: float = 1.0) -> str:
    """The name of the limit that is missed by more than the factor ``slack``; empty if all are met. With a
    limit on pauses the share is that of requests that keep every promise (goodput), and where too few do, the
    limit is named that is the nearest."""
    if felt.ttft_s > slack * limits.ttft_s:
        return "ttft_s"
    if felt.tpot_s > slack * limits.tpot_s:
        return "tpot_s"
    if felt.pause_s > slack * limits.pause_s:
        return "pause_s"
    if limits.pause_s >= ANY_S or 1.0 - felt.kept <= slack * (1.0 - limits.share):
        return ""
    late = {name: getattr(felt, name) / getattr(limits, name) for name in ("ttft_s", "tpot_s", "pause_s")}
    return max(late, key=lambda name: late[name])


def judged(fleet: Fleet, load: Load, limits: Limits) -> tuple[Measured, str]:
    """The fleet's latencies, and the limit that it misses. A deployment that is far past a limit shows this
    in a short run. One that is within a limit by less than the run's own error is simulated again, for longer
    and with other requests: near the most that a server can carry, a short run does not see the rare
    floods."""
    felt = run(fleet, load, limits, FIRST)
    hopeless = missed(felt, limits, HOPELESS)
    if hopeless:
        return felt, hopeless
    felt = run(fleet, load, limits, COUNTED)
    late = missed(felt, limits)
    near = felt.ttft_s + felt.ttft_error_s > limits.ttft_s or felt.tpot_s + felt.tpot_error_s > limits.tpot_s
    near = near or felt.pause_s + felt.pause_error_s > limits.pause_s
    near = near or (limits.pause_s < ANY_S and felt.kept - felt.kept_error < limits.share)
    if not late and near:
        felt = run(fleet, load, limits, SURE, SEED + 1)
        late = missed(felt, limits)
    return felt, late
