"""One style for all figures: no toolbar, few ticks, text of at least 13 px, colours from the tokens.

Figures are built in the light theme's colours; the page replaces each token's colour by the other theme's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from bokeh.core.properties import field, value
from bokeh.models import (
    BasicTicker,
    CDSView,
    ColumnDataSource,
    FixedTicker,
    GlyphRenderer,
    IndexFilter,
    Range1d,
    Title,
)
from bokeh.plotting import figure
from bokeh.transform import factor_cmap, linear_cmap

from engine.base import units
from engine.base.types import Real, Truth
from widgets.kit.drawing import lettering, tokens
from widgets.kit.drawing.marks import Known

# here a widget finds everything that it draws with
from widgets.kit.drawing.places import (  # noqa: F401
    FAR_LEFT,
    LEAST_PX,
    above_line,
    between,
    clear_of,
    decades_below,
    doublings,
    end_to_end,
    fitting_view,
    gone_on_log_unless,
    gone_unless,
    hyperbola_ends,
    in_key,
    inward,
    midpoint,
    names_in,
    one_two_five,
    revealed,
    right_if,
    row_of,
    rows_of,
    share_of_decades,
    spread,
    stacked,
    tone,
    value_places,
    waiting,
    where_known,
)
from widgets.kit.text import Words, choose

if TYPE_CHECKING:
    from bokeh.core.property.vectorization import Field
    from bokeh.model import Model
    from bokeh.models import Axis

    from widgets.kit.drawing.panels import Place

COLOR = Known(tokens.palette("light"))
# The page's --sans, and a monospaced font for code. The page loads the first font of each before it draws.
SYSTEM_FONTS = "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FONT = f"'Course Sans', {SYSTEM_FONTS}"
CODE_FONT = "'Course Mono', ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
TEXT: dict[str, Any] = {
    "text_font": value(FONT),
    "text_font_size": "13px",
    "text_color": COLOR["ink"],
    "text_baseline": "middle",
}
BOLD: dict[str, Any] = TEXT | {"text_font_style": "bold"}
LABEL: dict[str, Any] = TEXT | {"text_color": COLOR["ink-soft"]}
ON_PANEL: dict[str, Any] = {
    "background_fill_color": COLOR["panel"],
    "background_fill_alpha": 1.0,
}  # a label over marks; a line that shines through strikes it out
OVER: dict[str, Any] = {
    "fill_color": COLOR["over"],
    "line_color": COLOR["over"],
    "fill_alpha": 0.13,
    "line_width": 1.5,
    "hatch_pattern": "right_diagonal_line",
    "hatch_color": COLOR["over"],
    "hatch_alpha": 0.32,
    "hatch_weight": 1,
    "hatch_scale": 16,
}
OVER_LINES = ON_PANEL  # for texts that cross lines
BOX = {side: side for side in ("left", "right", "bottom", "top")}  # the columns of a quad's sides
IDLE: dict[str, Any] = {
    "fill_color": COLOR["panel"],
    "line_color": COLOR["idle"],
    "line_width": 0.6,
}  # white with a hairline, for what waits, is free or is left out


def plot(
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    height: int = 380,
    x_title: str = "",
    y_title: str = "",
    x_log: bool = False,
    y_log: bool = False,
    **more: Any,
) -> figure:
    """An empty figure in the course's style. Ranges are (start, end) and stay fixed while a reader drags."""
    p = figure(
        height=height,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        min_border=4,
        x_range=Range1d(start=x_range[0], end=x_range[1], name="x"),
        y_range=Range1d(start=y_range[0], end=y_range[1], name="y"),
        x_axis_type="log" if x_log else "linear",
        y_axis_type="log" if y_log else "linear",
        x_axis_label=x_title or None,
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        output_backend="canvas",
        **more,
    )
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
    if y_title:
        title_above(p, y_title)
    return p


def title_above(p: figure, words: str) -> None:
    """What the vertical axis shows, level above it, where it is read first."""
    style: dict[str, Any] = {"text_font": FONT, "text_font_size": "13px", "text_font_style": "normal"}
    p.add_layout(Title(text=words, text_color=COLOR["ink-soft"], standoff=8, **style), "above")


def measured(p: figure, source: ColumnDataSource, **scales: Any) -> list:
    """Published points, each with a line to the engine's prediction. No other mark of the course is a hollow
    circle."""
    line = p.segment(
        "x", "y", "ours_x", "ours_y", source=source, line_color=COLOR["ink"], line_width=1.2, **scales
    )
    dots = p.scatter(
        "x",
        "y",
        source=source,
        marker="circle",
        size=9,
        fill_color=COLOR["panel"],
        line_color=COLOR["ink"],
        line_width=1.8,
        **scales,
    )
    return [line, dots]


def hues(column: str, tokens_of: dict) -> Field:
    """A colour for each mark, according to the word in a column: {word: token}."""
    return factor_cmap(column, [COLOR[token] for token in tokens_of.values()], list(tokens_of))


def either(column: str, no: str, yes: str) -> Field:
    """The colour of one token for marks whose column has 0, of the other for those with 1."""
    return linear_cmap(column, [COLOR[no], COLOR[yes]], 0.0, 1.0)


def by_style(column: str) -> dict[str, Any]:
    """The style of texts, BOLD or LABEL, by the word in a column: "bold" or "normal"."""
    colors = hues(column, {"bold": "ink", "normal": "ink-soft"})
    return TEXT | {"text_font_style": field(column), "text_color": colors}


def ticks(axis: Axis, values: Iterable[float], family: str) -> None:
    """Fixed ticks, each labelled by the engine's formatter."""
    labels = {float(v): units.human(float(v), family) for v in values}
    axis.update(ticker=FixedTicker(ticks=[float(v) for v in values]), major_label_overrides=labels)


def two_scales(axis: Axis, values_of: dict) -> None:
    """Ticks for an axis that shows one of two quantities with disjoint values: {family: values}."""
    labels = {float(v): units.human(float(v), family) for family, values in values_of.items() for v in values}
    axis.update(ticker=FixedTicker(ticks=sorted(labels)), major_label_overrides=labels)


def named_rows(axis: Axis, places: dict) -> None:
    """A name at each position of an axis, without ticks: {name: position}."""
    named_places(axis, {place: name for name, place in places.items()})


def named_places(axis: Axis, names: dict) -> None:
    """``named_rows`` for names that may appear at several positions: {position: name}."""
    axis.update(ticker=FixedTicker(ticks=[float(place) for place in names]))
    axis.major_label_overrides = {float(place): name for place, name in names.items()}
    axis.axis_line_color = axis.major_tick_line_color = None


def moving_ticks(axis: Axis, family: str) -> None:
    """Round ticks in the units of a family, for an axis whose range moves; the page chooses them when the
    range settles."""
    axis.update(ticker=FixedTicker(ticks=[]))
    axis.tags = [{"ticks": family}]


def second_scale(p: figure, name: str) -> None:
    """Another, invisible vertical axis of this name, for glyphs with ``y_range_name``; ``ranges()`` gives its
    range."""
    p.extra_y_ranges = {**p.extra_y_ranges, name: Range1d(start=0, end=1, name=name)}


def only(width: str, *models: Model) -> None:
    """Show these glyphs or axes only on a ``"wide"`` picture, or only on a ``"narrow"`` one (a phone: under
    520 pixels)."""
    for model in models:
        model.tags = [*model.tags, {"only": width}]


def taller_on_phone(p: figure, height: int) -> None:
    """Set the height of a narrow picture, whose parts lie below one another."""
    p.tags = [*p.tags, {"narrow_height": height}]


def still_height(p: figure) -> dict:
    """Arguments for glyphs whose height is a share of the picture, from 0 to 1, wherever the axis is."""
    p.extra_y_ranges["still"] = Range1d(start=0, end=1)
    return {"y_range_name": "still"}


def same_scales(
    p: figure,
    half_width: float,
    half_height: float,
    room_px: int = 0,
    places: tuple[Place, Place] | None = None,
) -> None:
    """Give both axes the same scale, whatever the picture's width; at least these halves are visible around
    (0, 0).

    On a wide picture at least ``room_px`` pixels remain on either side for text, more where text is larger
    (on a slide). ``places`` are the parts of the frame in which (0, 0) is the middle, on a wide picture and
    on a phone; the whole of it if they are not given.
    """
    reach: dict[str, Any] = {"reach": [half_width, half_height, room_px]}
    if places:
        reach["places"] = dict(zip(("wide", "narrow"), ([list(side) for side in place] for place in places)))
    p.tags = [*p.tags, reach]


def room_left(p: figure, place: Real, room_px: float) -> None:
    """On a wide picture, keep at least ``room_px`` pixels to the left of a place for text, more where text is
    larger (on a slide)."""
    p.tags = [*p.tags, {"room": [place, room_px]}]


def stops(p: figure, source: ColumnDataSource) -> None:
    """Invisible places on a curve, at which its values can be read with the pointer and by keyboard."""
    p.scatter("x", "y", source=source, size=1, fill_alpha=0, line_alpha=0)


def of_rows(rows: list[int]) -> CDSView:
    """A view of these rows of a source."""
    return CDSView(filter=IndexFilter(indices=rows))


def across(p: figure, name: str, left: float, right: float) -> dict:
    """Arguments for glyphs on a horizontal scale of their own, which is not drawn."""
    p.extra_x_ranges = {**p.extra_x_ranges, name: Range1d(start=left, end=right)}
    return {"x_range_name": name}


def window(p: figure, name: str, across: tuple[float, float], upwards: tuple[float, float]) -> dict[str, Any]:
    """Arguments for glyphs on two scales of their own, which are not drawn: a picture within the picture. The
    ends are those of the whole frame."""
    p.extra_x_ranges = {**p.extra_x_ranges, name: Range1d(start=across[0], end=across[1])}
    p.extra_y_ranges = {**p.extra_y_ranges, name: Range1d(start=upwards[0], end=upwards[1])}
    return {"x_range_name": name, "y_range_name": name}


def hide(axis: Axis) -> None:
    """Hide the axis, for pictures where the position in that direction has no meaning."""
    axis.visible = False


def bare(p: figure) -> None:
    """Neither axes nor a grid, for drawings where positions have no meaning."""
    hide(p.xaxis[0])
    hide(p.yaxis[0])
    p.grid.visible = False


def empty_sources(widget: Any) -> dict[str, ColumnDataSource]:
    """A data source for each part of a widget and for each action, without rows."""
    actions: dict[str, Any] = {
        name: {column: [] for column in method.action_columns}
        for name, method in widget.methods("action_label").items()
    }
    names = [*widget.methods("part_of"), *actions]
    return Known({name: ColumnDataSource(data=actions.get(name, {}), name=name) for name in names})


def sources(widget: Any) -> dict[str, ColumnDataSource]:
    """``empty_sources``, filled with the parts' current columns."""
    made = empty_sources(widget)
    for name, part in widget.shown()["parts"].items():
        made[name].data = columns(part)
    return made


def columns(part: dict) -> dict:
    """Columns in Bokeh's form: arrays and lists of equal length."""
    return {key: np.atleast_1d(np.asarray(column)) for key, column in part.items()}


def values(
    p: figure, source: ColumnDataSource, text: str, ink: str = "panel", prefix: str = "", **style: Any
) -> list[GlyphRenderer]:
    """The values of bars, from the columns of ``value_places``; ``ink`` is what can be read on the bar."""
    on: dict[str, Any] = {"y": "y", "text": text, "source": source} | style
    within: dict[str, Any] = on | {"text_color": COLOR[ink], "text_align": "right"}
    return [p.text(f"{prefix}behind", x_offset=8, **on), p.text(f"{prefix}inside", x_offset=-8, **within)]


BREAK = {"across": "//", "up": "≈"}  # the sign on a bar that is longer than its axis


def torn(p: figure, source: ColumnDataSource, x: str, y: Any, way: str = "across") -> GlyphRenderer:
    """A break near the end of each bar that is drawn too short: the part's column ``torn`` says which
    (``broken``). ``x`` and ``y`` are the end of the bar."""
    sign = BOLD | ON_PANEL | {"background_fill_alpha": 1.0, "text_font_size": "17px"}
    before = (
        {"text_align": "right", "x_offset": -7}
        if way == "across"
        else {"y_offset": 20, "text_align": "center"}
    )
    return p.text(x, y, text="torn", source=source, **before, **sign)


def broken(cut: Truth, way: str = "across") -> Words:
    """The sign of a break for each bar that is cut off, and nothing for the others."""
    return choose(cut, BREAK[way], "")


SWATCH, SWATCH_GAP = 13.0, 6.0  # pixels: the size of a swatch, and the gap to its name
KEY_GAP, KEY_LINE = {"wide": 18.0, "narrow": 12.0}, 21.0  # gap between entries, height of a row
PHONE_PX = 300.0  # the frame's width on a phone, without an axis on its left


KeyPlaces: TypeAlias = "dict[str, tuple[ColumnDataSource, str]]"


def key(
    p: figure,
    entries: dict,
    wide: float,
    narrow: float,
    own_heights: bool = False,
    phone_px: float = LEAST_PX["narrow"],
    places: KeyPlaces | None = None,
) -> None:
    """The meaning of each hue, packed into rows from the left; the first row is at the height ``wide``, on a
    phone at ``narrow``: {name: token, or a look of its own}. For marks too small to carry their names.

    ``own_heights``: heights from 0 to 1 of the frame, for an axis that moves; the key is then opaque.
    ``phone_px``: the frame's width on a phone without an axis. ``places``: see ``packed_key``.
    """
    looks = [_look(entry) if isinstance(entry, str) else entry for entry in entries.values()]
    names = {width: list(entries) for width in ("wide", "narrow")}
    heights = {"wide": wide, "narrow": narrow}
    packed_key(p, names, looks, heights, own_heights, phone_px=phone_px, places=places)


def _look(token: str) -> dict[str, Any]:
    """The look of a token: idle time is white with a hairline, whatever is past a limit is hatched, and
    everything else has its hue."""
    hue = {"fill_color": COLOR[token], "line_color": COLOR[token]}
    return {"idle": IDLE, "over": OVER | {"hatch_scale": 8}}.get(token, hue)


def packed_key(
    p: figure,
    names: dict[str, list[str]],
    looks: list[dict[str, Any]],
    heights: dict[str, float],
    own_heights: bool = False,
    left: float | None = None,
    phone_px: float = LEAST_PX["narrow"],
    places: KeyPlaces | None = None,
) -> None:
    """A key whose swatches look like the marks: the names on a wide picture and on a phone, with a look for
    each. It begins at the left of the frame, or at a position of the axis.

    ``places`` is for entries that have no mark in some states: {wide name: (source, the column that says
    where the entry begins)} (``in_key``). These entries come last, so that they leave no gap.
    """
    axes = across(p, "key", 0, 1) if left is None else {}
    axes |= {"y_range_name": "key"} if own_heights else {}
    if own_heights:
        p.extra_y_ranges = {**p.extra_y_ranges, "key": Range1d(start=0, end=1)}
    room = LEAST_PX | {"narrow": phone_px}
    for width, height in heights.items():
        lengths = [SWATCH + SWATCH_GAP + lettering.width(name) for name in names[width]]
        packed = lettering.in_rows(lengths, room[width], KEY_GAP[width])
        if own_heights:  # lines that leave the frame pass behind it
            below = height - 0.05 * (1 + packed[-1][1])
            ground = p.quad(0, 1, 1, below, fill_color=COLOR["panel"], line_color=None, level="guide", **axes)
            only(width, ground)
        for entry, name, look, (x, row) in zip(names["wide"], names[width], looks, packed):
            down = {"y_offset": row * KEY_LINE, "level": "annotation"} | axes
            source, start = (places or {}).get(entry, (ColumnDataSource({"x": [left or 0]}), "x"))
            at: dict[str, Any] = {"x": start, "y": height, "source": source} | down
            swatch = p.text(text=value("\u00a0"), x_offset=x + 5.5, **at, **_swatch(look))
            label = p.text(text=value(name), x_offset=x + SWATCH + SWATCH_GAP, **at, **TEXT)
            only(width, swatch, label)


def _swatch(look: dict[str, Any]) -> dict[str, Any]:
    """An empty text on a background that looks like a mark: unlike a mark, it keeps its distance in
    pixels."""
    parts = {"fill": "background_fill", "hatch": "background_hatch", "line": "border_line"}
    shown = {
        parts[name.partition("_")[0]] + "_" + name.partition("_")[2]: setting
        for name, setting in look.items()
    }
    return TEXT | {"text_font_size": "4px", "padding": 4} | shown
