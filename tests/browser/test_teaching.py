"""A widget in somebody else's page and on a wall; and what the search gives first."""

import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.hands import Hand, enter, expected
from tests.conftest import ROOT

SLUG, LESSON, MOVED = "memory_stack", "01-why-distributed", {"recipe": 4}
HEIGHT_SCRIPT = re.search(
    r"<script>\n(.*?)</script>", (ROOT / "lessons" / "teach.md").read_text(encoding="utf-8"), re.DOTALL
)[1]


@pytest.fixture(scope="module")
def course(site):
    """The address of the site in a subfolder, as on a host that has more than this course."""
    command = [
        sys.executable,
        "-u",
        "-m",
        "http.server",
        "0",
        "--bind",
        "127.0.0.1",
        "--directory",
        str(site.parent),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = server.stdout.readline().split(" port ")[1].split()[0]
    yield f"http://127.0.0.1:{port}/{site.name}/"
    server.terminate()
    server.wait()


# -- embedded ------------------------------------------------------------------------------------------------
def snippet(hand: Hand, theme: str) -> str:
    """What *embed* gives, in these colours."""
    hand.button("embed").click()
    hand.figure.get_by_label("Colours").select_option(theme)
    return hand.figure.get_by_label("HTML of the embedded figure").input_value()


def test_a_figure_is_embedded_in_its_present_state(visit, course):
    window = visit(permissions=["clipboard-read", "clipboard-write"])
    # Chromium's word about a frame from the host's own origin, which this one is; an icon not yet there when
    # the page is left
    window.forgive("sandbox attribute", "favicon.svg net::ERR_ABORTED")
    hand = Hand(window.go(f"{course}{LESSON}/"), SLUG)
    code = snippet(hand, "dark")
    assert f'src="{course}{SLUG}/?embed&amp;theme=dark"' in code
    hand.choose("recipe", MOVED["recipe"])
    expect(hand.figure.get_by_label("HTML of the embedded figure")).to_have_value(
        re.compile(f"{SLUG}.recipe=")
    )
    hand.button("copy").click()
    expect(hand.figure.locator("[data-embed-panel] [data-said]")).to_have_text("Copied.")
    code = hand.page.evaluate("navigator.clipboard.readText()")
    assert (
        re.search(r'title="[^"]{20,} \(System ML\)"', code) and 'allow="fullscreen; clipboard-write"' in code
    )

    width = hand.figure.bounding_box()["width"]
    host = f"""<!doctype html><title>A class</title><body style="margin: 0; width: {width}px">{code}
      <script>const told = []; addEventListener("message", event => told.push(event.data));</script>"""
    window.page.route(f"{course}host", lambda route: route.fulfill(body=host, content_type="text/html"))
    page = window.go(f"{course}host")
    frame = page.frame_locator("iframe")
    figure = frame.locator(f'figure[data-widget="{SLUG}"]')
    expect(figure).to_have_attribute("data-state", "live")
    expect(figure.locator("[data-summary]")).to_have_text(expected(SLUG, **MOVED)["summary"])
    expect(frame.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    expect(frame.locator(".alone-nav")).to_be_hidden()
    expect(figure.locator("[data-embed]")).to_be_hidden()
    back = frame.locator(".alone-from").get_by_role("link", name="Why distributed at all?")
    expect(back).to_be_visible()
    expect(frame.locator(".alone-from")).to_contain_text("CC BY 4.0")
    page.wait_for_function("() => told.length > 0")
    told = page.evaluate("told.at(-1)")
    given = page.locator("iframe").bounding_box()["height"]
    assert (
        told == {"type": "system-ml:height", "widget": SLUG, "height": told["height"]}
        and 0 <= given - told["height"] < 40
    )
    page.evaluate(HEIGHT_SCRIPT)
    page.locator("body").evaluate(
        "body => { body.style.width = '420px'; }"
    )  # narrower: the frame has to grow
    page.wait_for_function(
        "height => document.querySelector('iframe').height > height + 100", arg=told["height"]
    )
    with page.context.expect_page() as opened:
        back.click()
    assert f"{SLUG}.recipe=" in opened.value.url and opened.value.url.endswith(f"#w-{SLUG}")


def test_a_figure_that_its_lesson_starts_elsewhere_is_the_same_on_its_own_page(visit, static):
    hand = Hand(visit().go(f"{static}18-torch-compile/"), "graph_breaks")
    initial = json.loads(hand.figure.get_attribute("data-initial"))
    assert initial
    for address in (hand.figure.locator("[data-alone]").get_attribute("href"), snippet(hand, "auto")):
        assert all(f"graph_breaks.{name}=" in address for name in initial)


# -- presented -----------------------------------------------------------------------------------------------
WORDS = """figure => [...figure.querySelectorAll("button, select, label, dt, dd, [data-summary], .widget-title, .widget-regime")]
  .filter(element => element.checkVisibility())
  .map(element => [element.textContent.slice(0, 30), parseFloat(getComputedStyle(element).fontSize) * element.currentCSSZoom])"""


def drawn_size(hand: Hand) -> float:
    """The size of an axis's labels."""
    return hand.page.evaluate("""() => Math.min(...[...Bokeh.documents[0]._all_models.values()]
      .map(model => parseFloat(model.attributes.major_label_text_font_size)).filter(size => size))""")


def test_a_figure_fills_a_wall_and_comes_back(visit, static):
    hand = Hand(visit(viewport={"width": 1920, "height": 1080}).go(f"{static}{SLUG}/"), SLUG)
    page, body = hand.page, hand.page.locator("body")
    on_the_page = hand.pixels()
    page.keyboard.press("f")
    expect(body).to_have_class(re.compile("presenting"))
    page.wait_for_function("() => document.fullscreenElement !== null")
    expect(hand.figure.locator("figcaption")).to_be_hidden()
    assert [words for words in hand.figure.evaluate(WORDS) if words[1] < 13 * 1.6] == []
    assert drawn_size(hand) > 13 * 1.6
    card = hand.figure.locator(".widget-card")
    assert card.evaluate("card => card.scrollHeight - card.clientHeight") <= 1, (
        "a slide that has to be scrolled"
    )
    picture, words = (
        hand.figure.locator(part).bounding_box() for part in (".widget-plot", ".widget-readouts")
    )
    assert picture["x"] + picture["width"] <= words["x"] and picture["height"] > 500
    slider = hand.handle("size")
    slider.focus()
    slider.press("ArrowRight")
    hand.says(size=hand.at("size"))
    slider.press("ArrowLeft")
    page.evaluate("document.exitFullscreen()")  # Esc belongs to the browser there
    expect(body).not_to_have_class(re.compile("presenting"))
    assert drawn_size(hand) == 13 and hand.rested() == on_the_page


def test_a_link_presents_at_once_and_a_window_that_may_not_fill_the_screen_is_filled(visit, static):
    window = visit(viewport={"width": 1280, "height": 720})
    window.page.add_init_script("Object.defineProperty(document, 'fullscreenEnabled', { value: false })")
    hand = Hand(window.go(f"{static}{SLUG}/?present&{SLUG}.size=13e9"), SLUG)
    body = hand.page.locator("body")
    expect(body).to_have_class(re.compile("presenting"))
    hand.says(size=13e9)
    hand.field("size").press("f")  # a letter in a field is a letter
    expect(body).to_have_class(re.compile("presenting"))
    hand.page.keyboard.press("Escape")
    hand.page.keyboard.press("Escape")
    expect(body).not_to_have_class(re.compile("presenting"))
    hand.button("present").click()
    expect(body).to_have_class(re.compile("presenting"))
    hand.button("leave").click()
    expect(body).not_to_have_class(re.compile("presenting"))


LEFT_OF_THE_LANES = """() => {  // in pixels, of the frame's left edge to where the lanes' names end; and a name's own width
  const plot = [...Bokeh.documents[0]._all_models.values()].find(model => model.tags?.some(tag => (tag.room ?? tag.get?.("room"))));
  const tag = plot.tags.find(tag => tag.room ?? tag.get?.("room")), [place] = tag.room ?? tag.get("room");
  const { start, end } = plot.x_range, width = document.querySelector(".widget-plot").clientWidth;
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${13 * (parseFloat(document.body.style.getPropertyValue("--larger")) || 1)}px system-ui, sans-serif`;
  return [(place - start) / (end - start) * width, pen.measureText("stage 16").width, start];
}"""


def test_larger_names_have_larger_room(visit, static):
    page = visit(viewport={"width": 1440, "height": 900}).go(
        f"{static}pipeline_timeline/?present&pipeline_timeline.stages=16"
    )
    expect(page.locator("body")).to_have_class(re.compile("presenting"))
    page.wait_for_function(f"() => {{ const [room, name] = ({LEFT_OF_THE_LANES})(); return room > name; }}")
    page.keyboard.press("Escape")
    page.wait_for_function(f"() => ({LEFT_OF_THE_LANES})()[2] === -0.095")  # as in a lesson again


# -- found ---------------------------------------------------------------------------------------------------
FIRST = {  # what is typed -> the first section that the search gives
    "bubble": "glossary/#bubble",
    "psi": "glossary/#symbols",
    "alpha-beta": "02-collectives/#rule-alpha-and-beta",
    "B_crit": "glossary/#critical-batch",
    "subnormal": "glossary/#subnormal",
    "graph break": "glossary/#graph-break",
    "grouped-query attention": "glossary/#gqa",
    "sixteen bytes a parameter": "01-why-distributed/#rule-sixteen-bytes-a-parameter",
    "memory_stack": "01-why-distributed/#w-memory_stack",
    "where does a state stop fitting": "01-why-distributed/#w-memory_stack",
    "oversubscription innermost": "10-nd-parallelism/#w-topology_placement",
    "MFU": "glossary/#mfu",
}


def test_the_search_finds_words_symbols_rules_and_figures(visit, course):
    page = visit().page
    asked = []
    page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    page.goto(f"{course}teach/", wait_until="networkidle")
    assert "search_index.json" not in asked, "a visit that searches nothing pays for the search"
    page.get_by_role("textbox", name="Search").click()
    field, links = page.locator("input.md-search__input"), page.locator(".md-search-result__link[href*='#']")
    for typed, first in FIRST.items():
        field.fill("")
        # all letters but the last at once: lunr warns of a word that ends in a hyphen, as "alpha-" does on the
        # way to "alpha-beta"
        page.keyboard.insert_text(typed[:-1])
        page.keyboard.type(typed[-1])
        path, anchor = first.split("#")
        expect(links.first, typed).to_have_attribute(
            "href", re.compile(rf"^{re.escape(course + path)}(\?[^#]*)?#{re.escape(anchor)}$")
        )
    page.locator(".md-search-result__link[href$='#mfu']").click()
    expect(page.locator("#mfu")).to_be_in_viewport()
    assert asked.count("search_index.json") == 1
    page.wait_for_load_state("networkidle")
    enter(page, f"{course}?q=bubble")  # an address that searches by itself
    expect(links.first).to_be_visible()
