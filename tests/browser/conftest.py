"""What the browser tests share: a visit to a page on which nothing may go wrong, and the two ways of serving
the course."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error, Page, Request, expect

from tests.browser.hands import ALONE, NOT_COVERED, Hand, enter
from tests.browser.server import Server
from tests.conftest import PATIENCE_MS
from widgets.kit.widget import all_widgets

ICON = "/favicon.svg"
AHEAD = "prefetch"  # what was asked for in case it is needed, and is let go of with the page
# a word on the machine, not on the page
SLOW = "was preloaded using link preload but not used within a few seconds"

expect.set_options(timeout=PATIENCE_MS)  # as long as for all else


@pytest.fixture(scope="session")
def served(site):
    """The address of the course with Python behind it."""
    server = Server()
    server.start()
    yield server.address
    server.kill()


@pytest.fixture(params=["static", "served"])
def origin(request):
    """Each of the two ways in turn."""
    return request.getfixturevalue(request.param)


VIEWPORT = {"viewport": {"width": 1280, "height": 900}}
# what a test may do to a tab that the next address does not undo
LASTING = (
    "add_init_script",
    "close",
    "emulate_media",
    "expose_binding",
    "expose_function",
    "on",
    "once",
    "route",
    "set_default_navigation_timeout",
    "set_default_timeout",
    "set_extra_http_headers",
    "set_viewport_size",
)


class Visit:
    """A reader's browser window; it notes what a reader must never meet. It keeps nothing from or for
    another, but for files in the browser's cache, and a tab that a test left as it was: the next page finds the
    site's scripts compiled in it, where those of a new tab take a third of a second. A lesson has only the
    figures that are asked for, where some are."""

    def __init__(self, browser, predictions: bool = False, figures: Sequence[str] | None = None, **settings):
        self.own = browser.new_context(**VIEWPORT | settings)
        self.changed = False  # whether a test may have changed what lasts longer than a page
        self.origins: set[str] = set()
        self.scripts = settings.get("java_script_enabled", True)
        self.page: Page | None = None
        self.own.on("request", lambda request: self.asked(request.url))
        self.start(predictions, figures)

    @property
    def context(self):
        if not self.changed:
            self.changed = True
            for script in self.firsts:
                self.own.add_init_script(script)
        return self.own

    def start(self, predictions: bool = False, figures: Sequence[str] | None = None) -> None:
        """A page for a reader who was never here, and wants no figure covered (test_predictions.py has the
        others)."""
        self.page = self.page or self.tab()
        for origin in self.origins:
            self.tools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self.own.clear_cookies()
        self.firsts = [] if predictions else [NOT_COVERED]  # what runs before a page's own scripts
        if figures is not None:
            self.firsts.append(ALONE % json.dumps(figures))
        self.added = [
            self.tools.send("Page.addScriptToEvaluateOnNewDocument", {"source": script})["identifier"]
            for script in self.firsts
        ]
        self.begin()

    def tab(self) -> Page:
        """A new one, in which whatever goes wrong is noted."""
        page = self.own.new_page()
        page.on(
            "console",
            lambda message: message.type in ("error", "warning") and self.fault("console", message.text),
        )
        page.on("pageerror", lambda error: self.fault("error", str(error)))
        page.on("request", self.asks)
        page.on("requestfailed", self.failed)
        page.on(
            "response",
            lambda answer: answer.status >= 400 and self.fault(f"HTTP {answer.status}", answer.url),
        )
        page.on("websocket", lambda socket: (self.sockets.append(socket), self.asked(socket.url)))
        self.tools = self.own.new_cdp_session(page)
        self.tools.send("Page.enable")
        self.marked = False  # whether a test has done to the tab what lasts
        for name in LASTING:
            setattr(page, name, self.marks(getattr(page, name)))
        return page

    def marks(self, does):
        def done(*args, **settings):
            self.marked = True
            return does(*args, **settings)

        return done

    def leave(self) -> None:
        """Closes the window, whose context may be taken again, with its tab where nothing has marked that."""
        self.leaving = True
        if self.changed:
            self.own.close()
            return
        kept = None if self.marked or not self.emptied() else self.page
        for page in self.own.pages:
            if page is not kept:
                page.close()
        self.page = kept

    def emptied(self) -> bool:
        """Whether the tab holds nothing any more of the page that it showed."""
        if not self.scripts:
            return False
        try:
            self.page.wait_for_function("() => !sessionStorage.clear()", timeout=10_000)
            self.page.mouse.up()
            self.page.mouse.move(0, 0)
            self.page.goto("about:blank")
            for script in self.added:
                self.tools.send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})
        except Error:  # no page of the course, or one that does not answer
            return False
        return True

    def begin(self) -> None:
        """Nothing has gone wrong yet."""
        self.faults, self.forgiven, self.hosts, self.sockets = [], [], set(), []
        self.leaving = False
        self.waiting: set[Request] = set()  # what the page that is shown now has asked for

    def fault(self, kind: str, text: str) -> None:
        if SLOW not in text:
            self.faults.append(f"{kind}: {text}")

    def asks(self, request: Request) -> None:
        """Notes what the page waits for. Where it leaves for another of its own accord, or by a link, it waits for
        nothing any more."""
        if request.is_navigation_request() and request.frame == self.page.main_frame:
            self.waiting.clear()
        self.waiting.add(request)

    def failed(self, request: Request) -> None:
        """A failed request is a fault, unless the page no longer needs it, or the browser itself asked: it
        fetches a page's icon late, and drops it when the window goes on or is closed. What a page reads from
        itself (a puzzle's worker) is dropped with the frame that wanted it."""
        unneeded = (
            self.leaving
            or request not in self.waiting
            or request.url.endswith(ICON)
            or request.url.startswith("blob:")
        )
        dropped = unneeded and request.failure == "net::ERR_ABORTED"
        if not dropped and request.headers.get("sec-purpose") != AHEAD:
            self.fault("request failed", f"{request.url} {request.failure}")

    def asked(self, url: str) -> None:
        if urlsplit(url).netloc:  # data: and blob: ask nobody
            self.hosts.add(urlsplit(url).netloc)
            self.origins.add(f"http://{urlsplit(url).netloc}")

    def go(self, url: str):
        self.waiting.clear()
        if self.scripts:
            enter(self.page, url)
        else:
            self.page.goto(url)
        return self.page

    def forgive(self, *words: str) -> None:
        """Faults with these words are what the test itself brings about."""
        self.forgiven += words

    def left(self) -> list[str]:
        """What went wrong and is not forgiven; more than one host is always wrong: no request leaves the
        origin."""
        wrong = [fault for fault in self.faults if not any(words in fault for words in self.forgiven)]
        return wrong + ([f"asked several hosts: {sorted(self.hosts)}"] if len(self.hosts) > 1 else [])

    def forget(self) -> list[str]:
        """Leaves the page, and what it kept, so that the next test finds nothing of it; gives what is ``left``."""
        left = self.left()
        self.page.evaluate("localStorage.clear()")
        self.page.goto("about:blank")  # what it breaks off is no fault of the next page
        return left


@pytest.fixture(scope="session")
def left_behind():
    """Settings -> the windows with them that were left, to be taken again: to fill the cache of another takes a
    processor as long as to show a page."""
    kept: dict[str, list[Visit]] = {}
    yield kept
    for one in chain(*kept.values()):
        one.own.close()


@pytest.fixture
def visit(browser, left_behind):
    """Opens windows: ``visit(**settings).go(url)``. Each must end without an error and without a request to
    another host."""
    opened = []

    def open_one(predictions: bool = False, figures: Sequence[str] | None = None, **settings) -> Visit:
        key = str(sorted(settings.items()))
        if same := left_behind.get(key):
            one = same.pop()
            one.start(predictions, figures)
        else:
            one = Visit(browser, predictions, figures, **settings)
        opened.append((key, one))
        return one

    yield open_one
    for _, one in opened:
        one.leave()
    left = [fault for _, one in opened for fault in one.left()]
    for key, one in opened:
        if not one.changed:
            left_behind.setdefault(key, []).append(one)
    assert left == []


@pytest.fixture(scope="session")
def windows(browser):
    """Settings -> one window for all that only look: to open another takes the browser longer than to show a
    page in it."""
    opened = {}

    def window(settings: dict) -> Visit:
        key = str(sorted(settings.items()))
        if key not in opened:
            opened[key] = Visit(browser, **settings)
        return opened[key]

    yield window
    for each in opened.values():
        each.own.close()


@pytest.fixture(scope="session", params=sorted(all_widgets()))
def own_page(request, windows, static):
    """A widget on its own page, which is opened once; as a session's parameter, so that all that is asked of one
    widget, by whichever file of tests, comes in turn."""
    visit = windows({"permissions": ["clipboard-read", "clipboard-write"]})
    visit.begin()
    visit.go(f"{static}{request.param}/")
    yield Hand(visit.page, request.param)
    assert visit.forget() == []


@pytest.fixture
def glance(windows):
    """As ``visit``, for a test that keeps nothing in the browser and asks nothing of what others kept."""
    opened = []

    def look(**settings) -> Visit:
        opened.append(windows(settings))
        opened[-1].begin()
        return opened[-1]

    yield look
    left = [fault for one in opened for fault in one.left()]
    for one in opened:
        one.page.goto("about:blank")  # what it breaks off is no fault of the next page
    assert left == []
