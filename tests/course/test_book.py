"""The whole course on one page: nothing lost, nothing twice, every link inside it leads somewhere."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from course import lessons
from tests.lessons.links import Page
from tests.lessons.reading import Lesson

REFERENCE = ["symptoms", "numbers", "validation", "formulas", "glossary"]
CHAPTERS = [lesson.name for lesson in lessons.numbered()] + REFERENCE


@cache
def book(site: Path) -> str:
    return (site / "book" / "index.html").read_text(encoding="utf-8")


@cache
def chapters(site: Path) -> dict[str, str]:
    """Name -> HTML of each chapter, in the book's order."""
    found = re.findall(r'<article class="chapter[^>]*data-page="([^"]+)".*?</article>', book(site), re.DOTALL)
    return dict(
        zip(found, re.findall(r'<article class="chapter.*?</article>', book(site), re.DOTALL), strict=True)
    )


def lesson_page(site: Path, name: str) -> str:
    """A lesson's article as written by mkdocs, without its widgets."""
    article = re.search(
        r"<article.*?</article>", (site / name / "index.html").read_text(encoding="utf-8"), re.DOTALL
    )[0]
    return re.sub(r'<figure class="widget".*?</figure>', "", article, flags=re.DOTALL)


def without_widgets(chapter: str) -> str:
    return re.sub(r'<figure class="still".*?</figure>', "", chapter, flags=re.DOTALL)


def test_every_page_is_a_chapter_in_the_order_of_the_course(site):
    assert list(chapters(site)) == CHAPTERS


def test_the_contents_lead_to_every_chapter_and_section(site):
    contents = re.search(r'<nav class="book-contents".*?</nav>', book(site), re.DOTALL)[0]
    named = re.findall(r'href="#([^"]+)"', contents)
    headings = re.findall(r'<h[23][^>]* id="([^"]+)"', book(site))
    parts = re.findall(r'<section class="book-part"[^>]* id="([^"]+)"', book(site))
    assert len(parts) == 5 and Counter(named) == Counter(headings + parts)


def test_ids_are_unique_and_links_within_lead_somewhere(site):
    ids = Counter(re.findall(r'\sid="([^"]+)"', book(site)))
    assert len(ids) > 500 and max(ids.values()) == 1
    inside = {link[1:] for _, link, _, _ in Page(site / "book" / "index.html").links if link.startswith("#")}
    assert len(inside) > 300 and inside <= set(ids)
    assert set(re.findall(r"url\(#([^)]+)\)", book(site))) <= set(ids)


def test_a_link_between_chapters_stays_in_the_book(site):
    outside = [
        link
        for _, link, tag, _ in Page(site / "book" / "index.html").links
        if tag == "a" and link.startswith("../")
    ]
    assert outside and not [
        link for link in outside if link.strip("./").split("/")[0] in CHAPTERS and "?" not in link
    ]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_has_what_its_page_has(site, name):
    """Headings, formulas, tables, code and boxes; nothing to press."""
    page, chapter = lesson_page(site, name), without_widgets(chapters(site)[name])
    plain = (
        page
        if name not in REFERENCE
        else re.sub(
            r'<(nav class="formulas-contents"|p class="symptoms-find").*?</(nav|p)>',
            "",
            page,
            flags=re.DOTALL,
        )
    )
    for opening in (
        "<math",
        "<table",
        "<pre",
        'class="admonition rule"',
        'class="admonition breaks"',
        'class="admonition exercise"',
        "<svg",
    ):
        told = chapter.count(opening) - sum(answer.count(opening) for answer in widget_answers(chapter))
        assert told == plain.count(opening), opening
    assert len(re.findall(r"<h[2-5]\b", chapter)) - chapter.count('--answers">Answers') == len(
        re.findall(r"<h[1-4]\b", plain)
    )
    assert not re.search(r"<(button|input|select|textarea|form|script|details)\b", chapter)


def widget_answers(chapter: str) -> list[str]:
    """The answers about widgets at the end of a chapter; on the page they are inside the widgets."""
    return re.findall(r'<div class="book-answer" id="[^"]*--answer-.*?</div>', chapter, re.DOTALL)


@pytest.mark.parametrize("name", [name for name in CHAPTERS if name not in REFERENCE])
def test_a_lesson_s_widgets_predictions_and_solutions_are_there_once(site, name):
    chapter, lesson = chapters(site)[name], Lesson(f"{name}.md")
    assert [still.split("/")[0] for still in re.findall(r'data-still="([^"]+)"', chapter)] == lesson.widgets()
    assert len(widget_answers(chapter)) == len(lesson.fences)
    assert len(re.findall(r'-solution"><p class="answer-of">', chapter)) == len(lesson.exercises())
    figures = [
        int(number) for number in re.findall(rf"<strong>Figure {lesson.number}\.(\d+)\.</strong>", chapter)
    ]
    assert figures == list(range(1, len(figures) + 1)) and len(figures) >= len(lesson.fences)


def test_a_widget_in_a_state_of_its_lesson_leads_to_that_state(site):
    """Lesson 10 opens its mesh of ranks with another rank picked than the widget's own page does."""
    assert 'data-still="rank_mesh/?rank_mesh.rank=300"' in book(site)
