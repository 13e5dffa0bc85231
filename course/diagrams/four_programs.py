"""Programs that cover a vector in blocks: which elements each has, and what the mask of the last one says."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.puzzles.kernel_add import BLOCK, CASES

COUNT = CASES[0]
HIGH, GAP, LINE = 28.0, 5.0, 20.0


def draw(width: float) -> Picture:
    programs = -(-COUNT // BLOCK)
    picture = Picture(
        f"{programs} programs, each with a block of {BLOCK}; of the last one {COUNT % BLOCK} elements exist.",
        "A row of blocks over a vector, and the last block enlarged: the offset of each lane, and its mask.",
        width,
    )
    lane = width / (programs * BLOCK)
    picture.box(0, 0, COUNT * lane, 18, "hbm-pale", f"x: {COUNT} numbers", exists=COUNT)
    y = 18 + GAP
    for program in range(programs):
        last = program == programs - 1
        look = "forward" if last else "forward-2"
        words = f"program {program}"
        picture.box(program * BLOCK * lane, y, BLOCK * lane - 2, HIGH, look, words, program=program)
        picture.tell(f"{words}: elements {program * BLOCK} to {(program + 1) * BLOCK - 1}")
    y += HIGH
    first, below = (programs - 1) * BLOCK, y + 30
    picture.line((first * lane, y + 1), (0, below), ink="axis")
    picture.line((width - 1, y + 1), (width - 1, below), ink="axis")
    picture.text(0, below + 12, f"offsets of program {programs - 1}")
    wide = width / BLOCK
    rows = below + LINE + 4
    for place in range(BLOCK):
        offset = first + place
        inside = offset < COUNT
        left = place * wide
        picture.box(left, rows, wide - 1, 24, "forward" if inside else "idle", f"{offset}", lane=offset)
    rows += 24
    picture.text(0, rows + 14, f"mask: offsets < {COUNT}")
    rows += LINE + 6
    for place in range(BLOCK):
        inside = first + place < COUNT
        picture.box(
            place * wide,
            rows,
            wide - 1,
            24,
            "forward" if inside else "idle",
            "T" if inside else "F",
            mask=inside,
        )
    picture.tell(
        f"x: {COUNT} numbers",
        f"offsets of program {programs - 1}: " + " ".join(str(first + place) for place in range(BLOCK)),
        f"mask: offsets < {COUNT}: "
        + " ".join("T" if first + place < COUNT else "F" for place in range(BLOCK)),
    )
    return picture
