"""The course as a PDF, build/system-ml.pdf: the page /book/ of the built site, drawn and printed by Chromium.

    python site/paper.py                                    after site/build.py
    SITE_URL=https://example.org/course/ make book          its links then lead to that address

The contents have page numbers: a first printing says on which page each heading comes to stand, a second one shows it.
"""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import sync_playwright
from pypdf import PdfReader

from tests import browsers

ROOT = Path(__file__).resolve().parents[1]
SITE, OUT = ROOT / "build" / "static", ROOT / "build" / "system-ml.pdf"
PATIENCE_MS = 600_000
# Links to other pages of the course: to the public site, where there is one; on paper alone they are words.
LEAD_OUT = """address => {
  const home = new URL("..", location);
  document.title = [".book-name", ".book-subtitle"].map((name) => document.querySelector(name).textContent).join(": ");
  if (address) document.querySelector("[data-public]").textContent = ` The live course: ${address}`;
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.getAttribute("href").startsWith("#") || !link.href.startsWith(home)) continue;
    const rest = link.href.slice(home.href.length);
    if (!address) link.removeAttribute("href");
    else link.href = address + rest;
    if (address && link.closest(".still-live")) link.textContent = address + rest;
  }
}"""
NUMBER = """pages => {
  for (const link of document.querySelectorAll(".book-contents a")) link.dataset.onPage = pages[link.hash.slice(1)] ?? "";
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Hands out files and says nothing of it."""

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path):
    """The address of the folder on a server of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def ready(page, public: str) -> None:
    """Every picture drawn, every link as it is on paper."""
    page.evaluate("window.print = () => {}")
    page.locator("[data-print]").click()
    page.locator("body[data-stills=drawn]").wait_for(state="attached")
    page.evaluate(LEAD_OUT, public)


def printed(page, tagged: bool) -> bytes:
    """The page on A4 sheets, with bookmarks."""
    return page.pdf(format="A4", print_background=True, outline=tagged, tagged=tagged)


def pages_of_headings(pdf: bytes) -> dict[str, int]:
    """Anchor -> the page it stands on, for whatever is linked to."""
    reader = PdfReader(io.BytesIO(pdf))
    return {name.removeprefix("/"): reader.get_destination_page_number(place) + 1 for name, place in reader.named_destinations.items()}


def with_page_numbers(page) -> bytes:
    """The printed book; the contents tell its pages."""
    before = pages_of_headings(printed(page, tagged=False))
    page.evaluate(NUMBER, before)
    book = printed(page, tagged=True)
    assert pages_of_headings(book) == before, "the numbers in the contents have moved a page"
    return book


def main() -> None:
    if not (SITE / "book" / "index.html").exists():
        sys.exit("There is no built site; run site/build.py first.")
    public, began = os.environ.get("SITE_URL", "").rstrip("/"), time.perf_counter()
    with served(SITE) as address, sync_playwright() as playwright:
        chromium = playwright.chromium
        browser = chromium.launch(executable_path=browsers.find(chromium.executable_path), args=browsers.ARGUMENTS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}book/")
        ready(page, public and f"{public}/")
        OUT.write_bytes(with_page_numbers(page))
        browser.close()
    print(f"Wrote {OUT.relative_to(ROOT)}, {len(PdfReader(OUT).pages)} pages, {OUT.stat().st_size / 1e6:.1f} MB, in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
