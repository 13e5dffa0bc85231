"""An AllReduce in its two halves: what each of four ranks holds before, between and after them."""

from __future__ import annotations

from course.drawing.picture import Picture

RANKS = 4
CHUNKS = "abcd"
STATES = ("before", "one sum each", "all sums")
HALVES = ("ReduceScatter", "AllGather")
CELL, WIDTH = 24.0, 30.0


def holds(state: int, rank: int, chunk: int) -> str:
    """What a rank holds of a chunk: its own part, the finished sum, or nothing that is still needed."""
    if state == 0:
        return f"{CHUNKS[chunk]}{rank}"
    return f"Σ{CHUNKS[chunk]}" if state == 2 or rank == chunk else ""


def draw(width: float) -> Picture:
    sums = ", ".join(
        f"Σ{chunk} = {' + '.join(f'{chunk}{rank}' for rank in range(RANKS))}" for chunk in CHUNKS
    )
    picture = Picture(
        "An AllReduce is a ReduceScatter and an AllGather.",
        "Three tables, a row for each rank, a column for each chunk of its buffer: before, after the "
        "ReduceScatter and after the AllGather.",
        width,
    )
    left = 48.0 if picture.wide else 58.0
    panel = RANKS * WIDTH
    gap = (width - left - 3 * panel) / 2 if picture.wide else 0.0
    high = 24 + RANKS * CELL
    for state, name in enumerate(STATES):
        x = left + state * (panel + gap) if picture.wide else left
        y = 0.0 if picture.wide else state * (high + 44)
        picture.text(x, y + 9, name, bold=True)
        for rank in range(RANKS):
            row = y + 22 + rank * CELL
            if not (picture.wide and state):
                picture.text(0, row + CELL / 2, f"rank {rank}", ink="ink-soft")
            for chunk in range(len(CHUNKS)):
                words = holds(state, rank, chunk)
                look = "elsewhere" if not words else "link" if state and words else "hbm-pale"
                picture.box(x + chunk * WIDTH, row, WIDTH, CELL, look, words, state=state, rank=rank)
        if state < 2:
            _half(picture, HALVES[state], x + panel, y, gap, high)
    picture.tell(
        *(
            f"rank {rank}: "
            + "; ".join(
                f"{name}: {' '.join(filter(None, (holds(state, rank, at) for at in range(RANKS))))}"
                for state, name in enumerate(STATES)
            )
            for rank in range(RANKS)
        ),
        f"from before to one sum each by {HALVES[0]}, from there to all sums by {HALVES[1]}",
        sums,
    )
    return picture


def _half(picture: Picture, name: str, x: float, y: float, gap: float, high: float) -> None:
    """The arrow from one table to the next, with its name."""
    if picture.wide:
        picture.text(x + gap / 2, y + 22 + RANKS * CELL / 2 - 14, name, anchor="middle")
        picture.arrow(
            (x + 10, y + 22 + RANKS * CELL / 2), (x + gap - 10, y + 22 + RANKS * CELL / 2), ink="link"
        )
    else:
        middle = x - RANKS * WIDTH / 2
        picture.arrow((middle, y + high + 6), (middle, y + high + 36), ink="link")
        picture.text(middle + 14, y + high + 20, name)
