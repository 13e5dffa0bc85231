"""A deck as somebody who stands before a class uses it: one key, figures that come and go, a phone, paper."""

from __future__ import annotations

import io
import re

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from course import lessons
from tests.browser import axe
from tests.states import ALL_OF_THEM

LESSON = "04-data-parallel"
SIZES = {"a projector": (1280, 720), "a phone": (390, 844)}
# every slide in turn, as the button shows it: what is cut, and what is too small to be read
TOO_MUCH = """([phone]) => {
  const found = [], next = document.querySelector("[data-next]");
  for (let guard = 0; guard < 99; guard += 1) {
    const slide = document.querySelector(".slide[data-shown]");
    if (!slide.matches(".figure")) {
      const across = slide.scrollWidth - slide.clientWidth, down = slide.scrollHeight - slide.clientHeight;
      if (across > 1 || (!phone && down > 1)) found.push([slide.id, slide.className, across, down]);
      const pixels = Math.min(...[...slide.querySelectorAll("p, li, td, h1, h2")].filter(one => one.clientHeight && !one.closest(".diagram"))
        .map(one => parseFloat(getComputedStyle(one).fontSize)));
      if (pixels < 13) found.push([slide.id, slide.className, `${pixels} px`]);
    }
    if (next.disabled) return found;
    next.click();
  }
}"""


def shown(page):
    return page.locator(".slide[data-shown]")


def at(page) -> str:
    return page.locator("[data-count]").inner_text()


def test_one_key_goes_through_a_deck_and_shows_what_a_slide_keeps_back(visit, static):
    window = visit()
    window.forgive("ERR_ABORTED")  # figures that are left before they have come
    page = window.page
    page.goto(f"{static}{LESSON}/slides/")
    slides = page.locator(".slide").count()
    held = page.locator("[data-reveal]").count()
    expect(shown(page).get_by_role("heading", name="Data parallel", level=1)).to_be_visible()
    assert at(page) == f"1 / {slides}" and page.locator(".slide:visible").count() == 1
    steps = 0
    while not at(page).startswith(f"{slides} "):
        page.keyboard.press("ArrowRight")
        steps += 1
        assert steps < 99
    assert steps == slides - 1 + held
    page.keyboard.press("Home")
    assert at(page) == f"1 / {slides}"
    page.keyboard.press("PageDown")
    page.keyboard.press(" ")
    assert at(page) == f"3 / {slides}" and page.url.endswith("#3")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert at(page) == f"{slides - 1} / {slides}"
    page.goto(f"{static}{LESSON}/slides/#5")
    page.reload()
    assert at(page) == f"5 / {slides}"


def test_a_poll_waits_and_its_figure_comes_alive_in_the_state_that_shows_it(visit, static):
    window = visit()
    window.forgive("ERR_ABORTED")
    page = window.page
    page.goto(f"{static}{LESSON}/slides/")
    first = page.locator(".slide.poll").first.get_attribute("id")
    page.evaluate(f"location.hash = '{first}'")
    poll = page.locator(f".slide.poll[id='{first}']")
    expect(poll.locator(".slide-right")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(poll.locator(".slide-right")).to_be_visible()
    truth = poll.locator(".slide-right").inner_text()
    page.keyboard.press("ArrowRight")
    figure = shown(page).frame_locator("iframe").locator("figure.widget")
    expect(figure).to_have_attribute("data-state", "live")
    expect(figure.locator('[data-readout="exposed"]')).to_contain_text(truth)
    expect(figure.locator(".widget-tools")).to_be_hidden()
    before = figure.locator("[data-summary]").inner_text()
    figure.get_by_role("slider").first.press(
        "ArrowRight"
    )  # the arrows are the slider's while it has the focus
    expect(figure.locator("[data-summary]")).not_to_have_text(before)
    expect(shown(page)).to_have_class(re.compile("figure"))
    page.keyboard.press("PageDown")
    expect(shown(page)).not_to_have_class(re.compile("figure"))
    assert page.locator("iframe").count() == 0  # what is not seen does not live


def test_notes_and_the_whole_screen(visit, static):
    page = visit().page
    page.goto(f"{static}{LESSON}/slides/#2")
    notes = shown(page).locator(".slide-notes")
    expect(notes).to_be_hidden()
    page.keyboard.press("n")
    expect(notes).to_be_visible()
    page.keyboard.press("n")
    expect(notes).to_be_hidden()
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Notes")).to_be_hidden()
    expect(page.locator("[data-count]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Notes")).to_be_visible()


def test_a_finger_turns_the_slides(visit, static):
    page = visit(viewport={"width": 390, "height": 844}, has_touch=True).page
    page.goto(f"{static}{LESSON}/slides/")
    swipe = """([from, to]) => {
      const at = x => new Touch({ identifier: 1, target: document.querySelector(".slide[data-shown]"), clientX: x, clientY: 300 });
      const { target } = at(0);
      target.dispatchEvent(new TouchEvent("touchstart", { bubbles: true, touches: [at(from)], changedTouches: [at(from)] }));
      target.dispatchEvent(new TouchEvent("touchend", { bubbles: true, touches: [], changedTouches: [at(to)] }));
    }"""
    page.evaluate(swipe, [300, 100])
    assert at(page).startswith("2 ")
    page.evaluate(swipe, [200, 190])
    assert at(page).startswith("2 ")
    page.evaluate(swipe, [100, 300])
    assert at(page).startswith("1 ")


@pytest.mark.parametrize("size", SIZES)
def test_nothing_on_any_slide_is_cut(browser, static, size):
    """Of every other deck on a projector and of the others on a phone, unless all are asked. Figures are tested by
    themselves and stay away."""
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.route("**/*present*", lambda route: route.fulfill(body="", content_type="text/html"))
    found = {}
    decks = list(lessons.numbered())
    for lesson in decks if ALL_OF_THEM else decks[list(SIZES).index(size) :: 2]:
        page.goto(f"{static}{lesson.address}slides/")
        page.evaluate("document.fonts.ready")
        found[lesson.name] = page.evaluate(TOO_MUCH, [size == "a phone"])
    page.close()
    assert {name: slides for name, slides in found.items() if slides} == {}


def test_a_deck_is_printed_one_slide_a_page_with_its_figures_drawn(visit, static):
    page = visit(viewport={"width": 1000, "height": 700}).page
    page.goto(f"{static}{LESSON}/slides/")
    page.evaluate("window.print = () => dispatchEvent(new Event('beforeprint'))")
    page.get_by_role("button", name="Print").click()
    page.locator("body[data-stills=drawn]").wait_for(state="attached")
    figures = page.locator(".slide.figure").count()
    assert page.locator(".still-picture img").count() == figures >= 2
    pdf = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    assert len(pdf.pages) == page.locator(".slide").count()
    box = pdf.pages[0].mediabox
    assert float(box.width) / float(box.height) == pytest.approx(16 / 9, rel=0.01)
    page.set_viewport_size({"width": 1280, "height": 720})  # a page of paper, as wide as it is printed
    page.emulate_media(media="print")
    cut = page.evaluate(
        "[...document.querySelectorAll('.slide')].filter(one => one.scrollHeight > one.clientHeight + 1).map(one => one.id)"
    )
    assert cut == []


def test_without_scripts_all_slides_stand_below_one_another(visit, static):
    page = visit(java_script_enabled=False).go(f"{static}{LESSON}/slides/")
    slides = page.locator(".slide")
    assert page.locator(".slide:visible").count() == slides.count() > 10
    expect(page.locator(".slide-right").first).to_be_visible()
    expect(page.locator(".slide.figure a").first).to_have_attribute(
        "href", re.compile(r"^\.\./\.\./ddp_overlap/")
    )


def test_a_presented_picture_has_the_height_that_the_slide_gives_it(visit, static):
    page = visit(viewport={"width": 1440, "height": 900}).go(f"{static}roofline/?present")
    expect(page.locator("figure.widget")).to_have_attribute("data-state", "live")
    page.wait_for_function("""() => {
      const box = document.querySelector("[data-plot]").getBoundingClientRect(), [picture] = [...Bokeh.index.roots];
      return picture.el.getBoundingClientRect().height > 0.9 * box.height && box.height > 600;
    }""")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_a_deck(visit, static, theme):
    """With all slides in sight, and notes and answers."""
    page = visit(color_scheme=theme).page
    page.goto(f"{static}{LESSON}/slides/")
    page.evaluate("document.body.removeAttribute('data-stepped'); document.body.dataset.withNotes = ''")
    assert axe.faults(page) == []
