"""The course on paper: a chapter is drawn, printed and read again; and the page for what is not there finds
the way home."""

import io
import re
import struct
import zipfile
import zlib
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from course.output import epub, paper
from tests.browser import axe

CHAPTER = "12-disaggregated-serving"
TITLE = "12 Disaggregated serving"


def of_one_chapter(html: str) -> str:
    """The book without its other chapters: all of them take minutes."""

    def cut(chapter):
        return chapter[0] if f'data-page="{CHAPTER}"' in chapter[0] else ""

    return re.sub(
        r'<section class="book-part".*?</section>',
        "",
        re.sub(r'<article class="chapter.*?</article>', cut, html, flags=re.DOTALL),
        flags=re.DOTALL,
    )


def test_a_chapter_is_printed_with_its_pictures_and_the_pages_of_its_contents(visit, static, site):
    window = visit(color_scheme="dark")
    html = of_one_chapter((site / "book" / "index.html").read_text(encoding="utf-8"))
    window.page.route("**/book/", lambda route: route.fulfill(body=html, content_type="text/html"))
    page = window.go(f"{static}book/")
    assert axe.faults(page) == []

    paper.ready(page, "https://example.org/course/")
    stills = page.locator("[data-still]")
    expect(page.locator("[data-still][data-drawn]")).to_have_count(stills.count())
    assert stills.count() == html.count("data-still=") >= 2
    expect(page.locator("iframe")).to_have_count(0)
    for picture in page.locator(".still-picture img").all():
        assert picture.evaluate("img => img.naturalWidth") >= 1200
    assert page.locator(".still-live a").first.get_attribute("href").startswith("https://example.org/course/")

    book = PdfReader(io.BytesIO(paper.with_page_numbers(page)))
    texts = [sheet.extract_text() for sheet in book.pages]
    begins = next(number for number, text in enumerate(texts, 1) if "Lesson 12" in text and "minutes" in text)
    listed = "\n".join(texts[: begins - 1])
    assert re.search(rf"{TITLE}\s+{begins}\b", listed), listed
    assert len(re.findall(r"Sources\s+\d+", listed)) == 1
    assert sum(len(sheet.images) for sheet in book.pages) >= stills.count()
    assert TITLE in [entry.title for entry in book.outline if not isinstance(entry, list)]
    assert all(text.strip() for text in texts), "a blank page"
    assert "Part III · Composition and inference" in texts[begins], "the head of its pages"
    drawn = paper.pictures(page)
    assert len(drawn) == stills.count() and all(each.startswith(b"\x89PNG") for each in drawn.values())
    assert all(f'id="{name}"' in html for name in drawn)


@pytest.mark.parametrize("lost", ["nothing/here/at/all", "memory_stack/nothing.html"])
def test_the_page_for_what_is_not_there_finds_home_from_any_depth(visit, static, site, lost):
    """In a subfolder of a host, as most static hosts give it out: at the address that was asked for."""

    def host(route):
        path = urlsplit(route.request.url).path.removeprefix("/course/")
        file = site / path / "index.html" if (site / path).is_dir() else site / path
        missing = not file.is_file() or not urlsplit(route.request.url).path.startswith("/course/")
        route.fulfill(path=site / "404.html" if missing else file, status=404 if missing else 200)

    window = visit()
    window.forgive("404", "lost.js")  # the levels at which the script is not
    window.page.route("**/*", host)
    page = window.go(f"{static}course/{lost}")
    expect(page.get_by_role("heading", name="There is no page at this address")).to_be_visible()
    page.get_by_role("link", name="the words of the course").click()
    expect(page).to_have_url(f"{static}course/glossary/")
    expect(page).to_have_title("Glossary - System ML")


def test_served_too_what_is_not_there_is_said_and_leads_home(visit, served):
    window = visit()
    window.forgive("404", "lost.js")
    page = window.go(f"{served}nothing/here")
    expect(page.get_by_role("heading", name="There is no page at this address")).to_be_visible()
    assert page.get_by_role("link", name="the home page").evaluate("link => link.href") == served


def test_on_paper_a_lesson_begins_with_its_case_and_not_with_expressions(visit, static):
    """On a screen a box that a reader may open; printed open, it would be the first page."""
    window = visit(java_script_enabled=False)
    window.forgive(" csp")  # what scripts would have loaded
    page = window.go(f"{static}04-data-parallel/")
    box = page.locator("details.given")
    expect(box).to_be_visible()
    page.emulate_media(media="print")
    expect(box).to_be_hidden()
    expect(page.locator(".admonition-title").first).to_have_text("Opening case")


READER, MARGIN = {"width": 600, "height": 800}, 30  # a small reader of e-books
PAGED = (
    f"html {{ margin: 0; }} body {{ margin: 0; padding: {MARGIN}px; box-sizing: border-box; height: {READER['height']}px; "
    f"width: {READER['width']}px; column-width: {READER['width'] - 2 * MARGIN}px; column-gap: {2 * MARGIN}px; column-fill: auto; }}"
)
# Which share of each page is filled, up to the lowest line or picture on it.
FILLED = """([width, height, margin]) => {
  const lowest = [], put = box => {
    const page = Math.floor((box.left + 1) / width);
    if (box.width && box.height) lowest[page] = Math.max(lowest[page] ?? 0, box.bottom);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT), range = document.createRange();
  for (let node; node = walk.nextNode();) {
    if (node.nodeType === Node.TEXT_NODE && node.textContent.trim()) { range.selectNodeContents(node); [...range.getClientRects()].forEach(put); }
    if (node instanceof Element && node.matches("img, math")) [...node.getClientRects()].forEach(put);
  }
  return [...lowest].map(bottom => ((bottom ?? margin) - margin) / (height - 2 * margin));
}"""


def blank(width: int, height: int) -> bytes:
    """A grey picture of this size, as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xcc" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_no_page_of_the_e_book_is_half_empty(browser, site, tmp_path):
    """Its figures are grey here, and as large as they are drawn."""
    html = (site / "book" / "index.html").read_text(encoding="utf-8")
    stills = re.split(r'class="still" id="', html)[1:]
    pictures = {
        each.partition('"')[0]: blank(
            726, int(re.search(r'still-picture" style="min-height:(\d+)px', each)[1])
        )
        for each in stills
    }
    assert len(pictures) > 40
    with zipfile.ZipFile(io.BytesIO(epub.written(site, pictures, ""))) as packed:
        packed.extractall(tmp_path)
    page, empty, count = browser.new_page(viewport=READER), [], 0
    for file in sorted((tmp_path / "EPUB").glob("*.xhtml")):
        page.goto(file.as_uri())
        page.add_style_tag(content=PAGED)
        filled = page.evaluate(FILLED, [READER["width"], READER["height"], MARGIN])
        count += len(filled)
        empty += [
            f"{file.stem}, page {at}: {share:.0%}" for at, share in enumerate(filled[:-1], 1) if share < 0.45
        ]
    page.close()
    assert count > 400 and empty == []
