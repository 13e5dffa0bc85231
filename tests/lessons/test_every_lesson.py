"""What every lesson has, in COURSE order: the question, the case, rules, widgets that ask first, exercises,
an end."""

import html
import json
import re

import pytest

from course import lessons
from engine.base import typed
from tests.lessons.reading import Lesson
from widgets.kit.widget import all_widgets

NAMES = [f"{lesson.name}.md" for lesson in lessons.numbered()]
WITH_A_PROPERTY = range(4, 10)  # the lessons about one strategy each name what it exploits


@pytest.fixture(params=NAMES, ids=[name.removesuffix(".md") for name in NAMES])
def lesson(request):
    return Lesson(request.param)


def test_it_has_its_parts_in_order(lesson):
    assert lesson.places_in_order(), lesson.places()
    assert lesson.text.count("!!! rule") >= 3
    assert lesson.number not in WITH_A_PROPERTY or "!!! property" in lesson.text


def test_each_of_its_widgets_is_there_once_and_asks_first(lesson):
    assert lesson.widgets()
    assert set(lesson.widgets()) <= set(all_widgets())
    assert len(set(lesson.widgets())) == len(lesson.widgets())
    assert lesson.every_widget_asks_first()


def test_each_prediction_has_an_answer(lesson):
    """One of those offered, or a number above 0 of a kind that can be typed."""
    for fence in lesson.fences:
        asked = lesson.asked(fence["name"])
        if asked["kind"] == "choice":
            assert 0 <= asked["right"] < len(fence["answers"])
        else:
            assert asked["value"] > 0 and typed.parse(asked["shown"], asked["family"]) is not None


@pytest.mark.parametrize(
    "page", [*NAMES, "index.md", "planner.md", "validation.md", "validation-rows.md", "examination.md"]
)
def test_each_number_that_is_predicted_is_shown_in_the_figure(page):
    """The reader's, beside the truth: on an axis, or at a readout."""
    read = Lesson(page)
    for fence in read.fences:
        asked = read.asked(fence["name"])
        if asked is None:  # a page that is a tool, and the drawing with which the home page opens
            assert (page, fence["name"]) in {("planner.md", "layout_planner"), ("index.md", "training_step")}
            continue
        assert asked["kind"] == "choice" or asked["axis"] or asked["seen"], fence["name"]


def test_a_third_of_the_predictions_ask_for_a_number():
    kinds = [lesson.asked(fence["name"])["kind"] for lesson in map(Lesson, NAMES) for fence in lesson.fences]
    assert sum(kind != "choice" for kind in kinds) > len(kinds) / 3
    assert {"choice", "number", "slider", "point"} <= set(kinds)


def test_every_widget_is_shown_in_a_lesson_or_on_a_page():
    shown = "".join(page.text for page in lessons.pages())
    for slug in all_widgets():
        assert f"\nname: {slug}\n" in shown, slug


def test_every_exercise_has_a_computed_solution_and_one_is_open(lesson):
    assert len(lesson.exercises()) >= 4
    assert lesson.every_exercise_is_solved()
    assert "Design" in lesson.exercises()[-1]


def test_the_takeaway_is_two_sentences(lesson):
    assert lesson.sentences("Takeaway") == 2


def test_every_snippet_is_python(lesson):
    for code in lesson.code("python"):
        compile(code, lesson.name, "exec")


SPELLED = {"4": "four", "6": "six", "8": "eight", "16": "sixteen"}
IN_OTHER_WORDS = {  # a state that a question describes without its number
    "budget_guard": "Llama 3.1 405B",
    "moe_routing": "if nothing is turned away",
    "prefill_decode": "twice as long",
    "program_blocks": "row-major order",
}


def test_a_question_says_the_numbers_of_the_state_that_answers_it(lesson):
    """'Two H100s, a context of 8,192' must not be answered by eight H100s and 32,768."""
    for slug in [fence["name"] for fence in lesson.fences if fence.get("predict")]:
        asked = lesson.asked(slug)
        if not asked.get("seen"):
            continue
        question = " ".join(html.unescape(re.sub("<[^>]+>", " ", asked["question"])).split())
        if IN_OTHER_WORDS.get(slug, "\0") in question:
            continue
        for number in re.findall(r" to (\d+(?:[,.]\d+)*)", json.loads(asked["seen"])["words"]):
            said = {number, SPELLED.get(number, number)}
            assert any(re.search(rf"\b{each}\b", question, re.IGNORECASE) for each in said), (slug, number)
