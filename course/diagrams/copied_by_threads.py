"""How a block comes from HBM to shared memory: each thread asks for its part, or one thread asks the TMA for
all of it."""

from __future__ import annotations

from course.drawing.picture import Picture

HIGH, GAP = 38.0, 34.0


def draw(width: float) -> Picture:
    picture = Picture(
        "By threads, each asks for a few numbers; the TMA copies a whole block by itself.",
        "Two rows of three boxes with arrows: from HBM to shared memory by all threads, and from HBM to "
        "shared memory by the TMA.",
        width,
    )
    ways = (
        ("by threads", "all threads:\nan address for each", "forward"),
        ("by the TMA", "TMA: one thread\nnames a block", "compute"),
    )
    after = (
        "the threads' registers hold an address and a mask for each part",
        "no register holds an address; the other warps compute meanwhile",
    )
    y, each = 0.0, (width - 2 * GAP) / 3
    for (heading, middle, look), note in zip(ways, after, strict=True):
        picture.text(0, y + 8, heading, bold=True)
        y += 20
        for place, (words, kind) in enumerate(
            (("HBM", "hbm"), (middle, look), ("shared\nmemory", "hbm-pale"))
        ):
            left = place * (each + GAP)
            picture.box(left, y, each, HIGH, kind, words if picture.wide else words.split(":")[0])
            if place:
                picture.arrow((left - GAP + 3, y + HIGH / 2), (left - 3, y + HIGH / 2), ink="hbm")
        y = picture.paragraph(0, y + HIGH + 4, note, width) + 14
        picture.tell(f"{heading}: HBM, then {' '.join(middle.split())}, then shared memory; {note}")
    return picture
