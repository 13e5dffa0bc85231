"""Figures compared with their limits, tables, and the sections of RESULTS.md made of them."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from bench.processor import slowness

MISSED: list[str] = []
SAID: list[str] = []
TIMES = ("s", "ms", "µs")
SLOWNESS = [1.0]  # of the processor, the newest last
RESULTS = Path(__file__).with_name("RESULTS.md")


def say(text: str) -> None:
    """Print a piece of the report, and keep it for RESULTS.md."""
    print(text, flush=True)
    SAID.append(text)


def against(what: str, value: float, most: float, unit: str, digits: int = 1) -> str:
    """The figure as text; one over its limit is set in bold and remembered for the list at the end.

    Limits on times are meant for the processor on a quiet day; when it is slower, they are raised.
    """
    text, allowed = f"{value:.{digits}f}", f"{most:g}"
    if unit in TIMES and SLOWNESS[-1] > 1:
        most *= SLOWNESS[-1]
        allowed = f"{most:.3g} now, {allowed} on a quiet day"
    if value <= most:
        return text
    MISSED.append(f"{what}: {text} {unit} (allowed {allowed})")
    return f"**{text}**"


def look_at_the_clock() -> None:
    """Measure how slow the processor is now; figures compared after this call are judged by it."""
    SLOWNESS.append(slowness())


def table(title: str, columns: list[str], rows: list[list]) -> None:
    """Print a table; the first column is a name, the others are figures."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in [columns, *rows]]
    say("\n".join([f"\n### {title}\n", lines[0], f"|---|{'--:|' * (len(columns) - 1)}", *lines[1:]]))


def missed() -> None:
    """Print the list of figures over their limits."""
    say(f"\n### Over budget: {len(MISSED)}\n")
    say("\n".join(f"- {line}" for line in MISSED) or "Nothing.")


def circumstances() -> str:
    """The date and the machine of the measurement, without which wall-clock figures mean little."""
    load = os.getloadavg()[0]
    said = f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load average at the end {load:.1f}"
    if max(SLOWNESS) == 1:
        return said
    return (
        f"{said}. The processor was {min(SLOWNESS[1:]):.1f} to {max(SLOWNESS):.1f} times slower than on a "
        "quiet day, and each section was allowed as much more time"
    )


def write(section: str, text: str) -> None:
    """Write a section to RESULTS.md, replacing the one of that name."""
    written = f"## {section}\n\n{text.strip()}\n\n"
    parts = re.split(r"^(?=## )", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = [part.split("\n", 1)[0].removeprefix("## ") for part in parts]
    if section in names:
        parts[names.index(section)] = written
    else:
        parts.append(written)
    RESULTS.write_text("".join(part.rstrip() + "\n\n" for part in parts).rstrip() + "\n", encoding="utf-8")
