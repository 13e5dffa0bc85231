"""The Markdown fence for the sheets of a decision log: one for each mission of the planner, one for the
examination, one for the lessons' design exercises, to be printed and filled in by hand.

    ``` decisions
    ```

The tasks are in the missions' own words, and the fields for a layout are the controls of the missions'
figures.
"""

from __future__ import annotations

from jinja2 import Environment

from course import lessons
from course.fences import base
from course.fences.missions import asks
from engine.exam import missions
from widgets.kit.widget import all_widgets

CHANGES = 6  # lines on a sheet for changes to the layout
MISSION, EXAMINATION = "layout_missions", "layout_exam"
GIVEN = ("mission", "seed", "handed_in")  # controls that are no answer to the task
PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<div class="wide sheets" data-search-exclude>
{% for sheet in sheets %}<section class="sheet" id="{{ sheet.key }}" aria-labelledby="{{ sheet.key }}-name">
<p class="sheet-who"><span>Name</span><span>Date</span></p>
<p class="sheet-name" id="{{ sheet.key }}-name" role="heading" aria-level="3">{{ sheet.name }}</p>
{% if sheet.brief %}<p>{{ sheet.brief }}</p>{% endif %}
{% if sheet.asks %}<p class="sheet-asks">{{ sheet.asks }}</p>{% endif %}
{% if sheet.choices %}<ul class="sheet-choices">{% for choice in sheet.choices %}<li>{{ choice }}</li>{% endfor %}</ul>{% endif %}

<p class="sheet-line">Before I touch anything, I think that this binds, because</p>
{% if sheet.fields %}<p class="sheet-fields"><span>My first layout:</span>{% for label in sheet.fields %} <span>{{ label }}</span>{% endfor %}</p>{% endif %}

<table class="sheet-log"><thead><tr><th></th><th>I change</th><th>I expect, as a number, by this rule</th><th>I see</th><th>So</th></tr></thead>
<tbody>{% for line in lines %}<tr><td>{{ line }}</td><td></td><td></td><td></td><td></td></tr>{% endfor %}</tbody></table>
{% if sheet.fields %}<p class="sheet-fields"><span>What I hand in:</span>{% for label in sheet.fields + sheet.results %} <span>{{ label }}</span>{% endfor %}</p>{% endif %}

<p class="sheet-line">What the better answer spends that mine does not, or the other way round</p>
</section>
{% endfor %}</div>
""")


def fields(slug: str) -> list[str]:
    """The names of what a reader chooses in a figure."""
    controls = all_widgets()[slug].controls()
    return [control.label for name, control in controls.items() if name not in GIVEN]


def results(slug: str, *names: str) -> list[str]:
    """The names of these readouts of a figure."""
    found = all_widgets()[slug].methods("readout_label")
    return [found[name].readout_label for name in names]


def designs() -> list[str]:
    """The open exercises of all lessons, by lesson."""
    return [
        f"{lesson.number} {exercise.title.removeprefix('Design: ')}"
        for lesson in lessons.numbered()
        for exercise in lesson.exercises
        if exercise.open
    ]


def sheets() -> list[dict]:
    """Every sheet, in the order in which they are printed."""
    of_missions = [
        {
            "key": f"sheet-{mission.key.replace('.', '-')}",
            "name": f"Mission: {mission.name}",
            "brief": mission.brief,
            "asks": asks(mission),
            "fields": fields(MISSION),
            "results": results(MISSION, "mfu", "days", "bill"),
        }
        for mission in missions.missions().values()
    ]
    examination = {
        "key": "sheet-examination",
        "name": "Examination, number",
        "fields": fields(EXAMINATION),
        "results": results(EXAMINATION, "points"),
    }
    design = {"key": "sheet-design", "name": "A design exercise", "choices": designs()}
    return [*of_missions, examination, design]


def render(source: str) -> str:
    """The HTML of the fence."""
    base.require_empty(source)
    return PAGE.render(sheets=sheets(), lines=range(1, CHANGES + 1)).strip()


format = base.formatter(render)
