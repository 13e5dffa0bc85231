"""Addresses of places that are on another page now."""

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize(
    ("old", "new", "title"),
    [
        ("10-nd-parallelism/#the-price-first", "10b-the-long-run/#the-price-first", "The long run"),
        (
            "10-nd-parallelism/?goodput.gpus=512#w-goodput",
            "10b-the-long-run/?goodput.gpus=512#w-goodput",
            "The long run",
        ),
        ("11-inference/#keeping-the-batch-full", "11b-the-server/#keeping-the-batch-full", "The server"),
        (
            "11-inference/?serving_frontier.target=0.2#w-serving_frontier",
            "11b-the-server/?serving_frontier.target=0.2#w-serving_frontier",
            "The server",
        ),
    ],
)
def test_an_old_address_leads_to_the_place_with_the_figure_s_state(visit, static, old, new, title):
    page = visit().go(f"{static}{old}")
    page.wait_for_url(f"{static}{new}")
    expect(page.locator("h1")).to_contain_text(title)


def test_what_the_old_page_still_waited_for_is_no_fault_of_the_new(visit, static):
    window = visit()
    window.page.route("**/workers/search*", lambda route: None)  # it is never answered
    page = window.go(f"{static}10-nd-parallelism/#the-price-first")
    page.wait_for_url(f"{static}10b-the-long-run/#the-price-first")
    expect(page.locator("h1")).to_contain_text("The long run")


def test_a_place_that_did_not_move_is_left_alone(visit, static):
    page = visit().go(f"{static}10-nd-parallelism/#a-decision-tree")
    expect(page.locator("h1")).to_contain_text("nD parallelism")
