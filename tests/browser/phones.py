"""What a page must be on a phone: no wider than its window, and whole."""

from playwright.sync_api import Page, expect

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
WITH_TABLES = ("01-why", "03-interconnect", "07-pipeline", "14-mixed", "19-cuda")
CUT = """() => [...document.querySelectorAll(".md-typeset table:not([class], [data-numbers])")].filter(table => !table.closest("figure"))
  .filter(table => table.scrollWidth > (table.closest(".md-typeset__scrollwrap") ?? table.parentElement).clientWidth + 1)
  .map(table => table.innerText.slice(0, 60))"""
# every rule of every lesson, and all that the first five lessons derive; inline ones would widen the page
WITH_FORMULAS = ("formulas", "01-why", "02-collectives", "03-interconnect", "04-data", "05-fsdp")
CUT_FORMULAS = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  return [...document.querySelectorAll(".md-content math[display=block]")]
    .filter(math => !math.closest("figure") && math.scrollWidth > math.clientWidth + 1)
    .map(math => math.getAttribute("alttext"));
}"""


def fits_a_phone(page: Page) -> None:
    for figure in page.locator("figure.widget").all():
        expect(figure).to_have_attribute("data-state", "live")
    width, seen = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert width <= seen == 390


def suits_a_phone(page: Page, address: str) -> None:
    """It never scrolls sideways and cuts no table or formula."""
    fits_a_phone(page)
    if address.startswith(WITH_TABLES):
        expect(page.locator("table:is([data-stacked], [data-numbers])").first).to_be_attached()
        assert page.evaluate(CUT) == []
    if address.startswith(WITH_FORMULAS):
        assert page.locator(".md-content math[display=block]").count() and page.evaluate(CUT_FORMULAS) == []
