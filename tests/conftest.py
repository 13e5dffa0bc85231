"""Fixtures for all tests: the built site behind a plain file server, and one browser. Also decides which
tests to leave out."""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from course import browsers, freshness, in_wheel
from engine.base import built
from tests import machine, settled

pytest_plugins = ["tests.chosen"]

ROOT = Path(__file__).resolve().parents[1]
SITE = built.BUILT


# a slow example on a busy machine is not a failure
settings.register_profile("course", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("course")


def pytest_sessionstart(session):
    """Switch garbage collection off while tests are collected: there is no garbage then, and looking for it
    takes a third of the time."""
    gc.disable()
    if is_whole(session.config):
        settled.settled()


def pytest_collection_finish():
    """Switch garbage collection on again, and exempt the collected tests from it, because they stay to the
    end."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # make mutants runs without xdist
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores, because a test with a browser spends about a third of its time
    waiting."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config, items):
    """Leaves out the tests that this run does not need: those for which other figures stand in, and settled
    ones. With LACKED set, leaves out all tests that the last run has not skipped."""
    of_the_kit = [item for item in items if item.get_closest_marker("of_the_kit")]
    whole, apart = is_whole(config), set()
    if of_the_kit or whole:
        from tests import representatives  # knows all figures, which takes a second to load
    apart |= {item for item in of_the_kit if not representatives.stands(item)}
    if whole:
        apart |= set(settled.left_out(items, representatives.standing()))
    if "LACKED" in os.environ:
        lacked = set(config.cache.get(LACKED, []))
        apart |= {item for item in items if not {item.nodeid, item.nodeid.partition("::")[0]} & lacked}
    if apart:
        items[:] = [item for item in items if item not in apart]
        config.hook.pytest_deselected(items=list(apart))


LACKED = "course/lacked"  # in pytest's cache: the tests, or files of tests, that a run left out


def is_whole(config) -> bool:
    """True if all tests are run and not some named ones. A worker does not know this, so the main process
    tells it."""
    if hasattr(config, "workerinput"):
        return config.workerinput["whole"]
    named = config.args_source is not config.ArgsSource.TESTPATHS
    return not (named or config.option.keyword or config.option.markexpr or "LACKED" in os.environ)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["whole"] = is_whole(node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session, exitstatus):
    """Stores which questions were settled and which programs were missing; fails if a program is missing that
    must not be."""
    config = session.config
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or not terminal or config.option.collectonly:
        return
    reports = {kind: terminal.stats.get(kind, []) for kind in ("passed", "failed", "error", "skipped")}
    lacking = {report.nodeid: name for report in reports["skipped"] if (name := machine.lacked(report))}
    if config.pluginmanager.has_plugin("cacheprovider"):
        config.cache.set(LACKED, sorted(lacking))
    if is_whole(config):
        bad = [report.nodeid for kind in ("failed", "error") for report in reports[kind]]
        passed = [report.nodeid for report in reports["passed"]]
        settled.note(settled.newly_answered(passed, [*bad, *lacking]))
    if missing := machine.not_allowed(lacking.values()):
        terminal.write_line(f"this run may not lack {', '.join(missing)}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Print what was left out, and how to run it."""
    skipped = terminalreporter.stats.get("skipped", [])
    for line in machine.summary(name for report in skipped if (name := machine.lacked(report))):
        terminalreporter.write_line(line)
    if is_whole(config) and (names := settled.summary()):
        terminalreporter.write_line(
            "not asked again, since nothing has changed that it rests on (EVERY=1 asks):"
        )
        for name in names:
            terminalreporter.write_line(f"  {name}")


# -- the site ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site. It is built anew only if a source is newer, so that a change made by hand
    in the built site can be tested."""
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


@pytest.fixture(scope="session")
def package(tmp_path_factory) -> Path:
    """A folder that holds the package as it is in a wheel, for what is written for those who install it."""
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "package"
    with open(shared.with_suffix(".lock"), "w") as lock:  # several test processes share one
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            in_wheel.write(shared)
    return shared


@pytest.fixture
def compiled(site, monkeypatch):
    """Reuses the widgets that the site's build has compiled, because compiling a widget takes seconds."""
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
PATIENCE_MS = 90_000  # how long a browser is waited for: a busy machine is no failure


def patient(opens):
    """What opens a window or a page, which then waits as long for whatever a test asks of it."""

    def opened(**settings):
        one = opens(**settings)
        one.set_default_timeout(PATIENCE_MS)
        return one

    return opened


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium
        path = machine.chromium(chromium.executable_path)
        opened = chromium.launch(executable_path=path, args=browsers.ARGUMENTS)
        opened.new_context, opened.new_page = patient(opened.new_context), patient(opened.new_page)
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
