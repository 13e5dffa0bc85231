"""Where marks and their labels lie: positions worked out from columns, on numbers and on symbols alike."""

from __future__ import annotations

import numpy as np

from engine.base.types import Real, Truth
from widgets.kit.compiler.symbols import lookup
from widgets.kit.drawing import lettering
from widgets.kit.text import Words, choose, select

LEAST_PX = {"wide": 590.0, "narrow": 225.0}  # the frame's width in a lesson, and on a phone
FAR_LEFT = -1e15  # far to the left even on an axis of bytes


def one_two_five(start: float, end: float) -> Real:
    """Round stops on a logarithmic axis: 1, 2, 5, 10, 20 and so on, between these ends."""
    decades = 10.0 ** np.arange(np.floor(np.log10(start)), np.ceil(np.log10(end)) + 1)
    found = np.outer(decades, [1.0, 2.0, 5.0]).ravel()
    return found[(found >= start) & (found <= end)]


def spread(positions: Real, gap: Real) -> Real:
    """Positions for labels of ascending values, each at least ``gap`` above the one before (also works on
    symbols)."""
    placed = [positions[0]]
    for i in range(1, len(positions)):
        placed.append(np.maximum(positions[i], placed[-1] + gap))
    return np.stack(placed)


def stacked(heights: Real) -> tuple[Real, Real]:
    """Where stacked slabs begin and end; with several rows of heights, each row is stacked on the one
    before."""
    tops = np.cumsum(heights, axis=0)
    return tops - heights, tops


def hyperbola_ends(
    product: Real, x_range: tuple[float, float], y_range: tuple[float, float]
) -> tuple[tuple[Real, Real], tuple[Real, Real]]:
    """(x, y) of the two points where x · y = product, a straight line on logarithmic axes, leaves the
    picture."""
    (left, right), (bottom, top) = x_range, y_range
    return (
        (np.maximum(left, product / top), np.minimum(top, product / left)),
        (np.minimum(right, product / bottom), np.maximum(bottom, product / right)),
    )


def row_of(table: Real, index: Real) -> Real:
    """One row of a table, at an index that may be a symbol."""
    return np.sum(np.stack([np.where(index == i, 1.0, 0.0) * table[i] for i in range(len(table))]), axis=0)


def tone(place: Real, places: Real) -> Real:
    """How dark to shade the first, second, … of this many places; a single one is hardly shaded."""
    return 0.03 + 0.27 * place / np.maximum(places - 1.0, 1.0)


def doublings(value: Real) -> Real:
    """A position on an axis on which every doubling has the same length."""
    return np.log2(value)


def decades_below(top: Real, decades: Real) -> Real:
    """A position on a logarithmic axis, this many powers of ten below another; several if ``decades`` has
    several values."""
    return top / 10 ** np.asarray(decades, dtype=float)


def share_of_decades(value: Real, low: Real, high: Real) -> Real:
    """How far along a logarithmic axis a value lies, from 0 at its low end to 1 at its high one."""
    return np.log10(value / low) / np.log10(high / low)


def midpoint(low: Real, high: Real) -> Real:
    """The middle of a mark, for its label."""
    return (low + high) / 2


def revealed(values: Real, frame: Real) -> Real:
    """The values as they grow in, one after the other, while an animation's frame runs from 0 to their
    number."""
    return values * np.clip(frame - np.arange(len(values)), 0.0, 1.0)


def fitting_view(value: Real, views: list[float], headroom: float = 1.15) -> Real:
    """The first of the axis lengths that fits the value with some headroom; the longest if none does."""
    fits = np.stack([value * headroom <= view for view in views[:-1]] + [value * 0 <= 1])
    return lookup(views, np.argmax(fits))


def above_line(height: Real, line: float, view: Real) -> Real:
    """Where a label above a mark begins: at a line close above the mark, which would run through the label,
    else at the mark."""
    return np.where((height < line) & (height > line - 0.075 * view), line, height)


def end_to_end(lengths: Real) -> tuple[Real, Real]:
    """(start, end) of marks placed end to end, in each row if there are several."""
    end = np.cumsum(lengths, axis=-1)
    return end - lengths, end


def waiting(whole: Real, first: Real, middle: Real, last: Real) -> dict:
    """Columns of bars in three pieces, as shares of the whole: the last piece always ends with the whole, so
    there is a wait before it where the others are short."""
    none = 0 * (first + middle + last)
    return {
        "start": none,
        "sent": none + first / whole,
        "computed": (first + middle) / whole,
        "waited": none + (whole - last) / whole,
        "end": none + 1,
    }


def clear_of(place: Real, mark: Real, room: Real) -> Real:
    """A label's position, moved past a mark that lies less than ``room`` ahead and would be crossed. Only for
    remarks on a row: the value of a bar stays on the bar's side of its limit (``value_places``)."""
    return np.where((place < mark) & (place > mark - room), mark, place)


def value_places(end: Real, limit: Real, room: Real, start: Real = 0.0) -> dict[str, Real]:
    """Where each bar's value goes, for ``values``: ``behind`` the bar's end, or ``inside`` the end where a
    limit less than ``room`` ahead would run through it. So no reader takes it for the limit's value.

    The value goes past the limit only if the limit is so near the bar's start that there is room on neither
    side of the bar's end.
    """
    crossed = (end < limit) & (end > limit - room)
    inside = crossed & (end - start >= room)
    return {"behind": gone_unless(~inside, np.where(crossed, limit, end)), "inside": gone_unless(inside, end)}


def inward(place: Real, start: Real, end: Real, edge: float = 0.2) -> Words:
    """The alignment of a label at a position of an axis: to one side near the frame's edge, so that it is not
    cut off, else centred. ``edge``: half the label's width, as a share of the frame."""
    near = (end - start) * edge
    side = np.where(place < start + near, 0, np.where(place > end - near, 2, 1))
    return select(side, ["left", "center", "right"])


def between(start: Real, end: Real, way: Real) -> Real:
    """A position on the way from one to another."""
    return start + (end - start) * way


def rows_of(places: Real, half: float) -> dict[str, Real]:
    """The columns of marks centred on these positions of an axis."""
    return {"bottom": places - half, "top": places + half}


def where_known(place: Real, value: Real) -> Real:
    """A mark's position, or NaN where it has no value."""
    return place + 0 * value


def right_if(seen: Truth, left: Real, right: Real) -> Real:
    """The right side of a box that is visible; for others the left side, so that they have no width. Then one
    hatch pattern serves all boxes of a glyph; if the pattern differed by box, it would be rebuilt for each
    box in every frame."""
    return np.where(seen, right, left)


def names_in(lengths: Real, view: Real, names: list[str], short: list[str]) -> dict[str, Words]:
    """The names of boxes of these lengths, in a picture that shows ``view`` of them: whole where there is
    room in a lesson, else short, else none. On a phone always short."""

    def room(words: list[str], width: str) -> Real:
        return view * np.array([lettering.width(word) + 8 for word in words]) / LEAST_PX[width]

    whole, little, least = room(names, "wide"), room(short, "wide"), room(short, "narrow")
    boxes = range(len(names))
    return {
        "name": [
            choose(lengths[i] > whole[i], names[i], choose(lengths[i] > little[i], short[i], ""))
            for i in boxes
        ],
        "short": [choose(lengths[i] > least[i], short[i], "") for i in boxes],
    }


def gone_unless(seen: Truth, place: Real) -> Real:
    """A box's side, moved far left of the frame if the box is not visible, because a box of zero width would
    still show its outline."""
    return np.where(seen, place, FAR_LEFT)


def gone_on_log_unless(seen: Truth, place: Real) -> Real:
    """``gone_unless`` on a logarithmic axis, where the place far left of the frame is a number just above
    zero."""
    return np.where(seen, place, 1e-99)


def in_key(seen: Truth, left: float = 0.0) -> Real:
    """Where a key's entry begins if its marks are not always there: at ``left`` when they are, else out of
    sight."""
    return gone_unless(seen, left)
