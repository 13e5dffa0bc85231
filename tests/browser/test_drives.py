"""Text and figure are one: a sentence sets a figure or lights a part of it, a tour leads through it, the arrow keys
walk its marks."""

import re
from functools import cache

import pytest
from bokeh.models import GlyphRenderer
from playwright.sync_api import Page, expect

from tests import states
from tests.browser.hands import Hand
from widgets.kit import guide
from widgets.kit.drawing import figure as fig
from widgets.kit.widget import all_widgets

LESSON = "07-pipeline-parallel/"
# a state in the address, so that no prediction covers the figure
GPIPE, ONE_F_ONE_B = 0, 1  # the lesson begins with the first
STATE = {"schedule": GPIPE, "stages": 5}
OPEN = f"{LESSON}?pipeline_timeline.stages=5"
ONE = ["pipeline_timeline"]  # the only figure of the lesson that most tests need
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TOURS = [slug for slug, cls in all_widgets().items() if cls.tour]
HINTED = [slug for slug, cls in all_widgets().items() if cls.methods("hint_of")]
IN_SIGHT = """element => { const { top, bottom } = element.getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; }"""
ALPHAS = """slug => [...window.Bokeh.documents].flatMap(doc => doc.all_models ? [...doc.all_models] : [])
  .filter(model => model.glyph && model.data_source && model.id.startsWith(slug))
  .map(({ name, data_source, glyph }) => [name ?? data_source.name, Object.entries(glyph.attributes)
    .filter(([key]) => key.endsWith("_alpha")).map(([key, value]) => [key, JSON.stringify(value?.value ?? value?.field ?? value), !!value?.transform])])"""


def link(page: Page, words: str):
    return page.locator("a.drives", has_text=words)


def phrase(page: Page, words: str):
    return page.locator(".lights", has_text=words)


def timeline(page: Page) -> Hand:
    return Hand(page, "pipeline_timeline")


# -- a link ----------------------------------------------------------------------------------------------------
@pytest.mark.of_the_kit
def test_a_link_sets_the_figure_and_the_way_back_restores_it(visit, origin):
    page = visit(figures=ONE).go(origin + OPEN)
    hand, words = timeline(page), link(page, "as many micro-batches as stages")
    hand.says(**STATE)
    expect(words).to_have_role("button")
    expect(words).to_have_accessible_description(
        "Sets Stages to 16, Micro-batches to 16 in the figure; the rest as it was at first"
    )
    words.click()
    hand.says(schedule=GPIPE, stages=16, micro_batches=16)
    expect(words).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("status").filter(has_text="The text has set")).to_have_text(
        "The text has set Stages to 16, Micro-batches to 16."
    )
    page.wait_for_function(IN_SIGHT, arg=hand.figure.locator("[data-plot]").element_handle())
    hand.button("Back to the state before, and to the text").click()
    hand.says(**STATE)
    expect(words).to_be_focused()
    expect(words).to_have_attribute("aria-pressed", "false")
    expect(hand.figure.locator(".widget-visit")).to_be_hidden()
    page.wait_for_function(IN_SIGHT, arg=words.element_handle())


def test_a_link_says_all_that_it_sets_and_one_that_may_leaves_the_reader_s_values(visit, static):
    page = visit(figures=ONE).go(
        f"{static}{LESSON}?pipeline_timeline.stages=16&pipeline_timeline.micro_batches=32"
    )
    hand, said = timeline(page), page.locator("#w-pipeline_timeline .widget-visit [role=status]")
    mine = {"schedule": GPIPE, "stages": 16, "micro_batches": 32}
    one, many = link(page, "one forward, one backward"), link(page, "as many micro-batches as stages")
    one.click()
    hand.says(**mine | {"schedule": ONE_F_ONE_B})
    expect(said).to_have_text("The text has set Schedule to 1F1B.")
    many.click()
    hand.says(schedule=GPIPE, stages=16, micro_batches=16)
    expect(said).to_have_text("The text has set Stages to 16, Micro-batches to 16.")
    one.click()
    hand.says(**mine | {"schedule": ONE_F_ONE_B})
    one.click()
    hand.says(**mine)
    hand.choose("schedule", ONE_F_ONE_B)
    many.click()
    expect(said).to_have_text(
        "The text has set Stages to 16, Micro-batches to 16 and put Schedule back to GPipe."
    )


def test_the_same_link_and_the_keyboard_toggle_and_a_second_link_keeps_the_way_back(visit, static):
    page = visit(figures=ONE).go(static + OPEN)
    hand, many, more = (
        timeline(page),
        link(page, "as many micro-batches as stages"),
        link(page, "four times as many"),
    )
    many.focus()
    page.keyboard.press("Enter")
    hand.says(schedule=GPIPE, stages=16, micro_batches=16)
    page.keyboard.press("Space")
    hand.says(**STATE)
    page.keyboard.press("Enter")
    more.focus()
    page.keyboard.press("Enter")
    hand.says(schedule=GPIPE, stages=16, micro_batches=64)
    expect(many).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Enter")
    hand.says(**STATE)


def test_a_hand_on_the_figure_ends_what_the_text_has_set(visit, static):
    page = visit(figures=ONE).go(static + OPEN)
    hand, words = timeline(page), link(page, "as many micro-batches as stages")
    words.click()
    hand.says(schedule=GPIPE, stages=16, micro_batches=16)
    hand.choose("schedule", ONE_F_ONE_B)
    hand.says(schedule=ONE_F_ONE_B, stages=16, micro_batches=16)
    expect(words).to_have_attribute("aria-pressed", "false")
    expect(hand.figure.locator(".widget-visit")).to_be_hidden()


def test_what_the_text_breaks_is_not_the_reader_s_find(visit, static):
    page = visit(figures=ONE).go(static + OPEN)
    hand = timeline(page)
    hand.choose("schedule", ONE_F_ONE_B)
    link(page, "as many micro-batches as stages").click()
    expect(hand.figure.locator("[data-regime=starved]")).to_be_visible()
    assert hand.figure.locator("[data-break-it]").get_attribute("data-found") is None


def test_the_way_back_to_what_is_broken_is_not_the_reader_s_find_either(visit, static):
    page = visit(figures=ONE).go(
        f"{static}{LESSON}?pipeline_timeline.stages=16&pipeline_timeline.micro_batches=16"
    )
    hand = timeline(page)
    link(page, "four times as many").click()
    expect(hand.figure.locator("[data-regime=starved]")).to_have_count(0)
    hand.figure.locator(".widget-visit button").click()
    expect(hand.figure.locator("[data-regime=starved]")).to_be_visible()
    assert hand.figure.locator("[data-break-it]").get_attribute("data-found") is None


def test_a_link_reaches_a_figure_of_another_section_before_it_was_ever_seen(visit, static):
    page = visit(figures=ONE).go(static + OPEN + "#from-both-ends")
    link(page, "In the steady state").click()
    timeline(page).says(schedule=5, stages=8, micro_batches=20)


def test_a_click_with_a_key_opens_the_widget_s_own_page(visit, static):
    window = visit(figures=ONE)
    page = window.go(static + OPEN)
    with window.context.expect_page() as opened:
        link(page, "as many micro-batches as stages").click(modifiers=["Control"])
    Hand(opened.value, "pipeline_timeline").says(schedule=GPIPE, stages=16, micro_batches=16)
    timeline(page).says(**STATE)


def test_without_scripts_a_link_leads_to_the_state_and_a_light_is_text(visit, static):
    window = visit(java_script_enabled=False)
    window.forgive(" csp")  # Chromium's word for a script that it was told not to load
    page = window.go(static + LESSON)
    words, lit = link(page, "as many micro-batches as stages"), phrase(page, "idle stretches")
    assert words.get_attribute("role") is None and lit.get_attribute("tabindex") is None
    tour = page.locator("#w-pipeline_timeline [data-tour-all]")
    tour.locator("summary").click()
    expect(tour.locator("li")).to_have_count(len(all_widgets()["pipeline_timeline"].tour))
    words.click()
    page.wait_for_url(
        "**/pipeline_timeline/?pipeline_timeline.schedule=gpipe&pipeline_timeline.stages=16&pipeline_timeline.micro_batches=16"
    )


def test_a_covered_figure_is_not_spoilt(visit, static):
    page = visit(predictions=True, figures=ONE).go(static + LESSON)
    figure = page.locator("#w-pipeline_timeline")
    link(page, "as many micro-batches as stages").click()
    asked = figure.locator(".widget-asked")
    expect(asked).to_contain_text("Answer this first")
    page.wait_for_function(IN_SIGHT, arg=asked.element_handle())
    phrase(page, "idle stretches").hover()
    page.wait_for_timeout(200)
    assert figure.get_attribute("data-lit") is None
    expect(figure.locator("[data-summary]")).not_to_contain_text("16 stages")


# -- a light ---------------------------------------------------------------------------------------------------
@pytest.mark.of_the_kit
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phrase_lights_a_part_while_it_is_meant(visit, origin, scheme):
    page = visit(figures=ONE, color_scheme=scheme).go(origin + OPEN)
    hand, words = timeline(page), phrase(page, "idle stretches")
    expect(words).to_have_accessible_description(
        "Lights in the figure: the stretches in which a stage waits."
    )
    plain = hand.rested()
    words.hover()
    expect(hand.figure).to_have_attribute("data-lit", "idle")
    lit = hand.pixels()
    assert lit != plain
    page.mouse.move(1, 1)
    expect(hand.figure).not_to_have_attribute("data-lit", "idle")
    assert hand.pixels() == plain
    words.focus()
    expect(hand.figure).to_have_attribute("data-lit", "idle")
    assert hand.pixels() == lit
    words.blur()
    expect(hand.figure).not_to_have_attribute("data-lit", "idle")
    assert hand.pixels() == plain


def test_a_phrase_says_where_it_lights_what_is_out_of_sight(visit, static):
    page = visit(figures=ONE).go(static + OPEN)
    hand, near, far = timeline(page), phrase(page, "idle stretches"), phrase(page, "weight gradients")
    where = page.locator(".lit-where")
    far.hover()
    expect(hand.figure).to_have_attribute("data-lit", "weights")
    expect(where).to_have_text("↑ It is lit in the figure above. Press to go there.")
    far.click()
    page.wait_for_function(IN_SIGHT, arg=hand.figure.locator("[data-plot]").element_handle())
    expect(where).to_have_count(0)
    page.set_viewport_size({"width": 1280, "height": 2200})
    hand.figure.evaluate("figure => figure.scrollIntoView({ block: 'center' })")
    hand.rested()  # phrase and figure both in sight
    near.hover()
    expect(hand.figure).to_have_attribute("data-lit", "idle")
    expect(where).to_have_count(0)


def test_all_but_the_lit_marks_fade_and_get_back_what_they_had(visit, static):
    page = visit(figures=ONE).go(static + OPEN)
    timeline(page)
    read = lambda: page.evaluate(ALPHAS, "pipeline_timeline")
    before = read()
    phrase(page, "idle stretches").hover()
    page.wait_for_selector("#w-pipeline_timeline[data-lit]")
    during = read()
    marks = guide.lights(all_widgets()["pipeline_timeline"])["idle"].marks
    assert {name for name, _ in before} >= {*marks, "forwards", "numbers"}
    for (name, was), (_, now) in zip(before, during):
        assert (was == now) == (name in marks), name
    page.mouse.move(1, 1)
    page.wait_for_selector("#w-pipeline_timeline:not([data-lit])")
    assert read() == before


def test_a_light_stays_with_a_figure_that_moves_and_changes_its_colours(visit, static):
    page = visit(figures=ONE).go(static + OPEN)
    hand, words = timeline(page), phrase(page, "idle stretches")
    plain = hand.rested()
    words.focus()
    hand.choose("schedule", ONE_F_ONE_B)  # takes the focus, and with it the light
    hand.says(**STATE | {"schedule": ONE_F_ONE_B})
    words.focus()
    page.emulate_media(color_scheme="dark")
    hand.rested()
    page.emulate_media(color_scheme="light")
    words.blur()
    hand.choose("schedule", GPIPE)
    hand.says(**STATE)
    assert hand.rested() == plain


def test_a_tap_lights_brings_the_figure_and_a_tap_elsewhere_ends_it(visit, static):
    page = visit(figures=ONE, **PHONE).go(static + OPEN)
    hand, words = timeline(page), phrase(page, "idle stretches")
    words.tap()
    expect(hand.figure).to_have_attribute("data-lit", "idle")
    expect(words).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(IN_SIGHT, arg=hand.figure.locator("[data-plot]").element_handle())
    hand.figure.locator("[data-summary]").tap()
    expect(hand.figure).not_to_have_attribute("data-lit", "idle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# -- a tour ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("slug", states.daily(TOURS))
def test_a_tour_shows_each_state_and_lights_what_it_speaks_of(glance, static, slug):
    page = glance().go(f"{static}{slug}/")
    hand, told = Hand(page, slug), guide.tour(all_widgets()[slug])
    hand.button(f"Tour: {len(told)} steps").click()
    bar = hand.figure.get_by_role("group", name="Tour", exact=True)
    for number, step in enumerate(told, 1):
        expect(bar.locator("p").first).to_have_text(f"Step {number} of {len(told)} {step.sentence}")
        widget = all_widgets()[slug]()
        widget.set_state(step.state)
        hand.says(**widget.raw_state())
        if step.light:
            expect(hand.figure).to_have_attribute("data-lit", step.light)
        else:
            expect(hand.figure).not_to_have_attribute("data-lit", re.compile("."))
        bar.get_by_role("button", name="next" if number < len(told) else "done", exact=True).click()
    expect(bar).to_be_hidden()
    expect(hand.button(f"Tour: {len(told)} steps")).to_be_focused()
    hand.button("reset").click()
    hand.says()


@pytest.mark.of_the_kit
def test_a_tour_goes_by_keys_and_leaves_the_figure_to_the_hand(visit, origin):
    page = visit().go(f"{origin}pipeline_timeline/")
    hand, told = timeline(page), guide.tour(all_widgets()["pipeline_timeline"])
    start = hand.figure.locator("[data-tour-start]")
    start.focus()
    page.keyboard.press("Enter")
    at, words = hand.figure.locator("[data-tour-at]"), hand.figure.locator("[data-tour-words]")
    expect(hand.figure.locator("[data-tour-next]")).to_be_focused()
    assert words.evaluate("words => words.closest('[aria-live]').getAttribute('aria-live')") == "polite"
    for key, number in {"ArrowRight": 2, "End": len(told), "ArrowLeft": len(told) - 1, "Home": 1}.items():
        page.keyboard.press(key)
        expect(at).to_have_text(f"Step {number} of {len(told)}")
        expect(words).to_have_text(told[number - 1].sentence)
    hand.choose("schedule", 0)  # a hand moves on: the sentence is no longer about what is seen
    again = hand.button("show this step again")
    expect(again).to_be_visible()
    expect(hand.figure).not_to_have_attribute("data-lit", re.compile("."))
    again.click()
    hand.says()
    expect(again).to_be_hidden()
    page.keyboard.press("Escape")
    expect(start).to_be_focused()
    hand.choose("schedule", 2)
    hand.says(schedule=2)


def test_a_tour_fits_a_phone(visit, static):
    page = visit(**PHONE).go(f"{static}pipeline_timeline/")
    hand = timeline(page)
    hand.figure.locator("[data-tour-start]").tap()
    page.wait_for_function(IN_SIGHT, arg=hand.figure.locator("[data-plot]").element_handle())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for button in hand.figure.locator("[data-tour-bar] button:visible").all():
        box = button.bounding_box()
        assert box["width"] >= 44 and box["height"] >= 44


def test_on_paper_there_is_nothing_to_press(visit, static):
    page = visit(figures=ONE).go(static + OPEN)
    timeline(page)
    page.emulate_media(media="print")
    expect(page.locator("#w-pipeline_timeline .widget-tour")).to_be_hidden()
    words = link(page, "as many micro-batches as stages")
    plain = """words => {  // colours change over a moment
      const { color, backgroundColor } = getComputedStyle(words);
      return color === getComputedStyle(words.parentElement).color && backgroundColor === "rgba(0, 0, 0, 0)";
    }"""
    page.wait_for_function(plain, arg=words.element_handle())


# -- a walk ----------------------------------------------------------------------------------------------------
HOW = "Arrow keys go from mark to mark, with Shift one by one where there are many. Escape leaves."
WALK = """async slug => {
  const figure = document.querySelector(`figure[data-widget="${slug}"]`), place = figure.querySelector("[data-plot]");
  place.focus();
  const said = [], press = key => place.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  for (let presses = 0; presses < 3000; presses++) {
    press("ArrowRight");
    const text = place.querySelector("[aria-live]").textContent;
    if (text === said.at(-1)) break;
    said.push(text);
  }
  const [note, ring] = [".widget-hint", ".widget-mark"].map(name => place.querySelector(name));
  const shown = [note.hidden, ring.hidden, note.textContent.replaceAll("\u00a0", " ")];  // as texts have it that are not shown
  press("Escape");
  return { said, shown, left: [note.hidden, ring.hidden] };
}"""


def hints(slug: str, texts: dict) -> dict[str, set[str]]:
    return _hints(slug, tuple(texts.items()))


@cache
def _hints(slug: str, texts: tuple) -> dict[str, set[str]]:
    widget = all_widgets()[slug]()
    widget.set_state(dict(texts))
    return {part: {text for text in column if text} for part, column in widget.hints().items()}


def on_a_phone_alone(slug: str) -> set[str]:
    """The parts that a wide picture does not show."""
    widget = all_widgets()[slug]()
    drawn = widget.figure(fig.sources(widget)).select({"type": GlyphRenderer})
    return {each.data_source.name for each in drawn if {"only": "narrow"} in each.tags} - {
        each.data_source.name for each in drawn if {"only": "narrow"} not in each.tags
    }


def spoken(said: list[str]) -> set[str]:
    return {re.sub(r" \(\d+ of \d+\)\xa0?$", "", text) for text in said}


@pytest.mark.of_the_kit
@pytest.mark.parametrize(
    ("slug", "way"), [*((slug, "static") for slug in HINTED), *((slug, "served") for slug in HINTED[::6])]
)
def test_the_arrow_keys_walk_every_figure_that_has_hints(glance, request, slug, way):
    """Whatever part has something to say says it, in the default state or in one of the presets."""
    page = glance().go(f"{request.getfixturevalue(way)}{slug}/")
    hand = Hand(page, slug)
    place = hand.figure.locator("[data-plot]")
    expect(place).to_have_attribute("tabindex", "0")
    expect(place).to_have_role("application")
    left = {
        part
        for part in hints(slug, {}).keys() - on_a_phone_alone(slug)
        if any(hints(slug, texts)[part] for texts in all_widgets()[slug].presets.values())
    }
    first = True
    for label, texts in all_widgets()[slug].presets.items():
        if not left and not first:
            break
        hand.button(label).click()
        widget = all_widgets()[slug]()
        widget.set_state(texts)
        hand.says(**widget.raw_state())
        switch = page.get_by_role("switch", name="Measured points")
        if switch.count() and not switch.is_checked():  # they wait for whoever asks
            switch.click()
        page.wait_for_timeout(500)  # the axes come to rest
        found, expected = page.evaluate(WALK, slug), hints(slug, texts)
        assert found["said"], label
        heard = spoken(found["said"])
        assert heard <= set().union(*expected.values())
        assert (
            found["shown"][:2] == [False, False]
            and found["shown"][2] in heard
            and found["left"] == [True, True]
        )
        left -= {part for part, column in expected.items() if column & heard}
        first = False
    assert not left, f"no key leads to a mark of {left}"


@pytest.mark.of_the_kit
def test_a_walk_goes_by_lanes_and_to_their_ends(visit, origin):
    page = visit().go(f"{origin}pipeline_timeline/")
    timeline(page)
    page.locator("[data-plot]").focus()
    said = page.locator("[data-plot] [aria-live]")
    for key, words in {
        "ArrowDown": "Forward of micro-batch 1 on stage 1: 0 s to 20 ms (1 of 16)",
        "ArrowRight": "Forward of micro-batch 2 on stage 1: 20 ms to 40 ms (2 of 16)",
        "End": "Backward of micro-batch 8 on stage 1: 620 ms to 660 ms (16 of 16)",
        "Home": "Forward of micro-batch 1 on stage 1: 0 s to 20 ms (1 of 16)",
        "ArrowUp": "Forward of micro-batch 1 on stage 1: 0 s to 20 ms (1 of 16)",
    }.items():
        page.keyboard.press(key)
        expect(said).to_have_text(words)
    page.keyboard.press("ArrowDown")
    expect(said).to_have_text(re.compile("^Stage 1 idles for"))
    page.keyboard.press("ArrowDown")
    expect(said).to_have_text(re.compile("on stage 2"))
    page.keyboard.press("Control+End")
    expect(said).to_have_text(re.compile("^Stage 4 idles for"))


def test_a_walk_along_many_marks_goes_in_strides_and_with_shift_one_by_one(visit, static):
    page = visit().go(f"{static}tile_tuner/")
    Hand(page, "tile_tuner")
    page.locator("[data-plot]").focus()
    said = page.locator("[data-plot] [aria-live]")
    many = all_widgets()["tile_tuner"]().hints()["curve"]
    for _ in range(40):  # before the curve come this product and what was measured
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(20)
        if said.text_content().endswith(f"of {len(many)})"):
            break
    expect(said).to_have_text(f"{many[0]} (1 of {len(many)})")
    page.keyboard.press("ArrowRight")
    stride = -(-len(many) // 32)
    expect(said).to_have_text(f"{many[stride]} ({stride + 1} of {len(many)})")
    page.keyboard.press("Shift+ArrowLeft")
    expect(said).to_have_text(f"{many[stride - 1]} ({stride} of {len(many)})")
    found = page.evaluate(WALK, "tile_tuner")
    assert len(found["said"]) < 60 and any(many[-1] in text for text in found["said"])


def test_a_walk_stays_with_a_figure_that_moves(visit, static):
    page = visit().go(f"{static}pipeline_timeline/")
    hand = timeline(page)
    page.locator("[data-plot]").focus()
    said = page.locator("[data-plot] [aria-live]")
    page.keyboard.press("ArrowRight")
    hand.figure.evaluate(
        "figure => figure.dispatchEvent(new CustomEvent('widget-set', { detail: { stages: '8', forward_s: '0.1' } }))"
    )
    expect(said).to_have_text("Forward of micro-batch 1 on stage 1: 0 s to 100 ms (1 of 16)")


def test_a_mouse_keeps_the_keyboard_where_it_is_and_the_picture_is_one_stop(visit, static):
    page = visit().go(f"{static}pipeline_timeline/")
    timeline(page)
    page.locator("[data-plot]").click()
    assert page.evaluate("document.activeElement === document.body")
    page.locator("[data-reset]").focus()  # the last of what lies before the picture
    page.keyboard.press("Tab")
    expect(page.locator("[data-plot]")).to_be_focused()
    expect(page.locator(".widget-hint")).to_have_text(HOW)
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('[data-plot]')")


def test_nothing_is_worked_out_while_nobody_walks(visit, static):
    page = visit().go(f"{static}pipeline_timeline/")
    hand = timeline(page)
    hand.choose("schedule", 0)
    hand.says(schedule=0)
    assert page.locator(".widget-mark, [data-plot] [aria-live]").count() == 0


def test_presets_that_differ_in_a_position_alone_are_not_pressed_together(visit, static):
    """ring_allreduce has one for the ring and one for a later moment of the same ring."""
    hand = Hand(visit().go(f"{static}ring_allreduce/"), "ring_allreduce")
    pressed = hand.figure.locator("[data-preset][aria-pressed=true]")
    expect(pressed).to_have_text(["4 ranks"])
    hand.button("After the ReduceScatter").click()
    expect(pressed).to_have_text(["After the ReduceScatter"])
    hand.button("16 ranks").click()
    expect(pressed).to_have_text(["16 ranks"])
