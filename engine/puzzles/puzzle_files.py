"""Puzzles outside of the browser: a file to fill in, and what CPython says about it.

    system-ml puzzle                          the puzzles there are
    system-ml puzzle one_f_one_b              writes one_f_one_b.py
    system-ml puzzle one_f_one_b --check FILE judges it

A file is judged in a process of its own, which is ended after ``LIMIT_S``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from engine import puzzles
from engine.puzzles import judging

LIMIT_S = 20.0
LARGEST = 100_000  # characters of a file
ENDLESS = f"Stopped after {LIMIT_S:g} s. Is there a loop that never ends?"


def listed() -> list[dict[str, str]]:
    """A line for each puzzle: its name, lesson and title."""
    found = [(name, puzzles.puzzle(name)) for name in puzzles.names()]
    return [{"puzzle": name, "lesson": each.LESSON, "title": each.TITLE} for name, each in found]


def text(name: str) -> str:
    """The file that a reader fills in: the task as a comment, and the code to start from."""
    puzzle = puzzles.puzzle(name)
    paragraphs = [f"{puzzle.TITLE} ({puzzle.LESSON})", *puzzle.STATEMENT.strip().split("\n\n"), puzzle.OPEN]
    wrapped = [textwrap.wrap(" ".join(each.split()), 100) for each in paragraphs]
    comment = "\n#\n".join("\n".join(f"# {line}" for line in lines) for lines in wrapped)
    return f"{comment}\n#\n# Check it with: system-ml puzzle {name} --check {name}.py\n\n{puzzle.START}"


def written(name: str, folder: Path) -> Path:
    """Write a puzzle's file; ValueError if it exists, because it may contain somebody's work."""
    file, words = folder / f"{name}.py", text(name)
    if file.exists():
        raise ValueError(f"{file} is there already; move it away, or check it with --check {file}")
    file.write_text(words, encoding="utf-8")
    return file


def judged(name: str, file: Path) -> dict:
    """The result of ``judging.tried`` for the function in a file, without the state of the figure."""
    puzzles.puzzle(name)
    require_readable(file)
    command = [sys.executable, "-m", __name__, name, str(file)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, encoding="utf-8")
        said = ran.stdout.splitlines()
        found = json.loads(said[-1]) if ran.returncode == 0 and said else {"words": died(ran.stderr)}
    except subprocess.TimeoutExpired:
        found = {"words": ENDLESS}
    return {"puzzle": name, "right": False, "line": 0, "printed": []} | found


def require_readable(file: Path) -> None:
    """ValueError unless this is a text of a sensible length."""
    try:
        code = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--check must be a file of Python in UTF-8, got {file}: {error}") from None
    if len(code) > LARGEST:
        raise ValueError(f"--check must be a file of at most {LARGEST} characters, got {len(code)}")


def died(said: str) -> str:
    """The result for a process that ended without an answer."""
    lines = said.split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    return f"Python itself ended while it ran this: {judging.short(last)}"


def lines(found: dict) -> list[str]:
    """The judgement for people."""
    where = f"line {found['line']}: " if found["line"] else ""
    return [*found["printed"], f"{'right' if found['right'] else 'not yet'}: {where}{found['words']}"]


if __name__ == "__main__":
    source = Path(sys.argv[2]).read_text(encoding="utf-8")
    print("\n" + json.dumps(puzzles.tried(sys.argv[1], source) | {"drawn": None}))
