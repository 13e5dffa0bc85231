"""The Markdown fence for a reading path: an ordered route through the course, each step with a line that says why.

    ``` path
    key: oom                                    its address on the page, and what the browser keeps
    name: I have an OOM
    about: What it is for, in a sentence.
    steps:
      - symptoms.md#out-of-memory: Find the line that you see.
      - 03-interconnect.md?topology_placement.ep=8#w-topology_placement: A widget in a state.
    ```

A step's title is that of the page's section, or the question of its widget. A page, an anchor, a control or a value that is
not there stops the build with file and line. The page's script (site/theme/assets/js/paths.js) reads the finished list.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import yaml
from jinja2 import Environment
from markdown.extensions.toc import slugify
from markupsafe import Markup

from widgets.kit import boxes, excerpts, symptoms
from widgets.kit.controls import BadValue
from widgets.kit.locate import LESSONS, address, fault
from widgets.kit.widget import all_widgets

HEADING = re.compile(r"^#{2,3} (?P<text>.+?)(?: \{: .*\})?$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
WIDGET = re.compile(r"^``` widget\nname: (?P<slug>\w+)$", re.MULTILINE)
FIELDS = {"key", "name", "about", "steps"}
PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<details class="path" id="{{ path.key }}" data-path="{{ path.key }}" data-name="{{ path.name }}">
<summary>{{ path.name }}<span class="path__about">{{ path.about }}</span></summary>
<ol>
{% for step in path.steps %}<li><a href="{{ step.href }}"{% if step.lesson %} data-lesson{% endif %}>
{% if step.of %}<span class="path__of">{{ step.of }}: </span>{% endif %}{{ step.title }}</a><span class="path__why">{{ step.why }}</span></li>
{% endfor %}</ol>
</details>""")


class Step(NamedTuple):
    """One stop of a path: its address from another page, what it is part of, its title, and why it comes here."""

    href: str
    of: str
    title: str
    why: Markup
    lesson: bool


class Path(NamedTuple):
    """A path as its fence has it."""

    key: str
    name: str
    about: Markup
    steps: list[Step]


@cache
def anchors(page: str) -> dict[str, str]:
    """Anchor -> title of all that a page can be entered at: its sections, boxes, widgets and groups of symptoms."""
    text = (LESSONS / page).read_text(encoding="utf-8")
    found = {slugify(re.sub(r"[`$*]", "", each["text"]), "-"): each["text"] for each in HEADING.finditer(FENCED.sub("", text))}
    found |= {boxes.address(each["kind"], each["title"]): each["title"] for each in excerpts.BOX.finditer(text)}
    found |= {f"w-{each['slug']}": all_widgets()[each["slug"]].question for each in WIDGET.finditer(text)}
    if "``` symptoms" in text:
        found |= {slugify(title, "-"): title for title in symptoms.GROUPS}
    return found


def title_of(page: str) -> str:
    """A page's own title, with the number of a lesson before it."""
    title = re.search(r"^# (.+)$", (LESSONS / page).read_text(encoding="utf-8"), re.MULTILINE)[1]
    return f"{page[:2]} {title}" if page[:2].isdigit() else title


def _require_state(page: str, query: str) -> None:
    """BadValue unless the query sets controls of widgets that stand on the page."""
    for name, value in parse_qsl(query, strict_parsing=True):
        slug, _, control = name.partition(".")
        if f"w-{slug}" not in anchors(page):
            raise BadValue(f"there is no widget {slug!r} on {page}")
        all_widgets()[slug]().set_state({control: value})


def step(to: str, why: str) -> Step:
    """A step from its address and its reason; BadValue where the address leads nowhere."""
    parts = urlsplit(to)
    if not parts.path.endswith(".md") or not (LESSONS / parts.path).is_file():
        raise BadValue(f"there is no page {parts.path!r}")
    if parts.fragment and parts.fragment not in anchors(parts.path):
        raise BadValue(f"{parts.path} has no place {parts.fragment!r}; it has {', '.join(sorted(anchors(parts.path)))}")
    if parts.query:
        _require_state(parts.path, parts.query)
    whole, section = title_of(parts.path), anchors(parts.path).get(parts.fragment)
    query = f"?{urlencode(parse_qsl(parts.query), quote_via=quote)}" if parts.query else ""
    place = f"#{parts.fragment}" if parts.fragment else ""
    return Step(f"../{address(parts.path)}{query}{place}", whole if section else "", section or whole, excerpts.line(why),
                whole[:2].isdigit())


def read(source: str) -> Path:
    """A path from its fence; BadValue says what is wrong with it."""
    try:
        given = yaml.load(source, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise BadValue(f"this path is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(given, dict) or set(given) != FIELDS:
        raise BadValue(f"a path has {', '.join(sorted(FIELDS))} and nothing else")
    if not isinstance(given["steps"], list) or not all(isinstance(one, dict) and len(one) == 1 for one in given["steps"]):
        raise BadValue("each step of a path is one line: an address, a colon, and why it comes here")
    steps = [step(*pair) for one in given["steps"] for pair in one.items()]
    return Path(given["key"], given["name"], excerpts.line(given["about"]), steps)


def format(source, language, css_class, options, md, **kwargs) -> Markup:
    """The pymdownx superfences formatter."""
    try:
        return PAGE.render(path=read(source)).strip()
    except BadValue as error:
        raise fault(source, str(error)) from error
