"""Where the words of a mark stand: at the first of several spots beside it where the frame does not cut them
and where they lie on no other text or mark.

A text has a size in pixels and hangs on a place of the axes, so whether two texts meet depends on how wide
the picture is. A spot is therefore tried in all widths that a reader meets: a lesson and a page of its own,
and, by itself, a phone. Everything also works on symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.base.types import Real, Truth
from widgets.kit.compiler.symbols import lookup
from widgets.kit.drawing import lettering
from widgets.kit.text import select

PICTURE_PX = {"wide": (706.0, 954.0), "narrow": (332.0,)}  # a lesson and a page of its own; a phone
LINE_PX, HALF_PX = 17.0, 8.0  # from one line of words to the next, and from the middle of a line to its edge
GAP_PX = 3.0  # at least so much lies between two texts
LEFT, CENTER, RIGHT = 0, 1, 2  # which end of the words is at the place
ALIGN = ["left", "center", "right"]


class Frame(NamedTuple):
    """The frame of a picture: what stands left of it (an axis) and how high it is, in pixels."""

    before: float
    height: float

    def widths(self, of: str) -> tuple[float, ...]:
        """How wide it is on a wide picture, or on a narrow one."""
        return tuple(px - self.before - 4.0 for px in PICTURE_PX[of])


class Boxes(NamedTuple):
    """Texts or marks: each hangs on a place in shares of the frame, from the left and from below, and reaches
    so many pixels from there."""

    x: Real
    y: Real
    left: Real
    right: Real
    bottom: Real
    top: Real


class Spot(NamedTuple):
    """A place for words beside their mark: which end of them is there, and how many pixels right of the mark
    and below it their first line stands."""

    end: int
    across: float
    down: float


def around(across: float, down: float, apart: float = 0.0, first: int = LEFT) -> tuple[Spot, ...]:
    """The four corners of a mark, those below it first, and those where the words begin at the mark (or, with
    ``first``, end there); with ``apart`` the same once more, that much farther below and above."""
    rows = (down, -down) if not apart else (down, -down, down + apart, -down - apart)
    ends = ((LEFT, across), (RIGHT, -across))[:: 1 if first == LEFT else -1]
    return tuple(Spot(end, side, row) for row in rows for end, side in ends)


def words(
    x: Real, y: Real, px: Real, end: Real = LEFT, across: Real = 0.0, down: Real = 0.0, lines: int = 1
) -> Boxes:
    """Texts of these widths in pixels that hang on places of the frame."""
    left = across - 0.5 * end * px
    return Boxes(x, y, left, left + px, -down - HALF_PX - LINE_PX * (lines - 1), HALF_PX - down)


def marks(x: Real, y: Real, px: float) -> Boxes:
    """Marks of this size."""
    return Boxes(x, y, -px / 2, px / 2, -px / 2, px / 2)


def together(*boxes: Boxes) -> Boxes:
    """All of them."""
    return Boxes(*(np.concatenate([flat(each, i) for each in boxes]) for i in range(len(Boxes._fields))))


def flat(boxes: Boxes, field: int) -> Real:
    """One of their numbers for each of them."""
    return np.atleast_1d(boxes[field] + 0.0 * sum(boxes[1:], boxes[0]))


def edges(boxes: Boxes, width: float, height: float) -> tuple[Real, Real, Real, Real]:
    """Left, right, bottom and top in pixels, in a frame of this size."""
    x, y = (flat(boxes, i) for i in range(2))
    left, right, bottom, top = (flat(boxes, i) for i in range(2, 6))
    return x * width + left, x * width + right, y * height + bottom, y * height + top


def shared(ones: Boxes, others: Boxes, width: float, height: float) -> Real:
    """How many square pixels of each lie on others."""
    left, right, bottom, top = (each[:, None] for each in edges(ones, width, height))
    other_left, other_right, other_bottom, other_top = (
        each[None, :] for each in edges(others, width, height)
    )
    across = np.minimum(right, other_right) - np.maximum(left, other_left) + GAP_PX
    up = np.minimum(top, other_top) - np.maximum(bottom, other_bottom)
    return np.sum(np.maximum(across, 0.0) * np.maximum(up, 0.0), axis=1)


def missing(boxes: Boxes, width: float, height: float) -> Real:
    """How many square pixels of each the frame cuts."""
    left, right, bottom, top = edges(boxes, width, height)
    seen = np.maximum(np.minimum(right, width) - np.maximum(left, 0.0), 0.0) * np.maximum(
        np.minimum(top, height) - np.maximum(bottom, 0.0), 0.0
    )
    return (right - left) * (top - bottom) - seen


def free(boxes: Boxes, taken: Boxes, frame: Frame, of: str) -> Truth:
    """Which of the boxes lie on none that is taken, and are not cut."""
    return cost(boxes, taken, frame, of) < 1.0


def cost(boxes: Boxes, taken: Boxes | None, frame: Frame, of: str) -> Real:
    """How badly each box stands: its square pixels that are cut, or on what is taken, in the worse width."""
    found = [
        missing(boxes, width, frame.height)
        + (0.0 if taken is None else shared(boxes, taken, width, frame.height))
        for width in frame.widths(of)
    ]
    return np.max(np.stack(found), axis=0)


def spot(
    x: Real,
    y: Real,
    px: float,
    spots: Sequence[Spot],
    frame: Frame,
    taken: Boxes | None = None,
    lines: int = 1,
    of: str = "wide",
    order: Real = 0.0,
) -> tuple[dict, Boxes]:
    """The columns by which ``placed`` writes words of this width beside the mark at a place, and the box that
    they take. Where no spot is free, it is the one at which least is lost.

    ``order``: which of the spots that are free is taken, a rank for each, where it depends on the state.
    """
    ends, across, down = (np.array(each, dtype=float) for each in zip(*spots))
    tried = words(x, y, px, ends, across, down, lines)
    best = np.argmin(cost(tried, taken, frame, of) + order / 1000.0)
    end, aside, below = (lookup(each, best) for each in (ends, across, down))
    columns = {f"{of}_align": select(end, ALIGN), f"{of}_across": aside}
    columns |= {f"{of}_down_{line}": below + LINE_PX * line for line in range(lines)}
    return columns, words(x, y, px, end, aside, below, lines)


def rows(columns: Sequence[dict]) -> dict:
    """The columns of several marks that ``spot`` gave one by one, as rows of one source."""
    return {
        name: [each[name] for each in columns]
        if name.endswith("align")
        else np.stack([each[name] for each in columns])
        for name in columns[0]
    }


def placed(of: str, line: int = 0) -> dict[str, str]:
    """The arguments of a text that stands where ``spot`` found room for it."""
    return {"text_align": f"{of}_align", "x_offset": f"{of}_across", "y_offset": f"{of}_down_{line}"}


def width(*texts: str, bold: bool = False) -> float:
    """The width in pixels of the longest of these texts."""
    return max(lettering.width(text, bold=bold) for text in texts)
