"""A stretch of a long run with one failure in it: work, checkpoints, what is lost, and the way back."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture

HIGH, BELOW = 34.0, 10.0
INTERVAL, WRITES, COMES_BACK = 5.0, 0.7, 2.2  # in one unit of time; only their order is meant
FAILS_AFTER = INTERVAL / 2  # in the middle of an interval, which is the mean


class Piece(NamedTuple):
    """A stretch of time: what happens in it, how long it lasts, and its look."""

    kind: str
    lasts: float
    look: str


def pieces() -> list[Piece]:
    """The run from one checkpoint past a failure to the next one."""
    return [
        Piece("work", INTERVAL, "compute"),
        Piece("write", WRITES, "hbm"),
        Piece("lost", FAILS_AFTER, "past"),
        Piece("back", COMES_BACK, "idle"),
        Piece("again", FAILS_AFTER, "compute-pale"),
        Piece("work", INTERVAL - FAILS_AFTER, "compute"),
        Piece("write", WRITES, "hbm"),
    ]


def words(wide: bool) -> dict[str, str]:
    """The text in the box of each kind of piece."""
    if wide:
        return {"work": "work", "write": "", "lost": "lost", "back": "come back", "again": "done again"}
    return {"work": "work", "write": "", "lost": "lost", "back": "back", "again": "again"}


def draw(width: float) -> Picture:
    picture = Picture(
        "One failure costs the work since the last checkpoint and the time to come back.",
        "A strip of time, from left to right: work, a checkpoint, work that a failure undoes, the time to "
        "come back, the same work done again, more work, a checkpoint. Not to scale.",
        width,
    )
    parts = pieces()
    scale = width / sum(part.lasts for part in parts)
    top, at, ends = 24.0, 0.0, []
    for part in parts:
        said = words(picture.wide)[part.kind]
        picture.box(at, top, part.lasts * scale, HIGH, part.look, said, kind=part.kind, lasts=part.lasts)
        at += part.lasts * scale
        ends.append(at)
    failure = ends[2]
    picture.line((failure, top - 6), (failure, top + HIGH + 4), ink="over", thick=2)
    picture.text(failure, 9, "a failure", anchor="middle", ink="over", bold=True)
    picture.bracket(0, ends[0], top + HIGH + BELOW, "τ")
    picture.bracket(ends[0], ends[1], top + HIGH + BELOW, "δ")
    picture.bracket(ends[2], ends[3], top + HIGH + BELOW, "R")
    bottom = top + HIGH + BELOW + 32
    for said in keys():
        bottom = picture.paragraph(0, bottom, said, width) + 3
    picture.tell(
        "work for τ, then a checkpoint, which takes δ",
        "work, until a failure: everything since the checkpoint is lost",
        "R to come back",
        "the lost work is done again, then the interval goes on to its checkpoint",
        *keys(),
        *words(True).values(),
        *words(False).values(),
        "a failure",
    )
    return picture


def keys() -> list[str]:
    """What the letters over the strip mean."""
    return [
        "τ: useful time between two checkpoints",
        "δ: time that training waits for a checkpoint to be written",
        "R: time from the failure to the next step",
    ]
