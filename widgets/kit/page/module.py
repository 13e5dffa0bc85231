"""What a page needs of a widget, as one JavaScript module: its picture, its controls and the function that
updates it."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from functools import cache
from typing import Any

from bokeh.core.json_encoder import serialize_json
from bokeh.embed import json_item
from bokeh.models import GlyphRenderer

from engine.base import answers, typed, units
from widgets.kit import guide
from widgets.kit.compiler.operations import HELPERS
from widgets.kit.compiler.programs import Program
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import marks, scripts, tokens
from widgets.kit.page.cache import kept
from widgets.kit.widget import Compiled, Widget, all_widgets, compile_widget


@cache
def _picture(cls: type[Widget]):
    widget = cls()
    plot = widget.figure(fig.sources(widget))
    models = plot.references()  # once: a search by name or kind walks through all of them each time
    named: dict[str | None, Any] = {model.name: model for model in models}
    for name, (start, end) in widget.ranges().items():
        named[name].update(start=float(start), end=float(end))
    drawn: list[Any] = [model for model in models if isinstance(model, GlyphRenderer)]
    guide.require_marks(cls, {name for each in drawn for name in (each.name, each.data_source.name) if name})
    guide.require_words(cls)
    marks.require_columns(cls, drawn)
    for renderer in drawn:  # nothing is ever selected or muted, so no copies are needed for that
        renderer.selection_glyph = renderer.nonselection_glyph = renderer.muted_glyph = renderer.glyph
    for source in {each.data_source for each in drawn if each.data_source.name}:
        source.data = {column: [] for column in source.data}  # the page fills it before it draws (view.js)
    item = json_item(plot)
    _leave_out_defaults(item["doc"])
    item["doc"].pop("defs", None)  # definitions of Panel's models, if it is imported; no picture contains one
    return item, plot.height


DEFAULTS = {
    "selected": "Selection",
    "selection_policy": "UnionRenderers",
    "view": "CDSView",
    "filter": "AllIndices",
}


def _leave_out_defaults(thing: Any) -> None:
    """Remove the models that BokehJS makes by itself if they are missing: a source's empty selection, and a
    view of all rows."""
    if isinstance(thing, list):
        for each in thing:
            _leave_out_defaults(each)
    if not isinstance(thing, dict):
        return
    for each in thing.values():
        _leave_out_defaults(each)
    for name in DEFAULTS.keys() & thing.keys():
        model = thing[name]
        if isinstance(model, dict) and model.get("name") == DEFAULTS[name] and not _says_something(model):
            del thing[name]


def _says_something(model: dict) -> bool:
    """Whether a model has an attribute that is not empty."""
    return any(value not in ([], {}, {"type": "map"}) for value in model.get("attributes", {}).values())


# ids of Bokeh's models: numbers, or UUIDs once a notebook has asked Panel for its scripts
ID = re.compile(r'"(p\d{4,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"')


def _with_ids_of_its_own(slug: str, picture: str) -> str:
    """Bokeh numbers models over a whole process; here each picture's numbers start at one, so that a module
    is the same whichever others were made before it."""
    known: dict[str, str] = {}
    return ID.sub(lambda found: f'"{known.setdefault(found[1], f"{slug}-{len(known) + 1}")}"', picture)


def depends_on(cls: type[Widget]) -> tuple[str, ...]:
    """The modules that a widget's module depends on: its own, and this one."""
    return cls.__module__, __name__


@cache
def height(cls: type[Widget]) -> int:
    """The picture's height in pixels, reserved on the page so that nothing jumps."""
    return int(kept(f"{cls.slug()}.height", lambda: b"%d" % _picture(cls)[1], depends_on(cls)))


@cache
def module(cls: type[Widget]) -> str:
    """The text of the widget's module."""
    return kept(f"{cls.slug()}.js", lambda: made(cls)[0], depends_on(cls)).decode()


@cache
def made(cls: type[Widget]) -> tuple[bytes, bytes]:
    """The widget's module and its table, compiled now. What goes wrong has the widget's file as a note."""
    try:
        compiled = compile_widget(cls)
        numbers = compiled.table.astype("<f8").tobytes()
        return _module(cls, compiled, numbers).encode(), numbers
    except Exception as error:
        error.add_note(f"{cls.__module__.replace('.', '/')}.py")
        raise


def _module(cls: type[Widget], compiled: Compiled, numbers: bytes) -> str:
    controls = cls.controls()
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
        "carry": cls.carry,
        "press": cls.press,
        "inPage": cls.in_page,
        "picture": _with_ids_of_its_own(cls.slug(), serialize_json(_picture(cls)[0])),
        "lights": {name: list(light.marks) for name, light in cls.lights.items()},
        "hinted": [
            *(method.hint_of for method in cls.methods("hint_of").values()),
            *cls.methods("measured_by"),
        ],
        "measuredParts": list(cls.methods("measured_by")),
        **({"given": list(cls.given)} if cls.given else {}),
        "table": len(compiled.table),
        "tableSum": zlib.adler32(numbers),
        "intake": cls.intake and cls.intake.describe(controls),
    }
    helpers = ", ".join(HELPERS)
    return (
        f'import {{ {helpers} }} from "../widget/numbers.js";\n'
        f"export const widget = {json.dumps(about, ensure_ascii=False)};\n"
        f"widget.reading = {compiled.function};\n"
        f"widget.readFile = {cls.intake.javascript() if cls.intake else 'null'};\n"
        "widget.compute = widget.table ? null : widget.reading(null);\n"
    )


def version(cls: type[Widget]) -> str:
    """A text that changes whenever the module changes, so that browsers may cache the module."""
    return hashlib.sha256(module(cls).encode() + table(cls)).hexdigest()[:10]


def shared(lessons: dict[str, str]) -> str:
    """What all modules share: the formatter's scales, how typed quantities are read, the folder of each
    lesson by its number, and the colours of both themes."""
    return scripts.constants(
        {**units.tables(), "TYPED": typed.tables(), "LESSONS": lessons, "TOKENS": tokens.of_both_themes()}
    )


# puts what was chosen into words: {side}, {far} … are filled in
SENTENCE = """\
export function sentence({ said, above, far }, fill = {}) {
  const words = { side: SIDE[above], place: PLACE[above], far: number(far, 2), ...fill };
  return SAID[said].replace(/\\{(\\w+)\\}/g, (_, name) => words[name]);
}
"""


@cache
def judging() -> str:
    """The rule by which a page judges what a reader has typed: that of engine/base/answers.py."""
    programs = {name: Program(getattr(answers, name)) for name in ("judged", "off_by")}
    functions = {name: text for each in programs.values() for name, text in each.functions.items()}
    body = "\n".join(functions.values())
    helpers = ["number", *(name for name in HELPERS if re.search(rf"(?<![.\w]){name}\(", body))]
    exports = ", ".join(f"{each.name} as {name}" for name, each in programs.items())
    return (
        f'import {{ {", ".join(helpers)} }} from "../widget/numbers.js";\n'
        f"{scripts.constants(answers.tables())}{body}\n{SENTENCE}export {{ {exports} }};\n"
    )


@cache
def table(cls: type[Widget]) -> bytes:
    """The numbers of the widget's tabulated parts, as little-endian doubles; empty if it has none."""
    return kept(f"{cls.slug()}.table", lambda: made(cls)[1], depends_on(cls))


def files(lessons: dict[str, str]) -> dict[str, bytes]:
    """File name -> contents, for everything under assets/widgets/."""
    found = {"shared.js": shared(lessons).encode(), "answers.js": judging().encode()}
    for slug, cls in all_widgets().items():
        found[f"{slug}.js"] = module(cls).encode()
        if numbers := table(cls):
            found[f"{slug}.table"] = numbers
    return found
