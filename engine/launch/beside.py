"""The memory of models beside the one that is trained: when they are there, and which moment is the fullest.

Reinforcement learning alternates. While answers are written, the engine that writes them has its share of the
memory, beside what of the trained model stays on the GPU; while the model is trained, its activations and
gradients are there, and the engine may have given its memory back. In between the engine is handed the new
weights, and where an adapter is merged into weights that ZeRO 3 shards, each GPU gathers them first. The
fullest of these moments counts.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.catalog.hardware import Gpu
from engine.catalog.models import parameters
from engine.frameworks.described import CRITIC, ROLLOUT, Launch, Role
from engine.mechanism import memory
from engine.step import layout as layouts
from engine.step.layout import Job, Machine

ASLEEP_BYTES = 1e9  # what an engine keeps that has given its weights and its cache back: its CUDA context
STAYING = ("weights", "gradients", "optimizer")  # of what is trained, outside of its own steps
STAYING_THEN = ("weights", "optimizer", "overhead")  # … and when gradients are set free and nothing runs
WIDE_BYTES = 2.0  # of a weight in 16 bits, in which it is merged


class Moments(NamedTuple):
    """Bytes by part while the model is trained, while answers are written, and while the engine is handed the
    weights."""

    training: dict[str, float]
    writing: dict[str, float]
    handing: dict[str, float]

    @property
    def fullest(self) -> dict[str, float]:
        """The parts of the fullest moment."""
        found = self.training
        for other in (self.writing, self.handing):
            if sum(other.values()) > sum(found.values()):
                found = other
        return found


def weights_bytes(role: Role) -> float:
    """What a GPU holds of a role's weights."""
    return parameters(role.model) * role.weight_bytes / role.ranks


def too_small(role: Role, gpu: Gpu) -> bool:
    """Whether a rollout's share of the memory does not even hold its weights."""
    return role.share * memory.capacity_bytes(gpu) < weights_bytes(role) + memory.FRAMEWORK_BYTES


def moments(launch: Launch, at: Machine, held: dict[str, float]) -> Moments:
    """``held`` is what the trained model takes by itself, by part."""
    training = dict(held)
    stays = [] if launch.leaves else ["weights", "optimizer"]  # gradients are set free by then
    writing = {name: size if name in (*stays, "overhead") else 0.0 for name, size in held.items()}
    handing = {name: size if name in STAYING_THEN else 0.0 for name, size in held.items()}
    handing["gathered"] = launch.handed * WIDE_BYTES * parameters(launch.model)
    for role in launch.roles:
        if role.name == ROLLOUT:
            taken = role.share * memory.capacity_bytes(at.gpu)
            writing[role.name] = taken
            training[role.name] = ASLEEP_BYTES if role.leaves else taken
            # an engine that slept wakes its weights alone for that
            handing[role.name] = ASLEEP_BYTES + weights_bytes(role) if role.leaves else taken
        elif role.name == CRITIC:
            training[role.name] = 0.0 if role.leaves else critic_bytes(launch, role, at)
            writing[role.name] = training[role.name]
        else:
            training[role.name] = 0.0 if role.leaves else weights_bytes(role)
            writing[role.name] = training[role.name]
        handing.setdefault(role.name, training[role.name])
    return Moments(training, writing, handing if launch.handed else training)


def critic_bytes(launch: Launch, role: Role, at: Machine) -> float:
    """Weights, gradients and state of a critic, which is as large as its model and cut as the trained one
    is."""
    assert launch.job is not None and launch.layout is not None
    job = Job(launch.job.global_batch, launch.job.seq, launch.job.recipe, launch.job.software)
    held = layouts.estimate(role.model, at, job, role.layout or launch.layout).memory_bytes
    return float(sum(held[name] for name in STAYING))
