"""The Markdown fence for the list of all decks of slides.

``` slides
```
"""

from __future__ import annotations

from jinja2 import Environment

from course import lessons
from course.fences import base

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<ul class="slides">
{% for lesson in lessons %}<li><a href="../{{ lesson.slides }}">{{ lesson.number }} {{ lesson.title }}</a></li>
{% endfor %}</ul>
""")


def render(source: str) -> str:
    """The HTML of the fence."""
    base.require_empty(source)
    return PAGE.render(lessons=lessons.numbered()).strip()


format = base.formatter(render)
