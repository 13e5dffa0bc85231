"""Training that moves a part of its data to the host's memory: the optimizer with its state, gradients as
they are computed, sharded parameters between their uses, or what layers keep for their backward pass.

The GPU then waits for copies over its link to the host, and for the host's memory, which is some forty times
slower than its own. No published run was found to compare this with. How much of the host's memory it takes
is the program's affair: ``frameworks.framework.Framework.hosted_bytes``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine import catalog
from engine.base import check, ops
from engine.base.types import Real

if TYPE_CHECKING:
    from engine.catalog.recipes import Recipe

OPTIMIZER, GRADIENTS, PARAMETERS, ACTIVATIONS = "optimizer", "gradients", "parameters", "activations"
OFFLOADS = ("none", OPTIMIZER, ACTIVATIONS, f"{OPTIMIZER}+{ACTIVATIONS}")  # that the command offers
PARTS = (OPTIMIZER, GRADIENTS, PARAMETERS, ACTIVATIONS)
PINNED_SHARE = 0.875  # share of the link's rate that pinned copies reach: 55.1 GB/s on our H100
PINNED_MORE = 1.44  # how much more is pinned than asked for, in the mean over sizes: 1/ln 2
IN_TRANSIT = 2.0  # layers whose activations are on the GPU nevertheless: one at work, one in transit


class Offload(NamedTuple):
    """What is moved, and the rates of one GPU's host."""

    optimizer: bool
    activations: bool
    link_bytes_per_s: float
    memory_bytes_per_s: float
    gradients: bool = False  # with the optimizer alone
    parameters: bool = False  # those that are sharded; a layer's come up before each of its passes

    def layer_s(self, kept_bytes: Real) -> Real:
        """Seconds to copy a layer's activations, to the host in the forward pass or back in the backward
        pass. The copy runs beside the layer's arithmetic."""
        return kept_bytes / self.link_bytes_per_s if self.activations else 0.0

    def on_gpu(self, kept_bytes: Real, layers: Real, flight: Real) -> Real:
        """The bytes of this many layers' activations, each for the micro-batches in flight, that stay on the
        GPU."""
        held = layers * flight
        return kept_bytes * (ops.minimum(IN_TRANSIT, held) if self.activations else held)

    def weights_s(self, sharded_bytes: Real, passes: Real) -> Real:
        """Seconds to copy this GPU's shard of all weights up, once for each pass over the layers. The copies
        run beside the arithmetic."""
        return passes * sharded_bytes / self.link_bytes_per_s if self.parameters else 0.0

    def step_s(self, params: Real, recipe: Recipe, backward_s: Real) -> Real:
        """An optimizer on the host, exposed seconds. This GPU's gradients go down behind the last backward
        pass as they are computed; then the host reads and writes the state, reads the gradients and writes
        the weights, which come up while others are updated (ZeRO-Offload, arXiv:2101.06840 sections 4.1 and
        5.1)."""
        down_s = params * recipe.gradient_bytes / self.link_bytes_per_s
        moved = 2.0 * recipe.optimizer_bytes + recipe.gradient_bytes + recipe.weight_bytes
        update_s = params * moved / self.memory_bytes_per_s
        up_s = params * recipe.weight_bytes / self.link_bytes_per_s
        return ops.maximum(0.0, down_s - backward_s) + ops.maximum(update_s, up_s)


def pinned_bytes(size: float) -> float:
    """What PyTorch's allocator of pinned memory takes for a buffer, and keeps when it is freed: the next
    power of two (aten/src/ATen/core/CachingHostAllocator.h, ``PowerOf2Ceil``).

    >>> pinned_bytes(5e9) / 2**30
    8.0
    """
    taken = 1.0
    while taken < size:
        taken = 2.0 * taken
    return taken if size > 0.0 else 0.0


def offload(name: str, gpu_key: str) -> Offload | None:
    """What one of OFFLOADS moves on this GPU, and the host's rates; None for "none". ValueError if the GPU's
    host is not known."""
    if name == "none":
        return None
    moves = name.split("+")
    if [part for part in PARTS if part in moves] != moves or (GRADIENTS in moves) > (OPTIMIZER in moves):
        check.one_of(OFFLOADS, offload=name)
    hosts = catalog.all_hosts()
    if gpu_key not in hosts:
        raise ValueError(
            f"offload must be none on {gpu_key}, whose host is not in the catalogue; it has those of "
            f"{', '.join(hosts)}"
        )
    host = hosts[gpu_key]
    return Offload(
        OPTIMIZER in moves,
        ACTIVATIONS in moves,
        PINNED_SHARE * host.link.bytes_per_s,
        host.memory_bytes_per_s,
        GRADIENTS in moves,
        PARAMETERS in moves,
    )
