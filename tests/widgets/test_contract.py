"""What every widget must be, whatever it shows: the contract of the kit, held for each module in widgets/."""

import gzip
import inspect
import re
import statistics
import sys
from functools import cache

import pytest
from bokeh.core.property.vectorization import Field, Value
from bokeh.core.validation import check_integrity
from bokeh.models import Axis, ColorMapper, ColumnDataSource, GlyphRenderer, Grid, Text, Title
from bokeh.models.annotations import Annotation
from bokeh.models.glyphs import LRTBGlyph

from bench import computing
from engine import check, units
from tests import states
from widgets.kit import export, tokens
from widgets.kit import figure as fig
from widgets.kit.controls import Number, Player
from widgets.kit.widget import all_widgets, compile_widget

WIDGETS = sorted(all_widgets().items())
UNIT_WORDS = sorted({text.strip() for scales in units.FAMILIES.values() for _, text in scales if text.strip()}
                    | {"GPU", "GPUs", "parameters", "tokens"}, key=len, reverse=True)
WITH_UNIT = re.compile(r"(?:\$\d|\d[\d,.]*[  ]?(?:" + "|".join(map(re.escape, UNIT_WORDS)) + r")(?![A-Za-z]))")
BUSY = 2            # times the budget: what the same steps may take where others share the processor's cores
LEFT_MS = {("allocator_replay", "blocks"): 10.0}        # over its budget, and left so: bench/RESULTS.md says why
pytestmark = pytest.mark.parametrize("slug, cls", WIDGETS, ids=[slug for slug, _ in WIDGETS])


@cache      # nobody changes it
def picture(cls):
    widget = cls()
    return widget.figure(fig.sources(widget))


def main_sliders(cls) -> list[Number]:
    return [c for c in cls.controls().values() if isinstance(c, Number) and not isinstance(c, Player) and not c.more]


# -- words -----------------------------------------------------------------------------------------------------------------
def test_it_says_what_it_is(slug, cls):
    assert inspect.getdoc(sys.modules[cls.__module__]), "the module needs a docstring"
    assert cls.question.strip().endswith("?")
    assert cls.assumptions.strip().endswith(".")
    assert cls.formula.count("$") >= 2, "the formula is to be shown on demand"


def test_the_summary_is_one_sentence_with_a_number_and_its_unit(slug, cls):
    for state in [states.default(cls), *states.presets(cls), *states.scattered(cls, 20)]:
        widget = cls()
        widget.set_raw(state)
        summary = widget.shown()["summary"]
        assert WITH_UNIT.search(summary), summary
        assert summary.endswith(".") and not re.search(r"[.!?] [A-Z]", summary), f"not one sentence: {summary}"


def test_every_text_is_there(slug, cls):
    shown = cls().shown()
    assert shown["readouts"] and all(readout["text"] for readout in shown["readouts"].values())
    assert shown["regimes"] and all(regime["text"].endswith(".") for regime in shown["regimes"].values())
    assert all(method.readout_label for method in cls.methods("readout_label").values())


# -- controls --------------------------------------------------------------------------------------------------------------
def test_controls_have_labels_of_their_own_and_few_are_in_sight(slug, cls):
    labels = [control.label for control in cls.controls().values()]
    assert all(re.match(r"[A-Z]", label) for label in labels) and len(set(labels)) == len(labels), labels
    in_sight = [c for c in cls.controls().values() if c.kind != "player" and not c.more]
    folds = {c.more for c in cls.controls().values() if c.kind != "player"}
    assert set(cls.sections) <= folds, "a section that holds no control"
    assert (1 if cls.sections else 2) <= len(in_sight) <= 3, "two or three controls in sight, the rest under more; a form has sections"


def test_a_main_slider_has_stops_enough(slug, cls):
    for control in main_sliders(cls):
        low, high = control.bounds
        possible = high - low + 1 if control.whole else float("inf")
        assert len(control.grid) >= min(40, possible), f"{control.name} has {len(control.grid)} stops"


def test_every_stop_can_be_set_and_the_default_is_one(slug, cls):
    for name, control in cls.controls().items():
        for value in states.values_of(control):
            cls().set_raw({name: value})
        assert control.raw(control.default) in states.values_of(control)


def test_a_value_survives_its_link(slug, cls):
    for state in states.scattered(cls, 30):
        widget, again = cls(), cls()
        widget.set_raw(state)
        again.set_state({name: control.write(getattr(widget, name)) for name, control in cls.controls().items()})
        assert again.raw_state() == pytest.approx(state, rel=1e-11)


def test_presets_are_states_that_differ(slug, cls):
    assert cls.presets
    found = states.presets(cls)
    assert all(a != b for i, a in enumerate(found) for b in found[i + 1:]), "two presets are the same state"


# -- the state to be found -------------------------------------------------------------------------------------------------
def test_the_target_can_be_reached_and_left(slug, cls):
    assert cls.break_it.strip().endswith((".", "?"))
    targets = [name for name, method in cls.methods("regime_target").items() if method.regime_target]
    assert len(targets) == 1, "the break-it line is about one regime"
    met = set()
    for state in states.likely_to_differ(cls):
        widget = cls()
        widget.set_raw(state)
        with check.trusted():
            met.add(bool(getattr(widget, targets[0])()[0]))
        if len(met) == 2:
            break
    assert True in met, f"no state of the grid meets {targets[0]}"
    assert False in met, f"every state of the grid meets {targets[0]}"


# -- parts -----------------------------------------------------------------------------------------------------------------
def test_parts_depend_on_what_they_declare_alone(slug, cls):
    compile_widget(cls)  # refuses a part whose declaration is not exactly what it reads
    home = cls().shown()["parts"]
    for name, method in cls.methods("part_of").items():
        assert set(method.part_of) <= set(cls.controls())
        others = cls()
        for control in set(cls.controls()) - set(method.part_of):
            others.set_raw({control: states.values_of(cls.controls()[control])[0]})
        assert str(others.shown()["parts"][name]) == str(home[name])


def test_the_columns_of_a_part_are_of_one_length(slug, cls):
    for state in [states.default(cls), *states.scattered(cls, 10)]:
        widget = cls()
        widget.set_raw(state)
        for name, part in widget.shown()["parts"].items():
            assert len({len(column) for column in fig.columns(part).values()}) == 1, name


def test_a_part_is_computed_in_time(slug, cls):
    """The median of new states, which nothing remembers, as a drag meets them; of the processor's time."""
    for name, took_ms in computing.parts_ms(cls).items():
        assert statistics.median(took_ms) <= BUSY * LEFT_MS.get((slug, name), computing.allowed_ms(slug, name)), name


def test_the_site_gives_out_what_the_sources_compile_to_and_at_most_400_kb(slug, cls, site):
    """To the letter what the build made in a process of its own, whichever other widgets were compiled in this one before."""
    for name, contents in {f"{slug}.js": export.module(cls).encode(), f"{slug}.table": export.table(cls)}.items():
        built = site / "assets" / "widgets" / name
        same = built.read_bytes() == contents if contents else not built.exists()
        assert same, f"{name} is not what the sources give"
        assert len(gzip.compress(contents, 6)) <= 400_000


# -- the figure ------------------------------------------------------------------------------------------------------------
def test_the_figure_is_one_that_bokeh_accepts(slug, cls):
    issues = check_integrity(picture(cls).references())
    assert not issues.error and not issues.warning, issues


def test_each_part_is_drawn(slug, cls):
    widget = cls()
    sources = fig.sources(widget)
    drawn = {source.name for source in widget.figure(sources).select({"type": ColumnDataSource})}
    faces = {control.faces for control in cls.controls().values() if control.kind == "bits"}     # drawn by the control
    assert drawn >= set(sources) - faces, f"never drawn: {set(sources) - drawn}"


def test_each_range_moves_an_axis(slug, cls):
    plot = picture(cls)
    for name, (start, end) in cls().ranges().items():
        assert plot.select_one({"name": name}) is not None, name
        assert start < end


def pixels(size: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(px|pt)", size).groups()
    return float(number) * {"px": 1.0, "pt": 4 / 3}[unit]


def sizes(plot):
    """(where, size) of every text that the figure draws."""
    for model in plot.references():
        if isinstance(model, Axis) and model.visible:
            yield "tick labels", model.major_label_text_font_size
            if model.axis_label:
                yield f"axis label {model.axis_label}", model.axis_label_text_font_size
        if isinstance(model, GlyphRenderer) and isinstance(model.glyph, Text):
            size = model.glyph.text_font_size
            found = model.data_source.data[size.field] if isinstance(size, Field) else [getattr(size, "value", size)]
            yield from ((f"text {model.glyph.text}", value) for value in found)
        if isinstance(model, Annotation):
            yield from ((f"{model}", getattr(model, name)) for name in model.properties() if name.endswith("font_size"))


def test_text_in_the_figure_is_at_least_13_pixels(slug, cls):
    for where, size in sizes(picture(cls)):
        assert pixels(getattr(size, "value", size)) >= 13, where


def drawn_properties(model):
    """The names of a model's colour properties that leave ink: no hatch without a pattern, no line without alpha."""
    for name in model.properties():
        if not name.endswith("color"):
            continue
        kind = name.removesuffix("color")
        if kind.endswith("hatch_") and getattr(model, kind + "pattern") is None:
            continue
        if getattr(getattr(model, kind + "alpha", 1), "value", getattr(model, kind + "alpha", 1)) == 0:
            continue
        if kind == "axis_label_text_" and not model.axis_label:
            continue
        yield name


def colours(plot):
    """(where, colour) of everything that the figure draws."""
    inked = [m.glyph for m in plot.references() if isinstance(m, GlyphRenderer)]
    inked += [m for m in plot.references() if isinstance(m, (Axis, Grid, Annotation)) and m.visible
              and not (isinstance(m, Title) and not m.text)]
    columns = {m.glyph: m.data_source.data for m in plot.references() if isinstance(m, GlyphRenderer)}
    for model in inked:
        for name in drawn_properties(model):
            colour = getattr(model, name)
            if isinstance(colour, Field):
                mapped = isinstance(colour.transform, ColorMapper)
                yield from ((name, c) for c in (colour.transform.palette if mapped else columns[model][colour.field]))
            else:
                yield f"{name} of {model}", colour.value if isinstance(colour, Value) else colour


def test_colours_are_those_of_the_tokens(slug, cls):
    allowed = {colour.lower() for colour in tokens.palette("light").values()}
    foreign = {(where, colour) for where, colour in colours(picture(cls)) if colour and str(colour).lower() not in allowed}
    assert not foreign


def test_over_the_limit_is_hatched_too(slug, cls):
    """The colour that says 'too much' never says it alone: its areas are hatched."""
    for model in picture(cls).references():
        glyph = getattr(model, "glyph", None)
        fill = getattr(glyph, "fill_color", None)
        if getattr(fill, "value", fill) == fig.COLOR["over"] and glyph.properties() & {"hatch_pattern"}:
            pattern = glyph.hatch_pattern
            assert getattr(pattern, "value", pattern) or isinstance(pattern, Field), f"{glyph} is red and not hatched"


def test_one_hatch_serves_all_marks_of_a_glyph(slug, cls):
    """A pattern, strength or colour of its own for each mark makes Bokeh draw a canvas for each, in every frame."""
    for renderer in picture(cls).references():
        if isinstance(renderer, GlyphRenderer):
            differing = [name for name in renderer.glyph.properties()
                         if name.startswith("hatch_") and isinstance(getattr(renderer.glyph, name), Field)]
            assert not differing, f"{renderer.glyph}: {differing}; let fig.right_if narrow the boxes that have none"


def test_no_box_has_round_corners(slug, cls):
    """The page draws boxes itself, as plain ones (spare.js)."""
    boxes = [model for model in picture(cls).references() if isinstance(model, LRTBGlyph)]
    assert not [box for box in boxes if box.border_radius != 0]


def test_no_control_is_without_an_effect(slug, cls):
    """Each control changes something in the default state or, where it belongs to a case, in a preset or another state."""
    tried = [states.default(cls), *states.presets(cls), *states.scattered(cls, 20, between_stops=False)]
    for name in cls.controls():
        found = (states.telling_value(cls, name, state, ends_alone) for ends_alone in (True, False) for state in tried)
        assert any(value is not None for value in found), f"{name} changes nothing"
