"""The boxed rules of the lessons, as code: each with the domain in which it is claimed and the error that it
is allowed there. A test sweeps the domains; the page prints, under each rule, what a sweep finds."""

from __future__ import annotations

from engine.rules import (
    compiling_held,
    decoding_held,
    foundations_held,
    kernels_held,
    launches_held,
    pools_held,
    precision_held,
    replicas_held,
    splits_held,
    wires_held,
)
from engine.rules.held import HeldRule

PARTS = (
    foundations_held,
    wires_held,
    replicas_held,
    splits_held,
    decoding_held,
    pools_held,
    precision_held,
    launches_held,
    kernels_held,
    compiling_held,
)
ALL: tuple[HeldRule, ...] = tuple(held for part in PARTS for held in part.RULES)


def of(page: str, anchor: str) -> list[HeldRule]:
    """The entries that compare this rule of this page with a model; empty if it has none."""
    return [held for held in ALL if (held.page, held.anchor) == (page, anchor)]


def sentences(page: str, anchor: str) -> str:
    """The sentences that the page prints under this rule; "" if it has no entry."""
    return " ".join(held.sentence for held in of(page, anchor))
