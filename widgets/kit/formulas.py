"""The Markdown fence for the sheet of formulas: the boxed rules of all lessons, each as its lesson has it.

    ``` formulas
    ```

Nothing is written twice: a rule is read out of its lesson when the page is built.
"""

from __future__ import annotations

from jinja2 import Environment
from markupsafe import Markup

from widgets.kit import excerpts

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<nav class="formulas-contents" aria-label="Lessons on this sheet"><ul>
{% for lesson in lessons %}<li><a href="#{{ lesson.name }}">{{ lesson.title }}</a></li>
{% endfor %}</ul></nav>
{% for lesson in lessons %}<section class="formulas wide">
<h2 id="{{ lesson.name }}">{{ lesson.title }}<a class="headerlink" href="#{{ lesson.name }}" title="Link to this section">#</a></h2>
<div class="formulas-sheet">
{% for rule in lesson.boxes %}<div class="admonition rule">
<p class="admonition-title"><a href="../{{ lesson.name }}/#{{ rule.anchor }}">{{ rule.title[0] | upper }}{{ rule.title[1:] }}</a></p>
{{ rule.html }}
</div>
{% endfor %}</div></section>
{% endfor %}""")


def format(source, language, css_class, options, md, **kwargs) -> Markup:
    """The pymdownx superfences formatter."""
    return PAGE.render(lessons=excerpts.lessons_with("rule")).strip()
