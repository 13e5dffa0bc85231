"""A settled question is asked again after any change of a file that it rests on, and only then."""

import json
import os
from types import SimpleNamespace

import pytest

from tests import representatives, settled

NAMES = list(settled.questions())
OF_FIGURES, OF_PAGES = (
    [name for name, question in settled.questions().items() if question.each == each]
    for each in ("figure", "page")
)
CASES = {
    "": [""],
    "figure": [f"[390-{slug}]" for slug in settled.figures()],
    "page": [f"[{page}/]" for page in settled.pages()],
}


def nodes(name: str) -> list[str]:
    """A test from each of the question's files, for each figure or page if the question is asked separately
    for each."""
    asked, found = settled.questions()[name], []
    for pattern in asked.tests:
        file, _, test = pattern.partition("::")
        for path in settled.ROOT.glob(file):
            node = f"{path.relative_to(settled.ROOT).as_posix()}::{test.replace('*', 'it') or 'test_it'}"
            found += [f"{node}{case}" for case in CASES[asked.each]]
    return found


EVERY_NODE = [node for name in NAMES for node in nodes(name)]


@pytest.fixture
def all_settled(tmp_path, monkeypatch):
    """The state after a complete run in which all tests passed."""
    monkeypatch.setattr(settled, "ANSWERED", tmp_path / "settled.json")
    monkeypatch.setattr(settled, "ALL_OF_THEM", False)
    monkeypatch.delenv("CI", raising=False)
    settled.ANSWERED.write_text("{}", encoding="utf-8")
    settled.note(settled.newly_answered(EVERY_NODE, []))
    settled.settled.cache_clear()
    yield
    settled.settled.cache_clear()


def still_open() -> set[str]:
    settled.settled.cache_clear()
    return set(settled.digests()) - settled.settled()


@pytest.mark.parametrize("name", NAMES)
def test_each_pattern_finds_files_and_each_question_tests(name):
    question = settled.questions()[name]
    for pattern in (*(one.partition("::")[0] for one in question.tests), *question.rests_on):
        assert any(path.is_file() for path in settled.ROOT.glob(pattern)), pattern
    assert all(settled.of(node).partition(": ")[0] == name for node in nodes(name))


def test_after_a_run_that_passed_nothing_is_open(all_settled):
    items = [SimpleNamespace(nodeid=node) for node in EVERY_NODE]
    others = [
        SimpleNamespace(nodeid=f"tests/{name}")
        for name in ("test_settled.py::test_it", "browser/test_texts.py::test_it")
    ]
    assert still_open() == set()
    assert settled.left_out([*items, *others], standing=()) == items


def test_what_stands_for_the_rest_is_always_asked(all_settled):
    items = [SimpleNamespace(nodeid=node) for name in (*OF_FIGURES, *OF_PAGES) for node in nodes(name)]
    asked = [
        item for item in items if item not in settled.left_out(items, standing=representatives.standing())
    ]
    assert {settled.of(item.nodeid).partition(": ")[2] for item in asked} == representatives.standing()


@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_any_pattern_s_file_opens_the_question(name, all_settled, monkeypatch):
    question, real = settled.questions()[name], settled._sum
    for pattern in (*question.rests_on, *(one.partition("::")[0] for one in question.tests)):
        files = (path for path in settled.ROOT.glob(pattern) if path.is_file())
        changed = next(path for path in files if "__pycache__" not in path.parts)
        monkeypatch.setattr(settled, "_sum", lambda path, at=changed: b"" if path == at else real(path))
        assert name in {each.partition(": ")[0] for each in still_open()}, changed


def test_a_change_of_one_figure_s_module_opens_its_questions_alone(all_settled, monkeypatch):
    changed = settled.figures() | {"kv_cache": "another"}
    monkeypatch.setattr(settled, "figures", lambda: changed)
    assert still_open() == {f"{name}: kv_cache" for name in OF_FIGURES}


@pytest.mark.parametrize("kind", ["md", "py"])
def test_a_change_of_a_page_or_of_its_numbers_opens_its_questions_alone(kind, all_settled, monkeypatch):
    real, file = settled._sum, settled.ROOT / f"lessons/04-data-parallel.{kind}"
    monkeypatch.setattr(settled, "_sum", lambda path: b"" if path == file else real(path))
    settled.pages.cache_clear()
    found = {name for name in still_open() if name.partition(": ")[0] in OF_PAGES}
    settled.pages.cache_clear()
    assert found == {f"{name}: 04-data-parallel" for name in OF_PAGES}


@pytest.mark.parametrize("name", [name for name, each in settled.questions().items() if each.modules])
def test_a_change_of_a_module_or_of_what_it_imports_opens_the_question(name, all_settled, monkeypatch):
    real = settled.dependencies.state
    modules = settled.questions()[name].modules
    monkeypatch.setattr(
        settled.dependencies, "state", lambda *of: "another" if [*of] == modules else real(*of)
    )
    assert name in still_open()


def test_every_is_asked_all(all_settled, monkeypatch):
    monkeypatch.setattr(settled, "ALL_OF_THEM", True)
    assert still_open() == set(settled.digests())


def test_a_failure_a_lack_or_a_run_of_nothing_settles_nothing():
    [node, *_] = nodes(NAMES[0])
    assert set(settled.newly_answered([node], [])) == {NAMES[0]}
    assert settled.newly_answered([node], [node]) == {}
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
    assert set(settled.answered()) <= set(settled.digests())


def test_asking_for_a_state_leaves_tests_to_compile_anew(monkeypatch):
    monkeypatch.delenv("KEEP_COMPILED", raising=False)
    settled._state("widgets.serving.kv_cache")
    assert "KEEP_COMPILED" not in os.environ
