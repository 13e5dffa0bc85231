"""What a page needs of a widget, as one JavaScript module: its picture, its controls and the function that moves it."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from functools import cache

from bokeh.core.json_encoder import serialize_json
from bokeh.embed import json_item
from bokeh.models import GlyphRenderer

from engine import typed, units
from widgets.kit import figure as fig
from widgets.kit import crossrefs, tokens
from widgets.kit.kept import kept
from widgets.kit.widget import Widget, all_widgets, compile_widget

HELPERS = ("vec, rowwise, gather, join, reduce, cumsum, mod, rint, square, stop, padded, bisect_left, rows, each, remembered, "
           "human, in_unit, plain")


@cache
def _picture(cls: type[Widget]):
    widget = cls()
    plot = widget.figure(fig.sources(widget))
    for name, (start, end) in widget.ranges().items():
        plot.select_one({"name": name}).update(start=float(start), end=float(end))
    for renderer in plot.select({"type": GlyphRenderer}):   # nothing is ever selected or muted: no copies for that
        renderer.selection_glyph = renderer.nonselection_glyph = renderer.muted_glyph = renderer.glyph
    item = json_item(plot)
    item["doc"].pop("defs", None)       # where Panel is imported too: its own models, none of which is in a picture
    return item, plot.height


def _with_ids_of_its_own(slug: str, picture: str) -> str:
    """Bokeh numbers models through a whole process; here each picture's count from one, so that a module is the same
    whichever others were made before it."""
    known: dict[str, str] = {}
    return re.sub(r'"p(\d{4,})"', lambda id: f'"{known.setdefault(id[1], f"{slug}-{len(known) + 1}")}"', picture)


@cache
def height(cls: type[Widget]) -> int:
    """The picture's height in pixels, kept free for it on the page so that nothing jumps."""
    return int(kept(f"{cls.slug()}.height", lambda: b"%d" % _picture(cls)[1]))


@cache
def module(cls: type[Widget]) -> str:
    """The text of the widget's module."""
    return kept(f"{cls.slug()}.js", lambda: _module(cls).encode()).decode()


def _module(cls: type[Widget]) -> str:
    controls, compiled = cls.controls(), compile_widget(cls)
    presets = {}
    for name, texts in cls.presets.items():
        presets[name] = {key: controls[key].raw(controls[key].read(value)) for key, value in texts.items()}
    about = {
        "controls": [control.describe() for control in controls.values()],
        "presets": presets,
        "targets": [name for name, method in cls.methods("regime_target").items() if method.regime_target],
        "geometry": [name for name, method in cls.methods("part_of").items() if not method.part_shown],
        "drag": cls.drag,
        "tap": cls.tap,
        "inPage": cls.in_page,
        "picture": _with_ids_of_its_own(cls.slug(), serialize_json(_picture(cls)[0])),
        "hinted": [method.hint_of for method in cls.methods("hint_of").values()],
        "table": len(compiled.table),
        "tableSum": zlib.adler32(table(cls)),
        "intake": cls.intake and cls.intake.describe(controls),
    }
    return (f"import {{ {HELPERS} }} from \"../widget/numbers.js\";\n"
            f"export const widget = {json.dumps(about, ensure_ascii=False)};\n"
            f"widget.reading = {compiled.shown};\n"
            f"widget.hinting = {compiled.hints};\n"
            f"widget.readFile = {cls.intake.javascript() if cls.intake else 'null'};\n"
            "widget.compute = widget.table ? null : widget.reading(null);\n")


def version(cls: type[Widget]) -> str:
    """Changes whenever the module does, so that browsers may keep what has not."""
    return hashlib.sha256(module(cls).encode() + table(cls)).hexdigest()[:10]


def shared() -> str:
    """What all modules share: the scales of the formatter, how typed quantities are read, the lessons' addresses, the colours
    of both themes."""
    tables = {"FAMILIES": units.FAMILIES, "PREFIX": units.PREFIX, "ONE": units.ONE, "UNITS": units.UNITS, "TYPED": {
        "quantity": typed.QUANTITY, "group": typed.GROUP, "superscripts": typed.SUPERSCRIPTS, "superscript": typed.SUPERSCRIPT,
        "longest": typed.LONGEST, "words": {family: typed.words(family) for family in units.FAMILIES},
    }, "LESSONS": crossrefs.addresses(), "TOKENS": {
        name: {"light": light, "dark": tokens.palette("dark")[name]} for name, light in tokens.palette("light").items()}}
    return "".join(f"export const {name} = {json.dumps(table, ensure_ascii=False)};\n" for name, table in tables.items())


@cache
def table(cls: type[Widget]) -> bytes:
    """The numbers of the widget's tabulated parts, as little-endian doubles; empty where it has none."""
    return kept(f"{cls.slug()}.table", lambda: compile_widget(cls).table.astype("<f8").tobytes())


def files() -> dict[str, bytes]:
    """File name -> contents, for everything under assets/widgets/."""
    found = {"shared.js": shared().encode()}
    for slug, cls in all_widgets().items():
        found[f"{slug}.js"] = module(cls).encode()
        if numbers := table(cls):
            found[f"{slug}.table"] = numbers
    return found
