"""What a page computes is short: a name, or one call, that a writer and a translator can read past."""

import ast
from collections.abc import Iterator

import pytest

from course import lessons, numbers, strict_yaml
from course.lessons import Lesson

MOST_CHARACTERS, MOST_CALLS = 60, 1
# whose tables and predictions still compute in place
NOT_YET = (
    "01-why-distributed",
    "02-collectives",
    "03-interconnect",
    "04-data-parallel",
    "05-fsdp-and-zero",
    "10-nd-parallelism",
    "10b-the-long-run",
    "numbers",
)


def calls(expression: str) -> int:
    tree = ast.parse(expression.strip(), mode="eval")
    return sum(isinstance(node, ast.Call) for node in ast.walk(tree))


def is_long(expression: str) -> bool:
    return len(" ".join(expression.split())) > MOST_CHARACTERS or calls(expression) > MOST_CALLS


def in_text(page: Lesson) -> Iterator[str]:
    """The expressions of numbers, of known wrong ways, and of bars."""
    for source in page.inline():
        form = numbers.form(source)
        yield from (form[part] for part in ("expression", "trap") if form[part])
    yield from page.inline("bar")


def in_fences(page: Lesson) -> Iterator[str]:
    """The expressions of a table's cells, and of what a prediction asks."""
    for fence in page.fences:
        options = strict_yaml.mapping(fence.source) if fence.kind in ("table", "widget") else {}
        if fence.kind == "table":
            quantities = [options[part] for part in ("rows", "columns") if isinstance(options[part], dict)]
            asked = [each for part in quantities for each in part.values()]
        else:
            asked = [options[key] for key in ("asks", "right") if key in options]
        yield from (numbers.form(str(each))["expression"] for each in asked)


@pytest.mark.parametrize(
    ("expression", "long"),
    [
        ("write_s(users=64)", False),
        ("a" * 60, False),
        ("a" * 61, True),
        ("sum(range(3))", True),
        ("f(a).b[0].c()", True),
        ("f(a,\n   b)", False),
    ],
)
def test_what_is_long(expression, long):
    assert is_long(expression) == long


@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.name)
def test_no_page_computes_in_its_prose(page):
    assert [each for each in in_text(page) if is_long(each)] == []


@pytest.mark.parametrize(
    "page", [page for page in lessons.pages() if page.name not in NOT_YET], ids=lambda page: page.name
)
def test_nor_in_its_tables_and_predictions(page):
    assert [each for each in in_fences(page) if is_long(each)] == []


def test_pages_have_such_expressions():
    pages = lessons.pages()
    assert sum(len([*in_text(page)]) for page in pages) > 2000
    assert sum(len([*in_fences(page)]) for page in pages) > 400
