"""The page of symptoms as a reader meets it: described, pasted, by keyboard, on a phone, in dark, without a
script, on paper."""

import re

import pytest
from playwright.sync_api import expect

from course.fences import symptoms
from tests.course.test_symptoms import TRACEBACK

ROWS = len(symptoms.known().rows)
LABEL = "What do you see?"


def first(page) -> str:
    return page.locator(".symptoms-found .symptom h3").first.get_attribute("id")


def test_what_is_described_comes_to_the_top_and_goes_back(visit, static):
    page = visit().go(f"{static}symptoms/")
    field, said = (
        page.get_by_label(LABEL),
        page.get_by_role("status").and_(page.locator("[data-symptoms-said]")),
    )
    order = page.locator(".symptom h3").evaluate_all("all => all.map(one => one.id)")
    assert len(order) == ROWS
    field.fill("30 % slower since I moved from 8 to 16 GPUs")
    expect(said).to_have_text(re.compile(rf"^(One row|\d rows, the likeliest first), of {ROWS}\.$"))
    assert first(page) == "from-one-node-to-two"
    expect(page.locator("[data-symptoms-group]:visible")).to_have_count(0)
    link = page.locator(".symptoms-found .symptom-lesson a").first
    assert "/03-interconnect/#" in link.get_attribute("href")
    field.fill(TRACEBACK)
    expect(page.locator(".symptoms-found .symptom h3").first).to_have_attribute("id", "oom-fragmented")
    field.fill("xyzzy plugh")
    expect(said).to_have_text(re.compile("^No row speaks of this.*look below"))
    expect(page.locator("[data-symptoms-group]:visible")).to_have_count(len(symptoms.known().groups))
    field.fill("loss became NaN")
    expect(page.locator(".symptoms-found .symptom h3").first).to_have_attribute("id", "loss-nan")
    field.press("Escape")
    expect(said).to_have_text("")
    assert page.locator(".symptom h3").evaluate_all("all => all.map(one => one.id)") == order
    expect(page.locator(".symptom:visible")).to_have_count(ROWS)


def test_a_pasted_megabyte_is_cut_and_said(visit, static):
    page = visit().go(f"{static}symptoms/")
    page.get_by_label(LABEL).evaluate(
        """(field, text) => {
          field.value = "x ".repeat(500_000) + text;
          field.dispatchEvent(new Event("input"));
        }""",
        TRACEBACK,
    )
    expect(page.locator("[data-symptoms-said]")).to_contain_text("only its last 20,000 characters are read")
    assert len(page.get_by_label(LABEL).input_value()) == symptoms.LONGEST
    assert first(page) == "oom-fragmented"


def test_nothing_that_is_typed_runs_or_leaves(visit, static):
    """The fixture asks that no request went elsewhere; here none may be made at all."""
    window = visit()
    page = window.go(f"{static}symptoms/")
    page.wait_for_load_state("networkidle")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_label(LABEL).fill("<img src=x onerror='hacked = 1'> NCCL timeout")
    expect(page.locator(".symptoms-found .symptom h3").first).to_have_attribute("id", "hang-collective")
    assert page.evaluate("typeof hacked") == "undefined" and not asked


@pytest.mark.parametrize("place", ["out-of-memory", "too-slow", "loss-nan"])
def test_an_address_leads_to_its_place_also_while_something_is_typed(visit, static, place):
    page = visit().go(f"{static}symptoms/#{place}")
    expect(page.locator(f"#{place}")).to_be_in_viewport()
    page.get_by_label(LABEL).fill("ttft")
    expect(page.locator(".symptoms-found")).to_be_visible()
    page.evaluate("location.hash = ''")
    page.evaluate(f"location.hash = '{place}'")
    expect(page.locator(f"#{place}")).to_be_in_viewport()
    expect(page.locator(".symptom:visible")).to_have_count(ROWS)


@pytest.mark.parametrize("width", [1280, 390])
def test_rows_have_a_readable_width(visit, static, width):
    page = visit(viewport={"width": width, "height": 900}).go(f"{static}symptoms/")
    widths = page.locator(".symptom p").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert min(widths) > 300 and max(widths) < 800
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_a_script_every_row_is_there_and_no_field(visit, static):
    window = visit(java_script_enabled=False)
    window.forgive(" csp")
    page = window.go(f"{static}symptoms/")
    expect(page.locator(".symptom:visible")).to_have_count(ROWS)
    expect(page.locator(".symptoms-find")).to_be_hidden()


def test_on_paper_every_row_is_there_and_no_field(visit, static):
    page = visit().go(f"{static}symptoms/")
    page.get_by_label(LABEL).fill("ttft")
    expect(page.locator(".symptoms-found")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator(".symptom:visible")).to_have_count(ROWS)
    expect(page.locator(".symptoms-find")).to_be_hidden()
