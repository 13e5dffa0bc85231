"""The sheet of formulas holds every boxed rule of every lesson, and each title leads to its place."""

import re

from course import excerpts, lessons
from course.lessons import box_address
from tests.conftest import ROOT


def test_no_rule_is_missed():
    for path in sorted((ROOT / "lessons").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        titles = [line.split('"')[1] for line in text.splitlines() if line.strip().startswith("!!! rule ")]
        rules = lessons.read(path).boxes("rule")
        assert [rule.name for rule in rules] == [title.removeprefix("Rule: ") for title in titles], path.name
        assert len({rule.anchor for rule in rules}) == len(titles), f"{path.name} has two rules of one name"


POINTING = re.compile(
    r"\(below\)|\bthe (?:next|last) section|\bThe section\b|\bin the figure\b"
    r"|\b(?:table|GeLU|figure|formula) (?:above|below)"
)


def test_no_rule_points_to_what_stays_in_its_lesson():
    """The sheet lifted boxes with 'the table above' and '(below)', where nothing is above or below."""
    boxes = [(lesson, rule) for lesson in excerpts.lessons_with("rule") for rule in lesson.boxes("rule")]
    for lesson, rule in boxes:
        found = POINTING.search(rule.source)
        assert not found, (lesson.name, rule.name, found)
    assert len(boxes) > 50


def test_a_rule_is_taken_whole_and_its_links_lead_out_of_the_lesson():
    text = (
        'before\n\n!!! rule "Rule: half"\n\n    First $a_1$,\n    [see](03-interconnect.md#rule-x).\n\n    '
        "??? note\n\n"
        "        deeper\n\nafter\n"
    )
    (rule,) = lessons.boxes_in(text)
    html = excerpts.html(rule.source, None)
    assert rule.source == "First $a_1$,\n[see](03-interconnect.md#rule-x).\n\n??? note\n\n    deeper\n"
    assert 'href="../03-interconnect/#rule-x"' in html and "<math" in html and "after" not in html


def test_a_box_has_an_address_made_of_its_title():
    assert (
        box_address("rule", "Rule: tensor ranks up to about F·W/C") == "rule-tensor-ranks-up-to-about-f-w-c"
    )
    assert box_address("exercise", "Design: a pipeline") == "exercise-design-a-pipeline"
