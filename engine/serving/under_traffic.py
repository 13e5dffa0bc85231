"""Servers under traffic: a run of requests, event by event, and the load that a service can carry.

``events.py`` contains the run itself, ``equilibrium.py`` the closed form of the load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import check
from engine.base.types import Real
from engine.serving import equilibrium, events, modes

if TYPE_CHECKING:
    from engine.serving.step_costs import Costs

MODES = {"prefill_first": modes.PREFILL_FIRST, "chunked": modes.CHUNKED, "disaggregated": modes.DISAGGREGATED}


class Traffic(NamedTuple):
    """Requests as they arrive: a Poisson stream with log-normal lengths."""

    requests: Real
    per_s: float
    prompt: float  # medians, in tokens
    output: float
    prompt_spread: float = 0.0  # standard deviation of the logarithm
    output_spread: float = 0.0
    seed: int = 0


def context_of(traffic: Traffic) -> Real:
    """Cached tokens that a decode step reads for each answer, on average (``equilibrium.context_tokens``)."""
    return equilibrium.context(traffic.prompt, traffic.prompt_spread, traffic.output, traffic.output_spread)[
        "tokens"
    ]


class Service(NamedTuple):
    """How the requests are served."""

    mode: int  # one of MODES' values
    instances: int  # total number
    prefill_instances: int = 0  # … of them for prefill only, with separate pools
    budget: float = 2048  # the most tokens in a step
    most_running: float = 256  # the most sequences that decode together
    wire_bytes_per_s: float = 50e9  # between instances, all GPUs of one together
    one_queue: bool = False  # for all instances that prefill; else each has a queue of its own
    warm: bool = True  # a short run begins with as many answers under way as the load has; else idle
    swap_bytes_per_s: float = 0.0  # to host memory, for preempted requests; 0 drops their caches


def run(at: Costs, traffic: Traffic, service: Service) -> dict:
    """Each request's times, and each instance's busy seconds, as columns; see ``events.served``.

    Caches are sent over a wire one after another, once the whole prompt is processed. A request goes to the
    instance with the fewest tokens left to do.
    """
    if not check.is_trusted():
        check.whole(requests=traffic.requests, instances=service.instances)
        check.between(1, events.MOST_REQUESTS, requests=traffic.requests)
        check.between(1, events.MOST_INSTANCES, instances=service.instances)
        check.positive(
            per_s=traffic.per_s,
            prompt=traffic.prompt,
            output=traffic.output,
            budget=service.budget,
            wire_bytes_per_s=service.wire_bytes_per_s,
            capacity=at.capacity,
        )
        check.non_negative(prompt_spread=traffic.prompt_spread, output_spread=traffic.output_spread)
        check.whole(most_running=service.most_running)
        if service.mode == modes.DISAGGREGATED:
            check.between(1, service.instances - 1, prefill_instances=service.prefill_instances)
    return events.served(
        traffic.requests,
        traffic.per_s,
        traffic.prompt,
        traffic.prompt_spread,
        traffic.output,
        traffic.output_spread,
        traffic.seed,
        *_how(at, service),
        balance(at, traffic, service)["running"] if service.warm else 0.0,
    )


def _how(at: Costs, service: Service) -> tuple:
    """The arguments that the programs of ``events.py`` and ``equilibrium.py`` take for these costs and this
    service."""
    return (
        at.rows,
        at.rows_s,
        at.pair_s,
        at.cached_s,
        service.mode,
        service.instances,
        service.prefill_instances,
        service.budget,
        service.most_running,
        at.capacity,
        at.kv_bytes / service.wire_bytes_per_s,
    )


def balance(at: Costs, traffic: Traffic, service: Service) -> dict[str, Any]:
    """What the service can serve at most, and how many answers a replica writes at once under this traffic;
    see ``equilibrium.balance``."""
    return equilibrium.balance(
        traffic.per_s,
        traffic.prompt,
        traffic.prompt_spread,
        traffic.output,
        traffic.output_spread,
        *_how(at, service),
    )


def underway(at: Costs, traffic: Traffic, service: Service) -> int:
    """How many answers are under way at any time under this traffic, over all instances; 0 if a run is to
    begin idle."""
    apart = service.mode == modes.DISAGGREGATED
    decoders = service.instances - (service.prefill_instances if apart else 0)
    return decoders * round(balance(at, traffic, service)["running"]) if service.warm else 0
