"""A deck contains its lesson's words and no others, and no more than fits on its slides; and where paragraphs
are split."""

from __future__ import annotations

import itertools
import json
import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from course import html_tree, lessons
from course.output import book
from course.output.slides import chosen, page
from course.output.slides.chosen import Slide
from course.output.slides.sentences import parted, words
from widgets.kit.widget import all_widgets

LESSONS = {lesson.name: lesson for lesson in lessons.numbered()}


def plain(html: str) -> str:
    """The text without markup and without spaces, because splitting a paragraph may remove a space."""
    return re.sub(r"\s+", "", html_tree.text(html_tree.parse(f"<div>{html}</div>")))


@pytest.fixture(scope="module")
def articles(site):
    def article(name: str):
        html = (site / name / "index.html").read_text(encoding="utf-8")
        return html_tree.parse(book.article_of(html, name)[0])

    return {name: article(name) for name in LESSONS}


@pytest.fixture(scope="module")
def decks(site):
    """Name -> the slides of every lesson."""

    def deck(name: str) -> list[Slide]:
        html = (site / name / "index.html").read_text(encoding="utf-8")
        article = page.prepared(html_tree.parse(book.article_of(html, name)[0]), LESSONS[name])
        return chosen.of_lesson(LESSONS[name], article, "Part")

    return {name: deck(name) for name in LESSONS}


@pytest.mark.parametrize("name", LESSONS)
def test_a_deck_tells_its_lesson_from_the_question_to_the_takeaway(name, decks):
    deck, lesson = decks[name], LESSONS[name]
    kinds = [slide.kind for slide in deck]
    assert kinds[:3] == ["opening", "picture", "case"] and kinds[-3:] == ["breaks", "exercise", "takeaway"]
    assert deck[0].title == lesson.title and 10 <= len(deck) <= 24
    assert kinds.count("rule") == len(lesson.boxes("rule"))
    asked = [options for options in lesson.options("widget") if "predict" in options]
    assert kinds.count("figure") == len(lesson.widgets) and kinds.count("poll") == len(asked)
    for poll, figure in itertools.pairwise(deck):
        assert (poll.kind == "poll") <= (figure.kind == "figure" and bool(poll.reveal))


@pytest.mark.parametrize("name", LESSONS)
def test_a_deck_has_no_words_of_its_own(name, decks, articles):
    """Each paragraph and item, up to a cut or from one, stands in the lesson."""
    whole = plain(html_tree.html(articles[name]))
    for slide in decks[name]:
        shown = [html_tree.parse(f"<div>{part}</div>") for part in (slide.body, slide.notes, slide.reveal)]
        blocks = [block for part in shown for block in part.iter() if block.tag in ("p", "td", "span")]
        for said in [*map(html_tree.html, blocks), *slide.answers]:
            assert plain(said).removesuffix(":") in whole or slide.kind == "exercise", (slide.kind, said)
        if slide.kind != "figure":
            assert plain(slide.title).casefold() in whole.casefold()


@pytest.mark.parametrize("name", LESSONS)
def test_what_does_not_fit_on_a_rule_s_slide_is_in_its_notes(name, decks, articles):
    boxes = html_tree.find(articles[name], "rule")
    for slide, box in zip([slide for slide in decks[name] if slide.kind == "rule"], boxes, strict=True):
        title = html_tree.first(box, "admonition-title")
        html_tree.remove(box, lambda one, title=title: one is title or "headerlink" in html_tree.classes(one))
        assert plain(slide.body + slide.notes) == plain(html_tree.html(box)), slide.title
        paragraphs = [one for one in html_tree.parse(f"<div>{slide.body}</div>") if one.tag == "p"]
        assert sum(map(words, paragraphs)) <= chosen.ON_A_SLIDE + 30, slide.title


@pytest.mark.parametrize("name", LESSONS)
def test_a_figure_stands_in_the_state_that_shows_what_was_asked(name, decks, articles):
    shown = iter([slide for slide in decks[name] if slide.kind == "figure"])
    for figure in articles[name].iter("figure"):
        if "data-widget" not in figure.attrib:
            continue
        slide, slug = next(shown), figure.attrib["data-widget"]
        address = urlsplit(slide.figure)
        assert address.path == f"{slug}/"
        widget = all_widgets()[slug]()
        widget.set_state(
            {name.removeprefix(f"{slug}."): value for name, value in parse_qsl(address.query, True)}
        )
        now = widget.shown()
        assert slide.summary == now["summary"]
        for box in html_tree.find(figure, "widget-predict"):
            if seen := json.loads(box.get("data-seen", "null")):
                assert (
                    seen["state"].items()
                    <= {
                        key.removeprefix(f"{slug}."): value for key, value in parse_qsl(address.query)
                    }.items()
                )
                assert now["readouts"][seen["readout"]]["text"]


def test_a_long_deck_spares_traces_before_pictures_and_never_the_first_of_these():
    kinds = ["picture", "rule", "trace", "picture", "property", "picture", "rule"]
    deck = [Slide(kind, str(at)) for at, kind in enumerate(kinds)]
    left = lambda most: [int(slide.section) for slide in chosen.at_most(most, deck)]  # fmt: skip
    assert left(7) == [0, 1, 2, 3, 4, 5, 6]
    assert left(6) == [0, 1, 3, 4, 5, 6] and left(5) == [0, 1, 3, 4, 6] and left(4) == [0, 1, 4, 6]
    assert left(3) == left(1) == [0, 1, 6]


CUTS = {  # a paragraph, how many words -> what comes first
    ("<p>One two. Three four. Five.</p>", 4): "One two. Three four.",
    ("<p>One two. Three four. Five.</p>", 1): "One two.",
    ("<p>One two. Three four. Five.</p>", 9): "One two. Three four. Five.",
    ("<p>See arXiv:1234.5678 and 2.5 GB. Then go.</p>", 2): "See arXiv:1234.5678 and 2.5 GB.",
    ("<p>It is <b>so. Or so</b> it seems. Then go.</p>", 1): "It is so. Or so it seems.",
    ("<p>A rule. (The square is no law. It bends.) Then go.</p>", 6): "A rule.",
    ("<p>He said “no.” Then he went.</p>", 3): "He said “no.”",
    ("<p>It takes <i>n</i>. <i>n</i> is small. End.</p>", 3): "It takes n. n is small.",
    ("<p>no end at all</p>", 2): "no end at all",
}


@pytest.mark.parametrize(("html", "most"), CUTS)
def test_a_paragraph_is_parted_between_sentences(html, most):
    whole = html_tree.parse(html)
    lead, rest = parted(whole, most)
    assert html_tree.text(lead) == CUTS[html, most]
    left = html_tree.text(rest) if rest is not None else ""
    assert f"{html_tree.text(lead)} {left}".strip() == html_tree.text(whole)


def test_a_formula_counts_as_one_word():
    assert words(html_tree.parse("<p>so <math><mi>a</mi><mo>+</mo><mi>b</mi></math> is it</p>")) == 4


def test_the_page_for_teachers_and_each_lesson_lead_to_the_decks(site):
    teach = (site / "teach" / "index.html").read_text(encoding="utf-8")
    for name in LESSONS:
        number = name.split("-")[0]  # of the lesson, which after 10b is not its place in the list
        assert (
            f'href="../{name}/slides/">{number} ' in teach
            and (site / name / "slides" / "index.html").is_file()
        )
        lesson = (site / name / "index.html").read_text(encoding="utf-8")
        assert lesson.count('href="slides/"') == 1
