"""Sentences that set a figure or highlight a part of it: which figure they refer to, their HTML, and what is
refused."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as etree

import pytest
from markdown import Markdown

from course import excerpts
from course import lessons as locate
from course.links import figures
from widgets.kit import guide
from widgets.kit.widget import all_widgets

EXTENSIONS = ["attr_list", "admonition", "smarty", "course.links.glossary", "course.links.figures"]
TIMELINE = "``` widget\nname: pipeline_timeline\n```\n"
MAP = "``` widget\nname: bubble_map\nstages: 8\n```\n"


def html(text: str) -> etree.Element:
    """The HTML of a page without its figures, which another extension makes."""
    md = Markdown(extensions=EXTENSIONS)
    md.preprocessors.register(WithoutFences(md), "fences", 99)
    return etree.fromstring(f"<page>{md.convert(text)}</page>")


class WithoutFences(figures.Preprocessor):
    def run(self, lines):
        return re.sub(r"^( *)``` widget\n(.*\n)*?\1```$", "", "\n".join(lines), flags=re.MULTILINE).split(
            "\n"
        )


def link(text: str) -> etree.Element:
    return next(each for each in html(text).iter("a") if each.get("class") == "drives")


def light(text: str) -> etree.Element:
    return next(each for each in html(text).iter("span") if each.get("class") == "lights")


# -- what the page gets --------------------------------------------------------------------------------------
def test_a_link_carries_its_state_and_leads_to_the_widget_s_own_page_in_it():
    made = link(f'As [*many* stages](figure "stages: 16, micro_batches: 16").\n\n{TIMELINE}')
    assert "".join(made.itertext()) == "many stages" and made[0].tag == "em"
    assert made.get("data-figure") == "w-pipeline_timeline"
    assert json.loads(made.get("data-set")) == {"stages": "16", "micro_batches": "16"}
    assert (
        made.get("href")
        == "../pipeline_timeline/?pipeline_timeline.stages=16&pipeline_timeline.micro_batches=16"
    )
    assert made.get("title").startswith("Sets Stages to 16, Micro-batches to 16 in the figure; the rest as")
    assert made.get("data-keeps") is None


@pytest.mark.parametrize("end", [", …", " …", ",…  "])
def test_a_sentence_that_is_true_of_any_state_leaves_the_rest_to_the_reader(end):
    made = link(f'[GPipe](figure "schedule: gpipe{end}") first.\n\n{TIMELINE}')
    assert json.loads(made.get("data-set")) == {"schedule": "gpipe"} and made.get("data-keeps") == "yes"
    assert made.get("title") == "Sets Schedule to GPipe in the figure"


def test_the_own_page_opens_in_the_fence_s_state_with_the_link_s_in_it():
    address = link(f'[Many](figure "micro_batches: 64")\n\n{MAP}').get("href")
    assert address == "../bubble_map/?bubble_map.stages=8&bubble_map.micro_batches=64"


def test_a_light_says_in_words_what_it_lights():
    made = light(f"Look at [the idle stretches]{{lights: idle}}.\n\n{TIMELINE}")
    assert made.text == "the idle stretches" and made.tail == "."
    assert made.get("data-light") == "idle" and made.get("data-figure") == "w-pipeline_timeline"
    assert made.get("data-about") == guide.lights(all_widgets()["pipeline_timeline"])["idle"].words


def test_a_part_without_a_name_of_its_own_is_a_light_too():
    assert light(f"[The rows]{{lights: stage_rows}}\n\n{TIMELINE}").get("data-about") == "stage rows"


def test_neither_holds_another_link():
    """Words of the glossary in them lead nowhere else; the next use of the word does."""
    page = html(f'[AllReduce](figure "stages: 5") and [AllReduce]{{lights: idle}}, AllReduce\n\n{TIMELINE}')
    terms = [each for each in page.iter("a") if each.get("class") == "term"]
    assert [each.text for each in terms] == ["AllReduce"]
    assert all(len(each) == 0 for each in page.iter() if each.get("class") in ("drives", "lights"))


def test_other_brackets_stay_what_they_are():
    page = html(f"[A page](02-collectives.md), *HBM*{{ .hbm }} and [a] {{b: c}}\n\n{TIMELINE}")
    assert [each.get("href") for each in page.iter("a") if each.get("class") != "term"] == [
        "02-collectives.md"
    ]
    assert not [each for each in page.iter() if each.get("class") in ("drives", "lights")]


def test_a_link_may_run_over_a_line_s_end_and_stand_in_a_box():
    text = f'!!! case "A"\n\n    [Many](figure "stages: 16,\n    micro_batches: 16")\n\n{TIMELINE}'
    assert json.loads(link(text).get("data-set")) == {"stages": "16", "micro_batches": "16"}


# -- which figure --------------------------------------------------------------------------------------------
LINK = '[many](figure "stages: 16")'


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (f"## A\n\n{LINK}\n\n{TIMELINE}\n{MAP}", "pipeline_timeline"),
        (f"## A\n\n{TIMELINE}\n{LINK}\n\n{MAP}", "bubble_map"),  # the next in its section
        (f"## A\n\n{TIMELINE}\n{LINK}\n\n## B\n\n{MAP}", "pipeline_timeline"),  # none there: the one before
        (f"## A\n\n{LINK}\n\n## B\n\n{MAP}\n{TIMELINE}", "bubble_map"),  # none at all: the first to come
        (f"## A\n\n{TIMELINE}\n{LINK}\n\n``` python\n## no heading\n```\n\n{MAP}", "bubble_map"),
        (f"## A\n\n### B\n\n{TIMELINE}\n### C\n\n{LINK}\n\n### D\n\n{MAP}", "bubble_map"),
        (f"{TIMELINE}\n{MAP}\n" + LINK.replace("figure", "figure:pipeline_timeline"), "pipeline_timeline"),
    ],
)
def test_a_sentence_speaks_of_the_nearest_figure_or_of_the_one_it_names(text, meant):
    assert link(text).get("data-figure") == f"w-{meant}"


def test_of_two_alike_links_each_speaks_of_its_own_figure():
    page = html(f"## A\n\n{LINK}\n\n{TIMELINE}\n## B\n\n{LINK}\n\n{MAP}")
    meant = [each.get("data-figure") for each in page.iter("a") if each.get("class") == "drives"]
    assert meant == ["w-pipeline_timeline", "w-bubble_map"]


def test_a_light_may_name_its_figure():
    of_both = "[a]{lights: bubbles, figure: bubble_map} and [b]{lights: idle, figure: pipeline_timeline}"
    text = f"{TIMELINE}\n{of_both}\n\n{MAP}"
    found = [each.get("data-figure") for each in html(text).iter("span") if each.get("class") == "lights"]
    assert found == ["w-bubble_map", "w-pipeline_timeline"]


def test_a_box_that_another_page_quotes_speaks_of_its_own_lesson_s_figure():
    text = f"# T\n\n## A\n\n{TIMELINE}\n## B\n\n{LINK}\n\n{MAP}"
    lesson = locate.Lesson("07-x", text, "lessons/07-x.md", Path())
    made = etree.fromstring(excerpts.html(LINK, lesson))[0]
    assert made.get("data-figure") == "w-bubble_map" and made.get("href").startswith("../bubble_map/?")


def test_on_the_home_page_the_own_page_is_a_folder_below():
    lesson = locate.Lesson("index", f"# T\n\n{LINK}\n\n{TIMELINE}", "lessons/index.md", Path())
    with locate.on(lesson):
        assert link(lesson.body).get("href").startswith("pipeline_timeline/?")


# -- what stops the build ------------------------------------------------------------------------------------
WRONG = {
    '[x](figure "stage: 16")': "pipeline_timeline has no control 'stage'; it has schedule, stages",
    '[x](figure "stages: 99")': "stages must be a whole number from 2 to 16, got '99'",
    '[x](figure "schedule: gpype")': "schedule must be one of gpipe, 1f1b",
    '[x](figure "in_step: perhaps")': "in_step must be on or off",
    '[x](figure "stages: 4, stages: 5")': "the key 'stages' stands twice",
    '[x](figure "stages 4")': "'stages 4' needs a value",
    '[x](figure "stages: [4")': "this is not YAML",
    '[x](figure "…")': "a link to a figure says what it sets; pipeline_timeline has schedule",
    '[x](figure "…, stages: 4")': "'…' needs a value",
    '[x](figure "")': "a link to a figure says what it sets; pipeline_timeline has schedule",
    "[x](figure)": "a link to a figure says what it sets",
    '[x](figure:roofline "stages: 4")': "this page shows no figure 'roofline'; it shows pipeline_timeline",
    '[x](figure: "stages: 4")': "this page shows no figure ''",
    "[x]{lights: bubbles}": "pipeline_timeline has no part 'bubbles' to light; it has blocks, idle",
    "[x]{lights: idle, figure: roofline}": "this page shows no figure 'roofline'",
    "[x]{lights: idle, lamp: 3}": "unknown key 'lamp'; allowed are lights (what it lights), figure",
    "[x]{figure: pipeline_timeline}": "this needs what it lights",
    "[x]{lights: [idle]}": "'lights' needs a value",
}


@pytest.mark.parametrize("piece", WRONG)
def test_what_the_widget_does_not_take_is_refused_with_its_place(piece, tmp_path, monkeypatch):
    text = f"# A page\n\nText, and\n{piece} there.\n\n{TIMELINE}"
    stops(text, piece, 4, tmp_path, monkeypatch)


def stops(text: str, piece: str, line: int, folder: Path, monkeypatch) -> None:
    (folder / "lessons").mkdir()
    (folder / "lessons" / "09-x.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(locate.fault, "__defaults__", (folder / "lessons",))
    with pytest.raises(locate.LessonFault) as stopped:
        html(text)
    assert str(stopped.value).startswith(f"lessons/09-x.md:{line}: "), stopped.value
    assert WRONG.get(piece, "this page shows no figure") in str(stopped.value)


def test_a_page_without_figures_sets_none(tmp_path, monkeypatch):
    stops(f"# A page\n\n{LINK}\n", LINK, 3, tmp_path, monkeypatch)


# -- in the lessons ------------------------------------------------------------------------------------------
def test_lesson_07_and_three_others_use_them():
    found = {}
    for lesson in locate.numbered():
        links, lights = (len(re.findall(form, lesson.body)) for form in (figures.LINK, figures.LIGHT))
        if links or lights:
            found[lesson.number] = links, lights
    assert found["07"][0] >= 4 and found["07"][1] >= 2 and len(found) >= 4
