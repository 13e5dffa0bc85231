"""Markdown extension: a phrase in a sentence sets the figure that it is about, or highlights a part of it.

    With [as many micro-batches as stages](figure "stages: 16, micro_batches: 16") nearly half is idle.
    What you pay with is [the idle stretches]{lights: idle}.

Both refer to the nearest figure: the next one in their section, or else the one before. Another one on the
page is named: ``(figure:bubble_map "stages: 8")``, ``{lights: bubbles, figure: bubble_map}``. A link sets the
controls that it names and all others to the figure's fence, so that the sentence is true; the figure then
says each control that it changed. Where the sentence is true of any state, it ends in ``…``: with
``(figure "schedule: gpipe, …")`` the others stay as the reader has them. A light is a part of the widget or
one of its ``lights`` (widgets/kit/guide.py).

Without JavaScript a link leads to the widget's own page in that state, and a light is plain text. The rest is
in site/theme/assets/widget/drives.js.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as etree
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markdown import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from course import lessons, strict_yaml
from course.lessons import FENCE, LessonFault
from widgets.kit import guide
from widgets.kit.controls import BadValue
from widgets.kit.widget import Widget, all_widgets

if TYPE_CHECKING:
    from markdown.core import Markdown

WORDS = r"\[(?P<words>[^\[\]]+)\]"
LINK = WORDS + r'(?P<piece>\(figure(?::(?P<slug>[^\s)"]*))?(?:\s+"(?P<state>[^"]*)")?\s*\))'
LIGHT = WORDS + r"(?P<piece>\{(?P<options>\s*\w+:[^{}]*)\})"
SECTION = re.compile(r"^## ", re.MULTILINE)
UNTIL_LAST = "button"  # stands for a link or a light until ``Last``, since other extensions ignore buttons
AS_THE_READER_HAS_IT = "…"
TO_SAY = {"lights": "what it lights", "figure": "another figure of the page"}


class Refused(BadValue):
    """A fault in a link or a light."""


# -- which figure --------------------------------------------------------------------------------------------
def figures(text: str) -> list[tuple[int, str, str]]:
    """(position, widget, the fence's lines) for each figure of a page."""
    found = [(each.start(), each["source"]) for each in FENCE.finditer(text) if each["kind"] == "widget"]
    named = [(at, re.search(r"^\s*name:\s*(\w+)\s*$", source, re.MULTILINE), source) for at, source in found]
    return [(at, name[1], source) for at, name, source in named if name and name[1] in all_widgets()]


def nearest(text: str, at: int) -> str:
    """The widget that a sentence at this position refers to: the next in its section, else the one before,
    else the first."""
    shown = figures(text)
    if not shown:
        raise Refused("this page shows no figure")
    plain = FENCE.sub(lambda fence: " " * len(fence[0]), text)  # a comment in code is not a heading
    end = next((found.start() for found in SECTION.finditer(plain) if found.start() > at), len(text))
    after = [slug for where, slug, _ in shown if at < where < end]
    before = [slug for where, slug, _ in shown if where < at]
    return (after[:1] or before[-1:] or [shown[0][1]])[0]


def require_shown(text: str, slug: str) -> str:
    """The slug, if the page shows that widget."""
    shown = [name for _, name, _ in figures(text)]
    if slug not in shown:
        raise Refused(f"this page shows no figure {slug!r}; it shows {', '.join(shown) or 'none'}")
    return slug


def of_fence(text: str, slug: str) -> dict[str, str]:
    """The controls that the widget's first fence on a page sets."""
    source = next(source for _, name, source in figures(text) if name == slug)
    controls = all_widgets()[slug].controls()
    return {key: value for key, value in strict_yaml.mapping(source).items() if key in controls}


# -- the two forms -------------------------------------------------------------------------------------------
def told(written: str) -> tuple[dict[str, str], bool]:
    """The controls that a link sets, and whether the others stay as the reader has them (a final "…" says
    so)."""
    rest = written.rstrip().removesuffix(AS_THE_READER_HAS_IT)
    keeps = rest != written.rstrip()
    return options(rest.rstrip().removesuffix(",") if keeps else written), keeps


def options(written: str) -> dict[str, str]:
    """'stages: 16, schedule: gpipe' as a mapping."""
    try:
        found = strict_yaml.mapping("{" + " ".join(written.split()) + "}")
    except BadValue as error:
        raise Refused(f"{error}; write control: value, control: value") from None
    if wrong := next((key for key, value in found.items() if not isinstance(value, str) or not value), None):
        raise Refused(f"{wrong!r} needs a value: {wrong}: …")
    return found


def in_state(slug: str, state: Mapping[str, str], home: Mapping[str, str]) -> Widget:
    """The widget in a link's state; Refused for anything it does not accept."""
    widget = all_widgets()[slug]()
    if not state:
        raise Refused(f"a link to a figure says what it sets; {slug} has {', '.join(widget.controls())}")
    widget.set_state({**home, **state})
    return widget


class Source(Preprocessor):
    """Keeps the page's source, which is needed to find a sentence's figure."""

    def run(self, lines: list[str]) -> list[str]:
        """The lines, unchanged."""
        page: Any = self.md
        page.figures_source, page.figures_seen = "\n".join(lines), Counter()
        return lines


class Place:
    """The page that a piece of text belongs to: its lesson, even if the box with it is quoted on another
    page."""

    def __init__(self, md: Markdown, piece: str) -> None:
        page: Any = md
        lesson = lessons.current()
        self.text: str = lesson.body if lesson else page.figures_source
        self.up = "" if lesson and not lesson.address else "../"  # from the page to the widgets' own
        found = re.compile(r"\s+".join(map(re.escape, piece.split()))).finditer(self.text)
        places, seen = [each.start() for each in found], page.figures_seen
        self.at = places[min(seen[piece], len(places) - 1)] if places else 0
        seen[piece] += 1

    def slug(self, named: str | None) -> str:
        """The widget that the piece refers to."""
        return require_shown(self.text, named) if named is not None else nearest(self.text, self.at)


class Pieces(InlineProcessor):
    """Reads a link that sets a figure, or a phrase that lights its marks. A fault in it stops the build
    with file and line."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[etree.Element, int, int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Hook of Python-Markdown: the element, whose words are still to be parsed as Markdown."""
        try:
            made = etree.Element(UNTIL_LAST, self.attributes(m, Place(self.md, m["piece"])))
        except LessonFault:
            raise
        except BadValue as error:
            raise lessons.fault(m["piece"], str(error)) from error
        made.text = m["words"]
        return made, m.start(), m.end()

    def attributes(self, m: re.Match[str], place: Place) -> dict[str, str]:
        """The attributes of the element."""
        raise NotImplementedError


class Links(Pieces):
    """A link that sets controls of a figure: ``[words](figure "control: value")``."""

    def attributes(self, m: re.Match[str], place: Place) -> dict[str, str]:
        """The state that it sets, as texts, and the address of the widget's own page in that state."""
        slug, (state, keeps) = place.slug(m["slug"]), told(m["state"] or "")
        home = of_fence(place.text, slug)
        widget = in_state(slug, state, home)
        query = {f"{slug}.{name}": text for name, text in guide.written(widget, {**home, **state}).items()}
        about = guide.settings(widget, state)
        return {
            "class": "drives",
            "href": f"{place.up}{slug}/?{urlencode(query)}",
            "title": f"Sets {about} in the figure" + ("" if keeps else "; the rest as it was at first"),
            "data-figure": f"w-{slug}",
            "data-set": json.dumps(guide.written(widget, state)),
            "data-about": about,
            **({"data-keeps": "yes"} if keeps else {}),
        }


class Lights(Pieces):
    """Words that highlight a part of a figure: ``[words]{lights: part}``."""

    def attributes(self, m: re.Match[str], place: Place) -> dict[str, str]:
        """The part that the words highlight, with a description in words."""
        asked = options(m["options"])
        if wrong := [key for key in asked if key not in TO_SAY]:
            says = ", ".join(f"{key} ({what})" for key, what in TO_SAY.items())
            raise Refused(f"unknown key {wrong[0]!r}; allowed are {says}")
        if "lights" not in asked:
            raise Refused("this needs what it lights: {lights: …}")
        slug = place.slug(asked.get("figure"))
        light = guide.require_light(all_widgets()[slug], asked["lights"])
        return {
            "class": "lights",
            "data-figure": f"w-{slug}",
            "data-light": asked["lights"],
            "data-about": light.words,
        }


class Last(Treeprocessor):
    """Turns both into their final elements, after mkdocs has checked all links, because these do not lead to
    one of its pages."""

    def run(self, root: etree.Element) -> None:
        """Everywhere on the page."""
        for element in root.iter(UNTIL_LAST):
            if "data-figure" in element.attrib:
                element.tag = "a" if "href" in element.attrib else "span"


class Figures(Extension):
    """Registers the two forms before Markdown's own links."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Hook of Python-Markdown."""
        md.preprocessors.register(Source(md), "figures", 100)
        md.inlinePatterns.register(Links(LINK, md), "figure-links", 168)
        md.inlinePatterns.register(Lights(LIGHT, md), "figure-lights", 167)
        md.treeprocessors.register(Last(md), "figures", -1)


def makeExtension(**options: dict) -> Figures:
    """Entry point of Python-Markdown."""
    return Figures(**options)
