"""The course as a PDF, build/system-ml.pdf: the page /book/ of the built site, rendered and printed by
Chromium. The pictures of figures that are drawn for this are also used for the EPUB, build/system-ml.epub
(epub.py).

    python -m course.output.paper                                    after course/build.py
    SITE_URL=https://example.org/course/ make book          its links then lead to that address

The contents have page numbers: a first printing tells on which page each heading lands, a second one includes
the numbers.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.sync_api import Page, sync_playwright
from pypdf import PdfReader

from course import browsers
from course.output import epub
from engine.base.bar import Bar

ROOT = Path(__file__).resolve().parents[2]
SITE, OUT = ROOT / "build" / "static", ROOT / "build" / "system-ml.pdf"
EPUB = OUT.with_suffix(".epub")
PATIENCE_MS = 600_000
# Links to other pages of the course lead to the public site, if there is one; otherwise they become plain
# text.
LEAD_OUT = """address => {
  const home = new URL("..", location);
  const words = (name) => document.querySelector(name).textContent;
  document.title = [".book-name", ".book-subtitle"].map(words).join(": ");
  if (address) document.querySelector("[data-public]").textContent = ` The live course: ${address}`;
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.getAttribute("href").startsWith("#") || !link.href.startsWith(home)) continue;
    const rest = link.href.slice(home.href.length);
    if (!address) link.removeAttribute("href");
    else link.href = address + rest;
    if (address && link.closest(".still-live")) link.textContent = address + rest;
  }
}"""
PICTURES = """() => Object.fromEntries([...document.querySelectorAll("[data-drawn]")].map(figure =>
  [figure.id, figure.querySelector(".still-picture img").src]))"""
PRINTS = 5  # at most, until the numbers in the contents are those of the pages
NUMBER = """pages => {
  for (const link of document.querySelectorAll(".book-contents a")) {
    link.dataset.onPage = pages[link.hash.slice(1)] ?? "";
  }
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of the folder on a temporary server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def ready(page: Page, public: str) -> None:
    """Wait until every picture is drawn, and convert links for paper."""
    page.evaluate("window.print = () => {}")
    page.locator("[data-print]").click()
    page.locator("body[data-stills=drawn]").wait_for(state="attached")
    page.evaluate(LEAD_OUT, public)


def pictures(page: Page) -> dict[str, bytes]:
    """Each figure's id in the book -> its picture, as PNG."""
    drawn = page.evaluate(PICTURES)
    return {name: base64.b64decode(address.partition(",")[2]) for name, address in drawn.items()}


def printed(page: Page) -> bytes:
    """The page on A4 sheets, with bookmarks."""
    return page.pdf(format="A4", print_background=True, outline=True, tagged=True)


def pages_of_headings(pdf: bytes) -> dict[str, int]:
    """Anchor -> its page, for every anchor that is linked to."""
    reader = PdfReader(io.BytesIO(pdf))
    return {
        name.removeprefix("/"): (reader.get_destination_page_number(place) or 0) + 1
        for name, place in reader.named_destinations.items()
    }


def with_page_numbers(page: Page) -> bytes:
    """The printed book, with page numbers in the contents. A number may make its line longer and so move what
    comes after it; then the numbers are set again."""
    set_so_far: dict[str, int] = {}
    for _ in range(PRINTS):
        book = printed(page)
        found = pages_of_headings(book)
        if found == set_so_far:
            return book
        page.evaluate(NUMBER, found)
        set_so_far = found
    raise RuntimeError(f"the numbers in the contents moved the pages in each of {PRINTS} prints")


def main() -> None:
    """Print the book and its parts as PDF files from the built site."""
    if not (SITE / "book" / "index.html").exists():
        sys.exit("There is no built site; run python -m course.build first.")
    public, began = os.environ.get("SITE_URL", "").rstrip("/"), time.perf_counter()
    with Bar("Printing the book"), served(SITE) as address, sync_playwright() as playwright:
        chromium = playwright.chromium
        browser = chromium.launch(
            executable_path=browsers.find(chromium.executable_path), args=browsers.ARGUMENTS
        )
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}book/")
        ready(page, public and f"{public}/")
        OUT.write_bytes(with_page_numbers(page))
        EPUB.write_bytes(epub.written(SITE, pictures(page), public and f"{public}/"))
        browser.close()
    print(
        f"Wrote {OUT.relative_to(ROOT)}, {len(PdfReader(OUT).pages)} pages, {OUT.stat().st_size / 1e6:.1f} "
        f"MB, and {EPUB.relative_to(ROOT)}, {EPUB.stat().st_size / 1e6:.1f} MB, "
        f"in {time.perf_counter() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
