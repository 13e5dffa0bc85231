"""Markdown extension: the names that the Python file beside a lesson defines apply to its page, and a folded
box at the top explains them (course/lesson_code.py).

A converter gets a page without its file. The page is found by its text, so this needs nothing from the tool
that builds the site.
"""

from __future__ import annotations

from jinja2 import Environment
from markdown import Extension, Markdown

from course import lessons, numbers
from course.lessons import Lesson

QUESTION = "{ .question }\n"
APP = "{ .app }\n"  # of a page that is a figure, and has its box at its end
BOX = Environment(autoescape=True, trim_blocks=True).from_string("""
<details class="given" data-search-exclude>
<summary>What this {{ kind }} assumes</summary>
<dl>
{% for given in names %}<dt><code>{{ given.call }}</code>{% if given.says %} {{ given.says }}{% endif %}</dt>
<dd><code>{{ given.expression }}</code></dd>
{% endfor %}</dl>
</details>
""")


def with_box(markdown: str, lesson: Lesson | None) -> str:
    """A page with its box after the question, or at the end if it is a figure; unchanged if it defines no
    names."""
    if lesson is None or not numbers.definitions(lesson):
        return markdown
    if QUESTION not in markdown and APP not in markdown:
        raise lessons.LessonFault(f"{lesson.file}:1: a page that gives names asks its question, {QUESTION!r}")
    kind = "lesson" if lesson.number else "page"
    box = BOX.render(names=numbers.definitions(lesson), kind=kind).strip()
    if QUESTION not in markdown:
        return f"{markdown}\n{box}\n"
    return markdown.replace(QUESTION, f"{QUESTION}\n{box}\n", 1)


class Names(Extension):
    """Applies each page's own names while it is being converted."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Hook of Python-Markdown. It wraps the whole conversion instead of extending its first step, because
        the names must be removed again if it fails."""
        convert = md.convert

        def with_its_names(source: str) -> str:
            lesson = lessons.with_body(source)
            if lesson:
                _ = lesson.front  # whose faults stop the build, too
            with lessons.on(lesson):
                return convert(with_box(source, lesson))

        md.convert = with_its_names


def makeExtension(**options: dict) -> Names:
    """Entry point of Python-Markdown."""
    return Names(**options)
