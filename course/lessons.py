"""The one reader of lessons: title, front matter, boxes, fences, exercises and the names of the Python file
beside each; and the place of a fault, since Markdown extensions see a text without its file."""

from __future__ import annotations

import pkgutil
import re
import string
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import yaml
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException

from course import lesson_code, strict_yaml
from course.lesson_code import CodeFault
from course.strict_yaml import Refused

LESSONS = Path(__file__).resolve().parents[1] / "lessons"
FENCES, SHARED_BY_FENCES = Path(__file__).resolve().parent / "fences", ("base", "prediction")
NUMBER = re.compile(r"(\d\d[a-z]?)-")  # how the file of a lesson begins; 10b is the second page of lesson 10
FRONT_MATTER = ("title", "lesson", "needs", "description", "template", "hide")
HIDDEN = ("navigation", "toc", "path", "footer")  # what Material can leave out of a page

FRONT = re.compile(r"\A---\n(?P<yaml>.*?\n)---\n+", re.DOTALL)
TITLE = re.compile(r"^# (?P<title>.+?)(?: \{[^{}]*\})?$", re.MULTILINE)  # without its attributes
QUESTION = re.compile(r"^# .+\n\n(?P<question>(?:.+\n)+?)\{ \.question \}", re.MULTILINE)
HEADING = re.compile(r"^#{2,3} (?P<text>.+?)(?: \{: .*\})?$", re.MULTILINE)
BOX = re.compile(
    r'^!!! (?P<kind>\w+)(?P<open> open)? "(?P<title>.+)"\n(?P<body>(?:\n|    .*\n)+)', re.MULTILINE
)
FENCE = re.compile(
    r"^(?P<indent> *)``` *(?P<kind>\w*)[^\n]*\n(?P<source>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL
)
INLINE = re.compile(r"`#!(?P<kind>n|bar) (?P<source>.+?)`", re.DOTALL)


class LessonFault(SuperFencesException, InlineHiliteException):
    """A fault in a lesson's text. It stops the build with one line, because pymdownx does not catch an error
    of this class, and mkdocs prints it without a traceback."""


def box_address(kind: str, title: str) -> str:
    """The anchor of a box, from its kind and its title."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKD", title.removeprefix("Rule:").lower()))
    return "-".join([kind, *(word.encode("ascii", "ignore").decode() for word in words)]).strip("-")


class Box(NamedTuple):
    """A box of a lesson: its kind, its title, whether it is marked open, its text as Markdown."""

    kind: str
    title: str
    open: bool
    source: str

    @property
    def anchor(self) -> str:
        """Its address on the lesson's page."""
        return box_address(self.kind, self.title)

    @property
    def name(self) -> str:
        """Its title without its kind."""
        return self.title.removeprefix("Rule: ")


@cache
def kinds_of_fence() -> tuple[str, ...]:
    """The names of the course's own fences: the modules of course/fences, except for shared ones."""
    found = {module.name for module in pkgutil.iter_modules([str(FENCES)])}
    return tuple(sorted(found - set(SHARED_BY_FENCES)))


class Fence(NamedTuple):
    """A fenced block of a lesson: the word after its ticks, and its lines without their indentation."""

    kind: str
    source: str


@dataclass(frozen=True)
class Lesson:
    """A page of lessons/: the name of its file without the extension, its source, and the Python file beside
    it."""

    name: str
    text: str
    file: str  # lessons/12-disaggregated-serving.md
    path: Path
    code: str = ""  # of 12-disaggregated-serving.py, if there is one

    def fault(self, refused: Refused) -> LessonFault:
        """A fault in the front matter, with file and line."""
        return LessonFault(f"{self.file}:{refused.line + 2}: {refused}")

    @cached_property
    def front_text(self) -> str:
        """The lesson's front matter as it is written; empty where there is none."""
        found = FRONT.match(self.text)
        return found["yaml"] if found else ""

    @cached_property
    def front(self) -> dict:
        """The front matter; an unknown or duplicate key, or a value that its key does not allow, is a
        fault."""
        try:
            allowed, loader = FRONT_MATTER, yaml.SafeLoader
            found = strict_yaml.mapping(self.front_text, allowed, loader) if self.front_text else {}
            for key, value in found.items():
                self._require_fit(key, value)
        except Refused as refused:
            raise self.fault(refused) from refused
        return found

    def _require_fit(self, key: str, value: Any) -> None:
        """Refused at a value of the front matter that its key does not allow."""
        if key in ("title", "description", "template"):
            fits, allowed = isinstance(value, str), "a text"
        elif key == "lesson":
            number = self.number.lstrip("0")
            fits = bool(number) and f"{value}" == number
            allowed = (
                f"{number}, as in the file's name"
                if number
                else "left out: only a file named 05-… is a lesson"
            )
        elif key == "needs":
            last = int(self.number.rstrip(string.ascii_lowercase) or 1) - (not self.number[2:])
            earlier = range(1, last + 1)
            fits = isinstance(value, list) and all(type(each) is int and each in earlier for each in value)
            allowed = f"a list of earlier lessons, as in [1, 2], each from 1 to {last}"
        elif key == "hide":
            fits = isinstance(value, list) and set(value) <= set(HIDDEN)
            allowed = f"a list of some of {', '.join(HIDDEN)}"
        else:
            raise AssertionError(f"{key} is in FRONT_MATTER, and nothing says what it may be")
        if not fits:
            raise Refused(f"{key} must be {allowed}; got {value!r}", self._line(key))

    @cached_property
    def body(self) -> str:
        """The Markdown after the front matter."""
        return FRONT.sub("", self.text)

    @cached_property
    def title(self) -> str:
        """Its heading, without Markdown attributes such as ``{#anchor}``."""
        found = TITLE.search(self.body)
        if not found:
            raise LessonFault(f"{self.file}:1: a page needs a heading '# …'")
        return found["title"]

    @property
    def number(self) -> str:
        """'12', '10b', or '' for a page that is not a lesson."""
        return number_of(self.name)

    @property
    def heading(self) -> str:
        """Its title, preceded by the number if it is a lesson."""
        return f"{self.number} {self.title}".strip()

    @property
    def address(self) -> str:
        """Its address from the home page."""
        return address(self.name)

    @property
    def slides(self) -> str:
        """The address of its slides, from the home page."""
        return f"{self.address}slides/"

    @cached_property
    def question(self) -> str:
        """The lesson's question, below its title."""
        return found["question"] if (found := QUESTION.search(self.text)) else ""

    @cached_property
    def headings(self) -> list[str]:
        """The headings of its sections, ignoring fences."""
        return [found["text"] for found in HEADING.finditer(FENCE.sub("", self.body))]

    @cached_property
    def all_boxes(self) -> tuple[Box, ...]:
        """Every box, in order."""
        return boxes_in(self.body)

    def boxes(self, kind: str) -> tuple[Box, ...]:
        """The boxes of this kind."""
        return tuple(box for box in self.all_boxes if box.kind == kind)

    @property
    def exercises(self) -> tuple[Box, ...]:
        """The lesson's exercises, in order."""
        return self.boxes("exercise")

    @cached_property
    def fences(self) -> tuple[Fence, ...]:
        """Every fenced block, in order."""
        return tuple(
            Fence(found["kind"], re.sub(rf"^{found['indent']}", "", found["source"], flags=re.MULTILINE))
            for found in FENCE.finditer(self.body)
        )

    def options(self, kind: str) -> list[dict]:
        """The options of each fence of this kind."""
        return [strict_yaml.mapping(fence.source) for fence in self.fences if fence.kind == kind]

    @cached_property
    def widgets(self) -> list[str]:
        """The widgets that it shows."""
        return [options["name"] for options in self.options("widget")]

    @cached_property
    def code_contents(self) -> lesson_code.Contents:
        """What the Python file beside it defines and imports."""
        with self._code_faults():
            return lesson_code.contents(self.code)

    @property
    def module(self) -> ModuleType:
        """The Python file beside it, run."""
        with self._code_faults():
            return lesson_code.loaded(self.code, self.path.with_suffix(".py"))

    def code_fault(self, line: int, message: str) -> LessonFault:
        """A fault in the Python file beside it, with file and line."""
        return LessonFault(f"{self.file.removesuffix('.md')}.py:{line}: {message}")

    @contextmanager
    def _code_faults(self) -> Iterator[None]:
        try:
            yield
        except CodeFault as error:
            raise self.code_fault(error.line, str(error)) from error

    def _line(self, *keys: str) -> int:
        return strict_yaml.line_of(self.front_text, *keys)

    def inline(self, kind: str = "n") -> list[str]:
        """The sources of its numbers (n) or bars (bar) in running text."""
        return inline(self.body, kind)


def boxes_in(markdown: str) -> tuple[Box, ...]:
    """The boxes in a piece of a lesson, in their order."""
    return tuple(
        Box(
            found["kind"],
            found["title"],
            bool(found["open"]),
            re.sub(r"^    ", "", found["body"], flags=re.MULTILINE).strip() + "\n",
        )
        for found in BOX.finditer(markdown)
    )


def inline(markdown: str, kind: str = "n") -> list[str]:
    """The sources of the numbers (n) or bars (bar) in a piece of a lesson."""
    return [found["source"] for found in INLINE.finditer(markdown) if found["kind"] == kind]


# -- finding lessons -----------------------------------------------------------------------------------------
def number_of(page: str) -> str:
    """'12' of the page 12-disaggregated-serving; '' of a page that is not a lesson."""
    found = NUMBER.match(page)
    return found[1] if found else ""


def address(page: str) -> str:
    """The address of a page of lessons/ on the site, from the home page: '01-why-distributed/', and '' for
    the home page."""
    name = page.removesuffix(".md")
    return "" if name == "index" else f"{name}/"


@lru_cache(256)
def _lesson(path: Path, text: str, code: str) -> Lesson:
    return Lesson(path.stem, text, f"{path.parent.name}/{path.name}", path, code)


def read(page: str | Path, folder: Path = LESSONS) -> Lesson:
    """A page by the name of its file; the result is cached while its two files stay the same."""
    path = folder / page
    beside = path.with_suffix(".py")
    code = beside.read_text(encoding="utf-8") if beside.is_file() else ""
    return _lesson(path, path.read_text(encoding="utf-8"), code)


def numbered(folder: Path = LESSONS) -> list[Lesson]:
    """The lessons, by number."""
    return [page for page in pages(folder) if page.number]


def pages(folder: Path = LESSONS) -> list[Lesson]:
    """All pages, lessons and others, by name."""
    return [read(path) for path in sorted(folder.glob("*.md")) if path.name != "README.md"]


def with_body(markdown: str, folder: Path = LESSONS) -> Lesson | None:
    """The page with this Markdown, because a converter gets a page without its name, and without its front
    matter unless that is unreadable."""
    text = markdown.strip()
    return next((page for page in pages(folder) if text in (page.body.strip(), page.text.strip())), None)


# -- the page that is being converted ------------------------------------------------------------------------
_current: ContextVar[Lesson | None] = ContextVar("lesson", default=None)


@contextmanager
def on(lesson: Lesson | None) -> Iterator[None]:
    """Inside this block, computed and quoted pieces belong to this lesson."""
    before = _current.set(lesson)
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Lesson | None:
    """The lesson whose text is being converted; None outside."""
    return _current.get()


# -- the place of a fault ------------------------------------------------------------------------------------
def places(source: str, folder: Path = LESSONS, line: int = 0) -> list[str]:
    """'lessons/01-why-distributed.md:42' for each place where this text occurs (several if it is repeated),
    however it is indented; ``line`` lines further down."""
    if not source.strip():
        return []
    wanted = re.compile(
        r"[ \t]*\n[ \t]*".join(re.escape(part.strip()) for part in source.strip().split("\n"))
    )
    only = current()
    found = []
    for path in sorted(folder.rglob("*.md")):
        if only is None or path.stem == only.name:
            text = path.read_text(encoding="utf-8")
            where = f"{folder.name}/{path.relative_to(folder)}"
            found += [
                f"{where}:{text.count(chr(10), 0, at.start()) + 1 + line}" for at in wanted.finditer(text)
            ]
    return found


def fault(source: str, message: str, folder: Path = LESSONS, *, line: int = 0) -> LessonFault:
    """The exception to raise about this piece of a lesson's source, or about one of its lines."""
    where = ", ".join(places(source, folder, line)) or "in a lesson"
    return LessonFault(f"{where}: {message}")
