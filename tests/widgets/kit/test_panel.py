"""Widgets as Panel components: in Python alone. tests/browser/test_components.py has a browser."""

import statistics

import bokeh.models
import numpy as np
import panel as pn
import pytest

from bench import components
from tests import states, timing
from tests.said import lacks
from widgets.foundations.roofline import Roofline
from widgets.gpu.float_explorer import FloatExplorer
from widgets.kit import panel
from widgets.kit.controls import BadValue, Number
from widgets.kit.widget import Widget, all_widgets

WIDGETS = sorted(all_widgets())


def controls(view) -> dict:
    """Label -> control."""
    return {each.label: each for each in view.select(pn.widgets.Widget)}


@pytest.mark.of_the_kit
@pytest.mark.parametrize("slug", WIDGETS)
def test_each_widget_is_a_component_with_its_controls_and_its_figure(slug):
    widget = all_widgets()[slug]()
    assert isinstance(widget, pn.viewable.Viewer)
    view = widget.__panel__()
    assert {control.label for control in widget.controls().values()} <= set(controls(view))
    drawn = [each.object for each in view.select(pn.pane.Bokeh) if isinstance(each, pn.pane.Bokeh)]
    assert [isinstance(each, bokeh.models.Plot) for each in drawn] == [True]
    assert widget.live.headline == widget.shown()["summary"]


@pytest.mark.of_the_kit
@pytest.mark.parametrize("slug", WIDGETS)
def test_a_control_and_its_parameter_follow_each_other(slug):
    widget, cls = all_widgets()[slug](), all_widgets()[slug]
    made = controls(widget.__panel__())
    for name, control in cls.controls().items():
        value = states.telling_value(cls, name, states.default(cls))
        if value is None or control.kind == "player":
            continue
        before = made[control.label].value
        widget.set_raw({name: value})
        after = made[control.label].value
        assert after != before, name
        made[control.label].value = before
        assert widget.raw_state()[name] == states.default(cls)[name]
        made[control.label].value = after
        assert widget.raw_state()[name] == pytest.approx(value)
        widget.set_raw(states.default(cls))


@pytest.mark.of_the_kit
@pytest.mark.parametrize("slug", WIDGETS)
def test_sources_readouts_and_axes_follow_the_state(slug):
    widget = all_widgets()[slug]()
    drawn = panel.Picture(widget.live)
    for state in (*states.presets(type(widget)), *states.ends_of_the_main_slider(type(widget))):
        widget.set_raw(state)
        shown = widget.shown()
        assert widget.live.headline == shown["summary"]
        for name, readout in shown["readouts"].items():
            assert getattr(widget.live, name) == readout["text"]
        for name, part in shown["parts"].items():
            for column, values in part.items():
                np.testing.assert_array_equal(
                    widget.live.sources[name].data[column], np.atleast_1d(np.asarray(values))
                )
        assert drawn.ends.data == {name: list(map(float, ends)) for name, ends in shown["ranges"].items()}
        assert all(drawn.plot.select_one({"name": name}) for name in shown["ranges"])


def test_a_readout_can_be_watched():
    figure, heard = Roofline(), []
    figure.live.param.watch(lambda event: heard.append(event.new), "decode")
    figure.batch = 256
    assert heard == [figure.shown()["readouts"]["decode"]["text"]]


def test_a_value_between_the_stops_becomes_one():
    figure = Roofline(batch=33)
    slider = controls(figure.__panel__())["Decode batch"]
    assert slider.value == 33 and slider.options["33"] == 33
    figure.batch = 35
    assert slider.value == 35


def test_python_leaves_the_label_of_a_held_slider_to_the_browser():
    """It hears of a move when the handle may be further on; what Python sets itself it says."""
    figure = Roofline()
    slider = controls(figure.__panel__())["Decode batch"]
    handle, label = slider._composite[1], slider._composite[0]
    said = label.value
    handle.value += 3
    assert figure.batch == slider.value != 32 and label.value == said
    figure.batch = 64
    assert label.value == "Decode batch: <b>64</b>" and slider.options["64"] == slider.values[handle.value]


def test_the_first_state_is_computed_once(monkeypatch):
    asked = []
    shown = Roofline.shown
    monkeypatch.setattr(Roofline, "shown", lambda figure: asked.append(figure) or shown(figure))
    assert Roofline().live.headline and len(asked) == 1


def test_a_change_is_computed_once_and_sends_no_style_sheet():
    """Of a number and of a choice, set in Python or by a control of Panel's."""
    session = components.Session(Roofline)
    made, figure = controls(session.view), session.widget
    for change in (
        lambda: figure.param.update(batch=64),
        lambda: setattr(figure, "gpu", list(figure.param.gpu.objects)[3]),
        lambda: setattr(made["GPU"], "value", 2),
        lambda: setattr(made["Decode batch"], "value", 32),
    ):
        session.changes.clear()
        before = figure.live.changes
        change()
        assert figure.live.changes == before + 1
        assert session.changes and not {getattr(each, "attr", "") for each in session.changes} & {
            "stylesheets"
        }


def test_a_part_is_a_table():
    figure = Roofline(model="llama3-8b")
    table = figure.live.frame("work")
    assert len(table) == 4 and {"x", "y"} <= set(table.columns)
    with pytest.raises(KeyError, match=r"roofline.*'wrok'.*work"):
        figure.live.frame("wrok")


def test_flipped_bits_are_chosen_by_number():
    figure = FloatExplorer()
    name, control = next((n, c) for n, c in figure.controls().items() if c.kind == "bits")
    made = controls(figure.__panel__())[control.label]
    made.value = [0, 3]
    assert getattr(figure, name) == 9


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"model": "gpt-7"}, ("model", "llama3-8b", "'gpt-7'")),
        ({"batch": "many"}, ("batch", "whole number", 1, 4096, "'many'")),
        ({"batch": -3}, ("batch", "whole number", 1, 4096, "-3")),
    ],
)
def test_a_bad_value_is_one_clear_line(wrong, words):
    with pytest.raises(BadValue) as said:
        Roofline(**wrong)
    assert not lacks(str(said.value), *words) and "\n" not in str(said.value)


def test_an_unknown_control_is_named_with_those_that_there_are():
    with pytest.raises(TypeError) as said:
        Roofline(bach=3)
    assert not lacks(str(said.value), "Roofline", "'bach'", "gpu", "batch")


def test_a_component_brings_the_fonts_that_its_texts_are_measured_in():
    [sheet] = panel.Picture(Roofline().live).plot.stylesheets
    assert sheet.css.count("@font-face") == 3 and "Course Sans" in sheet.css and "http" not in sheet.css


@pytest.mark.of_the_kit
@pytest.mark.parametrize("slug", WIDGETS)
def test_an_update_takes_few_milliseconds_of_python(slug):
    """The budget is that of ``python -m bench components``."""
    cls = all_widgets()[slug]

    def median_ms() -> dict[str, float]:
        return {slug: statistics.median(components.updates_ms(cls, stops=3))}

    assert timing.too_slow(median_ms, {slug: components.allowed_ms(slug)}) == {}


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("model", "gpt-7", ("model", "llama3-8b", "'gpt-7'")),
        ("batch", "many", ("batch", "whole number", 1, 4096, "'many'")),
        ("batch", 3.5, ("batch", "whole number", 1, 4096, 3.5)),
    ],
)
def test_a_bad_value_set_later_is_one_clear_line_too(name, wrong, words):
    figure = Roofline()
    with pytest.raises(BadValue) as said:
        setattr(figure, name, wrong)
    assert not lacks(str(said.value), *words) and "\n" not in str(said.value)


def test_a_choice_is_set_by_its_key():
    figure = Roofline()
    figure.gpu = "b200"
    assert figure.gpu.key == "b200"
    figure.param.update(gpu="h200")
    assert figure.gpu.key == "h200" and figure.raw_state()["gpu"] == figure.controls()["gpu"].keys.index(
        "h200"
    )


def test_a_control_follows_another_component_or_parameter():
    slider, keys = (
        pn.widgets.IntSlider(start=1, end=512, value=7),
        pn.widgets.Select(options=["h200", "b200"]),
    )
    figure = Roofline(batch=slider, gpu=keys, network=pn.widgets.Checkbox(value=False))
    assert (figure.batch, figure.gpu.key, figure.network) == (7, "h200", False)
    other = Roofline(batch=figure.param.batch)
    other.gpu = figure.param.gpu
    slider.value, keys.value = 9, "b200"
    assert (figure.batch, figure.gpu.key) == (other.batch, other.gpu.key) == (9, "b200")
    with pytest.raises(BadValue, match=r"batch.*1.*4096.*got 0"):
        Roofline(batch=pn.widgets.IntInput(value=0))


def test_a_control_of_panels_own_takes_whole_steps():
    figure = Roofline()
    slider = pn.widgets.FloatSlider.from_param(figure.param.batch)
    slider.value = 70
    assert slider.step == 1 and figure.batch == 70


def test_a_control_or_method_that_would_hide_one_of_every_widgets_is_refused():
    with pytest.raises(TypeError, match="another name than 'shown', which every widget has"):
        type("Hidden", (Widget,), {"shown": Number("Size", 1.0, 0.1, 10.0)})
    ends = type("Ends", (Widget,), {"size": Number("Size", 1.0, 0.1, 10.0), "ends": lambda self: [1.0]})
    with pytest.raises(TypeError, match="needs another name"):
        ends().shown()
