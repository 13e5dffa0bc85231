"""Training recipes: how many bytes of each kind of state a parameter takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

SLABS = ("weight", "gradient", "master", "momentum", "variance")


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter for each kind of training state; ``precision`` is the format of the matrix
    products.

    ``gradient_sum_bytes`` is the part of ``gradient_bytes`` taken by a second buffer, in which the gradients
    of the micro-batches are summed.
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
        """Bytes of training state for each parameter: weight, gradient and the optimizer's values."""
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes

    @property
    def activation_bytes(self) -> float:
        """Bytes of one stored activation. fp8 recipes cast for each product; what they keep is counted in
        bf16."""
        return 4.0 if self.precision == "fp32" else 2.0

    @property
    def logit_bytes(self) -> float:
        """Bytes of one logit while an unfused loss is computed: fp32, its fp32 gradient, and the narrower
        copy if there is one."""
        return 8.0 if self.precision == "fp32" else 8.0 + self.activation_bytes


def combined(numbers: Recipe, moments: Recipe) -> Recipe:
    """Weights, gradients and master copy of one recipe with the moments of another, so that precision and
    optimizer can be chosen separately."""
    return replace(
        numbers,
        key=f"{numbers.key}+{moments.key}",
        name=f"{numbers.name}, moments of {moments.name}",
        momentum_bytes=moments.momentum_bytes,
        variance_bytes=moments.variance_bytes,
        source=f"{numbers.source}; moments: {moments.source}",
    )
