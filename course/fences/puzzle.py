"""The Markdown fence for a puzzle, a function that the reader writes in the page.

    ``` puzzle
    name: one_f_one_b              a module of engine/puzzles
    figure: pipeline_timeline      the figure of this page that it drives, if it drives one
    ```

Statement, starting code, hints, solution and checks come from the module, because the command line uses them
as well. An unknown name, key or figure stops the build with file and line. The page's scripts are in
site/theme/assets/puzzle; they are fetched when a reader turns to the editor, and Python only at the first
*run*.
"""

from __future__ import annotations

import re

from jinja2 import Environment

from course import strict_yaml, widget_html
from course.fences import base
from course.strict_yaml import Refused
from engine import puzzles
from widgets.kit.widget import all_widgets

LEAST_ROWS = 10
PUZZLE = Environment(autoescape=True, trim_blocks=True).from_string("""
<section class="puzzle" id="{{ id }}" data-puzzle="{{ name }}" data-rows="{{ rows }}"{% if figure %} data-figure="{{ figure }}"{% endif %} aria-labelledby="{{ id }}-title">
<p class="puzzle-title" id="{{ id }}-title" role="heading" aria-level="3">Write it yourself: {{ title }}</p>
<div class="puzzle-task">{{ statement }}</div>
<div class="puzzle-editor" data-search-exclude="yes"><div class="puzzle-lines" aria-hidden="true">{% for n in range(lines) %}<span>{{ n + 1 }}</span>{% endfor %}</div>
<textarea rows="{{ rows }}" wrap="off" readonly spellcheck="false" autocapitalize="off" autocomplete="off" aria-label="Your code for {{ title }}" aria-describedby="{{ id }}-keys">
{{ start }}</textarea></div>
<p class="puzzle-keys" id="{{ id }}-keys">Tab indents; Escape, then Tab, leaves the editor. Ctrl + Enter runs, with Shift it checks.</p>
<p class="puzzle-doing"><button type="button" data-run>Run</button> <button type="button" data-check>Check</button> <button type="button" data-again>Start again</button> <button type="button" data-link>Link with my code</button></p>
<p class="puzzle-said" data-said role="status"></p>
<div class="puzzle-printed" data-printed role="group" aria-label="What your code printed" hidden></div>
<div data-search-exclude="yes">
{% for hint in hints %}<details class="puzzle-hint"><summary>{{ "Hint" if loop.first else "Next hint" }}</summary><p>{{ hint }}</p>
{% endfor %}<details class="puzzle-hint"><summary>Show me a way</summary><pre><code data-solution>{{ solution }}</code></pre><p class="puzzle-doing"><button type="button" data-way>Put it into the editor</button></p></details>
{% for hint in hints %}</details>{% endfor %}</div>
<p class="puzzle-open"><strong>Afterwards.</strong> {{ open }} {{ outside }}</p>
</section>
""")
OUTSIDE = "With your own Python: `system-ml puzzle {name}` writes a file, and `--check` judges it."


def anchor(name: str) -> str:
    """The id of a puzzle's place in its lesson."""
    return "puzzle-" + name.replace("_", "-")


def render(source: str) -> str:
    """The HTML of one fence."""
    options = base.options(source, ("name", "figure"), ("name",))
    name, figure = options["name"], options.get("figure", "")
    if name not in puzzles.names():
        raise Refused(
            f"there is no puzzle {name!r}; there are {', '.join(puzzles.names())}", _line(source, "name")
        )
    if figure and figure not in all_widgets():
        raise Refused(f"there is no widget {figure!r} to drive", _line(source, "figure"))
    if figure and not all_widgets()[figure].given:
        raise Refused(f"{figure} takes nothing from a puzzle (Widget.given)", _line(source, "figure"))
    puzzle = puzzles.puzzle(name)
    lines = puzzle.START.rstrip("\n").count("\n") + 1
    return PUZZLE.render(
        id=anchor(name),
        name=name,
        figure=figure,
        title=puzzle.TITLE,
        statement=widget_html.rich(puzzle.STATEMENT),
        start=puzzle.START.rstrip("\n"),
        lines=lines,
        rows=max(LEAST_ROWS, lines + 1),
        hints=[widget_html.rich_line(hint) for hint in puzzle.HINTS],
        solution=puzzle.SOLUTION,
        open=widget_html.rich_line(puzzle.OPEN),
        outside=widget_html.rich_line(OUTSIDE.format(name=name)),
    ).strip()


def _line(source: str, key: str) -> int:
    return strict_yaml.line_of(source, key)


def depends_on(source: str) -> tuple[str, ...]:
    """The modules behind a fence's HTML."""
    name = re.search(r"^name:\s*(\w+)\s*$", source, re.MULTILINE)
    return (__name__, *((f"{puzzles.__name__}.{name[1]}",) if name and name[1] in puzzles.names() else ()))


format = base.formatter(render)
