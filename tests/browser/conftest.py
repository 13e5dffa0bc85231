"""Fixtures for the browser tests: a visit to a page on which nothing may go wrong, and the two ways of
serving the course."""

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
AHEAD = "prefetch"  # requests for files that may be needed later; they are dropped with the page
# messages about the machine, not about the page
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
    """The address of the course, served in each of the two ways in turn."""
    return request.getfixturevalue(request.param)


VIEWPORT = {"viewport": {"width": 1280, "height": 900}}
# the calls on a tab whose effects outlast the page, so that a tab with such a call is not used again
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
    """A reader's browser window; it notes errors that a reader must never meet. Windows share nothing except
    the files in the browser's cache, and a tab that a test has not changed: in such a tab the site's scripts
    are already compiled, which takes a third of a second in a new one. If ``figures`` are given, a lesson
    contains only these."""

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
        """Open a page for a new reader. Figures do not wait for a prediction, unless ``predictions`` asks for
        it (as test_predictions.py does)."""
        self.page = self.page or self.tab()
        for origin in self.origins:
            self.tools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self.own.clear_cookies()
        self.firsts = [] if predictions else [NOT_COVERED]  # scripts that run before a page's own
        if figures is not None:
            self.firsts.append(ALONE % json.dumps(figures))
        self.added = [
            self.tools.send("Page.addScriptToEvaluateOnNewDocument", {"source": script})["identifier"]
            for script in self.firsts
        ]
        self.begin()

    def tab(self) -> Page:
        """A new tab, in which every error is noted."""
        page = self.own.new_page()
        page.on(
            "console",
            lambda message: message.type in ("error", "warning") and self.fault("console", message.text),
        )
        page.on("pageerror", lambda error: self.fault("error", error.stack or str(error)))
        page.on("request", self.asks)
        page.on("requestfailed", self.failed)
        page.on(
            "response",
            lambda answer: answer.status >= 400 and self.fault(f"HTTP {answer.status}", answer.url),
        )
        page.on("websocket", lambda socket: (self.sockets.append(socket), self.asked(socket.url)))
        self.tools = self.own.new_cdp_session(page)
        self.tools.send("Page.enable")
        self.marked = False  # whether a test has changed the tab in a way that lasts
        for name in LASTING:
            setattr(page, name, self.marks(getattr(page, name)))
        return page

    def marks(self, does):
        def done(*args, **settings):
            self.marked = True
            return does(*args, **settings)

        return done

    def leave(self) -> None:
        """Closes the window. Its context may be used again, and also its tab, unless a test has changed
        it."""
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
        """True if nothing of the last page is left in the tab."""
        if not self.scripts:
            return False
        try:
            self.page.wait_for_function("() => !sessionStorage.clear()", timeout=10_000)
            self.page.mouse.up()
            self.page.mouse.move(0, 0)
            self.page.goto("about:blank")
            for script in self.added:
                self.tools.send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})
        except Error:  # this is not a page of the course, or it does not answer
            return False
        return True

    def begin(self) -> None:
        """Start with an empty list of errors."""
        self.faults, self.forgiven, self.hosts, self.sockets = [], [], set(), []
        self.leaving = False
        self.waiting: set[Request] = set()  # the open requests of the page that is shown now

    def fault(self, kind: str, text: str) -> None:
        if SLOW not in text:
            self.faults.append(f"{kind}: {text}")

    def asks(self, request: Request) -> None:
        """Notes a request of the page. When the page goes to another address, by a script or a link, its open
        requests no longer matter."""
        if request.is_navigation_request() and request.frame == self.page.main_frame:
            self.waiting.clear()
        self.waiting.add(request)

    def failed(self, request: Request) -> None:
        """A failed request is an error, unless the page no longer needs it or the browser itself made it: a
        browser fetches a page's icon late, and drops the request when the window goes on or is closed. A
        request for a blob of the page (a puzzle's worker) is dropped together with the frame that made it."""
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
        if urlsplit(url).netloc:  # data: and blob: ask no host
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
        """Ignore errors with these words, because the test itself causes them."""
        self.forgiven += words

    def left(self) -> list[str]:
        """The errors that are not ignored. Requests to more than one host are always an error."""
        wrong = [fault for fault in self.faults if not any(words in fault for words in self.forgiven)]
        return wrong + ([f"asked several hosts: {sorted(self.hosts)}"] if len(self.hosts) > 1 else [])

    def forget(self) -> list[str]:
        """Leaves the page and clears what it stored, so that the next test finds nothing of it; returns the
        errors that are ``left``."""
        left = self.left()
        self.page.evaluate("localStorage.clear()")
        self.page.goto("about:blank")  # requests that this interrupts do not count for the next page
        return left


@pytest.fixture(scope="session")
def left_behind():
    """Settings -> the windows with these settings that are free to be used again. Filling the cache of a new
    window takes as much processor time as showing a page."""
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
    """Settings -> one window for all tests that only look at a page, because opening a window takes longer
    than showing a page in it."""
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
    """A widget on its own page. The fixture is a parameter of the session, so that pytest runs all tests of
    one widget, from all files, one after the other, and the page is opened once."""
    visit = windows({"permissions": ["clipboard-read", "clipboard-write"]})
    visit.begin()
    visit.go(f"{static}{request.param}/")
    yield Hand(visit.page, request.param)
    assert visit.forget() == []


@pytest.fixture
def glance(windows):
    """Like ``visit``, for a test that stores nothing in the browser and does not depend on what others have
    stored."""
    opened = []

    def look(**settings) -> Visit:
        opened.append(windows(settings))
        opened[-1].begin()
        return opened[-1]

    yield look
    left = [fault for one in opened for fault in one.left()]
    for one in opened:
        one.page.goto("about:blank")  # requests that this interrupts do not count for the next page
    assert left == []
