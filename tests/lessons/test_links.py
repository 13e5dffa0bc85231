"""Every link, anchor, picture, script and sheet of the built site is there, and none is taken from another host."""

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit


HERE = "http://course.example/"
LOADED = {"src", "srcset", "data", "poster", "action"}  # what a browser fetches by itself, or sends


class Page(HTMLParser):
    """The ids of a page and what it points at: (attribute, address, tag)."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.links, self.styles = set(), [], []
        self.in_style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.in_style = tag == "style"
        self.ids |= {given[key] for key in ("id", "name") if given.get(key) and (key == "id" or tag == "a")}
        if given.get("style"):
            self.styles.append(given["style"])
        for key, value in attrs:
            if value is not None and (key in LOADED and tag != "object" or key in ("href", "xlink:href")):
                self.links.append((key, value.strip(), tag, given.get("rel", "")))

    def handle_data(self, data):
        if self.in_style:
            self.styles.append(data)


@cache
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def address(site: Path, path: Path) -> str:
    """Where a page of the site stands on a server."""
    return HERE + path.relative_to(site).as_posix().removesuffix("index.html")


def target(site: Path, where: str) -> Path | None:
    """The file that a server gives out for an address of the site; None if there is none."""
    file = site / unquote(urlsplit(where).path).lstrip("/")
    file = file / "index.html" if file.is_dir() else file
    return file if file.is_file() else None


def test_there_are_pages_to_look_at(site):
    assert len(pages(site)) >= 4 and sum(len(page.links) for page in pages(site).values()) > 100


def test_every_internal_link_and_anchor_is_there(site):
    broken = []
    for path, page in pages(site).items():
        for key, link, tag, rel in page.links:
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
            if leads_away and not (tag == "a" and parts.scheme in ("http", "https") and parts.netloc) and rel != "canonical":
                foreign.append(f"{path.relative_to(site)}: {tag} {key}={link}")
    assert foreign == []


def test_links_that_lead_away_are_well_formed(site):
    for path, page in pages(site).items():
        for key, link, tag, rel in page.links:
            parts = urlsplit(link)
            if parts.netloc:
                assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]{2,}", parts.netloc), f"{path.relative_to(site)}: {link}"
                assert " " not in link and not link.endswith((".", ",", ")")) or "(" in link, f"{path.relative_to(site)}: {link}"


def test_stylesheets_load_only_what_the_site_holds(site):
    sheets = [(path, path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.css"))]
    sheets += [(path, style) for path, page in pages(site).items() for style in page.styles]
    assert len(sheets) > 5
    for path, text in sheets:
        for link in re.findall(r"""(?:url\(|@import\s+)\s*["']?([^"')\s;]+)""", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
            if not link.startswith(("data:", "#", "%23")):
                where = urljoin(address(site, path), link)
                assert where.startswith(HERE) and target(site, where), f"{path.relative_to(site)}: {link}"


def test_scripts_import_only_what_the_site_holds(site):
    modules = sorted((site / "assets" / "widget").glob("*.js")) + sorted((site / "assets" / "widgets").glob("*.js"))
    for path in modules:
        for link in re.findall(r"""^import .*?["']([^"']+)["']""", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert link.startswith(".") and target(site, urljoin(address(site, path), link)), f"{path.name}: {link}"


def test_the_search_finds_pages_that_exist(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert len(index["docs"]) > 5
    for entry in index["docs"]:
        file = target(site, urljoin(HERE, entry["location"]))
        anchor = unquote(urlsplit(entry["location"]).fragment)
        assert file and (not anchor or anchor in pages(site)[file].ids), entry["location"]


def test_every_lesson_has_its_page(site):
    source = Path(__file__).resolve().parents[2] / "lessons"
    for path in source.rglob("*.md"):
        name = path.relative_to(source).with_suffix("")
        assert (site / ("" if name.name == "index" else name) / "index.html").is_file(), name
