"""The field above a long table of the catalogue: it hides rows, by keyboard too, and a page without a script has
them all."""

from playwright.sync_api import expect

from engine import catalog

GPUS = len(catalog.all_gpus())
HEADING = "#accelerators"


def field_of(page):
    return page.locator(f"{HEADING} ~ .table-filter").first.get_by_label("Only rows with")


def rows_of(page):
    return page.locator(f"{HEADING} ~ .catalogue").first.locator("table").first.locator("tbody tr")


def test_rows_without_the_words_are_hidden_and_come_back(visit, static):
    page = visit().go(f"{static}numbers/")
    field, rows = field_of(page), rows_of(page)
    status = page.locator(f"{HEADING} ~ .table-filter").first.get_by_role("status")
    expect(rows).to_have_count(GPUS)
    field.fill("H100")
    expect(rows.locator("visible=true")).to_have_count(3)
    expect(status).to_have_text(f"3 of {GPUS} rows")
    field.fill("ada  6000")
    expect(rows.locator("visible=true").locator("th")).to_have_text(["RTX 6000 Ada"])
    field.fill("abacus")
    expect(rows.locator("visible=true")).to_have_count(0)
    expect(status).to_have_text(f"None of {GPUS} rows has this.")
    field.press("Escape")
    expect(field).to_have_value("")
    expect(rows.locator("visible=true")).to_have_count(GPUS)
    expect(status).to_have_text("")


def test_the_sources_of_a_hidden_row_are_hidden_with_it(visit, static):
    page = visit().go(f"{static}numbers/")
    catalogue = page.locator(f"{HEADING} ~ .catalogue").first
    catalogue.locator("summary").click()
    field_of(page).fill("spark")
    sources = catalogue.locator("details tbody tr").locator("visible=true")
    for rows in (rows_of(page).locator("visible=true"), sources):
        expect(rows.locator("th")).to_have_text(["DGX Spark (GB10)"])


def test_a_short_table_has_no_field(visit, static):
    page = visit().go(f"{static}numbers/")
    fields = page.locator(".table-filter").count()
    assert 4 <= fields < page.locator(".catalogue").count()


def test_without_a_script_every_row_is_there_and_no_field(visit, static):
    page = visit(java_script_enabled=False).go(f"{static}numbers/")
    expect(rows_of(page)).to_have_count(GPUS)
    expect(page.locator(".table-filter")).to_have_count(0)
    expect(page.get_by_role("img", name="inferred").first).to_be_visible()
