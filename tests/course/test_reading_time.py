"""The reading time that a lesson's page shows equals one that is counted from the built page."""

import re
from functools import cache

import pytest

from course import html_tree, lessons
from course.output import reading_time

SECONDS = {"word": 60 / 200, "formula": 20, "figure": 90}
LESSONS = sorted(path.stem for path in lessons.LESSONS.glob("[01]*.md"))


def read_in_order(article: html_tree.Element) -> html_tree.Element:
    """The article up to its exercises, without the parts that are not read in order: folds, puzzles and the
    small print under a rule."""
    children = list(article)
    ends = [place for place, child in enumerate(children) if child.get("id") == "exercises"]
    for child in children[ends[0] :] if ends else []:
        article.remove(child)
    html_tree.remove(
        article,
        lambda it: (
            it.tag in ("details", "script", "svg")
            or html_tree.classes(it) & {"puzzle", "diagram-words", "kicker", "headerlink", "held"}
        ),
    )
    return article


def minutes(article: html_tree.Element) -> float:
    read = read_in_order(article)
    figures, formulas = html_tree.find(read, "widget"), html_tree.find(read, "math")
    html_tree.remove(read, lambda it: it in figures or it.tag == "math")
    words = html_tree.text(read).split()
    seconds = (len(words), "word"), (len(formulas), "formula"), (len(figures), "figure")
    return sum(count * SECONDS[kind] for count, kind in seconds) / 60


@pytest.fixture(scope="module")
def page(site):
    """The minutes that a lesson's page shows, and the lesson's article."""

    @cache
    def read(name: str) -> tuple[int, float]:
        html = (site / name / "index.html").read_text()
        shown = int(re.search(r"<span>(\d+) minutes</span>", html)[1])
        inner = re.search(r"<article[^>]*>(.*?)</article>", html, re.DOTALL)[1]
        return shown, minutes(html_tree.parse(f"<div>{inner}</div>"))

    return read


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_page_says_how_long_it_takes(page, lesson):
    shown, counted = page(lesson)
    assert shown == pytest.approx(counted, abs=0.6)  # rounded
    assert 15 <= shown <= 35


def test_the_first_five_take_at_most_two_and_a_half_hours(page):
    shown = [page(lesson)[0] for lesson in LESSONS[:5]]
    assert LESSONS[4].startswith("05-") and sum(shown) <= 150, shown
    assert shown[0] <= 30


def test_the_build_counts_as_this_file_does():
    words, formula = "word " * 400, '<div class="math"><math><mi>a</mi></math></div>'
    html = f"<article><p>{words}</p>{formula}<details><p>{words}</p></details>"
    html += f'<figure class="widget" data-widget="x"><p>{words}</p></figure><p>{words}</p>'
    html += f'<h2 id="exercises">Exercises</h2><p>{words}</p></article>'
    assert reading_time.minutes(html) == round(4 + 1 / 3 + 1.5)


def test_a_time_is_put_where_a_template_asks_for_it():
    asked = "<p><!-- minutes a/ --> and <!-- minutes a/ b/ -->, <!-- hours a/ b/ --></p><!-- a note -->"
    read = {"a/": 31, "b/": 100}.__getitem__
    assert reading_time.filled(asked, read) == "<p>31 and 131, 2</p><!-- a note -->"


def test_no_page_is_left_without_its_times(site):
    assert [
        path.name for path in site.glob("**/*.html") if reading_time.ASKED.search(path.read_text("utf-8"))
    ] == []


def test_what_counts_and_what_does_not():
    """400 words, two formulas and one figure: 2 min, 40 s and 90 s."""
    words, formula = "word " * 400, '<div class="math"><math><mi>a</mi></math></div>'
    aside = f"<details><summary>more</summary>{words}</details><section class='puzzle'>{words}</section>"
    aside += f'<p class="held">{words}</p>'
    figure = f'<figure class="widget"><p>{words}</p></figure>'
    after = f'<h2 id="exercises">Exercises</h2><p>{words}</p>'
    html = f"<div><p>{words}</p>{formula}{formula}{aside}{figure}{after}</div>"
    assert minutes(html_tree.parse(html)) == pytest.approx(2 + 2 / 3 + 1.5)


MOST_WORDS = 4000
HELD = [name for name in LESSONS if name >= "11"]  # the lessons that were written to this length


def prose(article: html_tree.Element) -> int:
    """The words that are read as sentences: no tables, code, figures or formulas."""
    read = read_in_order(article)
    figures = html_tree.find(read, "widget")
    html_tree.remove(read, lambda it: it in figures or it.tag in ("math", "table", "pre"))
    return len(html_tree.text(read).split())


@pytest.mark.parametrize("lesson", HELD)
def test_a_lesson_is_read_in_one_sitting(site, lesson):
    html = (site / lesson / "index.html").read_text()
    inner = re.search(r"<article[^>]*>(.*?)</article>", html, re.DOTALL)[1]
    assert prose(html_tree.parse(f"<div>{inner}</div>")) <= MOST_WORDS
