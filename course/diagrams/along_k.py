"""Few tiles on many multiprocessors: a program for each tile, and each tile's sum cut along k among several
programs, whose parts are added at the end."""

from __future__ import annotations

from course.drawing.picture import Picture

TILES, MULTIPROCESSORS, STEPS, PARTS = 4, 8, 8, 2
ADDING = 1  # steps' time in which the parts of a tile are added
HIGH, BETWEEN = 17.0, 3.0


def programs(parts: int) -> list[tuple[int, int]]:
    """Tile and steps of each multiprocessor's program, if each tile is cut into so many parts."""
    return [(program // parts + 1, STEPS // parts) for program in range(TILES * parts)]


def draw(width: float) -> Picture:
    picture = Picture(
        f"{TILES} tiles keep {TILES} of {MULTIPROCESSORS} multiprocessors busy; cut in {PARTS} along k, all.",
        "Two strips on one axis of time, a row for each multiprocessor: with a program for each tile, and "
        f"with {PARTS} programs that share one.",
        width,
    )
    y = 0.0
    scale = width / (STEPS + 0.5)
    for heading, parts in (
        ("a program for each tile", 1),
        (f"split-K: {PARTS} programs for each tile", PARTS),
    ):
        picture.text(0, y + 8, heading, bold=True)
        y += 20
        running = programs(parts)
        took = STEPS // parts + (ADDING if parts > 1 else 0)
        for row in range(MULTIPROCESSORS):
            picture.box(0, y, took * scale, HIGH, "idle", multiprocessor=row)
            if row < len(running):
                tile, steps = running[row]
                picture.box(0, y, steps * scale, HIGH, "compute", f"tile {tile}", tile=tile, steps=steps)
                if parts > 1:
                    picture.box(steps * scale, y, ADDING * scale, HIGH, "hbm", tile=tile)
            y += HIGH + BETWEEN
        picture.tell(
            f"{heading}: {len(running)} of {MULTIPROCESSORS} multiprocessors at work, "
            f"{STEPS // parts} steps along k each"
            + ("; then the parts of a tile are added" if parts > 1 else "")
        )
        y += 12
    picture.key(y, [("compute", "steps along k"), ("hbm", "the parts are added"), ("idle", "nothing to do")])
    picture.tell(
        "steps along k; the parts are added; nothing to do", *(f"tile {tile + 1}" for tile in range(TILES))
    )
    return picture
