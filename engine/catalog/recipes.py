"""Training recipes: how many bytes of each kind of state a parameter takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

SLABS = ("weight", "gradient", "master", "momentum", "variance")
GATHERED_BYTES = 2.0  # of a weight on the wire, unless a recipe says otherwise


@dataclass(frozen=True)
class MatrixState:
    """What an optimizer keeps of two-dimensional weights that it updates as whole matrices, where all other
    parameters have the moments of the recipe itself.

    Bytes of a value's moments; ``side_bytes`` for each value of the square matrices over rows and over
    columns. ``steps`` are the Newton-Schulz iterations of an update; 0 for one whose time is not modelled.
    """

    momentum_bytes: float
    variance_bytes: float = 0.0
    side_bytes: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter for each kind of training state; ``precision`` is the format of the matrix
    products.

    ``gradient_sum_bytes`` is the part of ``gradient_bytes`` taken by a second buffer, in which the gradients
    of the micro-batches are summed. ``gathered_bytes`` is what FSDP and ZeRO send of a weight, where that is
    not what is kept of it, at most two bytes: 8 and 4 bits are kept twice, by rows and by columns. With
    ``matrices``, momentum and variance are those of the parameters that are no matrices. ``untimed`` says
    what of such a step is not modelled; then an estimate refuses the recipe, and its bytes alone are known.
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
    gathered_bytes: float = 0.0
    matrices: MatrixState | None = None
    untimed: str = ""
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
    def sent_weight_bytes(self) -> float:
        """Bytes of a weight on the wire."""
        return self.gathered_bytes or min(self.weight_bytes, GATHERED_BYTES)

    @property
    def is_uniform(self) -> bool:
        """Whether every parameter takes as many bytes, whatever matrix it is in."""
        return self.matrices is None

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
        matrices=moments.matrices,
        untimed=numbers.untimed or moments.untimed,
        source=f"{numbers.source}; moments: {moments.source}",
    )


def recipe_from(key: str, matrices: dict[str, Any] | None = None, **entry: Any) -> Recipe:
    """A recipe from an entry of the catalogue, in which ``matrices`` is a table."""
    return Recipe(key=key, matrices=MatrixState(**matrices) if matrices else None, **entry)
