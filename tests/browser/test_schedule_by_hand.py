"""A schedule placed by hand: 1F1B for 4 × 8 with a mouse and with keys, a refusal for each rule, a position in the
address, a finger on a phone, and what was placed as code in the puzzle."""

import re

import pytest
from playwright.sync_api import expect

from engine.executed.placed_by_hand import MAY, MOST_SLOTS, by_level, published_orders
from tests.browser.hands import Hand
from tests.browser.phones import PHONE
from tests.widgets.training.test_schedule_by_hand import RULES, at
from widgets.training.schedule_by_hand import STAGES

# the middle of a button, and its size, in pixels of the page
BUTTON = """row => {
  const view = [...Bokeh.index.roots][0], { frame, el } = view, box = el.getBoundingClientRect();
  const { data } = Bokeh.documents[0].get_model_by_name("hand"), phone = frame.bbox.width < 520;
  const across = phone ? frame.x_scales.get("buttons") : frame.x_scale, upwards = phone ? frame.y_scales.get("buttons") : frame.y_scale;
  const x = side => box.left + across.compute(data[side][row]);
  const y = side => box.top + upwards.compute(data[side][row]);
  return { x: (x("left") + x("right")) / 2, y: (y("bottom") + y("top")) / 2,
           width: x("right") - x("left"), height: y("bottom") - y("top") };
}"""
# (start, whether it is a forward, key) of all buttons whose passes can run
CAN_RUN = """() => {
  const part = name => Bokeh.documents[0].get_model_by_name(name).data, hand = part("hand"), ghosts = part("ghosts");
  return [...hand.key].map((key, row) => [Math.round(1e6 * ghosts.left[row]), row % 4 ? 0 : 1, key])
    .filter((_, row) => hand.outline[row]);
}"""
HALF_WAY = "?" + "&".join(
    f"schedule_by_hand.stage_{s}={code}" for s, code in ((1, 33), (2, 17), (3, 9), (4, 5))
)


def moves(key="1f1b"):
    """The rows of the buttons that place the published schedule, each stage as far as it can go in its turn."""
    wanted, placed, found = published_orders(key), [""] * 4, []
    while placed != wanted:
        for stage in range(4):
            while len(placed[stage]) < len(wanted[stage]):
                row = stage * MOST_SLOTS + int(wanted[stage][len(placed[stage])])
                if by_level(key, placed)["hand_why"][row] != MAY:
                    break
                placed[stage] += wanted[stage][len(placed[stage])]
                found.append(row)
    return found


def codes(widget):
    return {name: getattr(widget, name) for name in STAGES}


def whole(key="1f1b"):
    return codes(at(key, published_orders(key)))


def place_of_mark(said):
    """(stage, how far down its lane) of a mark, by what is said of it: passes, buttons, memory."""
    stage = int(re.search(r"[Ss]tage (\d)", said)[1]) - 1
    if "holds" in said and "finds no room" not in said:
        return stage, 2
    return stage, 0 if "take it back" in said else 1


def press(page, row):
    at_ = page.evaluate(BUTTON, row)
    page.mouse.click(at_["x"], at_["y"])


def test_1f1b_is_built_with_a_mouse(visit, static):
    page = visit().go(f"{static}schedule_by_hand/")
    hand = Hand(page, "schedule_by_hand")
    for row in moves():
        press(page, row)
    hand.says(**whole())
    assert "reached" in hand.words()["regimes"]


def test_1f1b_is_built_with_keys(visit, static):
    """Up and down from mark to mark, by what is said of each, and Enter on the button that is meant."""
    page = visit().go(f"{static}schedule_by_hand/")
    hand = Hand(page, "schedule_by_hand")
    plot, spoken = hand.figure.locator("[data-plot]"), hand.figure.locator("[data-plot] [aria-live]")
    plot.focus()
    page.keyboard.press("ArrowDown")
    placed = [[0, 0] for _ in range(4)]
    for row in moves():
        stage, slot = divmod(row, MOST_SLOTS)
        name = f"{'FB'[slot]}{placed[stage][slot] + 1} on stage {stage + 1}: it would run"
        placed[stage][slot] += 1
        for _ in range(40):
            said = spoken.inner_text()
            if name in said:
                break
            here, there = place_of_mark(said), (stage, 1)
            if here == there:
                page.keyboard.press("ArrowRight" if slot else "ArrowLeft")
            else:
                page.keyboard.press("ArrowDown" if there > here else "ArrowUp")
        assert name in spoken.inner_text()
        page.keyboard.press("Enter")
    hand.says(**whole())
    page.keyboard.press("Backspace")
    expect(hand.figure.locator('[data-readout="placed"]')).to_have_text("63 of 64 passes")


def test_1f1b_is_built_by_the_rule_that_the_figure_gives_with_a_key_for_each_pass(visit, static):
    """Stage 1's forwards until it has no room; then what can start soonest, of two the backward."""
    page = visit().go(f"{static}schedule_by_hand/")
    hand = Hand(page, "schedule_by_hand")
    hand.figure.locator("[data-summary]").click()  # where nothing takes the focus
    pressed = 0
    while can := page.evaluate(CAN_RUN):
        filling = pressed < 4 and [each for each in can if each[2] == "1"]
        page.keyboard.press((filling or sorted(can))[0][2])
        pressed += 1
    assert pressed == 64
    hand.says(**whole())
    assert "reached" in hand.words()["regimes"]


def test_what_puts_par_out_of_reach_is_taken_back_by_the_button(visit, static):
    page = visit().go(f"{static}schedule_by_hand/?schedule_by_hand.stage_1=4&schedule_by_hand.stage_2=4")
    hand = Hand(page, "schedule_by_hand")
    back = hand.figure.get_by_role("button", name="Take the last one back")
    expect(back).to_be_disabled()
    for row in (2 * MOST_SLOTS, 2 * MOST_SLOTS, 3 * MOST_SLOTS, 3 * MOST_SLOTS):
        press(page, row)
    assert "lost" in hand.words()["regimes"]
    back.click()
    hand.says(stage_1=4.0, stage_2=4.0, stage_3=4.0, stage_4=2.0)
    assert "lost" not in hand.words()["regimes"]
    page.keyboard.press("Backspace")  # the hand's keys go on, and every press can be taken back
    page.keyboard.press("Backspace")
    hand.says(stage_1=4.0, stage_2=4.0, stage_3=2.0)
    press(page, 2 * MOST_SLOTS)
    hand.figure.locator("[data-reset]").click()
    expect(back).to_be_disabled()  # what was placed before is not what stands now


def test_keys_are_heard_anywhere_in_the_figure_but_where_one_types(visit, static):
    page = visit(figures=["schedule_by_hand"]).go(f"{static}07-pipeline-parallel/")
    hand = Hand(page, "schedule_by_hand")
    placed = hand.figure.locator('[data-readout="placed"]')
    hand.figure.locator("[data-plot]").scroll_into_view_if_needed()
    page.keyboard.press("1")  # nobody has been in the figure
    expect(placed).to_have_text("0 of 64 passes")
    hand.figure.locator("[data-summary]").click()
    page.keyboard.press("1")
    expect(placed).to_have_text("1 of 64 passes")
    hand.figure.locator("select").first.focus()  # 1 would choose 1F1B anew there, and empty the line
    page.keyboard.press("2")
    expect(placed).to_have_text("2 of 64 passes")
    hand.figure.locator("[data-take-back]").focus()
    page.keyboard.press("Backspace")
    expect(placed).to_have_text("1 of 64 passes")
    hand.figure.locator("input[type=text]:visible").first.fill("2")
    page.keyboard.press("Backspace")
    expect(placed).to_have_text("1 of 64 passes")


@pytest.mark.parametrize(("key", "orders", "vain", "said", "lit"), RULES)
def test_a_refused_move_says_what_is_missing_and_lights_it(glance, static, key, orders, vain, said, lit):
    position = codes(at(key, orders))
    address = "&".join(f"schedule_by_hand.{name}={code:.0f}" for name, code in position.items())
    page = glance().go(f"{static}schedule_by_hand/?schedule_by_hand.level={key}&{address}")
    hand = Hand(page, "schedule_by_hand")
    press(page, (vain[0] - 1) * MOST_SLOTS + vain[1])
    expect(hand.figure.locator("[data-summary]")).to_contain_text(said)
    shown = page.evaluate('() => [...Bokeh.documents[0].get_model_by_name("hand").data.lit]')
    assert [row for row, alpha in enumerate(shown) if alpha] == [(lit[0] - 1) * MOST_SLOTS + lit[1]]
    press(page, (lit[0] - 1) * MOST_SLOTS + lit[1])  # it may lack something itself, or is placed
    assert "refused" not in hand.words()["regimes"] or said not in hand.words()["summary"]


def test_a_position_is_in_the_address(visit, static):
    page = visit().go(f"{static}schedule_by_hand/{HALF_WAY}")
    hand = Hand(page, "schedule_by_hand")
    press(page, 0)
    hand.says(stage_1=66.0, stage_2=17.0, stage_3=9.0, stage_4=5.0)
    expect(page).to_have_url(re.compile(r"schedule_by_hand\.stage_1=66.*stage_4=5"))
    again = visit().go(page.url)
    Hand(again, "schedule_by_hand").says(stage_1=66.0, stage_2=17.0, stage_3=9.0, stage_4=5.0)


def test_another_task_begins_with_an_empty_line(visit, static):
    page = visit().go(f"{static}schedule_by_hand/{HALF_WAY}")
    hand = Hand(page, "schedule_by_hand")
    hand.choose("level", 2)
    hand.says(level=2)


def test_a_finger_places_and_takes_back(visit, static):
    page = visit(**PHONE).go(f"{static}schedule_by_hand/")
    hand = Hand(page, "schedule_by_hand")
    hand.figure.locator("[data-plot]").scroll_into_view_if_needed()
    placed = hand.figure.locator('[data-readout="placed"]')
    for row in (0, MOST_SLOTS):
        size = page.evaluate(BUTTON, row)
        assert size["width"] >= 44 and size["height"] >= 43.5
        page.touchscreen.tap(size["x"], size["y"])
    expect(placed).to_have_text("2 of 64 passes")
    first = page.evaluate(
        """() => {
      const view = [...Bokeh.index.roots][0], { frame, el } = view, box = el.getBoundingClientRect();
      const { data } = Bokeh.documents[0].get_model_by_name("blocks"), [x, y] = [frame.x_scales, frame.y_scales];
      return [box.left + x.get("chart").compute(data.x[0]), box.top + y.get("chart").compute(data.y[0])];
    }"""
    )
    page.touchscreen.tap(*first)
    expect(placed).to_have_text("0 of 64 passes")  # stage 2's forward needs the one that is gone


def test_what_was_placed_opens_as_code_in_the_puzzle(visit, static):
    page = visit(figures=["schedule_by_hand"]).go(
        f"{static}07-pipeline-parallel/?"
        + "&".join(f"schedule_by_hand.{n}={c:.0f}" for n, c in whole().items())
    )
    hand = Hand(page, "schedule_by_hand")
    hand.button("Open as code in the puzzle “beat 1F1B”").click()
    puzzle = page.locator('[data-puzzle="beat_1f1b"]')
    code = puzzle.locator("textarea")
    expect(code).to_have_value(re.compile(r"by_hand = \["))
    expect(code).to_have_value(re.compile(r'\("F", 0\), \("I", 0\), \("W", 0\), \("F", 1\)'))  # stage 4's
    puzzle.locator("[data-run]").click()
    expect(puzzle.locator("[data-said]")).to_contain_text("bubble 20.0 %")


def test_a_figure_alone_opens_the_puzzle_in_its_lesson(visit, static):
    page = visit().go(f"{static}schedule_by_hand/{HALF_WAY}")
    Hand(page, "schedule_by_hand").button("Open as code in the puzzle “beat 1F1B”").click()
    page.wait_for_url(re.compile(r"/07-pipeline-parallel/\?puzzle-beat-1f1b=.*#puzzle-beat-1f1b"))
    code = page.locator('[data-puzzle="beat_1f1b"] textarea')
    expect(code).to_have_value(re.compile(r"by_hand = \["))


def test_what_has_chunks_is_not_offered_as_code(visit, static):
    page = visit().go(f"{static}schedule_by_hand/?schedule_by_hand.level=fsdp")
    expect(Hand(page, "schedule_by_hand").figure.locator("[data-opens]")).to_be_hidden()
