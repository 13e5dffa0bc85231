"""Two products on one chip: each wave of tiles as long as the others, and as high as the multiprocessors that
have a tile in it."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.one_gpu import tiling

GPU = "h100-sxm"
TILE = tiling.Tile(128, 256, 64, 3, 8)
ROWS, COLUMNS = (2048, 2176), 4096
HIGH, LABEL = 44.0, 20.0


def tiles_of_waves(rows: int) -> list[int]:
    """How many tiles each wave of the product has."""
    count, at_a_time = int(tiling.programs(rows, COLUMNS, TILE)), catalog.gpu(GPU).sms
    return [min(at_a_time, count - first) for first in range(0, count, at_a_time)]


def draw(width: float) -> Picture:
    chip = catalog.gpu(GPU)
    most = max(len(tiles_of_waves(rows)) for rows in ROWS)
    picture = Picture(
        f"{ROWS[0]:,} rows take two waves, {ROWS[1]:,} rows a third one that is nearly empty.",
        f"Two strips on one axis of time. A wave is a box as high as the share of {chip.sms} multiprocessors "
        "that have a tile in it; the rest of it is idle.",
        width,
    )
    each, y = width / most, 0.0
    for rows in ROWS:
        waves = tiles_of_waves(rows)
        heading = f"{rows:,} rows: {sum(waves)} tiles"
        picture.text(0, y + 8, heading, bold=True)
        y += LABEL
        for place, count in enumerate(waves):
            busy = HIGH * count / chip.sms
            said = f"wave {place + 1}: {count} of {chip.sms}"
            left, wide = place * each, each - 3
            if busy < HIGH:
                picture.box(left, y, wide, HIGH - busy, "idle", idle=chip.sms - count)
            picture.box(left, y + HIGH - busy, wide, busy, "compute", tiles=count)
            low = busy < HIGH / 2  # too low for words: they stand on what is idle
            picture.text(
                left + wide / 2, y + HIGH / 2, said, anchor="middle", on="idle" if low else "compute"
            )
            picture.tell(f"{heading}, {said}")
        y += HIGH + 14
    picture.text(0, y, "time")
    picture.arrow((40, y), (width, y))
    picture.tell("time")
    return picture
