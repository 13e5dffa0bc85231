"""A reader's hand on real pages: drags, keys, typed values, presets, links. What is seen is what Python says,
both ways served."""

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from bench.pages import main_slider
from engine.base import check
from engine.step import strategy
from tests import states
from tests.browser.hands import Hand, drawn, expected, lessons, numbers
from tests.representatives import ALL_OF_THEM, addresses
from widgets.kit.widget import all_widgets

WIDGETS = sorted(all_widgets())


def slider(slug: str) -> str:
    """The first slider in view, or "": a form's parts are open."""
    cls = all_widgets()[slug]
    sliders = (
        name
        for name, control in cls.controls().items()
        if control.kind == "number" and control.slider and (not control.more or control.more in cls.sections)
    )
    return next(sliders, "")


def telling(slug: str) -> tuple[str, int]:
    """The main slider and the end of it whose words differ most from the default's: (control, index)."""
    home, best = expected(slug), None
    for number in numbers(slug):
        for index in (0, len(number.grid) - 1):
            moved = expected(slug, **{number.name: float(number.grid[index])})
            changed = sum(moved["readouts"][key] != text for key, text in home["readouts"].items())
            if moved["summary"] != home["summary"] and changed and (best is None or changed > best[0]):
                best = changed, number.name, index
    assert best, f"no main slider of {slug} changes readout and summary"
    return best[1:]


def test_every_widget_is_on_a_lesson():
    assert {slug for slugs in lessons().values() for slug in slugs} == set(WIDGETS)


@pytest.mark.parametrize("address", lessons() if ALL_OF_THEM else addresses()[::2])
def test_a_lesson_served_brings_every_widget_to_life(glance, served, address):
    drawn(glance().go(served + address), lessons()[address])


@pytest.fixture
def slug(own_page) -> str:
    return own_page.slug


@pytest.fixture
def hand(own_page) -> Hand:
    """The widget on its own page, in its default state."""
    own_page.moved = True
    own_page.button("reset").click()
    return own_page


@pytest.fixture
def fresh(own_page, static) -> Hand:
    """The widget as a browser meets it that remembers nothing."""
    own_page.anew(f"{static}{own_page.slug}/")
    own_page.moved = True
    return own_page


@pytest.mark.of_the_kit
def test_a_drag_changes_picture_readout_and_summary(hand, slug):
    """The picture follows while the button is still down; at the end all words are Python's for the value
    dragged to. The slider that bench drags is in view. That each figure paints its states without a fault is
    seen where its texts are read (test_texts.py), that its page computes them, in test_equality.py."""
    led = main_slider(slug)
    assert led is None or hand.figure.locator(f"[data-control={led}] input[type=range]").is_visible()
    hand.says()
    before, seen = hand.words(), {hand.rested()}
    name, index = telling(slug)
    value = hand.drag(name, index, on_the_way=lambda: seen.add(hand.pixels()))
    hand.says(**{name: value})
    if not hand.cls.controls()[name].slider:
        seen.add(hand.rested())
    after = hand.words()
    assert after["summary"] != before["summary"] and after["readouts"] != before["readouts"]
    assert len(seen) >= 2, "the picture did not move while the button was down"


@pytest.mark.of_the_kit
def test_every_control_has_an_effect(hand, slug):
    """Each control that matters in the default state, moved: words or picture change, and the words are
    Python's; of every other control, unless all are asked (that none is without an effect in Python,
    tests/widgets/test_contract.py asks of each). What is told to a paper shows when it is handed in."""
    words, paper = hand.words(), hand.cls.paper
    names = [name for name, control in hand.cls.controls().items() if control.kind != "player"]
    for name in states.daily(names):
        value = states.telling_value(hand.cls, name, states.default(hand.cls))
        if value is not None:
            hand.move(name, value)
            hand.says(**{name: value})
            if paper and hand.words() == words:
                hand.choose(paper["done"], 1)
                hand.says(**{name: value, paper["done"]: 1})
            picture = hand.words() == words and hand.rested()  # looked at only where the words are the same
            hand.button("reset").click()
            assert not picture or hand.rested() != picture, f"{name} changes nothing"


@pytest.mark.of_the_kit
def test_arrow_keys_move_a_slider_stop_by_stop(hand, slug):
    name = slider(slug)
    if not name:
        pytest.skip("this figure has no slider in view")
    handle, grid = hand.handle(name), hand.cls.controls()[name].grid
    middle, last = len(grid) // 2, len(grid) - 1
    hand.drag(name, middle)
    spoken = handle.get_attribute("aria-valuetext")
    for key, at in {
        "ArrowRight": middle + 1,
        "ArrowUp": middle + 2,
        "ArrowLeft": middle + 1,
        "End": last,
        "Home": 0,
    }.items():
        handle.press(key)
        assert handle.input_value() == str(at)
    hand.says(**{name: float(grid[0])})
    assert handle.get_attribute("aria-valuetext") not in (None, "", spoken)


@pytest.mark.of_the_kit
def test_nonsense_typed_is_refused_and_taken_back(hand, slug):
    name = hand.slider()
    field, home = hand.field(name), hand.field(name).input_value()
    for text in ("nonsense", "", "1e999", "<b>3</b>", "-1e300"):
        field.fill(text)
        field.dispatch_event("change")
        expect(field).to_have_attribute("aria-invalid", "true")
        field.blur()
        expect(field).to_have_value(home)
        expect(field).not_to_have_attribute("aria-invalid", "true")
    hand.says()


@pytest.mark.of_the_kit
def test_each_preset_shows_its_state_and_reset_goes_back(hand, slug):
    for label, state in zip(hand.cls.presets, states.presets(hand.cls), strict=True):
        hand.button(label).click()
        hand.says(**state)
    hand.button("reset").click()
    hand.says()
    hand.page.wait_for_function("() => location.search === ''")


WANDER = """figure => {
  const place = figure.querySelector("[data-plot]"), note = figure.querySelector(".widget-hint"), box = place.getBoundingClientRect();
  const said = new Set();
  for (let down = 4; down < 100; down += 6) for (let across = 2 + down % 5; across < 100; across += 4) {
    place.dispatchEvent(new PointerEvent("pointermove", { bubbles: true,
      clientX: box.left + box.width * across / 100, clientY: box.top + box.height * down / 100 }));
    if (!note.hidden) said.add(note.textContent.replaceAll("\u00a0", " "));  // as texts have it that are not shown
  }
  return [...said];
}"""


@pytest.mark.of_the_kit
def test_marks_speak_under_the_pointer(hand, slug):
    """A pointer that wanders over the whole picture meets words that are Python's, and no fault
    (test_hints.py has a real one)."""
    widget = all_widgets()[slug]()
    hints, parts = widget.hints(), widget.shown()["parts"]
    drawn = [
        name for name in hints if np.any(parts[name].get("seen", True))
    ]  # measured points fit few states
    texts = {text for column in hints.values() for text in column}
    said = set(hand.figure.evaluate(WANDER)) if texts else set()
    assert bool(said) == bool(drawn) and said <= texts


@pytest.mark.of_the_kit
def test_a_typed_value_may_stand_between_the_stops(visit, origin):
    hand = Hand(visit().go(f"{origin}memory_stack/"), "memory_stack")
    for text, value in (("71.3B", 71.3e9), ("1,234 M", 1.234e9), ("7e10", 7e10), ("0.5T", 5e11)):
        hand.field("size").fill(text)
        hand.field("size").press("Enter")
        hand.says(size=value)


# -- the state in the address --------------------------------------------------------------------------------
@pytest.mark.of_the_kit
def test_the_address_holds_the_state_and_brings_it_back(hand, slug):
    """Moved controls appear in the address; the copied link, opened by who remembers nothing, shows the
    same."""
    name, index = telling(slug)
    moved = {name: hand.drag(name, index)}
    for other, control in hand.cls.controls().items():
        if control.kind in ("choice", "switch") and not getattr(control, "more", False):
            moved[other] = next(v for v in states.values_of(control) if v != states.default(hand.cls)[other])
            hand.choose(other, moved[other])
    hand.says(**moved)
    hand.page.wait_for_function("count => new URLSearchParams(location.search).size >= count", arg=len(moved))
    query = parse_qs(urlsplit(hand.page.url).query)
    assert set(query) == {f"{slug}.{control}" for control in moved}
    hand.button("link").click()
    expect(hand.figure.locator("[data-copy]")).to_have_attribute("data-done", "copied")
    copied = hand.page.evaluate("navigator.clipboard.readText()")
    hand.page.evaluate("localStorage.clear()")
    hand.page.goto(copied)
    Hand(hand.page, slug).says(**moved)


BAD = {
    "not a number": ("size=nan", "Model size cannot be “nan”"),
    "infinite": ("size=1e999", "Model size cannot be “1e999”"),
    "out of range": ("size=-3", "Model size cannot be “-3”"),
    "empty": ("size=", "Model size cannot be “”"),
    "words": ("size=70%20billion", "Model size cannot be “70 billion”"),
    "unknown option": ("gpu=abacus", "GPU cannot be “abacus”"),
    "unknown control": ("no_such=3", "there is no control “no_such”"),
    "script": ("size=%3Cscript%3EhackED%3D1%3C/script%3E", "Model size cannot be “<script>"),
    "image": ("size=%3Cimg%20src%3Dx%20onerror%3D%22hackED%3D1%22%3E", "Model size cannot be “<img"),
    "script as control": ("%3Cscript%3EhackED%3D1%3C%2Fscript%3E=3", "there is no control “<script>"),
    "prototype": ("__proto__=3", "there is no control “__proto__”"),
    "constructor": ("constructor=3", "there is no control “constructor”"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_address_shows_the_default_and_says_so(glance, static, what):
    query, said = BAD[what]
    hand = Hand(glance().go(f"{static}memory_stack/?memory_stack.{query}"), "memory_stack")
    note = hand.figure.locator("[data-note]")
    expect(note).to_be_visible()
    expect(note).to_contain_text(said)
    expect(note).to_contain_text("The default is shown instead")
    hand.says()
    assert hand.page.evaluate("typeof hackED") == "undefined"
    hand.button("reset").click()
    expect(note).to_be_hidden()


def test_what_is_good_in_a_half_bad_address_is_kept(visit, static):
    hand = Hand(
        visit().go(f"{static}memory_stack/?memory_stack.size=13e9&memory_stack.gpu=abacus&other.x=1"),
        "memory_stack",
    )
    expect(hand.figure.locator("[data-note]")).to_be_visible()
    hand.says(size=13e9)


# -- a click on the picture ----------------------------------------------------------------------------------
ROW = """row => {
  const plot = Bokeh.index.roots[0], box = plot.el.getBoundingClientRect();
  const drawn = plot.model.renderers.find(each => each.visible && each.data_source.name === "rows");
  const { x, y } = drawn.data_source.data, { x_scales, y_scales } = plot.frame;
  const right = x ? x_scales.get(drawn.x_range_name).compute(x[row]) : box.width / 2;
  return [box.left + right, box.top + y_scales.get(drawn.y_range_name).compute(y[row]), box.left, box.right];
}"""


@pytest.mark.parametrize("far", [0.1, 0.5, 0.9])
def test_a_click_anywhere_on_a_row_chooses_its_strategy(glance, static, far):
    hand = Hand(glance().go(f"{static}strategy_triangle/"), "strategy_triangle")
    _, y, left, right = hand.page.evaluate(ROW, strategy.KEYS.index("pp"))
    hand.page.mouse.click(left + far * (right - left), y)
    hand.says(strategy=strategy.KEYS.index("pp"))


def test_a_click_on_a_model_s_row_beside_the_cube_chooses_it(glance, static):
    hand = Hand(glance().go(f"{static}regime_cube/"), "regime_cube")
    model = all_widgets()["regime_cube"].controls()["focus"].keys.index("mixtral-8x7b")
    x, y, *_ = hand.page.evaluate(ROW, model)
    hand.page.mouse.click(x, y)
    hand.says(focus=model)


# -- break it ------------------------------------------------------------------------------------------------
def way_to_the_target(slug: str) -> list[dict]:
    """Moves of one control each, by which a hand leaves the target's regime, if it stands in it, and then
    finds it."""
    cls, home, widget = all_widgets()[slug], states.default(all_widgets()[slug]), all_widgets()[slug]()
    target = next(name for name, method in cls.methods("regime_target").items() if method.regime_target)
    moves = [
        {name: value}
        for name, control in cls.controls().items()
        for value in reversed(states.values_of(control))
        if control.kind != "player"
    ]

    def met(*made) -> bool:
        widget.set_raw({name: value for state in (home, *made) for name, value in state.items()})
        with check.trusted():
            return bool(getattr(widget, target)()[0])

    if slug in states.FAR:
        found = states.at_the_target(cls)
        return [{name: value} for name, value in found.items() if value != home[name]]
    if not met():
        one = next((move for move in moves if met(move)), None)
        some = moves[:: max(1, len(moves) // 40)]
        return [one] if one else next([one, two] for one in moves for two in some if met(one, two))
    away = next(move for move in moves if not met(move))
    return [away, next(move for move in moves if met(away, move))]


@pytest.mark.of_the_kit
def test_the_target_is_found_by_hand(fresh, slug):
    hand, line = fresh, fresh.figure.locator("[data-break-it]")
    expect(line).to_be_visible()
    expect(line).not_to_have_attribute("data-found", "yes")
    state = {}
    way = way_to_the_target(slug)
    for move in way:
        for name, value in move.items():
            hand.move(name, value)
        state |= move
        hand.says(**state)
        if move is not way[-1]:
            expect(line).not_to_have_attribute("data-found", "yes")
    expect(line).to_have_attribute("data-found", "yes")
