"""The pages around the widgets: themes, instant navigation, phones, no JavaScript, the keyboard, the search."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests import representatives, states
from tests.browser.hands import Hand, expected, lessons
from tests.browser.phones import PHONE, fits_a_phone
from widgets.kit.drawing import tokens
from widgets.kit.widget import all_widgets

WIDGETS = sorted(all_widgets())
LESSON, SLUGS = next(iter(lessons().items()))
INK = """figure => {
  const seen = new Set();
  for (const model of Bokeh.documents.flatMap(doc => [...doc._all_models.values()])) {
    for (const value of Object.values(model.attributes)) {
      const hex = typeof value === "string" ? value : value?.value;
      if (typeof hex === "string" && /^#[0-9a-f]{6}$/i.test(hex)) seen.add(hex.toLowerCase());
    }
  }
  return [...seen];
}"""


# -- themes --------------------------------------------------------------------------------------------------
def strangers(hand: Hand, theme: str) -> set[str]:
    """Colours in the drawn figures that belong to the other theme alone."""
    here, there = (
        {colour.lower() for colour in tokens.palette(name).values()}
        for name in (("light", "dark") if theme == "light" else ("dark", "light"))
    )
    return set(hand.figure.evaluate(INK)) & (there - here)


def test_the_toggle_restyles_in_place_and_keeps_the_state(visit, static):
    """One click on Material's own toggle: the same figure in the other theme's colours, the state
    untouched."""
    hand = Hand(visit(figures=SLUGS[:1]).go(static + LESSON), SLUGS[0])
    control = hand.slider()
    value = hand.drag(control, 5)
    light = hand.rested()
    hand.figure.evaluate("figure => { figure.same = true; }")
    assert not strangers(hand, "light")
    toggle = hand.page.locator("label[for^=__palette]:visible")
    for _ in range(3):  # system, light, dark: at most two clicks away
        toggle.click()
        if hand.page.locator("body").get_attribute("data-md-color-scheme") == "slate":
            break
    expect(hand.page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    assert hand.pixels() != light and not strangers(hand, "dark")
    assert hand.figure.evaluate("figure => figure.same") and hand.at(control) == value
    while hand.page.locator("body").get_attribute("data-md-color-scheme") != "default":
        toggle.click()
    assert hand.pixels() == light and not strangers(hand, "light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_system_s_theme_is_followed_from_the_start(visit, static, theme):
    for address in (LESSON, f"{SLUGS[0]}/"):
        hand = Hand(visit(figures=SLUGS[:1], color_scheme=theme).go(static + address), SLUGS[0])
        assert hand.page.locator("body").get_attribute("data-md-color-scheme") == tokens.SCHEMES[theme]
        assert not strangers(hand, theme)


# -- the shell's scripts wait for the figures ----------------------------------------------------------------
NOTE_THE_SHELL = """new MutationObserver(() => {
  if (!window.found && document.querySelector("script[src*='/bundle.']")) {
    window.found = [...document.querySelectorAll("figure.widget")].map(figure => figure.dataset.state);
  }
}).observe(document, { childList: true, subtree: true });"""


def without_figures(window, address: str):
    """A page whose figures' modules never arrive."""
    window.page.add_init_script(NOTE_THE_SHELL)
    window.page.route(re.compile(r"/assets/widgets/(?!shared|answers)"), lambda route: None)
    window.page.goto(address, wait_until="commit")
    expect(window.page.locator("figure.widget[data-state=loading]")).to_have_count(len(SLUGS))
    return window.page


def test_the_shell_comes_when_the_figures_are_drawn(visit, static):
    window = visit()
    window.page.add_init_script(NOTE_THE_SHELL)
    window.page.goto(static + LESSON)
    window.page.wait_for_function("() => window.found")
    assert window.page.evaluate("window.found") == ["live"] * len(SLUGS)


def test_the_shell_comes_at_the_first_touch(visit, static):
    """Long before its patience ends: a clock that stands still never ends it."""
    window = visit()
    window.context.clock.install()
    window.context.clock.pause_at("2030-01-01")
    page = without_figures(window, static + LESSON)
    expect(page.locator("link[rel=prefetch]")).not_to_have_count(0)  # by now the shell listens
    assert not page.evaluate("window.found")
    page.keyboard.press("Shift")
    page.wait_for_function("() => window.found")
    window.forgive("request failed")  # what never arrived, when the window closes


def test_the_shell_waits_for_figures_no_longer_than_a_few_seconds(visit, static):
    window = visit()
    page = without_figures(window, static + LESSON)
    page.wait_for_function("() => window.found && window.document$")
    window.forgive("request failed")


def test_without_figures_the_shell_is_there_at_once(visit, static):
    window = visit()
    window.context.clock.install()
    window.context.clock.pause_at("2030-01-01")
    window.page.goto(static + "glossary/")
    window.page.wait_for_function("() => window.document$")


# How many pixels a figure's canvas is across.
ACROSS = """figure => Bokeh.documents.map(doc => [...doc.views_manager][0])
  .find(plot => figure.contains(plot.el)).canvas.primary.canvas.width"""


def test_the_figures_still_follow_a_zoom_when_the_shell_has_come(visit, static):
    """A zoomed page is drawn with as many pixels as it then has: Bokeh listens for that, until the page is
    left."""
    window = visit(figures=SLUGS[:1])
    hand = Hand(window.go(static + LESSON), SLUGS[0])
    before = hand.figure.evaluate(ACROSS)
    tools = window.context.new_cdp_session(window.page)
    tools.send(
        "Emulation.setDeviceMetricsOverride",
        {"width": 1280, "height": 900, "deviceScaleFactor": 2, "mobile": False},
    )
    window.page.evaluate("() => visualViewport.dispatchEvent(new Event('resize'))")
    assert hand.figure.evaluate(ACROSS) == 2 * before


# -- instant navigation --------------------------------------------------------------------------------------
def test_leaving_a_page_lets_go_of_its_widgets(visit, origin, request):
    """Home and back, three times: no figure and no document stays behind, one session goes along, and a page
    without widgets closes it.

    A static page navigates at once where the build was told its address (SITE_URL); that is made so here.
    """
    window = visit()
    window.page.route(
        "**/sitemap.xml",
        lambda route: route.fulfill(
            response=(answer := route.fetch()), body=answer.text().replace("http://localhost:5006/", origin)
        ),
    )
    page = window.go(origin)
    page.evaluate("window.stays = true")
    home_widgets = page.locator("figure.widget").count()
    served = request.node.callspec.params["origin"] == "served"
    held = []
    for _ in range(3):
        page.locator(f"article a[href*='{LESSON}']:visible").first.click()
        for slug in SLUGS:
            Hand(page, slug)
        page.wait_for_function(
            "count => Bokeh.documents.length === count", arg=len(SLUGS) + served
        )  # and the session's
        held.append(page.evaluate("document.querySelectorAll('style, link, script').length"))
        page.locator(".md-header a.md-logo, a.md-header__button").first.click()
        expect(page.locator("figure.widget")).to_have_count(home_widgets)
        page.wait_for_function("count => Bokeh.documents.length === count", arg=home_widgets + served)
    assert page.evaluate("window.stays"), "the page was loaded anew: navigation is not instant"
    assert held[1] == held[-1], "something is left in the page with each visit"
    if served:
        assert len(window.sockets) == 1 and not window.sockets[0].is_closed()
        page.locator("article a[href*='glossary/']:visible").first.click()
        page.wait_for_function("() => Bokeh.documents.length === 0")
        for _ in range(300):  # half a minute: a busy machine is no failure
            if window.sockets[0].is_closed():
                break
            page.wait_for_timeout(100)
        assert window.sockets[0].is_closed()
    else:
        assert not window.sockets


# -- phones --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("slug", representatives.some())
def test_a_widget_on_a_phone(glance, static, slug):
    """It fits; a tap on a slider moves it; every control is at least 44 pixels high, and wide where it stands
    alone."""
    hand = Hand(glance(**PHONE).go(f"{static}{slug}/"), slug)
    fits_a_phone(hand.page)
    name = hand.slider()
    control, picture = hand.cls.controls()[name], hand.pixels()
    if control.slider:
        slider = hand.handle(name)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        far = 0.15 if hand.at(name) > control.grid[len(control.grid) // 2] else 0.85
        hand.page.touchscreen.tap(box["x"] + box["width"] * far, box["y"] + box["height"] / 2)
        hand.page.wait_for_timeout(100)
    else:
        hand.drag(name, -1)
    hand.says(**{name: hand.at(name)})
    assert hand.pixels() != picture
    hand.unfold()
    for fold in hand.figure.locator("details.widget-more").all():
        if fold.get_attribute("open") is None:  # the parts of a form stand open
            fold.locator("summary").tap()
    small = hand.figure.evaluate("""figure => [...figure.querySelectorAll("button, select, input, summary, .widget-tools a")]
      .filter(target => target.checkVisibility())
      .map(target => ({ name: target.outerHTML.slice(0, 80), box: target.getBoundingClientRect() }))
      .filter(({ box }) => box.height < 43.5 || box.width < 43.5).map(({ name, box }) => `${box.width}x${box.height} ${name}`)""")
    assert small == []


# -- without JavaScript --------------------------------------------------------------------------------------
# What is seen of a figure, its folds open: words by name, and what offers something to do or says why.
SEEN = """figure => {
  for (const fold of figure.querySelectorAll(".widget-rest")) fold.open = true;
  const seen = part => part.checkVisibility({ visibilityProperty: true }) && part.getClientRects().length > 0;
  const said = part => ({ text: part.textContent.replaceAll("\u00a0", " "), seen: seen(part) });
  const some = selector => [...figure.querySelectorAll(selector)];
  return {
    state: figure.dataset.state,
    summary: said(figure.querySelector("[data-summary]")),
    readouts: Object.fromEntries(some("[data-readout]").map(part => [part.dataset.readout, said(part)])),
    offered: some("[data-preset], [data-copy], [data-reset], [data-play], [data-png]").filter(seen).map(part => part.outerHTML),
    whys: figure.querySelector("[data-predict]") ? some("noscript .widget-why").map(seen) : [true],
  };
}"""


@pytest.mark.parametrize("address", states.daily(list(lessons())))
def test_a_lesson_is_complete_without_javascript(glance, static, address):
    """Its figures say what Python says at rest, and offer nothing that would not work."""
    window = glance(java_script_enabled=False)
    window.forgive(" csp")  # Chromium's word for a script that it was told not to load
    page = window.go(static + address)
    assert page.locator("figure.widget").count() == len(lessons()[address])
    for slug in lessons()[address]:
        figure = page.locator(f'figure.widget[data-widget="{slug}"]')
        wanted = expected(slug, **json.loads(figure.get_attribute("data-initial")))
        opens_the_page = bool(page.locator(f'.opening figure.widget[data-widget="{slug}"]').count())
        assert figure.evaluate(SEEN) == {
            "state": "still",
            "summary": {"text": wanted["summary"], "seen": True},
            "readouts": {
                name: {"text": text, "seen": not opens_the_page} for name, text in wanted["readouts"].items()
            },
            "offered": [],
            "whys": [True],
        }


# -- the keyboard --------------------------------------------------------------------------------------------
def test_everything_on_a_widget_is_reached_by_keyboard(visit, static):
    """Tab goes through all controls in the order in which they stand."""
    hand = Hand(visit().go(f"{static}{SLUGS[0]}/"), SLUGS[0])
    hand.figure.evaluate("figure => figure.querySelector('button, a').focus()")
    reached = []
    for _ in range(60):
        hand.page.keyboard.press("Tab")
        name = hand.page.evaluate("document.activeElement.closest('[data-control]')?.dataset.control ?? ''")
        if name and (not reached or reached[-1] != name):
            reached.append(name)
    controls = hand.cls.controls().items()  # a player stands under the picture, the others follow
    in_sight = [name for name, c in controls if c.kind == "player"]
    in_sight += [name for name, c in controls if c.kind != "player" and not c.more]
    assert [name for name in reached if name in in_sight][: len(in_sight)] == in_sight


# -- the search ----------------------------------------------------------------------------------------------
def test_a_megabyte_pasted_into_the_search_is_cut_and_said(visit, static):
    page = visit().go(f"{static}about/")
    field = page.locator(".md-search__input")
    field.click()
    field.evaluate(
        """(field, text) => {
          field.value = text;
          field.dispatchEvent(new Event("input", { bubbles: true }));
          field.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
        }""",
        "bubble " + "x" * 1_000_000,
    )
    said = page.locator(".search-said")
    expect(said).to_have_text(re.compile("^Only the first 200 characters are searched for"))
    assert len(field.input_value()) == 200
    field.fill("bubble")
    expect(said).to_have_text("")
    expect(page.locator(".md-search-result__item").first).to_be_visible()


# -- cards on a phone -----------------------------------------------------------------------------------------
UNDER_ITS_HEADING = """() => [...document.querySelectorAll("table[data-stacked] tbody [data-head] :is(math, a, abbr)")]
  .filter(part => part.getClientRects().length)
  .filter(part => {
    const cell = part.closest("[data-head]").getBoundingClientRect();
    return part.getBoundingClientRect().left < cell.left + 0.38 * cell.width;
  })
  .map(part => part.closest("tr").innerText)"""


def test_a_formula_stays_in_its_cell_on_a_phone(visit, static):
    """Beside the heading with the words around it, not under the heading as a cell of its own."""
    page = visit(viewport={"width": 390, "height": 844}).go(f"{static}01-why-distributed/")
    expect(page.locator("table[data-stacked] [data-head] math").first).to_be_attached()
    assert page.evaluate(UNDER_ITS_HEADING) == []


def test_a_card_has_its_row_s_name_and_each_column_s_heading(visit, static):
    page = visit(viewport={"width": 390, "height": 844}).go(f"{static}03-interconnect/")
    card = page.locator(".wide table[data-stacked]").first.get_by_role("row").nth(2)
    expect(card.get_by_role("rowheader")).to_have_text(re.compile(r"\w"))
    expect(card.get_by_role("cell").nth(1)).to_have_attribute("data-head", re.compile(r"\w"))
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.locator("table[data-stacked], table[data-close]")).to_have_count(0)


def test_a_table_of_numbers_stays_one_on_a_phone(visit, static):
    """Its columns can be compared: it scrolls in its own box, by keyboard too, and its first column stays."""
    page = visit(viewport={"width": 390, "height": 844}).go(f"{static}16-custom-kernels-and-fusion/")
    numbers = page.locator("table[data-numbers]").first
    expect(numbers).to_be_attached()
    box = numbers.locator("xpath=ancestor::*[contains(@class, 'md-typeset__scrollwrap')][1]")
    expect(box).to_have_attribute("tabindex", "0")
    expect(box).to_have_attribute("aria-label", re.compile("^Table: "))
    head = numbers.locator("tbody tr > :first-child").first
    before = head.bounding_box()
    moved = box.evaluate("box => { box.scrollLeft = 80; return box.scrollLeft; }")
    assert moved > 40 and before and head.bounding_box()["x"] == pytest.approx(before["x"], abs=1)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("page", ["", LESSON])
def test_no_style_sheet_and_no_font_is_asked_for_twice(visit, origin, page):
    """Material sets the addresses of the head anew, after which a browser asks a server once more that wants
    to be asked again."""
    opened = visit()
    asked: list[str] = []
    opened.page.on("request", lambda request: asked.append(request.url))
    opened.go(origin + page)
    opened.page.locator("html[data-shell=ready]").wait_for(state="attached")
    opened.page.wait_for_timeout(1000)
    kept = [url for url in asked if url.endswith((".css", ".woff2"))]
    assert kept and {url for url in kept if kept.count(url) > 1} == set()
