"""What the page leaves out of BokehJS (skip.js, docs/bokeh.md): all of it with the pinned Bokeh, the same
picture without it, and a figure that lives when Bokeh has renamed a member that a patch needs."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path

import bokeh
import pytest

from tests import states
from tests.browser.hands import Hand
from tests.conftest import ROOT
from tests.representatives import ALL_OF_THEM

SKIP = (ROOT / "site" / "theme" / "assets" / "widget" / "skip.js").read_text(encoding="utf-8")
SCRIPTS = Path(bokeh.__file__).parent / "server" / "static" / "js"
BOKEH = (SCRIPTS / "bokeh.min.js").read_text(encoding="utf-8")
IN_LINES = (SCRIPTS / "bokeh.js").read_text(encoding="utf-8").splitlines()
PAGE = (ROOT / "docs" / "bokeh.md").read_text(encoding="utf-8")
DRAFTS = ROOT / "docs" / "bokeh"
HUNK = re.compile(r"^@@ -(\d+),\d+ \+\d+,\d+ @@\n((?:[ +-].*\n)+)", re.MULTILINE)
LINE = re.compile(r"^  (\w+): \{ patch: \w+, needs: \{ (.+) \} \},$", re.MULTILINE)
OWN = re.compile(r"\b_[a-z]\w+")  # members that are private, as those are that a draft adds
QUOTED = re.compile(r'"([^"]+)"')
CONSTANT = re.compile(r"^const ([A-Z]+) = \[(.+)\];$", re.MULTILINE)
SHORT = {name: QUOTED.findall(items) for name, items in CONSTANT.findall(SKIP)}
# what a patch uses of a view only when it draws, and what Bokeh calls on the copies that are idle
IN_USE = ["v_doit", "visuals", "plot_view", "is_Scalar", "set_base", "map_data", "after_lazy_visuals"]

# boxes and texts with a hatch, many boxes of no width, lanes, wedges, points and lines, texts for a phone alone: and what
# to drag
PICTURES = {
    "memory_stack": "size",
    "rank_mesh": None,
    "pipeline_timeline": None,
    "ring_allreduce": "play",
    "roofline": None,
    "layout_planner": None,
}
MENDS = "clearing"  # changes what is seen, and is no work left out


def needs() -> dict[str, list[str]]:
    """Patch -> the modules, classes and members that it names."""
    found = {}
    for name, text in LINE.findall(SKIP):
        for short, names in SHORT.items():
            text = re.sub(rf"(\.\.\.)?\b{short}\b", ", ".join(f'"{each}"' for each in names), text)
        found[name] = QUOTED.findall(text)
    return found


NEEDS = needs()
NAMES = sorted({name for names in NEEDS.values() for name in names})
MODULES = [name for name in NAMES if "/" in name]
CLASSES = [name for name in NAMES if name[0].isupper()]
MEMBERS = [name for name in NAMES if name not in MODULES + CLASSES]


def renamed(name: str, script: str) -> str:
    """BokehJS in which this word is another one throughout, as a later version may have it; `clear` only in
    the class of the layers, since a Map has one, too."""
    layers = re.search(r"class \w+\{get canvas\(\)\{return this\._canvas\}.*?finish\(\)", script)
    start, end = layers.span() if name == "clear" else (0, len(script))
    word = rf"(?<![\w$]){re.escape(name)}(?![\w$])"
    text, count = re.subn(word, f"{name}_renamed", script[start:end])
    assert count, f"BokehJS has no {name}"
    return script[:start] + text + script[end:]


def skips(page) -> list[str]:
    return page.evaluate("document.documentElement.dataset.skips.split(' ')")


def pictures(hand: Hand) -> tuple[str, str]:
    """The picture at rest and after a drag."""
    name, before = PICTURES[hand.slug] or hand.slider(), hand.pixels()
    count = hand.cls.controls()[name].grid.size
    hand.drag(name, count // 3)
    hand.says(**{name: hand.at(name)})
    return before, hand.rested()


def drafted(*names: str) -> str:
    """The pinned BokehJS with these drafts of pull requests, and without any patch of the page's."""
    lines = list(IN_LINES)
    drafts = [(DRAFTS / f"{name}.diff").read_text(encoding="utf-8") for name in names]
    hunks = [(int(at) - 1, text.splitlines()) for draft in drafts for at, text in HUNK.findall(draft)]
    for at, hunk in sorted(hunks, reverse=True):
        before, after = ([line[1:] for line in hunk if line[0] in kinds] for kinds in (" -", " +"))
        assert lines[at : at + len(before)] == before, (at, before)
        lines[at : at + len(before)] = after
    return "\n".join([f"window.leaveToBokeh = {list(NEEDS)};", *lines])


def test_each_patch_has_a_draft_that_fits_the_pinned_bokeh_and_no_other_has_one():
    assert {path.stem for path in DRAFTS.glob("*.diff")} == set(NEEDS)
    for name in NEEDS:
        draft = (DRAFTS / f"{name}.diff").read_text(encoding="utf-8")
        assert draft.count("\n@@ ") == len(HUNK.findall(draft)) > 0
        assert drafted(name) != drafted()
        [place] = set(re.findall(r"^--- a/bokehjs/src/lib/(\S+)\.ts$", draft, re.MULTILINE))
        assert f"/* {place}.js */" in "\n".join(IN_LINES)
        typed = (DRAFTS / "typescript" / f"{name}.ed").read_text(encoding="utf-8")
        lines = {kind: [line[1:] for line in draft.splitlines() if line[0] in kind] for kind in ("+", " -")}
        new, old = (set(OWN.findall("\n".join(each))) for each in lines.values())
        assert new - old <= set(OWN.findall(typed)) and typed.endswith("\n.\nw\n")
        both = rf"\[`{name}`\]\(bokeh/{name}\.diff\) \[TypeScript\]\(bokeh/typescript/{name}\.ed\)"
        [row] = re.findall(rf"^\| {both} \|.*$", PAGE, re.MULTILINE)
        assert all(cell.strip() for cell in row.strip("|").split("|")), row


def test_every_patch_names_what_it_needs():
    assert len(NEEDS) == SKIP.count("patch: ") == 13
    assert all(len(names) >= 3 for names in NEEDS.values()), NEEDS


def test_this_bokeh_takes_every_patch(static, glance):
    page = glance().go(f"{static}memory_stack/")
    Hand(page, "memory_stack").drag("size", 20)
    assert skips(page) == list(NEEDS)


@pytest.mark.parametrize("slug", PICTURES)
def test_a_figure_looks_the_same_without_the_patches(static, visit, slug):
    page = visit().go(f"{static}{slug}/")
    with_them = pictures(Hand(page, slug))
    assert with_them[0] != with_them[1]
    left = [name for name in NEEDS if name != MENDS]
    page.add_init_script(f"window.leaveToBokeh = {left}")
    page.goto(f"{static}{slug}/")
    assert pictures(Hand(page, slug)) == with_them
    assert skips(page) == [MENDS]


def test_what_was_hidden_in_a_drag_is_drawn_anew_once_it_is_shown(static, visit):
    """On a phone the planner has other texts than on a wide picture."""

    def turned(page) -> str:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{static}layout_planner/")
        hand = Hand(page, "layout_planner")
        hand.drag("gpus", 4)
        hand.says(gpus=hand.at("gpus"))
        page.set_viewport_size({"width": 390, "height": 900})
        return hand.rested()

    page = visit().go(f"{static}layout_planner/")
    with_them = turned(page)
    page.add_init_script("window.leaveToBokeh = ['hidden', 'points', 'lengths']")
    assert turned(page) == with_them


@pytest.fixture(scope="module")
def own(static, browser):
    """Draws memory_stack with a BokehJS of this text: its pictures, the patches that were taken and what the
    console noted."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    body, said = [BOKEH], []
    page.route("**/bokeh.min.js*", lambda route: route.fulfill(body=body[0], content_type="text/javascript"))
    page.on("console", lambda message: said.append((message.type, message.text)))
    page.on("pageerror", lambda error: said.append(("error", str(error))))

    def draw(text: str):
        body[0] = text
        said.clear()
        page.goto(f"{static}memory_stack/")
        return pictures(Hand(page, "memory_stack")), skips(page), list(said)

    yield draw
    page.close()


@pytest.fixture(scope="module")
def plain(own):
    return own(BOKEH)[0]


DRAFTED = [list(NEEDS), *([name] for name in NEEDS)]


@pytest.mark.parametrize(
    "names", states.daily(DRAFTED), ids=lambda names: names[0] if len(names) == 1 else "all"
)
def test_a_figure_looks_the_same_with_the_drafts(own, plain, names):
    """`clearing` is a fault that is seen, so it is among the drafts each time."""
    drawn, taken, said = own(drafted(*{*names, MENDS}))
    assert drawn == plain and taken == [""]
    assert [text for kind, text in said if kind in ("warning", "error")] == []


def apart(names: list[str]) -> list[list[str]]:
    """The names in groups of which no two are needed by one patch: of one that is left out it is plain by which.
    EVERY=1 has each name by itself, so that patches are also left out one by one."""
    if ALL_OF_THEM:
        return [[name] for name in names]
    groups: list[list[str]] = []
    for name in names:
        by = {patch for patch, needed in NEEDS.items() if name in needed}
        free = (each for each in groups if not any(set(each) & set(NEEDS[patch]) for patch in by))
        group = next(free, None)
        group.append(name) if group else groups.append([name])
    return groups


RENAMED = [*apart(MEMBERS), *([name] for name in IN_USE), MODULES, CLASSES]


@pytest.mark.parametrize("names", states.daily(RENAMED), ids=" ".join)
def test_no_renamed_member_stops_a_figure(own, plain, names):
    """The patches that need one are left out with one note each, and Bokeh alone draws the same picture."""
    drawn, taken, said = own(reduce(lambda script, name: renamed(name, script), names, BOKEH))
    assert drawn == plain
    left = [patch for patch in NEEDS if patch not in taken]
    assert set(left) >= {patch for patch, needed in NEEDS.items() if set(names) & set(needed)}
    notes = [text for kind, text in said if kind == "info"]
    assert len(notes) == len(left) and all(any(f"“{patch}”" in note for note in notes) for patch in left)
    assert [text for kind, text in said if kind in ("warning", "error")] == []
