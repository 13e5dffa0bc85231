"""The Markdown fence for the page of progress: what each lesson holds, counted from its source, and places for what was done.

    ``` progress
    ```

The page's script (site/theme/assets/js/progress.js) fills them from what this browser remembers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from jinja2 import Environment
from markupsafe import Markup

from engine import missions
from widgets.kit import boxes, fence, prose
from widgets.kit.locate import LESSONS
from widgets.kit.widget import all_widgets

FENCES = re.compile(r"^``` widget\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXERCISES = re.compile(r'^!!! exercise (?P<open>open )?"(?P<title>.+)"\n(?P<body>(?:\n|    .*\n)+)', re.MULTILINE)
NUMBERS = re.compile(r"`#!n (.+?)`", re.DOTALL)
COLUMNS = {"read": "Read", "predictions": "Predictions", "first": "Right at first", "targets": "Targets",
           "exercises": "Exercises"}
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
<div class="progress-doing"><button type="button" data-export>Save to a file</button>
<label>Take in a file<input type="file" accept=".json,application/json" data-import></label>
<button type="button" data-clear>Clear everything</button>
<span data-asking hidden>Clear all that is remembered? <button type="button" data-sure>Yes, clear</button>
<button type="button" data-keep>No, keep</button></span></div>
<p class="progress-said" data-said role="status"></p>
</div>
""")


def predictions(text: str) -> list[str]:
    """'memory_stack.one-h100-holds-…' for each widget of a lesson that asks first."""
    asked = (yaml.load(source, Loader=yaml.BaseLoader) for source in FENCES.findall(text))
    return [f"{options['name']}.{fence.key(options['predict'])}" for options in asked if "predict" in options]


def targets(text: str) -> list[str]:
    """The widgets of a lesson that have something to find."""
    names = (yaml.load(source, Loader=yaml.BaseLoader)["name"] for source in FENCES.findall(text))
    return [name for name in names if all_widgets()[name].break_it]


def exercises(text: str) -> dict[str, int]:
    """Anchor of each exercise -> how many parts of it are to be answered."""
    found = {}
    for box in EXERCISES.finditer(text):
        asked = sum(bool(prose.FORM.match(source)["asked"]) for source in NUMBERS.findall(box["body"]))
        found[boxes.address("exercise", box["title"])] = asked + bool(box["open"])
    return found


def contents(path: Path) -> dict:
    """What there is to do in a lesson."""
    text = path.read_text(encoding="utf-8")
    return {"lesson": path.stem, "predictions": predictions(text), "targets": targets(text), "exercises": exercises(text)}


def lessons(folder: Path = LESSONS) -> list[tuple[str, str, str]]:
    """(name, title, contents as JSON) of every lesson, by number."""
    found = []
    for path in sorted(folder.glob("[0-9][0-9]-*.md")):
        title = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]
        found.append((path.stem, f"{path.stem[:2]} {title}", json.dumps(contents(path))))
    return found


def format(source, language, css_class, options, md, **kwargs) -> Markup:
    """The pymdownx superfences formatter."""
    return PAGE.render(lessons=lessons(), columns=COLUMNS, missions=len(missions.missions())).strip()
