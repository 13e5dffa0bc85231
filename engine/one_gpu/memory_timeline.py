"""What is allocated after each event of a recorded training step, and to whom it belongs: the picture that
PyTorch's memory_viz calls "Active Memory Timeline".

``on_gpu`` is the history that PyTorch's allocator kept on an H100 (measure/memory_history.py), where each
phase of a step was marked. ``of_steps`` has the storages that the same steps make and free on the meta device
(record/training_steps.py), for any length and for a loop that leaks; there, the owner of a storage follows
from the order of events alone. The last storages that a step frees are the gradients, one for each weight, by
``zero_grad``, and then the batch; storages that are made after the last gradient and freed within the step
belong to the optimizer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.base import check
from engine.one_gpu import allocator_replay, measurements
from engine.one_gpu.allocator import rounded_bytes

GROUPS = ("weights", "Adam's state", "activations", "gradients", "the optimizer's temporaries")
WEIGHTS, STATE, ACTIVATIONS, GRADIENTS, TEMPORARIES = range(5)
INPUTS = 2  # tokens and targets, freed last


class MemoryTimeline(NamedTuple):
    """``held_bytes[group, event]`` after each event, and how many events there were at the end of the set-up
    and of each step. ``reserved_bytes`` after each event, if it was recorded on a GPU."""

    held_bytes: np.ndarray
    ends: list[int]
    reserved_bytes: np.ndarray | None = None

    @property
    def allocated_bytes(self) -> np.ndarray:
        """[event]: bytes allocated after each event, of all groups together."""
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
    """The storage of a step's attention scores: the first of its largest storages."""
    of = allocator_replay.trace()
    made = of[phase][of[phase] > 0].astype(int) - 1
    return int(made[np.argmax(of["bytes_per_length"][made])])


def of_steps(steps: int, length: int, keeps_scores: bool = False) -> MemoryTimeline:
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
    return MemoryTimeline(np.array(columns).T, ends)


# -- on a GPU ------------------------------------------------------------------------------------------------
def history() -> dict:
    """The recorded history of two steps on an H100, in the form that measure/memory_history.py describes."""
    return measurements.on("h100-sxm")["memory_history"]


def on_gpu() -> MemoryTimeline:
    """The timeline of the two steps of ``history``, as PyTorch's allocator recorded them."""
    found = history()
    events = np.array(found["events"])
    changes = np.sign(events) * np.array(found["bytes"])[np.abs(events) - 1]
    belongs = groups_on_gpu()[np.abs(events) - 1]
    held = np.cumsum([np.where(belongs == group, changes, 0) for group in range(len(GROUPS))], axis=1)
    before, given = np.array(found["segments"]).T  # a segment is made just before the event that needs it
    reserved = np.cumsum(np.bincount(before, given, minlength=len(events)))
    return MemoryTimeline(held, found["ends"][:: len(found["phases"])], reserved)


def groups_on_gpu() -> np.ndarray:
    """The group of each block, by the phase in which it was made and by whether it outlives that phase. The
    workspaces that cuBLAS keeps, of the first forward and backward pass, count as activations."""
    found = history()
    events, ends = np.array(found["events"]), np.array(found["ends"])
    moments = np.arange(len(events))
    made, freed = np.full((2, len(found["bytes"])), len(events))
    made[events[events > 0] - 1] = moments[events > 0]
    freed[-events[events < 0] - 1] = moments[events < 0]
    phase = np.searchsorted(ends, made, "right")  # 0 is the set-up; then the phases of the steps alternate
    name = np.array(["set-up", *found["phases"] * (len(ends) // len(found["phases"]))])[phase]
    outlives, stays = freed >= ends[phase], freed == len(events)
    return np.select(
        [
            name == "set-up",
            (name == "backward") & outlives & ~stays,
            (name == "optimizer") & stays,
            name == "optimizer",
        ],
        [WEIGHTS, GRADIENTS, STATE, TEMPORARIES],
        ACTIVATIONS,
    )
