"""The examination, sat: to full marks and to a failure, by mouse and by keyboard; kept, shared, and not given
away."""

import json

from playwright.sync_api import expect

from engine.base.units import DAY
from engine.exam import examination
from tests.browser import axe
from tests.browser.hands import Hand
from tests.browser.phones import PHONE
from widgets.kit.widget import all_widgets

SLUG = "layout_exam"
CLS = all_widgets()[SLUG]
PAGE = "examination/"


def raw(texts: dict) -> dict:
    """A state in texts as the page holds it."""
    widget = CLS()
    widget.set_state({name: str(text) for name, text in texts.items()})
    return widget.raw_state()


def kept(page, seed: int):
    """What the browser remembers of a spec."""
    text = page.evaluate("seed => localStorage.getItem(`course.exam.${seed}`)", seed)
    return text and json.loads(text)


def type_in(hand: Hand, name: str, text: str) -> None:
    hand.field(name).fill(text)
    hand.field(name).press("Enter")


def test_it_is_sat_to_full_marks_then_shared_and_failed(visit, static):
    """Spec 1917 by hand: answers are chosen, nothing is shown, it is handed in with the keyboard and kept;
    the link to it has no answer; the second paper, with every answer left as it is, fails."""
    window = visit(permissions=["clipboard-read", "clipboard-write"])
    page = window.go(f"{static}{PAGE}")
    hand, worked = Hand(page, SLUG), raw(CLS.presets["Worked below: 1917"])
    type_in(hand, "seed", "1917")
    for name in ("tp", "pp", "ep", "binds"):
        hand.choose(name, worked[name])
    type_in(hand, "memory", "80 GB")
    type_in(hand, "run_s", "72")
    hand.says(**worked | {"handed_in": 0})
    assert (
        set(hand.words()["readouts"].values()) >= {"–"}
        and not hand.words()["regimes"]
        and kept(page, 1917) is None
    )
    hand.handle("handed_in").press("Space")
    hand.says(**worked)
    assert set(hand.words()["regimes"]) == {"full_marks"}
    assert {name: kept(page, 1917)[name] for name in ("points", "of")} == {"points": 30, "of": 30}
    expect(hand.figure.locator("[data-paper] [data-said]")).to_contain_text("30 of 30, your first hand-in")

    hand.figure.locator('[data-document="result"] summary').click()
    hand.figure.locator('[data-document="result"]').get_by_role("button", name="copy", exact=True).click()
    expect(
        hand.figure.locator('[data-document="result"]').get_by_role("button", name="copied")
    ).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith(
        "System ML, examination 1917: 30 of 30 points\n"
    )
    hand.button("Copy the link to this one").click()
    expect(hand.button("Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.endswith(f"{PAGE}?{SLUG}.seed=1917")

    type_in(hand, "seed", "8")  # a new paper takes the answer away
    hand.says(**worked | {"seed": 8, "handed_in": 0})
    hand.handle("handed_in").click()
    hand.says(**worked | {"seed": 8})
    assert (
        kept(page, 8)["points"] == 0 and kept(page, 1917)["points"] == 30
    )  # a dense model has no experts to share out
    Hand(visit().go(link), SLUG).says(seed=1917)


def test_an_answer_seen_first_is_worth_nothing(visit, static):
    """By a link that shows it, and by a preset; what was handed in before stays."""
    page = visit().go(f"{static}{PAGE}?{SLUG}.seed=2026&{SLUG}.handed_in=on")
    hand = Hand(page, SLUG)
    hand.says(seed=2026, handed_in=1)
    assert kept(page, 2026) == {"points": 0, "of": 30, "seen": True}
    expect(hand.figure.locator("[data-paper] [data-said]")).to_contain_text("no points are kept")
    hand.choose("handed_in", 0)
    hand.choose("tp", 2)
    hand.choose("handed_in", 1)
    hand.says(seed=2026, handed_in=1, tp=2)
    assert kept(page, 2026)["seen"]
    hand.button("Worked below: 1917").click()
    hand.says(**raw(CLS.presets["Worked below: 1917"]))
    assert kept(page, 1917) == {"points": 0, "of": 30, "seen": True}


def test_lost_points_lead_to_their_lessons_and_another_spec_begins_anew(visit, static):
    """Reasons name lessons by links; the drawn number is of its kind; neither theme has a fault that axe
    finds."""
    page = visit(reduced_motion="reduce").go(f"{static}{PAGE}")
    hand = Hand(page, SLUG)
    hand.button("Tensor 8 by reflex: 1917").click()
    hand.says(**raw(CLS.presets["Tensor 8 by reflex: 1917"]))
    line = hand.figure.locator('[data-regime="slower"]')
    assert line.get_by_role("link").evaluate_all("all => all.map(one => one.href)") == [
        f"{static}06-tensor-parallel/"  # the degree is what to change
    ]
    assert axe.faults(page) == []
    hand.button("A warm-up").click()
    assert 1 <= hand_seed(page) < examination.WARM_UPS
    hand.says(seed=hand_seed(page))
    hand.button("Another spec").click()
    assert hand_seed(page) >= examination.WARM_UPS and not hand.words()["regimes"]
    hand.says(seed=hand_seed(page))
    line = hand.figure.locator("[data-regime]")
    expect(line).to_have_count(0)


def test_an_estimate_is_understood_in_any_unit_of_time_or_said_not_to_be(visit, static):
    hand = Hand(visit().go(f"{static}{SLUG}/"), SLUG)
    for typed, days in (("17.6 days", 17.6), ("2 weeks", 14), ("36 h", 1.5), ("1 year", 365.25), ("12", 12)):
        type_in(hand, "run_s", typed)
        hand.says(run_s=days * DAY)
    for typed in ("3e4", "1.2k", "41 GB", "soon"):
        type_in(hand, "run_s", typed)
        hand.says(run_s=12 * DAY)
        expect(hand.figure.locator("[data-note]")).to_contain_text(f"cannot be “{typed}”")
    type_in(hand, "seed", "1.2k")
    hand.says(seed=1200, run_s=12 * DAY)


def hand_seed(page) -> int:
    """The number of the spec as its field shows it."""
    return int(page.get_by_label("Spec number, typed").input_value().replace(",", ""))


def test_it_can_be_sat_on_a_phone_and_served(visit, origin):
    """Nothing is wider than the screen, handed in or not, with Python behind the page or without."""
    page = visit(**PHONE, color_scheme="dark").go(f"{origin}{PAGE}?{SLUG}.seed=8")
    hand = Hand(page, SLUG)
    hand.choose("zero", 3)
    for handed_in in (0, 1):
        hand.choose("handed_in", handed_in)
        hand.says(seed=8, zero=3, handed_in=handed_in)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
