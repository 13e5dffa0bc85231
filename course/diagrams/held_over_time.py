"""The activations that the first stage holds, from the first pass of a step to the last: GPipe beside
1F1B."""

from __future__ import annotations

import itertools

from course.diagrams import schedule
from course.drawing import strips
from course.drawing.picture import Picture
from engine.base import units

SCHEDULES = ("gpipe", "1f1b")
UNIT, BETWEEN = 11.0, 44.0  # height of a micro-batch's activations; room between two charts


def steps(shown: strips.Run, stage: int = 0) -> list[tuple[float, int]]:
    """(time, micro-batches held from then on): one more when a forward begins, one fewer when its backward
    ends."""
    mine = [one for one in shown.passes if one.stage == stage]
    changes = [(one.start_s, 1) for one in mine if one.look == "forward"]
    changes += [(one.end_s, -1) for one in mine if one.look == "backward"]
    held, found = 0, [(0.0, 0)]
    for at_s, change in sorted(changes):  # at the same time, a release comes before an allocation
        held += change
        found.append((at_s, held))
    return found


def draw(width: float) -> Picture:
    runs = [schedule.executed(key) for key in SCHEDULES]
    tallest = max(held for shown in runs for _, held in steps(shown))
    names = [strips.heading(shown).split(":")[0] for shown in runs]
    picture = Picture(
        "What stage 1 holds over a step: "
        + ", ".join(
            f"{max(held for _, held in steps(shown))} micro-batches at most under {name}"
            for name, shown in zip(names, runs, strict=True)
        )
        + ".",
        f"Two charts over time for {schedule.STAGES} stages and {schedule.MICRO_BATCHES} micro-batches. Each "
        "forward adds the activations of a micro-batch, each backward releases them.",
        width,
    )
    left, y = 30.0, 0.0
    scale = (width - left - 2) / max(shown.total_s for shown in runs)
    for name, shown in zip(names, runs, strict=True):
        most = max(held for _, held in steps(shown))
        words = f"{name}: stage 1 holds {most} micro-batches at most"
        picture.text(0, y + 10, words, bold=True)
        floor = y + 26 + UNIT * tallest
        for level in (0, schedule.STAGES, tallest):
            picture.line((left, floor - level * UNIT), (width, floor - level * UNIT), ink="axis", thick=0.6)
            picture.text(left - 8, floor - level * UNIT, str(level), anchor="end", ink="ink-soft")
        changes = steps(shown)
        for (at_s, held), (until_s, _) in itertools.pairwise(changes):
            if held and until_s > at_s:
                picture.box(
                    left + at_s * scale,
                    floor - held * UNIT,
                    (until_s - at_s) * scale,
                    held * UNIT,
                    "hbm",
                    held=held,
                    start_s=at_s,
                    end_s=until_s,
                )
        picture.tell(
            words,
            "; ".join(
                f"{held} from {units.human(at_s, 'seconds') if at_s else '0 s'}" for at_s, held in changes
            ),
        )
        y = floor + BETWEEN - 24
    picture.text(left, y - 8, "0 s", ink="ink-soft")
    end = units.human(max(shown.total_s for shown in runs), "seconds")
    picture.text(width, y - 8, end, anchor="end", ink="ink-soft")
    picture.tell(
        f"the axis: 0 to {tallest} micro-batches, with a line at {schedule.STAGES}, over 0 s to {end}"
    )
    return picture
