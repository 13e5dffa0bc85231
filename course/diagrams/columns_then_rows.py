"""Tensor parallelism in an MLP: the first matrix cut by columns, the second by rows, one sum at the end."""

from __future__ import annotations

from course.drawing.picture import Picture

RANKS = 2
BETWEEN, BAR = 26.0, 14.0  # from the first rank's row to the next; of f and g
PARTS = (
    ("X", "whole", "every rank has all of X"),
    ("A", "columns", "A, cut by columns"),
    ("Z", "columns", "Z = f(XA), its columns"),
    ("B", "rows", "B, cut by rows"),
    ("Y", "sum", "a part of each sum of Y"),
)
LOOKS = {"X": "compute-pale", "A": "hbm", "Z": "compute-pale", "B": "hbm", "Y": "compute-pale"}
F = "f: nothing forward; backward it adds up the ranks' gradients of X"
G = "g: forward it adds up the ranks' parts of Y; nothing backward"


def draw(width: float) -> Picture:
    picture = Picture(
        "A cut by columns, B by rows: two products without a word between the ranks, one AllReduce at the "
        "end.",
        "A row of matrices for each of two ranks. What a rank holds is filled, what the other one holds is "
        "outlined.",
        width,
    )
    left, side = (54.0, 46.0) if picture.wide else (0.0, 37.0)
    step = (width - left - BAR - side - 12) / len(PARTS)
    top = 8.0 if picture.wide else 30.0
    end = left + len(PARTS) * step
    for rank in range(RANKS):
        y = top + rank * (side + BETWEEN)
        middle = y + side / 2
        picture.text(0, middle if picture.wide else y - 11, f"rank {rank}", bold=True)
        for number, (name, how, _) in enumerate(PARTS):
            x = left + number * step
            _matrix(picture, x, y, side, name, how, rank)
            if number:
                picture.arrow((x + side + 1, middle), (x + step - 1, middle), thick=1)
        picture.arrow((end + BAR + 1, middle), (end + BAR + 11, middle), thick=1)
        picture.box(end + BAR + 12, y, side, side, "compute-pale", "Y")
    high = RANKS * side + BETWEEN + 8
    for x, look, words in ((left + side + (step - side - BAR) / 2, "link-pale", "f"), (end, "link", "g")):
        picture.box(x, top - 4, BAR, high, look)
        picture.text(x + BAR / 2, top + side / 2, words, anchor="middle", on=look, bold=True)
    y = top + RANKS * (side + BETWEEN) - 8
    for words in (F, G):
        y = picture.paragraph(0, y, words, width)
    picture.tell(
        *(
            f"rank {rank}: " + "; ".join(f"{_called(name, how, rank)}: {words}" for name, how, words in PARTS)
            for rank in range(RANKS)
        ),
        F,
        G,
        "after g every rank has Y",
    )
    return picture


def _called(name: str, how: str, rank: int) -> str:
    return name if how == "whole" else f"{name}{rank}"


def _matrix(picture: Picture, x: float, y: float, side: float, name: str, how: str, rank: int) -> None:
    """A matrix of which a rank holds everything, some columns, or some rows."""
    part = side / RANKS
    if how in ("columns", "rows"):
        picture.box(x, y, side, side, "elsewhere")
    across, down = (part if how == "columns" else side), (part if how == "rows" else side)
    at_x, at_y = x + (rank * part if how == "columns" else 0), y + (rank * part if how == "rows" else 0)
    picture.box(at_x, at_y, across, down, LOOKS[name], _called(name, how, rank), rank=rank)
