"""A finger on the mesh: the touched GPU is the rank shown, and the pointer says what a GPU is to it."""

import re

from playwright.sync_api import expect

from tests.browser.hands import Hand, expected


def test_a_touched_gpu_is_the_rank_shown(visit, static):
    page = visit().go(f"{static}rank_mesh/")
    hand = Hand(page, "rank_mesh")
    shown = hand.figure.locator('[data-readout="coordinates"]')
    box = hand.figure.locator("[data-plot]").bounding_box()
    page.mouse.click(box["x"] + 0.42 * box["width"], box["y"] + 0.3 * box["height"])
    expect(shown).not_to_have_text(expected("rank_mesh")["readouts"]["coordinates"])
    rank = float(re.match(r"\d+", shown.inner_text())[0])
    assert (
        0 < rank < 512 and expected("rank_mesh", rank=rank)["readouts"]["coordinates"] == shown.inner_text()
    )
    page.mouse.move(box["x"] + 0.42 * box["width"] + 1, box["y"] + 0.3 * box["height"])
    expect(hand.figure.locator(".widget-hint")).to_contain_text(f"rank {rank:.0f}, node {rank // 8:.0f}")
    expect(hand.figure.locator(".widget-hint")).to_contain_text("the rank shown")
