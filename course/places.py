"""The entry points of a page of the course: its sections, its boxes and its widgets."""

from __future__ import annotations

import re

from markdown.extensions.toc import slugify

from course import lessons
from widgets.kit.widget import all_widgets


def anchors(page: str) -> dict[str, str]:
    """Anchor -> title, for a page given by its file."""
    lesson = lessons.read(page)
    found = dict(_of_heading(heading) for heading in lesson.headings)
    found |= {box.anchor: box.title for box in lesson.all_boxes}
    return found | {f"w-{slug}": all_widgets()[slug].question for slug in lesson.widgets}


def _of_heading(heading: str) -> tuple[str, str]:
    """The anchor and the title of a heading, which may name its anchor itself: ``Title { #anchor }``."""
    named = re.fullmatch(r"(.*?)\s*\{\s*#([\w-]+)\s*\}", heading)
    title, anchor = named.groups() if named else (heading, "")
    return anchor or slugify(re.sub(r"[`$*]", "", title), "-"), title
