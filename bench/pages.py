"""In a real browser: from a drag to its paint, from a click to a drawn lesson, bytes over the wire, memory of
the server."""

from __future__ import annotations

import gzip
import statistics
from functools import cache
from urllib.parse import urlparse

from playwright.sync_api import sync_playwright

from bench import servers
from bench.tally import against, table
from course import browsers
from tests.browser.hands import NOT_COVERED, lessons
from widgets.kit.controls import Number, Player
from widgets.kit.widget import all_widgets

TWO_FRAMES_MS = 34.0  # for 95 of 100 moves: each arrives within one frame and is painted with the next
OF_IDIOMATIC_SERVED = 0.5
FIRST_LESSON, DRAWN_STATIC_S, DRAWN_SERVED_S = "01-why-distributed/", 1.2, 1.5
FIRST_KB, LATER_KB = 900.0, 120.0
LESSON_MB, LEFT_MB = 2.0, 10.0
DEPLOYED_MS = 200.0
LIVE = "figure.widget[data-state=live]"
ALL_LIVE = "() => [...document.querySelectorAll('figure.widget')].every(f => f.dataset.state === 'live')"
ALL_DRAWN = """() => { const all = [...document.querySelectorAll('figure.widget')];
  return document.readyState !== 'loading' && all.length && all.every(f => f.dataset.state === 'live'
    && f.querySelector('.bk-Canvas, canvas, [data-plot] > *')); }"""
TAKEN = "() => ['', ...performance.getEntriesByType('resource').map(e => e.name)].map(name => name || location.href)"

# From the pointer's move to the end of the frame in which a canvas was drawn for it: the current frame, or
# the next one if something was drawn before this one began.
WATCH = """
(() => {
  let moved = 0, making = false;
  window.latencies = [];
  addEventListener("pointermove", () => { moved = performance.now(); }, true);
  addEventListener("mousemove", () => { moved ||= performance.now(); }, true);
  const next = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = act => next(now => { making = true; try { act(now); } finally { making = false; } });
  const afterwards = act => {
    const c = new MessageChannel();
    c.port1.onmessage = act;
    c.port2.postMessage(0);
  };
  for (const name of ["clearRect", "stroke", "fill", "fillText"]) {
    const plain = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) {
      if (moved) {
        const began = moved, shown = () => afterwards(() => window.latencies.push(performance.now() - began));
        moved = 0;
        if (making) shown(); else next(shown);
      }
      return plain.apply(this, given);
    };
  }
})();
"""


# -- a drag --------------------------------------------------------------------------------------------------
def main_slider(slug: str) -> str | None:
    """The name of the first slider in view that is not a player; the parts of a form are open."""
    cls = all_widgets()[slug]
    return next(
        (
            name
            for name, control in cls.controls().items()
            if isinstance(control, Number) and not isinstance(control, Player) and control.slider
            if not control.more or control.more in cls.sections
        ),
        None,
    )


def drag_ms(
    context, address: str, ready: str, handle: str, moves: int = 24, pause_ms: int = 90
) -> list[float]:
    """Milliseconds from each move of a real drag to the end of the frame that shows it."""
    page = context.new_page()
    page.add_init_script(NOT_COVERED)
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_selector(ready, timeout=60000)
    page.wait_for_timeout(1000)
    slider = page.locator(handle).first
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    reach = box["width"] * 0.3 if box["width"] > 60 else 90  # noUiSlider's handle represents itself
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.wait_for_timeout(300)
    page.evaluate("window.latencies.length = 0")
    for i in range(moves):
        page.mouse.move(x - reach * (i % 12 + 1) / 12, y)
        page.wait_for_timeout(pause_ms)
    page.mouse.up()
    found = page.evaluate("window.latencies")
    page.close()
    return found


def drags(context, address: str, slugs, pause_ms: int = 90) -> dict[str, list[float]]:
    """Milliseconds of a drag for each widget, on the widget's own page."""
    return {
        slug: found
        for slug in slugs
        if (name := main_slider(slug))
        and (
            found := drag_ms(
                context,
                f"{address}{slug}/",
                LIVE,
                f"[data-control={name}] input[type=range]",
                pause_ms=pause_ms,
            )
        )
    }


def p95(values: list[float]) -> float:
    """The 95th percentile of some values."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


def report_drags(idiomatic: list[float], still: dict, served: dict) -> None:
    """Print how long each figure takes from a drag to the next picture, beside an ordinary Panel app."""
    base = statistics.median(idiomatic)
    rows = [["idiomatic Panel app (the yardstick)", f"{base:.0f}", f"{p95(idiomatic):.0f}", "1.00", "", ""]]
    for slug, took_ms in still.items():
        middle = statistics.median(took_ms)
        row = [
            slug,
            f"{middle:.0f}",
            against(f"{slug}, drag to paint, static, 95 %", p95(took_ms), TWO_FRAMES_MS, "ms", 0),
            f"{middle / base:.2f}",
        ]
        if slug in served:
            asked = statistics.median(served[slug])
            row += [
                f"{asked:.0f}",
                against(
                    f"{slug}, drag to paint, served, of the yardstick",
                    asked / base,
                    OF_IDIOMATIC_SERVED,
                    "×",
                    2,
                ),
            ]
        rows.append(row + [""] * (6 - len(row)))
    table(
        "From a drag to its paint, ms (static: every widget; served: the first of each lesson)",
        ["widget", "static, median", "95 %", "of the yardstick", "served, median", "of the yardstick"],
        rows,
    )


# -- a lesson ------------------------------------------------------------------------------------------------
@cache
def on_the_wire(path: str) -> int:
    """Bytes of a file as a host sends it: gzip level 6, unless it is already compressed."""
    file = servers.ROOT / "build" / "static" / path.lstrip("/")
    file = file / "index.html" if file.is_dir() else file
    data = file.read_bytes() if file.exists() else b""
    return len(data) if file.suffix in (".woff2", ".png", ".gz") else len(gzip.compress(data, 6))


def opened(context, address: str, lesson: str) -> tuple[float, set[str]]:
    """Seconds until all widgets of a lesson are drawn, and the paths of the files that the page loaded."""
    page = context.new_page()
    page.add_init_script(NOT_COVERED)
    page.goto(address + lesson, wait_until="commit")
    page.wait_for_function(ALL_DRAWN, timeout=60000)
    took = page.evaluate("performance.now() / 1000")
    page.wait_for_timeout(400)
    paths = {urlparse(name).path for name in page.evaluate(TAKEN) if name.startswith(address)}
    page.close()
    return took, paths


def cold(browser, address: str, lesson: str, rounds: int = 1) -> tuple[float, set[str]]:
    """The same with an empty cache: the median of this many visits."""
    found = []
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        found.append(opened(context, address, lesson))
        context.close()
    return statistics.median(took for took, _ in found), found[0][1]


def kb(paths) -> float:
    """Kilobytes of some files as they are sent."""
    return sum(map(on_the_wire, paths)) / 1e3


def report_lessons(browser, static_address: str, served_address: str) -> None:
    """Print how soon each lesson's figures react, and how much a lesson loads."""
    rows, seen = [], set()
    for lesson, slugs in sorted(lessons().items()):
        still_s, paths = cold(browser, static_address, lesson, 3 if lesson == FIRST_LESSON else 1)
        served_s = cold(browser, served_address, lesson, 3 if lesson == FIRST_LESSON else 1)[0]
        tables = {path for path in paths if path.startswith("/assets/widgets/")}
        later = kb(paths - seen - tables)
        seen |= paths
        name = lesson.strip("/") or "home"
        if lesson == FIRST_LESSON:
            still, served = (
                against(f"lesson 01 drawn cold, {way}", took, most, "s", 2)
                for way, took, most in (
                    ("static", still_s, DRAWN_STATIC_S),
                    ("served", served_s, DRAWN_SERVED_S),
                )
            )
        else:
            still, served = f"{still_s:.2f}", f"{served_s:.2f}"
        rows.append(
            [
                name,
                len(slugs),
                still,
                served,
                against(f"{name}, first visit", kb(paths), FIRST_KB, "kB", 0),
                f"{later:.0f}"
                if len(rows) == 0
                else against(f"{name} after others", later, LATER_KB, "kB", 0),
                f"{kb(tables):.0f}",
            ]
        )
    table(
        "Lessons, all widgets drawn with an empty cache, and bytes over the wire (gzip)",
        [
            "lesson",
            "widgets",
            "static, s",
            "served, s",
            "first visit, kB",
            "after others, kB",
            "modules and tables, kB",
        ],
        rows,
    )


# -- memory of the server ------------------------------------------------------------------------------------
def resident_mb(process) -> float:
    """Megabytes of memory that a process holds."""
    return servers.resident_bytes([process]) / 1e6


def live(context, address: str):
    """A page at this address whose figures all answer."""
    page = context.new_page()
    page.add_init_script(NOT_COVERED)
    page.goto(address)
    page.wait_for_function(ALL_LIVE, timeout=60000)
    return page


def report_memory(browser, visits: int, at_once: int = 4) -> None:
    """The server's memory for each open lesson, and what is left after many were opened and closed."""
    rows = []
    with servers.served() as (address, process):
        context = browser.new_context()
        first = live(context, address + FIRST_LESSON)
        for lesson in sorted(lessons()):
            live(context, address + lesson).close()  # loaded once by the server, whoever asks first
            before = resident_mb(process)
            pages = [live(context, address + lesson) for _ in range(at_once)]
            each = (resident_mb(process) - before) / at_once
            name = lesson.strip("/") or "home"
            rows.append([name, against(f"{name}, server memory while open", each, LESSON_MB, "MB", 2)])
            for page in pages:
                page.close()
        first.wait_for_timeout(3000)
        before = resident_mb(process)
        for _ in range(visits):
            live(context, address + FIRST_LESSON).close()
        first.wait_for_timeout(5000)
        left = resident_mb(process) - before
        rows.append(
            [
                f"left after {visits} visits of lesson 01",
                against("left after the visits", left, LEFT_MB, "MB"),
            ]
        )
        context.close()
    table("Memory of the server, MB", ["lesson", "each page open"], rows)


# -- deployments ---------------------------------------------------------------------------------------------
# Presses a preset whose users wait a little longer each time, so that nothing is found ready.
PRESS = """([number, round]) => {
  const button = document.querySelectorAll("[data-preset]")[number];
  const asked = JSON.parse(button.dataset.preset);
  const ttft_s = asked.ttft_s.replace(/[\\d.]+/, number => number * 1.001 ** round);
  button.dataset.preset = JSON.stringify({ ...asked, ttft_s });
  button.click();
  return button.textContent;
}"""
ANSWERED = "() => document.querySelector('[data-deploy]').dataset.state === 'simulated'"


def report_deployments(browser, address: str, rounds: int = 5) -> None:
    """From a preset of the page that plans deployments to its answer in closed form; the simulations follow."""
    page = browser.new_page()
    page.goto(f"{address}deploy/")
    page.wait_for_function(ANSWERED, timeout=60000)  # what it asks by itself, as it starts
    found: dict[str, list[float]] = {}
    for turn in range(1, rounds + 1):
        for number in range(page.locator("[data-preset]").count()):
            title = page.evaluate(PRESS, [number, turn])
            page.wait_for_function(ANSWERED, timeout=60000)
            took = float(page.locator("[data-deploy]").get_attribute("data-took") or "nan")
            found.setdefault(title, []).append(took)
    page.close()
    rows = [
        [
            title,
            f"{first:.0f}",
            against(f"{title}, answered in the page", statistics.median(later), DEPLOYED_MS, "ms", 0),
        ]
        for title, (first, *later) in found.items()
    ]
    table(
        "Which deployment, from a preset to the answer in closed form, ms",
        ["preset", "at first", "later"],
        rows,
    )


def report(visits: int = 200) -> None:
    """Print everything that is measured in a browser."""
    order = [slugs[0] for _, slugs in sorted(lessons().items())]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browsers.find(playwright.chromium.executable_path, whole=True),
            args=browsers.ARGUMENTS,
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        with servers.idiomatic() as (address, _):
            idiomatic = drag_ms(context, address + "panel_app", ".noUi-handle", ".noUi-handle", pause_ms=180)
        with servers.static() as (static_address, _), servers.served() as (served_address, _):
            still = drags(context, static_address, all_widgets())
            served = drags(context, served_address, dict.fromkeys(order), pause_ms=150)
            report_drags(idiomatic, still, served)
            context.close()
            report_lessons(browser, static_address, served_address)
            report_deployments(browser, static_address)
        report_memory(browser, visits)
        browser.close()
