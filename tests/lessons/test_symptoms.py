"""The page of symptoms holds every failure that a lesson names and every wall of lesson 01, each where it is looked for."""

import pytest

from tests.conftest import ROOT
from widgets.kit import symptoms


def test_no_failure_is_missed():
    for path in sorted((ROOT / "lessons").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        boxed = text.split('!!! breaks "', 1)[1].split("\n## ", 1)[0]
        found = [each for each in symptoms.failures() if each.lesson == path.stem]
        assert len(found) == boxed.count("*Symptom:*") >= 3, f"{path.name}: a paragraph under “Where it breaks” is not in its form"
        assert all(each.name and each.symptom and each.response for each in found)


@pytest.mark.parametrize("name, group", [
    ("The copy does not fit", "Out of memory"), ("Fragmented", "Out of memory"), ("Ranks that disagree", "It stops, or never starts"),
    ("MTBF near the restart time", "It stops, or never starts"), ("Updates under half a gap", "Wrong, or worse than it should be"),
    ("The cache is full", "Answers come late"), ("A straggler", "Too slow"), ("Too few micro-batches", "Too slow")])
def test_a_failure_stands_where_it_is_looked_for(name, group):
    assert [each.group for each in symptoms.failures() if each.name == name] == [group]


def test_every_group_has_several():
    groups = [each.group for each in symptoms.failures()]
    assert all(groups.count(title) >= 4 for title in symptoms.GROUPS)


def test_every_wall_of_lesson_01_stands_first():
    walls = symptoms.walls()
    assert walls.count("<tr>") == 11 and 'href="../02-collectives/"' in walls      # ten rows and the head


def test_other_words_for_a_thing_are_words_that_a_failure_uses():
    """A way of saying it that no failure and no wall has leads nowhere."""
    said = (" ".join(f"{each.symptom} {each.name}. {each.what} {each.threshold} {each.response}" for each in symptoms.failures()) + symptoms.walls()).lower()
    for typed, meant in symptoms.synonyms():
        assert any(word in said for word in typed + meant), typed
        assert [word for word in meant if word not in said] == []


def test_a_symptom_begins_with_a_capital_unless_it_begins_with_code():
    assert symptoms.sentence("the job hangs") == "The job hangs" and symptoms.sentence("`nvidia-smi` shows") == "`nvidia-smi` shows"
