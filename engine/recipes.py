"""Training recipes: how many bytes each parameter costs, split by what they hold."""

from __future__ import annotations

from dataclasses import dataclass

SLABS = ("weight", "gradient", "master", "momentum", "variance")


@dataclass(frozen=True)
class Recipe:
    """Bytes per parameter of each kind of training state; ``precision`` is what the matrix products run in."""

    key: str
    name: str
    precision: str
    weight_bytes: float
    gradient_bytes: float
    master_bytes: float
    momentum_bytes: float
    variance_bytes: float
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
