"""What one program of a blocked matrix product reads and writes: a band of rows, a band of columns, one
tile."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.one_gpu import tiling

ROWS, COLUMNS, DEPTH = 2048, 4096, 4096
BLOCK_M, BLOCK_N = 128, 256
MOST = 470.0  # of the width: it shall not be taller than a screen
TILE = (4, 9)  # the row and the column of the tile that is looked at


def counted() -> tuple[int, int]:
    """Tiles down and across."""
    return int(tiling.blocks(ROWS, BLOCK_M)), int(tiling.blocks(COLUMNS, BLOCK_N))


def draw(width: float) -> Picture:
    down, across = counted()
    unit = (min(width, MOST) - 84) / (DEPTH + COLUMNS)  # pixels for a row or a column of a matrix
    high, wide, deep = ROWS * unit, COLUMNS * unit, DEPTH * unit
    each = f"{down} × {across} programs, one for each tile"
    picture = Picture(
        f"C = A · B in tiles of {BLOCK_M} × {BLOCK_N}: {each}.",
        "B stands above C and A beside it. One tile of C is filled, with the band of rows of A and the band "
        "of columns of B that its program reads.",
        width,
    )
    left, top = deep + 40, deep + 40
    row, column = TILE
    y, x = top + row * BLOCK_M * unit, left + column * BLOCK_N * unit
    picture.text(0, 9, each, bold=True)
    picture.paragraph(
        0, 24, f"C has {ROWS:,} rows and {COLUMNS:,} columns", deep if picture.wide else deep - 4
    )
    picture.box(left, top - deep - 16, wide, deep, "plain")
    picture.box(0, top, deep, high, "plain")
    picture.box(left, top, wide, high, "plain")
    for at in range(1, down):
        picture.line(
            (left, top + at * BLOCK_M * unit), (left + wide, top + at * BLOCK_M * unit), ink="axis", thick=0.5
        )
    for at in range(1, across):
        picture.line(
            (left + at * BLOCK_N * unit, top), (left + at * BLOCK_N * unit, top + high), ink="axis", thick=0.5
        )
    picture.box(x, top - deep - 16, BLOCK_N * unit, deep, "hbm", reads="B")
    picture.box(0, y, deep, BLOCK_M * unit, "hbm", reads="A")
    picture.box(x, y, BLOCK_N * unit, BLOCK_M * unit, "compute", writes="C")
    picture.text(left - 16, top - deep - 6, "B", bold=True)
    picture.text(0, top + high + 12, "A", bold=True)
    picture.text(left, top + high + 12, "C", bold=True)
    reads = f"it reads {BLOCK_N} columns of B"
    rows, writes = f"and {BLOCK_M} rows of A", f"it writes {BLOCK_M} × {BLOCK_N} numbers of C"
    if picture.wide:
        picture.text(left + wide + 12, top - deep / 2, reads)
        picture.text(left + wide + 12, top - deep / 2 + 17, rows)
        picture.text(left + wide + 12, y + BLOCK_M * unit / 2, writes)
    else:
        for line, words in enumerate((f"{reads} {rows}", writes)):
            picture.text(0, top + high + 34 + 17 * line, words)
    picture.tell(
        each,
        f"A has {ROWS:,} rows, B and C {COLUMNS:,} columns",
        f"the program of the tile {row + 1} down, {column + 1} across: {reads} {rows}; {writes}",
    )
    return picture
