"""What every widget must be, whatever it shows: the contract of the kit, held for each module in widgets/."""

import gzip
import inspect
import re
import statistics
import sys
from functools import lru_cache

import numpy as np
import pytest
from bokeh.core.property.vectorization import Field, Value
from bokeh.core.validation import check_integrity
from bokeh.models import Axis, ColorMapper, ColumnDataSource, GlyphRenderer, Grid, Text, Title
from bokeh.models.annotations import Annotation

from bench import components, computing
from course import widget_html
from engine.base import check, units
from tests import states, timing
from tests.representatives import ALL_OF_THEM
from widgets.kit.controls import Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import tokens
from widgets.kit.page import module
from widgets.kit.widget import all_widgets

WIDGETS = sorted(all_widgets().items())
UNIT_WORDS = sorted(
    {text.strip() for scales in units.FAMILIES.values() for _, text in scales if text.strip()}
    | {"GPU", "GPUs", "parameters", "tokens"},
    key=len,
    reverse=True,
)
WITH_UNIT = re.compile(
    r"(?:\$\d|\d[\d,.]*[  ]?(?:" + "|".join(map(re.escape, UNIT_WORDS)) + r")(?![A-Za-z]))"
)
# of a module's scope, so that all tests of one widget come in turn and share its picture
pytestmark = pytest.mark.parametrize(
    ("slug", "cls"), WIDGETS, ids=[slug for slug, _ in WIDGETS], scope="module"
)


@lru_cache(maxsize=2)  # nobody changes it
def picture(cls):
    widget = cls()
    return widget.figure(fig.sources(widget))


@lru_cache(maxsize=2)
def models(cls) -> set:
    """All that the picture is made of; to collect them takes Bokeh as long as to build it."""
    return picture(cls).references()


@lru_cache(maxsize=100)
def shown(cls, values: tuple) -> dict:
    """What a widget shows in a state, which several tests look at."""
    widget = cls()
    widget.set_raw(dict(values))
    return widget.shown()


def in_state(cls, state: dict) -> dict:
    return shown(cls, tuple(state.items()))


def main_sliders(cls) -> list[Number]:
    return [
        c
        for c in cls.controls().values()
        if isinstance(c, Number) and not isinstance(c, Player) and not c.more
    ]


# -- words ---------------------------------------------------------------------------------------------------
def test_it_says_what_it_is(slug, cls):
    assert inspect.getdoc(sys.modules[cls.__module__]), "the module needs a docstring"
    assert cls.question.strip().endswith("?")
    assert cls.assumptions.strip().endswith(".")
    assert cls.formula.count("$") >= 2, "the formula is to be shown on demand"


def test_the_summary_is_one_sentence_with_a_number_and_its_unit(slug, cls):
    for state in [states.default(cls), *states.presets(cls), *states.daily(states.scattered(cls, 20))]:
        summary = in_state(cls, state)["summary"]
        assert WITH_UNIT.search(summary), summary
        assert summary.endswith(".") and not re.search(r"[.!?] [A-Z]", summary), (
            f"not one sentence: {summary}"
        )


def test_every_text_is_there(slug, cls):
    readouts, regimes = (in_state(cls, states.default(cls))[kind] for kind in ("readouts", "regimes"))
    assert readouts and all(readout["text"] for readout in readouts.values())
    assert regimes and all(regime["text"].endswith(".") for regime in regimes.values())
    assert all(method.readout_label for method in cls.methods("readout_label").values())


def test_a_page_keeps_each_number_with_its_unit(slug, cls, compiled):
    """No line ends between them, in whatever a reader sees of the figure in HTML."""
    for state in [states.default(cls), *states.presets(cls), states.at_the_target(cls)]:
        widget = cls()
        widget.set_raw(state)
        html = widget_html.figure(widget, f"w-{slug}")
        words = re.sub(r"<(pre|textarea|math|select)\b.*?</\1>|<[^>]+>", "|", html, flags=re.DOTALL)
        assert not (found := re.search(f".{{20}}{units.BEFORE_UNIT}.{{20}}", words)), found[0]


# -- controls ------------------------------------------------------------------------------------------------
def test_controls_have_labels_of_their_own_and_few_are_in_sight(slug, cls):
    labels = [control.label for control in cls.controls().values()]
    assert all(re.match(r"[A-Z]", label) for label in labels) and len(set(labels)) == len(labels), labels
    in_sight = [c for c in cls.controls().values() if c.kind != "player" and not c.more]
    folds = {c.more for c in cls.controls().values() if c.kind != "player"}
    assert set(cls.sections) <= folds, "a section that holds no control"
    assert (1 if cls.sections else 2) <= len(in_sight) <= 3, (
        "two or three controls in sight, the rest under more; a form has sections"
    )


def test_a_main_slider_has_stops_enough(slug, cls):
    for control in main_sliders(cls):
        low, high = control.bounds
        possible = high - low + 1 if control.whole else float("inf")
        if control.only:  # it takes its stops alone; none of the powers of two may be missing
            possible = len(control.grid)
            assert control.only == "a power of two"
            assert control.grid.tolist() == (low * 2.0 ** np.arange(np.log2(high / low) + 1)).tolist()
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
        again.set_state(
            {name: control.write(getattr(widget, name)) for name, control in cls.controls().items()}
        )
        assert again.raw_state() == pytest.approx(state, rel=1e-11)


def test_presets_are_states_that_differ(slug, cls):
    assert cls.presets
    found = states.presets(cls)
    assert all(a != b for i, a in enumerate(found) for b in found[i + 1 :]), "two presets are the same state"


# -- the state to be found -----------------------------------------------------------------------------------
def test_the_target_can_be_reached_and_left(slug, cls):
    assert cls.break_it.strip().endswith((".", "?"))
    targets = [name for name, method in cls.methods("regime_target").items() if method.regime_target]
    assert len(targets) == 1, "the break-it line is about one regime"
    met = set()
    for state in (states.default(cls), states.at_the_target(cls)):
        widget = cls()
        widget.set_raw(state)
        with check.trusted():
            met.add(bool(getattr(widget, targets[0])()[0]))
    assert met == {True, False}, (
        f"{targets[0]} is not a state to be found: the default meets it, or nothing near"
    )


def test_neither_the_default_nor_a_preset_is_the_target(slug, cls):
    """Red is for what a reader has found; a figure that opens with it, or leads to it, gives it away."""
    target = next(name for name, method in cls.methods("regime_target").items() if method.regime_target)

    def met(state: dict) -> bool:
        widget = cls()
        widget.set_raw(state)
        with check.trusted():
            return bool(getattr(widget, target)()[0])

    assert not met(states.default(cls))
    assert not [name for name, state in zip(cls.presets, states.presets(cls)) if met(state)]


# Controls that no mark follows and that yet point at none: what they say instead
SAYS = {
    "alltoall_cost": {"ep": "where on a curve; a preset's curve may reach the target elsewhere"},
    "bubble_map": dict.fromkeys(("stages", "micro_batches", "gpu"), "where on a map, and the limit there"),
    "float_explorer": {"flips": "the pattern, each of whose bits is seen"},
    "graph_buckets": dict.fromkeys(
        ("lengths", "graph_bytes", "graph_s", "model", "gpu"), "what is not drawn"
    ),
    "kv_cache": {"users": "how many are asked for"},
    "serving_frontier": {"target": "what is asked for"},
    "tp_scaling": {"ranks": "where on a curve; a preset's curve may reach the target elsewhere"},
}


def test_neither_the_default_nor_a_preset_draws_the_target(slug, cls):
    """A control that no mark follows chooses among the marks that are there, and its reader has them all
    before them: wherever it points, the target is not what is seen already. Of a long slider sixteen stops
    stand for all; EVERY=1 asks each."""
    target = next(name for name, method in cls.methods("regime_target").items() if method.regime_target)
    marks = {method.hint_of for method in cls.methods("hint_of").values()}
    followed = {name for mark in marks for name in cls.methods("part_of")[mark].part_of}
    pointers = cls.controls().keys() - followed - SAYS.get(slug, {}).keys()
    stops = {name: states.values_of(cls.controls()[name]) for name in pointers}
    if not ALL_OF_THEM:
        stops = {name: states.some(values, 16) for name, values in stops.items()}
    found = []
    for state in [states.default(cls), *states.presets(cls)]:
        for name in pointers:
            for value in stops[name]:
                widget = cls()
                widget.set_raw(state | {name: value})
                with check.trusted():
                    if getattr(widget, target)()[0]:
                        found.append((state, name, value))
    assert not found


# -- parts ---------------------------------------------------------------------------------------------------
def test_parts_depend_on_what_they_declare_alone(slug, cls):
    """Compiling it refuses one that reads more or less than it declares; the build does that."""
    home = cls().shown()["parts"]
    for name, method in cls.methods("part_of").items():
        assert set(method.part_of) <= set(cls.controls())
        others = cls()
        for control in set(cls.controls()) - set(method.part_of):
            others.set_raw({control: states.values_of(cls.controls()[control])[0]})
        assert str(others.shown()["parts"][name]) == str(home[name])


def test_its_marks_have_something_to_say(slug, cls):
    """Whoever points at the figure, or walks it by keyboard, hears what a mark is; a text for each row."""
    assert cls.methods("hint_of"), "no part of it has a hint"
    said = False
    for state in [states.default(cls), *states.presets(cls), *states.scattered(cls, 5)]:
        widget = cls()
        widget.set_raw(state)
        parts, hints = in_state(cls, state)["parts"], widget.hints()
        said |= any(text for name in hints for text in hints[name])
        for name, texts in hints.items():
            rows = {len(column) for column in fig.columns(parts[name]).values()}
            assert all(len(texts) >= count for count in rows), f"{name} has rows without a text"
    assert said


def test_a_press_sets_controls_to_what_they_take(slug, cls):
    """Each mark that can be pressed, in the default, the presets and some scattered states."""
    for state in [states.default(cls), *states.presets(cls), *states.scattered(cls, 5)] if cls.press else []:
        for part in cls.press:
            columns = in_state(cls, state)["parts"][part]
            sets = {name.removeprefix("sets_"): column for name, column in columns.items() if "sets_" in name}
            assert sets and set(sets) <= set(cls.controls()) and set(fig.BOX) <= set(columns)
            for row in range(len(columns["left"])):
                cls().set_raw({name: float(column[row]) for name, column in sets.items()})


def test_the_columns_of_a_part_are_of_one_length(slug, cls):
    for state in [states.default(cls), *states.scattered(cls, 10)]:
        for name, part in in_state(cls, state)["parts"].items():
            assert len({len(column) for column in fig.columns(part).values()}) == 1, name


def test_a_part_is_computed_in_time(slug, cls):
    """The median of new states, which nothing remembers, as a drag on a server meets them. No part may take
    longer than a component's whole update."""
    whole = components.allowed_ms(slug)
    budgets = {name: min(whole, computing.allowed_ms(cls, name)) for name in cls.methods("part_of")}

    def medians_ms() -> dict[str, float]:
        return {name: statistics.median(took) for name, took in computing.parts_ms(cls).items()}

    assert timing.too_slow(medians_ms, budgets) == {}


def test_the_site_gives_out_at_most_400_kb(slug, cls, site):
    for ending in ("js", "table"):
        built = site / "assets" / "widgets" / f"{slug}.{ending}"
        assert built.is_file() or ending == "table"
        assert not built.exists() or 0 < len(gzip.compress(built.read_bytes(), 6)) <= 400_000


@pytest.mark.of_the_kit  # the compiler is the same for all; it is what would remember another widget
def test_the_site_gives_out_what_the_sources_compile_to(slug, cls, site):
    """To the letter what the build made in a process of its own, whichever other widgets were compiled in
    this one before."""
    for ending, contents in zip(("js", "table"), module.made(cls), strict=True):
        name = f"{slug}.{ending}"
        built = site / "assets" / "widgets" / name
        same = built.read_bytes() == contents if contents else not built.exists()
        assert same, f"{name} is not what the sources give"


# -- the figure ----------------------------------------------------------------------------------------------
def test_the_figure_is_one_that_bokeh_accepts(slug, cls):
    issues = check_integrity(models(cls))
    assert not issues.error and not issues.warning, issues


def test_each_part_is_drawn(slug, cls):
    sources = fig.sources(cls())
    drawn = {model.name for model in models(cls) if isinstance(model, ColumnDataSource)}
    faces = {
        control.faces for control in cls.controls().values() if control.kind == "bits"
    }  # drawn by the control
    by_others = {
        name for name, light in cls.lights.items() if drawn.issuperset(light.marks)
    }  # as its light says
    assert drawn | by_others >= set(sources) - faces, f"never drawn: {set(sources) - drawn}"


def test_each_range_moves_an_axis(slug, cls):
    named = {model.name for model in models(cls)}
    for name, (start, end) in cls().ranges().items():
        assert name in named, name
        assert start < end


def pixels(size: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(px|pt)", size).groups()
    return float(number) * {"px": 1.0, "pt": 4 / 3}[unit]


def is_swatch(drawn):
    """A key's swatch is a text without a letter on a ground that looks like a mark."""
    text, columns = drawn.glyph.text, drawn.data_source.data
    name = getattr(text, "field", text)  # a name alone means a column, too
    words = columns[name] if isinstance(name, str) and name in columns else [getattr(text, "value", text)]
    return not "".join(map(str, words)).strip()


def sizes(drawn):
    """(where, size) of every text that the figure draws."""
    for model in drawn:
        if isinstance(model, Axis) and model.visible:
            yield "tick labels", model.major_label_text_font_size
            if model.axis_label:
                yield f"axis label {model.axis_label}", model.axis_label_text_font_size
        if isinstance(model, GlyphRenderer) and isinstance(model.glyph, Text) and not is_swatch(model):
            size = model.glyph.text_font_size
            found = (
                model.data_source.data[size.field]
                if isinstance(size, Field)
                else [getattr(size, "value", size)]
            )
            yield from ((f"text {model.glyph.text}", value) for value in found)
        if isinstance(model, Annotation):
            yield from (
                (f"{model}", getattr(model, name))
                for name in model.properties()
                if name.endswith("font_size")
            )


def test_text_in_the_figure_is_at_least_13_pixels(slug, cls):
    for where, size in sizes(models(cls)):
        assert pixels(getattr(size, "value", size)) >= 13, where


def test_the_title_of_a_vertical_axis_is_level_above_it(slug, cls):
    """Not turned beside it, where nobody reads it at once."""
    assert [axis.axis_label for axis in picture(cls).left if axis.visible and axis.axis_label] == []


def drawn_properties(model):
    """The names of a model's colour properties that leave ink: no hatch without a pattern, no line without
    alpha."""
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


def colours(drawn):
    """(where, colour) of everything that the figure draws."""
    inked = [m.glyph for m in drawn if isinstance(m, GlyphRenderer)]
    inked += [
        m
        for m in drawn
        if isinstance(m, (Axis, Grid, Annotation)) and m.visible and not (isinstance(m, Title) and not m.text)
    ]
    columns = {m.glyph: m.data_source.data for m in drawn if isinstance(m, GlyphRenderer)}
    for model in inked:
        for name in drawn_properties(model):
            colour = getattr(model, name)
            if isinstance(colour, Field):
                mapped = isinstance(colour.transform, ColorMapper)
                yield from (
                    (name, c) for c in (colour.transform.palette if mapped else columns[model][colour.field])
                )
            else:
                yield f"{name} of {model}", colour.value if isinstance(colour, Value) else colour


def test_colours_are_those_of_the_tokens(slug, cls):
    allowed = {colour.lower() for colour in tokens.palette("light").values()}
    foreign = {
        (where, colour)
        for where, colour in colours(models(cls))
        if colour and str(colour).lower() not in allowed
    }
    assert not foreign


def test_over_the_limit_is_hatched_too(slug, cls):
    """The colour that says 'too much' never says it alone: its areas are hatched."""
    for model in models(cls):
        glyph = getattr(model, "glyph", None)
        fill = getattr(glyph, "fill_color", None)
        if getattr(fill, "value", fill) == fig.COLOR["over"] and glyph.properties() & {"hatch_pattern"}:
            pattern = glyph.hatch_pattern
            assert getattr(pattern, "value", pattern) or isinstance(pattern, Field), (
                f"{glyph} is red and not hatched"
            )


LIMITS = {  # what a hatched area is past, in each figure that has one
    "bubble_map": "the HBM",
    "ddp_scaling": "the HBM",
    "decode_latency": "the HBM",
    "deployment_planner": "a promise that even an idle replica does not keep",
    "goodput": "the time between two failures",
    "layout_exam": "the HBM",
    "layout_missions": "what the mission allows",
    "layout_planner": "the HBM",
    "loss_scaling": "the largest number of the format",
    "memory_stack": "the HBM",
    "memory_wall": "the HBM",
    "moe_routing": "the capacity of an expert",
    "regime_cube": "what the machine has",
    "strategy_triangle": "the HBM, and a step of wires",
    "three_walls": "what there is of it",
    "tile_tuner": "the shared memory and the registers",
    "topology_placement": "the step's arithmetic, and the node of a tensor group",
    "training_step": "the HBM",
    "zero_stages": "the HBM, and the pass that should hide it",
}


def test_a_hatch_is_past_a_limit_and_nothing_else(slug, cls):
    """What waits or is free is white with a hairline; whoever hatches says here which limit it is past."""
    found = set()
    for model in models(cls):
        glyph = getattr(model, "glyph", None)
        for name in () if glyph is None else glyph.properties():
            if name.endswith("hatch_pattern"):
                pattern = getattr(glyph, name)
                found.add(getattr(pattern, "value", pattern))
    assert found - {None, " "} == ({fig.OVER["hatch_pattern"]} if slug in LIMITS else set())


def test_one_hatch_serves_all_marks_of_a_glyph(slug, cls):
    """A pattern, strength or colour of its own for each mark makes Bokeh draw a canvas for each, in every
    frame."""
    for renderer in models(cls):
        if isinstance(renderer, GlyphRenderer):
            differing = [
                name
                for name in renderer.glyph.properties()
                if name.startswith("hatch_") and isinstance(getattr(renderer.glyph, name), Field)
            ]
            assert not differing, (
                f"{renderer.glyph}: {differing}; let fig.right_if narrow the boxes that have none"
            )


def test_no_control_is_without_an_effect(slug, cls):
    """Each control changes something in the default state or, where it belongs to a case, in a preset or
    another state."""
    tried = [states.default(cls), *states.presets(cls), *states.scattered(cls, 20, between_stops=False)]
    for name in cls.controls():
        tells = (
            state
            for ends_alone in (True, False)
            for state in tried
            if states.telling_value(cls, name, state, ends_alone) is not None
        )
        state = next(tells, None)
        assert state is not None, f"{name} changes nothing"
        tried.sort(key=lambda each: each is not state)  # where one tells, the next of its kind may tell, too
