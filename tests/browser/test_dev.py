"""``make dev``, in a copy of the tree: a changed file is seen in an open page, which loads itself again."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.hands import NOT_COVERED

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("engine", "widgets", "course", "lessons", "kernels", "examples", "site")
LONG_MS = 120_000  # for a busy machine; how long it takes on an idle one is no matter here


@pytest.fixture
def tree(site, tmp_path):
    for name in (*PARTS, "build/static"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def address(tree):
    """Where the development server serves the copy."""
    server = subprocess.Popen(
        [sys.executable, "-m", "course.serve", "--watch", "--port", str(31_000 + os.getpid() % 1000)],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said = ""
    while "is open on" not in said:
        assert server.poll() is None, said
        said += server.stdout.readline()
    yield re.search(r"http://\S+", said)[0]
    os.killpg(server.pid, signal.SIGTERM)
    assert server.wait(30) == 0


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_changed_widget_lesson_and_style_are_seen_in_an_open_page(browser, tree, address):
    page = browser.new_page()
    page.add_init_script(NOT_COVERED)
    page.goto(f"{address}01-why-distributed/")
    page.wait_for_selector("figure.widget[data-state=live]", timeout=LONG_MS)

    change(tree / "lessons/01-why-distributed.md", "## Takeaway", "## What is taken away")
    page.get_by_role("heading", name="What is taken away").wait_for(timeout=LONG_MS)

    style = tree / "site/theme/assets/css/type.css"
    style.write_text(
        style.read_text(encoding="utf-8") + "\nh1 { color: rgb(1, 2, 3) !important; }\n", encoding="utf-8"
    )
    expect(page.locator("h1").first).to_have_css("color", "rgb(1, 2, 3)", timeout=LONG_MS)

    change(tree / "widgets/foundations/memory_stack.py", 'question = "Where', 'question = "Tell me, where')
    page.get_by_text("Tell me, where").first.wait_for(timeout=LONG_MS)
    page.wait_for_selector(  # with the new Python behind it
        "figure[data-widget=memory_stack]:is([data-state=live], [data-state=asked])", timeout=LONG_MS
    )
    page.close()


def test_the_built_site_knows_nothing_of_it(site):
    assert not [path for path in site.rglob("*.html") if "live/reload" in path.read_text(encoding="utf-8")]


def test_without_make_dev_a_server_offers_nothing_of_it(served, browser):
    page = browser.new_page()
    assert page.request.get(f"{served}live/reload.js").status == 404
    assert "live/reload" not in page.request.get(served).text()
    page.close()
