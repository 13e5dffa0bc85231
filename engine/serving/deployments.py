"""The search over deployments: how to split a fleet into replicas for the highest throughput with tokens that
come in time.

All tensor-parallel degrees are tried with all numbers of users per replica; the throughput of each is
``decoding.steady``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.base import check
from engine.catalog.models import Model
from engine.mechanism.memory import BYTES_PER_VALUE
from engine.serving import decoding, inference
from engine.step.layout import Machine
from engine.step.legality import divisors


@dataclass(frozen=True)
class Deployment:
    """A fleet split into equal replicas, each kept full by a queue that never runs empty."""

    tp: int  # GPUs of a replica
    replicas: int
    users: int  # at once, per replica
    token_s: float  # from one of a user's tokens to the next
    first_s: float  # from a prompt to its first token, on an idle replica
    tokens_per_s_per_gpu: float

    @property
    def tokens_per_s(self) -> float:
        """The throughput of all replicas; left-over GPUs do nothing."""
        return self.replicas * self.tp * self.tokens_per_s_per_gpu

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "tp": self.tp,
            "replicas": self.replicas,
            "users": self.users,
            "token_s": self.token_s,
            "first_s": self.first_s,
            "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu,
            "tokens_per_s": self.tokens_per_s,
        }


@dataclass(frozen=True)
class Deployments:
    """The deployment with the highest throughput within the target, and the best of every other degree, in
    order."""

    best: Deployment
    runners_up: tuple[Deployment, ...]

    def as_dict(self) -> dict:
        """The search as the command line prints it with --json."""
        return {"best": self.best.as_dict(), "runners_up": [other.as_dict() for other in self.runners_up]}


def deploy(
    model: Model,
    at: Machine,
    gpus: int,
    token_s: float,
    prompt: int = 1024,
    output: int = 128,
    kv_precision: str | None = None,
    weight_precision: str | None = None,
    top: int = 5,
) -> Deployments:
    """The best splits of ``gpus`` GPUs into replicas whose users get a token every ``token_s`` seconds.

    Leaves out bursts and the queueing they cause, speculative decoding, expert parallelism and pipelines.
    """
    check.whole(gpus=gpus, prompt=prompt, output=output, top=top)
    check.positive(token_s=token_s)
    kv_precision = inference.cache_precision(at) if kv_precision is None else kv_precision
    check.one_of(BYTES_PER_VALUE, kv_precision=kv_precision)
    check.one_of((None, *BYTES_PER_VALUE), weight_precision=weight_precision)
    degrees = np.array([float(degree) for degree in divisors(model.heads) if degree <= gpus])
    load = (prompt, output, BYTES_PER_VALUE[kv_precision], inference.stored_bytes(at, weight_precision))
    with np.errstate(divide="ignore", invalid="ignore"):
        grid = decoding.steady(model, at, degrees[:, None], decoding.USERS[None, :], *load)
        within = decoding.steady_within(token_s, grid, model, at, degrees, *load)
    found = [
        Deployment(int(tp), int(gpus // tp), int(users), float(each_s), float(first_s), float(brings))
        for tp, users, each_s, brings, first_s in zip(degrees, *map(np.asarray, within))
        if brings > 0
    ]
    if not found:
        _refuse(model, at, gpus, token_s, grid)
    first, *others = sorted(found, key=lambda one: (-one.tokens_per_s, one.tp))[:top]
    return Deployments(first, tuple(others))


def _refuse(model: Model, at: Machine, gpus: int, token_s: float, grid: decoding.Steady) -> None:
    """Raise a ValueError: either the memory is too small, or the target is too tight, with the best that is
    possible."""
    serving = np.asarray(grid.tokens_per_s_per_gpu) > 0
    if not serving.any():
        raise ValueError(f"gpus must be enough to hold {model.key} on {at.gpu.key}, got {gpus}")
    fastest_s = float(np.asarray(grid.token_s)[serving].min())
    raise ValueError(
        f"token_s must be at least {fastest_s:.3g} for {model.key} on {gpus} {at.gpu.key}, got {token_s!r}"
    )
