"""What attention moves through HBM for one head: written out in three kernels, and the least that it
could."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.base import units

TOKENS, HEAD_DIM, VALUE_BYTES = 16384, 128, 2
SCORES = VALUE_BYTES * TOKENS * TOKENS
ROWS = VALUE_BYTES * TOKENS * HEAD_DIM  # of Q, K, V or O
APART = (
    ("first product", (("read Q, K", 2 * ROWS), ("write scores", SCORES))),
    ("softmax", (("read scores", SCORES), ("write shares", SCORES))),
    ("second product", (("read shares, V", SCORES + ROWS), ("write output", ROWS))),
)
AT_LEAST = (("all in one kernel, at the least", (("read Q, K, V", 3 * ROWS), ("write output", ROWS))),)
BAR, LINE = 14.0, 20.0


def moved_bytes(kernels: tuple) -> float:
    """The sum of what kernels read and write."""
    return sum(amount for _, moves in kernels for _, amount in moves)


def draw(width: float) -> Picture:
    together = units.human(moved_bytes(APART), "bytes")
    least = units.human(moved_bytes(AT_LEAST), "bytes")
    headings = (f"written out, three kernels: {together}", f"{AT_LEAST[0][0]}: {least}")
    picture = Picture(
        f"One head of attention over {TOKENS:,} tokens moves {together} in three kernels, and would have to "
        f"move {least}.",
        "Bars to one scale, one for each time that a kernel reads from HBM or writes to it. Scores and "
        "shares are the long ones.",
        width,
    )
    left = 112.0
    scale = (width - left - 64) / (SCORES + ROWS)
    y = 0.0
    for heading, kernels in zip(headings, (APART, AT_LEAST), strict=True):
        picture.text(0, y + 9, heading, bold=True)
        y += 24
        for name, moves in kernels:
            if len(kernels) > 1:
                picture.text(0, y + 7, name, ink="ink-soft")
                y += LINE
            for words, amount in moves:
                picture.text(14, y + BAR / 2, words)
                long = max(amount * scale, 1.0)
                picture.box(left, y, long, BAR, "hbm", amount=amount, move=words)
                picture.text(left + long + 6, y + BAR / 2, units.human(amount, "bytes"), ink="ink-soft")
                y += LINE
            y += 4
        y += 8
    for heading, kernels in zip(headings, (APART, AT_LEAST), strict=True):
        picture.tell(heading)
        for name, moves in kernels:
            picture.tell(
                f"{name}: " + ", ".join(f"{words} {units.human(it, 'bytes')}" for words, it in moves)
            )
    return picture
