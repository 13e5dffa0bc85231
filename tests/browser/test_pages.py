"""Each page of the course, opened once: on a phone, where it scrolls nowhere sideways, and then turned to a desk's
width, where its figures live in the state of the address, nothing lies under the contents, predictions say why, and
axe finds no serious fault. The tests stand in the order in which they leave the page fit for the next."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests import representatives
from tests.browser import axe
from tests.browser.boxes import UNDER_THE_CONTENTS
from tests.browser.conftest import Visit
from tests.browser.hands import STILL, Hand, drawn, lessons, numbers, pages
from tests.browser.phones import suits_a_phone
from widgets.kit import guide
from widgets.kit.widget import all_widgets

OWN = lessons()["01-why-distributed/"][0]  # the figure whose own page stands for all such pages
FIGURES = {address: lessons().get(address, []) for address in pages()} | {f"{OWN}/": [OWN]}
# figures that are there to be used, not to ask first
UNASKED = {("", "training_step"), ("planner/", "layout_planner"), (f"{OWN}/", OWN)}


class Opened:
    """A page, and the number of each of its figures that the address sets to its upper bound."""

    def __init__(self, window: Visit, address: str):
        self.window, self.page, self.address = window, window.page, address
        self.moved = {slug: numbers(slug)[0] for slug in FIGURES[address]}
        self.asking = [slug for slug in self.moved if (address, slug) not in UNASKED]
        self.on_a_phone = False

    def turn(self, phone: bool) -> None:
        if phone != self.on_a_phone:
            width, height = (390, 844) if phone else (1280, 900)
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
            self.window.tools.send("Emulation.setDeviceMetricsOverride", size)
            self.window.tools.send("Emulation.setTouchEmulationEnabled", {"enabled": phone})
            self.page.evaluate(STILL)
            self.on_a_phone = phone

    def hands(self) -> list[Hand]:
        return [Hand(self.page, slug) for slug in self.moved]


@pytest.fixture(scope="module", params=FIGURES)
def opened(request, windows, static):
    window = windows({"color_scheme": "light"})
    window.begin()
    window.page.emulate_media(color_scheme="light")
    one = Opened(window, request.param)
    one.turn(phone=True)
    state = [f"{slug}.{number.name}={number.write(number.bounds[1])}" for slug, number in one.moved.items()]
    window.go(f"{static}{one.address}?{'&'.join(state)}")
    yield one
    one.turn(phone=False)
    assert window.forget() == []


@pytest.fixture
def desk(opened) -> Opened:
    opened.turn(phone=False)
    return opened


def test_a_phone_never_scrolls_sideways_and_cuts_no_table_or_formula(opened):
    opened.turn(phone=True)
    suits_a_phone(opened.page, opened.address)


def test_its_figures_live_and_take_the_address(desk):
    """And are put back, which is asked of the lessons that stand for all."""
    for hand in desk.hands():
        number = desk.moved[hand.slug]
        assert hand.at(number.name) == number.bounds[1]
    assert desk.page.locator("[data-note]:visible").count() == 0
    drawn(desk.page, list(desk.moved))
    for hand in desk.hands() if representatives.is_asked(desk.address) else ():
        if hand.button("reset").is_visible():  # not on the home page
            hand.button("reset").click()
            hand.says(**hand.initial())


def test_nothing_lies_under_the_contents(desk):
    """At 1,280 px no table, formula or figure is covered by the list in the right margin: what reaches there
    makes it give way."""
    desk.hands()  # each lives
    assert desk.page.evaluate(UNDER_THE_CONTENTS) == []


def test_every_link_and_light_finds_its_figure(desk):
    page = desk.page
    expect(page.locator(":is(a.drives, .lights):not([role=button])")).to_have_count(0)
    for each in page.locator(".lights").all():
        slug = each.get_attribute("data-figure").removeprefix("w-")
        assert each.get_attribute("data-light") in guide.lights(all_widgets()[slug])


def questions(desk) -> list[tuple[Hand, Locator]]:
    """The figures that ask first, each with its question."""
    asking = [hand for hand in desk.hands() if hand.slug in desk.asking]
    return [(hand, hand.figure.locator("[data-predict]")) for hand in asking]


def test_every_figure_of_a_lesson_asks_first(desk):
    for hand, block in questions(desk):
        assert block.count() == 1, f"{hand.slug} has no prediction"
        assert (
            block.get_attribute("data-kind") != "choice" or block.locator("[data-answer=right]").count() == 1
        )


@pytest.mark.of_the_kit
def test_predictions_say_why(desk):
    """An answer reveals why, the right one says so, and the page remembers it."""
    if not desk.asking:
        return
    asked = questions(desk)
    for hand, _ in asked:
        answer(hand)
    desk.page.reload()
    for _, block in asked:
        right = block.get_attribute("data-kind") == "choice"
        expect(block.locator("[data-why]")).to_contain_text("Right." if right else "You said")


def answer(hand: Hand) -> None:
    """Answers a figure's question: where there is a choice, wrongly and then rightly."""
    block = hand.figure.locator("[data-predict]")
    why = block.locator("[data-why]")
    expect(why).to_be_hidden()
    if block.get_attribute("data-kind") != "choice":
        hand.predict()
        expect(why).to_contain_text(re.compile(r"Spot on|Within 10 %|too (low|high)"))
        return
    answers = block.get_by_role("group", name="Your prediction").get_by_role("button")
    assert 2 <= answers.count() <= 4 and block.locator("[data-answer=right]").count() == 1
    block.locator("[data-answer=other]").first.click()
    expect(why).to_be_visible()
    expect(why).to_contain_text("Not quite.")
    block.locator("[data-answer=right]").click()
    expect(why).to_contain_text("Right.")
    expect(block.locator("[data-answer=right]")).to_have_attribute("aria-pressed", "true")


# -- accessibility -------------------------------------------------------------------------------------------
# Opens every fold. A figure fills the table of its data when that is opened, with thousands of cells: the first rows
# stay, and speak for the rest, which go before the browser lays them out.
OPEN_ALL = """async () => {
  let calm = 0;
  const trim = () => document.querySelectorAll("figure.widget table tr:nth-child(n+4)").forEach(row => { row.remove(); calm = 0; });
  const watch = new MutationObserver(trim);
  document.querySelectorAll("figure.widget").forEach(figure => watch.observe(figure, { childList: true, subtree: true }));
  trim();
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  document.querySelectorAll("math > *").forEach(part => part.remove());  // axe is asked nothing of formulas
  for (; calm < 5; calm += 1) await new Promise(done => setTimeout(done, 40));
  watch.disconnect();
}"""


@pytest.mark.of_the_kit(every=2)  # of the lessons that others stand for
def test_axe_finds_no_serious_fault(desk):
    """Folds are opened, too. Of axe all rules in light colours, those about colours in dark ones too. Colours,
    half of the work, come from the styles that lessons share: they are asked of the lessons that stand for all,
    and of every other page."""
    page = desk.page
    desk.hands()  # each lives
    page.wait_for_function("() => !document.querySelector('.md-search:not([aria-label])')")  # named
    page.evaluate(OPEN_ALL)
    if not representatives.is_asked(desk.address):
        assert axe.faults(page, without=axe.COLOURS) == []
        return
    assert axe.faults(page) == []
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(400)
    assert axe.faults(page, only=axe.COLOURS) == []
