"""The cheapest deployment for agents' sessions, whose hit rate is a result of the deployment itself.

A deployment is searched for with some share of the prompts held, at first all but what is new. What room it
then has for caches says which share that is (``sessions.run``). Where it is less, the search goes on with
that, so that what is returned never counts on more than its caches hold.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from engine.base import check
from engine.catalog.models import Model
from engine.serving import sessions
from engine.serving.deployment import finder
from engine.serving.deployment.found import Deployment, Deployments
from engine.serving.deployment.load import MOST_PREFIX, Limits, Load
from engine.serving.sessions import SESSION, Found, Sessions, Tier
from engine.step.layout import Machine

ROUNDS, AGREES = 6, 0.01  # of the search at most, and by how much what caches hold may be less


class Below(NamedTuple):
    """A tier below the device on each GPU: the host's memory, or its disks."""

    name: str
    held_bytes: float
    bytes_per_s: float


class Agents(NamedTuple):
    """Deployments for sessions, and what the caches of the best of them hold."""

    found: Deployments
    held: Found
    load: Load  # the requests that the sessions come to
    device_tokens: float  # that each replica has for caches beside the answers under way


def load_of(of: Sessions, share: float = 0.0) -> Load:
    """The requests of these sessions: log-normal prompts with the mean and the variance of theirs, which have
    a geometric number of turns before them."""
    before = max(0.0, of.turns - 1.0)
    apart = math.sqrt(before * of.turns) * (of.added + of.answer) / of.prompt
    spread = min(2.0, math.sqrt(math.log1p(apart**2)))
    median = max(1, round(of.prompt * math.exp(-(spread**2) / 2)))
    return Load(of.per_s * of.turns, median, of.answer, spread, 0.0, min(MOST_PREFIX, share))


def device_tokens(model: Model, at: Machine, load: Load, one: Deployment) -> tuple[float, float]:
    """(tokens of caches beside the answers under way, bytes of one) of each replica that reads prompts."""
    for kind in finder.kinds(model, at, load, (one.weights,), (one.kv_precision,)):
        only = kind.only if one.apart else ""
        if kind.replica == one.reads and kind.only == only:
            taken = 0.0 if one.apart else one.running * (load.prompt + load.output / 2.0)
            return max(0.0, float(kind.costs.capacity) - taken), float(kind.costs.kv_bytes)
    raise ValueError(f"model must be one that {one.reads.name} holds, got {model.key}")


def deploy(
    model: Model,
    at: Machine,
    of: Sessions,
    limits: Limits,
    below: tuple[Below, ...] = (),
    route: str = SESSION,
    **asked: Any,
) -> Agents:
    """The cheapest deployment that serves these sessions; ``below`` are the tiers under each GPU, ``asked``
    what ``finder.deploy`` takes besides. What a turn waits for such a tier is taken off its limit for the
    first token."""
    check.one_of(sessions.ROUTES, route=route)
    for tier in below:
        check.positive(bytes_per_s=tier.bytes_per_s)
        check.non_negative(held_bytes=tier.held_bytes)
    share, waits = of.most, 0.0
    for _ in range(ROUNDS):
        load = load_of(of, share)
        if waits >= limits.ttft_s:
            raise ValueError(
                f"bytes_per_s must be higher for a first token within {limits.ttft_s:g} s: fetching takes "
                f"{waits:.2g} s of it on average"
            )
        within = Limits(limits.ttft_s - waits, limits.tpot_s, limits.share, limits.pause_s)
        found = finder.deploy(model, at, load, within, **asked)
        one = found.best
        tokens, each = device_tokens(model, at, load, one)
        replicas = one.prefill_replicas if one.apart else one.replicas
        tiers = [Tier("device", tokens)]
        for tier in below:
            wire = tier.bytes_per_s * one.reads.gpus
            tiers.append(Tier(tier.name, tier.held_bytes * one.reads.gpus / each, wire))
        held = sessions.run(of, tuple(tiers), replicas, route, each)
        if held.share > share - AGREES and held.fetched_s < waits + AGREES * limits.ttft_s:
            return Agents(found, held, load, tokens)
        share, waits = min(share, held.share), max(waits, held.fetched_s)
    raise ValueError(
        f"below must hold more for these sessions: after {ROUNDS} searches, the last of which counted on "
        f"{share:.0%} of the prompts, no deployment's caches hold as much as it was searched with"
    )
