"""The Markdown fence that says how to cite the course, based on the repository's own data.

``` cite
```
"""

from __future__ import annotations

import os
import re

from markupsafe import Markup, escape

from course.fences import base
from course.lessons import LESSONS
from course.matches import there
from engine.base import edition

ROOT = LESSONS.parent


def bibtex() -> str:
    """The BibTeX entry; with an address if the build was given a public one."""
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    year, author = there(re.search(r"Copyright \(c\) (\d{4}), (.+)", licence), "the copyright").groups()
    fields = {
        "title": "{System ML}: Parallel Training and Inference,\n             from First Principles",
        "author": f"{{{author[0].upper()}{author[1:]}}}",
        "year": year,
        "note": f"Version {edition.version()}, CC BY 4.0",
    }
    if address := os.environ.get("SITE_URL"):
        fields["url"] = address
    lines = "".join(f"  {name:<7} = {{{text}}},\n" for name, text in fields.items())
    return f"@misc{{system-ml,\n{lines}}}\n"


def render(source: str) -> Markup:
    """The HTML of the fence; since it is a block of code, it gets the page's *copy* button."""
    base.require_empty(source)
    return Markup(f'<div class="highlight"><pre><code>{escape(bibtex())}</code></pre></div>')


format = base.formatter(render)
