"""What the tests of claims run under PyTorch is still said by the lessons. Asked without PyTorch, because
who changes a sentence seldom has it."""

import ast
from pathlib import Path

import pytest

from tests.lessons.claims import says

FILES = sorted(Path(__file__).parent.glob("test_claims_*.py"))


def claimed(source: str) -> list[tuple[int, str]]:
    """(lesson, claim) for each constant text that a file's calls of ``says`` hold."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        (call.args[0].value, each.value)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "says"
        if isinstance(call.args[0], ast.Constant)
        for each in call.args[1:]
        if isinstance(each, ast.Constant)
    ]


CLAIMS = [claim for path in FILES for claim in claimed(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("number", "claim"), CLAIMS)
def test_the_lesson_still_says_what_is_run(number, claim):
    assert says(number, claim)


def test_claims_are_found():
    assert claimed('assert says(18, "one", "two") and says(14, f"{three}")') == [(18, "one"), (18, "two")]
    assert len(CLAIMS) > 50
