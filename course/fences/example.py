"""The Markdown fence that shows a dashboard of examples/, as it runs where the package is installed.

``` example
which_chip.py
```
"""

from __future__ import annotations

from course import excerpts, in_wheel
from course.fences import base
from course.lessons import LESSONS

FOLDER = LESSONS.parent / "examples"


def render(source: str) -> str:
    """The HTML of the dashboard's program."""
    path = FOLDER / source.strip()
    if not path.is_file():
        there = ", ".join(sorted(each.name for each in FOLDER.glob("*.py")))
        raise ValueError(f"the examples are {there}; got {source.strip()!r}")
    program = in_wheel.of_program(path.read_text(encoding="utf-8"))
    return excerpts.html(f"``` python\n{program}```\n", of=None)


format = base.formatter(render)
