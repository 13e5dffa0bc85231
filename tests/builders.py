"""Compares the pages of the two programs that can make them: make builders, or python -m tests.builders.

Both sites must be there (make site, make site BUILDER=zensical). For each page: the words and the links of
its article, its title, and with a browser how much of its picture differs, on a desk and on a phone. What
differs is printed; the exit status is 1 if words, links or titles do, or more of a picture than ``ALLOWED``,
or if a question of tests/course/test_search.py does not find its place in Zensical's search. Pictures that
differ are kept side by side in build/builders.
"""

from __future__ import annotations

import functools
import http.server
import io
import re
import sys
import threading
import time
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

from PIL import Image, ImageChops
from playwright.sync_api import TimeoutError as Late
from playwright.sync_api import sync_playwright

from course import browsers
from tests.course.test_search import TYPED

ROOT = Path(__file__).resolve().parents[1]
SITES = {"mkdocs": ROOT / "build" / "static", "zensical": ROOT / "build" / "zensical"}
KEPT = ROOT / "build" / "builders"
WIDTHS = (1280, 390)
TALLEST = 1600  # pixels of an article
WINDOW = 2400  # pixels, so that it is in view from the start; a picture never needs another window
ALLOWED = 0.02  # of a picture's pixels
SEEN = 24  # by so much of 255 do two pixels differ that somebody sees it
ARTICLE = re.compile(r"<article[^>]*>(.*)</article>", re.DOTALL)
LINK = re.compile(r'(?:href|src)="([^"]*)"')
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
SILENT = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
# Nothing moves, and no scroll bar takes room, which Zensical draws itself. Before any script of the
# page: tables.js measures how wide a table may be, and what it decides stays.
STILL = """{ const sheet = new CSSStyleSheet(); sheet.replaceSync(`
  *, *::before, *::after { animation: none !important; transition: none !important; }
  html, body { scrollbar-width: none !important; } ::-webkit-scrollbar { display: none !important; }`);
document.adoptedStyleSheets.push(sheet); }"""
# The fonts are here, and of what is in view each picture has come and each figure is live, or waits for its
# reader's prediction. A picture for the other theme is not in view, and never comes.
THERE = """() => {
  const unseen = element => !element.checkVisibility() || element.getBoundingClientRect().top > innerHeight;
  const all = (kind, is) => [...document.querySelectorAll(kind)].every(found => unseen(found) || is(found));
  return document.fonts.status === "loaded" && all("img", image => image.complete)
    && all("figure.widget", figure => ["live", "asked"].includes(figure.dataset.state));
}"""
PATIENCE_MS = 60_000
PAUSE_MS = 200  # between two pictures, which are alike where a page has come to rest


def pages(site: Path) -> list[str]:
    """The folders of a site's pages that have an article of the course."""
    found = sorted(path.parent.relative_to(site).as_posix() for path in site.glob("**/index.html"))
    return [name for name in found if ARTICLE.search(read(site, name)) and "/" not in name]


def read(site: Path, name: str) -> str:
    return (site / name / "index.html").read_text(encoding="utf-8")


def words(html: str) -> str:
    """What a page's article says."""
    article = SILENT.sub(" ", ARTICLE.search(html)[1])
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", article)).split())


def links(html: str, name: str) -> list[str]:
    """Where the links of a page's article lead, from the site's root."""
    home = "http://site.invalid/"
    return [urljoin(f"{home}{name}/", unescape(each)) for each in LINK.findall(ARTICLE.search(html)[1])]


def told(name: str) -> list[str]:
    """What differs between the two pages of this name without looking at them."""
    one, other = (read(site, name) for site in SITES.values())
    found = []
    if words(one) != words(other):
        found.append(f"words: {first_difference(words(one).split(), words(other).split())}")
    if links(one, name) != links(other, name):
        found.append(f"links: {first_difference(links(one, name), links(other, name))}")
    if TITLE.findall(one) != TITLE.findall(other):
        found.append(f"title: {TITLE.findall(one)} and {TITLE.findall(other)}")
    return found


def first_difference(one: list[str], other: list[str]) -> str:
    """Where two lists part, in the words of both."""
    at = next((i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
    return f"“{' '.join(one[at : at + 8])}” and “{' '.join(other[at : at + 8])}”"


# -- pictures ------------------------------------------------------------------------------------------------
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def served(site: Path) -> str:
    """The address at which a site is served until this program ends."""
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/"


def picture(page, address: str) -> Image.Image:
    """The beginning of a page's article once all of it is there and two pictures in a row are alike. What is
    around it, the header and the lists, is the theme's own and not compared."""
    page.goto(address, wait_until="networkidle", timeout=PATIENCE_MS)
    top = page.locator("article").first.bounding_box()["y"]  # in the book far below its table of contents
    tall = max(WINDOW, int(top) + TALLEST)
    page.set_viewport_size({"width": page.viewport_size["width"], "height": tall})
    page.wait_for_function(THERE, timeout=PATIENCE_MS)
    last, until = None, time.monotonic() + PATIENCE_MS / 1e3
    while time.monotonic() < until:
        box = page.locator("article").first.bounding_box()
        height = min(box["height"], TALLEST, tall - box["y"])
        taken = page.screenshot(clip=box | {"height": height})
        if taken == last:
            return Image.open(io.BytesIO(taken)).convert("RGB")
        last = taken
        page.wait_for_timeout(PAUSE_MS)
    raise Late(f"{address} did not come to rest")


def beside(one: Image.Image, other: Image.Image) -> Image.Image:
    """Two pictures in one, side by side."""
    both = Image.new("RGB", (one.width + other.width, max(one.height, other.height)), "white")
    both.paste(one, (0, 0))
    both.paste(other, (one.width, 0))
    return both


def differs(one: Image.Image, other: Image.Image) -> float:
    """The share of pixels that are not alike, those included that only one of the two has."""
    size = min(one.width, other.width), min(one.height, other.height)
    lost = 1 - size[0] * size[1] / max(one.width * one.height, other.width * other.height)
    one, other = (each.crop((0, 0, *size)) for each in (one, other))
    bands = ImageChops.difference(one, other).split()
    most = functools.reduce(ImageChops.lighter, bands)
    return lost + sum(most.histogram()[SEEN:]) / (one.width * one.height)


# -- search --------------------------------------------------------------------------------------------------
ASK = """async typed => {
  const index = await (await fetch("/search.json")).json();
  const { search } = JSON.parse(document.getElementById("__config").textContent);
  const worker = new Worker(new URL(search, location));
  const answer = (type, data) => new Promise(done => {
    worker.onmessage = ({ data: { data } }) => done(data);
    worker.postMessage({ type, data });
  });
  await answer(0, index);
  const found = {}, filter = { input: { type: "operator", data: { operator: "and", operands: [] } } };
  for (const input of typed) {
    const { items } = await answer(2, { input, filter });
    found[input] = items.slice(0, 2).map(({ id }) => index.items[id].location);
  }
  return found;
}"""


def not_found(page, home: str) -> list[str]:
    """The questions whose place is not among the first two that Zensical's own search finds, asked through
    the page's scripts as a reader's are."""
    page.goto(home)
    found = page.evaluate(ASK, list(TYPED))
    is_it = lambda place, want: place == want or ("#" not in want and place.startswith(want))
    return [
        f"search: “{typed}” finds {found[typed]}"
        for typed, wanted in TYPED.items()
        if not any(is_it(place, want) for place in found[typed] for want in wanted.split())
    ]


def main(wanted: list[str]) -> int:
    """Compare the pages of these names, or all."""
    missing = [name for name, site in SITES.items() if not (site / "index.html").is_file()]
    if missing:
        sys.exit(f"no site of {', '.join(missing)}: make site, then make site BUILDER=zensical")
    one, other = (set(pages(site)) for site in SITES.values())
    wrong = [f"{name}: only one of the two has it" for name in sorted(one ^ other)]
    names = wanted or sorted(one & other)
    for name in names:
        wrong += [f"{name}: {each}" for each in told(name)]
    with sync_playwright() as playwright:
        chromium = playwright.chromium
        path = browsers.find(chromium.executable_path)
        browser = chromium.launch(executable_path=path, args=browsers.ARGUMENTS)
        homes = [served(site) for site in SITES.values()]
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": WINDOW})
            page.add_init_script(STILL)
            for name in names:
                try:
                    taken = [picture(page, f"{home}{name}/") for home in homes]
                except Late as fault:
                    wrong.append(f"{name} at {width} px: {fault}")
                    continue
                share = differs(*taken)
                print(f"{name} at {width}: {share:.1%} of the picture differs", flush=True)
                if share:
                    KEPT.mkdir(exist_ok=True)
                    beside(*taken).save(KEPT / f"{name}-{width}.png")
                if share > ALLOWED:
                    wrong.append(f"{name}: {share:.1%} of its picture at {width} px differs")
            page.close()
        page = browser.new_page()
        wrong += not_found(page, homes[1])
        print(f"{len(TYPED)} questions asked of Zensical's search")
        browser.close()
    print("\n".join(["", *wrong, f"{len(names)} pages compared, {len(wrong)} differences"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
