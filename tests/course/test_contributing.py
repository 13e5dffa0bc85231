"""The skeletons in the guides work without changes, so that whoever copies one starts with something that
passes."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from course.fences import base
from tests.widgets import test_contract, test_headlines
from widgets.kit.page import module

ROOT = Path(__file__).resolve().parents[2]
WIDGET = "CONTRIBUTING.md", "A first widget"
FENCE = "course/README.md", "A fence"
RULES = {
    name: rule
    for tests in (test_contract, test_headlines)
    for name, rule in vars(tests).items()
    if name.startswith("test_") and set(inspect.signature(rule).parameters) == {"slug", "cls"}
}


def skeleton(page: str, section: str) -> str:
    """The first program of a section of a guide."""
    guide = (ROOT / page).read_text(encoding="utf-8")
    [text] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", guide, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]


def imported(name: str, source: str, folder: Path) -> ModuleType:
    file = folder / f"{name.rpartition('.')[2]}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def widget(tmp_path_factory):
    made = imported("widgets.foundations.of_the_guide", skeleton(*WIDGET), tmp_path_factory.mktemp("widget"))
    yield made.MyWidget
    del sys.modules[made.__name__]


@pytest.mark.parametrize("name", RULES)
def test_the_widget_keeps_the_contract(name, widget):
    RULES[name](slug="of_the_guide", cls=widget)


def test_the_contract_is_asked_of_it():
    assert len(RULES) > 25


def test_the_widget_comes_alive_without_a_server(widget):
    script, _ = module.made(widget)
    assert b"is more than" in script


def test_the_fence_makes_html(tmp_path):
    made = imported("course.fences.facts", skeleton(*FENCE), tmp_path)
    assert made.render("gpu: h200\n") == "<p>H200 SXM has 141 GB of HBM.</p>"
    with pytest.raises(base.Refused, match="unknown key 'gpus'; allowed are gpu"):
        made.render("gpus: h200\n")


@pytest.mark.parametrize(
    ("guide", "place"), [(WIDGET, "widgets/foundations/my_widget.py"), (FENCE, "course/fences/facts.py")]
)
def test_the_linter_has_nothing_to_say(guide, place):
    """As it would at the place where the skeleton belongs, because some rules depend on it."""
    pytest.importorskip("ruff", reason="make floors tries the libraries, not the linter")
    for command in (["check"], ["format", "--check"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", place, "-"]
        done = subprocess.run(words, cwd=ROOT, input=skeleton(*guide), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_widget_does_not_take_over_the_links_where_it_is_put():
    """A link in a sentence sets the next figure of its section, unless it names one."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [(lesson, heading)] = re.findall(r"Put this into `(.*?)`, before `(.*?)`:", guide)
    before, _, _ = (ROOT / lesson).read_text(encoding="utf-8").partition(f"\n{heading}\n")
    section = before.rpartition("\n## ")[2]
    assert "``` widget" in section and '(figure "' not in section
