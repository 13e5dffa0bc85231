"""In a real browser: from a drag to its paint, from a click to a drawn lesson, bytes over the wire, memory of the server."""

from __future__ import annotations

import gzip
import shutil
import statistics
from pathlib import Path

from bench import servers
from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LESSON = "01-why-distributed/"

# From the pointer's move to the end of the frame in which a canvas was drawn for it.
WATCH = """
(() => {
  let moved = 0;
  window.latencies = [];
  addEventListener("pointermove", () => { moved = performance.now(); }, true);
  addEventListener("mousemove", () => { moved ||= performance.now(); }, true);
  for (const name of ["clearRect", "stroke", "fill", "fillText"]) {
    const plain = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) {
      if (moved) {
        const began = moved;
        moved = 0;
        requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => window.latencies.push(performance.now() - began); c.port2.postMessage(0); });
      }
      return plain.apply(this, given);
    };
  }
})();
"""


def browser_path() -> str | None:
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


def handle(page):
    """The middle of the model-size slider's handle."""
    slider = page.locator("[data-control=size] input[type=range]")
    if slider.count():
        slider.first.scroll_into_view_if_needed()
        box = slider.first.bounding_box()
        return box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2, box["width"]
    box = page.locator(".noUi-handle").first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 300


def drag_latencies(context, address: str, ready: str, moves: int = 40) -> list[float]:
    """Milliseconds from each move of a real drag to the end of the frame that shows it."""
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_selector(ready, timeout=30000)
    page.wait_for_timeout(1500)
    x, y, width = handle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.wait_for_timeout(300)
    page.evaluate("window.latencies.length = 0")
    for i in range(moves):
        step = width * 0.3 * (i % 20 + 1) / 20
        page.mouse.move(x - step, y)
        page.wait_for_timeout(180)
    page.mouse.up()
    found = page.evaluate("window.latencies")
    page.close()
    return found


def drawn_s(browser, address: str) -> tuple[float, int]:
    """Seconds from an empty cache to all widgets of the lesson live, and how many they are."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address + LESSON, wait_until="commit")
    page.wait_for_function("""() => { const all = [...document.querySelectorAll('figure.widget')];
        return document.readyState !== 'loading' && all.length && all.every(f => f.dataset.state === 'live' && f.querySelector('.bk-Canvas, canvas, [data-plot] > *')); }""",
                           timeout=60000)
    took, count = page.evaluate("[performance.now() / 1000, document.querySelectorAll('figure.widget').length]")
    context.close()
    return took, count


def wire_bytes(browser, address: str) -> tuple[int, int]:
    """Bytes of a first visit to the lesson, compressed as a host does (gzip level 6), and of the home page after it."""
    seen: dict[str, int] = {}

    def count(response):
        if response.url in seen or not response.url.startswith(address):
            return
        body = response.body()
        kind = response.headers.get("content-type", "")
        seen[response.url] = len(body if "woff" in kind or "image/png" in kind else gzip.compress(body, 6))

    context = browser.new_context()
    page = context.new_page()
    page.on("requestfinished", lambda request: count(request.response()))
    page.goto(address + LESSON)
    page.wait_for_function("() => [...document.querySelectorAll('figure.widget')].every(f => f.dataset.state === 'live')")
    page.wait_for_timeout(800)
    first = sum(seen.values())
    page.goto(address)
    page.wait_for_timeout(800)
    context.close()
    return first, sum(seen.values()) - first


def resident_bytes(process) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no memory figure for the server")


def server_memory(browser, rounds: int = 200, open_at_once: int = 10) -> tuple[float, float]:
    """Bytes the server takes for one open lesson, and what is left after so many were opened and closed."""
    with servers.served() as (address, process):
        def visit(context):
            page = context.new_page()
            page.goto(address + LESSON)
            page.wait_for_function("() => [...document.querySelectorAll('figure.widget')].every(f => f.dataset.state === 'live')")
            return page
        context = browser.new_context()
        visit(context).close()
        base_page = visit(context)
        base_page.wait_for_timeout(4000)
        before = resident_bytes(process)
        pages = [visit(context) for _ in range(open_at_once)]
        pages[-1].wait_for_timeout(1500)
        each = (resident_bytes(process) - before) / open_at_once
        for page in pages:
            page.close()
        for _ in range(rounds):
            visit(context).close()
        base_page.wait_for_timeout(5000)
        left = resident_bytes(process) - before
        context.close()
        return each, left


def quantile(values, share):
    return statistics.quantiles(values, n=100)[int(share * 100) - 1]


def report(memory_rounds: int = 200) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        with servers.idiomatic() as (address, _):
            yardstick = drag_latencies(context, address + "panel_app", ".noUi-handle")
        with servers.static() as (address, _):
            still = drag_latencies(context, address + "memory_stack/", "figure.widget[data-state=live]")
            static_drawn = statistics.median(drawn_s(browser, address)[0] for _ in range(3))
            widgets = drawn_s(browser, address)[1]
            first, later = wire_bytes(browser, address)
        with servers.served() as (address, _):
            served = drag_latencies(context, address + "memory_stack/", "figure.widget[data-state=live]")
            served_drawn = statistics.median(drawn_s(browser, address)[0] for _ in range(3))
        base = statistics.median(yardstick)
        rows = [("idiomatic Panel app (the yardstick)", yardstick), ("static page", still), ("served page", served)]
        print("\nFrom a drag to its paint, ms           median     p95   against the yardstick")
        for name, values in rows:
            print(f"  {name:36s} {statistics.median(values):6.1f}  {quantile(values, 0.95):6.1f}   {statistics.median(values) / base:5.2f}   ({len(values)} moves)")
        print(f"\nLesson 01, {widgets} widgets drawn, cold cache: static {static_drawn:.2f} s, served {served_drawn:.2f} s")
        print(f"Over the wire (gzip): first visit {first / 1e3:.0f} kB, the next page {later / 1e3:.0f} kB more")
        if memory_rounds:
            each, left = server_memory(browser, memory_rounds)
            print(f"Server memory: {each / 1e6:.2f} MB for an open lesson; {left / 1e6:.1f} MB left after {memory_rounds} opened and closed")
        browser.close()
