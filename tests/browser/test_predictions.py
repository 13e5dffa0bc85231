"""A figure is covered until its reader has predicted: what is covered, each way of answering, the reply, the
marks, and what is remembered; both ways served."""

import re

import pytest
from playwright.sync_api import expect

from engine import catalog
from engine.base import units
from tests.browser import axe
from tests.browser.axe import REST_GOES
from tests.browser.hands import Hand, expected
from tests.lessons.reading import Lesson
from tests.representatives import ALL_OF_THEM

SLIDER = ("01-why-distributed/", "roofline")
CHOICE = ("01-why-distributed/", "regime_cube")
SEEN_CHOICE = ("19-cuda-graphs/", "captured_addresses")
TYPED = ("07-pipeline-parallel/", "pipeline_timeline")
MARKED = ("06-tensor-parallel/", "tp_scaling")
POINTS = [
    ("10b-the-long-run/", "goodput"),
    ("12-disaggregated-serving/", "pool_ratio"),
    ("14-mixed-precision/", "lost_updates"),
    ("18-torch-compile/", "compile_break_even"),
]
TOLD_OF = "[data-readout], [data-summary], [data-regime], [data-controls], [data-preset], [data-break-it], figcaption"
LEFT_OPEN = "(figure, told) => [...figure.querySelectorAll(told)].filter(part => part.checkVisibility()).map(part => part.outerHTML)"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def truth(of: tuple[str, str]) -> float:
    return Lesson(f"{of[0].strip('/')}.md").truth(of[1])


@pytest.fixture
def reader(visit, origin):
    """Opens a lesson as somebody who has predictions on, and gives the figure, covered."""

    def open_at(of, window=None, **settings) -> Hand:
        page = (window or visit(predictions=True, figures=[of[1]], **settings)).go(origin + of[0])
        hand = Hand(page, of[1], live=False)
        hand.figure.scroll_into_view_if_needed()
        hand.wait_for("asked")
        expect(hand.figure.locator("[data-plot] > *").first).to_be_attached()
        return hand

    return open_at


def reply(hand: Hand):
    return hand.figure.locator("[data-why]")


def answer(hand: Hand) -> None:
    hand.figure.get_by_role("button", name="Answer", exact=True).click()


# -- covered -------------------------------------------------------------------------------------------------
@pytest.mark.of_the_kit
@pytest.mark.parametrize("of", [SLIDER, CHOICE, TYPED, POINTS[0]], ids=lambda of: of[1])
def test_a_covered_figure_tells_nobody_anything(reader, of):
    hand = reader(of)
    assert hand.figure.evaluate(LEFT_OPEN, TOLD_OF) == []
    told = hand.figure.locator(".widget-card").aria_snapshot()
    words = expected(hand.slug, **hand.initial())
    assert words["summary"][:40] not in told and not any(text in told for text in words["readouts"].values())
    plot = hand.figure.locator("[data-plot]")
    expect(plot).to_have_attribute("aria-hidden", "true")
    if of not in POINTS:
        assert plot.evaluate("plot => plot.inert")
        assert plot.evaluate(
            "plot => [...plot.children].every(part => getComputedStyle(part).visibility === 'hidden')"
        )
    expect(reply(hand)).to_be_hidden()
    hand.page.wait_for_timeout(300)
    assert hand.page.evaluate("location.search") == ""


@pytest.mark.of_the_kit
def test_a_cover_is_crossed_by_keyboard_in_the_order_of_what_is_asked(reader):
    """Tab goes from the answers to the two ways round, then to the cover, and past the figure."""
    hand = reader(CHOICE)
    first = hand.figure.locator("[data-answer]").first
    first.focus()
    met = []
    for _ in range(8):
        met.append(hand.page.evaluate("document.activeElement.textContent.trim()"))
        hand.page.keyboard.press("Tab")
    assert met[3:6] == ["Show me", "Never cover figures", "Predict"]
    assert not hand.page.evaluate("document.activeElement.closest('.widget-card') !== null")
    hand.button("Predict").click()
    expect(first).to_be_focused()


@pytest.mark.of_the_kit
def test_on_a_phone_and_in_the_dark_a_cover_covers_too(reader):
    hand = reader(POINTS[0], color_scheme="dark", **PHONE)
    assert hand.page.evaluate("document.documentElement.scrollWidth") == 390
    small = hand.figure.evaluate("""figure => [...figure.querySelectorAll("button, input")].filter(part => part.checkVisibility())
      .map(part => part.getBoundingClientRect().height).filter(height => height < 43.5)""")
    assert small == []
    sheet, plot = (hand.figure.locator(part).bounding_box() for part in (".widget-sheet", "[data-plot]"))
    assert sheet["width"] > 0.7 * plot["width"] and sheet["height"] > 0.7 * plot["height"]


# -- answered ------------------------------------------------------------------------------------------------
ASKED = {
    "roofline": {"gpu": list(catalog.all_gpus()).index("b200")},
    "pipeline_timeline": {"stages": 16, "micro_batches": 32},
}


def opened(hand: Hand) -> None:
    """All of it is there, as if it had never been covered, in the state that was asked about; the reply has
    the focus."""
    hand.wait_for("live")
    state = hand.initial() | ASKED.get(hand.slug, {})
    hand.says(**state)
    expect(reply(hand)).to_be_focused()
    in_view = hand.figure.locator(".widget-readouts [data-readout]").count()
    assert len(hand.figure.evaluate(LEFT_OPEN, ".widget-readouts [data-readout]")) == in_view > 0
    assert (
        hand.figure.evaluate("figure => figure.querySelectorAll('[inert], [data-plot][aria-hidden]').length")
        == 0
    )
    name = hand.slider()
    hand.says(**state | {name: hand.drag(name, 3)})


@pytest.mark.of_the_kit
def test_a_choice_opens_the_figure(reader):
    hand = reader(CHOICE)
    hand.figure.locator("[data-answer=other]").first.click()
    expect(reply(hand)).to_contain_text("Not quite.")
    opened(hand)


@pytest.mark.of_the_kit
def test_a_slider_over_decades_says_how_far_off_one_was(reader):
    hand = reader(SLIDER)
    slider = hand.figure.get_by_role("slider", name="Your prediction")
    slider.press("Home")
    assert slider.get_attribute("aria-valuetext") == "1"
    for _ in range(30):  # what is counted is whole
        slider.press("ArrowRight")
        assert re.fullmatch(r"\d+", slider.get_attribute("aria-valuetext"))
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "1,000"
    answer(hand)
    far = 1_000 / truth(SLIDER)
    expect(reply(hand)).to_contain_text(
        f"{units.number(far, 2)}× too high. You said 1,000; it is {truth(SLIDER):.0f}."
    )
    opened(hand)


@pytest.mark.of_the_kit
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("31.9", "Spot on. You said 31.9 %; it is 31.9 %."),
        ("30 %", "1.9 percentage points too low. You said 30 %"),
        ("0.3", "1.9 percentage points too low. You said 30 %"),
        ("0.2 %", "160× too low."),
        ("50 percent", "18 percentage points too high."),
    ][:: 1 if ALL_OF_THEM else 2],  # how each is read: tests/course/test_typed_back.py
)
def test_a_number_is_typed_with_or_without_its_unit(reader, typed, said):
    hand = reader(TYPED)
    field = hand.figure.get_by_role("textbox", name="Your prediction")
    field.fill(typed)
    field.press("Enter")
    expect(reply(hand)).to_contain_text(said)
    opened(hand)


@pytest.mark.of_the_kit
def test_a_slider_that_was_not_moved_is_no_answer(reader):
    hand = reader(SLIDER)
    slider = hand.figure.get_by_role("slider", name="Your prediction")
    assert slider.get_attribute("aria-valuetext") == "move the handle"
    answer(hand)
    expect(hand.figure.locator("[data-guess-said]")).to_have_text("Move the handle to your number first.")
    assert hand.figure.get_attribute("data-state") == "asked"
    slider.press("ArrowRight")
    answer(hand)
    opened(hand)


@pytest.mark.of_the_kit
def test_what_is_no_number_opens_nothing(reader):
    hand = reader(TYPED)
    field, said = (
        hand.figure.get_by_role("textbox", name="Your prediction"),
        hand.figure.locator("[data-guess-said]"),
    )
    for typed, words in {
        "": "first",
        "nonsense": "No number",
        "3 GB": "an amount of data; this needs a share",
        "-3 %": "more than zero",
        "0": "more than zero",
        "<b>3</b>": "No number",
    }.items():
        field.fill(typed)
        field.press("Enter")
        expect(said).to_contain_text(words)
        expect(field).to_have_attribute("aria-invalid", "true")
        hand.wait_for("asked")
    field.evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", "9" * 1_000_000
    )
    expect(said).to_have_text(re.compile("^No number is that long: only the first 80 characters are kept"))
    assert len(field.input_value()) == 80
    assert (
        hand.page.evaluate(
            "Object.keys(localStorage).filter(key => key.startsWith('course.predicted')).length"
        )
        == 0
    )


# -- marks ---------------------------------------------------------------------------------------------------
AT = """(figure, kind) => {  // where a mark lies, as a share of the frame
  const mark = figure.querySelector(`.guess-mark.${kind}`).getBoundingClientRect(), frame = figure.querySelector(".guess-marks").getBoundingClientRect();
  return [(mark.left - frame.left) / frame.width, (frame.bottom - mark.top) / frame.height];
}"""


@pytest.mark.of_the_kit
@pytest.mark.parametrize("of", POINTS, ids=lambda of: of[1])
def test_a_point_is_put_on_the_figures_own_axis(reader, of):
    """By pointer and by keys; the truth is drawn beside it, where the axis has it."""
    hand = reader(of)
    axis = hand.figure.locator("[data-predict]").get_attribute("data-axis")
    slider, sheet = (
        hand.figure.get_by_role("slider", name=re.compile("Your mark")),
        hand.figure.locator(".widget-sheet"),
    )
    expect(slider).to_be_enabled()
    assert slider.get_attribute("aria-valuetext") == "move the mark"
    answer(hand)
    expect(hand.figure.locator("[data-guess-said]")).to_have_text("Move the mark to your number first.")
    assert hand.figure.get_attribute("data-state") == "asked"
    sheet.scroll_into_view_if_needed()
    box = sheet.bounding_box()
    hand.page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 0.25 * box["height"])
    assert hand.figure.evaluate(AT, "yours")[axis == "y"] == pytest.approx(0.75, abs=0.02)
    spoken = slider.get_attribute("aria-valuetext")
    assert spoken == hand.figure.locator("[data-guess] output").text_content() and re.search(r"\d", spoken)
    slider.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") != spoken
    spoken = slider.get_attribute("aria-valuetext")
    answer(hand)
    expect(reply(hand)).to_contain_text(f"You said {spoken}; it is ")
    hand.wait_for("live")
    expect(hand.figure.locator(".widget-sheet")).to_have_count(0)
    hand.page.wait_for_function(  # once the picture is at rest
        f"figure => Math.abs(({AT})(figure, 'yours')[{int(axis == 'y')}] - 0.755) < 0.02",
        arg=hand.figure.element_handle(),
    )
    share = hand.figure.evaluate(PLACED, [axis, truth(of)])
    assert hand.figure.evaluate(AT, "true")[axis == "y"] == pytest.approx(share, abs=0.02)
    hand.drag(hand.slider(), 3)
    expect(hand.figure.locator(".guess-marks")).to_be_hidden()  # another state has another truth
    hand.button("reset").click()
    expect(hand.figure.locator(".guess-marks")).to_be_visible()


PLACED = """(figure, [axis, value]) => {  // of the axis, by its own range
  const plots = Bokeh.documents.flatMap(drawing => drawing.roots());
  const plot = plots.find(model => figure.contains(Bokeh.index.get_by_id?.(model.id)?.el ?? [...Bokeh.index.roots].find(view => view.model === model)?.el));
  const range = plot[`${axis}_range`], map = plot[`${axis}_scale`].type === "LogScale" ? Math.log : each => each;
  return (map(value) - map(range.start)) / (map(range.end) - map(range.start));
}"""


@pytest.mark.of_the_kit
def test_a_number_is_marked_on_the_axis_that_the_fence_names(reader):
    hand = reader(MARKED)
    hand.figure.get_by_role("slider", name="Your prediction").press("End")
    answer(hand)
    hand.wait_for("live")
    expect(hand.figure.locator(".guess-mark.true")).to_have_text("7.24 ms")
    share = hand.figure.evaluate(PLACED, ["y", truth(MARKED)])
    assert hand.figure.evaluate(AT, "true")[1] == pytest.approx(share, abs=0.02)
    assert hand.figure.evaluate(AT, "yours")[1] == pytest.approx(1, abs=0.02)


@pytest.mark.of_the_kit
def test_a_choice_takes_the_figure_to_where_it_is_seen(reader):
    """Right or wrong, the figure opens in the state that was asked about, and says so."""
    hand = reader(SEEN_CHOICE)
    hand.figure.get_by_role("button", name="four right answers and two wrong ones").click()
    expect(hand.figure.locator(".asked-about")).to_have_text(re.compile(r"Error raised\s*yes, by the copy"))
    expect(reply(hand)).to_contain_text("Not quite.")
    expect(reply(hand)).to_contain_text("Rows of the new batch to 6.")


@pytest.mark.of_the_kit
def test_where_no_axis_shows_it_the_readout_does(reader):
    """The figure goes to the state that was asked about, and the reader's number stands beside the truth while
    it stays there, as it does on a later visit."""
    hand = reader(TYPED)
    hand.figure.get_by_role("textbox", name="Your prediction").fill("10 %")
    answer(hand)
    yours = hand.figure.locator(".said-of-it")
    expect(yours).to_have_text("you: 10\u00a0%")
    told = hand.figure.locator(".asked-about")
    expect(told).to_have_text(re.compile(r"Bubble\s*31\.9\s%\s*you: 10\s%"))
    expect(reply(hand)).to_contain_text("The question has set Stages to 16, Micro-batches to 32.")
    hand.button("reset").click()
    hand.says(**hand.initial())
    expect(yours).to_be_hidden()
    expect(told).to_have_count(0)
    hand.page.wait_for_function("() => !location.search")
    hand.page.reload()
    hand = Hand(hand.page, hand.slug, live=False)
    hand.wait_for("live")
    hand.says(**hand.initial())  # only an answer moves the figure
    for name, value in ASKED[hand.slug].items():
        hand.move(name, value)
    expect(hand.figure.locator(".said-of-it")).to_be_visible()


@pytest.mark.of_the_kit
def test_a_figure_that_was_moved_stays_where_it_is(visit, origin):
    page = visit(predictions=True, figures=[TYPED[1]]).go(f"{origin}{TYPED[0]}?pipeline_timeline.stages=6")
    hand = Hand(page, TYPED[1], live=False)
    hand.wait_for("live")
    hand.button("Show the answer").click()
    expect(reply(hand)).to_contain_text("31.9 %.")
    hand.says(**hand.initial() | {"stages": 6})
    expect(hand.figure.locator(".asked-about, .said-of-it")).to_have_count(0)


# -- ways round ----------------------------------------------------------------------------------------------
@pytest.mark.of_the_kit
def test_a_skipped_figure_says_what_it_is_and_stays_open(reader):
    hand = reader(TYPED)
    hand.button("Show me").click()
    expect(reply(hand)).to_contain_text("31.9 %.")
    assert "You said" not in reply(hand).inner_text()
    opened(hand)
    hand.page.reload()
    Hand(hand.page, hand.slug, live=False).wait_for("live")
    expect(reply(hand)).to_contain_text("31.9 %.")


@pytest.mark.of_the_kit
def test_an_answer_is_remembered_and_clearing_everything_covers_again(visit, reader, origin):
    window = visit(predictions=True, figures=[TYPED[1], "bubble_map"])
    window.forgive("ERR_ABORTED")  # the test leaves pages while they still ask
    hand = reader(TYPED, window)
    hand.figure.get_by_role("textbox").fill("20 %")
    answer(hand)
    opened(hand)
    other = Hand(hand.page, "bubble_map", live=False)
    other.wait_for("asked")
    hand.page.goto(origin + TYPED[0])
    Hand(hand.page, hand.slug, live=False).wait_for("live")
    expect(reply(hand)).to_contain_text("You said 20 %; it is 31.9 %.")
    other.wait_for("asked")
    page = window.go(f"{origin}progress/")
    row = page.locator("[data-calibration] tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("07 Pipeline parallel")
    expect(row).to_contain_text("One number, off by a factor of 1.6.")
    expect(row.locator("circle")).to_have_count(1)
    page.get_by_role("button", name="Clear everything").click()
    page.get_by_role("button", name="Yes, clear").click()
    expect(row).to_have_count(0)
    expect(page.locator("[data-calibration] [data-none]")).to_be_visible()
    reader(TYPED, window)


def test_calibration_adds_up(visit, static):
    """Ratios and choices of two lessons, and rubbish, which anything may have written."""
    page = visit(predictions=True).go(f"{static}progress/")
    page.evaluate("""() => {
      const keys = [...document.querySelectorAll("[data-contents]")].map(row => JSON.parse(row.dataset.contents).predictions);
      const said = [[0, 0, "0.5"], [0, 1, "right"], [0, 2, "other"], [0, 3, "0.25"], [0, 4, "0.1"], [1, 0, "1.1"], [1, 1, "<b>"], [1, 2, "-3"]];
      for (const [lesson, i, text] of said) localStorage.setItem(`course.first.${keys[lesson][i]}`, text);
      dispatchEvent(new Event("course-kept"));
    }""")
    rows = page.locator("[data-calibration] tr")
    assert [" ".join(text.split()) for text in rows.all_inner_texts()] == [
        "01 Why distributed at all? 3 numbers, half of them within a factor of 4, and on the whole too low. 1 of 2 choices right.",
        "02 Collectives One number, off by a factor of 1.1.",
        "All 4 numbers, half of them within a factor of 2.8, and on the whole too low. 1 of 2 choices right.",
    ]
    assert [row.locator("circle").count() for row in rows.all()] == [3, 1, 4]
    expect(page.locator("tr:has(a[href*='01-why']) [data-cell=first]")).to_have_text("1 of 5")
    expect(page.locator("tr:has(a[href*='02-coll']) [data-cell=first]")).to_have_text("1 of 3")


@pytest.mark.of_the_kit
def test_one_switch_covers_none_and_covers_again(visit, reader, origin):
    window = visit(predictions=True, figures=[SLIDER[1], CHOICE[1]])
    window.forgive("ERR_ABORTED")
    hand = reader(SLIDER, window)
    hand.button("Never cover figures").click()
    expect(hand.page.locator("figure.widget[data-state=asked]")).to_have_count(0)
    hand.wait_for("live")
    expect(reply(hand)).to_be_hidden()  # nobody has answered
    hand.page.goto(origin + SLIDER[0])
    Hand(hand.page, hand.slug, live=False).wait_for("live")
    page = window.go(f"{origin}progress/")
    switch = page.get_by_role("checkbox", name="Cover each figure until I have predicted")
    expect(switch).not_to_be_checked()
    switch.check()
    hand = reader(SLIDER, window)
    hand.button("Never cover figures").click()
    hand.wait_for("live")
    hand.button("Cover them again").click()
    hand.page.goto(origin + SLIDER[0])
    hand.wait_for("asked")


SEEN_BEFORE = """slug => {  // whether the figure's words can be seen while its script has not come
  const words = document.querySelector(`figure[data-widget=${slug}] [data-summary]`);
  return getComputedStyle(words).visibility === "visible";
}"""


@pytest.mark.parametrize("predictions", [True, False])
def test_who_wants_no_covers_sees_figures_before_their_script_comes(visit, static, predictions):
    window = visit(predictions=predictions)
    window.forgive("ERR_FAILED", "ERR_ABORTED")
    held = []  # the script is still on its way
    window.page.route(re.compile("/assets/widget/view.js"), lambda route: held.append(route))
    window.page.goto(static + TYPED[0], wait_until="commit")
    window.page.locator(f"figure[data-widget={TYPED[1]}] [data-summary]").wait_for(state="attached")
    assert window.page.evaluate(SEEN_BEFORE, TYPED[1]) is not predictions
    for route in held:
        route.continue_()
    Hand(window.page, TYPED[1], live=False).wait_for("asked" if predictions else "live")


@pytest.mark.parametrize("known", ["predicted", "skipped", "linked"])
def test_who_has_answered_sees_a_figure_before_its_script_comes(visit, static, known):
    """The others of the page wait for theirs, which covers them."""
    window = visit(predictions=True)
    window.forgive("ERR_FAILED", "ERR_ABORTED")
    address = static + TYPED[0]
    page = window.go(address)
    question = page.locator(f"figure[data-widget={TYPED[1]}] [data-predict]").get_attribute("data-predict")
    if known == "linked":
        address += f"?{TYPED[1]}.stages=6"
    else:
        kept = [f"course.{known}.{TYPED[1]}.{question}", {"predicted": "0.2", "skipped": "yes"}[known]]
        page.evaluate("kept => localStorage.setItem(...kept)", kept)
    held = []
    page.route(re.compile("/assets/widget/view.js"), lambda route: held.append(route))
    page.goto(address, wait_until="commit")
    page.locator("figure[data-widget=bubble_map] [data-summary]").wait_for(state="attached")
    assert page.evaluate(SEEN_BEFORE, TYPED[1]) and not page.evaluate(SEEN_BEFORE, "bubble_map")
    for route in held:
        route.continue_()
    Hand(page, TYPED[1], live=False).wait_for("live")
    Hand(page, "bubble_map", live=False).wait_for("asked")


@pytest.mark.of_the_kit
def test_a_link_to_a_state_opens_uncovered_and_only_its_figure(visit, origin):
    page = visit(predictions=True).go(f"{origin}{SLIDER[0]}?memory_stack.size=13e9")
    hand = Hand(page, "memory_stack", live=False)
    hand.wait_for("live")
    hand.says(size=13e9)
    expect(reply(hand)).to_be_hidden()
    Hand(page, CHOICE[1], live=False).wait_for("asked")


@pytest.mark.of_the_kit
def test_a_page_that_sets_a_covered_figure_uncovers_nothing(reader):
    hand = reader(SLIDER)
    hand.figure.evaluate(
        "figure => figure.dispatchEvent(new CustomEvent('widget-set', { detail: { batch: '64' } }))"
    )
    hand.page.wait_for_timeout(600)
    hand.wait_for("asked")
    assert hand.page.evaluate("location.search") == ""
    hand.button("Show me").click()
    hand.wait_for("live")
    hand.says(batch=64)
    hand.page.wait_for_function("() => location.search.includes('roofline.batch')")


def test_a_figure_alone_asks_nothing(visit, static):
    page = visit(predictions=True).go(f"{static}memory_stack/")
    Hand(page, "memory_stack", live=False).wait_for("live")


# -- without a script, on paper ------------------------------------------------------------------------------
@pytest.mark.of_the_kit
def test_without_a_script_and_on_paper_nothing_is_covered(visit, reader, static):
    window = visit(java_script_enabled=False)
    window.forgive(" csp")
    page = window.go(static + TYPED[0])
    figure = page.locator(f"figure[data-widget={TYPED[1]}]")
    expect(figure.locator("[data-summary]")).to_be_visible()
    expect(figure.locator("noscript .widget-why")).to_contain_text("31.9 %. Two micro-batches for each stage")
    assert figure.locator("[data-guess]:visible, [data-cover]:visible, [data-covering]:visible").count() == 0
    hand = reader(TYPED)
    hand.page.emulate_media(media="print")
    for part in ("[data-summary]", "[data-plot]", ".widget-readouts"):
        expect(hand.figure.locator(part)).to_be_visible()
    assert (
        hand.figure.locator("[data-plot] > *").first.evaluate("part => getComputedStyle(part).filter")
        == "none"
    )
    expect(hand.figure.locator("[data-cover]")).to_be_hidden()
    assert hand.figure.locator("[data-guess]:visible, [data-covering]:visible").count() == 0


def test_a_figure_whose_script_never_comes_is_not_covered_for_ever(visit, static):
    window = visit(predictions=True)
    window.forgive("ERR_FAILED")
    window.page.route(re.compile("/assets/widget/predict.js"), lambda route: route.abort())
    window.page.goto(static + TYPED[0])
    figure = window.page.locator(f"figure[data-widget={TYPED[1]}]")
    expect(figure.locator("[data-summary]")).to_have_css("visibility", "visible", timeout=20_000)


def test_a_covered_figure_that_cannot_start_says_so(visit, static):
    window = visit(predictions=True)
    window.forgive("ERR_FAILED", "could not be loaded")
    window.page.route(re.compile("/assets/widgets/pipeline_timeline"), lambda route: route.abort())
    hand = Hand(window.go(static + TYPED[0]), TYPED[1], live=False)
    expect(hand.note()).to_contain_text("could not start")
    hand.wait_for("asked")
    hand.button("Show me").click()
    hand.wait_for("still")
    expect(hand.figure.locator("[data-summary]")).to_be_visible()


@pytest.mark.parametrize("of", [SLIDER, TYPED, POINTS[0]], ids=lambda of: of[1])
def test_axe_finds_no_serious_fault_in_what_is_covered_or_answered(visit, static, of):
    page, figure = (
        visit(predictions=True, figures=[of[1]], color_scheme="light").go(static + of[0]),
        f'[data-widget="{of[1]}"]',
    )
    hand = Hand(page, of[1], live=False)
    hand.wait_for("asked")
    hand.figure.evaluate(REST_GOES)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(400)
        assert axe.faults(page, within=figure) == []
    hand.predict()
    hand.wait_for("live")
    page.wait_for_timeout(400)
    assert axe.faults(page, within=figure) == []


def test_a_mission_that_is_taken_up_opens_its_figure(visit, static):
    page = visit(predictions=True).go(f"{static}planner/")
    hand = Hand(page, "layout_missions", live=False)
    hand.wait_for("asked")
    page.locator("[data-missions] [data-set]").first.click()
    hand.wait_for("live")
    Hand(page, "layout_planner")  # the page's tool asks nothing first
