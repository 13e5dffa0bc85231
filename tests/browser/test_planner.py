"""The planner's page: missions won and lost and remembered, a config.json pasted and dropped, settings taken
along."""

import json

from playwright.sync_api import expect

from course.fences.missions import state
from engine.catalog import config_json
from engine.exam import missions
from tests.browser.hands import Hand
from tests.engine.catalog.test_config_json import FILES, NOT_JSON, WRONG
from tests.representatives import ALL_OF_THEM
from widgets.kit.widget import all_widgets

MISSIONS = missions.missions()
READ = """async texts => {
  const [{ widget }, { read }] = [await import("/assets/widgets/layout_planner.js"), await import("/assets/widget/intake.js")];
  return texts.map(text => read(widget.intake, widget.readFile, text));
}"""


def raw(slug: str, texts: dict) -> dict:
    """A state in texts as the page holds it."""
    widget = all_widgets()[slug]()
    widget.set_state(texts)
    return widget.raw_state()


def own(text: str) -> dict:
    """The planner's state with a config.json read."""
    return raw(
        "layout_planner",
        {"model": "own", **{name: f"{value:g}" for name, value in config_json.read(text).items()}},
    )


def reach(hand: Hand, start: dict, end: dict) -> None:
    """Moves what differs by hand, one control after another."""
    here, wanted = raw("layout_missions", start), raw("layout_missions", end)
    for name in wanted:
        if wanted[name] != here[name]:
            hand.move(name, wanted[name])
    hand.says(**wanted)


TAKEN = list(MISSIONS) if ALL_OF_THEM else [list(MISSIONS)[at] for at in (0, len(MISSIONS) // 2, -1)]


def test_missions_are_lost_shown_and_won_and_kept(visit, static):
    """The first, the last and one between them, unless all are asked: what wins each of them is the engine's
    (tests/engine/exam/test_missions.py), and the figure's words are Python's (test_equality.py). The button takes a mission on, and a plain layout loses it; the planner's answer is shown and does not
    count; reached by hand it wins, and the browser remembers."""
    window = visit()
    page = window.go(f"{static}planner/")
    hand = Hand(page, "layout_missions")
    cards = page.locator("[data-mission]")
    assert [cards.nth(i).get_attribute("data-mission") for i in range(cards.count())] == list(MISSIONS)
    for done, key in enumerate(TAKEN, 1):
        mission = MISSIONS[key]
        card = page.locator(f'[data-mission="{key}"]')
        card.get_by_role("button", name="Lay it out").click()
        hand.says(**raw("layout_missions", state(mission, missions.first_try(mission))))
        assert not {"won", "cannot_be_built"} & set(hand.words()["regimes"]), (
            f"{key} starts lost, by a layout that can be built"
        )
        for name in ("Hint", "Next hint", "Next hint", "The planner's answer"):
            card.locator("summary:visible", has_text=name).last.click()
        card.get_by_role("button", name="Show it in the figure").click()
        solution = state(mission, missions.answer(mission))
        hand.says(**raw("layout_missions", solution))
        assert "won" in hand.words()["regimes"], key
        expect(card).to_have_attribute("data-shown", "")
        expect(card).not_to_have_attribute("data-won", "")
        expect(page.locator("[data-progress]")).to_contain_text(
            f"{done - 1} of {len(MISSIONS)} missions won, 1 shown"
        )
        card.get_by_role("button", name="Lay it out").click()
        reach(hand, state(mission, missions.first_try(mission)), solution)
        expect(card).to_have_attribute("data-won", "")
        expect(page.locator("[data-progress]")).to_contain_text(f"{done} of {len(MISSIONS)} missions won.")
    page.reload()
    expect(page.locator("[data-mission][data-won]")).to_have_count(len(TAKEN))


def test_a_mission_shown_by_a_link_is_not_won_yet(visit, static):
    query = "&".join(
        f"layout_missions.{name}={text}"
        for name, text in state(MISSIONS["fit-7b"], missions.answer(MISSIONS["fit-7b"])).items()
    )
    page = visit().go(f"{static}planner/?{query}")
    hand = Hand(page, "layout_missions")
    assert "won" in hand.words()["regimes"]
    expect(page.locator("[data-mission][data-won]")).to_have_count(0)


def test_the_page_reads_a_config_json_as_python_does(visit, static):
    page = visit().go(f"{static}layout_planner/")
    lacking = [{k: v for k, v in FILES["mixtral-8x7b"].items() if k != key} for key in FILES["mixtral-8x7b"]]
    wrong = [FILES["mixtral-8x7b"] | changes for changes, _ in WRONG]
    texts = [json.dumps(file) for file in (*FILES.values(), *lacking, *wrong)] + [
        *NOT_JSON,
        "",
        "[]",
        "3",
        "{}",
        "null",
    ]
    for text, answer in zip(texts, page.evaluate(READ, texts), strict=True):
        try:
            expected = {"values": config_json.read(text)}
        except ValueError as refused:
            expected = {"refused": str(refused)}
        assert answer == expected, text


def test_a_pasted_config_becomes_the_own_model_and_its_link_brings_it_back(visit, static):
    window = visit()
    hand = Hand(window.go(f"{static}layout_planner/"), "layout_planner")
    hand.figure.locator("[data-intake] summary").click()
    field, said = (
        hand.figure.get_by_label("config.json", exact=True),
        hand.figure.locator("[data-intake] [data-said]"),
    )
    field.fill('{"model_type": "llama", "hidden_size": 4096}')
    expect(said).to_have_text(
        "This config.json has no num_hidden_layers (nor n_layer, num_layers, n_layers). "
        "The figure still shows what it did before: Llama 3 70B."
    )
    hand.says()  # nothing moved
    field.fill(json.dumps(FILES["deepseek-v3"] | {"hidden_size": 99999999}))
    expect(said).to_contain_text("hidden_size must be a whole number from 128 to 32,768, got 99999999.")
    text = json.dumps(FILES["qwen2.5-7b"])
    field.fill(text)
    hand.says(**own(text))
    hand.page.wait_for_function("() => location.search.includes('layout_planner.model=own')")
    Hand(visit().go(hand.page.url), "layout_planner").says(**own(text))


def test_a_file_may_be_dropped(visit, static):
    hand = Hand(visit().go(f"{static}layout_planner/"), "layout_planner")
    hand.figure.locator("[data-intake] summary").click()
    text = json.dumps(FILES["mixtral-8x7b"])
    hand.figure.locator("[data-intake]").evaluate(
        """(box, text) => {
      const carried = new DataTransfer();
      carried.items.add(new File([text], "config.json", { type: "application/json" }));
      box.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: carried }));
    }""",
        text,
    )
    hand.says(**own(text))


def test_settings_can_be_copied_and_saved(visit, static):
    window = visit(permissions=["clipboard-read", "clipboard-write"])
    hand = Hand(window.go(f"{static}layout_planner/"), "layout_planner")
    for name, text in all_widgets()["layout_planner"]().shown()["documents"].items():
        box = hand.figure.locator(f'[data-document="{name}"]')
        box.locator("summary").click()
        expect(box.locator("code")).to_have_text(text.strip("\n"))
        box.get_by_role("button", name="copy").click()
        expect(box.get_by_role("button", name="copied")).to_be_visible()
        assert hand.page.evaluate("navigator.clipboard.readText()") == text
        with hand.page.expect_download() as download:
            box.get_by_role("button", name="save").click()
        assert download.value.path().read_text(encoding="utf-8") == text


def test_what_is_cut_on_a_phone_shows_that_there_is_more(visit, static):
    """Tables, formulas and settings wider than the screen have a shade at the edge; the page itself is never
    wider."""
    page = visit(viewport={"width": 390, "height": 844}).go(f"{static}10-nd-parallelism/")
    Hand(page, "layout_planner")
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    cut = page.evaluate("""() => [...document.querySelectorAll(".md-typeset__scrollwrap, .math, .widget-table, .widget-documents code")]
      .filter(box => box.scrollWidth > box.clientWidth + 2 && box.clientWidth)
      .map(box => getComputedStyle(box).backgroundImage.split("linear-gradient").length - 1)""")
    assert len(cut) > 3 and set(cut) == {4}
    assert page.evaluate("document.documentElement.scrollWidth") == 390
