"""The names of the Python file beside a lesson hold on its page and in its boxes elsewhere, nowhere else."""

import re

import pytest
from markdown import Markdown

from course import excerpts, given, lesson_code, lessons, numbers
from course.fences import base, table, widget
from course.lessons import LessonFault

PAGE = """---
title: Sharing
{more}---
# Sharing

Who shares what?
{{ .question }}

Weights take `#!n weights_bytes | GB`, a bar of `#!bar weights_bytes / 1e12`.

``` table
rows: (1, 2)
columns:
  GPUs: it
  each: each_bytes(gpus=it) | GB
```

!!! rule "Rule: share"

    Two hold `#!n weights_bytes / 2 | GB` each.

!!! exercise "How much?"

    ??? solution "Solution"

        `#!n weights_bytes | GB ? Weights of {{llama}}`, said `#!n llama.name`.
"""
CODE = '''"""The numbers of this lesson."""

from engine.catalog import model, models

llama = model("llama3-70b")  # Llama 3 70B
# its weights,
# in bf16
weights_bytes = 2 * models.parameters(llama)


def each_bytes(gpus: int = 2) -> float:
    """What each of so many GPUs holds."""
    return weights_bytes / (
        gpus
    )
'''


def converter() -> Markdown:
    inline = [{"name": "n", "class": "n", "format": numbers.number}]
    inline += [{"name": "bar", "class": "bar", "format": numbers.bar}]
    return Markdown(
        extensions=[
            "admonition",
            "attr_list",
            "md_in_html",
            "pymdownx.details",
            "course.fences",
            "pymdownx.inlinehilite",
            "course.exercises",
            "course.given",
        ],
        extension_configs={"pymdownx.inlinehilite": {"custom_inline": inline}},
    )


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Puts a page into a folder that stands for lessons/."""
    folder = tmp_path / "lessons"
    folder.mkdir()
    monkeypatch.setattr(lessons.with_body, "__defaults__", (folder,))
    monkeypatch.setattr(lessons.fault, "__defaults__", (folder,))

    def put(text: str, name: str = "05-sharing.md", code: str = CODE) -> lessons.Lesson:
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).with_suffix(".py").write_text(code, encoding="utf-8")
        return lessons.read(name, folder)

    return put


def test_names_hold_in_numbers_bars_tables_and_exercises(put):
    out = converter().convert(put(PAGE.format(more="")).body)
    assert out.count("141\xa0GB") == 2 and "width: 14.11%" in out and "70.6&nbsp;" not in out
    assert re.findall(r"<td[^>]*>([\d.]+)</td>", out) == ["141", "70.6"]
    assert 'data-expected="141' in out and "Llama\xa03\xa070B</span>" in out
    assert 'data-expr="weights_bytes"' in out


def test_the_box_says_what_they_stand_for_once_behind_the_question(put):
    out = converter().convert(put(PAGE.format(more="")).body)
    box = re.search(r'<details class="given".*?</details>', out, re.DOTALL)[0]
    assert out.count("What this lesson assumes") == 1
    assert out.index("Who shares") < out.index(box) < out.index("Weights take")
    assert "<code>llama</code> Llama 3 70B</dt>" in box
    assert "<code>model(&#34;llama3-70b&#34;)</code>" in box
    assert "<code>weights_bytes</code> Its weights, in bf16</dt>" in box
    assert "<code>each_bytes(gpus=2)</code> What each of so many GPUs holds</dt>" in box
    assert "<code>weights_bytes / (gpus)</code>" in box


def test_a_page_without_names_stays_as_it_was(put):
    page = put("# Title\n\nAsks?\n{ .question }\n\n`#!n 1 + 1`\n", code="")
    assert given.with_box(page.body, page) == page.body
    assert "What this lesson assumes" not in converter().convert(page.body)


def test_names_end_with_their_page_even_if_it_fails(put):
    page = put(PAGE.format(more=""))
    broken = put(page.text.replace("weights_bytes / 2", "nonsense"))
    with pytest.raises(LessonFault, match="nonsense"):
        converter().convert(broken.body)
    assert lessons.current() is None
    with pytest.raises(LessonFault, match="weights_bytes"):
        converter().convert("Text `#!n weights_bytes | GB`")


def test_a_quoted_box_has_the_names_of_its_own_lesson(put):
    page = put(PAGE.format(more=""))
    other = put(PAGE.format(more=""), "06-other.md", CODE.replace("llama3-70b", "llama3-8b"))
    (rule,) = page.boxes("rule")
    with lessons.on(other):
        assert "70.6\xa0GB" in excerpts.html(rule.source, page)
        assert "8.03\xa0GB" in excerpts.html(rule.source, other)


def test_what_is_kept_depends_on_the_definitions_that_are_used(put, monkeypatch):
    keys = []
    monkeypatch.setattr(
        numbers, "kept_text", lambda kind, source, make, modules: keys.append(source) or make(source)
    )
    page = put(PAGE.format(more=""))
    other = put(PAGE.format(more=""), "06-other.md", CODE.replace("llama3-70b", "llama3-8b"))
    for lesson in (page, other):
        with lessons.on(lesson):
            numbers.kept("value", "weights_bytes", str)
            numbers.kept("value", "1 + 1", str)
    assert len(set(keys)) == 3 and keys[1] == keys[3] == "1 + 1"
    assert 'llama = model("llama3-8b")' in keys[2], "what a definition stands on belongs to it"


def test_the_kept_file_changes_with_the_definition(put, monkeypatch, tmp_path):
    monkeypatch.setenv("KEEP_COMPILED", str(tmp_path / "compiled"))
    for model, shown in (("llama3-70b", "141 GB"), ("llama3-8b", "16.1 GB")):
        with lessons.on(put(PAGE.format(more=""), code=CODE.replace("llama3-70b", model))):
            assert numbers.evaluate("weights_bytes | GB") == shown


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ("layout = 1 + 1\n", 16, "layout: this name has a meaning"),
        ("gpu = 1 + 1\n", 16, "gpu: this name has a meaning"),
        ("sum = 1 + 1\n", 16, "sum: this name has a meaning"),
        ("it = 1 + 1\n", 16, "it: this name has a meaning"),
        ("other = 1 + 1  # 4\n", 16, "other: nothing on the page uses this name"),
        ("for other in ():\n    pass\n", 16, "a lesson's file holds imports, functions, and lines"),
        ("other = (1\n", 16, "this is not Python"),
    ],
)
def test_a_fault_of_the_file_beside_is_named_with_its_line(put, more, line, words):
    page = put(PAGE.format(more=""), code=f"{CODE}{more}")
    with pytest.raises(LessonFault, match=rf"^lessons/05-sharing\.py:{line}: {re.escape(words)}"):
        converter().convert(page.body)


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("models.parameters(llama)", "nonsense", 8, "NameError: name 'nonsense'"),
        ('model("llama3-70b")', 'model("llama9")', 5, "llama9"),
        (
            "        gpus\n",
            "        gpus - 1\n",
            13,
            "cannot compute `each_bytes(gpus=1) | GB`: ZeroDivision",
        ),
    ],
)
def test_what_fails_in_the_file_beside_is_named_with_its_line(put, before, after, line, words):
    text = PAGE.format(more="").replace("Two hold `#!n weights_bytes / 2", "Two hold `#!n each_bytes(gpus=1)")
    page = put(re.sub(r"``` table.*?```", "", text, flags=re.DOTALL), code=CODE.replace(before, after))
    with pytest.raises(LessonFault, match=rf"^lessons/05-sharing\.py:{line}: .*{re.escape(words)}"):
        converter().convert(page.body)


def test_an_unknown_name_is_named_with_the_closest(put):
    page = put(PAGE.format(more="").replace("#!n weights_bytes / 2", "#!n weight_byte / 2"))
    with pytest.raises(LessonFault, match=r"lessons/05-sharing\.md:\d+: .*no 'weight_byte'; .*weights_bytes"):
        converter().convert(page.body)


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ("given:\n  llama: 1\n", 3, "unknown key 'given'; allowed are title, lesson, needs"),
        ("nedds: []\n", 3, "unknown key 'nedds'; allowed are title, lesson, needs"),
        ("title: Again\n", 3, "'title' stands twice"),
        ("needs: [1\n", 3, "this is not YAML"),
        ("lesson: one\n", 3, "lesson must be 5, as in the file's name; got 'one'"),
        ("lesson: 6\n", 3, "lesson must be 5, as in the file's name; got 6"),
        (
            "needs: [99]\n",
            3,
            "needs must be a list of earlier lessons, as in [1, 2], each from 1 to 4; got [99]",
        ),
        ("needs: [1, 5]\n", 3, "each from 1 to 4; got [1, 5]"),
        ("needs: 1\n", 3, "each from 1 to 4; got 1"),
        ("description: [a]\n", 3, "description must be a text; got ['a']"),
        ("hide: [menu]\n", 3, "hide must be a list of some of navigation, toc, path, footer; got ['menu']"),
    ],
)
def test_a_fault_of_the_front_matter_is_named_with_its_line(put, more, line, words):
    page = put(PAGE.format(more=more))
    with pytest.raises(LessonFault, match=rf"^lessons/05-sharing\.md:{line}: .*{re.escape(words)}"):
        converter().convert(page.body)


# -- one base for fences -------------------------------------------------------------------------------------
def test_whatever_a_formatter_raises_stops_the_build_with_its_place_and_cause(put):
    def render(source):
        raise ZeroDivisionError("by nothing")

    put("# Title\n\nText\n\n``` odd\nname: x\n```\n")
    fences = [{"name": "odd", "class": "odd", "format": base.formatter(render)}]
    with pytest.raises(LessonFault, match=r"^lessons/05-sharing\.md:6: .*odd: ZeroDivisionError") as stopped:
        Markdown(
            extensions=["pymdownx.superfences"],
            extension_configs={"pymdownx.superfences": {"custom_fences": fences}},
        ).convert("# Title\n\nText\n\n``` odd\nname: x\n```\n")
    assert isinstance(stopped.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("fence", "kind", "line", "words"),
    [
        ("rows: (1,)\ncolumns:\n  A: it\n  A: it\n", "table", 5, "'A' stands twice"),
        (
            "rows: (1,)\ncolumns:\n  A: it\nwidth: 3\n",
            "table",
            5,
            "unknown key 'width'; allowed are rows, col",
        ),
        ("name: memory_stack\nsize: 1e9\nsize: 2e9\n", "widget", 4, "'size' stands twice"),
        ("name: memory_stack\nsice: 1e9\n", "widget", 3, "memory_stack has no control 'sice'; it has "),
    ],
)
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_key_is_named_with_its_own_line(put, fence, kind, line, words, indent):
    text = "".join(f"{indent}{each}\n" for each in f"``` {kind}\n{fence}```".split("\n"))
    put("# T\n" + text)  # the fence's ticks are on line 2
    formats = {"table": table.format, "widget": widget.format}
    with pytest.raises(LessonFault, match=rf"^lessons/05-sharing\.md:{line + 1}: .*{re.escape(words)}"):
        formats[kind](fence, kind, kind, {}, None)


# -- the lessons' own names ----------------------------------------------------------------------------------
@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.name)
def test_the_front_matter_of_every_page_is_sound(page):
    """What the build would stop at, seen without one; a lesson has its four keys."""
    assert numbers.definitions(page) == page.code_contents.definitions
    assert all(each.says for each in page.code_contents.definitions), "each says what it is"
    assert not page.number or {"title", "lesson", "needs", "description"} <= set(page.front)


@pytest.mark.parametrize("file", [page.path.name for page in lessons.pages()])
def test_every_page_that_gives_names_has_a_place_for_their_box(file):
    page = lessons.read(file)
    assert given.with_box(page.text, page).count('class="given"') == bool(numbers.definitions(page))


@pytest.mark.parametrize("path", sorted(lesson_code.FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_the_numbers_of_every_page_are_there_without_the_site(path):
    module = lesson_code.load(path.stem)
    names = [each.name for each in lesson_code.contents(path.read_text(encoding="utf-8")).definitions]
    assert names and all(hasattr(module, name) for name in names)


def test_a_page_without_numbers_is_refused_by_name():
    with pytest.raises(ValueError, match=r"page must be one of .*04-data-parallel.*; got 'glossary'"):
        lesson_code.load("glossary")
