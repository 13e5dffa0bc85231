"""How one copy of a model lies on its GPUs, and which ways there are on a kind of node."""

from __future__ import annotations

from typing import NamedTuple

from engine.catalog.models import Model
from engine.step.layout import Machine
from engine.step.legality import divisors

STAGES = (2, 4)
NODES = (1, 2, 4, 8, 16)  # over which experts are spread


class Replica(NamedTuple):
    """``tp`` GPUs divide each layer; ``pp`` such groups have a stage of the layers each, or ``dp`` of them
    share the experts."""

    tp: int
    pp: int = 1
    dp: int = 1

    @property
    def gpus(self) -> int:
        """All of its GPUs."""
        return self.tp * self.pp * self.dp

    @property
    def batches(self) -> int:
        """The batches that it has under way, each with requests of its own: one that takes its turn on all
        stages, or one for each group that shares the experts."""
        return self.pp * self.dp

    @property
    def name(self) -> str:
        """ "TP 4", "TP 8 PP 2", "EP 32" or, with an attention that is divided too, "EP 32 TP 2"."""
        if self.dp > 1:
            return f"EP {self.gpus} TP {self.tp}" if self.tp > 1 else f"EP {self.gpus}"
        return f"TP {self.tp} PP {self.pp}" if self.pp > 1 else f"TP {self.tp}"


def in_a_node(model: Model, at: Machine) -> list[Replica]:
    """Every tensor degree that divides the heads and the node."""
    per_node = int(at.wires.gpus_per_node)
    return [Replica(tp) for tp in divisors(model.heads) if per_node % tp == 0]


def staged(model: Model, at: Machine) -> list[Replica]:
    """Pipelines: of all GPUs of a node, or of the tensor groups of several, a node a stage."""
    per_node = int(at.wires.gpus_per_node)
    whole = [one.tp for one in in_a_node(model, at)]
    inside = [Replica(tp, pp) for tp in whole for pp in STAGES if tp * pp == per_node]
    across = [Replica(max(whole), pp) for pp in STAGES]
    return [one for one in inside + across if one.pp <= model.layers]


def spread(model: Model, at: Machine) -> list[Replica]:
    """Experts over one node or several, and attention on each GPU by itself."""
    per_node = int(at.wires.gpus_per_node)
    return [
        Replica(1, 1, nodes * per_node)
        for nodes in NODES
        if nodes * per_node > 1 and nodes * per_node <= model.experts
    ]
