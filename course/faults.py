"""A fault of whoever writes a widget, a formula or a lesson, as one line: file, line, what is wrong there,
and what is allowed where the error says so. What is wrong with the kit itself keeps its traceback."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ("engine", "widgets", "course/fences", "course/diagrams")  # where people add something
HANDED_ON = ("widgets/kit", "engine/base", "engine/catalog/files.py")  # in these it is the caller's fault
PLACED = re.compile(r"\S+\.\w+:\d+: ")
SAID_IN_FULL = ("ValueError", "BadValue", "Refused", "NotTraceable", "LessonFault")


def one_line(error: BaseException, about: str = "") -> str:
    """The line for an error; the whole traceback if no file that people write has part in it. ``about`` is
    the file that was being built, from the root, if the error has no note that names it."""
    words, about = _words(error), next(iter(getattr(error, "__notes__", [])), about)
    if PLACED.match(words):
        return words
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(Path(error.filename))}:{error.lineno}: {words}"
    frames = [
        (_shown(Path(frame.filename)), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)
    ]
    written = [(file, line) for file, line in frames if _is_written(file)]
    if written:
        return f"{written[-1][0]}:{written[-1][1]}: {words}"
    if about:
        return f"{about}:{_line_that_says(ROOT / about, words)}: {words}"
    return "".join(traceback.format_exception(error)).rstrip()


def _words(error: BaseException) -> str:
    name = type(error).__name__
    said = str(error.msg if isinstance(error, SyntaxError) else error).strip().replace(f"{ROOT}/", "")
    said = " ".join(said.split())
    return said if said and (name in SAID_IN_FULL or PLACED.match(said)) else f"{name}: {said}".rstrip(": ")


def _shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def _is_written(file: str) -> bool:
    def inside(folders: tuple[str, ...]) -> bool:
        return any(file == folder or file.startswith(f"{folder}/") for folder in folders)

    return inside(WRITTEN) and not inside(HANDED_ON)


def _line_that_says(file: Path, words: str) -> int:
    """The line of a file that has the thing which a message quotes last, or the first."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for quoted in reversed(re.findall(r"'([^']+)'", words)):
        for number, line in enumerate(lines, 1):
            if re.search(rf"[\"']{re.escape(quoted)}[\"']|\bdef {re.escape(quoted)}\b", line):
                return number
    return 1
