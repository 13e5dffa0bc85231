"""Shows a mistake in a widget, a formula or a lesson as one line: file, line, what is wrong there, and, if
the error says so, what is allowed. An error in the kit itself keeps its traceback.

    python -m course.faults course.build        runs a module, and says a fault in it or in what it imports
"""

from __future__ import annotations

import re
import runpy
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# the folders in which people add something
WRITTEN = ("engine", "widgets", "course/fences", "course/diagrams", "course/templates", "site/theme")
HANDED_ON = ("widgets/kit", "engine/base", "engine/catalog/files.py")  # an error raised here is its caller's
PLACED = re.compile(r"\S+\.\w+:\d+: ")
SETTINGS = re.compile(r"configuration file: (.*?)in \"(\S+)\", line (\d+)", re.DOTALL)  # as mkdocs says it
SAID_IN_FULL = ("ValueError", "BadValue", "Refused", "NotTranslatable", "LessonFault")


def one_line(error: BaseException, about: str = "") -> str:
    """The line for an error; the whole traceback if no file that people write has part in it. ``about`` is
    the file that was being built, from the root, if the error has no note that names it."""
    words, about = _words(error), next(iter(getattr(error, "__notes__", [])), about)
    if PLACED.match(words):
        return words
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(Path(error.filename))}:{error.lineno}: {words}"
    of_template = type(error).__module__.startswith("jinja2")  # others only pass through a template
    led_here = [(file, line) for file, line in _frames(error) if _is_written(file)]
    written = [place for place in led_here if of_template or not place[0].endswith(".html")]
    if written:
        return f"{written[-1][0]}:{written[-1][1]}: {words}"
    if about:
        return f"{about}:{_line_that_says(ROOT / about, words)}: {words}"
    return "".join(traceback.format_exception(error)).rstrip()


def of_code(error: BaseException) -> str:
    """The line for an error that no lesson can cause, whichever lesson is being made: a module that does not
    know one of its own names or cannot be read, a template that is none. Empty for any other error."""
    if type(error).__module__.startswith("jinja2"):
        is_code = any(_is_written(file) for file, _ in _frames(error))
    elif isinstance(error, SyntaxError):
        is_code = Path(error.filename or "").is_relative_to(ROOT)
    else:
        is_code = isinstance(error, (NameError, ImportError)) and _is_written(_frames(error)[-1][0])
    return one_line(error) if is_code else ""


def said_by_mkdocs(lines: list[str]) -> str:
    """The lines of mkdocs's output that name a place; all of its output if none does."""
    words = [re.sub(r"^(?:ERROR|WARNING) +- +", "", line.rstrip()) for line in lines]
    placed = [line for line in words if PLACED.match(line)]
    if where := SETTINGS.search("\n".join(words)):
        placed = [f"mkdocs.yml:{where[3]}: {' '.join(where[1].split())}"]
    return "\n".join(placed or words)


def _frames(error: BaseException) -> list[tuple[str, int | None]]:
    """The places (file from the root, line) that led to an error; the last is where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(_shown(Path(frame.filename)), frame.lineno) for frame in frames]


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
    """The line of a file that contains what the message quotes last; line 1 if none does."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for quoted in reversed(re.findall(r"'([^']+)'", words)):
        for number, line in enumerate(lines, 1):
            if re.search(rf"[\"']{re.escape(quoted)}[\"']|\bdef {re.escape(quoted)}\b", line):
                return number
    return 1


def run(module: str) -> None:
    """Runs a module as ``python -m`` does. On an error, in it or in what it imports, prints one line and
    exits."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except Exception as error:
        sys.exit(one_line(error))


if __name__ == "__main__":
    sys.argv.pop(0)
    run(sys.argv[0])
