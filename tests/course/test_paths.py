"""Reading paths: faulty fences are reported, steps lead somewhere, and a path contains the lessons that its
lessons need."""

import re

import pytest

from course import lessons
from course.fences import path as paths
from course.lessons import LESSONS, LessonFault
from widgets.kit.controls import BadValue

PAGE = LESSONS / "paths.md"
FENCES = [fence.source for fence in lessons.read(PAGE).fences if fence.kind == "path"]
GOOD = """key: slow
name: A name
about: About it.
steps:
  - {step}: Why.
"""


def test_the_page_has_the_paths_that_it_promises():
    found = [paths.read(fence) for fence in FENCES]
    assert {"oom", "slow", "dead", "late"} <= {path.key for path in found}
    assert len({path.key for path in found}) == len(found) >= 9
    for path in found:
        assert 3 <= len(path.steps) <= 6 and path.about, path.key
        assert len({step.href for step in path.steps}) == len(path.steps), path.key


def test_each_pair_joins_two_lessons_and_ends_at_a_figure_in_a_state():
    for path in map(paths.read, FENCES):
        if path.key in ("oom", "slow", "dead", "late"):
            assert path.steps[0].href.startswith("../symptoms/#"), "a failure starts at what is seen"
            continue
        lessons = {step.href.split("/")[1] for step in path.steps if step.lesson}
        assert len(lessons) >= 2, path.key
        assert "?" in path.steps[-1].href and "#w-" in path.steps[-1].href, path.key


def test_a_title_has_nothing_of_its_markup():
    """The planner's heading has a class, `# The planner { .app }`, which is no part of its name."""
    titles = {page.title for page in lessons.pages()}
    assert "The planner" in titles and not any("{" in title for title in titles)


def test_a_step_is_named_after_the_place_it_leads_to():
    section = paths.step("04-data-parallel.md#when-it-hides", "Because.")
    assert (section.href, section.of, section.title) == (
        "../04-data-parallel/#when-it-hides",
        "04 Data parallel",
        "When it hides",
    )
    widget = paths.step(
        "12-disaggregated-serving.md?prefill_decode.mode=chunked#w-prefill_decode", "Because."
    )
    assert (
        widget.href == "../12-disaggregated-serving/?prefill_decode.mode=chunked#w-prefill_decode"
        and widget.title.endswith("?")
    )
    assert paths.step("index.md#w-training_step", "Because.").href == "../#w-training_step"
    assert (
        paths.step("symptoms.md", "Because.").title == "Symptoms"
        and not paths.step("symptoms.md", "Because.").lesson
    )


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("99-nothing.md", "no page '99-nothing.md'"),
        ("04-data-parallel.md#when-it-flies", "no place 'when-it-flies'"),
        (
            "04-data-parallel.md?memory_stack.size=1e9#w-ddp_overlap",
            "no widget 'memory_stack' on 04-data-parallel.md",
        ),
        ("04-data-parallel.md?ddp_overlap.size=1e9#w-ddp_overlap", "no control 'size'"),
        ("04-data-parallel.md?ddp_overlap.tokens=many#w-ddp_overlap", "tokens must be"),
    ],
)
def test_a_step_that_leads_nowhere_is_named(step, words):
    with pytest.raises(BadValue, match=re.escape(words)):
        paths.read(GOOD.format(step=f'"{step}"'))


@pytest.mark.parametrize(
    "fence",
    [
        "key: [",
        "key: slow",
        GOOD.format(step="symptoms.md") + "more: x\n",
        "- a",
        "key: a\nname: b\nabout: c\nsteps: d",
    ],
)
def test_a_fence_that_is_no_path_is_refused(fence):
    with pytest.raises(BadValue):
        paths.read(fence)


def test_a_fault_names_file_and_line(monkeypatch):
    monkeypatch.setattr(paths, "anchors", lambda page: {})
    with pytest.raises(
        LessonFault, match=r"^lessons/paths\.md:\d+: symptoms\.md has no place 'out-of-memory'"
    ):
        paths.format(FENCES[0], "path", "path", {}, None)


def test_lessons_need_earlier_ones_alone():
    """The page walks the lessons backwards once to find a chain; that is all of it only if no lesson needs a
    later one."""
    earlier = set()
    for lesson in lessons.numbered():
        assert set(lesson.front["needs"]) <= earlier, lesson.name
        earlier.add(lesson.front["lesson"])


def chain(number: int | str, needs: dict) -> set[int | str]:
    """The lessons that a lesson needs, directly or indirectly, and the lesson itself."""
    return {number}.union(*(chain(need, needs) for need in needs[number]))


@pytest.mark.parametrize(
    ("number", "stands_on"),
    [(15, {1, 13}), (16, {1, 13}), (17, {1, 13, 16}), (18, {1, 13, 16}), (19, {1, 13, 16, 18})],
)
def test_the_lessons_on_one_gpu_stand_on_no_cluster(number, stands_on):
    """Whoever wants Triton is not sent through collectives: nothing in these lessons is derived from several
    GPUs."""
    needs = {lesson.front["lesson"]: lesson.front["needs"] for lesson in lessons.numbered()}
    assert chain(number, needs) == stands_on | {number}


def test_the_chains_on_the_page_are_those_of_the_front_matter(site):
    needs = {lesson.front["lesson"]: lesson.front["needs"] for lesson in lessons.numbered()}
    called = {lesson.number: lesson.front["lesson"] for lesson in lessons.numbered()}
    html = (site / "paths" / "index.html").read_text(encoding="utf-8")
    listed = re.findall(r'data-path="to-(\d\d[a-z]?)".*?<ol>(.*?)</ol>', html, re.DOTALL)
    assert [number for number, _ in listed] == list(called)
    for number, steps in listed:
        found = [called[step] for step in re.findall(r'<a href="\.\./(\d\d[a-z]?)-', steps)]
        wanted = chain(called[number], needs)
        assert found == [each for each in needs if each in wanted], number
        assert len(re.findall(r"\d+ min</span>", steps)) == len(found)
