"""The Markdown fence for a reading path: an ordered route through the course, with a reason for each step.

    ``` path
    key: oom                                    its address on the page, and what the browser keeps
    name: I have an OOM
    about: What it is for, in a sentence.
    steps:
      - symptoms.md#out-of-memory: Find the line that you see.
      - 10-nd-parallelism.md?topology_placement.ep=8#w-topology_placement: A widget in a state.
    ```

The title of a step is the title of the page's section, or the question of its widget. An unknown page,
anchor, control or value stops the build with file and line. The page's script (site/theme/assets/js/paths.js)
reads the finished list.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from jinja2 import Environment
from markupsafe import Markup

from course import excerpts, lessons, places
from course.fences import base, symptoms
from course.lessons import LESSONS, address
from widgets.kit.controls import BadValue
from widgets.kit.widget import all_widgets

FIELDS = ("key", "name", "about", "steps")
PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<details class="path" id="{{ path.key }}" data-path="{{ path.key }}" data-name="{{ path.name }}">
<summary>{{ path.name }} <span class="path__about">{{ path.about }}</span></summary>
<ol>
{% for step in path.steps %}<li><a href="{{ step.href }}"{% if step.lesson %} data-lesson{% endif %}>
{% if step.of %}<span class="path__of">{{ step.of }}: </span>{% endif %}{{ step.title }}</a> <span class="path__why">{{ step.why }}</span></li>
{% endfor %}</ol>
</details>""")


class Step(NamedTuple):
    """One stop of a path: its address from another page, what it is part of, its title, and the reason to go
    there."""

    href: str
    of: str
    title: str
    why: Markup
    lesson: bool


class Path(NamedTuple):
    """A path as written in its fence."""

    key: str
    name: str
    about: Markup
    steps: list[Step]


def anchors(page: str) -> dict[str, str]:
    """Anchor -> title for every entry point of a page, including the rows of symptoms."""
    holds_symptoms = any(fence.kind == "symptoms" for fence in lessons.read(page).fences)
    return places.anchors(page) | (symptoms.anchors() if holds_symptoms else {})


def _require_state(page: str, query: str) -> None:
    """BadValue unless the query sets controls of widgets on the page."""
    for name, value in parse_qsl(query, strict_parsing=True):
        slug, _, control = name.partition(".")
        if f"w-{slug}" not in anchors(page):
            raise BadValue(f"there is no widget {slug!r} on {page}")
        all_widgets()[slug]().set_state({control: value})


def step(to: str, why: str) -> Step:
    """A step from its address and its reason; BadValue if the address does not exist."""
    parts = urlsplit(to)
    if not parts.path.endswith(".md") or not (LESSONS / parts.path).is_file():
        raise BadValue(f"there is no page {parts.path!r}")
    if parts.fragment and parts.fragment not in anchors(parts.path):
        raise BadValue(
            f"{parts.path} has no place {parts.fragment!r}; it has {', '.join(sorted(anchors(parts.path)))}"
        )
    if parts.query:
        _require_state(parts.path, parts.query)
    whole, section = lessons.read(parts.path).heading, anchors(parts.path).get(parts.fragment)
    query = f"?{urlencode(parse_qsl(parts.query), quote_via=quote)}" if parts.query else ""
    place = f"#{parts.fragment}" if parts.fragment else ""
    return Step(
        f"../{address(parts.path)}{query}{place}",
        whole if section else "",
        section or whole,
        excerpts.line(why, lessons.current()),
        bool(lessons.number_of(parts.path)),
    )


def read(source: str) -> Path:
    """A path from its fence; BadValue says what is wrong with it."""
    given = base.options(source, FIELDS, needed=FIELDS)
    if not isinstance(given["steps"], list) or not all(
        isinstance(one, dict) and len(one) == 1 for one in given["steps"]
    ):
        raise BadValue("each step of a path is one line: an address, a colon, and why it comes here")
    steps = [step(*pair) for one in given["steps"] for pair in one.items()]
    return Path(given["key"], given["name"], excerpts.line(given["about"], lessons.current()), steps)


def render(source: str) -> str:
    """The HTML of one fence."""
    return PAGE.render(path=read(source)).strip()


format = base.formatter(render)
