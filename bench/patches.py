"""What each of our patches of Bokeh is worth (site/theme/assets/widget/skip.js): the main thread's time for a
move of a figure's first slider, with all patches, without one of them, with one of them alone, and with none.

    python -m bench.patches                    a few figures, some twenty minutes
    python -m bench.patches roofline kv_cache  these
    python -m bench.patches --drafts           the drafts of pull requests instead, in the pinned BokehJS

A draft is measured in pairs: a page without and one with it, in turns, so that other programs slow both.
"""

from __future__ import annotations

import re
import sys
from statistics import median

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench import servers
from bench.pages import main_slider
from bench.tally import table
from course import browsers
from tests.browser.hands import NOT_COVERED
from tests.browser.test_bokeh import drafted
from tests.conftest import ROOT

SKIP = ROOT / "site" / "theme" / "assets" / "widget" / "skip.js"
FIGURES = ("decode_latency", "pipeline_timeline", "rank_mesh", "layout_planner")  # each with a slider in view
MEND = "clearing"  # a fault mended, which saves nothing and is in use each time
ROUNDS, MOVES = 3, 12
PAIRS = 8
LIVE = "figure.widget[data-state=live]"
# Moves the slider to and fro by a step, each time after the last move has been painted.
MOVE = """async ([name, moves]) => {
  const slider = document.querySelector(`figure.widget [data-control="${name}"] input[type=range]`);
  const frame = () => new Promise(requestAnimationFrame);
  const later = () => new Promise(done => setTimeout(done, 5));
  const half = Math.floor(slider.max / 2);
  for (let i = 0; i < moves; i++) {
    slider.value = half + i % 2 + (i >> 1) % 3;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await frame(), await frame(), await later();
  }
}"""


def patches() -> list[str]:
    """The names of all patches but the mend."""
    names = re.findall(r"^  (\w+): \{ patch:", SKIP.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for name in names if name != MEND]


def opened(browser: Browser, address: str, without: list[str], script: str = "") -> tuple[Page, CDPSession]:
    """A figure's page without these patches, by this BokehJS if one is given, and what tells its times."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(NOT_COVERED)
    page.add_init_script(f"window.leaveToBokeh = {without}")
    if script:
        page.route("**/bokeh.min.js*", lambda of: of.fulfill(body=script, content_type="text/javascript"))
    page.goto(address)
    page.wait_for_selector(LIVE)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    return page, tools


def round_ms(page: Page, tools: CDPSession, control: str) -> float:
    """Milliseconds of the main thread for one of some moves."""

    def spent_s() -> float:
        found = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
        return found["TaskDuration"]

    before = spent_s()
    page.evaluate(MOVE, [control, MOVES])
    return (spent_s() - before) / MOVES * 1e3


def move_ms(browser: Browser, address: str, control: str, without: list[str]) -> float:
    """Milliseconds of the main thread for one move, the least of some rounds."""
    page, tools = opened(browser, address, without)
    page.evaluate(MOVE, [control, MOVES])
    rounds = [round_ms(page, tools, control) for _ in range(ROUNDS)]
    page.close()
    return min(rounds)


def pair_ms(browser: Browser, address: str, control: str, names: list[str]) -> str:
    """What these drafts save of a move's milliseconds, and between what the middle half of the pairs lies,
    beside what a move takes without them."""
    texts = [drafted(MEND), drafted(MEND, *names)]
    pages = [opened(browser, address, [*patches(), MEND], text) for text in texts]
    for page, _ in pages:
        page.evaluate(MOVE, [control, MOVES])
    pairs = []
    for turn in range(PAIRS):
        order = pages if turn % 2 else pages[::-1]
        found = {id(page): round_ms(page, tools, control) for page, tools in order}
        pairs.append([found[id(page)] for page, _ in pages])
    for page, _ in pages:
        page.close()
    saved = sorted(off - on for off, on in pairs)
    low, high = saved[PAIRS // 4], saved[-1 - PAIRS // 4]
    return f"{median(saved):.1f} ({low:.1f} to {high:.1f}) of {median(off for off, _ in pairs):.1f}"


def main(slugs: list[str], drafts: bool) -> None:
    """Print a table for these figures."""
    names = patches()
    if drafts:
        ways = {"nothing": [], **{name: [name] for name in names}, "all": names}
        title, column, measure = "Milliseconds of a move that a draft saves", "draft", pair_ms
    else:
        ways = {"all": [], "none": names}
        ways |= {f"without {name}": [name] for name in names}
        ways |= {f"{name} alone": [each for each in names if each != name] for name in names}
        ways |= {"all, again": [], "none, again": names}  # how far the machine itself has moved meanwhile
        title, column = "Milliseconds of the main thread for a move", "in use"
        measure = lambda *given: f"{move_ms(*given):.1f}"
    with servers.static() as (home, _), sync_playwright() as playwright:
        chromium = playwright.chromium
        path = browsers.find(chromium.executable_path)
        browser = chromium.launch(executable_path=path, args=browsers.ARGUMENTS)
        sliders = {slug: slider for slug in slugs if (slider := main_slider(slug))}
        rows = []
        for way, chosen in ways.items():
            found = (measure(browser, f"{home}{slug}/", slider, chosen) for slug, slider in sliders.items())
            rows.append([way, *found])
            print(*rows[-1], sep="\t", flush=True)
        browser.close()
    table(title, [column, *sliders], rows)


if __name__ == "__main__":
    wanted = [each for each in sys.argv[1:] if each != "--drafts"]
    main(wanted or list(FIGURES), "--drafts" in sys.argv)
