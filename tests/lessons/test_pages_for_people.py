"""The pages for teachers and about the course: their links open figures in states that exist, and the citation is true."""

import re
import tomllib
from html import unescape
from urllib.parse import parse_qsl, urlsplit

from tests.conftest import ROOT
from widgets.kit import cite
from widgets.kit.widget import all_widgets

TEACH = (ROOT / "lessons" / "teach.md").read_text(encoding="utf-8")
LINKS = [urlsplit(unescape(address)) for address in re.findall(r'<a href="(\.\./[^"]+)"', TEACH)]


def test_each_link_of_a_plan_opens_a_figure_in_a_state_that_it_takes():
    assert len(LINKS) > 25
    for link in LINKS:
        page = link.path.split("/")[1]
        asked = dict(parse_qsl(link.query, keep_blank_values=True))
        assert page in all_widgets() or (ROOT / "lessons" / f"{page}.md").exists(), page
        assert asked.pop("present", "") == ""
        for name, value in asked.items():
            slug, control = name.split(".")
            all_widgets()[slug]().set_state({control: value})  # raises where it is not taken
            assert slug == page or link.fragment == f"w-{slug}", f"{slug} is not what {link.geturl()} shows"


def test_every_lesson_has_its_place_in_the_term():
    term = TEACH.split("## A term")[1]
    assert all(f"({path.name})" in term for path in (ROOT / "lessons").glob("[0-9]*.md"))


def test_the_citation_has_the_package_s_version_and_a_public_address_alone(monkeypatch):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    monkeypatch.delenv("SITE_URL", raising=False)
    assert f"Version {version}, CC BY 4.0" in cite.bibtex() and "url" not in cite.bibtex()
    assert "author  = {{The System ML authors}}" in cite.bibtex() and re.search(r"year\s+= \{20\d\d\}", cite.bibtex())
    monkeypatch.setenv("SITE_URL", "https://example.org/course/")
    assert "url     = {https://example.org/course/}" in cite.bibtex()
    assert cite.bibtex().count("{") == cite.bibtex().count("}")


def test_both_licences_are_there_and_every_page_says_so():
    assert "CC-BY-4.0" in (ROOT / "LICENSE-CONTENT").read_text() and "BSD 3-Clause" in (ROOT / "LICENSE").read_text()
    footer = re.search(r"^copyright:(.+?)^docs_dir", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE | re.DOTALL)[1]
    assert "creativecommons.org/licenses/by/4.0/" in footer and "BSD-3-Clause" in footer
