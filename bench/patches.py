"""What each of our patches of Bokeh is worth (site/theme/assets/widget/skip.js): the main thread's time for a
move of a figure's first slider, with all patches, without one of them, with one of them alone, and with none.

    python -m bench.patches                    a few figures, some twenty minutes
    python -m bench.patches roofline kv_cache  these
"""

from __future__ import annotations

import re
import sys

from playwright.sync_api import Browser, sync_playwright

from bench import servers
from bench.pages import main_slider
from bench.tally import table
from course import browsers
from tests.browser.hands import NOT_COVERED
from tests.conftest import ROOT

SKIP = ROOT / "site" / "theme" / "assets" / "widget" / "skip.js"
FIGURES = ("decode_latency", "pipeline_timeline", "rank_mesh", "layout_planner")  # each with a slider in view
MEND = "clearing"  # a fault mended, which saves nothing and is in use each time
ROUNDS, MOVES = 3, 12
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


def move_ms(browser: Browser, address: str, control: str, without: list[str]) -> float:
    """Milliseconds of the main thread for one move, the least of some rounds."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(NOT_COVERED)
    page.add_init_script(f"window.leaveToBokeh = {without}")
    page.goto(address)
    page.wait_for_selector(LIVE)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent_s() -> float:
        found = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
        return found["TaskDuration"]

    page.evaluate(MOVE, [control, MOVES])
    rounds = []
    for _ in range(ROUNDS):
        before = spent_s()
        page.evaluate(MOVE, [control, MOVES])
        rounds.append((spent_s() - before) / MOVES * 1e3)
    page.close()
    return min(rounds)


def main(slugs: list[str]) -> None:
    """Print a table for these figures."""
    names = patches()
    ways = {"all": [], "none": names}
    ways |= {f"without {name}": [name] for name in names}
    ways |= {f"{name} alone": [each for each in names if each != name] for name in names}
    ways |= {"all, again": [], "none, again": names}  # how far the machine itself has moved meanwhile
    with servers.static() as (home, _), sync_playwright() as playwright:
        chromium = playwright.chromium
        path = browsers.find(chromium.executable_path)
        browser = chromium.launch(executable_path=path, args=browsers.ARGUMENTS)
        rows, sliders = [], {slug: main_slider(slug) for slug in slugs}
        for way, without in ways.items():
            found = [
                move_ms(browser, f"{home}{slug}/", slider, without)
                for slug, slider in sliders.items()
                if slider
            ]
            rows.append([way, *(f"{ms:.1f}" for ms in found)])
            print(*rows[-1], sep="\t", flush=True)
        browser.close()
    table("Milliseconds of the main thread for a move", ["in use", *slugs], rows)


if __name__ == "__main__":
    main(sys.argv[1:] or list(FIGURES))
