"""One storage and two views of it: a matrix and its transpose, which differ in sizes and strides alone."""

from __future__ import annotations

from course.drawing.picture import Picture

ROWS, COLUMNS = 2, 3
VIEWS = (("x", (ROWS, COLUMNS), (COLUMNS, 1)), ("y = x.t()", (COLUMNS, ROWS), (1, COLUMNS)))
HIGH = 24.0


def place(at: tuple[int, int], strides: tuple[int, int], offset: int = 0) -> int:
    """Which element of the storage a tensor has at these two indices."""
    return offset + at[0] * strides[0] + at[1] * strides[1]


def draw(width: float) -> Picture:
    picture = Picture(
        "A matrix and its transpose are two views of one storage.",
        "A row of six boxes, the storage. Below it the two tensors, each as a grid whose boxes say which "
        "element of the storage they are, with sizes and strides.",
        width,
    )
    cell = 44.0 if picture.wide else 36.0
    picture.text(0, 8, "the storage: six elements in a row", bold=True)
    y = 20.0
    for element in range(ROWS * COLUMNS):
        picture.box(element * cell, y, cell, HIGH, "hbm", str(element), element=element)
    picture.tell("the storage: six elements in a row, 0 to 5")
    y += HIGH + 26
    right = 0.0
    for name, sizes, strides in VIEWS:
        picture.text(right, y, name, bold=True)
        for row in range(sizes[0]):
            for column in range(sizes[1]):
                element = place((row, column), strides)
                x, top = right + column * cell, y + 12 + row * HIGH
                picture.box(x, top, cell, HIGH, "hbm-pale", str(element), view=name, element=element)
        below = y + 12 + sizes[0] * HIGH + 14
        told = f"sizes {sizes}", f"strides {strides}"
        for line, words in enumerate(told):
            picture.text(right, below + 18 * line, words, ink="ink-soft")
        rows = "; ".join(
            " ".join(str(place((row, column), strides)) for column in range(sizes[1]))
            for row in range(sizes[0])
        )
        picture.tell(f"{name}: rows {rows}; {told[0]}, {told[1]}")
        if picture.wide:
            right += COLUMNS * cell + 80
        else:
            y = below + 46
    return picture
