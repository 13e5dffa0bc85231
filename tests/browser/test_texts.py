"""No text of a figure lies on another or is cut, no line or mark goes through one (where a figure says so), and
none moves unnoticed.

Each widget's own page is shown at three widths: that of a desk, that at which a lesson shows
it, and a phone's. Its picture says of each text that it paints where its ink lies, and what passes through it
(texts.js). ``make test`` looks at the picture at rest and where *break it* leads at all three, and at every other of
the rest in a lesson's width (where no line may pass, on a phone too); ``make baselines`` looks at everything at all three, and
moves each number to its ends.

The texts' places at rest and at the target are kept in baselines/, and what stands elsewhere than it did is
said. ``make baselines ACCEPT=1`` keeps what is there now; git shows the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from course import fonts
from tests import states
from tests.browser import boxes
from tests.browser.hands import Hand
from widgets.kit.drawing import lettering, tokens
from widgets.kit.widget import all_widgets

WIDTHS = {
    "1280": 1280,
    "lesson": 780,
    "390": 390,
}  # 780: 706 px of picture, as in a lesson on a screen of 1280
# The figures of lessons 13 to 19. In others some lines still pass through words.
CLEAR_OF_LINES = {slug for slug, cls in all_widgets().items() if cls.__module__.startswith("widgets.gpu.")}
# The cards that a window of 900 pixels does not show whole. A figure that is not among them stays below that.
HIGHER = (
    "allocator_replay",
    "bandwidth_pyramid",
    "dispatcher_trace",
    "flash_attention",
    "float_explorer",
    "fusion",
    "graph_breaks",
    "incident_room",
    "layout_exam",
    "layout_planner",
    "loss_scaling",
    "moe_routing",
    "ring_attention",
    "tensor_split",
    "topology_placement",
)
FAINT = {colour.lower() for colour in tokens.of_both_themes()["grid"].values()}  # lines that do not disturb
KEPT = Path(__file__).with_name("baselines")
TEXTS = Path(__file__).with_name("texts.js").read_text(encoding="utf-8")
EVERYTHING, ACCEPT = (bool(os.environ.get(name)) for name in ("BASELINES", "ACCEPT"))


@pytest.fixture
def still(own_page, static) -> Hand:
    """The widget as who opens it sees it, and nothing glides."""
    page = own_page.page
    if own_page.moved:
        own_page.anew(f"{static}{own_page.slug}/")
    own_page.button("reset").click()
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(TEXTS)
    yield own_page
    page.emulate_media(reduced_motion="no-preference")
    page.set_viewport_size({"width": WIDTHS["1280"], "height": 900})


def pictures(cls) -> dict[str, dict]:
    """Each state to look at, by its name: first the two whose texts are kept."""
    low, high = states.ends_of_the_main_slider(cls)
    home = states.default(cls)
    ends = {
        f"{name} at {end:g}": home | {name: end}
        for name, control in cls.controls().items()
        if EVERYTHING and control.kind == "number"
        for end in (states.values_of(control)[0], states.values_of(control)[-1])
    }
    return (
        {"at rest": states.default(cls), "target": states.at_the_target(cls)}
        | dict(zip(cls.presets, states.presets(cls)))
        | {"least": low, "most": high}
        | ends
    )


def seen(hand: Hand) -> dict[str, list[boxes.Text]]:
    """The texts of each picture by its name: "lesson, at rest"."""
    page, slug, found = hand.page, hand.slug, {}
    pairs = [*pictures(hand.cls).items()]
    named = dict(pairs if EVERYTHING else [*pairs[:2], *states.daily(pairs[2:])])
    for width, pixels in WIDTHS.items():
        all_of_it = EVERYTHING or width == "lesson" or (width == "390" and slug in CLEAR_OF_LINES)
        some = named if all_of_it else dict(list(named.items())[:2])
        page.set_viewport_size({"width": pixels, "height": 900})
        page.evaluate("resized()")
        if width == "1280":
            height = hand.figure.locator(".widget-card").bounding_box()["height"]
            assert height <= 900 or slug in HIGHER, "on a desk the figure is not seen whole"
        noted = page.evaluate(
            "([states, struck]) => textsIn(states, struck)", [list(some.values()), slug in CLEAR_OF_LINES]
        )
        found |= {f"{width}, {name}": boxes.read(texts) for name, texts in zip(some, noted)}
    return found


def test_no_text_lies_on_another_or_is_cut(still):
    found, slug = seen(still), still.slug
    assert all(found.values()), "nothing is written on this picture"
    strange = {letter for texts in found.values() for text in texts for letter in text.words}
    assert {ord(letter) for letter in strange} <= fonts.SANS, "a letter is missing in the figures' font"
    wrong = [f"{name}: {fault}" for name, texts in found.items() for fault in boxes.faults(texts)]
    if slug in CLEAR_OF_LINES:
        wrong += [f"{name}: {fault}" for name, texts in found.items() for fault in boxes.struck(texts, FAINT)]
    wrong += moved(slug, {name: boxes.account(texts) for name, texts in found.items()})
    assert not wrong, "\n".join(wrong)


def test_words_are_as_wide_as_they_are_reckoned(glance, static):
    """The figures' font is there, and the widths by which keys are packed are its own."""
    words = ["keys and values", "AllReduce, network", "1,234.5 GB/s", "t ≤ 8 → −79 %", "Wavelength"]
    page = glance().go(f"{static}memory_stack/")
    Hand(page, "memory_stack")
    measured = page.evaluate(
        """words => {
      const ctx = document.createElement("canvas").getContext("2d");
      ctx.font = "13px 'Course Sans'";
      ctx.fontKerning = "none";
      return words.map(each => ctx.measureText(each).width);
    }""",
        words,
    )
    assert measured == pytest.approx([lettering.width(each) for each in words], rel=0.01)


def moved(slug: str, now: dict[str, boxes.Account]) -> list[str]:
    """What stands elsewhere than in the baseline; nothing once that is accepted."""
    path = KEPT / f"{slug}.txt"
    now = {name: account for name, account in now.items() if name.endswith(("at rest", "target"))}
    if not path.exists() and not ACCEPT:
        return []  # a new figure, which tests/course/test_gallery.py asks for
    kept = boxes.parsed(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = [
        f"{name}: {difference}"
        for name in dict.fromkeys((*kept, *now))
        for difference in boxes.differences(kept.get(name, []), now.get(name, []))
    ]
    if not (found and ACCEPT):
        return found
    KEPT.mkdir(exist_ok=True)
    path.write_text(boxes.written(now), encoding="utf-8")
    print(f"\n{slug}: accepted", *found, sep="\n  ")
    return []
