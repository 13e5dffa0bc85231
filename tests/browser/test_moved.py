"""Addresses of places that are on another page now."""

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("10-nd-parallelism/#the-price-first", "10b-the-long-run/#the-price-first"),
        ("10-nd-parallelism/?goodput.gpus=512#w-goodput", "10b-the-long-run/?goodput.gpus=512#w-goodput"),
    ],
)
def test_an_old_address_leads_to_the_place_with_the_figure_s_state(visit, static, old, new):
    page = visit().go(f"{static}{old}")
    page.wait_for_url(f"{static}{new}")
    expect(page.locator("h1")).to_contain_text("The long run")


def test_what_the_old_page_still_waited_for_is_no_fault_of_the_new(visit, static):
    window = visit()
    window.page.route("**/workers/search*", lambda route: None)  # it is never answered
    page = window.go(f"{static}10-nd-parallelism/#the-price-first")
    page.wait_for_url(f"{static}10b-the-long-run/#the-price-first")
    expect(page.locator("h1")).to_contain_text("The long run")


def test_a_place_that_did_not_move_is_left_alone(visit, static):
    page = visit().go(f"{static}10-nd-parallelism/#a-decision-tree")
    expect(page.locator("h1")).to_contain_text("nD parallelism")
