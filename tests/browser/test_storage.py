"""What a browser keeps for a reader, and how a page fares where that is spoilt, full or shared with another tab;
and how it is printed, shown without motion, and read aloud."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.hands import Hand, lessons
from tests.conftest import ROOT
from tests.states import ALL_OF_THEM
from widgets.kit.widget import all_widgets

LESSON = "04-data-parallel/"
PAGES = ("", LESSON, "progress/", "paths/", "planner/", "memory_stack/", "01-why-distributed/slides/")
LONG = "x" * 30_000
RUBBISH = [
    "",
    "null",
    "[]",
    "{}",
    "7",
    "-1",
    '"x"',
    "[[",
    "true",
    '{"__proto__": 1}',
    '[{"url": 3}]',
    "\x00",
    LONG,
]
RUBBISH += [
    '{"color": 7}',
    '{"color": {}}',
    '{"color": {"scheme": []}}',
    '{"index": 1}',
    "NaN",
    "1e999",
    "<img src=x>",
]
GOOD = {
    "course.read": '["04-data-parallel"]',
    "course.predict": "off",
    "course.predicted.memory_stack.a-question": "1",
    "course.skipped.memory_stack.a-question": "yes",
    "course.first.memory_stack.a-question": "1.5",
    "course.broke.memory_stack": "yes",
    "course.won.fit-7b": "yes",
    "course.shown.fit-7b": "yes",
    "course.solved.ring_step": "yes",
    "course.dots.hidden": "no",
    "course.answer.04-data-parallel.exercise-1.0": "8 GB",
    "course.puzzle.ring_step": "def chunk_to_send(rank, ranks, step):\n    return 0\n",
    "course.path": '{"key": "a", "name": "A", "steps": [{"url": "x/", "title": "X", "why": ""}], "at": 0, "seen": []}',
    "course.exam.1": '{"points": 3, "of": 8, "answers": {}}',
    "/.__palette": '{"index":1,"color":{"media":"(prefers-color-scheme: light)","scheme":"default","primary":"custom","accent":"custom"}}',
    "/.__tabs": '["PyTorch"]',
    "/.__announce": "12345",
}
KEEP = "kept => { localStorage.clear(); for (const [key, text] of Object.entries(kept)) localStorage.setItem(key, text); }"
KEPT = "() => Object.fromEntries(Object.keys(localStorage).map(key => [key, localStorage.getItem(key)]))"


def test_every_key_that_a_script_writes_is_in_the_schema():
    """A new one needs a line in storage.js, and one above."""
    assets = ROOT / "site" / "theme" / "assets"
    schema = (assets / "js" / "storage.js").read_text(encoding="utf-8")
    ours = set(
        re.findall(r"^    (\w+): ", schema[schema.index("OURS =") : schema.index("THEIRS =")], re.MULTILINE)
    )
    assert ours == {key.split(".")[1] for key in GOOD if key.startswith("course.")}
    written = set()
    for script in assets.rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        if "puzzle/sandbox" not in script.as_posix():  # it keeps texts in a map of its own
            written |= set(re.findall(r"kept\.[gs]et\([`\"](\w+)", text))
    assert written <= ours and len(written) > 6, written - ours


def test_what_is_sound_stays(visit, static):
    window = visit()
    page = window.go(static + LESSON)
    page.evaluate(KEEP, GOOD)
    page = window.go(static + LESSON)
    assert page.evaluate(KEPT) == GOOD


@pytest.mark.parametrize("half", [0, 1])
def test_whatever_stands_there_no_page_breaks(visit, static, half):
    """Every key with every kind of rubbish, in turn on the pages; ``visit`` fails at any error of a page's."""
    window = visit()
    page = window.go(static + LESSON)
    for number in range(half, len(RUBBISH), 2):
        spoilt = {key: RUBBISH[(number + at) % len(RUBBISH)] for at, key in enumerate(GOOD)}
        page.evaluate(KEEP, spoilt)
        page = window.go(static + PAGES[number % len(PAGES)])
        left = page.evaluate(KEPT)
        assert page.locator("body").get_attribute("data-md-color-scheme") in ("default", "slate")
        for key in ("/.__palette", "course.read", "course.path", "course.exam.1"):
            assert key not in left or isinstance(json.loads(left[key]), list | dict), (key, left.get(key))


@pytest.mark.parametrize(
    "value", ["[]", '"x"', "7", "{}", '{"color": null}', '{"color": "x"}', '{"color": {"scheme": 3}}']
)
def test_no_theme_that_was_kept_breaks_a_page(visit, static, value):
    window = visit()
    page = window.go(f"{static}404.html")
    page.evaluate(KEEP, {"/.__palette": value})
    for address in ("paths/", "memory_stack/"):
        page = window.go(static + address)
        assert page.locator("body").get_attribute("data-md-color-scheme") in ("default", "slate")
        assert page.evaluate(KEPT).get("/.__palette") != value


def test_a_full_browser_loses_only_what_it_cannot_keep(visit, static):
    window = visit(figures=["ddp_overlap"])
    page = window.go(f"{static}progress/")
    page.evaluate(
        "() => { for (let i = 0, text = 'x'.repeat(2 ** 20); i < 40 && text; ) try { localStorage.setItem(`fill${i++}`, text); } catch { text = text.slice(text.length / 2 + 1); } }"
    )
    page = window.go(static + LESSON)
    page.evaluate("document.querySelector('[data-lesson-end]').scrollIntoView()")
    page.evaluate(
        "() => { try { localStorage.setItem('more', 'x'.repeat(9)); localStorage.removeItem('more'); } catch {} }"
    )
    hand = Hand(page, lessons()[LESSON][0])
    hand.says(**hand.initial() | {hand.slider(): hand.drag(hand.slider(), 3)})
    page = window.go(f"{static}paths/")
    expect(page.locator("h1")).to_be_visible()


def test_two_tabs_agree(visit, static):
    """What one marks as read, the other shows, without being asked; and neither answers the other without end."""
    one, page = visit(figures=[]), None
    page = one.go(f"{static}progress/")
    other = page.context.new_page()
    other.goto(f"{static}progress/")
    row = "tr:has(a[href*='04-data-parallel']) [data-cell=read]"
    before = other.locator("table").first.inner_text()
    page.evaluate(
        "() => { localStorage.setItem('course.read', '[\"04-data-parallel\"]'); dispatchEvent(new Event('course-kept')); }"
    )
    other.wait_for_function("before => document.querySelector('table').innerText !== before", arg=before)
    assert row and other.evaluate("localStorage['course.read']") == '["04-data-parallel"]'
    page.evaluate("localStorage.setItem('course.read', '{')")  # and rubbish from there is dropped here
    other.wait_for_function("() => localStorage.getItem('course.read') === null")
    other.close()


@pytest.mark.parametrize("slug", sorted(all_widgets()) if ALL_OF_THEM else ["memory_stack", "ddp_overlap"])
def test_a_figure_is_read_aloud(visit, static, slug):
    """The tree that a screen reader has: the figure by its question, the picture with the sentence that says what it
    shows, the controls by name, the readouts; and what changes is announced."""
    page = visit(figures=[slug]).go(f"{static}{slug}/")
    hand = Hand(page, slug)
    question = hand.figure.locator(".widget-title").inner_text()
    summary = hand.figure.locator("[data-summary]").inner_text()
    picture = hand.figure.get_by_role("application", name=question, exact=False).first
    expect(picture).to_be_visible()
    described = picture.evaluate(
        "node => (node.getAttribute('aria-describedby') ?? '').split(' ').map(id => document.getElementById(id)?.innerText ?? '').join(' ')"
    )
    assert summary in described
    tree = hand.figure.aria_snapshot()
    assert f'heading "{question}"' in tree.replace("\u00a0", " ") or question[:20] in tree
    for control in hand.figure.locator("[role=slider]:visible, input:visible, select:visible").all():
        assert (
            control.evaluate(
                "node => (node.labels?.[0]?.innerText ?? node.getAttribute('aria-label') ?? '').length"
            )
            > 2
        )
    for readout in hand.figure.locator("[data-readout]").all():
        assert readout.text_content().strip() and readout.evaluate(
            "node => !node.closest('[aria-hidden=true]')"
        )
    said = hand.figure.locator("[data-summary]")
    assert said.get_attribute("aria-live") == "polite"
    told = {label: hand.cls(**values).shown()["summary"] for label, values in hand.cls.presets.items()}
    home = hand.cls().shown()["summary"]
    label = next(label for label, sentence in told.items() if sentence != home)
    hand.button(label).click()
    expect(said).not_to_have_text(summary)


def test_on_paper_every_figure_is_there(visit, static):
    page = visit().go(static + LESSON)
    page.emulate_media(media="print")
    for slug in lessons()[LESSON]:
        figure = page.locator(f"figure[data-widget={slug}]").first
        expect(figure.locator("[data-plot]")).to_be_visible()
        expect(figure.locator("[data-summary]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_who_wants_no_motion_sees_none(visit, static):
    page = visit(reduced_motion="reduce").go(static + LESSON)
    hand = Hand(page, lessons()[LESSON][0])
    hand.drag(hand.slider(), 3)
    running = "() => document.getAnimations().filter(one => one.playState === 'running' && one.effect.getComputedTiming().duration > 50).length"
    assert page.evaluate(running) == 0
