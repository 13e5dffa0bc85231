"""The Markdown fence for the list of all puzzles, each a link to its place in a lesson.

    ``` puzzles
    ```

Nothing is listed by hand: the lessons say which puzzle stands where, and each puzzle its own title.
"""

from __future__ import annotations

from jinja2 import Environment

from course import lessons
from course.fences import base, progress, puzzle
from engine import puzzles

LIST = Environment(autoescape=True, trim_blocks=True).from_string("""
<dl class="puzzle-list">
{% for lesson, written in lessons %}<dt>{{ lesson.heading }}</dt>
{% for name, title in written %}<dd><a href="../{{ lesson.name }}/#{{ anchor(name) }}">{{ title }}</a></dd>
{% endfor %}{% endfor %}</dl>""")


def listed() -> list[tuple[lessons.Lesson, list[tuple[str, str]]]]:
    """Each lesson with puzzles, and for each of these its name and its title, in the order of the page."""
    found = []
    for lesson in lessons.numbered():
        titles = [(name, _as_a_title(puzzles.puzzle(name).TITLE)) for name in progress.puzzles(lesson)]
        if titles:
            found.append((lesson, titles))
    return found


def _as_a_title(words: str) -> str:
    return words[0].upper() + words[1:]


def render(source: str) -> str:
    """The HTML of the fence."""
    base.require_empty(source)
    return LIST.render(lessons=listed(), anchor=puzzle.anchor).strip()


format = base.formatter(render)
