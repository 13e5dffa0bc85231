"""Operates a widget as a reader does: finds controls by their labels, moves them with the mouse or keys, and
reads words and pixels from the page."""

from __future__ import annotations

import itertools
import json
import re
from functools import cache

from playwright.sync_api import Locator, Page, expect

from tests.conftest import ROOT
from widgets.kit.controls import Number
from widgets.kit.widget import all_widgets

THUMB = 20  # width in pixels of a slider's handle, whose middle stays half of this inside the track
PIXELS = """figure => {
  const found = [];
  const look = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.tagName === "CANVAS") found.push(element.toDataURL());
      if (element.shadowRoot) look(element.shadowRoot);
    }
  };
  look(figure.querySelector("[data-plot]"));
  return found.join();
}"""
# run before a page's scripts: no figure waits for its reader's prediction
NOT_COVERED = "try { localStorage.setItem('course.predict', 'off'); } catch { /* nothing may be kept */ }"
# run before a page's scripts: removes all figures but these, so that a test of one figure does not wait for
# all
ALONE = """{
  const kept = %s, goes = figure => kept.includes(figure.dataset.widget) || figure.remove();
  const watch = new MutationObserver(() => document.querySelectorAll("figure.widget").forEach(goes));
  watch.observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => watch.disconnect());
}"""
STILL = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))"


@cache
def lessons() -> dict[str, list[str]]:
    """Address of each lesson that shows widgets -> their slugs, read from the lessons' sources."""
    found = {}
    for path in sorted((ROOT / "lessons").glob("[!R]*.md")):
        lines = path.read_text(encoding="utf-8").splitlines()
        slugs = [
            after.split(":", 1)[1].strip()
            for line, after in itertools.pairwise(lines)
            if line.strip().replace(" ", "") == "```widget" and after.startswith("name:")
        ]
        if slugs:
            found["" if path.stem == "index" else f"{path.stem}/"] = slugs
    return found


def pages() -> list[str]:
    """The address of every lesson and page of the course."""
    names = [path.stem for path in sorted((ROOT / "lessons").glob("[!R]*.md"))]
    return ["" if name == "index" else f"{name}/" for name in names]


@cache
def expected(slug: str, **values) -> dict:
    """The words that Python gives for a widget with these controls moved; several tests ask for the same."""
    widget = all_widgets()[slug]()
    widget.set_raw(values)
    shown = widget.shown()
    return {
        "readouts": {name: readout["text"] for name, readout in shown["readouts"].items()},
        "summary": shown["summary"],
        "regimes": {name: regime["text"] for name, regime in shown["regimes"].items() if regime["met"]},
    }


def numbers(slug: str) -> list[Number]:
    """The controls for numbers that a figure shows without unfolding."""
    controls = all_widgets()[slug].controls().values()
    return [each for each in controls if each.kind == "number" and not each.more]


def drawn(page: Page, slugs: list[str]) -> None:
    """Check that each widget of a lesson shows a picture that differs from the others'."""
    assert page.locator("figure.widget").count() == len(slugs)
    pictures = [Hand(page, slug).pixels() for slug in slugs]
    assert all(len(picture) > 2000 for picture in pictures) and len(set(pictures)) == len(pictures)


SHELL_IS_THERE = """() => !document.querySelector("template[data-shell]") || (document.documentElement.dataset.shell
  && performance.getEntriesByType("resource").some(({ name }) => name.endsWith("/sitemap.xml")))"""


def enter(page: Page, url: str) -> None:
    """Go to a page and touch something, so that the script for navigation loads without waiting for the
    figures. On return it has loaded, with the list of pages that it can navigate to without loading anew."""
    page.goto(url)
    page.keyboard.press("Shift")
    page.wait_for_function(SHELL_IS_THERE)
    # the list of pages has arrived but is read only when the page is idle, which a window in the background
    # may never be
    page.evaluate("() => new Promise(done => requestIdleCallback(done, { timeout: 100 }))")


class Hand:
    """One widget on a page, and what a reader's hand can do with it."""

    def __init__(self, page: Page, slug: str, live: bool = True):
        self.page, self.slug, self.cls = page, slug, all_widgets()[slug]
        self.figure = page.locator(f'figure.widget[data-widget="{slug}"]')
        self.moved = False  # whether a test may have opened folds, which *reset* does not close
        if live:
            self.open()

    def open(self) -> None:
        """Uncovers the figure if it waits for a prediction, as it does in a browser that has stored no
        answer."""
        expect(self.figure).to_have_attribute("data-state", re.compile("^(live|asked)$"))
        if self.figure.get_attribute("data-state") == "asked":
            self.figure.locator("[data-show-me]").click()
        self.wait_for("live")

    def anew(self, address: str) -> None:
        """Open the page again, in a browser that has stored nothing."""
        self.page.evaluate("localStorage.clear()")
        self.page.goto(address)
        self.wait_for("live")
        self.moved = False

    def wait_for(self, state: str) -> None:
        expect(self.figure).to_have_attribute("data-state", state)

    # -- what is seen ----------------------------------------------------------------------------------------
    def words(self) -> dict:
        return self.figure.evaluate("""figure => {
          const said = place => place.textContent.replaceAll("\u00a0", " ");  // as texts have it that are not shown
          const texts = (name) => Object.fromEntries([...figure.querySelectorAll(`[data-${name}]`)]
            .map(place => [place.dataset[name], said(place)]));
          return { readouts: texts("readout"), regimes: texts("regime"),
                   summary: said(figure.querySelector("[data-summary]")) };
        }""")

    def initial(self) -> dict:
        """The controls that the lesson's fence sets."""
        return json.loads(self.figure.get_attribute("data-initial"))

    def slider(self) -> str:
        """Its first slider."""
        return numbers(self.slug)[0].name

    def note(self) -> Locator:
        """The element in which the widget reports its state or an error."""
        return self.figure.locator("[data-note]")

    def pixels(self) -> str:
        self.page.evaluate(STILL)
        return self.figure.evaluate(PIXELS)

    def rested(self) -> str:
        """The picture once its axes have come to rest after a move."""
        self.page.wait_for_timeout(600)
        return self.pixels()

    def says(self, **values) -> None:
        """Waits until the widget's words are those that Python computes for these controls."""
        wanted = expected(self.slug, **values)
        expect(self.figure.locator("[data-summary]")).to_have_text(wanted["summary"])
        self.page.wait_for_function(
            """([slug, names]) => names.every(name =>
          document.querySelector(`figure[data-widget="${slug}"] [data-regime="${name}"]`))""",
            arg=[self.slug, list(wanted["regimes"])],
        )
        assert self.words() == wanted

    def predict(self) -> None:
        """Answers the figure's question with whatever control it has; of several choices it takes the right
        one."""
        block = self.figure.locator("[data-predict]")
        if block.get_attribute("data-kind") == "choice":
            block.locator("[data-answer=right]").click()
            return
        field = block.locator("[data-guess] input")
        if block.get_attribute("data-kind") == "number":
            field.fill(block.get_attribute("data-shown"))
        else:
            field.press("ArrowRight")
        block.get_by_role("button", name="Answer", exact=True).click()

    # -- handles ---------------------------------------------------------------------------------------------
    def handle(self, name: str) -> Locator:
        """The control's handle, found as assistive technology finds it: by role and label."""
        control = self.cls.controls()[name]
        role = {
            "number": "slider",
            "player": "slider",
            "choice": "combobox",
            "switch": "switch",
            "bits": "group",
        }[control.kind]
        return self.shown(name, self.figure.get_by_role(role, name=control.label, exact=True))

    def shown(self, name: str, found: Locator) -> Locator:
        """A control's handle or field, unfolded."""
        if not found.is_visible():
            self.unfold()
        if getattr(self.cls.controls()[name], "more", False) and not found.is_visible():
            self.figure.locator(f'details:has([data-control="{name}"]) > summary').click()
        return found

    def unfold(self) -> None:
        """Shows the controls that a phone folds behind one button."""
        button = self.figure.locator("[data-unfold]")
        if button.is_visible() and button.get_attribute("aria-expanded") == "false":
            button.click()

    def field(self, name: str) -> Locator:
        label = f"{self.cls.controls()[name].label}, typed"
        return self.shown(name, self.figure.get_by_role("textbox", name=label, exact=True))

    def button(self, label: str) -> Locator:
        return self.figure.get_by_role("button", name=label, exact=True)

    def at(self, name: str) -> float:
        """The value of a slider, or of the field if the number can only be typed."""
        if not self.cls.controls()[name].slider:
            return float(self.field(name).input_value().replace(",", ""))
        return float(self.cls.controls()[name].grid[int(self.handle(name).input_value())])

    # -- what a hand does ------------------------------------------------------------------------------------
    def drag(self, name: str, index: int, on_the_way=None) -> float:
        """Drags a slider's handle to a stop with the mouse; returns the value there.

        If stops are closer together than pixels, the last few steps are made with keys. A number without a
        slider is typed.
        """
        control = self.cls.controls()[name]
        if not control.slider:
            return self.type_in(name, float(control.grid[index]))
        slider = self.handle(name)
        count = int(slider.get_attribute("max")) + 1  # a player's run may end before its last stop
        box = self.grip(slider, count)

        def place(stop: int) -> float:
            return box["x"] + THUMB / 2 + (box["width"] - THUMB) * stop / (count - 1)

        index, y = index % count, box["y"] + box["height"] / 2
        start = place(int(slider.input_value()))
        for share in (0.35, 0.7):
            self.page.mouse.move(start + (place(index) - start) * share, y)
            if on_the_way:
                on_the_way()
        self.page.mouse.move(place(index), y)
        self.page.mouse.up()
        for _ in range(4):
            if off := index - int(slider.input_value()):
                slider.press("ArrowRight" if off > 0 else "ArrowLeft")
        assert slider.input_value() == str(index), (
            f"{name} was dragged to stop {slider.input_value()}, not {index}"
        )
        return self.at(name)

    def type_in(self, name: str, value: float) -> float:
        self.field(name).fill(self.cls.controls()[name].write(value))
        self.field(name).press("Enter")
        return self.at(name)

    def grip(self, slider: Locator, count: int) -> dict:
        """Presses the mouse on the slider's handle, again if the page has moved meanwhile; returns the
        slider's box."""
        for _ in range(3):
            slider.hover()  # scrolls there and waits until it rests
            box = slider.bounding_box()
            at = int(slider.input_value()) / (count - 1)
            self.page.mouse.move(
                box["x"] + THUMB / 2 + (box["width"] - THUMB) * at, box["y"] + box["height"] / 2
            )
            self.page.mouse.down()
            if (
                slider.evaluate("handle => handle === document.activeElement")
                and box == slider.bounding_box()
            ):
                return box
            self.page.mouse.up()
        raise AssertionError("the slider would not rest under the hand")

    def choose(self, name: str, value: int) -> None:
        """Sets a select or a switch the way a reader does."""
        handle = self.handle(name)
        match self.cls.controls()[name].kind:
            case "bits":
                self.turn(handle, value)
            case "choice":
                handle.select_option(index=value)
            case _:
                handle.set_checked(bool(value))

    def turn(self, row: Locator, value: int) -> None:
        """Clicks each bit of a row that differs from the value."""
        for button in row.get_by_role("button").all():
            wanted = bool(value >> int(button.get_attribute("data-place")) & 1)
            if (button.get_attribute("aria-pressed") == "true") != wanted:
                button.click()

    def move(self, name: str, value: float) -> None:
        """Sets any control to one of its values."""
        control = self.cls.controls()[name]
        if not getattr(control, "slider", True):
            self.type_in(name, value)
        elif control.kind in ("number", "player"):
            self.drag(name, control.grid.tolist().index(value))
        else:
            self.choose(name, int(value))
