"""A lesson that is named in running text is a link to it."""

import re

import pytest
from markdown import Markdown


def links(text: str) -> list[tuple[str, str]]:
    html = Markdown(extensions=["course.links.crossrefs"]).convert(text)
    assert re.sub(r"<[^>]+>", "", html) == text.strip("#`")
    return re.findall(r'<a class="term" href="([\w-]+\.md)" title="[^"]+">([^<]+)</a>', html)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("as in lesson 05.", [("05-fsdp-and-zero.md", "lesson 05")]),
        (
            "(lessons 04, 07 and 10)",
            [
                ("04-data-parallel.md", "lessons 04"),
                ("07-pipeline-parallel.md", "07"),
                ("10-nd-parallelism.md", "10"),
            ],
        ),
        ("Lesson\n03 and 40 GPUs", [("03-interconnect.md", "Lesson\n03")]),
        ("lesson 99 is not written", []),
        ("a lesson in 10 minutes", []),
        ("`lesson 05`", []),
    ],
)
def test_what_names_a_lesson_leads_there(text, found):
    assert [(where, words) for where, words in links(text)] == found
