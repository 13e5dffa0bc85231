"""Widgets and the examples behind ``panel serve``, in a browser."""

import re
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from playwright.sync_api import expect

from tests import representatives, states
from tests.conftest import ROOT
from widgets.kit.drawing import panels, tokens
from widgets.kit.widget import all_widgets

WIDGETS = sorted(all_widgets())
FILES = [
    *(f"{cls.__module__.replace('.', '/')}.py" for cls in all_widgets().values()),
    *(f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.py"))),
    "tests/browser/apps/dark_template.py",
]
TITLES = {
    "which_chip": "Which chip for this model?",
    "pipeline_bench": "A pipeline on the bench",
    "capacity_board": "What the run takes",
    "serving_board": "What does a deployment answer?",
    "roofline": "Which ceiling does each piece of work meet",
}


@pytest.fixture(scope="module")
def apps():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "panel", "serve", *FILES, "--port", str(port), "--address", "127.0.0.1"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    for _ in range(300):
        try:
            urllib.request.urlopen(address, timeout=5)
            break
        except OSError:
            assert server.poll() is None, "panel serve has stopped"
            time.sleep(0.2)
    yield address
    server.terminate()
    server.wait()


@pytest.fixture(scope="module")
def opened(browser):
    """Gives a page of this size: one for all, which fetches and compiles Panel's megabytes of scripts once."""
    one = browser.new_page()

    def page(width: int = 1280, height: int = 720):
        one.goto("about:blank")
        one.set_viewport_size({"width": width, "height": height})
        return one

    yield page
    one.close()


@pytest.mark.parametrize("app", states.daily([*TITLES]))
def test_it_is_served_and_asks_nothing_of_another_host(opened, apps, app):
    page, faults = opened(), []
    note = lambda error: faults.append(str(error))
    listen = lambda request: None if request.url.startswith((apps, "data:", "blob:")) else note(request.url)
    page.on("pageerror", note)
    page.on("request", listen)
    page.goto(apps + app)
    expect(page.get_by_text(TITLES[app]).first).to_be_visible()
    expect(page.locator("canvas").first).to_be_attached()
    page.remove_listener("pageerror", note)
    page.remove_listener("request", listen)
    assert faults == []


EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("app", EXAMPLES)
def test_a_dashboard_is_a_board(opened, apps, app):
    """Its readouts in a grid that is right at once, a heading for each figure, a theme of each kind, no sideways scrolling."""
    source = (ROOT / "examples" / f"{app}.py").read_text(encoding="utf-8")
    assert "Deploy it: ``panel serve" in source
    headings = re.findall(r'^ {4,8}\(?"([^"]+)", ?\w+\),$|^ {8}"([^"]+)",$', source, re.MULTILINE)
    for theme, width in (("default", 390), ("dark", 1280)):
        page = opened(width, 900)
        page.goto(f"{apps}{app}?theme={theme}")
        tiles = page.locator("dl").first.locator("dd")
        expect(tiles.first).to_be_visible()
        assert tiles.count() >= 4 and all(tiles.all_inner_texts())
        for heading in (one or other for one, other in headings):
            expect(page.get_by_role("heading", name=heading, exact=True)).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_slider_moves_the_figure_s_words(opened, apps):
    page = opened()
    page.goto(apps + "roofline")
    said = page.get_by_text("At batch 32, decode reaches")
    expect(said).to_be_visible()
    handle = page.locator(".noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(said).to_have_count(0)
    expect(page.get_by_text("decode reaches").first).to_be_visible()


# Of each control that is seen, and of the picture: what it is, and its sides.
BOXES = """() => {
  const found = [], look = root => root.querySelectorAll("*").forEach(each => {
    if (each.shadowRoot) look(each.shadowRoot);
    const what = each.matches(".bk-Figure") ? "picture"
      : each.matches(".noUi-target, select, input, button, .bk-btn, .accordion-header") ? "control" : "";
    const box = each.getBoundingClientRect();
    if (what && box.width) found.push([what, box.left, box.top, box.right, box.bottom]);
  });
  look(document);
  return found;
}"""


# All words of the page; those of Panel's components are in shadow roots.
WORDS = """() => {
  const words = root => [...root.querySelectorAll("*")].map(each => each.shadowRoot ? words(each.shadowRoot) : "").join("")
    + (root.textContent ?? "");
  return words(document);
}"""


# How a picture is arranged: for which width alone what is seen is made, its height, and each panel's scale.
ARRANGED = """() => {
  const models = [...Bokeh.documents[0].all_models], value = (tag, key) => tag instanceof Map ? tag.get(key) : tag?.[key];
  const tagged = key => models.flatMap(model => model.tags.map(tag => [model, value(tag, key)])).filter(([, found]) => found);
  const range = (model, panel, side) => [value(panel, side), value(panel, "ends"), value(panel, "log"), [model.start, model.end], model.name];
  return {
    only: [...new Set(tagged("only").filter(([model]) => model.visible).map(([, only]) => only))],
    made: [...new Set(tagged("only").map(([, only]) => only))],
    heights: tagged("narrow_height").map(([plot, height]) => [plot.height, height]),
    panels: ["wide", "narrow"].map(side => tagged("panel").map(([model, panel]) => range(model, panel, side))),
    ticks: tagged("ticks").map(([axis]) => axis.ticker.ticks.length),
    asked: models.filter(model => model.type === "CustomJS" && "asked" in model.args).flatMap(model => model.args.asked.columns()),
  };
}"""

COLOURS = """() => [...Bokeh.documents[0].all_models].flatMap(model => Object.values(model.attributes)
  .map(value => typeof value?.value === "string" ? value.value : value).filter(value => /^#[0-9a-f]{6}$/i.test(value)))"""


def arranged(page) -> dict:
    page.wait_for_function(f"() => ({ARRANGED})().only.length <= 1")
    return page.evaluate(ARRANGED)


def amiss(page, width: int) -> list[str]:
    """Where a component leaves its place: past the window's edge, or its controls on its picture."""
    boxes = page.evaluate(BOXES)
    [(_, left, top, _, _)] = [box for box in boxes if box[0] == "picture"]
    wrong = [f"{box} is cut" for box in boxes if box[1] < 0 or box[3] > width + 1]
    controls = [box for box in boxes if box[0] == "control"]
    assert controls
    return wrong + [f"{box} lies on the picture" for box in controls if box[3] > left and box[4] > top]


@pytest.mark.parametrize("slug", representatives.some())
def test_it_keeps_to_its_frame(opened, apps, slug):
    """By turns opened on a desk and made narrow, or opened on a phone and made wide."""
    first, second = (1280, 390) if WIDGETS.index(slug) % 2 else (390, 1280)
    page = opened(first, 900)
    page.goto(apps + slug)
    expect(page.locator("canvas").first).to_be_attached()
    expect(page.locator(".bk-btn, select, .noUi-handle").first).to_be_visible()
    page.wait_for_function(f"() => ({BOXES})().some(box => box[0] == 'picture')")
    keeps_to_its_frame(page, first)
    page.set_viewport_size({"width": second, "height": 900})
    keeps_to_its_frame(page, second)


def keeps_to_its_frame(page, width: int) -> None:
    side = "narrow" if width == 390 else "wide"
    page.wait_for_function(f"side => ({ARRANGED})().only.every(only => only === side)", arg=side)
    assert amiss(page, width) == []
    seen = page.evaluate(ARRANGED)
    assert seen["only"] == [size for size in seen["made"] if size == side]
    assert all((height == narrow) == (side == "narrow") for height, narrow in seen["heights"])
    assert all(3 <= count <= 12 for count in seen["ticks"])
    for place, ends, log, is_now, name in seen["panels"][side == "narrow"]:
        if name not in seen["asked"]:  # those that move are somewhere else by now
            assert is_now == pytest.approx(panels.of_frame(place, ends, log))
    handle = page.locator(".noUi-handle:visible")
    if handle.count():
        handle.first.focus()
        for key in ("End", "Home"):
            at, said = handle.first.get_attribute("aria-valuenow"), page.evaluate(WORDS)
            handle.first.press(key)
            # Python has answered once its words are there
            if handle.first.get_attribute("aria-valuenow") != at:
                page.wait_for_function(f"said => ({WORDS})() != said", arg=said, timeout=20_000)
            assert amiss(page, width) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_keeps_to_a_narrow_cell_of_a_notebook(opened, apps):
    """With less room than its controls have elsewhere."""
    page = opened(280, 900)
    page.goto(apps + "roofline")
    page.wait_for_function(f"() => ({BOXES})().some(box => box[0] == 'picture')")
    assert amiss(page, 280) == [] and page.evaluate("document.documentElement.scrollWidth") <= 280


@pytest.mark.parametrize(
    ("address", "dark"), [("roofline", False), ("roofline?theme=dark", True), ("dark_template", True)]
)
def test_a_picture_has_the_colours_of_the_ground_that_it_lies_on(opened, apps, address, dark):
    page = opened()
    page.goto(apps + address)
    page.wait_for_function("() => window.Bokeh?.documents[0]?.roots().length")
    expect(page.locator("canvas").first).to_be_attached()
    other, own = (
        set(tokens.palette(theme).values()) for theme in (("light", "dark") if dark else ("dark", "light"))
    )
    page.wait_for_function(
        f"own => ({COLOURS})().some(colour => own.includes(colour))", arg=sorted(own - other)
    )
    seen = set(page.evaluate(COLOURS))
    assert seen & own and not seen & (other - own)


# What a notebook would send to Python of the picture. Its messages carry every change of the document, also those that
# Bokeh's own socket leaves out (panel/models/comm_manager.ts does not ask for `sync`).
LISTEN = """() => {
  const [drawing] = Bokeh.documents, plot = [...drawing.all_models].find(model => "outer_width" in model), picture = plot.references();
  window.heard = [];
  drawing.on_change(event => heard.push(...(event.events ?? [event]).filter(each => picture.has(each.model))
    .map(each => `${each.model.type}.${each.attr}`)));
}"""

# JupyterLab's themes, as its page has them: variables, and a note on the body.
JUPYTER = """dark => {
  const [ground, ink] = dark ? ["#111111", "rgba(255, 255, 255, 0.87)"] : ["#ffffff", "rgba(0, 0, 0, 0.87)"];
  const whole = document.documentElement.style;
  for (const [name, colour] of [["layout-color0", ground], ["cell-editor-background", ground], ["ui-font-color1", ink]])
    whole.setProperty(`--jp-${name}`, colour);
  document.body.style.background = "var(--jp-layout-color0)";
  document.body.dataset.jpThemeLight = !dark;
}"""

# Words that are seen -> how much their colour stands out from what lies behind them, as WCAG counts it.
CONTRASTS = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }), found = {};
  const over = (ground, colour) => {
    for (const each of [ground, colour]) { pen.fillStyle = each; pen.fillRect(0, 0, 1, 1); }
    return `rgb(${[...pen.getImageData(0, 0, 1, 1).data].slice(0, 3)})`;
  };
  const light = colour => {
    const [r, g, b] = colour.match(/\\d+/g).map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const look = (node, ground) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const said = node.textContent.trim(), holder = node.parentElement ?? node.parentNode.host, range = document.createRange();
      range.selectNode(node);
      if (!said || !range.getBoundingClientRect().width || getComputedStyle(holder).visibility === "hidden") return;
      const [ink, paper] = [light(over(ground, getComputedStyle(holder).color)), light(ground)];
      found[said] = Math.max(ink, paper) / Math.min(ink, paper);
    }
    if (node instanceof Element) {
      if (node.matches("style, script, option")) return;
      ground = over(ground, getComputedStyle(node).backgroundColor);
    }
    for (const child of node.shadowRoot?.childNodes ?? node.childNodes) look(child, ground);
  };
  look(document.body, "rgb(255, 255, 255)");
  return found;
}"""


@pytest.mark.parametrize("slug", representatives.some())
def test_it_follows_a_notebook_s_theme_and_python_hears_nothing_of_it(opened, apps, slug):
    page = opened(1000, 900)
    page.goto(apps + slug)
    page.wait_for_function(f"() => ({BOXES})().some(box => box[0] == 'picture')")
    arranged(page)
    page.wait_for_timeout(500)  # its fonts have come, its axes rest
    page.evaluate(LISTEN)
    for dark in (True, False):
        other, own = (
            set(tokens.palette(theme).values())
            for theme in (("light", "dark") if dark else ("dark", "light"))
        )
        page.evaluate(JUPYTER, dark)
        page.wait_for_function(
            f"([own, other]) => (seen => seen.some(each => own.includes(each)) && !seen.some(each => other.includes(each)))"
            f"(({COLOURS})())",
            arg=[sorted(own - other), sorted(other - own)],
        )
        seen = page.evaluate(CONTRASTS)
        assert len(seen) > 5 and {said: ratio for said, ratio in seen.items() if ratio < 4.5} == {}
    page.set_viewport_size({"width": 450, "height": 900})
    page.wait_for_function(f"() => !({ARRANGED})().only.includes('wide')")
    handle = page.locator(".noUi-handle:visible")
    if handle.count():
        said = page.evaluate(WORDS)
        at, last = (handle.first.get_attribute(f"aria-value{end}") for end in ("now", "max"))
        handle.first.focus()
        handle.first.press("Home" if at == last else "End")
        page.wait_for_function(f"said => ({WORDS})() != said", arg=said)
        page.wait_for_timeout(500)
    assert page.evaluate("heard") == []


def test_a_picture_is_painted_in_its_own_fonts(opened, apps):
    page = opened()
    page.goto(apps + "roofline")
    page.wait_for_function("() => [...document.fonts].filter(face => face.status == 'loaded').length == 3")
