"""One pipeline schedule of four stages and eight micro-batches, as it was executed: a strip among its
kind."""

from __future__ import annotations

from course.drawing import strips
from course.drawing.picture import Picture
from engine.base import units

STAGES, MICRO_BATCHES = 4, 8
CHUNKS = 2  # of an interleaved schedule


def executed(schedule: str) -> strips.Run:
    """The schedule, run."""
    return strips.run(schedule, STAGES, MICRO_BATCHES, CHUNKS if schedule == "interleaved" else 1)


def draw(width: float, schedule: str) -> Picture:
    """A strip on the time axis that all of them share, which is as long as 1F1B's step."""
    shown, textbook = executed(schedule), executed("1f1b")
    heading = strips.heading(shown)
    picture = Picture(
        f"{heading}.",
        f"{STAGES} stages and {MICRO_BATCHES} micro-batches, a forward of "
        f"{units.human(strips.FORWARD_S, 'seconds')} and a backward of twice that. Each "
        "row is a stage, each block a pass with the number of its micro-batch; white is idle.",
        width,
    )
    picture.text(0, 10, heading, bold=True)
    y = picture.key(24, strips.key(shown))
    strips.strip(picture, y, shown, textbook.total_s)
    picture.tell(heading, *(words for _, words in strips.key(shown)), *strips.told(shown))
    return picture
