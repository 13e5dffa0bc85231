"""Exercises: each marked number of a solution gets a field, and everything there is to do in a lesson is
counted."""

import html as escapes
import json
import re

import markdown
import pytest

from course import exercises as answer
from course import lessons as locate
from course import numbers
from engine.base import units
from engine.exam import missions
from tests.lessons.reading import Lesson

CONFIG = {"pymdownx.inlinehilite": {"custom_inline": [{"name": "n", "class": "n", "format": numbers.number}]}}
NAMES = [f"{lesson.name}.md" for lesson in locate.numbered()]


def html(text: str) -> str:
    extensions = [
        "admonition",
        "pymdownx.details",
        "course.fences",
        "pymdownx.inlinehilite",
        "course.exercises",
    ]
    return markdown.Markdown(extensions=extensions, extension_configs=CONFIG).convert(text)


def exercise(solution: str, kind: str = "exercise") -> str:
    return f'!!! {kind} "Title"\n\n    Question?\n\n    ??? solution "Solution"\n\n        {solution}\n'


@pytest.mark.parametrize(
    ("source", "label", "expected", "family", "scale", "hint", "within", "shown"),
    [
        (
            "memory.state_bytes(13e9) | GB ? State of 13B",
            "State of 13B",
            208e9,
            "bytes",
            1e9,
            "in GB",
            0.05,
            "208 GB",
        ),
        ("2.6 + 0.4 ? H100s, exactly", "H100s", 3, "count", 1, "a whole number", 0, "3"),
        (
            "0.875 | %, 2 ? Left, of all, within 2 %",
            "Left, of all",
            0.875,
            "percent",
            0.01,
            "in %, or as 0.12",
            0.02,
            "88 %",
        ),
        (
            "5 * units.DAY | days ? Time",
            "Time",
            5 * units.DAY,
            "seconds",
            units.DAY,
            "in days",
            0.05,
            "5 days",
        ),
        ("1.91e6 | M$ ? The bill", "The bill", 1.91e6, "dollars", 1e6, "in M$", 0.05, "$1.91M"),
        ("3e6 | dollars ? Wasted", "Wasted", 3e6, "dollars", 1, "in $", 0.05, "$3M"),
        ("80 | bytes ? For a weight", "For a weight", 80, "bytes", 1, "in B", 0.05, "80 B"),
        ("2048 | tokens ? Equal at", "Equal at", 2048, "tokens", 1, "tokens", 0.05, "2,048 tokens"),
        ("2**21 | MiB ? Reserved, exactly", "Reserved", 2**21, "bytes_binary", 2**20, "in MiB", 0, "2 MiB"),
        ("2.5 ? Buffers, exactly", "Buffers", 2.5, "count", 1, "a number", 0, "2.5"),
        ("0 ? Coordinate, exactly", "Coordinate", 0, "count", 1, "a whole number", 0, "0"),
    ],
)
def test_what_stands_behind_the_question_mark(source, label, expected, family, scale, hint, within, shown):
    about = answer.asked(source)
    assert (about.label, about.family, about.hint, about.shown) == (label, family, hint, shown)
    assert (about.expected, about.scale, about.within) == pytest.approx((expected, scale, within))


def test_an_answer_may_be_right_on_one_side_only_and_a_wrong_way_may_have_its_words():
    about = answer.asked(
        "55 ? Users, that fit, within 5 % below, unless 48e9 / 0.5e9: Where are the weights?"
    )
    assert (about.label, about.within, about.side, about.hint) == (
        "Users, that fit",
        0.05,
        "below",
        "a whole number",
    )
    assert (about.trap, about.hint_of_trap) == (96.0, "Where are the weights?")
    assert (answer.asked("3e-3 | ms ? Step, unless 2e-3: So.").within, answer.asked("3 ? Steps").side) == (
        0.05,
        "",
    )
    form = answer.field("55 ? Users, within 5 % below, unless 96: Weights?")
    assert (form.get("data-side"), form.get("data-trap"), form.get("data-hint")) == (
        "below",
        "96.0",
        "Weights?",
    )
    assert "data-trap" not in answer.field("3 ? Steps").attrib


def test_a_field_stands_above_the_solution_and_its_number_in_it():
    out = html(
        exercise("It is `#!n memory.state_bytes(13e9) | GB ? <b>State</b> & more`, of `#!n 80e9 | GB`.")
    )
    form, solution = out[out.index("<form") : out.index("</form>")], out[out.index("<details") :]
    assert 'data-expected="208000000000.0"' in form and "&lt;b&gt;State&lt;/b&gt; &amp; more" in form
    assert out.count("<form") == 1 and out.index("Question?") < out.index("<form") < out.index("<details")
    assert ">208\xa0GB</span>" in solution and 'data-expr="memory.state_bytes(13e9)"' in solution
    assert numbers.ASKED not in out and "data-worked" not in out


def test_an_open_exercise_has_a_button_and_may_ask_for_numbers_too():
    assert html(exercise("Think.", "exercise open")).count("data-worked") == 1
    both = html(exercise("`#!n 3 ? Three, exactly`", "exercise open"))
    assert both.count("data-worked") == both.count("<form") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (exercise("Only `#!n 3`."), "asks for a number of its solution, or is marked open"),
        ('!!! exercise open "Title"\n\n    Question?\n', "or is marked open"),
        ("Prose asks for `#!n 3 ? Three`.", "only a number in an exercise's solution"),
        (exercise("`#!n 0 ? Nothing`"), "ask for it exactly"),
        (exercise("`#!n 50 ? Users, unless 51: No.`"), "too near to the 50 that is right"),
    ],
)
def test_an_exercise_that_cannot_be_answered_stops_the_build(text, words):
    with pytest.raises(locate.LessonFault, match=re.escape(words)):
        html(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_s_exercises_ask_for_numbers(name):
    """Each for something (or the build would stop), most for numbers; labels that repeat would leave a reader
    guessing."""
    lesson = Lesson(name)
    with locate.on(lesson.source):
        asking = [
            [answer.asked(source) for source in lesson.computed if source in text and " ? " in source]
            for text in lesson.exercises()
        ]
    assert sum(bool(each) for each in asking) >= 3
    for each in asking:
        assert len(each) <= 5 and len({about.label for about in each}) == len(each)
        assert [
            about.label
            for about in each
            if len(about.label) > 60 or re.search(rf"\b{re.escape(about.shown)}\b", about.label)
        ] == []


# -- what there is to do, counted ----------------------------------------------------------------------------
def test_the_page_of_progress_counts_what_the_built_lessons_hold(site):
    page = (site / "progress" / "index.html").read_text(encoding="utf-8")
    rows = [json.loads(escapes.unescape(found)) for found in re.findall(r'data-contents="(.*?)"', page)]
    assert [row["lesson"] + ".md" for row in rows] == NAMES
    for row in rows:
        lesson = (site / row["lesson"] / "index.html").read_text(encoding="utf-8")
        figures = re.findall(r'<figure class="widget".*?</figure>', lesson, re.DOTALL)
        slugs = [re.search(r'data-widget="(\w+)"', figure)[1] for figure in figures]
        keys = [re.search(r'data-predict="(.*?)"', figure) for figure in figures]
        boxes = re.findall(
            r'<div class="admonition exercise[^"]*" id="([^"]+)">(.*?)<details', lesson, re.DOTALL
        )
        assert row["predictions"] == [f"{slug}.{key[1]}" for slug, key in zip(slugs, keys) if key]
        assert row["targets"] == [slug for slug, figure in zip(slugs, figures) if "data-break-it" in figure]
        assert row["puzzles"] == re.findall(r'data-puzzle="(\w+)"', lesson)
        assert row["exercises"] == {
            name: box.count("<form") + box.count("data-worked") for name, box in boxes
        }
        assert all(row["exercises"].values()) and row["predictions"] and row["targets"]
    assert f'data-missions-won="{len(missions.missions())}"' in page
