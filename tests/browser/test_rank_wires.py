"""A rank carried to another GPU by hand: the step follows on the way, and a tap shows a group alone."""

import re

from playwright.sync_api import expect

from tests.browser.hands import Hand, expected

# where GPU 7, the last of node 0, and GPU 8, the first of node 1, are on the page
WHERE = """() => {
  const plot = [...Bokeh.index.roots][0], box = plot.el.getBoundingClientRect();
  const place = (x, y) => [box.left + plot.frame.x_scale.compute(x), box.top + plot.frame.y_scale.compute(y)];
  return [place(7, 7), place(0, 6)];
}"""


def test_a_rank_is_dragged_to_another_node_and_back(visit, static):
    page = visit().go(f"{static}rank_wires/")
    hand = Hand(page, "rank_wires")
    step = hand.figure.locator('[data-readout="step"]')
    at = page.evaluate(WHERE)
    states = {}, {"one": 7, "other": 8}
    usual, swapped = (expected("rank_wires", **values)["readouts"]["step"] for values in states)
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=4)
    expect(step).to_have_text(swapped)  # while the button is down
    page.mouse.up()
    hand.says(one=7, other=8)
    expect(page).to_have_url(re.compile(r"rank_wires\.one=7&rank_wires\.other=8"))
    page.mouse.click(*at[0])
    hand.says(one=7, other=7)
    expect(step).to_have_text(usual)
