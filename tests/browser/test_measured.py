"""Measured points on the page, with Python behind it and without: their switch is their legend, says what there
is, hides them and is remembered; each speaks under the pointer; who takes the data gets those that are seen."""

import pytest
from playwright.sync_api import expect

from course import widget_html
from widgets.foundations.collective_cost import CollectiveCost
from widgets.kit.measured import NONE
from widgets.training.tp_scaling import TpScaling

WHERE = """figure => {
  const [plot] = Bokeh.index.roots ?? Object.values(Bokeh.index);
  const drawn = plot.model.renderers.find(each => each.data_source.name === "points").data_source.data;
  const box = plot.el.getBoundingClientRect(), { x_scale, y_scale } = plot.frame;
  return [...drawn.x.keys()].filter(i => drawn.seen[i]).map(i => [i, box.left + x_scale.compute(drawn.x[i]), box.top + y_scale.compute(drawn.y[i])]);
}"""


def at_eight():
    widget = CollectiveCost()
    widget.set_state({"ranks": 8, "per_node": 8})
    return widget


@pytest.fixture
def window(visit):
    return visit()


@pytest.fixture
def page(window, origin):
    found = window.go(f"{origin}collective_cost/?collective_cost.ranks=8&collective_cost.per_node=8")
    expect(found.locator("[data-state=live]")).to_be_visible()
    return found


@pytest.mark.of_the_kit
def test_the_switch_is_a_legend_that_counts_hides_and_is_remembered(window, page, origin):
    words, switch = page.locator("[data-measured]"), page.get_by_role("switch", name="Measured points")
    shown = at_eight().shown()
    expect(words).to_have_text(shown["measured"])
    expect(page.locator("[data-summary]")).to_have_text(shown["summary"])
    assert len(page.evaluate(WHERE)) == 6
    switch.focus()
    page.keyboard.press("Space")
    expect(words).to_have_text("6 published points hidden")
    assert page.evaluate(WHERE) == []
    page.get_by_role("button", name="8 H100, measured").click()  # the reader's own setting stays
    expect(words).to_have_text("6 published points hidden")
    window.go(f"{origin}tp_scaling/")
    expect(page.locator("[data-measured]")).to_have_text("3 published points hidden")
    page.get_by_role("switch", name="Measured points").click()
    expect(page.locator("[data-measured]")).to_have_text(TpScaling().shown()["measured"])
    window.go(f"{origin}collective_cost/?collective_cost.ranks=8&collective_cost.per_node=8")
    expect(page.locator("[data-measured]")).to_have_text(shown["measured"])


@pytest.mark.of_the_kit
def test_where_there_are_none_no_switch_seems_on_and_reset_brings_all_back(page):
    words, switch = page.locator("[data-measured]"), page.get_by_role("switch", name="Measured points")
    switch.click()
    page.get_by_role("button", name="1 MB on 64 ranks").click()
    expect(words).to_have_text(f"{NONE}: try “8 A100, measured”")
    expect(switch).to_have_count(0)
    page.get_by_role("button", name="8 H100, measured").click()
    expect(switch).not_to_be_checked()
    page.get_by_role("button", name="reset").click()
    page.get_by_role("button", name="8 H100, measured").click()
    expect(switch).to_be_checked()
    expect(words).to_have_text(at_eight().shown()["measured"])


def test_a_link_may_hide_them_whatever_the_reader_s_setting(visit, static):
    page = visit().go(f"{static}tp_scaling/?tp_scaling.dots=off")
    expect(page.locator("[data-measured]")).to_have_text("3 published points hidden")


def test_a_point_speaks_under_the_pointer(page):
    said = at_eight().hints()["points"]
    for row, x, y in page.evaluate(WHERE):
        page.mouse.move(x, y)
        expect(page.locator(".widget-hint")).to_have_text(said[row])


@pytest.mark.of_the_kit
def test_the_data_holds_the_points_that_are_seen_and_no_places(page):
    page.locator("[data-data] summary").click()
    table = page.locator("[data-table] table", has=page.get_by_text("points", exact=True))
    expect(table.locator("thead th")).to_have_text(["what", "measured", "ours", "source"])
    expect(table.locator("tbody tr")).to_have_count(6)


def test_it_can_be_touched_and_is_read_with_the_picture(glance, static):
    page = glance(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).go(
        f"{static}tp_scaling/"
    )
    box = page.locator(".widget-measured .control").bounding_box()
    assert box["height"] >= 44 and page.evaluate("document.documentElement.scrollWidth") <= 390
    described = page.locator("[data-plot]").get_attribute("aria-describedby").split()
    assert page.locator("[data-measured]").get_attribute("id") in described


def test_without_scripts_the_words_stand_and_the_switch_does_not_pretend(visit, static):
    window = visit(java_script_enabled=False)
    window.forgive(" csp")
    page = window.go(f"{static}tp_scaling/")
    expect(page.locator("[data-measured]")).to_have_text(TpScaling().shown()["measured"])
    expect(page.locator(".widget-measured .control")).to_be_hidden()


def test_a_figure_without_points_has_no_such_line():
    from widgets.foundations.memory_stack import MemoryStack

    assert "widget-measured" not in widget_html.figure(MemoryStack(), "memory_stack")
