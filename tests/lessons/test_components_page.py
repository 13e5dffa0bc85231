"""The page about components: its programs run as they stand, they answer what it says, and it shows all the
dashboards that there are."""

import re
from html import unescape

import panel as pn
import pytest

from tests.conftest import ROOT
from tests.lessons.reading import LESSONS

TEXT = (LESSONS / "components.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names(package):
    """What the page's programs have made, one after the other, as in a notebook."""
    made, theme = {}, pn.config.theme
    with pytest.MonkeyPatch.context() as installed:
        installed.syspath_prepend(package)
        for program in re.findall(r"^``` python\n(.+?)^```", TEXT, re.MULTILINE | re.DOTALL):
            exec(compile(program, "components.md", "exec"), made)
    assert pn.config.theme == theme
    return made


def test_each_program_does_what_the_page_says(names):
    assert names["heard"] == [64.0]
    assert names["figure"].live.headline.startswith("At batch 64, decode reaches")
    assert names["spoken"]() == f"**{names['figure'].live.headline}**"
    names["users"].value = 100
    assert names["served"].batch == names["beside"].batch == 100
    assert names["beside"].gpu.key == "h200"
    names["where"].value = next(gpu for gpu in names["where"].options.values() if gpu.key == "b200")
    assert names["figure"].gpu.key == "b200" and names["where"].name == "Which GPU?"
    assert len(names["figure"].live.frame("work")) == len(names["source"].data["x"])


def test_a_refusal_reads_as_the_page_has_it(names):
    with pytest.raises(ValueError, match="batch") as said:
        names["Roofline"](batch=-3)
    assert f"*{said.value}*" in " ".join(TEXT.split())


def test_it_shows_every_dashboard(site):
    html = (site / "components" / "index.html").read_text(encoding="utf-8")
    shown = re.findall(r'<img src="../assets/dashboards/(\w+)\.png"', html)
    assert sorted(shown) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    assert all((site / "assets" / "dashboards" / f"{name}.png").exists() for name in shown)


def test_the_whole_dashboard_is_what_the_package_has(site, package):
    html = (site / "components" / "index.html").read_text(encoding="utf-8")
    shown = unescape(re.sub(r"<[^>]+>", "", html))
    assert (package / "system_ml/examples/which_chip.py").read_text(encoding="utf-8").strip() in shown
