"""What stands by for axe on a whole page: one text of each look, once for all pages."""

import pytest

from tests.browser import axe

PAGE = """<!doctype html><html lang="en"><title>A page</title><body style="background: white">
<main><h1>A page</h1><p class="said">Some words with {} in them.</p><p class="said">More words.</p>
<p class="kept" style="color: {}">Others.</p></main></body></html>"""
LINK = '<a href="#there" style="color: {}; text-decoration: {}">a link</a>'
TOLD, SAME = LINK.format("#0000cc", "underline"), LINK.format("#111111", "none")


@pytest.fixture
def page(browser, monkeypatch):
    monkeypatch.setattr(axe, "judged", set())
    page = browser.new_page()
    yield page
    page.close()


def rules(page) -> list[str]:
    return [fault.partition(":")[0] for fault in axe.faults(page)]


def test_what_is_right_is_judged_once_and_what_is_faint_each_time(page):
    page.set_content(PAGE.format(TOLD, "black"))
    assert rules(page) == []
    assert page.locator("[data-speaks]").count() == 4  # both paragraphs of one look are one text
    assert rules(page) == [] and page.locator("[data-speaks], [data-leads]").count() == 0
    for _ in range(2):
        page.set_content(PAGE.format(TOLD, "#bbbbbb"))
        assert rules(page) == ["color-contrast"]


def test_a_link_that_looks_like_the_words_around_it_is_found(page):
    page.set_content(
        PAGE.format(f"<span>{SAME}</span>", "black").replace("Some words with", "").replace("in them.", "")
    )
    assert rules(page) == []  # alone in its block it is told from nothing
    page.set_content(PAGE.format(f"<span>{SAME}</span>", "black"))
    assert rules(page) == ["link-in-text-block"]


def test_only_what_lies_within_is_judged(page):
    page.set_content(PAGE.format(TOLD, "#bbbbbb"))
    assert axe.faults(page, within=".said") == []
    assert rules(page) == ["color-contrast"]
