"""The pages for teachers and about the course: a plan's links show the figure that they name, and the
citation is true."""

import re
import tomllib
from html import unescape
from urllib.parse import parse_qsl, urlsplit

from course.fences import cite
from tests.conftest import ROOT

TEACH = (ROOT / "lessons" / "teach.md").read_text(encoding="utf-8")
LINKS = [urlsplit(unescape(address)) for address in re.findall(r'<a href="(\.\./[^"]+)"', TEACH)]


def test_each_state_in_a_plan_is_that_of_a_figure_on_its_page():
    """That controls and values exist, test_links.py asks of every page."""
    asked = [(link, dict(parse_qsl(link.query, keep_blank_values=True))) for link in LINKS]
    assert sum(bool(state) for _, state in asked) > 20
    for link, state in asked:
        assert state.pop("present", "") == ""
        for slug in {name.split(".")[0] for name in state}:
            assert link.path == f"../{slug}/" or link.fragment == f"w-{slug}", (
                f"{slug} is not what {link.geturl()} shows"
            )


def test_every_lesson_has_its_place_in_the_term():
    term = TEACH.split("## A term")[1]
    assert all(f"({path.name})" in term for path in (ROOT / "lessons").glob("[0-9]*.md"))


def test_the_citation_has_the_package_s_version_and_a_public_address_alone(monkeypatch):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    monkeypatch.delenv("SITE_URL", raising=False)
    assert f"Version {version}, CC BY 4.0" in cite.bibtex() and "url" not in cite.bibtex()
    assert "author  = {{The System ML authors}}" in cite.bibtex() and re.search(
        r"year\s+= \{20\d\d\}", cite.bibtex()
    )
    monkeypatch.setenv("SITE_URL", "https://example.org/course/")
    assert "url     = {https://example.org/course/}" in cite.bibtex()
    assert cite.bibtex().count("{") == cite.bibtex().count("}")


def test_both_licences_are_there_and_every_page_says_so():
    assert (
        "CC-BY-4.0" in (ROOT / "LICENSE-CONTENT").read_text()
        and "BSD 3-Clause" in (ROOT / "LICENSE").read_text()
    )
    footer = re.search(
        r"^copyright:(.+?)^docs_dir", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE | re.DOTALL
    )[1]
    assert "creativecommons.org/licenses/by/4.0/" in footer and "BSD-3-Clause" in footer
