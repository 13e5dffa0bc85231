"""The Markdown fence for the page of symptoms: what one sees, its cause, and how to tell it from similar
ones.

    ``` symptoms
    ```

Its rows are written for this page, in course/symptoms.yml, whose head describes a row. They are grouped by
what a reader knows. A field above them accepts a description or a whole pasted error message and moves the
likeliest rows to the top; site/theme/assets/js/ranking.js ranks them on the reader's own machine. An error in
a row stops the build with file, line and what is allowed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from course import excerpts, lessons, places, strict_yaml
from course.fences import base
from course.lessons import LESSONS, LessonFault, address
from course.strict_yaml import Refused

FILE = Path(__file__).parents[1] / "symptoms.yml"
PARTS = ("groups", "rows", "alike")
GROUP = ("title", "about", "also")
ROW = ("group", "see", "means", "tell", "lesson", "words", "lines")
TEXTS = ("see", "means", "tell")
LONGEST = 20_000  # characters of a pasted text that are read: the last ones, where errors are
PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<p class="symptoms-find" data-symptoms-find data-alike="{{ alike }}" data-longest="{{ longest }}">
<label for="symptom-words">What do you see?</label>
<textarea id="symptom-words" rows="2" autocomplete="off" spellcheck="false" aria-describedby="symptom-said" \
placeholder="30 % slower on 16 GPUs, loss became NaN, or a whole error message"></textarea>
<span id="symptom-said" role="status" data-symptoms-said></span>
<span class="symptoms-note">What you type stays in this page.</span></p>
<section class="symptoms-found" aria-label="The likeliest rows" data-symptoms-found hidden></section>
{% for group in groups %}<section class="symptoms-group" data-symptoms-group>
{% if group.also %}<span id="{{ group.also }}"></span>{% endif %}
<h2 id="{{ group.anchor }}">{{ group.title }}<a class="headerlink" href="#{{ group.anchor }}" title="Link to this section">#</a></h2>
<p>{{ group.about }}</p>
{% for row in rows if row.group == group.key %}<article class="symptom" data-words="{{ row.words }}" data-lines="{{ row.lines_json }}">
<h3 class="symptom-see" id="{{ row.key }}">{{ row.shown("see") }}<a class="headerlink" href="#{{ row.key }}" title="Link to this row">#</a></h3>
<p class="symptom-means">{{ row.shown("means") }}</p>
<p class="symptom-tell"><b>How to tell.</b> {{ row.shown("tell") }}</p>
<p class="symptom-lesson"><a href="{{ row.href }}">{{ row.section }}</a></p>
</article>
{% endfor %}</section>
{% endfor %}""")


@dataclass(frozen=True)
class Group:
    """What a reader may know; ``also`` is a former address of its section."""

    key: str
    title: str
    about: str
    also: str

    @property
    def anchor(self) -> str:
        """Its anchor on the page."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Row:
    """One symptom; texts are Markdown."""

    key: str
    group: str
    see: str
    means: str
    tell: str
    lesson: str
    words: str
    lines: tuple[str, ...]

    def shown(self, name: str) -> Markup:
        """One of its texts, formatted for the page."""
        return excerpts.line(getattr(self, name), None)

    @property
    def lines_json(self) -> str:
        """Its lines, in the form that the page's script reads."""
        return json.dumps(self.lines, ensure_ascii=False)

    @property
    def href(self) -> str:
        """The address where its lesson explains it."""
        page, _, place = self.lesson.partition("#")
        return f"../{address(page)}#{place}"

    @property
    def section(self) -> str:
        """The lesson and its section, as a reader sees them."""
        page, _, place = self.lesson.partition("#")
        title, whole = places.anchors(page)[place], lessons.read(page).heading
        return f"{whole}: {re.sub('[`$*]', '', title)}"


@dataclass(frozen=True)
class Symptoms:
    """The contents of the page; ``alike`` are ways of saying the same, line by line."""

    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    alike: tuple[tuple[str, ...], ...]


def _of(found: dict, text: str, allowed: tuple[str, ...], needed: tuple[str, ...], *where: str) -> dict:
    """The mapping at this place of the file, with these keys."""
    for name in where:
        found = found[name]
    at = strict_yaml.line_of(text, *where)
    if not isinstance(found, dict):
        raise Refused(f"{where[-1]} must hold lines 'key: value'", at)
    if unknown := [key for key in found if key not in allowed]:
        line = strict_yaml.line_of(text, *where, unknown[0])
        raise Refused(f"unknown key {unknown[0]!r}; allowed are {', '.join(allowed)}", line)
    if missing := [key for key in needed if not found.get(key)]:
        raise Refused(f"{where[-1]} needs a line '{missing[0]}: …'", at)
    return found


def _row(key: str, given: dict, groups: dict, text: str) -> Row:
    """A row from its mapping; Refused says what is wrong with it."""
    at = lambda name: strict_yaml.line_of(text, "rows", key, name)
    if given["group"] not in groups:
        raise Refused(f"there is no group {given['group']!r}; there are {', '.join(groups)}", at("group"))
    lines = given.get("lines", [])
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise Refused("lines must be a list of texts", at("lines"))
    for name in (*TEXTS, "lesson", "words"):
        if not isinstance(given[name], str):
            raise Refused(f"{name} must be a text", at(name))
    page, _, place = given["lesson"].partition("#")
    if not page.endswith(".md") or not (LESSONS / page).is_file():
        raise Refused(f"there is no page {page!r}", at("lesson"))
    if place not in places.anchors(page):
        allowed = ", ".join(sorted(places.anchors(page)))
        raise Refused(f"{page} has no place {place!r}; it has {allowed}", at("lesson"))
    texts = {name: " ".join(given[name].split()) for name in (*TEXTS, "lesson", "words")}
    return Row(key, given["group"], **texts, lines=tuple(lines))


def read(text: str) -> Symptoms:
    """All rows of a file's text; Refused says what is wrong and on which line."""
    found = strict_yaml.mapping(text, PARTS)
    groups = {}
    for key in _of(found, text, PARTS, PARTS)["groups"]:
        given = _of(found, text, GROUP, ("title", "about"), "groups", key)
        groups[key] = Group(key, given["title"], given["about"], given.get("also", ""))
    rows = []
    for key in found["rows"]:
        given = _of(found, text, ROW, ("group", *TEXTS, "lesson", "words"), "rows", key)
        rows.append(_row(key, given, groups, text))
    alike = tuple(tuple(way.strip() for way in line.split("|")) for line in found["alike"])
    return Symptoms(tuple(groups.values()), tuple(rows), alike)


@cache
def known() -> Symptoms:
    """The rows of the page; a LessonFault with file and line for an error in them."""
    try:
        return read(FILE.read_text(encoding="utf-8"))
    except Refused as refused:
        raise LessonFault(f"course/{FILE.name}:{refused.line + 1}: {refused}") from refused


def anchors() -> dict[str, str]:
    """Anchor -> title, for every entry point of the page."""
    found = {row.key: re.sub("[`*]", "", row.see) for row in known().rows}
    for group in known().groups:
        found |= {group.anchor: group.title} | ({group.also: group.title} if group.also else {})
    return found


def render(source: str) -> Markup:
    """The HTML of the fence."""
    base.require_empty(source)
    page = PAGE.render(
        groups=known().groups,
        rows=known().rows,
        alike=json.dumps(known().alike, ensure_ascii=False),
        longest=LONGEST,
    )
    return Markup(re.sub(r"\n\s*\n", "\n", page).strip())


format = base.formatter(render)
