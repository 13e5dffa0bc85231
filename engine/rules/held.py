"""What a boxed rule claims, and how far off it is. The rule is computed at every point of the domain in which
it is claimed, and compared there with a detailed model of the same quantity, or with the executed
algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from engine.base import units
from engine.base.types import Real

EXACT = 1e-9  # relative: an identity, but for rounding
AS_FACTORS = 0.5  # an error of this size or more is written as a factor instead of in percent


def everywhere(**point: Any) -> bool:
    """The ``claims`` of a rule that leaves out no point of its domain: always True."""
    return True


class RuleError(NamedTuple):
    """The ratio of the model to the rule over all points of a domain: smallest, median and largest; and the
    median and the worst error, as shares of the rule."""

    least: float
    middle: float
    most: float
    median: float
    worst: float
    points: int

    @property
    def exact(self) -> bool:
        """Whether rule and model agree at every point, but for rounding."""
        return self.worst <= EXACT


@dataclass(frozen=True)
class HeldRule:
    """A boxed rule of a lesson, and what it is held against.

    ``rule`` and ``model`` take the names of ``domain`` and give the same quantity; the points are all
    combinations of its values, without those that ``claims`` refuses. ``words`` describe the domain to a
    reader, ``against`` the model. ``allowed`` is the largest error anywhere in the domain; 0 for an identity.
    """

    page: str  # 02-collectives
    anchor: str  # rule-the-ring-allreduce
    rule: Callable[..., Real]
    model: Callable[..., Real]
    domain: Mapping[str, Sequence[Any]]
    words: str
    against: str
    allowed: float = 0.0
    because: str = ""  # a sentence about where the error comes from
    claims: Callable[..., bool] = everywhere

    def points(self) -> Iterator[dict[str, Any]]:
        """Every point of the domain."""
        for values in product(*self.domain.values()):
            point = dict(zip(self.domain, values))
            if self.claims(**point):
                yield point

    @cached_property
    def found(self) -> RuleError:
        """The sweep of the domain."""
        ratios = np.array([float(self.model(**point)) / float(self.rule(**point)) for point in self.points()])
        errors = np.abs(ratios - 1.0)
        return RuleError(
            float(ratios.min()),
            float(np.median(ratios)),
            float(ratios.max()),
            float(np.median(errors)),
            float(errors.max()),
            len(ratios),
        )

    @property
    def sentence(self) -> str:
        """What the page prints under the rule."""
        said = f"Checked against {self.against}, for {self.words}: {verdict(self.found)}."
        return f"{said} {self.because}".strip()


def verdict(found: RuleError) -> str:
    """How far off the rule is, in words: in percent, or as factors where the error is large."""
    if found.exact:
        return "exact"
    if found.worst >= AS_FACTORS:
        least, middle, most = (units.number(value, 2) for value in (found.least, found.middle, found.most))
        return f"{least} to {most} times the rule, {middle} in the median"
    median = units.in_unit(found.median, "%", 2) if found.median > EXACT else "exact"
    below, above = (units.in_unit(share, "%", 2) for share in (1.0 - found.least, found.most - 1.0))
    if found.most <= 1.0 + EXACT:
        return f"at most {below} below the rule, {median} in the median"
    if found.least >= 1.0 - EXACT:
        return f"at most {above} above the rule, {median} in the median"
    return f"from {below} below the rule to {above} above it, {median} in the median"


def first(reached: Callable[[int], bool], most: int) -> int:
    """The smallest whole number, up to ``most``, from which on ``reached`` is true."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
