"""Every link, anchor, picture, script and style sheet of the built site exists, and none is loaded from
another host."""

import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

import pytest

from tests.lessons.links import HERE, address, faults_of_form, leading_away, pages, same_page, target
from widgets.kit.widget import all_widgets


def test_there_are_pages_to_look_at(site):
    assert len(pages(site)) >= 4 and sum(len(page.links) for page in pages(site).values()) > 100


def test_every_internal_link_and_anchor_is_there(site):
    broken = []
    for path, page in pages(site).items():
        for key, link, tag, _ in page.links:
            where = urljoin(address(site, path), link)
            parts = urlsplit(where)
            if not where.startswith(HERE) or parts.scheme not in ("http", "https"):
                continue
            file = target(site, where)
            if file is None:
                broken.append(f"{path.relative_to(site)}: {tag} {key}={link}")
            elif parts.fragment and file.suffix == ".html" and file in pages(site):
                anchor = unquote(parts.fragment)
                if anchor not in pages(site)[file].ids and not anchor.startswith(":~:"):
                    broken.append(f"{path.relative_to(site)}: no anchor {link}")
    assert broken == []


def test_nothing_is_loaded_from_another_host(site):
    """Only a link that a reader clicks may lead away; the page's own address may stand in `canonical`."""
    foreign = []
    for path, page in pages(site).items():
        for key, link, tag, rel in page.links:
            parts = urlsplit(link)
            leads_away = bool(parts.netloc) or parts.scheme not in ("", "data", "mailto")
            if (
                leads_away
                and not (tag == "a" and parts.scheme in ("http", "https") and parts.netloc)
                and rel != "canonical"
            ):
                foreign.append(f"{path.relative_to(site)}: {tag} {key}={link}")
    assert foreign == []


def test_a_link_to_a_state_names_controls_and_values(site):
    """?slug.control=value, wherever it stands: the control is there and takes the value."""
    widgets, seen, wrong = all_widgets(), 0, []
    for path, page in pages(site).items():
        for _, link, tag, _ in page.links:
            for name, value in (
                parse_qsl(urlsplit(urljoin(address(site, path), link)).query)
                if tag == "a" and not urlsplit(link).netloc
                else ()
            ):
                slug, _, control = name.partition(".")
                if slug not in widgets or not control:
                    continue
                seen += 1
                try:
                    widgets[slug]().set_state({control: value})
                except ValueError as error:
                    wrong.append(f"{path.relative_to(site)}: {link}: {error}")
    assert seen and wrong == []


def test_links_that_lead_away_are_well_formed(site):
    links = leading_away(site)
    assert len(links) > 100
    assert {link: faults for link in links if (faults := faults_of_form(link))} == {}


def test_no_page_elsewhere_is_linked_in_two_ways(site):
    count = Counter(same_page(link) for link in leading_away(site))
    assert [link for link in leading_away(site) if count[same_page(link)] > 1] == []


@pytest.mark.parametrize(
    "link",
    [
        "http://example.org/a",
        "https://example.org/a?utm_source=x",
        "https://arxiv.org/pdf/1910.02054",
        "https://arxiv.org/abs/1910.02054v3",
        "https://example.org/a.",
        "https://example.org/a)",
    ],
)
def test_a_fault_of_form_is_seen(link):
    assert len(faults_of_form(link)) == 1
    assert faults_of_form("https://en.wikipedia.org/wiki/Ring_(mathematics)") == []


def test_stylesheets_load_only_what_the_site_holds(site):
    sheets = [(path, path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.css"))]
    sheets += [(path, style) for path, page in pages(site).items() for style in page.styles]
    assert len(sheets) > 5
    for path, text in sheets:
        for link in re.findall(
            r"""(?:url\(|@import\s+)\s*["']?([^"')\s;]+)""", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        ):
            if not link.startswith(("data:", "#", "%23")):
                where = urljoin(address(site, path), link)
                assert where.startswith(HERE) and target(site, where), f"{path.relative_to(site)}: {link}"


def test_scripts_import_only_what_the_site_holds(site):
    modules = sorted((site / "assets" / "widget").glob("*.js")) + sorted(
        (site / "assets" / "widgets").glob("*.js")
    )
    for path in modules:
        for link in re.findall(
            r"""^import .*?["']([^"']+)["']""", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            assert link.startswith(".") and target(site, urljoin(address(site, path), link)), (
                f"{path.name}: {link}"
            )


def test_the_search_finds_pages_that_exist(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert len(index["docs"]) > 5
    for entry in index["docs"]:
        file = target(site, urljoin(HERE, entry["location"]))
        anchor = unquote(urlsplit(entry["location"]).fragment)
        assert file and (not anchor or anchor in pages(site)[file].ids), entry["location"]


def test_every_lesson_has_its_page(site):
    source = Path(__file__).resolve().parents[2] / "lessons"
    for path in source.rglob("[!R]*.md"):  # README is no page
        name = path.relative_to(source).with_suffix("")
        assert (site / ("" if name.name == "index" else name) / "index.html").is_file(), name
