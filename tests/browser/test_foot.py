"""Below each page: its Markdown in the clipboard, and a report that begins with what the reader sees."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

import engine

TAKEN = "navigator.clipboard.writeText = async text => { window.taken = text; }"
REPORT = """() => {
  const link = document.createElement("a");
  Object.assign(link, { href: "https://github.com/a/b/issues/new?title=A+mistake", textContent: "report" });
  link.dataset.mistake = "";
  link.addEventListener("click", event => event.preventDefault());   // nobody is asked
  document.querySelector(".page-foot").append(link);
}"""


def test_a_page_is_copied_as_markdown_with_whole_addresses(visit, static):
    page = visit().go(f"{static}about/")
    page.evaluate(TAKEN)
    page.locator("[data-copy-page]").click()
    expect(page.locator("[data-foot-said]")).to_have_text("Copied.")
    text = page.evaluate("window.taken")
    assert text.startswith("# About\n") and f"]({static}teach/)" in text and "](../" not in text
    assert page.url == f"{static}about/"


def test_where_nothing_may_be_copied_the_markdown_opens(visit, static):
    window = visit()
    window.forgive("status of 404", "favicon")  # a browser looks for an icon beside a plain text
    page = window.go(f"{static}about/")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    page.locator("[data-copy-page]").click()
    page.wait_for_url("**/about/index.md")


def test_a_report_has_the_page_its_state_and_the_version(visit, static):
    """A copy without a repository has no such link, so one is put there."""
    page = visit().go(f"{static}01-why-distributed/?memory_stack.size=13e9")
    assert page.locator("[data-mistake]").count() == 0
    page.evaluate(REPORT)
    page.locator("[data-mistake]").click()
    asked = parse_qs(urlsplit(page.locator("[data-mistake]").get_attribute("href")).query)
    [body] = asked["body"]
    assert asked["title"] == ["A mistake"] and f"Version: {engine.__version__}\n" in body
    assert f"Page: {static}01-why-distributed/?memory_stack.size=13e9" in body


def test_the_search_says_what_it_looked_for_and_tries_again(visit, static):
    page = visit().go(f"{static}about/")
    page.get_by_role("textbox", name="Search").click()
    field, links = page.locator("input.md-search__input"), page.locator(".md-search-result__link")
    for typed, said, place in (
        ("oom", "Searched for: out of memory", "symptoms/"),
        ("roofine", "", "glossary/"),
    ):
        field.fill("")
        page.keyboard.insert_text(typed[:-1])
        page.keyboard.type(typed[-1])
        expect(page.locator(".search-said")).to_have_text(said)
        expect(links.and_(page.locator(f"[href*='/{place}']")).first).to_be_attached()
