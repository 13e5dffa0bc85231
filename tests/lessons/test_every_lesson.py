"""What every lesson has, in COURSE order: the question, the case, rules, widgets that ask first, exercises, an end."""

import pytest

from tests.lessons.reading import LESSONS, Lesson

NAMES = sorted(path.name for path in LESSONS.glob("[0-9][0-9]-*.md"))
WITH_A_PROPERTY = range(4, 10)      # the lessons about one strategy each name what it exploits


@pytest.fixture(params=NAMES, ids=[name.removesuffix(".md") for name in NAMES])
def lesson(request):
    return Lesson(request.param)


def test_it_has_its_parts_in_order(lesson):
    assert lesson.places_in_order(), lesson.places()
    assert lesson.text.count("!!! rule") >= 3
    assert lesson.number not in WITH_A_PROPERTY or "!!! property" in lesson.text


def test_each_of_its_widgets_asks_first(lesson):
    assert lesson.widgets()
    assert lesson.every_widget_asks_first()


def test_every_exercise_has_a_computed_solution_and_one_is_open(lesson):
    assert len(lesson.exercises()) >= 4
    assert lesson.every_exercise_is_solved()
    assert "Design" in lesson.exercises()[-1]


def test_the_takeaway_is_two_sentences(lesson):
    assert lesson.sentences("Takeaway") == 2


def test_every_snippet_is_python(lesson):
    for code in lesson.code("python"):
        compile(code, lesson.name, "exec")
