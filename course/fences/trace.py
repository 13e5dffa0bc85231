"""The Markdown fence for an excerpt of a trace, drawn as the lanes that a profiler shows.

    ``` trace
    recorded: ddp_step               a trace that record/ has recorded, or
    measured: linear_step            a trace that measure/ has measured on a GPU, or
    executed: 1f1b                   a schedule to execute; `stages`, `micro_batches`, `forward_ms`,
                                     `backward_ms` and `message_ms` give its size; or
    executed: ddp                    a step of data parallelism for each number of `tokens`, a list
    title: What it is a picture of.
    from_ms: 20                      the excerpt, if it is not the whole
    to_ms: 90
    lanes: [1, 2]                    some of its lanes, by number
    caption: What to see in it.
    ```

The caption ends with where the trace comes from: a recorded one says that it was recorded, an executed one
that it was not. Unknown names stop the build with file and line.
"""

from __future__ import annotations

import math
import re
from html import escape

from course import numbers, strict_yaml, widget_html
from course.drawing import lanes, page
from course.fences import base
from engine.executed import profile
from engine.executed.profile import MILLISECOND, Profile
from engine.one_gpu import profiles

SOURCES = ("recorded", "measured", "executed")
JOB = ("stages", "micro_batches", "forward_ms", "backward_ms", "message_ms")  # size of an executed schedule
EXCERPT = ("from_ms", "to_ms", "lanes")
STEPS = "tokens"  # on each GPU, of executed data-parallel steps
FIELDS = (*SOURCES, "title", *JOB, STEPS, *EXCERPT, "caption")


def read(options: dict, source: str) -> Profile:
    """The trace that a fence names."""
    named = [key for key in SOURCES if key in options]
    if len(named) != 1:
        raise base.Refused(f"a trace needs exactly one of {', '.join(SOURCES)}")
    kind, name = named[0], options[named[0]]
    ddp = kind == "executed" and name == "ddp"
    theirs = (STEPS,) if ddp else JOB if kind == "executed" else ()
    if stray := [key for key in (*JOB, STEPS) if key in options and key not in theirs]:
        raise base.Refused(f"{stray[0]!r} is for an executed schedule", strict_yaml.line_of(source, stray[0]))
    try:
        if ddp:
            return profile.data_parallel_steps([int(each) for each in options[STEPS]])
        if kind == "executed":
            counts = [_number(options, key, source, whole=True) for key in JOB[:2]]
            seconds = [_number(options, key, source) * MILLISECOND for key in JOB[2:]]
            return profile.pipeline(name, int(counts[0]), int(counts[1]), *seconds)
        return profiles.recorded(name) if kind == "recorded" else profiles.measured(name)
    except base.Refused:
        raise
    except ValueError as error:
        raise base.Refused(str(error), strict_yaml.line_of(source, kind)) from error


def _number(options: dict, key: str, source: str, whole: bool = False) -> float:
    if key not in options:
        raise base.Refused(f"this trace needs a line '{key}: …'")
    try:
        value = int(options[key]) if whole else float(options[key])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        what = "a whole number" if whole else "a number"
        raise base.Refused(f"{key} must be {what}, got {options[key]!r}", strict_yaml.line_of(source, key))
    return value


def excerpt(whole: Profile, options: dict, source: str) -> tuple[Profile, tuple[float, float]]:
    """The lanes and the window of time that a fence selects."""
    first_s = _number(options, "from_ms", source) * MILLISECOND if "from_ms" in options else 0.0
    last_s = _number(options, "to_ms", source) * MILLISECOND if "to_ms" in options else whole.end_s
    if not 0 <= first_s < last_s <= whole.end_s * 1.001:
        line = strict_yaml.line_of(source, "to_ms" if "to_ms" in options else "from_ms")
        raise base.Refused(
            f"from_ms and to_ms must lie in order between 0 and {whole.end_s / MILLISECOND:g}", line
        )
    chosen = options.get("lanes", [str(at + 1) for at in range(len(whole.lanes))])
    allowed = {str(at + 1): lane for at, lane in enumerate(whole.lanes)}
    if not isinstance(chosen, list) or not chosen or set(chosen) - set(allowed):
        line = strict_yaml.line_of(source, "lanes")
        raise base.Refused(f"lanes must be a list of numbers from 1 to {len(allowed)}", line)
    some = Profile(tuple(allowed[number] for number in chosen), whole.source)
    return some.within(first_s, last_s), (first_s, last_s)


def key(shown: Profile, window: tuple[float, float]) -> str:
    """The names that do not fit in a box, by their numbers."""
    rows = "".join(
        f'<li value="{number}"><code>{escape(name)}</code> <span>{took}{f", {count} times" if count > 1 else ""}'
        "</span></li>"
        for number, name, count, took in lanes.totals(shown, lanes.numbered(shown, window))
    )
    return f'<ol class="trace-names" data-search-exclude>{rows}</ol>' if rows else ""


def render(source: str) -> str:
    """The HTML of one fence."""
    options = base.options(source, FIELDS, ("title", "caption"))
    shown, window = excerpt(read(options, source), options, source)
    kind = next(kind for kind in SOURCES if kind in options)
    named = f"measured {options[kind]}" if kind == "measured" else options[kind]  # a page may show both
    comes_from = f"{shown.source[0].upper()}{shown.source[1:]}."
    return page.figure(
        f"t-{re.sub(r'[^a-z0-9]+', '-', named.lower())}",
        lambda width: lanes.draw(shown, window, options["title"], width),
        f"{widget_html.rich_line(options['caption'])} {escape(comes_from)}",
        kind="diagram trace",
        below=key(shown, window),
    )


format = base.formatter(lambda source: numbers.kept("trace", source, render, (__name__,)))
