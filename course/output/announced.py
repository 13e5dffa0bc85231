"""What other programs are told of the pages: JSON-LD in their heads (schema.org's Course and
LearningResource), the day on which a page's text last changed in the sitemap, and a feed of the releases."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from markdown import markdown

from course import lessons, settings
from course.lessons import Lesson
from course.output import plain
from engine.base import edition

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = ROOT / "CHANGELOG.md"
FEED = "releases.xml"
RELEASE = re.compile(
    r"^## (?P<version>\d[\w.]*) — (?P<day>\d{4}-\d\d-\d\d)\n(?P<text>.*?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
CHANGED = re.compile(r"(?m)^(?:(?P<day>\d{4}-\d\d-\d\d)|lessons/(?P<page>[\w-]+)\.(?:md|py))$")
LICENCE = "https://creativecommons.org/licenses/by/4.0/"
COURSE = "System ML"
# a second word follows, because Material takes what is alternate alone for the site in another language
ALTERNATE = "alternate"
MINUTES = re.compile(r"<span>(\d+) minutes</span>")


# -- JSON-LD -------------------------------------------------------------------------------------------------
def described(folder: str, html: str, up: str) -> str:
    """What a page's head tells other programs: its data, the version of the course, its Markdown and the
    feed; empty for what is no page of the course. ``folder`` is that of its address, "" for the home page;
    ``up`` leads to the root."""
    name = folder or "index"
    if name not in _pages():
        return ""
    translations = "".join(
        f'<link rel="{ALTERNATE} translation" hreflang="{language}" href="{where}">'
        for language, where in _languages(name).items()
    )
    about = _course() if name == "index" else _page(_pages()[name], html)
    data = json.dumps(about, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<meta name="course-edition" content="{edition.version()}">'
        f'<link rel="{ALTERNATE} text" type="text/markdown" href="{plain.FILE}">'
        f'<link rel="{ALTERNATE} feed" type="application/rss+xml" title="{COURSE}: releases"'
        f' href="{up}{FEED}">'
        f'{translations}<script type="application/ld+json">{data}</script>'
    )


def _languages(name: str) -> dict[str, str]:
    """Language -> the whole address of a page in it, where a page has been translated (lessons/es/…) and the
    site's address is known; empty for a page that is there in one language alone."""
    home, folder = settings.public_home(), "" if name == "index" else f"{name}/"
    found = sorted(each.parent.name for each in lessons.LESSONS.glob(f"[a-z][a-z]/{name}.md"))
    if not home or not found:
        return {}
    own = f"{home}{folder}"
    return {"en": own, "x-default": own} | {language: f"{home}{language}/{folder}" for language in found}


@cache
def _pages() -> dict[str, Lesson]:
    return {page.name: page for page in lessons.pages()}


def _common(kind: str, name: str, page: Lesson, address: str) -> dict[str, Any]:
    home = settings.public_home()
    about = {
        "@context": "https://schema.org",
        "@type": kind,
        "name": name,
        "description": str(page.front.get("description", "")).strip(),
        "inLanguage": "en",
        "license": LICENCE,
        "isAccessibleForFree": True,
    }
    return about | ({"url": f"{home}{address}"} if home else {})


def _course() -> dict[str, Any]:
    learned = [
        {"@type": "LearningResource", "name": each.title, "position": at}
        for at, each in enumerate(lessons.numbered(), 1)
    ]
    return _common("Course", COURSE, _pages()["index"], "") | {
        "version": edition.version(),
        "provider": {"@type": "Organization", "name": COURSE},
        "hasPart": learned,
    }


def _page(page: Lesson, html: str) -> dict[str, Any]:
    about = _common("LearningResource", page.title, page, page.address)
    about |= {
        "isPartOf": {"@type": "Course", "name": COURSE},
        "learningResourceType": "lesson" if page.number else "reference",
    }
    if page.number:
        about["position"] = [each.name for each in lessons.numbered()].index(page.name) + 1
    if found := MINUTES.search(html):
        about["timeRequired"] = f"PT{found[1]}M"
    return about


# -- the sitemap ---------------------------------------------------------------------------------------------
@cache
def last_changed() -> dict[str, str]:
    """Page -> the day of the last commit to its text or its numbers; none where git or the whole history
    is missing."""
    if _git("rev-parse", "--is-shallow-repository").strip() != "false":
        return {}
    found, day = {}, ""
    for line in CHANGED.finditer(_git("log", "--format=%cs", "--name-only", "--", "lessons")):
        day = line["day"] or day
        if line["page"]:
            found.setdefault(line["page"], day)
    return found


def _git(*arguments: str) -> str:
    """What git says about this repository; nothing where there is none."""
    try:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def with_days(sitemap: str) -> str:
    """The sitemap with ``lastmod`` where a page's day is known."""
    home, days = settings.of("site_url"), last_changed()

    def dated(found: re.Match) -> str:
        day = days.get(found[1].removeprefix(home).strip("/") or "index")
        return f"<url><loc>{found[1]}</loc>{f'<lastmod>{day}</lastmod>' if day else ''}</url>"

    return re.sub(r"<url><loc>([^<]*)</loc></url>", dated, sitemap)


# -- the feed ------------------------------------------------------------------------------------------------
class Release(NamedTuple):
    """A dated section of the change log."""

    version: str
    day: str
    text: str


def releases() -> list[Release]:
    """Every release, the newest first."""
    return [Release(**found.groupdict()) for found in RELEASE.finditer(CHANGELOG.read_text(encoding="utf-8"))]


def feed() -> str:
    """The releases as RSS 2.0."""
    home = settings.of("site_url")
    items = []
    for each in releases():
        day = datetime.fromisoformat(each.day).replace(tzinfo=UTC)
        items.append(
            f"<item><title>{COURSE} {each.version}</title><link>{escape(home)}</link>"
            f'<guid isPermaLink="false">system-ml-{each.version}</guid>'
            f"<pubDate>{format_datetime(day)}</pubDate>"
            f"<description>{escape(markdown(each.text.strip()))}</description></item>"
        )
    about = " ".join(settings.of("site_description").split())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
        f"<title>{COURSE}: releases</title><link>{escape(home)}</link>"
        f"<description>{escape(about)}</description>"
        "<language>en</language>"
        f'<atom:link href="{escape(home)}{FEED}" rel="self" type="application/rss+xml"/>'
        f"{''.join(items)}</channel></rss>\n"
    )
