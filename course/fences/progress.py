"""The Markdown fence for the page of progress: the contents of each lesson, counted from its source, and
places for the results and for the errors of one's predictions.

    ``` progress
    ```

The page's script (site/theme/assets/js/progress.js) fills them from what this browser remembers.
"""

from __future__ import annotations

import json

from jinja2 import Environment

from course import lessons, numbers
from course.fences import base, prediction
from course.lessons import Lesson, inline
from engine.exam import missions
from widgets.kit.widget import all_widgets

COLUMNS = {
    "read": "Read",
    "predictions": "Predictions",
    "first": "Right at first",
    "targets": "Targets",
    "puzzles": "Puzzles",
    "exercises": "Exercises",
}
PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<div class="progress" data-progress>
<table data-progress-table>
<thead><tr><th>Lesson</th>{% for label in columns.values() %}<th>{{ label }}</th>{% endfor %}</tr></thead>
<tbody>
{% for lesson, title, contents in lessons %}<tr data-contents="{{ contents }}">
<th scope="row"><a href="../{{ lesson }}/" data-lesson>{{ title }}</a></th>
{%- for name, label in columns.items() %}<td data-cell="{{ name }}" data-label="{{ label }}">–</td>{% endfor %}</tr>
{% endfor %}</tbody>
<tfoot><tr><th scope="row">All</th>{% for name, label in columns.items() %}<td data-cell="{{ name }}" data-label="{{ label }}">–</td>{% endfor %}</tr></tfoot>
</table>
<p>Missions won on the <a href="../planner/">planner's page</a>: <span data-missions-won="{{ missions }}">–</span>.
Examinations: <span data-exams>–</span>.</p>
<div class="calibration" data-calibration>
<p class="calibration-title" id="calibration" role="heading" aria-level="2">How far off you were</p>
<p data-none>Nothing predicted yet. What you say before a figure opens is held against what it shows, and adds up here.</p>
<table aria-labelledby="calibration"><tbody></tbody></table>
<p data-key hidden>Each dot is a number that you predicted: left of the line too low, right of it too high, from a hundredth to a
hundred times what it is. In the band it was within a factor of two.</p>
<label><input type="checkbox" data-cover-figures checked> Cover each figure until I have predicted</label>
</div>
<div class="progress-doing"><button type="button" data-export>Save to a file</button>
<label>Take in a file<input type="file" accept=".json,application/json" data-import></label>
<button type="button" data-clear>Clear everything</button>
<span data-asking hidden>Clear all that is remembered? <button type="button" data-sure>Yes, clear</button>
<button type="button" data-keep>No, keep</button></span></div>
<p class="progress-said" data-said role="status"></p>
</div>
""")


def predictions(lesson: Lesson) -> list[str]:
    """'memory_stack.one-h100-holds-…' for each widget of a lesson that asks for a prediction."""
    asked = (options for options in lesson.options("widget") if "predict" in options)
    return [f"{options['name']}.{prediction.key(options['predict'])}" for options in asked]


def targets(lesson: Lesson) -> list[str]:
    """The widgets of a lesson that have a target to find."""
    return [name for name in lesson.widgets if all_widgets()[name].break_it]


def puzzles(lesson: Lesson) -> list[str]:
    """The functions of a lesson that a reader can write."""
    return [options["name"] for options in lesson.options("puzzle")]


def exercises(lesson: Lesson) -> dict[str, int]:
    """Anchor of each exercise -> the number of its parts to be answered."""
    found = {}
    for box in lesson.exercises:
        asked = sum(bool(numbers.form(source)["asked"]) for source in inline(box.source))
        found[box.anchor] = asked + box.open
    return found


def contents(lesson: Lesson) -> dict:
    """What there is to do in a lesson."""
    return {
        "lesson": lesson.name,
        "predictions": predictions(lesson),
        "targets": targets(lesson),
        "puzzles": puzzles(lesson),
        "exercises": exercises(lesson),
    }


def rows() -> list[tuple[str, str, str]]:
    """(name, title, contents as JSON) of every lesson, by number."""
    return [(lesson.name, lesson.heading, json.dumps(contents(lesson))) for lesson in lessons.numbered()]


def render(source: str) -> str:
    """The HTML of the fence."""
    base.require_empty(source)
    return PAGE.render(lessons=rows(), columns=COLUMNS, missions=len(missions.missions())).strip()


format = base.formatter(render)
