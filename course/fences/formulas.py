"""The Markdown fence for the sheet of formulas: the boxed rules of all lessons, as in their lessons.

    ``` formulas
    ```

Nothing is written twice: a rule is read from its lesson when the page is built.
"""

from __future__ import annotations

from jinja2 import Environment

from course import excerpts
from course.fences import base
from course.links.boxes import HELD, small_print

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<nav class="formulas-contents" aria-label="Lessons on this sheet"><ul>
{% for lesson in lessons %}<li><a href="#{{ lesson.name }}">{{ lesson.heading }}</a></li>
{% endfor %}</ul></nav>
{% for lesson in lessons %}<section class="formulas wide">
<h2 id="{{ lesson.name }}">{{ lesson.heading }}<a class="headerlink" href="#{{ lesson.name }}" title="Link to this section">#</a></h2>
<div class="formulas-sheet">
{% for rule in lesson.boxes("rule") %}<div class="admonition rule">
<p class="admonition-title"><a href="../{{ lesson.name }}/#{{ rule.anchor }}">{{ rule.name[0] | upper }}{{ rule.name[1:] }}</a></p>
{{ html(rule.source, lesson) }}
{% if small_print(lesson, rule.anchor) %}<p class="{{ held }}" data-search-exclude>{{ small_print(lesson, rule.anchor) }}</p>
{% endif %}</div>
{% endfor %}</div></section>
{% endfor %}""")


def render(source: str) -> str:
    """The HTML of the fence."""
    base.require_empty(source)
    return PAGE.render(
        lessons=excerpts.lessons_with("rule"), html=excerpts.html, small_print=small_print, held=HELD
    ).strip()


format = base.formatter(render)
