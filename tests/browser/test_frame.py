"""What stands around a picture: the finding above it, one control below it on a phone, the controls beside it
on a desk; and that a reader sees the picture while a control is in hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.boxes import UNDER_THE_CONTENTS
from tests.browser.hands import Hand
from widgets.kit.widget import all_widgets

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
WIDGETS = sorted(all_widgets())
FORMS = [slug for slug in WIDGETS if all_widgets()[slug].sections]
HIGHEST = 300  # pixels: where a phone's picture begins at the latest, on its own page


def top(hand: Hand, selector: str) -> float:
    return hand.figure.locator(selector).first.bounding_box()["y"]


@pytest.mark.of_the_kit
@pytest.mark.parametrize("slug", WIDGETS)
def test_on_a_phone_the_picture_comes_first_and_one_control_after_it(glance, static, slug):
    hand = Hand(glance(**PHONE).go(f"{static}{slug}/"), slug)
    places = [
        top(hand, part)
        for part in (
            "[data-summary]",
            "[data-plot]",
            "fieldset .control-main",
            "[data-preset]",
            "dl.widget-readouts",
        )
    ]
    assert places == sorted(places) and places[1] < HIGHEST
    in_sight = [
        control
        for control in hand.figure.locator(".widget-hands > fieldset > .control").all()
        if control.is_visible()
    ]
    bits = sum(control.kind == "bits" for control in hand.cls.controls().values())
    assert len(in_sight) == 1 + bits or slug in FORMS
    rows = {round(button.bounding_box()["y"]) for button in hand.figure.locator("[data-preset]").all()}
    assert len(rows) == 1, "the presets are a row to swipe"
    assert hand.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_other_controls_are_behind_one_button(visit, static):
    hand = Hand(visit(**PHONE).go(f"{static}memory_stack/"), "memory_stack")
    button = hand.button("2 more controls")
    others = hand.figure.get_by_role("combobox")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(others).to_have_count(0)
    button.tap()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(others).to_have_count(2)
    button.tap()
    expect(others).to_have_count(0)


STUCK = """figure => {
  const box = part => figure.querySelector(part).getBoundingClientRect(), plot = box("[data-plot]"), control = box(".control-main");
  return { plot: [plot.top, plot.bottom], control: [control.top, control.bottom], held: "held" in figure.dataset };
}"""


@pytest.mark.parametrize(
    ("address", "slug"), [("01-why-distributed/", "memory_stack"), ("fusion/", "fusion")]
)
def test_a_held_control_and_its_picture_are_seen_together(visit, static, address, slug):
    """Also where the page stands so that the picture is out of sight, and where the window is too low for
    both: then the picture's lower end is seen."""
    hand = Hand(visit(**PHONE).go(static + address), slug)
    page, slider = hand.page, hand.handle(hand.slider())
    slider.evaluate("handle => scrollTo(0, handle.getBoundingClientRect().top + scrollY - 120)")
    at_end = page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 1")
    assert at_end or hand.figure.evaluate(STUCK)["plot"][1] < 130  # a short page cannot go so far
    box = slider.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
    held = f"([figure, held]) => ({STUCK})(figure).held === held"
    page.wait_for_function(held, arg=[hand.figure.element_handle(), True])
    seen = hand.figure.evaluate(STUCK)
    height = page.viewport_size["height"]
    assert seen["plot"][1] <= seen["control"][0] and seen["control"][1] <= height
    assert min(seen["plot"][1], height) - max(seen["plot"][0], 0) > 0.55 * (seen["plot"][1] - seen["plot"][0])
    page.touchscreen.tap(20, seen["control"][0] - 4)  # a finger elsewhere lets go
    page.wait_for_function(held, arg=[hand.figure.element_handle(), False])


def test_the_headline_says_the_state_and_the_picture_stays_where_it_is(visit, static):
    hand = Hand(visit().go(f"{static}memory_stack/"), "memory_stack")
    slider, places = hand.handle("size"), set()
    for key in ("End", "Home", "End", *["ArrowLeft"] * 5):
        slider.press(key)
        hand.page.wait_for_timeout(60)
        places.add(top(hand, "[data-plot]"))
    hand.says(size=hand.at("size"))
    expect(hand.figure.locator("[data-summary]")).to_have_attribute("aria-live", "polite")
    assert len(places) == 1


def test_a_lesson_gives_a_figure_the_right_margin_and_the_contents_give_way(visit, static):
    page = visit().go(f"{static}01-why-distributed/")
    hand = Hand(page, "memory_stack")
    contents = page.locator(".md-sidebar--secondary")
    expect(contents).not_to_have_attribute("data-yields", "")
    hand.figure.evaluate("figure => scrollTo(0, figure.getBoundingClientRect().top + scrollY - 60)")
    expect(contents).to_have_attribute("data-yields", "")
    card, picture, hands = (
        hand.figure.locator(part).bounding_box() for part in (".widget-card", ".widget-plot", ".widget-hands")
    )
    assert 995 <= card["width"] <= 1000 and card["x"] + card["width"] <= 1280
    assert hands["x"] + hands["width"] < picture["x"] and 225 <= hands["width"] <= 240
    assert card["height"] <= 900
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_table_that_lay_under_the_contents_would_be_found(glance, static):
    page = glance().go(f"{static}numbers/")
    page.add_style_tag(content=".md-sidebar--secondary { visibility: visible !important; }")
    assert any(each.startswith("TABLE") for each in page.evaluate(UNDER_THE_CONTENTS))


def test_a_wide_table_is_read_without_scrolling_sideways(glance, static):
    """The widest of lesson 01: it reaches under the list, which comes back beside the text."""
    page = glance().go(f"{static}numbers/")
    assert page.locator(".wide[data-reaches]").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".md-sidebar--secondary")).not_to_have_attribute("data-yields", "")


BOLD = """() => [...document.querySelectorAll(".forty tbody td:nth-child(2)")]
  .filter(cell => getComputedStyle(cell.querySelector("[data-expr]") ?? cell).fontWeight >= 600)
  .map(cell => cell.textContent.trim())"""


def test_of_forty_numbers_the_four_that_the_text_speaks_of_are_bold(glance, static):
    """All forty were, so that *the four in bold* could not be found."""
    assert len(glance().go(f"{static}numbers/").evaluate(BOLD)) == 4


QUIET = """name => {
  const said = [...document.querySelectorAll(".widget-readouts dd[data-readout]")];
  const look = dd => [getComputedStyle(dd).color, getComputedStyle(dd, "::before").content];
  const here = said.find(dd => dd.dataset.readout === name), other = said.find(dd => !dd.classList.contains("over"));
  return [here.classList.contains("over"), String(look(here)) === String(look(other))];
}"""


def test_a_number_is_red_in_the_state_that_break_it_asks_for_alone(glance, static):
    """Elsewhere what is worth a remark is said in a grey note, and the number stands as the others do."""
    hand = Hand(glance().go(f"{static}tp_scaling/?tp_scaling.hidden=2048"), "tp_scaling")
    assert hand.page.evaluate(QUIET, "sending") == [True, True]
    hand.choose("ranks", 5)
    hand.figure.locator(".widget-regime.target").wait_for()
    assert hand.page.evaluate(QUIET, "sending") == [True, False]


def test_all_figures_stand_side_by_side(glance, static):
    """On their page they are looked at together: several in a row, on a phone two."""
    for settings, least in (({}, 4), (PHONE, 2)):
        page = glance(**settings).go(f"{static}figures/")
        left = page.evaluate(
            "[...document.querySelectorAll('.gallery li')].slice(0, 8).map(each => each.getBoundingClientRect().left)"
        )
        assert len(left) == 8 and len(set(left)) >= least
