"""One style for all figures: no toolbar, few ticks, text of 13 px and more, colours from the tokens.

Figures are built in the light theme's colours; the page swaps each token's colour for the other theme's, in place.
"""

from __future__ import annotations

import numpy as np
from bokeh.core.properties import value
from bokeh.models import BasicTicker, CDSView, ColumnDataSource, FixedTicker, IndexFilter, Range1d
from bokeh.plotting import figure
from bokeh.transform import factor_cmap

from engine import units
from widgets.kit import tokens
from widgets.kit.symbolic import lookup

COLOR = tokens.palette("light")
FONT = "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"  # the page's --sans
TEXT = {"text_font": value(FONT), "text_font_size": "13px", "text_color": COLOR["ink"], "text_baseline": "middle"}
BOLD = TEXT | {"text_font_style": "bold"}
LABEL = TEXT | {"text_color": COLOR["ink-soft"]}
ON_PANEL = {"background_fill_color": COLOR["panel"], "background_fill_alpha": 0.8}   # a label over marks
OVER = {"fill_color": COLOR["over"], "line_color": COLOR["over"], "fill_alpha": 0.13, "line_width": 1.5,
        "hatch_pattern": "right_diagonal_line", "hatch_color": COLOR["over"], "hatch_alpha": 0.32, "hatch_weight": 1,
        "hatch_scale": 16}
OVER_LINES = {"background_fill_color": COLOR["panel"], "background_fill_alpha": 0.8}     # for texts that cross lines
IDLE = {"fill_color": COLOR["idle"], "line_color": COLOR["idle"], "fill_alpha": 0.12, "hatch_pattern": "left_diagonal_line",
        "hatch_color": COLOR["idle"], "hatch_alpha": 0.45, "hatch_weight": 1, "hatch_scale": 12}


def plot(x_range, y_range, height=380, x_title="", y_title="", x_log=False, y_log=False, **more):
    """An empty figure in the course's style. Ranges are (start, end); they stay fixed while a reader drags."""
    p = figure(height=height, sizing_mode="stretch_width", toolbar_location=None, tools="", min_border=4,
               x_range=Range1d(*x_range, name="x"), y_range=Range1d(*y_range, name="y"),
               x_axis_type="log" if x_log else "linear", y_axis_type="log" if y_log else "linear",
               x_axis_label=x_title or None, y_axis_label=y_title or None,
               background_fill_color=None, border_fill_color=None, outline_line_color=None, output_backend="canvas", **more)
    p.toolbar.logo = None
    for axis in p.axis:
        axis.axis_line_color = COLOR["axis"]
        axis.major_tick_line_color = COLOR["axis"]
        axis.minor_tick_line_color = None
        axis.major_tick_in, axis.major_tick_out = 0, 4
        axis.major_label_text_color = COLOR["ink-soft"]
        axis.axis_label_text_color = COLOR["ink-soft"]
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "13px"
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_standoff = 8
        if not isinstance(axis.ticker, FixedTicker):
            axis.ticker = axis.ticker if (x_log or y_log) else BasicTicker(desired_num_ticks=5)
    p.grid.grid_line_color = COLOR["grid"]
    p.xgrid.grid_line_color = None if not x_log else COLOR["grid"]
    return p


def hues(column, tokens_of: dict):
    """A colour for each mark by the word in a column: {word: token}."""
    return factor_cmap(column, [COLOR[token] for token in tokens_of.values()], list(tokens_of))


def ticks(axis, values, family) -> None:
    """Fixed ticks with the engine's own words for each."""
    axis.ticker = FixedTicker(ticks=[float(v) for v in values])
    axis.major_label_overrides = {float(v): units.human(float(v), family) for v in values}


def two_scales(axis, values_of: dict) -> None:
    """Ticks for an axis that shows one quantity or another, whose values never meet: {family: values}."""
    labels = {float(v): units.human(float(v), family) for family, values in values_of.items() for v in values}
    axis.ticker, axis.major_label_overrides = FixedTicker(ticks=sorted(labels)), labels


def named_rows(axis, places: dict) -> None:
    """A name at each place of an axis, without ticks: {name: place}."""
    named_places(axis, {place: name for name, place in places.items()})


def named_places(axis, names: dict) -> None:
    """The same where a name may stand at several places: {place: name}."""
    axis.ticker = FixedTicker(ticks=[float(place) for place in names])
    axis.major_label_overrides = {float(place): name for place, name in names.items()}
    axis.axis_line_color = axis.major_tick_line_color = None


def moving_ticks(axis, family) -> None:
    """Round ticks in the units of a family for an axis whose range moves; the page chooses them when the range settles."""
    axis.ticker = FixedTicker(ticks=[])
    axis.tags = [{"ticks": family}]


def second_scale(p, name) -> None:
    """Another vertical axis of that name, not drawn, for glyphs with ``y_range_name``; ``ranges()`` says where it rests."""
    p.extra_y_ranges = {**p.extra_y_ranges, name: Range1d(0, 1, name=name)}


def only(width, *models) -> None:
    """Show these glyphs or axes on a ``"wide"`` picture alone, or on a ``"narrow"`` one (a phone: under 520 pixels)."""
    for model in models:
        model.tags = [*model.tags, {"only": width}]


def still_height(p) -> dict:
    """For glyphs whose height is a share of the picture, from 0 to 1, wherever the axis is: what to pass them."""
    p.extra_y_ranges["still"] = Range1d(0, 1)
    return {"y_range_name": "still"}


def same_scales(p, half_width, half_height, room_px=0) -> None:
    """One unit is as long across as up, whatever the picture's width; at least these halves are seen around (0, 0).

    A wide picture keeps so many pixels on either side of them for texts, more where texts are larger (on a slide).
    """
    p.tags = [*p.tags, {"reach": [half_width, half_height, room_px]}]


def room_left(p, place, room_px) -> None:
    """A wide picture keeps at least so many pixels left of a place for texts, more where texts are larger (on a slide)."""
    p.tags = [*p.tags, {"room": [place, room_px]}]


def of_rows(rows):
    """A view of these rows of a source."""
    return CDSView(filter=IndexFilter(rows))


def across(p, name, left, right) -> dict:
    """For glyphs on a horizontal scale of their own, which is not drawn: what to pass them."""
    p.extra_x_ranges = {**p.extra_x_ranges, name: Range1d(left, right)}
    return {"x_range_name": name}


def hide(axis) -> None:
    """No axis at all: for pictures whose position means nothing in that direction."""
    axis.visible = False


def bare(p) -> None:
    """Neither axes nor a grid: for drawings, where no position is a figure."""
    hide(p.xaxis[0]), hide(p.yaxis[0])
    p.grid.visible = False


def sources(widget) -> dict[str, ColumnDataSource]:
    """A data source for each part of a widget, filled with its present columns, and an empty one for each action."""
    parts = {name: columns(part) for name, part in widget.shown()["parts"].items()}
    actions = {name: dict.fromkeys(method.action_columns, []) for name, method in widget.methods("action_label").items()}
    return {name: ColumnDataSource(data=data, name=name) for name, data in (parts | actions).items()}


def columns(part: dict) -> dict:
    """Columns as Bokeh wants them: arrays and lists of one length."""
    return {key: np.atleast_1d(np.asarray(column)) for key, column in part.items()}


def spread(positions, gap):
    """Places for labels of ascending positions, each at least ``gap`` above the one before (works on symbols too)."""
    placed = [positions[0]]
    for i in range(1, len(positions)):
        placed.append(np.maximum(positions[i], placed[-1] + gap))
    return np.stack(placed)


def stacked(heights):
    """Where slabs that stand on one another begin and end; with rows of heights, each row stands on the one before."""
    tops = np.cumsum(heights, axis=0)
    return tops - heights, tops


def hyperbola_ends(product, x_range, y_range):
    """(x, y) of the two places where x · y = product, a straight line on logarithmic axes, leaves the picture."""
    (left, right), (bottom, top) = x_range, y_range
    return ((np.maximum(left, product / top), np.minimum(top, product / left)),
            (np.minimum(right, product / bottom), np.maximum(bottom, product / right)))


def last(count):
    """The number of the last of so many things, of which the first is 0."""
    return count - 1.0


def row_of(table, index):
    """One row of a table, at an index that may be a symbol."""
    return np.sum(np.stack([np.where(index == i, 1.0, 0.0) * table[i] for i in range(len(table))]), axis=0)


def tone(place, places):
    """How dark to shade the first, second … of so many places; a single one is hardly shaded."""
    return 0.03 + 0.27 * place / np.maximum(places - 1.0, 1.0)


def share_of(whole, share):
    """A length on the picture as a share of the axis it is drawn on."""
    return whole * share


def rest(share):
    """What a share leaves of the whole."""
    return 1.0 - share


def decades_below(top, decades):
    """A place on a logarithmic axis so many powers of ten under another; several when ``decades`` are several."""
    return top / 10**np.asarray(decades, dtype=float)


def midpoint(low, high):
    """Where a label stands in the middle of its mark."""
    return (low + high) / 2


def has_room(low, high, least):
    """Whether a mark is longer than a label needs."""
    return high - low > least


def revealed(values, frame):
    """The values as they grow in one after the other while an animation's frame runs from 0 to their number."""
    return values * np.clip(frame - np.arange(len(values)), 0.0, 1.0)


def fitting_view(value, views, headroom=1.15):
    """The first of the axis lengths that holds the value with room above; the longest where none does."""
    fits = np.stack([value * headroom <= view for view in views[:-1]] + [value * 0 <= 1])
    return lookup(views, np.argmax(fits))


def above_line(height, line, view):
    """Where a label above a mark begins: at a line close above it, which would run through the label, else at the mark."""
    return np.where((height < line) & (height > line - 0.075 * view), line, height)


def end_to_end(lengths):
    """(start, end) of marks that are laid one behind the other, in each row if there are several."""
    end = np.cumsum(lengths, axis=-1)
    return end - lengths, end


def after(start, *lengths):
    """Where marks end that begin together and are so long."""
    return tuple(start + length for length in lengths)


def waiting(whole, first, middle, last) -> dict:
    """Columns of bars in three pieces, as shares of the whole: the last piece of each ends with the whole, and before it
    there is a wait where the others are short."""
    none = 0 * (first + middle + last)
    return {"start": none, "sent": none + first / whole, "computed": (first + middle) / whole,
            "waited": none + (whole - last) / whole, "end": none + 1}


def past_wall(ratio, decade=0.5):
    """Where a ratio stands on an axis that is linear up to a wall at 1 and logarithmic beyond, so that 40 % still reads
    as four tenths of the way and 1,000× still fits: each further factor of ten is ``decade`` long."""
    return np.where(ratio <= 1, ratio, 1 + decade * np.log10(np.maximum(ratio, 1)))


def wall_ticks(p, ratios_of: dict, decade=0.5) -> None:
    """Ticks for such an axis below a picture: {"wide": ratios, "narrow": fewer}; per cent up to the wall, times beyond."""
    for width, ratios in ratios_of.items():
        axis = p.xaxis[0] if width == "wide" else p.xaxis[0].clone(visible=False, tags=[])
        places = [float(past_wall(ratio, decade)) for ratio in ratios]
        axis.ticker = FixedTicker(ticks=places)
        axis.major_label_overrides = {place: units.human(ratio, "percent" if ratio <= 1 else "times")
                                      for place, ratio in zip(places, ratios)}
        only(width, axis)
        if axis not in p.below:
            p.add_layout(axis, "below")


def clear_of(place, mark, room):
    """A label's place, moved past a mark that the label would cross for standing closer than ``room`` before it."""
    return np.where((place < mark) & (place > mark - room), mark, place)


def reaches(top, other, room):
    """Whether a mark ends so close over another, or lower, that its label would meet the other's."""
    return top <= other + room


def filled(amount, whole):
    """How much of a gauge is filled, from 0 to 1."""
    return amount / whole


def between(start, end, way):
    """A place on the way from one to another."""
    return start + (end - start) * way


def cut_open(p, rows, cut, half_height=0.22) -> None:
    """Two slanted strokes over a gap in the bar of each row: a log axis has no zero for it to begin at."""
    left, right = cut
    for place, ink, width in ((midpoint(left, right), "panel", 7), (left, "ink-soft", 1.2), (right, "ink-soft", 1.2)):
        p.segment(np.full(len(rows), place), rows - half_height, np.full(len(rows), place * 1.6), rows + half_height,
                  line_color=COLOR[ink], line_width=width)


def rows_of(places, half):
    """The columns of marks that lie around these places of an axis."""
    return {"bottom": places - half, "top": places + half}


def where_known(place, value):
    """A mark's place, and none where it has no value."""
    return place + 0 * value


def right_if(seen, left, right):
    """The right side of a box that is seen; of the others the left one, so that they have no width. A pattern then serves
    all boxes of a glyph: one whose strength differs by box is made anew for each of them, in every frame."""
    return np.where(seen, right, left)


def length(start, end):
    """How long a mark is."""
    return end - start


def key(p, entries: dict, wide: float, narrow: tuple, hatches=(), own_heights=False) -> None:
    """What each hue and pattern means, in a row at the height ``wide``, on a phone two abreast at the heights ``narrow``:
    {name: token}. For marks too small to carry their names. ``own_heights``: from 0 to 1 of the frame, where its axis moves."""
    axes = {"x_range_name": "key"} | ({"y_range_name": "key"} if own_heights else {})
    if own_heights:
        p.extra_y_ranges = {**p.extra_y_ranges, "key": Range1d(0, 1)}
        for width, low in (("wide", wide), ("narrow", min(narrow))):        # lines that leave the frame pass behind it
            only(width, p.quad(left=[-0.02], right=[1], bottom=[low - 0.05], top=[1], fill_color=COLOR["panel"], line_color=None,
                               level="guide", x_range_name="key", y_range_name="key"))
    p.extra_x_ranges = {**p.extra_x_ranges, "key": Range1d(-0.02, 1)}
    names, patterns = list(entries), list(hatches) or [" "] * len(entries)
    places = {"wide": [(i / len(names), wide) for i in range(len(names))],
              "narrow": [(0.5 * (i % 2), narrow[i // 2]) for i in range(len(names))]}
    for width, spots in places.items():
        for name, (x, y), pattern in zip(names, spots, patterns):
            color = COLOR[entries[name]]
            hatch = {} if pattern == " " else {      # a blank pattern would be made anew in every frame, too
                "hatch_pattern": pattern, "hatch_color": color, "hatch_alpha": 0.7, "hatch_scale": 8}
            only(width, p.scatter([x], [y], marker="square", size=13, fill_color=color, fill_alpha=0.45,
                                  line_color=color, level="annotation", **hatch, **axes),
                 p.text([x], [y], text=[name], x_offset=13, level="annotation", **axes, **TEXT))
