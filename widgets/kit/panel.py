"""A widget as a Panel component: in an app, or with ``panel serve`` on its own file.

The page of a lesson draws the same figure with scripts of its own; here Panel and Bokeh do it, with a Python
process behind them. The controls are Panel's, made from the widget's parameters; a change of either moves the
other. What only a page can do (predictions, tours, papers, files) is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn
import param
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    GlobalInlineStyleSheet,
    GlyphRenderer,
    HoverTool,
    Selection,
    UIElement,
)
from panel.io.notebook import patch_inline_stylesheets

from engine.base import units
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lettering, scripts

SAYS = "what it says"  # name of the column with the texts of a part's marks
BESIDE = 300  # pixels: how wide the controls are beside the picture; above it they fill the width
LEAST = 360  # pixels of a picture beside the controls; a narrower one goes below them
GROWS = 999  # the share of the room left over that a picture takes, to one of the controls
# Readouts in a grid that fills its width, in the colours of the ground that it lies on, whatever the theme
TILES = """
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 8px; margin: 0; }
dl > div { border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 4px; }
dl > div { padding: 6px 10px; }
dl > .alarm { border: 2px solid currentColor; }
dt { font-size: 13px; }
dd { margin: 2px 0 0; font-weight: 600; overflow-wrap: anywhere; }
"""
# Panel takes the colour of its words from a variable of ipywidgets, which JupyterLab may be without
IN_JUPYTER = ":host { --jp-widgets-label-color: var(--jp-ui-font-color1); }"


class Live(param.Parameterized):
    """What a widget shows now: each readout and the headline as a parameter, the parts as data sources."""

    headline = param.String(doc="What the figure says, in a sentence.")
    regimes = param.List(doc="The situations that hold.")
    changes = param.Integer(doc="How often anything has changed.")

    def __init__(self, widget: Any) -> None:
        super().__init__(name=widget.slug())
        self.widget, self.sources = widget, fig.empty_sources(widget)
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
            if not _same(columns, self.sources[name].data):
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


def _same(columns: dict[str, Any], others: Any) -> bool:
    return columns.keys() == others.keys() and all(
        np.array_equal(column, others[name]) for name, column in columns.items()
    )


def live(widget: Any) -> Live:
    """The live account of a widget, of a class with a parameter for each of its readouts."""
    texts = {
        name: param.String(label=method.readout_label, doc=method.readout_help or None)
        for name, method in widget.methods("readout_label").items()
    }
    return type(f"{type(widget).__name__}Live", (Live,), texts)(widget)


# -- the picture ---------------------------------------------------------------------------------------------
class Picture:
    """A widget's figure whose marks speak. The browser arranges it for its width, as it does on a lesson's
    page, moves its axes and takes the colours of the ground that it lies on: panel.js."""

    def __init__(self, shows: Live) -> None:
        self.shows = shows
        self.plot: Any = shows.widget.figure(shows.sources)
        fonts = GlobalInlineStyleSheet(css=lettering.faces())
        self.plot.stylesheets = [fonts]
        self.plot.axis[0].stylesheets = [fonts]  # a template of Panel's replaces those of the picture itself
        self.speaks()
        self.ends = ColumnDataSource()  # range name -> where it starts and ends
        self.follow()
        shows.param.watch(self.follow, "changes")
        fitted = CustomJS(args={"plot": self.plot, "asked": self.ends}, code=_fitted())
        self.plot.js_on_change("outer_width", fitted)
        self.plot.js_on_change("outer_height", fitted)
        self.ends.js_on_change("data", fitted)
        self.keep_to_the_browser()

    def follow(self, *_events: Any) -> None:
        """Where the axes should be now."""
        ends: dict[str, Any] = {
            name: [float(end) for end in asked] for name, asked in self.shows.shown["ranges"].items()
        }
        if dict(self.ends.data) != ends:
            self.ends.data = ends

    def keep_to_the_browser(self) -> None:
        """Python is told nothing about what the browser arranges in the picture, except for what is selected.
        In a notebook Panel sends back even what Python has just set, and Bokeh's Python refuses a colour in
        the form in which its browser sends it."""
        for model in self.plot.references():
            model.syncable = isinstance(model, Selection)

    def speaks(self) -> None:
        """Show the texts of marks under the pointer, for each part that has such texts."""
        models = self.plot.references()
        for source in self.shows.sources.values():
            if SAYS not in source.column_names:
                continue
            drawn: list[Any] = [
                model for model in models if isinstance(model, GlyphRenderer) and model.data_source is source
            ]
            tool = HoverTool(renderers=drawn, tooltips=f"<div style='max-width: 320px'>@{{{SAYS}}}</div>")
            self.plot.add_tools(tool)


@cache
def _fitted() -> str:
    """The JavaScript callback that fits the picture to its width; its script is evaluated once for a
    picture."""
    made = f"{scripts.together(Path(__file__).with_suffix('.js'))}\nreturn fitted(plot, asked);"
    return f"(plot.fitted ??= (() => {{\n{made}\n}})())(cb_context.index);"


# -- the controls --------------------------------------------------------------------------------------------
def control(widget: Any, name: str) -> pn.widgets.Widget:
    """Panel's control for one of the widget's parameters; each follows the other."""
    about = widget.controls()[name]
    made, to_panel, to_widget = MAKERS[about.kind](widget, name, about)
    made.sizing_mode = (
        "stretch_width"  # as wide as its column; Panel's own width would exceed that by the margins
    )

    def from_widget(event: param.parameterized.Event) -> None:
        value = to_panel(event.new)
        if made.value != value:
            made.value = value

    def from_panel(event: param.parameterized.Event) -> None:
        if (
            to_panel(getattr(widget, name)) != event.new
        ):  # else the change comes from the other one, and all would be done twice
            widget.param.update(**{name: to_widget(event.new)})

    widget.param.watch(from_widget, name)
    made.param.watch(from_panel, "value")
    return made


Same = Callable[[Any], Any]


class Stops(pn.widgets.DiscreteSlider):
    """Panel's slider over stops with one difference: the browser writes the label as the handle moves, and
    Python, which is told later, does not overwrite it with a stop that the handle has left behind."""

    def _update_value(self, event: param.parameterized.Event) -> None:
        if not self._syncing:  # the change comes from Python
            super()._update_value(event)


def _number(widget: Any, name: str, about: Any) -> tuple[pn.widgets.Widget, Same, Same]:
    """A slider over the stops; a value between them, set in Python, becomes a stop of its own."""
    if not about.slider:
        low, high = (int(limit) for limit in about.limits)
        made = pn.widgets.IntInput(label=about.label, value=int(getattr(widget, name)), start=low, end=high)
        return made, int, float
    slider = Stops(
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


class Words(pn.pane.HTML):
    """Panel's pane with one difference: a change of the words sends the words alone. Panel would send
    everything that the pane has, with new copies of its style sheets, and that makes Bokeh walk through every
    model of the app, which takes 50 ms."""

    def _update(self, ref: str, model: Any) -> None:
        model.text = self._get_properties(model.document)["text"]


# -- all of it -----------------------------------------------------------------------------------------------
def view(widget: Any) -> pn.viewable.Viewable:
    """The headline over the controls and the picture, the readouts under them."""
    shows = widget.live
    made = {name: control(widget, name) for name in widget.controls()}
    folds: dict[str, list] = {}
    for name, about in widget.controls().items():
        title = about.more if isinstance(about.more, str) else "More" if about.more else ""
        folds.setdefault(title, []).append(made[name])
    beside = pn.Column(
        presets(widget), *folds.pop("", []), sizing_mode="stretch_width", styles=_takes(1, BESIDE)
    )
    beside.extend(
        pn.Card(*controls, title=title, collapsed=True, margin=(5, 10), sizing_mode="stretch_width")
        for title, controls in folds.items()
    )
    picture = Picture(shows)
    pane = pn.pane.Bokeh(picture.plot, sizing_mode="stretch_width")
    rest = pn.Column(pane, styles=_takes(GROWS, LEAST))
    return pn.Column(
        pn.pane.Markdown(f"### {widget.question}"),
        Words(pn.bind(_paragraph, shows.param.headline), sizing_mode="stretch_width"),
        pn.FlexBox(beside, rest, gap="8px", sizing_mode="stretch_width"),
        Words(
            pn.bind(lambda _: _readouts(shows), shows.param.changes),
            stylesheets=[TILES],
            sizing_mode="stretch_width",
        ),
        sizing_mode="stretch_width",
        stylesheets=[IN_JUPYTER],
        hooks=[_bring_sheets],
    )


def _bring_sheets(_: Any, root: UIElement) -> None:
    """With ``pn.extension(inline=True)``, Panel writes its style sheets into what it hands to Jupyter. marimo
    takes the model itself, whose sheets then are at Panel's own host; so they are written into that, too."""
    if pn.config.inline:
        for each in root.select({"type": UIElement}):
            if isinstance(each, UIElement):
                patch_inline_stylesheets(each)


def _takes(grows: int, pixels: int) -> dict[str, str]:
    """The style of a column in the row: ``pixels`` wide, narrower if there is no room, and wider if it
    ``grows``."""
    return {"flex": f"{grows} 1 {pixels}px", "min-width": "0", "width": "auto"}


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


def _paragraph(words: str) -> str:
    return f"<p>{escape(words)}</p>"


def _readouts(shows: Live) -> str:
    """The readouts in a grid, and the words of the regimes that hold."""
    tiles = "".join(tile(shows, name) for name in shows.shown["readouts"])
    return "".join([f"<dl>{tiles}</dl>", *(f"<p><em>{escape(text)}</em></p>" for text in shows.regimes)])


def tile(shows: Live, name: str) -> str:
    """A readout of the grid, framed where it is past a limit."""
    readout = shows.shown["readouts"][name]
    mark = ' class="alarm"' if readout["alarm"] else ""
    return (
        f"<div{mark}><dt>{escape(shows.param[name].label or '')}</dt><dd>{escape(readout['text'])}</dd></div>"
    )
