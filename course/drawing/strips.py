"""A pipeline schedule as a strip, exactly as it was executed: one row per stage, one block per pass."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing import text
from course.drawing.picture import Picture
from engine.base import units
from engine.executed import pipeline_schedules
from engine.mechanism import pipeline
from engine.mechanism.pipeline_orders import BACKWARD, FORWARD, INPUT, WEIGHT

PASSES = {FORWARD: "forward", BACKWARD: "backward", INPUT: "input gradient", WEIGHT: "weight gradient"}
LOOK = {FORWARD: "forward", BACKWARD: "backward", INPUT: "backward", WEIGHT: "weight"}
FORWARD_S = 0.02  # as in the lesson's figure; each half of a backward takes as long
ROW, GAP = 22.0, 4.0
PAIRED_ROW = 34.0  # where two passes share a row


class Pass(NamedTuple):
    """One block of an executed schedule."""

    stage: int
    kind: int
    batch: int
    chunk: int
    half: int  # 1: the forward of a pair, 2: its backward, 0: alone
    start_s: float
    end_s: float

    @property
    def look(self) -> str:
        """The name of the pass's look; passes of further chunks have another."""
        return LOOK[self.kind] + ("-2" if self.chunk and self.kind != WEIGHT else "")


class Run(NamedTuple):
    """An executed schedule."""

    key: str
    stages: int
    passes: list[Pass]
    held: list[float]
    others: list[tuple[int, float, float]]  # stage, start and end of blocks of the step before or after
    total_s: float
    step_s: float
    bubble: float


def run(key: str, stages: int, micro_batches: int, chunks: int = 1) -> Run:
    """The schedule with a forward of FORWARD_S and a backward of twice that, split into two halves."""
    found = pipeline_schedules.by_key(
        key, stages, micro_batches, chunks, forward_s=FORWARD_S, input_s=FORWARD_S, weight_s=FORWARD_S
    )
    if int(found["stages"]) != stages or int(found["micro_batches"]) != micro_batches:
        raise ValueError(f"{key} cannot run with {stages} stages and {micro_batches} micro-batches")
    columns = ("stage", "kind", "batch", "place", "beside", "start_s", "end_s")
    rows = zip(*(found[column] for column in columns), strict=True)
    passes = [
        Pass(int(stage), int(kind), int(batch), int(place) // stages, int(beside), float(start), float(end))
        for stage, kind, batch, place, beside, start, end in rows
        if stage >= 0
    ]
    held = [float(value) for value in found["held"][:stages]]
    rows = zip(*(found[f"other_{column}"] for column in ("stage", "start_s", "end_s")), strict=True)
    others = [(int(stage), float(start), float(end)) for stage, start, end in rows if stage >= 0]
    return Run(
        key, stages, passes, held, others, *(float(found[name]) for name in ("total_s", "step_s", "bubble"))
    )


def strip(picture: Picture, y: float, shown: Run, whole_s: float) -> float:
    """Draw a schedule on a time axis of this many seconds, from this height on; returns the height below it.

    If its shortest pass has no room for its number, the strip continues on a second line, like text.
    """
    left, right = (54.0, 46.0) if picture.wide else (15.0, 28.0)
    room = picture.width - left - right
    shortest = min(each.end_s - each.start_s for each in shown.passes)
    widest = max(text.width(str(each.batch + 1)) for each in shown.passes)
    lines = 1
    while shortest * room * lines / whole_s < widest + 0.2:
        lines += 1
    for line in range(lines):
        first_s = line * whole_s / lines
        scale = room * lines / whole_s
        y = _rows(picture, y, shown, (first_s, first_s + whole_s / lines), left, scale, head=line == 0)
    return y


def _rows(
    picture: Picture, y: float, shown: Run, window: tuple[float, float], left: float, scale: float, head: bool
) -> float:
    """The part of a schedule within a window of time."""
    row = PAIRED_ROW if any(each.half for each in shown.passes) else ROW
    first_s, last_s = window
    end_s = min(last_s, shown.total_s)
    if head:
        picture.text(picture.width, y + 7, "held", anchor="end", ink="ink-soft")
        y += 18
    for stage in range(shown.stages):
        middle = y + row / 2
        picture.text(0, middle, f"stage {stage + 1}" if picture.wide else f"{stage + 1}", ink="ink-soft")
        picture.box(left, y, (end_s - first_s) * scale, row, "idle", stage=stage)
        for at, start_s, until_s in shown.others:
            start_s, until_s = max(start_s, first_s), min(until_s, last_s)
            if at == stage and until_s > start_s:
                width = (until_s - start_s) * scale
                picture.box(left + (start_s - first_s) * scale, y, width, row, "other-step", stage=stage)
        for each in shown.passes:
            if each.stage == stage and each.end_s > first_s + 1e-9 and each.start_s < last_s - 1e-9:
                _block(picture, each, y, row, left, scale, window)
        if head:
            amount = units.number(shown.held[stage], 2)
            picture.text(picture.width, middle, amount, anchor="end")
        y += row + GAP
    return y + 4


def _block(
    picture: Picture, each: Pass, y: float, row: float, left: float, scale: float, window: tuple[float, float]
) -> None:
    """One pass, cut where the line of its strip ends, and numbered on the line that has most of it."""
    first_s, last_s = window
    start_s, end_s = max(each.start_s, first_s), min(each.end_s, last_s)
    top, high = (y, row) if not each.half else (y + (each.half - 1) * row / 2, row / 2)
    numbered = 2 * (end_s - start_s) >= each.end_s - each.start_s
    picture.box(
        left + (start_s - first_s) * scale,
        top,
        (end_s - start_s) * scale,
        high,
        each.look,
        str(each.batch + 1) if numbered else "",
        **each._asdict(),
    )


def key(shown: Run) -> list[tuple[str, str]]:
    """What the looks of a schedule mean."""
    split = any(each.kind == WEIGHT for each in shown.passes)
    chunked = any(each.chunk for each in shown.passes)
    found: dict[str, str] = {}
    for each in sorted(shown.passes, key=lambda one: (one.kind, one.chunk)):
        words = {"forward": "forward", "backward": "backward", "weight": "weight gradient"}[LOOK[each.kind]]
        if each.kind in (INPUT, BACKWARD) and split:
            both = any(one.kind == BACKWARD for one in shown.passes)
            words = "backward or input gradient" if both else "input gradient"
        found[each.look] = words + (f", chunk {each.chunk + 1}" if chunked and each.kind != WEIGHT else "")
    found["idle"] = "idle"
    if shown.others:
        found["other-step"] = "the step before or after"
    return list(found.items())


def told(shown: Run) -> list[str]:
    """The strip in words: what each stage does, in order."""
    lines = []
    for stage in range(shown.stages):
        mine = sorted(
            (one for one in shown.passes if one.stage == stage), key=lambda one: (one.start_s, one.half)
        )
        words = [f"{PASSES[one.kind]} {one.batch + 1}" for one in mine]
        amount = units.number(shown.held[stage], 2)
        lines.append(
            f"stage {stage + 1}, activations of {amount} micro-batches held at most: {', '.join(words)}"
        )
    return lines


def heading(shown: Run) -> str:
    """The schedule's name, the duration of a step, and the idle share of it."""
    name = pipeline.schedule(shown.key).name
    idle = units.human(shown.bubble, "percent")
    each = "a step every " if shown.step_s < shown.total_s - 1e-9 else ""
    return f"{name}: {each}{units.human(shown.step_s, 'seconds')}, {idle} idle"
