"""What the tests share: the built site behind a plain file server, and one browser for all of them."""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from course import browsers, freshness
from tests import pytorch
from widgets.kit.server import built

ROOT = Path(__file__).resolve().parents[1]
SITE = built.BUILT


# a busy machine is no failure
settings.register_profile("course", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("course")


def pytest_sessionstart():
    """Nothing that is collected is garbage: to look for some again and again takes a third of the time."""
    gc.disable()


def pytest_collection_finish():
    """From here on there is garbage; what was collected stays to the end, and need not be looked through."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # make mutants runs without xdist
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a test with a browser waits for it about a third of its time."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config, items):
    """What the kit does for every figure alike is asked of those that stand for all."""
    asked = [item for item in items if item.get_closest_marker("of_the_kit")]
    if not asked:
        return
    from tests import representatives  # knows all figures, which takes a second to load

    left_out = {item for item in asked if not representatives.stands(item)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def pytest_terminal_summary(terminalreporter):
    """What was not tested for want of PyTorch: said once."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if _wants_pytorch(report)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests need PyTorch: make recorder")


def _wants_pytorch(report) -> bool:
    return isinstance(report.longrepr, tuple) and pytorch.MISSING in report.longrepr[2]


# -- the site ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site; built anew only when a source is newer, so that a file changed by hand
    shows."""
    SITE.parent.mkdir(exist_ok=True)
    with open(SITE.parent / "static.lock", "w") as lock:  # several test processes share one build
        fcntl.flock(lock, fcntl.LOCK_EX)
        if freshness.stale():
            done = subprocess.run(
                [sys.executable, "-m", "course.build"], cwd=ROOT, capture_output=True, text=True
            )
            if done.returncode:
                said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-4:])
                pytest.fail(f"the site does not build (python -m course.build):\n{said}", pytrace=False)
    return SITE


@pytest.fixture
def compiled(site, monkeypatch):
    """What the site's build has compiled, for tests that only need it: to compile a widget takes seconds."""
    monkeypatch.setenv("KEEP_COMPILED", str(ROOT / "build" / "compiled"))


@pytest.fixture(scope="session")
def static(site):
    """The address of the site on a server that only hands out files."""
    command = [
        sys.executable,
        "-u",
        "-m",
        "http.server",
        "0",
        "--bind",
        "127.0.0.1",
        "--directory",
        str(site),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = server.stdout.readline().split(" port ")[1].split()[0]
    yield f"http://127.0.0.1:{port}/"
    server.terminate()
    server.wait()


# -- the browser ---------------------------------------------------------------------------------------------
def find_browser(playwrights_own: str) -> str:
    """The path of a Chromium, or a failure that says how to get one."""
    try:
        return browsers.find(playwrights_own)
    except LookupError as error:
        pytest.fail(f"The browser tests need Chromium. {error}", pytrace=False)


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium
        opened = chromium.launch(
            executable_path=find_browser(chromium.executable_path), args=browsers.ARGUMENTS
        )
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def script(browser, static):
    """An empty page of the static site, on which tests run the site's own modules: ``script.evaluate(code,
    argument)``."""
    page = browser.new_page()
    page.route(
        f"{static}empty", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html")
    )
    page.goto(f"{static}empty")
    yield page
    page.close()
