"""What the built site links to: python -m tests.lessons.links lists the links that lead away, and the pages
that hold them."""

import re
from collections import defaultdict
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
            if value is not None and ((key in LOADED and tag != "object") or key in ("href", "xlink:href")):
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


def leading_away(site: Path) -> dict[str, list[str]]:
    """Address on another host -> the pages that link to it. The book repeats the lessons and is left out."""
    found = defaultdict(set)
    for path, page in pages(site).items():
        for _, link, tag, _ in page.links:
            if tag == "a" and urlsplit(link).netloc and path.parent.name != "book":
                found[link].add(address(site, path).removeprefix(HERE) or "home")
    return {link: sorted(found[link]) for link in sorted(found)}


def faults_of_form(link: str) -> list[str]:
    """What is wrong with an address on another host, as far as its form tells."""
    parts = urlsplit(link)
    return [
        words
        for wrong, words in (
            (parts.scheme != "https", "not https"),
            (not re.fullmatch(r"[a-z0-9.-]+\.[a-z]{2,}", parts.netloc), "no name of a host"),
            (
                re.search(r"(?:^|[?&#])(?:utm_\w+|fbclid|gclid|ref|ref_src|source)=", f"?{parts.query}"),
                "tells where the reader comes from",
            ),
            (
                parts.netloc.endswith("arxiv.org")
                and not re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{4,5}", link),
                "not arXiv's page of the paper",
            ),
            (
                re.search(r"\s|[.,;]$", link) or (link.endswith(")") and "(" not in link),
                "holds a character of the sentence around it",
            ),
        )
        if wrong
    ]


def same_page(link: str) -> str:
    """What two addresses of one page have in common."""
    parts = urlsplit(link)
    host, path = parts.netloc.removeprefix("www."), parts.path.rstrip("/").removesuffix("/index.html")
    return f"{host}{path}?{parts.query}#{parts.fragment}".lower()


if __name__ == "__main__":
    for link, holders in leading_away(Path(__file__).resolve().parents[2] / "build" / "static").items():
        print(f"{link}   {', '.join(holders)}")
