"""The Markdown fence for the page of figures: all of them side by side, each a link to its own page.

    ``` gallery
    ```

The figures appear in the order in which the lessons show them. Their pictures are stored in the repository,
because only a browser can draw them: ``python -m course.pictures figures`` makes them anew, and a test says
when that is necessary. A figure without a stored picture, such as a new figure, is shown by its question
alone.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment

from course import lessons
from course.fences import base
from widgets.kit.widget import all_widgets

WIDTH, HEIGHT = 480, 300  # pixels of a stored picture
FOLDER = "assets/figures"  # under site/theme
STORED = Path(__file__).resolve().parents[2] / "site" / "theme" / FOLDER
PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<ul class="gallery">
{% for slug, shown_in in figures %}<li><a href="../{{ slug }}/">{% if slug in drawn %}<img src="../{{ folder }}/{{ slug }}.png" \
alt="" width="{{ width }}" height="{{ height }}" loading="lazy">{% endif %}<span>{{ widgets[slug].question }}</span></a>
<small>{{ shown_in }} · <code>{{ slug }}</code></small></li>
{% endfor %}</ul>""")


@cache
def figures() -> list[tuple[str, str]]:
    """(name, the title of the first page that shows it) of each figure."""
    shown = {slug: page.title for page in reversed(_pages()) for slug in page.widgets}
    order = [slug for page in _pages() for slug in page.widgets]
    known = [slug for slug in dict.fromkeys([*order, *sorted(all_widgets())]) if slug in all_widgets()]
    return [(slug, shown.get(slug, "on no page yet")) for slug in known]


def drawn() -> list[str]:
    """The names of the figures whose picture is stored."""
    return sorted(path.stem for path in STORED.glob("*.png"))


def _pages() -> list[lessons.Lesson]:
    numbered = lessons.numbered()
    return [*numbered, *(page for page in lessons.pages() if not page.number)]


def render(source: str) -> str:
    """The HTML of the fence."""
    base.require_empty(source)
    shown = {"figures": figures(), "widgets": all_widgets(), "drawn": drawn()}
    return PAGE.render(shown, folder=FOLDER, width=WIDTH, height=HEIGHT)


format = base.formatter(render)
