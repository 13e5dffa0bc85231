"""How one copy of a model is divided among GPUs, and which ways to divide it a kind of node allows."""

from __future__ import annotations

from typing import NamedTuple

from engine.catalog.models import Model, divisors
from engine.step.layout import Machine

STAGES = (2, 4)
NODES = (1, 2, 4, 8, 16)  # numbers of nodes over which experts may be spread


class Replica(NamedTuple):
    """One copy of a model. Groups of ``tp`` GPUs divide each layer; ``pp`` such groups each hold one stage of
    the layers, or ``dp`` such groups share the experts."""

    tp: int
    pp: int = 1
    dp: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of the replica."""
        return self.tp * self.pp * self.dp

    @property
    def batches(self) -> int:
        """How many batches it has under way, each with requests of its own: one for each stage, as all
        batches take turns on all stages, or one for each group that shares the experts."""
        return self.pp * self.dp

    @property
    def name(self) -> str:
        """In words: "TP 4", "TP 8 PP 2", "EP 32" or, if attention is divided too, "EP 32 TP 2"."""
        if self.dp > 1:
            return f"EP {self.gpus} TP {self.tp}" if self.tp > 1 else f"EP {self.gpus}"
        return f"TP {self.tp} PP {self.pp}" if self.pp > 1 else f"TP {self.tp}"


def in_a_node(model: Model, at: Machine) -> list[Replica]:
    """Replicas inside a node, with every tensor degree that divides the heads and the node's GPUs."""
    per_node = int(at.wires.gpus_per_node)
    return [Replica(tp) for tp in divisors(model.heads) if per_node % tp == 0]


def staged(model: Model, at: Machine) -> list[Replica]:
    """Replicas that are pipelines: over the GPUs of one node, or over several nodes, each of which is one
    stage with a tensor group."""
    per_node = int(at.wires.gpus_per_node)
    whole = [one.tp for one in in_a_node(model, at)]
    inside = [Replica(tp, pp) for tp in whole for pp in STAGES if tp * pp == per_node]
    across = [Replica(max(whole), pp) for pp in STAGES]
    return [one for one in inside + across if one.pp <= model.depth]


def spread(model: Model, at: Machine) -> list[Replica]:
    """Replicas whose experts are spread over one node or several, while each GPU computes attention by
    itself."""
    per_node = int(at.wires.gpus_per_node)
    return [
        Replica(1, 1, nodes * per_node)
        for nodes in NODES
        if nodes * per_node > 1 and nodes * per_node <= model.experts
    ]
