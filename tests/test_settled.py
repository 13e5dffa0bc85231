"""A settled question is asked again after any change of a file that it rests on, and only then."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import settled

NAMES = list(settled.questions())


def nodes(name: str) -> list[str]:
    found = [path for pattern in settled.questions()[name].tests for path in settled.ROOT.glob(pattern)]
    return [f"{path.relative_to(settled.ROOT).as_posix()}::test_it" for path in found]


@pytest.fixture
def all_settled(tmp_path, monkeypatch):
    """As after a whole run that passed."""
    monkeypatch.setattr(settled, "ANSWERED", tmp_path / "settled.json")
    monkeypatch.setattr(settled, "ALL_OF_THEM", False)
    monkeypatch.delenv("CI", raising=False)
    settled.ANSWERED.write_text("{}", encoding="utf-8")
    settled.note(settled.newly_answered([test for name in NAMES for test in nodes(name)], []))


@pytest.mark.parametrize("name", NAMES)
def test_each_pattern_finds_files(name):
    question = settled.questions()[name]
    for pattern in (*question.tests, *question.rests_on):
        assert any(path.is_file() for path in settled.ROOT.glob(pattern)), pattern


def test_after_a_run_that_passed_nothing_is_open(all_settled):
    items = [SimpleNamespace(nodeid=test) for name in NAMES for test in nodes(name)]
    other = SimpleNamespace(nodeid="tests/test_settled.py::test_it")
    assert settled.open_questions() == set()
    assert settled.left_out([*items, other]) == items


@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_any_pattern_s_file_opens_the_question(name, all_settled, monkeypatch):
    question, real = settled.questions()[name], settled._sum
    for pattern in (*question.rests_on, *question.tests):
        changed = next(
            path for path in settled.ROOT.glob(pattern) if path.is_file() and path.suffix != ".pyc"
        )
        monkeypatch.setattr(settled, "_sum", lambda path, at=changed: b"" if path == at else real(path))
        assert name in settled.open_questions(), changed


def test_every_is_asked_all(all_settled, monkeypatch):
    monkeypatch.setattr(settled, "ALL_OF_THEM", True)
    assert settled.open_questions() == set(NAMES)


def test_a_failure_a_lack_or_a_run_of_nothing_settles_nothing():
    [test, *_] = nodes(NAMES[0])
    assert set(settled.newly_answered([test], [])) == {NAMES[0]}
    assert settled.newly_answered([test], [test]) == {}
    assert settled.newly_answered([], []) == {}


def test_ci_writes_nothing(all_settled, monkeypatch):
    before = settled.ANSWERED.read_text(encoding="utf-8")
    monkeypatch.setenv("CI", "true")
    settled.note({NAMES[0]: "another"})
    assert settled.ANSWERED.read_text(encoding="utf-8") == before
    monkeypatch.delenv("CI")
    settled.note({NAMES[0]: "another"})
    assert json.loads(settled.ANSWERED.read_text(encoding="utf-8"))[NAMES[0]] == "another"


def test_what_is_kept_names_questions_that_are_asked():
    assert set(settled.answered()) <= set(NAMES)
    assert Path(settled.ANSWERED).name == "settled.json"
