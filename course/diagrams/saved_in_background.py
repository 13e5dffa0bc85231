"""The same stretch of a run with checkpoints that training waits for, and with checkpoints written in the
background: how often each can be afforded, and what a failure undoes."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture
from engine.base import units
from engine.mechanism import reliability

GPUS = 16384
SHOWN_S, FAILS_S = 2100.0, 1950.0  # of the run, and when a failure comes
WRITING_S = 60.0  # a checkpoint on its way to storage
HIGH, LOW, TITLE = 26.0, 12.0, 24.0


class Way(NamedTuple):
    """A way to save: its name, and for how long training waits for a checkpoint."""

    name: str
    waits_s: float


WAYS = (Way("Training waits for the minute", WRITING_S), Way("Training waits for a copy of 3 s", 3.0))


def interval_s(way: Way) -> float:
    """The best time between two checkpoints (Young)."""
    return float(reliability.young_interval_s(way.waits_s, reliability.mean_time_between_failures_s(GPUS)))


def saves(way: Way) -> list[tuple[float, float]]:
    """When training waits for a checkpoint, in the time that is shown."""
    found, at = [], interval_s(way)
    while at < SHOWN_S:
        found.append((at, at + way.waits_s))
        at += way.waits_s + interval_s(way)
    return found


def kept_s(way: Way) -> float:
    """How much of the run is safe when the failure comes: the work before the last checkpoint that has been
    written."""
    done = [start for start, _ in saves(way) if start + WRITING_S <= FAILS_S]
    return max(done, default=0.0)


def draw(width: float) -> Picture:
    picture = Picture(
        "Half an hour of a run with two ways to save: what training waits for, and what a failure undoes.",
        "Two strips of time. Solid is work that is safe, red is work that the failure undoes, blue are the "
        "times in which training waits for a checkpoint; below, what is written in the background.",
        width,
    )
    scale, y = width / SHOWN_S, 0.0
    for way in WAYS:
        every, lost = (units.human(value, "seconds", 2) for value in (interval_s(way), FAILS_S - kept_s(way)))
        head = f"{way.name}, every {every}"
        picture.text(0, y + 9, head if picture.wide else way.name, bold=True)
        undone = f"the failure undoes {lost}"
        picture.text(width, y + 9 if picture.wide else y + 26, undone, anchor="end", ink="over")
        y += TITLE if picture.wide else TITLE + 17
        picture.box(0, y, kept_s(way) * scale, HIGH, "compute", way=way.name, kind="safe")
        picture.box(
            kept_s(way) * scale, y, (FAILS_S - kept_s(way)) * scale, HIGH, "past", way=way.name, kind="lost"
        )
        for start, end in saves(way):
            if end <= FAILS_S:
                picture.box(start * scale, y, max((end - start) * scale, 1.5), HIGH, "hbm", way=way.name)
                if way.waits_s < WRITING_S:
                    picture.box(start * scale, y + HIGH + 3, WRITING_S * scale, LOW, "hbm-pale")
        picture.line((FAILS_S * scale, y - 5), (FAILS_S * scale, y + HIGH + 5), ink="over", thick=2)
        picture.tell(f"{head}: {undone}")
        y += HIGH + LOW + 18
    key = [
        ("compute", "work that is safe"),
        ("past", "undone"),
        ("hbm", "training waits"),
        ("hbm-pale", "written in the background"),
    ]
    picture.key(y - 8, key)
    picture.tell("; ".join(words for _, words in key))
    return picture
