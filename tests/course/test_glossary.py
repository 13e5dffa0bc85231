"""Each word of the glossary is linked where a lesson first uses it, once, and only in running text."""

import re

import pytest
from markdown import Markdown

from course import lessons
from course.links import glossary
from tests.conftest import ROOT

LESSONS = sorted((ROOT / "lessons").glob("[0-9]*.md"))


def html(text: str) -> str:
    return Markdown(extensions=["attr_list", "course.links.glossary"]).convert(text)


def linked(text: str) -> list[str]:
    return re.findall(r'<a class="term" href="glossary.md#[\w-]+" title="[^"]+">([^<]+)</a>', html(text))


def test_the_first_use_is_linked_and_no_other():
    assert linked("Every AllReduce waits. An AllReduce is two halves.\n\nAn *AllReduce* again.") == [
        "AllReduce"
    ]


def test_plurals_other_forms_and_small_first_letters_count():
    assert linked("Bubbles cost. So do buckets, all-gathers, recomputed things.") == [
        "Bubbles",
        "buckets",
        "all-gathers",
    ]


def test_capitals_within_a_word_must_agree():
    assert linked("zero rail, MFU and mfu; fsdp") == ["rail", "MFU"]


def test_the_longest_form_wins_and_parts_of_words_do_not():
    assert linked("data parallelism, bubbly, a non-expert and pipeline parallelism") == [
        "data parallelism",
        "pipeline parallelism",
    ]


@pytest.mark.parametrize(
    "text", ["## AllReduce", "`AllReduce`", "[AllReduce](x.md)", glossary.NOT_HERE + "\n\nAllReduce"]
)
def test_headings_code_links_and_pages_that_say_so_are_left_alone(text):
    assert linked(text) == []


def test_a_word_of_some_lessons_is_linked_in_those_alone():
    """A tile of lesson 17 is none of lesson 03's; and the text says which lesson it is."""
    words = {entry.word: number for number, entry in enumerate(glossary.entries())}
    assert words["Tile"] in glossary.meant_in("17") and words["Tile"] not in glossary.meant_in("03")
    assert words["AllReduce"] in glossary.meant_in("03") & glossary.meant_in("17")
    converter = Markdown(extensions=["course.links.glossary"])
    with lessons.on(lessons.read("03-interconnect.md")):
        assert "term" not in converter.convert("A tile.")
        assert "term" in converter.convert("A tile over a rail.")
    assert "term" in converter.convert("A tile.")  # a text of no lesson


def test_an_entry_names_lessons_that_exist():
    numbers = {lessons.number_of(path.name) for path in LESSONS}
    assert all(set(entry.only) <= numbers for entry in glossary.entries())
    assert sum(bool(entry.only) for entry in glossary.entries()) > 20


def test_text_around_links_stays_as_it_was():
    text = "An AllReduce is a ReduceScatter, then *an AllGather* over NVLink; the ring goes on."
    assert re.sub(r"<[^>]+>", "", html(text)) == re.sub(r"[*]", "", text)


def test_every_entry_says_something_and_names_its_lesson():
    found = glossary.entries()
    page = glossary.PAGE.read_text(encoding="utf-8")
    assert len(found) > 70 and page.count("\n### ") == len(found), "an entry is not in the form that is read"
    assert len({entry.anchor for entry in found}) == len(found)
    for entry in found:
        assert len(entry.text) > 30 and "](" not in entry.text, entry.word
    for block in page.split("\n### ")[1:]:
        assert re.search(r"\]\(\d\d[a-z]?-[\w-]+\.md#", block), f"{block.splitlines()[0]} leads to no lesson"


def test_every_entry_is_used_by_a_lesson():
    text = " ".join(path.read_text(encoding="utf-8") for path in LESSONS)
    unused = [
        entry.word
        for entry in glossary.entries()
        if not re.search(rf"(?<![\w-])(?:{entry.pattern})(?![\w-])", text)
    ]
    assert not unused
