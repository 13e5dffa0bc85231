"""The head of a page: title, description and link preview; and the files for search engines."""

import json
import re
import subprocess
import xml.etree.ElementTree as etree
from collections import Counter
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader
from PIL import Image

from course import lessons, settings
from course.output import announced, plain
from tests.conftest import ROOT
from widgets.kit.widget import all_widgets

ASSETS = ROOT / "site" / "theme" / "assets"
NAMES = [lesson.name for lesson in lessons.numbered()]


def heads(site: Path) -> dict[str, str]:
    """The head of every page except the 404 page."""
    return {
        path.parent.relative_to(site).as_posix(): re.search(
            r"<head>.*?</head>", path.read_text(encoding="utf-8"), re.DOTALL
        )[0]
        for path in sorted(site.rglob("index.html"))
    }


def said(head: str, pattern: str) -> str:
    found = re.findall(pattern, head)
    assert len(found) == 1, f"{len(found)} of {pattern}"
    return found[0].strip()


@pytest.mark.parametrize(
    "pattern",
    [
        r"<title>([^<]+)</title>",
        r'<meta name="description" content="([^"]+)">',
        r'<meta property="og:title" content="([^"]+)">',
        r'<meta property="og:description" content="([^"]+)">',
    ],
)
def test_every_page_says_what_it_is_and_no_two_the_same(site, pattern):
    words = {name: said(head, pattern) for name, head in heads(site).items()}
    assert len(words) > 60 and all(words.values())
    assert [name for name, text in words.items() if Counter(words.values())[text] > 1] == []


def test_a_page_without_a_public_address_names_none(site):
    assert not any("og:image" in head or 'rel="canonical"' in head for head in heads(site).values())


def test_a_preview_has_whole_addresses_where_the_site_is_public():
    partial = Environment(loader=FileSystemLoader(ROOT / "site" / "theme"), autoescape=True).get_template(
        "partials/preview.html"
    )
    head = partial.render(
        title="A & B",
        description='"C"',
        address="https://example.org/course/x/",
        home="https://example.org/course/",
        picture=NAMES[0],
    )
    assert (
        said(head, r'<link rel="canonical" href="([^"]+)">')
        == said(head, r'"og:url" content="([^"]+)"')
        == "https://example.org/course/x/"
    )
    picture = said(head, r'"og:image" content="([^"]+)"').removeprefix("https://example.org/course/assets/")
    assert (ASSETS / picture).is_file() and "A &amp; B" in head and "&#34;C&#34;" in head


@pytest.mark.parametrize("name", [*NAMES, "course"])
def test_a_lesson_s_preview_shows_its_present_title(name):
    """Drawn by a browser and kept: python -m course.pictures draws them anew."""
    title = "System ML" if name == "course" else lessons.read(f"{name}.md").title
    with Image.open(ASSETS / "previews" / f"{name}.png") as picture:
        assert picture.size == (1200, 630) and picture.info["Title"] == title, (
            "python -m course.pictures draws it anew"
        )
        assert len(set(picture.convert("L").resize((60, 32)).tobytes())) > 20, "nothing is drawn on it"


def test_the_sitemaps_name_every_page_once(site):
    """Widgets, the book and the slides stand apart: what is in sitemap.xml is opened by Material's navigation
    without loading anew."""

    def listed(name):
        return [
            where.split("//")[1].partition("/")[2].strip("/") or "."
            for where in re.findall("<loc>([^<]+)</loc>", (site / name).read_text(encoding="utf-8"))
        ]

    assert sorted(listed("sitemap.xml") + listed("sitemap-more.xml")) == sorted(heads(site))
    decks = [lesson.slides.rstrip("/") for lesson in lessons.numbered()]
    assert sorted(listed("sitemap-more.xml")) == sorted([*all_widgets(), "book", *decks])
    robots = (site / "robots.txt").read_text(encoding="utf-8")
    assert re.findall(r"^Sitemap: https?://\S+/(sitemap\S*\.xml)$", robots, re.MULTILINE) == [
        "sitemap.xml",
        "sitemap-more.xml",
    ]


def test_every_page_has_an_icon_for_every_browser(site):
    for head in heads(site).values():
        assert re.search(r'rel="icon" type="image/svg\+xml"', head) and 'sizes="32x32"' in head
    with Image.open(site / "assets" / "images" / "favicon.png") as icon:
        assert icon.size == (32, 32)


# -- for other programs --------------------------------------------------------------------------------------
def test_every_page_of_the_course_describes_itself(site):
    """As schema.org has it: a lesson with its place in the course, its minutes and its licence."""
    for page in lessons.pages():
        folder = "" if page.name == "index" else page.name
        head = heads(site)[folder or "."]
        about = json.loads(said(head, r'<script type="application/ld\+json">(.*?)</script>'))
        assert (
            about["@type"] == ("LearningResource" if folder else "Course")
            and about["@context"] == "https://schema.org"
        )
        assert about["description"] == page.front["description"].strip() and about["license"].startswith(
            "https://"
        )
        assert said(head, r'<link rel="alternate text" type="text/markdown" href="([^"]+)">') == "index.md"
        assert (site / folder / "index.md").is_file()
        if page.number:
            assert about["position"] == NAMES.index(page.name) + 1 and re.fullmatch(
                r"PT\d+M", about["timeRequired"]
            )
    course = json.loads(said(heads(site)["."], r'<script type="application/ld\+json">(.*?)</script>'))
    assert [each["name"] for each in course["hasPart"]] == [lesson.title for lesson in lessons.numbered()]


def test_a_page_names_its_translations_where_it_has_any(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "public_home", lambda: "https://example.org/course/")
    assert "hreflang" not in announced.described("about", "", "../")
    (tmp_path / "es").mkdir()
    (tmp_path / "es" / "about.md").write_text("# Sobre el curso")
    monkeypatch.setattr(announced.lessons, "LESSONS", tmp_path)
    head = announced.described("about", "", "../")
    assert dict(re.findall(r'hreflang="([\w-]+)" href="([^"]+)"', head)) == {
        "en": "https://example.org/course/about/",
        "x-default": "https://example.org/course/about/",
        "es": "https://example.org/course/es/about/",
    }
    assert "hreflang" not in announced.described("teach", "", "../")


def test_a_description_cannot_end_the_element_that_holds_it(monkeypatch):
    page = lessons.read("about.md")
    monkeypatch.setitem(page.__dict__, "front", {"description": "</script><script>alert(1)"})
    monkeypatch.setattr(announced, "_pages", lambda: {"about": page})
    assert announced.described("about", "", "../").count("</script>") == 1


def test_a_day_in_the_sitemap_is_that_of_the_last_commit_to_the_text(site):
    days = announced.last_changed()
    if not days:
        pytest.skip("this is no git repository, or not the whole of one")
    listed = dict(
        re.findall(
            r"<loc>[^<]+?//[^/]+/([^<]*?)/?</loc><lastmod>([^<]+)<", (site / "sitemap.xml").read_text("utf-8")
        )
    )
    assert len(listed) == len(lessons.pages())
    command = [
        "git",
        "log",
        "-1",
        "--format=%cs",
        "--",
        "lessons/05-fsdp-and-zero.md",
        "lessons/05-fsdp-and-zero.py",
    ]
    ours = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert days["05-fsdp-and-zero"] == ours and re.fullmatch(r"\d{4}-\d\d-\d\d", listed["05-fsdp-and-zero"])


def test_without_the_history_the_sitemap_has_no_days(monkeypatch):
    announced.last_changed.cache_clear()
    monkeypatch.setattr(
        announced,
        "_git",
        lambda *words: "true\n" if "rev-parse" in words else "2026-01-01\n\nlessons/about.md\n",
    )
    assert announced.last_changed() == {}
    announced.last_changed.cache_clear()


def test_the_feed_has_every_release(site):
    feed = etree.fromstring((site / announced.FEED).read_text("utf-8"))
    versions = re.findall(r"^## (\d\S*) — ", announced.CHANGELOG.read_text("utf-8"), re.MULTILINE)
    assert versions and [item.findtext("title") for item in feed.iter("item")] == [
        f"System ML {each}" for each in versions
    ]
    assert all("<li>" in item.findtext("description") for item in feed.iter("item"))


def test_llms_txt_lists_every_page_once(site):
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", (site / "llms.txt").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.file for _, pages in plain.sections() for page in pages)
    assert len(listed) == len(lessons.pages()) and all((site / name).is_file() for name in listed)
