"""Training recipes: how many bytes each parameter costs, split by what they hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

SLABS = ("weight", "gradient", "master", "momentum", "variance")


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter of each kind of training state; ``precision`` is what the matrix products run in.

    ``gradient_sum_bytes`` is the part of ``gradient_bytes`` that a second buffer takes, in which micro-batches are added up.
    """

    key: str
    name: str
    precision: str
    weight_bytes: float
    gradient_bytes: float
    master_bytes: float
    momentum_bytes: float
    variance_bytes: float
    gradient_sum_bytes: float = 0.0
    source: str = ""
    checked: str = ""
    note: str = ""

    @property
    def optimizer_bytes(self) -> float:
        """What ZeRO-1 shards: master copy, momentum and variance (ZeRO's K)."""
        return self.master_bytes + self.momentum_bytes + self.variance_bytes

    @property
    def bytes_per_param(self) -> float:
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes

    @property
    def activation_bytes(self) -> float:
        """Of one stored activation. fp8 recipes cast for each product; what they keep is counted in bf16."""
        return 4.0 if self.precision == "fp32" else 2.0

    @property
    def logit_bytes(self) -> float:
        """Of one logit while an unfused loss is computed: in fp32, its fp32 gradient, and the narrower copy if any."""
        return 8.0 if self.precision == "fp32" else 8.0 + self.activation_bytes


def combined(numbers: Recipe, moments: Recipe) -> Recipe:
    """Weights, gradients and master copy of one recipe with the moments of another: precision and optimizer apart."""
    return replace(numbers, key=f"{numbers.key}+{moments.key}", name=f"{numbers.name}, moments of {moments.name}",
                   momentum_bytes=moments.momentum_bytes, variance_bytes=moments.variance_bytes,
                   source=f"{numbers.source}; moments: {moments.source}")
