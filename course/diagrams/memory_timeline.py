"""What a training step on an H100 holds after each allocation and free, as memory_viz draws it; below, the
same loop with a list that keeps each step's scores, as the meta device makes its storages."""

from __future__ import annotations

import itertools

import numpy as np

from course.drawing.picture import Picture
from engine.base import units
from engine.one_gpu import memory_timeline
from engine.one_gpu.memory_timeline import MemoryTimeline

LENGTH = 8192
HEADS = ("Two steps on an H100, GB", "Three steps that keep their scores, GB")
LOOKS = ("hbm", "hbm-pale", "forward", "backward", "plain")  # of memory_timeline.GROUPS
GB_HIGH, LEFT = 3.4, 26.0  # pixels for a GB; room for the axis
COLUMN, FINEST = 2.0, 0.6  # pixels: a column, and a change that is not seen
TOP_GB, LINE_GB = 60, 20


def seen(run: MemoryTimeline, columns: int) -> list[int]:
    """One event for each column of the picture: the one at which the most is allocated."""
    parts = np.array_split(np.arange(run.held_bytes.shape[1]), columns)
    return [int(part[run.allocated_bytes[part].argmax()]) for part in parts]


def outline(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The line through places, without those between which it hardly moves."""
    found = places[:1]
    for x, y in places[1:]:
        if abs(y - found[-1][1]) > FINEST:
            found += [(x, found[-1][1]), (x, y)]
    return [*found, (places[-1][0], found[-1][1])]


def said(run: MemoryTimeline, step: int) -> tuple[str, str]:
    """The most that is allocated in a step, and what is left at its end."""
    held = run.of_step(step)
    return units.in_unit(held.max(), "GB"), units.in_unit(held[-1], "GB")


def reserved(roof: np.ndarray) -> str:
    """The label of the line of reserved bytes, with their peak."""
    return f"reserved {units.in_unit(float(roof.max()), 'GB')}"


def chart(picture: Picture, y: float, name: str, run: MemoryTimeline) -> float:
    """One chart from this height on; returns the height below it."""
    picture.text(0, y + 8, name, bold=True)
    floor = y + 30 + TOP_GB * GB_HIGH
    right = picture.width - 4
    events = run.held_bytes.shape[1]

    def place(points):
        return [
            (LEFT + at / (events - 1) * (right - LEFT), floor - held * GB_HIGH / 1e9) for at, held in points
        ]

    for level in range(0, TOP_GB, LINE_GB):
        picture.line((LEFT, floor - level * GB_HIGH), (right, floor - level * GB_HIGH), thick=0.6)
        picture.text(LEFT - 6, floor - level * GB_HIGH, str(level), anchor="end", ink="ink-soft")
    shown = seen(run, int((right - LEFT) / COLUMN))
    for group in reversed(range(len(LOOKS))):  # each lies over the one behind it
        up_to = run.held_bytes[: group + 1].sum(axis=0)
        top = outline(place([(0, up_to[0]), *((at, up_to[at]) for at in shown), (events - 1, up_to[-1])]))
        picture.area(
            top,
            [(top[0][0], floor), (top[-1][0], floor)],
            LOOKS[group],
            group=memory_timeline.GROUPS[group],
            most_bytes=float(run.held_bytes[group].max()),
        )
    roof = run.allocated_bytes if run.reserved_bytes is None else run.reserved_bytes
    if run.reserved_bytes is not None:
        steps = outline(place(list(enumerate(roof))))
        for start, end in itertools.pairwise(steps):
            picture.line(start, end, ink="ink-soft", thick=1.2)
        picture.text(right, steps[-1][1] + 10, reserved(roof), anchor="end", ink="ink-soft")
    for step in range(1, len(run.ends)):
        began, held = run.ends[step - 1], run.of_step(step)
        fullest = began + int(held.argmax())
        (x, top), (end, bottom) = place([(fullest, roof[fullest]), (run.ends[step] - 1, 0)])
        most, left = said(run, step)
        picture.text(x, top - 10, most, anchor="middle")
        start = place([(began, 0)])[0][0]
        picture.line((end, bottom), (end, bottom + 5))
        picture.text((start + end) / 2, floor + 14, f"step {step}", anchor="middle", ink="ink-soft")
        picture.text((start + end) / 2, floor + 31, f"leaves {left}", anchor="middle", ink="ink-soft")
    return floor + 52


def draw(width: float) -> Picture:
    runs = [memory_timeline.on_gpu(), memory_timeline.of_steps(3, LENGTH, keeps_scores=True)]
    picture = Picture(
        "What is allocated over training steps: a mountain that comes back to its foot, "
        "and one whose foot rises.",
        "Two charts of allocated bytes over allocations and frees, in their order. Bands lie on each other: "
        "weights, Adam's state, activations, gradients, the optimizer's temporaries.",
        width,
    )
    y = picture.key(1, list(zip(LOOKS, memory_timeline.GROUPS, strict=True))) + 6
    for name, run in zip(HEADS, runs, strict=True):
        y = chart(picture, y, name, run) + 8
        picture.tell(
            name
            + ": "
            + "; ".join(
                "step {}: {} at most, leaves {}".format(step, *said(run, step))
                for step in range(1, len(run.ends))
            )
            + ("" if run.reserved_bytes is None else f"; {reserved(run.reserved_bytes)}")
        )
    picture.tell(
        f"lines at {', '.join(str(level) for level in range(0, TOP_GB, LINE_GB))} GB; bands: "
        + ", ".join(memory_timeline.GROUPS)
    )
    return picture
