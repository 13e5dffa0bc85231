"""Widgets and the examples behind ``panel serve``, in a browser."""

import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from playwright.sync_api import expect

from tests.conftest import ROOT

FILES = [
    "widgets/foundations/roofline.py",
    *(f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.py"))),
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


@pytest.mark.parametrize("app", TITLES)
def test_it_is_served_and_says_nothing_wrong(browser, apps, app):
    page, faults = browser.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(apps + app)
    expect(page.get_by_text(TITLES[app]).first).to_be_visible()
    expect(page.locator("canvas").first).to_be_attached()
    page.close()
    assert faults == []


def test_a_slider_moves_the_figure_s_words(browser, apps):
    page = browser.new_page()
    page.goto(apps + "roofline")
    said = page.get_by_text("At batch 32, decode reaches")
    expect(said).to_be_visible()
    handle = page.locator(".noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    expect(said).to_have_count(0)
    expect(page.get_by_text("decode reaches").first).to_be_visible()
    page.close()
