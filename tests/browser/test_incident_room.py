"""The incident room, worked through: by mouse and by keyboard, on a phone, from a teacher's link."""

import json

from playwright.sync_api import expect

from tests.browser import axe
from tests.browser.hands import Hand
from tests.browser.phones import PHONE
from widgets.composition.incident_room import CAUSES
from widgets.kit.widget import all_widgets

SLUG = "incident_room"
CLS = all_widgets()[SLUG]
PAGE = f"{SLUG}/"
UNSAID = len(CLS.controls()["rank"].options) - 1


def kept(page, seed: int):
    """What the browser remembers of an incident."""
    text = page.evaluate("seed => localStorage.getItem(`course.incident.${seed}`)", seed)
    return text and json.loads(text)


def opened(hand: Hand) -> list[str]:
    """The documents that are there, and those of them that stand open."""
    there = hand.figure.locator("[data-document]:visible")
    return there.evaluate_all("all => all.map(one => one.dataset.document + (one.open ? '!' : ''))")


def test_a_teachers_link_is_solved_by_keyboard_and_kept(visit, static):
    """Incident 28: the log is there; a look brings its document, opened; the verdict is handed in with the
    space bar, explained, and kept once."""
    page = visit(permissions=["clipboard-read", "clipboard-write"]).go(f"{static}{PAGE}?{SLUG}.seed=28")
    hand = Hand(page, SLUG)
    assert opened(hand) == ["log!"] and set(hand.words()["regimes"]) == {"begin"}
    hand.handle("dumps").press("Space")
    hand.says(seed=28, dumps=1)
    assert opened(hand) == ["log", "of_dumps!"]
    hand.choose("rank", 3)
    hand.choose("cause", list(CAUSES).index("deadlock"))
    hand.handle("handed_in").press("Space")
    hand.says(seed=28, dumps=1, rank=3, cause=list(CAUSES).index("deadlock"), handed_in=1)
    assert set(hand.words()["regimes"]) == {"right", "how"} and opened(hand)[-1] == "result!"
    assert {name: kept(page, 28)[name] for name in ("points", "of")} == {"points": 10, "of": 10}
    assert page.evaluate("localStorage.getItem('course.exam.28')") is None  # the examination's is another
    hand.button("Copy the link to this one").click()
    expect(hand.button("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").endswith(f"{PAGE}?{SLUG}.seed=28")
    hand.button("Another incident").click()
    assert set(hand.words()["regimes"]) <= {"begin"} and opened(hand) == ["log"]


def test_a_tap_on_a_lane_names_the_rank(visit, static):
    """And blaming who complained first is what the figure asks to find."""
    hand = Hand(visit().go(f"{static}{PAGE}"), SLUG)
    place = hand.figure.locator("[data-plot]").bounding_box()
    lanes = []
    for down in range(120, 240, 6):
        hand.page.mouse.click(place["x"] + 200, place["y"] + down)
        if hand.handle("rank").input_value() == "rank 3":
            lanes.append(down)
    assert lanes and lanes[-1] - lanes[0] < 24  # one lane, and all of it
    hand.page.mouse.click(place["x"] + 200, place["y"] + lanes[0])
    hand.handle("handed_in").click()
    hand.says(rank=3, handed_in=1)
    assert set(hand.words()["regimes"]) == {"blamed_the_witness", "how"}


def test_an_answer_seen_first_earns_nothing(visit, static):
    page = visit().go(f"{static}{PAGE}?{SLUG}.seed=5&{SLUG}.handed_in=on")
    hand = Hand(page, SLUG)
    hand.says(seed=5, handed_in=1)
    assert kept(page, 5) == {"points": 0, "of": 10, "seen": True}


def test_it_is_worked_on_a_phone_in_the_dark_and_served(visit, origin):
    """The evidence stands above the form; nothing is wider than the screen; axe finds no fault."""
    page = visit(**PHONE, color_scheme="dark", reduced_motion="reduce").go(f"{origin}{PAGE}?{SLUG}.seed=3")
    hand = Hand(page, SLUG)
    hand.handle("times").click()
    hand.says(seed=3, times=1)
    evidence, form = (
        hand.figure.locator(place).first.bounding_box()
        for place in ('[data-document="of_times"] pre', "[data-paper]")
    )
    assert evidence["height"] > 200 and evidence["y"] + evidence["height"] <= form["y"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    hand.choose("handed_in", 1)
    hand.says(seed=3, times=1, handed_in=1)
    assert page.evaluate("document.documentElement.scrollWidth") == 390 and axe.faults(page) == []
