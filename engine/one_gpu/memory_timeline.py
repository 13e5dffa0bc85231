"""What is allocated after each event of a recorded training step, and to whom it belongs: the picture that
PyTorch's memory_viz calls "Active Memory Timeline".

The events are those of record/training_steps.py: storages made and freed by a real PyTorch, in order. What
belongs to whom follows from that order alone. The last frees of a step are those of ``zero_grad``, one a
weight, then the batch's; what is made after the last gradient and freed within the step is the optimizer's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base import check
from engine.one_gpu import allocator_replay
from engine.one_gpu.allocator import rounded_bytes

GROUPS = ("weights", "Adam's state", "activations", "gradients", "the optimizer's temporaries")
WEIGHTS, STATE, ACTIVATIONS, GRADIENTS, TEMPORARIES = range(5)
INPUTS = 2  # tokens and targets, freed last


class Timeline(NamedTuple):
    """``held_bytes[group, event]`` after each event, and how many events there were at the end of the set-up
    and of each step."""

    held_bytes: np.ndarray
    ends: list[int]

    @property
    def allocated_bytes(self) -> np.ndarray:
        return self.held_bytes.sum(axis=0)

    def of_step(self, step: int) -> np.ndarray:
        """Allocated bytes after each event of a step, counted from 1; 0 is the set-up."""
        return self.allocated_bytes[self.ends[step - 1] if step else 0 : self.ends[step]]


def groups() -> np.ndarray:
    """The group of each storage."""
    of = allocator_replay.trace()
    found = np.full(len(of["kinds"]), ACTIVATIONS)
    found[of["kinds"] == allocator_replay.WEIGHTS] = WEIGHTS
    for phase in ("first", "steady"):
        events = of[phase].astype(int)
        gradients = -events[-len(of["setup"]) - INPUTS : -INPUTS]
        made = [int(np.flatnonzero(events == storage)[0]) for storage in gradients]
        later = events[max(made) + 1 :]
        found[gradients - 1] = GRADIENTS
        found[later[later > 0] - 1] = TEMPORARIES
    found[of["kinds"] == allocator_replay.OPTIMIZER] = STATE
    return found


def scores(phase: str) -> int:
    """The storage of a step's scores, the first of its largest ones."""
    of = allocator_replay.trace()
    made = of[phase][of[phase] > 0].astype(int) - 1
    return int(made[np.argmax(of["bytes_per_length"][made])])


def of_steps(steps: int, length: int, keeps_scores: bool = False) -> Timeline:
    """The recorded step, ``steps`` times at one length. ``keeps_scores``: each step appends its scores to a
    list, so they are never freed."""
    check.whole(steps=steps, length=length)
    of, belongs = allocator_replay.trace(), groups()
    size = [
        rounded_bytes(fixed + per_token * length)
        for fixed, per_token in zip(of["fixed_bytes"], of["bytes_per_length"], strict=True)
    ]
    kept = {scores("first"), scores("steady")} if keeps_scores else set()
    held, columns, ends = np.zeros(len(GROUPS)), [], []
    for phase in ["setup", "first", *["steady"] * (steps - 1)]:
        for event in of[phase].astype(int):
            storage = abs(event) - 1
            if event > 0 or storage not in kept:
                held[belongs[storage]] += size[storage] if event > 0 else -size[storage]
            columns.append(held.copy())
        ends.append(len(columns))
    return Timeline(np.array(columns).T, ends)
