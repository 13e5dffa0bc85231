"""Where a fault in a lesson stands. Markdown extensions see text without its file; this finds the file and the line."""

from __future__ import annotations

from pathlib import Path

from mkdocs.exceptions import BuildError
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException

LESSONS = Path(__file__).resolve().parents[2] / "lessons"


def address(page: str) -> str:
    """The address of a page of lessons/ on the site, from the home page: '01-why-distributed/', and '' for the home page."""
    name = page.removesuffix(".md")
    return "" if name == "index" else f"{name}/"


class LessonFault(SuperFencesException, InlineHiliteException, BuildError):
    """A fault in a lesson's text. It stops the build with one line: pymdownx lets it pass, mkdocs prints it."""


def places(source: str, folder: Path = LESSONS) -> list[str]:
    """'lessons/01-why-distributed.md:42' for each place where this text stands (more than one if it was repeated)."""
    found = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        start = text.find(source)
        while start >= 0:
            found.append(f"{folder.name}/{path.relative_to(folder)}:{text.count(chr(10), 0, start) + 1}")
            start = text.find(source, start + 1)
    return found


def fault(source: str, message: str, folder: Path = LESSONS) -> LessonFault:
    """The exception to raise about this piece of a lesson's source text."""
    where = ", ".join(places(source, folder)) or "in a lesson"
    return LessonFault(f"{where}: {message}")
