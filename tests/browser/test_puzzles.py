"""Puzzles as a reader meets them: by mouse and by keyboard, at both widths, static and served, in Firefox too;
what a page loads before anybody presses *run*; what code that would never end leaves behind; and axe."""

import gzip
import json
import re
import time
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.request import urlopen

import pytest
from playwright.sync_api import Error, expect

from engine import puzzles
from tests import wrong_answers
from tests.browser import axe
from tests.browser.axe import REST_GOES
from tests.browser.firefox import Firefox
from tests.browser.phones import PHONE
from tests.conftest import ROOT
from tests.representatives import ALL_OF_THEM
from widgets.kit.widget import all_widgets

LESSON = "07-pipeline-parallel/"
PUZZLE = puzzles.puzzle("one_f_one_b")
HEAD = "def one_forward_one_backward(stage, stages, micro_batches):\n"
MOST_BYTES = 1024  # that a lesson with a puzzle may load for it while nobody turns to it
EARLY = {"assets/js/puzzles.js", "assets/css/puzzle.css"}
FIGURE = ".puzzle + figure.widget"
DRIVEN = [slug for slug, cls in all_widgets().items() if cls.given]  # the figures that a puzzle drives


class Hand:
    """A reader at a puzzle, that of lesson 07 if no other is named."""

    def __init__(self, page, name="one_f_one_b"):
        self.page, self.puzzle = page, page.locator(f"[data-puzzle={name}]")
        self.area, self.said = self.puzzle.locator("textarea"), self.puzzle.locator("[data-said]")
        expect(self.puzzle).to_have_attribute("data-ready", re.compile("^(editor)?$"))

    def press(self, name):
        self.puzzle.get_by_role("button", name=name, exact=True).click()

    def write(self, code):
        self.area.focus()
        expect(self.puzzle).to_have_attribute("data-ready", "editor")
        self.area.fill(code)

    def waits_for(self, words):
        expect(self.said).to_contain_text(words)
        expect(self.puzzle).not_to_have_attribute("data-busy", "")


@pytest.fixture
def hand(visit, static):
    return Hand(visit(figures=DRIVEN).go(static + LESSON))


def test_a_reader_runs_sees_a_slip_and_solves_it(visit, served):
    """Where Python serves the page, too; the other tests ask the static one."""
    hand = Hand(visit(figures=DRIVEN).go(served + LESSON))
    hand.press("Run")  # the first press brings the editor, and counts
    hand.waits_for("stage 0 holds the activations of 8 micro-batches")
    drawn = hand.page.locator(FIGURE)
    expect(drawn.locator("[data-summary]")).to_contain_text("under your schedule; the fullest holds 8")
    hand.press("Check")
    hand.waits_for("under 1F1B it holds 4")
    hand.write(PUZZLE.SOLUTION)
    hand.press("Check")
    hand.waits_for("Right, for 5 sizes")
    expect(drawn.locator("[data-summary]")).to_contain_text("the fullest holds 4")
    expect(drawn.locator("[data-note]")).to_contain_text("Drawn from your code")
    assert hand.page.evaluate("localStorage['course.solved.one_f_one_b']") == "yes"
    drawn.get_by_label("Stages").first.press("ArrowRight")  # a hand leaves it
    expect(drawn.locator("[data-summary]")).to_contain_text("under 1F1B")
    expect(drawn.locator("[data-note]")).to_be_hidden()
    hand.page.get_by_role("button", name="Bring it back").click()
    expect(hand.page.locator(FIGURE)).to_have_count(0)


def of_lessons():
    """Lesson -> the names of its puzzles."""
    found = {}
    for name in puzzles.names():
        found.setdefault(puzzles.puzzle(name).LESSON, []).append(name)
    return found


@pytest.mark.parametrize("half", [0, 1])
def test_each_solution_passes_is_shown_and_counted(visit, static, half):
    """Every other lesson on a phone, one window for each half: by keyboard, in the page's own Python. What comes of the
    code is drawn, in the lesson's figure or in a picture, and the line at the lesson's end counts. A sixth of the lessons,
    unless all are asked: what the page's Python says of every solution is asked of it without a browser
    (tests/course/test_puzzle_page.py)."""
    window = visit(figures=DRIVEN, **(PHONE if half else {}))
    window.forgive("ERR_ABORTED")  # it leaves a page while figures still come
    for lesson, names in list(of_lessons().items())[half :: 2 if ALL_OF_THEM else 12]:
        page = window.go(f"{static}{lesson}/")
        expect(page.locator("[data-lesson-end]")).to_contain_text(f"puzzles 0 of {len(names)}")
        for name in names:
            hand = Hand(page, name)
            hand.write(puzzles.puzzle(name).SOLUTION)
            page.keyboard.press("Control+Shift+Enter")
            hand.waits_for("Right, for")
            drawn = (
                page.locator(FIGURE)
                if hand.puzzle.get_attribute("data-figure")
                else hand.puzzle.locator(".puzzle-rows")
            )
            expect(drawn).to_be_visible()
        expect(page.locator("[data-lesson-end]")).to_contain_text(f"puzzles {len(names)} of {len(names)}")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0, lesson
    page.reload()
    expect(hand.puzzle).to_have_attribute("data-solved", "")
    expect(hand.area).to_have_value(puzzles.puzzle(name).SOLUTION)


ASKED = of_lessons() if ALL_OF_THEM else ["10-nd-parallelism"]  # which has two, without a figure to drive


@pytest.mark.parametrize("lesson", ASKED)
def test_by_keyboard_at_390_px(visit, static, lesson):
    """The start says what is to do, the solution is right, both by a key; EVERY=1 asks it of all lessons."""
    page = visit(figures=DRIVEN, **PHONE).go(f"{static}{lesson}/")
    for name in of_lessons()[lesson]:
        hand = Hand(page, name)
        hand.write(puzzles.puzzle(name).START)
        page.keyboard.press("Control+Enter")
        expect(hand.said).not_to_be_empty()
        expect(hand.puzzle).not_to_have_attribute("data-busy", "")
        hand.area.fill(puzzles.puzzle(name).SOLUTION)
        page.keyboard.press("Control+Shift+Enter")
        hand.waits_for("Right, for")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_a_wrong_move_is_pictured_where_it_happens_and_the_picture_goes_with_it(visit, static):
    """Best fit's address, marked; and what no reader can see of it is said."""
    puzzle = puzzles.puzzle("best_fit")
    hand = Hand(visit(figures=DRIVEN).go(f"{static}{puzzle.LESSON}/"), "best_fit")
    hand.write(wrong_answers.of("best_fit")["worst fit"][0])
    hand.press("Check")
    hand.waits_for("the smallest of these")
    assert hand.puzzle.locator('.puzzle-track > [data-look="wrong"]').count() == 1
    assert "after each request" in hand.puzzle.locator(".puzzle-rows").get_attribute("aria-label")
    hand.write("1 +")
    hand.press("Run")
    hand.waits_for("Line 1")
    expect(hand.puzzle.locator(".puzzle-rows")).to_have_count(0)


DRIVES = {  # what each of these has the lesson's figure say, and what stays of the first while the second is there
    "hide_buckets": "As you cut it",
    "order_tiles": "In your order",
}


@pytest.mark.parametrize("name", DRIVES)
def test_the_lessons_figure_shows_what_the_code_gave(visit, static, name):
    puzzle = puzzles.puzzle(name)
    hand = Hand(visit(figures=DRIVEN).go(f"{static}{puzzle.LESSON}/"), name)
    summary = hand.page.locator(f"{FIGURE} [data-summary]")
    told = []
    for code in (puzzle.START, puzzle.SOLUTION):
        hand.write(code)
        hand.press("Run")
        hand.waits_for("blocks come" if name == "order_tiles" else "AllReduce ends")
        expect(summary).to_contain_text(DRIVES[name])
        if told:
            expect(summary).not_to_have_text(told[0])
        told.append(summary.inner_text())
    assert told[0] != told[1]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_fault_in_a_puzzle_at_work(visit, static, theme):
    """Its hints open, something printed, a line that is wrong; and its solution."""
    page = visit(figures=DRIVEN, color_scheme=theme).go(f"{static}11b-the-server/")
    hand = Hand(page, "shared_prefixes")
    hand.puzzle.evaluate(REST_GOES)
    hand.write("print('here')\ndef held(requests):\n    return nothing\n")
    hand.press("Check")
    hand.waits_for("Line 3")
    for hint in hand.puzzle.locator("summary").all():
        hint.click()
    assert axe.faults(page) == []
    hand.puzzle.get_by_role("button", name="Put it into the editor").click()
    hand.press("Check")
    hand.waits_for("Right, for")
    assert axe.faults(page) == []


def test_a_step_of_fsdp_is_drawn_by_the_readers_list(visit, static):
    puzzle = puzzles.puzzle("gather_ahead")
    hand = Hand(visit(figures=DRIVEN).go(f"{static}{puzzle.LESSON}/"), "gather_ahead")
    summary = hand.page.locator(f"{FIGURE} [data-summary]")
    waits = []
    for code in (puzzle.START, puzzle.SOLUTION):
        hand.write(code)
        hand.press("Run")
        hand.waits_for("the step takes")
        expect(summary).to_contain_text("In your order, 4 layers take")
        waits.append(summary.inner_text())
    assert waits[0] != waits[1]  # what is gathered late is seen to wait
    hand.page.locator(FIGURE).get_by_label("Prefetch depth").first.press("ArrowRight")
    expect(summary).to_contain_text("Gathered 2 ahead")


def test_a_wrong_move_is_drawn_where_it_is_stuck(hand):
    hand.write(wrong_answers.of("one_f_one_b")["mirrored"][0])
    hand.press("Run")
    hand.waits_for("neither can go on")
    stuck = hand.page.evaluate(
        "() => { const { documents } = window.Bokeh; const all = documents.flatMap(doc => [...doc._all_models.values()]);"
        " return Array.from(all.find(model => model.name === 'stuck').data.text); }"
    )
    assert stuck and all(text.endswith("?") for text in stuck)


def test_by_keyboard_alone_on_a_phone(visit, static):
    page = visit(figures=DRIVEN, viewport={"width": 390, "height": 844}).go(static + LESSON)
    hand = Hand(page)
    hand.write("")
    keys = page.keyboard
    keys.type("def f():\nfor i in []:\npass")  # each line that ends in a colon indents the next
    assert hand.area.input_value() == "def f():\n    for i in []:\n        pass"
    keys.press("Shift+Tab")
    assert hand.area.input_value().endswith("\n    pass")
    keys.press("Home")
    keys.press("Tab")
    assert hand.area.input_value().endswith("\n        pass")
    keys.press("Escape")
    keys.press("Tab")
    expect(hand.puzzle.get_by_role("button", name="Run", exact=True)).to_be_focused()
    keys.press("Shift+Tab")
    expect(hand.area).to_be_focused()
    hand.area.fill(PUZZLE.SOLUTION)
    keys.press("Control+Shift+Enter")
    hand.waits_for("Right, for 5 sizes")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


ENDLESS = {
    "a loop": (HEAD + "    while True:\n        pass\n", "Is there a loop that never ends"),
    "a list": (
        HEAD + "    return [0] * 10**9\n",
        re.compile("Stopped|asks for more memory"),
    ),  # which is first
    "prints": (HEAD + "    while True:\n        print('x')\n", "printed more than 200 lines"),
    "recursion": (HEAD + "    return one_forward_one_backward(1, 2, 3)\n", "Line 2: A function calls itself"),
    "a syntax error": (HEAD + "    return (1\n", "Line 2: Python cannot read this line"),
    "a way out": (HEAD + "    import browser, urllib.request\n", "Line 2: A puzzle needs no libraries"),
    "markup": (
        HEAD + "    raise ValueError('<img src=x onerror=alert(1)> 日本')\n",
        "<img src=x onerror=alert(1)> 日本",
    ),
}


def test_whatever_is_run_the_page_lives_and_the_code_is_kept(hand):
    for code, words in ENDLESS.values():
        hand.write(code)
        hand.press("Run")
        hand.waits_for(words)
        assert hand.page.evaluate("localStorage['course.puzzle.one_f_one_b']") == code
        if str(words).startswith("Line 2"):
            assert hand.puzzle.locator(".puzzle-lines > [data-fault]").all_text_contents() == ["2"]
    hand.write(PUZZLE.SOLUTION)
    hand.press("Check")
    hand.waits_for("Right")
    assert hand.puzzle.locator("iframe").count() <= 1


def test_the_code_comes_back_by_itself_and_by_a_link(visit, static):
    window = visit(figures=DRIVEN)
    hand = Hand(window.go(static + LESSON))
    hand.write(HEAD + "    return 'é日本'\n")
    window.go(static + LESSON)
    expect(hand.area).to_have_value(HEAD + "    return 'é日本'\n")
    other = visit(figures=DRIVEN).go(f"{static}{LESSON}?puzzle-one-f-one-b=IyDDqeaXpQ==")
    expect(other.locator("[data-puzzle] textarea").first).to_have_value("# é日")
    broken = visit(figures=DRIVEN).go(f"{static}{LESSON}?puzzle-one-f-one-b=%25%25")
    expect(broken.locator("[data-puzzle] [data-said]").first).to_contain_text("damaged")


@pytest.mark.of_the_kit
def test_the_code_is_saved_with_the_progress_and_comes_back(visit, origin, tmp_path):
    """Two puzzles, one of them solved; saved to a file, cleared, and taken in by another browser too, where code of the
    reader's own stays as it is."""
    code, other = HEAD + "    return 'é日本🎉'  # mine\n", puzzles.puzzle("zigzag_ring")
    window = visit(figures=DRIVEN)
    Hand(window.go(origin + LESSON)).write(code)
    hand = Hand(window.go(f"{origin}{other.LESSON}/"), "zigzag_ring")
    hand.write(other.SOLUTION)
    hand.press("Check")
    hand.waits_for("Right, for")
    page = window.go(f"{origin}progress/")
    row = "tr:has(a[href*='{}']) [data-cell=puzzles]".format
    expect(page.locator(row(other.LESSON))).to_have_text(re.compile("^1 of"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Save to a file").click()
    saved = tmp_path / "progress.json"
    download.value.save_as(saved)
    page.get_by_role("button", name="Clear everything").click()
    page.get_by_role("button", name="Yes, clear").click()
    expect(page.locator(row(other.LESSON))).to_have_text(re.compile("^0 of"))
    hand = Hand(window.go(origin + LESSON))
    expect(hand.area).to_have_value(PUZZLE.START.rstrip())
    elsewhere = visit(figures=DRIVEN)
    own = Hand(elsewhere.go(origin + LESSON))
    own.write("# my own\n")
    for reader, mine in ((window, code), (elsewhere, "# my own\n")):
        page = reader.go(f"{origin}progress/")
        page.locator("[data-import]").set_input_files(saved)
        expect(page.locator(".progress-said")).to_contain_text("Taken in")
        expect(page.locator(row(other.LESSON))).to_have_text(re.compile("^1 of"))
        expect(Hand(reader.go(origin + LESSON)).area).to_have_value(mine)
        back = Hand(reader.go(f"{origin}{other.LESSON}/"), "zigzag_ring")
        expect(back.area).to_have_value(other.SOLUTION)
        expect(back.puzzle).to_have_attribute("data-solved", "")


@pytest.mark.parametrize("lesson", ["07-pipeline-parallel/", "17-triton/"])
def test_nobody_pays_for_what_nobody_runs(visit, static, lesson):
    window, asked = visit(), []
    window.page.on("request", lambda request: asked.append(request.url.removeprefix(static)))
    page = window.go(static + lesson)
    page.mouse.wheel(0, 20_000)
    page.wait_for_timeout(500)
    mine = {name.split("?")[0] for name in asked if "puzzle" in name}
    assert mine == EARLY
    theme = ROOT / "site" / "theme"
    assert sum(len(gzip.compress((theme / name).read_bytes())) for name in EARLY) < MOST_BYTES
    assert page.evaluate("typeof __BRYTHON__") == "undefined"


def test_the_frame_can_neither_read_the_page_nor_ask_anybody(hand):
    hand.press("Run")
    hand.waits_for("idles")
    frame = hand.puzzle.locator("iframe").first
    assert frame.get_attribute("sandbox") == "allow-scripts"
    [inner] = [each for each in hand.page.frames if each.url.endswith("assets/puzzle/frame.html")][:1]
    tried = inner.evaluate(
        "async () => { const said = {}; try { said.parent = String(parent.document); } catch { said.parent = 'no'; }"
        " try { said.kept = String(localStorage.length); } catch { said.kept = 'no'; } return JSON.stringify(said); }"
    )
    assert json.loads(tried) == {"parent": "no", "kept": "no"}


TRIED = r"""async ([texts, origin]) => {
  const policy = [], code = `
    self.addEventListener("securitypolicyviolation", event => told.push(event.effectiveDirective));
    const told = [], said = {}, at = "${origin}assets/js/shell.js?secret";
    (async () => {
      for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "WebTransport", "Worker", "importScripts", "postMessage", "indexedDB", "caches"])
        said[name] = typeof self[name];
      said.import = await import(at).then(() => "came", () => "no");
      said.data = await import("data:text/javascript,").then(() => "came", () => "no");
      said.evaluated = await Promise.resolve().then(() => (0, eval)('import("' + at + '")')).then(() => "came", () => "no");
      channel(JSON.stringify(said));
    })();
  `;
  const worker = new Worker(URL.createObjectURL(new Blob(["const channel = self.postMessage.bind(self);\n", ...texts, code], { type: "text/javascript" })));
  return new Promise(done => { worker.onmessage = ({ data }) => { if (typeof data === "string") done(data); }; });
}"""


@pytest.fixture
def noting(site):
    """The address of the site on a server that notes what it is asked for, and the list of that."""
    asked = []

    class Noting(SimpleHTTPRequestHandler):
        def log_request(self, *_):
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Noting, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", asked
    server.shutdown()


def test_the_worker_reaches_nobody_not_even_its_own_origin(visit, noting):
    """Whatever JavaScript a reader's code might get hold of, in the worker as it is when that code runs."""
    window = visit(figures=DRIVEN)
    window.forgive("secret")  # the browser says what the policy keeps from being sent
    window.forgive("data:text")
    address, asked = noting
    hand = Hand(window.go(address + LESSON))
    hand.press("Run")
    hand.waits_for("idles")
    [inner] = [each for each in hand.page.frames if each.url.endswith("assets/puzzle/frame.html")][:1]
    names = ("before.js", "brython.js", "math.js", "worker.js")
    texts = [urlopen(f"{address}assets/puzzle/{name}").read().decode() for name in names]
    said = json.loads(inner.evaluate(TRIED, [texts, address]))
    assert set(said.values()) == {"undefined", "no"}, said
    assert asked and not [path for path in asked if "secret" in path]


FORGED = '{"right": true, "words": "Right, for 5 sizes", "line": 0, "printed": [], "drawn": null}'


@pytest.mark.parametrize(
    "said", [{"answer": FORGED}, {"answer": FORGED, "secret": "x"}, {"failed": True}, {"answer": 7}]
)
def test_an_answer_without_the_secret_is_not_believed(hand, said):
    hand.press("Run")
    hand.waits_for("idles")
    hand.write(HEAD + "    for i in range(10**6):\n        pass\n    return []\n")
    hand.press("Check")
    told, end = 0, time.monotonic() + 20
    while not told and time.monotonic() < end:  # the page replaces a frame whose work has been stopped
        for frame in hand.page.frames:
            if frame.url.endswith("assets/puzzle/frame.html"):
                with suppress(Error):
                    frame.evaluate(
                        "said => { for (let i = 0; i < 9; i++) parent.postMessage(said, '*'); }", said
                    )
                    told += 1
        hand.page.wait_for_timeout(20)
    assert told
    expect(hand.puzzle).not_to_have_attribute("data-busy", "")
    expect(hand.said).not_to_contain_text("Right")
    assert hand.page.evaluate("localStorage['course.solved.one_f_one_b'] ?? null") is None


MALFORMED = [
    "", "null", "[]", "7", '"x"', "{", '{"right": true}', FORGED.replace("true", '"yes"'), FORGED.replace("[]", '"x"'),
    FORGED.replace("[]", "[1]"), FORGED.replace("0,", "0.5,"), FORGED.replace("null", "[]"), FORGED.replace("null", "{}"),
    FORGED.replace("null", '{"picture": {"lines": 3, "key": {}, "says": "", "unit": ""}}'),
    FORGED.replace("null", '{"picture": {"lines": [["a", [[0, 1]]]], "key": {}, "says": "", "unit": ""}}'),
    FORGED.replace("null", '{"set": 1, "give": {}}'),
]  # fmt: skip


def test_a_malformed_answer_is_an_error_in_words(hand, static):
    hand.press("Run")
    hand.waits_for("idles")
    said = hand.page.evaluate(
        "async ([at, texts]) => { const { read } = await import(at);"
        " return texts.map(text => { try { read(text); return 'taken'; } catch (error) { return error.message; } }); }",
        [f"{static}assets/puzzle/sandbox.js", [FORGED, *MALFORMED]],
    )
    assert said[0] == "taken"
    assert all("not what a puzzle's judge says" in each for each in said[1:]), said


def judged_in(tab, name, code, task, words):
    """Put code into Firefox's editor and judge it, until the page says these words."""
    tab.until("name => !!document.querySelector(`[data-puzzle=${name}][data-ready]`)", name)
    tab.ask(
        "(name, code, task) => { const puzzle = document.querySelector(`[data-puzzle=${name}]`), area = puzzle.querySelector('textarea');"
        " area.focus(); return new Promise(done => { const wait = setInterval(() => { if (!puzzle.dataset.ready) return;"
        " clearInterval(wait); area.value = code; area.dispatchEvent(new Event('input'));"
        " puzzle.querySelector(`[data-${task}]`).click(); done(1); }, 20); }); }",
        name,
        code,
        task,
    )
    said = "(name, words) => document.querySelector(`[data-puzzle=${name}] [data-said]`).textContent.includes(words)"
    tab.until(said, name, words, seconds=60)
    tab.until("name => document.querySelector(`[data-puzzle=${name}]`).dataset.busy === undefined", name)


# what Firefox says of a request whose page, or whose frame after code that was stopped, is let go of before it is answered
DROPPED = ("NS_BINDING_ABORTED", "/assets/puzzle/frame.html NS_ERROR_FAILURE")


def test_solutions_in_firefox(static):
    """In one window: those of one lesson unless all are asked (node runs each); in lesson 07 code that would
    never end, and the figure."""
    firefox = Firefox()
    try:
        tab = firefox.open()
        for lesson, names in list(of_lessons().items())[: None if ALL_OF_THEM else 1]:
            tab.go(f"{static}{lesson}/")
            for name in names:
                judged_in(tab, name, puzzles.puzzle(name).SOLUTION, "check", "Right, for")
        tab.go(static + LESSON)
        for code, task, words in (
            (ENDLESS["a loop"][0], "run", "Is there a loop that never ends"),
            (ENDLESS["recursion"][0], "run", "Line 2: A function calls itself"),
            (PUZZLE.START, "run", "holds the activations of 8"),
        ):
            judged_in(tab, "one_f_one_b", code, task, words)
        drawn = "() => document.querySelector('.puzzle + figure [data-summary]')?.textContent.includes('your schedule')"
        tab.until(drawn)
        time.sleep(0.2)
        assert [fault for fault in firefox.faults if not fault.endswith(DROPPED)] == []
    finally:
        firefox.close()
