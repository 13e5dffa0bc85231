"""The sheet of formulas holds every boxed rule of every lesson, and each title leads to its place."""

from tests.conftest import ROOT
from widgets.kit import boxes, excerpts


def test_no_rule_is_missed():
    for path in sorted((ROOT / "lessons").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        titles = [line.split('"')[1] for line in text.splitlines() if line.strip().startswith("!!! rule ")]
        assert [rule.title for rule in excerpts.boxes_in(text, "rule")] == [title.removeprefix("Rule: ") for title in titles], path.name
        assert len({rule.anchor for rule in excerpts.boxes_in(text, "rule")}) == len(titles), f"{path.name} has two rules of one name"


def test_a_rule_is_taken_whole_and_its_links_lead_out_of_the_lesson():
    text = ('before\n\n!!! rule "Rule: half"\n\n    First $a_1$,\n    [see](03-interconnect.md#rule-x).\n\n    ??? note\n\n'
            "        deeper\n\nafter\n")
    rule, = excerpts.boxes_in(text, "rule")
    assert rule.source == "First $a_1$,\n[see](03-interconnect.md#rule-x).\n\n??? note\n\n    deeper\n"
    assert 'href="../03-interconnect/#rule-x"' in rule.html and "<math" in rule.html and "after" not in rule.html


def test_a_box_has_an_address_made_of_its_title():
    assert boxes.address("rule", "Rule: tensor ranks up to about F·W/C") == "rule-tensor-ranks-up-to-about-f-w-c"
    assert boxes.address("exercise", "Design: a pipeline") == "exercise-design-a-pipeline"
