"""A widget as a Panel component: in an app, or with ``panel serve`` on its own file.

The page of a lesson draws the same figure with scripts of its own; here Panel and Bokeh do it, with a Python
process behind them. The controls are Panel's, made from the widget's parameters; a change of either moves the
other. What only a page can do (predictions, tours, papers, files) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn
import param
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.core.property.vectorization import Value
from bokeh.models import Axis, CustomJS, GlobalInlineStyleSheet, GlyphRenderer, HoverTool, Range1d

from engine.base import units
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lettering, panels, tokens

if TYPE_CHECKING:
    from bokeh.model import Model
    from bokeh.plotting import figure

SAYS = "what it says"  # the column with the texts of a part's marks
FRAME = {"outer_width": 800, "inner_width": 760, "inner_height": 340}  # pixels, until a browser has told them
NARROW = 520  # pixels: under this a picture is arranged as on a phone
SHOWN = f"""const is_narrow = cb_obj.outer_width < {NARROW};
for (const each of wide) each.visible = !is_narrow;
for (const each of narrow) each.visible = is_narrow;"""
BESIDE = 300  # pixels: how wide the controls are
LEAST = 360  # pixels of a picture beside them; with less it is below
STEPS = (1, 2, 5, 10)


class Live(param.Parameterized):
    """What a widget shows now: each readout and the headline as a parameter, the parts as data sources."""

    headline = param.String(doc="What the figure says, in a sentence.")
    regimes = param.List(doc="The situations that hold.")
    changes = param.Integer(doc="How often anything has changed.")

    def __init__(self, widget: Any) -> None:
        super().__init__(name=widget.slug())
        self.widget, self.sources = widget, fig.sources(widget)
        self.refresh()
        widget.param.watch(self.refresh, list(widget.controls()))

    def refresh(self, *_events: Any) -> None:
        """Brings everything up to the widget's state; all of it changes at once for those who watch."""
        shown, hints = self.widget.shown(), self.widget.hints()
        for name, part in shown["parts"].items():
            columns: dict[str, Any] = fig.columns(part)
            if name in hints:
                rows = len(next(iter(columns.values())))
                columns[SAYS] = [*hints[name], *[""] * rows][:rows]
            self.sources[name].data = columns
        readouts = {name: readout["text"] for name, readout in shown["readouts"].items()}
        met = [regime["text"] for regime in shown["regimes"].values() if regime["met"]]
        self.shown = shown
        self.param.update(headline=shown["summary"], regimes=met, changes=self.changes + 1, **readouts)

    def frame(self, part: str) -> Any:
        """A part's columns as a DataFrame."""
        if part not in self.sources:
            raise KeyError(f"{self.name} has no part {part!r}; it has {', '.join(self.sources)}")
        return self.sources[part].to_df().drop(columns=SAYS, errors="ignore")


def live(widget: Any) -> Live:
    """The live account of a widget, of a class with a parameter for each of its readouts."""
    texts = {
        name: param.String(label=method.readout_label, doc=method.readout_help or None)
        for name, method in widget.methods("readout_label").items()
    }
    return type(f"{type(widget).__name__}Live", (Live,), texts)(widget)


# -- the picture ---------------------------------------------------------------------------------------------
class Picture:
    """A widget's figure: its axes follow the state, its marks speak, and it has the app's colours."""

    def __init__(self, shows: Live, dark: bool) -> None:
        self.shows = shows
        self.plot: Any = shows.widget.figure(shows.sources)
        fonts = GlobalInlineStyleSheet(css=lettering.faces())
        self.plot.stylesheets = [fonts]
        self.plot.axis[0].stylesheets = [fonts]  # a template of Panel's replaces those of the picture itself
        self.models = self.plot.references()
        self.heights = {"wide": self.plot.height, **(_tag(self.plot, "narrow_height") or {})}
        self.own_start = self.plot.x_range.start
        self.size = ""
        self.fits_by_itself()
        self.speaks()
        self.fit()
        shows.param.watch(self.follow, "changes")
        for side in ("outer_width", "inner_width", "inner_height"):
            self.plot.on_change(side, lambda attr, old, new: self.fit())
        if dark:
            recolour(self.models)

    def fits_by_itself(self) -> None:
        """In a notebook the width does not come to Python, so the browser shows and hides what is for one
        width alone. Panels, which would move as well, stay side by side there."""
        if _tag(self.plot, "narrow_height") is None:
            models = {
                size: [model for model in self.models if (_tag(model, "only") or {}).get("only") == size]
                for size in ("wide", "narrow")
            }
            self.plot.js_on_change("outer_width", CustomJS(args=models, code=SHOWN))

    def fit(self) -> None:
        """Arranges it for the width that it has, as site/theme/assets/widget/layout.js does on a page."""
        size = "narrow" if _pixels(self.plot, "outer_width") < NARROW else "wide"
        if size != self.size:
            self.size = size
            for model in self.models:
                if (only := _tag(model, "only")) is not None:
                    model.update(visible=only["only"] == size)
            self.plot.height = self.heights.get(f"{size}_height", self.heights["wide"])
            self.follow()
        if (reach := _tag(self.plot, "reach")) is not None:
            self.same_scales(reach)
        if (room := _tag(self.plot, "room")) is not None:
            self.leave_room(*room["room"])

    def follow(self, *_events: Any) -> None:
        """Moves the axes."""
        asked = self.shows.shown["ranges"]
        for range in self.models:
            if not isinstance(range, Range1d):
                continue
            panel = (_tag(range, "panel") or {}).get("panel")
            ends = asked.get(range.name) or (panel and panel["ends"])
            if not ends:
                continue
            start, end = (float(end) for end in ends)
            if panel:  # its ends, as those of the whole frame
                start, end = panels.of_frame(panel[self.size], (start, end), panel["log"])
            range.update(start=start, end=end)
        for side, across in (("below", self.plot.x_range), ("left", self.plot.y_range)):
            for axis in getattr(self.plot, side):
                _retick(axis, across)

    def speaks(self) -> None:
        """The marks of each part that has something to say say it under the pointer."""
        for source in self.shows.sources.values():
            if SAYS not in source.column_names:
                continue
            drawn: list[Any] = [
                model
                for model in self.models
                if isinstance(model, GlyphRenderer) and model.data_source is source
            ]
            tool = HoverTool(renderers=drawn, tooltips=f"<div style='max-width: 320px'>@{{{SAYS}}}</div>")
            self.plot.add_tools(tool)

    def same_scales(self, tag: Mapping[str, Any]) -> None:
        """One unit as long across as up, as ``drawing.figure.same_scales`` asks."""
        half_width, half_height, room = tag["reach"]
        (left, right), (low, high) = tag["places"][self.size] if "places" in tag else ((0, 1), (0, 1))
        width, height = (_pixels(self.plot, side) for side in ("inner_width", "inner_height"))
        beside = room if self.size == "wide" else 0
        unit = min(((right - left) * width - 2 * beside) / half_width, (high - low) * height / half_height)
        for range, first, last, pixels in (
            (self.plot.x_range, left, right, width),
            (self.plot.y_range, low, high, height),
        ):
            range.update(start=-(first + last) * pixels / unit, end=(2 - first - last) * pixels / unit)

    def leave_room(self, place: float, room: float) -> None:
        """So many pixels to the left of a place for its texts, as ``drawing.figure.room_left`` asks."""
        width, pixels = _pixels(self.plot, "inner_width"), room if self.size == "wide" else 0
        across = self.plot.x_range
        across.start = min(self.own_start, (place * width - pixels * across.end) / (width - pixels))


def _pixels(plot: figure, side: str) -> int:
    """The length of a side, which a browser tells once it has drawn it."""
    try:
        return getattr(plot, side) or FRAME[side]
    except UnsetValueError:
        return FRAME[side]


def _tag(model: Model, key: str) -> Mapping[str, Any] | None:
    return next((tag for tag in model.tags if isinstance(tag, dict) and key in tag), None)


def _retick(axis: Axis, range: Any) -> None:
    """Four to seven round ticks for an axis whose range moves."""
    tag = _tag(axis, "ticks")
    if tag is None:
        return
    start, end = sorted((float(range.start), float(range.end)))
    size = 10.0 ** np.floor(np.log10((end - start) / 5))
    step = next(each * size for each in STEPS if each * size >= (end - start) / 5)
    ticks = [float(tick) for tick in np.arange(np.ceil(start / step), end / step * (1 + 1e-6) + 1) * step]
    ticks = [tick for tick in ticks if tick <= end * (1 + 1e-6)]
    axis.update(major_label_overrides={tick: units.human(tick, tag["ticks"]) for tick in ticks})
    ticker: Any = axis.ticker
    ticker.update(ticks=ticks)


def recolour(models: set[Model]) -> None:
    """Each colour of the light theme becomes the one of the same name in the dark theme."""
    light, dark = tokens.palette("light"), tokens.palette("dark")
    other = {colour.lower(): dark[name] for name, colour in light.items()}

    def turned(value: Any) -> Any:
        if isinstance(value, str):
            return other.get(value.lower(), value)
        if isinstance(value, Value):
            return replace(value, value=turned(value.value))
        return [turned(each) for each in value] if isinstance(value, list) else value

    for model in models:
        for name, value in model.properties_with_values(include_defaults=False).items():
            if isinstance(value, (str, list, Value)) and turned(value) != value:
                setattr(model, name, turned(value))


# -- the controls --------------------------------------------------------------------------------------------
def control(widget: Any, name: str) -> pn.widgets.Widget:
    """Panel's control for one of the widget's parameters; each follows the other."""
    about = widget.controls()[name]
    made, to_panel, to_widget = MAKERS[about.kind](widget, name, about)
    made.sizing_mode = (
        "stretch_width"  # as wide as its column: Panel's own width is more than that with its margins
    )

    def from_widget(event: param.parameterized.Event) -> None:
        value = to_panel(event.new)
        if made.value != value:
            made.value = value

    def from_panel(event: param.parameterized.Event) -> None:
        widget.param.update(**{name: to_widget(event.new)})

    widget.param.watch(from_widget, name)
    made.param.watch(from_panel, "value")
    return made


Same = Callable[[Any], Any]


def _number(widget: Any, name: str, about: Any) -> tuple[pn.widgets.Widget, Same, Same]:
    """A slider over the stops; a value between them, set in Python, becomes a stop of its own."""
    if not about.slider:
        low, high = about.limits
        made = pn.widgets.IntInput(label=about.label, value=int(getattr(widget, name)), start=low, end=high)
        return made, int, float
    slider = pn.widgets.DiscreteSlider(
        label=about.label, options=_stops(about, getattr(widget, name)), value=float(getattr(widget, name))
    )

    def shown(value: float) -> float:
        if value not in slider.values:
            slider.options = _stops(about, value)
        return float(value)

    return slider, shown, float


def _stops(about: Any, value: float) -> dict[str, float]:
    """Text -> stop. Two stops that read alike are told apart by their digits."""
    stops: dict[str, float] = {}
    for stop in sorted({*about.grid.tolist(), float(value)}):
        text = units.human(stop, about.family)
        stops[f"{stop:.12g}" if text in stops else text] = stop
    return stops


def _player(widget: Any, name: str, about: Any) -> tuple[pn.widgets.Widget, Same, Same]:
    grid = about.grid
    made = pn.widgets.Player(
        label=about.label,
        start=0,
        end=len(grid) - 1,
        value=int(np.abs(grid - getattr(widget, name)).argmin()),
        interval=max(40, round(1000 * about.seconds * about.frames / len(grid))),
        loop_policy="once",
        show_loop_controls=False,
    )
    return made, lambda value: int(np.abs(grid - value).argmin()), lambda index: float(grid[index])


def _choice(widget: Any, name: str, about: Any) -> tuple[pn.widgets.Widget, Same, Same]:
    places = {label: place for place, label in enumerate(about.labels)}
    made = pn.widgets.Select(label=about.label, options=places, value=about.index(getattr(widget, name)))
    return made, about.index, about.at


def _switch(widget: Any, name: str, about: Any) -> tuple[pn.widgets.Widget, Same, Same]:
    return pn.widgets.Checkbox(label=about.label, value=bool(getattr(widget, name))), bool, bool


def _bits(widget: Any, name: str, about: Any) -> tuple[pn.widgets.Widget, Same, Same]:
    """The bits that are flipped, chosen from all of them; the first bit is number 1."""

    def turned(value: float) -> list[int]:
        return [place for place in range(about.bits) if int(value) >> place & 1]

    places = {f"bit {about.bits - place}": place for place in reversed(range(about.bits))}
    made = pn.widgets.MultiChoice(label=about.label, options=places, value=turned(getattr(widget, name)))
    return made, turned, lambda places: float(sum(2**place for place in places))


MAKERS: dict[str, Callable[[Any, str, Any], tuple[pn.widgets.Widget, Same, Same]]] = {
    "number": _number,
    "player": _player,
    "choice": _choice,
    "switch": _switch,
    "bits": _bits,
}


# -- all of it -----------------------------------------------------------------------------------------------
def view(widget: Any) -> pn.viewable.Viewable:
    """The headline over the controls and the picture, the readouts under them."""
    shows = widget.live
    made = {name: control(widget, name) for name in widget.controls()}
    folds: dict[str, list] = {}
    for name, about in widget.controls().items():
        title = about.more if isinstance(about.more, str) else "More" if about.more else ""
        folds.setdefault(title, []).append(made[name])
    beside = pn.Column(presets(widget), *folds.pop("", []), width=BESIDE)
    if folds:
        closed = [
            (title, pn.Column(*controls, sizing_mode="stretch_width")) for title, controls in folds.items()
        ]
        beside.append(pn.Accordion(*closed, margin=(5, 10), sizing_mode="stretch_width"))
    picture = Picture(shows, dark=is_dark())
    pane = pn.pane.Bokeh(picture.plot, sizing_mode="stretch_width")
    rest = pn.Column(pane, styles={"flex": f"1 1 {LEAST}px", "min-width": "0", "width": "auto"})
    return pn.Column(
        pn.pane.Markdown(f"### {widget.question}"),
        pn.pane.Markdown(shows.param.headline, sizing_mode="stretch_width"),
        pn.FlexBox(beside, rest, gap="8px", sizing_mode="stretch_width"),
        pn.pane.Markdown(pn.bind(lambda _: _readouts(shows), shows.param.changes)),
        sizing_mode="stretch_width",
    )


def presets(widget: Any) -> pn.widgets.MenuButton:
    """Named states to jump to."""
    made = pn.widgets.MenuButton(
        label="Examples",
        items=list(widget.presets),
        sizing_mode="stretch_width",
        visible=bool(widget.presets),
    )

    def chosen(event: param.parameterized.Event) -> None:
        if event.new in widget.presets:
            home = {name: about.default for name, about in widget.controls().items()}
            with param.parameterized.batch_call_watchers(widget):  # one change, drawn once
                widget.param.update(**home)
                widget.set_state(widget.presets[event.new])

    made.param.watch(chosen, "clicked")
    return made


def _readouts(shows: Live) -> str:
    """The readouts as a list, and what is the matter."""
    said = [f"- {shows.param[name].label}: **{getattr(shows, name)}**" for name in shows.shown["readouts"]]
    return "\n".join([*said, "", *(f"*{text}*" for text in shows.regimes)])


def is_dark() -> bool:
    """Whether Panel's theme is the dark one: pn.config.theme, or pn.extension(theme="dark")."""
    return pn.config.theme == "dark"
