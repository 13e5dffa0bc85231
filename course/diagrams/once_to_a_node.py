"""A token whose three experts share a node: a message for each, or one to the node, handed on there."""

from __future__ import annotations

from course.drawing.picture import Picture

GPUS, CHOSEN = 4, (1, 2, 3)  # of the other node, and those with the token's experts
SIDE, STEP, WIDE = 26.0, 36.0, 70.0
WAYS = (("A message for each expert", False), ("Once to the node", True))


def copies(once: bool) -> tuple[int, int]:
    """How many copies of the token cross the network, and how many NVLink there."""
    return (1, len(CHOSEN)) if once else (len(CHOSEN), 0)


def draw(width: float) -> Picture:
    picture = Picture(
        "A token with three experts in one node: three copies cross the network, or one.",
        "Two panels. In each a GPU at the left sends a token to three of the four GPUs of another node.",
        width,
    )
    x, y = 0.0, 0.0
    for words, once in WAYS:
        _panel(picture, x, y, words, once)
        x, y = (width / 2 + 10, 0.0) if picture.wide else (0.0, picture.height + 14)
    picture.key(
        picture.height + 8,
        [("network", "over the network"), ("link", "over NVLink"), ("hbm", "has an expert that it wants")],
    )
    picture.tell("over the network; over NVLink; has an expert that it wants")
    return picture


def _panel(picture: Picture, x: float, y: float, words: str, once: bool) -> None:
    across, inside = copies(once)
    count = f"{across} across the network" + (f", {inside} inside" if inside else "")
    picture.text(x, y + 9, words, bold=True)
    picture.text(x, y + 27, count, ink="ink-soft")
    top, there = y + 44, x + 190
    middle = top + (GPUS * STEP - STEP + SIDE) / 2
    picture.box(x, middle - SIDE / 2, WIDE, SIDE, "compute-pale", "token")
    picture.box(there - 10, top - 8, WIDE + 50, GPUS * STEP + 6, "elsewhere")
    for gpu in range(GPUS):
        at = top + gpu * STEP
        look = "hbm" if gpu in CHOSEN else "plain"
        picture.box(there, at, WIDE, SIDE, look, f"GPU {gpu}", gpu=gpu, once=once)
        if gpu in CHOSEN and not once:
            picture.arrow((x + WIDE + 2, middle), (there - 1, at + SIDE / 2), ink="network", thick=1.5)
        if gpu in CHOSEN and once:
            picture.line(
                (there + WIDE + 24, at + SIDE / 2), (there + WIDE + 24, top + SIDE / 2), ink="link", thick=1.5
            )
            picture.arrow(
                (there + WIDE + 24, at + SIDE / 2), (there + WIDE + 2, at + SIDE / 2), ink="link", thick=1.5
            )
    if once:
        picture.arrow((x + WIDE + 2, middle), (there - 1, top + SIDE / 2), ink="network", thick=1.5)
        picture.line(
            (there + WIDE, top + SIDE / 2), (there + WIDE + 24, top + SIDE / 2), ink="link", thick=1.5
        )
    names = ", ".join(f"GPU {gpu}" for gpu in CHOSEN)
    picture.tell(f"{words}: {count}; the token goes to {names}, not for itself to GPU 0")
