"""The core of it in Firefox: every lesson opens, its widgets live, take the link's state and a hand, and say
Python's words."""

import json

import pytest

from tests.browser.firefox import Firefox
from tests.browser.hands import PIXELS, THUMB, expected, lessons
from tests.browser.test_hands import telling
from tests.representatives import ALL_OF_THEM, addresses
from widgets.kit.widget import all_widgets

ALIVE = """() => { const all = [...document.querySelectorAll("figure.widget")];
  return all.length > 0 && all.every(figure => figure.dataset.state === "live"); }"""
WORDS = """slug => { const figure = document.querySelector(`figure[data-widget="${slug}"]`);
  const said = place => place.textContent.replaceAll("\\u00a0", " ");
  const texts = name => Object.fromEntries([...figure.querySelectorAll(`[data-${name}]`)].map(place => [place.dataset[name], said(place)]));
  return { readouts: texts("readout"), regimes: texts("regime"), summary: said(figure.querySelector("[data-summary]")) }; }"""
SLIDER = """(slug, name) => {
  const slider = document.querySelector(`figure[data-widget="${slug}"] [data-control="${name}"] input[type=range]`);
  slider.scrollIntoView({ block: "center", behavior: "instant" });
  const { left, top, width, height } = slider.getBoundingClientRect();
  return { left, top, width, height, at: slider.valueAsNumber, last: Number(slider.max) }; }"""
PICTURE = f'slug => ({PIXELS})(document.querySelector(`figure[data-widget="${{slug}}"]`))'
INITIAL = """slug => document.querySelector(`figure[data-widget="${slug}"]`).dataset.initial"""
FRACTION = """() => { const fraction = [...document.querySelectorAll("math mfrac")].find(each => each.checkVisibility());
  if (!fraction) return true;
  const [over, under] = [...fraction.children].map(each => each.getBoundingClientRect());
  return over.height > 0 && over.bottom <= under.top + 3; }"""
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
CALM = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50, true))))"


@pytest.fixture(scope="module")
def firefox():
    started = Firefox()
    yield started
    started.close()


@pytest.fixture
def tab(firefox):
    """A tab of its own, on which nothing may go wrong."""
    opened = firefox.open()
    firefox.faults.clear()
    yield opened
    opened.close()
    # Firefox fetches the next lesson ahead (rel=next), and stops when the tab is closed first: that is no
    # fault
    assert [fault for fault in firefox.faults if "NS_BINDING_ABORTED" not in fault] == []


def dragged(tab, slug: str, control, value: float) -> float:
    """Drags a slider to the stop of a value, or one beside it where they stand close; gives the value
    there."""
    box = tab.ask(SLIDER, slug, control.name)

    def place(stop: int) -> float:
        return box["left"] + THUMB / 2 + (box["width"] - THUMB) * stop / box["last"]

    tab.drag(place(box["at"]), box["top"] + box["height"] / 2, place(int(abs(control.grid - value).argmin())))
    return float(control.grid[tab.ask(SLIDER, slug, control.name)["at"]])


def says(tab, slug: str, **values) -> None:
    """The widget's words become Python's for these controls."""
    wanted = expected(slug, **values)
    tab.until(f"(slug, summary) => ({WORDS})(slug).summary === summary", slug, wanted["summary"])
    assert tab.ask(WORDS, slug) == wanted


@pytest.mark.parametrize("address", lessons() if ALL_OF_THEM else addresses()[::4])
def test_a_lesson_lives_takes_its_link_and_a_hand(tab, static, address):
    moved = {
        slug: (all_widgets()[slug].controls()[name], index)
        for slug in lessons()[address]
        for name, index in [telling(slug)]
    }
    query = "&".join(
        f"{slug}.{control.name}={control.write(control.grid[index])}"
        for slug, (control, index) in moved.items()
    )
    tab.go(f"{static}{address}?{query}")
    tab.until(ALIVE)
    assert tab.ask(FRACTION), "a fraction is not drawn as one"
    for slug, (control, index) in moved.items():
        home = json.loads(tab.ask(INITIAL, slug))
        says(tab, slug, **home | {control.name: control.grid[index]})
        before = tab.ask(CALM) and tab.ask(PICTURE, slug)
        assert len(before) > 2000
        if not control.slider:
            continue  # a number that is typed
        says(
            tab,
            slug,
            **home | {control.name: dragged(tab, slug, control, home.get(control.name, control.default))},
        )
        tab.until(f"(slug, before) => ({PICTURE})(slug) !== before", slug, before)
    tab.resize(390, 844)
    tab.ask(CALM)
    assert tab.ask(SIDEWAYS) == 0


def test_the_theme_is_changed_in_place(tab, static):
    address, slugs = next(iter(lessons().items()))
    tab.go(static + address)
    tab.until(ALIVE)
    light = tab.ask(PICTURE, slugs[0])
    scheme = "() => document.body.dataset.mdColorScheme"
    for _ in range(3):
        if tab.ask(scheme) == "slate":
            break
        tab.until(  # the switch comes with the shell, after the figures
            "() => { const label = [...document.querySelectorAll('label[for^=__palette]')].find(each => "
            "each.checkVisibility()); label?.click(); return !!label; }"
        )
        tab.ask(CALM)
    assert tab.ask(scheme) == "slate"
    tab.ask(CALM)
    assert tab.ask(PICTURE, slugs[0]) != light


def test_with_python_behind_the_page(tab, served):
    address, slugs = next(iter(lessons().items()))
    tab.go(served + address)
    tab.until(ALIVE)
    name, index = telling(slugs[0])
    control = all_widgets()[slugs[0]].controls()[name]
    value = dragged(tab, slugs[0], control, control.grid[index])
    says(tab, slugs[0], **json.loads(tab.ask(INITIAL, slugs[0])) | {name: value})
