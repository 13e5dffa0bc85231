"""Figures against what is allowed, tables, and the sections of RESULTS.md that they become."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

MISSED: list[str] = []
SAID: list[str] = []
RESULTS = Path(__file__).with_name("RESULTS.md")


def say(text: str) -> None:
    """Print a piece of the report, and keep it for RESULTS.md."""
    print(text, flush=True)
    SAID.append(text)


def against(what: str, value: float, most: float, unit: str, digits: int = 1) -> str:
    """The figure as text; one over its budget is set in bold and remembered for the list at the end."""
    text = f"{value:.{digits}f}"
    if value <= most:
        return text
    MISSED.append(f"{what}: {text} {unit} (allowed {most:g})")
    return f"**{text}**"


def table(title: str, columns: list[str], rows: list[list]) -> None:
    """The first column is a name, the others are figures."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in [columns, *rows]]
    say("\n".join([f"\n### {title}\n", lines[0], f"|---|{'--:|' * (len(columns) - 1)}", *lines[1:]]))


def missed() -> None:
    """The list at the end."""
    say(f"\n### Over budget: {len(MISSED)}\n")
    say("\n".join(f"- {line}" for line in MISSED) or "Nothing.")


def circumstances() -> str:
    """When and on what: a figure of a wall clock means little without."""
    return f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load average at the end {os.getloadavg()[0]:.1f}"


def write(section: str, text: str) -> None:
    """Put a section into RESULTS.md, in place of the one of its name."""
    written = f"## {section}\n\n{text.strip()}\n\n"
    parts = re.split(r"^(?=## )", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = [part.split("\n", 1)[0].removeprefix("## ") for part in parts]
    if section in names:
        parts[names.index(section)] = written
    else:
        parts.append(written)
    RESULTS.write_text("".join(part.rstrip() + "\n\n" for part in parts).rstrip() + "\n", encoding="utf-8")
