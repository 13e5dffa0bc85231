"""The Markdown fence that says how to cite the course, out of what the repository says of itself.

    ``` cite
    ```
"""

from __future__ import annotations

import os
import re
import tomllib

from markupsafe import Markup, escape

from widgets.kit.locate import LESSONS

ROOT = LESSONS.parent


def bibtex() -> str:
    """The BibTeX entry; with an address where the build was told a public one."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    year, author = re.search(r"Copyright \(c\) (\d{4}), (.+)", (ROOT / "LICENSE").read_text(encoding="utf-8")).groups()
    fields = {"title": "{System ML}: Parallel Training and Inference,\n             from First Principles",
              "author": f"{{{author[0].upper()}{author[1:]}}}", "year": year, "note": f"Version {version}, CC BY 4.0"}
    if address := os.environ.get("SITE_URL"):
        fields["url"] = address
    lines = "".join(f"  {name:<7} = {{{text}}},\n" for name, text in fields.items())
    return f"@misc{{system-ml,\n{lines}}}\n"


def format(source, language, css_class, options, md, **kwargs) -> Markup:
    """The pymdownx superfences formatter; as a block of code it gets the page's *copy* button."""
    return Markup(f'<div class="highlight"><pre><code>{escape(bibtex())}</code></pre></div>')
