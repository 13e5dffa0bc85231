"""A larger number is never drawn shorter.

What a bar stands for is read from what it says of itself: its hint, which each mark has. Of the quantities in
the hints of a part, the one to which the lengths of its boxes keep (nearly all of them, in nearly all states)
is the one that it draws; a part without one (lanes of tasks, cells of a matrix) draws something else. Then no
box that says more than another from the same start may end before it, or where it ends, unless it carries the
sign of a break (``fig.torn``). What leaves the frame is as long as is seen of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from bokeh.models import ColumnDataSource, GlyphRenderer, HBar, LogScale, Quad, Text, VBar

from engine.base import check, units
from tests import states
from widgets.kit.drawing import figure as fig
from widgets.kit.widget import all_widgets

WORDS = sorted(
    ((text.strip(), family, scale) for family, steps in units.FAMILIES.items() for scale, text in steps),
    key=lambda each: -len(each[0]),
)
BY_WORD = {word: (family, scale) for word, family, scale in WORDS if len(word) > 0}
QUANTITY = re.compile(
    rf"(?<![\w.,])(\d[\d,]*(?:\.\d+)?) ?({'|'.join(map(re.escape, BY_WORD))})(?![A-Za-z0-9/])"
)
MORE = 1.05  # how much larger a number must be: texts are rounded
KEEPS = 0.02  # how far a length may be from its number's, for a part that draws it
NEARLY_ALL = 0.8
SEEN = 0.004  # of the axis: less cannot be told apart


@dataclass(frozen=True)
class Box:
    """A box in one state: how long it is seen, as a share of its axis, what it says, and whether it is
    broken."""

    length: float
    says: dict[tuple[str, int], float]  # (family, which of that family in the text) -> the number
    broken: bool
    text: str


def quantities(text: str) -> dict[tuple[str, int], float]:
    found: dict[tuple[str, int], float] = {}
    for amount, word in QUANTITY.findall(text):
        family, scale = BY_WORD[word]
        place = sum(known == family for known, _ in found)
        found[family, place] = float(amount.replace(",", "")) * scale
    return found


SIDES = {"across": ("left", "right", "x_range", "x_scale"), "up": ("bottom", "top", "y_range", "y_scale")}


def renderers(plot) -> list[GlyphRenderer]:
    return [each for each in plot.renderers if isinstance(each, GlyphRenderer)]


def drawn(plot) -> Iterator[tuple]:
    """Each part's boxes: part, way, the columns or numbers of its start, its end and its place across, the
    range that they lie on, and whether that is logarithmic."""
    for renderer in renderers(plot):
        glyph, source = renderer.glyph, renderer.data_source
        if not isinstance(glyph, (HBar, VBar, Quad)) or not isinstance(source, ColumnDataSource):
            continue
        ways = {HBar: ["across"], VBar: ["up"], Quad: ["across", "up"]}[type(glyph)]
        for way in ways:
            low, high, kind, scale = SIDES[way]
            ends = [getattr(glyph, side) for side in (low, high)]
            name = getattr(renderer, f"{kind}_name")
            spans = getattr(plot, kind) if name == "default" else getattr(plot, f"extra_{kind}s")[name]
            across = {"across": ("bottom", "top"), "up": ("left", "right")}[way]
            if not isinstance(glyph, Quad):
                across = ("y", "y") if way == "across" else ("x", "x")
            ends += [getattr(glyph, side) for side in across]
            names = [getattr(end, "field", end) for end in ends]
            yield source.name, way, tuple(names), (spans, isinstance(getattr(plot, scale), LogScale))


def breaks(plot, parts: dict) -> list[tuple[float, float]]:
    """Where the sign of a break stands in this state."""
    found = []
    for renderer in renderers(plot):
        glyph = renderer.glyph
        if isinstance(glyph, Text) and getattr(glyph.text, "field", glyph.text) == "torn":
            columns = fig.columns(parts[renderer.data_source.name])
            places = [getattr(place, "field", place) for place in (glyph.x, glyph.y)]
            torn = columns["torn"]
            where = sides(columns, tuple(places), len(torn))
            found += [(x, y) for x, y, sign in zip(*where, torn) if sign]
    return found


def sides(columns: dict, names: tuple, count: int) -> list[np.ndarray] | None:
    """Both sides of every box; None where they are no columns of numbers."""
    found = []
    for name in names:
        values = columns.get(name) if isinstance(name, str) else getattr(name, "value", name)
        values = np.broadcast_to(np.asarray(0.0 if values is None else values), (count,))
        if values.dtype.kind not in "fiu":
            return None
        found.append(values.astype(float))
    return found


def boxes(cls, looked_at: list[dict]) -> dict[tuple[str, str], list[list[Box]]]:
    """(part, way) -> in each state, the boxes with a hint. Several glyphs may draw one row of a part, piece
    by piece: its box is all of them."""
    widget = cls()
    plot = widget.figure(fig.sources(widget))
    found: dict[tuple[str, str], list[list[Box]]] = {}
    for state in looked_at:
        widget = cls()
        widget.set_raw(state)
        with check.trusted():
            shown, hints, ranges = widget.shown()["parts"], widget.hints(), widget.ranges()
        marks, pieces = breaks(plot, shown), {}
        for part, way, names, (spans, log) in drawn(plot):
            columns = fig.columns(shown[part]) if part in hints else {}
            ends = sides(columns, names, len(next(iter(columns.values())))) if columns else None
            if ends is not None and ends[0].size:
                axis = np.asarray(ranges.get(spans.name, (spans.start, spans.end)), dtype=float)
                pieces.setdefault((part, way), []).append(on_axis(ends, axis, log, way, marks))
        for (part, way), each in pieces.items():
            low, high = (
                np.nanmin([one[0] for one in each], axis=0),
                np.nanmax([one[1] for one in each], axis=0),
            )
            torn = np.any([one[2] for one in each], axis=0)
            whole: dict[str, list] = {}  # a block that goes on in the next row says the same in both
            for a, b, text, mark in zip(low, high, hints[part], torn):
                if text and b > a:
                    goes_on = a == np.nanmin(low) and text in whole and whole[text][-1][2] == np.nanmax(high)
                    before, marked, _ = whole[text].pop() if goes_on else (0.0, False, b)
                    whole.setdefault(text, []).append([before + b - a, marked or bool(mark), b])
            found.setdefault((part, way), []).append(
                [
                    Box(length, quantities(text), mark, text)
                    for text, those in whole.items()
                    for length, mark, _ in those
                ]
            )
    return found


def on_axis(ends: list, axis: np.ndarray, log: bool, way: str, marks: list) -> tuple:
    """Start and end of each box as shares of the axis, NaN for one that is not seen, and whether the sign of
    a break stands at its end."""
    near = 0.015 * abs(axis[1] - axis[0])
    low, high = (np.clip(end, *sorted(axis)) for end in np.sort(ends[:2], axis=0))
    torn = [
        any(
            abs(mark[way == "up"] - end) <= near and one - 0.6 <= mark[way == "across"] <= other + 0.6
            for mark in marks
        )
        for end, one, other in zip(high, *np.sort(ends[2:], axis=0))
    ]
    if log:
        low, high, axis = (np.log(np.maximum(each, min(axis))) for each in (low, high, axis))
    whole = abs(axis[1] - axis[0])
    seen = np.where(high > low, 1.0, np.nan)
    return seen * low / whole, seen * high / whole, torn


def draws(rows: list[list[Box]]) -> tuple[str, int] | None:
    """The quantity to which the lengths of a part's boxes keep best; None if they keep to none."""
    kept: dict[tuple[str, int], list[bool]] = {}
    for row in rows:
        for key in {key for box in row for key in box.says}:
            pairs = [(box.length, box.says[key]) for box in row if box.says.get(key) and box.length > SEEN]
            differing = [{round(np.log(each), 2) for each in column} for column in zip(*pairs)]
            if not pairs or min(map(len, differing)) < 2:
                continue
            scale = np.median([length / value for length, value in pairs])
            kept.setdefault(key, []).extend(
                abs(length / value / scale - 1) < KEEPS for length, value in pairs
            )
    share, key = max(
        ((np.mean(fits), key) for key, fits in kept.items() if len(fits) >= 6), default=(0, None)
    )
    return key if share >= NEARLY_ALL else None


def shorter(row: list[Box], key: tuple[str, int]) -> Iterator[str]:
    """Boxes that say more than another and are not longer."""
    said = sorted((box for box in row if box.says.get(key)), key=lambda box: box.says[key])
    for less, more in combinations(said, 2):
        enough = more.says[key] > MORE * less.says[key] and less.length > 2 * SEEN
        if enough and not more.broken and more.length <= less.length + SEEN * 0.1:
            yield f"“{more.text}” is {more.length:.3f} long, “{less.text}” {less.length:.3f}"


def looked_at(cls) -> list[dict]:
    return [
        states.default(cls),
        *states.daily(states.presets(cls)),
        states.at_the_target(cls),
        *states.ends_of_the_main_slider(cls),
    ]


@pytest.mark.parametrize("slug", sorted(all_widgets()))
def test_a_larger_number_is_never_drawn_shorter(slug):
    cls = all_widgets()[slug]
    wrong = [
        f"{part}, {way}, {key[0]}: {fault}"
        for (part, way), rows in boxes(cls, looked_at(cls)).items()
        if (key := draws(rows))
        for row in rows
        for fault in shorter(row, key)
    ]
    assert not wrong, "\n".join(dict.fromkeys(wrong))
