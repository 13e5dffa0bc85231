"""Two requests that begin alike: the second finds the keys and values of the beginning, and reads only the
rest."""

from __future__ import annotations

from course.drawing.picture import Picture

SHARED, FIRST, SECOND = 6, 3, 2  # blocks of tokens: the common beginning, and the rest of each request
HIGH, BETWEEN = 26.0, 30.0


def draw(width: float) -> Picture:
    picture = Picture(
        "The second request computes only what differs from the first.",
        "Two rows of blocks of tokens: in the first all are computed and kept, in the second the common "
        "beginning is found and only the rest is computed.",
        width,
    )
    step, y = width / (SHARED + max(FIRST, SECOND)), 0.0
    for name, rest, found in (("first request", FIRST, False), ("a later request", SECOND, True)):
        picture.text(0, y + 8, name, bold=True)
        y += 20
        for block in range(SHARED + rest):
            look = "hbm-pale" if found and block < SHARED else "forward"
            picture.box(block * step, y, step - 2, HIGH, look, block=block, found=found and block < SHARED)
        words = "found in the prefix cache" if found else "system prompt: computed, kept"
        picture.bracket(0, SHARED * step - 2, y + HIGH + 8, words if picture.wide else words.split(":")[0])
        picture.bracket(SHARED * step, (SHARED + rest) * step - 2, y + HIGH + 8, "question")
        y += HIGH + BETWEEN + 8
        picture.tell(f"{name}: {words}; question computed", words.split(":")[0])
    picture.key(y, [("forward", "computed"), ("hbm-pale", "read from the cache")])
    picture.tell("computed; read from the cache")
    return picture
