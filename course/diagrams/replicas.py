"""Data parallelism: every rank has a copy of the weights and its own part of the batch; one AllReduce joins
them."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.executed import executed_training

RANKS = 4
GAP, BOX, STEP = 10.0, 38.0, 54.0


def parts() -> list[tuple[int, int]]:
    """First and last sample of each rank's part, of the batch that lesson 04 trains on."""
    samples = len(executed_training.problem().inputs)
    each = samples // RANKS
    return [(rank * each + 1, (rank + 1) * each) for rank in range(RANKS)]


def draw(width: float) -> Picture:
    samples = parts()[-1][1]
    mean = f"AllReduce: mean of the {RANKS} gradients"
    picture = Picture(
        f"{RANKS} replicas share a batch of {samples} samples and one mean gradient.",
        "A column for each rank, from top to bottom: its part of the batch, its copy of the weights, its "
        "gradient, the AllReduce across all columns, and the same update.",
        width,
    )
    column = (width - (RANKS - 1) * GAP) / RANKS
    rows = (("plain", "its part"), ("hbm", "weights"), ("backward", "gradient"))
    for rank, (first, last) in enumerate(parts()):
        x = rank * (column + GAP)
        picture.text(x + column / 2, 10, f"rank {rank}", anchor="middle", bold=True)
        words = (f"samples\n{first} to {last}", "weights,\na copy", f"gradient\n{rank}")
        for number, ((look, _), text) in enumerate(zip(rows, words, strict=True)):
            y = 22 + number * STEP
            picture.box(x, y, column, BOX, look, text, rank=rank)
            picture.arrow((x + column / 2, y + BOX + 1), (x + column / 2, y + STEP - 1))
        y = 22 + 3 * STEP
        picture.arrow((x + column / 2, y + 27), (x + column / 2, y + 41))
        picture.box(x, y + 42, column, BOX, "hbm", "same step,\nstill equal")
    picture.box(0, 22 + 3 * STEP, width, 26, "network", mean)
    picture.tell(
        *(
            f"rank {rank}: samples {first} to {last}; weights, a copy; gradient {rank} of its own part"
            for rank, (first, last) in enumerate(parts())
        ),
        f"all ranks: {mean}",
        "every rank: same step, and the weights are still equal",
    )
    return picture
